/* Measures that rank edges beside their areas: see R/regulation-weights.R. */
#pragma once

#include "regulation/regulation.h"

/* Edges by target: those of target t at starts[t] .. starts[t + 1] - 1, by regulator. */
typedef struct {
  size_t regulators, targets;
  const int32_t *regulator, *target; /* genes, from 0 */
  const double *starts;
  const int32_t *from; /* of each edge: which regulator, from 1 */
} weft_regulation_listed;

/* Similarities of genes: entry (i, j) of whole (p × p), or z' weighted (both n × p) where that is NULL. own: the
 * diagonal, at least 0. */
typedef struct {
  size_t n, p;
  const double *whole, *z, *weighted, *own;
} weft_regulation_similar;

/* excess[e], from 0 to 1: how far the correlation of an edge stands out among those of its regulator and those of its
 * target. block: targets at once. */
weft_status weft_regulation_excess(weft_ctx *ctx, const weft_regulation_listed *edges,
                                   const weft_regulation_similar *genes, size_t block, double *excess);

/* reversed[e]: the area of the edge from target to regulator, 0 where there is none; NaN where no such edge could be.
 * back: of each regulator the target that is the same gene, from 0, or -1; there: of each target the regulator. */
weft_status weft_regulation_reversed(weft_ctx *ctx, const weft_regulation_listed *edges, const double *area,
                                     const int32_t *back, const int32_t *there, double *reversed);
