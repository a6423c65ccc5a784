# Which lines of R and C the tests reach, by room: a build of its own with gcov, a process a file of tests, a table, and
# the lines that were not reached. CUDA is counted by operations: every row of the tables of twins runs on the device
# (tests/testthat/helper-twins-*.R, tools/gpu-check.sh), so the table says how many rows a room has there.
#
#   Rscript proofs/coverage.R [--tests mi-rank,bits] [--jobs 2] [--seconds 1500] [--folder F] [--csv coverage.csv]
#                                [--below 90]
#
# --tests     only these files of tests, counted again even if they were; all that have not been by default
# --seconds   no file of tests begins later than this; what was counted stays in the folder, and the same command goes
#             on from there while R/ and src/ are what they were. Exit status 2 while files are left.
# --folder    where the build and the counts are; weft-coverage beside R's temporary folders by default
# --csv       every line and how often it was reached
# --below     files are listed with their lines that were not reached where less than this share of them was
# Exit status 1 where a room has less than that share of its lines reached. Needs package covr.
source("proofs/options.R")
given <- options_given(tests = NA, jobs = "2", seconds = "Inf", folder = file.path(dirname(tempdir()), "weft-coverage"),
                       csv = NA, below = "90")
if (!requireNamespace("covr", quietly = TRUE)) {
  cat("no package covr: nothing was counted\n")
  quit(status = 0)
}
deadline <- Sys.time() + as.numeric(given$seconds)

# The room of a file. R's files are named after theirs; what several share is core's.
room_of <- function(file) {
  name <- sub("[.]R$", "", basename(file))
  in_r <- c(mi = "^(mi|discretize|plink|plot-network)", bn = "^(bn|plot-bn)", pca = "^(pca|plot-pca)",
            kernel = "^(kernel|kde|gp|svm|plot-kernel)", irm = "^(irm|bag|plot-irm)", regulation = "^regulation",
            store = "^store", mpi = "^ranks$",
            workflow = "^(workflow|gene|report|pictures|tidiers|examples|interop|plot-workflow|autoplot)")
  vapply(seq_along(file), function(k) {
    folders <- strsplit(file[k], "/")[[1L]]
    if (startsWith(file[k], "src/core/together/mpi/")) return("mpi")
    if (folders[1L] == "src") return(if (length(folders) > 2L) folders[2L] else "core")
    c(names(in_r)[vapply(in_r, grepl, NA, name[k])], "core")[1L]
  }, "")
}

# ---- the build and what it has counted, kept from run to run ----

# Objects of C that are there are used again, and make rebuilds those whose source has changed; counts go with a change.
folder <- given$folder
copy <- file.path(folder, "weft")
digest <- function(files) paste(tools::md5sum(sort(files)), collapse = "\n")
headers <- list.files("src", "[.](h|in)$", recursive = TRUE, full.names = TRUE)
sources <- c(Sys.glob("R/*.R"), list.files("src", "[.]c$", recursive = TRUE, full.names = TRUE))
now <- list(headers = digest(headers), all = digest(c(headers, sources)))
kept <- file.path(folder, "built.rds")
before <- if (file.exists(kept)) readRDS(kept)
compiled <- identical(before$headers, now$headers)
if (!compiled) unlink(folder, recursive = TRUE)
for (part in c("weft", "library", "done")) dir.create(file.path(folder, part), recursive = TRUE, showWarnings = FALSE)
folder <- normalizePath(folder)
copy <- file.path(folder, "weft")
if (!identical(before$all, now$all)) {
  unlink(c(list.files(file.path(folder, "done"), full.names = TRUE),
           Sys.glob(file.path(folder, "library", c("covr_*", "values_*"))),
           list.files(copy, "[.]gcda$", recursive = TRUE, full.names = TRUE)))
}
system2("sh", c("-c", shQuote(sprintf(
  "tar cf - --exclude=.git --exclude=.lib --exclude='*.o' --exclude='*.so' . | tar xf - -C %s", shQuote(copy)))))
saveRDS(now, kept)

# The tests run in processes of their own, so that one that ends, or a time that has come, costs no other its counts.
all_names <- sub("^test-(.*)[.]R$", "\\1", list.files("tests/testthat", "^test-.*[.]R$"))
done <- file.path(folder, "done")
asked <- if (is.na(given$tests)) setdiff(all_names, list.files(done)) else strsplit(given$tests, ",")[[1L]]
run_tests <- function(names, jobs, deadline, copy, done) {
  library <- file.path(dirname(done), "library")
  use_traced_functions(library)
  setwd(copy)
  parallel::mclapply(names, mc.cores = jobs, mc.preschedule = FALSE, function(name) {
    if (Sys.time() >= deadline) return(NULL)
    began <- proc.time()[[3L]]
    out <- suppressWarnings(system2(file.path(R.home("bin"), "Rscript"), c("tools/test-and-count.R", name),
                                    stdout = TRUE, stderr = TRUE, timeout = 1200))
    counts <- grep("^[a-z0-9-]+ +[0-9]+ passed, ", out, value = TRUE)
    line <- sprintf("%s, %.0f s", if (length(counts)) counts[1L] else paste(name, "ended early"),
                    proc.time()[[3L]] - began)
    if (length(counts)) writeLines(c(line, out), file.path(done, name))
    cat(line, "\n", file = file.path(dirname(done), "log"), append = TRUE)
  })
  counters <- covr:::.counters
  for (file in Sys.glob(file.path(library, "values_*"))) {
    values <- tryCatch(readRDS(file), error = function(e) NULL) # of a process that was killed
    for (key in names(values)) counters[[key]]$value <- counters[[key]]$value + values[[key]]
  }
}

# covr puts counters into the functions of a package whenever it is loaded, which takes half a minute of processor here,
# and every process writes all source references when it ends. Processes of tests take the functions as this one has
# them, and write the numbers alone.
use_traced_functions <- function(library) {
  weft <- asNamespace("weft")
  counters <- covr:::.counters
  own <- Filter(function(name) is.function(weft[[name]]) && !is.primitive(weft[[name]]), ls(weft, all.names = TRUE))
  traced <- lapply(stats::setNames(nm = own), function(name) {
    f <- utils::removeSource(weft[[name]])
    list(formals = formals(f), body = body(f))
  })
  keys <- stats::setNames(nm = ls(counters, all.names = TRUE))
  kept <- list(traced = traced, counters = lapply(keys, function(key) list(value = 0)))
  saveRDS(kept, file.path(library, "traced.rds"), compress = FALSE)
  loader <- file.path(library, "weft", "R", "weft")
  lines <- readLines(loader)
  lines[grep("covr:::trace_environment", lines, fixed = TRUE)] <- sprintf(
    "setHook(packageEvent(pkg, 'onLoad'), function(...) sys.source('%s', new.env(), keep.source = FALSE))",
    file.path(library, "take.R"))
  lines[grep("covr:::save_trace", lines, fixed = TRUE)] <- sprintf(
    "reg.finalizer(ns, function(...) source('%s', local = TRUE), onexit = TRUE)", file.path(library, "leave.R"))
  writeLines(lines, loader)
  writeLines(sprintf("local({
    saved <- readRDS('%s')
    list2env(saved$counters, covr:::.counters)
    weft <- asNamespace('weft')
    for (name in names(saved$traced)) {
      f <- g <- weft[[name]]
      formals(g) <- saved$traced[[name]]$formals
      body(g) <- saved$traced[[name]]$body
      .Call(covr:::covr_reassign_function, as.name(name), weft, f, g)
    }
  })", file.path(library, "traced.rds")), file.path(library, "take.R"))
  writeLines(sprintf("local({
    values <- vapply(as.list(covr:::.counters), function(counter) as.numeric(counter$value), 0)
    saveRDS(values[values > 0], tempfile(sprintf('values_%%d_', Sys.getpid()), '%s'))
  })", library), file.path(library, "leave.R"))
}
plan <- file.path(folder, "plan.rds")
saveRDS(list(run = run_tests, use_traced_functions = use_traced_functions,
             args = list(asked, as.numeric(given$jobs), deadline, copy, done)), plan)
Sys.setenv(WEFT_CUDA = "no", WEFT_TESTS = "yes", NOT_CRAN = "true", OMP_WAIT_POLICY = "passive")
flags <- getOption("covr.flags")
if (is.null(flags)) {
  loadNamespace("covr")
  flags <- getOption("covr.flags")
}
options(covr.flags = sub("-O0", "-O1", flags, fixed = TRUE)) # the suite takes thrice as long without
# What gcov writes of one object must go before the next, or covr reads all that there is after each.
run_gcov <- covr:::run_gcov
utils::assignInNamespace("run_gcov", function(path, quiet = TRUE, clean = TRUE, ...) run_gcov(path, quiet, TRUE, ...),
                         "covr")
reached <- suppressWarnings(covr::package_coverage(
  copy, type = "none", quiet = TRUE, clean = FALSE, pre_clean = FALSE, install_path = file.path(folder, "library"),
  code = c(sprintf("plan <- readRDS(%s)", deparse(plan)), "use_traced_functions <- plan$use_traced_functions",
           "do.call(plan$run, plan$args)")))
left <- setdiff(all_names, list.files(done))

# ---- the table ----

lines <- covr::tally_coverage(reached, by = "line")
lines$room <- room_of(lines$filename)
lines$language <- ifelse(startsWith(lines$filename, "src/"), "C", "R")
if (!is.na(given$csv)) utils::write.csv(lines[c("room", "language", "filename", "line", "value")], given$csv,
                                        row.names = FALSE)
# How many operations of each room run on both back ends.
counting <- tempfile(fileext = ".R")
writeLines(c("suppressMessages(library(weft))",
             "for (file in list.files('tests/testthat', '^helper.*[.]R$', full.names = TRUE)) source(file)",
             "for (name in ls(pattern = '^twins_')) {",
             "  table <- get(name)",
             "  if (!is.function(table) || length(formals(table))) next",
             "  cat(sub('twins_', '', name), length(table()), '\\n')",
             "}"), counting)
Sys.setenv(R_LIBS = paste(c(file.path(folder, "library"), .libPaths()), collapse = ":"))
counted <- strsplit(system2(file.path(R.home("bin"), "Rscript"), counting, stdout = TRUE), " ")
twins <- stats::setNames(vapply(counted, `[`, "", 2L), vapply(counted, `[`, "", 1L))

share <- function(value) 100 * mean(value > 0)
shown <- function(value) if (length(value)) sprintf("%6.1f%%", share(value)) else "      -"
limit <- as.numeric(given$below)
low <- 0
cat(sprintf("%-12s %8s %7s  %8s %7s  %s\n", "room", "R lines", "reached", "C lines", "reached", "twins"))
for (room in unique(sort(lines$room))) {
  r <- lines$value[lines$room == room & lines$language == "R"]
  c <- lines$value[lines$room == room & lines$language == "C"]
  cat(sprintf("%-12s %8d %s  %8d %s  %5s\n", room, length(r), shown(r), length(c), shown(c),
              if (room %in% names(twins)) twins[[room]] else "-"))
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
if (length(left)) cat(sprintf("%d files of tests are left: %s\n", length(left), paste(left, collapse = ", ")))
quit(status = if (length(left)) 2 else low > 0)
