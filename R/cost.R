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
