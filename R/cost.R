# What work costs: for each operation one function predicts its seconds on the CPU and on a device, and the bytes of
# host memory it needs beside its input. choose_backend(), dry runs and refusals for lack of memory ask these functions;
# nothing else makes estimates. Sizes are doubles: products of them exceed what integers hold.
#
# Seconds of a device include sending the data and fetching the result, but not starting the device, which
# choose_backend() adds once per session. Constants are seconds on the machine of `reference_rates` (R/rates.R), of one
# core where a core does the work; what bounds each part says by which rate of this machine it is scaled. They were
# fitted to whole calls (inst/bench/auto.R).

#
# `beside`: seconds of the call that no choice changes: checks, packing, and R's memory for the result. `divided`: those
# of the device's that several devices share.
cost <- function(cpu, cuda = Inf, bytes = 0, beside = 0, divided = 0) {
  list(cpu = as.double(cpu), cuda = as.double(cuda), bytes = as.double(bytes), beside = as.double(beside),
       divided = as.double(divided))
}

# How many of `most` devices to take for so many seconds that they can share, where `open` are open. Each further one
# costs a thread, memory, data sent again and results put together, 2 to 6 ms on two H100; one that is not open has to
# save twice what opening it takes.
devices_worth <- function(divided, most, open) {
  m <- seq_len(most)
  which.max(divided * (1 - 1 / m) - launching(0.003) * (m - 1) - 2 * 0.35 * pmax(0, m - max(open, 1)))
}

# Seconds on the reference machine as seconds here, by what bounds them.
on_core <- function(seconds) seconds * slowness("core")
in_memory <- function(seconds) seconds * slowness("memory")
on_device <- function(seconds) seconds * slowness("device_core")
in_device_memory <- function(seconds) seconds * slowness("device_memory")
# Small calls on a device: kernels started, memory taken and given back.
launching <- function(seconds) seconds * slowness("calls")
sent <- function(bytes) bytes * slowness("up") / reference_rates[["up"]]
fetched <- function(bytes) bytes * slowness("down") / reference_rates[["down"]]
# A result in R's memory: from the system, page by page, where it is larger than what the allocator keeps.
written <- function(bytes) in_memory(bytes * if (bytes > 2^25) 1.5e-9 else 2e-10)
# Checks of arguments and an R object to return; and columns looked at, of which each costs something by itself.
called <- function(n = 0, p = 0) on_core(7e-4 + 5e-7 * p) + in_memory(3e-10 * n * p)

# Loops that wait for memory rather than for arithmetic gain from few threads only.
memory_threads <- function(threads) min(threads, 4.5)

# Threads for work of so many seconds of one core: others are not woken for less work than waking them takes
# (src/core/call/parallel.h).
worth_threads <- function(seconds, threads) if (seconds < 5e-4) 1L else threads

# ---- mutual information ----

# Reading the input bounds a ranking, and a device would have to be sent it.
cost_rank <- function(n, p, threads) {
  read <- in_memory(as.double(n) * p * 4e-10 / min(threads, 4))
  cost(read, read + sent(as.double(n) * p), 64 * p, called())
}

cost_rank_permuted <- function(n, p, permutations, threads) {
  cells <- as.double(n) * p
  cost(on_core(cells * (1 + permutations) / 5e9 / threads), launching(0.003) + on_device(permutations * cells / 1e12),
       cells, called(n, p) + on_core(cells * 4e-9))
}

# Tables of pairs, triples or longer tuples: a few cells each, and the words counted for them. `planes`: bit planes per
# feature. A device takes triples one fixed feature after another, or many with their rows sorted (`sorted`: triples of
# up to three levels with two classes).
cost_tuples <- function(tuples, n, planes, packed_bytes, threads, order = 2, sorted = FALSE) {
  features <- if (order > 2) (6 * tuples)^(1 / 3) else (2 * tuples)^(1 / 2)
  # the screen spares a larger share of the triples of more features
  each <- planes^(if (order > 2) 2.5 else 2) * (5e-9 + n * 5e-12) * if (order > 2) min(10, 2000 / features) else 1
  turns <- launching(if (sorted) 5e-6 * planes * features
                     else if (order > 2) (if (planes < 2) 1.8e-4 else if (planes <= 2) 3.3e-4 else 4.5e-4) * features
                     else 0)
  counted <- function(pairs) {
    if (order > 2) pairs <- 12000
    on_device(if (sorted) 1.5e-11 * tuples + 6e-13 * n * features^2 else tuples * each / pairs)
  }
  cost(on_core(tuples * each / threads),
       launching(if (sorted) 0.001 else 0.002) + turns + sent(4 * packed_bytes) + counted(2000), packed_bytes,
       called(n, features), turns + counted(8000))
}

# A matrix of pairs of categorical columns; p and planes: columns and bit planes per column, of x and, where there is
# one, of y.
cost_counts_matrix <- function(pairs, n, p, planes, threads) {
  each <- planes[1L] * planes[length(planes)] * (2e-9 + n * 5e-12)
  cost(on_core(pairs * each / threads),
       launching(0.002) + sent(sum(p * planes) * n / 2) + on_device(pairs * each / 500) + fetched(45 * pairs),
       16 * pairs, called(n, sum(p)) + written(16 * pairs))
}

# A matrix of pairs of numeric columns, which are sorted first.
cost_numeric_matrix <- function(pairs, n, estimator, threads) {
  each <- switch(estimator, ksg = n * 7e-7, kendall = 3e-7 + n^2 * 3e-11, n * 4e-10)
  gain <- switch(estimator, ksg = 1200, kendall = 30, 250) # of a device over one core
  sorted <- on_core(n * sqrt(2 * pairs) * 1e-7 / threads)
  if (estimator == "ksg") threads <- min(threads, 1 + pairs / 64) # tiles of so many pairs
  cost(on_core(pairs * each / threads), launching(5e-4) + on_device(pairs * each / gain) + fetched(24 * pairs),
       16 * pairs, called() + sorted + written(16 * pairs))
}

# A network from a p x p matrix, which travels both ways.
cost_network <- function(p, method, threads) {
  takes <- network_methods[[method]]
  cuda <- if (is.null(takes$cuda)) Inf else takes$cuda(p)
  cost(in_memory(takes$cpu(p, threads, memory_threads(threads))),
       launching(4e-4) + in_device_memory(cuda) + fetched(100 * p^2), 8 * p^2, on_core(1.5e-4) + written(8 * p^2))
}

# Forward selection on halves of the samples; genes: regulators and targets, counted; so many `calls` of it, which share
# the copies. From `screened_regulators` on the CPU computes few gains in full (src/regulation/cpu/screen.c).
screened_regulators <- 1000
cost_regulation <- function(n, genes, steps, resamples, nonlinear, copies, threads, calls = 1) {
  features <- genes[["regulators"]] * (1 + nonlinear)
  targets <- genes[["targets"]] * (1 + copies)
  chosen <- as.double(resamples) * targets * steps
  products <- as.double(resamples) * features * (features / 2 + targets) * n / 2
  turn <- if (genes[["regulators"]] < screened_regulators) 1.3e-9 else 6e-10
  taken <- as.double(resamples) * targets * n * 5e-9 + chosen * 2.8e-7 # values put into halves; choices written down
  cost(on_core((products * 1.9e-11 + chosen * features * turn + taken) / threads),
       calls * launching(0.0065 + 3e-5 * features + 2e-5 * n) + on_core(1.2e-5 * targets) +
         on_device(products / 1e13 + chosen * features / 5e11),
       4 * features * (features + targets) + 24 * genes[["regulators"]] * genes[["targets"]], on_core(0.011),
       on_device(products / 1e13 + chosen * features / 5e11))
}

# The same of sparse cells with so many stored values: on the CPU block by block of what is stored, on a device dense.
cost_cells <- function(n, p, stored, genes, steps, resamples, nonlinear, copies, threads) {
  features <- genes[["regulators"]] * (1 + nonlinear)
  targets <- genes[["targets"]] * (1 + copies)
  density <- stored / (as.double(n) * p)
  groups <- ceiling(resamples * 4 * as.double(features)^2 / max(2e8, 6 * stored))
  products <- groups * density^2 * n * features * (features + targets)
  sums <- 25 * as.double(resamples) * features * (features + targets)
  turns <- as.double(resamples) * targets * steps * features
  dense <- as.double(resamples) * features * (features + targets) * n / 2
  cost(on_core((products * 1e-9 + sums * 1e-10 + turns * 2e-9) / threads),
       launching(0.05) + sent(12 * stored) + on_device(dense / 1e14 + turns / 5e11),
       8 * stored + 24 * genes[["regulators"]] * genes[["targets"]])
}

# Cutting numeric columns into bins of equal frequency, by sorting.
cost_bins <- function(n, p, threads) cost(on_core(as.double(n) * p * 2e-8), Inf, 4 * as.double(n) * p)

# ---- principal components ----

# What the engines that go block by block take of dense n x p on the CPU, in seconds of one core: `block`, one of
# krylov's, of which the `first` are quicker; and all of gram, `gram` and `steps` for each block that krylov would take,
# whose number the spectrum decides. Fitted to 1 to 100 components of 200 x 200 to 10,000 x 300 with flat, falling and
# gapped spectra: within 1.4.
cost_pca_engines <- function(n, p, k) {
  near <- min(n, p)
  all <- n + p
  b <- min(64, max(16, (k + 13) %/% 8 * 8), near)
  room <- min(near, max(k + 12 * b, k + 2 * b + 128))
  held <- min(10 * b, (k + 3 * b + room) / 2, near) # vectors that a block is made orthogonal to
  look <- 1.2e-10 * held^3 + 1.6e-9 * held^2 * k
  # src/pca/engines/gram/chebyshev.c: products with the Gram matrix; else all its eigenvectors
  filter <- near >= 1024 && k <= 52
  step <- if (filter) 4.7e-11 * near^2 * min(64, (k + max(16, k %/% 2) + 7) %/% 8 * 8) else 0
  cache <- max(0, 1 - (1050 / near)^3) # the share of all its steps in which the matrix is larger
  eigen <- if (filter) 5 * step else near^3 * (1.1e-10 + 2.4e-10 * cache) + 1.6e-9 * near^2 * k
  narrow <- 1.9e-10 * n * p * b + 4.8e-8 * all * b
  host <- look / 2 + 4e-9 * b^2 * held # small matrices, whichever the back end
  list(block = narrow + 4.1e-11 * all * b * held + host, host = host, first = narrow + 6e-9 * b^3,
       gram = 1.5e-11 * n * p * near + 1e-9 * all * k^2 + eigen, steps = 1.75 * step)
}

# k components of n x p with so many stored values, by each engine. "vectors" are the methods that go one component at a
# time. Stored values of sparse blocks are multiplied one by one, rows gathered from everywhere.
cost_pca <- function(n, p, cells, k, kind, threads) {
  near <- min(n, p)
  filtered <- k <= 52 && near >= 512 # on a device
  eigenvectors <- if (filtered) on_device(80 * near^2 * max(32, 1.5 * k) / 5.5e12) + launching(0.015)
                  else on_device(10 * near^3 / 8e11)
  square <- if (kind %in% c("dense", "resident") && near <= 10000) 0 else Inf
  core <- 7e9 * min(threads, 16) / slowness("core")
  there <- launching(0.004) + sent(8 * cells) + in_memory(4.4e-10 * cells)
  turns <- if (kind == "sparse") 20000 else 150
  one <- cost_pca_engines(n, p, k)
  blocks <- usual_blocks(near, k)
  iterated <- in_device_memory(turns * 8 * cells / 2e12) + launching(0.05) + there +
    if (kind == "sparse") 0 else on_core(blocks * one$host)
  if (kind == "sparse") {
    by_blocks <- cost_pca_lanczos(n, p, cells, k, threads)
    summed <- cost_pca_stored(n, p, cells, k, threads)$gram$cpu
  } else {
    moments <- 1.5e-8 * cells
    by_blocks <- on_core(moments + blocks * one$block) / memory_threads(threads)
    summed <- square + on_core(moments + one$gram + blocks * one$steps) / memory_threads(threads)
  }
  list(krylov = cost(by_blocks, iterated, 8 * cells,
                     called(), in_device_memory(turns * 8 * cells / 4e12)), # parts wait for each other at every step
       gram = cost(summed, # of sparse matrices in memory a device forms none
                   if (kind == "sparse") iterated else square + on_device(cells * near / 4e13) + eigenvectors + there,
                   8 * (cells + near^2), called(),
                   # devices send halves side by side, and exchange what they found
                   if (square == 0) max(0, on_device(cells * near / 4e13) + sent(4 * cells) - 0.015) else 0),
       vectors = cost(1000 * k * cells / core, on_device(4000 * k * cells / 1e13) + there, 8 * cells, called()))
}

# The Lanczos steps of a sparse matrix in memory on the CPU (src/pca/engines/gram/lanczos.c), each with a block of 4
# vectors (pca_block()), where the spectrum is flat: both products, vectors made orthogonal to all before, and a small
# matrix's eigenvectors.
cost_pca_lanczos <- function(n, p, cells, k, threads) {
  near <- min(n, p)
  held <- 2 * k + 128
  steps <- 6.75 * max(k, 4) * min(2.2, sqrt(near / 1000))
  products <- 16 * cells * 2.8e-10 * if (p > n) 1.7 else 1
  steps * on_core(products / min(threads, 6) + 3e-9 * near * held / min(threads, 1.5) + 2.3e-8 * held^2)
}

# Krylov takes 5 to 7 blocks where values fall or have a gap, 20 to 50 where they are flat, and at most those that fill
# the smaller side.
usual_blocks <- function(near, k) min(20, ceiling(near / min(64, max(16, (k + 13) %/% 8 * 8))))

# Whether krylov should begin, and give way to gram when its first blocks show that gram is cheaper. Returns what gram
# costs in blocks, for the job of native code. That is seen after three blocks, five or six being the fewest as a rule:
# where three are more than a third of what gram would take, gram begins. On the CPU, of a dense matrix in memory;
# whatever the machine and its threads, so that results are the same.
gives_way <- function(n, p, k) {
  near <- min(n, p)
  if (3 * k >= near || near <= 128 || near > 10000) return(never_gives_way)
  one <- cost_pca_engines(n, p, k)
  if (1.5e-8 * n * p + one$gram + 14 * one$steps < 10 * one$first) return(never_gives_way)
  list(gram_blocks = one$gram / one$block, gram_steps = one$steps / one$block)
}

never_gives_way <- list(gram_blocks = 0, gram_steps = 0)

# The same from a store: blocks are read for each pass, and the Gram matrix takes one, which adds the products of the
# values of each row. A device unpacks blocks itself; compressed columns stay there where they fit, and are spread out
# for each product; of many columns the Gram matrix is made roughly, and corrected (src/pca/engines/gram/gram_half.c).
cost_pca_stored <- function(n, p, cells, k, threads) {
  read <- on_core(cells * 5e-9) + on_core(cells * 1.2e-8 / threads)
  dense <- n * p
  stays <- 12 * cells < 4e10
  unpacked <- on_core(cells * 1.4e-9 / threads) + sent(cells) + on_device(cells * 1.5e-10)
  pass <- in_device_memory(dense * 9e-12) + if (stays) 0 else unpacked
  filtered <- k <= 52
  eigen <- if (filtered) 160 * p^2 * max(32, 1.5 * k) else 10 * p^3
  there_eigen <- on_device(eigen / if (filtered) 4e13 else 3e12)
  on_cpu <- if (p <= min(n, 10000)) 0 else Inf
  on_gpu <- if (p <= min(n, if (filtered) 40000 else 10000)) 0 else Inf
  rough <- filtered && p >= 8000
  there <- launching(0.05) + 2 * unpacked + fetched(16 * n * k)
  product <- on_core(2 * 8 * 8e-10 * cells / threads) # with blocks of 8 vectors, X'X v in one pass
  list(krylov = cost(40 * (read + product), there + 70 * (pass + on_core(0.01)), 8 * cells),
       gram = cost(on_cpu + 4 * read + on_core((cells^2 / max(1, n) / 2 * 1.5e-9 + eigen / 7e9) / threads),
                   on_gpu + there + (if (rough) 7 else 3) * pass +
                     on_device(dense * p / if (rough) 1e14 else 4e13) + (if (rough) 3 else 1) * there_eigen,
                   8 * (n * k + p^2)),
       vectors = cost(1000 * k * read, there + 1000 * k * pass, 8 * cells))
}

# ---- Bayesian networks ----

# One count of a score table, on one core.
cost_of_count <- function(n, bge) if (bge) 2e-7 else 1.5e-7 * max(1, n / 1000)

# A table of scores: `counts` on the CPU, of all sets (`joint`) or child by child; `outside` of them for members beyond
# the candidates, which the CPU tries for a device too. p: nodes.
cost_bn_table <- function(sets, counts, outside, n, bge, bytes, threads, p = 0, joint = FALSE) {
  leaf <- on_core(cost_of_count(n, bge))
  beyond <- outside * leaf / threads
  if (joint && !bge) leaf <- on_core(1.3e-7 + 3e-11 * n)
  cost((counts * leaf + on_core(sets * 1e-8)) / threads + beyond,
       launching(0.001) + on_device(sets * max(1, n / 1000) / 2e9) + beyond, bytes,
       called() + on_core(1.5e-8 * n * p + 1e-8 * sets))
}

# Steps of so many chains, each of which goes on one thread through so many temperatures. A single chain is slow on a
# device, and thousands are not slower than one. `sets`: parent sets per node. What each chain found is put together on
# the host, whichever the back end. Half of the steps over layers draw a parent set for every node.
cost_chains <- function(iterations, chains, temperatures, sets, nodes, target, threads) {
  step <- switch(target, max = c(1.8e-7, if (nodes <= 128) 1e-6 else 1e-4), # masks of more than two words
                 sum = c(5e-7, 3.4e-6) + c(1.25e-8, 1.15e-7) * sets,
                 uniform = c(5e-7, 1e-5) + c(8e-8, 2e-6) * nodes + c(4e-9, 2e-8) * sets)
  replicas <- chains * temperatures
  joined <- chains * (7e-5 + if (target != "max") 3.2e-7 * nodes^2 else 0)
  cost(on_core(iterations * replicas * step[1L] / min(threads, chains)),
       launching(if (target == "sum") 0.005 else 0.0025) + on_device(iterations * step[2L] * max(1, replicas / 2000)),
       2^27, on_core(1.2e-3 + joined), on_device(iterations * step[2L] * replicas / 2000))
}

# An optimum by dynamic programming, whose subsets a device holds itself, or a posterior. Over orders: one number per
# subset, the sets with what they are sorted by, and a buffer per thread (src/bn/cpu/exact/orders.c); over graphs
# subset_bytes() for each subset where the work is done, and the order of the subsets on the host.
cost_exact <- function(p, posterior = "none", backend = "cpu", sets = 0, threads = 1) {
  subsets <- 2^p * if (backend == "cuda") 2^-8 else 8
  buffers <- if (backend == "cuda") 0 else 8 * threads * min(sets, p * 2^8) * 2^min(8, ceiling(max(p - 8, 0) / 2))
  orders <- if (posterior == "order") p^2 * 2^p else 0
  graphs <- if (posterior == "dag") 3^p else 0
  cost(on_core(((p * 2^p + orders) * 2e-9 + graphs * 1.5e-8) / threads),
       launching(0.001) + on_device(p * 2^p * 1e-11 + orders * 4e-12 + graphs * 6e-12),
       switch(posterior, none = subsets + p * 8 * 2^min(p - 1, 20), order = subsets + 80 * sets + buffers,
              dag = 32 * sets + 2^p * if (backend == "cuda") 4 else subset_bytes(p, "dag")), called())
}

# What either back end holds for each subset: one number, or one of 12 bytes for each node and two more.
subset_bytes <- function(p, posterior) if (posterior == "dag") 12 * (p + 2) else 8

# ---- co-clustering ----

# Sweeps of all chains over size[1] x size[2] nodes with so many links and at most k[1] and k[2] clusters. A sweep draws
# labels and what the blocks have, in loops too short for many threads. Between the sweeps the host splits and merges
# clusters, whichever the back end.
cost_irm <- function(sweeps, size, links, k, threads) {
  labels <- sweeps * (links * sum(k) * 1e-10 + sum(size * k) * 1e-9 + prod(k) * 4e-7) / min(threads, 4)
  between <- on_core(sweeps * sum(size) * 7e-6 / min(threads, 4))
  cost(on_core(labels) + between, on_device(labels / 20) + between + launching(sweeps * 5e-4) + sent(40 * links),
       16 * links)
}

# Seconds of one sweep of a chain on a device, or shared by several: they meet several times per sweep. Fitted to sweeps
# of 5.5e8 links and 500 clusters, 30.1, 16.1 and 9.1 ms on 1, 2 and 4 devices.
cost_irm_sweep <- function(size, links, k, devices) {
  alone <- (links * sum(k) + 10 * sum(size * k)) * 5e-14
  if (devices == 1) alone else alone / devices + 1e-3 + 2e-4 * devices
}

# ---- kernel sums ----

# Work of a pair, in units of one dimension of one pair, .045 ns on AVX-512. Only ratios matter: within 1.4 of direct
# sums of every kernel in 1, 4 and 10 dimensions with 1 and 4 columns of weights.
pair_cost <- function(kernel, d, m) {
  value <- kernel_kinds[[kernel]]$cost
  d + if (m > 1) max(value, 10) + 1.5 * (m - 1) else value
}

# Direct sums on the CPU in single precision, with a tree of the queries, over those in double.
single_share <- 0.6

# Building a tree: each level reads the points, splits and bounds them.
build_cost <- function(n, d) n * (d + 8) * max(1, log2(n / 32)) * 3

# Work of a walk over two trees for each of what its effort counts, in the same units and the order of WEFT_WALK_COSTS
# (src/kernel/kernel.h). Fitted to 193 walks in 1 to 8 dimensions: nine of ten within 14 %.
walk_costs <- function(kernel, d, m) {
  pair <- pair_cost(kernel, d, m)
  node <- 240 + 380 * d + 160 * kernel_kinds[[kernel]]$cost + 2200 * (m - 1) # for 32 queries
  c(pairs = pair, nodes = node, samples = 3 * pair, looks = 340 + 64 * d, ordered = 1100 * m, products = 13,
    queries = 1600)
}

# Seconds of a core per unit of these.
core_seconds <- function(precision) on_core(1 / if (precision == "double") 1.6e10 else 3.5e10)

# Seconds of a core per multiplication and addition of a product of matrices.
multiply_seconds <- function() on_core(5e-11)

# Direct sums of nq queries over n references in d dimensions with m columns of weights.
cost_direct_sums <- function(nq, n, d, m, kernel, precision, threads) {
  pairs <- as.double(n) * nq
  bytes <- 8 * (n * (d + m) + nq * (d + 2 * m))
  there <- switch(precision, double = 8e12 / (2 * d + 14 + 2 * m), single = 1.3e13 / (d + 3 + m), tensor = 2.4e12) /
    slowness(if (precision == "double") "device_core" else "device_single")
  cost(pairs * pair_cost(kernel, d, m) * core_seconds(precision) / threads,
       pairs / there + sent(4 * bytes) + launching(0.001), bytes, 0, pairs / there)
}

# Sums along a line by one thread: references sorted, or put into cells for few queries, which then take most of it.
cost_line <- function(nq, n, m) {
  cost(on_core((if (n >= 64 * nq) 6e-9 else 3e-8) * n + 4e-7 * nq * (1 + 0.2 * (m - 1))), Inf, 32 * (as.double(n) + nq))
}

# Sums over a mesh: `native`, the seconds of one core or of a device that its scheme was chosen by, on a device what
# travels, and on both the host's own passes over the points. Fitted to whole calls of 10^5 to 10^7 points in one to
# three dimensions on an H200 and its host of 16 threads: most are within a factor of two.
cost_mesh <- function(native, size, nodes, threads) {
  points <- size$references + size$queries
  sent <- sent(8 * (points * length(size$extent) + size$references * size$m)) + fetched(8 * size$queries * size$m)
  passes <- on_core(7.5e-9 * points)
  cost(on_core(native) / min(threads, 5) + passes, launching(0.003) + on_device(native) + sent + passes,
       8 * (nodes + 3 * points))
}
