/* What the values of one gene, sorted, say about the groups. */
#pragma once

#include "ranking/ranking.h"

typedef struct weft_ranking_value {
  double value;
  int32_t group;
} weft_ranking_value;

/* Ascending; equal values stay in order. `other` has room for as many, `ends` for one more. */
void weft_ranking_sort(weft_ranking_value *values, weft_ranking_value *other, int32_t *ends, size_t n);
/* Bits that a table of bins × groups (column major) has about the group. */
double weft_ranking_bits(const int32_t *table, size_t bins, size_t groups);
/* Takes sorted values. `table` has room for WEFT_RANKING_BINS × groups. */
double weft_ranking_bits_of(const weft_ranking_value *values, size_t n, size_t groups, int32_t *table);
double weft_ranking_auc(const weft_ranking_value *values, size_t n);
int32_t weft_ranking_ties(const weft_ranking_value *values, size_t n);
