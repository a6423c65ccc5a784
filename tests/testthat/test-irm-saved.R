# Fits and checkpoints that are damaged, or were made to do harm: errors of weft's, or right results.
saved_graph <- function() {
  withr::local_seed(1)
  A <- matrix(stats::rbinom(120, 1, 0.4), 12, dimnames = list(letters[1:12], LETTERS[1:10]))
  A[1, 2] <- NA
  A
}

saved_fits <- function() {
  list(
    bipartite = irm(saved_graph(), chains = 2, sweeps = 6, seed = 1, hold_out = 0.1, control = list(thin = 2)),
    undirected = irm(matrix(1, 5, 5) - diag(5), "undirected", "poisson", chains = 1, sweeps = 4, seed = 1,
                     control = list(thin = 2, self = TRUE)),
    nested = irm(matrix(c(0, 3, 1, NA, 0, 0, 1, 2, 0), 6, 3), "bipartite", "poisson", chains = 2, sweeps = 4, seed = 1,
                 prior = irm_prior(degrees = TRUE), max_clusters = 3, control = list(thin = 2))
  )
}

# Methods that show what is in a fit, and those that compute from its run.
shows <- list(
  print = print, summary = function(x) print(summary(x)), fitted = fitted, coef = coef, nodes = as.data.frame,
  blocks = function(x) as.data.frame(x, what = "blocks"), glance = generics::glance, tidy = generics::tidy,
  trace = function(x) plot(x, "trace"), eta = function(x) plot(x, "eta"), sizes = function(x) plot(x, "sizes"),
  tree = function(x) plot(x, "tree")
)
computes <- list(
  predict = function(x) predict(x, cbind(1:2, 1:2)), update = function(x) update(x, sweeps = 1), matrix = plot,
  words = irm_words
)

# A million proposals for each sweep, a million sweeps.
valid_but_long <- paste(c("run$model$attempts", "model$attempts", "run$target", "target"), "large")

same <- c("row_cluster", "log_posterior", "consensus", "eta", "rhat", "n_clusters")

# Every damage of every slot, and one of the uses of each in turn; all uses of each: test-irm-damage.R in longtests/.
expect_no_harm <- function(fit, uses, paths) {
  testthat::expect_null(irm_unclassed(fit, uses))
  found <- character()
  made <- 0
  for (path in paths) {
    changes <- damages(get_slot(fit, path))
    for (change in names(changes)) {
      if (paste(slot_name(fit, path), change) %in% valid_but_long) next
      made <- made + 1
      wrong <- irm_unclassed(set_slot(fit, path, changes[[change]]), uses[1 + made %% length(uses)])
      if (length(wrong)) found <- c(found, paste(slot_name(fit, path), change, names(wrong), wrong))
    }
  }
  testthat::expect_identical(found, character())
}

test_that("fits with any slot damaged are refused, or used as they are", {
  for (fit in saved_fits()) {
    paths <- slot_paths(fit, "call")
    paths <- paths[sort(sample(length(paths), length(paths) %/% 2L))] # others in each run
    in_run <- vapply(paths, function(path) names(fit)[path[1L]] == "run", NA)
    expect_no_harm(fit, computes[c("predict", "update", "words")], paths[in_run])
    expect_no_harm(fit, c(shows[c("print", "nodes")], computes["predict"]), paths[!in_run])
  }
})

test_that("every method refuses a damaged fit", {
  grDevices::pdf(NULL)
  withr::defer(grDevices::dev.off())
  for (fit in saved_fits()) {
    uses <- c(shows, computes)
    expect_null(irm_unclassed(fit, uses))
    for (field in c("row_cluster", "eta", "log_posterior", "run")) {
      damaged <- fit
      damaged[[field]] <- lapply(damaged[[field]], function(x) "text")
      for (name in names(uses)) {
        expect_error(uses[[name]](damaged), class = "weft_error_input", label = paste(name, field))
      }
    }
    damaged <- fit
    damaged$row_cluster[1L] <- .Machine$integer.max # as many clusters would fill the memory
    for (name in names(uses)) expect_error(uses[[name]](damaged), class = "weft_error_input", label = name)
  }
  for (use in list(irm_words, predict.weft_irm, update.weft_irm)) expect_error(use(1, 1), class = "weft_error_input")
})

test_that("summaries with any slot damaged are refused, or shown", {
  for (fit in saved_fits()) expect_no_harm(summary(fit), list(print = print), slot_paths(summary(fit)))
})

# A run of four sweeps that wants four more.
half_a_run <- function(file, ...) {
  run <- call_with(irm, list(saved_graph(), chains = 2, sweeps = 4, seed = 1, hold_out = 0.1, ...,
                             control = list(thin = 2)))$run
  run[c("target", "checkpoint", "save_every")] <- list(8, file, 3)
  stopifnot(is.null(weft:::save_checkpoint(run)))
  readRDS(file)
}

test_that("a checkpoint is finished as the run would have been", {
  file <- withr::local_tempfile()
  saved <- half_a_run(file)
  expect_named(saved, c("format", "checksum", "run"))
  whole <- irm(saved_graph(), chains = 2, sweeps = 8, seed = 1, hold_out = 0.1, control = list(thin = 2))
  expect_identical(irm_resume(file)[same], whole[same])
  expect_identical(irm_resume(file)[same], whole[same]) # the finished run is in it now
  half_a_run(file)
  saveRDS(saved, file) # gzipped, and in a later version of the format
  expect_identical(irm_resume(file)[same], whole[same])
  expect_null(whole$run$checkpoint)
  again <- withr::local_tempfile()
  begun <- irm(saved_graph(), chains = 2, sweeps = 3, seed = 1, hold_out = 0.1, control = list(thin = 2))
  more <- update(begun, sweeps = 5, checkpoint = again, checkpoint_sweeps = 2)
  expect_identical(more[same], whole[same])
  expect_identical(irm_resume(again)[same], whole[same])
})

test_that("checkpoints with any slot damaged are refused, whether the checksum was renewed or not", {
  file <- withr::local_tempfile()
  saved <- half_a_run(file)
  right <- irm_resume(file)[same]
  resumed <- function(x) {
    saveRDS(x, file, compress = FALSE)
    tryCatch(irm_resume(file)[same], error = function(e) class(e))
  }
  found <- character()
  for (path in slot_paths(saved)) {
    changes <- damages(get_slot(saved, path))
    for (change in names(changes)) {
      what <- paste(slot_name(saved, path), change)
      if (what %in% valid_but_long) next
      changed <- set_slot(saved, path, changes[[change]])
      renewed <- changed
      renewed$checksum <- tryCatch(.Call(weft:::C_weft_irm_saved_sum, changed$run), error = function(e) NULL)
      got <- resumed(renewed)
      other <- is.list(got) && !identical(got, right) && !identical(renewed$checksum, changed$checksum)
      if (other) got <- resumed(changed)
      if (is.character(got) && !"weft_error" %in% got) found <- c(found, paste(what, got[1L]))
      if (is.list(got) && !identical(got, right)) found <- c(found, paste(what, "went unseen"))
    }
  }
  expect_identical(found, character())
})

test_that("checkpoints with other bytes, or too few, are refused", {
  file <- withr::local_tempfile()
  half_a_run(file)
  right <- irm_resume(file)[same]
  half_a_run(file)
  bytes <- readBin(file, raw(), 1e6)
  outcome <- function(changed) {
    writeBin(changed, file)
    got <- tryCatch(irm_resume(file)[same], error = function(e) class(e))
    if (is.list(got)) identical(got, right) else "weft_error_input" %in% got
  }
  withr::local_seed(1)
  flip <- function(at, bit) replace(bytes, at, xor(bytes[at], as.raw(2^bit)))
  places <- c(1:60, sample(length(bytes), 140))
  expect_true(all(vapply(places, function(at) outcome(flip(at, sample(0:7, 1))), NA)))
  expect_true(all(vapply(c(0:20, sample(length(bytes) - 1, 20)), function(n) outcome(bytes[seq_len(n)]), NA)))
  expect_true(outcome(c(bytes, as.raw(0))))
  expect_true(outcome(c(as.raw(c(0x1f, 0x8b)), bytes)))
  writeBin(memCompress(bytes, "gzip")[1:200], file)
  expect_error(irm_resume(file), class = "weft_error_input")
})

test_that("what is wrong with a checkpoint is named", {
  dir <- withr::local_tempdir()
  withr::local_dir(dir)
  saved <- half_a_run("run")
  refused <- function(saved, ...) {
    saveRDS(saved, "run")
    expect_snapshot_error(irm_resume("run"), class = "weft_error_input")
  }
  change <- function(path, value) {
    z <- saved
    z[[path]] <- value
    refused(z)
  }
  change(c("run", "state", "row"), replace(saved$run$state$row, 1L, 1000000L))
  change(c("run", "thin"), NULL)
  change(c("run", "target"), 9)
  change(c("run", "graph", "links", "to"), rev(saved$run$graph$links$to))
  change(c("run", "model", "max_clusters"), c(20, 2^33))
  change("format", "weft irm 1")
  change("format", 2)
  refused(list(1))
  refused(function() 1)
  expect_snapshot_error(irm_resume("."), class = "weft_error_input")
  expect_snapshot_error(irm_resume(), class = "weft_error_input")
})

test_that("nothing in a checkpoint is evaluated", {
  file <- withr::local_tempfile()
  marker <- withr::local_tempfile()
  saved <- half_a_run(file)
  act <- bquote(file.create(.(marker)))
  active <- new.env()
  makeActiveBinding("done", eval(bquote(function() .(act))), active)
  harm <- list(`function` = eval(bquote(function(...) .(act))), call = act, expression = as.expression(act),
               environment = active, name = as.name("T"), formula = ~ file.create("x"),
               s4 = methods::getClass("numeric"),
               raw = raw(3), complex = 1i)
  for (kind in names(harm)) {
    for (path in list("format", "run", c("run", "reason"), c("run", "graph"), c("run", "model", "key"))) {
      z <- saved
      z[[path]] <- harm[[kind]]
      saveRDS(z, file)
      expect_error(irm_resume(file), class = "weft_error_input", label = kind)
    }
    z <- saved
    attr(z$run$reason, "hidden") <- harm[[kind]]
    saveRDS(z, file)
    expect_error(irm_resume(file), class = "weft_error_input", label = kind)
  }
  half_a_run(file)
  bytes <- readBin(file, raw(), 1e6)
  strings <- which(bytes == as.raw(16L)) # types of vectors of strings, among others; a promise is type 5
  for (at in strings[seq_len(min(20L, length(strings)))]) {
    writeBin(replace(bytes, at, as.raw(5L)), file)
    expect_error(irm_resume(file), class = "weft_error_input")
  }
  expect_false(file.exists(marker))
})

test_that("a file that ends R within readRDS() is refused", {
  int <- function(x) writeBin(as.integer(x), raw(), endian = "big")
  name <- function(x) c(int(c(1, 0x40009, nchar(x))), charToRaw(x))
  file <- withr::local_tempfile() # a string that is made when it is needed, from a state that is three numbers
  writeBin(c(charToRaw("X\n"), int(c(3, 0x40300, 0x30500, 5)), charToRaw("UTF-8"), int(c(238, 2)),
             name("deferred_string"), int(2), name("base"), int(c(2, 13, 1, 16, 254, 14, 3)), rep(as.raw(0x41), 24),
             int(254)), file)
  expect_error(irm_resume(file), "only vectors and lists are allowed", class = "weft_error_input")
})

test_that("a checkpoint is written beside its name, follows no link and leaves nothing", {
  skip_on_os("windows")
  dir <- withr::local_tempdir()
  file <- file.path(dir, "run")
  victim <- file.path(dir, "victim")
  writeLines("mine", victim)
  file.symlink(victim, paste0(file, ".part"))
  file.symlink(victim, file)
  irm(saved_graph(), chains = 1, sweeps = 4, seed = 1, control = list(checkpoint = file, checkpoint_sweeps = 2))
  expect_identical(readLines(victim), "mine")
  expect_identical(Sys.readlink(file), "")
  expect_setequal(list.files(dir, all.files = TRUE, no.. = TRUE), c("run", "run.part", "victim"))
})

test_that("a checkpoint that cannot be written stops a run before it starts", {
  dir <- withr::local_tempdir()
  withr::local_options(weft.poll = 0)
  polls <- 0
  count <- function(done, total) polls <<- polls + 1
  refused <- function(path) {
    expect_error(irm(saved_graph(), chains = 1, sweeps = 4, seed = 1, run = weft_run(progress = count),
                     control = list(checkpoint = path)),
                 class = "weft_error_input")
    fit <- irm(saved_graph(), chains = 1, sweeps = 4, seed = 1)
    expect_error(update(fit, sweeps = 2, checkpoint = path, run = weft_run(progress = count)),
                 class = "weft_error_input")
  }
  refused(file.path(dir, "nowhere", "run"))
  refused(dir)
  refused("")
  refused(1)
  refused(c("a", "b"))
  refused(NA_character_)
  expect_identical(polls, 0)
  expect_identical(list.files(dir, all.files = TRUE, no.. = TRUE), character())
})

test_that("a run whose checkpoint can no longer be written goes on, and says so once", {
  dir <- withr::local_tempfile()
  dir.create(dir)
  file <- file.path(dir, "run")
  withr::local_options(weft.poll = 0)
  remove_later <- function(done, total) if (file.exists(file)) unlink(dir, recursive = TRUE)
  warnings <- list()
  fit <- withCallingHandlers(
    irm(saved_graph(), chains = 1, sweeps = 12, seed = 1, run = weft_run(progress = remove_later),
        control = list(checkpoint = file, checkpoint_sweeps = 2)),
    warning = function(w) {
      warnings[[length(warnings) + 1L]] <<- w
      invokeRestart("muffleWarning")
    })
  expect_length(warnings, 1L)
  expect_s3_class(warnings[[1L]], "weft_warning_checkpoint")
  expect_identical(fit[same], irm(saved_graph(), chains = 1, sweeps = 12, seed = 1)[same])
})

test_that("graphs made by hand are checked", {
  graph <- weft:::irm_graph(saved_graph())
  expect_no_harm(graph, list(
    log_posterior = function(g) irm_log_posterior(g, rep(1:3, 4), rep(1:2, 5)),
    run = function(g) irm(g, chains = 1, sweeps = 2, seed = 1)
  ), slot_paths(graph))
  twice <- graph
  twice$missing <- twice$links
  twice$missing["weight"] <- list(NULL)
  expect_error(irm_log_posterior(twice, rep(1, 12), rep(1, 10)), "a pair is also a link", class = "weft_error_input")
})
