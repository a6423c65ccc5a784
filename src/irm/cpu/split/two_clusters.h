/* A split-merge proposal while it is evaluated, and the two clusters of a bipartite graph that its nodes move between;
 * see split_merge.c and two_clusters.c. Evaluating a proposal in a bipartite graph leaves the state as it is. */
#pragma once

#include "irm/both/state.h"

/* The largest cluster, in nodes, that is split or made by a merge. */
#define IRM_SPLIT_NODES 20000

typedef struct irm_pair irm_pair;

struct irm_trial {
  int32_t *members, *targets; /* nodes of its clusters, and where a scan is to put them */
  double *scores, *bounds;    /* of the clusters of a mode; scratch of joins.c */
  int64_t *counts;            /* scratch, by cluster of the other mode */
  weft_rng rng;               /* the proposal's own draws, and which of them the scans are at */
  uint64_t index, scans;
  irm_pair *pair; /* bipartite graphs only */
  int32_t a, b;   /* the outcome: b is empty before a split and after a merge */
  int64_t count;  /* members */
  int joins, accepted, deferred;
  int known; /* the result of the scans, valid as long as these clusters' nodes are; split_merge.c */
  int32_t of[2], changes[2];
  double log_q;
};

/* What the blocks of a cluster of a bipartite graph hold, in the order of the other mode's active clusters or, with
 * `at`, at their labels; Σ f over them; its nodes. */
typedef struct irm_row {
  const int64_t *links, *pairs, *values;
  const int32_t *at;
  double now;
  int64_t nodes;
} irm_row;

/* An entry is a node's count with one cluster of the other mode; there is room for `entries` of them. */
weft_status irm_pair_make(weft_arena *arena, const irm_state *state, int64_t entries, irm_pair **out);
/* The memory that the largest proposal takes. */
int64_t irm_pair_entries(const irm_state *state);

/* Begins a proposal: the trial's members are all nodes of a and b, of which nodes i and j stay in a and b. Returns 0
 * when there is not enough room. */
int irm_pair_load(const irm_state *state, irm_trial *trial, int mode, int32_t i, int32_t j);
/* Every member joins one of the two, one after another, by its links alone. */
weft_status irm_pair_launch(weft_ctx *poll, const irm_state *state, irm_trial *trial);
/* A restricted Gibbs scan, or one that is forced to the labels in `target`; log of the product of its choices, which
 * may be NULL. */
weft_status irm_pair_scan(weft_ctx *poll, const irm_state *state, irm_trial *trial, const int32_t *target,
                          double *log_q);
/* One of the two, after a scan. */
irm_row irm_pair_row(const irm_trial *trial, int side);
/* Labels, sizes and blocks of the state: as the members are now, or all in a. */
void irm_pair_apply(irm_state *state, const irm_trial *trial, int all_in_a);

/* The next uniform of the proposal's scans. */
static inline double irm_trial_next(irm_trial *trial)
{
  return weft_draw_uniform(trial->rng, trial->index + trial->scans++);
}
