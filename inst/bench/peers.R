# weft beside what else does the same, in one run: processor time, the least of several, weft and peer in turn, and the
# error of both against an exact answer where there is one. A ratio above 1 means that weft is faster. Peers that are
# not installed are left out: KernSmooth, ks, RSpectra, parmigene, softImpute. What the BLAS of R does is a peer's part
# and weft's alike, so it is named.
#
# Usage: Rscript peers.R [--only name] [--times 5] [--csv peers.csv] [--threads 1]
library(weft)

option <- function(name, default) {
  given <- commandArgs(TRUE)
  at <- match(paste0("--", name), given)
  if (is.na(at)) default else given[at + 1L]
}
have <- function(package) requireNamespace(package, quietly = TRUE)
quiet <- function(...) suppressWarnings(suppressMessages(...))

# A row: the calls, and a function of a result that gives its error. `needs`: the peer's package.
row <- function(weft, peer, error = function(result, of) NA_real_, needs = "stats") {
  list(weft = weft, peer = peer, error = error, needs = needs)
}

set.seed(1)
x4 <- stats::rnorm(1e4)
x6 <- stats::rnorm(1e6)
y4 <- sin(x4) + stats::rnorm(1e4) / 3
x42 <- matrix(stats::rnorm(2e4), 1e4)
plane <- as.matrix(expand.grid(seq(-4, 4, length.out = 151), seq(-4, 4, length.out = 151)))
grid <- seq(-4, 4, length.out = 401)
some <- seq(1, 401, by = 40)
away_plane <- seq(1, nrow(plane), by = 397)
exact_plane <- vapply(away_plane, function(k) {
  mean(exp(-((x42[, 1] - plane[k, 1])^2 + (x42[, 2] - plane[k, 2])^2) / 0.08)) / (2 * pi * 0.04)
}, 0)
exact_density <- vapply(grid[some], function(g) mean(stats::dnorm(g, x6, 0.06)), 0)
least_squares <- function(x) { # the exact criterion
  far <- as.vector(stats::dist(x))
  n <- length(x)
  function(h) {
    (n + 2 * sum(exp(-far^2 / 4 / h^2))) / (n^2 * h * 2 * sqrt(pi)) -
      4 * sum(exp(-far^2 / 2 / h^2)) / (n * (n - 1) * h * sqrt(2 * pi))
  }
}
best_of <- stats::optimize(least_squares(x4[1:3000]), c(0.05, 1), tol = 1e-6)
away <- function(result, of) abs(least_squares(x4[1:3000])(if (of == "weft") result$bandwidth else result) /
                                   best_of$objective - 1)

gp <- function(n) {
  x <- matrix(stats::runif(8 * n), n)
  y <- stats::rnorm(n)
  list(weft = function() quiet(gp_regression(x, y, bandwidth = 0.5)),
       peer = function() {
         k <- exp(-as.matrix(stats::dist(x))^2 / (2 * 0.5^2))
         diag(k) <- diag(k) + 1e-2
         root <- chol(k)
         backsolve(root, backsolve(root, y, transpose = TRUE))
       })
}
gp1 <- gp(1000)
sparse <- if (have("Matrix")) Matrix::rsparsematrix(20000, 2000, 0.02, rand.x = stats::rexp)
centred <- list(center = TRUE, tol = 1e-8)
wide <- matrix(stats::rnorm(100 * 2000), 100)
ten <- matrix(stats::runif(10 * 20000), 20000)
genes <- matrix(stats::rnorm(50 * 1000), 50)

rows <- list(
  "bandwidth, lscv, 10,000" = row(function() kde(x4, "lscv"), function() quiet(stats::bw.ucv(x4))),
  "bandwidth, lscv, 3,000" = row(function() kde(x4[1:3000], "lscv"), function() quiet(stats::bw.ucv(x4[1:3000])), away),
  "bandwidth, lscv, 10^6" = row(function() kde(x6, "lscv"), function() quiet(stats::bw.ucv(x6))),
  "bandwidth, plug-in, 10,000" = row(function() kde(x4, "plugin"), function() stats::bw.SJ(x4, method = "dpi")),
  "bandwidth, plug-in, 10^6" = row(function() kde(x6, "plugin"), function() stats::bw.SJ(x6, method = "dpi")),
  "density on a grid, 10^6, density()" = row(
    function() predict(kde(x6, 0.06), grid), function() stats::density(x6, 0.06, n = 401, from = -4, to = 4),
    function(f, of) max(abs((if (of == "weft") f else f$y)[some] / exact_density - 1))),
  "density on a grid, 10^6, bkde()" = row(
    function() predict(kde(x6, 0.06), grid), function() KernSmooth::bkde(x6, bandwidth = 0.06, range.x = c(-4, 4)),
    function(f, of) max(abs((if (of == "weft") f else f$y)[some] / exact_density - 1)), "KernSmooth"),
  "density on a plane, 10,000" = row(
    function() predict(kde(x42, 0.2), plane),
    function() KernSmooth::bkde2D(x42, 0.2, c(151, 151), list(c(-4, 4), c(-4, 4)))$fhat,
    function(f, of) max(abs(as.vector(f)[away_plane] - exact_plane)) / max(exact_plane), "KernSmooth"),
  "density on a plane, 10,000, absolute" = row(
    function() kernel_sum(plane, x42, bandwidth = 0.2, abs_error = 1e-6 * nrow(x42)) / (nrow(x42) * 2 * pi * 0.04),
    function() KernSmooth::bkde2D(x42, 0.2, c(151, 151), list(c(-4, 4), c(-4, 4)))$fhat,
    function(f, of) max(abs(as.vector(f)[away_plane] - exact_plane)) / max(exact_plane), "KernSmooth"),
  "bandwidth, lscv, 10,000 x 2" = row(function() kde(x42, "lscv"), function() ks::Hlscv.diag(x42), needs = "ks"),
  "regression at 10,000" = row(
    function() kernel_sum(x4, weights = cbind(1, y4), bandwidth = 0.2, rel_error = 1e-4),
    function() stats::ksmooth(x4, y4, "normal", 0.2 / 0.3706506, x.points = x4)),
  "Gaussian process, 1,000 x 8" = row(gp1$weft, gp1$peer),
  "components, sparse 20,000 x 2,000" = row(function() pca(sparse, 20),
                                            function() RSpectra::svds(sparse, 20, opts = centred), needs = "RSpectra"),
  "components, 100 x 2,000" = row(function() pca(wide, 10), function() RSpectra::svds(scale(wide, scale = FALSE), 10),
                                  needs = "RSpectra"),
  "kernel sum, 10-D" = row(function() kernel_sum(ten, kernel = "epanechnikov", bandwidth = 0.5, rel_error = 0.1),
                           function() kernel_sum(ten, kernel = "epanechnikov", bandwidth = 0.5, precision = "single")),
  "CLR, 1,000 genes" = row(function() mi_network(abs(stats::cor(genes)), method = "clr"),
                           function() parmigene::clr(abs(stats::cor(genes))), needs = "parmigene")
)

# Of a call, repeated where it is too short for the clock.
processor <- function(f) {
  gc(FALSE)
  times <- 1
  repeat {
    t <- system.time(for (k in seq_len(times)) result <- f(), gcFirst = FALSE)
    if (sum(t[1:2]) >= 0.03 || times >= 256) return(list(seconds = sum(t[1:2]) / times, result = result))
    times <- times * 4
  }
}

options(weft.threads = as.numeric(option("threads", 1)), weft.backend = "cpu")
only <- option("only", NULL)
if (!is.null(only)) rows <- rows[grepl(only, names(rows), fixed = TRUE)]
cat("BLAS:", extSoftVersion()[["BLAS"]], "\n")
table <- NULL
for (name in names(rows)) {
  r <- rows[[name]]
  if (!have(r$needs)) { cat(sprintf("%-36s (no %s)\n", name, r$needs)); next }
  best <- c(weft = Inf, peer = Inf)
  last <- list()
  for (k in seq_len(as.numeric(option("times", 5)))) for (who in names(best)) {
    one <- processor(r[[who]])
    best[[who]] <- min(best[[who]], one$seconds)
    last[[who]] <- one$result
  }
  error <- vapply(names(best), function(who) r$error(last[[who]], who), 0)
  table <- rbind(table, data.frame(row = name, weft = best[["weft"]], peer = best[["peer"]],
                                   ratio = best[["peer"]] / best[["weft"]], weft_error = error[["weft"]],
                                   peer_error = error[["peer"]]))
  cat(sprintf("%-36s weft %.4f s, peer %.4f s, ratio %.2f%s\n", name, best[["weft"]], best[["peer"]],
              best[["peer"]] / best[["weft"]],
              if (anyNA(error)) "" else sprintf(", errors %.1e and %.1e", error[["weft"]], error[["peer"]])))
}
if (!is.null(option("csv", NULL))) utils::write.csv(table, option("csv", NULL), row.names = FALSE)
