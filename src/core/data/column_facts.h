/* What must be known of every column of a dense matrix before anything else is computed from it: missing values, range,
 * the number of distinct values, medians; and distances of its rows. R's own loops over tens of thousands of columns
 * take seconds. */
#pragma once

#include "core/call/context.h"

/* One value per column: the number of missing and of infinite values; the smallest and largest value that is not
 * missing (infinity and -infinity where all are); unless `same` is NULL, how often the commonest value occurs (same)
 * and whether there are at most five different values, all whole and below a hundred (few). */
typedef struct weft_column_facts {
  int32_t *missing, *infinite, *same, *few;
  double *least, *greatest;
} weft_column_facts;

weft_status weft_column_facts_find(weft_ctx *ctx, const double *x, size_t n, size_t p, const weft_column_facts *out);

/* The median of each column, and the median distance from it; no value may be missing. For an even number of values it
 * is the mean of the middle two, as in R. */
weft_status weft_column_medians(weft_ctx *ctx, const double *x, size_t n, size_t p, double *median, double *deviation);

/* Puts the value that belongs at place k of n, without missing ones, there: none before it is greater, none after it
 * smaller. */
void weft_select_place(double *values, size_t n, size_t k);

/* For each row, the sum of ((x - center) / scale)^2 over the columns, in their order. */
weft_status weft_row_squares(weft_ctx *ctx, const double *x, size_t n, size_t p, const double *center,
                             const double *scale, double *out);

/* Whether all `count` values are finite. */
weft_status weft_all_finite(weft_ctx *ctx, const double *x, size_t count, int *finite);
