# What work costs: one function per operation predicts its seconds on the CPU and on a device, and the bytes of host memory that it
# needs beside its input. choose_backend(), gene_network(dry_run = TRUE), bn_scores(dry_run = TRUE) and refusals for lack of memory
# ask these functions, and nobody else estimates. Sizes are doubles: products of them exceed what integers hold.
#
# Seconds of a device include sending the data and fetching the result, but not starting the device: choose_backend() adds
# cuda_start_seconds() once per session. Rates of the CPU are of one core; those of the device were measured on one H200.

cost <- function(cpu, cuda = Inf, bytes = 0) list(cpu = as.double(cpu), cuda = as.double(cuda), bytes = as.double(bytes))

# Loops that wait for memory rather than for arithmetic gain from few threads only.
memory_threads <- function(threads) min(threads, 4.5)

# One step after the other: times add up, memory is what the largest needs.
cost_sum <- function(...) {
  all <- list(...)
  cost(sum(vapply(all, `[[`, 0, "cpu")), sum(vapply(all, `[[`, 0, "cuda")), max(vapply(all, `[[`, 0, "bytes")))
}

# ---- mutual information ----

# Reading the input bounds a ranking on both sides, and the device has to be sent it.
cost_rank <- function(n, p, threads) {
  read <- as.double(n) * p * 4e-10 / min(threads, 4)
  cost(read, read * 2, 64 * p)
}

cost_rank_permuted <- function(n, p, permutations, threads) {
  cells <- as.double(n) * p
  cost(cells * (1 + permutations) / 2e10 / threads, 0.01 + permutations * cells / 4e13, cells)
}

# Tables of pairs, triples or longer tuples: a few cells and the words that are counted for each. `planes`: bit planes per feature.
cost_tuples <- function(tuples, n, planes, packed_bytes, threads) {
  each <- planes^2 * (5e-9 + n * 5e-12)
  cost(tuples * each / threads, 0.005 + packed_bytes / 5e9 + tuples * each / 2000, packed_bytes)
}

# A matrix of all pairs of categorical columns, p[1] against p[2] columns of planes[1] and planes[2] bit planes.
cost_counts_matrix <- function(pairs, n, p, planes, threads) {
  each <- prod(planes) * (2e-9 + n * 5e-12)
  cost(pairs * each / threads, 0.005 + sum(p * planes) * n / 4e10 + pairs * (each / 500 + 3e-9), 8 * 2 * pairs)
}

# A matrix of all pairs of numeric columns.
cost_numeric_matrix <- function(pairs, n, estimator, threads) {
  each <- switch(estimator, ksg = n * 2e-7, kendall = n^2 * 3e-12, n * 3e-10)
  gain <- switch(estimator, ksg = 400, kendall = 1, 20) # of the device over one core
  cost(pairs * each / threads, pairs * (each / gain + 4e-9), 8 * 2 * pairs)
}

# A network from a p x p matrix, which travels both ways. ARACNE looks at all triangles, in rows that no cache holds.
cost_network <- function(p, method, threads) {
  cpu <- switch(method, aracne = p^3 * 2.3e-11 / memory_threads(threads), clr = p^2 * 4e-9 / memory_threads(threads),
                mrnet = p^3 * 2e-10 / threads, mrnetb = p^3 * 2e-9 / threads, relnet = p^2 * 4e-9)
  cuda <- switch(method, aracne = p^3 * 1.5e-13, clr = 0, mrnet = p^3 * 2e-12, mrnetb = p^3 * 1e-11, relnet = Inf)
  cost(cpu, cuda + p^2 * 4e-9, 8 * p^2)
}

# ---- principal components ----

# k components of n x p with so many stored values, by one of the engines; "krylov" and "gram" are chosen between, Inf where one cannot.
cost_pca <- function(n, p, cells, k, kind, threads) {
  near <- min(n, p)
  block <- min(64, max(16, k + 6))
  steps <- if (k <= 52 && near >= 512) 2 * 80 * near^2 * max(32, 1.5 * k) else 10 * near^3
  can_square <- kind %in% c("dense", "resident") && near <= 10000
  cpu <- c(krylov = 70 * 2 * cells * block * if (kind == "sparse") 4 else 3, gram = if (can_square) cells * near + steps else Inf,
           vectors = 4000 * k * cells) / (3e10 * min(threads, 16))
  cuda <- c(krylov = 150 * 8 * cells / 2e12 + 0.05, gram = if (can_square) cells * near / 4e13 + steps / 1e13 else Inf,
            vectors = 4000 * k * cells / 1e13) + 8 * cells / 2e10
  lapply(stats::setNames(nm = names(cpu)), function(engine) cost(cpu[[engine]], cuda[[engine]], 8 * cells))
}

# ---- Bayesian networks ----

# Steps of all chains. A chain alone is slow on a device, and thousands are not slower than one. `sets`: parent sets per node.
cost_chains <- function(iterations, replicas, sets, nodes, sums, threads) {
  step <- if (sums) c(1e-7, 5e-6) + c(2.5e-9, 1.5e-8) * sets
          else if (nodes <= 128) c(1e-7, 2e-6)
          else c(1e-7, 1e-4) # wider masks: positions instead of masks, slow on a device
  cost(iterations * replicas * step[1L] / threads, 0.05 + iterations * step[2L] * max(1, replicas / 2000), 2^27)
}

# The device holds 8 bytes for every subset of nodes; posteriors run on the CPU, in long doubles.
cost_exact <- function(p, posterior = "none") {
  long_double <- 16
  bytes <- switch(posterior, none = 8 * 2^p + p * 8 * 2^min(p - 1, 20), order = (p + 2) * long_double * 2^p,
                  dag = p * long_double * 2^p + 2 * long_double * 3^p)
  cost(p * 2^p * 2e-9, 0.02 + p * 2^p * 1e-11, bytes)
}

# ---- co-clustering ----

# Sweeps of all chains over n_row x n_col nodes with so many links and at most k clusters (rows, columns).
cost_irm <- function(sweeps, n_row, n_col, links, k, threads) {
  cpu <- sweeps * (links * sum(k) * 1e-10 + (n_row * k[1L] + n_col * k[2L]) * 1e-9) / min(threads, 16)
  cost(cpu, cpu / 20 + sweeps * 5e-4 + links * 2e-9, 16 * links)
}

# ---- kernel sums ----

# Work of a pair, in units of one dimension of one pair; measured on AVX-512 (inst/bench/kernel.R). Only ratios matter.
pair_cost <- function(kernel, d, m) {
  evaluation <- c(gaussian = 12, laplacian = 22, matern12 = 22, matern32 = 24, matern52 = 26, cauchy = 8, uniform = 5, epanechnikov = 5,
                  triangular = 12, biweight = 5, cosine = 12)
  d + evaluation[[kernel]] + 2 * (m - 1)
}

# Building a tree, per point: each level reads the points, splits and bounds them.
build_cost <- function(n, d) n * (d + 8) * max(1, log2(n / 32)) * 3

# Direct sums of nq queries over n references in d dimensions with m columns of weights.
cost_direct_sums <- function(nq, n, d, m, kernel, precision, threads) {
  pairs <- as.double(n) * nq
  on_device <- switch(precision, double = 8e12 / (2 * d + 14 + 2 * m), single = 1.3e13 / (d + 3 + m), tensor = 2.4e12)
  cost(pairs * pair_cost(kernel, d, m) / (if (precision == "double") 1.6e10 else 3.5e10) / threads,
       pairs / on_device + (n * (d + m) + nq * (d + 2 * m)) * 8 / 5e9 + 0.01, 8 * (n * (d + m) + nq * (d + 2 * m)))
}
