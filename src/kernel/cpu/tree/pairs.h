/* Sums of a function of the distance over all pairs of points. */
#pragma once

#include "kernel/cpu/tree/tree.h"

/* A decreasing function of r, 0 from its end on: cubic pieces of width 1 / per_unit; bend[k]: half its second
 * derivative by r² from piece k on, at most. */
typedef struct weft_radial {
  size_t pieces;
  double per_unit;
  const double *coefficients; /* pieces * 4, of powers of the place in the piece from 0 to 1 */
  const double *bend;         /* pieces + 1 */
} weft_radial;

/* *out = Σ over all pairs of g(r / h), within rel_error. Points have no low parts. */
weft_status weft_kernel_pairs(weft_ctx *ctx, const weft_radial *radial, double h, double rel_error,
                              const weft_tree *query, const weft_tree *reference, double *out);
