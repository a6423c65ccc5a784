/* The engines of the room, a row each: the name that plans and dry runs say, where it is and what it is, what it does,
 * where it runs, what it fits, what it gains over the next simpler one with the command that shows it, and the function
 * that chooses it. `Rscript tools/engines.R` writes the table in README.md from these rows; names go into C as
 * WEFT_IRM_<ID>. */
#pragma once

/* clang-format off */
#define WEFT_IRM_ENGINES(ENGINE) \
  ENGINE(NODES, "nodes", \
    "`nodes.c` light, heavy", \
    "labels of bipartite graphs, blocked sampler", \
    "CPU; AVX-512, AVX2, plain C (`irm_nodes_variant()`)", \
    "light: up to 255 links; heavy: any, with missing pairs", \
    "10^4 x 10^4, 10^6 links, 25 sweeps: 1.1 to 1.2 s, one thread; `irm.R planted`", \
    "") \
  ENGINE(DEVICE_NODES, "nodes on a device", \
    "`sweep_kernels.cuh` light, heavy", \
    "the same", \
    "any device from 6.1", \
    "light up to 2,048 clusters, narrow tables; else heavy", \
    "call of 0.51 s on 16 cores: 0.38 to 0.65 s, most of it proposals; `irm-device.R figure`", \
    "") \
  ENGINE(LIGHT_HOPPER, "light nodes on Hopper", \
    "`light_hopper.cu`", \
    "the same, light nodes", \
    "Hopper, 8-bit tensor cores", \
    "up to 1,024 clusters (`irm_wgmma_fits()`)", \
    "`irm-device.R pubmed` prints stages beside their floors", \
    "") \
  ENGINE(REAL, "real values", \
    "`real.c`", \
    "labels of real values", \
    "CPU", \
    "bipartite", \
    "300 x 100: 5 ms a sweep, one core", \
    "") \
  ENGINE(ONE_MODE, "one mode", \
    "`blocked.c` `draw_one()`", \
    "labels of one-mode graphs", \
    "CPU", \
    "directed, undirected, self links", \
    "24 and 147 ms a sweep at 128, 512 clusters, one thread", \
    "") \
  ENGINE(COLLAPSED, "collapsed", \
    "`collapsed.c`", \
    "labels, collapsed sampler", \
    "CPU", \
    "all graphs", \
    "50 and 403 ms a sweep at 50, 150 clusters, one thread", \
    "") \
  ENGINE(NESTED, "nested groups", \
    "`nested/`", \
    "labels and levels with degrees of the nodes' own", \
    "CPU", \
    "links and counts of all graphs", \
    "GraphChallenge, 1,000 nodes, 60 sweeps of one chain: 12 s, half of it the start; 10^6 nodes, 2.4 x 10^7 links: " \
    "85 s of processors; " \
    "`irm-nested.R graphs`, `large`", \
    "") \
  ENGINE(SPLIT, "split and merge", \
    "`split/`", \
    "split-merge", \
    "CPU, all threads", \
    "clusters of up to 20,000 nodes", \
    "calls of 1.8 s to 0.38 to 0.65 s (below)", \
    "") \
  ENGINE(GREEDY, "greedy ascent", \
    "`greedy_ascent.c`", \
    "the best partition near a sample", \
    "CPU", \
    "graphs in proportion to `GAINS_A_SWEEP`", \
    "`irm-real.R`", \
    "")
/* clang-format on */

#define WEFT_IRM_ENGINE_ID(id, ...) WEFT_IRM_##id,
typedef enum { WEFT_IRM_ENGINES(WEFT_IRM_ENGINE_ID) WEFT_IRM_NO_ENGINE } weft_irm_engine;
#undef WEFT_IRM_ENGINE_ID
