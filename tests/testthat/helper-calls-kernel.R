# Calls of kernel sums for helper-calls.R, and points for what stands on them (helper-calls-models.R). Sums are held
# against exact ones of the CPU: each must keep the error that was asked for.
calls_kernel <- function() {
  list(kernel_sum = list(share = 30, make = draw_kernel_sum))
}

call_kernels <- weft:::kernel_names
# Those that are positive definite in d dimensions.
definite_names <- function(d) Filter(function(kernel) weft:::kernel_kinds[[kernel]]$definite >= d, call_kernels)

# ---- points ----

# Shapes of a set of points, before they are scaled and moved.
unit_points <- function(n, d) {
  cells <- function(values, rows = n) matrix(values, rows, d)
  normal <- function(rows = n) cells(stats::rnorm(rows * d), rows)
  some_of <- function(rows) normal(rows)[sample(rows, n, TRUE), , drop = FALSE]
  shape <- pick("normal", "uniform", "lattice", "line", "same", "clusters", "outlier", "heavy", "copies",
                prob = c(4, 3, 2, 1, 1, 2, 1, 1, 1))
  x <- switch(shape, normal = , outlier = normal(), uniform = cells(stats::runif(n * d)),
    lattice = cells(sample(0:whole(1, 8), n * d, TRUE)) / pick(1, 10, 3), line = stats::runif(n) %o% stats::rnorm(d),
    same = rep(1, n) %o% stats::rnorm(d), clusters = normal() * log_uniform(-4, -1) + some_of(3),
    heavy = cells(stats::rcauchy(n * d)), copies = some_of(max(1, n %/% 5)))
  if (shape == "outlier" && n) x[1L, ] <- log_uniform(2, 8)
  x
}

# list(x, spread, offset): half of them as they are, else of tiny or huge spread, far from zero or both.
some_points <- function(n, d) {
  spread <- if (chance(0.5)) 1 else log_uniform(-10, 5)
  offset <- if (chance(0.5)) 0 else pick(1, -1) * log_uniform(-1, 5) * if (chance(0.3)) stats::rnorm(d) else 1
  x <- spread * unit_points(n, d) + rep(rep_len(offset, d), each = n)
  if (n && chance(0.1)) x[, whole(1, d)] <- x[1L]
  list(x = x, spread = spread, offset = max(abs(offset)))
}

# Queries among the points, beside them, on the border of their box and a bandwidth beyond it, and far away.
some_queries <- function(p, h) {
  x <- p$x
  n <- nrow(x)
  d <- ncol(x)
  nq <- some_size(60)
  cells <- function(values) matrix(as.double(values), nq, d)
  if (!n) return(cells(stats::rnorm(nq * d)))
  rows <- function() x[sample(n, nq, TRUE), , drop = FALSE]
  low <- rep(apply(x, 2L, min), each = nq)
  high <- rep(apply(x, 2L, max), each = nq)
  border <- function() {
    coin <- function() cells(sample(0:1, nq * d, TRUE)) == 1
    upper <- coin()
    edge <- ifelse(upper, high, low) + ifelse(upper, 1, -1) * sample(c(0, 0, h, h / 2), nq, TRUE)
    ifelse(coin(), edge, rows())
  }
  own <- cells(switch(pick("rows", "beside", "border", "far", "near zero", "across", prob = c(3, 3, 3, 2, 1, 2)),
    rows = rows(), beside = rows() + h * stats::rnorm(nq * d) * log_uniform(-3, 0.5), border = border(),
    far = rows() * log_uniform(0, 5), "near zero" = stats::runif(nq * d, -2, 2),
    across = low + stats::runif(nq * d, -0.5, 1.5) * (high - low)))
  if (chance(0.2)) rbind(own, x[sample(n, min(n, 5)), , drop = FALSE]) else own
}

# One number: beside the spread mostly, a distance that occurs, or of another size altogether.
some_bandwidth <- function(p) {
  n <- nrow(p$x)
  size <- p$spread * sqrt(ncol(p$x))
  distance <- function() {
    at <- sample(n, 2L)
    sqrt(sum((p$x[at[1L], ] - p$x[at[2L], ])^2))
  }
  h <- switch(pick("beside", "distance", "wide", "narrow", "offset", prob = c(6, 2, 2, 2, 1)),
    beside = size * log_uniform(-1, 0.7), distance = if (n > 1L) distance() else size, wide = size * log_uniform(1, 8),
    narrow = size * log_uniform(-6, -1), offset = max(p$offset, 1) * log_uniform(-1, 2))
  if (h > 0) h else size
}

some_covariance <- function(h, d) {
  a <- matrix(stats::rnorm(d * d), d)
  h^2 * (crossprod(a) / d + diag(d))
}

some_weights <- function(n) {
  column <- function(k) {
    w <- pick(stats::runif(n), stats::rexp(n), rep(1, n), stats::rnorm(n), sample(0:1, n, TRUE), numeric(n),
              prob = c(3, 2, 1, 3, 1, 0.3))
    if (chance(0.8)) w else w * log_uniform(-20, 20)
  }
  columns <- whole(1, 4)
  switch(pick("none", "vector", "matrix", prob = c(3, 3, 2)), none = NULL, vector = column(1),
         matrix = matrix(unlist(lapply(seq_len(columns), column)), n, columns))
}

# ---- calls ----

draw_kernel_sum <- function() {
  d <- pick(1, 2, 3, 4, 6, 10, whole(1, 24), prob = c(4, 4, 4, 2, 2, 2, 4))
  p <- some_points(if (chance(0.15)) whole(600, 3000) else some_size(200), d)
  h <- some_bandwidth(p)
  kernel <- sample(call_kernels, 1)
  self <- chance(0.3)
  args <- if (self) list(x = p$x[seq_len(min(nrow(p$x), 400)), , drop = FALSE])
          else list(x = some_queries(p, h), reference = p$x)
  points <- args$reference %||% args$x
  weights <- some_weights(nrow(points))
  shape <- if (d == 1L) "one" else pick("one", "each", "matrix", prob = c(15, 3, 2))
  args$bandwidth <- switch(shape, one = h, each = h * stats::runif(d, 0.5, 2), matrix = some_covariance(h, d))
  args <- c(args, list(kernel = kernel), if (!is.null(weights)) list(weights = weights),
            if (self) maybe(0.5, leave_one_out = TRUE))
  if (chance(0.12) && kernel != "uniform" && shape == "one") {
    args$precision <- pick("single", "tensor")
  } else {
    args <- c(args, list(method = pick("direct", "tree", "auto", prob = c(4, 6, 1))),
              maybe(0.4, rel_error = pick(0.5, 0.1, 0.01, 1e-4, 1e-8)))
    if (!any(weights < 0) && chance(0.12)) args$log <- TRUE
    else args <- c(args, maybe(0.1, abs_error = log_uniform(-6, 0)))
  }
  if (chance(0.1)) args$nodes <- if (kernel == "gaussian" && d <= 6L) pick("bounds", "series") else "bounds"
  if (chance(0.1)) {
    args$tree <- weft::kernel_tree(points, pick("kd", "ball", "vp", "rp"), leaf_size = pick(1, 5, 32), seed = 1)
  }
  kernel_call(args)
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
  if (!is.null(args$precision)) call$may_refuse <- "`precision` must be"
  call
}

# list(sum, absolute, total), or list(log), of the same call, directly, on the CPU: right to 1e-12 of `absolute`.
exact_sums <- function(args) {
  args[c("method", "rel_error", "abs_error", "precision", "tree", "nodes")] <- NULL
  direct <- function(...) {
    here <- list(method = "direct", backend = "cpu", threads = 1, ...)
    call_with(weft::kernel_sum, c(args[setdiff(names(args), names(here))], here))
  }
  if (isTRUE(args$log)) return(list(log = direct()))
  sum <- direct()
  absolute <- if (any(args$weights < 0)) direct(weights = abs(args$weights)) else sum
  list(sum = sum, absolute = absolute, total = sum(abs(args$weights %||% 1)))
}

sum_promise <- function(got, owed, args, which) {
  what <- paste("the", which, "sums")
  epsilon <- args$rel_error %||% 0
  if (!is.null(owed$log)) {
    ratio <- if (epsilon < 1) -log1p(-epsilon) else Inf
    return(within(got$sum, owed$log, ratio + 2e-10 * pmax(1, 1e-4 * abs(owed$log)), what))
  }
  # beyond a compact kernel's reach sums are 0 exactly; of the others an exponential below 1e-307 is 0, though a
  # Matern kernel's polynomial may raise it by up to 1e8
  least <- if (weft:::is_compact(args$kernel)) 0 else 1e-299 * max(1, owed$total)
  bound <- (epsilon + 2e-12) * owed$absolute + (args$abs_error %||% 0) + least + (got$bound %||% 0)
  within(got$sum, owed$sum, bound, what)
}
