/* Products of a sparse panel S with b vectors, whose rows lie one after another: a value that is read serves all of
 * them. Blocks of 4, 8 and 16 vectors are summed in registers. Sums do not depend on the number of threads. */
#include <string.h>
#include "core/call/parallel.h"
#include "core/numbers/product.h"
#include "pca/cpu/sparse.h"

#if defined(__GNUC__)
#  define INLINE static inline __attribute__((always_inline))
#else
#  define INLINE static inline
#endif

static size_t first_at(const int32_t *rows, size_t count, size_t row)
{
  size_t low = 0, high = count;
  while (low < high) {
    const size_t mid = (low + high) / 2;
    if ((size_t) rows[mid] < row)
      low = mid + 1;
    else
      high = mid;
  }
  return low;
}

/* ---- S v ---- */

/* The rows of a column that lie before `to`, from its value i on. */
INLINE void scatter(const int32_t *rows, const double *values, size_t i, size_t stored, size_t to, const double *v,
                    size_t b, double *out)
{
  for (; i < stored && (size_t) rows[i] < to; i++) weft_add_scaled(b, out + (size_t) rows[i] * b, values[i], v);
}

/* Rows from .. to - 1 of out = S v: each column scatters its values times b numbers of v. The usual b have loops of
 * their own, whose length the compiler knows. */
static void times_rows(const weft_pca_panel *x, size_t from, size_t to, const double *v, size_t b, double *out)
{
  memset(out + from * b, 0, (to - from) * b * sizeof *out);
  for (size_t j = 0; j < x->p; j++) {
    const int32_t *rows = x->rows + x->starts[j];
    const double *values = x->values + x->starts[j], *own = v + j * b;
    const size_t stored = (size_t) (x->starts[j + 1] - x->starts[j]), first = from ? first_at(rows, stored, from) : 0;
    if (b == 4)
      scatter(rows, values, first, stored, to, own, 4, out);
    else if (b == 8)
      scatter(rows, values, first, stored, to, own, 8, out);
    else if (b == 16)
      scatter(rows, values, first, stored, to, own, 16, out);
    else
      scatter(rows, values, first, stored, to, own, b, out);
  }
}

/* How many rows a thread takes at a time: their sums stay in its cache, and every thread gets some. */
static size_t rows_at_once(const weft_ctx *ctx, size_t n, size_t b)
{
  const size_t cached = 65536 / b, share = n / (2 * (size_t) ctx->threads) + 1, rows = cached < share ? cached : share;
  return rows < 1024 ? 1024 : rows;
}

/* Threads share ranges of rows. */
weft_status weft_pca_sparse_times(weft_ctx *ctx, const weft_pca_panel *x, const double *v, size_t b, double *out)
{
  const size_t step = rows_at_once(ctx, x->n, b);
  const int64_t ranges = (int64_t) ((x->n + step - 1) / step);
  const int threads = weft_pca_threads_for_cells(ctx, (double) x->starts[x->p] * (double) b);
  for (int64_t at = 0; at < ranges; at += 2 * ctx->threads) {
    const int64_t end = at + 2 * ctx->threads < ranges ? at + 2 * ctx->threads : ranges;
    const weft_status st = weft_poll(ctx, 0, 0);
    if (st != WEFT_OK) return st;
    WEFT_PARALLEL_FOR(threads, dynamic)
    for (int64_t r = at; r < end; r++) {
      const size_t from = (size_t) r * step;
      times_rows(x, from, from + step < x->n ? from + step : x->n, v, b, out);
    }
  }
  return WEFT_OK;
}

/* ---- S'u ---- */

#if defined(__GNUC__)
#  define WIDE 2 /* vectors of a register */
typedef weft_two lanes;
#else
#  define WIDE 1
typedef double lanes;
#endif

/* out[0 .. 3] += the sum of values[i] u[rows[i] b ..], which stays in registers. Even and odd values have sums of
 * their own, since each addition waits for the one before. */
static void gather_four(const int32_t *rows, const double *values, size_t count, const double *u, size_t b, double *out)
{
  enum { LANES = 4 / WIDE };
  lanes even[LANES], odd[LANES];
  size_t i = 0;
  for (size_t l = 0; l < LANES; l++) even[l] = odd[l] = (lanes){ 0 };
  for (; i + 2 <= count; i += 2) {
    const lanes *one = (const lanes *) (u + (size_t) rows[i] * b);
    const lanes *other = (const lanes *) (u + (size_t) rows[i + 1] * b);
    for (size_t l = 0; l < LANES; l++) even[l] += one[l] * values[i];
    for (size_t l = 0; l < LANES; l++) odd[l] += other[l] * values[i + 1];
  }
  if (i < count) {
    const lanes *one = (const lanes *) (u + (size_t) rows[i] * b);
    for (size_t l = 0; l < LANES; l++) even[l] += one[l] * values[i];
  }
  for (size_t l = 0; l < LANES; l++) ((lanes *) out)[l] += even[l] + odd[l];
}

/* Threads share columns. */
weft_status weft_pca_sparse_transposed(weft_ctx *ctx, const weft_pca_panel *x, const double *u, size_t b, double *out)
{
  const int threads = weft_pca_threads_for_cells(ctx, (double) x->starts[x->p] * (double) b);
  for (size_t first = 0; first < x->p; first += 512) {
    const size_t last = first + 512 < x->p ? first + 512 : x->p;
    const weft_status st = weft_poll(ctx, 0, 0);
    if (st != WEFT_OK) return st;
    WEFT_PARALLEL_FOR(threads, dynamic)
    for (int64_t j = (int64_t) first; j < (int64_t) last; j++) {
      const int32_t *rows = x->rows + x->starts[j];
      const double *values = x->values + x->starts[j];
      const size_t stored = (size_t) (x->starts[j + 1] - x->starts[j]);
      double *own = out + (size_t) j * b;
      if (b == 4 || b == 8 || b == 16) {
        for (size_t l = 0; l < b; l += 4) gather_four(rows, values, stored, u + l, b, own + l);
        continue;
      }
      for (size_t i = 0; i < stored; i++) weft_add_scaled(b, own, values[i], u + (size_t) rows[i] * b);
    }
  }
  return WEFT_OK;
}
