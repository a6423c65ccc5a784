# Bayesian networks: whole calls from R, score tables for n = 13 ... 60 nodes beside the times that Wang, Zhang, Qian
# and Yuan print (their tables III to V), steps per second, exact optima; beside bnlearn and BiDAG where they are
# installed.
#
#   WEFT_BN_ALARM, WEFT_BN_SACHS   files alarm_data.csv.gz and sachs_data.csv.gz of the two public cases; a file
#                                  *_levels.csv.gz beside each gives the numbers of levels. Without them these parts are
#                                  skipped.
#   WEFT_BENCH_OUT                 a folder for the figures; the default is the working directory's demo-output.
library(weft)
source("inst/bench/bench.R")

out <- Sys.getenv("WEFT_BENCH_OUT", "demo-output")
dir.create(out, showWarnings = FALSE, recursive = TRUE)
cpu <- if (file.exists("/proc/cpuinfo")) sub(".*: ", "", grep("model name", readLines("/proc/cpuinfo"),
                                                              value = TRUE)[1]) else "unknown CPU"
load <- function() if (file.exists("/proc/loadavg")) strsplit(readLines("/proc/loadavg"), " ")[[1]][1] else "unknown"
cat(sprintf("%s, %d threads, %s, weft %s; load %s (times mean little where it is above the threads asked for)\n", cpu,
            weft_threads(), format(Sys.Date()), utils::packageVersion("weft"), load()))

seconds <- function(f, times = 5) stats::median(replicate(times, system.time(f())[["elapsed"]]))
# Processor time on one thread: what stays comparable when others use the machine.
cpu_seconds <- function(f, times = 5) stats::median(replicate(times, sum(system.time(f())[1:2])))
row <- function(what, value, beside = "") cat(sprintf("%-62s %14s   %s\n", what, value, beside))

picture <- function(name, width) {
  if (capabilities("png")) grDevices::png(file.path(out, paste0(name, ".png")), width, 480, res = 110)
  else grDevices::pdf(file.path(out, paste0(name, ".pdf")), width / 110, 480 / 110)
}

read_case <- function(variable) {
  file <- Sys.getenv(variable)
  if (!nzchar(file)) return(NULL)
  data <- utils::read.csv(file)
  levels <- utils::read.csv(sub("_data", "_levels", file))$levels
  data[] <- Map(function(x, r) factor(x, 0:(r - 1)), data, levels)
  data
}

# ---- the two public cases ----

alarm <- read_case("WEFT_BN_ALARM")
sachs <- read_case("WEFT_BN_SACHS")
if (!is.null(alarm)) {
  whole <- function(...) bn_learn(alarm, 4, iterations = 10000, ...)
  single <- function() whole(chains = 1, control = list(temperatures = 1))
  row("ALARM, s = 4, 10,000 steps, whole call", sprintf("%.3f s", seconds(whole)), "paper: 795 s (GPU), 2,248 s (CPU)")
  row("  the same, one ladder without heated copies", sprintf("%.3f s", seconds(single)))
  row("  of it the score table", sprintf("%.3f s", seconds(function() bn_scores(alarm, 4))), "paper: 634 s")
  row("  processor time on one thread: whole call, table",
      sprintf("%.3f, %.3f s", cpu_seconds(function() whole(run = weft_run(threads = 1))),
              cpu_seconds(function() bn_scores(alarm, 4, run = weft_run(threads = 1)))))
  for (its in c(1e4, 5e4)) {
    took <- processor <- numeric()
    found <- vapply(1:20, function(seed) {
      used <- system.time(fit <- bn_learn(alarm, 4, iterations = its, seed = seed))
      took[seed] <<- used[["elapsed"]]
      processor[seed] <<- sum(used[1:2])
      fit$score
    }, 0)
    row(sprintf("ALARM, %s steps, 20 seeds: how many reach -11346.1695", format(its, big.mark = ",")),
        sum(abs(found + 11346.1695) < 1e-3),
        sprintf("median %.2f s, longest %.2f s; processor time, all threads, median %.2f s; worst %.2f",
                stats::median(took), max(took), stats::median(processor), min(found)))
  }
  table <- bn_scores(alarm, 4, keep = "sum", control = list(slack = 20))
  t <- system.time(bn_learn(table, iterations = 20000, target = "sum", chains = 2,
                            control = list(temperatures = 1, thin = 20000, burn_in = 0)))[["elapsed"]]
  row(sprintf("sum target, ALARM, %s sets: steps per second", format(length(table$score), big.mark = ",")),
      sprintf("%.0f", 40000 / t))
  one <- cpu_seconds(function() bn_learn(table, iterations = 2e4, target = "sum", chains = 1,
                                         run = weft_run(threads = 1),
                                         control = list(temperatures = 1, thin = 2e4, burn_in = 0)), 3)
  row("  of processor time", sprintf("%.0f", 2e4 / one))
}
if (!is.null(sachs)) {
  row("Sachs optimum", sprintf("%.4f", bn_exact(sachs)$score), "known: -7569.8055")
  row("Sachs, 10,000 steps", sprintf("%.4f", bn_learn(sachs, iterations = 10000, seed = 1)$score),
      "paper: 6.28 s (GPU)")
}

# ---- sizes of the paper's table III ----

nodes <- c(13, 15, 17, 20, 25, 30, 35, 40, 45, 50, 55, 60)
paper <- c(0.00024, 0.000574, 0.001223, 0.003384, 0.013076, 0.045229, 0.132726, 0.294657, 0.600787, 1.074849, 1.7365,
           3.267)
paper_gpu <- c(0.000461, 0.000511, 0.000645, 0.001053, 0.002059, 0.005027, 0.012319, 0.027673, 0.056061,
               0.102469, 0.177313, 0.3427)
sizes <- do.call(rbind, lapply(nodes, function(p) {
  data <- random_categories(p)
  prepare <- system.time(table <- bn_scores(data, 4))[["elapsed"]]
  steps <- 5e5
  one <- seconds(function() bn_learn(table, iterations = steps, chains = weft_threads(),
                                     control = list(temperatures = 1)),
                 3) / (steps * weft_threads())
  data.frame(nodes = p, table_seconds = prepare, kept = length(table$score), step_seconds = one)
}))
sizes$paper_cpu <- paper
sizes$paper_gpu <- paper_gpu
print(format(sizes, digits = 3), row.names = FALSE)
sixty <- random_categories(60)
used <- cpu_seconds(function() bn_scores(sixty, 4, run = weft_run(threads = 1)), 3)
row("n = 60: processor time of the table on one thread", sprintf("%.2f s", used))
table <- bn_scores(sixty, 4)
used <- cpu_seconds(function() bn_learn(table, iterations = 2e6, chains = 1, run = weft_run(threads = 1),
                                        control = list(temperatures = 1)), 3)
row("n = 60: steps per second of processor time", sprintf("%.1f M", 2 / used))
row("n = 60: steps per second", format(round(1 / sizes$step_seconds[12]), big.mark = ","), "paper: 3 (GPU)")

picture("bn-sizes", 1100)
graphics::par(mfrow = c(1, 2), mar = c(4.2, 4.6, 2.4, 0.8))
graphics::matplot(nodes, cbind(paper, paper_gpu, sizes$step_seconds), log = "y", type = "b",
                  pch = c(1, 2, 19), lty = 1, col = c("grey50", "grey25", "#2c5f8a"),
                  xlab = "nodes", ylab = "seconds per step", main = "One step, at most 4 parents")
graphics::legend("right", c("paper, CPU", "paper, GPU",
                            sprintf("weft, %d thread%s", weft_threads(), if (weft_threads() > 1) "s" else "")),
                 pch = c(1, 2, 19), col = c("grey50", "grey25", "#2c5f8a"), bty = "n")
graphics::plot(nodes, sizes$table_seconds, log = "y", type = "b", pch = 19, col = "#2c5f8a", xlab = "nodes",
               ylab = "seconds", main = "Score table and pruning")
invisible(grDevices::dev.off())

# ---- limited against all parent sets (table V) ----

limits <- do.call(rbind, lapply(c(11, 17, 20), function(p) {
  data <- random_categories(p)
  do.call(rbind, lapply(c(4, p - 1), function(s) {
    prepare <- seconds(function() bn_scores(data, s), 1)
    table <- bn_scores(data, s)
    run <- seconds(function() bn_learn(table, iterations = 10000, chains = 1, control = list(temperatures = 1)), 3)
    data.frame(nodes = p, parents = if (s == 4) "at most 4" else "all", table_seconds = prepare,
               steps_seconds = run, score = bn_learn(table, iterations = 5000, seed = 1)$score)
  }))
}))
print(format(limits, digits = 3), row.names = FALSE)
picture("bn-limits", 700)
graphics::par(mar = c(4.2, 4.6, 2.4, 0.8))
bars <- matrix(limits$table_seconds + limits$steps_seconds, 2)
graphics::barplot(bars, beside = TRUE, log = "y", names.arg = unique(limits$nodes), col = c("#2c5f8a", "grey70"),
                  xlab = "nodes", ylab = "seconds, table and 10,000 steps")
graphics::legend("topleft", c("at most 4 parents", "all parent sets"), fill = c("#2c5f8a", "grey70"), bty = "n")
invisible(grDevices::dev.off())

# ---- many nodes with candidates ----

wide <- random_categories(1000, 500)
used <- system.time(table <- bn_scores(wide, 4, candidates = 30, control = list(plus_one = FALSE)))
count <- function(x) format(x, big.mark = ",")
row("n = 1,000, 30 candidates each, s = 4: table", sprintf("%.1f s", used[["elapsed"]]),
    sprintf("processor time %.1f s, %s sets scored, %s kept", sum(used[1:2]), count(table$predicted$sets),
            count(length(table$score))))
t <- system.time(fit <- bn_learn(table, iterations = 1e5, chains = 2))[["elapsed"]]
row("  search over it, 100,000 steps, 2 ladders", sprintf("%.1f s", t), sprintf("%d edges", sum(fit$dag)))

# ---- exact optima, and peers ----

if (!is.null(alarm)) {
  for (k in c(20, 24, 27)) {
    used <- system.time(exact <- bn_exact(alarm[seq_len(k)]))
    t <- used[["elapsed"]]
    best <- max(vapply(1:10, function(seed) bn_learn(alarm[seq_len(k)], iterations = 5000, chains = 1,
                                                     seed = seed)$score, 0))
    row(sprintf("exact optimum of %d ALARM variables", k), sprintf("%.2f s", t),
        sprintf("processor time %.2f s; %.4f; best of ten searches %.4f; scored anew %.4f", sum(used[1:2]),
                exact$score, best, bn_score(alarm[seq_len(k)], exact)))
  }
  if (requireNamespace("bnlearn", quietly = TRUE)) {
    for (method in c("hc", "tabu")) {
      t <- system.time(net <- getExportedValue("bnlearn", method)(alarm, score = "bde", iss = 1, maxp = 4))[["elapsed"]]
      row(sprintf("  bnlearn %s", method), sprintf("%.2f s", t), sprintf("best BDeu %.2f", bn_score(alarm, net)))
    }
  }
  if (requireNamespace("BiDAG", quietly = TRUE)) { # BDeu with the same equivalent sample size
    bidag <- asNamespace("BiDAG")
    codes <- as.data.frame(lapply(alarm, function(x) as.integer(x) - 1L))
    t0 <- system.time(parameters <- bidag$scoreparameters("bdecat", codes, bdecatpar = list(chi = 1, edgepf = 1)))
    t <- system.time(fit <- suppressWarnings(bidag$iterativeMCMC(parameters, verbose = FALSE)))
    dag <- as.matrix(fit$DAG)
    row("  BiDAG iterativeMCMC", sprintf("%.2f s", t[["elapsed"]]),
        sprintf("processor time %.2f s, best BDeu %.2f", sum(t[1:2]), bn_score(alarm, (dag != 0) + 0)))
    t <- system.time(fit <- suppressWarnings(bidag$orderMCMC(parameters, MAP = TRUE, chainout = FALSE)))
    row("  BiDAG orderMCMC", sprintf("%.2f s", t[["elapsed"]]),
        sprintf("processor time %.2f s, best BDeu %.2f", sum(t[1:2]), bn_score(alarm, (as.matrix(fit$DAG) != 0) + 0)))
  }
}
