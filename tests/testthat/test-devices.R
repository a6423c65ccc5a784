# Work dealt over devices. The dealing, the host threads and the joining of results are the same whatever a part runs
# on: here most tests give the CPU several "devices" through the control list; one device twice, or all there are,
# follow.

# One device twice, and all there are.
device_lists <- function() unique(list(c(0, 0), c(0, 0, 0), seq_len(nrow(weft_devices())) - 1))

# What native code is handed, with `parts` host threads.
dealt_control <- function(parts, backend = "cpu", devices = integer(parts), progress = FALSE) {
  weft:::run_control(backend, 2, progress, devices = devices)
}

# Different kinds of columns: binary, three levels, missing values, many levels.
mixed_data <- function(n = 150, p = 130) {
  withr::with_seed(3, {
    x <- as.data.frame(matrix(sample(0:1, n * p, TRUE), n))
    for (j in seq(3, p, 3)) x[[j]] <- sample(0:2, n, TRUE)
    for (j in seq(5, p, 20)) x[[j]][sample(n, 5)] <- NA
    for (j in c(8, 50)) x[[j]] <- sample(40, n, TRUE)
    list(x = x, class = (x[[1]] + x[[4]] + sample(0:1, n, TRUE, c(0.9, 0.1))) %% 2)
  })
}

# Results of a search by some number of parts, by what `control` says.
search_with <- function(pack, control, order = 2L, top = 40, by_interaction = FALSE, side = NULL, min_mi = -Inf) {
  how <- c(list(order = order, top = top, by_interaction = by_interaction, min_mi = min_mi, min_gain = -Inf, part = 0L,
                parts = 1L), weft:::near_list(NULL))
  .Call(weft:::C_weft_mi_search, weft:::pack_pointer(pack), side, how, control)
}

test_that("all pairs come once, whatever the number of parts", {
  d <- mixed_data(40, 70)
  pack <- mi_pack(d$x, d$class, na = "level")
  whole <- search_with(pack, dealt_control(1), top = Inf)
  expect_identical(ncol(whole$columns), as.integer(choose(70, 2)))
  for (parts in c(2, 3, 7, 64)) expect_identical(search_with(pack, dealt_control(parts), top = Inf), whole)
})

test_that("searches and permutation tests do not depend on the number of parts", {
  d <- mixed_data()
  pack <- mi_pack(d$x, d$class, na = "drop")
  side <- as.raw(rep_len(c(1, 3, 2, 0, 1), ncol(d$x)))
  searches <- list(list(), list(by_interaction = TRUE, top = 7), list(side = side, top = Inf, min_mi = 0.03),
                   list(order = 3L, top = 25))
  for (search in searches) {
    one <- do.call(search_with, c(list(pack, dealt_control(1)), search))
    for (parts in c(2, 5)) expect_identical(do.call(search_with, c(list(pack, dealt_control(parts)), search)), one)
  }
  found <- search_with(pack, dealt_control(1), top = 9, side = side)$columns
  test <- function(parts, rank = 0L, ranks = 1L) {
    how <- c(list(by_interaction = FALSE, permutations = 11, key = c(0, 5), part = rank, parts = ranks),
             weft:::near_list(NULL))
    .Call(weft:::C_weft_mi_permute_pairs, weft:::pack_pointer(pack), side, found, how, dealt_control(parts))
  }
  one <- test(1)
  for (parts in c(2, 3, 12)) expect_identical(test(parts)[c("at_least", "greatest")], one[c("at_least", "greatest")])
  ranks <- lapply(0:2, function(rank) test(2, rank, 3L)) # three ranks with two devices each
  expect_identical(Reduce(`+`, lapply(ranks, `[[`, "at_least")), one$at_least)
  expect_identical(do.call(pmax, lapply(ranks, `[[`, "greatest")), one$greatest)
})

# The same chains by several parts.
chains_with <- function(table, run, parts, ...) weft:::run_chains(table, run, NULL, dealt_control(parts, ...))

test_that("chains do not depend on the number of parts", {
  d <- bn_test_data()
  for (target in c("max", "sum")) {
    table <- bn_scores(d, 3, keep = target)
    for (temperatures in list(1, c(1, 2, 4))) {
      run <- weft:::chain_settings(60, 5, list(temperatures = temperatures, swap_every = 7, thin = 4, burn_in = 8), 6,
                                   target, 11)
      run$order <- weft:::start_orders(NULL, table$nodes, run)
      one <- chains_with(table, run, 1)
      for (parts in c(2, 4, 8)) expect_identical(chains_with(table, run, parts), one)
    }
  }
})

test_that("direct sums do not depend on the number of parts", {
  x <- withr::with_seed(4, matrix(stats::rnorm(3 * 9000), 9000))
  y <- x[1:40, ] + 0.1
  for (scale in list(0.7, c(0.5, 1, 2))) {
    p <- weft:::kernel_problem(x, y, cbind(1:40, 1), "gaussian", scale, 0, 0, 1, NULL, FALSE, FALSE,
                               weft:::as_run(weft_run(threads = 2)))
    task <- weft:::native_task(p, weft:::native_points(p$query, p), weft:::native_points(p$reference, p),
                               weft:::split_weights(p))
    direct <- function(parts) .Call(weft:::C_weft_kernel_direct, task, dealt_control(parts))$sum
    one <- direct(1)
    single <- if (length(scale) == 1) .Call(weft:::C_weft_kernel_single, task, NULL, FALSE, dealt_control(1))
    for (parts in c(2, 3, 5)) {
      expect_identical(direct(parts), one)
      if (length(scale) == 1) expect_identical(.Call(weft:::C_weft_kernel_single, task, NULL, FALSE,
                                                     dealt_control(parts)), single)
    }
  }
})

test_that("a query leaves itself out on any part", {
  x <- withr::with_seed(4, matrix(stats::rnorm(2 * 9000), 9000))
  p <- weft:::kernel_problem(x, NULL, NULL, "gaussian", 0.3, leave_one_out = TRUE, run = weft_run(threads = 2))
  points <- weft:::native_points(x, p)
  task <- weft:::native_task(p, points, points, weft:::split_weights(p))
  direct <- function(parts) .Call(weft:::C_weft_kernel_direct, task, dealt_control(parts))$sum
  one <- direct(1)
  for (parts in 2:4) expect_identical(direct(parts), one)
  some <- c(1, 4096, 4097, 8193, 9000) # first and last of the parts' queries
  expect_equal(one[some], vapply(some, function(i) sum(exp(-colSums((t(x[-i, ]) - x[i, ])^2) / 0.18)), 0),
               tolerance = 1e-12)
})

# A decomposition by some number of parts.
pca_with <- function(x, method, parts, weights = NULL, single = FALSE, ...) {
  source <- weft:::cut_blocks(weft:::pca_source(x), parts)
  control <- dealt_control(parts, ...)
  rows <- if (is.null(weights)) source$n else sum(weights)
  form <- weft:::pca_form(weft:::column_moments(source, weights, control), TRUE, FALSE, weights, NULL, rows)
  job <- c(list(method = method, choose = FALSE, k = min(4L, source$n), tol = 1e-12, paper = FALSE,
                max_iter = 1000, block = 0L, key = c(1, 2), start = NULL), weft:::never_gives_way)
  weft:::pca_native(source, form, job, single, control)
}

test_that("principal components do not depend on the number of parts", {
  sparse <- withr::with_seed(7, lapply(c(100, 1, 60), function(n) Matrix::rsparsematrix(n, 40, 0.2)))
  inputs <- withr::with_seed(6, list(
    matrix(stats::rnorm(300 * 40), 300), matrix(stats::rnorm(540 * 520), 540), matrix(stats::rnorm(30 * 400), 30),
    diag(c(4, 2, 1)),
    sparse[[1]], sparse
  ))
  same <- function(a, b) {
    expect_equal(a$d, b$d, tolerance = 1e-13)
    expect_equal(a$v, b$v, tolerance = 1e-9)
    expect_equal(a$u, b$u, tolerance = 1e-9)
  }
  for (x in inputs) for (method in c("krylov", "gram")) {
    one <- pca_with(x, method, 1)
    for (parts in if (method == "gram") c(2, 5) else 3) same(pca_with(x, method, parts), one)
  }
  weights <- seq(0.1, 3, length.out = 300)
  same(pca_with(inputs[[1]], "gram", 3, weights), pca_with(inputs[[1]], "gram", 1, weights))
  same(pca_with(inputs[[1]], "gram", 3, single = TRUE), pca_with(inputs[[1]], "gram", 1, single = TRUE))
})

test_that("parts that meet end together", {
  x <- withr::with_seed(8, matrix(stats::rnorm(300 * 150), 300))
  one <- pca_with(x, "krylov", 1)
  expect_stops(function(progress) pca_with(x, "krylov", 3, progress = progress), "components in parts")
  expect_survives_failures(most = 15, list(components = function() {
    stopifnot(isTRUE(all.equal(pca_with(x, "krylov", 3)$d, one$d, tolerance = 1e-13)))
  }))
})

test_that("what rows cannot be shared for says so", {
  skip_if_no_cuda()
  x <- matrix(stats::rnorm(200), 20)
  expect_error(pca(x, 2, method = "gs", run = weft_run("cuda", devices = c(0, 0))), class = "weft_error_input",
               regexp = "\"gs\"")
  expect_error(pca(replace(x, 3, NA), 2, run = weft_run("cuda", devices = c(0, 0))), class = "weft_error_input",
               regexp = "complete")
  withr::local_options(weft.devices = c(0, 0))
  expect_no_error(pca(x, 2, method = "gs", run = "cuda"))
})

test_that("principal components are those of one device to rounding", {
  skip_if_no_cuda()
  inputs <- withr::with_seed(9, list(
    tall = matrix(stats::rnorm(3000 * 50), 3000) %*% diag(0.9^(1:50)),
    filtered = matrix(stats::rnorm(2000 * 600), 2000),
    wide = matrix(stats::rnorm(70 * 500), 70), sparse = Matrix::rsparsematrix(900, 200, 0.05),
    few = matrix(stats::rnorm(12), 3)
  ))
  for (devices in device_lists()) for (x in inputs) for (method in c("krylov", "gram")) {
    k <- min(3, nrow(x) - 1)
    fit <- function(devices, ...) call_with(pca, list(x, k, method = method, seed = 1,
                                                      run = weft_run("cuda", devices = devices), ...))
    one <- suppressWarnings(fit(0))
    several <- suppressWarnings(fit(devices))
    expect_equal(several$sdev, one$sdev, tolerance = 1e-12)
    expect_equal(several$rotation, one$rotation, tolerance = 1e-8)
    expect_equal(several$x, one$x, tolerance = 1e-8)
    if (is.matrix(x)) expect_equal(suppressWarnings(fit(devices, precision = "single"))$sdev, one$sdev,
                                   tolerance = 1e-9)
  }
})

# The state that irm() starts from with its default arguments.
start_like_irm <- function(run, chains) {
  weft:::start_state(run$graph, NULL, run$model, chains, weft:::check_hyper(1, c(1, 1)))
}

test_that("co-clustering does not depend on the number of parts", {
  planted <- irm_sample(50, 40, k = 3, density = 0.3, seed = 1)
  fit <- irm(planted$A, chains = 5, sweeps = 6, seed = 3, control = list(thin = 2))
  run <- fit$run
  run$done <- 0
  run$state <- start_like_irm(run, 5)
  chains <- function(parts) weft:::irm_chains(run, 6, NULL, dealt_control(parts))
  one <- chains(1)
  expect_identical(matrix(one$log_posterior, 6), fit$run$trace$log_posterior)
  for (parts in c(2, 3, 7)) expect_identical(chains(parts), one)
})

# Chains of a fit by some number of parts: fewer chains than parts share their sweeps.
chains_by <- function(fit, chains, sweeps, ...) {
  run <- fit$run
  run$done <- 0
  run$chains <- chains
  size <- c(run$graph$links$n_row, run$graph$links$n_col)
  run$state <- start_like_irm(run, chains)
  left <- weft:::irm_chains(run, sweeps, NULL, dealt_control(...))
  left$stages <- NULL
  left
}

# Graphs of both families, with missing pairs and with nodes of many links or none.
shared_graphs <- function(n, p) {
  planted <- irm_sample(n, p, k = 4, density = 0.15, seed = 2)$A + 0
  planted <- as.matrix(planted)
  planted[3, ] <- 1
  planted[, p] <- 0
  counts <- planted * withr::with_seed(3, sample(3, length(planted), TRUE))
  hidden <- withr::with_seed(4, unique(cbind(sample(n, 40, TRUE), sample(p, 40, TRUE))))
  list(
    irm(planted, chains = 1, sweeps = 1, seed = 5, run = "cpu"),
    irm(counts, family = "poisson", missing = hidden, chains = 1, sweeps = 1, seed = 5, run = "cpu",
        control = list(split_merge = FALSE))
  )
}

test_that("sweeps do not depend on the number of parts that share them", {
  for (fit in shared_graphs(60, 45)) {
    one <- chains_by(fit, 2, 7, 1)
    for (parts in c(3, 6)) expect_identical(chains_by(fit, 2, 7, parts), one)
  }
})

test_that("an interrupt, an error and a lack of memory in a part end all parts and leave nothing", {
  d <- mixed_data()
  pack <- mi_pack(d$x, d$class, na = "drop")
  table <- bn_scores(bn_test_data(), 3)
  run <- weft:::chain_settings(1e9, 4, list(temperatures = 1, swap_every = 7, thin = 1e6, burn_in = 0), 6, "max", 11)
  run$order <- weft:::start_orders(NULL, table$nodes, run)
  gc()
  before <- .Call(weft:::C_weft_memory, 0)
  expect_stops(function(progress) chains_with(table, run, 3, progress = progress), "chains in parts")
  expect_stops(function(progress) search_with(pack, dealt_control(3, progress = progress), order = 3L),
               "a search in parts")
  gc()
  expect_identical(.Call(weft:::C_weft_memory, 0)[c("host", "device")], before[c("host", "device")])
  run$order[] <- rep(rev(seq_along(table$nodes)) - 1L, 4)
  run$iterations <- 50
  run$thin <- 10
  expect_survives_failures(most = 20, list(
    search = function() {
      own <- mi_pack(d$x, d$class, na = "drop")
      on.exit(weft_free(own))
      stopifnot(ncol(search_with(own, dealt_control(3))$columns) == 40L)
    },
    chains = function() chains_with(table, run, 3)
  ))
})

test_that("devices are NULL, all or numbers that there are", {
  withr::local_options(weft.device = NULL, weft.devices = NULL)
  expect_identical(weft:::devices_for(NULL, "cuda"), 0L)
  for (bad in list("both", -1, 0.5, NA_real_, numeric(), list(0), rep(0, 65))) {
    expect_error(weft:::devices_for(bad, "cpu"), class = "weft_error_input", regexp = "device numbers")
  }
  expect_identical(weft:::devices_for("all", "cpu"), 0L)
  withr::local_options(weft.devices = "none")
  expect_error(mi_pairs(matrix(0:1, 4, 3), c(0, 1, 0, 1)), class = "weft_error_input", regexp = "weft.devices")
  expect_error(kernel_sum(matrix(0, 4, 3), run = weft_run(devices = "both")), class = "weft_error_input",
               regexp = "`devices`")
  skip_if_no_cuda()
  there <- nrow(weft_devices())
  withr::local_options(weft.devices = NULL)
  expect_identical(weft:::devices_for("all", "cuda"), seq_len(there) - 1L)
  expect_identical(weft:::devices_for("all", "cuda", 0), 0L)
  expect_identical(weft:::devices_for("all", "cuda", 1e6), seq_len(there) - 1L)
  # what would pay if it were open is opened beside the work
  weft:::devices_for("all", "cuda", 0.3)
  .Call(weft:::C_weft_beside_wait)
  expect_true(all(.Call(weft:::C_weft_devices_opened, weft:::cuda_dir())))
  expect_identical(weft:::devices_for("all", "cuda", 0.3), seq_len(there) - 1L)
  expect_error(weft:::devices_for(there, "cuda"), class = "weft_error_input", regexp = "There is no device")
})

test_that("searches give the same on one device and on several", {
  skip_if_no_cuda()
  d <- mixed_data(600, 700)
  binary <- withr::with_seed(1, matrix(sample(0:1, 800 * 900, TRUE), 800))
  class <- xor(binary[, 3], binary[, 700])
  plain <- function(x) as.data.frame(x)
  for (devices in device_lists()) {
    on <- function(f, ...) plain(call_with(f, list(..., backend = "cuda", devices = devices)))
    one <- function(f, ...) plain(call_with(f, list(..., backend = "cuda", devices = 0)))
    expect_identical(on(mi_pairs, d$x, d$class, na = "drop", top = 300),
                     one(mi_pairs, d$x, d$class, na = "drop", top = 300))
    expect_identical(on(mi_pairs, binary, class, top = 500), one(mi_pairs, binary, class, top = 500))
    expect_identical(on(mi_pairs, binary, class, min_mi = 0.02, top = Inf),
                     one(mi_pairs, binary, class, min_mi = 0.02, top = Inf))
    expect_identical(on(mi_pairs, binary, class, top = 20, by = "interaction", permutations = 5, seed = 1),
                     one(mi_pairs, binary, class, top = 20, by = "interaction", permutations = 5, seed = 1))
    if (weft:::has_bit_wgmma()) {
      expect_identical(on(mi_triples, binary[, 1:300], class, top = 100),
                       one(mi_triples, binary[, 1:300], class, top = 100))
    }
    pack <- mi_pack(binary, class)
    first <- one(mi_pairs, pack, top = 50)
    for (turn in 1:2) expect_identical(on(mi_pairs, pack, top = 50), first) # the copies stay
    expect_identical(one(mi_pairs, pack, top = 50), first)
    weft_free(pack)
  }
})

test_that("chains give the same on one device and on several", {
  skip_if_no_cuda()
  d <- bn_test_data(300)
  same <- c("dag", "score", "dags", "edges", "trace", "order", "counts", "diagnostics")
  for (target in weft:::bn_targets) {
    table <- bn_scores(d, 3, keep = if (target == "max") "max" else "sum")
    learn <- function(devices) {
      fit <- bn_learn(table, iterations = 300, chains = 7, target = target, seed = 2,
                      run = weft_run("cuda", devices = devices))
      unclass(fit)[same]
    }
    one <- learn(0)
    for (devices in device_lists()) expect_identical(learn(devices), one)
  }
})

test_that("direct sums are those of one device to rounding", {
  skip_if_no_cuda()
  x <- withr::with_seed(5, matrix(stats::rnorm(4 * 30000), 30000))
  sums <- function(devices, ...) {
    call_with(kernel_sum, list(x, x[1:5000, ], bandwidth = 0.4, method = "direct",
                               run = weft_run("cuda", devices = devices), ...))
  }
  for (devices in device_lists()) {
    expect_equal(sums(devices), sums(0), tolerance = 1e-13)
    expect_equal(sums(devices, precision = "single"), sums(0, precision = "single"), tolerance = 1e-5)
    expect_equal(sums(devices, kernel = "epanechnikov"), sums(0, kernel = "epanechnikov"), tolerance = 1e-13)
    alone <- function(devices) {
      withr::local_options(weft.devices = devices) # what NULL means
      kernel_sum(x, bandwidth = 0.4, method = "direct", run = "cuda", leave_one_out = TRUE)
    }
    expect_equal(alone(devices), alone(0), tolerance = 1e-13)
  }
})

test_that("sums over a grid are the same on one device and on several", {
  skip_if_no_cuda()
  x <- withr::with_seed(6, matrix(stats::runif(3 * 40000), 40000))
  w <- cbind(seq(-1, 1, length.out = 40000), 1)
  sums <- function(devices, query = x, ..., kernel = "epanechnikov") {
    call_with(kernel_sum, list(query, ..., kernel = kernel, bandwidth = 0.05, method = "tree",
                               run = weft_run("cuda", devices = devices)))
  }
  for (devices in device_lists()) {
    expect_identical(sums(devices, weights = w, leave_one_out = TRUE), sums(0, weights = w, leave_one_out = TRUE))
    expect_identical(sums(devices, x[1:9999, ] * 1.3, x, w), sums(0, x[1:9999, ] * 1.3, x, w))
    expect_equal(sums(devices, rel_error = 0.01, kernel = "gaussian"), sums(0, rel_error = 0.01, kernel = "gaussian"),
                 tolerance = 1e-13)
  }
})

test_that("co-clustering gives the same on one device and on several", {
  skip_if_no_cuda()
  planted <- irm_sample(300, 200, k = 4, density = 0.1, seed = 1)
  fit <- function(devices) {
    irm(planted$A, chains = 4, sweeps = 10, seed = 3, run = weft_run("cuda", devices = devices))[c("log_posterior",
                                                                                                   "row_cluster")]
  }
  one <- fit(0)
  for (devices in device_lists()) expect_identical(fit(devices), one)
})

test_that("sweeps give the same on one device and on several that share them", {
  skip_if_no_cuda()
  for (fit in shared_graphs(700, 400)) {
    one <- chains_by(fit, 1, 8, 1)
    expect_identical(chains_by(fit, 1, 8, 1, "cuda", 0L), one)
    for (devices in device_lists()) expect_identical(chains_by(fit, 1, 8, length(devices), "cuda", as.integer(devices)),
                                                     one)
    withr::with_options(list(weft.device_memory = 3e6), { # shards that do not stay
      expect_identical(chains_by(fit, 1, 3, 2, "cuda", c(0L, 0L)), chains_by(fit, 1, 3, 1))
    })
  }
})

test_that("a later call asks the driver for nothing", {
  memory <- function() .Call(weft:::C_weft_memory, NULL)
  before <- memory()
  expect_null(weft_free())
  expect_identical(memory()[["device_kept"]], 0)
  skip_if_no_cuda()
  d <- mixed_data(60, 40)
  points <- matrix(stats::rnorm(800), 200)
  sparse <- Matrix::rsparsematrix(20000, 600, 0.002) # more than becomes dense
  wide <- matrix(stats::rnorm(400 * 420), 420) # by cuSOLVER
  calls <- list(
    function() mi_pairs(d$x[1:8], d$class, na = "drop", top = 5, run = "cuda"),
    function() kernel_sum(points, method = "direct", run = "cuda"),
    function() pca(points, 2, "krylov", seed = 1, run = "cuda"),
    function() pca(points, 2, "gram", seed = 1, run = "cuda"),
    function() pca(sparse[1:200, 1:50], 2, seed = 1, run = "cuda"),
    function() pca(sparse, 2, "krylov", seed = 1, run = "cuda"),
    function() pca(sparse, 2, seed = 1, run = "cuda"),
    function() pca(wide, 2, "gram", seed = 1, run = "cuda")
  )
  for (k in seq_along(calls)) {
    for (i in 1:2) suppressWarnings(calls[[k]]())
    there <- memory()
    suppressWarnings(calls[[k]]())
    expect_identical(memory()[["made"]], there[["made"]], info = deparse(calls[[k]]))
    expect_identical(memory()[["device_kept"]], there[["device_kept"]], info = deparse(calls[[k]]))
  }
  expect_gt(memory()[["device_kept"]], 0)
  expect_lte(memory()[["device_kept"]], 128 * 2^20)
  # a limit is a limit of all that weft has on a device
  withr::with_options(list(weft.device_memory = 1e9), calls[[2]]())
  expect_identical(memory()[["device_kept"]], 0)
  calls[[2]]()
  weft_free()
  expect_identical(memory()[c("device", "device_kept")], c(device = before[["device"]], device_kept = 0))
})
