# What reads and writes files of users (tests/testthat/helper-files.R), beyond what test-files.R does where it runs: as a
# user who may not read or write everything, on a file system that is full, and killed at random moments of writing.
# Rscript proofs/files.R [number of kills, default 200]
kills <- as.numeric(c(commandArgs(TRUE), 200)[1L])
suppressPackageStartupMessages(library(weft))
source("tests/testthat/helper-files.R")
root <- Sys.info()[["effective_user"]] == "root"
failed <- 0
wrong <- function(...) {
  failed <<- failed + 1
  cat(sprintf(...), "\n")
}

# 1. The tests themselves; where this is root, as nobody.
tests <- paste("r <- as.data.frame(testthat::test_file('tests/testthat/test-files.R', package = 'weft',",
               "load_package = 'installed', reporter = 'silent', stop_on_failure = FALSE));",
               "cat(sum(r$nb), 'expectations', sum(r$failed) + sum(r$error), 'failed', sum(r$skipped), 'skipped')")
rscript <- file.path(R.home("bin"), "Rscript")
as_nobody <- root && nzchar(Sys.which("setpriv"))
program <- if (as_nobody) "setpriv" else rscript
arguments <- c(if (as_nobody) c("--reuid=65534", "--regid=65534", "--clear-groups", rscript), "-e", shQuote(tests))
folder <- tempfile("home")
dir.create(folder, mode = "0777")
Sys.chmod(c(folder, dirname(folder)), c("777", "755"), use_umask = FALSE)
said <- suppressWarnings(system2(program, arguments, stdout = TRUE, stderr = TRUE, env = c(
  paste0("R_LIBS=", shQuote(paste(.libPaths(), collapse = ":"))), paste0("TMPDIR=", folder), paste0("HOME=", folder))))
found <- grep("expectations", said, value = TRUE)
if (!length(found) || !grepl(" 0 failed", found)) wrong("tests: %s", paste(utils::tail(said, 3L), collapse = " "))
cat(sprintf("tests%s: %s\n", if (as_nobody) " as nobody" else "", paste(found, collapse = " ")))

# 2. A file system of 24 kB, with an old file on it.
disk <- tempfile("disk")
dir.create(disk)
full <- 0
if (root && suppressWarnings(system2("mount", c("-t", "tmpfs", "-o", "size=24k", "weft", disk), stderr = FALSE)) == 0) {
  writers <- file_writers()
  for (name in names(writers)) {
    path <- file.path(disk, name)
    writeLines(c("old", strrep("x", 4096)), path)
    writeBin(raw(8192), file.path(disk, "ballast"))
    how <- tryCatch(file_end(writers[[name]](path)), error = conditionMessage)
    old <- readLines(path, 1L)
    if (how != "refused" || old != "old") wrong("full disk: %s, %s, %s", name, how, old)
    left <- setdiff(list.files(disk, all.files = TRUE, no.. = TRUE), c(name, "ballast"))
    if (length(left)) wrong("full disk: %s leaves %s", name, toString(left))
    unlink(file.path(disk, c(name, "ballast")))
    full <- full + 1
  }
  system2("umount", disk)
} else {
  cat("full disk: not tried, which takes root's rights\n")
}

# 3. A child writes one of two texts again and again, and is killed: the file has always one of them, whole.
folder <- tempfile("kills")
dir.create(folder)
path <- file.path(folder, "file")
texts <- list(rep("first", 2e5), rep("second", 3e5))
weft:::write_text(texts[[1L]], path)
sums <- vapply(texts, function(text) {
  weft:::write_text(text, path)
  unname(tools::md5sum(path))
}, "")
seen <- integer(2)
set.seed(1)
for (k in seq_len(if (.Platform$OS.type == "unix") kills else 0)) {
  child <- parallel::mcparallel(repeat for (text in texts) weft:::write_text(text, path), silent = TRUE)
  Sys.sleep(stats::runif(1, 0.02, 0.3))
  tools::pskill(child$pid, tools::SIGKILL)
  suppressWarnings(parallel::mccollect(child))
  which <- match(unname(tools::md5sum(path)), sums)
  if (is.na(which)) wrong("kill %d: the file is neither text", k)
  else seen[which] <- seen[which] + 1L
}
unlink(folder, recursive = TRUE)
cat(sprintf("%s; %d writers on a full disk; killed %.0f times, %d and %d whole files; %.0f failed\n",
            if (length(found)) found else "no tests", full, kills, seen[1L], seen[2L], failed))
quit(status = failed > 0)
