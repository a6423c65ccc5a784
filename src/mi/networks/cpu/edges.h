/* What is read from, and removed from, a symmetric p × p matrix of weights or information without a copy of it. Edges
 * are entries above the diagonal. */
#pragma once

#include "core/call/arena.h"

typedef struct weft_edges {
  size_t p;
  const double *w;
} weft_edges;

/* How many entries of every column reach `threshold`: above the diagonal, or in the whole column but the diagonal. */
weft_status weft_edges_reaching(weft_ctx *ctx, const weft_edges *edges, double threshold, int whole, double *counts);
/* A threshold for each pair: columns are of kinds, and threshold[of[i] * kinds + of[j]], symmetric, is that of i and j.
 */
typedef struct weft_edge_thresholds {
  const int *of;
  size_t kinds;
  const double *threshold;
} weft_edge_thresholds;
/* How many entries above the diagonal of every column reach their thresholds. */
weft_status weft_edges_reaching_thresholds(weft_ctx *ctx, const weft_edges *edges,
                                           const weft_edge_thresholds *thresholds, double *counts);
/* Entries of w become 0 where m, of the same size, does not reach its threshold. */
weft_status weft_edges_cut_thresholds(weft_ctx *ctx, size_t p, double *w, const double *m,
                                      const weft_edge_thresholds *thresholds);
/* The k-th greatest of the positive edges (k from 1) where m, of the same size, exceeds `cut`; 0 when there are
 * fewer. */
weft_status weft_edges_greatest(weft_ctx *ctx, const weft_edges *edges, const double *m, double cut, double k,
                                double *value);
/* Entries of w become 0 where m does not exceed `cut`, and where w is less than `threshold`. */
weft_status weft_edges_cut(weft_ctx *ctx, size_t p, double *w, const double *m, double cut, double threshold);
/* The positive edges column after column: numbers from 1 of both ends. starts: where each column's begin, and the
 * end. */
weft_status weft_edges_list(weft_ctx *ctx, const weft_edges *edges, const double *starts, int *from, int *to);
