/* Reads everything that a store holds, unless it is too large: entries must lie in the matrix. */
#ifndef WEFT_LONGTESTS_ENTRIES_H
#define WEFT_LONGTESTS_ENTRIES_H

#include "parsers.h"
#include "store/file/pass.h"
#include "store/file/read.h"

#define MOST 20000 /* rows or columns; the reader itself allows 2^31 - 1 */

static inline void read_entries(weft_ctx *ctx, const weft_store *store)
{
  if (store->n > MOST || store->p > MOST) return;
  const weft_store_recipe as_they_are = { NULL, 0 };
  const weft_store_choice all = { NULL, NULL, (size_t) store->n, (size_t) store->p };
  double *starts = calloc((size_t) store->p + 1, sizeof *starts), range[2];
  double *columns = calloc((size_t) store->p * 2 + 1, sizeof *columns);
  double *rows = calloc((size_t) store->n * 2 + 1, sizeof *rows);
  if (!starts || !columns || !rows) abort();
  if (weft_store_count(ctx, store, &all, starts) == WEFT_OK) {
    const size_t count = (size_t) starts[store->p];
    int32_t *at = malloc((count + 1) * sizeof *at);
    double *values = malloc((count + 1) * sizeof *values);
    if (!at || !values) abort();
    if (weft_store_select(ctx, store, &all, &as_they_are, starts, at, values) == WEFT_OK)
      for (size_t k = 0; k < count; k++)
        if (at[k] < 0 || (uint64_t) at[k] >= store->n) abort();
    free(at);
    free(values);
  }
  weft_store_sums sums = {
    .columns = columns, .column_counts = columns + store->p, .rows = rows, .row_counts = rows + store->n
  };
  (void) weft_store_sum(ctx, store, &all, &as_they_are, &sums, range);
  free(starts);
  free(columns);
  free(rows);
}

static inline void put_crc(uint8_t *at, uint32_t crc)
{
  for (int k = 0; k < 4; k++) at[k] = (uint8_t) (crc >> (8 * k));
}

#endif
