# Speed-up over the CPU against the number of samples and of attributes: information of single attributes (mi_rank) and
# of pairs (mi_pairs) about a class. CPU and device in the same run, binary data, whole calls from an integer matrix in
# R.
#   Rscript mi-figures.R [DIR]           measures, writes DIR/mi-figures.csv and the figures (DIR: the working
#                                        directory)
#   Rscript mi-figures.R [DIR] FILE.csv  draws stored timings
library(weft)
source("inst/bench/bench.R")
arguments <- commandArgs(TRUE)
stored <- grep("[.]csv$", arguments, value = TRUE)
dir <- c(setdiff(arguments, stored), ".")[1]

# Seconds of one shape: the plain C loop of one thread (pairs: of at most 400 attributes, scaled), weft on one thread,
# on all, and on the device; medians of five, and the spread of the device's.
measure <- function(work, x, class, of) {
  n <- nrow(x)
  p <- ncol(x)
  clock <- function(f, times) vapply(seq_len(times), function(k) system.time(f())[["elapsed"]], 0)
  run <- function(backend, threads = NULL) function() work(x, class, run = weft_run(backend, threads = threads))
  if (identical(work, mi_rank)) {
    naive <- stats::median(clock(function() for (k in 1:5) .Call("naive_counts", x, class), 3)) / 5
  } else {
    some <- x[, seq_len(min(p, 400)), drop = FALSE]
    naive <- clock(function() .Call("naive_pairs", some, class, 2L), 1) * choose(p, 2) / choose(ncol(some), 2)
  }
  long <- naive > 4
  device <- clock(run("cuda"), 5)
  data.frame(of = of, n = n, p = p, naive = naive,
             one_thread = stats::median(clock(run("cpu", 1L), if (long) 1 else 3)),
             all_threads = stats::median(clock(run("cpu"), if (long) 3 else 5)), device = stats::median(device),
             device_least = min(device),
             device_most = max(device))
}

if (length(stored)) {
  x <- utils::read.csv(stored[1], comment.char = "#")
  where <- sub("[.]csv$", "", basename(stored[1]))
} else {
  load_naive()
  machine_line()
  cat(sprintf("%d threads\n", weft_threads()))
  set.seed(1)
  whole <- matrix(sample.int(2L, 1e4 * 5e3, TRUE) - 1L, 1e4)
  wide <- matrix(sample.int(2L, 1e3 * 1e4, TRUE) - 1L, 1e3)
  class <- sample.int(2L, 1e4, TRUE) - 1L
  for (work in list(mi_rank, mi_pairs)) invisible(work(whole[1:100, 1:50], class[1:100], run = "cuda"))
  rows <- list()
  for (n in c(1, 2, 4, 6, 8, 10) * 1000) {
    part <- whole[seq_len(n), ]
    rows[[length(rows) + 1L]] <- measure(mi_rank, part, class[seq_len(n)], "single")
    rows[[length(rows) + 1L]] <- measure(mi_pairs, part[, 1:2000], class[seq_len(n)], "pairs")
  }
  for (p in c(1, 2, 4, 6, 8, 10) * 1000) {
    part <- wide[, seq_len(p)]
    rows[[length(rows) + 1L]] <- measure(mi_rank, part, class[1:1000], "single")
    rows[[length(rows) + 1L]] <- measure(mi_pairs, part, class[1:1000], "pairs")
  }
  x <- do.call(rbind, rows)
  x[-(1:3)] <- signif(x[-(1:3)], 4)
  utils::write.csv(x, file.path(dir, "mi-figures.csv"), row.names = FALSE)
  utils::write.csv(x, row.names = FALSE)
  where <- sub(",.*", "", weft_devices()$name[1])
}

# Two panels: seconds, and how many times faster the device is.
draw <- function(x, by, title, file) {
  x <- x[order(x[[by]]), ]
  x <- x[!duplicated(x[[by]]), ]
  lines_of <- c(naive = "grey60", one_thread = "#c2683c", all_threads = "black", device = "#2c5f8a")
  words <- c(naive = "plain C loop, 1 thread", one_thread = "weft, 1 thread", all_threads = "weft, all threads",
             device = "weft, device")
  grDevices::png(file, 1300, 560, res = 110)
  old <- graphics::par(mfrow = c(1, 2), mar = c(4, 6, 3, 1), mgp = c(4.4, 0.8, 0))
  label <- c(n = "samples", p = "attributes")[[by]]
  graphics::plot(NULL, xlim = range(x[[by]]), ylim = range(x[names(lines_of)]) * c(1, 4), log = "y", las = 1, xlab = "",
                 ylab = "seconds, whole call", main = title)
  for (name in names(lines_of)) graphics::lines(x[[by]], x[[name]], col = lines_of[[name]], type = "b", pch = 16)
  graphics::mtext(label, side = 1, line = 2.5)
  graphics::legend("topleft", bty = "n", lty = 1, pch = 16, col = lines_of, legend = words, ncol = 2, cex = 0.8)
  speed <- x[names(lines_of)[1:3]] / x$device
  graphics::plot(NULL, xlim = range(x[[by]]), ylim = range(speed, 1) * c(1, 3), log = "y", las = 1, xlab = "",
                 ylab = "device, times as fast as", main = where)
  graphics::abline(h = 1, col = "grey85")
  for (name in names(speed)) graphics::lines(x[[by]], speed[[name]], col = lines_of[[name]], type = "b", pch = 16)
  graphics::mtext(label, side = 1, line = 2.5)
  graphics::legend("topleft", bty = "n", lty = 1, pch = 16, col = lines_of[1:3], legend = words[1:3], cex = 0.8)
  graphics::par(old)
  grDevices::dev.off()
}
single <- x[x$of == "single", ]
pairs <- x[x$of == "pairs", ]
draw(single[single$p == 5000, ], "n", "Single attributes, 5,000 attributes", file.path(dir, "mi-figure-3.png"))
draw(single[single$n == 1000 & single$p != 5000, ], "p", "Single attributes, 1,000 samples",
     file.path(dir, "mi-figure-4.png"))
draw(pairs[pairs$n == 1000, ], "p", "Pairs of attributes, 1,000 samples", file.path(dir, "mi-figure-5.png"))
draw(pairs[pairs$p == 2000, ], "n", "Pairs of 2,000 attributes", file.path(dir, "mi-figure-5-samples.png"))
