# Gradients of kernel sums, and densities that are moved by their score. Arguments:
#   speed [scale]   density with its score of 10^6 points in 16 dimensions at 131,072 queries, on a device where there
#                   is one, beside kernel_sum() with a column for each dimension, and finite differences at some
#                   queries; scale 0.01: a hundredth of the points and of the queries
#   debiased [scale]   kde(bias = "score") of 10^6 points in 16 dimensions, then its density at 131,072 queries: the
#                   whole calls and their parts, pairs per second, the seconds that exponentials alone take on a device
#                   of 132 multiprocessors, and errors beside sums in double at some points
#   around [scale]   what kde(bias = "score") and predict() of the same points take beside their sums, on any machine:
#                   sums are replaced by a copy of the points, or by zeros; by the clock and of processors
#   models          kernel_regression() of 50,000 x 8 by cross-validation, gp_regression() of 5,000 x 8, on every back
#                   end
#   mise            mean integrated square errors over those of kde(), 1 to 64 dimensions, three densities
library(weft)
source("inst/bench/bench.R")
given <- commandArgs(TRUE)
if (!length(given)) given <- "mise"
machine_line()
set.seed(1)

space <- asNamespace("weft")
replace_by <- function(name, f) {
  unlockBinding(name, space)
  assign(name, f, space)
}

if (given[1] %in% c("speed", "debiased", "around")) {
  scale <- if (length(given) > 1) as.numeric(given[2]) else 1
  n <- round(1e6 * scale)
  d <- 16L
  x <- matrix(rnorm(n * d), n)
  q <- matrix(rnorm(round(131072 * scale) * d), ncol = d)
  h <- n^(-1 / (d + 8))
}

if (given[1] == "speed") {
  backend <- if (nrow(weft_devices())) "cuda" else "cpu"
  kernel_gradient(q[1:100, ], x[1:1000, ], bandwidth = h, run = backend)
  seconds <- vapply(1:3, function(i) system.time(g <<- kernel_gradient(q, x, bandwidth = h, run = backend))[[3]], 0)
  columns <- system.time(s <- kernel_sum(q, x, cbind(1, x), bandwidth = h, run = backend))[[3]]
  alone <- system.time(kernel_sum(q, x, bandwidth = h, run = backend))[[3]]
  by_columns <- (s[, -1] - q * s[, 1]) / h^2
  some <- 1:10
  e <- 1e-3 * h
  differences <- vapply(seq_len(d), function(j) {
    at <- function(by) kernel_sum(q[some, ] + rep(replace(numeric(d), j, by), each = 10), x, bandwidth = h,
                                  run = backend)
    as.vector(8 * (at(e) - at(-e)) - at(2 * e) + at(-2 * e)) / (12 * e)
  }, numeric(10))
  off <- function(a, b, of) max(abs(a - b) * h / of)
  cat(sprintf("%d points, %d queries, %d dimensions, %s: %.3f s (%.3f to %.3f); as columns %.3f s; sums alone %.3f s\n",
              n, nrow(q), d, backend, median(seconds), min(seconds), max(seconds), columns, alone))
  cat(sprintf("off, over the sum and the bandwidth: columns %.1e, finite differences %.1e\n",
              off(g$gradient, by_columns, g$sum), off(g$gradient[some, ], differences, g$sum[some])))
}

if (given[1] == "debiased") {
  devices <- weft_devices()
  backend <- if (nrow(devices)) "cuda" else "cpu"
  timed <- function(work) system.time(work)[["elapsed"]]
  invisible(predict(kde(x[seq_len(min(n, 20000)), ], h, bias = "score", run = backend), q[1:100, ]))
  run <- function(error) {
    parts <- c(kde = timed(fit <<- kde(x, h, bias = "score", rel_error = error, run = backend)),
               predict = timed(f <<- predict(fit, q, run = backend)))
    c(whole = sum(parts), parts)
  }
  pairs <- n * (n + as.double(nrow(q)))
  # 16 exponentials a cycle of a multiprocessor at 1.755 GHz
  bound <- pairs / (132 * 16 * 1.755e9)
  for (error in 1e-4) {
    seconds <- vapply(1:3, function(i) run(error), numeric(3))
    best <- seconds[, which.min(seconds[1, ])]
    some <- round(seq(1, n, length.out = 100))
    exact <- kernel_gradient(x[some, ], x, bandwidth = h, run = backend)
    moved <- (fit$data[some, ] - x[some, ]) * 2 / h # the score in bandwidths
    few <- round(seq(1, nrow(q), length.out = 100))
    density <- kernel_sum(q[few, ], fit$data, bandwidth = h, run = backend)
    cat(sprintf("%d points, %d queries, %s, rel_error %g: %.3f s (%s); kde() %.3f, predict() %.3f\n", n, nrow(q),
                backend, error, best[["whole"]], paste(sprintf("%.3f", sort(seconds[1, ])), collapse = ", "),
                best[["kde"]], best[["predict"]]))
    cat(sprintf("  %.3g pairs per second; exponentials alone %.3f s, %.2f of the whole calls\n",
                pairs / best[["whole"]], bound, bound / best[["whole"]]))
    cat(sprintf("  off at some points: score in bandwidths %.1e, density over itself %.1e\n",
                max(abs(moved - exact$gradient * h / exact$sum)),
                max(abs(f[few] / (density * exp(fit$log_scale)) - 1))))
  }
  spent <- c(tensor_sums = 0, points_range = 0, points_facts = 0, native_points = 0, kernel_gradient = 0,
             sums_in_double = 0)
  for (name in names(spent)) local({
    name <- name
    f <- get(name, space)
    replace_by(name, function(...) {
      started <- proc.time()[[3L]]
      on.exit(spent[[name]] <<- spent[[name]] + proc.time()[[3L]] - started)
      f(...)
    })
  })
  whole <- run(1e-4)[["whole"]]
  cat(sprintf("  seconds of %.3f: %s (the last two: queries that missed their bound)\n", whole,
              paste(sprintf("%s %.3f", names(spent), spent), collapse = ", ")))
  once <- function() {
    problem <- list(query = x, reference = x, self = TRUE, weights = NULL, kernel = "gaussian", rel_error = 1e-4,
                    abs_error = 0, bandwidth = weft:::check_bandwidth(h, d, 10),
                    control = weft:::run_control(backend, devices = weft:::devices_for(NULL, backend)))
    native <- list(columns = x)
    task <- weft:::sums_task("gaussian", h, native, native, matrix(1, 1, n), FALSE)
    out <- NULL
    seconds <- timed(out <- .Call(weft:::C_weft_kernel_gaussian, task, rep(1, d), FALSE, problem$control))
    cat(sprintf("native score of all points: %.3f s, %.3g pairs per second; bounds: median %.1e, %d above 2e-4\n",
                seconds, as.double(n)^2 / seconds, median(out$bounds[, 2]), sum(!(out$bounds[, 2] <= 2e-4))))
  }
  if (backend == "cuda") for (i in 1:2) once()
}

if (given[1] == "around") {
  replace_by("tensor_gradient", function(problem, ...) list(slopes = problem$query + 1, missed = integer()))
  replace_by("kernel_run", function(problem, ...) list(sum = numeric(nrow(problem$query))))
  fit <- NULL
  seconds <- vapply(1:7, function(i) {
    copy <- system.time(x + 1)
    fitted <- system.time(fit <<- kde(x, h, bias = "score", run = "cpu")) - copy
    predicted <- system.time(predict(fit, q, run = "cpu"))
    c(fitted[[3]], predicted[[3]], sum((fitted + predicted)[1:2]))
  }, numeric(3))
  seconds <- apply(seconds, 1, median)
  cat(sprintf("%d points, %d queries, without sums: kde() %.3f s, predict() %.3f s; both of processors %.3f s\n", n,
              nrow(q), seconds[1], seconds[2], seconds[3]))
}

if (given[1] == "models") {
  x <- matrix(rnorm(400000), 50000)
  y <- sin(2 * x[, 1]) + x[, 2] * x[, 3] + 0.5 * rnorm(50000)
  # a sum over all pairs is what each bandwidth took before
  w <- cbind(1, y - min(y))
  some <- seq_len(5000)
  for (backend in c("cpu", if (nrow(weft_devices())) c("cuda", "auto"))) {
    gp_regression(x[1:500, ], y[1:500], bandwidth = 2, run = backend) # opens a device
    one <- system.time(kernel_sum(x, weights = w, bandwidth = 0.4, rel_error = 1e-4, run = backend))[[3]]
    taken <- system.time(r <- kernel_regression(x, y, seed = 1, run = backend))
    cat(sprintf("kernel_regression() 50,000 x 8, %s: %.2f s, %.1f of processors, %.1f times a sum over all pairs; ",
                backend, taken[[3]], sum(taken[1:2]), taken[[3]] / one),
        sprintf("R squared %.3f\n", r$r_squared), sep = "")
    for (rank in list(NULL, 100)) {
      if (backend == "auto" && !is.null(rank)) next
      taken <- system.time(g <- gp_regression(x[some, ], y[some], bandwidth = 2, rank = rank, run = backend))
      cat(sprintf("gp_regression() 5,000 x 8, %s, rank %.0f: %.2f s, %.1f of processors, %.0f iterations\n", backend,
                  g$rank, taken[[3]], sum(taken[1:2]), g$iterations))
    }
  }
}

# Densities with points and values. Errors are means over points of the density itself: the mean of (g - f)^2 / f is the
# integral of (g - f)^2.
normal <- function(x, mean, sd) {
  exp(-rowSums((x - mean)^2) / (2 * sd^2) - ncol(x) * log(sd * sqrt(2 * pi)))
}
densities <- list(
  normal = list(draw = function(n, d) matrix(rnorm(n * d), n), value = function(x) normal(x, 0, 1)),
  `two peaks` = list(
    draw = function(n, d) matrix(rnorm(n * d, sd = 0.6), n) + sample(c(-1, 1), n, TRUE),
    value = function(x) (normal(x, -1, 0.6) + normal(x, 1, 0.6)) / 2
  ),
  `peak on a hill` = list(
    draw = function(n, d) matrix(rnorm(n * d), n) * ifelse(runif(n) < 0.5, 0.3, 1),
    value = function(x) (normal(x, 0, 0.3) + normal(x, 0, 1)) / 2
  )
)

# Best multiples of Scott's rule for either, so that what is compared is not the rule.
row_of <- function(name, d, n, times = 5, fresh = 2000) {
  one <- densities[[name]]
  errors <- replicate(times, {
    x <- one$draw(n, d)
    at <- one$draw(fresh, d)
    f <- one$value(at)
    error <- function(bias, multiple) {
      g <- predict(kde(x, multiple * apply(x, 2, sd) * n^(-1 / (d + 4)), bias = bias, rel_error = 1e-3), at)
      mean((g - f)^2 / f) / mean(f)
    }
    multiples <- exp(seq(log(0.3), log(2.5), length.out = 9))
    c(min(vapply(multiples, function(m) error("none", m), 0)), min(vapply(multiples, function(m) error("score", m), 0)),
      error("none", 1), error("score", 1))
  })
  mean_ratio <- function(a, b) exp(mean(log(errors[a, ] / errors[b, ])))
  data.frame(density = name, d = d, n = n, plain = signif(mean(errors[1, ]), 3), score = signif(mean(errors[2, ]), 3),
             ratio = round(mean_ratio(2, 1), 3), se = round(sd(log(errors[2, ] / errors[1, ])) / sqrt(times), 3),
             ratio_scott = round(mean_ratio(4, 3), 3))
}

if (given[1] == "mise") {
  cat("integrated square errors over the integral of the square; ratio: score over plain, both at their best multiple",
      "of Scott's rule (ratio_scott: at the rule itself); se: of the logarithm of the ratio\n")
  for (d in c(1, 2, 4, 8, 16, 32, 64)) {
    print(do.call(rbind, lapply(names(densities), row_of, d = d, n = 2000)), row.names = FALSE)
  }
}
