# Missing values: NIPALS and GS against the converged answers of the R package nipals on its own example (genotype by
# environment yields), and EM against a plain reference.

yields <- cbind(
  c(NA, NA, 65, 50, 60, 65, 75), c(67, 71, 76, 80, 82, 89, 95), c(90, 93, 95, 102, 97, 106, 117),
  c(98, 102, 105, 130, 135, 137, 133), c(120, 129, 134, 138, 151, 153, 155)
)

test_that("nipals and gs agree with the nipals package", {
  for (backend in test_backends()) {
  reference <- list(
    gs = list(d = c(4.87624140746092927, 2.03521691947673933, 1.07864283712731734),
              first = c(0.313127448323703983, 0.500860119473568677, 0.468738961180911684),
              second = c(0.797017306962853000, 0.017954302365353249, 0.147024513391473155)),
    nipals = list(d = c(4.87624140746092927, 2.04424485091241559, 1.07282294134948319),
                  first = c(0.313127448323703983, 0.500860119473568677, 0.468738961180911684),
                  second = c(0.805296316743950857, 0.020445687086369152, 0.146686026840919553))
  )
  for (method in names(reference)) {
    fit <- pca(yields, 3, method = method, scale = TRUE, seed = 1, run = backend, control = list(tolerance = 1e-13))
    known <- reference[[method]]
    expect_equal(fit$d, known$d, tolerance = 1e-8)
    expect_equal(abs(unname(fit$rotation[1:3, 1])), known$first, tolerance = 1e-8)
    expect_equal(abs(unname(fit$rotation[1:3, 2])), known$second, tolerance = 1e-8)
    expect_true(all(fit$converged))
  }
  expect_lt(max(pca(yields, 3, method = "gs", scale = TRUE, seed = 1, run = backend)$orthogonality), 1e-13)
  }
})

plain_em <- function(x, k, times = 3000) {
  gaps <- is.na(x)
  x[gaps] <- colMeans(x, na.rm = TRUE)[col(x)[gaps]]
  for (i in seq_len(times)) {
    center <- colMeans(x)
    s <- svd(sweep(x, 2, center), k, k)
    fit <- sweep(s$u %*% (s$d[seq_len(k)] * t(s$v)), 2, center, "+")
    change <- max(abs(fit[gaps] - x[gaps]))
    x[gaps] <- fit[gaps]
    if (change < 1e-12) break
  }
  list(fit = fit, steps = i)
}

test_that("EM is the least-squares fit, and recovers what NIPALS does not", {
  set.seed(21)
  truth <- matrix(rnorm(80 * 3), 80) %*% matrix(rnorm(3 * 30), 3)
  x <- truth + 0.1 * matrix(rnorm(80 * 30), 80)
  gaps <- sample(length(x), 240)
  x[gaps] <- NA
  fit <- pca(x, 3, na = "em", seed = 1, control = list(tolerance = 1e-11))
  expect_equal(unname(fitted(fit)), plain_em(x, 3)$fit, tolerance = 1e-8)
  error <- function(fit) sqrt(mean((fitted(fit) - truth)[gaps]^2))
  nipals <- pca(x, 3, method = "nipals", seed = 1)
  expect_lt(error(fit), 0.1)
  expect_lt(error(fit), error(nipals))
  expect_identical(fit$method, "em")
})

test_that("accelerated EM ends where plain steps end, after a fraction of them", {
  set.seed(26)
  sets <- list(arrests = scale(datasets::USArrests), swiss = scale(datasets::swiss), economy = scale(datasets::longley),
               noise = matrix(rnorm(40 * 25), 40), wide = outer(rnorm(20), rnorm(150)) + matrix(rnorm(20 * 150), 20))
  for (name in names(sets)) {
    x <- unname(sets[[name]])
    x[sample(length(x), length(x) / 10)] <- NA
    fit <- pca(x, 2, na = "em", seed = 1, control = list(tolerance = 1e-10))
    plain <- plain_em(x, 2, 20000)
    expect_true(all(fit$converged), info = name)
    expect_equal(unname(fitted(fit)), plain$fit, tolerance = 1e-7, info = name)
    expect_lt(fit$iterations[1], plain$steps / 2)
  }
})

test_that("EM with weights and standard deviations stands still under one more step", {
  set.seed(27)
  x <- outer(rnorm(50), rnorm(8)) * 3 + matrix(rnorm(400), 50) %*% diag(10^seq(-0.3, 0.3, length.out = 8))
  x[sample(400, 40)] <- NA
  w <- runif(50, 0.5, 3)
  for (scale in c(TRUE, FALSE)) {
    fit <- pca(x, 2, na = "em", weights = w, scale = scale, seed = 1, control = list(tolerance = 1e-10))
    filled <- replace(x, is.na(x), fitted(fit)[is.na(x)])
    center <- colSums(w * filled) / sum(w)
    divide <- if (scale) sqrt(colSums(w * sweep(filled, 2, center)^2) / (sum(w) - 1)) else rep(1, 8)
    s <- svd(sqrt(w) * sweep(sweep(filled, 2, center), 2, divide, "/"), 2, 2)
    again <- sweep(sweep(s$u %*% (s$d[1:2] * t(s$v)) / sqrt(w), 2, divide, "*"), 2, center, "+")
    change <- sweep(abs(again - unname(fitted(fit))), 2, divide, "/")
    expect_lt(max(change[is.na(x)]) / (if (scale) 1 else max(abs(x), na.rm = TRUE)), 1e-7)
    expect_equal(fit$d, s$d[1:2], tolerance = 1e-7)
  }
})

test_that("gaps in a row of weight 0 change nothing but its own scores", {
  set.seed(28)
  x <- outer(rnorm(30), rnorm(6)) + 0.3 * matrix(rnorm(180), 30)
  x[cbind(c(3, 3, 9, 14), c(2, 5, 1, 4))] <- NA
  w <- replace(rep(1, 30), 3, 0)
  fit <- pca(x, 2, na = "em", weights = w, seed = 1, control = list(tolerance = 1e-10))
  without <- pca(x[-3, ], 2, na = "em", weights = w[-3], seed = 1, control = list(tolerance = 1e-10))
  expect_equal(fit$rotation, without$rotation, tolerance = 1e-8)
  expect_equal(unname(fit$x[-3, ]), unname(without$x), tolerance = 1e-8)
  seen <- !is.na(x[3, ]) # the least squares of what is observed
  expect_equal(unname(fit$x[3, ]), unname(qr.coef(qr(fit$rotation[seen, ]), (x[3, ] - fit$center)[seen])),
               tolerance = 1e-7)
})

# A component that is nearly one gap alone fits the known values of its row and column the better the longer it is.
test_that("fits that grow without end are told, and end the search", {
  set.seed(30)
  x <- matrix(rnorm(2000 * 100), 2000) %*% diag(0.97^(1:100))
  x[sample(length(x), 20000)] <- NA
  rownames(x) <- paste0("r", 1:2000)
  for (backend in test_backends()) {
    expect_warning(fit <- pca(x, 5, na = "em", seed = 1, run = backend), "grows without end",
                   class = "weft_warning_undetermined")
    expect_false(any(fit$converged))
    expect_identical(fit$residual, rep(Inf, 5))
    expect_lt(fit$iterations[1], 3000)
    expect_output(print(fit), "Did not converge")
  }
  heavy <- outer(c(30, rnorm(29)), rnorm(12)) + 0.01 * rnorm(360) # far from other rows, as its known values are
  heavy[cbind(c(1, 1, 5, 9), c(2, 7, 3, 2))] <- NA
  expect_no_warning(fit <- pca(heavy, 1, na = "em", seed = 1))
  expect_true(all(fit$converged))
})

test_that("fewer known values than a row, a column or the whole needs are told", {
  set.seed(31)
  x <- matrix(rnorm(30 * 6), 30, dimnames = list(paste0("r", 1:30), letters[1:6]))
  quietly <- list(max_iterations = 20)
  told <- function(x, k, ...) {
    out <- NULL
    withCallingHandlers(pca(x, k, na = "em", seed = 1, control = quietly, ...), weft_warning = function(w) {
      if (inherits(w, "weft_warning_undetermined")) out <<- conditionMessage(w)
      invokeRestart("muffleWarning")
    })
    out
  }
  row <- replace(x, cbind(4, 1:5), NA)
  expect_match(told(row, 2), "fewer than 2 in row `r4`")
  expect_null(told(row, 1))
  column <- replace(x, cbind(1:28, 3), NA)
  expect_match(told(column, 2), "fewer than 3 in column `c`")
  expect_null(told(column, 2, center = FALSE))
  expect_match(told(replace(x, cbind(1:30, rep(1:6, 5)), NA), 5), "150 for 156 free numbers")
  weighted <- rep(c(1, 0), c(20, 10))
  late <- replace(x, cbind(1:19, 3), NA) # rows of weight 0 do not count
  expect_match(told(late, 2, weights = weighted), "fewer than 3 in column `c`")
  expect_null(told(late, 2))
})

test_that("EM ends near where its fits end, however slow it is", {
  set.seed(32)
  for (times in 1:6) { # two components in noise that is nearly as long
    x <- matrix(rnorm(25 * 8), 25) %*% diag(0.7^(1:8))
    x[sample(200, 12)] <- NA
    fit <- suppressWarnings(pca(x, 2, na = "em", seed = 1))
    if (!all(fit$converged)) next
    further <- suppressWarnings(pca(x, 2, na = "em", seed = 1, control = list(tolerance = 1e-11)))
    expect_lt(max(abs(fitted(fit) - fitted(further))), 2e-5 * sd(x, na.rm = TRUE))
  }
})

# Noise of 70 columns: two vectors that are nearly as long as others take so many readings that a Gram matrix follows.
noise_with_gaps <- function(n = 300, p = 70) {
  x <- matrix(rnorm(n * p), n) %*% diag(10^seq(-1, 1, length.out = p)[sample(p)]) + 100
  x[, -1] <- x[, -1] + rnorm(n)
  x[sample(n * p, n * p / 25)] <- NA
  x
}

test_that("EM on a Gram matrix that follows the gaps ends where plain steps end", {
  set.seed(29)
  x <- sweep(noise_with_gaps(), 2, 10^seq(-1, 1, length.out = 70), "/")
  for (backend in test_backends()) {
    fit <- pca(x, 4, na = "em", seed = 1, run = backend, control = list(tolerance = 1e-10))
    plain <- plain_em(x, 4, 20000)
    expect_true(all(fit$converged))
    expect_equal(unname(fitted(fit)), plain$fit, tolerance = 1e-7)
    expect_lt(fit$passes / fit$iterations[1], 5)
  }
  w <- rep(1:2, 150)
  for (scale in c(TRUE, FALSE)) {
    one <- pca(x, 4, na = "em", seed = 1, weights = w, scale = scale, run = weft_run("cpu", threads = 1),
               control = list(tolerance = 1e-10))
    two <- pca(x, 4, na = "em", seed = 1, weights = w, scale = scale, run = weft_run("cpu", threads = 2),
               control = list(tolerance = 1e-10))
    twice <- pca(x[rep(1:300, w), ], 4, na = "em", seed = 1, scale = scale, control = list(tolerance = 1e-10))
    expect_identical(one$d, two$d)
    expect_identical(one$rotation, two$rotation)
    expect_equal(one$d, twice$d, tolerance = 1e-8)
    expect_equal(one$rotation, twice$rotation, tolerance = 1e-6)
    expect_equal(one$center, twice$center, tolerance = 1e-8)
  }
})

test_that("complete data give the same with and without the machinery of gaps", {
  set.seed(22)
  x <- matrix(rnorm(40 * 12), 40) %*% diag(0.7^(0:11))
  gap <- x
  gap[1, 1] <- NA
  complete <- pca(x, 3, method = "gs", seed = 1)
  near <- pca(gap, 3, method = "gs", seed = 1)
  expect_equal(near$d, complete$d, tolerance = 0.05)
  expect_identical(pca(x, 3, na = "em", seed = 1)$d, pca(x, 3, seed = 1, control = list(tolerance = 1e-8))$d)
})

test_that("columns that are all missing, or nearly, are said", {
  x <- matrix(rnorm(12), 4)
  x[, 2] <- NA
  expect_error(pca(x, 1, na = "em"), "`2`", class = "weft_error_input")
  x[1, 2] <- 3
  expect_no_error(suppressWarnings(pca(x, 1, na = "em", control = list(max_iterations = 5))))
  expect_no_error(suppressWarnings(pca(x, 1, method = "nipals")))
})

test_that("missing values on the device, uploaded or resident", {
  skip_if_no_cuda()
  set.seed(23)
  x <- matrix(rnorm(300 * 4), 300) %*% matrix(rnorm(4 * 90), 4) + 0.1 * matrix(rnorm(300 * 90), 300) + 5
  x[sample(length(x), 2700)] <- NA
  handle <- weft_upload(x)
  for (method in c("nipals", "gs")) {
    cpu <- pca(x, 4, method = method, scale = TRUE, seed = 1, run = "cpu", control = list(tolerance = 1e-11))
    for (data in list(x, handle)) {
      fit <- pca(data, 4, method = method, scale = TRUE, seed = 1, run = "cuda", control = list(tolerance = 1e-11))
      expect_equal(fit$d, cpu$d, tolerance = 1e-9)
      expect_equal(unname(fit$rotation), unname(cpu$rotation), tolerance = 1e-8)
      expect_equal(unname(fit$x), unname(cpu$x), tolerance = 1e-8)
      expect_identical(fit$backend, "cuda")
    }
    expect_identical(pca(x, 2, method = method, seed = 1, run = "cuda")$x,
                     pca(x, 2, method = method, seed = 1, run = "cuda")$x)
  }
  weft_free(handle)
  em <- pca(x, 3, na = "em", seed = 1, run = "cuda", control = list(tolerance = 1e-10))
  expect_equal(em$d, pca(x, 3, na = "em", seed = 1, run = "cpu", control = list(tolerance = 1e-10))$d, tolerance = 1e-8)
  old <- options(weft.device_memory = 2e5)
  on.exit(options(old))
  expect_error(pca(x, 2, method = "nipals", run = "cuda"), class = "weft_error_memory")
})

test_that("large enough for several threads, they change nothing", {
  set.seed(24)
  x <- matrix(rnorm(2500 * 900), 2500)
  x[sample(length(x), 1e5)] <- NA
  one <- suppressWarnings(pca(x, 1, method = "nipals", seed = 1, run = weft_run(threads = 1),
                              control = list(max_iterations = 5)))
  expect_identical(suppressWarnings(pca(x, 1, method = "nipals", seed = 1, run = weft_run(threads = 2),
                                        control = list(max_iterations = 5)))$x, one$x)
  em <- function(threads) suppressWarnings(pca(x, 2, na = "em", seed = 1, run = weft_run(threads = threads),
                                               control = list(max_iterations = 8)))
  expect_identical(em(2)[c("x", "rotation")], em(1)[c("x", "rotation")])
})

test_that("rows that are all missing are named, whatever would fill them", {
  set.seed(25)
  x <- matrix(rnorm(12 * 5), 12, dimnames = list(paste0("r", 1:12), NULL))
  x[7, ] <- NA
  x[9, ] <- NaN
  for (backend in test_backends()) {
    for (method in c("nipals", "gs")) {
      expect_error(pca(x, 2, method = method, run = backend), "All values of `r7`, `r9`", class = "weft_error_input")
    }
    expect_error(pca(x, 2, na = "em", run = backend), "All values of `r7`, `r9`", class = "weft_error_input")
    expect_error(pca(unname(x), 2, na = "em", weights = rep(c(1, 0), 6), run = backend), "`7`, `9`",
                 class = "weft_error_input")
  }
  x[c(7, 9), 3] <- 0.5 # one value is enough
  for (method in c("nipals", "gs")) expect_no_error(suppressWarnings(pca(x, 2, method = method, seed = 1)))
  expect_no_error(suppressWarnings(pca(x, 2, na = "em", seed = 1, control = list(max_iterations = 5))))
  skip_if_no_cuda()
  x[7, ] <- NA
  for (precision in c("double", "single")) {
    handle <- weft_upload(x, precision)
    expect_error(pca(handle, 2, method = "nipals"), "All values of `r7`", class = "weft_error_input")
    weft_free(handle)
  }
})

test_that("missing values in what is no ordinary matrix are an error", {
  skip_if_not_installed("Matrix")
  m <- Matrix::rsparsematrix(50, 10, 0.3)
  m[5, 5] <- NA
  for (method in c("auto", "nipals")) {
    expect_error(pca(m, k = 2, method = method), "`x` is sparse", class = "weft_error_input")
    expect_error(pca(list(m, m), k = 2, method = method, na = "em"), "`x` is sparse", class = "weft_error_input")
  }
})
