# The report's first screen: what was found, in a sentence each, with how sure it is and where its evidence stands.
# Chance is never a finding: what was looked for and not found comes afterwards, as such, and so does what a sampler has
# not settled.

strengths <- c(strong = 0.01, suggestive = 0.05, "could be chance" = Inf) # greatest p, over the whole search

strength_of <- function(p) names(strengths)[which(p <= strengths)[1L]]

# A data frame of at most `most` findings, surest first: `text`, `strength`, `section` (of the page). The attribute
# "in_vain" has what was not found, "open" what more sampling has to tell, under the names of the sections.
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
  open <- vapply(found, function(f) isTRUE(f$open), NA)
  of <- function(field, which = !vain & !open) vapply(found[which], function(f) f[[field]], "")
  out <- data.frame(text = as.character(of("text")), strength = as.character(of("strength")),
                    section = as.character(of("section")))
  out <- out[order(match(out$strength, names(strengths))), ]
  structure(utils::head(out, most), row.names = seq_len(min(most, nrow(out))),
            in_vain = of("text", vain), open = stats::setNames(of("text", open), of("section", open)))
}

finding <- function(text, p = NULL, strength = strength_of(p)) list(text = text, strength = strength)

in_vain <- function(text) list(text = text, vain = TRUE)

unsettled <- function(text) list(text = text, open = TRUE)

greatest_rhat <- 1.1 # beyond it chains that started apart have not met

# Two decimals, rounded upwards: what is too great does not look like the bound.
rhat_number <- function(rhat) formatC(ceiling(100 * rhat - 1e-9) / 100, digits = 2, format = "f", decimal.mark = ".")

among_classes <- function(class) {
  if (nlevels(class) == 2L) sprintf("between %s and %s", levels(class)[1L], levels(class)[2L])
  else sprintf("among the %d classes", nlevels(class))
}

# "A, B and C", and how many are as good as the last of them.
best_names <- function(names, score, most = 3L) {
  shown <- utils::head(names, most)
  tied <- if (length(names) > most) sum(score[-seq_len(most)] == score[most]) else 0L
  text <- if (length(shown) < 2L) shown else paste(toString(utils::head(shown, -1L)), "and", utils::tail(shown, 1L))
  if (tied) sprintf("%s (%d more tied with %s)", text, tied, utils::tail(shown, 1L)) else text
}

finding_genes <- function(fit) {
  r <- fit$ranking
  q <- fit$quality
  sure <- which(r$q_value <= strengths[["suggestive"]])
  if (!length(sure)) {
    return(in_vain(sprintf("a %s that differs %s (%s tried)", column_word(q), among_classes(q$class),
                           thousands(nrow(r)))))
  }
  name <- ranked_genes(r)[sure]
  finding(sprintf("%s%s %s %s at a false discovery rate of 0.05 (smallest q %s), most clearly %s.",
                  some_of_columns(q, length(sure), nrow(r)), genes_behind(q, name),
                  if (length(sure) == 1L) "differs" else "differ", among_classes(q$class),
                  probability_text(min(r$q_value[sure])), best_names(name, ranked_bits(r)[sure])),
          min(r$q_value[sure]))
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
  finding(sprintf("%s among %s at a false discovery rate of %g%s%s.",
                  several(edges, if (is_directed(net)) "directed edge" else "edge"), several(ncol(net), "gene"), fdr,
                  if (is_directed(net)) sprintf(" (smallest q %s)", probability_text(q)) else "",
                  hubs_found(degree, report_edges(net))), q)
}

# The three genes of most edges, or as many of them as have more than those after them; of a single one its neighbours.
hubs_found <- function(degree, edges) {
  few <- degree[seq_len(min(3L, length(degree)))]
  if (length(degree) > 3L) few <- few[few > degree[4L]]
  if (!length(few)) return("")
  if (length(few) == 1L) {
    neighbours <- unique(c(edges$to[edges$from == names(few)], edges$from[edges$to == names(few)]))
    return(sprintf("; %s has the most neighbours: %s", names(few), some_of(neighbours, 5L)))
  }
  sprintf("; %s have the most edges (%s)", joined(names(few)), paste(few, collapse = ", "))
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
                           pairs_searched(fit, " pairs"))))
  }
  one <- nrow(sure) == 1L
  finding(sprintf("%s %s %s more about the class together than %s members do alone: %s (p %s over %s).",
                  if (one) "One of" else paste(thousands(nrow(sure)), "of"), pairs_searched(fit),
                  if (one) "says" else "say", if (one) "its" else "their",
                  best_names(paste(sure$feature1, "with", sure$feature2), sure$interaction, 2L),
                  probability_text(min(sure$p_fwer)), whole_search(fit$pairs)),
          min(sure$p_fwer))
}

# "the 4,186,171 pairs of 2,894 genes": where a gene has several columns, one of them stands for it.
pairs_searched <- function(fit, what = " pairs of genes") {
  searched <- attr(fit$pairs, "searched")
  genes <- (1 + sqrt(1 + 8 * searched)) / 2
  counted <- thousands(searched)
  if (genes != round(genes)) return(paste0(counted, what))
  sprintf("the %s pairs of %s", counted, several(genes, "gene"))
}

# Why fewer genes are paired than ranked; nothing where they are as many.
genes_paired <- function(fit) {
  symbols <- fit$quality$genes$symbol
  if (is.null(symbols) || is.null(fit$quality$genes$representative)) return(NULL)
  if (column_word(fit$quality) == "gene") return(NULL)
  sprintf("Where several probes measure one gene, the one that varies most stands for it: %s probes, %s genes.",
          thousands(ncol(fit$quality$x)), thousands(length(representatives(fit$quality))))
}

# What the p-values of pairs are over, and how many shuffles of the classes the least of them is of.
whole_search <- function(pairs) {
  times <- attr(pairs, "permutations")
  if (is.null(times)) return("the whole search")
  as_good <- round(min(pairs$p_fwer) * (times + 1)) - 1
  sprintf("the whole search: in %s of %d shuffles of the classes the best pair was as good",
          if (as_good < 1) "none" else format(as_good), as.integer(times))
}

# Whether samples' groups go with classes: against shuffled classes. Chains that disagree have found no groups yet.
finding_groups <- function(fit) {
  r <- fit$clusters
  z <- sample_groups(r)
  if (!groups_hold(r)) return(unsettled(groups_open(r, fit$quality$class)))
  if (max(z) < 2L) return(in_vain(sprintf("groups among %d samples", length(z))))
  counted <- sprintf("%s%d groups", if (!is_consensus(r) && is_reached(r$limits[1L, ])) "at least " else "", max(z))
  found <- class_agreement(fit)
  if (is.null(found) && is_consensus(r)) return(finding(paste0(consensus_text(r), "."), strength = "suggestive"))
  if (is.null(found)) {
    return(finding(sprintf("Samples fall into %s (shares of the sampled partitions: %s).", counted,
                           counts_text(r$n_clusters$row, 3L)),
                   strength = "suggestive"))
  }
  finding(sprintf("Samples fall into %s, which %s: %s.", counted,
                  if (found$p <= strengths[["suggestive"]]) "go with the classes"
                  else "do not go with the classes beyond chance", agreement_text(found)),
          strength = strength_of(found$p))
}

groups_rhat <- function(r) max(r$rhat[is.finite(r$rhat)], 1)

# What is known while the chains disagree.
groups_open <- function(r, class = NULL) {
  if (is_consensus(r)) return(consensus_text(r))
  number <- range(as.integer(names(r$n_clusters$row)))
  sprintf(paste("Groups of samples: the sampler has not settled. R-hat, which compares chains that started apart, is",
                "%s, and at most %.1f is wanted, so that neither their number (%s so far) nor who belongs",
                "together%s is a finding. Run it longer, with steps = list(clusters = list(sweeps = %s)) in the call; where that",
                "does not settle it, the data have no clear blocks"),
          rhat_number(groups_rhat(r)), greatest_rhat,
          if (number[1L] == number[2L]) number[1L] else paste(number, collapse = " to "),
          if (is.null(class)) "" else " nor how far groups go with classes",
          format(10 * nrow(r$log_posterior), scientific = FALSE))
}

finding_components <- function(fit) {
  scores <- fit$components$x
  class <- fit$quality$class
  if (is.null(class)) {
    k <- standing_out(fit$components)
    if (is.null(k)) return(NULL) # not tested
    if (k == 0) return(in_vain("a direction in which many genes go together"))
    return(finding(sprintf("%s out: genes go together in %s.", several_stand(k, "component"),
                           if (k == 1) "one direction" else "as many directions"), strength = "suggestive"))
  }
  apart <- apart_on_components(fit$components, fit$quality)
  if (apart$p > strengths[["suggestive"]]) {
    return(in_vain(sprintf("a component on which the classes differ (%d tried)", ncol(scores))))
  }
  finding(sprintf(paste("%s differ most along %s (%s of all variance): %s of the variance along it lies between them",
                        "(p %s%s)."),
                  if (nlevels(class) == 2L) joined(levels(class)) else sprintf("The %d classes", nlevels(class)),
                  if (apart$best == 1L) "PC1, the direction in which samples vary most" else paste0("PC", apart$best),
                  share_text(fit$components$share[apart$best]), share_text(apart$share), probability_text(apart$p),
                  if (ncol(scores) > 1L) sprintf(", corrected for %d components", ncol(scores)) else ""), apart$p)
}

finding_bayes <- function(fit) {
  if (is.null(fit$bayes$edges)) return(NULL)
  if (bayes_disagrees(fit$bayes)) return(unsettled(bayes_open(fit$bayes)))
  sure <- bayes_edges(fit$bayes, 0.9)
  if (!nrow(sure)) return(NULL)
  finding(sprintf(paste("Among the %d genes of the Bayesian network, %s joined with a posterior probability of 0.9",
                        "or more: %s. %s"),
                  nrow(fit$bayes$dag), if (nrow(sure) == 1L) "one pair is" else sprintf("%d pairs are", nrow(sure)),
                  surest_pairs(sure),
                  if (bayes_by_class(fit)) "The genes were chosen by the class, which may be what joins them."
                  else "A hidden cause may be what joins them."), strength = "suggestive")
}

# How far directions are to be believed: how many are clear, and what no data of this kind can tell.
directions_text <- function(fit) {
  directed <- is_directed(fit$network) && !is.null(network_directions(report_edges(fit$network)))
  text <- c(if (directed) c(network_directions(report_edges(fit$network)),
                            paste("An edge's weight says how early and how often a gene was chosen to predict the",
                                  "other.")),
            if (!is.null(fit$bayes) && !bayes_disagrees(fit$bayes)) bayes_surety(fit$bayes))
  if (!length(text)) return(NULL)
  paste(c(text, paste("Two genes that an unmeasured cause moves look like one that drives the other; a direction is a",
                      "proposal for an experiment.")), collapse = " ")
}

clear_direction <- 0.9 # of the weight of both directions

# Of pairs of genes with an edge, how many point one way. A pair with a gene that was no candidate regulator was
# tried in one direction only, which is no finding.
network_directions <- function(edges, clear = clear_direction) {
  if (!nrow(edges) || all(is.na(edges$direction))) return(NULL)
  pair <- paste(pmin(edges$from, edges$to), pmax(edges$from, edges$to), sep = "\r")
  given <- length(unique(pair[is.na(edges$direction)]))
  tested <- !is.na(edges$direction)
  direction <- tapply(edges$direction[tested], pair[tested], max)
  sure <- sum(direction >= clear)
  all <- several(length(direction), "pair")
  one_way <- if (given) {
    sprintf(" %s tried in one direction only, as one of the two genes was not among the candidate regulators.",
            if (given == 1L) "1 other pair was" else sprintf("%s other pairs were", thousands(given)))
  } else ""
  if (!sure) {
    return(sprintf(paste("Of %s of genes that the network joins none points clearly one way (at least %s of the weight",
                         "of both directions): which way is open (hollow arrowheads).%s"), all, clear, one_way))
  }
  rest <- length(direction) - sure
  paste0(sprintf(paste("Of %s of genes that the network joins, %s clearly one way: that direction has at least %s of",
                       "the weight of both (filled arrowheads). On simulated networks nine in ten or more of such are",
                       "right; on real data, where causes go unmeasured, fewer."),
                 all, if (sure == 1L) "1 points" else sprintf("%s point", thousands(sure)), clear),
         if (rest) sprintf(" For %s the direction is open (hollow arrowheads).",
                           if (rest == 1L) "the other one" else paste("the other", thousands(rest))),
         one_way)
}

# The findings as a list in Markdown.
findings_page <- function(fit) {
  found <- report_findings(fit)
  mark <- c(strong = "strong", suggestive = "suggestive", "could be chance" = "chance")
  lines <- sprintf("- [%s]{.strength .%s} %s [Evidence](#%s)", found$strength, mark[found$strength],
                   running_text(found$text), found$section)
  if (!length(lines)) lines <- "**Nothing was found beyond chance.**"
  vain <- attr(found, "in_vain")
  open <- attr(found, "open")
  directions <- directions_text(with_labels(fit))
  c(lines,
    if (!is.null(directions)) c("", paste("**How far to believe directions.**", running_text(directions))),
    if (length(open)) c("", sprintf("**Not settled yet.** %s. [What there is](#%s)", running_text(open), names(open))),
    if (length(vain)) c("", paste0("**Looked for and not found beyond chance:** ",
                                   running_text(paste(vain, collapse = "; ")), ".")))
}
