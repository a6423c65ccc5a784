/* Columns to levels; see codes.h. Most values of a single-cell column are zero: only the others are looked at one by
 * one, and cuts are selected, not sorted for. */
#include <stdlib.h>
#include <string.h>
#include "core/call/arena.h"
#include "core/call/parallel.h"
#include "core/data/codes.h"
#include "core/numbers/topk.h"
#include "mi/transfer/cpu/codes.h"

/* Where samples stand in time. */
typedef struct {
  size_t n, samples;
  const uint32_t *order; /* rows by place */
  const int32_t *place;  /* of a row, or -1 */
} places;

typedef struct {
  weft_scored *others; /* values that are not zero, with their places */
  size_t count, below; /* how many; how many are negative */
  uint8_t *all;        /* codes by row, and room for as many */
} workspace;

static void take_value(workspace *w, double v, size_t place)
{
  if (v == 0) return;
  w->below += v < 0;
  w->others[w->count++] = (weft_scored){ v, place };
}

/* The values of a column that are not zero. */
static void gather(const weft_column *column, const places *at, workspace *w)
{
  const int sparse = column->type == WEFT_COLUMN_SPARSE || column->type == WEFT_COLUMN_PATTERN;
  w->count = w->below = 0;
  for (size_t k = 0; k < (sparse ? column->stored : at->samples); k++) {
    const int64_t place = sparse ? at->place[column->rows[k]] : (int64_t) k;
    const size_t from = sparse ? k : at->order[k];
    if (place < 0) continue;
    switch (column->type) {
    case WEFT_COLUMN_PATTERN: take_value(w, 1, (size_t) place); break;
    case WEFT_COLUMN_I32: take_value(w, ((const int32_t *) column->values)[from], (size_t) place); break;
    case WEFT_COLUMN_U8: take_value(w, ((const uint8_t *) column->values)[from], (size_t) place); break;
    default: take_value(w, ((const double *) column->values)[from], (size_t) place);
    }
  }
}

/* The value of rank `from_above` among the greatest `*front` values, which stand in front; afterwards only the values
 * up to this rank do. */
static double select_value(weft_scored *others, size_t *front, size_t from_above)
{
  if (from_above < *front) {
    weft_scored_select(others, *front, from_above);
    *front = from_above;
    return others[from_above - 1].score;
  }
  double least = others[0].score;
  for (size_t k = 1; k < *front; k++)
    if (others[k].score < least) least = others[k].score;
  return least;
}

/* Bins of equal frequency of a column's values by time; returns the number of levels. */
static uint32_t cut_column(const weft_column *column, const places *at, uint32_t bins, workspace *w, uint8_t *codes)
{
  double cuts[WEFT_TRANSFER_LEVELS], greatest;
  uint32_t found = 0, code = 0;
  gather(column, at, w);
  const size_t zeros = at->samples - w->count;
  size_t front = w->count;
  greatest = zeros ? 0 : w->others[0].score;
  for (size_t k = 0; k < w->count; k++)
    if (w->others[k].score > greatest) greatest = w->others[k].score;
  for (uint32_t b = 1; b < bins; b++) {
    const size_t rank = (size_t) (((uint64_t) b * at->samples + bins - 1) / bins), place = rank ? rank - 1 : 0;
    const int is_zero = place >= w->below && place < w->below + zeros;
    const size_t below = place < w->below ? place : place - zeros; /* values under it that are not zero */
    const double cut = is_zero ? 0 : select_value(w->others, &front, w->count - below);
    if (cut < greatest && (!found || cut > cuts[found - 1])) cuts[found++] = cut;
  }
  for (uint32_t b = 0; b < found; b++) code += 0 > cuts[b];
  memset(codes, (int) code, at->samples);
  for (size_t k = 0; k < w->count; k++) {
    code = 0;
    for (uint32_t b = 0; b < found; b++) code += w->others[k].score > cuts[b];
    codes[w->others[k].index] = (uint8_t) code;
  }
  return found + 1;
}

/* Codes of a column of categories by time; its levels, or 0 where it has too many or a value is not whole. */
static uint32_t take_levels(const weft_column *column, const places *at, workspace *w, uint8_t *codes)
{
  weft_codes plan;
  if (weft_codes_plan(column, at->n, 0, &plan) != WEFT_CODES_OK || plan.width != 1 ||
      plan.levels > WEFT_TRANSFER_LEVELS)
    return 0;
  weft_encode_all(column, at->n, 0, &plan, w->all, w->all + at->n);
  for (size_t i = 0; i < at->samples; i++) codes[i] = w->all[at->order[i]];
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
  int32_t *place;
  WEFT_TAKE(place, &mem, n);
  for (size_t i = 0; i < n; i++) place[i] = -1;
  for (size_t i = 0; i < samples; i++) place[order[i]] = (int32_t) i;
  const places at = { n, samples, order, place };
  WEFT_TAKE(work, &mem, (size_t) threads);
  WEFT_TAKE(of_gene, &mem, genes);
  for (int thread = 0; thread < threads; thread++) {
    WEFT_TAKE(work[thread].others, &mem, samples);
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
      of_gene[j] = bins ? cut_column(&columns[j], &at, bins, w, out) : take_levels(&columns[j], &at, w, out);
    }
    for (size_t j = first; j < (size_t) end; j++) {
      if (!of_gene[j]) {
        st = weft_fail_column(ctx, j, "must contain whole numbers with at most %u levels; `bins` discretises others",
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
