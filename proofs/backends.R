# Random valid calls of every function that has both back ends, each run on two sides and compared by what the function
# promises.
#
#   Rscript proofs/backends.R [--calls 30000] [--seed S] [--jobs 8] [--against cuda] [--devices all]
#                                [--only pca,irm] [--call S]
#
# --against cuda      the CPU and the device (the usual)
#           threads   one thread and two: the same bits, and so a test of this script where there is no device
#           variants  the portable and the best vector code: sums in another order, under the device's promises
# --devices all       the device's side runs on all devices (or 0,1,...); else on one, now and then in parts on the same
# --call S            one call again, by the line that its difference ends with
#
# Three lines a difference; at the end counts by function: calls with the same result, that failed with the same class
# of error, that the device's side says it does not do, different ones, and those that say they ran on the device. Exit
# status 1 if any was different; a call that ends R is. Calls are drawn by tests/testthat/helper-calls*.R: the k-th has
# seed S + k - 1, whatever the jobs.
suppressPackageStartupMessages(library(weft))
for (file in c("tests/testthat/helper-arguments.R", "tests/testthat/helper-simd.R",
               Sys.glob("tests/testthat/helper-calls*.R"))) source(file)

options_given <- function(words) {
  given <- list(calls = "30000", seed = as.character(sample(1e8, 1L)), jobs = "1", against = "cuda")
  known <- c(names(given), "devices", "only", "call", "share", "counts") # the last two: for a process of one job
  words <- unlist(strsplit(words, "=", fixed = TRUE))
  if (length(words) %% 2L) stop("options come as --name value")
  for (k in seq_len(length(words) %/% 2L)) {
    name <- sub("^--", "", words[2L * k - 1L])
    if (!name %in% known) stop("there is no option --", name)
    given[[name]] <- words[2L * k]
  }
  given
}

named_functions <- function(given) {
  names <- if (!is.null(given$only)) strsplit(given$only, ",")[[1L]]
  unknown <- setdiff(names, names(makers))
  if (length(unknown)) stop("no calls are drawn for ", paste(unknown, collapse = ", "))
  names
}

# The two sides of a call. Which options the device's side gets is drawn by the seed too.
call_sides <- function(against, devices, seed) {
  one <- list(backend = "cpu", threads = 1)
  if (against == "threads") return(list(one, list(backend = "cpu", threads = 2), bits = TRUE))
  if (against == "variants") {
    levels <- simd_levels()
    return(list(c(one, variant = levels[1L]), c(one, variant = levels[length(levels)])))
  }
  set.seed((seed + 2^30) %% 2^31) # not the call's own random numbers
  other <- list(backend = "cuda", threads = sample(2L, 1L))
  if (identical(devices, "all")) other$devices <- "all"
  else if (!is.null(devices)) other$devices <- as.numeric(strsplit(devices, ",")[[1L]])
  else if (stats::runif(1) < 0.15) other$devices <- numeric(sample(2:3, 1L))
  other$options <- list(weft.devices = other$devices) # what stands on kernel sums takes it from here
  if (stats::runif(1) < 0.03) other$options$weft.device_memory <- 10^stats::runif(1, 4.5, 7)
  list(one, other)
}

# list(name, state, what, text) of one call.
run_call <- function(seed, given) {
  only <- named_functions(given)
  call <- tryCatch(seeded_call(seed, only, makers), error = conditionMessage)
  if (is.character(call)) return(list(name = "(drawing)", state = "different", what = call, text = ""))
  found <- check_call(call, call_sides(given$against, given$devices, seed))
  list(name = call$name, state = found$state, what = found$text, text = call$text)
}

show_difference <- function(seed, found, given) {
  again <- sprintf("--call %.0f --only %s --against %s", seed, found$name, given$against)
  if (!is.null(given$devices)) again <- paste(again, "--devices", given$devices)
  cat(sprintf("DIFFERENT %s: %s\n  %s\n  Rscript proofs/backends.R %s\n", found$name, found$what, found$text, again))
}

# The calls of one job. counts[function, state] after each go to a file, with the seed at work, so that those who
# started this process know where it ended if it ended early.
run_share <- function(given) {
  missing <- if (given$against == "cuda") weft:::cuda_missing()
  if (!is.null(missing)) stop("there is no device: ", missing, call. = FALSE)
  share <- as.numeric(strsplit(given$share, "/")[[1L]]) # from, to, by
  counts <- matrix(0, length(makers) + 1L, length(states) + 1L,
                   dimnames = list(c(names(makers), "(drawing)"), c(states, "on_device")))
  for (seed in seq(share[1L], share[2L], by = share[3L])) {
    saveRDS(list(seed = seed, counts = counts, done = FALSE), given$counts, compress = FALSE)
    last_run$backend <- NULL
    found <- run_call(seed, given)
    if (found$state == "different") show_difference(seed, found, given)
    counts[found$name, found$state] <- counts[found$name, found$state] + 1
    on_device <- identical(last_run$backend, "cuda")
    counts[found$name, "on_device"] <- counts[found$name, "on_device"] + on_device
  }
  saveRDS(list(counts = counts, done = TRUE), given$counts, compress = FALSE)
}

# All calls of one job, in another process, and in one more where that one ends early.
follow_share <- function(job, given) {
  first <- as.numeric(given$seed) + job - 1
  last <- as.numeric(given$seed) + as.numeric(given$calls) - 1
  counts <- 0
  while (first <= last) {
    file <- tempfile()
    passed <- unlist(given[c("against", "devices", "only")])
    share <- sprintf("%.0f/%.0f/%s", first, last, given$jobs)
    words <- c(rbind(paste0("--", names(passed)), passed), "--share", share, "--counts", file)
    status <- system2(file.path(R.home("bin"), "Rscript"), c("proofs/backends.R", words))
    left <- tryCatch(readRDS(file), error = function(e) NULL)
    if (is.null(left)) stop("a process ended with status ", status, " before its first call")
    counts <- counts + left$counts
    if (left$done) break
    call <- seeded_call(left$seed, named_functions(given), makers)
    ended <- list(name = call$name, what = sprintf("R ended with status %d", status), text = call$text)
    show_difference(left$seed, ended, given)
    counts[ended$name, "different"] <- counts[ended$name, "different"] + 1
    first <- left$seed + as.numeric(given$jobs)
  }
  counts
}

makers <- call_makers()
states <- c("same", "failed", "refused", "different")
given <- options_given(commandArgs(TRUE))
if (!is.null(given[["call"]])) {
  found <- run_call(as.numeric(given[["call"]]), given)
  cat(sprintf("%s: %s %s\n  %s\n", found$name, found$state, found$what, found$text))
  quit(status = found$state == "different")
}
if (!is.null(given$share)) {
  run_share(given)
  quit(status = 0)
}
cat(sprintf("%s calls from seed %s on, CPU against %s%s, %s jobs\n", given$calls, given$seed, given$against,
            if (is.null(given$devices)) "" else paste(" on devices", given$devices), given$jobs))
jobs <- min(as.numeric(given$jobs), as.numeric(given$calls))
given$jobs <- as.character(jobs)
parts <- suppressWarnings(parallel::mclapply(seq_len(jobs), follow_share, given = given, mc.cores = jobs,
                                             mc.preschedule = FALSE))
failed <- !vapply(parts, is.matrix, NA)
for (part in parts[failed]) cat("A job failed:", as.character(part), "\n")
if (all(failed)) quit(status = 1)
counts <- Reduce(`+`, parts[!failed])
calls <- rowSums(counts[, states])
columns <- c("calls", states, if (given$against == "cuda") "on_device")
shown <- cbind(calls, counts)[calls > 0, columns, drop = FALSE]
print(rbind(shown, all = colSums(shown)))
quit(status = any(failed) || sum(counts[, "different"]) > 0)
