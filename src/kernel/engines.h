/* The engines of the room, a row each: the name that plans and dry runs say, where it is and what it is, what it does,
 * where it runs, what it fits, what it gains over the next simpler one with the command that shows it, and the function
 * that chooses it. `Rscript tools/engines.R` writes the table in README.md from these rows; names go into C as
 * WEFT_KERNEL_<ID>. */
#pragma once

/* clang-format off */
#define WEFT_KERNEL_ENGINES(ENGINE) \
  ENGINE(DIRECT, "direct", \
    "`cpu/direct/direct.c`, `tile.h`", \
    "all pairs in double, doubtful queries again with more digits", \
    "CPU: AVX-512, AVX2, portable", \
    "any size", \
    "the baseline; inlined portable tiles .067 to .037 s (not in a benchmark)", \
    "") \
  ENGINE(CPU_SINGLE, "direct in single precision", \
    "`cpu/direct/single.c`", \
    "all pairs in float, with a bound for each query", \
    "CPU", \
    "`rel_error` >= 1e-4, 10^8 pairs, no step, no covariance", \
    "50,000 x 8, three columns, one thread: 5.5 to 2.5 s of processor time, `Rscript inst/bench/kernel-score.R models`", \
    "") \
  ENGINE(WIDE, "many bandwidths at once", \
    "`cpu/direct/wide.c`", \
    "distances in double once, kernels in float for each bandwidth, relative to the nearest reference", \
    "CPU", \
    "cross-validation of regressions in 4 and more dimensions, `rel_error` >= 1e-4, no step", \
    "50,000 x 8, one thread: 28 sums 19 s of processor time, 16 and 7 at once 2.8 s: same command", \
    "") \
  ENGINE(POLYNOMIAL, "polynomial products", \
    "`R/kernel.R` `polynomial_products()`", \
    "polynomial kernel, by blocks of 2^20 pairs", \
    "CPU", \
    "any", \
    "the only one; 3,000 x 10, degree 3: .24 s on one thread, 1.56 with compensated products in C", \
    "") \
  ENGINE(TREES, "trees", \
    "`cpu/tree/walk*.c`", \
    "sums by two trees, bounds of nodes", \
    "CPU", \
    "compact kernels, or an error; many points", \
    "10^5 points in 4-D .74 s, scikit-learn 28.9, mlpack 1.5: `Rscript inst/bench/kernel.R`", \
    "") \
  ENGINE(SERIES, "series", \
    "`cpu/tree/walk_series.c`", \
    "nodes join a Taylor series of the group", \
    "CPU", \
    "Gaussian, up to 6 dimensions, errors >= 1e-10, 256 queries", \
    "not measured alone", \
    "") \
  ENGINE(NODE_SAMPLES, "samples of nodes", \
    "`cpu/tree/walk_samples.c`", \
    "nodes by samples: references drawn from each node", \
    "CPU", \
    "`confidence < 1` and `nodes` \"auto\" or \"samples\", kernels with an end not; where four times " \
      "fewer pairs", \
    "has not paid: see below", \
    "") \
  ENGINE(LINE, "line", \
    "`cpu/line/build.c`, `line.c`", \
    "moments of sorted cells, exactly", \
    "CPU, one dimension", \
    "all but the Cauchy kernel; from about 1,400 points", \
    "as fast as all pairs there, then linear in n: `Rscript studies/smooth.R`", \
    "") \
  ENGINE(LINE_CELLS, "cells of a line", \
    "`cpu/line/scatter.c`", \
    "moments of cells without an order", \
    "CPU, one dimension", \
    "Gaussian within 1e-6 or more, n >= 64 times the queries", \
    "10^6 points, 401 queries: 48 to 18 ms: `Rscript inst/bench/peers.R --system kernel`", \
    "") \
  ENGINE(MESH, "mesh", \
    "`cpu/mesh/*.c`", \
    "spread, convolve, gather", \
    "CPU", \
    "Gaussian, 1 to 3 dimensions, errors from 1e-12 of the weights, up to 10^8 nodes", \
    "10^5 points in 2-D 26 ms, trees 1.19 s: `Rscript inst/bench/kernel-device.R meshes`", \
    "") \
  ENGINE(DEVICE_MESH, "mesh on a device", \
    "`cuda/mesh/mesh.cu`", \
    "the same", \
    "any device", \
    "as above", \
    "10^7 points in 3-D .249 s, CPU (16 threads) 2.10: same command", \
    "") \
  ENGINE(DEVICE_DIRECT, "direct on a device", \
    "`cuda/direct/direct.cu`", \
    "all pairs in double", \
    "any device", \
    "any; references sent in slabs", \
    "22 times 16 cores at 3·10^4 points in 8-D (H100): `Rscript inst/bench/kernel-device.R figure`", \
    "") \
  ENGINE(DEVICE_SINGLE, "direct in floats on a device", \
    "`cuda/direct/single.cu`", \
    "all pairs in float, by tiles", \
    "any device", \
    "`precision = \"single\"`, no step", \
    "`Rscript inst/bench/kernel-device.R rates`; no figure kept", \
    "") \
  ENGINE(DEVICE_SLOPES, "slopes on a device", \
    "`cuda/direct/slopes.cu`", \
    "all pairs by differences, a query and its gradient in a thread", \
    "any device", \
    "`kernel_gradient()`, up to 32 dimensions, no step, no trace with a covariance; not where a mesh is for", \
    "10^6 points in 16-D, 131,072 queries (H100): 1.48 s, as columns of sums 16.3, sums alone 1.06: " \
      "`Rscript inst/bench/kernel-score.R speed`", \
    "") \
  ENGINE(TENSOR_CORES, "tensor cores", \
    "`cuda/direct/single_tensor.cu`", \
    "products of pairs of 16-bit floats", \
    "devices from 8.0 on", \
    "`precision = \"tensor\"`, TENSOR kernels, up to 36 dimensions, one column", \
    "whole calls in 10-D, 5·10^5 points: .31 to .23 s (H200): `... kernel-device.R call`", \
    "") \
  ENGINE(GAUSSIAN_TENSOR, "Gaussian sums on tensor cores", \
    "`cuda/direct/gaussian.cu`", \
    "exponents and slopes by products of 16-bit floats; an error relative to each sum, else double", \
    "devices from 8.0 on", \
    "`rel_error` >= 1e-4, 4 to 64 dimensions, one column; no logarithms, traces, or gradients with a covariance; " \
      "nothing left out", \
    "10^6 points in 16-D (H100): slopes at all points .82 s, where 131,072 queries in double took 1.01; sums at " \
      "these queries .25 s, in double 1.10: `Rscript inst/bench/kernel-score.R debiased`, `speed`", \
    "") \
  ENGINE(GRID, "grid", \
    "`cuda/grid/*.cu`", \
    "all pairs within reach, exactly, by cells", \
    "any device", \
    "compact kernels, or an error; no logarithms; few pairs near each other (sample)", \
    "4·10^6 queries and references in clusters, 4-D: .95 s (H200), all pairs 48 by " \
      "`plan_direct()`: `Rscript inst/bench/devices.R 1 trees`", \
    "") \
  ENGINE(MATRIX, "kernel matrix", \
    "`cpu/matrix/*.c`", \
    "kernel matrix, Cholesky factor, solves", \
    "CPU", \
    "Gaussian processes; PCA up to 5,000 points", \
    "1,000 x 8: .19 to .017 s, R's `chol()` .18: `... peers.R --system kernel`", \
    "") \
  ENGINE(DISTANCES, "functions of distances", \
    "`cpu/tree/pairs.c`, `cpu/bandwidth/*.c`", \
    "functions of all distances: integrals of squares, cross-validation", \
    "CPU", \
    "convolved kernels; on a line by bins", \
    "`kde(x, \"plugin\")` of 10^6: 69 to 24 ms, `bw.SJ()` 51: same command", \
    "") \
  ENGINE(MONTE_CARLO, "Monte Carlo", \
    "`R/kernel-approximate.R`, `sum_by_samples()`", \
    "`method = \"montecarlo\"`: references drawn by weight until Student's interval fits", \
    "CPU", \
    "an error, `confidence < 1`; not leave-one-out, not polynomial", \
    "slower than trees or all pairs wherever tried", \
    "") \
  ENGINE(FEATURES, "random features", \
    "the same, `sum_by_features()`", \
    "`method = \"features\"`: random Fourier features", \
    "CPU", \
    "as above, kernels without an end", \
    "the same: see below", \
    "") \
  ENGINE(NYSTROM, "Nystrom", \
    "the same, `sum_by_reduced_set()`", \
    "`method = \"nystrom\"`: pivoted Cholesky, up to 600 references", \
    "CPU", \
    "an error; positive definite kernels; not leave-one-out", \
    "see below", \
    "") \
  ENGINE(OTHER_RANKS, "references of other ranks", \
    "`cpu/ranks.c`", \
    "which references other ranks' queries need", \
    "MPI", \
    "trees; direct sums", \
    "two processes, one thread each: direct 1.73 to 1.95, trees 1.14 to 1.85 times: " \
      "`inst/bench/ranks.sh`", \
    "")
/* clang-format on */

#define WEFT_KERNEL_ENGINE_ID(id, ...) WEFT_KERNEL_##id,
typedef enum { WEFT_KERNEL_ENGINES(WEFT_KERNEL_ENGINE_ID) WEFT_KERNEL_NO_ENGINE } weft_kernel_engine;
#undef WEFT_KERNEL_ENGINE_ID
