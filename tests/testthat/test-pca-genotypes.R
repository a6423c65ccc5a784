# Components of genotypes that stay in their file are those of the matrix that as.matrix() reads, by R's own svd().

# x with means in the place of missing values, centred, scaled and weighted, by its definition.
formed <- function(g, weights, scale) {
  w <- weights %||% rep(1, nrow(g))
  mean <- apply(g, 2L, function(v) stats::weighted.mean(v[!is.na(v)], w[!is.na(v)]))
  g[is.na(g)] <- mean[col(g)[is.na(g)]]
  x <- sweep(g, 2L, mean)
  by <- if (isTRUE(scale)) sqrt(colSums(w * x^2) / (sum(w) - 1))
        else if (identical(scale, "allele")) sqrt(2 * (mean / 2) * (1 - mean / 2)) else rep(1, ncol(g))
  sweep(x, 2L, ifelse(by > 0, by, 1), "/")
}

in_file <- function(g, env = parent.frame()) plink_file(write_genotypes(withr::local_tempfile(.local_envir = env), g))

fit_in_file <- function(x, k, ...) {
  suppressWarnings(pca(x, k, na = "mean", seed = 1, run = "cpu", control = list(block_size = 8), ...))
}

test_that("genotypes in a file have the components of the filled matrix", {
  set.seed(1)
  shapes <- list(c(301, 700), c(900, 203), c(131, 130), c(2, 9), c(9, 2), c(1, 1), c(5, 600))
  for (shape in shapes) {
    g <- planted_genotypes(shape[1], shape[2])
    g[1, colSums(!is.na(g)) == 0] <- 1L
    x <- in_file(g)
    k <- min(shape, 4)
    for (weights in list(NULL, rep_len(c(1, 0, 1), shape[1]), stats::runif(shape[1], 0.5, 2))) {
      if (identical(weights, 1)) next
      w <- weights %||% rep(1, shape[1])
      if (any(colSums(!is.na(g) & w > 0) == 0)) next
      for (scale in list(FALSE, TRUE, "allele")) for (method in c("krylov", "gram")) {
        if (isTRUE(scale) && sum(w) <= 1) next
        fit <- fit_in_file(x, k, method = method, scale = scale, weights = weights)
        wanted <- formed(g, weights, scale)
        plain <- svd(sqrt(w) * wanted, nu = 0)
        expect_equal(fit$d, plain$d[seq_len(k)], tolerance = 1e-12 * max(1, plain$d[1]))
        use <- which(plain$d[seq_len(k)] > 1e-6 & abs(diff(c(plain$d, 0)))[seq_len(k)] > 1e-3)
        if (!length(use) || any(diff(use) != 1) || use[1] != 1) next
        expect_equal(abs(unname(fit$rotation[, use])), abs(plain$v[, use]), tolerance = 1e-8)
        expect_equal(abs(unname(fit$x[, use])), abs(wanted %*% plain$v)[, use], tolerance = 1e-8)
        expect_lt(max(fit$residual), 1e-11)
      }
    }
  }
})

test_that("file and matrix give the same, by vectors, too, and with one thread or two the same bits", {
  set.seed(2)
  g <- planted_genotypes(150, 260)
  x <- in_file(g)
  for (method in c("gs", "nipals", "krylov")) {
    fit <- fit_in_file(x, 2, method = method, scale = "allele")
    whole <- suppressWarnings(pca(g, 2, method, scale = "allele", na = "mean", seed = 1, run = "cpu"))
    expect_equal(fit$x, whole$x, tolerance = 1e-6, ignore_attr = TRUE)
  }
  on <- function(threads) {
    run <- weft_run("cpu", threads = threads)
    pca(x, 3, na = "mean", seed = 1, run = run, control = list(block_size = 8))[c("x", "d")]
  }
  expect_identical(on(1), on(2))
  some <- plink_file(sub("[.]bed$", "", unclass(x)$path), variants = c(9, 3, 200:120))
  expect_equal(fit_in_file(some, 2)$x, fit_in_file(in_file(g[, c(9, 3, 200:120)]), 2)$x, tolerance = 1e-10)
})

test_that("people of weight 0 and new people are projected", {
  set.seed(3)
  g <- planted_genotypes(400, 300)
  related <- seq_len(400) > 250
  x <- in_file(g)
  fit <- fit_in_file(x, 3, scale = "allele", weights = as.numeric(!related))
  own <- fit_in_file(in_file(g[!related, ]), 3, scale = "allele")
  expect_equal(fit$rotation, own$rotation, tolerance = 1e-9)
  expect_equal(fit$x[!related, ], own$x, tolerance = 1e-9, ignore_attr = TRUE)
  new <- in_file(g[related, ])
  expect_equal(fit$x[related, ], predict(own, new), tolerance = 1e-9, ignore_attr = TRUE)
  filled <- g[related, ]
  filled[is.na(filled)] <- own$center[col(filled)[is.na(filled)]]
  expect_equal(predict(own, new), predict(own, filled), tolerance = 1e-12, ignore_attr = TRUE)
  mixed <- plink_file(write_genotypes(withr::local_tempfile(), g[related, 300:1],
                                      sprintf("1 rs%d 0 %d A G", 300:1, 1:300)))
  expect_equal(predict(own, mixed), predict(own, new), tolerance = 1e-12)
  raw <- fit_in_file(in_file(ifelse(is.na(g), 0L, g)), 2, center = FALSE)
  expect_error(predict(raw, new), "must be complete", class = "weft_error_input")
})

test_that("means of missing values and the scale of alleles are for matrices, too", {
  set.seed(4)
  g <- planted_genotypes(60, 30)
  fit <- suppressWarnings(pca(g, 2, na = "mean", scale = "allele", run = "cpu"))
  expect_equal(fit$d, svd(formed(g, NULL, "allele"))$d[1:2], tolerance = 1e-12)
  expect_error(pca(g - 1, 2, na = "mean", scale = "allele", run = "cpu"), "counts of alleles",
               class = "weft_error_input")
  expect_error(pca(g, 2, na = "mean", scale = "alleles", run = "cpu"), "`scale` must be", class = "weft_error_input")
  expect_error(fit_in_file(in_file(g), 2, method = "krylov", weights = rep(0, 60)), class = "weft_error_input")
  expect_error(pca(in_file(g), 2, control = list(block_size = 8), run = "cpu"), "na = \"mean\"",
               class = "weft_error_input")
  s <- Matrix::sparseMatrix(1:3, 1:3, x = c(1, NA, 2))
  expect_error(pca(s, 1, na = "mean", run = "cpu"), "ordinary matrix", class = "weft_error_input")
  expect_warning(pca(cbind(g[, 1:3], 2L), 1, na = "mean", scale = "allele", run = "cpu"), "[Cc]onstant",
                 class = "weft_warning_constant")
  gone <- g
  gone[, 5] <- NA
  expect_error(fit_in_file(in_file(gone), 2), "observed value", class = "weft_error_input")
})

test_that("a file that became shorter is an error, and so is one without people or variants", {
  stem <- withr::local_tempfile()
  g <- planted_genotypes(200, 3000)
  x <- plink_file(write_genotypes(stem, g))
  source <- weft:::pca_source(x, block_size = 8)
  writeBin(as.raw(c(0x6c, 0x1b, 0x01)), paste0(stem, ".bed"))
  expect_error(weft:::column_moments(source, NULL, weft:::run_control("cpu", 2, FALSE)), "truncated",
               class = "weft_error_input")
  expect_error(fit_in_file(x, 2), class = "weft_error_input")
  none <- plink_file(write_genotypes(stem, g), from = 1e9)
  expect_error(fit_in_file(none, 1), "at least one row and one column", class = "weft_error_input")
  write_genotypes(stem, g[integer(), ])
  expect_error(fit_in_file(plink_file(stem), 1), class = "weft_error_input")
  one <- fit_in_file(in_file(g[, 1, drop = FALSE]), 1)
  expect_equal(abs(unname(one$x[, 1])), abs(formed(g[, 1, drop = FALSE], NULL, FALSE)[, 1]), tolerance = 1e-12)
})
