# The principal components' rows of the table in test-twins.R. Both back ends take the same course; sums differ in
# order.
twins_pca <- function() {
  dense <- function(method, ...) {
    list(tolerance = 1e-9, work = function(backend) {
      x <- matrix(stats::rnorm(sample(60:150, 1) * 70), ncol = 70) %*% diag(0.9^(1:70))
      fit <- suppressWarnings(call_with(pca, list(x, 3, method = method, seed = 1, run = backend, ...)))
      list(fit$sdev, abs(fit$rotation))
    })
  }
  gaps <- function(method) {
    list(tolerance = 1e-8, work = function(backend) {
      x <- matrix(stats::rnorm(120 * 40), 120) %*% diag(0.8^(1:40))
      x[sample(length(x), 300)] <- NA
      fit <- suppressWarnings(pca(x, 2, method = method, seed = 1, run = backend, control = list(tolerance = 1e-11)))
      list(fit$sdev, fit$rotation)
    })
  }
  list(
    "pca, krylov" = dense("krylov"), "pca, gram" = dense("gram"), "pca, gs" = dense("gs", tolerance = 1e-11),
    "pca, nipals" = dense("nipals", tolerance = 1e-11),
    "pca, gram, by the device's library" = list(tolerance = 1e-9, work = function(backend) {
      x <- matrix(stats::rnorm(450 * 400), 450) %*% diag(0.99^(1:400)) # beyond WEFT_PCA_HOST_EIGEN
      fit <- suppressWarnings(pca(x, 3, method = "gram", seed = 1, run = backend))
      list(fit$sdev, abs(fit$rotation))
    }),
    "pca, gram, filtered" = list(tolerance = 1e-9, work = function(backend) {
      x <- matrix(stats::rnorm(600 * 530), 600)
      fit <- suppressWarnings(pca(x, 3, method = "gram", seed = 1, run = backend))
      list(fit$sdev, abs(fit$rotation))
    }),
    "pca, gram, loose" = list(tolerance = 1e-4, work = function(backend) {
      x <- matrix(stats::rnorm(sample(590:610, 1) * 530), ncol = 530)
      if (stats::runif(1) < 0.5) x <- t(x) # both Gram matrices
      x[1] <- 1e3
      fit <- suppressWarnings(pca(x, 3, method = "gram", seed = 1, run = backend, control = list(tolerance = 1e-4)))
      list(fit$sdev, fit$converged)
    }),
    "pca, EM" = list(tolerance = 1e-7, work = function(backend) {
      x <- matrix(stats::rnorm(400 * 70), 400) + 10 * stats::rnorm(400) # noise: on a Gram matrix from some step on
      x[sample(length(x), 900)] <- NA
      fit <- function(x, ...) suppressWarnings(pca(x, 2, na = "em", seed = 1, run = backend, ...,
                                                   control = list(tolerance = 1e-10, max_iterations = 300)))
      lapply(list(fit(x), fit(x, scale = TRUE, weights = rep_len(0:3, 400)), fit(t(x[1:60, ]))), fitted)
    }),
    "pca, nipals with gaps" = gaps("nipals"), "pca, gs with gaps" = gaps("gs"),
    "pca, values seen in a row" = list(tolerance = 0, work = function(backend) {
      x <- matrix(stats::rnorm(sample(1:700, 1) * 90), ncol = 90)
      x[sample(length(x), length(x) %/% 3)] <- NA
      x[1, ] <- NaN
      seen <- function(x) .Call(weft:::C_weft_pca_seen, weft:::native_source(weft:::pca_source(x)),
                                weft:::run_control(backend))
      if (backend == "cpu") return(list(seen(x), seen(x)))
      lapply(c("double", "single"), function(precision) seen(weft_upload(x, precision)))
    }),
    "pca, genotypes" = list(tolerance = 1e-8, work = function(backend) genotype_fits(backend, c(4, 20, 40, 60))),
    "pca, genotypes that pass" = list(tolerance = 1e-8, work = function(backend) {
      withr::local_envvar(WEFT_PCA_HELD = sample(c(70, 101, 256), 1))
      genotype_fits(backend, c(3, 41))
    }),
    "pca, genotypes of few people" = list(tolerance = 1e-8, work = function(backend) {
      few <- write_genotypes(tempfile(), planted_genotypes(sample(5:20, 1), 6000))
      many <- write_genotypes(tempfile(), planted_genotypes(5003, sample(5:20, 1)))
      on.exit(unlink(paste0(c(few, many), rep(c(".bed", ".bim", ".fam"), each = 2))))
      lapply(c(few, many), function(stem) {
        fit <- suppressWarnings(pca(plink_file(stem), 2, "gs", na = "mean", scale = "allele", seed = 1, run = backend,
                                    control = list(block_size = 8, max_iterations = 9)))
        list(fit$sdev, fit$rotation)
      })
    }),
    "pca, sparse blocks" = list(tolerance = 1e-9, work = function(backend) {
      s <- Matrix::rsparsematrix(150, 90, 0.1)
      suppressWarnings(pca(list(s[1:70, ], s[71:150, ]), 2, seed = 1, run = backend))$sdev
    }),
    "pca, sparse blocks that stay sparse" = list(tolerance = 1e-9, work = function(backend) {
      s <- Matrix::rsparsematrix(sample(6000:6100, 1), 2000, 0.01) # above WEFT_PCA_SPREAD_OUT
      fit <- function(...) suppressWarnings(pca(list(s[1:2900, ], s[2901:nrow(s), ]), 2, seed = 1, run = backend, ...))
      list(fit()$sdev, fit(method = "gram")$sdev, fit(method = "krylov", scale = TRUE)$sdev)
    }),
    "pca, a sparse matrix of any shape" = list(tolerance = 1e-9, work = function(backend) {
      size <- sample(list(c(200, 150, 0.1), c(130, 900, 0.1), c(3300, 3100, 0.07), c(2100, 5000, 0.02),
                          c(4000, 2600, 0.002)), 1)[[1]] # small ones become dense; pieces, and gathered products
      s <- Matrix::rsparsematrix(size[1], size[2], size[3], rand.x = stats::rexp)
      s[, sample(ncol(s), 30)] <- 0
      s[sample(nrow(s), 30), ] <- 0
      s <- s %*% Matrix::Diagonal(x = 1 / seq_len(ncol(s)))
      weights <- if (stats::runif(1) < 0.5) stats::runif(nrow(s)) + 0.1
      fit <- suppressWarnings(pca(Matrix::drop0(s), 3, sample(c("auto", "krylov"), 1), weights = weights, seed = 1,
                                  run = backend))
      list(fit$sdev, abs(fit$rotation), fit$residual < 1e-11)
    }),
    "pca, products with sparse blocks" = list(tolerance = 1e-11, work = function(backend) {
      few <- sample(150:400, 1) # columns or rows, whose sums several warps share
      size <- sample(list(c(6100, 1800), c(few, ceiling(1.1e7 / few)), c(ceiling(1.1e7 / few), few)), 1)[[1]]
      s <- Matrix::rsparsematrix(size[1], size[2], sample(c(1e-5, 1e-3, 0.04, 0.06), 1))
      parts <- sort(sample(nrow(s), 2))
      second <- seq(parts[1] + 1, length.out = diff(parts))
      blocks <- list(s[seq_len(parts[1]), , drop = FALSE], s[second, , drop = FALSE])
      form <- list(center = stats::runif(ncol(s)), factor = stats::runif(ncol(s)) + 0.1, missing = NULL, single = FALSE,
                   own = FALSE)
      form["row"] <- list(if (stats::runif(1) < 0.5) stats::runif(parts[2]))
      source <- weft:::native_source(weft:::pca_source(blocks))
      times <- function(b, transposed) {
        v <- matrix(stats::rnorm(b * if (transposed) parts[2] else ncol(s)), ncol = b)
        .Call(weft:::C_weft_pca_times, source, form, v, transposed, weft:::run_control(backend))
      }
      lapply(c(1, 2, 3, 17, 32, 40), function(b) list(times(b, FALSE), times(b, TRUE)))
    }),
    "pca, blocks of a store" = list(tolerance = 1e-9, work = function(backend) {
      n <- sample(900:1300, 1)
      s <- Matrix::rsparsematrix(n, 150, 0.2, rand.x = function(m) stats::rgeom(m, 0.3) + 1)
      s[, 7] <- 5
      x <- weft_import(s, tempfile(fileext = ".weft"), run = weft_run(memory = 2^20))
      on.exit(unlink(unclass(x)$path))
      fit <- function(...) suppressWarnings(call_with(pca, list(x, 3, seed = 1, run = backend, ...,
                                                                control = list(block_size = 2^16))))
      weights <- rep_len(1:3, n)
      list(fit(method = "gram")$sdev, fit(method = "gram", scale = TRUE, weights = weights)$sdev,
           fit(method = "krylov", center = FALSE)$sdev, abs(fit(method = "gram")$x[, 1]))
    }),
    "pca, a store that stays" = list(tolerance = 1e-9, work = function(backend) kept_fits(backend, NULL)),
    "pca, a store that stays in parts" = list(tolerance = 1e-9,
                                              work = function(backend) kept_fits(backend, c(0, 0, 0))),
    "pca, gram of a store that stays, loose" = list(tolerance = 1e-5, work = function(backend) {
      kept_fits(backend, sample(list(NULL, c(0, 0)), 1)[[1]], p = 530, tolerance = 1e-6) # a rough Gram matrix
    }),
    "pca, moments of packed blocks" = list(tolerance = 1e-12, work = function(backend) {
      draws <- list(function(m) stats::rgeom(m, 0.3) + 1, function(m) floor(2^stats::runif(m, 0, 32)),
                    function(m) sample(64, m, TRUE) / 8, stats::rnorm,
                    function(m) sample(c(NA, NaN, Inf, -Inf, 1e300, -1e-300, 3), m, TRUE))
      lapply(draws, function(draw) moments_of_store(backend, draw))
    }),
    "pca, gram of many columns of a store" = list(tolerance = 1e-9, work = function(backend) {
      s <- Matrix::rsparsematrix(sample(4030:4100, 1), 4003, 0.01, rand.x = function(m) stats::rgeom(m, 0.3) + 1)
      s[sample(nrow(s), 900), 1:300] <- 4
      x <- weft_import(s, tempfile(fileext = ".weft"), run = weft_run(memory = 2^20))
      on.exit(unlink(unclass(x)$path))
      fit <- pca(x, 1, "gram", seed = 1, run = backend, control = list(block_size = 2^18))
      list(fit$sdev, abs(fit$rotation), fit$residual < 1e-11)
    }),
    "pca, blocks of a store that do not stay" = list(tolerance = 1e-9, work = function(backend) {
      s <- Matrix::rsparsematrix(8000, 300, 0.8, rand.x = function(m) stats::rgeom(m, 0.3) + 1)
      x <- weft_import(s, tempfile(fileext = ".weft"), run = weft_run(memory = 2^20))
      on.exit(unlink(unclass(x)$path))
      old <- options(weft.device_memory = 2.6e7)
      on.exit(options(old), add = TRUE)
      suppressWarnings(pca(x, 2, method = "gram", seed = 1, run = backend, control = list(block_size = 2^16)))$sdev
    }),
    "pca, rows of three parts" = dense("gram", devices = c(0, 0, 0)),
    "pca, rows of two parts" = dense("krylov", devices = c(0, 0)),
    "pca, single precision" = list(tolerance = 1e-5, work = function(backend) {
      x <- matrix(stats::rnorm(100 * 40), 100) %*% diag(0.9^(1:40))
      suppressWarnings(pca(x, 2, seed = 1, run = backend, control = list(precision = "single")))$sdev
    })
  )
}

# A store uploaded to `devices`, or as it is on the CPU: components by recipes that follow, sums, moments.
kept_fits <- function(backend, devices, p = 150, tolerance = 1e-12) {
  n <- sample(900:1300, 1)
  s <- Matrix::rsparsematrix(n, p, 0.2, rand.x = function(m) stats::rgeom(m, 0.3) + 1)
  s[, 7] <- 5
  s[, 11:20] <- s[, 11:20] + matrix(stats::rpois(n * 2, 3), n) %*% matrix(1:2, 2, 10)
  x <- weft_import(Matrix::drop0(s), tempfile(fileext = ".weft"), run = weft_run(memory = 2^20, progress = FALSE))
  on.exit(unlink(unclass(x)$path))
  some <- sort(sample(p, p - 9))
  weights <- rep_len(1:3, n)
  if (backend == "cuda") {
    x <- weft:::upload_store(x, devices, block_size = 2^16)
    on.exit(weft_free(x), add = TRUE)
  }
  fit <- function(x, ...) suppressWarnings(call_with(pca, list(x, 3, seed = 1, run = backend, ...,
                                                               control = list(block_size = 8, tolerance = tolerance))))
  chosen <- store_normalise(x, genes = some)
  source <- weft:::pca_source(chosen, block_size = 8)
  list(fit(x, method = "gram")$sdev, fit(chosen, method = "gram", scale = TRUE, weights = weights)$sdev,
       fit(chosen, method = "krylov", center = FALSE)$sdev, abs(fit(x, method = "gram")$x[, 1]),
       fit(store_normalise(x, log = FALSE))$orthogonality < 1e-6, Matrix::colSums(chosen), Matrix::rowSums(x),
       Matrix::colMeans(x), weft:::column_moments(source, NULL, weft:::run_control("cpu"))[c("mean", "norm", "weight")])
}

# Moments of random rows of values as `draw` makes them, some columns of them, by random weights, which find a value in
# a wrong row.
moments_of_store <- function(backend, draw) {
  n <- sample(c(2, 40, 700, 3000), 1)
  s <- Matrix::rsparsematrix(n, 90, sample(c(0.02, 0.3, 0.97), 1), rand.x = draw)
  s[, 5] <- 2
  x <- weft_import(s, tempfile(fileext = ".weft"), run = weft_run(memory = 2^20, progress = FALSE))
  on.exit(unlink(unclass(x)$path))
  if (isTRUE(all(s@x >= 1 & s@x < Inf)) && stats::runif(1) < 0.7) {
    x <- store_normalise(x, log = stats::runif(1) < 0.5, genes = sort(sample(90, sample(89, 1))))
  }
  bytes <- 12 * sum(weft:::open_store(x)$about$block_values) * unclass(x)$recipe$share
  source <- weft:::pca_source(x, block_size = max(8, bytes * sample(c(0, 0.9), 1))) # one block at a time, or some
  stopifnot(source$kind == "stored" || bytes <= 8)
  weights <- if (stats::runif(1) < 0.7) stats::runif(n) * (stats::runif(n) < 0.8) + 0.01
  packed_moments(source, weights, backend)
}

packed_moments <- function(source, weights, backend) {
  if (backend == "cuda" && !is.null(source$for_device)) source <- source$for_device()
  weft:::column_moments(source, weights, weft:::run_control(backend))
}

# Components of genotypes that stay in their file: all widths of blocks, weights, missing ones and other forms.
genotype_fits <- function(backend, components) {
  stem <- write_genotypes(tempfile(), planted_genotypes(sample(200:290, 1), sample(260:330, 1)))
  on.exit(unlink(paste0(stem, c(".bed", ".bim", ".fam"))))
  x <- plink_file(stem)
  fit <- function(k, ...) {
    fit <- suppressWarnings(call_with(pca, list(x, k, na = "mean", seed = 1, run = backend, ...,
                                                control = list(block_size = 8, max_iterations = 4))))
    list(fit$sdev, fit$rotation[, 1:3], fit$x[, 1:3])
  }
  n <- nrow(x)
  c(lapply(components, fit, method = "krylov", scale = "allele"),
    list(fit(3, method = "gram", scale = TRUE), fit(3, method = "krylov", center = FALSE, weights = seq_len(n) / n),
         fit(3, method = "krylov", weights = rep_len(c(1, 1, 0), n))))
}
