/* Moments of columns, added up from parts of their rows: the operations `moments` and `seen` of pca.h on the CPU, and
 * what they share with a device's. */
#pragma once

#include <math.h>
#include "pca/pca.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a column's values in some rows amount to; `norm` is about their own mean. */
typedef struct {
  double weight, mean, norm, least, greatest, missing, infinite;
} weft_pca_column;

/* Moments of two sets of rows as those of both (Chan, Golub and LeVeque 1979); without overflow where the values are
 * near the largest double. A column of equal values keeps exactly that mean and a norm of 0. */
WEFT_HD static inline weft_pca_column weft_pca_merged(weft_pca_column a, weft_pca_column b)
{
  weft_pca_column c;
  if (a.weight == 0 || b.weight == 0) {
    c = a.weight == 0 ? b : a;
  } else {
    const double all = a.weight + b.weight;
    c.weight = all;
    c.mean = a.mean * (a.weight / all) + b.mean * (b.weight / all);
    c.norm = hypot(hypot(a.norm, b.norm), sqrt(a.weight * (b.weight / all)) * (b.mean - a.mean));
    c.least = fmin(a.least, b.least);
    c.greatest = fmax(a.greatest, b.greatest);
    if (c.least == c.greatest) {
      c.mean = c.least;
      c.norm = 0;
    }
  }
  c.missing = a.missing + b.missing;
  c.infinite = a.infinite + b.infinite;
  return c;
}

static inline void weft_pca_put_moments(const weft_pca_column *columns, size_t p, const weft_pca_moments *out)
{
  for (size_t j = 0; j < p; j++) {
    out->mean[j] = columns[j].mean;
    out->norm[j] = columns[j].norm;
    out->weight[j] = columns[j].weight;
    out->missing[j] = columns[j].missing;
    out->infinite[j] = columns[j].infinite;
  }
}

weft_status weft_pca_moments_cpu(weft_ctx *ctx, const weft_pca_data *data, const double *weights,
                                 const weft_pca_moments *out);
weft_status weft_pca_seen_cpu(weft_ctx *ctx, const weft_pca_data *data, double *out);

#ifdef __cplusplus
}
#endif
