/* Matrix products on the CPU: C := alpha op(A) op(B) + beta C, column major.
 *
 * A BLAS would not do all that is needed here: X is centred, scaled and weighted while it is packed, so that no
 * centred copy exists and nothing is lost to cancellation; every entry of C is summed in an order that does not depend
 * on the number of threads, so that results are the same bits; the user can interrupt the work between panels; and it
 * is fast with any R, even one that uses the reference BLAS. */
#pragma once

#include "core/call/context.h"

/* Columns of two bits per row, four rows in a byte, the first in the lowest bits. Column j begins at
 * bytes[place[j] stride]; a row with the bits c has the value values[4 j + c]. */
typedef struct weft_coded {
  const uint8_t *bytes;
  size_t stride;
  const double *place, *values;
} weft_coded;

/* Entry (i, j) is (x[i + j ld] - center[j]) factor[j] row[i]; NULL leaves a step out. `single`: x holds floats.
 * `coded`: where it is not NULL, the entry is its value times row[i]. */
typedef struct weft_view {
  const void *x;
  size_t ld;
  int single, transposed;
  const double *center, *factor, *row;
  const weft_coded *coded;
} weft_view;

static inline weft_view weft_view_plain(const double *x, size_t ld, int transposed)
{
  weft_view v = { x, ld, 0, transposed, NULL, NULL, NULL, NULL };
  return v;
}

/* op(A) is m × k, op(B) k × n. `lower`: only the entries on and below the diagonal are needed (the others may hold
 * anything). */
weft_status weft_product(weft_ctx *ctx, size_t m, size_t n, size_t k, double alpha, const weft_view *a,
                         const weft_view *b, double beta, double *c, size_t ldc, int lower);

/* *yes = 1 when x (p × p) equals its transpose bit by bit, but for the sign of 0; NaN equals nothing. */
weft_status weft_symmetric(weft_ctx *ctx, const double *x, size_t p, int *yes);

#if defined(__GNUC__)
/* As wide as every processor's registers: compilers keep wider ones in memory. */
typedef double weft_two __attribute__((vector_size(16), aligned(8)));
#endif

/* x += a y. */
static inline void weft_add_scaled(size_t count, double *restrict x, double a, const double *restrict y)
{
  size_t i = 0;
#if defined(__GNUC__)
  for (; i + 2 <= count; i += 2) *(weft_two *) (x + i) += *(const weft_two *) (y + i) * a;
#endif
  for (; i < count; i++) x[i] += a * y[i];
}
