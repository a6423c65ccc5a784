# Timings on a device. Rscript pca-device.R time|sparse [folder]
library(weft)
library(Matrix)
args <- commandArgs(TRUE)
step <- args[1]
folder <- if (length(args) > 1) args[2] else "."
cat(format(Sys.Date()), weft_devices()$name[1], "\n")

sine <- function(fit, reference) {
  inner <- crossprod(reference$rotation, fit$rotation)
  sqrt(max(0, norm(fit$rotation - reference$rotation %*% inner, "2")^2))
}
median_seconds <- function(code, times = 5) stats::median(vapply(seq_len(times), function(i) code()$seconds, 0))

if (step == "time") {
  n <- 15000
  p <- 7500
  set.seed(1)
  x <- matrix(rnorm(n * p), n)
  cold <- system.time(h <- weft_upload(x[, 1:100]))[["elapsed"]]
  weft_free(h)
  upload <- replicate(5, {
    took <- system.time(h <- weft_upload(x))[["elapsed"]]
    weft_free(h)
    took
  })
  cat(sprintf("upload, five times: %s GB/s (first call %.2f s)\n", toString(sprintf("%.1f", 8 * n * p / upload / 1e9)),
              cold))
  h <- weft_upload(x)
  suppressWarnings(pca(h, 10, seed = 1, control = list(max_iterations = 3)))
  steps <- function(count) suppressWarnings(pca(h, 1, method = "gs", seed = 1,
                                                control = list(max_iterations = count, tolerance = 0)))
  few <- median_seconds(function() steps(100), 3)
  many <- median_seconds(function() steps(1100), 3)
  cat(sprintf("GS iteration %.3f ms (floor 0.213: one reading of X)\n", many - few))
  for (blocks in c(1, 2, 6, 10, 20)) {
    seconds <- median_seconds(function() suppressWarnings(pca(h, 10, seed = 1,
                                                              control = list(max_iterations = blocks))))
    cat(sprintf("%g blocks: %.1f ms\n", blocks, 1000 * seconds))
  }
  reference <- pca(h, 10, seed = 2, control = list(tolerance = 1e-13))
  for (tol in c(1e-4, 5e-5, 3e-5, 1e-5, 1e-6, 1e-7, 1e-9, 1e-11, 1e-12)) {
    fit <- pca(h, 10, seed = 1, control = list(tolerance = tol))
    cat(sprintf("%s tol %.0e: %.1f ms, %g passes, sine %.1e, error of d %.1e\n", fit$method, tol,
                1000 * median_seconds(function() pca(h, 10, seed = 1, control = list(tolerance = tol))), fit$passes,
                sine(fit, reference),
                max(abs(fit$d - reference$d)) / reference$d[1]))
  }
  saveRDS(reference[c("d", "rotation", "x")], file.path(folder, "reference.rds"))
  gram <- pca(h, 10, method = "gram", seed = 1)
  cat(sprintf("gram: %.0f ms, sine %.1e\n", 1000 * gram$seconds, sine(gram, reference)))
  weft_free(h)
  small <- x[, 1:10]
  rm(x)
  python <- "
import torch, time
torch.manual_seed(1)
x = torch.randn(15000, 7500, dtype=torch.float64, device='cuda')
x -= x.mean(0)
pinned = x.cpu().pin_memory()
for r in range(3):
    torch.cuda.synchronize(); t = time.time()
    there = pinned.to('cuda', non_blocking=True)
    torch.cuda.synchronize(); t = time.time() - t
print('torch, upload of memory pinned before: %.1f GB/s' % (x.numel() * 8 / t / 1e9))
del pinned, there
w, e = torch.linalg.eigh(x.T @ x)
top = e[:, -10:]
for niter, q in ((2, 10), (20, 20), (60, 20)):
    for r in range(4):
        torch.cuda.synchronize(); t = time.time()
        u, s, v = torch.svd_lowrank(x, q=q, niter=niter)
        torch.cuda.synchronize(); t = time.time() - t
    v = v[:, :10]
    sine = torch.linalg.matrix_norm(v - top @ (top.T @ v), 2).item()
    err = ((s[:10] - w[-10:].flip(0).sqrt()).abs().max() / s[0]).item()
    print('torch.svd_lowrank niter %d q %d: %.1f ms, sine %.1e, error of d %.1e' % (niter, q, 1e3 * t, sine, err))
"
  file <- tempfile(fileext = ".py")
  writeLines(python, file)
  system2("python3", file)
}

if (step == "sparse") {
  # 13 blocks of 100,000 cells by 20,000 genes with a tenth stored: 2.6e9 values; the blocks are one object in memory.
  # Genes share 199 patterns of cells, but no values, as the numbers of patterns and values have no common divisor with
  # their lengths.
  cells <- 100000L
  genes <- 20000L
  each <- cells %/% 10L
  set.seed(1)
  at <- function(j) as.integer((seq_len(each) - 1) * 10 + floor(runif(each) * 10))
  block <- methods::new("dgCMatrix", Dim = c(cells, genes), p = as.integer(seq(0, genes) * each), i = rep(at(1), genes),
                        x = rexp(999983)[rep_len(seq_len(999983), each * genes)] * rep(rexp(genes), each = each))
  block@i <- as.integer(unlist(lapply(seq_len(199), at), use.names = FALSE))[rep_len(seq_len(199 * each), each * genes)]
  blocks <- rep(list(block), 13)
  # the first call starts the device, too; the others tell a pass from what comes before and after
  for (iterations in c(1, 1, 3, 6)) {
    fit <- suppressWarnings(pca(blocks, 50, run = "cuda", seed = 1, control = list(max_iterations = iterations)))
    cat(sprintf("sparse, %d iterations: %.1f s in all, %g passes\n", iterations, fit$seconds, fit$passes))
  }
  for (tol in c(1e-3, 1e-6)) {
    fit <- pca(blocks, 50, run = "cuda", seed = 1, control = list(tolerance = tol))
    cat(sprintf("sparse 1.3M x 20k, 2.6e9 values, K = 50, tol %.0e: %.1f s in all, %g passes, residual %.1e\n", tol,
                fit$seconds, fit$passes, max(fit$residual)))
  }
}
