/* Sums by two trees. Each file of the walk calls only what stands below it here:
 *
 *   walk.c           groups of queries, and the list of nodes of each
 *   walk_tile.c      32 queries against a list of nodes
 *   walk_series.c    series that estimate nodes for a group
 *   walk_samples.c   samples that estimate the frontier of 32 queries
 *   walk_frontier.c  the nodes that the sums of 32 queries are still bounded by
 *   walk_nodes.c     how nodes lie to each other and to queries
 *   walk_moments.c   what bounds the sum of a node */
#pragma once

#include "kernel/cpu/tree/tree.h"

/* Sums for each of many bandwidths, narrowest first, in place of task->h; out: one after another. task->reference and
 * weights are in the reference tree's order; queries are the query tree's points, and out is in its order. */
weft_status weft_kernel_walk_many(weft_ctx *ctx, const weft_kernel_task *task, const double *h, size_t bandwidths,
                                  const weft_tree *query, const weft_tree *reference, double *out,
                                  weft_kernel_effort *effort);
