/* Kernel sums over ranks: the global tree's splits, and which references another rank's queries need. */
#pragma once

#include "core/together/messages.h"
#include "kernel/kernel.h"
#include "kernel/cpu/tree/tree.h"

#define WEFT_RANK_BOXES 64 /* most boxes of queries that a rank announces */

/* left[i] = 1 for the points whose keys are among the least round(share * N) of the group's N; ties go left on the
 * ranks of low number first. All ranks of the group together. */
weft_status weft_ranks_split(weft_ctx *ctx, const weft_mpi_messages *messages, int rank, int size, const double *key,
                             size_t n, double share, int *left);

/* What other ranks' queries may do with a tree of references: weights are absolute. */
typedef struct weft_reach {
  const weft_tree *tree;
  const double *weights; /* points * m in the tree's order, none negative */
  size_t m;
  int kind;
  double h, far; /* far: greatest coordinate of any rank, for the error of leaving low parts out */
} weft_reach;

/* A lower bound of each column's sum for every query in each box (2d: least, greatest): least[box * m + c]. */
weft_status weft_ranks_lower(weft_ctx *ctx, const weft_reach *reach, const double *boxes, size_t count, double *least);

/* What the queries in some boxes (at most WEFT_RANK_BOXES) need, when a box may have errors of `allowed` of the weight
 * that it omits: keep[i] = 1: the tree's point i; one[v] = 1: one point of node v with the weight of all (`together`
 * only). allowed < 0: all that adds anything, however little. */
weft_status weft_ranks_needed(weft_ctx *ctx, const weft_reach *reach, const double *boxes, const double *allowed,
                              size_t count, int together, int *one, int *keep);

/* out[i + c * n]: what the nearest leaf of references adds for query i of the query tree, a lower bound of its sum. */
weft_status weft_ranks_nearest(weft_ctx *ctx, const weft_kernel_task *task, const weft_tree *query,
                               const weft_tree *reference, double *out);
