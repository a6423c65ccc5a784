/* Columns to levels; see codes.h. Most values of a single-cell column are zero: only the others are sorted. */
#include <stdlib.h>
#include <string.h>
#include "core/call/arena.h"
#include "core/call/parallel.h"
#include "core/data/codes.h"
#include "mi/transfer/cpu/codes.h"

typedef struct {
  double *values, *sorted; /* by row; those that are not zero */
  uint8_t *all;            /* codes by row, and room for as many */
} workspace;

static int by_value(const void *a, const void *b)
{
  const double x = *(const double *) a, y = *(const double *) b;
  return (x > y) - (x < y);
}

/* A column's values as doubles. */
static void read_column(const weft_column *column, size_t n, double *out)
{
  switch (column->type) {
  case WEFT_COLUMN_I32:
    for (size_t i = 0; i < n; i++) out[i] = ((const int32_t *) column->values)[i];
    return;
  case WEFT_COLUMN_U8:
    for (size_t i = 0; i < n; i++) out[i] = ((const uint8_t *) column->values)[i];
    return;
  case WEFT_COLUMN_SPARSE:
  case WEFT_COLUMN_PATTERN:
    memset(out, 0, n * sizeof *out);
    for (size_t k = 0; k < column->stored; k++)
      out[column->rows[k]] = column->type == WEFT_COLUMN_SPARSE ? ((const double *) column->values)[k] : 1;
    return;
  default: memcpy(out, column->values, n * sizeof *out); return;
  }
}

/* Bins of equal frequency of a column's values at `order`; returns the number of levels. */
static uint32_t cut_column(const weft_column *column, size_t n, const uint32_t *order, size_t samples, uint32_t bins,
                           workspace *w, uint8_t *codes)
{
  double cuts[WEFT_TRANSFER_LEVELS];
  size_t below = 0, count = 0;
  uint32_t found = 0;
  read_column(column, n, w->values);
  for (size_t i = 0; i < samples; i++) {
    const double v = w->values[order[i]];
    below += v < 0;
    if (v != 0) w->sorted[count++] = v;
  }
  qsort(w->sorted, count, sizeof *w->sorted, by_value);
  const size_t zeros = samples - count;
  const double greatest = count > below ? w->sorted[count - 1] : zeros ? 0 : w->sorted[count - 1];
  for (uint32_t b = 1; b < bins; b++) {
    const size_t rank = (size_t) (((uint64_t) b * samples + bins - 1) / bins), at = rank ? rank - 1 : 0;
    const double cut = at < below ? w->sorted[at] : at < below + zeros ? 0 : w->sorted[at - zeros];
    if (cut < greatest && (!found || cut > cuts[found - 1])) cuts[found++] = cut;
  }
  for (size_t i = 0; i < samples; i++) {
    const double v = w->values[order[i]];
    uint8_t code = 0;
    for (uint32_t b = 0; b < found; b++) code = (uint8_t) (code + (v > cuts[b]));
    codes[i] = code;
  }
  return found + 1;
}

/* Codes of a column of categories at `order`; its levels, or 0 where it has too many or a value is not whole. */
static uint32_t take_levels(const weft_column *column, size_t n, const uint32_t *order, size_t samples, workspace *w,
                            uint8_t *codes)
{
  weft_codes plan;
  if (weft_codes_plan(column, n, 0, &plan) != WEFT_CODES_OK || plan.width != 1 || plan.levels > WEFT_TRANSFER_LEVELS)
    return 0;
  weft_encode_all(column, n, 0, &plan, w->all, w->all + n);
  for (size_t i = 0; i < samples; i++) codes[i] = w->all[order[i]];
  return plan.levels;
}

/* Threads share columns; the first column that has no levels is the error, whatever their number. */
weft_status weft_transfer_codes(weft_ctx *ctx, const weft_column *columns, size_t n, size_t genes,
                                const uint32_t *order, size_t samples, uint32_t bins, uint8_t *codes, uint32_t *levels)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const int threads = weft_threads_worth(ctx->threads, (double) genes * (double) n * 20);
  const size_t batch = (size_t) threads * (1 + (size_t) (3e5 / (double) (n + 100)));
  workspace *work;
  uint32_t *of_gene;
  WEFT_TAKE(work, &mem, (size_t) threads);
  WEFT_TAKE(of_gene, &mem, genes);
  for (int thread = 0; thread < threads; thread++) {
    WEFT_TAKE(work[thread].values, &mem, n);
    WEFT_TAKE(work[thread].sorted, &mem, n);
    WEFT_TAKE(work[thread].all, &mem, 2 * n);
  }
  *levels = 2;
  for (size_t first = 0; first < genes; first += batch) {
    const int64_t end = (int64_t) (genes - first < batch ? genes : first + batch);
    WEFT_TRY(weft_poll(ctx, (double) first, (double) genes));
    WEFT_PARALLEL_FOR(threads, guided)
    for (int64_t j = (int64_t) first; j < end; j++) {
      workspace *w = &work[WEFT_THREAD()];
      uint8_t *out = codes + (size_t) j * samples;
      of_gene[j] = bins ? cut_column(&columns[j], n, order, samples, bins, w, out)
                        : take_levels(&columns[j], n, order, samples, w, out);
    }
    for (size_t j = first; j < (size_t) end; j++) {
      if (!of_gene[j]) {
        st = weft_fail_column(ctx, j, "must have whole numbers of at most %u levels; `bins` cuts others",
                              WEFT_TRANSFER_LEVELS);
        goto done;
      }
      if (of_gene[j] > *levels) *levels = of_gene[j];
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}
