# Co-clustering of real values: the graph that stands for them, and what blocks say about them. A value is kept as a
# whole number of units of its standardised form, z = (value - centre) / scale: src/irm/irm.h says why. Blocks therefore
# come as sums S, squares Q and pairs P of z, with which
#
#   mean S / (1 + P), shrunk towards the centre, and precision (beta[1] + P / 2) / (beta[2] + (Q - S^2 / (1 + P)) / 2)
#
# are the posterior means.

most_units <- 2^20 # of a value: src/irm/cpu/input/edges_by_row.c

real_graph <- function(A, type, missing, input) {
  given <- c(type = !is.null(type) && type != "bipartite", self = input$self, threshold = !is.null(input$threshold),
             dim = !is.null(input$dim))
  if (any(given)) {
    abort_input(sprintf("`%s` must not be given for real values.", names(which(given))[1L]),
                x = "`family = \"gaussian\"` groups the rows and the columns of a matrix.")
  }
  source <- as_source(A, input$assay, "A")
  A <- source_matrix(source) %||% source$data
  if (source$experiment) A <- t(A) # rows are the experiment's, features
  if (!is.matrix(A) || !is.numeric(A)) {
    abort_input("`x` must be a matrix of numbers for `family = \"gaussian\"`.", x = paste0("It is ", describe(A), "."),
                i = if (is.data.frame(A)) "`as.matrix()` converts a data frame of numbers.")
  }
  shape <- base::dim(A)
  check_shape(shape)
  names <- dimnames(A)
  A <- matrix(as.double(A), shape[1L])
  unseen <- missing_pairs(missing, shape, list(row_names = names[[1L]], col_names = names[[2L]]), "bipartite")
  A[cbind(unseen$from, unseen$to)] <- NA
  bad <- which(is.infinite(A), arr.ind = TRUE)
  if (nrow(bad)) {
    abort_input("`x` must contain finite numbers or NA.",
                x = sprintf("Row %d, column %d contains %s.", bad[1L, 1L], bad[1L, 2L],
                            format(A[bad[1L, , drop = FALSE]])))
  }
  gone <- which(is.na(A), arr.ind = TRUE, useNames = FALSE)
  if (nrow(gone) == length(A)) abort_input("`x` must contain observed values.", x = "All are missing.")
  values <- real_scale(A)
  units <- round((A - values[1L]) / values[2L] / values[3L])
  at <- which(!is.na(units) & units != 0, arr.ind = TRUE, useNames = FALSE)
  control <- run_control("cpu", 1L, FALSE, NULL, "Sorting values")
  form <- list(shape = shape, kind = "bipartite", self = FALSE)
  sorted <- function(at, weight) sort_links(form, at[, 1L], at[, 2L], weight, NULL, control)
  structure(class = "weft_irm_graph", list(type = 0L, self = FALSE, links = sorted(at, as.integer(units[at])),
                                           missing = sorted(gone, NULL), kind = "bipartite",
                                           row_names = plain_names(names[[1L]]),
                                           col_names = plain_names(names[[2L]]), values = values))
}

# c(centre, scale, unit). The unit is the least power of two of which no value has more than most_units.
real_scale <- function(A) {
  largest <- max(abs(A), na.rm = TRUE)
  if (largest == 0) return(c(0, 1, 2^-20))
  A <- A / largest # squares of huge and tiny values are then in range
  centre <- mean(A, na.rm = TRUE)
  A <- A - centre
  spread <- sqrt(mean(A^2, na.rm = TRUE))
  if (spread < 1e-12) return(c(centre * largest, largest, 2^-20)) # equal but for rounding
  reach <- max(abs(A), na.rm = TRUE) / spread
  c(centre * largest, spread * largest, 2^ceiling(log2(reach / most_units)))
}

check_real_scale <- function(graph, need) {
  v <- graph$values
  need(is.null(v) || is_reals(v, 3L) && v[2L] > 0 && v[3L] > 0 && v[3L] <= 1 && log2(v[3L]) == round(log2(v[3L])),
       "graph$values", "NULL, or centre, scale and unit of real values", v)
  need(is.null(v) || graph$type == 0, "graph$type", "0 for real values", graph$type)
}

# ---- blocks ----

real_rest <- function(blocks) pmax(0, blocks$squares - blocks$links^2 / (1 + blocks$pairs))

# log p of the blocks' values, standardised, up to terms that all partitions share.
real_score <- function(blocks, beta) {
  p <- blocks$pairs
  sum(lgamma(beta[1L] + p / 2) - lgamma(beta[1L]) + beta[1L] * log(beta[2L]) - log1p(p) / 2 -
        (beta[1L] + p / 2) * log(beta[2L] + real_rest(blocks) / 2))
}

# Posterior mean of the blocks' means, and the standard deviation of values within a block that is the posterior mean of
# their precision.
real_mean <- function(blocks, values) values[1L] + values[2L] * blocks$links / (1 + blocks$pairs)

real_sd <- function(blocks, beta, values) {
  values[2L] * sqrt((beta[2L] + real_rest(blocks) / 2) / (beta[1L] + blocks$pairs / 2))
}

# Of one sample: estimate and posterior variance of the mean, infinite where the distribution has none.
real_moments <- function(links, pairs, squares, beta, values) {
  shape <- beta[1L] + pairs / 2
  rate <- beta[2L] + real_rest(list(links = links, pairs = pairs, squares = squares)) / 2
  mean <- values[1L] + values[2L] * links / (1 + pairs)
  cbind(mean, ifelse(shape > 1, values[2L]^2 * rate / ((shape - 1) * (1 + pairs)), Inf) + mean^2)
}

# The share of the variance that lies between the blocks.
real_explained <- function(fit) {
  values <- fit$run$graph$values
  z <- (fit$links - values[1L] * fit$pairs) / values[2L]
  seen <- fit$pairs > 0
  max(0, min(1, sum(z[seen]^2 / fit$pairs[seen]) / sum(fit$pairs)))
}

# The standardised values of a fit's graph as a matrix.
real_matrix <- function(graph) {
  out <- matrix(0, graph$links$n_row, graph$links$n_col)
  at <- list_pairs(graph$links, real = TRUE)
  out[cbind(at$from, at$to)] <- graph$links$weight * graph$values[3L]
  gone <- list_pairs(graph$missing)
  out[cbind(gone$from, gone$to)] <- NA
  out
}

# Colours of standardised values, blue below the centre and orange above; those beyond 2.5 are as deep as these. Missing
# ones are grey.
real_ramp <- c("#2c5f8a", "#f4f4f2", "#b3541e")

real_colours <- function(z) {
  ramp <- grDevices::colorRampPalette(real_ramp)(101L)
  out <- ramp[round(50 * pmax(-1, pmin(1, z / 2.5))) + 51]
  out[is.na(z)] <- "#bbbbbb"
  matrix(out, nrow(z))
}
