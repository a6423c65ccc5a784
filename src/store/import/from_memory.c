/* Matrices in memory into a store: rows, compressed columns, dense; see store.h. Each step either adds whole rows to
 * the open block or writes it, so that a second try continues where the first one stopped. */
#include <string.h>
#include "store/store.h"
#include "store/file/write.h"
#include "store/import/from_memory.h"

#define ROWS_AT_ONCE 256 /* between two polls */

static double missing_value(void)
{
  const uint64_t bits = UINT64_C(0x7FF00000000007A2); /* R's NA, a NaN of low word 1954 */
  double na;
  memcpy(&na, &bits, sizeof na);
  return na;
}

static double value_at(const weft_store_values *v, size_t at)
{
  if (v->doubles) return v->doubles[at];
  if (v->floats) return v->floats[at];
  if (!v->integers) return 1;
  return v->integers[at] == INT32_MIN ? missing_value() : v->integers[at];
}

static int is_zero(const weft_store_values *v, size_t at)
{
  return v->doubles ? v->doubles[at] == 0 : v->floats ? v->floats[at] == 0 : v->integers ? v->integers[at] == 0 : 0;
}

static void put_entry(weft_store_writer *writer, uint64_t row, size_t column, double value)
{
  const weft_store_entry entry = { (uint32_t) (row - writer->first), (uint32_t) column, value };
  writer->entry[writer->count++] = entry;
}

/* Blocks without entries, where rows are skipped. */
static weft_status reach(weft_ctx *ctx, weft_store_writer *writer, uint64_t row)
{
  weft_status st = WEFT_OK;
  while (row - writer->first >= WEFT_STORE_ROWS) WEFT_TRY(weft_store_flush(ctx, writer, WEFT_STORE_ROWS));
done:
  return st;
}

/* ---- rows ---- */

static weft_status no_column(weft_ctx *ctx, const weft_store_rows *x, size_t i, size_t at, uint64_t p)
{
  return weft_fail(ctx, WEFT_ERR_INPUT, "Row %.0f has an entry in column %.0f of %.0f.", (double) (x->first + i) + 1,
                   (double) x->columns[at] + 1, (double) p);
}

/* Adds row i of x to the open block, without zeros; begins a new block where the entries do not fit. WEFT_ERR_INPUT for
 * a column that does not exist. */
static weft_status take_row(weft_ctx *ctx, weft_store_writer *writer, const weft_store_rows *x, size_t i)
{
  weft_status st = WEFT_OK;
  const uint64_t row = x->first + i;
  const size_t from = (size_t) x->starts[i], to = (size_t) x->starts[i + 1];
  size_t stored = 0;
  for (size_t at = from; at < to; at++) {
    if (x->columns[at] < 0 || (uint64_t) x->columns[at] >= writer->p) return no_column(ctx, x, i, at, writer->p);
    stored += !is_zero(&x->values, at);
  }
  WEFT_TRY(reach(ctx, writer, row));
  if (!stored) return WEFT_OK;
  if (writer->count && writer->count + stored > writer->max_entries)
    WEFT_TRY(weft_store_flush(ctx, writer, row - writer->first));
  WEFT_TRY(weft_store_room(ctx, writer, writer->count + stored));
  for (size_t at = from; at < to; at++)
    if (!is_zero(&x->values, at)) put_entry(writer, row, (size_t) x->columns[at], value_at(&x->values, at));
  writer->last = row;
done:
  return st;
}

/* How many rows from the next one on make a block that is full, where none is open; 0: they do not. */
static size_t whole_block(const weft_store_writer *writer, const weft_store_rows *x)
{
  const double *from = x->starts + x->done;
  const size_t left = x->rows - x->done;
  size_t rows = 1;
  if (writer->count || x->first + x->done != writer->first) return 0;
  while (rows < left && rows < WEFT_STORE_ROWS && from[rows + 1] - from[0] <= (double) writer->max_entries) rows++;
  return rows < left ? rows : 0;
}

/* Runs of rows that make a whole block are queued as they are, others go row by row. x->done moves on, so that a second
 * try continues. */
weft_status weft_store_take_rows(weft_ctx *ctx, weft_store_writer *writer, weft_store_rows *x)
{
  weft_status st = WEFT_OK;
  for (; x->done < x->rows; x->done++) {
    if (x->done % ROWS_AT_ONCE == 0) WEFT_TRY(weft_poll(ctx, (double) writer->first, (double) writer->n));
    for (size_t rows; (rows = whole_block(writer, x)); x->done += rows) {
      weft_store_rows block = *x;
      block.first += x->done;
      block.starts += x->done;
      block.rows = rows;
      WEFT_TRY(weft_store_take_block(ctx, writer, &block));
    }
    WEFT_TRY(take_row(ctx, writer, x, x->done));
  }
  st = weft_store_settle(ctx, writer);
done:
  return st;
}

weft_status weft_store_entries(weft_ctx *ctx, const weft_store_rows *x, uint64_t p, weft_store_entry *out,
                               size_t *count)
{
  *count = 0;
  for (size_t i = 0; i < x->rows; i++)
    for (size_t at = (size_t) x->starts[i]; at < (size_t) x->starts[i + 1]; at++) {
      if (x->columns[at] < 0 || (uint64_t) x->columns[at] >= p) return no_column(ctx, x, i, at, p);
      const weft_store_entry entry = { (uint32_t) i, (uint32_t) x->columns[at], value_at(&x->values, at) };
      if (!is_zero(&x->values, at)) out[(*count)++] = entry;
    }
  return WEFT_OK;
}

/* ---- columns ---- */

static weft_status count_rows(weft_ctx *ctx, const weft_store_writer *writer, const weft_store_columns *x,
                              uint32_t *counts)
{
  for (size_t j = 0; j < writer->p; j++) {
    if (j % ROWS_AT_ONCE == 0) {
      const weft_status st = weft_poll(ctx, 0, 0);
      if (st != WEFT_OK) return st;
    }
    if (x->starts) {
      for (size_t at = (size_t) x->starts[j]; at < (size_t) x->starts[j + 1]; at++)
        counts[x->at[at]] += !is_zero(&x->values, at);
    } else {
      for (size_t i = 0; i < x->rows; i++) counts[i] += !is_zero(&x->values, i + j * x->rows);
    }
  }
  return WEFT_OK;
}

/* Rows from .. to - 1 of every column; next[j] is where a compressed column's entries from row `from` on begin. */
static void take_range(weft_store_writer *writer, const weft_store_columns *x, size_t from, size_t to, int32_t *next)
{
  for (size_t j = 0; j < writer->p; j++) {
    if (x->starts) {
      int32_t at = next[j];
      for (; at < x->starts[j + 1] && (size_t) x->at[at] < to; at++)
        if (!is_zero(&x->values, (size_t) at))
          put_entry(writer, x->first + (uint64_t) x->at[at], j, value_at(&x->values, (size_t) at));
      next[j] = at;
    } else {
      for (size_t i = from; i < to; i++)
        if (!is_zero(&x->values, i + j * x->rows))
          put_entry(writer, x->first + i, j, value_at(&x->values, i + j * x->rows));
    }
  }
}

/* Counts the entries of each row, then fills block after block with as many rows as fit, reading each column from where
 * it stopped (`next`). x->done moves on, so that a second try continues. */
weft_status weft_store_take_columns(weft_ctx *ctx, weft_store_writer *writer, weft_store_columns *x)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  uint32_t *counts;
  int32_t *next = NULL;
  WEFT_TAKE0(counts, &mem, x->rows + 1);
  WEFT_TRY(count_rows(ctx, writer, x, counts));
  if (x->starts) {
    WEFT_TAKE(next, &mem, writer->p + 1);
    for (size_t j = 0; j < writer->p; j++) {
      next[j] = x->starts[j];
      while (x->done && next[j] < x->starts[j + 1] && (size_t) x->at[next[j]] < x->done) next[j]++;
    }
  }
  while (x->done < x->rows) {
    const uint64_t row = x->first + x->done;
    size_t stored = 0;
    WEFT_TRY(reach(ctx, writer, row));
    const uint64_t fit = weft_store_fit(writer, counts, x->done, x->rows, writer->count, row - writer->first);
    if (!fit) {
      WEFT_TRY(weft_store_flush(ctx, writer, row - writer->first));
      continue;
    }
    for (size_t i = x->done; i < x->done + fit; i++) stored += counts[i];
    WEFT_TRY(weft_store_room(ctx, writer, writer->count + stored));
    take_range(writer, x, x->done, x->done + (size_t) fit, next);
    x->done += (size_t) fit;
    writer->last = x->first + x->done - 1;
  }
done:
  weft_arena_end(&mem);
  return st;
}
