# Draws the stored timings of the paper's figure 1 (pca-figure-h200.csv: one NVIDIA H200, 2026-11-21, made by
# `Rscript pca-device.R figure`). Rscript pca-figure.R [out.png]
out <- c(commandArgs(TRUE), "pca-figure.png")[1]
x <- utils::read.csv(Sys.glob(c("inst/bench/pca-figure-h200.csv", system.file("bench", "pca-figure-h200.csv", package = "weft")))[1])
colors <- c(nipals = "grey60", gs = "black", auto = "#2c5f8a")
grDevices::png(out, 900, 700, res = 130)
graphics::plot(NULL, xlim = range(x$m), ylim = range(x$seconds) * c(1, 6), log = "xy", las = 1, xlab = "rows M (columns M / 2, K = 10)",
               ylab = "seconds, matrix on the device", main = "NVIDIA H200")
for (method in names(colors)) {
  one <- x[x$method == method, ]
  graphics::lines(one$m, one$seconds, col = colors[method])
  graphics::points(one$m, one$seconds, col = colors[method], pch = ifelse(one$finished, 16, 1))
}
graphics::legend("topleft", bty = "n", lty = 1, pch = 16, col = colors,
                 legend = c("NIPALS, epsilon 1e-7", "GS-PCA, epsilon 1e-7", "default, residual 1e-12"))
graphics::mtext("open: stopped at 600 iterations a component", side = 1, line = 4, adj = 1, cex = 0.7)
grDevices::dev.off()
