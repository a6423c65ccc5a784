# The report on groups of samples and genes, on the Bayesian network, and on sets of genes.

groups_section <- function(fit, top) {
  r <- fit$clusters
  q <- fit$quality
  open <- !groups_hold(r)
  report_paragraph(if (open) paste0(groups_open(r, q$class), "."), if (!open) groups_found(fit))
  blocks <- max(sample_groups(r), gene_groups(r)) > 1L
  if (blocks) {
    put_figure(function() plot_clusters(fit), "Heat map of samples by genes in the order of their groups.",
               sprintf(paste("Groups of samples (rows) and %ss (columns)%s. Purple values are above the mean of the",
                             "column, and green values are below it."),
                       column_word(q), if (open) ", not converged" else ""),
               size = c(7.4, 5), narrow = c(phone_width, 3.6),
               more = paste("Lines separate the groups, which are numbered. A clear group consists of blocks that have",
                            "nearly one colour.", if (!is.null(q$class)) "The strip on the right shows the classes."))
  }
  if (!open) return(report_group_tables(fit, top))
  folded("Tables of the groups that have not converged", report_group_tables(fit, top))
}

groups_found <- function(fit) {
  r <- fit$clusters
  word <- column_word(fit$quality)
  text <- if (is_consensus(r)) consensus_text(r, word) else paste("The best partition has", partition_text(r, word))
  c(paste0(text, "."),
    groups_agreement(fit),
    if (!is_consensus(r)) sprintf(paste("The model assumes blocks. It divides %ss that change gradually from sample to",
                                        "sample into many groups."), word))
}

report_group_tables <- function(fit, top) {
  r <- fit$clusters
  word <- column_word(fit$quality)
  if (max(sample_groups(r)) > 1L) {
    put_table(group_table(fit), "Groups of samples, and the genes with the highest and lowest values in each group.",
              "sample-groups", 20, minor = c("names", "low"),
              more = paste("The numbers in brackets are differences between the mean of the group and the mean of all",
                           "other samples, in standard deviations of the gene. There are no p-values, because the",
                           "groups were derived from the same genes."))
  }
  if (is_consensus(r)) {
    if (nrow(r$stability)) put_table(stability_columns(r$stability), "Tests of the number of groups of samples.",
                                     "group-numbers", 10,
                                     more = paste("The depth is the rise of the density on both sides of the valley",
                                                  "between two groups, in standard errors. In 5 % of data sets without",
                                                  "groups, it exceeds the value in the column 5 % by chance. A",
                                                  "division is accepted if p is at most the threshold and the groups",
                                                  "are stable. The stability is the overlap (Jaccard index) of the",
                                                  "least stable group with its best match in subsamples."))
  } else {
    put_table(number_table(r, word), "Posterior probability of the number of groups.", "group-numbers", 10,
              more = paste("The probability is estimated by the proportion of sampled partitions with this number of",
                           "groups. The estimate is valid if the chains have converged."))
  }
  if (max(gene_groups(r), 1L) == 1L) return(invisible())
  put_table(gene_group_table(r, word), sprintf("Groups of %ss, ordered by size.", word), "gene-groups", min(top, 15))
}

stability_columns <- function(d) {
  data.frame(groups = as.integer(d$k), `depth of the valley` = d$observed, `5 % by chance` = d$null, p = d$p_value,
             threshold = d$level, stability = d$jaccard, accepted = ifelse(d$kept, "yes", "no"), check.names = FALSE)
}

# The association of groups and classes, beside its value for permuted classes.
groups_agreement <- function(fit) {
  found <- class_agreement(fit)
  if (is.null(found)) return(NULL)
  sprintf("Association of groups and classes: %s.", agreement_text(found))
}

agreement_text <- function(found) {
  sprintf("normalised mutual information %.2f, mean of permuted classes %.2f, p %s", found$shared, found$chance,
          p_text(found$p))
}

class_agreement <- function(fit, times = 199L) {
  z <- sample_groups(fit$clusters)
  class <- as.integer(fit$quality$class)
  if (!length(class) || max(z) < 2L) return(NULL)
  shared <- irm_nmi(z, class)
  n <- length(class)
  permuted <- vapply(seq_len(times), function(t) {
    irm_nmi(z, class[order(draws("uniform", n, key = fit$seed %% 2^32, stream = t))])
  }, 0)
  list(shared = shared, chance = mean(permuted), p = mean(c(TRUE, permuted >= shared - 1e-12)))
}

group_table <- function(fit, most = 40L) {
  q <- fit$quality
  z <- sample_groups(fit$clusters)
  names <- names(gene_groups(fit$clusters)) %||% (gene_labels(q) %||% colnames(q$x))
  columns <- shown_columns(fit, names)
  known <- !is.na(columns)
  values <- scaled_columns(q$x[, columns[known], drop = FALSE])
  groups <- sort(unique(z))
  rows <- lapply(groups, function(g) {
    own <- z == g
    apart <- if (all(own)) rep(0, ncol(values))
             else colMeans(values[own, , drop = FALSE]) - colMeans(values[!own, , drop = FALSE])
    listed <- function(order, of) {
      of <- utils::head(order[of[order]], 5L)
      paste(sprintf("%s (%+.1f)", names[known][of], apart[of]), collapse = ", ")
    }
    classes <- if (!is.null(q$class)) {
      counted <- table(q$class[own])
      toString(sprintf("%s %d", names(counted), counted)[counted > 0])
    }
    c(list(group = as.integer(g), samples = as.integer(sum(own))), if (!is.null(classes)) list(classes = classes),
      list(names = some_of(rownames(q$x)[own], most),
           high = listed(order(-apart), apart > 0), low = listed(order(apart), apart < 0)))
  })
  do.call(rbind, lapply(rows, function(row) as.data.frame(row, optional = TRUE, stringsAsFactors = FALSE)))
}

number_table <- function(r, word) {
  of <- function(mode, what) {
    counts <- sort(r$n_clusters[[mode]], decreasing = TRUE)
    data.frame(of = what, groups = as.integer(names(counts)), probability = as.double(counts))
  }
  rbind(of("row", "samples"), of("col", paste0(word, "s")))
}

gene_group_table <- function(r, word) {
  z <- gene_groups(r)
  sizes <- sort(table(z), decreasing = TRUE)
  names <- vapply(names(sizes), function(g) some_of(names(z)[z == as.integer(g)], 12L), "")
  stats::setNames(data.frame(as.integer(names(sizes)), as.integer(sizes), names, row.names = NULL),
                  c("group", paste0(word, "s"), "names"))
}

# ---- Bayesian network ----

bayes_section <- function(fit, top) {
  r <- fit$bayes
  report_paragraph(if (bayes_disagrees(r)) paste0(bayes_open(r), "."),
                   sprintf("The network has %d genes%s.", nrow(r$dag), bayes_chosen(fit)),
                   if (!bayes_disagrees(r)) c(bayes_surest(r), bayes_surety(r)),
                   paste("The posterior probability of an edge refers to the genes in the model. A hidden common cause",
                         "of two genes looks like an edge between them. Observational data cannot distinguish networks",
                         "that imply the same independences, so directions are less certain than edges."))
  small <- max(table(layered_layout(r$dag)$y)) <= 7L # there is room for the names of a layer
  put_figure(function() plot(r), "The Bayesian network, drawn in layers.",
             sprintf("%s with %s.%s",
                     if (is.null(r$average)) "The network with the highest posterior probability,"
                     else "The network of all edges with a posterior probability of 0.5 or more,",
                     several(sum(r$dag != 0), "edge"),
                     if (bayes_disagrees(r)) " It has not converged: another run may give another network." else ""),
             more = trimws(bayes_legend(r)),
             size = c(7.4, 5.2), kind = if (small) "" else "large", narrow = if (small) c(phone_width, 3.6))
  if (!is.null(r$edges)) put_table(bayes_edges(r),
                                   "Edges of the Bayesian network, ordered by posterior probability.",
                                   "bayesian-edges", top, minor = "in the best network",
                                   more = paste("The column edge is the posterior probability of an edge between the",
                                                "two genes. The column direction is the probability that the edge",
                                                "points from the first to the second gene, given that there is an",
                                                "edge. Edges and directions are called likely from 0.9, and edges are",
                                                "called possible from 0.5. A direction below 0.9 is unclear."))
  if (!is.null(r$trace)) {
    put_figure(function() plot(r, "trace"), "Scores along the Markov chains.",
               "Scores along the Markov chains. The chains should be similar and show no trend.",
               more = paste(if (!is.null(r$resample)) paste("These chains use all samples. The posterior probabilities",
                                                            "are means over random subsamples."),
                            "R-hat, above the figure, compares independent chains and should be at most 1.1. If it is",
                            "larger, increase the number of iterations."),
               size = c(5.6, 3))
  }
}

# How to read the picture, as far as it shows this.
bayes_legend <- function(r) {
  if (is.null(r$edges)) return("")
  joined <- r$edges + t(r$edges)
  drawn <- r$dag != 0
  likely <- sum(joined[drawn] >= 0.5)
  clear <- any(r$edges[drawn] >= clear_direction * joined[drawn])
  paste0(" Wide and dark edges have the highest posterior probabilities; ",
         if (likely == sum(drawn)) "all edges have" else if (likely == 1L) "1 edge has"
         else paste(likely, "edges have"),
         " a probability of 0.5 or more.",
         if (clear) paste(" A filled arrowhead means that the direction is clear (at least 0.9 of the posterior",
                          "probability of both directions). A hollow arrowhead means that the direction is unclear.")
         else " All arrowheads are hollow, because no direction is clear.",
         if (any(r$edges[!drawn] >= 0.5)) " A dashed edge is probable, but not part of the best network.")
}

bayes_chosen <- function(fit) {
  if (bayes_named(fit)) return(", which were specified in the call")
  if (bayes_by_class(fit)) {
    return(paste(", which are most strongly associated with the class. The class may therefore explain many of the",
                 "edges"))
  }
  ", which have the most edges in the network above"
}

bayes_named <- function(fit) is.character(step_settings(fit, "bayes")$genes)

bayes_disagrees <- function(r) isTRUE(r$diagnostics$r_hat > greatest_rhat)

# What is known while the chains disagree.
bayes_open <- function(r) {
  sprintf(paste("The chains of the Bayesian network disagree. R-hat, which compares independent chains, is %s and",
                "should be at most %.1f. Do not interpret the edges. Increase the number of iterations, with",
                "steps = list(bayes = list(iterations = %s))"),
          rhat_number(r$diagnostics$r_hat), greatest_rhat, format(10 * r$iterations, scientific = FALSE))
}

bayes_by_class <- function(fit) !bayes_named(fit) && !is.null(fit$quality$class)

bayes_edges <- function(r, least = 0.1) {
  e <- r$edges
  pair <- which(upper.tri(e) & e + t(e) >= least, arr.ind = TRUE)
  if (!nrow(pair)) return(data.frame(from = character(), to = character(), edge = numeric(), direction = numeric()))
  forth <- e[pair]
  back <- e[pair[, 2:1, drop = FALSE]]
  from <- ifelse(forth >= back, pair[, 1L], pair[, 2L])
  to <- ifelse(forth >= back, pair[, 2L], pair[, 1L])
  direction <- pmax(forth, back) / (forth + back)
  out <- data.frame(from = rownames(e)[from], to = rownames(e)[to], edge = pmin(1, forth + back), direction = direction,
                    verdict = paste0(ifelse(forth + back >= 0.9, "edge likely",
                                            ifelse(forth + back >= 0.5, "edge possible", "edge doubtful")),
                                     ifelse(forth + back < 0.5, "",
                                            ifelse(direction >= 0.9, ", direction likely", ", direction unclear"))),
                    `in the best network` = ifelse(r$dag[cbind(from, to)] != 0, "yes",
                                                   ifelse(r$dag[cbind(to, from)] != 0, "reversed", "no")),
                    check.names = FALSE)
  out[order(-out$edge, -out$direction), ]
}

# "RBBP4 with ACADM (0.999, direction unclear) and PPBP -> MGST1 (0.98)": the most probable of bayes_edges().
surest_pairs <- function(found, most = 3L) {
  shown <- utils::head(found, most)
  clear <- shown$direction >= clear_direction
  text <- joined(sprintf("%s %s %s (%s%s)", shown$from, ifelse(clear, "->", "with"), shown$to,
                         surety_number(shown$edge), ifelse(clear, "", ", direction unclear")))
  if (nrow(found) > most) sprintf("%s and %d more", text, nrow(found) - most) else text
}

# Two digits, but never 1 for what is less.
surety_number <- function(p) {
  ifelse(p >= 0.9995, "over 0.999", ifelse(p >= 0.995, formatC(p, digits = 3, format = "f"),
                                           formatC(p, digits = 2, format = "f")))
}

bayes_surest <- function(r) {
  if (is.null(r$edges)) return(NULL)
  found <- bayes_edges(r)
  if (nrow(found)) sprintf("The most probable %s: %s.", if (nrow(found) == 1L) "edge is" else "edges are",
                           surest_pairs(utils::head(found, 3L)))
}

bayes_surety <- function(r) {
  if (is.null(r$edges)) return(NULL)
  found <- bayes_edges(r, 0.9)
  sure <- sum(found$direction >= 0.9)
  if (!nrow(found)) return("No edge has a posterior probability of 0.9 or more (both directions together).")
  if (nrow(found) == 1L) {
    return(sprintf(paste("One edge has a posterior probability of 0.9 or more (both directions together). Its",
                         "direction is %s."), if (sure) "likely" else "unclear"))
  }
  sprintf("%d edges have a posterior probability of 0.9 or more (both directions together). %s.", nrow(found),
          if (!sure) "None of their directions is likely"
          else if (sure == nrow(found)) "All their directions are likely"
          else sprintf("%s likely", if (sure == 1L) "One of their directions is"
                       else paste(sure, "of their directions are")))
}

# ---- sets of genes ----

# What is asked of sets of genes: whether they are over-represented in lists, and whether they shift as a whole.
enrichment_of <- function(fit, sets) {
  fit <- checked_fit(fit, "fit")
  sets <- sets_of(sets)
  list(overlap = as.data.frame(gene_sets(fit, sets)), ranks = if (!is.null(fit$ranking)) ranked_sets(fit, sets),
       tried = length(sets))
}

sets_section <- function(found, top) {
  d <- found$overlap
  sure <- sum(d$q_value <= 0.05)
  report_paragraph(sprintf("%s compared with %s of genes from the analysis. %s significant%s.",
                           if (length(unique(d$set)) == 1L) "1 gene set was"
                           else paste(several(length(unique(d$set)), "gene set"), "were"),
                           several(length(unique(d$query)), "list"), several_are(sure, "overlap"),
                           if (sure) " at a false discovery rate of 0.05" else ""))
  shown <- data.frame(list = d$query, set = d$set, `genes in set` = d$size, overlap = d$overlap, expected = d$expected,
                      p = d$p_value, q = d$q_value, genes = d$genes, check.names = FALSE)
  put_table(shown, "Over-representation of gene sets in lists of genes.", "gene-sets", top,
            minor = c("expected", "genes"),
            more = paste("The p-values are from hypergeometric tests, with the tested genes as the universe. The",
                         "q-values are adjusted for all lists and sets. Sets overlap, so several rows may have the",
                         "same cause."))
  r <- found$ranks
  if (is.null(r)) return(invisible())
  shown <- data.frame(set = r$set, `genes in set` = r$size, direction = r$direction, shift = r$shift,
                      correlation = r$correlation, p = r$p_value, q = r$q_value, check.names = FALSE)
  put_table(shown, "Shifts of gene sets as a whole.", "ranked-sets", top, minor = c("shift", "correlation"),
            more = paste("The shift is the mean statistic of the set minus the mean of all other genes, in standard",
                         "deviations. The test accounts for the correlation of the genes in the set (Wu and Smyth",
                         "2012). A set may shift although none of its genes is significant."))
}
