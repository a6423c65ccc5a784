# Calls of the co-clustering room for helper-calls.R: both back ends draw the same labels.
calls_irm <- function() {
  list(irm = list(share = 9, make = draw_irm))
}

# A matrix of links or counts: planted blocks, empty, full, with gaps.
some_links <- function(n, p, counts, type) {
  row <- sample(3, n, TRUE)
  col <- if (type == "bipartite") sample(3, p, TRUE) else row
  rate <- matrix(stats::rbeta(9, 0.5, 1), 3)
  cells <- rate[cbind(rep(row, p), rep(col, each = n))]
  A <- matrix(if (counts) stats::rpois(n * p, 3 * cells) else stats::rbinom(n * p, 1, cells), n, p)
  if (chance(0.05)) A[] <- pick(0, 1)
  if (chance(0.1)) A[whole(1, n), ] <- 1
  if (counts && chance(0.1)) A[1L] <- pick(1000, 1e6)
  if (type == "undirected") A[lower.tri(A)] <- t(A)[lower.tri(A)]
  if (chance(0.2)) {
    A[stats::runif(n * p) < 0.1] <- NA
    if (chance(0.3)) A[, whole(1, p)] <- NA
    if (chance(0.3)) A[whole(1, n), ] <- NA
    if (type == "undirected") A[is.na(A) | is.na(t(A))] <- NA
  }
  A
}

# Real values: planted blocks, constant, far apart, with gaps.
some_values <- function(n, p) {
  means <- matrix(stats::rnorm(9, sd = 2), 3)[sample(3, n, TRUE), sample(3, p, TRUE)]
  A <- matrix(means, n, p) + stats::rnorm(n * p) * pick(0.01, 1)
  if (chance(0.05)) A[] <- pick(0, 3)
  if (chance(0.1)) A[1L] <- pick(1e6, -1e12)
  if (chance(0.1)) A <- A * pick(1e-300, 1e250) + pick(0, 1)
  if (chance(0.3)) A[-1L][stats::runif(n * p - 1) < 0.1] <- NA
  if (chance(0.1)) A[, whole(1, p)] <- pick(NA, 2)
  A
}

# The call with real values in place of the links.
of_values <- function(args) {
  args$x <- some_values(max(1, some_size(pick(12, 60))), max(1, some_size(pick(12, 60, 400, prob = c(3, 3, 1)))))
  args$family <- "gaussian"
  args[setdiff(names(args), c("type", "dim", "hold_out", "missing", "init"))]
}

# The call with nested groups, which need some observed pairs.
of_nested <- function(args) {
  if (is.matrix(args$x) && anyNA(args$x) && (length(args$x) < 40L || mean(is.na(args$x)) > 0.5)) {
    args$x[is.na(args$x)] <- 0
  }
  if (is.matrix(args$x) && length(args$x) < 40L) args[c("hold_out", "missing")] <- NULL
  args$degrees <- pick(TRUE, "compare", prob = c(4, 1))
  args[setdiff(names(args), c("alpha", "beta", "hyper"))]
}

# The matrix in up to four shards, by row if it is sparse, or as a list.
some_shards <- function(A) {
  ends <- sort(unique(c(sample(nrow(A), min(nrow(A), whole(0, 3))), nrow(A))))
  begins <- c(0, ends[-length(ends)])
  if (inherits(A, "sparseMatrix") && chance(0.5)) A <- methods::as(methods::as(A, "generalMatrix"), "RsparseMatrix")
  shard <- function(i) A[seq(begins[i] + 1, ends[i]), , drop = FALSE]
  if (inherits(A, "sparseMatrix") && chance(0.3)) lapply(seq_along(ends), shard) else irm_shards(shard, length(ends))
}

draw_irm <- function() {
  type <- pick("bipartite", "undirected", "directed", prob = c(4, 1, 1))
  counts <- chance(0.3)
  n <- max(1, some_size(pick(12, 60)))
  p <- if (type == "bipartite") max(1, some_size(pick(12, 60, 400, prob = c(3, 3, 1)))) else n
  A <- some_links(n, p, counts, type)
  form <- pick("dense", "sparse", "list", prob = c(3, 1, 1))
  args <- list(type = type)
  if (form == "sparse" && !anyNA(A)) A <- Matrix::Matrix(A, sparse = TRUE, doDiag = FALSE)
  if (form == "list" && type != "undirected" && !anyNA(A)) {
    at <- which(A != 0, arr.ind = TRUE)
    args$dim <- c(n, p)
    A <- if (counts) data.frame(at[, 1], at[, 2], A[at]) else data.frame(at[, 1], at[, 2])
  }
  if (type == "bipartite" && form != "list" && !anyNA(A) && chance(0.2)) A <- some_shards(A)
  sweeps <- whole(1, 8)
  args <- c(
    args, list(x = A, family = if (counts) "poisson" else "bernoulli", sweeps = sweeps, seed = whole(0, 1e6)),
    list(chains = whole(1, 3)), maybe(0.4, sampler = "collapsed"), maybe(0.5, split_merge = pick(FALSE, 1, 3)),
    maybe(0.5, thin = whole(1, 3)), maybe(0.4, max_clusters = pick(1, 2, 7, c(3, 140), 130, 20)),
    maybe(0.3, alpha = pick("sample", 0.01, 30, c(0.5, 100))), maybe(0.2, burn_in = whole(0, sweeps - 1)),
    maybe(0.3, beta = pick("sample", c(0.1, 0.1), c(1e-3, 1e-3), c(5, 1))), maybe(0.2, hold_out = pick(0.05, 0.3)),
    maybe(if (inherits(A, c("weft_irm_shards", "list"))) 0 else 0.1,
          missing = cbind(sample(n, 3L, TRUE), sample(p, 3L, TRUE))),
    maybe(0.1, hyper = list(alpha = c(2, 0.5), beta = c(1, 3))), if (type != "bipartite") maybe(0.4, self = TRUE)
  )
  if (chance(0.2)) args <- of_nested(args)
  if (chance(0.1) && !1 %in% args$max_clusters) {
    args$init <- list(row = sample(1:2, n, TRUE), col = sample(1:2, p, TRUE))
  }
  if (type == "bipartite" && is.null(args$degrees) && chance(0.3)) args <- of_values(args)
  take <- fields("row_cluster", "col_cluster", "log_posterior", "n_clusters", "consensus", "certainty",
                 "levels", "coassignment", "eta", "sd",
                 "links", "pairs", "nmi", "rhat", "alpha", "beta", "auc", "log_loss", "held_out", "burn_in")
  call <- drawn_call("irm", args, take)
  if (chance(0.8)) return(call)
  more <- whole(1, 4)
  call$text <- sprintf("update(%s, sweeps = %d)", call$text, more)
  call$run <- function(side) take(stats::update(call_on(side, "irm", args), sweeps = more,
                                                run = weft_run(threads = side$threads)))
  call
}
