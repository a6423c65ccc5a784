/* Groups of correlated genes. The pairs of genes that correlate are found block by block, so that no matrix of all
 * pairs exists (neighbours.c). Pairs that share neighbours are weighted by how many (overlap.c), and the graph that
 * they make is divided so that its modularity is large (communities.c). What the groups are worth is decided in R.
 *
 * Genes are columns of z (n x p) with sum 0 and sum of squares 1, so that products are correlations. */
#pragma once

#include "core/call/context.h"

/* Each gene's neighbours: the `k` with the largest correlations of at least `least` (by absolute value unless
 * `positive`). Column j of `index` (k x p, from 1; 0: none) and of `value` (signed) has those of gene j, best first. */
typedef struct weft_modules_rule {
  size_t k;
  double least;
  int positive;
} weft_modules_rule;
weft_status weft_modules_neighbours(weft_ctx *ctx, const double *z, size_t n, size_t p, const weft_modules_rule *rule,
                                    int *index, double *value);

/* A symmetric graph by rows: neighbours of i are to[start[i] .. start[i + 1] - 1], ascending, with their weights. */
typedef struct weft_modules_graph {
  size_t p, *start;
  int *to;
  double *weight;
} weft_modules_graph;

/* Weights of edges become their topological overlap, and 0 where fewer than `shared` neighbours are in common. */
weft_status weft_modules_overlap(weft_ctx *ctx, const weft_modules_graph *graph, size_t shared);

/* Labels from 0: communities, by moves of single nodes in the order given, and of communities as nodes, as long as
 * modularity rises. A node without edges is a community of its own. */
weft_status weft_modules_communities(weft_ctx *ctx, const weft_modules_graph *graph, const int *order, int *label);
