# Other packages in the same run, where they are installed: whether they give the same numbers, and the time they take.
# Usage: Rscript mi-peers.R. Peers that take long are timed on part of the work and scaled by its size; the row says so.
library(weft)
source("inst/bench/bench.R")
load_naive()
machine_line()
if (file.exists("/proc/loadavg")) cat("load:", readLines("/proc/loadavg"), "\n")
peers <- c("praznik", "infotheo", "minet", "parmigene")
peers <- peers[vapply(peers, requireNamespace, NA, quietly = TRUE)]
cat("peers:", paste(peers, vapply(peers, function(p) as.character(utils::packageVersion(p)), "")), sep = " ", "\n\n")
has <- function(peer) peer %in% peers
from <- function(peer, name) getExportedValue(peer, name)

# ---- numbers ----

set.seed(1)
agree <- function(what, weft, peer, note = "") {
  cat(sprintf("%-44s greatest difference %8.2g  %s\n", what, max(abs(as.matrix(weft) - as.matrix(peer))), note))
}
off <- function(m) `diag<-`(as.matrix(m), 0)
x <- as.data.frame(matrix(sample(1:4, 300 * 12, TRUE), 300))
x[[2]] <- (x[[1]] + (stats::runif(300) < 0.3)) %% 4 + 1
y <- sample(1:3, 300, TRUE)
factors <- as.data.frame(lapply(x, factor))
nats <- function(estimator = "empirical", data = x) as.matrix(mi_matrix(data, estimator = estimator, unit = "nats"))
if (has("infotheo")) {
  peer <- function(method) from("infotheo", "mutinformation")(x, method = method)
  agree("empirical, infotheo", nats(), peer("emp"))
  agree("Miller-Madow, infotheo", nats("miller-madow"), peer("mm"))
  agree("shrink, infotheo", off(nats("shrink")), off(peer("shrink")),
        "(posterior mean in place of the shrunk frequencies)")
  agree("Schuermann-Grassberger, infotheo", off(nats("schurmann-grassberger")), off(peer("sg")),
        "(1/cells divided as whole numbers: 0)")
}
if (has("praznik")) {
  agree("empirical, praznik", off(nats()), off(from("praznik", "miMatrix")(factors)))
  all <- mi_pairs(factors, y, top = Inf, control = list(unit = "nats"))
  joint <- sapply(seq_along(x), function(k) from("praznik", "jmiScores")(factors, factor(y), factors[[k]]))
  dimnames(joint) <- list(names(x), names(x))
  agree("pairs, praznik", all$mi, joint[cbind(all$feature1, all$feature2)])
  for (method in c("MIM", "MRMR", "JMI", "JMIM", "NJMIM", "DISR", "CMIM", "CMI", "JIM")) {
    mine <- mi_select(factors, y, 6, tolower(method), unit = "nats")
    other <- from("praznik", method)(factors, factor(y), 6)
    agree(paste0(method, ", praznik"), mine$score, other$score[seq_len(nrow(mine))],
          if (identical(names(other$selection)[seq_len(nrow(mine))],
                        mine$feature)) "same features" else "OTHER FEATURES")
  }
}
g <- matrix(stats::rnorm(200 * 40), 200)
g[, 2] <- g[, 1] + stats::rnorm(200)
g[, 3] <- g[, 2] + stats::rnorm(200)
m <- as.matrix(mi_matrix(g, estimator = "spearman", unit = "nats"))
net <- function(method) as.matrix(mi_network(m, method))
if (has("minet")) {
  for (method in c("aracne", "clr", "mrnet")) agree(paste0(method, ", minet"), net(method), from("minet", method)(m))
  agree("mrnetb, minet", net("mrnetb"), from("minet", "mrnetb")(m), "(its sets hold the target and the diagonal)")
}
if (has("parmigene")) {
  agree("aracne, parmigene", net("aracne"), from("parmigene", "aracne.a")(m, 1e-12))
  agree("mrnet, parmigene", net("mrnet"), from("parmigene", "mrnet")(m))
  agree("clr, parmigene", net("clr"), from("parmigene", "clr")(m),
        "(its means hold the diagonal, and z is squared twice)")
  agree("ksg, parmigene", nats("ksg", g[, 1:8]), off(from("parmigene", "knnmi.all")(t(g[, 1:8]), 3, 1e-12)))
}

# ---- times ----

cat("\n")
clock <- function(expr, times = 5) {
  expr <- substitute(expr)
  frame <- parent.frame()
  stats::median(vapply(seq_len(times), function(k) system.time(eval(expr, frame))[["elapsed"]], 0))
}
row <- function(what, goal, weft, ...) {
  others <- c(...)
  cat(sprintf("%-44s goal %-7s weft %8.4f s  %s\n", what, goal, weft,
              paste(sprintf("%s %.3f s (%.1f x)", names(others), others, others / weft), collapse = ", ")))
}
binary <- function(n, p, levels = 2L) matrix(sample.int(levels, n * p, TRUE) - 1L, n)
as_factors <- function(x) as.data.frame(lapply(as.data.frame(x), factor))

x <- binary(10000, 5000)
class <- sample(0:1, 10000, TRUE)
naive <- clock(.Call("naive_counts", x, class), 9)
few <- as_factors(x[, 1:500])
praznik <- if (has("praznik")) 10 * clock(from("praznik", "miScores")(few, factor(class), threads = 1), 3)
row("rank 10,000 x 5,000 binary, 1 thread", "1.5 C", clock(mi_rank(x, class, run = weft_run("cpu", threads = 1)), 9),
    `naive C` = naive, praznik = praznik)
row("rank 10,000 x 5,000 binary, 2 threads", "1 C", clock(mi_rank(x, class, run = weft_run("cpu", threads = 2)), 9),
    `naive C` = naive)
rm(x, few)

all_pairs <- function(x, class, some, threads) {
  if (!has("praznik")) return(NULL)
  part <- as_factors(x[, seq_len(some)])
  took <- system.time(for (k in seq_len(some)) from("praznik",
                                                    "jmiScores")(part, factor(class), part[[k]],
                                                                 threads = threads))[["elapsed"]]
  took / 2 * choose(ncol(x), 2) / choose(some, 2)
}
class <- sample(0:1, 1000, TRUE)
for (case in list(list(1000, 2L, 1, "4 ms"), list(1000, 2L, 2, ""), list(10000, 2L, 2, "0.25 s"),
                  list(2000, 3L, 1, "0.1 s"), list(2000, 3L, 2, "0.1 s"))) {
  x <- binary(1000, case[[1]], case[[2]])
  pack <- mi_pack(x, class)
  naive <- system.time(.Call("naive_pairs", x[, 1:300], class, case[[2]]))[["elapsed"]] * choose(case[[1]], 2) /
    choose(300, 2)
  row(sprintf("pairs N=%g n=1000, %d levels, packed, %d threads", case[[1]], case[[2]], case[[3]]), case[[4]],
      clock(mi_pairs(pack, run = weft_run("cpu", threads = case[[3]])), if (case[[1]] > 5000) 5 else 15),
      `naive C (from 300)` = naive,
      `praznik (from 100)` = all_pairs(x, class, 100, case[[3]]))
  weft_free(pack)
}

x <- binary(500, 2000, 5L)
for (threads in 1:2) {
  praznik <- if (has("praznik")) { f <- as_factors(x); clock(from("praznik", "miMatrix")(f, threads = threads), 1) }
  infotheo <- if (has("infotheo") && threads == 1) 400 *
    clock(from("infotheo", "mutinformation")(as.data.frame(x[, 1:100])), 1)
  row(sprintf("matrix 2,000 x 500, 5 levels, %d threads", threads), "0.25 s",
      clock(mi_matrix(x, run = weft_run("cpu", threads = threads))), praznik = praznik,
      `infotheo (from 100)` = infotheo)
}

g <- matrix(stats::rnorm(500 * 50), 500)[, sample(50, 2000, TRUE)] + matrix(stats::rnorm(500 * 2000), 500)
m <- as.matrix(mi_matrix(g, estimator = "spearman", unit = "nats"))
for (threads in 1:2) {
  Sys.setenv(OMP_NUM_THREADS = threads)
  once <- function(name, ...) if (has("parmigene")) clock(from("parmigene", name)(m, ...), 1)
  for (method in c("aracne", "mrnet", "clr")) {
    peer <- if (method == "aracne") once("aracne.a", 1e-12) else once(method)
    row(sprintf("%s of 2,000 genes, %d threads", method, threads), if (method == "clr") "" else "0.5 s",
        clock(mi_network(m, method, run = weft_run("cpu", threads = threads)), 3), `parmigene (all threads)` = peer)
  }
}
x <- as_factors(matrix(sample(1:4, 2000 * 3000, TRUE), 2000))
class <- factor(sample(1:3, 2000, TRUE))
for (method in c("MRMR", "JMI", "CMIM", "CMI"))
  row(sprintf("%s, 20 of 3,000, n = 2,000, 1 thread", method), "",
      clock(mi_select(x, class, 20, tolower(method), run = weft_run(threads = 1)), 3),
      praznik = if (has("praznik")) clock(from("praznik", method)(x, class, 20, threads = 1), 3))
