# Weak scaling over the devices of one host: the work per device is fixed, so that with perfect scaling the time does
# not change. Each row also says whether several devices gave what one gives, on a smaller problem (kernel sums: to
# rounding).
#   Rscript devices.R [most devices [sections: asked sweep rows chains irm kernel trees pairs]]
# "asked" is what a user gets who asks for `devices = "all"`: whole calls beside the best of one device and all of them.
# WEFT_BENCH_TABLE names a file that gets the times as a table; devices-cuda.csv is that of four H200 and their host.
library(weft)
source("inst/bench/bench.R")

there <- nrow(weft_devices())
stopifnot(there > 0)
counts <- c(1, 2, 4, 8)
counts <- counts[counts <= min(there, as.numeric(c(commandArgs(TRUE), Inf)[1]))]
sections <- commandArgs(TRUE)[-1]
wanted <- function(section) !length(sections) || section %in% sections
began <- proc.time()[["elapsed"]]
machine_line()
cat(sprintf("%d devices; %d threads\n\n", there, weft_threads()))
set.seed(1)

# Medians of the calls of a few seconds, three to 25, after a first one, which opens devices and sends data.
time_calls <- function(f) {
  clock <- function(k) system.time(f(), gcFirst = FALSE)[["elapsed"]]
  first <- clock(0)
  c(first = first, later = stats::median(vapply(seq_len(max(3, min(25, 4 %/% first))), clock, 0)))
}

# `job(devices, count)`: a call without arguments that does `count` shares of work on these devices.
table_of <- function(what, job, same) {
  cat(sprintf("[%.0f s] %s\n", proc.time()[["elapsed"]] - began, what))
  alone <- NULL
  for (count in counts) {
    devices <- seq_len(count) - 1
    call <- job(devices, count)
    seconds <- time_calls(call)
    if (is.null(alone)) alone <- seconds[["later"]]
    note(what, "weak", count, seconds[["later"]], alone)
    agreed <- if (count == 1) "" else if (same(devices)) ", same result" else ", OTHER RESULT"
    cat(sprintf("  %d device%s  first call %7.3f s, later ones %7.4f s, efficiency %5.1f %%%s\n", count,
                if (count > 1) "s" else " ",
                seconds[["first"]], seconds[["later"]], 100 * alone / seconds[["later"]], agreed))
  }
  cat("\n")
}

# n x p random bits, a byte each: 6.4e7 of them over and over, no two columns alike.
random_bits <- function(n, p) matrix(rep_len(intToBits(floor(stats::runif(2e6 + 1) * (2^32 - 2)) - (2^31 - 1)), n * p),
                                     n)

plain <- function(x) as.data.frame(x)

# `kind`: "weak", work a device is fixed, or "strong", work is.
note <- function(work, kind, devices, seconds, alone) {
  file <- Sys.getenv("WEFT_BENCH_TABLE")
  efficiency <- alone / seconds / if (kind == "strong") devices else 1
  row <- data.frame(work, kind, devices, seconds = signif(seconds, 4), efficiency = round(efficiency, 3))
  if (nzchar(file)) {
    there <- file.exists(file)
    utils::write.table(row, file, append = there, sep = ",", row.names = FALSE, col.names = !there, qmethod = "double")
  }
}

# ---- devices = "all" ----

if (wanted("asked")) {
  all <- seq_len(max(counts)) - 1
  class <- sample(0:1, 4000, TRUE)
  two <- mi_pack(random_bits(4000, 1e5), class)
  three <- mi_pack(matrix(sample(0:2, 2000 * 20000, TRUE), 2000), class[1:2000])
  d <- as.data.frame(matrix(sample(0:2, 1000 * 40, TRUE), 1000))
  for (j in 4:40) d[[j]] <- ifelse(stats::runif(1000) < 0.3, d[[j]], (d[[j - 1]] + d[[j - 3]]) %% 3L)
  tables <- lapply(c(max = "max", sum = "sum"), function(keep) bn_scores(d, 3, keep = keep, run = "cuda"))
  learn <- function(target, steps) function(devices) {
    bn_learn(tables[[target]], iterations = steps, chains = 2048, target = target, seed = 1,
             run = weft_run("cuda", devices = devices), control = list(temperatures = 1, thin = steps / 2, burn_in = 0))
  }
  points <- matrix(stats::runif(4e6), ncol = 4)
  planted <- irm_sample(5000, 4000, k = 30, density = 0.02, seed = 1)$A
  rows <- matrix(stats::rnorm(1e8), ncol = 1000)
  cluster <- function(chains, sweeps) function(devices) {
    irm(planted, chains = chains, sweeps = sweeps, max_clusters = 64, seed = 1,
        run = weft_run("cuda", devices = devices))
  }
  calls <- list(
    "pairs of two levels, 4,000 x 10^5, packed" = function(devices) mi_pairs(two,
                                                                             run = weft_run("cuda", devices = devices)),
    "pairs of three levels, 2,000 x 20,000, packed" =
      function(devices) mi_pairs(three, run = weft_run("cuda", devices = devices)),
    "2,048 chains, target max, 40 nodes" = learn("max", 1e5),
    "2,048 chains, target sum, 40 nodes" = learn("sum", 1e4),
    "direct sums, 10^5 x 10^6, 4 dimensions" = function(devices)
      kernel_sum(points[1:1e5, ], points, bandwidth = 0.5, method = "direct",
                 run = weft_run("cuda", devices = devices)),
    "sums over a grid, 10^6 points, 4 dimensions" = function(devices)
      kernel_sum(points, kernel = "epanechnikov", bandwidth = 0.05, method = "tree",
                 run = weft_run("cuda", devices = devices)),
    "co-clustering, as many chains as devices, 5,000 x 4,000" = cluster(length(all), 100),
    "co-clustering, one chain, 5,000 x 4,000" = cluster(1, 100),
    "components, 10^5 x 1,000" = function(devices) pca(rows, 10, run = weft_run("cuda", devices = devices)))
  cat(sprintf("[%.0f s] whole calls: seconds on one device, on all %d, and as \"all\" chooses\n",
              proc.time()[["elapsed"]] - began, length(all)))
  for (what in names(calls)) {
    seconds <- lapply(list(one = 0, every = all, asked = "all"), function(devices) {
      time_calls(function() calls[[what]](devices))
    })
    later <- vapply(seconds, `[[`, 0, "later")
    note(what, "asked", length(all), later[["asked"]], min(later[1:2]))
    cat(sprintf("  %-58s %7.3f %7.3f %7.3f  of the best %.2f\n", what, later[1], later[2], later[3],
                min(later[1:2]) / later[3]))
  }
  for (pack in list(two, three)) weft_free(pack)
  rm(two, three, rows, points, calls)
  cat("\n")
}

# ---- one chain's sweeps, shared; strong scaling ----

if (wanted("sweep")) {
  source(bench_file("irm-graph.R"))
  load_graphs()
  big <- big_graph(141043, 8.2e6, 500, 5.6e8)$graph
  model <- list(poisson = FALSE, collapsed = FALSE, max_clusters = c(500, 500), attempts = 0, sample_alpha = FALSE,
                sample_beta = FALSE, hyper = c(1, 1, 1, 1), key = c(0, 1))
  random <- function(nodes) as.integer(weft:::draws("below", nodes, a = 500, key = c(0, 1), stream = nodes))
  state <- start_at(lapply(c(141043, 8.2e6), random))
  cat(sprintf(paste("[%.0f s] a chain of co-clustering, 141,043 x 8.2 million nodes, %.3g links, 500 x 500",
                    "clusters, 31 sweeps\n"),
              proc.time()[["elapsed"]] - began, length(big$links$to)))
  stage_names <- c("parameters", "rows", "columns", "blocks", "other")
  alone <- NULL
  for (count in counts) {
    control <- weft:::run_control("cuda", NULL, FALSE, devices = seq_len(count) - 1L)
    seconds <- system.time(out <- run_sweeps(big, model, state, 31, control))[["elapsed"]]
    sweep <- sum(out$stages) / 31
    if (is.null(alone)) { alone <- sweep; known <- out[c("log_posterior", names(state))] }
    note("one sweep of co-clustering, 141,043 x 8.2 million nodes, 5.5e8 links, 500 x 500 clusters", "strong", count,
         sweep, alone)
    cat(sprintf("  %d device%s  a sweep %6.2f ms (%s), speed-up %.2f; with opening %.1f s%s\n", count,
                if (count > 1) "s" else " ",
                1000 * sweep, paste(sprintf("%s %.2f", stage_names, 1000 * out$stages / 31), collapse = ", "),
                alone / sweep, seconds,
                if (count == 1) "" else if (identical(out[names(known)], known)) ", same labels" else ", OTHER LABELS"))
  }
  rm(big, state, out, known)
  invisible(gc())
  cat("\n")
}

# ---- rows of principal components ----

if (wanted("rows")) {
  each <- 150000
  x <- matrix(stats::runif(each * max(counts) * 1000), ncol = 1000)
  x[, 1:20] <- x[, 1:20] * rep(seq(20, 2, length.out = 20), each = nrow(x))
  components <- function(n, devices) {
    x <- if (n == nrow(x)) x else x[seq_len(n), ]
    source <- weft:::pca_source(x)
    control <- weft:::run_control("cuda", NULL, FALSE, devices = as.integer(devices))
    form <- weft:::pca_form(weft:::column_moments(source, NULL, control), TRUE, FALSE, NULL, NULL, n)
    job <- c(list(method = "gram", choose = FALSE, k = 10L, tol = 1e-12, paper = FALSE, max_iter = 1000, block = 0L,
                  key = c(1, 2), start = NULL), weft:::never_gives_way)
    function() weft:::pca_native(source, form, job, FALSE, control)
  }
  what <- sprintf("10 principal components by the Gram matrix: %g x 1,000 per device, sent from R's memory", each)
  table_of(what, function(devices, count) components(each * count, devices), function(devices) {
    one <- components(20000, 0)()
    several <- components(20000, devices)()
    isTRUE(all.equal(several$d, one$d, tolerance = 1e-12)) && isTRUE(all.equal(several$v, one$v, tolerance = 1e-8))
  })
  rm(x)
  invisible(gc())
}

# ---- chains ----

if (wanted("chains")) {
  d <- as.data.frame(matrix(sample(0:2, 1000 * 60, TRUE), 1000))
  for (j in 4:60) d[[j]] <- ifelse(stats::runif(1000) < 0.3, d[[j]], (d[[j - 1]] + d[[j - 3]]) %% 3L)
  for (target in c("max", "sum")) {
    table <- bn_scores(d, 3, keep = target, run = "cuda")
    steps <- if (target == "max") 2e5 else 4e4
    chains_job <- function(devices, count) {
      function() bn_learn(table, iterations = steps, chains = 4096 * count, target = target, seed = 1,
                          run = weft_run("cuda", devices = devices),
                          control = list(temperatures = 1, thin = steps / 2, burn_in = 0))
    }
    few <- function(devices) {
      fit <- bn_learn(table, iterations = 400, chains = 37, target = target, seed = 2,
                      run = weft_run("cuda", devices = devices))
      unclass(fit)[c("dags", "edges", "trace", "order", "counts")]
    }
    table_of(sprintf("chains, target %s: 4,096 of %g steps per device, 60 nodes, %d parent sets", target, steps,
                     length(table$score)),
             chains_job, function(devices) identical(few(devices), few(0)))
  }
}

# ---- chains of co-clustering ----

if (wanted("irm")) {
  planted <- irm_sample(5000, 4000, k = 30, density = 0.02, seed = 1)
  run <- irm(planted$A, chains = 1, sweeps = 1, max_clusters = 128, seed = 1, run = "cuda",
             control = list(split_merge = FALSE))$run
  run$done <- 0
  sweeps_of <- function(chains, sweeps, devices) {
    run$chains <- chains
    run$state <- weft:::start_state(run$graph, NULL, run$model, chains, list(alpha = c(1, 1), beta = c(1, 1)),
                                    c(5000, 4000))
    control <- weft:::run_control("cuda", NULL, FALSE, devices = as.integer(devices))
    weft:::irm_chains(run, sweeps, NULL, control)
  }
  table_of("co-clustering: 2 chains of 500 sweeps a device, 5,000 x 4,000, 128 clusters", function(devices, count) {
    function() sweeps_of(2 * count, 500, devices)
  }, function(devices) identical(sweeps_of(5, 4, devices)$log_posterior, sweeps_of(5, 4, 0)$log_posterior))
}

# ---- direct kernel sums ----

if (wanted("kernel")) {
  x <- matrix(stats::runif(2e5 * max(counts) * 10), ncol = 10)
  reference <- matrix(stats::runif(1e7), ncol = 10)
  sums_of <- function(queries, devices) {
    kernel_sum(queries, reference, bandwidth = 0.5, method = "direct", run = weft_run("cuda", devices = devices))
  }
  table_of("direct Gaussian sums in double: 2e5 queries a device, 1e6 references, 10 dimensions",
           function(devices, count) {
    queries <- x[seq_len(2e5 * count), ]
    function() sums_of(queries, devices)
  }, function(devices) isTRUE(all.equal(sums_of(x[1:2e4, ], devices), sums_of(x[1:2e4, ], 0), tolerance = 1e-13)))
}

# ---- kernel sums over a grid ----

if (wanted("trees")) {
  near <- matrix(stats::runif(50 * 4), 50)
  clustered <- function(n) near[sample(50, n, TRUE), ] + stats::rnorm(4 * n, sd = 0.02)
  x <- clustered(4e6)
  q <- clustered(4e6 * max(counts))
  sums_of <- function(queries, devices) {
    kernel_sum(queries, x, kernel = "epanechnikov", bandwidth = 0.02, method = "tree",
               run = weft_run("cuda", devices = devices))
  }
  what <- "Epanechnikov sums over a grid, h = 0.02: 4e6 queries a device, 4e6 references in clusters, 4 dimensions"
  table_of(what, function(devices, count) {
    queries <- q[seq_len(4e6 * count), ]
    function() sums_of(queries, devices)
  }, function(devices) identical(sums_of(q[1:1e5, ], devices), sums_of(q[1:1e5, ], 0)))
  rm(x, q)
}

# ---- tiles of pairs, then triples ----

if (wanted("pairs")) {
  n <- 8001
  features <- function(count) floor(5e5 * sqrt(count))
  class <- sample(0:1, n, TRUE)
  large <- random_bits(n, features(max(counts)))
  small <- large[, 1:5000]
  small[, 77] <- as.raw(xor(small[, 4000] != 0, class == 1))
  pack <- NULL
  pairs_job <- function(devices, count) {
    if (!is.null(pack)) weft_free(pack)
    pack <<- mi_pack(if (count == max(counts)) large else large[, seq_len(features(count))], class)
    function() mi_pairs(pack, top = 1000, run = weft_run("cuda", devices = devices))
  }
  table_of(sprintf("pairs: %.3g a device, %d rows, packed", choose(features(1), 2), n), pairs_job, function(devices) {
    found <- function(devices) plain(mi_pairs(small, class, run = weft_run("cuda", devices = devices)))
    identical(found(devices), found(0))
  })
  weft_free(pack)
  rm(large)

  triples_job <- function(devices, count) {
    pack <<- mi_pack(small[, seq_len(floor(900 * count^(1 / 3)))], class)
    function() mi_triples(pack, top = 1000, run = weft_run("cuda", devices = devices))
  }
  if (weft:::has_bit_wgmma()) {
    table_of(sprintf("triples: %.3g a device, %d rows, packed", choose(900, 3), n), triples_job, function(devices) {
      found <- function(devices) plain(mi_triples(small[, 1:200], class, run = weft_run("cuda", devices = devices)))
      identical(found(devices), found(0))
    })
  }
}
cat(sprintf("[%.0f s] done\n", proc.time()[["elapsed"]] - began))
