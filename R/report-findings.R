# The report's first screen: what was found, in a sentence each, with how sure it is and where its evidence stands.
# Chance is never a finding: what was looked for in vain comes after, as that.

strengths <- c(strong = 0.01, suggestive = 0.05, "could be chance" = Inf) # greatest p, over the whole search

strength_of <- function(p) names(strengths)[which(p <= strengths)[1L]]

# A data frame of at most `most` findings, surest first: `text`, `strength`, `section` (of the page). The attribute
# "in_vain" has what was not found.
report_findings <- function(fit, most = 5L) {
  fit <- with_labels(fit)
  ask <- list(ranking = finding_genes, network = finding_network, hidden = finding_hidden, outliers = finding_outliers,
              pairs = finding_pairs, clusters = finding_groups, components = finding_components, bayes = finding_bayes)
  found <- lapply(names(ask), function(what) {
    step <- if (what == "hidden") "components" else what
    if (is.null(fit[[step]])) NULL else c(ask[[what]](fit), list(section = step))
  })
  found <- Filter(function(f) !is.null(f$text), found)
  vain <- vapply(found, function(f) isTRUE(f$vain), NA)
  of <- function(field) vapply(found[!vain], function(f) f[[field]], "")
  out <- data.frame(text = as.character(of("text")), strength = as.character(of("strength")),
                    section = as.character(of("section")))
  out <- out[order(match(out$strength, names(strengths))), ]
  structure(utils::head(out, most), row.names = seq_len(min(most, nrow(out))),
            in_vain = vapply(found[vain], function(f) f$text, ""))
}

finding <- function(text, p = NULL, strength = strength_of(p)) list(text = text, strength = strength)

in_vain <- function(text) list(text = text, vain = TRUE)

among_classes <- function(class) {
  if (nlevels(class) == 2L) sprintf("between %s and %s", levels(class)[1L], levels(class)[2L])
  else sprintf("among the %d classes", nlevels(class))
}

# "A, B and C", and how many are as good as the last of them.
best_names <- function(names, score, most = 3L) {
  shown <- utils::head(names, most)
  tied <- if (length(names) > most) sum(score[-seq_len(most)] == score[most]) else 0L
  text <- if (length(shown) < 2L) shown else paste(toString(utils::head(shown, -1L)), "and", utils::tail(shown, 1L))
  if (tied) sprintf("%s (%d more with as much as %s)", text, tied, utils::tail(shown, 1L)) else text
}

several <- function(n, what) sprintf("%s %s%s", format(n, big.mark = ","), what, if (n == 1) "" else "s")

finding_genes <- function(fit) {
  r <- fit$ranking
  q <- fit$quality
  sure <- r$q_value <= strengths[["suggestive"]]
  if (!any(sure)) return(in_vain(sprintf("a gene that differs %s (%s tried)", among_classes(q$class),
                                         format(nrow(r), big.mark = ","))))
  name <- r$feature[sure]
  finding(sprintf("%s of %s %s %s; %s most.", format(sum(sure), big.mark = ","), several(nrow(r), "gene"),
                  if (sum(sure) == 1L) "differs" else "differ", among_classes(q$class), best_names(name, r$mi[sure])),
          min(r$q_value))
}

finding_network <- function(fit) {
  net <- fit$network
  edges <- count_edges(net)
  if (is_directed(net) && !is.null(attr(net, "edges")$q_value)) {
    edges <- sum(attr(net, "edges")$q_value <= (attr(net, "fdr") %||% 0.05))
  }
  fdr <- attr(net, "fdr")
  if (edges == 0) return(in_vain(sprintf("an edge among %s", several(ncol(net), "gene"))))
  if (is.null(fdr) || is.na(attr(net, "cut") %||% 0)) return(NULL) # not tested
  degree <- sort(network_degree(net), decreasing = TRUE)
  q <- if (is_directed(net)) min(attr(net, "edges")$q_value, 1) else fdr
  finding(sprintf("%s among %s at a false discovery rate of %g%s.",
                  several(edges, if (is_directed(net)) "directed edge" else "edge"), several(ncol(net), "gene"), fdr,
                  hubs_found(degree)), q)
}

# The three genes of most edges, or as many of them as have more than those after them.
hubs_found <- function(degree) {
  few <- degree[seq_len(min(3L, length(degree)))]
  if (length(degree) > 3L) few <- few[few > degree[4L]]
  if (!length(few)) return("")
  sprintf("; %s most neighbours (%s)", paste(joined(names(few)), if (length(few) > 1L) "have" else "has"),
          paste(few, collapse = ", "))
}

finding_hidden <- function(fit) {
  hidden <- fit$components$hidden
  if (is.null(hidden)) return(NULL)
  finding(paste("A likely hidden batch:", hidden_text(fit$quality, hidden)), strength = "suggestive")
}

finding_outliers <- function(fit) {
  o <- as.data.frame(fit$outliers)
  if (!any(o$outlier)) {
    return(in_vain(sprintf("a sample that stands apart from the other %d; the strangest is %s", nrow(o) - 1L,
                           strangest_text(fit, o))))
  }
  odd <- o[o$outlier, ]
  finding(sprintf("%s of %d stand%s apart: %s. The strangest is %s.", several(nrow(odd), "sample"), nrow(o),
                  if (nrow(odd) == 1L) "s" else "", best_names(odd$sample, odd$p_value, 5L), strangest_text(fit, odd)),
          min(odd$q_value))
}

finding_pairs <- function(fit) {
  r <- as.data.frame(fit$pairs)
  if (!nrow(r) || is.null(r$p_fwer)) return(NULL)
  sure <- r[r$p_fwer <= strengths[["suggestive"]], ]
  if (!nrow(sure)) {
    return(in_vain(sprintf("a pair of genes that says more about the class than its members (%s tried)",
                           format(attr(fit$pairs, "searched"), big.mark = ",", scientific = FALSE))))
  }
  one <- nrow(sure) == 1L
  finding(sprintf("%s of %s of genes %s more about the class together than %s members do alone: %s (p %s over %s).",
                  format(nrow(sure), big.mark = ","),
                  several(attr(fit$pairs, "searched"), "pair"), if (one) "says" else "say", if (one) "its" else "their",
                  best_names(paste(sure$feature1, "with", sure$feature2), sure$interaction, 2L),
                  probability_text(min(sure$p_fwer)), whole_search(fit$pairs)),
          min(sure$p_fwer))
}

# What the p-values of pairs are over; the least that so few shuffles can give says little by being no less.
whole_search <- function(pairs) {
  times <- attr(pairs, "permutations")
  if (is.null(times)) return("the whole search")
  least <- min(pairs$p_fwer) <= 1.0001 / (times + 1)
  sprintf("the whole search%s", if (least) sprintf(", the least that %d shuffles of the classes can give",
                                                   as.integer(times))
                                else sprintf(", by %d shuffles of the classes", as.integer(times)))
}

# Whether samples' groups go with classes: against shuffled classes.
finding_groups <- function(fit) {
  r <- fit$clusters
  z <- r$row_cluster
  if (max(z) < 2L) return(in_vain(sprintf("groups among %d samples", length(z))))
  settled <- max(r$rhat[is.finite(r$rhat)], 1) <= 1.1
  counted <- sprintf("%s%d groups%s", if (is_reached(r$limits[1L, ])) "at least " else if (settled) "" else "about ",
                     max(z), if (settled) "" else " (on how many the chains do not agree yet)")
  class <- as.integer(fit$quality$class)
  if (!length(class)) {
    return(finding(sprintf("Samples fall into %s (shares of the sampled partitions: %s).", counted,
                           counts_text(r$n_clusters$row, 3L)),
                   strength = "suggestive"))
  }
  found <- class_agreement(fit)
  p <- found$p
  finding(sprintf("Samples fall into %s, which %s: both share %s of their information, shuffled classes %s.", counted,
                  if (p <= strengths[["suggestive"]]) "go with the classes"
                  else "do not go with the classes beyond chance",
                  share_text(found$shared), share_text(found$chance)),
          strength = if (settled || p > strengths[["suggestive"]]) strength_of(p) else "suggestive")
}

# The component on which classes differ most; p is of an analysis of variance, for all components.
finding_components <- function(fit) {
  scores <- fit$components$x
  class <- fit$quality$class
  if (is.null(class)) {
    k <- fit$components$choice$k %||% 0
    if (k == 0) return(in_vain("a direction in which many genes go together"))
    return(finding(sprintf("%s out: genes go together in %s.",
                           several(k, if (k == 1) "component stands" else "component"),
                           if (k == 1) "one direction" else "as many directions"), strength = "suggestive"))
  }
  apart <- apply(scores, 2L, function(v) {
    between <- sum((stats::ave(v, class) - mean(v))^2)
    within <- sum((v - stats::ave(v, class))^2)
    df <- c(nlevels(class) - 1L, length(v) - nlevels(class))
    if (df[2L] < 1L || within <= 0) return(c(p = 1, share = 0))
    c(p = stats::pf(between / df[1L] / (within / df[2L]), df[1L], df[2L], lower.tail = FALSE),
      share = between / (between + within))
  })
  best <- which.min(apart["p", ])
  p <- min(1, apart["p", best] * ncol(scores))
  if (p > strengths[["suggestive"]]) {
    return(in_vain(sprintf("a component on which the classes differ (%d tried)", ncol(scores))))
  }
  finding(sprintf("%s differ on PC%d (%s of all variance): %s of its variance lies between them.",
                  if (nlevels(class) == 2L) joined(levels(class)) else sprintf("The %d classes", nlevels(class)), best,
                  share_text(fit$components$share[best]), share_text(apart["share", best])), p)
}

finding_bayes <- function(fit) {
  edges <- as.data.frame(fit$bayes)
  if (!nrow(edges) || is.null(edges$posterior)) return(NULL)
  edges <- edges[order(-edges$posterior), ]
  sure <- edges[edges$posterior >= 0.9, ]
  if (!nrow(sure)) return(NULL)
  finding(sprintf(paste("Of %d genes chosen beforehand, %s in nearly all networks sampled: %s. Hidden causes may stand",
                        "behind both."),
                  nrow(fit$bayes$dag), if (nrow(sure) == 1L) "one edge is" else sprintf("%d edges are", nrow(sure)),
                  best_names(paste(sure$from, "->", sure$to), sure$posterior)), strength = "suggestive")
}

# How far directions are to be believed: how many are clear, and what no data of this kind can tell.
directions_text <- function(fit) {
  text <- c(if (is_directed(fit$network)) network_directions(report_edges(fit$network)),
            if (!is.null(fit$bayes)) bayes_surety(fit$bayes))
  if (!length(text)) return(NULL)
  paste(c(text, paste("Two genes that an unmeasured cause moves look like one that drives the other; a direction is a",
                      "proposal for an experiment.")), collapse = " ")
}

# Of pairs of genes with an edge, how many point one way. The table regulation-direction.csv of inst/bench has what is
# said of simulated networks.
network_directions <- function(edges, clear = 0.9) {
  if (!nrow(edges) || all(is.na(edges$direction))) return(NULL)
  pair <- paste(pmin(edges$from, edges$to), pmax(edges$from, edges$to), sep = "\r")
  direction <- tapply(edges$direction, pair, max)
  sure <- sum(direction >= clear)
  sprintf(paste("In the network %s of %s of genes %s clearly one way (at least 0.9 of the weight of both directions:",
                "right in nine cases of ten or more on simulated networks); for %s it is open."),
          if (sure) format(sure, big.mark = ",") else "none", several(length(direction), "joined pair"),
          if (sure == 1L) "points" else "point", if (sure) "the others" else "all")
}

# The findings as a list in Markdown.
findings_page <- function(fit) {
  found <- report_findings(fit)
  mark <- c(strong = "strong", suggestive = "suggestive", "could be chance" = "chance")
  lines <- sprintf("- [%s]{.strength .%s} %s [Evidence](#%s)", found$strength, mark[found$strength],
                   markdown_text(found$text),
                   found$section)
  if (!length(lines)) lines <- "- Nothing was found beyond chance."
  vain <- attr(found, "in_vain")
  directions <- directions_text(with_labels(fit))
  c(lines,
    if (!is.null(directions)) c("", paste("**How far to believe directions.**", markdown_text(directions))),
    if (length(vain)) c("", paste0("**Looked for and not found beyond chance:** ",
                                   markdown_text(paste(vain, collapse = "; ")), ".")))
}
