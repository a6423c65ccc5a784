# Which lines of R and C the tests reach, by room: a build of its own with gcov, the suite in one process, a table, and
# the lines that were not reached. CUDA is counted by operations: every row of the tables of twins runs on the device
# (tests/testthat/helper-twins-*.R, tools/gpu-check.sh).
#
#   Rscript longtests/coverage.R [--tests mi-rank,bits] [--csv coverage.csv] [--below 90]
#
# --tests   only these files of tests; all by default (some 15 minutes)
# --csv     every line and how often it was reached
# --below   files are listed with their lines that were not reached where less than this share of them was
# Exit status 1 where a room has less than that share of its lines reached. Needs package covr.
source("longtests/options.R")
given <- options_given(tests = NA, csv = NA, below = "90")
if (!requireNamespace("covr", quietly = TRUE)) {
  cat("no package covr: nothing was counted\n")
  quit(status = 0)
}

# The room of a file. R's files are named after theirs; what several share is base's.
room_of <- function(file) {
  name <- sub("[.]R$", "", basename(file))
  in_r <- c(mi = "^(mi|discretize|plink)", bn = "^bn", pca = "^pca", kernel = "^(kernel|kde|gp)", irm = "^(irm|bag)",
            regulation = "^regulation", store = "^store",
            workflow = "^(workflow|gene|report|pictures|tidiers|examples)")
  vapply(seq_along(file), function(k) {
    folders <- strsplit(file[k], "/")[[1L]]
    if (folders[1L] == "src") return(if (length(folders) > 2L) folders[2L] else "base")
    c(names(in_r)[vapply(in_r, grepl, NA, name[k])], "base")[1L]
  }, "")
}

copy <- file.path(tempdir(), "weft")
dir.create(copy)
system2("sh", c("-c", shQuote(sprintf(
  "tar cf - --exclude=.git --exclude=.lib --exclude='*.o' --exclude='*.so' . | tar xf - -C %s", shQuote(copy)))))
Sys.setenv(WEFT_CUDA = "no", WEFT_TESTS = "yes", NOT_CRAN = "true", OMP_WAIT_POLICY = "passive", WEFT_COVERAGE = "yes")
tests <- file.path(copy, "tests", "testthat")
filter <- if (is.na(given$tests)) "NULL" else deparse(sprintf("^(%s)$", gsub(",", "|", given$tests, fixed = TRUE)))
code <- sprintf("testthat::test_dir(%s, filter = %s, package = 'weft', reporter = 'summary', stop_on_failure = FALSE,
  load_package = 'installed')", deparse(tests), filter)
reached <- covr::package_coverage(copy, type = "none", code = code, quiet = TRUE)
lines <- covr::tally_coverage(reached, by = "line")
lines$room <- room_of(lines$filename)
lines$language <- ifelse(startsWith(lines$filename, "src/"), "C", "R")
if (!is.na(given$csv)) utils::write.csv(lines[c("room", "language", "filename", "line", "value")], given$csv,
                                        row.names = FALSE)

share <- function(value) 100 * mean(value > 0)
limit <- as.numeric(given$below)
low <- 0
cat(sprintf("%-12s %8s %7s  %8s %7s\n", "room", "R lines", "reached", "C lines", "reached"))
for (room in unique(sort(lines$room))) {
  r <- lines$value[lines$room == room & lines$language == "R"]
  c <- lines$value[lines$room == room & lines$language == "C"]
  cat(sprintf("%-12s %8d %6.1f%%  %8d %6.1f%%\n", room, length(r), share(r), length(c), share(c)))
  low <- low + any(c(share(r), share(c)) < limit, na.rm = TRUE)
}
cat(sprintf("%-12s %8d %6.1f%%\n\n", "all", nrow(lines), share(lines$value)))

# 1, 2, 3, 7 as "1-3 7".
runs <- function(at) {
  at <- sort(unique(at))
  part <- cumsum(c(TRUE, diff(at) > 1))
  paste(tapply(at, part, function(one) paste(unique(range(one)), collapse = "-")), collapse = " ")
}
for (file in unique(lines$filename)) {
  own <- lines[lines$filename == file, ]
  if (share(own$value) < limit) {
    cat(sprintf("%s (%.0f %% of %d): %s\n", file, share(own$value), nrow(own), runs(own$line[own$value == 0])))
  }
}
quit(status = low > 0)
