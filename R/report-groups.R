# The report on groups of samples and genes, on the Bayesian network, and on sets of genes.

report_groups <- function(fit, top) {
  r <- fit$clusters
  q <- fit$quality
  if (is_consensus(r)) return(report_consensus(fit, top))
  open <- !groups_hold(r)
  report_paragraph(if (open) paste0(groups_open(r, q$class), "."),
                   if (!open) c(paste0("The best partition has ", partition_text(r, column_word(q)), "."),
                                groups_agreement(fit)),
                   sprintf(paste("The model is one of blocks: %ss that change gradually from sample to sample are",
                                 "cut into many groups."), column_word(q)))
  put_figure(function() plot_clusters(fit), "Heat map of samples by genes in the order of their groups.",
             paste(if (open) "Not settled: the best partition of this run; another run would give another.",
                   sprintf(paste("Values of %s (columns) in all samples (rows), ordered by group; lines part the",
                                 "groups. Purple is above the mean of the column, green below. A group that is real",
                                 "shows as blocks of nearly one colour."),
                           columns_text(q, length(r$col_cluster))), if (!open) groups_shown(r, q)),
             width = 7.4, height = 5, narrow = c(phone_width, 3.6))
  if (!open) return(report_group_tables(fit, top))
  folded("Tables of this unsettled partition, to look at and not to be quoted", report_group_tables(fit, top))
}

# Groups by consensus: the samples on components, and the tests of their number.
report_consensus <- function(fit, top) {
  r <- fit$clusters
  word <- column_word(fit$quality)
  report_paragraph(paste0(consensus_text(r, word), "."), if (r$k > 1L) groups_agreement(fit))
  put_figure(function() plot_clusters(fit), "Samples on two components, coloured by group.",
             "The paler a sample, the less probable is its group.", width = 6, height = 4.6,
             narrow = c(phone_width, 3.6))
  if (nrow(r$stability)) {
    shown <- r$stability
    names(shown) <- c("groups", "observed", "null", "p", "level", "found again", "kept")
    put_table(shown, paste("Tests of the number of groups. Observed: how clearly the density of samples falls between",
                           "the groups of the last division; null: what 5 % of data sets with the same covariances and",
                           "without groups exceed; found again: Jaccard index of the least stable group in",
                           "subsamples."),
              "group-tests", 10)
  }
  if (r$k > 1L) put_table(group_table(fit),
                          paste("Groups of samples, with the genes that set each apart: difference between the group's",
                                "mean and that of all other samples, in standard deviations of the gene. Groups were",
                                "found from these genes, so that no p-value would mean anything."), "sample-groups", 20,
                          minor = "names")
  if (!is.null(r$gene_cluster) && max(r$gene_cluster) > 1L) {
    put_table(gene_group_table(r, word), sprintf("Groups of %ss, largest first.", word), "gene-groups", min(top, 15))
  }
}

report_group_tables <- function(fit, top) {
  r <- fit$clusters
  put_table(group_table(fit),
            paste("Groups of samples, with the genes that set each apart: difference between the group's mean and that",
                  "of all other samples, in standard deviations of the gene. Groups were found from these genes, so",
                  "that no p-value would mean anything."), "sample-groups", 20, minor = "names")
  put_table(number_table(r, column_word(fit$quality)),
            paste("How sure the number of groups is: the share of the sampled partitions with that many groups",
                  "(posterior probability, as far as the chains agree)."), "group-numbers", 10)
  put_table(gene_group_table(r, column_word(fit$quality)),
            sprintf("Groups of %ss, largest first.", column_word(fit$quality)), "gene-groups", min(top, 15))
}

# What the picture of the groups shows here.
groups_shown <- function(r, q) {
  size <- tabulate(sample_groups(r))
  alone <- sum(size <= 2L)
  small <- if (alone) sprintf("%d of the %d groups of samples %s only one or two samples: too few to mean much.",
                              alone, length(size), if (alone == 1L) "has" else "have")
  if (is.null(q$class)) return(small)
  pure <- sum(rowSums(table(sample_groups(r), q$class) > 0) == 1L)
  paste(sprintf("The strip at the right shows the classes: %d of %d groups of samples are of one class.", pure,
                length(size)), small)
}

# What classes and groups share, beside what shuffled classes do.
groups_agreement <- function(fit) {
  found <- class_agreement(fit)
  if (is.null(found)) return(NULL)
  sprintf("Groups and classes: %s.", agreement_text(found))
}

agreement_text <- function(found) {
  sprintf(paste("their agreement is %.2f (normalised mutual information: 0 is none, 1 the same division), that of",
                "shuffled classes %.2f on average (p %s)"), found$shared, found$chance, probability_text(found$p))
}

class_agreement <- function(fit, times = 199L) {
  z <- sample_groups(fit$clusters)
  class <- as.integer(fit$quality$class)
  if (!length(class)) return(NULL)
  shared <- irm_nmi(z, class)
  n <- length(class)
  shuffled <- vapply(seq_len(times), function(t) {
    irm_nmi(z, class[order(draws("uniform", n, key = fit$seed %% 2^32, stream = t))])
  }, 0)
  list(shared = shared, chance = mean(shuffled), p = mean(c(TRUE, shuffled >= shared - 1e-12)))
}

group_table <- function(fit, most = 40L) {
  q <- fit$quality
  z <- sample_groups(fit$clusters)
  names <- names(gene_groups(fit$clusters)) %||% colnames(fit$quality$x)
  columns <- shown_columns(fit, names)
  known <- !is.na(columns)
  values <- scaled_columns(q$x[, columns[known], drop = FALSE])
  groups <- sort(unique(z))
  rows <- lapply(groups, function(g) {
    own <- z == g
    apart <- if (all(own)) rep(0, ncol(values))
             else colMeans(values[own, , drop = FALSE]) - colMeans(values[!own, , drop = FALSE])
    first <- utils::head(order(-abs(apart)), 5L)
    classes <- if (!is.null(q$class)) {
      counted <- table(q$class[own])
      toString(sprintf("%s %d", names(counted), counted)[counted > 0])
    }
    c(list(group = as.integer(g), samples = as.integer(sum(own))), if (!is.null(classes)) list(classes = classes),
      list(names = some_of(rownames(q$x)[own], most),
           `marker genes` = paste(sprintf("%s (%+.1f)", names[known][first], apart[first]), collapse = ", ")))
  })
  do.call(rbind, lapply(rows, function(row) as.data.frame(row, optional = TRUE, stringsAsFactors = FALSE)))
}

number_table <- function(r, word) {
  of <- function(mode, what) {
    counts <- sort(r$n_clusters[[mode]], decreasing = TRUE)
    data.frame(groups = paste("of", what), number = as.integer(names(counts)), share = as.double(counts))
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

report_bayes <- function(fit, top) {
  r <- fit$bayes
  report_paragraph(if (bayes_disagrees(r)) paste0(bayes_open(r), "."),
                   sprintf("The network is of %d genes%s.", nrow(r$dag), bayes_chosen(fit)),
                   if (!bayes_disagrees(r)) c(bayes_surest(r), bayes_surety(r)),
                   paste("Networks with the same independences cannot be told apart by such data, and a hidden cause",
                         "of two genes looks like an edge between them: whether two genes are joined is surer",
                         "than which way the edge points."))
  small <- max(table(layered_layout(r$dag)$y)) <= 7L # there is room for the names of a layer
  put_figure(function() plot(r), "The Bayesian network, drawn in layers.",
             sprintf(paste0(if (bayes_disagrees(r)) "Not settled: another run may give another network. ",
                            if (is.null(r$average)) "The network of highest posterior: %s.%s"
                            else paste("Genes that are joined with a posterior of at least one half, each edge in its",
                                       "likelier direction: %s.%s")),
                     several(sum(r$dag != 0), "edge"), bayes_legend(r)),
             width = 7.4, height = 5.2, kind = if (small) "" else "large", narrow = if (small) c(phone_width, 3.6))
  if (!is.null(r$edges)) put_table(bayes_edges(r),
                                   paste("Surest first. Edge: the posterior probability that the two genes are",
                                         "joined at all; direction: where they are, that the edge points as written.",
                                         "Likely is at least 0.9, possible at least 0.5; a direction below 0.9 is",
                                         "open."),
                                   "bayesian-edges", top, minor = "in the best network")
  if (!is.null(r$trace)) {
    put_figure(function() plot(r, "trace"), "Scores along the Markov chains.",
               paste(if (is.null(r$resample)) "Scores along the chains, from whose networks the posteriors are counted."
                     else "Scores along the chains of all samples; posteriors are means over halves of these.",
                     "They should look alike and show no trend; R-hat, above the picture, compares chains that",
                     "started apart and should be at most 1.1. Otherwise more iterations are needed."),
               width = 5.6, height = 3)
  }
}

# How to read the picture, as far as it shows this.
bayes_legend <- function(r) {
  if (is.null(r$edges)) return("")
  joined <- r$edges + t(r$edges)
  drawn <- r$dag != 0
  likely <- sum(joined[drawn] >= 0.5)
  clear <- any(r$edges[drawn] >= clear_direction * joined[drawn])
  paste0(" The wider and darker, the surer that the two are joined at all: ",
         if (likely == sum(drawn)) "all" else likely, " with a posterior of 0.5 or more.",
         if (clear) paste(" A filled arrowhead: the direction is clear (at least 0.9 of the posterior of both); a",
                          "hollow one: it is open.")
         else " All arrowheads are hollow: directions are open, and the arrows may as well point the other way.",
         if (any(r$edges[!drawn] >= 0.5)) " A dashed edge is likely, but not part of the best network.")
}

bayes_chosen <- function(fit) {
  if (bayes_named(fit)) return(" that were named for it")
  if (bayes_by_class(fit)) {
    return(paste(", chosen because they say most about the class: that they all differ between the classes is how",
                 "they were chosen, and much of what joins them may be the class itself"))
  }
  ", chosen because they have the most edges in the network above"
}

bayes_named <- function(fit) is.character(step_settings(fit, "bayes")$genes)

bayes_disagrees <- function(r) isTRUE(r$diagnostics$r_hat > greatest_rhat)

# What is known while the chains disagree.
bayes_open <- function(r) {
  sprintf(paste("Bayesian network: the chains disagree. R-hat, which compares chains that started apart, is %s, and",
                "at most %.1f is wanted, so that no edge of it is a finding. Run it longer, with",
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
                                            ifelse(direction >= 0.9, ", direction likely", ", direction open"))),
                    `in the best network` = ifelse(r$dag[cbind(from, to)] != 0, "yes",
                                                   ifelse(r$dag[cbind(to, from)] != 0, "reversed", "no")),
                    check.names = FALSE)
  out[order(-out$edge, -out$direction), ]
}

# "RBBP4 with ACADM (0.999, direction open) and PPBP -> MGST1 (0.98)": those joined most surely, of a table of
# bayes_edges().
surest_pairs <- function(found, most = 3L) {
  shown <- utils::head(found, most)
  clear <- shown$direction >= clear_direction
  text <- joined(sprintf("%s %s %s (%s%s)", shown$from, ifelse(clear, "->", "with"), shown$to,
                         surety_number(shown$edge), ifelse(clear, "", ", direction open")))
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
  if (nrow(found)) sprintf("The surest of its edges: %s.", surest_pairs(utils::head(found, 3L)))
}

bayes_surety <- function(r) {
  if (is.null(r$edges)) return(NULL)
  found <- bayes_edges(r, 0.9)
  sure <- sum(found$direction >= 0.9)
  if (!nrow(found)) return("No edge of the Bayesian network has a posterior of 0.9 or more, both directions together.")
  if (nrow(found) == 1L) {
    return(sprintf(paste("One edge of the Bayesian network has a posterior of 0.9 or more, both directions together;",
                         "its direction %s."), if (sure) "is as sure" else "is open"))
  }
  sprintf("Of the %d edges of the Bayesian network with a posterior of 0.9 or more, both directions together, %s.",
          nrow(found), if (!sure) "none has a direction as sure"
          else if (sure == nrow(found)) "all have a direction as sure"
          else sprintf("%d %s a direction as sure", sure, if (sure == 1L) "has" else "have"))
}

# ---- sets of genes ----

report_sets <- function(found, top) {
  d <- as.data.frame(found)
  sure <- d$q_value <= 0.05
  report_paragraph(sprintf("%s of genes were compared with %s that hold 5 or more of the genes tested%s.",
                           several(length(unique(d$query)), "list"),
                           several(length(unique(d$set)), "set"),
                           if (any(sure)) sprintf("; %s at a false discovery rate of 0.05",
                                                  several(sum(sure), "overlap")) else "; no overlap is beyond chance"))
  shown <- data.frame(list = d$query, set = d$set, `genes in set` = d$size, overlap = d$overlap, expected = d$expected,
                      p = d$p_value, q = d$q_value,
                      genes = d$genes, check.names = FALSE)
  put_table(shown,
            paste("Sets of genes that are over-represented in the lists: hypergeometric test with the tested",
                  "genes as universe, false discovery rate over all lists and sets. Sets overlap, so that several",
                  "rows may tell the same thing."), "gene-sets", top)
}
