# Bayesian networks on a device: whole calls from R beside what the device could do at best. Floors are counted
# operations and bytes over rates measured on an H200: 5,145 T bit operations per second of the 1-bit matrix units
# (mma.sync), 4,311 GB/s of device memory; a gather of f is a load of 8 bytes by each lane, at best one instruction a
# cycle and multiprocessor.
#
#   WEFT_BN_ALARM   file alarm_data.csv.gz of the public case, alarm_levels.csv.gz beside it; without it these rows are
#                   left out.
library(weft)
source("inst/bench/bench.R")

device <- weft_devices()
stopifnot(nrow(device) > 0)
cat(sprintf("%s, %d CPU threads, %s, weft %s\n", device$name[1], weft_threads(), format(Sys.Date()),
            utils::packageVersion("weft")))
seconds <- function(f, times = 3) { f(); stats::median(replicate(times, system.time(f())[["elapsed"]])) }
row <- function(what, value, beside = "") cat(sprintf("%-62s %12s   %s\n", what, value, beside))

clock_rate <- 1.755e9
bits_rate <- 5.145e15
gather_rate <- 32 * device$processors[1] * clock_rate

# ---- score tables ----

for (p in c(60, 125)) {
  data <- random_categories(p)
  t <- seconds(function() bn_scores(data, 4, run = "cuda"))
  table <- bn_scores(data, 4, run = "cuda")
  cells <- sum(choose(p, 0:5) * 3^(0:5)) # of all sets, each counted once
  row(sprintf("n = %d, s = 4, table", p), sprintf("%.3f s", t),
      sprintf("%.3g parent sets, %.3g counted, %d kept; floor %.4f s counting, %.4f s f", table$predicted$sets,
              sum(choose(p, 0:5)), length(table$score), cells * 1024 / bits_rate, cells / gather_rate))
  if (p == 60) {
    cpu <- system.time(there <- bn_scores(data, 4, run = "cpu"))[["elapsed"]]
    row("  the same on the CPU", sprintf("%.3f s", cpu),
        if (identical(there[c("start", "score", "parents")],
                      table[c("start", "score", "parents")])) "same table" else "OTHER TABLE")
  }
}
wide <- random_categories(1000, 500)
candidates <- matrix(0, 1000, 1000, dimnames = list(names(wide), names(wide)))
for (i in 1:1000) candidates[sample(setdiff(1:1000, i), 30), i] <- 1
t <- seconds(function() bn_scores(wide, 4, candidates = candidates, run = "cuda", control = list(plus_one = FALSE)))
cells <- 1000 * sum(choose(30, 0:4) * 3^(0:4)) * 4 # parents, and with the child
row("n = 1,000, 30 given candidates each, s = 4, table", sprintf("%.3f s", t),
    sprintf("floor %.4f s counting, %.4f s f", cells * 512 / bits_rate, cells / gather_rate))
t <- system.time(table <- bn_scores(wide, 4, candidates = 30, run = "cuda",
                                    control = list(plus_one = FALSE)))[["elapsed"]]
row("  candidates screened (on the CPU), table", sprintf("%.3f s", t), sprintf("%d kept", length(table$score)))
t <- system.time(with_outsiders <- bn_scores(wide, 4, candidates = 30, run = "cuda"))[["elapsed"]]
row("  and one outsider a set (tried on the CPU)", sprintf("%.3f s", t),
    sprintf("%d kept", length(with_outsiders$score)))

# ---- chains ----

# A run beside a shorter one: without starting and fetching.
steps <- function(what, table, target, chains, iterations, temperatures, beside = "") {
  run <- function(its) {
    system.time(bn_learn(table, iterations = its, chains = chains, target = target, seed = 1, run = "cuda",
                         control = list(temperatures = temperatures, thin = its, burn_in = 0)))[["elapsed"]]
  }
  run(10)
  short <- min(run(iterations / 4), run(iterations / 4))
  whole <- min(run(iterations), run(iterations))
  row(what, sprintf("%.3g /s", chains * length(temperatures) * 0.75 * iterations / (whole - short)),
      sprintf("whole call %.2f s %s", whole, beside))
}
table <- bn_scores(random_categories(60), 4, run = "cuda")
for (chains in c(1, 512, 4096, 16384, 32768)) steps(sprintf("steps/s, max, n = 60, %d chains", chains), table, "max",
                                                    chains, 16e4, 1)
steps("steps/s, max, n = 60, 1,024 ladders of 4", table, "max", 1024, 4e4, c(1, 2, 4, 8))
steps("steps/s, max, n = 125, 4,096 chains", bn_scores(random_categories(125), 3, run = "cuda"), "max", 4096, 8e4,
      1)

for (ladders in c(4, 64, 1024)) {
  its <- if (ladders < 1000) 20000 else 2000
  t <- system.time(fit <- bn_learn(with_outsiders, iterations = its, chains = ladders, seed = 1, run = "cuda",
                                   control = list(thin = its / 10)))[["elapsed"]]
  row(sprintf("n = 1,000, %s steps of %d ladders of 4, whole call", format(its, big.mark = ","), ladders),
      sprintf("%.2f s", t), sprintf("%.3g steps/s, %d edges, %.2f", its * 4 * ladders / t, sum(fit$dag), fit$score))
}
t <- system.time(fit <- bn_learn(with_outsiders, iterations = 20000, chains = 4, seed = 1, run = "cpu",
                                 control = list(thin = 2000)))[["elapsed"]]
row("  4 ladders on the CPU", sprintf("%.2f s", t),
    sprintf("%.3g steps/s, %d edges, %.2f", 32e4 / t, sum(fit$dag), fit$score))

file <- Sys.getenv("WEFT_BN_ALARM")
if (nzchar(file)) {
  alarm <- utils::read.csv(file)
  levels <- utils::read.csv(sub("_data", "_levels", file))$levels
  alarm[] <- Map(function(x, r) factor(x, 0:(r - 1)), alarm, levels)
  row("ALARM, s = 4, table", sprintf("%.4f s", seconds(function() bn_scores(alarm, 4, run = "cuda"))))
  t <- seconds(function() bn_learn(alarm, 4, iterations = 10000, run = "cuda"))
  row("ALARM, s = 4, 10,000 steps, whole call", sprintf("%.3f s", t))
  took <- numeric()
  best <- vapply(1:20, function(seed) {
    took[seed] <<- system.time(fit <- bn_learn(alarm, 4, iterations = 20000, chains = 512, seed = seed, run = "cuda",
                                               control = list(temperatures = c(1, 2, 4), thin = 2000)))[["elapsed"]]
    fit$score
  }, 0)
  row("ALARM, 20,000 steps of 512 ladders of 3: seeds at -11346.1695",
      sprintf("%d of 20", sum(abs(best + 11346.1695) < 1e-3)),
      sprintf("median %.2f s, longest %.2f s, worst score %.3f", stats::median(took), max(took), min(best)))
  table <- bn_scores(alarm, 4, keep = "sum", run = "cuda", control = list(slack = 20))
  for (chains in c(64, 4096, 16384)) {
    steps(sprintf("steps/s, sum, ALARM, %s sets, %d chains", format(length(table$score), big.mark = ","), chains),
          table, "sum", chains, if (chains > 5000) 1500 else 6000, 1)
  }
}

# ---- exact optimum ----

for (p in c(20, 27, 30, 32)) {
  table <- bn_scores(random_categories(p), 4, run = "cuda")
  t <- seconds(function() bn_exact(table, run = "cuda"), 1)
  # every subset once to and from memory, and the smaller subsets that lie outside a block of 1,024
  bytes <- 8 * 2^p * (1 + max(0, p - 10) / 2)
  row(sprintf("exact optimum, n = %d", p), sprintf("%.3f s", t),
      sprintf("floor %.4f s of memory traffic", bytes / 4.311e12))
}
