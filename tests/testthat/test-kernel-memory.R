test_that("a failed allocation anywhere in a kernel sum is an error, and nothing leaks", {
  x <- matrix(sin(seq_len(300)), ncol = 2)
  expect_survives_failures(list(
    direct = function() kernel_sum(x, method = "direct"),
    tree = function() kernel_sum(x, method = "tree", bandwidth = c(1, 2), rel_error = 0.1),
    ball = function() kernel_tree(x, "ball"),
    single = function() kernel_sum(x, control = list(precision = "single")),
    mesh = function() kernel_sum(x, method = "mesh", rel_error = 0.01),
    pairs = function() weft:::mesh_pairs(x, 0.01)(1)
  ))
})

test_that("builds, walks and direct sums stop when the poll says so", {
  withr::local_seed(1)
  x <- matrix(runif(3e6), ncol = 3)
  gc() # handles of other tests
  before <- .Call(weft:::C_weft_memory, NULL)[["host"]]
  expect_stops(function(p) kernel_tree(x, run = weft_run(progress = p)), "a build")
  expect_stops(function(p) kernel_sum(x[1:20000, ], x, method = "direct", run = weft_run("cpu", progress = p)),
               "a direct sum")
  expect_stops(function(p) kernel_sum(x, method = "mesh", bandwidth = 0.05, rel_error = 1e-6,
                                      run = weft_run(threads = 1, progress = p)), "a mesh")
  tree <- kernel_tree(x)
  expect_stops(function(p) kernel_sum(x[1:20000, ], method = "tree", bandwidth = 0.05, run = weft_run(progress = p),
                                      control = list(tree = tree)),
               "a walk")
  expect_identical(.Call(weft:::C_weft_memory, NULL)[["host"]], before)
})

test_that("an interrupt stops a build, a walk and direct sums within a second", {
  skip_on_os("windows")
  skip_on_cran()
  result <- interrupted_works(
    c("set.seed(1)", "x <- matrix(runif(6e5), ncol = 3)", "big <- matrix(runif(2.4e7), ncol = 4)",
      "tree <- kernel_tree(x)"),
    "list(direct = function(p) kernel_sum(x, method = 'direct', run = weft_run('cpu', threads = 1, progress = p)),
          walk = function(p) kernel_sum(x, method = 'tree', bandwidth = 0.3, rel_error = 1e-9,
                                        control = list(tree = tree, nodes = 'bounds'),
                                        run = weft_run('cpu', threads = 1, progress = p)),
          build = function(p) repeat kernel_tree(big, run = weft_run(threads = 1, progress = p)))")
  expect_interrupted(result, c("direct", "walk", "build"))
})
