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
    return(sprintf("%s, the smallest possible value with %s", text, several(permutations, "permutation")))
  }
  if (p <= limit && text == probability_text(limit)) paste0(text, ", just at the threshold") else text
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

# "Class and batch agree by more than chance (p 0.003): differences between classes may be differences between batches.
# For this reason, no finding is rated strong."; NULL if nothing is confounded.
caution_text <- function(fit) {
  rows <- confounding_of(fit)
  if (!NROW(rows)) return(NULL)
  said <- sub("\\.$", "", sub("[:;.] .*", "", rows$text))
  first <- c(batch = "Differences between the classes may be differences between batches",
             covariate = "Differences between the classes may be due to this covariate",
             depth = "Differences in genes with low counts may be due to sequencing depth",
             component = "The component may be technical", cells = "Cells of the same person are not independent",
             repeats = "The samples may be technical replicates")
  sprintf("%s. %s. For this reason, no finding is rated strong.", joined(utils::head(said, 2L)),
          first[[rows$kind[1L]]])
}

# "A, B and C", and how many are as good as the last of them.
best_names <- function(names, score, most = 3L) {
  shown <- utils::head(names, most)
  tied <- if (length(names) > most) sum(score[-seq_len(most)] == score[most]) else 0L
  text <- if (length(shown) < 2L) shown else paste(toString(utils::head(shown, -1L)), "and", utils::tail(shown, 1L))
  if (tied) sprintf("%s (tied with %s more)", text, thousands(tied)) else text
}

# ---- genes ----

# Names the test: "between A and B", "among the 3 classes", "with age"; with the class for data that are levels.
ranking_subject <- function(fit) {
  levels <- ranking_levels(fit)
  if (is.null(levels)) return(sprintf("with %s", attr(fit$ranking, "model")$term))
  if (!inherits(fit$ranking, "weft_ranking")) return("with the class")
  if (length(levels) == 2L) sprintf("between %s and %s", levels[1L], levels[2L])
  else sprintf("among the %d classes", length(levels))
}

# Whether the genes are tested for association, not for differential expression.
is_association <- function(fit) is.null(ranking_levels(fit)) || !inherits(fit$ranking, "weft_ranking")

# Levels that are compared; NULL where the outcome is a number.
ranking_levels <- function(fit) {
  model <- attr(fit$ranking, "model")
  if (is.null(model)) levels(fit$quality$class) else model$levels
}

finding_genes <- function(fit) {
  r <- fit$ranking
  q <- fit$quality
  sure <- which(r$q_value <= strengths[["suggestive"]])
  if (!length(sure)) {
    return(in_vain(sprintf("%s (%s tested)",
                           paste(if (is_association(fit)) "associations" else "differences in expression",
                                 ranking_subject(fit)),
                           columns_text(q, nrow(r)))))
  }
  shape <- length(setdiff(which(r$shape_q <= strengths[["suggestive"]]), sure))
  finding(sprintf("%s%s %s %s (FDR 0.05). The top %s is %s.%s",
                  some_of_columns(q, length(sure), nrow(r)), genes_behind(q, ranked_genes(r)[sure]),
                  ranking_verb(fit, length(sure)), ranking_subject(fit), column_word(q), best_gene_text(fit, sure),
                  if (shape) sprintf(" Another %s %s only in spread or shape.", columns_text(q, shape),
                                     if (shape == 1L) "differs" else "differ") else ""),
          min(r$q_value[sure]))
}

# A verb phrase for the tested genes, for `count` of them: "are differentially expressed", "is associated".
ranking_verb <- function(fit, count) {
  paste(if (count == 1L) "is" else "are", if (is_association(fit)) "associated" else "differentially expressed")
}

# "ZYX (higher in AML by 1.72 log2 units, 95 % CI 1.34 to 2.10, q 3e-13)"; several if they are tied.
best_gene_text <- function(fit, sure) {
  r <- fit$ranking
  if (!inherits(r, "weft_ranking")) {
    return(sprintf("%s (%.2f %s, p %s)", best_names(ranked_genes(r)[sure], ranked_bits(r)[sure], 1L),
                   ranked_bits(r)[sure[1L]], ranking_unit(r), p_text(r$p_value[sure[1L]])))
  }
  best <- r[sure[1L], ]
  levels <- ranking_levels(fit)
  change <- if (is.na(best$log2_fold_change)) "" else {
    up <- best$log2_fold_change > 0
    what <- if (is.null(levels)) paste(if (up) "rises" else "falls", "by")
            else if (length(levels) == 2L) sprintf("higher in %s by", levels[1L + up])
            else paste0(best$contrast, ": ", if (up) "higher" else "lower", " by")
    change <- alike_numbers(c(abs(best$log2_fold_change), range(abs(c(best$lower, best$upper)))))
    sprintf("%s %s log2 units%s, 95 %% CI %s to %s, ", what, change[1L],
            if (is.null(levels)) " per unit" else "", change[2L], change[3L])
  }
  sprintf("%s (%sq %s)", best$gene, change, after_p(judged_text(best$q_value)))
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
    return(in_vain(sprintf("enriched gene sets (%s tested)", thousands(enriched$tried))))
  }
  text <- c(
    if (NROW(shifted)) sprintf("%s shifted as a whole. The smallest p-value is for %s (%s genes, %s, p %s).",
                               several_are(nrow(shifted), "gene set"), shifted$set[1L], shifted$size[1L],
                               shifted$direction[1L], p_text(shifted$p_value[1L])),
    if (NROW(over)) sprintf("%s over-represented. The smallest p-value is for %s (%s of its %s genes are %s, p %s).",
                            several_are(nrow(over), "gene set"), over$set[1L], over$overlap[1L], over$size[1L],
                            over$query[1L], p_text(over$p_value[1L])))
  finding(paste(text, collapse = " "), strength = "suggestive")
}

# ---- components ----

finding_components <- function(fit) {
  pc <- fit$components
  class <- fit$quality$class
  if (is.null(class)) {
    k <- standing_out(pc)
    if (is.null(k)) return(NULL) # not tested
    if (k == 0) return(in_vain("significant principal components"))
    return(finding(sprintf("%s significant: many genes vary together.", several_are(k, "principal component")),
                   strength = "suggestive"))
  }
  apart <- apart_on_components(pc, fit$quality)
  if (apart$p > strengths[["suggestive"]]) {
    return(in_vain(sprintf("principal components on which the classes differ (%d tested)", ncol(pc$x))))
  }
  finding(sprintf("The class explains %s of the variance of PC%d%s (%sp %s).",
                  share_text(apart$share), apart$best, if (is.null(fit$quality$before)) "" else " within batches",
                  if (ncol(pc$x) > 1L) "adjusted " else "", p_text(apart$p)), apart$p)
}

finding_hidden <- function(fit) {
  hidden <- fit$components$hidden
  if (is.null(hidden)) return(NULL)
  size <- tabulate(hidden$group, 2L)
  finding(sprintf(paste("The samples form two groups (%d and %d samples) that no known variable explains. They may be",
                        "hidden batches."), size[1L], size[2L]), strength = "suggestive")
}

# ---- samples ----

finding_outliers <- function(fit) {
  o <- as.data.frame(fit$outliers)
  if (!any(o$outlier)) return(in_vain("outliers"))
  odd <- o[o$outlier, ]
  finding(sprintf("%s of %s %s: %s (smallest q %s).", several(nrow(odd), "sample"), thousands(nrow(o)),
                  if (nrow(odd) == 1L) "is an outlier" else "are outliers",
                  best_names(odd$sample, odd$p_value, 3L), after_p(judged_text(min(odd$q_value)))),
          min(odd$q_value))
}

# Whether samples' groups go with classes: against permuted classes.
finding_groups <- function(fit) {
  r <- fit$clusters
  z <- sample_groups(r)
  if (!groups_hold(r)) {
    return(unsettled("Do not interpret the groups of samples, because another run may find other groups"))
  }
  if (max(z) < 2L) return(in_vain("groups of samples"))
  sizes <- sort(tabulate(z), decreasing = TRUE)
  counted <- sprintf("The samples form %d groups of %s samples%s", max(z),
                     if (length(sizes) <= 6L) joined(thousands(sizes))
                     else sprintf("%s to %s", thousands(min(sizes)), thousands(max(sizes))),
                     if (is_consensus(r) && r$given) " (the number of groups was specified)" else "")
  found <- class_agreement(fit)
  if (is.null(found)) return(finding(paste0(counted, "."), strength = "suggestive"))
  if (found$p > strengths[["suggestive"]]) {
    return(finding(sprintf(paste("%s. The groups are not associated with the classes (p %s), and may be batches or",
                                 "subtypes."), counted, p_text(found$p)), strength = "suggestive"))
  }
  finding(sprintf("%s. The groups are associated with the classes (%s).", counted, agreement_text(found)),
          strength = "suggestive")
}

groups_rhat <- function(r) max(r$rhat[is.finite(r$rhat)], 1)

# What is known while the chains disagree.
groups_open <- function(r, class = NULL) {
  if (is_consensus(r)) {
    return("Do not interpret the groups of samples: fewer than half of the subsamples contained one of them")
  }
  number <- range(as.integer(names(r$n_clusters$row)))
  sprintf(paste("The clustering of the samples has not converged. R-hat, which compares independent chains, is %s and",
                "should be at most %.1f. Do not interpret the number of groups (%s so far), their members%s. Increase",
                "the number of sweeps, with steps = list(clusters = list(method = \"irm\", sweeps = %s)). If the",
                "chains still do not converge, the data have no clear blocks"),
          rhat_number(groups_rhat(r)), greatest_rhat,
          if (number[1L] == number[2L]) number[1L] else paste(number, collapse = " to "),
          if (is.null(class)) "" else " or their association with the classes",
          format(10 * nrow(r$log_posterior), scientific = FALSE))
}

# ---- pairs ----

finding_pairs <- function(fit) {
  r <- as.data.frame(fit$pairs)
  if (!nrow(r) || is.null(r$p_fwer)) return(NULL)
  sure <- r[r$p_fwer <= strengths[["suggestive"]], ]
  if (!nrow(sure)) {
    return(in_vain(sprintf("synergistic pairs of genes (%s tested)", pairs_searched(fit, " pairs"))))
  }
  best <- best_names(paste(sure$feature1, "and", sure$feature2), sure$interaction, 1L)
  one <- nrow(sure) == 1L
  finding(sprintf("%s of %s %s more information about the class than %s separately: %s (adjusted p %s).",
                  if (one) "One" else thousands(nrow(sure)), pairs_searched(fit, " pairs of genes", FALSE),
                  if (one) "carries" else "carry", if (one) "its two genes" else "their genes",
                  if (one) best else paste("the top pair is", best),
                  after_p(judged_text(min(sure$p_fwer), attr(fit$pairs, "permutations")))), min(sure$p_fwer))
}

# "4,186,171 pairs of 2,894 genes": if a gene has several columns, one of them represents it.
pairs_searched <- function(fit, what = " pairs of genes", count_genes = TRUE) {
  searched <- attr(fit$pairs, "searched")
  genes <- (1 + sqrt(1 + 8 * searched)) / 2
  counted <- thousands(searched)
  if (genes != round(genes) || !count_genes) return(paste0(counted, what))
  sprintf("%s pairs of %s", counted, several(genes, "gene"))
}

# Why fewer genes are paired than ranked; nothing if they are as many.
genes_paired <- function(fit) {
  symbols <- fit$quality$genes$symbol
  if (is.null(symbols) || is.null(fit$quality$genes$representative)) return(NULL)
  if (column_word(fit$quality) == "gene") return(NULL)
  sprintf(paste("If several probes measure the same gene, only the most variable probe was used: the %s probes measure",
                "%s genes."),
          thousands(ncol(fit$quality$x)), thousands(length(representatives(fit$quality))))
}

# How many permutations of the classes the smallest p-value of pairs is from.
whole_search <- function(pairs) {
  times <- attr(pairs, "permutations")
  if (!is_count(times, 1, 1e7)) return(NULL)
  as_good <- round(min(pairs$p_fwer) * (times + 1)) - 1
  if (as_good < 1) {
    return(sprintf(paste("The best pair had less interaction in each of %d permutations of the classes, so this is the",
                         "smallest possible p-value."), as.integer(times)))
  }
  sprintf("The best pair had at least as much interaction in %s of %d permutations of the classes.",
          format(as_good), as.integer(times))
}

# ---- networks ----

# Pairs are what is found; directions come second. Without candidate regulators the pairs are called co-expression.
finding_network <- function(fit) {
  net <- fit$network
  edges <- report_edges(net)
  fdr <- attr(net, "fdr")
  if (!nrow(edges)) return(in_vain(sprintf("co-expressed pairs among %s", several(ncol(net), "gene"))))
  if (is.null(fdr) || is.na(attr(net, "cut") %||% 0)) return(NULL) # not tested
  finding(paste0(pairs_of_network(edges, fit), ".", direction_sentence(edges, fit)), strength = "suggestive")
}

# "41 pairs among 300 genes are co-expressed (FDR 0.05 for edges, 0.056 for pairs). In simulations, 1 to 13 % of such
# pairs had no direct edge"
pairs_of_network <- function(edges, fit) {
  net <- fit$network
  count <- nrow(network_pairs(edges))
  pair_fdr <- network_pair_fdr(edges)
  sprintf("%s among %s %s (FDR %s)%s",
          several(count, if (is.null(network_regulators(net))) "pair" else "regulator-target pair"),
          several(length(network_features(net)), "gene"), if (count > 1L) "are co-expressed" else "is co-expressed",
          if (is.na(pair_fdr) || signif(pair_fdr, 2) == attr(net, "fdr")) format(attr(net, "fdr"))
          else sprintf("%s for edges, %s for pairs", format(attr(net, "fdr")), format(signif(pair_fdr, 2))),
          if (is_directed(net)) paste(".", not_direct_text(network_samples(fit))) else "")
}

# The false discovery rate of the pairs of a table of edges, each counted once; NA without a test.
network_pair_fdr <- function(edges) if (is.null(edges$pair_q) || !nrow(edges)) NA_real_ else max(edges$pair_q)

# The candidate regulators that the user gave; NULL where there were none, or where all genes could be.
network_regulators <- function(net) {
  if (!is_directed(net) || !is.null(attr(net, "picked")) || nrow(net) >= ncol(net)) NULL else rownames(net)
}

finding_bayes <- function(fit) {
  r <- fit$bayes
  if (is.null(r$edges)) return(NULL)
  if (bayes_disagrees(r)) {
    return(unsettled(sprintf("Do not interpret the Bayesian network, because its chains disagree (R-hat %s)",
                             rhat_number(r$diagnostics$r_hat))))
  }
  sure <- bayes_edges(r, 0.9)
  if (!nrow(sure)) return(NULL)
  finding(sprintf("In the Bayesian network of %d genes, %s a posterior probability of at least 0.9: %s.%s",
                  nrow(r$dag), if (nrow(sure) == 1L) "1 edge has" else paste(nrow(sure), "edges have"),
                  surest_pairs(sure, 2L),
                  if (!bayes_by_class(fit)) ""
                  else " The genes were selected for their association with the class, which may explain these edges."),
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
  if (!length(lines)) lines <- "**There are no significant findings.**"
  c(lines,
    if (length(part$caution)) c("", paste("**Caution:**", running_text(part$caution), "[Details](#data)")),
    if (length(part$open)) c("", sprintf("**Not converged:** %s. [Details](#%s)", running_text(part$open),
                                         names(part$open))),
    if (length(part$vain)) c("", paste0("**Not found:** ", running_text(paste(part$vain, collapse = "; ")), ".")),
    if (length(part$left)) c("", sprintf("**Skipped (too few samples):** %s. [Details](#data)",
                                         toString(steps_in_words[names(part$left)]))))
}

steps_in_words <- c(components = "components", ranking = "differential expression", pairs = "pairs of genes",
                    network = "network", clusters = "groups of samples", bayes = "Bayesian network",
                    outliers = "outliers")

# Words that readers see: no marks, and links by their text.
count_words <- function(lines) {
  text <- gsub("\\]\\([^)]*\\)|\\{[^}]*\\}|\\*\\*", " ", gsub("&#[0-9]+;", ".", paste(lines, collapse = " ")))
  sum(grepl("[[:alnum:]]", strsplit(text, "[[:space:]]+")[[1L]]))
}
