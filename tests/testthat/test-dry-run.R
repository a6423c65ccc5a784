# What dry runs predict, and that nothing is done in them.

plan_columns <- c("function", "engine", "backend", "seconds", "bytes", "reason")
dry <- function(f, ..., backend = "cpu") f(..., run = weft_run(backend, dry_run = TRUE))

# The names of the engines of a room, from its sheet; NULL where the sources are not there.
engine_names <- function(room) {
  file <- testthat::test_path("..", "..", "src", room, "engines.h")
  if (!file.exists(file)) return(NULL)
  rows <- grep("^  ENGINE\\(", readLines(file, warn = FALSE), value = TRUE)
  sub("^[^\"]*\"([^\"]*)\".*", "\\1", rows)
}

levels3 <- as.data.frame(lapply(mtcars[c("cyl", "gear", "vs")], factor))
graph <- irm_sample(30, 20, k = 2, density = 0.3, seed = 1)$A
bits <- data.frame(a = rep(0:1, 20), b = rep(c(0L, 1L, 1L, 1L), 10), c = rep(0:1, each = 20))
genes <- matrix(stats::qnorm(((1:600) * 0.61803398875) %% 1), 40, dimnames = list(NULL, paste0("g", 1:15)))

calls <- list(
  mi_rank = list("mi", function(...) mi_rank(levels3, mtcars$am, ...)),
  mi_rank = list("mi", function(...) mi_rank(levels3, mtcars$am, permutations = 19, seed = 1, ...)),
  mi_pairs = list("mi", function(...) mi_pairs(levels3, mtcars$am, ...)),
  mi_triples = list("mi", function(...) mi_triples(levels3, mtcars$am, ...)),
  mi_tuples = list("mi", function(...) mi_tuples(levels3, mtcars$am, order = 3, ...)),
  mi_tuples = list("mi", function(...) mi_tuples(cbind(levels3, am = mtcars$am), mtcars$vs, ...)),
  pair_scan = list("mi", function(...) pair_scan(graph + 0, genes[1:30], ...)),
  mi_matrix = list("mi", function(...) mi_matrix(levels3, ...)),
  mi_matrix = list("mi", function(...) mi_matrix(mtcars, estimator = "spearman", ...)),
  mi_network = list("mi", function(...) mi_network(mtcars, "mrnet", estimator = "spearman", ...)),
  mi_network = list("mi", function(...) mi_network(stats::cor(mtcars)^2, "clr", ...)),
  mi_select = list("mi", function(...) mi_select(levels3, mtcars$am, k = 2, ...)),
  irm = list("irm", function(...) irm(graph, ...)),
  irm = list("irm", function(...) irm(graph, control = list(sampler = "collapsed"), ...)),
  bn_learn = list("bn", function(...) bn_learn(bits, ...)),
  bn_learn = list("bn", function(...) bn_learn(bn_scores(bits), target = "max", ...)),
  bn_exact = list("bn", function(...) bn_exact(bits, posterior = "dag", ...)),
  bn_exact = list("bn", function(...) bn_exact(bn_scores(bits, keep = "all"), posterior = "order", ...)),
  bn_scores = list("bn", function(...) bn_scores(bits, ...)),
  bn_scores = list("bn", function(...) bn_scores(bits, score = "bds", ...)),
  bn_search = list("bn", function(...) bn_search(bits, ...)),
  regulation = list("regulation", function(...) regulation(genes, ...)),
  pca = list("pca", function(...) pca(mtcars, 2, ...)),
  pca = list("pca", function(...) pca(mtcars, 2, method = "gs", ...)),
  kernel_sum = list("kernel", function(...) kernel_sum(genes, ...)),
  kernel_sum = list("kernel", function(...) kernel_sum(genes, method = "tree", rel_error = 0.01, ...)),
  kernel_sum = list("kernel", function(...) kernel_sum(genes[, 1], method = "line", ...)),
  kernel_sum = list("kernel", function(...) kernel_sum(genes[, 1:2], method = "mesh", rel_error = 0.01, ...)),
  kernel_sum = list("kernel", function(...) kernel_sum(genes, kernel = "polynomial", ...)),
  kernel_sum = list("kernel", function(...) kernel_sum(genes, method = "features", rel_error = 0.1,
                                                       control = list(confidence = 0.9), ...))
)

test_that("every function with engines says which would do the work, where, and what it takes", {
  for (k in seq_along(calls)) {
    plan <- dry(calls[[k]][[2L]])
    expect_s3_class(plan, "weft_plan")
    expect_identical(nrow(plan), 1L, info = names(calls)[k])
    expect_named(plan, c(plan_columns, if (names(calls)[k] == "bn_scores") c("sets", "joint_sets")))
    expect_identical(plan$`function`, names(calls)[k])
    expect_identical(plan$backend, "cpu")
    expect_true(is.na(plan$seconds) || plan$seconds > 0, info = names(calls)[k])
    known <- engine_names(calls[[k]][[1L]])
    if (!is.null(known)) expect_true(plan$engine %in% known, info = plan$engine)
    expect_output(print(plan), plan$engine, fixed = TRUE)
  }
})

test_that("a dry run says what the call records", {
  for (k in which(!names(calls) %in% c("bn_search", "mi_select", "bn_learn", "kernel_sum"))) {
    plan <- calls[[k]][[2L]](run = weft_run("auto", dry_run = TRUE))
    result <- suppressWarnings(calls[[k]][[2L]](run = weft_run("auto", progress = FALSE)))
    about <- if (is.null(attr(result, "reason"))) result else attributes(result)
    expect_identical(plan$backend, about$backend, info = names(calls)[k])
  }
})

test_that("a dry run of kernel sums names the method that is taken", {
  x <- matrix(stats::qnorm(((1:40000) * 0.61803398875) %% 1), 10000)
  taken <- function(...) {
    text <- testthat::capture_messages(kernel_sum(..., run = weft_run("cpu", threads = 1, verbose = TRUE)))
    sub("^Method: ([a-z]+) .*\n", "\\1", text)
  }
  for (k in 1:4) {
    points <- x[, seq_len(k), drop = FALSE]
    plan <- kernel_sum(points, rel_error = 0.01, bandwidth = 0.5, run = weft_run("cpu", threads = 1, dry_run = TRUE))
    method <- taken(points, rel_error = 0.01, bandwidth = 0.5)
    known <- c(direct = "direct", tree = "trees", line = "line", mesh = "mesh")
    expect_identical(plan$engine, known[[method]], info = paste(k, "dimensions"))
  }
})

test_that("nothing is drawn or written in a dry run", {
  set.seed(1)
  before <- .Random.seed
  dry(mi_rank, levels3, mtcars$am, permutations = 99)
  expect_identical(.Random.seed, before)
  file <- withr::local_tempfile()
  dry(irm, graph, control = list(checkpoint = file), seed = 1)
  expect_false(file.exists(file))
})

test_that("engines follow sizes", {
  tuples <- function(...) {
    weft:::mi_plan("tuples", tuples = 1e6, planes = 2, packed_bytes = 1e6, threads = 1, ...)$engine
  }
  pair <- function(levels, n, classes = 2, missing = 0) {
    tuples(n = n, p = 1000, order = 2, levels = levels, classes = classes, rows_of_a_class = n / 2,
           missing = missing)[["hopper"]]
  }
  expect_identical(pair(2, 1000), "binary")
  expect_identical(pair(3, 65535), "ternary")
  expect_identical(pair(3, 65536), "fused")
  expect_identical(pair(3, 100001), "ternary")
  expect_identical(pair(5, 20000), "fused")
  expect_identical(pair(5, 20001), "counted")
  expect_identical(pair(25, 100), "codes on a device")
  triple <- function(levels, p, n = 1000) {
    tuples(n = n, p = p, order = 3, levels = levels, classes = 2, rows_of_a_class = n / 2, searched = p,
           searched_levels = levels)
  }
  expect_identical(triple(2, 7500)[["hopper"]], "sorted triples")
  expect_identical(triple(2, 7501)[["hopper"]], "binary triples")
  expect_identical(triple(5, 100)[["hopper"]], "few levels")
  expect_identical(triple(3, 100)[["cpu"]], "triples")
  expect_identical(tuples(n = 100, p = 10, order = 2, levels = 25, classes = 2)[["cpu"]], "codes")
  screened <- function(regulators) {
    weft:::regulation_plan("dense", n = 100, regulators = regulators, targets = 10, steps = 5, resamples = 2,
                           threads = 1)$engine[["cpu"]]
  }
  expect_identical(c(screened(999), screened(1000)), c("exact gains", "screen"))
  nodes <- function(k) {
    weft:::irm_plan("run", sweeps = 1, rows = 10, columns = 10, links = 10, k_rows = k, k_columns = 1,
                    threads = 1)$engine[["hopper"]]
  }
  expect_identical(c(nodes(1024), nodes(1025)), c("light nodes on Hopper", "nodes on a device"))
  for (limit in c(16, 17)) {
    ladder <- weft:::plan_chains("sum", 10, 4, limit, 10, 5, 1)
    expect_identical(is.null(ladder$stays), limit == 16)
  }
})

test_that("a size that a plan does not know is an internal error", {
  expect_error(weft:::mi_plan("rank", rows = 3), class = "weft_error_internal")
  expect_error(weft:::mi_plan("rank", n = 1:2), class = "weft_error_internal")
  expect_error(weft:::mi_plan("no such"), class = "weft_error_internal")
})

test_that("functions that predict nothing refuse dry runs", {
  expect_error(discretize(mtcars, bins = 3, run = weft_run(dry_run = TRUE)), class = "weft_error_input",
               regexp = "mi_pairs")
})
