# Graphs of the size of PubMed by irm-graph.c, and states to start chains of them from; for irm-device.R and devices.R.

load_graphs <- function() load_c("irm-graph", c("PKG_CFLAGS = -fopenmp", "PKG_LIBS = -fopenmp -lm"))

big_graph <- function(rows, cols, k, links, seed = 1) {
  made <- .Call("big_graph", rows, cols, k, links, seed)
  empty <- list(n_row = rows, n_col = cols, start = numeric(rows + 1), to = integer(), weight = NULL)
  graph <- structure(class = "weft_irm_graph", list(
    type = 0L, self = FALSE, links = list(n_row = rows, n_col = cols, start = made[[1]], to = made[[2]], weight = NULL),
    missing = empty, kind = "bipartite", row_names = NULL, col_names = NULL))
  list(graph = graph, row = made[[3]], col = made[[4]])
}

start_at <- function(labels) {
  list(row = labels[[1]], col = labels[[2]], alpha = rep(1, 4), beta = rep(1, 4), best = -Inf, best_row = labels[[1]],
       best_col = labels[[2]])
}

# A chain's sweeps below irm(): what native code returns of them.
run_sweeps <- function(graph, model, state, sweeps, control) {
  plan <- list(done = 0, sweeps = sweeps, thin = 1e9, first_chain = 0)
  .Call(weft:::C_weft_irm_run, weft:::native_graph(graph), weft:::native_model(model), state, plan, control)
}
