# The cost of a session's first call on a device: Rscript inst/bench/opening.R [--times 5] [--library .lib]. Each row is
# the median (least to greatest) over fresh processes, in milliseconds: the CUDA program below in C, from main() to the
# first result on the host; in R the first small call, and the mean of 50 later ones, whose work takes microseconds,
# with the blocks, streams and handles that each of these asked the driver for (0: what the first call took was kept).
# The calls need no library, cuBLAS or cuSOLVER, which Gram matrices of an order from 301 to 511 need. The last rows are
# the steps of a first call (the driver, a device, cuBLAS), and later calls on the CPU, where R's part is the same.
# Goal: at most 150 ms above the program, and 1 ms for later calls beside their work.
library(weft)
source("inst/bench/bench.R")
times <- as.integer(option("times", 5))
machine_line()
spread <- function(x) sprintf("%7.1f (%.1f to %.1f)", stats::median(x), min(x), max(x))

program <- "#include <stdio.h>
#include <time.h>
__global__ void add(float *x) { x[threadIdx.x] += 1; }
int main() { struct timespec a, b; float *x, y[32]; clock_gettime(CLOCK_MONOTONIC, &a);
  cudaMalloc(&x, sizeof y); cudaMemset(x, 0, sizeof y); add<<<1, 32>>>(x);
  cudaMemcpy(y, x, sizeof y, cudaMemcpyDeviceToHost); clock_gettime(CLOCK_MONOTONIC, &b);
  printf(\"%f\\n\", y[5] == 1 ? 1e3 * (b.tv_sec - a.tv_sec) + 1e-6 * (b.tv_nsec - a.tv_nsec) : -1.0); }"
folder <- tempfile()
dir.create(folder)
writeLines(program, file.path(folder, "ten.cu"))
built <- system2("nvcc", c("-O2", "-arch=native", "-o", file.path(folder, "ten"), file.path(folder, "ten.cu")))
base <- NA_real_
if (built == 0) {
  base <- vapply(seq_len(times), function(i) as.numeric(system2(file.path(folder, "ten"), stdout = TRUE)), 0)
  cat(sprintf("%-34s %s\n", "the program in C", spread(base)))
}

# Milliseconds in fresh processes: a row for each number that `code` prints.
fresh <- function(code, numbers = 2) {
  code <- paste("library(weft); set.seed(1); x <- matrix(rnorm(50 * 200), 200); y <- rep(0:1, 100);",
                "wide <- matrix(rnorm(300 * 400), 400); wider <- matrix(rnorm(400 * 500), 500);",
                "s <- Matrix::rsparsematrix(200, 150, .1);",
                "large <- Matrix::rsparsematrix(20000, 1000, .001);",
                "ms <- function(work) 1e3 * system.time(suppressWarnings(work))[[3]];", code)
  vapply(seq_len(times), function(i) {
    out <- system2(file.path(R.home("bin"), "Rscript"), c("-e", shQuote(code)), stdout = TRUE, stderr = FALSE)
    as.numeric(strsplit(utils::tail(out, 1), " ")[[1]])
  }, numeric(numbers))
}

calls <- c(
  "no library: mi_pairs()" = "mi_pairs(x > 0, y, top = 5, run = 'cuda')",
  "no library: kernel_sum()" = "kernel_sum(x[, 1:4], bandwidth = 1, method = 'direct', run = 'cuda')",
  "cuBLAS: pca(), krylov" = "pca(x, 2, 'krylov', seed = 1, run = 'cuda')",
  "cuBLAS: pca(), gram" = "pca(x, 2, 'gram', seed = 1, run = 'cuda')",
  "cuBLAS: pca(), sparse" = "pca(s, 2, seed = 1, run = 'cuda')",
  "cuBLAS: pca(), gram of 300" = "pca(wide, 2, 'gram', seed = 1, run = 'cuda')",
  "cuSOLVER: pca(), gram of 400" = "pca(wider, 2, 'gram', seed = 1, run = 'cuda')",
  "cuBLAS: pca(), 20,000 x 1,000" = "pca(large, 2, seed = 1, run = 'cuda')"
)
for (name in names(calls)) {
  took <- fresh(sprintf(paste("one <- function() ms(%s); first <- one();",
                              "one(); made <- function() .Call(weft:::C_weft_memory, NULL)[['made']];",
                              "before <- made();",
                              "cat(first, 1e3 * system.time(for (i in 1:50) suppressWarnings(%s))[[3]] / 50,",
                              "(made() - before) / 50)"), calls[[name]], calls[[name]]), 3)
  cat(sprintf("%-34s %s first, %s later, %.2f asked for; above the program %.0f\n", name, spread(took[1, ]),
              spread(took[2, ]), max(took[3, ]), stats::median(took[1, ]) - stats::median(base)))
}
opened <- fresh("driver <- ms(weft:::cuda_missing()); cat(driver, ms(weft_devices()))")
cat(sprintf("%-34s %s\n%-34s %s\n", "the CUDA object and the driver", spread(opened[1, ]), "the device",
            spread(opened[2, ])))
blas <- fresh("weft_devices(); mi_pairs(x > 0, y, top = 5, run = 'cuda'); one <- function() ms(pca(x, 2, 'krylov',
              seed = 1, run = 'cuda')); cat(one(), one())")
cat(sprintf("%-34s %s\n", "cuBLAS with the device open", spread(blas[1, ] - blas[2, ])))
for (name in names(calls)) {
  on_cpu <- gsub("'cuda'", "'cpu'", calls[[name]], fixed = TRUE)
  took <- fresh(sprintf(paste("one <- function() ms(%s); first <- one(); one();",
                              "cat(first, 1e3 * system.time(for (i in 1:50) suppressWarnings(%s))[[3]] / 50)"),
                        on_cpu, on_cpu))
  cat(sprintf("%-34s %s later, on the CPU\n", name, spread(took[2, ])))
}
