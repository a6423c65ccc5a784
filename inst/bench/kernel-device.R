# Kernel sums on a CUDA device. Arguments:
#   rates      pairs per second of direct sums, by kernel, precision and dimension; beside torch, where python3 has it
#   figure     device against CPU by dimension and size, kd against metric trees by size: a table and a plot of each
#              into the folder WEFT_BENCH_PLOTS; kernel-direct-cuda.csv and kernel-trees-cuda.csv here name their
#              machine
#   draw       the plots again from the tables in that folder
#   call       whole calls of kernel_sum() on clustered and uniform points, and native code alone
#   meshes [SECONDS]   whole calls over points uniform in the unit square, cube or line, 10^4 to 10^8 of them: over a
#              mesh on the CPU and on the device, directly, along a line, and what "auto" takes, beside what plan.c
#              predicts; no row begins later than SECONDS (default 50)
library(weft)
source("inst/bench/bench.R")
machine_line()
if (is.null(weft:::cuda_missing())) print(weft_devices()[c("name", "capability", "processors")])
given <- c(commandArgs(TRUE), "rates")
seconds <- function(work) system.time(work())[["elapsed"]]

# Below R: the points are there already, in the form that native code takes.
sum_points <- function(x, q, kernel, precision, backend = "cuda", h = 0.5) {
  task <- weft:::sums_task(weft:::native_kernel(kernel), h, list(x = q, lo = NULL), list(x = x, lo = NULL),
                           matrix(1, 1L, ncol(x)), leave_one_out = FALSE)
  control <- weft:::run_control(backend)
  if (precision == "double") .Call(weft:::C_weft_kernel_direct, task, control)
  else .Call(weft:::C_weft_kernel_single, task, NULL, precision == "tensor", control)
}
rate <- function(kernel, precision, d, n, nq, backend = "cuda") {
  x <- matrix(runif(n * d), d)
  q <- x[, seq_len(nq), drop = FALSE]
  once <- seconds(function() sum_points(x, q, kernel, precision, backend))
  times <- ceiling(0.05 / max(once, 1e-3)) # the clock counts milliseconds
  n * as.numeric(nq) * times /
    min(replicate(2, seconds(function() for (k in seq_len(times)) sum_points(x, q, kernel, precision, backend))))
}

if (given[1] == "rates") {
  grid <- expand.grid(kernel = c("epanechnikov", "gaussian"), precision = c("double", "single", "tensor"),
                      d = c(2, 4, 10, 20, 32, 64), stringsAsFactors = FALSE)
  grid <- grid[!(grid$precision == "tensor" & grid$d > 36), ]
  grid$pairs_a_second <- mapply(function(k, p, d) rate(k, p, d, 5e5, if (p == "double") 1e5 else 5e5), grid$kernel,
                                grid$precision, grid$d)
  print(format(grid, digits = 3), row.names = FALSE)
  python <- "
import torch, time
torch.manual_seed(1)
def sums(x, q, name):
    square = (q * q).sum(1)[:, None] + (x * x).sum(1)[None, :] - 2 * q @ x.T
    return ((1 - square / 0.25).clamp_(min=0) if name == 'epanechnikov' else torch.exp(square / -0.5)).sum(1)
for d in (4, 10, 32):
    x = torch.rand(500000, d, device='cuda')
    for name in ('epanechnikov', 'gaussian'):
        exact = sums(x.double(), x[:100].double(), name)
        for tf32 in (False, True):
            torch.backends.cuda.matmul.allow_tf32 = tf32
            for r in range(2):
                torch.cuda.synchronize(); t = time.time()
                out = torch.cat([sums(x, q, name) for q in x[:100000].split(4096)])
                torch.cuda.synchronize(); t = time.time() - t
            error = ((out[:100] - exact).abs() / exact).max().item()
            kind = 'tf32' if tf32 else 'fp32'
            print('torch %-12s %s d %2d: %.3g pairs per second, error up to %.1e' % (name, kind, d, 5e10 / t, error))
"
  writeLines(python, script <- tempfile(fileext = ".py"))
  system2("python3", script)
}

if (given[1] == "meshes") {
  until <- proc.time()[[3]] + if (is.na(suppressWarnings(as.numeric(given[2])))) 50 else as.numeric(given[2])
  set.seed(1)
  all <- matrix(runif(3e7), ncol = 3)
  least <- function(work, n) {
    times <- if (n <= 1e6) 3 else if (n <= 1e7) 2 else 1
    tryCatch(min(replicate(times, seconds(work))), error = function(e) { cat(conditionMessage(e), "\n"); NA })
  }
  row_of <- function(d, n, share) {
    x <- all[seq_len(min(n, 1e7)), seq_len(d), drop = FALSE]
    if (n > 1e7) x <- matrix(rep(x, each = n / 1e7), ncol = d) + runif(n, 0, 1e-3)
    h <- share * n^(-1 / (d + 4))
    plan <- function(backend) weft:::mesh_plan(weft:::kernel_problem(x, NULL, NULL, "gaussian", h, rel_error = 1e-4),
                                               backend == "cuda")
    run <- function(method, backend) function() kernel_sum(x, bandwidth = h, rel_error = 1e-4, method = method,
                                                           run = backend)
    there <- plan("cuda")
    here <- plan("cpu")
    problem <- weft:::kernel_problem(x, NULL, NULL, "gaussian", h, rel_error = 1e-4)
    direct <- weft:::cost_of_direct(problem)$cuda
    on_device <- least(run("mesh", "cuda"), n)
    task <- weft:::native_task(problem, NULL, NULL, weft:::split_weights(problem))
    task$reference <- task$query <- list(columns = problem$reference)
    native <- function() .Call(weft:::C_weft_kernel_mesh, task, there$choice, there$target, weft:::run_control("cuda"))
    cat(sprintf("%d %6.0e %.3f | %7.1e %2.0f | %8.4f %8.4f (%7.1e)", d, n, h, there$nodes, there$choice[["width"]],
                on_device, least(native, n), there$seconds),
        sprintf("| %8.4f (%7.1e)", if (here$seconds < 5) least(run("mesh", "cpu"), n) else NA, here$seconds),
        sprintf("| %8.4f (%7.1e)", if (direct < 0.5) least(run("direct", "cuda"), n) else NA, direct),
        sprintf("| %8.4f", if (d == 1 && n <= 1e7) least(run("line", "cpu"), n) else NA))
    said <- ""
    took <- if (n <= 1e7) seconds(function() withCallingHandlers(
      kernel_sum(x, bandwidth = h, rel_error = 1e-4, run = weft_run(verbose = TRUE)),
      message = function(m) { said <<- conditionMessage(m); invokeRestart("muffleMessage") }))
    cat(if (n <= 1e7) sprintf(" | %.4f %s", took, sub("Method: (.*) \\(.*", "\\1", gsub("\n", "", said))), "\n",
        sep = "")
  }
  cat("d n h | nodes width | mesh on the device: call, native (predicted) | on the CPU | direct | line | auto\n")
  invisible(kernel_sum(all[1:1e5, ], bandwidth = 0.1, rel_error = 1e-3, method = "mesh", run = "cuda")) # opens it
  for (n in c(1e6, 1e7, 1e5, 1e4, 1e8)) for (d in 1:3) {
    if (proc.time()[[3]] < until) row_of(d, n, 0.3) else cat("no time left for", d, n, "\n")
  }
}

if (given[1] == "call") {
  set.seed(1)
  # a call of native code alone: points to the device, the grid, the sums, and back
  native <- function(x, kernel, h) {
    problem <- weft:::kernel_problem(x, NULL, NULL, kernel, h, rel_error = 0.1, run = weft:::as_run("cuda"))
    reach <- weft:::grid_reach(problem, nrow(x), 0)
    if (is.null(reach)) return(NA)
    task <- weft:::native_task(problem, NULL, NULL, list(weights = NULL, both = FALSE))
    task["weights"] <- list(NULL)
    task$reference <- task$query <- list(columns = x)
    control <- utils::modifyList(problem$control, list(backend = "cuda"))
    min(replicate(3, seconds(function() .Call(weft:::C_weft_kernel_grid, task, reach, control))))
  }
  # clustered in 50 places; in the last one, as many as the sky survey's and in as many dimensions, a plug-in rule's
  # narrower bandwidth
  cases <- data.frame(d = c(4, 4, 2, 4), n = c(1e5, 1e6, 1e6, 1e7), epanechnikov = c(0.02, 0.01, 0.002, 0.0075),
                      gaussian = c(0.00707, 0.00354, 0.000816, 0.00265))
  for (case in seq_len(nrow(cases))) {
    d <- cases$d[case]
    n <- cases$n[case]
    x <- matrix(runif(50 * d), 50)[sample(50, n, TRUE), ] + matrix(rnorm(n * d, sd = 0.02), n)
    for (kernel in c("epanechnikov", "gaussian")) {
      h <- cases[[kernel]][case]
      run <- function(method) kernel_sum(x, kernel = kernel, bandwidth = h, rel_error = 0.1, method = method,
                                         run = "cuda")
      took <- replicate(4, seconds(function() run("tree")))
      chosen <- replicate(3, seconds(function() run("auto")))
      some <- sample(n, 200)
      there <- kernel_sum(x[some, ], x, kernel = kernel, bandwidth = h, method = "direct", run = "cuda")
      cat(sprintf("%d-D, %g points, %s: %s s; chosen by \"auto\" %s s; native code %.3f s;", d, n, kernel,
                  paste(round(took, 3), collapse = " "), paste(round(chosen, 3), collapse = " "), native(x, kernel, h)),
          sprintf("200 sums off by at most %.2g of themselves\n", max(abs(run("tree")[some] / there - 1))))
    }
  }
  x <- matrix(runif(166912 * 10), 166912)
  for (precision in c("double", "single", "tensor")) {
    run <- function() kernel_sum(x, kernel = "epanechnikov", bandwidth = 0.5, run = "cuda",
                                 control = list(precision = precision))
    cat(sprintf("10-D uniform, 166,912 points, epanechnikov, h = 0.5, %s: %s s\n", precision,
                toString(round(replicate(3, seconds(run)), 3))))
  }
}

# The figures, from what "figure" wrote.
draw <- function(folder) {
  runs <- utils::read.csv(file.path(folder, "kernel-direct-cuda.csv"), comment.char = "#")
  grDevices::png(file.path(folder, "kernel-direct.png"), 1000, 700, res = 120)
  graphics::plot(NULL, xlim = range(runs$d), ylim = range(runs$rate), log = "xy", xlab = "dimensions",
                 ylab = "pairs per second", main = "Direct Gaussian sums in single precision")
  colours <- c(cpu = "#31688e", cuda = "#35b779")
  for (b in unique(runs$backend)) for (k in seq_along(unique(runs$n))) {
    one <- runs[runs$backend == b & runs$n == unique(runs$n)[k], ]
    graphics::lines(one$d, one$rate, type = "b", pch = 14 + k, col = colours[[b]])
  }
  graphics::legend("bottomleft", c(unique(runs$backend), paste(format(unique(runs$n), big.mark = " "), "points")),
                   bty = "n", col = c(colours[unique(runs$backend)], rep("black", 3)),
                   pch = c(rep(NA, length(unique(runs$backend))), 15:17), lty = 1)
  invisible(grDevices::dev.off())

  built <- utils::read.csv(file.path(folder, "kernel-trees-cuda.csv"), comment.char = "#")
  grDevices::png(file.path(folder, "kernel-trees.png"), 1000, 700, res = 120)
  graphics::matplot(built$n, built[-1L], type = "b", log = "xy", pch = 15:18, lty = 1, xlab = "points in 4 dimensions",
                    ylab = "seconds to build", main = "kd against metric trees")
  graphics::legend("topleft", names(built)[-1L], col = 1:4, lty = 1, pch = 15:18, bty = "n")
  invisible(grDevices::dev.off())
}

if (given[1] == "figure") {
  folder <- Sys.getenv("WEFT_BENCH_PLOTS", ".")
  device <- is.null(weft:::cuda_missing())
  runs <- expand.grid(d = c(2, 4, 8, 16, 32, 64), n = c(1e4, 3e4, 1e5), backend = c("cpu", if (device) "cuda"),
                      stringsAsFactors = FALSE)
  runs$rate <- mapply(function(d, n, b) rate("gaussian", "single", d, n, if (b == "cpu") 1e4 else n, b), runs$d, runs$n,
                      runs$backend)
  utils::write.csv(transform(runs, rate = signif(rate, 4)), file.path(folder, "kernel-direct-cuda.csv"),
                   row.names = FALSE)
  sizes <- c(3e4, 1e5, 3e5, 1e6)
  built <- sapply(c(kd = "kd", ball = "ball", vp = "vp", rp = "rp"), function(type) sapply(sizes, function(n) {
    x <- matrix(runif(n * 4), ncol = 4)
    min(replicate(2, kernel_tree(x, type)$seconds))
  }))
  utils::write.csv(data.frame(n = sizes, signif(built, 3)), file.path(folder, "kernel-trees-cuda.csv"),
                   row.names = FALSE)
  draw(folder)
}
if (given[1] == "draw") draw(Sys.getenv("WEFT_BENCH_PLOTS", "."))
