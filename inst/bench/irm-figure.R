# The speed-up of the device over the CPU against links and against clusters, from what irm-device.R figure wrote.
# irm-figure-cuda.csv names its machine. Rscript irm-figure.R [out.png] [irm-figure.csv]
given <- commandArgs(TRUE)
seen <- utils::read.csv(c(given[-1], "inst/bench/irm-figure-cuda.csv")[1], comment.char = "#")
grDevices::png(c(given, "irm-figure.png")[1], 1000, 450, res = 110)
graphics::par(mfrow = c(1, 2), mar = c(4, 4, 2, 1))
panel <- function(rows, by, label, title) {
  rows <- rows[order(rows[[by]]), ]
  gain <- cbind(rows$cpu_one_thread, rows$cpu) / rows$cuda
  graphics::matplot(rows[[by]], gain, log = "xy", type = "b", pch = c(16, 1), lty = 1, col = c("#2c5f8a", "#c0392b"),
                    xlab = label, ylab = "times faster on the device", main = title, ylim = range(1, gain))
  graphics::legend("bottomright", c("than one thread", sprintf("than %d threads", rows$threads[1])), pch = c(16, 1),
                   lty = 1, col = c("#2c5f8a", "#c0392b"), bty = "n")
}
panel(seen[seen$clusters == 128, ], "links", "links", "128 clusters a mode")
panel(seen[seen$links == 1e6, ], "clusters", "clusters a mode", "a million links")
invisible(grDevices::dev.off())
