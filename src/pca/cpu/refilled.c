/* The Gram matrix of a dense matrix of which a few cells change again and again (missing values, by EM). Y is the
 * matrix as the first form centres and scales it, y_i a row of it, d_i what is added to its cells, most of it zeros.
 * With a_i halfway between the old row and the new one,
 *
 *   sum_i y_i y_i' grows by H + H',  H = sum_i a_i d_i'
 *
 * which takes 2 p additions and products per cell, where all of Y'Y takes p for every cell of Y. Later forms move
 * centres and factors: X = (Y - row t') diag(s), hence X'X = diag(s) (Y'Y - q t' - t q' + |row|^2 t t') diag(s) with
 * q = Y'row. Centres move by less than the spread of a column, so little is lost to cancellation. */
#include <string.h>
#include "core/call/parallel.h"
#include "core/numbers/product.h"
#include "pca/cpu/refilled.h"
#include "pca/cpu/sparse.h"
#include "pca/both/moments.h"

#define ROWS_AT_ONCE 64 /* rows that are transposed together: a column's part is a few cache lines */
#define CACHED 49152    /* cells of Y that stay in a processor's cache while all columns pass */

static double in_first_form(const weft_pca_refilled *state, const weft_pca_form *form, double value, size_t i, size_t j)
{
  return (value - state->center[j]) * state->factor[j] * (form->row ? form->row[i] : 1);
}

/* Y by rows, and the sums of its columns. */
static weft_status lay_out(weft_ctx *ctx, weft_pca_refilled *state, const weft_pca_form *form, const weft_pca_panel *x)
{
  weft_status st = WEFT_OK;
  const int64_t runs = (int64_t) ((x->n + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE), at_once = 1024;
  const size_t p = x->p;
  for (int64_t from = 0; from < runs; from += at_once) {
    const int64_t to = from + at_once < runs ? from + at_once : runs;
    WEFT_TRY(weft_poll(ctx, 0, 0));
    WEFT_PARALLEL_FOR(weft_pca_threads_for_cells(ctx, (double) x->n * (double) p), static)
    for (int64_t run = from; run < to; run++) {
      const size_t first = (size_t) run * ROWS_AT_ONCE,
                   last = first + ROWS_AT_ONCE < x->n ? first + ROWS_AT_ONCE : x->n;
      for (size_t j = 0; j < p; j++)
        for (size_t i = first; i < last; i++)
          state->by_row[i * p + j] = in_first_form(state, form, x->dense[i + j * x->ld], i, j);
    }
  }
  memset(state->sums, 0, p * sizeof *state->sums);
  state->weight = 0;
  for (size_t i = 0; i < x->n; i++) {
    const double row = form->row ? form->row[i] : 1;
    if (i % 65536 == 0) WEFT_TRY(weft_poll(ctx, 0, 0));
    weft_add_scaled(p, state->sums, row, state->by_row + i * p);
    state->weight += row * row;
  }
done:
  return st;
}

weft_status weft_pca_refilled_open(weft_ctx *ctx, weft_arena *mem, const weft_pca_data *data, const weft_pca_form *form,
                                   weft_pca_refilled *out)
{
  weft_status st = WEFT_OK;
  const size_t n = data->n, p = data->p;
  weft_pca_panel x;
  WEFT_TAKE(out->by_row, mem, n * p);
  WEFT_TAKE(out->center, mem, p);
  WEFT_TAKE(out->factor, mem, p);
  WEFT_TAKE(out->g, mem, p * p);
  WEFT_TAKE(out->change, mem, p * p);
  WEFT_TAKE(out->sums, mem, p);
  memcpy(out->center, form->center, p * sizeof *out->center);
  memcpy(out->factor, form->factor, p * sizeof *out->factor);
  WEFT_TRY(data->fetch(ctx, data->source, 0, &x));
  WEFT_TRY(lay_out(ctx, out, form, &x));
  const weft_view left = weft_view_plain(out->by_row, p, 0), right = weft_view_plain(out->by_row, p, 1);
  WEFT_TRY(weft_product(ctx, p, p, n, 1, &left, &right, 0, out->g, p, 1));
done:
  return st;
}

/* Adds to row j of `change` the rows of Y before `to` that cells of column j are in, from cell c on, each times what is
 * added to the cell. Returns the cell that follows. */
static int32_t add_rows(const weft_pca_refilled *state, const weft_pca_cells *cells, const double *by, int32_t c,
                        size_t j, size_t to)
{
  const size_t p = cells->columns;
  const int32_t end = cells->starts[j + 1];
  for (; c < end && (size_t) cells->row[c] < to; c++)
    weft_add_scaled(p, state->change + j * p, by[c], state->by_row + (size_t) cells->row[c] * p);
  return c;
}

/* Every cell of Y goes halfway to its new value, then, once `change` holds H', all of the way. */
weft_status weft_pca_refilled_change(weft_ctx *ctx, weft_pca_refilled *state, const weft_pca_form *form,
                                     const weft_pca_cells *cells)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t p = cells->columns;
  const int threads = weft_pca_threads_for_cells(ctx, (double) cells->count);
  double *by;
  int32_t *next;
  WEFT_TAKE(by, &mem, cells->count);
  WEFT_TAKE(next, &mem, p);
  WEFT_PARALLEL_FOR(threads, static)
  for (int64_t j = 0; j < (int64_t) p; j++)
    for (int32_t c = cells->starts[j]; c < cells->starts[j + 1]; c++) {
      const size_t i = (size_t) cells->row[c];
      double *at = state->by_row + i * p + (size_t) j;
      by[c] = in_first_form(state, form, cells->values[c], i, (size_t) j) - *at;
      *at += 0.5 * by[c];
      state->sums[j] += by[c] * (form->row ? form->row[i] : 1);
    }
  memset(state->change, 0, p * p * sizeof *state->change);
  memcpy(next, cells->starts, p * sizeof *next);
  const size_t in_cache = CACHED / p + 1, at_once = in_cache * ((size_t) (1e8 / CACHED) + 1);
  const int workers = weft_pca_threads_for_cells(ctx, (double) cells->count * (double) p);
  const int64_t parts = (int64_t) (workers > 1 ? 4 * workers : 1);
  for (size_t from = 0; from < cells->rows; from += at_once) {
    const size_t to = from + at_once < cells->rows ? from + at_once : cells->rows;
    WEFT_TRY(weft_poll(ctx, 0, 0));
    WEFT_PARALLEL_FOR(workers, dynamic)
    for (int64_t part = 0; part < parts; part++) {
      const size_t first = p * (size_t) part / (size_t) parts, last = p * (size_t) (part + 1) / (size_t) parts;
      for (size_t row = from; row < to; row += in_cache)
        for (size_t j = first; j < last; j++)
          next[j] = add_rows(state, cells, by, next[j], j, row + in_cache < to ? row + in_cache : to);
    }
  }
  WEFT_PARALLEL_FOR(threads, static)
  for (int64_t j = 0; j < (int64_t) p; j++) {
    for (int32_t c = cells->starts[j]; c < cells->starts[j + 1]; c++)
      state->by_row[(size_t) cells->row[c] * p + (size_t) j] += 0.5 * by[c];
    for (size_t i = (size_t) j; i < p; i++)
      state->g[i + (size_t) j * p] += state->change[i + (size_t) j * p] + state->change[(size_t) j + i * p];
  }
done:
  weft_arena_end(&mem);
  return st;
}

void weft_pca_refilled_square(const weft_ctx *ctx, const weft_pca_refilled *state, const weft_pca_form *form, size_t p,
                              double *g)
{
  WEFT_PARALLEL_FOR(weft_pca_threads_for_cells(ctx, (double) p * (double) p), static)
  for (int64_t column = 0; column < (int64_t) p; column++) {
    const size_t j = (size_t) column;
    const double moved = (form->center[j] - state->center[j]) * state->factor[j];
    const double by = state->factor[j] != 0 ? form->factor[j] / state->factor[j] : 0;
    for (size_t i = j; i < p; i++) {
      const double other = (form->center[i] - state->center[i]) * state->factor[i];
      const double scaled = state->factor[i] != 0 ? form->factor[i] / state->factor[i] : 0;
      const double entry =
          state->g[i + j * p] - state->sums[i] * moved - other * state->sums[j] + state->weight * other * moved;
      g[i + j * p] = entry * by * scaled;
    }
  }
}
