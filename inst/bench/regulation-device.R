# regulation() on a device: seconds, and whether both back ends choose the same. Usage: Rscript regulation-device.R
# [small|large|cells|all]
#   small   every shape of the table on both back ends (a minute)
#   large   20,000 genes x 500 samples: 1,800 regulators, then all genes as regulators; the device alone, and the first
#           against the CPU on a tenth of the targets and four halves
#   cells   sparse counts, 120,000 cells x 20,000 genes with 1,800 regulators on the device alone, and 20,000 x 600 of
#           them on both back ends
library(weft)

if (!nrow(weft_devices())) {
  cat("No device:", attr(weft_devices(), "reason"), "\n")
  quit()
}
part <- c(commandArgs(TRUE), "all")[1L]

# A network in layers: the first genes are free, each later one follows up to three earlier ones.
simulated <- function(n, p, regulators) {
  x <- matrix(stats::rnorm(n * p), n, dimnames = list(NULL, sprintf("g%d", seq_len(p))))
  for (j in seq_len(p)[-(1:3)]) {
    parents <- sample.int(min(j - 1L, regulators), min(3L, j - 1L))
    x[, j] <- 0.6 * x[, j] + drop(pmax(x[, parents, drop = FALSE], 0) %*% stats::runif(length(parents), -1, 1))
  }
  x
}

clock <- function(work) {
  started <- proc.time()[[3L]]
  value <- work()
  list(value = value, seconds = proc.time()[[3L]] - started)
}
same <- function(a, b) identical(as.matrix(a), as.matrix(b)) && identical(attr(a, "edges"), attr(b, "edges"))

if (part %in% c("small", "all")) {
  regulation(simulated(20, 10, 5), seed = 1, run = "cuda", control = list(resamples = 2)) # opens the device
  shapes <- data.frame(n = c(20, 100, 100, 200, 500, 3000), p = c(10, 100, 1000, 2000, 1500, 300),
                       regulators = c(10, 100, 1000, 200, 700, 300), steps = c(3, 5, 5, 5, 8, 12),
                       copies = c(2, 0, 1, 0, 1, 1),
                       nonlinear = c(TRUE, TRUE, FALSE, TRUE, TRUE, TRUE), resamples = c(10, 200, 20, 200, 10, 10))
  for (k in seq_len(nrow(shapes))) {
    s <- shapes[k, ]
    set.seed(k)
    x <- simulated(s$n, s$p, s$regulators)
    run <- function(backend) regulation(x, regulators = seq_len(s$regulators), seed = k, run = backend,
                                        control = list(steps = s$steps, null_copies = s$copies,
                                                       resamples = s$resamples, nonlinear = s$nonlinear))
    cpu <- clock(function() run("cpu"))
    device <- clock(function() run("cuda"))
    cat(sprintf("%5d x %5d, %4d regulators, %3d halves: device %.3f s, CPU %.3f s, %s\n", s$n, s$p, s$regulators,
                s$resamples, device$seconds, cpu$seconds, if (same(cpu$value, device$value)) "same" else "DIFFERENT"))
  }
}

if (part %in% c("large", "all")) {
  set.seed(1)
  x <- simulated(500, 20000, 1800)
  some <- seq(1, 20000, 10)
  few <- lapply(c("cpu", "cuda"), function(backend) regulation(x, regulators = 1:1800, targets = some, seed = 1,
                                                               run = backend, control = list(resamples = 4)))
  cat("20,000 genes, 1,800 regulators, a tenth of the targets, 4 halves:",
      if (same(few[[1]], few[[2]])) "same\n" else "DIFFERENT\n")
  for (copies in 0:1) {
    run <- clock(function() regulation(x, regulators = 1:1800, seed = 1, run = "cuda",
                                       control = list(null_copies = copies)))
    cat(sprintf("500 x 20,000, 1,800 regulators, 200 halves, %d null copies: %.2f s\n", copies, run$seconds))
  }
  run <- clock(function() regulation(x, regulators = "all", seed = 1, run = "cuda", control = list(null_copies = 0)))
  cat(sprintf("500 x 20,000, all genes as regulators, 200 halves, no null copy: %.2f s\n", run$seconds))
}

# Counts of cells whose regulators come in 20 programmes; some 6 % are not 0. Columns are drawn by all processors, each
# from a seed of its own.
simulated_cells <- function(n, p, regulators, share = 0.06) {
  set.seed(1)
  programme <- matrix(stats::rexp(n * 20), n)
  columns <- parallel::mclapply(seq_len(p), function(j) {
    set.seed(j)
    rate <- programme[, if (j <= regulators) 1 + j %% 20 else sample.int(20, 1)] * share * stats::rexp(1)
    value <- stats::rpois(n, rate)
    at <- which(value > 0)
    list(at = at, value = as.double(value[at]))
  }, mc.cores = parallel::detectCores(), mc.preschedule = TRUE)
  at <- lapply(columns, `[[`, "at")
  Matrix::sparseMatrix(i = unlist(at), p = c(0, cumsum(lengths(at))), x = unlist(lapply(columns, `[[`, "value")),
                       dims = c(n, p), dimnames = list(NULL, sprintf("g%d", seq_len(p))))
}

if (part %in% c("cells", "all")) {
  few <- simulated_cells(20000, 600, 200)
  many <- simulated_cells(120000, 20000, 1800) # a process forked later could not use the device
  both <- lapply(c("cpu", "cuda"), function(backend) clock(function() {
    regulation(few, regulators = 1:200, transform = "counts", seed = 1, run = backend, control = list(resamples = 20))
  }))
  cat(sprintf("20,000 cells x 600 genes, 200 regulators, 20 halves: %.2f s on the CPU, %.2f s on the device, %s\n",
              both[[1]]$seconds, both[[2]]$seconds,
              if (same(both[[1]]$value, both[[2]]$value)) "same" else "DIFFERENT"))
  cat(sprintf("120,000 x 20,000: %.0f million counts, %.2f GB\n", length(many@x) / 1e6, 12 * length(many@x) / 1e9))
  memory <- function(what) {
    if (!file.exists("/proc/self/status")) return(NA)
    as.numeric(gsub("[^0-9]", "", grep(what, readLines("/proc/self/status"), value = TRUE))) / 1e6
  }
  gc()
  try(writeLines("5", "/proc/self/clear_refs")) # the peak begins anew
  before <- memory("VmRSS")
  run <- clock(function() regulation(many, regulators = 1:1800, transform = "counts", seed = 1, run = "cuda",
                                     control = list(null_copies = 0)))
  cat(sprintf("1,800 regulators, 200 halves, no null copy: %.2f s; memory %.2f GB before, %.2f at the peak\n",
              run$seconds, before, memory("VmHWM")))
}
