# Components of genotypes in a .bed file: Rscript genotypes-pca.R PEOPLE VARIANTS [K] [--run cpu|cuda] [--missing .01]
# [--folder /dev/shm] [--populations K + 1] [--check yes]. Writes a file of planted populations (genotypes-pca.c), whose
# differences make as many components as there are populations less one. Then, each with its rate: counting, sending,
# a product with 64 vectors each way, and pca() as a whole. `explained`: the least share of a component's variance
# between populations. `--check yes`: pca() of the matrix in memory beside it (small sizes).
#   Rscript inst/bench/genotypes-pca.R 100000 100000 40 --run cuda      a first check: 2.5 GB
#   Rscript inst/bench/genotypes-pca.R 400000 400000 40 --run cuda      40 GB; goal 120 s
#   Rscript inst/bench/genotypes-pca.R 5000 500000 20 --run cpu --threads 2       goal 60 s
library(weft)
source("inst/bench/bench.R")
load_c("genotypes-pca", c("PKG_CFLAGS = -fopenmp -O3", "PKG_LIBS = -fopenmp -lm"))
given <- as.numeric(commandArgs(TRUE)[1:3])
n <- given[1]
p <- given[2]
k <- if (is.na(given[3])) 20 else given[3]
where <- option("run", "cpu")
threads <- as.integer(option("threads", parallel::detectCores()))
missing <- as.numeric(option("missing", 0.01))
groups <- as.numeric(option("populations", k + 1))
bytes <- ceiling(n / 4) * p
timed <- function(what, work, size = 0) {
  took <- system.time(out <- work())
  seconds <- took[["elapsed"]]
  cat(sprintf("%-34s %8.2f s%s (processors %.1f s)\n", what, seconds,
              if (size) sprintf("%9.1f GB/s", size / seconds / 1e9) else "", sum(took[1:2])))
  invisible(list(out = out, seconds = seconds))
}
machine_line()
cat(sprintf("%.0f people x %.0f variants, %.2f GB, %.0f populations, %g missing\n", n, p, bytes / 1e9, groups, missing))

# ---- the file ----
room <- function(folder) {
  free <- suppressWarnings(system2("df", c("-k", "--output=avail", folder), stdout = TRUE, stderr = FALSE))
  1024 * as.numeric(free[2])
}
folder <- option("folder", if (isTRUE(room("/dev/shm") > 1.02 * bytes + 1e8)) "/dev/shm" else tempdir())
stem <- file.path(folder, sprintf("weft-bench-%d", Sys.getpid()))
files <- paste0(stem, c(".bed", ".bim", ".fam"))
set.seed(1)
size <- sort(stats::runif(groups, 0.5, 2))
ends <- round(ceiling(n / 4) * cumsum(size) / sum(size))
drift <- seq(0.05, 0.01, length.out = groups)
population <- rep(seq_len(groups), diff(c(0, pmin(n, 4 * ends))))
made <- timed(sprintf("writing it to %s", folder), function() {
  .Call("write_bed", files[1], n, p, as.double(ends), drift, missing, 1)
}, bytes)
if (!made$out) stop("the file could not be written to ", folder)
writeLines(sprintf("1 rs%d 0 %d A G", seq_len(p), seq_len(p)), files[2])
writeLines(sprintf("f i%d 0 0 0 -9", seq_len(n)), files[3])
leave <- function() unlink(files)
tryCatch({
  x <- timed("describing it", function() plink_file(stem))$out

  # ---- its parts ----
  run <- weft_run(where, threads = threads, progress = FALSE)
  if (where == "cuda") invisible(pca(matrix(rnorm(400), 20), 2, run = "cuda")) # opens the device
  control <- weft:::run_control(where, threads, FALSE)
  source <- weft:::native_source(weft:::pca_source(x, block_size = 8))
  moments <- timed("counting (first reading)", function() .Call(weft:::C_weft_pca_moments, source, NULL, control),
                   bytes)$out
  form <- list(center = moments$mean, factor = 1 / weft:::allele_scale(moments, NULL), row = NULL,
               missing = moments$mean, single = FALSE, own = FALSE)
  times <- function(side, transposed) {
    v <- matrix(rnorm(side * 256), side)
    once <- function(b) {
      system.time(.Call(weft:::C_weft_pca_times, source, form, v[, seq_len(b), drop = FALSE], transposed,
                        control))[["elapsed"]]
    }
    each <- c(once(64), once(256))
    product <- max(diff(each) / 3, 1e-4)
    if (!transposed && where == "cuda") {
      cat(sprintf("%-34s %8.2f s%9.1f GB/s\n", "sending (less one product)", max(each[1] - product, 1e-3),
                  bytes / max(each[1] - product, 1e-3) / 1e9))
    }
    cat(sprintf("%-34s %8.3f s%9.1f GB/s of the file, %.0f as doubles, %.2f Tflop/s\n",
                if (transposed) "X'u, 64 vectors" else "X v, 64 vectors", product, bytes / product / 1e9,
                8 * n * p / product / 1e9, 128 * n * p / product / 1e12))
  }
  times(p, FALSE)
  times(n, TRUE)

  # ---- all of it ----
  fit <- timed(sprintf("pca(), %.0f components", k), function() {
    pca(x, k, na = "mean", scale = "allele", seed = 1, run = run, control = list(block_size = 8))
  })
  seconds <- fit$seconds
  fit <- fit$out
  between <- apply(fit$x, 2, function(s) {
    m <- tapply(s, population, mean)
    sum(tabulate(population) * (m - mean(s))^2) / sum((s - mean(s))^2)
  })
  cat(sprintf("%.0f passes, %.2f s each, %d blocks, residuals up to %.1e, converged %s; ", fit$passes,
              seconds / fit$passes, max(fit$iterations), max(fit$residual), all(fit$converged)),
      sprintf("explained %.3f; d %.4g to %.4g\n", min(between), max(fit$d), min(fit$d)), sep = "")
  status <- if (file.exists("/proc/self/status")) readLines("/proc/self/status")
  cat(grep("VmHWM|RssFile|RssShmem|RssAnon", status, value = TRUE), sep = "\n")
  if (option("check", "no") == "yes") {
    whole <- pca(as.matrix(x), k, na = "mean", scale = "allele", seed = 1, run = "cpu")
    apart <- function(a, b) max(abs(abs(a) - abs(b))) / max(abs(b))
    cat(sprintf("beside the matrix in memory: d %.1e, loadings %.1e, scores %.1e apart\n",
                max(abs(fit$d / whole$d - 1)), apart(fit$rotation, whole$rotation), apart(fit$x, whole$x)))
  }
}, finally = leave())
