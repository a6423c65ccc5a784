test_that("densities integrate to 1 and are the mean of kernels", {
  withr::local_seed(1)
  x <- matrix(rnorm(24), ncol = 2)
  at <- seq(-9, 9, length.out = 361)
  grid <- as.matrix(expand.grid(at, at))
  for (kernel in setdiff(all_kernels, "cauchy")) {
    one <- predict(kde(x[, 1], 1.2, kernel, rel_error = 0), matrix(seq(-40, 40, length.out = 80001)))
    expect_equal(sum(one) * 0.001, 1, tolerance = 2e-4, label = kernel)
    two <- predict(kde(x / 3, c(1, 1.5), kernel, rel_error = 0), grid)
    # tails beyond the grid, edges of the uniform kernel
    mass <- if (kernel %in% c("laplacian", "matern12")) 0.01 else 0.004
    expect_equal(sum(two) * 0.05^2, 1, tolerance = mass, label = kernel)
  }
  h <- matrix(c(0.5, 0.2, 0.2, 0.3), 2)
  d <- kde(x, h, rel_error = 0)
  q <- grid[seq(1, nrow(grid), by = 997), ]
  want <- rowMeans(apply(x, 1, function(p) exp(-mahalanobis(q, p, h) / 2))) / (2 * pi * sqrt(det(h)))
  expect_equal(predict(d, q), want, tolerance = 1e-11)
  expect_equal(predict(d, q, log = TRUE), log(want), tolerance = 1e-10)
  expect_true(all(is.finite(predict(d, q + 1e4, log = TRUE))))
  cauchy <- predict(kde(0, 2, "cauchy"), c(0, 2))
  expect_equal(cauchy, stats::dcauchy(c(0, 2), scale = 2), tolerance = 1e-4)
  expect_error(kde(x, 1, "cauchy"), class = "weft_error_input")
})

test_that("rules for bandwidths are their formulas", {
  x <- as.matrix(faithful)
  s <- apply(x, 2, stats::sd)
  expect_equal(kde(x, "scott")$bandwidth, unname(s * 272^(-1 / 6)))
  expect_equal(kde(x, "silverman")$bandwidth, unname(s * 272^(-1 / 6)))
  expect_equal(kde(x[, 1], "silverman")$bandwidth, unname(s[1] * 272^(-0.2) * (4 / 3)^0.2))
  # canonical bandwidths of Marron and Nolan: 1.7188 for Epanechnikov, 0.7764 for the Gaussian
  expect_equal(kde(x[, 1], "scott", "epanechnikov")$bandwidth, unname(s[1] * 272^(-0.2) * 1.7188 / 0.7764),
               tolerance = 1e-4)
  withr::local_seed(2)
  y <- c(rnorm(300), rnorm(200, 4, 0.5))
  criterion <- function(t) stats::optimize(function(h) {
    d <- outer(y, y, "-")
    mean(dnorm(d, sd = h * sqrt(2))) - 2 * (sum(dnorm(d, sd = h)) - length(y) * dnorm(0, sd = h)) /
      (length(y) * (length(y) - 1))
  }, c(0.05, 1.5), tol = 1e-6)$minimum
  expect_equal(kde(y, "lscv")$bandwidth, criterion(), tolerance = 0.01)
  likelihood <- stats::optimize(function(h) {
    k <- dnorm(outer(y, y, "-"), sd = h)
    diag(k) <- 0
    mean(log(rowSums(k) / (length(y) - 1)))
  }, c(0.05, 1.5), maximum = TRUE, tol = 1e-6)$maximum
  expect_equal(kde(y, "lcv")$bandwidth, likelihood, tolerance = 0.02)
  b <- kernel_bandwidth(y, c(0.1, 0.2, 0.4), "lcv")
  k <- dnorm(outer(y, y, "-"), sd = 0.2)
  diag(k) <- 0
  expect_equal(b$score[2], mean(log(rowSums(k) / (length(y) - 1))), tolerance = 1e-4)
  expect_identical(names(b), c("bandwidth", "score"))
  sampled <- kernel_bandwidth(y, c(0.1, 0.2, 0.4), "lcv", queries = 250, seed = 1)
  expect_equal(sampled$score, b$score, tolerance = 0.05)
  expect_error(kde(rep(1, 5), "scott"), class = "weft_error_input", regexp = "constant")
  skip_if_not_installed("ks")
  expect_equal(kde(y, "plugin")$bandwidth, ks::hpi(y), tolerance = 0.01)
  expect_equal(kde(y, "lscv")$bandwidth, ks::hlscv(y), tolerance = 0.03)
  withr::local_seed(3)
  expect_equal(kde(rcauchy(2000), "plugin")$bandwidth, 0.2, tolerance = 0.5)
})

test_that("densities are saved, printed and drawn", {
  d <- kde(faithful, "silverman", "epanechnikov")
  file <- withr::local_tempfile()
  saveRDS(d, file)
  expect_identical(predict(readRDS(file)), predict(d))
  expect_equal(predict(readRDS(file), faithful), predict(d), tolerance = 1e-4)
  expect_identical(predict(d, rev(faithful)), predict(d, faithful))
  expect_output(print(d), "272 points in 2 dimensions, epanechnikov")
  expect_named(summary(d), c("n", "d", "kernel", "bandwidth", "rule", "log_likelihood", "densities"))
  expect_identical(nrow(glance(d)), 1L)
  expect_error(predict(d, 1:3), class = "weft_error_input", regexp = "2 columns")
  old <- d
  attr(old, "format") <- 0L
  expect_error(predict(old), class = "weft_error_input", regexp = "Compute it again")
  grDevices::pdf(NULL)
  withr::defer(grDevices::dev.off())
  expect_named(plot(d, n = 20), c("x", "y", "z"))
  expect_named(plot(d, style = "perspective", n = 20), c("x", "y", "z"))
  expect_named(plot(kde(faithful$waiting)), c("x", "y"))
  expect_error(plot(kde(iris[1:4])), class = "weft_error_input", regexp = "one or two")
})

test_that("cross-validation of a regression may take its mean over some of the points", {
  withr::local_seed(41)
  x <- matrix(rnorm(1200), ncol = 4)
  y <- sin(2 * x[, 1]) + x[, 2] + rnorm(300, sd = 0.3)
  w <- rep(c(0, 1, 2), 100)
  sums <- list(kernel = "gaussian", tree = "kd", rel_error = 1e-8, seed = NULL)
  some <- which(w > 0)[sample_rows(200, 60, 0)]
  k <- t(w * kernel_value_matrix(x, x, 0.4, "gaussian"))
  diag(k) <- 0
  error <- (y - drop(k %*% y / rowSums(k)))[some]
  expect_equal(cv_score(x, y, w, sums, as_run("cpu"), 60)(0.4), sum(w[some] * error^2) / sum(w[some]), tolerance = 1e-6)
  expect_identical(walk_down(2L, 6L, function(i) c(9, 8, 7, 6, 5, 7)[i]), list(at = 5L, least = 5))
  expect_identical(walk_down(1L, 3L, function(i) c(1, 1, 2)[i]), list(at = 1L, least = 1))
  # many bandwidths in one pass, in floats: the narrowest leave less than 1e-290 of every weight but the nearest
  run <- use_backend(as_run("cpu"))
  t <- c(0.003, 0.02, 0.4, 3)
  for (kernel in c("gaussian", "matern72", "cauchy", "cosine")) {
    sums$kernel <- kernel
    by_hand <- vapply(t, function(h) {
      log_k <- t(log(w) + log(kernel_value_matrix(x, x, h, kernel)))
      if (kernel == "gaussian") log_k <- t(log(w) - as.matrix(dist(x))^2 / (2 * h^2))
      diag(log_k) <- -Inf
      top <- apply(log_k, 1, max)
      known <- top > log(1e-290 * sum(w))
      k <- exp(log_k - ifelse(top > -Inf, top, 0))
      centre <- sum(w * y) / sum(w)
      fit <- ifelse(known, drop(k %*% y) / rowSums(k), centre)
      sum(w[some] * (y - fit)[some]^2) / sum(w[some])
    }, 0)
    expect_equal(cv_scores(x, y, w, sums, run, 60)(t), by_hand, tolerance = 1e-6)
    expect_equal(cv_scores(x, 1e90 * y, 1e-9 * w, sums, run, 60)(t), 1e180 * by_hand,
                 tolerance = 1e-5)
  }
  two <- cv_scores(x[2:3, ], y[2:3], w[2:3], sums, run, 60)(0.5) # out of each other's reach
  expect_equal(two, sum(w[2:3] * (y[2:3] - sum(w[2:3] * y[2:3]) / 3)^2) / 3)
  expect_equal(least_of_many(function(t) log(t / 3)^2 + 1, 2^(-3:3), 2L), 3, tolerance = 1e-3)
  expect_equal(least_of_many(function(t) -t, 2^(-3:3), 5L), 8, tolerance = 1e-3)
  all <- kernel_regression(x, y, weights = w)
  expect_equal(all$bandwidth, kernel_regression(x, y, weights = w, rel_error = 1e-5)$bandwidth, tolerance = 1e-2)
  with_internal("cv_rows", c(grid = 60, search = 120), {
    one <- kernel_regression(x, y, weights = w, run = weft_run("cpu", threads = 1))
    two <- kernel_regression(x, y, weights = w, run = weft_run("cpu", threads = 2))
    expect_identical(one$bandwidth, two$bandwidth)
    expect_equal(one$bandwidth, all$bandwidth, tolerance = 0.3)
    expect_lt(abs(one$r_squared - all$r_squared), 0.01)
  })
})

test_that("regression is the ratio of sums, with bands of the right width", {
  withr::local_seed(4)
  x <- matrix(runif(600), ncol = 2)
  y <- 100 + sin(5 * x[, 1]) + rnorm(300, sd = 0.2)
  for (kernel in c("gaussian", "epanechnikov", "matern32")) {
    r <- kernel_regression(x, y, 0.2, kernel = kernel, rel_error = 0)
    k <- kernel_value_matrix(x, x, 0.2, kernel)
    expect_equal(predict(r), drop(k %*% y / rowSums(k)), tolerance = 1e-10)
    diag(k) <- 0
    expect_equal(predict(r, leave_one_out = TRUE), drop(k %*% y / rowSums(k)), tolerance = 1e-10)
    expect_equal(residuals(r), y - fitted(r))
  }
  expect_identical(predict(kernel_regression(x, y, 0.2, kernel = "uniform"), matrix(9, 1, 2)), NA_real_)
  # exp(-660) still has all its digits, exp(-720) has not
  for (backend in test_backends()) {
    far <- kernel_regression(c(0, 1), c(2, 3), 1, kernel = "laplacian", rel_error = 0, run = backend)
    expect_equal(predict(far, c(661, 721)), c(2 + 1 / (1 + exp(-1)), NA))
  }
  best <- kernel_regression(x[, 1], y)
  expect_gt(best$r_squared, 0.8)
  expect_lt(abs(best$bandwidth - best$scores$multiple[which.min(best$scores$score)] * sd(x[, 1]) * 300^-0.2), 0.05)
  # at the centre of a wide plateau the bands cover at their level
  covered <- replicate(200, {
    u <- runif(200)
    v <- rnorm(200)
    b <- predict(kernel_regression(u, v, 0.15), 0.5, interval = "confidence", level = 0.9)
    b[, "lwr"] < 0 & b[, "upr"] > 0
  })
  expect_gt(mean(covered), 0.82)
  expect_lt(mean(covered), 0.97)
  expect_error(kernel_regression(x, y[-1]), class = "weft_error_input")
  grDevices::pdf(NULL)
  withr::defer(grDevices::dev.off())
  expect_silent(plot(best))
  expect_output(print(best), "cv")
})

test_that("kernel principal components are those of the dense matrix", {
  x <- as.matrix(iris[1:4])
  centre <- diag(150) - 1 / 150
  for (kernel in list("gaussian", "laplacian", kernel_polynomial(degree = 2, offset = 1))) {
    k <- if (is.list(kernel)) (tcrossprod(x) + 1)^2 else kernel_value_matrix(x, x, 2, kernel)
    e <- eigen(centre %*% k %*% centre, symmetric = TRUE)
    p <- kernel_pca(x, 3, kernel, 2, seed = 1)
    expect_equal(p$values, e$values[1:3], tolerance = 1e-8)
    expect_equal(unname(abs(p$scores)), abs(e$vectors[, 1:3] %*% diag(sqrt(e$values[1:3]))), tolerance = 1e-6)
    expect_equal(predict(p, x), p$scores, tolerance = 1e-6)
  }
  few <- kernel_pca(matrix(c(1, 2, 3)), 2, seed = 1)
  expect_length(few$values, 2)
  skip_if_not_installed("kernlab")
  peer <- kernlab::kpca(x, kernel = "rbfdot", kpar = list(sigma = 1 / 8), features = 3)
  ours <- kernel_pca(x, 3, bandwidth = 2, seed = 1)
  expect_equal(unname(abs(ours$scores)), unname(abs(kernlab::rotated(peer))) / sqrt(150), tolerance = 1e-6)
})

test_that("kernel principal components are right where the matrix is almost one of blocks", {
  centre <- diag(46) - 1 / 46
  for (seed in 25:35) { # points close together and alone: the search exhausts what it can reach
    withr::local_seed(seed)
    x <- matrix(rnorm(92) * 10^runif(92, -4, 0), 46)
    k <- kernel_value_matrix(x, x, 0.004, "gaussian")
    true <- eigen(centre %*% k %*% centre, symmetric = TRUE)$values[1:3]
    expect_equal(kernel_pca(x, 3, bandwidth = 0.004, seed = 1)$values, true, tolerance = 1e-6)
  }
})

test_that("Gaussian processes agree with a dense solve", {
  withr::local_seed(5)
  x <- matrix(runif(400), ncol = 2)
  y <- sin(6 * x[, 1]) + rnorm(200, sd = 0.1)
  q <- matrix(runif(20), ncol = 2)
  for (kernel in definite_kernels) {
    k <- 2 * kernel_value_matrix(x, x, 0.3, kernel) + diag(0.01, 200)
    kq <- 2 * kernel_value_matrix(q, x, 0.3, kernel)
    g <- gp_regression(x, y, kernel, 0.3, noise = 0.01, variance = 2)
    p <- predict(g, q, se = TRUE)
    expect_equal(p$fit, drop(kq %*% solve(k, y)), tolerance = 1e-5)
    expect_equal(p$se^2, 2 - rowSums(t(solve(k, t(kq))) * kq), tolerance = 1e-4)
  }
  dense <- gp_regression(x, y, bandwidth = 0.3, noise = 0.01, rank = 200)
  for (backend in c("cpu", "cuda")) { # 219 sums of 20 ms on a device took longer than the factor
    expect_equal(vapply(c(150, 5000, 30000), function(n) gp_rank(n, 8, "gaussian", backend), 0), c(150, 5000, 100))
  }
  set.seed(2)
  line <- stats::rnorm(3000)
  smooth <- gp_regression(line, sin(line), noise = 0.01) # whose matrix has a low rank, which is seen
  expect_identical(smooth$rank, 100)
  expect_lte(smooth$iterations, 4)
  whole <- gp_regression(line, sin(line), noise = 0.01, rank = 3000)
  expect_equal(predict(smooth, c(-1, 0.5)), predict(whole, c(-1, 0.5)), tolerance = 1e-5)
  expect_identical(gp_regression(line, sin(line), bandwidth = 0.001, noise = 0.01)$rank, 3000L)
  expect_lte(dense$iterations, 2) # the whole matrix's factor leaves nothing to do
  expect_equal(dense$alpha, gp_regression(x, y, bandwidth = 0.3, noise = 0.01, rank = 20)$alpha, tolerance = 1e-4)
  each <- gp_regression(x, y, bandwidth = c(0.3, 0.6), noise = 0.1, rank = 0)
  k <- kernel_value_matrix(sweep(x, 2, c(0.3, 0.6), "/"), sweep(x, 2, c(0.3, 0.6), "/"), 1, "gaussian")
  expect_equal(each$alpha, drop(solve(k + diag(0.1, 200), y)), tolerance = 1e-5)
  expect_warning(gp_regression(x, y, noise = 1e-8, rank = 0, max_iterations = 2), "stopped after 2")
  expect_error(gp_regression(x, y, "uniform"), class = "weft_error_input")
  expect_output(print(g), "iterations")
})

test_that("predictions have the names of their rows, and of none there are none", {
  withr::local_seed(7)
  x <- matrix(rnorm(40), ncol = 2, dimnames = list(sprintf("r%d", 1:20), c("a", "b")))
  q <- x[3:5, ]
  none <- x[0, ]
  rownames(none) <- NULL
  models <- list(kde(x, 1), kernel_regression(x, x[, 1], 1), gp_regression(x, x[, 1]), kernel_pca(x, 2))
  rows <- function(f) if (is.matrix(f)) rownames(f) else names(f)
  for (m in models) {
    expect_identical(rows(predict(m)), rownames(x))
    expect_identical(rows(predict(m, q)), rownames(q))
    expect_null(rows(predict(m, unname(q))))
    expect_true(is.double(predict(m, none)))
    expect_identical(NROW(predict(m, none)), 0L)
  }
  expect_identical(names(residuals(models[[2]])), rownames(x))
  expect_identical(rownames(predict(models[[2]], q, interval = "confidence")), rownames(q))
  expect_identical(dim(predict(models[[4]], none)), c(0L, 2L))
  expect_identical(names(predict(models[[3]], q, se = TRUE)$se), rownames(q))
})

test_that("what models are asked for wrongly is a classed error", {
  x <- matrix(c(1, 2, 4, 1, 3, 0), 3)
  input <- function(code, regexp) expect_error(code, class = "weft_error_input", regexp = regexp)
  for (f in list(kde, kernel_bandwidth, kernel_pca, kernel_tree, kernel_regression, gp_regression)) {
    input(f(), "`x` must be given")
  }
  input(kernel_regression(x), "`y` must be given")
  input(gp_regression(x), "`y` must be given")
  input(svm_predict(), "`model` must be given")
  input(svm_predict(1), "`new` must be given")
  input(gp_regression(x, 1:3, noise = Inf), "`noise`")
  input(gp_regression(x, 1:3, variance = Inf), "`variance`")
  input(gp_regression(x, c(1, NA, 3)), "the first is element 2")
  input(kernel_regression(x, c(1, 2, 1e200)), "the first is element 3")
  for (wrong in list("a", 0, Inf, NULL, 1e12)) input(kernel_pca(x, max_iterations = wrong), "`max_iterations`")
  input(kernel_pca(x, kernel = kernel_polynomial(scale = Sys.Date())), "`scale`")
  input(kernel_bandwidth(x, 1:2, shape = diag(2)), "`shape`")
  input(kernel_bandwidth(x, c(1e-200, 1)), "1e-100")
  input(plot(kde(x, 1), points = NA), "`points`")
  input(plot(kernel_tree(x[0, ])), "must have points")
  expect_warning(gp_regression(x, 1:3, noise = 1e-9, rank = 0, max_iterations = 1), class = "weft_warning_convergence")
})

test_that("decision values are those of plain sums, with every kernel of a support vector machine", {
  x <- withr::with_seed(3, matrix(stats::rnorm(60), 20))
  new <- x[c(2, 9), ] + 0.1
  model <- structure(class = "svm", list(
    sparse = FALSE, type = 0, gamma = 0.3, coef0 = 0.7, degree = 3, scaled = rep(FALSE, 3), nclasses = 2, SV = x,
    nSV = c(8, 12), rho = 0.4, coefs = matrix(seq(-1, 1, length.out = 20)), labels = 1:2, levels = c("a", "b")
  ))
  squares <- outer(seq_len(2), seq_len(20), Vectorize(function(i, j) sum((new[i, ] - x[j, ])^2)))
  kernels <- list(tcrossprod(new, x), (0.3 * tcrossprod(new, x) + 0.7)^3, exp(-0.3 * squares))
  for (k in 0:2) {
    model$kernel <- k
    expect_equal(unname(drop(svm_predict(model, new, decision = TRUE))), drop(kernels[[k + 1]] %*% model$coefs) - 0.4,
                 tolerance = 1e-12)
  }
})

test_that("a support vector machine whose parts do not fit is refused", {
  withr::local_seed(8)
  model <- structure(class = "svm", list(
    sparse = FALSE, type = 0, kernel = 2, gamma = 0.3, scaled = c(TRUE, TRUE), SV = matrix(rnorm(32), 16),
    nclasses = 3, nSV = c(5, 7, 4), coefs = matrix(rnorm(32), 16), rho = rnorm(3), labels = c(2, 3, 1),
    levels = letters[1:3],
    x.scale = list(`scaled:center` = c(0.1, 0.2), `scaled:scale` = c(1, 2))
  ))
  new <- matrix(rnorm(6), 3, dimnames = list(c("p", "q", "r"), NULL))
  expect_identical(names(svm_predict(model, new)), rownames(new))
  expect_identical(dim(svm_predict(model, new, decision = TRUE)), c(3L, 3L))
  for (part in names(model)) {
    for (value in list(NULL, NA, -1, "a", list(), identity, model[[part]][-1], NaN)) {
      copy <- model
      copy[part] <- list(value)
      expect_error(svm_predict(copy, new), class = "weft_error_input", label = paste(part, deparse(value)[1]))
    }
  }
})

test_that("predictions of support vector machines are the packages' own", {
  withr::local_seed(6)
  two <- droplevels(iris[51:150, ])
  if (requireNamespace("kernlab", quietly = TRUE)) {
    for (kernel in c("rbfdot", "laplacedot", "polydot", "vanilladot")) {
      utils::capture.output(m <- kernlab::ksvm(Species ~ ., iris, kernel = kernel))
      expect_identical(as.character(svm_predict(m, iris[1:4])), as.character(kernlab::predict(m, iris)), label = kernel)
      utils::capture.output(m <- kernlab::ksvm(Species ~ ., two, kernel = kernel, type = "nu-svc"))
      expect_identical(as.character(svm_predict(m, two)), as.character(kernlab::predict(m, two)), label = kernel)
    }
    m <- kernlab::ksvm(Sepal.Length ~ Sepal.Width + Petal.Length, iris)
    expect_equal(svm_predict(m, iris), drop(kernlab::predict(m, iris)), tolerance = 1e-10)
  }
  skip_if_not_installed("e1071")
  for (kernel in c("radial", "polynomial", "linear")) {
    m <- e1071::svm(Species ~ ., iris, kernel = kernel)
    expect_identical(svm_predict(m, iris[1:4]), unname(stats::predict(m, iris)), label = kernel)
    m <- e1071::svm(Sepal.Length ~ Sepal.Width + Petal.Length, iris, kernel = kernel, type = "nu-regression")
    expect_equal(svm_predict(m, iris), unname(stats::predict(m, iris)), tolerance = 1e-10)
  }
  expect_error(svm_predict(stats::lm(dist ~ speed, cars), cars), class = "weft_error_input")
  expect_error(svm_predict(e1071::svm(Species ~ ., iris, kernel = "sigmoid"), iris[1:4]), class = "weft_error_input",
               regexp = "sigmoid")
})

test_that("a matrix is factored panel by panel, or says that it has no root", {
  withr::local_seed(8)
  control <- weft:::run_control("cpu", 2L)
  native <- function(x) list(x = t(x), lo = NULL)
  x <- matrix(rnorm(2 * 390), ncol = 2)
  k <- 3 * kernel_value_matrix(x, x, 0.7, "matern32") + diag(0.2, 390)
  b <- matrix(rnorm(2 * 390), 390)
  for (width in c(1L, 16L, 35L, 100L, 256L, 400L)) {
    solve_with <- weft:::gp_factor(native(x), "matern32", 0.7, 3, 0.2, control, width)
    expect_equal(solve_with(b), solve(k, b), tolerance = 1e-10, label = width)
    expect_equal(solve_with(b[, 1, drop = FALSE]), solve(k, b[, 1, drop = FALSE]), tolerance = 1e-10, label = width)
  }
  expect_null(weft:::gp_factor(native(matrix(0, 3, 1)), "gaussian", 1, 1e20, 1e-12, control))
  tied <- gp_regression(matrix(0, 300, 1), rep(1, 300), noise = 1e-3, variance = 1e13, tolerance = 1e-3)
  expect_true(all(is.finite(tied$alpha)))
})

test_that("a kernel matrix has the entries of direct sums, at the edge of a support too", {
  withr::local_seed(9)
  for (kernel in weft:::kernel_names) for (d in c(1, 3)) {
    x <- matrix(sample(-3:3, 70 * d, TRUE) / 7, 70)
    q <- matrix(sample(-3:3, 37 * d, TRUE) / 7, 37)
    for (h in list(3 / 7, 0.5, rep_len(c(1 / 7, 2 / 7, 1), d))) {
      problem <- weft:::kernel_problem(q, x, NULL, kernel, h)
      k <- weft:::kernel_matrix(weft:::native_points(q, problem), weft:::native_points(x, problem), problem, 2)
      for (j in c(1, 70)) {
        expect_equal(k[, j], 2 * kernel_sum(q, x[j, , drop = FALSE], kernel = kernel, bandwidth = h), tolerance = 1e-13,
                     label = paste(kernel, d))
      }
    }
  }
})

test_that("a matrix that differs from its transpose in one entry is not symmetric", {
  withr::local_seed(11)
  for (p in c(1, 31, 32, 33, 100)) {
    x <- crossprod(matrix(rnorm(3 * p), 3))
    symmetric <- function(x) .Call(weft:::C_weft_symmetric, x, weft:::run_control("cpu", 1L))
    expect_true(symmetric(x))
    for (at in unique(sample.int(p^2, 20, TRUE))) {
      y <- x
      y[at] <- y[at] + 1e-9
      expect_identical(symmetric(y), row(x)[at] == col(x)[at])
    }
  }
  expect_false(symmetric(matrix(NaN, 2, 2)))
})

test_that("products of matrices are those of R, on any number of threads", {
  withr::local_seed(10)
  a <- matrix(rnorm(301 * 70), 301)
  b <- matrix(rnorm(70 * 23), 70)
  for (threads in 1:2) {
    control <- weft:::run_control("cpu", threads)
    expect_equal(weft:::matrix_product(a, b, control), a %*% b, tolerance = 1e-13)
    expect_equal(weft:::matrix_product(a, a[, 1:5], control, transposed = TRUE), crossprod(a, a[, 1:5]),
                 tolerance = 1e-13)
    expect_equal(weft:::matrix_product(a[, 0], matrix(0, 0, 3), control), matrix(0, 301, 3))
  }
})

test_that("models find the columns of new data by name, and refuse others", {
  x <- as.matrix(faithful)
  models <- list(kde(faithful), kernel_regression(faithful, faithful$waiting, bandwidth = 5),
                 gp_regression(faithful[1:40, ], faithful$waiting[1:40], bandwidth = 5),
                 kernel_pca(faithful, 2, bandwidth = 9))
  for (model in models) {
    want <- predict(model, unname(x[1:3, ]))
    for (new in list(faithful[1:3, 2:1], x[1:3, 2:1], cbind(faithful[1:3, 2:1], other = "text"))) {
      expect_equal(unname(as.matrix(predict(model, new))), unname(as.matrix(want)))
    }
    expect_error(predict(model, data.frame(waiting = 54, eruption = 2)), "Missing: `eruptions`",
                 class = "weft_error_input")
    grid <- expand.grid(x[1:3, 1], x[1:3, 2])[c(1, 5, 9), ]
    expect_equal(unname(as.matrix(predict(model, grid))), unname(as.matrix(want)))
  }
})

test_that("the best bandwidth of a grid is one that kde() takes", {
  x <- faithful$waiting
  b <- kernel_bandwidth(x)
  expect_equal(attr(b, "best"), kde(x, "lscv")$bandwidth, tolerance = 0.2)
  expect_equal(b$score, kernel_bandwidth(x, b$bandwidth)$score, tolerance = 1e-3)
  two <- kernel_bandwidth(faithful)
  expect_named(two, c("multiple", "score"))
  expect_equal(attr(two, "best"), attr(two, "shape") * two$multiple[which.min(two$score)])
})

test_that("a criterion without a best bandwidth says so", {
  for (rule in c("lscv", "lcv")) {
    expect_warning(kde(mtcars$cyl, rule), "narrowest", class = "weft_warning_bandwidth")
    expect_no_warning(kde(faithful$eruptions, rule))
  }
})

test_that("models are drawn and summarised", {
  grDevices::pdf(NULL)
  withr::defer(grDevices::dev.off())
  gp <- gp_regression(cars["speed"], cars$dist, bandwidth = 5)
  scores <- kernel_pca(iris[1:4], 2, bandwidth = 2)
  for (model in list(gp, scores)) {
    expect_identical(plot(model, main = "A title"), model)
    expect_identical(summary(model), glance(model))
  }
  one <- kernel_pca(iris[1:4], 1, bandwidth = 2)
  picture <- weft:::kernel_pca_picture(one)
  expect_identical(picture$data, data.frame(x = 1:150, y = one$scores[, 1]))
  expect_identical(picture$ylab, "first component")
  expect_identical(plot(one), one)
  expect_error(plot(gp_regression(faithful, faithful$waiting, bandwidth = 5)), class = "weft_error_input")
  expect_identical(summary(kernel_regression(cars$speed, cars$dist, bandwidth = 3))$n, 50L)
})
