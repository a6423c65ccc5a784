# Hard conditions: failing allocations, stops in the middle, other instruction sets, little device memory, bad graphs,
# and inputs of other packages.
small_graph <- function() irm_sample(60, 50, 3, 0.3, seed = 2)$A
drawn <- c("row_cluster", "col_cluster", "log_posterior", "eta", "n_clusters")

test_that("a failed allocation anywhere is an error, and nothing leaks", {
  A <- as.matrix(small_graph())
  works <- list(
    graph = function(backend) weft:::irm_graph(A),
    blocked = function(backend) irm(A, chains = 2, sweeps = 2, seed = 1, max_clusters = 5, hold_out = 0.1,
                                    run = weft_run(backend, threads = 1)),
    collapsed = function(backend) irm(A, chains = 1, sweeps = 2, seed = 1, max_clusters = 5,
                                      control = list(sampler = "collapsed")),
    directed = function(backend) irm(A[1:50, ], "directed", chains = 1, sweeps = 2, seed = 1, max_clusters = 5),
    posterior = function(backend) irm_log_posterior(A, rep(1:2, 30), rep(1, 50))
  )
  for (backend in test_backends()) {
    chosen <- works[if (backend == "cpu") names(works) else "blocked"]
    expect_survives_failures(lapply(chosen, function(work) function() work(backend)), most = 12)
  }
})

test_that("runs stop when the poll says so", {
  withr::local_seed(1)
  graph <- weft:::irm_graph(data.frame(sample.int(3e4, 4e5, TRUE), sample.int(3e4, 4e5, TRUE)))
  gc() # handles of other tests
  before <- .Call(weft:::C_weft_memory, NULL)[c("host", "device")]
  stop_in <- function(..., backend = NULL) {
    expect_stops(function(progress) {
      call_with(irm, list(graph, chains = 1, sweeps = 1000, seed = 1, progress = progress, backend = backend, ...))
    }, "a run")
  }
  for (backend in test_backends()) stop_in(max_clusters = 64, split_merge = FALSE, backend = backend)
  stop_in(max_clusters = 8, sampler = "collapsed")
  stop_in(max_clusters = 8, init = list(row = rep(1:4, length.out = 3e4), col = rep(1:4, length.out = 3e4)))
  expect_identical(.Call(weft:::C_weft_memory, NULL)[c("host", "device")], before)
})

test_that("every instruction set draws the same labels", {
  best <- .Call(weft:::C_weft_simd, NULL)
  withr::defer(.Call(weft:::C_weft_simd, match(best, c("portable", "avx2", "avx512")) - 1L))
  A <- irm_sample(40, 900, 3, 0.4, seed = 3)$A # rows of more than 255 links beside columns of few
  run <- function() irm(A, chains = 1, sweeps = 6, seed = 1, max_clusters = c(20, 150), hold_out = 0.02)[c(drawn, "auc",
                                                                                                           "log_loss")]
  seen <- lapply(0:2, function(level) if (!is.null(.Call(weft:::C_weft_simd, level))) run())
  for (other in seen[-1]) if (!is.null(other)) expect_identical(other, seen[[1]])
})

test_that("a device with little memory gets the graph in shards, or says what it needs", {
  skip_if_no_cuda()
  withr::local_seed(1)
  A <- data.frame(sample.int(3000, 60000, TRUE), sample.int(2000, 60000, TRUE))
  run <- function(backend) irm(A, chains = 2, sweeps = 4, seed = 1, max_clusters = 20, run = backend,
                               control = list(split_merge = FALSE))[drawn]
  whole <- run("cpu")
  for (limit in c(2e6, 1e6, 7e5)) {
    withr::local_options(weft.device_memory = limit)
    expect_identical(run("cuda"), whole)
  }
  withr::local_options(weft.device_memory = 1e5)
  expect_error(run("cuda"), class = "weft_error_memory")
  expect_identical(.Call(weft:::C_weft_memory, NULL)[["device"]], 0)
})

test_that("tensor cores and the kernel for other devices draw the same labels", {
  skip_if_no_cuda()
  A <- irm_sample(400, 500, 5, 0.1, seed = 4)$A
  run <- function() irm(A, chains = 1, sweeps = 5, seed = 1, max_clusters = c(300, 140), run = "cuda",
                        control = list(split_merge = FALSE))[drawn]
  best <- run()
  skip_unless_test_build()
  withr::local_envvar(WEFT_IRM_NO_WGMMA = "1")
  expect_identical(run(), best)
})

test_that("what has no device code says that it runs on the CPU only", {
  A <- diag(4)
  refused <- function(words, ...) {
    expect_error(call_with(irm, list(A, ..., chains = 1, sweeps = 2, seed = 1, run = "cuda")), words,
                 class = "weft_error_device")
  }
  refused("The collapsed sampler runs on the CPU only", sampler = "collapsed")
  refused("One-mode graphs are co-clustered on the CPU only", type = "undirected", self = TRUE)
  refused("Real values are co-clustered on the CPU only", family = "gaussian")
  fit <- irm(A, chains = 1, sweeps = 2, seed = 1, control = list(sampler = "collapsed"))
  expect_identical(fit$reason, "The collapsed sampler runs on the CPU only")
  fit$backend <- fit$run$backend <- "cuda" # a saved fit may say anything
  expect_identical(update(fit, 2)$backend, "cpu")
})

test_that("bad graphs are refused in clear words", {
  refused <- function(...) expect_snapshot_error(call_with(irm, list(...)), class = "weft_error_input")
  refused(matrix(c(0, 1, 2, 0), 2))
  refused(matrix(c(0, 1, -2, 0), 2), family = "poisson")
  refused(data.frame(c(1, 7), c(1, 1)), dim = c(5, 5))
  refused(data.frame(c(1, 0), c(1, 1)))
  refused(data.frame(c(1, NA), c(1, 1)))
  refused(data.frame(c(1, 1.5), c(1, 1)))
  refused(matrix(0, 2, 3), type = "undirected")
  refused(matrix(c(0, 0, 1, 0), 2), type = "undirected")
  refused(matrix(0, 0, 3))
  refused("a graph")
  refused(matrix(0, 2, 2), missing = cbind(3, 1))
  refused(matrix(0, 2, 2), hold_out = 0.5)
  refused(matrix(0, 2, 2), init = list(row = 1:3, col = 1:2))
  refused(matrix(0, 2, 2), max_clusters = 0)
})

test_that("duplicates, empty rows and counts are taken as documented", {
  once <- irm(data.frame(c(1, 2, 4), c(1, 1, 2)), chains = 1, sweeps = 3, seed = 1, control = list(dim = c(5, 3)))
  twice <- irm(data.frame(c(1, 2, 4, 4), c(1, 1, 2, 2)), chains = 1, sweeps = 3, seed = 1,
               control = list(dim = c(5, 3)))
  expect_identical(twice[drawn], once[drawn])
  expect_length(once$row_cluster, 5)
  added <- weft:::irm_graph(data.frame(c(1, 1), c(2, 2), c(3, 4)), family = "poisson")
  expect_identical(added$links$weight, 7L)
})

test_that("karate reaches its best known posterior", {
  skip_if_not_installed("igraph")
  skip_on_cran()
  fit <- irm(as.matrix(igraph::as_adjacency_matrix(igraph::make_graph("Zachary"))), seed = 1, sweeps = 100)
  expect_equal(max(fit$log_posterior), -393.5753, tolerance = 1e-6)
})

test_that("graphs without structure have one cluster", {
  for (seed in 1:3) {
    withr::local_seed(seed)
    fit <- irm(matrix(stats::rbinom(900, 1, 0.5), 30), seed = seed, sweeps = 40)
    expect_identical(c(max(fit$row_cluster), max(fit$col_cluster), max(fit$consensus$row), max(fit$consensus$col)),
                     rep(1L, 4))
  }
  withr::local_seed(1)
  A <- matrix(stats::rbinom(900, 1, 0.5), 30)
  for (type in c("directed", "undirected")) {
    if (type == "undirected") A <- 1 * (A & t(A))
    expect_identical(max(irm(A, type = type, seed = 1, sweeps = 40)$row_cluster), 1L)
  }
})

test_that("masked links are predicted as by the true model, and chains agree beyond chance", {
  planted <- irm_sample(300, 300, 4, 0.2, seed = 5)
  fit <- irm(planted$A, chains = 2, sweeps = 60, seed = 1, hold_out = 0.1)
  truth <- planted$eta[cbind(planted$row_cluster[fit$held_out$row], planted$col_cluster[fit$held_out$col])]
  expect_equal(fit$auc, irm_auc(truth, fit$held_out$count > 0), tolerance = 0.005)
  expect_true(all(fit$nmi$nmi > 0.9 & fit$nmi$chance < 0.1))
})

test_that("pairs to hide are found in a graph that is nearly full", {
  full <- function(n, type) {
    A <- matrix(1, n, n)
    A[cbind(c(2, 5, n), c(7, 9, n - 3))] <- 0
    if (type == "undirected") A <- A * t(A)
    A
  }
  for (type in c("bipartite", "directed", "undirected")) {
    A <- full(300, type)
    fit <- irm(A, type, hold_out = 0.01, chains = 1, sweeps = 1, seed = 1)
    none <- fit$held_out[fit$held_out$count == 0, ]
    expect_identical(nrow(none), 3L)
    expect_true(all(A[cbind(none$row, none$col)] == 0))
    if (type == "undirected") expect_true(all(none$row <= none$col))
  }
  fit <- irm(matrix(1, 6, 6), "directed", hold_out = 0.2, chains = 1, sweeps = 1, seed = 1)
  expect_identical(sum(fit$held_out$count == 0), 0L)
})
