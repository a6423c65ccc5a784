# A guard of instruction counts: what native code executes in small calls of every room, counted by valgrind's
# callgrind, may differ from what was recorded by at most 3 %. Counts, unlike times, are the same on a busy machine;
# they belong to a compiler and a kind of processor, and are recorded for each. Imports of stores have no row: a forked
# child does their work, which is not counted here.
#
#   Rscript proofs/instructions.R [--record yes] [--within 0.03]
#
# --record writes this machine's counts to proofs/instructions.csv, in place of those it has of the same compiler:
# after a change that is meant to need more, or fewer. Exit status 1 if a count is out of bounds; 0 where none is
# recorded for the compiler, with a word.
source("proofs/options.R")
recorded <- "proofs/instructions.csv"

# ---- what is counted, in the process that valgrind runs ----

kernels <- function() {
  draw <- function(n, p, levels = 2L) matrix(sample.int(levels, n * p, TRUE) - 1L, n, dimnames = list(NULL, NULL))
  set.seed(1)
  two <- as.data.frame(draw(1000, 64))
  class <- sample(0:1, 1000, TRUE)
  three <- as.data.frame(draw(500, 40, 3L))
  numbers <- matrix(stats::rnorm(300 * 20), 300)
  levels <- as.data.frame(lapply(as.data.frame(draw(400, 8, 3L)), factor))
  scores <- bn_scores(levels, 3)
  links <- irm_sample(60, 50, k = 3, seed = 1)$A
  wide <- matrix(stats::rnorm(60 * 1000), 60) + stats::rnorm(60)
  dense <- stats::rnorm(20000)
  density_of_many <- kde(dense, 0.1)
  many_levels <- as.data.frame(draw(1000, 20, 30L))
  plane <- matrix(stats::rnorm(4000), ncol = 2)
  space <- matrix(stats::rnorm(3000), ncol = 3)
  gaps <- replace(numbers, seq(7, 6000, 31), NA)
  sparse <- Matrix::sparseMatrix(rep(1:400, 4), rep(1:200, 8), x = stats::rexp(1600), dims = c(400, 200))
  list(
    "mi_rank" = function() mi_rank(two, class),
    "mi_pairs" = function() mi_pairs(two, class, top = 10),
    "mi_triples" = function() mi_triples(two[1:24], class, top = 10),
    "mi_matrix, three levels" = function() mi_matrix(three),
    "mi_matrix, ksg" = function() mi_matrix(numbers[, 1:6], estimator = "ksg"),
    "mi_network, aracne" = function() mi_network(abs(stats::cor(numbers)), "aracne"),
    "pca, nipals" = function() pca(numbers, 2, method = "nipals", seed = 1),
    "bn_scores" = function() bn_scores(levels, 3),
    "bn_learn" = function() bn_learn(scores, iterations = 5000, chains = 1, seed = 1),
    "kernel_sum, direct" = function() kernel_sum(numbers[, 1:3], bandwidth = 0.7, method = "direct"),
    "kernel_sum, tree" = function() kernel_sum(numbers[, 1:2], bandwidth = 0.2, method = "tree", rel_error = 0.01),
    "kernel_sum, line" = function() kernel_sum(as.vector(numbers), bandwidth = 0.1, rel_error = 1e-4, method = "line"),
    "kernel_sum, mesh" = function() kernel_sum(plane, bandwidth = 0.3, rel_error = 1e-4, method = "mesh"),
    "kernel_sum, mesh in space" = function() kernel_sum(space, bandwidth = 0.5, rel_error = 1e-4, method = "mesh"),
    "kernel_sum, few queries" = function() kernel_sum(c(-1, 0, 1), as.vector(numbers), bandwidth = 0.1,
                                                      rel_error = 1e-4, method = "line"),
    "kernel_sum, many points" = function() kernel_sum(dense, bandwidth = 0.3, rel_error = 1e-4, method = "mesh"),
    "predict, density on a grid" = function() predict(density_of_many, seq(-3, 3, length.out = 41)),
    "mi_pairs, 30 levels" = function() mi_pairs(many_levels, class, top = 10),
    "kde, plug-in" = function() kde(numbers[, 1], "plugin"),
    "kde, lscv" = function() kde(as.vector(numbers), "lscv"),
    "kde, lscv of a plane" = function() kde(plane, "lscv"),
    "pca, gram" = function() pca(wide, 5, method = "gram", seed = 1),
    "pca, em" = function() pca(gaps, 2, na = "em", seed = 1),
    "pca, sparse" = function() pca(sparse, 5, method = "krylov", seed = 1),
    "irm" = function() irm(links, chains = 1, sweeps = 15, seed = 1),
    "regulation" = function() regulation(numbers[, 1:10], seed = 1, control = list(steps = 2, resamples = 4)),
    "regulation, screened" = function() regulation(wide, targets = 1:40, seed = 1,
                                                   control = list(steps = 4, resamples = 8, null_copies = 0,
                                                                  stability = FALSE)),
    "mi_network, aracne with eps" = function() mi_network(abs(stats::cor(wide[, 1:200])), "aracne", eps = 0.01),
    "mi_matrix, spearman" = function() mi_matrix(wide[, 1:200], estimator = "spearman"),
    "gp_regression, factor" = function() gp_regression(numbers[, 1:3], numbers[, 4], rank = 300),
    "kernel_pca, matrix" = function() kernel_pca(numbers[, 1:4], 3, seed = 1),
    "pca, krylov" = function() pca(numbers, 2, method = "krylov", seed = 1)
  )
}

run_kernels <- function() {
  suppressPackageStartupMessages(library(weft))
  options(weft.progress = FALSE, weft.backend = "cpu", weft.threads = 1, weft.poll = 1e6)
  work <- kernels()
  mark <- function() .Call(weft:::C_weft_memory, NULL) # callgrind writes its counts, and begins anew
  for (name in names(work)) {
    mark()
    work[[name]]()
  }
  mark()
  writeLines(names(work), Sys.getenv("WEFT_KERNELS"))
}

# ---- counting ----

# Instructions of each kernel: the k-th file holds what was counted before the k-th mark.
count <- function() {
  folder <- tempfile("callgrind")
  dir.create(folder)
  names_file <- file.path(folder, "names")
  valgrind <- paste("valgrind --tool=callgrind --toggle-collect=weft_glue_run --dump-before=C_weft_memory",
                    sprintf("--callgrind-out-file=%s/out", folder))
  Sys.setenv(WEFT_KERNELS = names_file, OMP_NUM_THREADS = "1", WEFT_SIMD = "avx2")
  status <- system2(file.path(R.home("bin"), "R"),
                    c("--vanilla", "--no-echo", "-d", shQuote(valgrind), "-f", "proofs/instructions.R"),
                    stdout = file.path(folder, "log"), stderr = file.path(folder, "log"))
  if (status != 0 || !file.exists(names_file)) {
    writeLines(utils::tail(readLines(file.path(folder, "log")), 20L))
    stop("valgrind ended with status ", status)
  }
  names <- readLines(names_file)
  total <- function(k) {
    words <- grep("^(totals|summary):", readLines(sprintf("%s/out.%d", folder, k)), value = TRUE)
    as.numeric(sub(".*: *", "", words[1L]))
  }
  stats::setNames(vapply(seq_along(names) + 1L, total, 0), names)
}

if (nzchar(Sys.getenv("WEFT_KERNELS"))) {
  run_kernels()
  quit(status = 0)
}
given <- options_given(record = "no", within = "0.03")
if (!nzchar(Sys.which("valgrind"))) {
  cat("no valgrind: nothing was counted\n")
  quit(status = 0)
}
cc <- setdiff(strsplit(system2("R", c("CMD", "config", "CC"), stdout = TRUE), " ")[[1L]], "ccache")[1L]
compiler <- paste(basename(cc), system2(cc, c("-dumpfullversion", "-dumpversion"), stdout = TRUE)[1L], R.version$arch)
counts <- count()
known <- utils::read.csv(recorded, comment.char = "#")
if (given$record == "yes") {
  fresh <- data.frame(compiler = compiler, kernel = names(counts), instructions = counts)
  known <- rbind(known[known$compiler != compiler, ], fresh)
  first <- grep("^#", readLines(recorded), value = TRUE)
  writeLines(first, recorded)
  suppressWarnings(utils::write.table(known, recorded, append = TRUE, sep = ",", row.names = FALSE))
}
before <- known$instructions[match(paste(compiler, names(counts)), paste(known$compiler, known$kernel))]
out <- !is.na(before) & abs(counts / before - 1) > as.numeric(given$within)
cat(sprintf("%-26s %14s  %s\n", names(counts), format(counts, big.mark = ","),
            ifelse(is.na(before), "not recorded", sprintf("%+.2f %%", 100 * (counts / before - 1)))), sep = "")
cat(sprintf("%d kernels, %d recorded for %s, %d out of bounds\n", length(counts), sum(!is.na(before)), compiler,
            sum(out)))
quit(status = any(out))
