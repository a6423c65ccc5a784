# weft beside what else does the same, in one run, a table for each system: processor time, the least of several, weft
# and peer in turn, and what both get wrong, as the row says. A ratio above 1 means that weft is faster. Peers are other
# packages, R itself, and plain loops in C as floors. Packages that are not installed are named and left out. What the
# BLAS of R does is a peer's part and weft's alike, so it is named.
#
# Usage: Rscript peers.R [--only name] [--system mi] [--times 5] [--csv peers.csv] [--threads 1] [--seconds Inf]
# `make bench` runs all of them. After --seconds, counted from where R began, no row begins, and the row at work is not
# repeated: it is then the least of fewer times than the head says.
library(weft)
source("inst/bench/bench.R")

have <- function(package) requireNamespace(package, quietly = TRUE)
quiet <- function(...) suppressWarnings(suppressMessages(...))

# A row: the calls, and a function of a result that gives its error, which `wrong` names. `needs`: the peer's package.
row <- function(weft, peer, error = function(result, of) NA_real_, needs = "stats", wrong = "") {
  list(weft = weft, peer = peer, error = error, needs = needs, wrong = wrong)
}

set.seed(1)
x4 <- stats::rnorm(1e4)
x6 <- stats::rnorm(1e6)
y4 <- sin(x4) + stats::rnorm(1e4) / 3
x42 <- matrix(stats::rnorm(2e4), 1e4)
plane <- as.matrix(expand.grid(seq(-4, 4, length.out = 151), seq(-4, 4, length.out = 151)))
away_plane <- seq(1, nrow(plane), by = 397)
exact_plane <- vapply(away_plane, function(k) {
  mean(exp(-((x42[, 1] - plane[k, 1])^2 + (x42[, 2] - plane[k, 2])^2) / 0.08)) / (2 * pi * 0.04)
}, 0)
plane_error <- function(f, of) max(abs(as.vector(f)[away_plane] - exact_plane)) / max(exact_plane)
by_bkde <- function() KernSmooth::bkde2D(x42, c(0.2, 0.2), c(151, 151), list(c(-4, 4), c(-4, 4)))$fhat
grid <- seq(-4, 4, length.out = 401)
some <- seq(1, 401, by = 40)
exact_density <- vapply(grid[some], function(g) mean(stats::dnorm(g, x6, 0.06)), 0)
density_error <- function(f, of) max(abs((if (of == "weft") f else f$y)[some] - exact_density)) / max(exact_density)
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

load_naive()
levels2 <- matrix(sample.int(2L, 1e4 * 1000, TRUE) - 1L, 1e4)
class2 <- sample(0:1, 1e4, TRUE)
few <- levels2[1:1000, 1:400]
few_class <- class2[1:1000]
entropy <- function(p) -sum(p * log2(p))
best_pair <- function(result, of) { # against counting by R
  score <- if (of == "weft") result$mi[1L] else entropy(prop.table(table(few_class))) + result / 1000
  pair <- best_few[c("feature1", "feature2")]
  at <- match(unlist(pair), colnames(as.data.frame(few)))
  joint <- prop.table(table(few[, at[1L]] * 2L + few[, at[2L]], few_class))
  abs(score - (entropy(rowSums(joint)) + entropy(colSums(joint)) - entropy(joint[joint > 0])))
}
best_few <- mi_pairs(as.data.frame(few), few_class, top = 1, run = "cpu")
three <- matrix(sample.int(3L, 1000 * 200, TRUE), 1000)
by_crossprod <- function(x) { # all joint counts as one matrix product
  n <- nrow(x)
  indicators <- do.call(cbind, lapply(seq_len(ncol(x)), function(j) outer(x[, j], 1:3, `==`) + 0))
  p <- crossprod(indicators) / n
  term <- ifelse(p > 0, -p * log2(p), 0)
  group <- rep(seq_len(ncol(x)), each = 3)
  joint <- rowsum(t(rowsum(term, group)), group)
  alone <- rowsum(diag(term), group)[, 1L]
  outer(alone, alone, `+`) - joint
}
exact_three <- by_crossprod(three)
diag(exact_three) <- 0
information_error <- function(result, of) {
  m <- as.matrix(result)
  diag(m) <- 0
  max(abs(m - exact_three))
}
tall <- matrix(stats::rnorm(2000 * 400), 2000) + outer(stats::rnorm(2000), stats::rnorm(400)) * 3
exact_tall <- svd(scale(tall, scale = FALSE), 0, 0)$d[1:10]
exact_wide <- svd(scale(wide, scale = FALSE), 0, 0)$d[1:10]
values_error <- function(exact) function(result, of) max(abs(result$d[seq_along(exact)] / exact - 1))

network <- random_categories(20, 1000)
arcs <- local({
  m <- matrix(0L, 20, 20, dimnames = list(names(network), names(network)))
  m[cbind(c(1, 2, 2, 3, 5, 7), c(4, 4, 9, 12, 12, 20))] <- 1L
  m
})
bdeu <- function(data, dag, size = 1) { # by R's tables
  sum(vapply(names(data), function(node) {
    counts <- as.matrix(table(interaction(c(list(factor(rep(1, nrow(data)))), data[dag[, node] > 0])), data[[node]]))
    whole <- size / nrow(counts)
    part <- whole / ncol(counts)
    sum(lgamma(whole) - lgamma(whole + rowSums(counts))) + sum(lgamma(part + counts) - lgamma(part))
  }, 0))
}
exact_score <- bdeu(network, arcs)
best_score <- NULL
score_below_best <- function(result, of) {
  if (is.null(best_score)) best_score <<- bn_exact(network[1:12], 3, run = "cpu")$score
  best_score - bn_score(network[1:12], result, ess = 1)
}
planted <- irm_sample(300, 200, k = 5, seed = 3)
planted_links <- as.matrix(planted$A) * 1
by_vectors <- function(a) { # spectral co-clustering, told how many clusters there are
  scaled <- a / sqrt(pmax(rowSums(a), 1)) / rep(sqrt(pmax(colSums(a), 1)), each = nrow(a))
  stats::kmeans(svd(scaled, 5, 0)$u, 5, nstart = 10, iter.max = 50)$cluster
}
simulated <- local({ # linear, each gene after its regulators
  p <- 40
  truth <- matrix(0, p, p)
  for (j in 6:p) truth[sample.int(min(j - 1, 10), 2), j] <- 1
  x <- matrix(stats::rnorm(150 * p), 150, dimnames = list(NULL, sprintf("g%d", seq_len(p))))
  for (j in 6:p) x[, j] <- x[, j] * 0.6 + x[, truth[, j] > 0] %*% c(0.9, -0.8)
  list(x = x, truth = truth)
})
missed_precision <- function(result, of) { # 1 - average precision of directed edges
  score <- as.vector(unclass(result)[colnames(simulated$x), colnames(simulated$x)])[off_diagonal]
  hit <- as.vector(simulated$truth)[off_diagonal][order(score, decreasing = TRUE)]
  1 - mean((cumsum(hit) / seq_along(hit))[hit > 0])
}
off_diagonal <- which(diag(40) == 0)

rows <- list(
  "mi: counts, 10,000 x 1,000, loop in C" = row(function() mi_rank(levels2, class2),
                                              function() .Call("naive_counts", levels2, class2)),
  "mi: pairs, 400 x 1,000, loop in C" = row(function() mi_pairs(few, few_class, top = 1),
                                            function() .Call("naive_pairs", few, few_class, 2L), best_pair,
                                            wrong = "the best pair's information"),
  "mi: matrix, 200 x 1,000, crossprod()" = row(function() mi_matrix(three), function() by_crossprod(three),
                                              information_error, wrong = "greatest difference of two bases"),
  "mi: matrix, 200 x 1,000, infotheo" = row(function() mi_matrix(three, unit = "nats"),
    function() infotheo::mutinformation(as.data.frame(three)),
    function(m, of) information_error(as.matrix(m) / log(2), of), "infotheo", "greatest error of an entry"),
  "pca: 10 of 2,000 x 400, svd()" = row(function() pca(tall, 10),
                                       function() svd(scale(tall, scale = FALSE), 10, 10), values_error(exact_tall),
                                       wrong = "greatest error of a singular value"),
  "pca: 10 of 2,000 x 400, irlba" = row(function() pca(tall, 10),
    function() irlba::irlba(tall, 10, center = colMeans(tall)), values_error(exact_tall), "irlba",
    "greatest error of a singular value"),
  "bn: score of a graph of 20 nodes, table()" = row(function() bn_score(network, arcs, ess = 1),
                                                   function() bdeu(network, arcs),
                                                   function(s, of) abs(s / exact_score - 1), wrong = "relative error"),
  "bn: best graph of 12 nodes, bnlearn's hc()" = row(function() bn_exact(network[1:12], 3),
    function() bnlearn::hc(network[1:12], score = "bde", iss = 1, maxp = 3), score_below_best, "bnlearn",
    "score below the best"),
  "irm: rows of 300 x 200, svd() and kmeans()" = row(
    function() irm(planted_links, chains = 1, sweeps = 40, seed = 1, run = weft_run(progress = FALSE)),
    function() by_vectors(planted_links),
    function(f, of) 1 - irm_nmi(if (of == "weft") f$row_cluster else f, planted$row_cluster),
    wrong = "1 - shared information with the truth"),
  "irm: the same, 12 sweeps" = row(
    function() irm(planted_links, chains = 1, sweeps = 12, seed = 1, run = weft_run(progress = FALSE)),
    function() by_vectors(planted_links),
    function(f, of) 1 - irm_nmi(if (of == "weft") f$row_cluster else f, planted$row_cluster),
    wrong = "1 - shared information with the truth"),
  "regulation: 150 x 40, correlations" = row(function() regulation(simulated$x, seed = 1,
                                                                   run = weft_run(progress = FALSE)),
    function() abs(stats::cor(simulated$x)), missed_precision, wrong = "1 - average precision"),
  "regulation: 150 x 40, GENIE3" = row(function() regulation(simulated$x, seed = 1, run = weft_run(progress = FALSE)),
    function() GENIE3::GENIE3(t(simulated$x)), missed_precision, "GENIE3", "1 - average precision"),
  "kernel: bandwidth, lscv, 10,000" = row(function() kde(x4, "lscv"), function() quiet(stats::bw.ucv(x4))),
  "kernel: bandwidth, lscv, 3,000" = row(function() kde(x4[1:3000], "lscv"),
                                         function() quiet(stats::bw.ucv(x4[1:3000])), away,
                                         wrong = "criterion above its least, relative"),
  "kernel: bandwidth, lscv, 10^6" = row(function() kde(x6, "lscv"), function() quiet(stats::bw.ucv(x6))),
  "kernel: bandwidth, plug-in, 10,000" = row(function() kde(x4, "plugin"), function() stats::bw.SJ(x4, method = "dpi")),
  "kernel: bandwidth, plug-in, 10^6" = row(function() kde(x6, "plugin"), function() stats::bw.SJ(x6, method = "dpi")),
  "kernel: density on a grid, 10^6, density()" = row(
    function() predict(kde(x6, 0.06), grid), function() stats::density(x6, 0.06, n = 401, from = -4, to = 4),
    density_error, wrong = "greatest error, of the peak"),
  "kernel: density on a grid, 10^6, bkde()" = row(
    function() predict(kde(x6, 0.06), grid), function() KernSmooth::bkde(x6, bandwidth = 0.06, range.x = c(-4, 4)),
    density_error, "KernSmooth", "greatest error, of the peak"),
  "kernel: the same, relative error 1e-2" = row(
    function() predict(kde(x6, 0.06, rel_error = 1e-2), grid),
    function() KernSmooth::bkde(x6, bandwidth = 0.06, range.x = c(-4, 4)), density_error, "KernSmooth",
    "greatest error, of the peak"),
  "kernel: density on a plane, 10,000, bkde2D()" = row(function() predict(kde(x42, 0.2), plane), by_bkde, plane_error,
    "KernSmooth", "greatest error over the greatest density"),
  "kernel: the plane, absolute error 1e-6" = row(
    function() kernel_sum(plane, x42, bandwidth = 0.2, control = list(abs_error = 1e-6 * nrow(x42))) /
      (nrow(x42) * 2 * pi * 0.04),
    by_bkde, plane_error, "KernSmooth", "greatest error over the greatest density"),
  "kernel: bandwidth, lscv, 10,000 x 2" = row(function() kde(x42, "lscv"), function() ks::Hlscv.diag(x42),
                                              needs = "ks"),
  "kernel: regression at 10,000" = row(
    function() kernel_sum(x4, weights = cbind(1, y4), bandwidth = 0.2, rel_error = 1e-4),
    function() stats::ksmooth(x4, y4, "normal", 0.2 / 0.3706506, x.points = x4)),
  "kernel: Gaussian process, 1,000 x 8" = row(gp1$weft, gp1$peer),
  "pca: components, sparse 20,000 x 2,000" = row(
    function() pca(sparse, 20), function() RSpectra::svds(sparse, 20, opts = centred), needs = "RSpectra"),
  "pca: components, 100 x 2,000" = row(
    function() pca(wide, 10), function() RSpectra::svds(scale(wide, scale = FALSE), 10), values_error(exact_wide),
    "RSpectra", "greatest error of a singular value"),
  "kernel: sum, 10-D, tree and direct sum" = row(
    function() kernel_sum(ten, kernel = "epanechnikov", bandwidth = 0.5, rel_error = 0.1),
    function() kernel_sum(ten, kernel = "epanechnikov", bandwidth = 0.5, control = list(precision = "single"))),
  "mi: CLR, 1,000 genes" = row(function() mi_network(abs(stats::cor(genes)), method = "clr"),
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

options(weft.threads = as.numeric(option("threads", 1)), weft.backend = "cpu", weft.progress = FALSE)
only <- option("only", NULL)
if (!is.null(only)) rows <- rows[grepl(only, names(rows), fixed = TRUE)]
system <- option("system", NULL)
if (!is.null(system)) rows <- rows[startsWith(names(rows), paste0(system, ": "))]
commit <- suppressWarnings(system2("git", c("rev-parse", "--short", "HEAD"), stdout = TRUE, stderr = FALSE))
machine_line()
cat(sprintf("BLAS %s; %s, %s; %s thread%s; processor time, least of %s\n", basename(extSoftVersion()[["BLAS"]]),
            R.version.string, paste(c("commit", commit), collapse = " "), option("threads", 1),
            if (option("threads", 1) == 1) "" else "s", option("times", 5)))

# One row of the table.
measure <- function(name, r) {
  best <- c(weft = Inf, peer = Inf)
  last <- list()
  for (k in seq_len(as.numeric(option("times", 5)))) {
    if (k > 1 && late()) break
    for (who in names(best)) {
      one <- processor(r[[who]])
      best[[who]] <- min(best[[who]], one$seconds)
      last[[who]] <- one$result
    }
  }
  error <- vapply(names(best), function(who) r$error(last[[who]], who), 0)
  data.frame(row = name, weft = best[["weft"]], peer = best[["peer"]], ratio = best[["peer"]] / best[["weft"]],
             weft_error = error[["weft"]], peer_error = error[["peer"]], error_is = r$wrong)
}

late <- function() proc.time()[[3L]] > as.numeric(option("seconds", Inf)) # since R began
table <- NULL
systems <- sub(":.*", "", names(rows))
for (one in unique(systems)) {
  cat(sprintf("\n%-46s %9s %9s %7s  %8s %8s\n", one, "weft, s", "peer, s", "ratio", "error", "peer's"))
  for (name in names(rows)[systems == one]) {
    words <- sub("^[a-z]+: ", "", name)
    if (!have(rows[[name]]$needs)) { cat(sprintf("%-46s no %s\n", words, rows[[name]]$needs)); next }
    if (late()) { cat(sprintf("%-46s no time left\n", words)); next }
    m <- measure(name, rows[[name]])
    table <- rbind(table, m)
    cat(sprintf("%-46s %9.2g %9.2g %7.2f", words, m$weft, m$peer, m$ratio),
        if (!is.na(m$weft_error)) sprintf("  %8.1e %8.1e  %s", m$weft_error, m$peer_error, m$error_is), "\n", sep = "")
  }
}
if (!is.null(option("csv", NULL))) utils::write.csv(table, option("csv", NULL), row.names = FALSE)
