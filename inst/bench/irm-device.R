# Co-clustering on a device: a graph of the size of PubMed with the time of each stage beside its floor, and the
# speed-up over the CPU against links and clusters. Rscript irm-device.R pubmed | figure [folder]
library(weft)
source("inst/bench/bench.R")
what <- c(commandArgs(TRUE), "pubmed")[1]
folder <- c(commandArgs(TRUE)[-1], ".")[1]
stage_names <- c("parameters", "rows", "columns", "blocks", "other")

source(bench_file("irm-graph.R"))

# Sweeps of one chain without irm()'s summary of the result: the trace and the seconds of each stage.
sweeps <- function(graph, k, n, backend, start = NULL) {
  model <- list(poisson = FALSE, collapsed = FALSE, max_clusters = c(k, k), attempts = 0, sample_alpha = FALSE,
                sample_beta = FALSE, hyper = c(1, 1, 1, 1), key = c(0, 1))
  state <- start
  if (is.null(state)) {
    state <- start_at(lapply(c(graph$links$n_row, graph$links$n_col), function(nodes) {
      as.integer(weft:::draws("below", nodes, a = k, key = c(0, 1), stream = nodes))
    }))
  }
  control <- weft:::run_control(backend, NULL, FALSE)
  seconds <- system.time(out <- run_sweeps(graph, weft_run(threads = model, progress = state, devices = n),
                                           control))[["elapsed"]]
  list(seconds = seconds, stages = out$stages / n, trace = out$log_posterior, clusters = out$row_clusters,
       state = out[names(state)])
}

pubmed <- function() {
  seconds <- system.time(big <- big_graph(141043, 8.2e6, 500, 5.6e8))[["elapsed"]]
  links <- length(big$graph$links$to)
  degree <- diff(big$graph$links$start)
  cat(sprintf("%.0f words x %.0f documents, %.4g links (a word has %.0f to %.0f), generated in %.1f s\n", 141043, 8.2e6,
              links, min(degree), max(degree), seconds))
  few <- sweeps(big$graph, 500, 1, "cuda")
  cat(sprintf("opening and 1 sweep: %.1f s\n", few$seconds))
  run <- sweeps(big$graph, 500, 101, "cuda")
  cat(sprintf("101 sweeps: %.1f s in all; a sweep by the difference: %.2f ms; without opening %.2f ms\n", run$seconds,
              10 * (run$seconds - few$seconds), 1000 * sum(run$stages)))
  # floors from ceilings measured on an H200: 4.3 TB/s device memory, 5.5 TB/s second-level cache (a gather is a sector
  # of 32 bytes), 967 T multiply-adds/s of 8-bit wgmma, 28 T instructions/s
  k <- 512
  gather <- links * (4 / 4.3e12 + 32 / 5.5e12)
  floors <- 1e3 * c(parameters = 0, rows = gather + 141043 * k * k / 28e12,
                    columns = max(gather, 8.2e6 * k * k * 3 / 967e12),
                    blocks = gather, other = 0)
  for (s in seq_along(stage_names)) cat(sprintf("  %-10s %7.2f ms, floor %.2f\n", stage_names[s], 1000 * run$stages[s],
                                                floors[s]))
  cat(sprintf(paste("  log posterior %.6g -> %.6g; NMI with the planted clusters %.3f of rows, %.3f of columns; %d",
                    "row clusters\n"),
              run$trace[1], run$trace[101], irm_nmi(run$state$row, big$row), irm_nmi(run$state$col, big$col),
              run$clusters[101]))
  planted <- sweeps(big$graph, 500, 101, "cuda", start_at(list(big$row - 1L, big$col - 1L)))
  cat(sprintf("from the planted clusters: %.2f ms per sweep (%s); log posterior %.6g\n", 1000 * sum(planted$stages),
              paste(sprintf("%s %.2f", stage_names, 1000 * planted$stages), collapse = ", "), planted$trace[101]))
}

# Seconds per sweep on both, by links (K = 128) and by clusters (1e6 links), on random graphs of 1e5 x 1e5 nodes.
figure <- function() {
  # Opening takes much longer than a sweep, and how long varies by more than that. A device tells the time of stages.
  per_sweep <- function(graph, k, backend, n) {
    if (backend == "cuda") return(sum(sweeps(graph, k, n, backend)$stages))
    least <- function(n) min(replicate(3, sweeps(graph, k, n, backend)$seconds))
    (least(1 + n) - least(1)) / n
  }
  rows <- list()
  for (case in list(c(1e5, 128), c(1e6, 128), c(3e6, 128), c(1e7, 128), c(1e6, 32), c(1e6, 64), c(1e6, 256),
                    c(1e6, 512), c(1e6, 1024))) {
    set.seed(1)
    graph <- weft:::irm_graph(data.frame(sample.int(1e5, case[1], TRUE), sample.int(1e5, case[1], TRUE)))
    cpu <- per_sweep(graph, case[2], "cpu", 20)
    one <- local({ options(weft.threads = 1); on.exit(options(weft.threads = NULL))
      per_sweep(graph, case[2], "cpu", 5) })
    gpu <- per_sweep(graph, case[2], "cuda", 50)
    rows[[length(rows) + 1]] <- data.frame(links = case[1], clusters = case[2], cpu_one_thread = one, cpu = cpu,
                                           cuda = gpu, threads = weft_threads())
    cat(sprintf("%.0e links, K = %d: %.4f s on 1 thread, %.4f on %d, %.5f on the device\n", case[1], case[2], one, cpu,
                weft_threads(), gpu))
  }
  utils::write.csv(do.call(rbind, rows), file.path(folder, "irm-figure.csv"), row.names = FALSE)
}

machine_line()
if (what == "pubmed") load_graphs()
switch(what, pubmed = pubmed(), figure = figure())
