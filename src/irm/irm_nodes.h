/* Scoring and drawing the labels of many nodes that are independent given the other mode: the inner loop of the blocked
 * sampler on bipartite graphs. Per node i, over the clusters l of its mode,
 *
 *   score_l = base_l + Σ_j A_ij W[z_j][l] - Σ_{j missing} V[z_j][l]
 *
 * with W = log(η / (1 - η)) (counts: log η), V = log(1 - η) (counts: -η), base_l = log μ_l + Σ_m n_m V[m][l], then one
 * uniform picks l from exp(score_l - max). W and V are turned so that the clusters of one m are contiguous:
 *
 *   W: k_other rows of `width` floats     | m = 0: l = 0 .. k-1, 0 padding | m = 1: ... |      width = 16 ceil(k / 16)
 *
 * A light node adds rows of float tables, each centred over l (a constant per m does not change the draw). A heavy one
 * (more than IRM_LIGHT entries) counts its links by cluster and adds count times row in double, so that no sum has many
 * rounded terms. Every lane of a vector is one cluster and no sum crosses lanes but in one fixed tree: all variants of
 * the code give the same bits. */
#ifndef WEFT_IRM_NODES_H
#define WEFT_IRM_NODES_H

#include "../base/draws.h"
#include "irm.h"

#define IRM_LANES 16
#define IRM_LIGHT 512

typedef struct irm_node_job {
  const weft_irm_lists *links, *missing; /* missing NULL: none */
  const int32_t *other;                  /* labels of the other mode */
  int32_t *labels;                       /* drawn */
  int32_t k, k_other;
  int64_t width;
  const float *link_rows, *missing_rows; /* centred */
  const double *link_exact, *missing_exact;
  const double *base;                    /* -1e30 in the padding */
  weft_rng rng;
  uint64_t index;                        /* of node 0 */
} irm_node_job;

/* One thread's memory: `width` floats and doubles, k_other counts. */
typedef struct irm_node_scratch {
  float *scores;
  double *sums;
  int64_t *counts;
  const float *rows[IRM_LIGHT];
  float weights[IRM_LIGHT];
} irm_node_scratch;

typedef void (*irm_nodes_function)(const irm_node_job *job, int64_t first, int64_t last, irm_node_scratch *scratch);
irm_nodes_function irm_nodes_variant(void);

/* The label that u picks from `scores` (destroyed): softmax over `width` lanes. */
int32_t irm_pick(float *scores, int64_t width, double u);

#endif
