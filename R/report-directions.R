# The directions of a network, and how far to believe them. A table of simulated networks has the share of right
# directions by model, number of samples and share of measured genes (inst/bench/direction-models.R makes it). The
# report quotes its rows for the number of samples of the data, the worst row first.

clear_direction <- 0.9 # of the weight of both directions

# The pairs of genes of a table of edges, each once: `direction`, the greater share of the weight, NA where one of the
# two was no candidate regulator, so that only one direction was tried.
network_pairs <- function(edges) {
  pair <- paste(pmin(edges$from, edges$to), pmax(edges$from, edges$to), sep = "\r")
  known <- !is.na(edges$direction)
  best <- tapply(edges$direction[known], factor(pair[known], unique(pair)), max)
  data.frame(pair = unique(pair), direction = as.vector(best), row.names = NULL)
}

# How the simulated networks did with about `n` samples: the rows of the next smaller number in the table, or the
# smallest; worst first. With many samples few edges keep a direction: a number of samples counts that has a hundred.
direction_rows <- function(n) {
  table <- direction_table()
  table <- table[table$directed >= 20, ] # of fewer, the share is a guess
  many <- tapply(table$directed, table$samples, sum) >= 100
  table <- table[table$samples %in% names(many)[many], ]
  rows <- table[table$samples == table_size(table, n), ]
  rows[order(rows$right), ]
}

# The number of samples in the table that n is held against.
table_size <- function(table, n) max(table$samples[table$samples <= n], min(table$samples))

direction_table <- function() {
  utils::read.csv(system.file("bench", "direction-models.csv", package = "weft", mustWork = TRUE))
}

whole_percent <- function(share) sprintf("%.0f %%", 100 * share)

# "In simulations with all or half of the genes measured, 1 to 13 % of such pairs had no direct edge".
not_direct_text <- function(n) {
  table <- direction_table()
  share <- range(table$not_direct[table$samples == table_size(table, n)])
  sprintf("In simulations with all or half of the genes measured, %.0f to %.0f %% of such pairs had no direct edge",
          floor(100 * share[1L]), ceiling(100 * share[2L]))
}

# How many of the pairs in simulations without hidden genes no edge joins, and how many the moral graph does not join
# either: genes with a common target depend on each other given all others.
outside_text <- function(n) {
  table <- direction_table()
  table <- table[table$samples == table_size(table, n) & table$seen == 1, ]
  smooth <- table[table$model != "threshold", ]
  percent <- function(share) sprintf("%.1f %%", 100 * max(share))
  sharp <- table[table$model == "threshold", ]
  sprintf(paste("In simulations with %d samples in which all genes were measured and effects were smooth, up to %s of",
                "such pairs had no direct edge, and up to %s had neither a direct edge nor a common target. With",
                "threshold effects, %s had no direct edge, and %s had neither."),
          smooth$samples[1L], percent(smooth$not_direct), percent(smooth$outside), percent(sharp$not_direct),
          percent(sharp$outside))
}

# One sentence for the first screen: how many pairs have a direction, how often such directions were right, and which
# hubs follow a component.
direction_sentence <- function(edges, fit) {
  if (!is_directed(fit$network)) return("")
  pairs <- network_pairs(edges)
  sure <- sum(pairs$direction >= clear_direction, na.rm = TRUE)
  rows <- direction_rows(network_samples(fit))
  text <- if (sure) {
    sprintf("%s a clear direction. In simulations %s, %.0f to %.0f %% of clear directions were correct",
            if (sure == 1L) "One pair has" else paste(thousands(sure), "pairs have"),
            if (all(rows$seen == 1)) "with all genes measured" else "with all or half of the genes measured",
            100 * rows$right[1L], 100 * max(rows$right))
  } else if (anyNA(pairs$direction) && all(is.na(pairs$direction))) {
    "The directions follow from the candidate regulators and were not tested"
  } else "No pair has a clear direction"
  hubs <- hubs_on_components(fit, edges)
  sprintf(" %s.%s", text, if (nrow(hubs)) sprintf(" %s.", sub("^t", "T", hubs_text(hubs))) else "")
}

# What the section on the network says: counts, the worst row of the table, and what no data of this kind can tell.
# regulators: how many weft chose as candidates; NULL if it chose none.
network_directions <- function(edges, n = Inf, regulators = NULL) {
  if (!nrow(edges)) return(NULL)
  pairs <- network_pairs(edges)
  tested <- pairs$direction[!is.na(pairs$direction)]
  given <- nrow(pairs) - length(tested)
  sure <- sum(tested >= clear_direction)
  one_way <- if (given) {
    sprintf("For %s, only one direction was tested, because only one of the two genes was %s.", several(given, "pair"),
            if (is.null(regulators)) "in the list of candidate regulators"
            else sprintf("among the %s genes that were tested as regulators", thousands(regulators)))
  }
  if (!length(tested)) return(one_way)
  text <- sprintf(paste("Both directions were tested for %s. %s a clear direction (at least %s of the weight of both",
                        "directions%s)."),
                  several(length(tested), "pair"),
                  if (sure == 0L) "None has" else if (sure == 1L) "One pair has"
                  else paste(thousands(sure), "pairs have"),
                  clear_direction, if (sure) "; filled arrowheads" else "")
  if (sure) {
    wrong <- mean(1 - tested[tested >= clear_direction])
    text <- paste(text, sprintf("The weights alone suggest that %s of the clear directions are wrong%s.",
                                share_text(wrong),
                                if (wrong < 1 - max(direction_rows(n)$right)) ", which is too optimistic" else ""))
  }
  paste(c(text, if (sure) simulated_directions(n), one_way), collapse = " ")
}

# "In simulations with 30 samples in which all genes were measured, 42 % of clear directions were correct in the worst
# setting (threshold effects), and 89 % in the best setting (kinetic rates)." How many genes were measured stands with
# the settings if they differ.
simulated_directions <- function(n) {
  rows <- direction_rows(n)
  whole <- all(rows$seen == 1)
  setting <- function(row) {
    sprintf("%s%s", model_text(row$model), if (whole) "" else if (row$seen == 1) ", all genes measured"
            else sprintf(", %s of the genes measured", whole_percent(row$seen)))
  }
  worst <- rows[1L, ]
  best <- rows[which.max(rows$right), ]
  sprintf(paste("In simulations with %d samples%s, %s of clear directions were correct in the worst setting (%s), and",
                "%s in the best setting (%s). If an unmeasured gene regulates two genes, one of them may appear to",
                "regulate the other. Treat a direction as a hypothesis to be tested in an experiment."),
          worst$samples, if (whole) " in which all genes were measured" else "", whole_percent(worst$right),
          setting(worst), whole_percent(best$right), setting(best))
}

model_text <- function(model) {
  switch(model, linear = "linear effects", threshold = "threshold effects", kinetic = "kinetic rates", model)
}

# ---- hubs ----

# Genes with many pairs whose values follow a component: what joins them to others may be whatever that component is. A
# data frame: `gene`, `pairs`, `component`, `correlation`.
hubs_on_components <- function(fit, edges, most = 3L, least_pairs = 5L, follows = 0.7) {
  none <- data.frame(gene = character(), pairs = integer(), component = integer(), correlation = numeric())
  pc <- fit$components
  pairs <- unique(data.frame(a = pmin(edges$from, edges$to), b = pmax(edges$from, edges$to)))
  degree <- sort(table(c(pairs$a, pairs$b)), decreasing = TRUE)
  hubs <- utils::head(names(degree)[degree >= least_pairs], most)
  columns <- shown_columns(fit, hubs)
  if (is.null(pc$x) || !length(hubs) || anyNA(columns)) return(none)
  scores <- pc$x[, seq_len(min(pc$leading %||% 2L, ncol(pc$x))), drop = FALSE]
  if (nrow(scores) != nrow(fit$quality$x)) return(none)
  together <- suppressWarnings(stats::cor(fit$quality$x[, columns, drop = FALSE], scores))
  best <- max.col(replace(abs(together), is.na(together), 0), "first")
  r <- together[cbind(seq_along(hubs), best)]
  kept <- !is.na(r) & abs(r) >= follows
  data.frame(gene = hubs, pairs = as.integer(degree[hubs]), component = best, correlation = r)[kept, , drop = FALSE]
}

# "the hubs A and B are correlated with PC1"
hubs_text <- function(hubs) {
  by <- split(hubs$gene, hubs$component)
  paste(vapply(names(by), function(k) {
    sprintf("%s %s %s correlated with PC%s", if (length(by[[k]]) == 1L) "the hub" else "the hubs", joined(by[[k]]),
            if (length(by[[k]]) == 1L) "is" else "are", k)
  }, ""), collapse = ", ")
}
