# What ranks give on devices beside what one rank gives on the CPU: every rank has the device of its turn. Without a
# device it is the CPU on both sides.
#   mpirun -n 3 Rscript tools/ranks-device.R
suppressMessages(library(weft))
at <- weft_ranks()
me <- attr(at, "rank")
size <- attr(at, "size")
say <- function(...) if (me == 0) cat(sprintf(...), "\n", sep = "")
if (me == 0) print(at)
backend <- if (nrow(weft_devices())) "cuda" else "cpu"
set.seed(11)
failed <- 0
check <- function(what, ok) {
  ok <- all(unlist(weft:::ranks_gather(isTRUE(ok))))
  say("%-58s %s", what, if (ok) "same" else "OTHER")
  if (!ok) failed <<- failed + 1
}
mine <- function(n) which((seq_len(n) - 1) %% size == me)
rows <- function(x) x[mine(nrow(x)), , drop = FALSE]

x <- matrix(stats::rnorm(6000 * 3), ncol = 3)
w <- stats::runif(6000)
for (kernel in c("gaussian", "epanechnikov", "laplacian")) for (method in c("auto", "direct")) {
  one <- kernel_sum(x, weights = w, kernel = kernel, bandwidth = 0.4, method = "direct", run = "cpu")
  here <- kernel_sum(rows(x), weights = w[mine(6000)], kernel = kernel, bandwidth = 0.4, method = method,
                     run = weft_run(backend, ranks = TRUE))
  check(sprintf("kernel sums, %s, %s, on devices", kernel, method),
        all.equal(c(here), one[mine(6000)], tolerance = 1e-11))
}
one <- kernel_sum(x, bandwidth = 0.4, method = "direct", run = "cpu")
here <- kernel_sum(rows(x), bandwidth = 0.4, rel_error = 0.1, method = "tree", run = weft_run(ranks = TRUE))
check("kernel sums by trees (on the CPU) within rel_error", max(abs(here / one[mine(6000)] - 1)) <= 0.1)

bits <- matrix(sample(0:1, 500 * 400, TRUE), 500)
class <- xor(bits[, 3], bits[, 300])
plain <- function(x) as.data.frame(x)
check("mi_pairs()", identical(plain(mi_pairs(bits, class, top = 50, run = weft_run(backend, ranks = TRUE))),
                              plain(mi_pairs(bits, class, top = 50, run = "cpu"))))
d <- as.data.frame(matrix(sample(0:2, 300 * 12, TRUE), 300))
table <- bn_scores(d, 3)
learn <- function(...) unclass(bn_learn(table, iterations = 200, chains = 5, seed = 2, ...))[c("score", "dags",
                                                                                               "trace")]
check("bn_learn()", identical(learn(run = weft_run(backend, ranks = TRUE)), learn(run = "cpu")))
planted <- irm_sample(120, 90, k = 3, density = 0.2, seed = 1)$A
fit <- function(...) irm(planted, chains = 4, sweeps = 10, seed = 3, ...)[c("log_posterior", "row_cluster",
                                                                            "col_cluster")]
check("irm()", identical(fit(run = weft_run(backend, ranks = TRUE)), fit(run = "cpu")))
for (shape in list(c(900, 60), c(50, 200))) {
  m <- matrix(stats::rnorm(prod(shape)), shape[1])
  own <- sort(weft:::dealt_to(shape[1], list(rank = me, size = size)))
  one <- pca(m, 4, seed = 1, run = "cpu")
  all <- pca(m[own, , drop = FALSE], 4, seed = 1, run = weft_run(backend, ranks = TRUE))
  values <- function(fit) unname(c(fit$sdev, fit$rotation))
  check(sprintf("pca(), %d x %d", shape[1], shape[2]), all.equal(values(all), values(one), tolerance = 1e-9))
}
say("%d ranks on %d devices (%s): %d other than one rank's", size, nrow(weft_devices()), backend, failed)
if (failed) quit(status = 1)
