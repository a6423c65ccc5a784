# The regret of a choice that weft makes by itself: the time of "auto" over that of the best of the named ones, for
# whole calls, on at least six sizes and kinds of data for each function that chooses. On a machine with a device the
# choice is the back end; everywhere it is the method (direct sums and trees, the engines of pca()). All are called once
# to warm up and then in turn, --rounds times or until .15 seconds of each have gone (.9 while "auto" is above 1.3, as
# machines pause); the least time counts. Of a cell where one of the choices takes more than 1.5 seconds only those
# below .15 are called again, unless --large is given.
#
# Usage: Rscript auto.R [cpu | devices] [--large] [--processor] [--seconds 140] [--rounds 15] [--csv auto.csv]
#                       [--only name]
#        Rscript auto.R --summary auto.csv
# `cpu` leaves devices alone. --processor: one thread, and its processor time, for a machine with other work; cells
# below 5 ms are then too short. `devices` compares one device with all that the machine has, where functions take them:
# the default there is `devices = "all"`, which takes as many as pay (R/plan.R).
# Smaller sizes of all functions come first: when the time is up, the largest are missing. --summary reads a file and
# prints the share of cells up to 1.3, the worst ones, and where predictions were wrong by more than a factor of two.
# --csv writes the cells, with the machine and the day in the first line; auto-cuda.csv and auto-cpu.csv are such files,
# from which the vignette on benchmarks makes its tables and figures.
library(weft)
source("inst/bench/bench.R")

# ---- what is called ----

levels_of <- function(n, p, levels) matrix(sample.int(levels, n * p, TRUE) - 1L, n)
normal <- function(n, p) matrix(stats::rnorm(n * p), n)
spread <- function(n, d) { # points around fifty centres
  centres <- matrix(stats::runif(50 * d), 50)
  centres[sample(50, n, TRUE), , drop = FALSE] + normal(n, d) * 0.05
}
sparse <- function(n, p, share) Matrix::rsparsematrix(n, p, share)
information <- function(p) { # symmetric, of the size that real ones have
  m <- abs(tcrossprod(normal(p, 8))) / 20
  diag(m) <- 0
  dimnames(m) <- list(seq_len(p), seq_len(p))
  m
}
factors <- function(n, p, levels) {
  as.data.frame(lapply(as.data.frame(levels_of(n, p, levels)), factor, levels = seq_len(levels) - 1L))
}
text_of <- function(...) paste(format(c(...), trim = TRUE, scientific = FALSE, drop0trailing = TRUE), collapse = " x ")

# One cell: data are made when it is run.
cell <- function(name, size, make, run, choices = c("cpu", "cuda"), by = "backend") {
  list(name = name, size = size, make = make, run = run, choices = choices, by = by)
}
cells_over <- function(name, table, make, run, ..., label = NULL) {
  lapply(seq_len(nrow(table)), function(k) {
    row <- as.list(table[k, , drop = FALSE])
    cell(name, label %||% text_of(unlist(row)), function() do.call(make, row), run, ...)
  })
}
sizes <- function(names, ...) stats::setNames(as.data.frame(do.call(rbind, list(...))), names)
with_class <- function(x) list(x = x, class = sample(0:1, nrow(x), TRUE))
mi <- function(n, p, levels) with_class(levels_of(n, p, levels))

all_cells <- function() {
  points <- sizes(c("n", "d", "h"), c(2000, 2, 0.1), c(20000, 2, 0.1), c(20000, 10, 1), c(100000, 2, 0.01),
                  c(50000, 5, 0.3), c(200000, 1, 0.01), c(300000, 2, 0.1), c(1000000, 2, 0.1))
  sums <- function(kernel, rel) function(x, ...) {
    kernel_sum(x$x, kernel = kernel, bandwidth = x$h, rel_error = rel, ...)
  }
  make_points <- function(n, d, h) list(x = spread(n, d), h = h)
  decompositions <- sizes(c("n", "p", "k"), c(200, 200, 5), c(4000, 2000, 10), c(500, 20000, 10), c(20000, 300, 10),
                          c(2000, 2000, 100), c(100000, 50, 5), c(1000, 5000, 5), c(50000, 1000, 20))
  more_decompositions <- sizes(c("n", "p", "k"), c(500, 1000, 10), c(300, 5000, 3), c(1000, 1000, 50),
                               c(3000, 1500, 30), c(5000, 200, 20), c(800, 800, 5))
  make_dense <- function(n, p, k) list(x = tcrossprod(normal(n, 5), normal(p, 5)) + normal(n, p), k = k)
  list(
    cells_over("mi_pairs", sizes(c("n", "p", "levels"), c(100, 200, 2), c(1000, 1000, 2), c(500, 5000, 2),
                                 c(10000, 1000, 2), c(500, 2000, 3), c(2000, 1000, 10), c(1000, 10000, 2),
                                 c(100000, 500, 3)), mi,
               function(x, ...) mi_pairs(x$x, x$class, top = 100, ...)),
    cells_over("mi_triples", sizes(c("n", "p", "levels"), c(100, 50, 2), c(500, 150, 2), c(1000, 300, 2),
                                   c(5000, 150, 2), c(500, 150, 3), c(1000, 100, 4), c(1000, 500, 2)), mi,
               function(x, ...) mi_triples(x$x, x$class, top = 100, ...)),
    cells_over("mi_rank, 200 permutations", sizes(c("n", "p", "levels"), c(100, 100, 2), c(500, 2000, 2),
                                                  c(500, 20000, 2), c(10000, 500, 2), c(500, 5000, 3),
                                                  c(2000, 2000, 10), c(2000, 20000, 3)), mi,
               function(x, ...) mi_rank(x$x, x$class, permutations = 200, seed = 1, ...)),
    cells_over("mi_matrix, counts", sizes(c("n", "p", "levels"), c(100, 100, 3), c(200, 1000, 3), c(500, 3000, 3),
                                          c(5000, 500, 2), c(500, 1000, 10), c(20000, 300, 3), c(300, 6000, 3)),
               function(n, p, levels) levels_of(n, p, levels), function(x, ...) mi_matrix(x, ...)),
    cells_over("mi_matrix, spearman", sizes(c("n", "p"), c(50, 200), c(200, 1000), c(200, 4000), c(2000, 1000),
                                            c(500, 6000), c(20000, 300), c(100, 10000)), normal,
               function(x, ...) mi_matrix(x, estimator = "spearman", ...)),
    cells_over("mi_matrix, ksg", sizes(c("n", "p"), c(50, 20), c(100, 100), c(500, 50), c(200, 200), c(2000, 20),
                                       c(500, 150)), normal,
               function(x, ...) mi_matrix(x, estimator = "ksg", ...)),
    cells_over("mi_matrix, kendall", sizes(c("n", "p"), c(50, 50), c(100, 500), c(200, 1000), c(500, 300),
                                           c(1000, 200), c(100, 3000)),
               normal, function(x, ...) mi_matrix(x, estimator = "kendall", ...)),
    unlist(lapply(c("aracne", "mrnet", "mrnetb"), function(method) {
      p <- switch(method, mrnetb = c(50, 200, 500, 1000, 1500, 2000), c(100, 300, 1000, 2000, 3000, 5000))
      cells_over(paste0("mi_network, ", method), sizes("p", p[1], p[2], p[3], p[4], p[5], p[6]), information,
                 function(x, ...) mi_network(x, method = method, ...))
    }), recursive = FALSE),
    cells_over("regulation", sizes(c("n", "p", "r"), c(40, 50, 5), c(100, 200, 20), c(200, 500, 50), c(500, 300, 100),
                                   c(100, 2000, 50), c(300, 1000, 200)),
               function(n, p, r) {
                 x <- normal(n, p)
                 dimnames(x) <- list(sprintf("s%d", 1:n), sprintf("g%d", 1:p))
                 list(x = x, r = r)
               }, function(x, ...) regulation(x$x, regulators = seq_len(x$r), seed = 1, ...)),
    cells_over("pca", decompositions, make_dense, function(x, ...) pca(x$x, x$k, seed = 1, ...)),
    cells_over("pca, sparse", sizes(c("n", "p", "share"), c(2000, 1000, 0.05), c(20000, 2000, 0.02),
                                    c(5000, 20000, 0.01), c(100000, 500, 0.02), c(50000, 5000, 0.01),
                                    c(1000, 1000, 0.3), c(50000, 3000, 0.01)), sparse,
               function(x, ...) pca(x, 10, seed = 1, ...)),
    cells_over("pca, engines", rbind(utils::head(decompositions, 7), more_decompositions), make_dense,
               function(x, ...) pca(x$x, x$k, seed = 1, run = "cpu", ...), choices = c("krylov", "gram"),
                 by = "method"),
    cells_over("bn_scores", sizes(c("n", "p", "parents"), c(100, 8, 2), c(500, 20, 3), c(1000, 40, 3), c(5000, 20, 3),
                                  c(500, 60, 3), c(2000, 25, 4)),
               function(n, p, parents) list(x = factors(n, p, 3), parents = parents),
               function(x, ...) bn_scores(x$x, max_parents = x$parents, ...)),
    cells_over("bn_scores, bge", sizes(c("n", "p", "parents"), c(100, 8, 2), c(500, 20, 3), c(1000, 40, 3),
                                       c(5000, 20, 3), c(500, 60, 3), c(2000, 25, 4)),
               function(n, p, parents) list(x = as.data.frame(normal(n, p)), parents = parents),
               function(x, ...) bn_scores(x$x, score = "bge", max_parents = x$parents, ...)),
    unlist(lapply(c("sum", "max"), function(target) {
      cells_over(paste0("bn_learn, ", target), sizes(c("p", "chains", "iterations"), c(8, 1, 1000), c(20, 4, 5000),
                                                     c(40, 4, 5000),
                                                     c(20, 64, 5000), c(60, 16, 2000), c(30, 500, 1000)),
                 function(p, chains, iterations) {
                   list(table = bn_scores(factors(500, p, 3), max_parents = 3, keep = target), chains = chains,
                        iterations = iterations)
                 }, function(x, ...) {
                   bn_learn(x$table, target = target, chains = x$chains, iterations = x$iterations, seed = 1, ...)
                 })
    }), recursive = FALSE),
    cells_over("bn_exact", sizes(c("n", "p"), c(200, 8), c(200, 14), c(200, 18), c(200, 20), c(200, 22), c(500, 16)),
               function(n, p) bn_scores(factors(n, p, 3), max_parents = 3), function(x, ...) bn_exact(x, ...)),
    cells_over("irm", sizes(c("rows", "columns", "share"), c(100, 100, 0.1), c(500, 500, 0.05), c(2000, 2000, 0.01),
                            c(5000, 500, 0.02), c(10000, 10000, 0.001), c(1000, 20000, 0.005)),
               function(rows, columns, share) irm_sample(rows, columns, 8, density = share, seed = 1)$A,
               function(x, ...) irm(x, chains = 2, sweeps = 30, seed = 1, ...)),
    cells_over("kernel_sum, gaussian", points, make_points, sums("gaussian", 0.01)),
    cells_over("kernel_sum, epanechnikov", points, make_points, sums("epanechnikov", 0.1)),
    cells_over("kernel_sum, all pairs", points[c(1:3, 5), ], make_points, sums("gaussian", 0)),
    # rel_error 1e-4 and a bandwidth for each dimension, as kde() has them; the best of the named methods
    cells_over("kernel_sum, as kde()", sizes(c("n", "d"), c(5000, 1), c(5000, 2), c(20000, 3), c(100000, 2)),
               function(n, d) {
                 x <- normal(n, d) * rep(seq_len(d), each = n)
                 list(x = x, h = kde(x)$bandwidth)
               }, function(x, ...) kernel_sum(x$x, bandwidth = x$h, rel_error = 1e-4, run = "cpu", ...),
               choices = c("direct", "tree", "mesh"), by = "method"),
    # beside the same points in bandwidths
    cells_over("kde, default", sizes(c("n", "d"), c(20000, 2), c(100000, 2), c(1000000, 2), c(50000, 3)),
               function(n, d) {
                 x <- normal(n, d) * rep(seq_len(d), each = n)
                 density <- kde(x)
                 list(density = density, x = x / rep(density$bandwidth, each = n))
               }, function(x, method = "auto") {
                 if (method == "auto") return(stats::predict(x$density, run = "cpu"))
                 if (method == "as it is") return(stats::predict(kde(x$x, 1), run = "cpu"))
                 kernel_sum(x$x, bandwidth = 1, rel_error = 1e-4, method = method, run = "cpu")
               }, choices = c("as it is", "mesh"), by = "method"),
    cells_over("kernel_sum, trees", points[1:6, ], make_points,
               function(x, ...) kernel_sum(x$x, bandwidth = x$h, rel_error = 0.01, run = "cpu", ...),
                 choices = c("direct", "tree"),
               by = "method"),
    cells_over("kernel_sum, few queries", sizes(c("n", "d", "h"), c(30000, 2, 0.1), c(300000, 2, 0.1)),
               function(n, d, h) list(x = normal(n, d), h = h),
               function(x, ...) kernel_sum(x$x[1:150, ], x$x, kernel = "epanechnikov", bandwidth = x$h,
                                           rel_error = 0.01, run = "cpu", ...),
               choices = c("direct", "tree"), by = "method"),
    cells_over("kernel_sum, many dimensions", sizes(c("n", "d"), c(10000, 5), c(5000, 10), c(10000, 10)),
               function(n, d) {
                 x <- normal(n, d)
                 list(x = x, h = kde(x)$bandwidth)
               }, function(x, ...) kernel_sum(x$x, bandwidth = x$h, rel_error = 1e-4, run = "cpu", ...),
               choices = c("direct", "tree"), by = "method"),
    cells_over("kernel_sum, 10-D", sizes(c("n", "d", "h"), c(10000, 10, 0.5), c(20000, 10, 0.5), c(20000, 10, 0.8)),
               function(n, d, h) list(x = matrix(stats::runif(n * d), n), h = h),
               function(x, method) {
                 kernel_sum(x$x, kernel = "epanechnikov", bandwidth = x$h, rel_error = 0.1, run = "cpu",
                            method = if (method == "single") "auto" else method,
                            control = list(precision = if (method == "single") "single" else "double"))
               }, choices = c("direct", "tree", "single"), by = "method"),
    cells_over("kernel_sum, trees, epanechnikov", points[1:5, ], make_points,
               function(x, ...) kernel_sum(x$x, kernel = "epanechnikov", bandwidth = x$h, rel_error = 0.1, run = "cpu",
                                           ...), choices = c("direct", "tree"), by = "method"),
    cells_over("kernel_sum, trees, exact", sizes(c("n", "d", "h"), c(5000, 2, 0.02), c(20000, 3, 0.05),
                                                 c(20000, 8, 0.5), c(3000, 20, 1)), make_points,
               function(x, ...) kernel_sum(x$x, kernel = "epanechnikov", bandwidth = x$h, rel_error = 0, run = "cpu",
                                           ...), choices = c("direct", "tree"), by = "method"),
    # at new points on a line, beside the same sums by each method
    cells_over("kde, on a grid", sizes(c("n", "at"), c(20000, 500), c(200000, 500), c(1000000, 1000)),
               function(n, at) {
                 x <- spread(n, 1)[, 1]
                 list(density = kde(x), x = x, at = seq(min(x), max(x), length.out = at))
               }, function(x, method) {
                 if (method == "auto") return(stats::predict(x$density, x$at, run = "cpu"))
                 kernel_sum(x$at, x$x, bandwidth = x$density$bandwidth, rel_error = 1e-4, method = method, run = "cpu")
               }, choices = c("tree", "line", "mesh"), by = "method"),
    # the sums of the regression, without each point's own term
    cells_over("kernel_regression, sums", sizes(c("n", "d"), c(20000, 1), c(10000, 2), c(100000, 2), c(5000, 4)),
               function(n, d) {
                 x <- spread(n, d)
                 list(x = x, y = sin(3 * x[, 1]) + stats::rnorm(n) / 5, h = kde(x)$bandwidth)
               }, function(x, method) {
                 if (method == "auto") return(kernel_regression(x$x, x$y, x$h, run = "cpu"))
                 kernel_sum(x$x, weights = cbind(1, x$y - mean(x$y)), bandwidth = x$h, rel_error = 1e-4,
                            leave_one_out = TRUE, method = method, run = "cpu")
               }, choices = c("direct", "tree", "mesh"), by = "method"),
    cells_over("gp_regression, ranks", sizes(c("n", "d"), c(1000, 2), c(3000, 3), c(5000, 8), c(6000, 1)),
               function(n, d) {
                 x <- normal(n, d)
                 list(x = x, y = sin(x[, 1]) + stats::rnorm(n) / 5, rank = c(whole = n, low = 100))
               }, function(x, method) {
                 gp_regression(x$x, x$y, bandwidth = sqrt(ncol(x$x)), noise = 0.04, run = "cpu",
                               rank = if (method != "auto") x$rank[[method]])
               }, choices = c("whole", "low"), by = "method"),
    cells_over("gp_regression", sizes(c("n", "d"), c(1000, 2), c(5000, 8), c(20000, 3)),
               function(n, d) list(x = normal(n, d), y = stats::rnorm(n)),
               function(x, ...) gp_regression(x$x, x$y, bandwidth = sqrt(ncol(x$x)), ...)),
    cells_over("kernel_regression", sizes(c("n", "d"), c(20000, 1), c(10000, 2), c(5000, 4)),
               function(n, d) list(x = normal(n, d), y = stats::rnorm(n)),
               function(x, ...) kernel_regression(x$x, x$y, "scott", ...)),
    cells_over("pca, 2 % missing", sizes(c("n", "p", "k"), c(1000, 200, 5), c(5000, 1000, 5), c(50000, 500, 10)),
               function(n, p, k) {
                 x <- make_dense(n, p, k)
                 x$x[sample(length(x$x), length(x$x) %/% 50)] <- NA
                 x
               }, function(x, ...) pca(x$x, x$k, na = "em", control = list(tolerance = 1e-4), seed = 1, ...)),
    cells_over("pca, sparse, engines", sizes(c("n", "p", "share"), c(2000, 1000, 0.05), c(20000, 2000, 0.02),
                                             c(50000, 3000, 0.01), c(100000, 500, 0.02), c(3000, 3000, 0.1)), sparse,
               function(x, ...) pca(x, 10, seed = 1, run = "cpu", ...), choices = c("krylov", "gram"),
               by = "method"),
    cells_over("kernel_sum, one dimension", sizes(c("n", "h"), c(2000, 0.05), c(20000, 0.02), c(50000, 0.005),
                                                  c(200000, 0.01)),
               function(n, h) list(x = spread(n, 1), h = h),
               function(x, ...) kernel_sum(x$x, bandwidth = x$h, rel_error = 0.01, run = "cpu", ...),
               choices = c("tree", "line"), by = "method")
  )
}

# What takes `devices`: on one, on all, and with as many as weft takes by itself; and larger work, which pays.
cells_of_devices <- function(all) {
  takes <- c("mi_pairs", "mi_triples", "bn_learn, sum", "irm", "pca", "kernel_sum, gaussian", "kernel_sum, all pairs")
  more <- list(
    cells_over("mi_pairs", sizes(c("n", "p", "levels"), c(2000, 50000, 2)), mi,
               function(x, ...) mi_pairs(x$x, x$class, top = 100, ...)),
    cells_over("kernel_sum, all pairs", sizes(c("n", "d", "h"), c(300000, 3, 0.1)),
               function(n, d, h) list(x = spread(n, d), h = h),
               function(x, ...) kernel_sum(x$x, bandwidth = x$h, rel_error = 0, ...)),
    cells_over("irm", sizes(c("rows", "columns", "share"), c(30000, 30000, 0.005)),
               function(rows, columns, share) irm_sample(rows, columns, 30, density = share, seed = 1)$A,
               function(x, ...) irm(x, chains = 2, sweeps = 10, seed = 1, ...))
  )
  there <- nrow(weft_devices())
  lapply(c(Filter(function(group) group[[1L]]$name %in% takes, all), more), lapply, function(x) {
    run <- x$run
    x$run <- function(data, devices, ...) {
      on <- switch(devices, auto = "all", one = 0, every = seq_len(there) - 1)
      run(data, ..., run = weft_run("cuda", devices = on, progress = FALSE))
    }
    x$choices <- c("one", "every")
    x$by <- "devices"
    x
  })
}

# ---- running ----

# What the choices of a call were given to weigh, added up over its steps.
asked <- new.env()
listen <- function() {
  space <- asNamespace("weft")
  choose <- space$choose_backend
  unlockBinding("choose_backend", space)
  assign("choose_backend", function(backend, predicted = NULL, ...) {
    if (!is.null(predicted)) asked$seconds <- asked$seconds + c(predicted$cpu, predicted$cuda) + predicted$beside
    choose(backend, predicted, ...)
  }, envir = space)
  lockBinding("choose_backend", space)
}

# The least seconds of each of these calls. They are made in turn, so that whatever else the machine does, and how
# deeply its processors sleep, concerns all alike.
least_of <- function(calls, limit, rounds) {
  clock <- if (processor) function() sum(proc.time()[1:2])
           else function() as.double(Sys.time()) # finer than proc.time()
  once <- function(f, clean = FALSE) {
    if (clean) gc(FALSE) # else some choices wait for the garbage of others, always the same ones
    began <- clock()
    f()
    clock() - began
  }
  least <- vapply(calls, once, 0)
  again <- if (any(least > limit)) which(least < limit / 10) else seq_along(calls)
  spent <- 0
  for (k in seq_len(if (length(again)) rounds else 0)) {
    now <- vapply(calls[again], once, 0, clean = min(least) > 0.1)
    least[again] <- pmin(least[again], now)
    spent <- spent + sum(now)
    unlike <- least[1L] > 1.3 * min(least[-1L]) # the first of the calls chose by itself
    if (spent > (if (unlike) 0.9 else 0.15) * length(calls) && k > 2L) break
  }
  least
}

run_cell <- function(x, limit, rounds) {
  set.seed(1)
  data <- x$make()
  gc(FALSE)
  call <- function(choice) {
    how <- switch(x$by, backend = list(run = weft_run(choice, progress = FALSE)), devices = list(devices = choice),
                  method = list(method = choice))
    suppressWarnings(do.call(x$run, c(list(data), how)))
  }
  asked$seconds <- c(0, 0)
  auto <- call("auto")
  predicted <- asked$seconds
  took <- attr(auto, "backend") %||% (if (is.list(auto)) auto$backend) %||% ""
  if (x$by == "method") took <- attr(auto, "method") %||% (if (is.list(auto)) auto$method) %||% ""
  seconds <- least_of(lapply(c("auto", x$choices), function(choice) function() call(choice)), limit, rounds)
  best <- min(seconds[-1L])
  two <- sort(order(seconds[-1L])[1:2]) # of more choices
  first <- signif(seconds[[two[1L] + 1L]], 4)
  second <- signif(seconds[[two[2L] + 1L]], 4)
  data.frame(call = x$name, size = x$size, first = x$choices[two[1L]], first_seconds = first,
             second = x$choices[two[2L]], second_seconds = second, auto_seconds = signif(seconds[[1L]], 4),
             took = took[1L],
             regret = round(seconds[[1L]] / best, 2), predicted_cpu = signif(predicted[1L], 3),
             predicted_cuda = signif(predicted[2L], 3))
}

write_cells <- function(found, file) {
  writeLines(c(paste("# inst/bench/auto.R:", sub(", weft.*", "", utils::capture.output(machine_line())))), file)
  suppressWarnings(utils::write.table(found, file, append = TRUE, sep = ",", row.names = FALSE, qmethod = "double"))
}

summarise <- function(found) {
  long <- pmin(found$first_seconds, found$second_seconds) > 0.005
  for (some in list(found, found[long, ])) {
    cat(sprintf("%d cells of %d functions%s: regret at most 1.3 in %.1f %%, worst %.2f\n", nrow(some),
                length(unique(some$call)), if (nrow(some) < nrow(found)) ", calls over 5 ms" else "",
                100 * mean(some$regret <= 1.3), max(some$regret)))
  }
  worst <- found[order(-found$regret), ]
  print(utils::head(worst[worst$regret > 1.3, ], 25), row.names = FALSE)
  if (any(found$second == "every")) {
    cat(sprintf("against one device: at most %.2f times its time\n", max(found$auto_seconds / found$first_seconds)))
  }
  device <- found[found$second == "cuda", ]
  off <- function(predicted, took) pmax(predicted / took, took / predicted)
  wrong <- device[off(device$predicted_cpu, device$first_seconds) > 2 | off(device$predicted_cuda,
                                                                            device$second_seconds) > 2, ]
  cat(sprintf("%d of %d predictions wrong by more than a factor of two\n", nrow(wrong), nrow(device)))
}

given <- commandArgs(TRUE)
processor <- "--processor" %in% given
if (processor) options(weft.threads = 1)
if ("--summary" %in% given) {
  summarise(utils::read.csv(option("summary", ""), comment.char = "#"))
} else if (exists("C_weft_bits_test", asNamespace("weft"))) {
  stop("This weft was built with WEFT_TESTS=yes, which lowers limits of engines. Build it without.")
} else {
  machine_line()
  began <- proc.time()[[3L]]
  device <- !"cpu" %in% given && nrow(weft_devices()) > 0
  if (device) kernel_sum(normal(100, 2), bandwidth = 1, run = "cuda") # opens it
  print(weft_calibrate(save = FALSE))
  listen()
  groups <- if ("devices" %in% given) cells_of_devices(all_cells())
            else lapply(all_cells(), function(group) Filter(function(x) device || !"cuda" %in% x$choices, group))
  cells <- unlist(groups, recursive = FALSE)
  if (!is.na(only <- option("only", NA))) cells <- Filter(function(x) startsWith(x$name, only), cells)
  by_name <- split(cells, vapply(cells, `[[`, "", "name"))
  limit <- if ("--large" %in% given) Inf else 1.5
  of_size <- function(k) lapply(Filter(function(g) length(g) >= k, by_name), `[[`, k)
  rounds <- unlist(lapply(seq_len(max(lengths(by_name))), of_size), recursive = FALSE)
  found <- NULL
  file <- option("csv", "")
  for (x in rounds) {
    if (proc.time()[[3L]] - began > as.numeric(option("seconds", 140))) break
    row <- tryCatch(run_cell(x, limit, as.integer(option("rounds", 15))), error = function(e) {
      cat(sprintf("# %s, %s: %s\n", x$name, x$size, sub("\n.*", "", conditionMessage(e))))
      NULL
    })
    if (is.null(row) || !is.finite(row$regret)) next # too short for the processor's clock
    cat(sprintf("%-26s %-22s %-7s %8.4f %-6s %8.4f auto %8.4f (%s) %5.2f  predicted %8.4f %8.4f\n", row$call, row$size,
                row$first, row$first_seconds, row$second, row$second_seconds, row$auto_seconds, row$took, row$regret,
                row$predicted_cpu, row$predicted_cuda))
    found <- rbind(found, row)
    if (nzchar(file)) write_cells(found, file)
  }
  cat(sprintf("%d of %d cells in %.0f s\n", NROW(found), length(rounds), proc.time()[[3L]] - began))
  summarise(found)
}
