# What the table of twins (test-twins.R) does not say of the device: choice, interrupts, memory.

test_that("small work stays on the CPU, and what the device does not count says so", {
  d <- bn_test_data()
  expect_match(attr(bn_scores(d), "reason"), "too little for a device")
  expect_match(attr(bn_exact(d), "reason"), "too little for a device")
  expect_match(attr(bn_learn(d, iterations = 10), "reason"), "too little for a device")
  wide <- cbind(d, w = factor(sample(1:150, 7 * 150, TRUE)[1:150], 1:150), v = factor(sample(1:60, 150, TRUE), 1:60))
  expect_match(attr(bn_scores(wide, 4), "reason"), "combinations of levels")
  for (call in list(function() bn_scores(wide, 4, run = "cuda"),
                    function() bn_scores(d, score = "bds", run = "cuda"),
                    function() bn_learn(d, iterations = 10, run = "cuda", control = list(temperatures = 1:17)))) {
    expect_error(call(), class = "weft_error_device")
  }
})

test_that("work on the device can be interrupted, and leaves nothing there", {
  skip_if_no_cuda()
  d <- withr::with_seed(1, as.data.frame(matrix(sample(0:1, 300 * 28, TRUE), 300)))
  table <- bn_scores(d, 2)
  of_graphs <- bn_scores(d[1:25], 1, keep = "all")
  optimum <- bn_exact(of_graphs)$score
  big <- withr::with_seed(1, as.data.frame(matrix(sample(0:2, 1000 * 110, TRUE), 1000)))
  before <- .Call(weft:::C_weft_memory, NULL)[["device"]]
  sums <- bn_scores(d, 2, keep = "sum")
  for (work in list(function(p) bn_learn(table, iterations = 1e9, chains = 500, run = weft_run("cuda", progress = p)),
                    function(p) bn_learn(sums, iterations = 1e9, chains = 1000, target = "uniform",
                                         run = weft_run("cuda", progress = p), control = list(thin = 1e6)),
                    function(p) bn_exact(table, run = weft_run("cuda", progress = p)),
                    function(p) graph_edges(of_graphs, optimum, run_control("cuda", progress = p)),
                    function(p) bn_scores(big, 4, run = weft_run("cuda", progress = p)))) {
    expect_stops(work)
    expect_equal(.Call(weft:::C_weft_memory, NULL)[["device"]], before)
  }
})

test_that("every allocation may fail on the device, and nothing leaks", {
  skip_if_no_cuda()
  d <- bn_test_data()
  table <- bn_scores(d, 3, keep = "sum")
  expect_survives_failures(list(
    scores = function() bn_scores(d, 3, run = "cuda"),
    candidates = function() bn_scores(d, 3, "k2", candidates = 2, run = "cuda"),
    learn = function() bn_learn(table, iterations = 20, target = "sum", chains = 3, seed = 1, run = "cuda"),
    layers = function() bn_learn(table, iterations = 20, target = "uniform", chains = 3, seed = 1, run = "cuda"),
    exact = function() bn_exact(d, run = "cuda"),
    graphs = function() bn_exact(d, posterior = "dag", run = "cuda")
  ), most = 15)
})

test_that("what does not fit the device is refused with its size", {
  skip_if_no_cuda()
  d <- bn_test_data(400)
  table <- bn_scores(d)
  withr::local_options(weft.device_memory = 2000)
  ladder <- c(1, 1.5, 2.5, 4) # of two temperatures, one fits at a time
  all <- bn_scores(linked_bn_data(5, 50), 1, keep = "all", run = "cpu")
  for (call in list(function() bn_scores(d, run = "cuda"), function() bn_exact(table, run = "cuda"),
                    function() graph_edges(all, bn_exact(all, run = "cpu")$score, run_control("cuda")),
                    function() bn_learn(table, iterations = 10, run = "cuda", control = list(temperatures = ladder)),
                    function() bn_learn(all, iterations = 10, target = "uniform", run = "cuda"))) {
    expect_error(call(), class = "weft_error_memory", regexp = "device")
  }
})

test_that("damaged layers are refused on the device as on the CPU", {
  skip_if_no_cuda()
  fit <- bn_learn(bn_scores(bn_test_data(50), 3, keep = "sum", prior = bn_prior(bn_test_data(50),
                                                                               required = cbind("a", "b"))),
                  target = "uniform", iterations = 10, seed = 1, run = "cuda")
  gaps <- together <- fit
  gaps$layer[, 1L] <- c(0L, 0L, 3L, 3L, 0L)
  together$layer[, 1L] <- 0L # b cannot be without a
  for (damaged in list(gaps, together))
    expect_error(update(damaged, iterations = 10), class = "weft_error_input", regexp = "saved layers leave")
})

test_that("saved steps may lie more than 2^32 steps apart", {
  skip_if_no_cuda()
  d <- bn_test_data()[1:4]
  for (target in weft:::bn_targets) {
    expect_stops(function(p) bn_learn(d, iterations = 2^33, chains = 3, target = target, seed = 1,
                                      run = weft_run("cuda", progress = p),
                                      control = list(thin = 2^32 + 1, burn_in = 0)))
  }
})
