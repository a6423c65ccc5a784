bits <- function(...) as.matrix(rbind(...))
tiny <- bits(c(1, 1, 0), c(1, 1, 0), c(0, 0, 1), c(0, 1, 1))

test_that("samplers agree with exact enumeration", {
  skip_on_cran()
  expect_exact("cpu", 500)
})

test_that("samplers on the device agree with exact enumeration", {
  skip_if_no_cuda()
  expect_exact("cuda", 100)
})

test_that("the log posterior is exact", {
  withr::local_seed(1)
  for (type in c("bipartite", "directed", "undirected")) {
    A <- matrix(rbinom(144, 1, 0.4), 12)
    if (type == "undirected") A <- 1 * (A | t(A))
    A[cbind(1:3, 4:6)] <- NA
    if (type == "undirected") A[cbind(4:6, 1:3)] <- NA
    z <- sample(3, 12, TRUE)
    w <- if (type == "bipartite") sample(4, 12, TRUE) else z
    want <- ref_log_crp(match(z, unique(z)), 0.7) + ref_log_likelihood(A, z, w, c(0.4, 2), type = type) +
      if (type == "bipartite") ref_log_crp(match(w, unique(w)), 1.3) else 0
    got <- irm_log_posterior(A, z, if (type == "bipartite") w, alpha = c(0.7, 1.3), beta = c(0.4, 2), type = type)
    expect_equal(got, want, tolerance = 1e-11)
  }
  C <- matrix(rpois(60, 3), 6)
  expect_equal(irm_log_posterior(C, rep(1:2, 3), rep(1, 10), family = "poisson", beta = c(2, 0.5)),
               ref_log_crp(rep(1:2, 3), 1) + ref_log_crp(rep(1, 10), 1) +
                 ref_log_likelihood(C, rep(1:2, 3), rep(1, 10), c(2, 0.5), "poisson"), tolerance = 1e-11)
})

test_that("every form of a graph is the same graph", {
  A <- tiny
  at <- which(A == 1, arr.ind = TRUE)
  same <- function(x, ...) expect_equal(call_with(irm_log_posterior, list(x, c(1, 1, 2, 2), c(1, 2, 2), ...)),
                                        irm_log_posterior(A, c(1, 1, 2, 2), c(1, 2, 2)))
  same(A == 1)
  same(Matrix::Matrix(A, sparse = TRUE))
  same(Matrix::sparseMatrix(i = at[, 1], j = at[, 2]))
  same(data.frame(at))
  same(data.frame(rbind(at, at)))
  same(data.frame(letters[at[, 1]], factor(at[, 2])))
  same(5 * A + 1, threshold = 3)
  expect_equal(irm_log_posterior(replace(A, 2, NA), c(1, 1, 2, 2), c(1, 2, 2)),
               irm_log_posterior(A, c(1, 1, 2, 2), c(1, 2, 2), missing = cbind(2, 1)))
})

test_that("bad graphs are refused with the reason", {
  bad <- function(...) expect_error(call_with(irm, list(...)), class = "weft_error_input")
  bad(matrix(2, 2, 2))
  bad("a")
  bad(data.frame(0, 1))
  bad(data.frame(3, 1), dim = c(2, 2))
  bad(data.frame(NA, 1))
  bad(tiny, type = "directed")
  bad(bits(c(0, 1), c(0, 0)), type = "undirected")
  bad(matrix(0, 0, 3))
  bad(tiny, missing = cbind(9, 1))
  bad(tiny, alpha = -1)
  bad(tiny, init = list(row = 1:3))
})

test_that("no links, all links, one node and null graphs give one cluster", {
  for (A in list(matrix(0, 8, 6), matrix(1, 8, 6), matrix(1, 1, 1))) {
    fit <- irm(A, chains = 2, sweeps = 60, seed = 1)
    expect_identical(c(max(fit$row_cluster), max(fit$col_cluster), max(fit$consensus$row), max(fit$consensus$col)),
                     rep(1L, 4))
  }
})

test_that("Southern Women and planted graphs reach their best", {
  women <- list(c(1:6, 8, 9), c(1:3, 5:8), 2:9, c(1, 3:8), c(3:5, 7), c(3, 5, 6, 8), 5:8, c(6, 8, 9), c(5, 7:9),
                c(7:9, 12),
                c(8:10, 12), c(8:10, 12:14), c(7:10, 12:14), c(6, 7, 9:14), c(7, 8, 10:12), 8:9, c(9, 11), c(9, 11))
  A <- t(vapply(women, function(e) replace(numeric(14), e, 1), numeric(14)))
  fit <- irm(A, seed = 1)
  expect_equal(max(fit$log_posterior), -149.8814, tolerance = 1e-6)
  expect_equal(irm_log_posterior(A, fit$row_cluster, fit$col_cluster), max(fit$log_posterior), tolerance = 1e-12)
  planted <- irm_sample(200, 150, 4, 0.2, seed = 3)
  fit <- irm(planted$A, chains = 2, sweeps = 60, seed = 1, hold_out = 0.05)
  free <- irm(planted$A, chains = 2, sweeps = 60, seed = 1)
  expect_gt(max(free$log_posterior), irm_log_posterior(planted$A, planted$row_cluster, planted$col_cluster) - 10)
  truth <- planted$eta[cbind(planted$row_cluster[fit$held_out$row], planted$col_cluster[fit$held_out$col])]
  expect_equal(fit$auc, irm_auc(truth, fit$held_out$count > 0), tolerance = 0.02)
})

test_that("a best partition that few samples are is found", {
  skip_if_not_installed("cluster")
  A <- as.matrix(cluster::animals) - 1 # five pairs missing; 1 sample in 2,000 is the best
  for (sampler in c("blocked", "collapsed")) {
    fit <- irm(A, seed = 1, chains = 2, sweeps = 40, control = list(sampler = sampler))
    expect_equal(max(fit$log_posterior), -85.25737, tolerance = 1e-7)
    best <- which.max(fit$run$state$best) # worth less than 3 nats over one cluster, which is what is reported
    row <- matrix(fit$run$state$best_row, 20)[, best]
    col <- matrix(fit$run$state$best_col, 6)[, best]
    expect_equal(irm_log_posterior(A, row, col), max(fit$log_posterior), tolerance = 1e-12)
    expect_identical(c(max(fit$row_cluster), max(fit$col_cluster)), c(1L, 1L))
  }
})

test_that("threads and cuts of a run change nothing; a checkpoint resumes", {
  A <- irm_sample(60, 50, 3, 0.3, seed = 2)$A
  same <- c("row_cluster", "log_posterior", "consensus", "eta", "rhat", "n_clusters")
  for (sampler in c("blocked", "collapsed")) {
    whole <- irm(A, chains = 2, sweeps = 50, seed = 5, run = weft_run(threads = 1),
                 prior = irm_prior(alpha = "sample", beta = "sample"), control = list(sampler = sampler))
    threads <- irm(A, chains = 2, sweeps = 50, seed = 5, run = weft_run(threads = 2),
                   prior = irm_prior(alpha = "sample", beta = "sample"), control = list(sampler = sampler))
    parts <- update(irm(A, chains = 2, sweeps = 20, seed = 5, prior = irm_prior(alpha = "sample", beta = "sample"),
                        control = list(sampler = sampler)),
                    sweeps = 30)
    expect_identical(threads[same], whole[same])
    expect_identical(parts[same], whole[same])
  }
  file <- withr::local_tempfile()
  full <- irm(A, chains = 2, sweeps = 30, seed = 5, control = list(checkpoint = file, checkpoint_sweeps = 7))
  expect_identical(irm_resume(file)[same], full[same])
  unlink(file) # and from a run that is stopped after its first 7 sweeps
  withr::with_options(list(weft.poll = 0), {
    stop_now <- structure(class = c("stopped", "error", "condition"), list(message = "stop", call = NULL))
    stop_later <- function(done, total) if (file.exists(file)) stop(stop_now)
    expect_error(irm(A, chains = 2, sweeps = 30, seed = 5, run = weft_run(progress = stop_later),
                     control = list(checkpoint = file, checkpoint_sweeps = 7)),
                 class = "stopped")
  })
  expect_identical(readRDS(file)$run$done, 7)
  expect_identical(irm_resume(file)[same], full[same])
  expect_error(irm_resume("nowhere"), class = "weft_error_input")
  before <- { set.seed(1); .Random.seed }
  irm(A, chains = 1, sweeps = 2, seed = 1)
  expect_identical(.Random.seed, before)
})

test_that("entropies of partitions, few and many clusters at once, are those of their shares", {
  withr::local_seed(5)
  entropy <- function(labels) {
    share <- table(labels) / length(labels)
    -sum(share * log(share))
  }
  for (shape in list(c(1, 1, 1), c(30, 4, 70), c(400, 400, 9), c(20000, 5000, 2))) {
    z <- sample(shape[2], shape[1], TRUE)
    others <- matrix(sample(shape[2], shape[1] * shape[3], TRUE), shape[1])
    joined <- apply(others, 2, function(other) entropy(paste(z, other)))
    expect_equal(weft:::joint_entropies(z, others), joined, tolerance = 1e-12)
    expect_equal(weft:::own_entropies(others), apply(others, 2, entropy), tolerance = 1e-12)
  }
})

test_that("measures and methods", {
  expect_equal(irm_nmi(c(1, 1, 2, 2), c("b", "b", "a", "a")), 1)
  expect_equal(irm_nmi(1:4, rep(1, 4)), 0)
  expect_equal(irm_nmi(rep(1, 3), rep(2, 3)), 1)
  expect_equal(irm_auc(c(0.9, 0.5, 0.5, 0.1), c(1, 1, 0, 0)), 0.875)
  expect_error(irm_auc(1:2, c(1, 1)), class = "weft_error_input")
  A <- tiny
  dimnames(A) <- list(letters[1:4], LETTERS[1:3])
  fit <- irm(A, chains = 2, sweeps = 40, seed = 1)
  expect_equal(predict(fit, cbind("b", "C")), predict(fit)["b", "C"])
  expect_true(all(predict(fit, cbind(1:2, 1:2), uncertainty = TRUE)$sd > 0))
  expect_output(print(fit), "Co-clustering of 4 rows")
  expect_output(print(summary(fit)), "posterior of their number")
  expect_identical(nrow(as.data.frame(fit)), 7L)
  expect_identical(unlist(irm_words(fit), use.names = FALSE)[1] %in% letters, TRUE)
  grDevices::pdf(NULL)
  withr::defer(grDevices::dev.off())
  for (what in c("matrix", "trace", "eta", "sizes")) expect_no_error(plot(fit, what))
  file <- withr::local_tempfile()
  write_bag_of_words(A, file, paste0(file, ".v"))
  expect_equal(as.matrix(read_bag_of_words(file, paste0(file, ".v"))) * 1, `colnames<-`(A, NULL))
})

# ---- limits of clusters ----

test_that("large alphas have the posterior of the Chinese restaurant process by default", {
  skip_on_cran()
  A <- bits(c(1, 1, 0, 0), c(1, 1, 0, 1), c(0, 0, 1, 1))
  for (alpha in c(0.2, 5, 100)) {
    exact <- exact_posterior(A, alpha = c(alpha, alpha))
    together <- sum(exact[grepl("^(111|121)", names(exact))])
    for (sampler in c("blocked", "collapsed")) {
      expect_no_warning(fit <- irm(A, chains = 8, sweeps = if (alpha > 5) 200 else 400, seed = 3,
                                   prior = irm_prior(alpha = alpha),
                                   control = list(sampler = sampler, thin = 1, burn_in = 0)))
      expect_posterior(fit, exact, label = paste(alpha, sampler))
      expect_lt(abs(fit$coassignment$row[1, 3] - together), 0.02)
    }
  }
  B <- bits(c(0, 1, 0, 0), c(1, 0, 1, 0), c(0, 0, 0, 1), c(1, 0, 1, 0))
  for (type in c("directed", "undirected")) {
    A <- if (type == "undirected") 1 * (B | t(B)) else B
    fit <- irm(A, type, chains = 8, sweeps = 200, seed = 4, prior = irm_prior(alpha = 40),
               control = list(self = TRUE, thin = 1, burn_in = 0))
    expect_posterior(fit, exact_posterior(A, alpha = c(40, 40), type = type, self = TRUE), label = type)
  }
})

test_that("many nodes and a large alpha have as many clusters as the prior gives them", {
  # one row without links of its own: the columns' clusters are the prior's
  fit <- irm(matrix(1, 1, 60), missing = matrix(TRUE, 1, 60), chains = 2, sweeps = 300, seed = 1,
             prior = irm_prior(alpha = 50), control = list(burn_in = 50))
  mean <- sum(as.numeric(names(fit$n_clusters$col)) * fit$n_clusters$col)
  var <- sum(50 / (50 + 0:59) * (1 - 50 / (50 + 0:59)))
  expect_lt(abs(mean - sum(50 / (50 + 0:59))), 5 * sqrt(var / 200)) # of 500 sweeps that hang together
})

test_that("the error of a limit is bounded as stated", {
  for (n in 2:5) {
    partitions <- all_partitions(n)
    for (alpha in c(0.3, 2, 20)) {
      free <- exp(apply(partitions, 1, ref_log_crp, alpha = alpha))
      expect_equal(weft:::expected_clusters(alpha, n), sum(free * apply(partitions, 1, max)), tolerance = 1e-10)
      for (k in 2:5) {
        cut <- exp(apply(partitions, 1, ref_log_sticks, alpha = alpha, k = k))
        expect_lte(sum(abs(cut - free)) / 2, weft:::truncation_error(alpha, n, k, "blocked") + 1e-12)
        expect_lte(sum(free[apply(partitions, 1, max) > k]), weft:::truncation_error(alpha, n, k, "collapsed") + 1e-12)
      }
    }
  }
  for (sampler in c("blocked", "collapsed")) {
    for (n in c(1, 2, 10, 1e4, 1e7)) {
      for (alpha in c(1e-6, 0.5, 1, 40, 1e4, 1e9)) {
        k <- weft:::clusters_needed(alpha, n, sampler)
        expect_lte(weft:::truncation_error(alpha, n, k, sampler), 1e-3 + 1e-9)
        expect_true(k >= 1 && k == round(k))
      }
    }
  }
})

test_that("too few clusters are a warning that says how many would do", {
  A <- bits(c(1, 1, 0, 0), c(1, 1, 0, 1), c(0, 0, 1, 1))
  few <- function(...) call_with(irm, list(A, chains = 2, sweeps = 60, seed = 1, ..., prior = irm_prior(alpha = 100)))
  for (sampler in c("blocked", "collapsed")) {
    got <- NULL
    withCallingHandlers(few(max_clusters = 2, sampler = sampler), weft_warning_truncation = function(w) {
      got <<- c(got, conditionMessage(w))
      invokeRestart("muffleWarning")
    })
    expect_length(got, 2)
    expect_match(got[1], "`max_clusters` (2) must be larger for the rows", fixed = TRUE)
    expect_match(got[1], "the prior mean for 3 rows is 3.0 clusters", fixed = TRUE)
    expect_match(got[1], if (sampler == "blocked") "or try 405" else "or try 4", fixed = TRUE)
  }
  expect_warning(few(max_clusters = c(405, 20)), "for the columns", class = "weft_warning_truncation")
  expect_no_warning(few(max_clusters = c(405, 440)))
  expect_no_warning(few(max_clusters = c(3, 4), sampler = "collapsed")) # as many as nodes
  expect_no_warning(few(max_clusters = 1)) # asked for one
  planted <- irm_sample(60, 40, 3, 0.3, seed = 1)$A
  expect_no_warning(irm(planted, chains = 2, sweeps = 40, seed = 1, max_clusters = 15))
  expect_warning(irm(planted, chains = 2, sweeps = 40, seed = 1, max_clusters = c(2, 10)),
                 class = "weft_warning_truncation")
  expect_warning(update(suppressWarnings(few(max_clusters = c(2, 440))), sweeps = 5), class = "weft_warning_truncation")
})

test_that("a default limit that is reached is raised, and a given one told", {
  planted <- irm_sample(200, 150, c(30, 25), 0.3, contrast = 0.6, seed = 2)
  part <- c("row_cluster", "col_cluster", "log_posterior", "n_clusters", "eta", "consensus")
  A <- planted$A
  expect_no_warning(fit <- irm(A, chains = 2, sweeps = 60, seed = 1))
  expect_identical(c(max(fit$row_cluster), max(fit$col_cluster)), c(30L, 25L))
  expect_equal(irm_nmi(fit$row_cluster, planted$row_cluster), 1)
  expect_identical(fit$limits[c("mode", "limit", "first")],
                   data.frame(mode = c("row", "col"), limit = c(58, 50), first = c(29, 25)))
  expect_identical(fit[part], irm(A, chains = 2, sweeps = 60, seed = 1, max_clusters = c(58, 50))[part])
  expect_output(print(fit), "The limit of 29 clusters of rows was reached", fixed = TRUE)
  expect_output(print(fit), "Number of clusters: rows 30 (1.00); columns 25 (1.00)", fixed = TRUE)
  expect_warning(given <- irm(A, chains = 2, sweeps = 60, seed = 1, max_clusters = c(20, 60)), "for the rows",
                 class = "weft_warning_truncation")
  expect_identical(given$limits$limit, c(20, 60))
  note <- "The limit of 20 clusters of rows was reached in 100 % of the sweeps: do not interpret their number."
  expect_output(print(given), note, fixed = TRUE)
  expect_output(print(summary(given)), note, fixed = TRUE)
  few <- irm(A, chains = 1, sweeps = 6, seed = 1, max_clusters = 5)
  expect_output(print(few), "or more `sweeps`", fixed = TRUE)
  fits <- irm(A[1:20, 1:20], chains = 1, sweeps = 40, seed = 1)
  expect_false(any(grepl("limit", capture.output(print(fits)))))
})

test_that("runs whose limit is raised are the same from checkpoints, and update() keeps the limit", {
  A <- irm_sample(200, 150, c(30, 25), 0.3, contrast = 0.6, seed = 2)$A
  start <- list(row = rep(1:4, 50), col = rep(1:3, 50))
  file <- withr::local_tempfile()
  part <- c("row_cluster", "log_posterior", "eta", "limits")
  for (init in list(NULL, start)) {
    fit <- irm(A, chains = 2, sweeps = 40, seed = 1,
               control = list(init = init, checkpoint = file, checkpoint_sweeps = 7))
    expect_gt(fit$limits$limit[1], fit$limits$first[1])
    expect_identical(irm(A, chains = 2, sweeps = 40, seed = 1, control = list(init = init))[part], fit[part])
    expect_identical(irm_resume(file)[part], fit[part])
    run <- fit$run # as it was before it was done again
    run$model$max_clusters <- run$first_limits
    run[c("done", "checkpoint", "save_every")] <- list(0, file, 5)
    run["trace"] <- list(NULL)
    codes <- weft:::init_codes(init, c(200, 150))
    run$state <- weft:::start_state(run$graph, codes, run$model, 2, list(alpha = c(1, 1), beta = c(1, 1)))
    weft:::save_checkpoint(run)
    expect_identical(irm_resume(file)[part], fit[part])
  }
  short <- irm(A, chains = 2, sweeps = 10, seed = 1) # too few sweeps to tell
  expect_identical(short$limits$limit, short$limits$first)
  expect_warning(longer <- update(short, sweeps = 50), class = "weft_warning_truncation")
  expect_identical(longer$limits$limit, short$limits$limit)
})

test_that("where sticks would need millions of blocks the collapsed sampler runs, unless the other was named", {
  A <- irm_sample(40, 30, 2, 0.3, seed = 1)$A
  expect_identical(irm(A, chains = 1, sweeps = 2, seed = 1, prior = irm_prior(alpha = 1e5))$sampler, "collapsed")
  expect_identical(irm(A, chains = 1, sweeps = 2, seed = 1, max_clusters = 30,
                       prior = irm_prior(alpha = 1e5))$sampler, "blocked")
  expect_identical(irm(A, chains = 1, sweeps = 2, seed = 1, prior = irm_prior(alpha = 100))$sampler, "blocked")
})

test_that("counts of billions and parameters at their ends keep labels in bounds", {
  huge <- matrix(c(2e9, 2e9, 0, 1, 2e9, 2e9, 5, 0, 0, 3, 2e9, 1), 4)
  for (beta in list(c(1e-6, 1e-6), c(1e9, 1e-6), c(1e-6, 1e9), c(1e9, 1e9), c(1, 1))) {
    for (alpha in c(1e-6, 1, 1e9)) {
      for (sampler in c("blocked", "collapsed")) {
        run <- function(...) {
          suppressWarnings(call_with(irm, list(..., max_clusters = 4, chains = 1, sweeps = 6, seed = 1,
                                               prior = irm_prior(alpha = alpha, beta = beta),
                                               control = list(sampler = sampler))))
        }
        fits <- list(run(huge, family = "poisson"), run(tiny),
                     run(huge[1:3, ] %*% t(huge[1:3, ]) > 0, type = "undirected", self = TRUE),
                     run(huge[1:3, 1:3], type = "directed", family = "poisson", self = TRUE))
        for (fit in fits) expect_true(all(is.finite(fit$log_posterior)))
      }
    }
  }
})

test_that("lists of a graph are checked before samplers stand on them, by all threads", {
  rows <- 2000
  each <- 300
  edges <- function(to = rep(seq(0, by = 3, length.out = each), rows), weight = NULL, from = rows) {
    list(n_row = from, n_col = 1000, start = as.double(each * 0:rows), to = as.integer(to), weight = weight)
  }
  none <- list(n_row = rows, n_col = 1000, start = numeric(rows + 1), to = integer(), weight = NULL)
  model <- list(poisson = FALSE, collapsed = FALSE, nested = FALSE, degrees = FALSE, attempts = 0,
                sample_alpha = FALSE, sample_beta = FALSE, hyper = rep(1, 4), max_clusters = c(4, 4), key = c(0, 1))
  begin <- function(links, missing = none, kind = "bipartite") {
    .Call(weft:::C_weft_irm_start, list(kind = kind, self = FALSE, links = links, missing = missing, values = NULL,
                                        prepared = NULL),
          weft:::native_model(model), 1L, weft:::run_control("cpu", 2, FALSE))
  }
  bad <- function(regexp, ...) expect_error(begin(...), regexp, class = "weft_error_input")
  changed <- function(part, at, value, links = edges()) { links[[part]][at] <- value; links }
  good <- edges()
  last <- rows * each
  expect_length(begin(good)$row, rows)
  expect_length(begin(edges(weight = rep(1L, last)))$row, rows)
  bad("links is damaged: columns must ascend", changed("to", last - 1, good$to[last - 2]))
  bad("links is damaged: columns must ascend", changed("to", 7e4, 0L))
  bad("a column is outside of", changed("to", last, 1000L))
  bad("a column is outside of", changed("to", 1, -1L))
  bad("offsets must ascend", changed("start", 1000, good$start[1001] + 1))
  bad("offsets must ascend", changed("start", 1000, NaN))
  bad("offsets must span", changed("start", rows + 1, 1))
  bad("a count must be 1", edges(weight = rep(1:0, last / 2)))
  bad("a pair is also a link", good, changed("to", 1:each, good$to[1:each] + c(rep(1L, each - 1), 0L),
                                            edges(rep(seq(1, by = 3, length.out = each), rows))))
  square <- list(n_row = 3, n_col = 3, start = c(0, 1, 2, 2), to = c(1L, 2L), weight = NULL)
  unknown <- list(n_row = 3, n_col = 3, start = numeric(4), to = integer(), weight = NULL)
  expect_length(begin(square, unknown, "undirected")$row, 3)
  bad("smaller node", changed("to", 2, 0L, square), unknown, "undirected")
  bad("paired with itself", changed("to", 2, 1L, square), unknown, "directed")
})
