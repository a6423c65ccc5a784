# The report on groups of samples and genes, on the Bayesian network, and on sets of genes.

groups_section <- function(fit, top) {
  r <- fit$clusters
  q <- fit$quality
  open <- !groups_hold(r)
  report_paragraph(if (open) paste0(groups_open(r, q$class), "."), if (!open) groups_found(fit))
  blocks <- max(sample_groups(r), gene_groups(r)) > 1L
  if (blocks) {
    put_figure(function() plot_clusters(fit), "Heat map of samples by genes in the order of their groups.",
               sprintf("%s of samples (rows) and %ss (columns): purple is above the mean of the column, green below.",
                       if (open) "Not converged: groups" else "Groups", column_word(q)),
               size = c(7.4, 5), narrow = c(phone_width, 3.6),
               more = paste("Lines separate the groups, which are numbered. A real group shows as blocks of nearly one",
                            if (is.null(q$class)) "colour." else "colour. The strip at the right shows the classes."))
  }
  if (!open) return(report_group_tables(fit, top))
  folded("Tables of these groups, which are not to be quoted", report_group_tables(fit, top))
}

groups_found <- function(fit) {
  r <- fit$clusters
  word <- column_word(fit$quality)
  text <- if (is_consensus(r)) consensus_text(r, word) else paste("The best partition has", partition_text(r, word))
  c(paste0(text, "."),
    groups_agreement(fit),
    if (!is_consensus(r)) sprintf(paste("The model assumes blocks: %ss that change gradually from sample to sample",
                                        "are divided into many groups."), word))
}

report_group_tables <- function(fit, top) {
  r <- fit$clusters
  word <- column_word(fit$quality)
  if (max(sample_groups(r)) > 1L) {
    put_table(group_table(fit), "Groups of samples, with the genes that are highest and lowest in each.",
              "sample-groups", 20, minor = c("names", "low"),
              more = paste("In brackets: the difference between the mean of the group and the mean of all other",
                           "samples, in standard deviations of the gene. There are no p-values, because the groups",
                           "were found from these genes."))
  }
  if (is_consensus(r)) {
    if (nrow(r$stability)) put_table(stability_columns(r$stability), "The test of each division of the samples.",
                                     "group-numbers", 10,
                                     more = paste("Valley: the rise of the density on both sides of the division, in",
                                                  "standard errors. By chance: the value that 5 % of data sets without",
                                                  "groups exceed. Found again: the overlap (Jaccard index) of the",
                                                  "least stable group with its best match in subsamples."))
  } else {
    put_table(number_table(r, word), "The probability of each number of groups.", "group-numbers", 10,
              more = paste("Share: the share of the sampled partitions with this number of groups, which is its",
                           "posterior probability if the chains agree."))
  }
  if (max(gene_groups(r), 1L) > 1L) put_table(gene_group_table(r, word), sprintf("Groups of %ss, largest first.", word),
                                          "gene-groups", min(top, 15))
}

stability_columns <- function(d) {
  data.frame(groups = as.integer(d$k), valley = d$observed, `by chance` = d$null, p = d$p_value,
             `p must not exceed` = d$level, `found again` = d$jaccard, kept = ifelse(d$kept, "yes", "no"),
             check.names = FALSE)
}

# What classes and groups share, beside what permuted classes do.
groups_agreement <- function(fit) {
  found <- class_agreement(fit)
  if (is.null(found)) return(NULL)
  sprintf("Groups and classes: %s.", agreement_text(found))
}

agreement_text <- function(found) {
  sprintf("normalised mutual information %.2f, with permuted classes %.2f, p %s", found$shared, found$chance,
          probability_text(found$p))
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

bayes_section <- function(fit, top) {
  r <- fit$bayes
  report_paragraph(if (bayes_disagrees(r)) paste0(bayes_open(r), "."),
                   sprintf("The network has %d genes%s.", nrow(r$dag), bayes_chosen(fit)),
                   if (!bayes_disagrees(r)) c(bayes_surest(r), bayes_surety(r)),
                   paste("A posterior probability is about dependence, given the genes in the model: a hidden cause of",
                         "two genes looks like an edge between them. Such data cannot distinguish networks with the",
                         "same independences, so directions are less certain than edges."))
  small <- max(table(layered_layout(r$dag)$y)) <= 7L # there is room for the names of a layer
  put_figure(function() plot(r), "The Bayesian network, drawn in layers.",
             sprintf("%s%s: %s.",
                     if (bayes_disagrees(r)) "Not converged: another run may give another network. " else "",
                     if (is.null(r$average)) "The network with the highest posterior probability"
                     else "Genes that are joined with a posterior probability of 0.5 or more",
                     several(sum(r$dag != 0), "edge")), more = trimws(bayes_legend(r)),
             size = c(7.4, 5.2), kind = if (small) "" else "large", narrow = if (small) c(phone_width, 3.6))
  if (!is.null(r$edges)) put_table(bayes_edges(r),
                                   "Edges of the Bayesian network, the most probable first.",
                                   "bayesian-edges", top, minor = "in the best network",
                                   more = paste("Edge: the posterior probability that the two genes are joined, given",
                                                "the genes in the model. Direction: the probability that the edge",
                                                "points as written, if the genes are joined. Likely: at least 0.9;",
                                                "possible: at least 0.5. A direction below 0.9 is open."))
  if (!is.null(r$trace)) {
    put_figure(function() plot(r, "trace"), "Scores along the Markov chains.",
               "Scores along the Markov chains, which should look alike and show no trend.",
               more = paste(if (!is.null(r$resample)) paste("These chains use all samples; posteriors are means over",
                                                            "random halves of the samples."),
                            "R-hat, above the figure, compares independent chains and should be at most 1.1. If it is",
                            "not, more iterations are needed."),
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
  paste0(" Wide and dark edges are the most probable: ",
         if (likely == sum(drawn)) "all" else likely, " with a posterior of 0.5 or more.",
         if (clear) paste(" A filled arrowhead means that the direction is clear (at least 0.9 of the posterior of",
                          "both); a hollow one means that it is open.")
         else " All arrowheads are hollow: directions are open, and the arrows may as well point the other way.",
         if (any(r$edges[!drawn] >= 0.5)) " A dashed edge is likely, but not part of the best network.")
}

bayes_chosen <- function(fit) {
  if (bayes_named(fit)) return(" that were named for it")
  if (bayes_by_class(fit)) {
    return(paste(", chosen because they say most about the class. Much of what joins them may therefore be the",
                 "class itself"))
  }
  ", chosen because they have the most edges in the network above"
}

bayes_named <- function(fit) is.character(step_settings(fit, "bayes")$genes)

bayes_disagrees <- function(r) isTRUE(r$diagnostics$r_hat > greatest_rhat)

# What is known while the chains disagree.
bayes_open <- function(r) {
  sprintf(paste("Bayesian network: the chains disagree. R-hat, which compares independent chains, is %s, and should be",
                "at most %.1f, so no edge of the network is a finding. Run it longer, with",
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
  if (nrow(found)) sprintf("Its most probable edges: %s.", surest_pairs(utils::head(found, 3L)))
}

bayes_surety <- function(r) {
  if (is.null(r$edges)) return(NULL)
  found <- bayes_edges(r, 0.9)
  sure <- sum(found$direction >= 0.9)
  if (!nrow(found)) return("No edge has a posterior of 0.9 or more (both directions together).")
  if (nrow(found) == 1L) {
    return(sprintf("1 edge has a posterior of 0.9 or more (both directions together); its direction is %s.",
                   if (sure) "likely" else "open"))
  }
  sprintf("%d edges have a posterior of 0.9 or more (both directions together); %s.", nrow(found),
          if (!sure) "no direction is likely" else if (sure == nrow(found)) "all their directions are likely"
          else sprintf("%s likely", if (sure == 1L) "1 direction is" else paste(sure, "directions are")))
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
  report_paragraph(sprintf("%s were compared with %s of genes that the analysis found; %s.",
                           several(length(unique(d$set)), "set"), several(length(unique(d$query)), "list"),
                           if (!sure) "no overlap is beyond chance"
                           else sprintf("%s significant at a false discovery rate of 0.05",
                                        paste(several(sure, "overlap"), if (sure == 1L) "is" else "are"))))
  shown <- data.frame(list = d$query, set = d$set, `genes in set` = d$size, overlap = d$overlap, expected = d$expected,
                      p = d$p_value, q = d$q_value, genes = d$genes, check.names = FALSE)
  put_table(shown, "Sets of genes that are over-represented in lists.", "gene-sets", top,
            minor = c("expected", "genes"),
            more = paste("p: hypergeometric test, with the tested genes as universe. q: false discovery rate over all",
                         "lists and sets. Sets overlap, so several rows may have the same cause."))
  r <- found$ranks
  if (is.null(r)) return(invisible())
  shown <- data.frame(set = r$set, `genes in set` = r$size, direction = r$direction, shift = r$shift,
                      correlation = r$correlation, p = r$p_value, q = r$q_value, check.names = FALSE)
  put_table(shown, "Sets of genes that shift as a whole.", "ranked-sets", top, minor = c("shift", "correlation"),
            more = paste("Shift: the mean statistic of the set minus the mean of all other genes, in standard",
                         "deviations. The test allows for the correlation of the set's genes (Wu and Smyth 2012). A",
                         "set may shift although none of its genes differs clearly."))
}
