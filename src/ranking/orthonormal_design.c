/* Designs as orthonormal columns. Modified Gram-Schmidt, with the response carried along as one more column, is as
 * stable as Householder's method for least squares (Bjorck 1967), and its inner loops run down columns. */
#include <math.h>
#include "ranking/ranking.h"
#include "core/numbers/product.h"
#include "ranking/orthonormal_design.h"

#define FOLLOWS 1e-7 /* of a column's length: what is left of a column that follows from others */

double weft_ranking_dot(const double *x, const double *y, size_t n)
{
  double sum[4] = { 0, 0, 0, 0 };
  size_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (size_t lane = 0; lane < 4; lane++) sum[lane] += x[i + lane] * y[i + lane];
  for (; i < n; i++) sum[0] += x[i] * y[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* Each column is freed of those before it twice, and then normed; zero columns take no part in what follows. */
size_t weft_ranking_orthonormal(double *rows, size_t n, size_t k, double *r)
{
  size_t rank = 0;
  for (size_t j = 0; j < k; j++) {
    double *column = rows + j * n;
    const double before = sqrt(weft_ranking_dot(column, column, n));
    for (size_t i = 0; i < k; i++) r[i + j * k] = 0;
    /* twice: once leaves rounding errors of nearly collinear columns in place */
    for (int turn = 0; turn < 2; turn++) {
      for (size_t i = 0; i < j; i++) {
        const double share = weft_ranking_dot(rows + i * n, column, n);
        r[i + j * k] += share;
        weft_add_scaled(n, column, -share, rows + i * n);
      }
    }
    const double length = sqrt(weft_ranking_dot(column, column, n)), left = length > FOLLOWS * before ? length : 0;
    r[j + j * k] = left;
    rank += left > 0;
    for (size_t i = 0; i < n; i++) column[i] = left > 0 ? column[i] / left : 0;
  }
  return rank;
}
