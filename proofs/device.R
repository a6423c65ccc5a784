# A device that is shared and fails: (1) two processes at work on it at once; (2) another process that keeps all but a
# little of its memory; (3) a child whose CUDA context breaks for good. Random valid calls then give what they give on
# the CPU, or end with a classed error that says that the device or its memory failed, and later calls work again. Other
# work on the device finds no memory meanwhile.
#
#   Rscript proofs/device.R [--calls 60] [--seed S] [--leave 64] [--object device-other.so]
#
# --calls    of each of the three, as in backends.R
# --leave    megabytes that the other process leaves of the device's memory
# --object   proofs/device-other.c, built; else it is built here, which needs a C compiler
suppressPackageStartupMessages(library(weft))
`%||%` <- function(a, b) if (is.null(a)) b else a
source("proofs/options.R")
for (file in c("tests/testthat/helper-arguments.R", "tests/testthat/helper-simd.R",
               Sys.glob("tests/testthat/helper-calls*.R"))) source(file)
given <- options_given(calls = "60", seed = as.character(sample(1e8, 1L)), leave = "64", object = NA, role = NA,
                       folder = tempfile("device"))
missing <- weft:::cuda_missing()
if (!is.null(missing)) stop("there is no device: ", missing, call. = FALSE)
seeds <- as.numeric(given$seed) + seq_len(as.numeric(given$calls)) - 1
makers <- call_makers()
options(weft.progress = FALSE)

# States of calls on the CPU and on the device, which may have too little memory for them.
compare_calls <- function(seeds) {
  side <- list(backend = "cuda", threads = 1, options = list(weft.device_memory = 1e15))
  table(factor(vapply(seeds, function(seed) {
    call <- seeded_call(seed, makers = makers)
    found <- check_call(call, list(list(backend = "cpu", threads = 1), side))
    if (found$state == "different") cat(sprintf("DIFFERENT %s: %s (seed %.0f)\n", call$name, found$text, seed))
    found$state
  }, ""), c("same", "failed", "refused", "different")))
}
say <- function(what, counts, fine = TRUE) {
  cat(sprintf("%-34s %s%s\n", what, paste(counts, names(counts), collapse = ", "), if (fine) "" else ": WRONG"))
  fine && counts[["different"]] == 0
}
flag <- function(name) file.path(given$folder, name)
wait_for <- function(name, seconds) {
  until <- Sys.time() + seconds
  while (!file.exists(flag(name)) && Sys.time() < until) Sys.sleep(0.1)
  file.exists(flag(name))
}

hold <- function() {
  dyn.load(given$object)
  held <- .C("hold_device_memory", as.double(given$leave) * 2^20, held = 0)$held
  writeLines(format(held), flag("held"))
  wait_for("enough", 300)
}

# Calls before and after the context breaks. Those after must fail as the device's, and the CPU must go on.
fail <- function() {
  dyn.load(given$object)
  before <- compare_calls(seeds[seq_len(min(10L, length(seeds)))])
  kept <- weft_upload(matrix(1, 10, 10))
  status <- .C("break_device_context", status = 0L)$status
  after <- vapply(seeds, function(seed) {
    call <- seeded_call(seed, makers = makers)
    out <- outcome(call, list(backend = "cuda", threads = 1))
    if (is.null(out$class)) "worked" else if ("weft_error" %in% out$class) out$class[1L] else "unclassed"
  }, "")
  on_cpu <- vapply(seeds[seq_len(min(10L, length(seeds)))], function(seed) {
    class <- outcome(seeded_call(seed, makers = makers), list(backend = "cpu", threads = 1))$class
    is.null(class) || "weft_error" %in% class
  }, NA)
  rm(kept)
  gc()
  saveRDS(list(before = before, status = status, after = table(after), on_cpu = all(on_cpu)), flag("failed"))
}
if (!is.na(given$role)) {
  switch(given$role, hold = hold(), fail = fail(), work = saveRDS(compare_calls(seeds), flag(given$seed)))
  quit(status = 0)
}

dir.create(given$folder)
if (is.na(given$object)) {
  given$object <- flag("device-other.so")
  built <- system2(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "-o", given$object, "proofs/device-other.c"),
                   stdout = FALSE, stderr = FALSE)
  if (built != 0) stop("proofs/device-other.c could not be built; `--object` names it where it was", call. = FALSE)
}
child <- function(role, wait = TRUE, seed = given$seed) {
  words <- c("--role", role, "--calls", given$calls, "--seed", seed, "--leave", given$leave, "--object", given$object,
             "--folder", given$folder)
  system2(file.path(R.home("bin"), "Rscript"), c("proofs/device.R", words), wait = wait,
          timeout = if (wait) 300 else 0)
}
cat(sprintf("%s calls each from seed %s on\n", given$calls, given$seed))

others <- format(as.numeric(given$seed) + c(1e6, 2e6), scientific = FALSE)
ended <- unlist(parallel::mclapply(others, function(seed) child("work", seed = seed), mc.cores = 2L))
fine <- all(ended == 0)
for (seed in others) fine <- file.exists(flag(seed)) && say("two processes, one of them:", readRDS(flag(seed))) && fine

child("hold", wait = FALSE)
fine <- wait_for("held", 60) && fine
cat(sprintf("another process holds %.1f GB\n", as.numeric(readLines(flag("held"))) / 2^30))
fine <- say("memory filled by another:", compare_calls(seeds)) && fine
file.create(flag("enough"))
Sys.sleep(2)
fine <- say("memory given back:", compare_calls(seeds)) && fine

status <- child("fail")
broken <- if (file.exists(flag("failed"))) readRDS(flag("failed"))
sound <- status == 0 && !is.null(broken) && broken$status != 0 && broken$on_cpu && !"unclassed" %in% names(broken$after)
cat(sprintf("a child whose context broke (CUDA's status %d): %s; it ended with status %d, the CPU %s\n",
            broken$status %||% 0L, paste(broken$after, names(broken$after), collapse = ", "), status,
            if (isTRUE(broken$on_cpu)) "went on" else "did not go on"))
fine <- say("its parent afterwards:", compare_calls(seeds), sound) && fine
cat(if (fine) "0 wrong\n" else "WRONG\n")
quit(status = !fine)
