/* The design with orthonormal columns. */
#pragma once

#include "ranking/ranking.h"

/* Q of `rows` (n × k, overwritten) and R (k × k, upper triangle), by modified Gram-Schmidt. Columns that follow from
 * those before them, up to 1e-7 of their length, become 0 in both. Returns the rank. */
size_t weft_ranking_orthonormal(double *rows, size_t n, size_t k, double *r);
/* Sum of products, in an order that depends on n alone. */
double weft_ranking_dot(const double *x, const double *y, size_t n);
