/* What reads every block, one at a time: sums, and any rows and columns as compressed columns; see store.h. Memory: one
 * block in bytes and decoded, beside the result. */
#include <math.h>
#include <string.h>
#include "../base/parallel.h"
#include "store_read.h"

/* Sums over rows are taken in so many runs of columns, each by one thread, and added in order: threads change
 * nothing. */
#define RUNS 16

static weft_status load_decoded(weft_ctx *ctx, const weft_store *s, size_t index, const weft_store_choice *choice,
                                weft_arena *mem, weft_store_view *view, int32_t **rows, double **values)
{
  weft_status st = WEFT_OK;
  const weft_store_block *b = &s->block[index];
  int32_t *r;
  double *v;
  WEFT_TRY(weft_poll(ctx, (double) b->first, (double) s->n));
  WEFT_TRY(weft_store_load(ctx, s, index, mem, view));
  WEFT_TAKE(r, mem, (size_t) b->values + 1);
  WEFT_TAKE(v, mem, (size_t) b->values + 1);
  WEFT_TRY(weft_store_decode(ctx, s, view, choice->columns, choice->column_count, r, v));
  *rows = r;
  *values = v;
done:
  return st;
}

static size_t column_at(const weft_store_choice *choice, size_t place)
{
  return choice->columns ? (size_t) choice->columns[place] : place;
}

static double dressed(const weft_store_recipe *recipe, uint64_t row, double v)
{
  if (recipe->size) v /= recipe->size[row];
  return recipe->log1p ? log1p(v) : v;
}

/* ---- sums ---- */

typedef struct { double *rows, *counts, least, greatest; } run_sums; /* of one run of columns */

/* Chosen columns at places from .. to - 1. */
static void sum_run(const weft_store_view *view, const weft_store_choice *choice, size_t from, size_t to,
                    const int32_t *rows, const double *values, const weft_store_recipe *recipe,
                    const weft_store_sums *out, run_sums *run)
{
  const uint64_t first = view->block->first;
  for (size_t j = from; j < to; j++) {
    const size_t c = column_at(choice, j);
    double sum = 0;
    for (size_t at = view->starts[c]; at < view->starts[c + 1]; at++) {
      const double v = dressed(recipe, first + (uint64_t) rows[at], values[at]);
      if (isnan(v) && out->skip_missing) continue;
      sum += v;
      run->rows[rows[at]] += v;
      run->counts[rows[at]]++;
      if (!(v >= run->least)) run->least = isnan(v) ? run->least : v;
      if (!(v <= run->greatest)) run->greatest = isnan(v) ? run->greatest : v;
      out->column_counts[j]++;
    }
    out->columns[j] += sum;
  }
}

static weft_status sum_block(weft_ctx *ctx, const weft_store *s, size_t index, const weft_store_choice *choice,
                             const weft_store_recipe *recipe, const weft_store_sums *out, double range[2])
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const weft_store_block *b = &s->block[index];
  weft_store_view view;
  run_sums run[RUNS];
  int32_t *rows;
  double *values, *sums;
  WEFT_TRY(load_decoded(ctx, s, index, choice, &mem, &view, &rows, &values));
  WEFT_TAKE0(sums, &mem, 2 * RUNS * (size_t) b->rows);
  const int threads = weft_threads_worth(ctx->threads, 4.0 * (double) b->values);
  WEFT_PARALLEL(threads)
  WEFT_FOR(dynamic)
  for (int r = 0; r < RUNS; r++) {
    const run_sums mine = { sums + 2 * (size_t) r * b->rows, sums + (2 * (size_t) r + 1) * b->rows, INFINITY,
                            -INFINITY };
    run[r] = mine;
    sum_run(&view, choice, choice->column_count * (size_t) r / RUNS, choice->column_count * ((size_t) r + 1) / RUNS,
            rows, values, recipe, out, &run[r]);
  }
  for (int r = 0; r < RUNS; r++) {
    for (size_t i = 0; i < b->rows; i++) {
      out->rows[b->first + i] += run[r].rows[i];
      out->row_counts[b->first + i] += run[r].counts[i];
    }
    range[0] = fmin(range[0], run[r].least);
    range[1] = fmax(range[1], run[r].greatest);
  }
done:
  weft_arena_end(&mem);
  return st;
}

weft_status weft_store_sum(weft_ctx *ctx, const weft_store *s, const weft_store_choice *choice,
                           const weft_store_recipe *recipe, const weft_store_sums *out, double range[2])
{
  weft_status st = WEFT_OK;
  memset(out->columns, 0, choice->column_count * sizeof(double));
  memset(out->column_counts, 0, choice->column_count * sizeof(double));
  memset(out->rows, 0, s->n * sizeof(double));
  memset(out->row_counts, 0, s->n * sizeof(double));
  range[0] = INFINITY;
  range[1] = -INFINITY;
  for (size_t k = 0; k < s->blocks && st == WEFT_OK; k++) st = sum_block(ctx, s, k, choice, recipe, out, range);
  return st;
}

/* ---- any rows and columns ---- */

/* Which chosen rows lie in a block: places first .. first + count - 1 of the choice. */
typedef struct { size_t first, count; int all; } chosen_rows;

static size_t first_not_below(const double *rows, size_t count, double bound)
{
  size_t low = 0, high = count;
  while (low < high) {
    const size_t mid = low + (high - low) / 2;
    if (rows[mid] < bound) low = mid + 1; else high = mid;
  }
  return low;
}

static chosen_rows rows_in(const weft_store_choice *choice, const weft_store_block *b)
{
  chosen_rows in = { (size_t) b->first, (size_t) b->rows, 1 };
  if (!choice->rows) return in;
  in.first = first_not_below(choice->rows, choice->row_count, (double) b->first);
  in.count = first_not_below(choice->rows, choice->row_count, (double) (b->first + b->rows)) - in.first;
  in.all = in.count == b->rows;
  return in;
}

/* place[row in the block] = place among the choice's, or -1 */
static void map_rows(const weft_store_choice *choice, const weft_store_block *b, chosen_rows in, int32_t *place)
{
  for (size_t i = 0; i < b->rows; i++) place[i] = in.all ? (int32_t) (in.first + i) : -1;
  if (in.all) return;
  for (size_t i = 0; i < in.count; i++)
    place[(size_t) choice->rows[in.first + i] - b->first] = (int32_t) (in.first + i);
}

static weft_status count_block(weft_ctx *ctx, const weft_store *s, size_t index, const weft_store_choice *choice,
                               chosen_rows in, double *counts)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_store_view view;
  int32_t *rows, *place;
  double *values;
  if (in.all) {
    WEFT_TRY(weft_poll(ctx, 0, 0));
    WEFT_TRY(weft_store_load_counts(ctx, s, index, &mem, &view));
    for (size_t j = 0; j < choice->column_count; j++) {
      const size_t c = column_at(choice, j);
      counts[j] += view.starts[c + 1] - view.starts[c];
    }
  } else {
    WEFT_TAKE(place, &mem, (size_t) s->block[index].rows);
    map_rows(choice, &s->block[index], in, place);
    WEFT_TRY(load_decoded(ctx, s, index, choice, &mem, &view, &rows, &values));
    for (size_t j = 0; j < choice->column_count; j++) {
      const size_t c = column_at(choice, j);
      for (size_t at = view.starts[c]; at < view.starts[c + 1]; at++) counts[j] += place[rows[at]] >= 0;
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}

weft_status weft_store_count(weft_ctx *ctx, const weft_store *s, const weft_store_choice *choice, double *starts)
{
  weft_status st = WEFT_OK;
  memset(starts, 0, (choice->column_count + 1) * sizeof *starts);
  for (size_t k = 0; k < s->blocks; k++) {
    const chosen_rows in = rows_in(choice, &s->block[k]);
    if (in.count) WEFT_TRY(count_block(ctx, s, k, choice, in, starts + 1));
  }
  for (size_t j = 0; j < choice->column_count; j++) starts[j + 1] += starts[j];
done:
  return st;
}

typedef struct {
  const weft_store *store;
  const weft_store_choice *choice;
  const weft_store_recipe *recipe;
  const double *starts;
  size_t *next; /* where a column's next entry goes */
  int32_t *rows;
  double *values;
} selection;

/* The chosen column at `place`: 0 where it has more entries than were counted. */
static int copy_column(const selection *to, const weft_store_view *view, const int32_t *row_place,
                       const int32_t *rows, const double *values, size_t place)
{
  const size_t c = column_at(to->choice, place), end = (size_t) to->starts[place + 1];
  for (size_t at = view->starts[c]; at < view->starts[c + 1]; at++) {
    const int32_t row = row_place[rows[at]];
    if (row < 0) continue;
    if (to->next[place] >= end) return 0;
    to->rows[to->next[place]] = row;
    to->values[to->next[place]++] = dressed(to->recipe, view->block->first + (uint64_t) rows[at], values[at]);
  }
  return 1;
}

static weft_status select_block(weft_ctx *ctx, const selection *to, size_t index, chosen_rows in)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const weft_store *s = to->store;
  const weft_store_block *b = &s->block[index];
  const int64_t columns = (int64_t) to->choice->column_count;
  weft_store_view view;
  int32_t *rows, *place;
  double *values;
  uint8_t *fits;
  WEFT_TAKE(place, &mem, (size_t) b->rows);
  WEFT_TAKE(fits, &mem, (size_t) columns + 1);
  map_rows(to->choice, b, in, place);
  WEFT_TRY(load_decoded(ctx, s, index, to->choice, &mem, &view, &rows, &values));
  const int threads = weft_threads_worth(ctx->threads, 2.0 * (double) b->values);
  WEFT_PARALLEL(threads)
  WEFT_FOR(static)
  for (int64_t j = 0; j < columns; j++)
    fits[j] = (uint8_t) copy_column(to, &view, place, rows, values, (size_t) j);
  for (int64_t j = 0; j < columns && st == WEFT_OK; j++)
    if (!fits[j]) st = weft_store_damaged(ctx, s, index, "changed while it was read");
done:
  weft_arena_end(&mem);
  return st;
}

weft_status weft_store_select(weft_ctx *ctx, const weft_store *s, const weft_store_choice *choice,
                              const weft_store_recipe *recipe, const double *starts, int32_t *rows, double *values)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  size_t *next;
  WEFT_TAKE(next, &mem, choice->column_count + 1);
  for (size_t j = 0; j < choice->column_count; j++) next[j] = (size_t) starts[j];
  const selection to = { s, choice, recipe, starts, next, rows, values };
  for (size_t k = 0; k < s->blocks; k++) {
    const chosen_rows in = rows_in(choice, &s->block[k]);
    if (in.count) WEFT_TRY(select_block(ctx, &to, k, in));
  }
  for (size_t j = 0; j < choice->column_count && st == WEFT_OK; j++)
    if (next[j] != (size_t) starts[j + 1])
      st = weft_fail(ctx, WEFT_ERR_INPUT, "'%s' changed while it was read.", s->name);
done:
  weft_arena_end(&mem);
  return st;
}
