/* The table of local scores: a prepared problem, the nodes of a batch, and how a table is made of them; see table.c. */
#pragma once

#include "core/numbers/topk.h"
#include "bn/both/count.h"
#include "bn/both/sets.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A prepared problem: fixed point, binomials, columns, one counter per thread. */
typedef struct weft_bn_ready {
  const weft_bn_problem *problem;
  int bits;
  double unit; /* 2^bits */
  size_t max_parents;
  weft_bn_binomials binomials;
  weft_bn_columns columns;
  weft_bn_counter *counters; /* one per thread */
  double *gauss_constant;    /* groups × (p + 1): the part of ln p(data of S) that depends on |S| alone */
} weft_bn_ready;

/* The nodes of a batch and the raw scores of all sets of each one's candidates. */
typedef struct weft_bn_node {
  size_t node, universe, max_parents;
  size_t *candidate; /* ascending */
  uint64_t offset[WEFT_BN_MAX_PARENTS + 2];
  int64_t *score; /* by set number */
  /* what is kept */
  size_t kept;
  int64_t *kept_score;
  uint64_t *kept_mask;
} weft_bn_node;

/* Prepares a problem in `mem`; refuses more than WEFT_BN_MAX_PARENTS parents. */
weft_status weft_bn_ready_make(weft_ctx *ctx, weft_arena *mem, const weft_bn_problem *problem, weft_bn_ready *out);

/* Scores and prunes the sets of all nodes: kept, kept_score and kept_mask of each are filled, in `keep`. */
typedef weft_status weft_bn_prune(weft_ctx *ctx, weft_arena *keep, weft_bn_ready *ready, weft_bn_node *nodes,
                                  double to);
weft_bn_prune weft_bn_prune_cpu;
/* The whole table with one way or the other of pruning. */
weft_status weft_bn_table_make(weft_ctx *ctx, const weft_bn_problem *problem, weft_bn_prune *prune, weft_arena *keep,
                               weft_bn_table *out);
/* Sorts what is kept of each node, best first, and turns set numbers into masks; list[k] has nodes[k].kept entries. */
weft_status weft_bn_collect(weft_ctx *ctx, weft_arena *keep, weft_bn_ready *ready, weft_bn_node *nodes, size_t count,
                            weft_scored **list, double done);
/* Whether one count of each set serves all its children. */
int weft_bn_joint_pays(const weft_bn_ready *ready, const weft_bn_node *nodes, const uint64_t *offset);
static inline uint64_t weft_bn_sets_of(const weft_bn_node *node) { return node->offset[node->max_parents + 1]; }

#ifdef __cplusplus
}
#endif
