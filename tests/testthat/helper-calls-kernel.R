# Calls of kernel sums for helper-calls.R, and of what stands on them (helper-calls-models.R). Sums are held against exact ones of the CPU:
# each must keep the error that was asked for.
calls_kernel <- function() {
  list(kernel_sum = list(share = 30, make = draw_kernel_sum))
}

call_kernels <- c("gaussian", "epanechnikov", "uniform", "triangular", "laplacian", "biweight", "cosine", "cauchy", "matern12", "matern32", "matern52")
definite_names <- c("gaussian", "laplacian", "matern12", "matern32", "matern52", "cauchy")

# ---- points ----

# Shapes of a set of points, before they are scaled and moved.
unit_points <- function(n, d) {
  switch(pick("normal", "uniform", "lattice", "line", "same", "clusters", "outlier", "heavy", "copies", prob = c(4, 3, 2, 1, 1, 2, 1, 1, 1)),
    normal = matrix(stats::rnorm(n * d), n, d), uniform = matrix(stats::runif(n * d), n, d),
    lattice = matrix(sample(0:whole(1, 8), n * d, TRUE), n, d) / pick(1, 10, 3),
    line = stats::runif(n) %o% stats::rnorm(d), same = rep(1, n) %o% stats::rnorm(d),
    clusters = matrix(stats::rnorm(n * d), n, d) * log_uniform(-4, -1) + matrix(stats::rnorm(3 * d), 3)[sample(3, n, TRUE), , drop = FALSE],
    outlier = { x <- matrix(stats::rnorm(n * d), n, d); if (n) x[1L, ] <- log_uniform(2, 8); x },
    heavy = matrix(stats::rcauchy(n * d), n, d),
    copies = { m <- max(1, n %/% 5); matrix(stats::rnorm(m * d), m)[sample(m, n, TRUE), , drop = FALSE] })
}

# list(x, spread, offset): half of them as they are, else of tiny or huge spread, far from zero or both.
some_points <- function(n, d) {
  x <- matrix(unit_points(n, d), n, d)
  spread <- if (chance(0.5)) 1 else log_uniform(-10, 5)
  offset <- if (chance(0.5)) 0 else pick(1, -1) * log_uniform(-1, 5) * if (chance(0.3)) stats::rnorm(d) else 1
  list(x = spread * x + rep(rep_len(offset, d), each = n), spread = spread, offset = max(abs(offset)))
}

# Queries among the points, beside them, on the border of their box and a bandwidth beyond it, and far away.
some_queries <- function(p, h) {
  x <- p$x
  n <- nrow(x)
  d <- ncol(x)
  nq <- some_size(60)
  if (!n) return(matrix(stats::rnorm(nq * d), nq, d))
  rows <- function() x[sample(n, nq, TRUE), , drop = FALSE]
  low <- apply(x, 2L, min)
  high <- apply(x, 2L, max)
  border <- function() {
    side <- matrix(sample(c(TRUE, FALSE), nq * d, TRUE), nq, d)
    q <- rows()
    at <- matrix(sample(c(TRUE, FALSE), nq * d, TRUE), nq, d)
    edge <- ifelse(side, rep(high, each = nq), rep(low, each = nq)) + ifelse(side, 1, -1) * sample(c(0, 0, h, h / 2), nq, TRUE)
    ifelse(at, edge, q)
  }
  own <- switch(pick("rows", "beside", "border", "far", "near zero", "across", prob = c(3, 3, 3, 2, 1, 2)),
    rows = rows(), beside = rows() + h * stats::rnorm(nq * d) * log_uniform(-3, 0.5), border = border(),
    far = rows() * log_uniform(0, 5), "near zero" = matrix(stats::runif(nq * d, -2, 2), nq, d),
    across = rep(low, each = nq) + matrix(stats::runif(nq * d, -0.5, 1.5), nq, d) * rep(high - low, each = nq))
  own <- matrix(as.double(own), nq, d)
  if (chance(0.2)) rbind(own, x[sample(n, min(n, 5)), , drop = FALSE]) else own
}

# One number: beside the spread mostly, a distance that occurs, or of another size altogether.
some_bandwidth <- function(p) {
  n <- nrow(p$x)
  distance <- function() {
    at <- sample(n, 2L)
    sqrt(sum((p$x[at[1L], ] - p$x[at[2L], ])^2))
  }
  size <- p$spread * sqrt(ncol(p$x))
  h <- switch(pick("beside", "distance", "wide", "narrow", "offset", prob = c(6, 2, 2, 2, 1)),
    beside = size * log_uniform(-1, 0.7), distance = if (n > 1L) distance() else size, wide = size * log_uniform(1, 8),
    narrow = size * log_uniform(-6, -1), offset = max(p$offset, 1) * log_uniform(-1, 2))
  if (h > 0) h else size
}

some_weights <- function(n) {
  column <- function() pick(stats::runif(n), stats::rexp(n), rep(1, n), stats::rnorm(n), sample(0:1, n, TRUE), numeric(n), prob = c(3, 2, 1, 3, 1, 0.3)) *
    if (chance(0.8)) 1 else log_uniform(-20, 20)
  switch(pick("none", "vector", "matrix", prob = c(3, 3, 2)), none = NULL, vector = column(), matrix = do.call(cbind, lapply(seq_len(whole(1, 4)), function(k) column())))
}

# ---- calls ----

draw_kernel_sum <- function() {
  d <- pick(1, 2, 3, 4, 6, 10, whole(1, 24), prob = c(4, 4, 4, 2, 2, 2, 4))
  n <- if (chance(0.15)) whole(600, 3000) else some_size(200)
  p <- some_points(n, d)
  h <- some_bandwidth(p)
  args <- list(kernel = sample(call_kernels, 1))
  self <- chance(0.3)
  if (self) args$query <- p$x[seq_len(min(n, 400)), , drop = FALSE] else args[c("query", "reference")] <- list(some_queries(p, h), p$x)
  terms <- nrow(if (self) args$query else args$reference)
  weights <- some_weights(terms)
  if (!is.null(weights)) args$weights <- weights
  args$bandwidth <- if (d > 1L && chance(0.15)) h * stats::runif(d, 0.5, 2) else if (d > 1L && chance(0.1)) some_covariance(h, d) else h
  args$method <- pick("direct", "tree", "auto", prob = c(4, 6, 1))
  if (chance(0.12) && args$kernel != "uniform" && length(args$bandwidth) == 1L) args <- less_precise(args)
  else args <- c(args, maybe(0.4, rel_error = pick(0.5, 0.1, 0.01, 1e-4, 1e-8)), maybe(0.1, abs_error = log_uniform(-6, 0)))
  if (self) args <- c(args, maybe(0.5, leave_one_out = TRUE))
  if (is.null(args$precision) && (is.null(weights) || !any(weights < 0))) args <- c(args, maybe(0.12, log = TRUE))
  if (isTRUE(args$log)) args$abs_error <- NULL
  if (chance(0.1)) args$nodes <- if (args$kernel == "gaussian" && d <= 6L) pick("bounds", "series") else "bounds"
  if (chance(0.1)) args$tree <- weft::kernel_tree(if (self) args$query else args$reference, pick("kd", "ball", "vp", "rp"), leaf_size = pick(1, 5, 32), seed = 1)
  kernel_call(args)
}

some_covariance <- function(h, d) {
  a <- matrix(stats::rnorm(d * d), d)
  h^2 * (crossprod(a) / d + diag(d))
}

less_precise <- function(args) {
  args$method <- NULL
  args$precision <- pick("single", "tensor")
  args
}

kernel_call <- function(args) {
  owed <- NULL # of the exact sums, once for both results
  agree <- function(a, b) {
    if (is.null(owed)) owed <<- exact_sums(args)
    first_of(sum_promise(a, owed, args, "first"), sum_promise(b, owed, args, "second"))
  }
  take <- function(f) {
    bound <- attr(f, "error_bound")
    attributes(f) <- attributes(f)[c("dim", "dimnames")]
    list(sum = f, bound = bound)
  }
  timed <- identical(args$method %||% "auto", "auto") && is.null(args$precision) # goes by what was fast of late
  call <- drawn_call("kernel_sum", args, take, agree, exact = !timed)
  # how near single precision comes is known by blocks of queries, which are others on a device
  if (!is.null(args$precision)) call$may_refuse <- "Less than double precision cannot keep its bound"
  call
}

# list(sum, absolute, log) of the same call, directly, on the CPU: right to 1e-12 of `absolute`.
exact_sums <- function(args) {
  args[c("method", "rel_error", "abs_error", "precision", "tree", "nodes")] <- NULL
  direct <- function(...) do.call(weft::kernel_sum, utils::modifyList(c(args, list(method = "direct", backend = "cpu", threads = 1)), list(...)))
  if (isTRUE(args$log)) return(list(log = direct()))
  out <- list(sum = direct(), total = sum(abs(args$weights %||% 1)))
  if (any(args$weights < 0)) out$absolute <- direct(weights = abs(args$weights))
  out$absolute <- out$absolute %||% out$sum
  out
}

sum_promise <- function(got, owed, args, which) {
  what <- paste("the", which, "sums")
  epsilon <- args$rel_error %||% 0
  if (!is.null(owed$log)) {
    bound <- if (epsilon < 1) -log1p(-epsilon) else Inf
    return(within(got$sum, owed$log, bound + 2e-10 * pmax(1, 1e-4 * abs(owed$log)), what))
  }
  # beyond a compact kernel's reach sums are 0 exactly; of the others terms below 1e-307 do not count
  least <- if (weft:::is_compact(args$kernel)) 0 else 1e-300 * max(1, owed$total)
  bound <- epsilon * owed$absolute + (args$abs_error %||% 0) + 2e-12 * owed$absolute + least + if (is.null(got$bound)) 0 else got$bound
  within(got$sum, owed$sum, bound, what)
}
