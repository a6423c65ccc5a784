# The cost of a session's first call on a device: Rscript inst/bench/opening.R [--times 5] [--library .lib]. Each row is
# the median (least to greatest) over fresh processes, in milliseconds: the CUDA program below in C, from main() to the
# first result on the host, and in R the first small call and the second one, for calls that need no library, cuBLAS,
# and cuSPARSE. Goal: at most 150 ms above the program, and 1 ms for later calls beside their work.
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
base <- NA
if (built == 0) {
  base <- vapply(seq_len(times), function(i) as.numeric(system2(file.path(folder, "ten"), stdout = TRUE)), 0)
  cat(sprintf("%-34s %s\n", "the program in C", spread(base)))
}

calls <- c(
  "no library: mi_pairs()" = "mi_pairs(x > 0, y, top = 5, run = 'cuda')",
  "cuBLAS: pca(), krylov" = "pca(x, 2, 'krylov', seed = 1, run = 'cuda')",
  "cuSOLVER: pca(), gram" = "pca(x, 2, 'gram', seed = 1, run = 'cuda')",
  "cuSPARSE: pca(), sparse" = "pca(s, 2, seed = 1, run = 'cuda')"
)
for (name in names(calls)) {
  code <- paste("library(weft); set.seed(1); x <- matrix(rnorm(50 * 200), 200); y <- rep(0:1, 100);",
                "s <- Matrix::rsparsematrix(200, 150, .1); one <- function() system.time(suppressWarnings(",
                calls[[name]], "))[[3]]; first <- one(); later <- sort(replicate(9, one()))[5];",
                "cat(1e3 * first, 1e3 * later)")
  took <- vapply(seq_len(times), function(i) {
    out <- system2(file.path(R.home("bin"), "Rscript"), c("-e", shQuote(code)), stdout = TRUE, stderr = FALSE)
    as.numeric(strsplit(utils::tail(out, 1), " ")[[1]])
  }, numeric(2))
  cat(sprintf("%-34s %s first, %s later; above the program %.0f\n", name, spread(took[1, ]), spread(took[2, ]),
              stats::median(took[1, ]) - stats::median(base)))
}
