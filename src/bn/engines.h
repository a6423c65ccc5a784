/* The engines of the room, a row each: the name that plans and dry runs say, where it is and what it is, what it does,
 * where it runs, what it fits, what it gains over the next simpler one with the command that shows it, and the function
 * that chooses it. `Rscript tools/engines.R` writes the table in README.md from these rows; names go into C as
 * WEFT_BN_<ID>. */
#pragma once

/* clang-format off */
#define WEFT_BN_ENGINES(ENGINE) \
  ENGINE(COUNT, "counts by child", \
    "`count.c` planes, rows", \
    "counts of one node's sets", \
    "CPU; AVX-512, popcnt, plain C", \
    "any levels and rows, interventions, BDs, K2", \
    "the reference; variant by `leaf_variant()`, planes or rows by `planes_pay()`", \
    "") \
  ENGINE(SORTED_ROWS, "counts by sorted rows", \
    "`sorted_rows.c`", \
    "counts of all sets of all nodes", \
    "CPU, AVX-512 and AVX2", \
    "BDeu, BIC, AIC; all nodes candidates, no interventions; up to 16 levels", \
    "1.9 to 7.4 times `count.c` (below), by `weft_bn_counts_jointly()`, `weft_bn_sort_pays()`", \
    "") \
  ENGINE(JOINT_BGE, "Cholesky rows", \
    "`joint.c` Cholesky rows", \
    "BGe scores of all sets", \
    "CPU", \
    "up to 62 parents", \
    "not measured", \
    "") \
  ENGINE(DEVICE_TABLE, "table on a device", \
    "`cuda/table`", \
    "counts, pruning", \
    "device, 1-bit matrix units", \
    "scores with `device` in `score_kinds.h`; limits in `weft_bn_device_counts()`; else the CPU", \
    "125 nodes, 4 parents: 0.24 s on an H200; `d` prints the CPU beside it", \
    "") \
  ENGINE(OUTSIDE, "one parent from outside", \
    "`outside.c`", \
    "one parent from outside the candidates", \
    "CPU", \
    "`plus_one`", \
    "not measured", \
    "") \
  ENGINE(MAX_CHAINS, "chains of best graphs", \
    "`order_by_best_graph`, `cuda/chains/steps.cuh`", \
    "chains, target \"max\"", \
    "CPU; device", \
    "up to 4,096 nodes; wide masks above 128", \
    "1.7 G steps/s (H200, 4,096 chains), 120 ns a step on a CPU core; `d`", \
    "") \
  ENGINE(SUM_CHAINS, "chains of sums", \
    "`order_by_sum`, `cuda/chains/sums.cuh`", \
    "chains, target \"sum\"", \
    "CPU; device", \
    "the same", \
    "47 M steps/s with 4,096 chains, 71 M with 16,384 (H200); `d`", \
    "") \
  ENGINE(LAYER_CHAINS, "chains of partitions", \
    "`partitions.c`, `cuda/chains/partition_*.cuh`", \
    "chains, target \"uniform\"", \
    "CPU; device", \
    "the same", \
    "19 M steps/s (H200) beside 2.9 M (16 cores); 4 to 8 times the effective draws", \
    "") \
  ENGINE(GRAPH_CHAINS, "chains of graphs", \
    "`graphs.c`", \
    "chains, target \"uniform\"", \
    "CPU", \
    "`space = \"graphs\"`", \
    "100 nodes: some 60 times the effective draws of edges per second of partitions; `bn-sampling.R`", \
    "") \
  ENGINE(BEST_GRAPH, "best graph", \
    "`best_graph`", \
    "best network, proven", \
    "CPU; device", \
    "37 nodes, 8 bytes x 2^p: of devices, then of the host", \
    "`d`; the ratio is not recorded", \
    "") \
  ENGINE(ORDERS, "sums over orders", \
    "`orders`", \
    "edges, uniform over orders", \
    "CPU; device", \
    "37 nodes, the same bytes", \
    "20, 25 nodes: 0.8, 28 s a core; 20, 27, 33: 0.014, 0.25, 17.4 s an H200; `bn-orders.R`", \
    "") \
  ENGINE(GRAPHS, "sums over graphs", \
    "`graphs`", \
    "edges, uniform over graphs", \
    "CPU; device", \
    "24 nodes; 27", \
    "20 nodes: 3.6 s (16 cores), 0.06 s (H200); 25 nodes: 3.9 s", \
    "") \
  ENGINE(GRAPH_DRAWS, "graph draws", \
    "`graph_draws`", \
    "independent graphs", \
    "CPU", \
    "24 nodes", \
    "exact draws for `bn_features()`; not measured", \
    "") \
  ENGINE(NEAR_TABLE, "near table", \
    "`near_table` + `best_places`", \
    "a table of what settled orders ask for", \
    "CPU", \
    "all pairs, up to 12 parents", \
    "Win95pts 0.58 s beside 4.7 s for all sets of four; `r`. `plan_near()` chooses", \
    "") \
  ENGINE(SEARCH, "search", \
    "`search`, `climb`, `gauss`", \
    "one network of many nodes", \
    "CPU", \
    "hundreds to thousands of nodes", \
    "1,000 Gaussian nodes: 4.7 s, 16 cores; `bn-large.R`", \
    "")
/* clang-format on */

#define WEFT_BN_ENGINE_ID(id, ...) WEFT_BN_##id,
typedef enum { WEFT_BN_ENGINES(WEFT_BN_ENGINE_ID) WEFT_BN_NO_ENGINE } weft_bn_engine;
#undef WEFT_BN_ENGINE_ID
