/* Points from R's columns, and what is asked about columns. */
#pragma once

#include "kernel/kernel.h"

/* x: n * d from R's columns. scale: NULL, d divisors, or with `full` a d * d lower triangle L by columns, z = L⁻¹(x -
 * origin). With a scale, `lo` gets what the doubles in `out` lack. */
weft_status weft_points_fill(weft_ctx *ctx, const double *columns, size_t n, size_t d, const double *origin,
                             const double *scale, int full, double *out, double *lo);
/* *same = 1 when x and x_lo are what weft_points_fill() makes of these columns, row order[i] as point i, bit by bit. */
weft_status weft_points_check(weft_ctx *ctx, const double *columns, size_t n, size_t d, const double *origin,
                              const double *scale, int full, const int32_t *order, const double *x, const double *x_lo,
                              int *same);
/* range: 3 numbers per column: the least and greatest of the finite ones, and how many are not finite. digest: NULL, or
 * gets a digest of all bits, the same on any number of threads. */
weft_status weft_points_facts(weft_ctx *ctx, const double *columns, size_t n, size_t d, double *range,
                              uint64_t *digest);
/* Rows of `parts` weights from R's columns: part c of row i is the size of columns[part[c] * n + i] where that has
 * sign[c], 1 or -1, else 0. */
weft_status weft_points_signs(weft_ctx *ctx, const double *columns, size_t n, const int32_t *part, const double *sign,
                              size_t parts, double *out);
