/* What reads every block of a store: sums, and any rows and columns as compressed columns. */
#pragma once

#include "store/store.h"

/* Sums and counts of stored values of chosen columns, by these and by rows (n), and the range of stored values. */
typedef struct weft_store_sums {
  double *columns, *column_counts, *rows, *row_counts;
  double least, greatest;
  int skip_missing;
} weft_store_sums;

weft_status weft_store_sum(weft_ctx *ctx, const weft_store *store, const weft_store_choice *choice,
                           const weft_store_recipe *recipe, const weft_store_sums *out, double range[2]);

/* sums[g + j count]: of column j over the rows of group g. of: the group of each row, from 1; others (R's NA) have
 * none. seen: the numbers of values other than 0 instead. squares, cubes: sums of powers of the values, too, or NULL
 * both. */
typedef struct weft_store_groups {
  const int32_t *of;
  size_t count;
  int seen;
  double *sums, *squares, *cubes;
} weft_store_groups;

/* recipe: what becomes of values first, or NULL. */
weft_status weft_store_sum_groups(weft_ctx *ctx, const weft_store *store, const weft_store_recipe *recipe,
                                  const weft_store_groups *groups, size_t count);

/* The choice as compressed columns; starts: column_count + 1 */
weft_status weft_store_count(weft_ctx *ctx, const weft_store *store, const weft_store_choice *choice, double *starts);
/* `starts` as weft_store_count() gave them; `rows` are places in the choice. */
weft_status weft_store_select(weft_ctx *ctx, const weft_store *store, const weft_store_choice *choice,
                              const weft_store_recipe *recipe, const double *starts, int32_t *rows, double *values);
