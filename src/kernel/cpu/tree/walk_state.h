/* What all steps of a walk see: the walk itself, and what one of its threads holds. */
#pragma once

#include "kernel/cpu/direct/block.h"
#include "kernel/cpu/tree/tree.h"

#define WEFT_EXACT 3e-13 /* relative tolerance of exact sums, which promise 1e-12 */

typedef struct weft_series weft_series;

/* A walk for one bandwidth, which all threads read. */
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

/* What one thread works with: the frontier of its 32 queries, the list of its group, and where it is among them. */
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
  size_t place;                      /* of the group among all */
  weft_kernel_effort effort, before; /* before: when the group was begun */
} weft_hands;
