/* Scoring and drawing the labels of many nodes that are independent given the other mode: the inner loop of the blocked
 * sampler on bipartite graphs. Per node i, over the clusters l of its mode,
 *
 *   score_l = base_l + Σ_j A_ij W[z_j][l] - Σ_{j missing} V[z_j][l]
 *
 * with W = log(η / (1 - η)) (counts: log η), V = log(1 - η) (counts: -η), base_l = log μ_l + Σ_m n_m V[m][l], all on
 * the grid of units.h. W and V are transposed so that the clusters of one m are contiguous:
 *
 *   W: k_other rows of `width`            | m = 0: l = 0 .. k-1, padding | m = 1: ... |      width = 16 ceil(k / 16)
 *
 * A light node adds rows of 32-bit tables, each less the middle of its values (a constant per m does not change the
 * draw). A heavy one, with more than IRM_LIGHT links and missing pairs, counts its links by cluster and adds count
 * times row in double; so does every node when a table is too wide for 32 bits. */
#pragma once

#include "irm/irm.h"
#include "irm/both/units.h"

#define IRM_LANES 16

typedef struct irm_node_job {
  const weft_irm_lists *links, *missing; /* missing NULL: none */
  const int32_t *other;                  /* labels of the other mode */
  int32_t *labels;                       /* drawn */
  int32_t k, k_other;
  int64_t width;
  int narrow; /* the 32-bit tables are valid */
  const int32_t *link_narrow, *missing_narrow, *base_narrow;
  const double *link_rows, *missing_rows;
  const double *base; /* -Inf in the padding */
  weft_rng rng;
  uint64_t index; /* of node 0 */
} irm_node_job;

/* One thread's memory: `width` scores and sums, k_other counts. */
typedef struct irm_node_scratch {
  int32_t *scores;
  double *sums;
  int64_t *counts;
  const int32_t *rows[IRM_LIGHT];
  int32_t weights[IRM_LIGHT];
} irm_node_scratch;

typedef void (*irm_nodes_function)(const irm_node_job *job, int64_t first, int64_t last, irm_node_scratch *scratch);
irm_nodes_function irm_nodes_variant(void);

/* The label that `words` pick from `sums` in units; `scores` is scratch. Both have `width` elements. */
int32_t irm_pick(const double *sums, int32_t *scores, int64_t width, weft_u32x4 words);
