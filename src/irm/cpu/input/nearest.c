/* Each row's nearest centre: direct sums of squares, a run of rows at a time against each centre in turn. A sum is
 * taken by one thread in the order of the columns, so that threads change nothing. */
#include <math.h>
#include "core/call/parallel.h"
#include "irm/cpu/input/nearest.h"

#define ROWS 128          /* of a run: its sums stay in the first cache */
#define BETWEEN_POLLS 2e8 /* operations */

static void nearest_of_run(const double *x, size_t n, size_t first, size_t rows, size_t d, const double *centres,
                           size_t m, int32_t *near)
{
  double least[ROWS], sum[ROWS];
  for (size_t i = 0; i < rows; i++) {
    least[i] = INFINITY;
    near[first + i] = 1;
  }
  for (size_t c = 0; c < m; c++) {
    for (size_t i = 0; i < rows; i++) sum[i] = 0;
    for (size_t j = 0; j < d; j++) {
      const double at = centres[c + j * m], *column = x + first + j * n;
      for (size_t i = 0; i < rows; i++) {
        const double away = column[i] - at;
        sum[i] += away * away;
      }
    }
    for (size_t i = 0; i < rows; i++) {
      if (sum[i] >= least[i]) continue;
      least[i] = sum[i];
      near[first + i] = (int32_t) c + 1;
    }
  }
}

/* Threads share runs of ROWS rows; a poll after every BETWEEN_POLLS operations or so. */
weft_status weft_irm_nearest(weft_ctx *ctx, const double *x, size_t n, size_t d, const double *centres, size_t m,
                             int32_t *near)
{
  const double each = (double) d * (double) m + 1;
  const size_t runs = (n + ROWS - 1) / ROWS, some = (size_t) (BETWEEN_POLLS / each / ROWS) + 1;
  const int threads = weft_threads_worth(ctx->threads, each * (double) n);
  for (size_t from = 0; from < runs; from += some) {
    const weft_status st = weft_poll(ctx, (double) (from * ROWS), (double) n);
    const int64_t to = (int64_t) (from + some < runs ? from + some : runs);
    if (st != WEFT_OK) return st;
    WEFT_PARALLEL_FOR(threads, static)
    for (int64_t r = (int64_t) from; r < to; r++) {
      const size_t first = (size_t) r * ROWS;
      nearest_of_run(x, n, first, n - first < ROWS ? n - first : ROWS, d, centres, m, near);
    }
  }
  return WEFT_OK;
}
