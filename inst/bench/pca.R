# Principal components beside their peers in one run: Rscript pca.R [quick|once]. Prints seconds (median), seconds of
# processors (which other work on the machine disturbs less), the sine of the largest angle to the exact subspace, and
# the largest error of singular values over the greatest. "once": each a single time.
library(weft)
quick <- "quick" %in% commandArgs(TRUE)
once <- "once" %in% commandArgs(TRUE)
load_now <- function() if (file.exists("/proc/loadavg")) sub(" [0-9]+/.*", "",
                                                             readLines("/proc/loadavg")) else "not known"
cat(format(Sys.time()), "threads", weft_threads(), "load", load_now(), "BLAS", basename(extSoftVersion()[["BLAS"]]),
    "\n")
has <- function(package) requireNamespace(package, quietly = TRUE)

sine <- function(v, exact) {
  v <- qr.Q(qr(v))
  norm(v - exact %*% crossprod(exact, v), "2")
}

compare <- function(title, x, k, methods, times = 3) {
  centred <- scale(x, scale = FALSE)
  exact <- pca(x, k, method = "gram", seed = 99, control = list(tolerance = 1e-13))
  cat("\n", title, "\n", sep = "")
  for (name in names(methods)) {
    seconds <- busy <- numeric(if (once) 1 else times)
    for (i in seq_along(seconds)) {
      time <- system.time(fit <- methods[[name]](x, centred, k))
      seconds[i] <- time[["elapsed"]]
      busy[i] <- time[["user.self"]] + time[["sys.self"]]
    }
    cat(sprintf("  %-28s %8.3f s   busy %8.3f s   sine %.0e   error %.0e\n", name, stats::median(seconds),
                stats::median(busy), sine(fit$v, exact$rotation), max(abs(fit$d - exact$d)) / exact$d[1]))
  }
}

ours <- function(...) function(x, centred, k) { f <- pca(x, k, ..., seed = 1); list(d = f$d, v = f$rotation) }
peers <- c(
  list(`weft auto` = ours(), `weft auto, tol 1e-9` = ours(tol = 1e-9), `weft krylov` = ours(method = "krylov"),
       `weft gram` = ours(method = "gram")),
  if (has("RSpectra")) list(`RSpectra::svds` = function(x, centred, k) RSpectra::svds(centred, k)),
  if (has("irlba")) list(`irlba (tol 1e-10)` = function(x, centred,
                                                        k) irlba::irlba(centred, k, tol = 1e-10, maxit = 5000),
                         `irlba (default)` = function(x, centred, k) irlba::irlba(centred, k)),
  if (has("rsvd")) list(`rsvd (q = 2)` = function(x, centred, k) rsvd::rsvd(centred, k),
                        `rsvd (q = 20)` = function(x, centred, k) rsvd::rsvd(centred, k, q = 20)),
  if (has("BiocSingular")) list(`BiocSingular exact` = function(x, centred, k) {
    f <- BiocSingular::runPCA(x, rank = k, BSPARAM = BiocSingular::ExactParam())
    list(d = f$sdev * sqrt(nrow(x) - 1), v = f$rotation)
  }),
  list(`prcomp` = function(x, centred, k) {
    f <- prcomp(x, rank. = k)
    list(d = f$sdev[seq_len(k)] * sqrt(nrow(x) - 1), v = f$rotation)
  })
)

set.seed(1)
size <- if (quick) c(1000, 500) else c(4000, 2000)
compare(sprintf("gaussian %d x %d, K = 10", size[1], size[2]), matrix(rnorm(prod(size)), size[1]), 10,
        if (quick) peers else peers[!names(peers) %in% c("prcomp", "BiocSingular exact")])

cells <- if (quick) c(300, 3000) else c(1000, 20000)
signal <- matrix(rnorm(cells[1] * 60), cells[1]) %*% (exp(-(1:60) / 15) * matrix(rnorm(60 * cells[2]), 60))
compare(sprintf("expression %d x %d, K = 50", cells[1], cells[2]), signal + matrix(rnorm(prod(cells)), cells[1]), 50,
        peers[!names(peers) %in% c("rsvd (q = 20)", if (!quick) "BiocSingular exact")], times = if (quick) 3 else 2)

if (has("HDF5Array")) {
  x <- matrix(rnorm(1000 * 5000), 1000)
  h <- HDF5Array::writeHDF5Array(x)
  memory <- stats::median(replicate(3, pca(x, 20, seed = 1)$seconds))
  disk <- stats::median(replicate(3, pca(h, 20, seed = 1)$seconds))
  read <- system.time(as.matrix(h))[["elapsed"]]
  cat(sprintf("\nHDF5 1000 x 5000, K = 20: %.2f s, in memory %.2f s, reading alone %.2f s\n", disk, memory, read))
}

x <- matrix(rnorm(1000 * 5), 1000) %*% matrix(rnorm(5 * 500), 5) + 0.3 * matrix(rnorm(1000 * 500), 1000)
x[sample(length(x), length(x) / 10)] <- NA
for (method in c("nipals", "gs")) {
  fit <- pca(x, 5, method = method, seed = 1)
  busy <- system.time(pca(x, 5, method = method, seed = 1))
  cat(sprintf("1000 x 500, 10 %% missing, K = 5, %s: %.3f s, busy %.3f s, %d iterations\n", method, fit$seconds,
              busy[["user.self"]] + busy[["sys.self"]], sum(fit$iterations)))
}
fit <- pca(x, 5, na = "em", seed = 1)
cat(sprintf("the same by EM: %.3f s, %d iterations\n", fit$seconds, fit$iterations[1]))
if (has("pcaMethods")) {
  for (method in c("nipals", "ppca", "svdImpute")) {
    time <- system.time(pcaMethods::pca(x, method, nPcs = 5))[["elapsed"]]
    cat(sprintf("  pcaMethods %s, at its own tolerance: %.3f s\n", method, time))
  }
}
cat("load at the end", load_now(), "\n")
