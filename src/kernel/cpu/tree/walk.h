/* What the files of the walk share. Each calls only what stands below it here:
 *
 *   walk.c           groups of queries, and the list of nodes of each
 *   walk_tile.c      32 queries against a list of nodes
 *   walk_series.c    series that estimate nodes for a group
 *   walk_samples.c   samples that estimate the frontier of 32 queries
 *   walk_frontier.c  the nodes that the sums of 32 queries are still bounded by
 *   walk_nodes.c     how nodes lie to each other and to queries
 *   walk_moments.c   what bounds the sum of a node */
#pragma once

#include "kernel/cpu/direct/block.h"

#define WEFT_EXACT 3e-13 /* relative tolerance of exact sums, which promise 1e-12 */

typedef struct weft_series weft_series;

typedef struct weft_walk {
  const weft_kernel_task *task;
  const weft_tree *query, *reference;
  const double *moments;     /* nodes * m * (d + 2) */
  const double *column;      /* m: total weight */
  const double *narrower;    /* nq * m, or NULL: the results of a narrower bandwidth, which no sum is below */
  const weft_series *series; /* or NULL */
  const double *running; /* (n + 1) * m, or NULL without samples: weights of the references before, column by column */
  weft_tile_sum tile;
  weft_tile_node node;
  double rel, abs, slack;
  size_t capacity;   /* of a frontier */
  double min_listed; /* points of a node that a list need not split */
  double *out;
} weft_walk;

/* One thread's. */
typedef struct weft_hands {
  double *block, *estimate, *error, *low; /* capacity * m * WEFT_TILE each */
  double *tolerance, *kept, *settled; /* m * WEFT_TILE; settled: 3 of them: estimate, error, low of finished nodes */
  double *floor;                      /* m * WEFT_TILE: what no sum is below */
  double *priority;                   /* capacity */
  double *min_tolerance, *dropped;    /* m: least tolerance of the group's queries; error of what its list leaves out */
  double *min_tolerance_here, *dropped_here; /* m: the same of a leaf */
  double *local, *local_error, *powers;      /* the group's series: m * terms, m, terms and more of scratch */
  double *drawn;                             /* capacity * (2d + 1): sampled points, low parts, weights */
  double *batches, *certain; /* 2 m * WEFT_TILE, m * WEFT_TILE: of sampled totals, sum and sum of squares; the error
                                             that what is not sampled has */
  unsigned attempts;         /* to sample this tile */
  size_t nearest;            /* the reference leaf that is summed already */
  size_t leaf;               /* of the query tree */
  int32_t *node, *order, *list, *stack; /* capacity, capacity, nodes, nodes */
  size_t count, listed;
  int absorbed;       /* the group has a series */
  double *near_first; /* first points of the leaves nearest to the group's leaves */
  size_t near_leaves;
  size_t group, todo[65], top, from; /* where the thread is: todo: nodes of the query tree; from: in leaf */
  int phase;
  weft_kernel_effort effort;
} weft_hands;

/* ---- nodes (walk_nodes.c) ---- */

/* Least and greatest s between box q of the query tree and box r of the reference tree. */
void weft_walk_range(const weft_walk *w, size_t q, size_t r, double *least, double *greatest);
/* True when all of the node's weight at the kernel value `most` is negligible; its error is then added to `dropped`. */
int weft_walk_negligible(const weft_walk *w, size_t node, double most, const double *least, double *dropped);
/* True when the node holds a reference that one of the queries leaves out, where that is not the one of the same
 * number. */
int weft_walk_holds_own(const weft_walk *w, size_t first_query, size_t count, size_t node);
/* True when the node holds a leaf that is nearest to one of the group's, or a reference that one of its queries leaves
 * out. */
int weft_walk_holds_nearest(const weft_walk *w, const weft_hands *hands, size_t node);
/* The reference leaf that lies nearest to a leaf of queries, box to box from the root down. */
size_t weft_walk_nearest(const weft_walk *w, size_t leaf);

/* ---- the frontier (walk_frontier.c) ---- */

/* hands->order: the frontier from least to greatest error, to within a factor of two. */
void weft_walk_order(weft_hands *hands);
/* How many of hands->order can be kept within `share` of hands->tolerance, which is set here; hands->kept: their error.
 */
size_t weft_walk_count_kept(const weft_walk *w, weft_hands *hands, const weft_block_query *block, double share);
/* The first `kept` of hands->order to the front of the frontier; the nodes of the others into hands->stack. Returns
 * their number. */
size_t weft_walk_part(const weft_walk *w, weft_hands *hands, size_t kept);

/* ---- series (walk_series.c) ---- */

weft_status weft_series_prepare(weft_ctx *ctx, weft_arena *mem, const weft_kernel_task *task, const weft_tree *query,
                                const weft_tree *reference, double rel, double slack, double widest,
                                const weft_series **series);
/* Doubles of hands->local for each column, and of hands->powers. */
size_t weft_series_terms(const weft_series *series);
size_t weft_series_scratch(const weft_series *series);
void weft_series_begin(const weft_walk *w, weft_hands *hands);
/* The node joins the group's series if that keeps the tolerance and pays. */
int weft_series_absorb(const weft_walk *w, weft_hands *hands, size_t node, double nearest);
void weft_series_evaluate(const weft_walk *w, weft_hands *hands, const weft_block_query *block);

/* ---- samples (walk_samples.c) ---- */

/* Tries to estimate the whole frontier by samples; 1: it is settled. */
int weft_walk_sample(const weft_walk *w, weft_hands *hands, const weft_block_query *block);

/* ---- tiles (walk_tile.c) ---- */

/* Lowers hands->min_tolerance to the least tolerance of 32 queries, as far as their nearest leaf tells. */
void weft_walk_look(const weft_walk *w, weft_hands *hands);
/* Sums over the group's list for 32 queries: hands->from of hands->leaf. */
void weft_walk_sum(const weft_walk *w, weft_hands *hands);
