# Approximations that are asked for by name: Monte Carlo, random Fourier features, a reduced set of references. Columns
# of weights are not negative here (split_weights()). Each gives, for every query, an estimate and the bound of its
# error; queries whose bound misses the tolerance in the end are summed exactly.

kernel_approximate <- function(problem, method, split = split_weights(problem), ways = ways_of_one_rank) {
  refuse <- function(x) abort_input(sprintf("`method = \"%s\"` cannot be used for these sums.", method), x = x)
  if (problem$leave_one_out) refuse("Leave-one-out sums have no such approximation.")
  if (problem$rel_error == 0 &&
      problem$abs_error == 0) refuse("`rel_error` and `abs_error` are both 0, which asks for exact sums.")
  if (method != "nystrom" && problem$confidence == 1)
    refuse("Its bound is probabilistic: `confidence` must be below 1.")
  definite <- kernel_kinds[[problem$kernel]]$definite
  if (method != "montecarlo" && ncol(problem$reference) > definite) {
    refuse(sprintf("The %s kernel is not positive definite%s.", problem$kernel,
                   if (definite > 0) sprintf(" in more than %d dimensions", definite) else ""))
  }
  if (method == "features" && is_compact(problem$kernel)) {
    refuse(sprintf("No spectrum of the %s kernel is known.", problem$kernel))
  }
  task <- list(problem = problem, w = t(split$weights), tau = problem$abs_error / if (split$both) 2 else 1)
  out <- ways[[method]](task)
  missed <- ways$exact(task, out$missed)
  if (any(out$missed)) out$sum[out$missed, ] <- missed
  sums <- join_parts(out$sum, split, NCOL(problem$weights))
  list(sum = if (problem$log) log(sums) else sums, method = method,
       effort = effort_of(out$work, repeated = sum(out$missed)),
       reason = sprintf("requested; %s, %d of %d queries summed exactly", out$note, sum(out$missed),
                        length(out$missed)))
}

ways_of_one_rank <- list(montecarlo = function(task) sum_by_samples(task),
                         features = function(task) sum_by_features(task),
                         nystrom = function(task) sum_by_reduced_set(task),
                         exact = function(task, missed) if (any(missed)) exact_parts(task, missed))

# The nonnegative columns for some of the queries, summed directly: exact, and the same on every run.
exact_parts <- function(task, some, references = NULL, w = task$w) {
  p <- task$problem
  p$query <- p$query[some, , drop = FALSE]
  if (!is.null(references)) p$reference <- p$reference[references, , drop = FALSE]
  p$box <- NULL
  p["tree"] <- list(NULL)
  p["grown"] <- list(NULL)
  p$self <- FALSE
  p$log <- FALSE
  p$weights <- w
  kernel_direct(p, list(reason = ""))$sum
}

# ---- central limit theorem ----

# Adds batches of independent unbiased estimates until the interval of every query is within the tolerance, looking
# after 32, 64, 128 ... batches with the confidence shared among the looks. A query is only trusted when its batches
# vary by less than their mean: else too few terms carry the sum for the theorem to hold. `batch(b, open)`: estimates of
# the queries `open`.
sum_by_batches <- function(task, batch, most) {
  p <- task$problem
  nq <- nrow(p$query)
  m <- ncol(task$w)
  sums <- squares <- matrix(0, nq, m)
  estimate <- matrix(0, nq, m)
  open <- seq_len(nq)
  looks <- max(1, ceiling(log2(most / 32)) + 1)
  done <- 0
  while (length(open) && done < most) {
    goal <- min(most, max(32, 2 * done))
    for (b in seq.int(done + 1, goal)) {
      f <- batch(b, open)
      sums[open, ] <- sums[open, , drop = FALSE] + f
      squares[open, ] <- squares[open, , drop = FALSE] + f^2
    }
    done <- goal
    mean <- sums[open, , drop = FALSE] / done
    sd <- sqrt(pmax(squares[open, , drop = FALSE] / done - mean^2, 0) * done / (done - 1))
    half <- stats::qt(1 - (1 - p$confidence) / (2 * looks), done - 1) * sd / sqrt(done)
    good <- half <= p$rel_error * pmax(mean - half,
                                       0) + task$tau & (sd < mean | mean == 0 & task$w_zero(m, length(open)))
    ready <- rowSums(!good) == 0
    estimate[open[ready], ] <- mean[ready, ]
    open <- open[!ready]
  }
  missed <- logical(nq)
  missed[open] <- TRUE
  list(sum = estimate, missed = missed, batches = done)
}

# Columns whose weights are all zero need no samples.
zero_columns <- function(task) {
  zero <- colSums(task$w) == 0
  function(m, rows) matrix(zero, rows, m, byrow = TRUE)
}

# References drawn with probability proportional to their share of the columns' weights, 256 a batch.
sum_by_samples <- function(task, size = 256) {
  p <- task$problem
  n <- nrow(p$reference)
  total <- colSums(task$w)
  share <- rowSums(task$w / rep(ifelse(total > 0, total, 1), each = n))
  if (sum(share) == 0) return(list(sum = matrix(0, nrow(p$query), ncol(task$w)), missed = logical(nrow(p$query)),
                                   work = 0, note = "no weights"))
  share <- share / sum(share)
  reach <- cumsum(share)
  key <- kernel_key(p$seed)
  task$w_zero <- zero_columns(task)
  most <- max(32, floor(n / (2 * size)))
  out <- sum_by_batches(task, function(b, open) {
    drawn <- pmin(n, findInterval(draws("uniform", size, key = key, stream = 1, first = (b - 1) * size), reach) + 1)
    exact_parts(task, open, drawn, task$w[drawn, , drop = FALSE] / (share[drawn] * size))
  }, most)
  c(out, list(work = out$batches * size * nrow(p$query), note = sprintf("%d samples", out$batches * size)))
}

# k(x - y) = E cos(omega (x - y)) over the kernel's spectral distribution (Rahimi and Recht 2007), 64 frequencies a
# batch.
sum_by_features <- function(task, size = 64) {
  p <- task$problem
  d <- ncol(p$reference)
  key <- kernel_key(p$seed)
  task$w_zero <- zero_columns(task)
  q <- t(native_points(p$query, p)$x) / p$bandwidth$h
  x <- t(native_points(p$reference, p)$x) / p$bandwidth$h
  centre <- colMeans(x)
  q <- q - rep(centre, each = nrow(q))
  x <- x - rep(centre, each = nrow(x))
  pair_work <- kernel_work(p$kernel, d, ncol(task$w))[["pairs"]]
  most <- max(32, floor(nrow(q) * nrow(x) * pair_work / ((nrow(q) + nrow(x)) * size * (d + 80))))
  most <- min(most, 4096)
  out <- sum_by_batches(task, function(b, open) {
    omega <- spectral_draws(p$kernel, d, size, key, b)
    phase_x <- x %*% omega
    phase_q <- q[open, , drop = FALSE] %*% omega
    (cos(phase_q) %*% crossprod(cos(phase_x), task$w) + sin(phase_q) %*% crossprod(sin(phase_x), task$w)) / size
  }, most)
  c(out, list(work = 0, note = sprintf("%d frequencies", out$batches * size)))
}

# d x size frequencies: normal, over the square root of a chi-square for the Laplacian and Matern kernels (a
# multivariate t), times that of an exponential for the Cauchy kernel.
spectral_draws <- function(kernel, d, size, key, b) {
  normal <- function(count, stream) draws("normal", count * size, key = key, stream = stream,
                                          first = (b - 1) * count * size)
  omega <- matrix(normal(d, 2), d)
  if (kernel == "gaussian") return(omega)
  if (kernel == "cauchy") {
    return(omega * rep(sqrt(2 * draws("exponential", size, key = key, stream = 3, first = (b - 1) * size)), each = d))
  }
  df <- 2 * kernel_kinds[[kernel]]$nu
  omega * rep(1 / sqrt(colSums(matrix(normal(df, 3)^2, df)) / df), each = d)
}

# ---- reduced set ----

# With pivots P and the residual kernel R = k - k(., P) K_PP^-1 k(P, .), which is positive definite,
# |sum_i w_i R(q, i)| <= sqrt(R(q, q)) sum_i w_i sqrt(R(i, i)): a bound for every query.
sum_by_reduced_set <- function(task) {
  p <- task$problem
  nq <- nrow(p$query)
  x <- native_points(p$reference, p)
  q <- native_points(p$query, p)
  pilot <- unique(round(seq(1, nq, length.out = min(nq, 32))))
  target <- p$rel_error * stats::median(exact_parts(task, pilot)) + task$tau
  chol <- pivoted_cholesky(x, p, most = min(ncol(x$x), 600), function(residual) {
    max(colSums(task$w * sqrt(residual))) * sqrt(max(residual)) <= 0.5 * target
  })
  root <- chol$root[chol$pivots, , drop = FALSE]
  to_query <- forwardsolve(root, kernel_matrix(some_points(x, chol$pivots), q, p))
  estimate <- crossprod(to_query, crossprod(chol$root, task$w))
  residual <- pmax(1 - colSums(to_query^2), 0) + 1e-12
  bound <- error_of(sqrt(residual), colSums(task$w * sqrt(chol$residual + 1e-12)))
  missed <- rowSums(bound > p$rel_error * pmax(estimate - bound, 0) + task$tau) > 0
  list(sum = estimate, missed = missed, work = ncol(x$x) * ncol(root) + nq * ncol(root),
       note = sprintf("%d references", ncol(root)))
}

# root (n x r) with root root' ~ K, pivots of greatest residual first, until `enough(residual)`. Columns are made some
# at a time, from the matrix of those known before, which then grows by them: so it is copied once for all of them.
# x: as native_points() gives them.
pivoted_cholesky <- function(x, problem, most, enough, together = 32L) {
  root <- matrix(0, ncol(x$x), 0L)
  residual <- rep(1, ncol(x$x))
  pivots <- integer(0)
  repeat {
    fresh <- list()
    while (length(fresh) < together) {
      pivot <- which.max(residual)
      over <- length(pivots) == most || residual[pivot] < 1e-13 || (length(pivots) && enough(residual))
      if (over) break
      column <- kernel_matrix(x, some_points(x, pivot), problem)
      if (ncol(root)) column <- column - matrix_product(root, matrix(root[pivot, ]), problem$control)
      for (other in fresh) column <- column - other * other[pivot]
      column <- as.vector(column) / sqrt(residual[pivot])
      column[pivots] <- 0
      column[pivot] <- sqrt(residual[pivot])
      fresh[[length(fresh) + 1L]] <- column
      pivots <- c(pivots, pivot)
      residual <- pmax(residual - column^2, 0)
      residual[pivots] <- 0
    }
    root <- do.call(cbind, c(list(root), fresh))
    if (over) break
  }
  list(root = root, pivots = pivots, residual = residual)
}

# factor k(|a_i - b_j| / h) of points as native_points() gives them.
kernel_matrix <- function(a, b, problem, factor = 1) {
  .Call(C_weft_kernel_matrix, native_kernel(problem$kernel), problem$bandwidth$h, factor, a, b, problem$control)
}

# a b, or a' b where `transposed`, by products of our own, which take the call's threads. Those of a BLAS with threads
# stay awake after small products, and take processors from the sums between these.
matrix_product <- function(a, b, control, transposed = FALSE) .Call(C_weft_product, a, b, transposed, control)

some_points <- function(points, which) {
  list(x = points$x[, which, drop = FALSE], lo = if (!is.null(points$lo)) points$lo[, which, drop = FALSE])
}
