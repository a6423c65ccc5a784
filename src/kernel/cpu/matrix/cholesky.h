/* The Cholesky factor of a Gaussian process's matrix. */
#pragma once

#include "kernel/kernel.h"

/* L of L L' = variance K + noise I, in panels of `width` columns (the last may have fewer): panel p is a matrix by
 * columns that holds the rows from its first column, p width, on. Above its diagonal there may be anything. */
typedef struct weft_kernel_root {
  size_t n, width;
  double **panels;
} weft_kernel_root;

static inline size_t weft_root_panels(const weft_kernel_root *root)
{
  return (root->n + root->width - 1) / root->width;
}
static inline size_t weft_root_rows(const weft_kernel_root *root, size_t p) { return root->n - p * root->width; }
static inline size_t weft_root_columns(const weft_kernel_root *root, size_t p)
{
  const size_t rows = weft_root_rows(root, p);
  return rows < root->width ? rows : root->width;
}

/* *definite = 0 where rounding leaves the matrix without a root. */
weft_status weft_kernel_factor(weft_ctx *ctx, int kind, double h, double variance, double noise,
                               const weft_points *points, const weft_kernel_root *root, int *definite);
/* v (n × m) := (L L')^-1 v. */
weft_status weft_kernel_solve(weft_ctx *ctx, const weft_kernel_root *root, size_t m, double *v);
