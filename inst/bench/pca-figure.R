# The figure of the paper on GS-PCA: M from 500 to 15,000 rows, N = M / 2 columns, K = 10, epsilon 1e-7, its own test
# for stopping.
#   Rscript pca-figure.R run cuda|cpu out.csv [whole]   times nipals, gs and the default; up to M = `whole` (4,000) to
#                                                       the end, gs on a
#                                                      device always; beyond it 20 iterations a component
#   Rscript pca-figure.R draw out.png one.csv two.csv  draws what was timed
# Stored: pca-figure-cuda.csv, which names its machine; pca-figure-cpu.csv, one thread of a Xeon (AVX-512) that was busy
# with other work.
args <- commandArgs(TRUE)

one_run <- function(x, m, method, backend, whole) {
  paper <- method != "auto"
  to_the_end <- m <= whole || (method == "gs" && backend == "cuda")
  most <- if (paper) { if (to_the_end) 10000 else 20 }
  time <- system.time(fit <- suppressWarnings(weft::pca(x, 10, method = method, seed = 1, run = backend,
                                                        control = list(stop = if (paper) "paper" else "residual",
                                                                       tolerance = if (paper) 1e-7,
                                                                       max_iterations = most))))
  # on a busy machine the time of processors says more than the clock
  seconds <- if (backend == "cpu") (time[["user.self"]] + time[["sys.self"]]) / weft::weft_threads() else fit$seconds
  data.frame(backend = backend, m = m, method = method, seconds = seconds, clock = fit$seconds,
             iterations = sum(fit$iterations),
             ms_each = 1000 * seconds / sum(fit$iterations), residual = max(fit$residual),
             finished = all(fit$converged),
             date = format(Sys.Date()))
}

run <- function(backend, out, whole) {
  rows <- NULL
  for (m in c(500, 1000, 2000, 4000, 7500, 11000, 15000)) {
    set.seed(m)
    x <- matrix(stats::runif(m * m / 2), m)
    if (backend == "cuda") x <- weft::weft_upload(x)
    # the start of the device and its libraries is no part of it
    if (backend == "cuda" && m == 500) for (method in c("gs", "auto")) one_run(x, m, method, backend, 0)
    now <- do.call(rbind, lapply(c("nipals", "gs", "auto"), function(method) one_run(x, m, method, backend, whole)))
    if (backend == "cuda") weft::weft_free(x)
    rows <- rbind(rows, now)
    print(now, row.names = FALSE)
    utils::write.csv(rows, out, row.names = FALSE)
  }
}

draw <- function(out, files) {
  x <- do.call(rbind, lapply(files, utils::read.csv, comment.char = "#"))
  colors <- c(nipals = "grey55", gs = "black", auto = "#2c5f8a")
  lines_of <- c(cpu = 2, cuda = 1)
  panel <- function(value, keep, main, ylab) {
    some <- x[keep, ]
    graphics::plot(NULL, xlim = range(x$m), ylim = range(some[[value]]) * c(1, 30), log = "xy", las = 1, main = main,
                   ylab = "", xlab = "rows M (columns M / 2, K = 10)")
    graphics::mtext(ylab, side = 2, line = 4)
    for (backend in unique(some$backend)) for (method in names(colors)) {
      one <- some[some$backend == backend & some$method == method, ]
      if (!nrow(one)) next
      graphics::lines(one$m, one[[value]], col = colors[[method]], lty = lines_of[[backend]], lwd = 2)
      graphics::points(one$m, one[[value]], col = colors[[method]], pch = ifelse(one$finished, 16, 1))
    }
    graphics::legend("topleft", bty = "n", cex = 0.8, col = colors, lwd = 2, legend = c(
      "NIPALS, epsilon 1e-7", "GS-PCA, epsilon 1e-7", "default, residual 1e-12"))
    graphics::legend("bottomright", bty = "n", cex = 0.8, lty = lines_of, lwd = 2, legend = c("CPU", "device"))
  }
  grDevices::png(out, 1500, 700, res = 130)
  graphics::par(mfrow = c(1, 2), mar = c(4.5, 5.5, 2.5, 1))
  panel("seconds", x$method == "auto" | x$finished, "to the end", "seconds (CPU: of one processor)")
  panel("ms_each", x$method != "auto", "an iteration", "ms")
  grDevices::dev.off()
}

if (args[1] == "run") run(args[2], args[3], if (length(args) > 3) as.numeric(args[4]) else 4000)
if (args[1] == "draw") draw(args[2], args[-(1:2)])
