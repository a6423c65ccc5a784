# From matrices to graphs, where chains start, and how soon they find what was planted.
same_graph <- function(A, B, ...) expect_identical(weft:::irm_graph(A, ...), weft:::irm_graph(B, ...))

test_that("compressed matrices are the graphs that dense ones are", {
  withr::local_seed(1)
  A <- matrix(rbinom(35, 1, 0.4), 7, dimnames = list(letters[1:7], NULL))
  A[3, ] <- 0
  A[, 2] <- 0
  sparse <- Matrix::Matrix(A, sparse = TRUE)
  for (class in c("dMatrix", "lMatrix", "nMatrix")) {
    for (form in c("CsparseMatrix", "RsparseMatrix", "TsparseMatrix")) {
      same_graph(methods::as(methods::as(sparse, class), form), A)
    }
  }
  same_graph(Matrix::sparseMatrix(i = c(1, 1, 2), j = c(2, 2, 1), dims = c(2, 3), repr = "T"),
             rbind(c(0, 1, 0), c(1, 0, 0)))
  zeros <- methods::as(sparse, "dMatrix")
  zeros@x[c(1, 4)] <- 0 # stored, and no link
  same_graph(zeros, as.matrix(zeros))
  gaps <- methods::as(sparse, "dMatrix")
  gaps@x[3] <- NA
  same_graph(gaps, as.matrix(gaps))
  same_graph(sparse, A, missing = cbind(c(1, 3), c(1, 4)))
  same_graph(3 * sparse, 3 * A, family = "poisson")
  same_graph(3 * sparse, 3 * A, input = list(self = FALSE, threshold = 2))
  square <- A[, c(1:5, 1, 3)]
  for (self in c(FALSE, TRUE)) {
    same_graph(Matrix::Matrix(square, sparse = TRUE, doDiag = FALSE), square, type = "directed",
               input = list(self = self))
  }
  both <- 1 * (square | t(square))
  dimnames(both) <- NULL
  same_graph(Matrix::Matrix(both, sparse = TRUE, doDiag = FALSE), both, type = "undirected")
  same_graph(Matrix::Matrix(0, 3, 4, sparse = TRUE), matrix(0, 3, 4))
  expect_error(weft:::irm_graph(2 * sparse), "must contain only 0 and 1", class = "weft_error_input")
  expect_error(weft:::irm_graph(1.5 * sparse, family = "poisson"), "whole numbers", class = "weft_error_input")
})

test_that("a list by column that is damaged is refused", {
  turn <- function(start, to, n_col = 2L) {
    columns <- list(n_row = n_col, n_col = 3L, start = start, to = to, weight = NULL)
    .Call(weft:::C_weft_irm_turned, columns, FALSE, weft:::run_control("cpu", 1L, FALSE))
  }
  expect_identical(turn(c(0, 2, 3), c(0L, 2L, 1L))[c("start", "to")], list(start = c(0, 1, 2, 3), to = c(0L, 1L, 0L)))
  for (bad in list(c(0L, 3L, 1L), c(0L, -1L, 1L), c(1L, 1L, 1L))) {
    expect_error(turn(c(0, 2, 3), bad), "is damaged", class = "weft_error_input")
  }
  expect_error(turn(c(0, 2, 4), c(0L, 2L, 1L)), "is damaged", class = "weft_error_input")
})

start_of <- function(A, k, chains = 2, threads = 1L, ...) {
  graph <- weft:::irm_graph(A, ...)
  model <- list(poisson = FALSE, collapsed = FALSE, nested = FALSE, degrees = FALSE, attempts = 0,
                sample_alpha = FALSE, sample_beta = FALSE, hyper = rep(1, 4), max_clusters = k, key = c(0, 7))
  .Call(weft:::C_weft_irm_start, weft:::native_graph(graph), weft:::native_model(model), as.integer(chains),
        weft:::run_control("cpu", threads, FALSE))
}

test_that("chains start from clusters of nodes that are alike", {
  planted <- irm_sample(400, 300, 4, 0.3, seed = 1)
  z <- start_of(planted$A, c(40, 30))
  expect_true(all(z$row %in% 0:39) && all(z$col %in% 0:29))
  row <- matrix(z$row, 400)
  expect_false(identical(row[, 1], row[, 2]))
  shared <- function(labels) {
    truth <- cbind(planted$row_cluster)
    weft:::own_entropies(cbind(labels)) + weft:::own_entropies(truth) - weft:::joint_entropies(labels, truth)
  }
  shuffled <- row[order(weft:::draws("uniform", 400, key = 1)), 1] + 1L
  expect_gt(shared(row[, 1] + 1L), 2 * shared(shuffled))
  expect_identical(start_of(planted$A, c(40, 30), threads = 3L), z)
  expect_identical(start_of(planted$A, c(40, 30), chains = 1)$row, row[, 1]) # a chain's start is its own
  for (A in list(matrix(0, 5, 4), matrix(1, 5, 4), diag(5)[, 1:4], matrix(1, 1, 1))) {
    z <- start_of(A, c(3, 2))
    expect_true(all(z$row %in% 0:2) && all(z$col %in% 0:1))
  }
  B <- 1 * (as.matrix(planted$A)[1:60, 1:60] | t(as.matrix(planted$A)[1:60, 1:60]))
  for (type in c("undirected", "directed")) {
    z <- start_of(B, c(8, 0), type = type)
    expect_true(all(z$row %in% 0:7) && length(z$row) == 120 && length(z$col) == 0)
  }
})

test_that("threads that weigh proposals side by side change nothing", {
  A <- irm_sample(700, 600, 8, 0.3, seed = 2)$A # links enough for threads everywhere
  part <- c("row_cluster", "col_cluster", "log_posterior", "n_clusters", "eta")
  run <- function(threads, ...) call_with(irm, list(A, chains = 1, sweeps = 8, seed = 3,
                                                    run = weft_run(threads = threads), ...))[part]
  for (sampler in c("blocked", "collapsed")) {
    one <- run(1, sampler = sampler, max_clusters = 30)
    for (threads in c(2, 5, 20)) expect_identical(run(threads, sampler = sampler, max_clusters = 30), one)
  }
})

test_that("planted clusters are found in few sweeps", {
  for (seed in 1:3) {
    planted <- irm_sample(1000, 1000, 10, 0.1, seed = seed)
    fit <- irm(planted$A, chains = 2, sweeps = 22, seed = seed)
    truth <- irm_log_posterior(planted$A, planted$row_cluster, planted$col_cluster)
    expect_gt(max(fit$log_posterior), truth - 10)
  }
})

test_that("an argument that there is none of is an error that names what is meant", {
  expect_error(irm(diag(4), k = 2), "did you mean `max_clusters`", class = "weft_error_input")
  expect_error(irm(diag(4), n_iter = 2), "did you mean `sweeps`", class = "weft_error_input")
  expect_error(irm(diag(4), nonsense = 2), "Unknown argument `nonsense`", class = "weft_error_input")
  fit <- irm(diag(4), chains = 1, sweeps = 4, seed = 1)
  expect_error(predict(fit, newdata = cbind(1, 1)), "did you mean `pairs`", class = "weft_error_input")
  expect_error(update(fit, 2, burnin = 1), "Unknown argument `burnin`", class = "weft_error_input")
})

test_that("devices share sweeps only where these are long", {
  run <- function(links, nodes, clusters, chains = 1) {
    list(backend = "cuda", chains = chains, model = list(max_clusters = clusters),
         graph = list(links = list(n_row = nodes, n_col = nodes, to = integer(links))))
  }
  long <- run(3e7, 1e6, c(2000, 2000))
  short <- run(1e5, 1e4, c(100, 100))
  expect_identical(weft:::irm_devices(0:3, long), 0:3)
  expect_identical(weft:::irm_devices(0:3, short), 0L)
  expect_identical(weft:::irm_devices(0:3, run(1e5, 1e4, c(100, 100), chains = 2)), 0:1)
  expect_identical(weft:::irm_devices(0:3, run(1e5, 1e4, c(100, 100), chains = 4)), 0:3)
  expect_identical(weft:::irm_devices(c(0L, 0L, 0L), short), c(0L, 0L, 0L))
})

test_that("parts of planted clusters are joined in the first sweeps", {
  withr::local_seed(3)
  z <- sample.int(4, 300, TRUE)
  w <- sample.int(3, 240, TRUE)
  rate <- matrix(c(0.1, 0.5, 0.3, 0.7, 0.6, 0.2, 0.8, 0.4, 0.9, 0.3, 0.1, 0.5), 4)[z, w]
  tables <- list(bernoulli = 1 * (runif(length(rate)) < rate), poisson = rpois(length(rate), 3 * rate),
                 gaussian = rnorm(length(rate), 4 * rate))
  parts <- list(row = 5 * z + sample.int(5, 300, TRUE), col = 4 * w + sample.int(4, 240, TRUE))
  for (family in names(tables)) {
    x <- matrix(tables[[family]], 300)
    fits <- lapply(1:2, function(threads) {
      irm(x, family = family, chains = 1, sweeps = 8, seed = 2, max_clusters = 32, run = weft_run(threads = threads),
          control = list(init = parts, split_merge = 1))
    })
    fit <- fits[[1]]
    expect_gt(irm_nmi(fit$row_cluster, z), 0.98)
    expect_gt(irm_nmi(fit$col_cluster, w), 0.98)
    expect_identical(fits[[2]][c("row_cluster", "col_cluster", "log_posterior")],
                     fit[c("row_cluster", "col_cluster", "log_posterior")])
    expect_equal(max(fit$log_posterior), irm_log_posterior(x, fit$row_cluster, fit$col_cluster, family = family))
  }
})

test_that("mixtures, of which sparse graphs have many at first, are not joined", {
  withr::local_seed(1)
  z <- sample.int(20, 1000, TRUE)
  w <- sample.int(20, 1000, TRUE)
  rate <- matrix(rgamma(400, 2), 20)[z, w]
  A <- 1 * (matrix(runif(1e6), 1000) < 0.05 * rate / mean(rate))
  fit <- irm(A, chains = 1, sweeps = 40, seed = 1)
  expect_gt(max(fit$log_posterior), irm_log_posterior(A, z, w) - 300) # 1,000 to 2,000 lower if they are
})
