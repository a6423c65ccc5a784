/* The Cholesky factor of variance K + noise I, panel after panel: a panel starts as its part of the matrix minus what
 * the panels before it contribute. Within a panel the left half of the columns is factored, taken from the right half,
 * and then the right half is factored, so that all but the last few columns are computed by products of blocks. */
#include <math.h>
#include "core/call/parallel.h"
#include "core/numbers/product.h"
#include "kernel/cpu/matrix/matrix.h"
#include "kernel/cpu/matrix/cholesky.h"

#define LEAF 16  /* columns that are factored one by one */
#define PART 256 /* rows below them, which stay in cache */

/* A few columns: their square first, then the rows below it, which threads share. */
static weft_status factor_leaf(weft_ctx *ctx, double *a, size_t ld, size_t rows, size_t columns, int *definite)
{
  double root[LEAF];
  for (size_t j = 0; j < columns; j++) {
    double *column = a + j * ld;
    if (!(column[j] > 0 && column[j] < INFINITY)) {
      *definite = 0;
      return WEFT_OK;
    }
    root[j] = sqrt(column[j]);
    for (size_t i = j; i < columns; i++) column[i] /= root[j];
    for (size_t k = j + 1; k < columns; k++) weft_add_scaled(columns - k, a + k + k * ld, -column[k], column + k);
  }
  const size_t parts = (rows - columns + PART - 1) / PART;
  WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) (rows * columns * columns) / 2), static)
  for (size_t part = 0; part < parts; part++) {
    const size_t first = columns + part * PART, count = rows - first < PART ? rows - first : PART;
    for (size_t j = 0; j < columns; j++) {
      double *column = a + first + j * ld;
      for (size_t i = 0; i < count; i++) column[i] /= root[j];
      for (size_t k = j + 1; k < columns; k++) weft_add_scaled(count, column + (k - j) * ld, -a[k + j * ld], column);
    }
  }
  return WEFT_OK;
}

/* Columns `a` (rows × columns), of which the first rows are the diagonal block. */
static weft_status factor_columns(weft_ctx *ctx, double *a, size_t ld, size_t rows, size_t columns, int *definite)
{
  weft_status st = WEFT_OK;
  if (columns <= LEAF) return factor_leaf(ctx, a, ld, rows, columns, definite);
  const size_t half = (columns / 2 + LEAF - 1) / LEAF * LEAF, rest = columns - half;
  const weft_view below = weft_view_plain(a + half, ld, 0), beside = weft_view_plain(a + half, ld, 1);
  double *right = a + half + half * ld;
  WEFT_TRY(factor_columns(ctx, a, ld, rows, half, definite));
  if (!*definite || !rest) goto done;
  WEFT_TRY(weft_product(ctx, rows - half, rest, half, -1, &below, &beside, 1, right, ld, 1));
  WEFT_TRY(factor_columns(ctx, right, ld, rows - half, rest, definite));
done:
  return st;
}

/* Panel by panel from the left: fills the panel with kernel values, subtracts what the earlier panels make of it, and
 * factors its columns. */
weft_status weft_kernel_factor(weft_ctx *ctx, int kind, double h, double variance, double noise,
                               const weft_points *points, const weft_kernel_root *root, int *definite)
{
  weft_status st = WEFT_OK;
  const size_t d = points->d, panels = weft_root_panels(root);
  *definite = 1;
  for (size_t p = 0; p < panels && *definite; p++) {
    const size_t first = p * root->width, rows = weft_root_rows(root, p), columns = weft_root_columns(root, p);
    double *panel = root->panels[p];
    weft_points from = { rows, d, points->x + first * d, points->lo ? points->lo + first * d : NULL }, own = from;
    own.n = columns;
    WEFT_TRY(weft_poll(ctx, (double) p, (double) panels));
    WEFT_TRY(weft_kernel_matrix(ctx, kind, h, variance, &from, &own, panel, rows));
    for (size_t j = 0; j < columns; j++) panel[j + j * rows] += noise;
    for (size_t k = 0; k < p; k++) {
      const double *before = root->panels[k] + (p - k) * root->width;
      const size_t ld = weft_root_rows(root, k);
      const weft_view below = weft_view_plain(before, ld, 0), beside = weft_view_plain(before, ld, 1);
      WEFT_TRY(weft_product(ctx, rows, columns, root->width, -1, &below, &beside, 1, panel, rows, 1));
    }
    WEFT_TRY(factor_columns(ctx, panel, rows, rows, columns, definite));
  }
done:
  return st;
}

/* Forward through the panels with L, then backward with its transpose; v is overwritten. */
weft_status weft_kernel_solve(weft_ctx *ctx, const weft_kernel_root *root, size_t m, double *values)
{
  weft_status st = WEFT_OK;
  const size_t n = root->n, panels = weft_root_panels(root);
  for (size_t p = 0; p < panels; p++) {
    const size_t rows = weft_root_rows(root, p), columns = weft_root_columns(root, p);
    const double *panel = root->panels[p];
    double *own = values + p * root->width;
    const weft_view below = weft_view_plain(panel + columns, rows, 0), known = weft_view_plain(own, n, 0);
    WEFT_TRY(weft_poll(ctx, 0, 0));
    for (size_t c = 0; c < m; c++)
      for (size_t j = 0; j < columns; j++) {
        double *x = own + c * n + j;
        *x /= panel[j + j * rows];
        weft_add_scaled(columns - j - 1, x + 1, -*x, panel + j + 1 + j * rows);
      }
    if (rows == columns) continue;
    WEFT_TRY(weft_product(ctx, rows - columns, m, columns, -1, &below, &known, 1, own + columns, n, 0));
  }
  for (size_t p = panels; p-- > 0;) {
    const size_t rows = weft_root_rows(root, p), columns = weft_root_columns(root, p);
    const double *panel = root->panels[p];
    double *own = values + p * root->width;
    const weft_view below = weft_view_plain(panel + columns, rows, 1), known = weft_view_plain(own + columns, n, 0);
    WEFT_TRY(weft_poll(ctx, 0, 0));
    if (rows > columns) WEFT_TRY(weft_product(ctx, columns, m, rows - columns, -1, &below, &known, 1, own, n, 0));
    for (size_t c = 0; c < m; c++)
      for (size_t j = columns; j-- > 0;) {
        double *x = own + c * n + j;
        for (size_t i = j + 1; i < columns; i++) *x -= panel[i + j * rows] * own[c * n + i];
        *x /= panel[j + j * rows];
      }
  }
done:
  return st;
}
