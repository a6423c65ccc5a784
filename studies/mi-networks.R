# Matrices of numeric columns, networks and selection: seconds, beside peers in the same run where they are installed.
# Usage: Rscript mi-networks.R [cuda]. Medians of `times` runs, after one that does not count for the device.
library(weft)
cuda <- "cuda" %in% commandArgs(TRUE)
set.seed(1)
threads <- weft_threads()

seconds <- function(expr, times = 3L) {
  expr <- substitute(expr)
  frame <- parent.frame()
  stats::median(vapply(seq_len(times), function(i) system.time(eval(expr, frame))[[3L]], 0))
}
rows <- list()
note <- function(work, weft, peer = NA, who = "") {
  rows[[length(rows) + 1L]] <<- data.frame(work = work, weft = signif(weft, 3), peer = signif(peer, 3),
                                           ratio = signif(peer / weft, 3), who = who)
  print(rows[[length(rows)]], row.names = FALSE)
}
has <- function(package) requireNamespace(package, quietly = TRUE)

cat(sprintf("%s, %d threads, %s\n", format(Sys.Date()), threads, if (cuda) weft_devices()$name[1L] else "CPU"))
genes <- function(p, n) {
  factors <- matrix(rnorm(n * 50), n)
  factors[, sample(50, p, TRUE)] * rep(runif(p), each = n) + matrix(rnorm(n * p), n)
}

if (cuda) {
  x <- genes(2000, 500)
  for (estimator in c("pearson", "copula", "kendall", "ksg")) {
    invisible(mi_matrix(x[, 1:50], estimator = estimator, run = "cuda"))
    device <- seconds(mi_matrix(x, estimator = estimator, run = "cuda"))
    host <- if (estimator == "ksg") seconds(mi_matrix(x[, 1:500], estimator = "ksg", run = "cpu"), 1L) * 16
            else seconds(mi_matrix(x, estimator = estimator, run = "cpu"), 1L)
    note(paste(estimator, "2,000 x 500"), device, host,
         sprintf("weft, %d threads%s", threads, if (estimator == "ksg") " (from 500 genes)" else ""))
  }
  for (p in c(2000, 10000, 20000)) {
    m <- mi_matrix(genes(p, 200), estimator = "spearman", run = "cuda")
    device <- seconds(mi_network(m, "aracne", run = "cuda"), 1L)
    note(sprintf("aracne, %d genes", p), device,
         if (p <= 10000) seconds(mi_network(m, "aracne", run = "cpu"), 1L) else NA,
         sprintf("weft, %d threads", threads))
  }
} else {
  x <- genes(2000, 500)
  note("pearson 2,000 x 500", seconds(mi_matrix(x, estimator = "pearson", run = "cpu")), seconds(cor(x)),
       "stats::cor")
  note("spearman 2,000 x 500", seconds(mi_matrix(x, estimator = "spearman", run = "cpu")),
       seconds(cor(x, method = "spearman")), "stats::cor")
  note("kendall 200 x 500", seconds(mi_matrix(x[, 1:200], estimator = "kendall", run = "cpu")),
       seconds(cor(x[, 1:200], method = "kendall"), 1L), "stats::cor")
  note("kendall 2,000 x 500", seconds(mi_matrix(x, estimator = "kendall", run = "cpu")))
  ksg <- seconds(mi_matrix(x[, 1:300], estimator = "ksg", run = "cpu"))
  note("ksg 300 x 500", ksg, if (has("parmigene")) seconds(parmigene::knnmi.all(t(x[, 1:300]))) else NA, "parmigene")
  note("5 bins, 2,000 x 500", seconds(mi_matrix(x, bins = 5, run = "cpu")), if (has("praznik"))
    seconds(praznik::miMatrix(as.data.frame(lapply(discretize(x, bins = 5), factor)), threads = threads), 1L) else NA,
    "praznik")
  m <- mi_matrix(x, estimator = "spearman", run = "cpu")
  plain <- as.matrix(m)
  note("aracne, 2,000 genes", seconds(mi_network(m, "aracne", run = "cpu")),
       if (has("parmigene")) seconds(parmigene::aracne.a(plain, 1e-9), 1L) else NA, "parmigene")
  note("mrnet, 2,000 genes", seconds(mi_network(m, "mrnet")),
       if (has("parmigene")) seconds(parmigene::mrnet(plain), 1L) else NA,
       "parmigene")
  note("clr, 2,000 genes", seconds(mi_network(m, "clr")), if (has("parmigene")) seconds(parmigene::clr(plain)) else NA,
       "parmigene")
  note("mrnetb, 500 genes", seconds(mi_network(plain[1:500, 1:500], "mrnetb"), 1L),
       if (has("minet")) seconds(minet::mrnetb(plain[1:500, 1:500]), 1L) else NA, "minet")
  z <- as.data.frame(matrix(sample(1:4, 2000 * 3000, TRUE), 2000))
  y <- sample(1:3, 2000, TRUE)
  factors <- as.data.frame(lapply(z, factor))
  for (method in c("mrmr", "jmi", "cmim", "cmi"))
    note(paste(method, "20 of 3,000, n = 2,000"), seconds(mi_select(z, y, 20, method)), if (has("praznik"))
      seconds(getExportedValue("praznik", toupper(method))(factors, factor(y), 20, threads = threads), 1L) else NA,
      "praznik")
}
cat("\n")
print(do.call(rbind, rows), row.names = FALSE)
