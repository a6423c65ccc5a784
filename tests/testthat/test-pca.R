# Accuracy against LAPACK on hard spectra, shapes and scales; the promises of the result; the back ends against each
# other.

with_spectrum <- function(n, p, d) {
  q <- min(n - 1L, p)
  d <- rep_len(c(d, numeric(q)), q)
  u <- svd(scale(matrix(stats::rnorm(n * q), n), scale = FALSE))$u[, seq_len(q), drop = FALSE]
  v <- qr.Q(qr(matrix(stats::rnorm(p * q), p)))
  u %*% (d * t(v))
}

hard_matrices <- function() {
  set.seed(7)
  plain <- matrix(stats::rnorm(220 * 150), 220)
  list(
    plain = plain, wide = t(plain), square = plain[1:150, ], tiny = plain * 1e-200, huge = plain * 1e200,
    far_from_zero = plain + 1e6,
    decaying = with_spectrum(220, 150, 10^-(0:149 / 5)),
    clustered = with_spectrum(220, 150, c(1 + 1e-9 * 0:9, 0.5 + 1e-7 * 0:9, seq(0.3, 0.01, length.out = 130))),
    multiple = with_spectrum(220, 150, c(rep(3, 5), rep(2, 7), rep(1, 20), seq(0.5, 0.1, length.out = 118))),
    low_rank = with_spectrum(220, 150, 9:1),
    constant_column = cbind(plain[, 1:140], 0.1, 7),
    duplicated = cbind(plain[, 1:70], plain[, 1:70]),
    one_row = plain[1, , drop = FALSE], one_column = plain[, 1, drop = FALSE], nothing = matrix(0, 6, 4)
  )
}

lapack_values <- function(x, k) {
  unit <- 2^floor(log2(max(abs(x), 1e-300)))
  x <- scale(x / unit, scale = FALSE)
  x[, apply(x, 2, function(column) diff(range(column)) < 1e-15)] <- 0
  svd(x, nu = 0, nv = 0)$d[seq_len(k)] * unit
}

quiet_pca <- function(...) suppressWarnings(call_with(pca, list(..., seed = 1)))

expect_accurate <- function(fit, x, k, label) {
  expected <- lapack_values(x, k)
  largest <- max(expected[1], .Machine$double.xmin)
  expect_lte(max(abs(fit$d - expected)) / largest, 1e-13, label = paste("error of values,", label))
  expect_lte(max(abs(crossprod(fit$rotation) - diag(k))), 1e-13, label = paste("loadings,", label))
  expect_lte(max(fit$orthogonality), 1e-13, label = paste("orthogonality,", label))
  expect_true(all(is.finite(fit$x)), label = label)
  expect_true(all(fit$converged), label = label)
  largest_loading <- apply(fit$rotation, 2, function(v) v[which(abs(v) >= max(abs(v)) * (1 - 1e-7))[1]])
  expect_true(all(largest_loading > 0), label = paste("signs,", label))
}

test_that("values, loadings and scores are those of LAPACK", {
  matrices <- hard_matrices()
  for (name in names(matrices)) {
    x <- matrices[[name]]
    for (method in c("auto", "krylov", "gram")) {
      all <- if (name %in% c("decaying", "square", "duplicated") && method != "auto") 150
      for (k in unique(pmin(min(dim(x)), c(1, 6, 40, all)))) {
        expect_accurate(quiet_pca(x, k, method = method), x, k, paste(name, method, k))
      }
    }
  }
})

test_that("the iteration, not only the whole space, finds clusters and multiplicities", {
  set.seed(1)
  x <- with_spectrum(420, 400, c(rep(3, 20), rep(2, 20), seq(1.9, 0.1, length.out = 360)))
  for (method in c("krylov", "gram")) {
    fit <- quiet_pca(x, 30, method = method)
    expect_accurate(fit, x, 30, method)
    expect_gt(fit$passes, 1)
  }
  many <- with_spectrum(700, 600, c(rep(2, 90), seq(1.5, 0.1, length.out = 510)))
  expect_accurate(quiet_pca(many, 80, method = "krylov"), many, 80, "more copies than a block holds")
})

test_that("all components give the data back", {
  set.seed(2)
  for (x in list(matrix(rnorm(90 * 40), 90), matrix(rnorm(40 * 90), 40), with_spectrum(60, 60, 10^-(0:12)))) {
    fit <- quiet_pca(x)
    expect_lte(norm(x - fitted(fit), "F") / norm(x, "F"), 1e-14)
    expect_lte(norm(residuals(fit, x), "F") / norm(x, "F"), 1e-14)
  }
})

test_that("two centred rows have one component, whatever the rounding", {
  x <- matrix(c(0.20123915111346113, -1.27716540186545657, 0.45063844817224208, 1.44062266291353769), 2)
  w <- c(0.059818955204988346, 2.4539773554999043)
  for (seed in 1:3) {
    expect_warning(fit <- pca(x, method = "gram", scale = TRUE, weights = w, seed = seed), class = "weft_warning_rank")
    expect_identical(fit$rank, 1)
  }
})

test_that("rank deficiency is said and exact", {
  x <- hard_matrices()$low_rank
  expect_warning(fit <- pca(x, 12, seed = 1), class = "weft_warning_rank")
  expect_identical(fit$rank, 9)
  expect_identical(fit$sdev[10:12], c(0, 0, 0))
  expect_identical(fit$d[10:12], c(0, 0, 0))
  constant <- quiet_pca(cbind(matrix(rnorm(40), 20), 0.1), 2, scale = TRUE)
  expect_identical(unname(constant$rotation[3, ]), c(0, 0))
  expect_identical(constant$scale[3], 1)
})

test_that("gs is orthogonal and right to its tolerance; nipals right, its loss reported", {
  set.seed(3)
  x <- with_spectrum(80, 50, 0.8^(0:49))
  expected <- lapack_values(x, 12)
  for (method in c("gs", "nipals")) {
    fit <- pca(x, 12, method = method, seed = 1)
    expect_lte(max(abs(fit$d - expected)) / expected[1], 1e-8)
    expect_named(fit$orthogonality, c("loadings", "scores"))
  }
  fit <- pca(x, 12, method = "gs", seed = 1)
  expect_lte(max(fit$orthogonality), 1e-13)
  expect_lte(max(abs(crossprod(fit$rotation) - diag(12))), 1e-13)
  deficient <- quiet_pca(hard_matrices()$low_rank, 12, method = "gs")
  expect_identical(deficient$d[10:12], c(0, 0, 0))
  expect_lte(max(deficient$orthogonality), 1e-13)
  paper <- pca(x, 3, method = "gs", seed = 1, control = list(stop = "paper", tolerance = 1e-3))
  expect_lt(sum(paper$iterations), sum(fit$iterations[1:3]))
  expect_error(pca(x, 3, method = "gram", control = list(stop = "paper")), class = "weft_error_input")
})

test_that("what did not converge is named", {
  set.seed(4)
  x <- matrix(rnorm(300 * 250), 300)
  expect_warning(fit <- pca(x, 3, method = "gs", seed = 1, control = list(max_iterations = 3)), "`PC1`",
                 class = "weft_warning_convergence")
  expect_false(any(fit$converged))
  expect_true(all(fit$residual > 1e-8))
  expect_warning(pca(x, 3, method = "krylov", seed = 1, control = list(max_iterations = 2)),
                 class = "weft_warning_convergence")
})

test_that("the result is a prcomp", {
  fit <- pca(USArrests, scale = TRUE)
  ours <- fit
  theirs <- prcomp(USArrests, scale. = TRUE)
  expect_s3_class(fit, c("weft_pca", "prcomp"), exact = TRUE)
  expect_equal(fit$sdev, theirs$sdev)
  expect_equal(abs(fit$rotation), abs(theirs$rotation))
  expect_equal(fit$center, theirs$center)
  expect_equal(fit$scale, theirs$scale)
  expect_equal(summary(fit)$importance, summary(theirs)$importance, tolerance = 1e-4)
  expect_equal(predict(fit, USArrests[3:1, ]), fit$x[3:1, ])
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_no_error({ plot(fit); biplot(fit); screeplot(fit) })
})

test_that("factoextra and broom take it", {
  skip_if_not_installed("factoextra")
  skip_if_not_installed("broom")
  fit <- pca(USArrests, scale = TRUE)
  theirs <- prcomp(USArrests, scale. = TRUE)
  expect_equal(factoextra::get_eigenvalue(fit), factoextra::get_eigenvalue(theirs))
  expect_s3_class(factoextra::fviz_pca_biplot(fit), "ggplot")
  expect_equal(as.data.frame(broom::tidy(fit, "d")), as.data.frame(broom::tidy(theirs, "d")), tolerance = 1e-4)
  expect_equal(as.data.frame(broom::tidy(fit, "u"))$value, c(fit$x))
  expect_equal(dim(broom::augment(fit, USArrests)), dim(broom::augment(theirs, USArrests)))
})

test_that("weights of rows repeat them, weights of columns scale them", {
  set.seed(5)
  x <- matrix(rnorm(40 * 6), 40)
  w <- rep(c(0, 1, 2, 3), 10)
  fit <- pca(x, 3, weights = w, scale = TRUE, seed = 1)
  repeated <- pca(x[rep(1:40, w), ], 3, scale = TRUE, seed = 1)
  expect_equal(fit$sdev, repeated$sdev)
  expect_equal(fit$rotation, repeated$rotation)
  expect_equal(unname(fit$x), unname(predict(repeated, x)))
  columns <- pca(x, 3, seed = 1, control = list(col_weights = 1:6))
  expect_equal(columns$sdev, pca(x * rep(sqrt(1:6), each = 40), 3, seed = 1)$sdev)
  expect_equal(unname(predict(columns, x)), unname(columns$x))
  none <- quiet_pca(x, 3, col_weights = c(1, 0, 1, 1, 1, 1))
  expect_equal(none$sdev, pca(x[, -2], 3, seed = 1)$sdev)
  expect_equal(predict(none, x), none$x)
  expect_error(pca(x, weights = -w), class = "weft_error_input")
})

test_that("supplementary columns stand where regressions put them", {
  fit <- pca(mtcars[1:5], 2, scale = TRUE)
  placed <- predict(fit, mtcars[c("mpg", "wt")], type = "columns")
  expect_equal(unname(placed$correlation), unname(cor(mtcars[c("mpg", "wt")], fit$x)))
  expect_equal(unname(placed$loadings[1, ] / sd(mtcars$mpg)), unname(fit$rotation[1, ] * fit$sdev))
})

test_that("threads and repeated calls change nothing", {
  set.seed(6)
  x <- matrix(rnorm(500 * 300), 500)
  one <- pca(x, 8, method = "krylov", seed = 3, run = weft_run(threads = 1))
  two <- pca(x, 8, method = "krylov", seed = 3, run = weft_run(threads = 2))
  again <- pca(x, 8, method = "krylov", seed = 3, run = weft_run(threads = 2))
  same <- c("sdev", "rotation", "x")
  expect_identical(two[same], again[same])
  expect_equal(one$sdev, two$sdev, tolerance = 1e-13)
  expect_equal(one[same], two[same], tolerance = 1e-10) # vectors: rounding over the gap between neighbouring values
  set.seed(8)
  a <- pca(x, 2)
  set.seed(8)
  expect_identical(pca(x, 2)[same], a[same])
  before <- .Random.seed
  pca(x, 2, seed = 1)
  expect_identical(.Random.seed, before)
})

test_that("equal values are found, where LAPACK's bisection loses them", {
  for (case in list(c(17, 44, 44, 3), c(42, 41, 41, 3), c(76, 41, 41, 2), c(99, 37, 48, 2), c(129, 25, 42, 1),
                    c(149, 27, 34, 2), c(156, 25, 28, 1), c(165, 45, 73, 1))) {
    set.seed(case[1])
    x <- t(qr.Q(qr(matrix(rnorm(case[2] * case[3]), case[3])))) # as a search of seeds found them: orthonormal rows
    for (method in c("gram", "krylov")) {
      fit <- pca(x, case[4], method = method, center = FALSE, seed = case[1])
      expect_equal(fit$d, rep(1, case[4]), tolerance = 1e-13)
      expect_true(all(fit$converged))
      expect_lt(max(abs(crossprod(fit$rotation) - diag(case[4]))), 1e-12)
    }
  }
})

test_that("the vector variants agree", {
  set.seed(9)
  x <- matrix(rnorm(150 * 140), 150)
  expected <- pca(x, 6, seed = 1)$d
  old <- .Call(weft:::C_weft_simd, NULL)
  on.exit(.Call(weft:::C_weft_simd, match(old, c("portable", "avx2", "avx512")) - 1L))
  for (level in 0:2) {
    if (is.null(.Call(weft:::C_weft_simd, level))) next
    expect_equal(pca(x, 6, method = "krylov", seed = 1)$d, expected, tolerance = 1e-13)
    expect_equal(pca(x, 6, method = "gram", seed = 1)$d, expected, tolerance = 1e-13)
  }
})

test_that("single precision is refined in double", {
  set.seed(10)
  x <- with_spectrum(300, 260, 0.9^(0:259)) + 1000
  fit <- pca(x, 5, seed = 1, control = list(precision = "single"))
  double <- pca(x, 5, seed = 1)
  expect_lte(max(abs(fit$d - double$d)) / double$d[1], 1e-11)
  expect_equal(fit$rotation, double$rotation, tolerance = 1e-4)
  expect_true(all(fit$converged))
})

test_that("sparse matrices and their blocks are centred implicitly", {
  set.seed(11)
  x <- Matrix::rsparsematrix(300, 200, 0.1)
  dense <- pca(as.matrix(x), 5, scale = TRUE, seed = 1)
  for (input in list(x, list(x[1:120, ], x[121:300, ]), methods::as(x, "TsparseMatrix"))) {
    fit <- pca(input, 5, scale = TRUE, seed = 1)
    expect_equal(fit$sdev, dense$sdev, tolerance = 1e-12)
    expect_equal(fit$rotation, dense$rotation, tolerance = 1e-8)
    expect_equal(unname(fit$x), unname(dense$x), tolerance = 1e-8)
  }
  expect_error(pca(list(x, x[, 1:3])), class = "weft_error_input")
})

test_that("rows far from zero in a file, with columns that are constant, have their components", {
  file <- withr::local_tempfile()
  for (seed in 1:15) {
    withr::local_seed(seed)
    x <- 1.5e11 + cbind(0, matrix(rnorm(12), 4), 1)
    writeBin(as.double(t(x)), file)
    fit <- pca(weft_file(file, 5), 3, seed = 1, control = list(block_size = 40))
    expect_equal(fit$d, svd(scale(x, scale = FALSE))$d[1:3], tolerance = 1e-3) # of rounding of 1.5e11
    expect_equal(crossprod(fit$rotation), diag(3), tolerance = 1e-12, ignore_attr = TRUE)
  }
})

test_that("files and delayed matrices are read in blocks", {
  set.seed(12)
  x <- matrix(rnorm(120 * 80), 120)
  file <- withr::local_tempfile()
  expected <- pca(x, 4, seed = 1)
  for (layout in c("row", "column")) {
    writeBin(as.vector(if (layout == "row") t(x) else x), file)
    fit <- pca(weft_file(file, 80, layout = layout), 4, seed = 1, control = list(block_size = 8 * 80 * 30))
    expect_equal(fit$sdev, expected$sdev, tolerance = 1e-12)
    expect_equal(unname(fit$x), unname(expected$x), tolerance = 1e-9)
  }
  skip_if_not_installed("HDF5Array")
  h <- HDF5Array::writeHDF5Array(x)
  for (block_size in c(2^20, 8 * 80 * 25)) {
    fit <- pca(h, 4, seed = 1, control = list(block_size = block_size))
    expect_equal(fit$sdev, expected$sdev, tolerance = 1e-12)
    expect_equal(unname(fit$x), unname(expected$x), tolerance = 1e-9)
  }
  wide <- pca(t(h), 4, seed = 1, control = list(block_size = 8 * 80 * 25))
  expect_equal(wide$d, pca(t(x), 4, seed = 1)$d, tolerance = 1e-12)
})

test_that("an error or interrupt while a block is read comes through", {
  source <- weft:::block_source(10, 4, TRUE, 8 * 4 * 5, NULL, function(range, by_row) stop("the disk is gone"))
  control <- weft:::run_control(progress = FALSE)
  expect_error(weft:::column_moments(source, NULL, control), "the disk is gone", class = "weft_error_input")
})

test_that("single-cell experiments get a reduced dimension", {
  skip_if_not_installed("SingleCellExperiment")
  set.seed(13)
  counts <- matrix(rpois(30 * 50, 4), 30, dimnames = list(paste0("g", 1:30), paste0("c", 1:50)))
  sce <- SingleCellExperiment::SingleCellExperiment(list(counts = counts))
  sce <- pca_reduced_dim(sce, k = 3, seed = 1)
  scores <- SingleCellExperiment::reducedDim(sce, "PCA")
  expect_equal(dim(scores), c(50L, 3L))
  expect_equal(unname(scores[, ]), unname(pca(t(counts), 3, seed = 1)$x), ignore_attr = TRUE)
  expect_length(attr(scores, "percentVar"), 3)
  for (name in list(NULL, NA_character_, "", 1, c("a", "b"), `Encoding<-`("\xff", "bytes"), quote(f(x)))) {
    expect_error(pca_reduced_dim(sce, 3, name = name), "`name` must be one non-empty name", class = "weft_error_input")
  }
})

test_that("bad input is explained", {
  expect_error(pca(iris), "`Species`", class = "weft_error_input")
  expect_error(pca(matrix(1:6, 2), 3), class = "weft_error_input")
  expect_error(pca(1:3), class = "weft_error_input")
  expect_error(pca(matrix("a")), class = "weft_error_input")
  expect_error(pca(matrix(numeric(), 0, 3)), class = "weft_error_input")
  expect_error(pca(matrix(c(1, Inf, 3, 4), 2)), class = "weft_error_input")
  expect_error(pca(matrix(c(1, NA, 3, 4), 2), method = "krylov"), "em", class = "weft_error_input")
  expect_error(pca(matrix(1:6, 2), scale = 1:2), class = "weft_error_input")
})

test_that("an allocation that fails leaves nothing behind", {
  set.seed(14)
  x <- matrix(rnorm(140 * 131), 140)
  expect_survives_failures(list(krylov = function() quiet_pca(x, 3, method = "krylov", max_iterations = 2),
                                gs = function() quiet_pca(x, 3, method = "gs", max_iterations = 2)), most = 20)
})

# Spectra that are known by construction, of an order at which the Gram matrix is filtered and not decomposed.
filtered_matrices <- function() {
  set.seed(16)
  u <- qr.Q(qr(scale(matrix(stats::rnorm(640 * 560), 640), scale = FALSE)))
  v <- qr.Q(qr(matrix(stats::rnorm(560 * 560), 560)))
  with <- function(d, swap = FALSE) {
    d <- c(d, numeric(560))[1:560]
    list(x = u %*% (d * t(v)), d = d)
  }
  flat <- seq(0.5, 0.1, length.out = 500)
  list(decaying = with(10^-(0:559 / 40)), steep = with(10^-(0:559 / 3)),
       clustered = with(c(1 + 1e-9 * 9:0, 0.7 + 1e-7 * 9:0, flat)),
       multiple = with(c(rep(3, 5), rep(2, 7), rep(1, 20), flat)), low_rank = with(5:1), level = with(rep(1, 560)),
       slow = with(seq(1, 0.9, length.out = 560)))
}

test_that("filtered Gram matrices give what the spectrum is, at any tolerance", {
  for (backend in test_backends()) {
    matrices <- filtered_matrices()
    for (name in names(matrices)) {
      m <- matrices[[name]]
      label <- paste(backend, name)
      fit <- quiet_pca(m$x, 9, method = "gram", backend = backend)
      expect_lte(max(abs(fit$d - m$d[1:9])) / m$d[1], 2e-14, label = paste("error of values,", label))
      expect_lte(max(abs(crossprod(fit$rotation) - diag(9)), fit$orthogonality), 1e-13,
                 label = paste("orthogonality,", label))
      expect_true(all(fit$converged), label = label)
      loose <- quiet_pca(m$x, 9, method = "gram", tolerance = 1e-4, backend = backend)
      expect_true(all(loose$converged & loose$residual <= 1e-4), label = label)
      expect_lte(max(abs(loose$d - m$d[1:9])) / m$d[1], 1e-4, label = paste("error of values, loose,", label))
    }
    wide <- quiet_pca(t(matrices$decaying$x), 4, method = "gram", center = FALSE, backend = backend)
    expect_lte(max(abs(wide$d - matrices$decaying$d[1:4])), 2e-14)
  }
})

test_that("gs and nipals are right to their tolerance on all hard inputs", {
  matrices <- hard_matrices()
  for (backend in test_backends()) for (name in names(matrices)) for (method in c("gs", "nipals")) {
    x <- matrices[[name]]
    k <- min(dim(x), 4)
    label <- paste(backend, name, method)
    fit <- quiet_pca(x, k, method = method, tolerance = 1e-8, backend = backend)
    expected <- lapack_values(x, k)
    expect_lte(max(abs(fit$d - expected)) / max(expected[1], .Machine$double.xmin), 1e-8,
               label = paste("error of values,", label))
    expect_true(all(fit$converged) && all(is.finite(fit$x)) && all(is.finite(fit$orthogonality)), label = label)
    if (method == "gs") {
      expect_lte(max(abs(crossprod(fit$rotation) - diag(k)), fit$orthogonality), 1e-13,
                 label = paste("orthogonality,", label))
    }
  }
})

test_that("the device gives what the CPU gives", {
  skip_if_no_cuda()
  matrices <- hard_matrices()
  for (name in names(matrices)) {
    x <- matrices[[name]]
    for (method in c("auto", "krylov", "gram", "gs", "nipals")) {
      blocks <- !method %in% c("gs", "nipals")
      k <- min(dim(x), if (blocks) 8 else 4)
      tol <- if (blocks) NULL else 1e-8
      cpu <- quiet_pca(x, k, method = method, tolerance = tol, backend = "cpu")
      cuda <- quiet_pca(x, k, method = method, tolerance = tol, backend = "cuda")
      if (blocks) expect_accurate(cuda, x, k, paste("cuda", name, method))
      largest <- max(cpu$d[1], .Machine$double.xmin)
      expect_equal(cuda$d / largest, cpu$d / largest, tolerance = 1e-8, label = name)
      gap <- if (blocks) 1e-6 else 1e-3
      clear <- which(cpu$d > gap * cpu$d[1] & c(-diff(cpu$d), Inf) > gap * cpu$d[1] & c(Inf, -diff(cpu$d)) > gap *
                     cpu$d[1])
      clear <- setdiff(clear, if (length(cpu$d) == k) k)
      if (length(clear)) {
        apart <- max(abs(cpu$rotation[, clear] - cuda$rotation[, clear]))
        expect_lt(apart, if (blocks) 1e-6 else 1e-4, label = paste("signs,", name, method))
      }
    }
    if (min(dim(x)) >= 140) for (method in c("krylov", "gram")) { # all components, on the device
      k <- min(dim(x))
      expect_accurate(quiet_pca(x, k, method = method, backend = "cuda"), x, k, paste("cuda, all,", name, method))
    }
  }
  x <- matrices$plain
  w <- rep(0:3, 55)
  expect_equal(pca(x, 4, weights = w, scale = TRUE, run = "cuda", seed = 1)$sdev,
               pca(x, 4, weights = w, scale = TRUE, run = "cpu", seed = 1)$sdev, tolerance = 1e-12)
  same <- c("d", "rotation", "x")
  for (method in c("auto", "krylov", "gram", "gs", "nipals")) {
    expect_identical(quiet_pca(x, 3, method = method, backend = "cuda")[same],
                     quiet_pca(x, 3, method = method, backend = "cuda")[same])
  }
  y <- matrix(stats::rnorm(700 * 600), 700)
  expect_identical(quiet_pca(y, 3, method = "gram", backend = "cuda")[same],
                   quiet_pca(y, 3, method = "gram", backend = "cuda")[same])
})

test_that("resident, streamed, single and sparse matrices on the device", {
  skip_if_no_cuda()
  set.seed(15)
  x <- matrix(rnorm(700 * 300), 700) + 50
  expected <- pca(x, 5, run = "cpu", seed = 1)
  handle <- weft_upload(x)
  for (method in c("krylov", "gram", "gs")) {
    fit <- pca(handle, 5, method = method, scale = FALSE, seed = 1)
    expect_equal(fit$d, expected$d, tolerance = 1e-10)
    expect_equal(unname(fit$rotation), unname(expected$rotation), tolerance = 1e-5)
  }
  expect_error(pca(handle, 2, run = "cpu"), class = "weft_error_input")
  weft_free(handle)
  expect_error(pca(handle, 2), class = "weft_error_input")
  float <- weft_upload(x, "single")
  expect_equal(pca(float, 5, seed = 1, control = list(precision = "single"))$d, expected$d, tolerance = 1e-6)
  weft_free(float)
  expect_equal(pca(x, 5, run = "cuda", seed = 1, control = list(precision = "single"))$d, expected$d, tolerance = 1e-10)
  sparse <- Matrix::rsparsematrix(900, 400, 0.05)
  on_cpu <- pca(sparse, 5, run = "cpu", seed = 1)
  on_device <- pca(list(sparse[1:400, ], sparse[401:900, ]), 5, run = "cuda", seed = 1)
  expect_equal(on_device$d, on_cpu$d, tolerance = 1e-12)
  expect_equal(unname(on_device$x), unname(on_cpu$x), tolerance = 1e-7)
  big <- matrix(rnorm(4000 * 1000), 4000)
  whole <- pca(big, 3, run = "cuda", seed = 1, control = list(tolerance = 1e-6))
  old <- options(weft.device_memory = 40e6)
  on.exit(options(old))
  streamed <- pca(big, 3, run = "cuda", method = "krylov", seed = 1, control = list(tolerance = 1e-6))
  expect_equal(streamed$d, whole$d, tolerance = 1e-6)
})

test_that("an interrupt while a block is read is an interrupt, and the session goes on", {
  signal <- structure(class = c("interrupt", "condition"), list(message = "", call = NULL))
  source <- weft:::block_source(10, 4, TRUE, 8 * 4 * 5, NULL, function(range, by_row) signalCondition(signal))
  how <- tryCatch(weft:::column_moments(source, NULL, weft:::run_control(progress = FALSE)),
                  interrupt = function(e) "interrupted")
  expect_identical(how, "interrupted")
  skip_on_os("windows")
  skip_on_cran()
  result <- interrupted_works("
    slow <- function(progress) {
      read <- function(range, by_row) { progress(0, 1); Sys.sleep(60); matrix(0, length(range), 4) }
      source <- weft:::block_source(1000, 4, TRUE, 8 * 4 * 5, NULL, read)
      weft:::column_moments(source, NULL, weft:::run_control(progress = FALSE))
    }", "list(reading = slow)", "cat('and then', round(pca(cbind(1:3), 1)$sdev, 3), '\\n')")
  expect_interrupted(result, "reading")
  expect_true("and then 1 " %in% result$output, info = paste(result$output, collapse = "\n"))
})

test_that("blocks of another size than was asked for are not believed", {
  control <- weft:::run_control(progress = FALSE)
  for (block in list(matrix(0, 2, 4), matrix(0, 5, 3), numeric(20), matrix("a", 5, 4))) {
    source <- weft:::block_source(10, 4, TRUE, 8 * 4 * 5, NULL, function(range, by_row) block)
    if (is.character(block)) expect_warning(try(weft:::column_moments(source, NULL, control), silent = TRUE), "NAs")
    else expect_error(weft:::column_moments(source, NULL, control), "Block 1 must be 5 rows and 4 columns",
                      class = "weft_error_input")
  }
})

test_that("data with more rows than a matrix can have are refused, as are damaged files and sparse matrices", {
  bad <- function(code, text) expect_error(code, class = "weft_error_input", regexp = text)
  file <- withr::local_tempfile()
  writeBin(as.double(1:8), file)
  whole <- weft_file(file, 2)
  with_part <- function(part, value) { whole[[part]] <- value; whole }
  for (spoilt in list(with_part("dim", c(4, NA)), with_part("layout", "spoilt"), with_part("path", NULL))) {
    bad(pca(spoilt), "weft_file")
  }
  bad(pca(with_part("dim", c(2^31, 2)), 1), "4294967296 are needed")
  file.remove(file)
  system2("truncate", c("-s", "8589934596", file)) # holes
  if (isTRUE(file.size(file) > 2^33)) bad(pca(weft_file(file, 1, "float"), 1), "at most 2147483647 rows")
  m <- Matrix::rsparsematrix(30, 8, 0.3)
  for (spoil in list(function(m) { m@i[3] <- 5000000L; m }, function(m) { m@i[1] <- -1L; m },
                     function(m) { m@p[2] <- 10000L; m },
                     function(m) { m@x <- m@x[-1]; m })) {
    bad(pca(spoil(m), 2), "valid Matrix")
    bad(pca(list(m, spoil(m)), 2), "valid Matrix")
  }
})

test_that("the call in a model is not evaluated", {
  x <- as.matrix(datasets::USArrests)
  fit <- pca(x, 2, seed = 1)
  ran <- FALSE
  fit$call <- quote({ ran <<- TRUE; pca(x) })
  expect_error(residuals(fit), "`x` must be given", class = "weft_error_input")
  fit$call <- call("pca", x = quote({ ran <<- TRUE; x }), assay = quote({ ran <<- TRUE; 1 }))
  expect_error(residuals(fit), "`x` must be given", class = "weft_error_input")
  expect_equal(residuals(fit, x), x - fitted(fit))
  expect_equal(residuals(fit, datasets::USArrests), x - fitted(fit))
  expect_false(ran)
  s <- Matrix::rsparsematrix(30, 8, 0.3)
  blocks <- list(s[1:10, ], s[11:30, ])
  expect_equal(unname(residuals(pca(blocks, 2, seed = 1), blocks)), unname(as.matrix(s) - fitted(pca(s, 2, seed = 1))))
})

test_that("gs gives the data back from all components, and more of them from some", {
  set.seed(41)
  plain <- matrix(rnorm(60 * 40), 60) + outer(rnorm(60), rnorm(40)) * 2
  for (x in list(plain, t(plain), plain %*% diag(10^-(0:39 / 4)))) for (backend in test_backends()) {
    fit <- quiet_pca(x, method = "gs", backend = backend)
    expect_lte(norm(x - fitted(fit), "F") / norm(x, "F"), 1e-13)
    expect_lte(max(abs(fit$d - lapack_values(x, min(dim(x))))) / fit$d[1], 1e-13)
    expect_lte(max(fit$orthogonality), 1e-13)
    few <- quiet_pca(x, 5, method = "gs", backend = backend)
    expect_lte(max(abs(few$d - fit$d[1:5])) / fit$d[1], 1e-13) # the square of the 1e-8 of the loadings
  }
  paper <- quiet_pca(plain, 3, method = "gs", stop = "paper", tolerance = 1e-3) # as published: without that step
  expect_gt(max(abs(paper$d - fit$d[1:3])), 0)
})

test_that("constant columns that are to be scaled are named", {
  x <- cbind(first = 1:6, same = 3, last = c(2, 1, 4, 3, 6, 5))
  expect_warning(fit <- pca(x, 2, scale = TRUE), "`same`", class = "weft_warning_constant")
  expect_identical(unname(fit$rotation["same", ]), c(0, 0))
  expect_no_warning(pca(x, 2))
  expect_no_warning(pca(x, 2, center = FALSE, scale = TRUE))
  expect_warning(pca_choose_k(x, "broken_stick", scale = TRUE), "`same`", class = "weft_warning_constant")
})

test_that("arguments that are left out or have another name elsewhere say so", {
  x <- as.matrix(datasets::USArrests)
  bad <- function(code, text) expect_error(code, class = "weft_error_input", regexp = text)
  bad(pca(), "`x` must be given")
  bad(pca_choose_k(), "`x` must be given")
  bad(pca_reduced_dim(), "`x` must be given")
  bad(pca(x, scale. = TRUE), "Unknown argument `scale.`; did you mean `scale`")
  bad(pca(x, rank. = 2, retx = TRUE), "Unknown argument `rank.`; did you mean `k`.*Also unknown: `retx`")
  bad(pca(x, 2, "auto", TRUE, FALSE, NULL, "fail", NULL, list(), NULL, NULL, 7),
      "too many without")
  bad(pca(x, 2, control = list(max_iterations = 1e10)), "from 1 to 1000000000")
  fit <- pca(x, 2, seed = 1)
  bad(predict(fit, "a"), "numeric matrix")
  bad(predict(fit, x[, c(1, 1:4)][, -5]), "Missing: `Rape`")
  bad(augment(fit, data = x[1:3, ]), "It has 3 rows instead of 50")
  bad(tidy(fit, 7), "`matrix`")
  failed <- tryCatch(call_with(pca, list(x, k = -1)), error = identity)
  expect_identical(deparse(conditionCall(failed)), "pca(..., k = -1)")
})

test_that("columns of the same name are placed by where they are, or refused", {
  x <- as.matrix(datasets::USArrests)
  colnames(x) <- c("a", "a", "b", "c")
  fit <- pca(x, 2, seed = 1)
  expect_equal(predict(fit, x), fit$x)
  expect_equal(unname(predict(fit, unname(x))), unname(fit$x))
  expect_error(predict(fit, x[, 4:1]), "Duplicated: `a`", class = "weft_error_input")
})

test_that("the Gram matrix takes over where blocks do not converge", {
  withr::local_seed(11)
  n <- 560
  noise <- matrix(rnorm(n^2), n)
  gap <- noise + 3 * tcrossprod(matrix(rnorm(3 * n), n), matrix(rnorm(3 * n), n))
  fit <- function(x, ...) call_with(pca, list(x, 3, run = "cpu", seed = 1, ...))
  early <- fit(gap)
  expect_identical(early$method, "krylov")
  expect_lte(early$passes, 14)
  late <- fit(noise)
  expect_identical(late$method, "gram")
  expect_equal(late$passes, 6 + fit(noise, method = "gram")$passes) # three blocks show that it will be long
  expect_equal(c(early$d, late$d), c(fit(gap, method = "gram")$d, fit(noise, method = "krylov")$d), tolerance = 1e-12)
  expect_true(all(late$converged) && max(late$residual) <= 1e-12)
  same <- c("d", "rotation", "x", "passes")
  expect_identical(fit(noise, threads = 1)[same], fit(noise, threads = 2)[same])
})

test_that("engines are weighed for any number of components", {
  for (n in c(1, 30, 500, 5000)) for (p in c(1, 130, 1100, 20000)) for (k in unique(c(1, 5, 60, n, p))) {
    if (k > min(n, p)) next
    all <- vapply(c("krylov", "gram", "gs"), function(method) {
      weft:::ask_pca_plan("dense", method, list(n = n, p = p, cells = n * p, k = k, threads = 2))$cost$cpu
    }, 0)
    expect_true(all(all > 0) && all(is.finite(all[c("krylov", "gs")])))
    plan <- weft:::pca_plan(list(kind = "dense", n = n, p = p), k, "auto", 2)
    expect_true(plan$gives_way$gram_blocks == 0 || plan$methods[["cpu"]] == "krylov")
  }
  gives_way <- function(n, p, k) weft:::pca_plan(list(kind = "dense", n = n, p = p), k, "auto", 2)$gives_way
  expect_gt(gives_way(800, 800, 5)$gram_blocks, 7)
  expect_identical(gives_way(800, 800, 400), weft:::never_gives_way)
  expect_identical(gives_way(100, 50000, 3), weft:::never_gives_way)
})

test_that("few components by filtered subspaces of a large Gram matrix are those of blocks", {
  withr::local_seed(8)
  n <- 1030
  x <- matrix(stats::rnorm(n * 1024), n) + outer(stats::rnorm(n), seq(-4, 4, length.out = 1024)) +
    outer(stats::rnorm(n), rep(c(-2, 2), 512))
  a <- pca(x, 2, method = "gram", seed = 1, run = "cpu")
  b <- pca(x, 2, method = "krylov", seed = 1, run = "cpu")
  expect_equal(a$sdev, b$sdev, tolerance = 1e-10)
  expect_equal(abs(colSums(a$rotation * b$rotation)), c(PC1 = 1, PC2 = 1), tolerance = 1e-8)
})

test_that("up to 104 components are filtered from a Gram matrix, in blocks of more than a panel", {
  skip_if(is.null(get0("C_weft_panels_test", asNamespace("weft"))), "not a test build")
  withr::local_envvar(WEFT_PCA_FILTER_MANY = "1") # as on a device
  withr::local_seed(31)
  x <- matrix(stats::rnorm(1150 * 1040), 1150) %*% diag(0.97^(0:1039)) # order 1,024 or more
  exact <- svd(x - rep(colMeans(x), each = 1150), nu = 0, nv = 70)
  fit <- pca(x, 70, "gram", seed = 1, run = weft_run("cpu", threads = 1))
  expect_true(all(fit$converged))
  expect_lte(max(abs(fit$d - exact$d[1:70])) / exact$d[1], 1e-13)
  expect_lte(fit$passes, 3)
  expect_gte(min(svd(crossprod(fit$rotation, exact$v))$d), 1 - 1e-11)
  expect_lt(fit$iterations[1], 30)
})
