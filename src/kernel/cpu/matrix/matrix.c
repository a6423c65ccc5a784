/* The entries of kernel matrices, by the tiles that direct sums use: 32 rows against one column at a time, which is a
 * sum of one term. Entries of compact kernels that rounding leaves in doubt are computed again with more digits. */
#include "core/call/parallel.h"
#include "kernel/cpu/direct/block.h"
#include "kernel/cpu/matrix/matrix.h"

#define COLUMNS 16        /* that a thread fills for all rows, one block after another */
#define BATCH_ENTRIES 4e6 /* that a thread computes between two polls */
#define ALLOWED 2e-13     /* of an entry that may be rounding near the boundary of a compact kernel */

typedef struct {
  int kind;
  double h, factor;
  const weft_points *a, *b;
  double *out;
  size_t ld;
  weft_tile_sum tile;
  double *q; /* for each block of 32 rows: coordinates, low parts */
} entries;

/* Entries of columns from .. to - 1: each is one reference, summed for 32 queries at a time. Entries near the end of a
 * compact kernel that may be mostly rounding error are computed again with more digits. */
static void fill_columns(const entries *matrix, size_t from, size_t to)
{
  const size_t d = matrix->a->d, n = matrix->a->n;
  const double error = weft_distance_error(d), one = matrix->factor, shift[WEFT_TILE] = { 0 };
  for (size_t first = 0; first < n; first += WEFT_TILE) {
    const size_t count = n - first < WEFT_TILE ? n - first : WEFT_TILE;
    const double *q = matrix->q + first / WEFT_TILE * 2 * d * WEFT_TILE;
    for (size_t j = from; j < to; j++) {
      double sum[WEFT_TILE] = { 0 }, inside[WEFT_TILE] = { 0 };
      const weft_tile tile = { q,
                               matrix->a->lo ? q + d * WEFT_TILE : NULL,
                               matrix->b->x + j * d,
                               matrix->b->lo ? matrix->b->lo + j * d : NULL,
                               &one,
                               shift,
                               d,
                               1,
                               1,
                               1 / (matrix->h * matrix->h),
                               error,
                               sum,
                               inside };
      matrix->tile(&tile, matrix->kind);
      for (size_t lane = 0; weft_kernel_compact(matrix->kind) && lane < count; lane++)
        if (weft_kernel_step(matrix->kind) ? inside[lane] > 0 : error * inside[lane] > ALLOWED * sum[lane])
          sum[lane] = one * weft_kernel_pair(matrix->kind, matrix->a, first + lane, matrix->b, j, matrix->h, 0);
      memcpy(matrix->out + first + j * matrix->ld, sum, count * sizeof *sum);
    }
  }
}

/* Rows are loaded as queries, 32 at a time, once; threads then share groups of columns. */
weft_status weft_kernel_matrix(weft_ctx *ctx, int kind, double h, double factor, const weft_points *a,
                               const weft_points *b, double *out, size_t ld)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t d = a->d, blocks = (a->n + WEFT_TILE - 1) / WEFT_TILE, groups = (b->n + COLUMNS - 1) / COLUMNS;
  const double each = (double) COLUMNS
  *(double) a->n;
  const size_t batch = ((size_t) (BATCH_ENTRIES / (each + 1)) + 1) * (size_t) ctx->threads;
  entries matrix = { kind, h, factor, a, b, out, ld, weft_tile_variant(), NULL };
  WEFT_TAKE(matrix.q, &mem, blocks * 2 * d * WEFT_TILE);
  for (size_t first = 0; first < a->n; first += WEFT_TILE) {
    double block[WEFT_TILE]; /* shifts, which are all 0 */
    weft_block_query q = { .q = matrix.q + first / WEFT_TILE * 2 * d * WEFT_TILE, .shift = block, .total = block };
    if (a->lo) q.q_lo = q.q + d * WEFT_TILE;
    weft_block_load(&q, a, first, a->n - first < WEFT_TILE ? a->n - first : WEFT_TILE, 0);
  }
  for (size_t start = 0; start < groups; start += batch) {
    const size_t end = groups - start < batch ? groups : start + batch;
    WEFT_TRY(weft_poll(ctx, (double) start, (double) groups));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) (end - start) * each), dynamic)
    for (size_t group = start; group < end; group++)
      fill_columns(&matrix, group * COLUMNS, b->n - group * COLUMNS < COLUMNS ? b->n : (group + 1) * COLUMNS);
  }
done:
  weft_arena_end(&mem);
  return st;
}
