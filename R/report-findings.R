# The report's first screen: each finding in at most two sentences, with its strength and a link to its evidence. Chance
# is never a finding: searches without a result, and steps that did not converge, are listed afterwards. Only tests of
# differences may be strong, and none of them is strong if classes are confounded.

strengths <- c(strong = 1e-4, suggestive = 0.05, "could be chance" = Inf) # greatest p, over the whole search

box_words <- 150L # of the first screen

strength_of <- function(p) names(strengths)[which(p <= strengths)[1L]]

# Steps that test for differences between classes, or for a variable.
tests_of_differences <- c("ranking", "components", "pairs")

# A data frame of at most `most` findings, surest first: `text`, `strength`, `section` (of the page). The attribute
# "in_vain" has what was not found, "open" what more sampling has to tell, under the names of the sections, and
# "caution" why no finding about classes is strong. enriched: what gene_sets() found, if anything was asked for.
findings_of <- function(fit, most = 5L, enriched = NULL) {
  fit <- with_labels(fit)
  ask <- list(ranking = finding_genes, components = finding_components, sets = function(fit) finding_sets(enriched),
              network = finding_network, hidden = finding_hidden, outliers = finding_outliers, pairs = finding_pairs,
              clusters = finding_groups, bayes = finding_bayes)
  found <- lapply(names(ask), function(what) {
    step <- switch(what, hidden = "components", sets = "quality", what)
    if (is.null(fit[[step]])) NULL else c(ask[[what]](fit), list(section = if (what == "sets") what else step))
  })
  found <- Filter(function(f) !is.null(f$text), found)
  vain <- vapply(found, function(f) isTRUE(f$vain), NA)
  open <- vapply(found, function(f) isTRUE(f$open), NA)
  of <- function(field, which = !vain & !open) vapply(found[which], function(f) f[[field]], "")
  caution <- caution_text(fit)
  out <- data.frame(text = as.character(of("text")), section = as.character(of("section")))
  out$strength <- allowed_strength(as.character(of("strength")), out$section, !is.null(caution))
  out <- out[order(match(out$strength, names(strengths))), ]
  structure(utils::head(out, most), row.names = seq_len(min(most, nrow(out))), in_vain = of("text", vain),
            open = stats::setNames(of("text", open), of("section", open)), caution = caution)
}

allowed_strength <- function(strength, section, confounded) {
  ifelse(strength == "strong" & (confounded | !section %in% tests_of_differences), "suggestive", strength)
}

# A probability with what a reader must know beside it: that it is the least that a few permutations can give, or that
# it is the limit itself.
judged_text <- function(p, permutations = NULL) {
  limit <- strengths[["suggestive"]]
  text <- probability_text(p)
  if (is_count(permutations, 1, 1e7) && p <= (1 + 1e-9) / (permutations + 1)) {
    return(sprintf("%s, the smallest that %s can give,", text, several(permutations, "permutation")))
  }
  if (p <= limit && text == probability_text(limit)) paste0(text, ", just within the limit,") else text
}

finding <- function(text, p = NULL, strength = strength_of(p)) list(text = text, strength = strength)

in_vain <- function(text) list(text = text, vain = TRUE)

unsettled <- function(text) list(text = text, open = TRUE)

greatest_rhat <- 1.1 # beyond it chains that started apart have not met

# Two decimals, rounded upwards: what is too great does not look like the bound.
rhat_number <- function(rhat) formatC(ceiling(100 * rhat - 1e-9) / 100, digits = 2, format = "f", decimal.mark = ".")

# ---- what could pass for a difference between classes ----

# The tables of gene_quality() and gene_components(), each row once.
confounding_of <- function(fit) {
  rows <- rbind(fit$quality$confounding, fit$components$confounding)
  rows[!duplicated(rows$text), , drop = FALSE]
}

# "Class and batch agree by more than chance (p 0.003), so that no difference between classes is strong evidence.";
# NULL where nothing stands in the way.
caution_text <- function(fit) {
  rows <- confounding_of(fit)
  if (!NROW(rows)) return(NULL)
  said <- sub("\\.$", "", sub("[:;] .*", "", rows$text))
  first <- c(batch = "a difference between classes may be one between batches",
             covariate = "a difference between classes may be due to it", depth = "genes with few counts follow depth",
             component = "it may be technical", cells = "cells of one person are not independent",
             repeats = "p-values may be about single samples")
  sprintf("%s: %s. For this reason, no finding is called strong.", joined(utils::head(said, 2L)),
          first[[rows$kind[1L]]])
}

# "A, B and C", and how many are as good as the last of them.
best_names <- function(names, score, most = 3L) {
  shown <- utils::head(names, most)
  tied <- if (length(names) > most) sum(score[-seq_len(most)] == score[most]) else 0L
  text <- if (length(shown) < 2L) shown else paste(toString(utils::head(shown, -1L)), "and", utils::tail(shown, 1L))
  if (tied) sprintf("%s (%s more tied with %s)", text, thousands(tied), utils::tail(shown, 1L)) else text
}

# ---- genes ----

# What is tested: "between A and B", "among the 3 levels of class", "with age".
ranking_subject <- function(fit) {
  levels <- ranking_levels(fit)
  if (is.null(levels)) return(sprintf("with %s", attr(fit$ranking, "model")$term))
  if (length(levels) == 2L) sprintf("between %s and %s", levels[1L], levels[2L])
  else sprintf("among the %d classes", length(levels))
}

# Levels that are compared; NULL where the outcome is a number.
ranking_levels <- function(fit) {
  model <- attr(fit$ranking, "model")
  if (is.null(model)) levels(fit$quality$class) else model$levels
}

finding_genes <- function(fit) {
  r <- fit$ranking
  q <- fit$quality
  sure <- which(r$q_value <= strengths[["suggestive"]])
  verb <- if (is.null(ranking_levels(fit))) c("changes", "change") else c("differs", "differ")
  if (!length(sure)) {
    return(in_vain(sprintf("a %s that %s %s (%s tried)", column_word(q), verb[1L], ranking_subject(fit),
                           thousands(nrow(r)))))
  }
  shape <- setdiff(which(r$shape_q <= strengths[["suggestive"]]), sure)
  finding(sprintf("%s%s %s %s (FDR 0.05), most clearly %s.%s",
                  some_of_columns(q, length(sure), nrow(r)), genes_behind(q, ranked_genes(r)[sure]),
                  verb[1L + (length(sure) > 1L)], ranking_subject(fit), best_gene_text(fit, sure),
                  if (length(shape)) sprintf(" %s in spread or shape only.",
                                             if (length(shape) == 1L) "1 more differs"
                                             else paste(thousands(length(shape)), "more differ")) else ""),
          min(r$q_value[sure]))
}

# "ZYX (higher in AML by 1.72 log2 units, 95 % interval 1.34 to 2.10, q 3e-13)"; several where they are tied.
best_gene_text <- function(fit, sure) {
  r <- fit$ranking
  if (!inherits(r, "weft_ranking")) {
    return(sprintf("%s (%.2f %s, p %s)", best_names(ranked_genes(r)[sure], ranked_bits(r)[sure], 1L),
                   ranked_bits(r)[sure[1L]], ranking_unit(r), probability_text(r$p_value[sure[1L]])))
  }
  best <- r[sure[1L], ]
  levels <- ranking_levels(fit)
  change <- if (is.na(best$log2_fold_change)) "" else {
    up <- best$log2_fold_change > 0
    what <- if (is.null(levels)) paste(if (up) "rises" else "falls", "by")
            else if (length(levels) == 2L) sprintf("higher in %s by", levels[1L + up])
            else paste0(best$contrast, ": ", if (up) "higher" else "lower", " by")
    change <- alike_numbers(c(abs(best$log2_fold_change), range(abs(c(best$lower, best$upper)))))
    sprintf("%s %s log2 units%s, 95 %% interval %s to %s, ", what, change[1L],
            if (is.null(levels)) " per unit" else "", change[2L], change[3L])
  }
  sprintf("%s (%sq %s)", best$gene, change, sub(",$", "", judged_text(best$q_value)))
}

two_digits <- function(v) format(signif(v, 2L), digits = 2L, decimal.mark = ".")

# With as many decimals as give the first number three digits, two at least.
alike_numbers <- function(v) {
  decimals <- if (is.finite(v[1L]) && v[1L] > 0) max(2, 2 - floor(log10(v[1L]))) else 2
  formatC(v, digits = min(decimals, 15), format = "f", decimal.mark = ".")
}

# ---- sets of genes ----

# The surest of the sets, by overlap and by ranks.
finding_sets <- function(enriched) {
  if (is.null(enriched)) return(NULL)
  found <- enriched$overlap
  ranked <- enriched$ranks
  over <- if (NROW(found)) found[found$q_value <= 0.05, , drop = FALSE]
  shifted <- if (NROW(ranked)) ranked[ranked$q_value <= 0.05, , drop = FALSE]
  if (!NROW(over) && !NROW(shifted)) {
    return(in_vain(sprintf("a set of genes that differs between classes (%s tried)", thousands(enriched$tried))))
  }
  text <- c(
    if (NROW(shifted)) sprintf("%s of genes %s as a whole, most clearly %s (%s genes, %s, p %s).",
                               several(nrow(shifted), "set"), if (nrow(shifted) == 1L) "shifts" else "shift",
                               shifted$set[1L], shifted$size[1L], shifted$direction[1L],
                               probability_text(shifted$p_value[1L])),
    if (NROW(over)) sprintf("%s over-represented in lists of genes, most clearly %s (%s of %s genes are %s, p %s).",
                            if (nrow(over) == 1L) "1 set is" else paste(thousands(nrow(over)), "sets are"),
                            over$set[1L], over$overlap[1L], over$size[1L], over$query[1L],
                            probability_text(over$p_value[1L])))
  finding(paste(text, collapse = " "), strength = "suggestive")
}

# ---- components ----

finding_components <- function(fit) {
  pc <- fit$components
  class <- fit$quality$class
  if (is.null(class)) {
    k <- standing_out(pc)
    if (is.null(k)) return(NULL) # not tested
    if (k == 0) return(in_vain("a direction in which many genes vary together"))
    return(finding(sprintf("%s out: many genes vary together.", several_stand(k, "component")),
                   strength = "suggestive"))
  }
  apart <- apart_on_components(pc, fit$quality)
  if (apart$p > strengths[["suggestive"]]) {
    return(in_vain(sprintf("a component on which the classes differ (%d tried)", ncol(pc$x))))
  }
  finding(sprintf("%s differ along PC%d, which has %s of the variance; %s of it lies between them%s (p %s%s).",
                  if (nlevels(class) == 2L) joined(levels(class)) else sprintf("The %d classes", nlevels(class)),
                  apart$best, share_text(pc$share[apart$best]), share_text(apart$share),
                  if (is.null(fit$quality$before)) "" else " within batches", probability_text(apart$p),
                  if (ncol(pc$x) > 1L) sprintf(", corrected for %d components", ncol(pc$x)) else ""), apart$p)
}

finding_hidden <- function(fit) {
  hidden <- fit$components$hidden
  if (is.null(hidden)) return(NULL)
  size <- tabulate(hidden$group, 2L)
  finding(sprintf("Samples fall into groups of %d and %d that no given variable explains: perhaps a hidden batch.",
                  size[1L], size[2L]), strength = "suggestive")
}

# ---- samples ----

finding_outliers <- function(fit) {
  o <- as.data.frame(fit$outliers)
  if (!any(o$outlier)) return(in_vain(sprintf("an outlier among %s", several(nrow(o), "sample"))))
  odd <- o[o$outlier, ]
  finding(sprintf("%s of %s %s: %s (smallest q %s).", several(nrow(odd), "sample"), thousands(nrow(o)),
                  if (nrow(odd) == 1L) "is an outlier" else "are outliers",
                  best_names(odd$sample, odd$p_value, 3L), sub(",$", "", judged_text(min(odd$q_value)))),
          min(odd$q_value))
}

# Whether samples' groups go with classes: against permuted classes.
finding_groups <- function(fit) {
  r <- fit$clusters
  z <- sample_groups(r)
  if (!groups_hold(r)) {
    return(unsettled("Groups of samples: another run would give other groups, so none is a finding"))
  }
  if (max(z) < 2L) return(in_vain(sprintf("groups among %s", several(length(z), "sample"))))
  sizes <- sort(tabulate(z), decreasing = TRUE)
  counted <- sprintf("Samples form %d groups of %s%s", max(z),
                     if (length(sizes) <= 6L) joined(thousands(sizes))
                     else sprintf("%s to %s", thousands(min(sizes)), thousands(max(sizes))),
                     if (is_consensus(r) && r$given) " (this number was given)" else "")
  found <- class_agreement(fit)
  if (is.null(found)) return(finding(paste0(counted, "."), strength = "suggestive"))
  if (found$p > strengths[["suggestive"]]) {
    return(finding(sprintf("%s, which do not agree with the classes (p %s): perhaps a batch or a subtype.", counted,
                           probability_text(found$p)), strength = "suggestive"))
  }
  finding(sprintf("%s, which agree with the classes (%s).", counted, agreement_text(found)), strength = "suggestive")
}

groups_rhat <- function(r) max(r$rhat[is.finite(r$rhat)], 1)

# What is known while the chains disagree.
groups_open <- function(r, class = NULL) {
  if (is_consensus(r)) {
    return("Groups of samples: one of them was found again in fewer than half of the subsamples. Do not interpret them")
  }
  number <- range(as.integer(names(r$n_clusters$row)))
  sprintf(paste("Groups of samples: the sampler has not converged. R-hat, which compares independent chains, is %s,",
                "and should be at most %.1f. Neither the number of groups (%s so far) nor their members%s is a",
                "finding. Run it longer, with steps = list(clusters = list(method = \"irm\", sweeps = %s)); if this",
                "does not help, the data have no clear blocks"),
          rhat_number(groups_rhat(r)), greatest_rhat,
          if (number[1L] == number[2L]) number[1L] else paste(number, collapse = " to "),
          if (is.null(class)) "" else " nor their agreement with the classes",
          format(10 * nrow(r$log_posterior), scientific = FALSE))
}

# ---- pairs ----

finding_pairs <- function(fit) {
  r <- as.data.frame(fit$pairs)
  if (!nrow(r) || is.null(r$p_fwer)) return(NULL)
  sure <- r[r$p_fwer <= strengths[["suggestive"]], ]
  if (!nrow(sure)) {
    return(in_vain(sprintf("a pair of genes that says more about the class than its members (%s tried)",
                           pairs_searched(fit, " pairs"))))
  }
  one <- nrow(sure) == 1L
  finding(sprintf("%s %s %s more about the class than %s members: %s (p %s over the whole search).",
                  if (one) "One of" else paste(thousands(nrow(sure)), "of"), pairs_searched(fit),
                  if (one) "says" else "say", if (one) "its" else "their",
                  best_names(paste(sure$feature1, "with", sure$feature2), sure$interaction, 1L),
                  judged_text(min(sure$p_fwer), attr(fit$pairs, "permutations"))), min(sure$p_fwer))
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
  sprintf("If several probes measure one gene, the probe that varies most represents it: %s probes, %s genes.",
          thousands(ncol(fit$quality$x)), thousands(length(representatives(fit$quality))))
}

# What the p-values of pairs are over, and how many permutations of the classes the least of them is of.
whole_search <- function(pairs) {
  times <- attr(pairs, "permutations")
  if (!is_count(times, 1, 1e7)) return("the whole search")
  as_good <- round(min(pairs$p_fwer) * (times + 1)) - 1
  if (as_good < 1) {
    return(sprintf("the whole search, the smallest that %s can give: in none was the best pair as good",
                   paste(several(times, "permutation"), "of the classes")))
  }
  sprintf("the whole search: in %s of %d permutations of the classes the best pair was as good",
          format(as_good), as.integer(times))
}

# ---- networks ----

# Pairs are what is found; directions come second. Without candidate regulators the pairs are called co-expression.
finding_network <- function(fit) {
  net <- fit$network
  edges <- report_edges(net)
  fdr <- attr(net, "fdr")
  if (!nrow(edges)) return(in_vain(sprintf("a pair among %s that varies together", several(ncol(net), "gene"))))
  if (is.null(fdr) || is.na(attr(net, "cut") %||% 0)) return(NULL) # not tested
  finding(paste0(pairs_of_network(edges, fit), ".", direction_sentence(edges, fit)), strength = "suggestive")
}

# "41 pairs of 300 genes vary together beyond chance (FDR 0.05); in simulations 1 to 13 % are not
# direct"
pairs_of_network <- function(edges, fit) {
  net <- fit$network
  count <- nrow(network_pairs(edges))
  verb <- if (is.null(network_regulators(net))) c("is co-expressed", "are co-expressed")
          else c("varies with its regulator", "vary with their regulator")
  as_pairs <- if (is.null(edges$pair_q)) NA else max(edges$pair_q)
  sprintf("%s of %s %s beyond chance (FDR %s)%s", several(count, "pair"),
          several(length(network_features(net)), "gene"), verb[1L + (count > 1L)],
          format(if (is.na(as_pairs)) attr(net, "fdr") else signif(as_pairs, 2)),
          if (is_directed(net)) paste0("; ", not_direct_text(network_samples(fit))) else "")
}

# The candidate regulators that the user gave; NULL where there were none, or where all genes could be.
network_regulators <- function(net) {
  if (!is_directed(net) || !is.null(attr(net, "picked")) || nrow(net) >= ncol(net)) NULL else rownames(net)
}

finding_bayes <- function(fit) {
  r <- fit$bayes
  if (is.null(r$edges)) return(NULL)
  if (bayes_disagrees(r)) {
    return(unsettled(sprintf("Bayesian network: its chains disagree (R-hat %s), so no edge of it is a finding",
                             rhat_number(r$diagnostics$r_hat))))
  }
  sure <- bayes_edges(r, 0.9)
  if (!nrow(sure)) return(NULL)
  finding(sprintf(paste("Of %d genes, %s depend on each other given the others (posterior probability 0.9 or more):",
                        "%s.%s"),
                  nrow(r$dag), several(nrow(sure), "pair"), surest_pairs(sure, 2L),
                  if (bayes_by_class(fit)) " They were chosen by the class, which may be what joins them." else ""),
          strength = "suggestive")
}

# ---- the box ----

# The findings as a list in Markdown, of at most `box_words` words: what there is no room for stands in the sections.
findings_page <- function(fit, enriched = NULL, most_words = box_words) {
  found <- findings_of(fit, enriched = enriched)
  part <- list(text = found, vain = attr(found, "in_vain"), open = attr(found, "open"),
               caution = attr(found, "caution"), left = fit$left_out)
  repeat {
    lines <- box_lines(part)
    if (count_words(lines) <= most_words) return(lines)
    if (length(part$vain) > 1L) part$vain <- utils::head(part$vain, -1L)
    else if (length(part$open)) part$open <- part$open[-1L]
    else if (nrow(part$text) > 1L) part$text <- utils::head(part$text, -1L)
    else return(lines)
  }
}

box_lines <- function(part) {
  mark <- c(strong = "strong", suggestive = "suggestive", "could be chance" = "chance")
  found <- part$text
  lines <- sprintf("- [%s]{.strength .%s} %s [Evidence](#%s)", found$strength, mark[found$strength],
                   running_text(found$text), found$section)
  if (!length(lines)) lines <- "**Nothing was found beyond chance.**"
  c(lines,
    if (length(part$caution)) c("", paste("**With care.**", running_text(part$caution), "[Details](#data)")),
    if (length(part$open)) c("", sprintf("**Not converged.** %s. [What there is](#%s)", running_text(part$open),
                                         names(part$open))),
    if (length(part$vain)) c("", paste0("**Not found:** ", running_text(paste(part$vain, collapse = "; ")), ".")),
    if (length(part$left)) c("", sprintf("**Not done**, too few samples: %s. [Details](#data)",
                                         toString(steps_in_words[names(part$left)]))))
}

steps_in_words <- c(components = "components", ranking = "genes", pairs = "pairs of genes", network = "a network",
                    clusters = "groups of samples", bayes = "a Bayesian network", outliers = "outliers")

# Words that readers see: no marks, and links by their text.
count_words <- function(lines) {
  text <- gsub("\\]\\([^)]*\\)|\\{[^}]*\\}|\\*\\*", " ", gsub("&#[0-9]+;", ".", paste(lines, collapse = " ")))
  sum(grepl("[[:alnum:]]", strsplit(text, "[[:space:]]+")[[1L]]))
}
