test_that("a process that nobody launched is one rank of one", {
  withr::local_envvar(setNames(rep(NA, length(weft:::launcher_variables)), weft:::launcher_variables))
  ranks <- weft_ranks()
  expect_identical(c(attr(ranks, "rank"), attr(ranks, "size"), ranks$rank), c(0L, 1L, 0L))
  expect_output(print(ranks), "1 rank on 1 host; this is rank 0")
  expect_identical(weft:::ranks_gather("x"), list("x"))
})

test_that("what ranks do not do is said, and what MPI fails at has nothing to do with a back end", {
  x <- matrix(1:6 / 6, 3)
  expect_error(kernel_sum(x, bandwidth = 1, rel_error = 0.1, run = weft_run(ranks = TRUE),
                          control = list(nodes = "series")),
               class = "weft_error_input", regexp = "need `nodes`")
  fails <- function(message, backend) weft:::raise_native("device", message, NA_real_, list(backend = backend))
  for (backend in c("cpu", "cuda")) {
    error <- expect_error(fails("MPI_Allgather failed: no", backend), class = "weft_error_device",
                          regexp = "weft_sitrep")
    expect_no_match(conditionMessage(error), "backend")
    expect_error(fails("rank 1 stopped", backend), class = "weft_error_ranks")
  }
  expect_error(fails("CUDA: gone", "cuda"), class = "weft_error_device", regexp = "run = \"cpu\"")
})

test_that("a class of texts is compared as any other, and a choice by its first", {
  compared <- function(class, na = c("fail", "drop")) weft:::arguments_alike(environment(), formals(sys.function()),
                                                                             character(), character())
  expect_identical(compared(c("case", "control")), compared(c("case", "control"), "fail"))
  expect_false(identical(compared(c("case", "control")), compared(c("case", "case"))))
  expect_false(identical(compared(c("case", "control")), compared(c("case", "control"), "drop")))
  expect_false(identical(compared(c("case", "control")), compared()))
})

# One job of three ranks for all that goes well, since starting R three times takes longer than most of it.
parts <- list(
  gather = '
    if (me == 1) stopifnot(nrow(weft_ranks()) == 3) # later calls need no others
    parts <- weft:::ranks_gather(rep(me, me * 1e6))
    same <- identical(parts, list(integer(), rep(1L, 1e6), rep(2L, 2e6)))
    twice <- weft:::ranks_gather(data.frame(me, text = letters[me + 1]))
    cat(sprintf("rank %d: %s %s\\n", me, same, paste(vapply(twice, `[[`, "", "text"), collapse = "")))',
  pairs = '
    set.seed(1)
    x <- matrix(sample(0:2, 60 * 17, TRUE), 60); class <- sample(0:1, 60, TRUE)
    searches <- list(list(top = 20), list(by = "interaction", permutations = 19, seed = 4), list(features = 3:9,
      with = 6:15, top = 11),
                     list(features = 2), list(min_mi = 9))
    for (search in searches) {
      one <- call_with(mi_pairs, c(list(x, class), search))
      all <- call_with(mi_pairs, c(list(x, class, ranks = TRUE), search))
      cat(sprintf("rank %d %s\\n", me, identical(as.data.frame(one), as.data.frame(all))))
    }',
  sums = '
    set.seed(2)
    x <- rbind(matrix(rnorm(2000), 1000), matrix(rnorm(200, 40), 100), matrix(1, 90, 2)); n <- nrow(x)
    q <- rbind(x[sample(n, 300), ], matrix(rnorm(60, 5, 20), 30)); w <- cbind(rexp(n), rnorm(n))
    parts <- list(seq_len(n) %% 3 == me, if (me == 1) rep(TRUE, n) else rep(FALSE, n),
      if (me == 0) seq_len(n) <= 10 else
                    if (me == 1) seq_len(n) > 10 else rep(FALSE, n))
    asks <- list(seq_len(330) %% 3 == me, if (me == 2) rep(TRUE, 330) else rep(FALSE, 330), seq_len(330) %% 3 == me)
    off <- function(got, want, bound) max(0, ifelse(abs(got - want) <= 1e-300, 0, abs(got - want) / bound))
    for (kernel in c("gaussian", "epanechnikov", "uniform", "matern32")) for (p in 1:4) {
      if (p > 1 && kernel %in% c("uniform", "matern32")) next
      method <- if (p == 4) "direct" else "tree"
      p <- min(p, 3)
      mine <- parts[[p]]; ask <- asks[[p]]
      all <- function(query, ref, weights, ...) call_with(kernel_sum, list(query, ref, weights, kernel,
        0.4, method = method, ranks = TRUE, ...))
      one <- function(...) call_with(kernel_sum, list(..., kernel = kernel, bandwidth = 0.4))
      want <- one(q, x, w)[ask, ]; most <- one(q, x, abs(w))[ask, ]
      logs <- pmax(one(q, x, w[, 1], log = TRUE)[ask], -1e300) # -Inf where nothing is in reach
      left <- one(x, weights = w[, 1], leave_one_out = TRUE)[mine]
      ok <- c(off(all(q[ask, ], x[mine, ], w[mine, ]), want, 1e-12 * most),
              off(all(q[ask, ], x[mine, ], w[mine, ], rel_error = 0.1, abs_error = 1e-3), want, 0.1 * most + 1e-3),
              off(all(x[mine, ], NULL, w[mine, 1], leave_one_out = TRUE), left, 1e-12 * left),
              off(all(x[mine, ], NULL, w[mine, 1], leave_one_out = TRUE, rel_error = 0.1), left, 0.1 * left),
              off(exp(pmax(all(q[ask, ], x[mine, ], w[mine, 1], log = TRUE), -1e300) - logs), 1, 1e-10))
      if (any(is.na(ok) | ok > 1)) cat(sprintf("rank %d %s %s parts %d: %s\\n", me, kernel, method, p,
        toString(signif(ok, 3))))
    }
    mine <- parts[[3]]
    matrix_of <- diag(2) + 0.3
    for (h in list(c(0.3, 0.8), matrix_of)) {
      got <- kernel_sum(x[mine, ], bandwidth = h, run = weft_run(ranks = TRUE))
      if (off(got, kernel_sum(x, bandwidth = h)[mine], 1e-11 * got) > 1) cat("bandwidth\\n")
    }
    got <- kernel_sum(x[mine, ], kernel = "polynomial", run = weft_run(ranks = TRUE))
    if (off(got, kernel_sum(x, kernel = "polynomial")[mine], 1e-11 * abs(got)) > 1) cat("polynomial\\n")
    none <- kernel_sum(x[mine, ], x[0, ], run = weft_run(ranks = TRUE))
    if (!identical(none, numeric(sum(mine)))) cat("nothing\\n")
    cat(sprintf("rank %d done\\n", me))',
  smoothers = '
    set.seed(3); n <- 400; x <- cbind(rnorm(n), rexp(n)); y <- sin(x[, 1]) + rnorm(n) / 5; new <- x[1:50, ] + 0.01
    mine <- findInterval(seq_len(n), c(101, 131)) == (me + 1) %% 3 # 100, 30 and 270
    same <- function(a, b, tolerance) if (!isTRUE(all.equal(a, b, tolerance = tolerance))) cat("differs:", all.equal(a,
      b), "\\n")
    one <- kde(x, "silverman"); all <- kde(x[mine, ], "silverman", run = weft_run(ranks = TRUE))
    same(all$bandwidth, one$bandwidth, 1e-12)
    same(predict(all, new, rel_error = 0), predict(one, new, rel_error = 0), 1e-11)
    same(predict(all, leave_one_out = TRUE, rel_error = 0), predict(one, leave_one_out = TRUE, rel_error = 0)[mine],
      1e-11)
    same(summary(all)$log_likelihood, summary(one)$log_likelihood, 1e-4)
    grid <- c(0.2, 0.5, 1)
    for (by in c("lscv", "lcv")) same(
      kernel_bandwidth(x[mine, ], grid, by, run = weft_run(ranks = TRUE))$score,
      kernel_bandwidth(x, grid, by)$score, 1e-3)
    one <- kernel_regression(x, y, "scott")
    all <- kernel_regression(x[mine, ], y[mine], "scott", run = weft_run(ranks = TRUE))
    same(predict(all, new, rel_error = 0), predict(one, new, rel_error = 0), 1e-10)
    same(all$r_squared, one$r_squared, 1e-4)
    plugin <- tryCatch(kde(x[mine, ], "plugin", run = weft_run(ranks = TRUE)), weft_error_input = function(e) NULL)
    cat(sprintf("rank %d done %s\\n", me, is.null(plugin)))',
  triples = '
    set.seed(2)
    x <- matrix(sample(0:1, 50 * 19, TRUE), 50); x[, 4] <- sample(0:2, 50, TRUE); class <- sample(0:1, 50, TRUE)
    for (search in list(list(top = 30), list(by = "interaction", top = 5), list(features = 1:9, min_mi = 0.2,
      top = Inf),
                        list(min_mi = 9))) {
      one <- call_with(mi_triples, c(list(x, class), search))
      all <- call_with(mi_triples, c(list(x, class, ranks = TRUE), search))
      cat(sprintf("rank %d %s\\n", me, identical(as.data.frame(one), as.data.frame(all))))
    }',
  chains = '
    set.seed(3)
    d <- as.data.frame(matrix(sample(0:1, 80 * 6, TRUE), 80)); d[[2]] <- (d[[1]] + d[[3]]) %% 2L
    plain <- function(fit) { attr(fit$table, "seconds") <- NULL; fit <- unclass(fit);
      attributes(fit) <- list(names = names(fit)); fit }
    for (search in list(list(seed = 5, iterations = 200), list(seed = 5, iterations = 150, target = "sum", chains = 7,
      top = 3),
                        list(seed = 1, iterations = 90, chains = 2, temperatures = 1))) {
      one <- call_with(bn_learn, c(list(d), search))
      all <- call_with(bn_learn, c(list(d, ranks = TRUE), search))
      more <- identical(plain(update(one, 50)), plain(update(all, 50)))
      cat(sprintf("rank %d %s\\n", me, identical(plain(one), plain(all)) && more))
    }
    set.seed(me) # the first rank\'s key is everybody\'s
    scores <- unlist(weft:::ranks_gather(bn_learn(d, iterations = 30, run = weft_run(ranks = TRUE))$trace[30, ]))
    cat(sprintf("rank %d %s\\n", me, all(scores == scores[seq_len(length(scores) / 3)])))',
  clusters = '
    A <- irm_sample(40, 30, k = 3, density = 0.3, seed = 1)$A
    plain <- function(fit) fit[setdiff(names(fit), c("run", "call", "seconds", "reason", "stages"))]
    settings <- list(list(chains = 2), list(chains = 5),
                     list(chains = 5, prior = irm_prior(degrees = TRUE), missing = cbind(1:9, 9:1)))
    for (set in settings) {
      one <- do.call(irm, c(list(A, sweeps = 12, seed = 2), set))
      all <- do.call(irm, c(list(A, sweeps = 12, seed = 2, run = weft_run(ranks = TRUE)), set))
      stopifnot(identical(one$run$trace, all$run$trace))
      cat(sprintf("rank %d %s\\n", me, identical(plain(one), plain(all)) && identical(one$run$state, all$run$state)))
    }',
  regulation = '
    set.seed(8)
    x <- matrix(rnorm(40 * 8), 40, dimnames = list(NULL, letters[1:8])); x[, 5:8] <- x[, 5:8] + x[, 1:4]
    cells <- Matrix::Matrix(matrix(as.double(rpois(1000 * 6, exp(rnorm(1000)))), 1000), sparse = TRUE)
    plain <- function(net) {
      if (inherits(net, "weft_comparison")) return(list(net$edges, net$p_value, lapply(net$networks, plain)))
      list(as.matrix(net), attr(net, "edges"), attr(net, "stability"))
    }
    settings <- list(list(x, resamples = 10, null_copies = 2, stability = TRUE),
                     list(x, resamples = 2), # one pair of halves: two ranks have none
                     list(x, regulators = 1:4, targets = 3:8, steps = 3, nonlinear = FALSE, resamples = 8),
                     list(x, compare = rep(1:2, 20), permutations = 3, resamples = 6),
                     list(cells, resamples = 6, stability = TRUE))
    for (set in settings) {
      one <- call_with(regulation, c(set, seed = 3))
      all <- call_with(regulation, c(set, seed = 3, ranks = TRUE))
      cat(sprintf("rank %d %s\\n", me, identical(plain(one), plain(all))))
    }
    nets <- weft:::ranks_gather(plain(regulation(x, control = list(resamples = 4),
      run = weft_run(ranks = TRUE)))) # one key for all
    cat(sprintf("rank %d %s\\n", me, all(vapply(nets, identical, NA, nets[[1]]))))',
  components = '
    # half, the others, three
    mine <- function(n) split(seq_len(n), findInterval(seq_len(n), c(1, ceiling(n / 2), n - 2)))[[me + 1]]
    made <- function(n, p, rank = 6) { # values fall by a factor of 1.5
      set.seed(n + p)
      u <- qr.Q(qr(matrix(rnorm(n * min(n, p, 40)), n))); v <- qr.Q(qr(matrix(rnorm(p * ncol(u)), p)))
      x <- u %*% (1.5^-seq_len(ncol(u)) * t(v)) + 2
      dimnames(x) <- list(paste0("r", 1:n), paste0("c", 1:p)); x
    }
    close <- function(a, b) all(abs(a - b) <= 1e-12 * max(abs(b)))
    same <- function(a, b) {
      close(a$d, b$d) && close(a$rotation, b$rotation) && close(a$x, b$x) && close(a$center, b$center) && close(a$sdev,
        b$sdev) &&
        close(a$total_variance, b$total_variance) && a$rank == b$rank && identical(dimnames(a$x), dimnames(b$x)) &&
          a$n == b$n
    }
    tall <- made(400, 150); wide <- made(60, 300); square <- made(640, 560); few <- made(90, 7)
    few[, 3] <- 5; few[, 5] <- few[, 5] * 1e8
    holes <- Matrix::Matrix(ifelse(abs(tall - 2) > 0.02, tall, 0), sparse = TRUE)
    weights <- rep(c(0.5, 2, 1), length.out = 90)
    tests <- list(list(tall, k = 4), list(tall, k = 4, method = "gram"), list(tall, k = 3, method = "krylov"),
      list(wide, k = 5),
                  list(wide, k = 5, method = "gram"), list(square, k = 3, method = "gram"), list(few, scale = TRUE,
                    k = 4),
                  list(few, k = 3, weights = weights), list(holes, k = 3), list(tall, k = 3, precision = "single",
                    tolerance = 1e-6))
    for (test in tests) {
      part <- mine(nrow(test[[1]]))
      shared <- test
      shared[[1]] <- test[[1]][part, , drop = FALSE]
      if (!is.null(test$weights)) shared$weights <- test$weights[part]
      one <- call_with(pca, c(test, seed = 1))
      all <- call_with(pca, c(shared, seed = 1, ranks = TRUE))
      good <- if (isTRUE(test$precision == "single")) max(abs(one$d - all$d)) < 1e-9 else same(all, one)
      off <- function(what) max(abs(all[[what]] - one[[what]]))
      cat(sprintf("rank %d %s %s %.1e %.1e %.1e\\n", me, good, all$method, off("d"), off("rotation"), off("x")))
    }'
)
job <- NULL
said <- function(part) {
  if (is.null(job)) job <<- run_ranks_in_parts(3, parts)
  job[[part]]
}

test_that("every rank gets what every rank has, empty and uneven parts too", {
  out <- said("gather")
  expect_setequal(grep("^rank", out, value = TRUE), sprintf("rank %d: TRUE abc", 0:2))
})

test_that("an error on one rank ends the job and names the rank", {
  out <- run_ranks(3, c(
    'me <- attr(weft_ranks(), "rank")', 'if (me == 1) stop("its file is missing")', "weft:::ranks_gather(me)",
                        'cat("went on\\n")'))
  expect_match(out, "its file is missing", all = FALSE)
  expect_match(out, "weft: rank 1 on .* stopped", all = FALSE)
  expect_false("went on" %in% out)
})

test_that("a rank that leaves early does not keep the others waiting", {
  out <- run_ranks(2, c('me <- attr(weft_ranks(), "rank")', "if (me == 0) quit(status = 3)", "weft:::ranks_gather(me)"))
  expect_match(out, "This call needs rank 0, but the script there has ended", all = FALSE)
})

# How many comparisons hold on all three ranks together. Lines of several ranks may run together.
test_that("what is shared among ranks is what one rank gives, also where a rank has no part", {
  comparisons <- c(pairs = 15L, triples = 12L, chains = 12L, clusters = 9L, regulation = 18L, components = 30L)
  for (job in names(comparisons)) {
    out <- said(job)
    expect_identical(sum(lengths(regmatches(out, gregexpr("rank [0-2] TRUE", out)))), comparisons[[job]],
                     info = paste(c(job, out), collapse = "\n"))
  }
})

test_that("sums over ranks are one rank's, in uneven and empty parts", {
  out <- said("sums")
  expect_setequal(out, sprintf("rank %d done", 0:2))
})

test_that("densities, regressions and bandwidths over ranks are one rank's", {
  out <- said("smoothers")
  expect_setequal(out, sprintf("rank %d done TRUE", 0:2))
})

test_that("with a confidence, what is drawn over ranks is what one rank draws, and bounds hold", {
  out <- run_ranks(4, '
    me <- attr(weft_ranks(), "rank")
    set.seed(2); n <- 4000; x <- matrix(rnorm(n * 3), n); q <- matrix(rnorm(300), 100)
    w <- cbind(rexp(n), rnorm(n)); w[1:1000, ] <- abs(w[1:1000, ]) # negative ones on one rank alone
    own <- list(1:1000, integer(), 1001:1005, 1006:n)[[me + 1]] # one has none
    ask <- which(seq_len(100) %/% 30 == me)
    sums <- function(..., weights = NULL) {
      one <- as.matrix(call_with(kernel_sum, list(q, x, weights, ..., confidence = 0.95)))[ask, ]
      all <- call_with(kernel_sum, list(q[ask, ], x[own, ], weights[own, , drop = FALSE], ..., confidence = 0.95,
        ranks = TRUE))
      max(0, abs(c(all) / c(one) - 1))
    }
    off <- c(
      samples = sums(bandwidth = 4, rel_error = 0.1, method = "montecarlo", seed = 3),
      missed = sums(bandwidth = 1, rel_error = 0.01, method = "montecarlo", seed = 3),
      logs = sums(bandwidth = 4, rel_error = 0.1, method = "montecarlo", log = TRUE, seed = 3),
      signed = sums(bandwidth = 4, rel_error = 0.2, abs_error = 2, method = "montecarlo", weights = w, seed = 3),
      features = sums(bandwidth = c(4, 5, 6), kernel = "matern32", rel_error = 0.1, abs_error = 5, method = "features",
                      seed = 3),
      both = sums(bandwidth = 4, rel_error = 0.1, abs_error = 10, method = "features", weights = w, seed = 3))
    if (any(off > 1e-12)) cat(sprintf("rank %d off: %s\\n", me, paste(names(off), signif(off, 2), collapse = " ")))
    exact <- kernel_sum(q, x, bandwidth = 0.5)[ask]
    set.seed(me) # the first rank draws the key of all
    ways <- list(list(method = "direct"), list(method = "tree"), list(method = "tree", nodes = "samples"), list())
    for (how in ways) {
      got <- call_with(kernel_sum, c(list(q[ask, ], x[own, ], bandwidth = 0.5, rel_error = 0.1, confidence = 1 - 1e-6,
                                        run = weft_run(ranks = TRUE)), how))
      if (any(abs(got / exact - 1) > 0.1)) cat(sprintf("rank %d, %s: bound broken\\n", me, toString(how)))
    }
    none <- kernel_sum(q[ask, ], x[0, ], rel_error = 0.1, method = "montecarlo", control = list(confidence = 0.9),
      run = weft_run(ranks = TRUE))
    if (!identical(none, numeric(length(ask)))) cat("something of nothing\\n")
    cat(sprintf("rank %d done\\n", me))')
  expect_setequal(out, sprintf("rank %d done", 0:3))
  x <- matrix(1:6 / 6, 3)
  expect_error(kernel_sum(x, rel_error = 0.1, method = "nystrom", run = weft_run(ranks = TRUE)), "reduced set",
               class = "weft_error_input")
})

# One rank sleeps before every block of queries; blocks are cut to take 0.2 s, however crowded the machine is.
test_that("queries of a slow rank migrate, and a rank that dies ends the job", {
  slow <- 'me <- attr(weft_ranks(), "rank")
    set.seed(me); x <- matrix(rnorm(24000 * 3), 24000)
    if (me == 0) suppressMessages(trace("sums_task", quote(Sys.sleep(0.8)), print = FALSE, where = asNamespace("weft")))
    f <- kernel_sum(x, kernel = "cauchy", method = "direct", leave_one_out = TRUE,
      run = weft_run("cpu", ranks = TRUE, verbose = TRUE))
    all <- do.call(rbind, weft:::ranks_gather(x))
    some <- c(1, 8000, 24000)
    cat(sprintf("rank %d %s\\n", me, isTRUE(all.equal(f[some], kernel_sum(x[some, ], all, kernel = "cauchy") - 1,
                                                       tolerance = 1e-12))))'
  out <- run_ranks(2, slow)
  expect_setequal(grep("^rank [01] ", out, value = TRUE), c("rank 0 TRUE", "rank 1 TRUE"))
  counters <- utils::read.table(text = grep("^ *(rank references|[01] )", out, value = TRUE), header = TRUE)
  expect_gt(counters$given[1L], 0)
  expect_identical(counters$helped[2L], counters$given[1L])
  out <- run_ranks(2, c('me <- attr(weft_ranks(), "rank")', "x <- matrix(rnorm(3e5), ncol = 3)",
                        'if (me == 1) system(sprintf("(sleep 1; kill -KILL %d) >/dev/null 2>&1 &", Sys.getpid()))',
                        'f <- kernel_sum(x, kernel = "cauchy", method = "direct", run = weft_run("cpu", ranks = TRUE))',
                        'cat("went on\\n")'))
  expect_match(out, "rank 1 .*signal 9|EXIT CODE: 9",
               all = FALSE) # mpirun's words, which a job that hangs never gets to
  expect_false("went on" %in% out)
})

test_that("ranks on different processors and back ends come to the same components", {
  made <- 'set.seed(1)
    orthonormal <- function(n, k) qr.Q(qr(matrix(rnorm(n * k), n)))
    falling <- function(n, p) orthonormal(n, 40) %*% (1.5^-(1:40) * t(orthonormal(p, 40)))
    report <- function() for (x in list(falling(400, 150), falling(640, 560))) for (method in c("gram", "krylov")) {
      mine <- list(1:200, 201:397, 398:nrow(x))[[me + 1]]
      one <- pca(x, k = 4, method = method, seed = 1, run = "cpu")
      all <- pca(x[mine, ], k = 4, method = method, seed = 1, run = weft_run(ranks = TRUE))
      cat(sprintf("rank %d %s\n", me, max(abs(all$d - one$d), abs(all$rotation - one$rotation)) < 1e-12))
    }'
  expect_all_right <- function(setting) {
    out <- run_ranks(3, c('me <- attr(weft_ranks(), "rank")', setting, made, "report()"))
    expect_identical(sum(grepl("^rank [0-2] TRUE$", out)), 12L, info = paste(out, collapse = "\n"))
  }
  expect_all_right('if (me == 2) Sys.setenv(WEFT_PCA_OTHER_SIGNS = "1")')
  skip_if_no_cuda()
  expect_all_right('weft_backend(c("cpu", "cuda", "cpu")[me + 1])')
})

test_that("ranks with different columns, and what is not shared, are errors", {
  calls <- c(`the columns of x` = "pca(matrix(rnorm(20), 5 - me), run = weft_run(ranks = TRUE))",
             `needs method` = 'pca(diag(5), method = "gs", run = weft_run(ranks = TRUE))',
             `must be complete` = "pca(matrix(c(1, NA, 2, 5, 3, 1), 3), run = weft_run(ranks = TRUE))",
             `whether there are weights` = "pca(diag(4), weights = if (me) 1:4, run = weft_run(ranks = TRUE))",
             `Different from rank 0: .bandwidth. .rank 1.` =
               "kernel_sum(matrix(1:4, 2), bandwidth = 1 + me, run = weft_run(ranks = TRUE))")
  found <- outcomes(2, character(), calls)
  for (said in names(calls)) expect_match(found[said, ], paste0("^weft_error_(input|ranks) .*", said))
  for (said in c("the columns of x", "must be complete")) { # one that is found together, one that each rank finds
    out <- run_ranks(2, c('me <- attr(weft_ranks(), "rank")', calls[[said]])) # nobody catches it
    expect_match(out, said, all = FALSE)
    expect_match(out, "weft: rank . on .* stopped", all = FALSE)
  }
})
