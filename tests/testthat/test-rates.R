rates_known <- function(rates, env = parent.frame()) {
  session <- weft:::session
  old <- session$rates
  session$rates <- rates
  withr::defer(session$rates <- old, envir = env)
}

test_that("rates are measured, shown and kept for the session", {
  rates_known(NULL)
  r <- weft_calibrate(save = FALSE)
  expect_s3_class(r, "weft_rates")
  expect_identical(r$rate, names(weft:::reference_rates))
  expect_true(all(r$value[1:3] > 1e5))
  expect_identical(is.na(r$value[4:9]), rep(nrow(weft_devices()) == 0, 6))
  expect_identical(weft_calibrate(save = FALSE)$value, r$value)
  expect_output(print(r), "device_core")
  expect_error(weft_calibrate(again = NA), class = "weft_error_input")
  expect_error(weft_calibrate(save = "yes"), class = "weft_error_input")
})

test_that("costs follow the rates, each the one that bounds it", {
  rates_known(NULL)
  costs <- function() {
    unlist(weft:::kernel_plan("direct", precision = "double", references = 1e5, queries = 1e5, d = 3, m = 1, value = 12,
                              threads = 4)[c("cpu", "cuda")])
  }
  usual <- costs()
  half <- weft:::reference_rates
  half["core"] <- half["core"] / 2
  rates_known(half)
  expect_equal(costs() / usual, c(cpu = 2, cuda = 1))
  slow <- weft:::reference_rates
  slow[c("calls", "up", "down", "device_core")] <- slow[c("calls", "up", "down", "device_core")] / 3
  rates_known(slow)
  expect_equal(costs() / usual, c(cpu = 1, cuda = 3))
  missing <- replace(weft:::reference_rates, 4:9, NA)
  rates_known(missing)
  expect_equal(costs(), usual)
})

test_that("every cost of an operation is positive and grows with its rates' slowness", {
  of_rates <- function(rates) {
    rates_known(rates)
    w <- asNamespace("weft")
    found <- list(
      w$mi_plan("rank", n = 100, p = 50, threads = 2),
      w$mi_plan("rank_permute", n = 100, p = 50, permutations = 99, threads = 2),
      w$mi_plan("tuples", tuples = 1e4, n = 100, p = 142, planes = 2, packed_bytes = 1e4, order = 2, threads = 2),
      w$mi_plan("tuples", tuples = 1e6, n = 100, p = 183, planes = 2, packed_bytes = 1e4, order = 3, levels = 3,
                classes = 2, threads = 2),
      w$mi_plan("counts", pairs = 1e4, n = 100, p = 100, planes = 2, threads = 2),
      w$mi_plan("numbers", kind = "ksg", pairs = 1e4, n = 100, threads = 2),
      w$mi_plan("networks", kind = "aracne", p = 500, threads = 2),
      w$regulation_plan("dense", n = 100, regulators = 10, targets = 50, steps = 5, resamples = 20, hinges = 1,
                        copies = 1, calls = 1, threads = 2),
      w$regulation_plan("cells", n = 100, p = 50, stored = 900, regulators = 10, targets = 50, steps = 5,
                        resamples = 20, hinges = 1, copies = 1, threads = 2),
      w$ask_pca_plan("dense", "gram", list(n = 100, p = 50, cells = 5000, k = 5, threads = 2))$cost,
      w$ask_pca_plan("dense", "krylov", list(n = 100, p = 50, cells = 5000, k = 5, threads = 2))$cost,
      w$ask_pca_plan("stored", "krylov", list(n = 100, p = 50, cells = 500, k = 5, threads = 2))$cost,
      w$bn_plan("table", kind = "bdeu", n = 500, p = 20, sets = 1e4, largest = 500, joint_sets = 1e4, kept = 1,
                outside = 10, threads = 2),
      w$plan_chains("sum", 1000, 4, 1, 50, 20, 2), w$plan_exact(15, "none"),
      w$irm_plan("run", sweeps = 100, rows = 50, columns = 50, links = 500, k_rows = 5, k_columns = 5, threads = 2)
    )
    cbind(cpu = vapply(found, `[[`, 0, "cpu"), cuda = vapply(found, `[[`, 0, "cuda"))
  }
  usual <- of_rates(NULL)
  expect_true(all(usual > 0 & is.finite(usual)))
  expect_equal(of_rates(weft:::reference_rates), usual)
  expect_equal(of_rates(weft:::reference_rates / 4), 4 * usual)
})

test_that("engines of components are chosen as they measured on a device", {
  rates_known(NULL)
  plan <- function(n, p, k) weft:::pca_plan(list(kind = "resident", n = n, p = p), k, "auto", 16)$methods[["cuda"]]
  # 15,000 x 7,500, 10 components: gram 24 to 48 ms, krylov 76 to 158
  expect_identical(c(plan(15000, 7500, 10), plan(4000, 2000, 10), plan(500, 20000, 10)), rep("gram", 3))
  expect_identical(plan(20000, 20000, 10), "krylov") # a Gram matrix of more than 10,000 columns is not formed
})

test_that("how much is computed is the same on every machine", {
  often <- function(rates) {
    rates_known(rates)
    c(weft:::usual_permutations(20000, 500), weft:::usual_permutations(3000, 500), weft:::usual_permutations(100000,
        2000))
  }
  usual <- often(NULL)
  expect_identical(often(weft:::reference_rates * 1000), usual)
  expect_identical(often(weft:::reference_rates / 1000), usual)
  rates_known(weft:::reference_rates / 7)
  expect_identical(weft:::at_reference(weft:::slowness("core")), 1)
  expect_equal(weft:::slowness("core"), 7)
})

test_that("a file of rates is read as numbers of this machine and version, or not at all", {
  file <- withr::local_tempfile()
  read <- function() weft:::read_rates(file)
  expect_null(read())
  rates <- replace(weft:::reference_rates, 4:9, NA)
  expect_true(weft:::write_rates(rates, file))
  expect_equal(read(), rates)
  expect_identical(list.files(dirname(file), "^rates"), character())
  good <- readLines(file)
  spoilt <- list(character(), "", good[1:4], sub("^core: .*", "core: -1", good), sub("^core: .*", "core: NA", good),
                 sub("^core: .*", "core: q('no')", good), sub("^memory: .*", "memory: Inf", good), sub("^up: .*",
                     "up: 0", good),
                 sub("^Version: .*", "Version: 0.0.0", good), sub("^Machine: .*", "Machine: another", good),
                 c(good, "", good), "\x80\x81", strrep("x", 2e5))
  for (lines in spoilt) {
    writeLines(lines, file, useBytes = TRUE)
    expect_null(read(), label = deparse1(lines, width.cutoff = 500))
  }
  saveRDS(quote(stop("evaluated")), file)
  expect_null(read())
  expect_true(weft:::write_rates(rates, file))
  expect_equal(read(), rates)
  expect_false(weft:::write_rates(rates, file.path(file, "below", "a file")))
})

test_that("nothing is measured or written unasked where that is switched off, and under checks and tests", {
  withr::local_envvar(WEFT_CALIBRATE = NA, TESTTHAT = NA, `_R_CHECK_PACKAGE_NAME_` = NA, `_R_CHECK_LIMIT_CORES_` = NA)
  withr::local_options(weft.calibrate = NULL)
  asked <- weft:::asked_to_calibrate
  expect_null(asked())
  for (variable in c("TESTTHAT", "_R_CHECK_PACKAGE_NAME_", "_R_CHECK_LIMIT_CORES_")) {
    withr::with_envvar(stats::setNames("true", variable), expect_false(asked()))
  }
  withr::with_envvar(c(WEFT_CALIBRATE = "no"), expect_false(asked()))
  withr::with_envvar(c(TESTTHAT = "true", WEFT_CALIBRATE = "yes"), expect_true(asked()))
  withr::with_options(list(weft.calibrate = FALSE), expect_false(asked()))
  withr::with_options(list(weft.calibrate = 3), expect_error(asked(), class = "weft_error_input"))
  cache <- withr::local_tempdir()
  withr::local_envvar(R_USER_CACHE_DIR = cache)
  session <- weft:::session
  anew <- function() {
    session$rates <- session$no_rates <- NULL
    weft:::calibrate_once()
  }
  rates_known(NULL)
  withr::defer(session$no_rates <- NULL)
  for (said in c(NA, "no")) {
    withr::local_envvar(WEFT_CALIBRATE = said)
    expect_false(anew())
    expect_identical(list.files(cache, recursive = TRUE), character())
  }
  withr::local_envvar(WEFT_CALIBRATE = "yes")
  expect_true(anew())
  expect_identical(list.files(cache, recursive = TRUE), "R/weft/rates.dcf")
  expect_false(weft:::calibrate_once())
  withr::local_envvar(WEFT_CALIBRATE = NA)
  expect_true(anew()) # from the file
  expect_equal(session$rates, weft:::read_rates())
  withr::local_envvar(WEFT_CALIBRATE = "no")
  expect_false(anew())
  withr::local_envvar(WEFT_CALIBRATE = NA)
  writeLines("damaged", weft:::rates_file())
  expect_false(anew())
})

test_that("a small call starts no team of threads", {
  skip_on_cran()
  skip_if_not(dir.exists("/proc/self/task"), "no list of threads")
  skip_if(is.na(weft_sitrep()$openmp), "no OpenMP")
  out <- run_in_r(c(
    "library(weft)", "set.seed(1)", "n <- 50",
    "x <- matrix(rbinom(5 * n, 1, 0.4), n, dimnames = list(NULL, letters[1:5]))", "class <- rep(0:1, n / 2)",
    "z <- matrix(rnorm(5 * n), n, dimnames = list(NULL, letters[1:5]))", "y <- z[, 1]", "t <- 4L",
    "threads <- function() length(list.files('/proc/self/task'))",
    "try_each <- function(calls) for (name in names(calls)) {",
    "  before <- threads()", "  calls[[name]]()", "  if (threads() > before) cat('TEAM', name, '\\n')", "}",
    "try_each(list(rank = function() mi_rank(x, class, run = weft_run(threads = t)),",
    "  pairs = function() mi_pairs(x, class, run = weft_run(threads = t)),",
    "  triples = function() mi_triples(x, class, run = weft_run(threads = t)),",
    "  select = function() mi_select(x, class, k = 2, run = weft_run(threads = t)),",
    "  counts = function() mi_matrix(x, run = weft_run(threads = t)),",
    "  numeric = function() mi_matrix(z, estimator = 'spearman', run = weft_run(threads = t)),",
    "  clr = function() mi_network(z, 'clr', estimator = 'spearman', run = weft_run(threads = t)),",
    "  cut = function() discretize(z, bins = 3, run = weft_run(threads = t)),",
    "  pca = function() pca(z, 2, run = weft_run(threads = t)),",
    "  direct = function() kernel_sum(z, bandwidth = 1, run = weft_run(threads = t)),",
    "  tree = function() kernel_sum(z, bandwidth = 1, method = 'tree', run = weft_run(threads = t)),",
    "  regression = function() kernel_regression(z, y, bandwidth = 1, run = weft_run(threads = t))))",
    "cat('DONE', '\\n')", "big <- matrix(rnorm(4e5), 2000)", "before <- threads()",
    "m <- mi_matrix(big, estimator = \'spearman\', run = weft_run(threads = t))",
    "cat('LARGE', threads() > before, '\\n')"),
    env = "OMP_NUM_THREADS=4")
  expect_identical(grep("^TEAM", out, value = TRUE), character())
  expect_true("DONE " %in% out, label = paste(out, collapse = "\n"))
  expect_true("LARGE TRUE " %in% out)
})

test_that("\"all\" devices are as many as pay, and others have to be opened first", {
  worth <- weft:::devices_worth
  expect_identical(worth(0, 4, 4), 1L)
  expect_identical(worth(0.005, 4, 4), 1L) # less than two devices cost
  expect_identical(worth(1, 2, 2), 2L)
  expect_identical(worth(0.3, 2, 1), 1L)  # the second one is not open
  expect_identical(worth(0.3, 2, 2), 2L)
  expect_identical(worth(0.012, 2, 2), 2L) # whatever saves anything once open
  expect_identical(worth(0.012, 2, 2, again = 0.01), 1L) # each would do .01 s of work for itself
  expect_identical(worth(10, 4, 1), 4L)
  expect_identical(worth(1e6, 1, 1), 1L)
  took <- vapply(c(0.02, 0.05, 0.2, 1, 10), worth, 0L, most = 8, open = 8)
  expect_false(is.unsorted(took))
  chosen <- weft:::choose_backend("cpu", weft:::cost(1, 2, divided = 1.5))
  expect_identical(chosen$divided, 1.5)
  expect_null(weft:::choose_backend("cpu")$divided)
})

test_that("what no choice changes is counted beside, and changes none", {
  for (beside in c(0, 1e6)) expect_identical(weft:::choose_backend("auto", weft:::cost(1e-6, 1, beside = beside))$name,
                                             "cpu")
})

test_that("small work takes room for the threads that work, not for all", {
  x <- matrix(rep(0:1, 500), 50)
  class <- rep(0:1, each = 25)
  asked <- function(f, threads) {
    f(threads)
    .Call(weft:::C_weft_memory, 0)
    f(threads)
    .Call(weft:::C_weft_memory, 0)[["allocations"]]
  }
  calls <- list(pairs = function(t) mi_pairs(x, class, run = weft_run("cpu", threads = t)),
                triples = function(t) mi_triples(x[, 1:5], class, run = weft_run("cpu", threads = t)),
                matrix = function(t) mi_matrix(x, run = weft_run("cpu", threads = t)),
                rank = function(t) mi_rank(x, class, permutations = 9, seed = 1,
                                           run = weft_run("cpu", threads = t)))
  for (name in names(calls)) expect_identical(asked(calls[[name]], 16), asked(calls[[name]], 1), info = name)
})
