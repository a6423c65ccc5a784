/* What the law of a correlation depends on when one of the two columns is in random order. */
#pragma once

#include "mi/mi.h"

/* For each column, without its missing values, and as the estimator correlates it (values, ranks or normal scores): */
typedef struct weft_mi_tails {
  double kurtosis; /* excess kurtosis by Fisher's k-statistics; 0 for a constant column and for fewer than four rows */
  double stretch;  /* the factor by which ties widen the variance of Kendall's tau-b: 1 to 3/2 */
  double orders;   /* the logarithm of the number of orders of the rows that differ, of which an order and its reverse
                      are one where values are distinct: no p-value is less than the inverse of this number */
} weft_mi_tails;
/* tails: one for each column. */
weft_status weft_mi_tails_of(weft_ctx *ctx, const weft_mi_numeric *data, weft_mi_tails *tails);
