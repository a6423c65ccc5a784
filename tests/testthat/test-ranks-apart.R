# Ranks that do not ask for the same, and ranks that stop: the same error on all, and the next call as if nothing had
# happened.

setup_data <- "
  set.seed(1)
  L <- irm_sample(40, 30, k = 3, density = 0.3, seed = 1)$A
  x <- matrix(sample(0:1, 600, TRUE), 60); class <- sample(0:1, 60, TRUE)
  other <- x; other[60, 10] <- 1L - other[60, 10]
  d <- as.data.frame(matrix(sample(0:1, 480, TRUE), 80)); e <- d; e[80, 6] <- 1L - e[80, 6]
  z <- matrix(rnorm(600), 200)
  cluster <- function(x = L, ..., threads = NULL, progress = NULL) {
    irm(x, chains = 2, sweeps = 12, ..., run = weft_run(ranks = TRUE, threads = threads, progress = progress))
  }"

# Calls that go apart: one job of three ranks and one of two, since to start R there takes longer than most of it.
differ <- c(
  x = "cluster(if (me) L[1:30, ] else L, seed = 1, control = list(checkpoint = tempfile(), checkpoint_sweeps = 5))",
  x = "cluster(if (me == 2) cbind(1:2, 2:3) > 2 else L, seed = 1)",
  seed = "cluster(seed = 1 + me)",
  checkpoint = "cluster(seed = 1, control = list(checkpoint = if (me) tempfile()))",
  x = "mi_pairs(if (me == 2) other else x, class, run = weft_run(ranks = TRUE))",
  x = "mi_pairs(mi_pack(if (me == 2) other else x, class), run = weft_run(ranks = TRUE))",
  class = "mi_pairs(x, if (me == 2) rev(class) else class, run = weft_run(ranks = TRUE))",
  by = 'mi_triples(x, class, by = if (me) "mi" else "interaction", run = weft_run(ranks = TRUE))',
  x = "bn_learn(if (me == 2) e else d, iterations = 50, run = weft_run(ranks = TRUE))",
  ess = "bn_learn(d, iterations = 50, ess = 1 + me, run = weft_run(ranks = TRUE))",
  start = "bn_learn(d, iterations = 50, start = if (me) names(d) else rev(names(d)), run = weft_run(ranks = TRUE))",
  k = "pca(z, 1 + (me == 2), run = weft_run(ranks = TRUE))",
  `the columns of x` = "pca(if (me) z[, 1:2] else z, 1, run = weft_run(ranks = TRUE))",
  `names of the columns of x` =
    'pca(`colnames<-`(z, if (me) c("a", "b", "c") else c("b", "a", "c")), 1, run = weft_run(ranks = TRUE))',
  `whether there are weights` = "pca(z, 1, weights = if (me) 1:200, run = weft_run(ranks = TRUE))",
  rel_error = "kernel_sum(z, rel_error = me / 10, run = weft_run(ranks = TRUE))",
  `the columns of the points` = "kernel_sum(if (me) z[, 1] else z, run = weft_run(ranks = TRUE))",
  `the columns of weights` = "kernel_sum(z, weights = if (me) cbind(1:200, 1), run = weft_run(ranks = TRUE))",
  bandwidth = "kde(z, 1 + me, run = weft_run(ranks = TRUE))",
  `the columns of x` = "kde(z[, 1:(3 - (me == 2))], run = weft_run(ranks = TRUE))",
  kernel = 'kernel_regression(z, z[, 1], kernel = if (me) "laplacian" else "gaussian", run = weft_run(ranks = TRUE))',
  grid = "kernel_bandwidth(z, c(1, 2 + me), run = weft_run(ranks = TRUE))",
  log = "predict(density, log = me == 2)"
)
fails <- c(
  `disk full` = 'irm(L, chains = 3, sweeps = 1e6, seed = 1, run = weft_run(ranks = TRUE,
                     progress = if (me == 1) function(...) stop("disk full")))',
  `no such file` = 'cluster(if (me == 1) stop("no such file") else L, seed = 1)',
  `must have finite coordinates` = "kernel_sum(if (me == 1) z * NA else z, run = weft_run(ranks = TRUE))",
  `must be a numeric matrix` = 'predict(density, if (me == 1) "a" else z)',
  `finite number` = "kernel_regression(z, if (me == 1) class else z[, 1], run = weft_run(ranks = TRUE))",
  `200 numbers` = "kernel_regression(z, z[, 1], weights = if (me == 1) -1, run = weft_run(ranks = TRUE))",
  `must be finite` = "kernel_sum(z, weights = if (me == 1) rep(Inf, 200), run = weft_run(ranks = TRUE))",
  `must be a numeric matrix` = 'pca(if (me == 1) "a" else z, 1, run = weft_run(ranks = TRUE))',
  `must not have missing` = "mi_pairs(if (me == 1) replace(x, 3, NA) else x, class, run = weft_run(ranks = TRUE))"
)
interrupts <- c(
  # minutes of work
  work = 'if (me == 1) interrupt(1)
          kernel_sum(points, kernel = "cauchy", method = "direct", run = weft_run("cpu", ranks = TRUE))',
  after = "kernel_sum(few, run = weft_run(ranks = TRUE))",
  waits = "if (me == 1) interrupt(1) else Sys.sleep(3); kernel_sum(few, run = weft_run(ranks = TRUE))",
  then = "kernel_sum(few, run = weft_run(ranks = TRUE))",
  # while it waits for others to come to an exchange, in which they then count on it
  exchange = 'x <- matrix(points[1:6000], ncol = 60)
              if (me == 1) interrupt(0.5)
              options(weft.poll = 0)
              repeat pca(x, 5, method = "krylov", control = list(tolerance = 1e-15), seed = 1,
                         run = weft_run(ranks = TRUE, progress = if (me == 0) function(...) Sys.sleep(0.05)))',
  next_one = "options(weft.poll = NULL); kernel_sum(few, run = weft_run(ranks = TRUE))",
  fork = "f <- parallel::mcparallel(kernel_sum(few, run = weft_run(ranks = TRUE)), silent = TRUE)
          stopifnot(grepl('cannot be used after fork', parallel::mccollect(f)[[1L]]))",
  last = "kernel_sum(few, run = weft_run(ranks = TRUE))"
)
good <- "stopifnot(identical(cluster(seed = 1)$log_posterior, expected))"
three <- list(differ = differ, good = c(good = good), fails = c(rbind(fails, good)), interrupts = interrupts)
two <- list(
  apart = c(apart = "if (me) mi_pairs(x, class, run = weft_run(ranks = TRUE)) else cluster(seed = 1)",
            good = "cluster(seed = 1)",
            number = "at <- weft:::ranks; if (me) at$number <- 99; cluster(seed = 1)", again = "cluster(seed = 1)"),
  same = c(
    form = 'cluster(if (me) L + 0 else Matrix::Matrix(L + 0, sparse = TRUE), seed = if (me) 1L else 1,
                    family = if (me) "bernoulli" else eval(formals(irm)$family))',
    local = "cluster(seed = 1, threads = 1 + me, progress = function(...) NULL,
                    control = list(checkpoint = tempfile()))",
    rows = "pca(z[seq_len(100 + 50 * me), ], 2, weights = seq_len(100 + 50 * me), run = weft_run(ranks = TRUE))",
    table = "bn_learn(bn_scores(d, 2), iterations = 50, run = weft_run(ranks = TRUE))",
    names = 'kde(if (me) z else `colnames<-`(z, c("a", "b", "c")), run = weft_run(ranks = TRUE))'
  )
)
jobs <- list()
found_by <- function(size, part) { # ranks in columns
  parts <- list(two, three)[[size - 1L]]
  if (is.null(jobs[[paste(size)]])) {
    before <- c(setup_data, '
      density <- kde(z, 0.5, run = weft_run(ranks = TRUE)); expected <- cluster(seed = 1)$log_posterior
      points <- matrix(rnorm(3e5), ncol = 3); few <- points[1:500, ]
      interrupt <- function(after) {
        system(sprintf("(sleep %g; kill -INT %d) >/dev/null 2>&1 &", after, Sys.getpid()))
      }')
    jobs[[paste(size)]] <<- outcomes(size, before, unlist(parts))
  }
  found <- jobs[[paste(size)]][rep(names(parts), lengths(parts)) == part, , drop = FALSE]
  rownames(found) <- names(parts[[part]])
  found
}

test_that("ranks whose data, settings or seeds differ have the same error, which names what and where", {
  found <- found_by(3, "differ")
  for (k in seq_along(differ)) {
    expect_length(unique(found[k, ]), 1L)
    expect_match(found[k, 1L],
                 sprintf("^weft_error_ranks .*Different from rank 0: `?%s`? \\(ranks? .*2\\)", names(differ)[k]))
  }
  expect_identical(unname(found_by(3, "good")["good", ]), rep("ok", 3L))
  found <- found_by(2, "apart")
  expect_match(found[c("apart", "number"), ], "^weft_error_ranks All ranks must")
  expect_match(found["apart", ], "`irm()` on rank 0, `mi_pairs()` on rank 1.", fixed = TRUE)
  expect_match(found["number", ], "`irm()` is call number 5 on rank 0, `irm()` is call number 100 on rank 1",
               fixed = TRUE)
  expect_identical(unname(found[c("good", "again"), ]), matrix("ok", 2L, 2L))
})

test_that("what is the same in another form is no difference", {
  found <- found_by(2, "same")
  expect_identical(unname(c(found)), rep("ok", length(found)))
})

test_that("an error on one rank that is caught there ends the call on all, and the next call is right", {
  found <- found_by(3, "fails")
  failed <- found[c(TRUE, FALSE), ]
  for (k in seq_along(fails)) {
    expect_match(failed[k, 2L], names(fails)[k])
    expect_no_match(failed[k, 2L], "weft_error_ranks")
    expect_identical(failed[k, 1L], failed[k, 3L], ignore_attr = TRUE)
    expect_match(failed[k, 1L], "^weft_error_ranks Rank 1 stopped in `[a-z_]+\\(\\)`, which ended this call")
    expect_match(failed[k, 1L], names(fails)[k])
  }
  expect_identical(unname(c(found[c(FALSE, TRUE), ])), rep("ok", 3L * length(fails)))
})

test_that("wherever a rank runs out of memory, all have an error or all the result, and the next call is right", {
  out <- run_ranks(3, c(setup_data, '
    me <- attr(weft_ranks(), "rank")
    mine <- z[seq_len(200) %% 3 == me, ]
    calls <- list(
      irm = function() cluster(seed = 1)$log_posterior,
      pairs = function() as.data.frame(mi_pairs(x, class, top = 20, permutations = 9, seed = 3,
                                              run = weft_run(ranks = TRUE))),
      pca = function() pca(mine, 2, seed = 1, run = weft_run(ranks = TRUE))$d,
      tree = function() kernel_sum(mine, bandwidth = 0.3, method = "tree", run = weft_run(ranks = TRUE)),
      samples = function() kernel_sum(mine, bandwidth = 2, rel_error = 0.1, control = list(confidence = 0.9),
                                      method = "montecarlo", seed = 1, run = weft_run(ranks = TRUE)))
    good <- lapply(calls, function(f) f())
    failed <- 0
    for (name in names(calls)) for (k in -c(1, 2, 3, 5, 8, 13, 21, 34)) { # the k-th allocation and all later ones
      if (me == abs(k) %% 3) .Call(weft:::C_weft_memory, as.double(k))
      got <- tryCatch(calls[[name]](), error = function(e) e)
      .Call(weft:::C_weft_memory, 0)
      bad <- inherits(got, "error")
      failed <- failed + bad
      states <- unlist(weft:::ranks_gather(bad))
      right <- function(got) isTRUE(all.equal(got, good[[name]]))
      fine <- length(unique(states)) == 1 && if (bad) inherits(got, "weft_error") else right(got)
      fine <- fine && right(calls[[name]]())
      if (!fine) cat(sprintf("not fine: %s %d on rank %d: %s\\n", name, k, me, toString(got)))
    }
    cat(sprintf("rank %d failed %d, kept %g bytes\\n", me, failed, .Call(weft:::C_weft_memory, NULL)[["host"]]))'))
  expect_no_match(out, "not fine")
  ends <- grep("^rank . failed", out, value = TRUE)
  expect_match(ends, "kept 0 bytes")
  expect_length(ends, 3L)
  failed <- as.numeric(sub(".*failed ([0-9]+),.*", "\\1", ends))
  expect_length(unique(failed), 1L)
  expect_gt(failed[1L], 15)
})

test_that("a rank can be interrupted at work and while it waits; others hear of it", {
  found <- found_by(3, "interrupts")
  stopped <- c("work", "waits", "exchange")
  expect_identical(unname(found[stopped, 2L]), rep("interrupt", 3L))
  expect_match(found[stopped, c(1L, 3L)], "^weft_error_ranks Rank 1 stopped.*[Ii]nterrupt")
  expect_identical(unname(c(found[setdiff(names(interrupts), stopped), ])), rep("ok", 15L))
})

test_that("a call that one rank has left out is noticed, and a rank whose script has ended is no hang", {
  out <- run_ranks(2, c(setup_data, 'me <- attr(weft_ranks(), "rank")
    say <- function(code) cat(sprintf("rank %d: %s\\n", me, tryCatch({ code; "ok" }, error = conditionMessage)))
    if (me == 0) say(kernel_sum(z, run = weft_run(ranks = TRUE))) # rank 1 leaves it out
    say(cluster(seed = 1))
    if (me == 1) say(cluster(seed = 1))
    if (me == 0) { say(cluster(seed = 1)); say(kernel_sum(z, run = weft_run(ranks = TRUE))) }
    say(kernel_sum(z)) # by itself'))
  all <- function(rank) sub("rank .: ", "", grep(sprintf("^rank %d: ", rank), out, value = TRUE))
  first <- all(0L)
  expect_match(first[1L], "All ranks must make the same call")
  expect_identical(all(1L), c("All ranks must make the same call.", "ok", "ok"))
  expect_identical(first[2L], "ok")
  expect_match(first[3:4], "This call needs rank 1, but the script there has ended")
  expect_identical(first[5L], "ok")
})

test_that("a rank that quits within a call, or has a handler of its own that does, does not keep others waiting", {
  for (how in c("quit(status = 0)", 'stop("disk full")')) {
    out <- run_ranks(3, c("options(error = quote(q(status = 0)))", setup_data, 'me <- attr(weft_ranks(), "rank")',
      sprintf("handler <- function(...) if (me == 1) %s", how),
      "go <- function() irm(L, chains = 3, sweeps = 1e6, seed = 1, run = weft_run(ranks = TRUE, progress = handler))",
      "if (me == 1) go()",
      'said <- tryCatch(go(), error = function(e) gsub("\\n", " ", conditionMessage(e)))',
      'cat(sprintf("rank %d: %s\\n", me, said))'))
    said <- grep("^rank ", out, value = TRUE)
    expect_setequal(sub(",.*", "", said), sprintf("rank %d: Rank 1 stopped in `irm()`", c(0, 2)))
    expect_match(said, if (how == "quit(status = 0)") "script ended during the call" else "disk full")
  }
})

test_that("every function that ranks share begins with a comparison", {
  space <- asNamespace("weft")
  found <- 0
  for (name in getNamespaceExports(space)) {
    f <- get(name, space)
    if (!is.function(f) || !is.call(body(f))) next
    first <- vapply(utils::head(as.list(body(f))[-1L], 6L), function(line) paste(deparse(line), collapse = ""), "")
    if (!any(grepl("as_run(run, ranks = TRUE", first, fixed = TRUE))) next
    expect_true(any(grepl(sprintf("join_ranks(run$ranks, \"%s\"", name), first, fixed = TRUE)), info = name)
    found <- found + 1
  }
  expect_gte(found, 9)
})

test_that("digests are of values", {
  digest <- weft:::digest_of
  same <- list(
    list(1:1000, as.double(1:1000), c(1:999, 1000L)), list(0, -0), list(NA_integer_, NA_real_, NA), list(NULL, NULL),
    list("\u00e9", iconv("\u00e9", "UTF-8", "latin1")), list(structure(1, a = 1, b = 2), structure(1, b = 2, a = 1)),
    list(data.frame(a = 1:3), data.frame(a = c(1, 2, 3), row.names = 1:3)), list(factor("a"), factor("a"))
  )
  for (set in same) expect_length(unique(lapply(set, digest)), 1L)
  different <- list(
    1, 2, 0, NaN, NA, Inf, c(1, 2), c(2, 1), c(1, 2, 0), list(1, 2), list(list(1), 2), list(1, list(2)), "1", "a",
    c("a", "b"), "ab", c("ab", ""), c("", "ab"), character(), numeric(), list(), NULL, matrix(1:4, 2), matrix(1:4, 1),
    factor("a"), factor("b"), as.raw(1:3), as.raw(0:3), 1i, quote(a), quote(a + b), quote(b + a), y ~ x, y ~ z,
    function(x) x, function(x) x + 1, c(a = 1), c(b = 1), NA_character_, "NA",
    Matrix::Matrix(diag(2), sparse = TRUE), Matrix::Matrix(diag(3), sparse = TRUE)
  )
  expect_false(anyDuplicated(lapply(different, digest)) > 0)
  set.seed(1)
  x <- stats::rnorm(1e4)
  one_other <- vapply(seq_len(200), function(k) identical(digest(replace(x, 50 * k, 0.5)), digest(x)), NA)
  expect_false(any(one_other))
  expect_false(identical(digest(x[c(2:1, 3:1e4)]), digest(x)))
})
