/* Scores of Gaussian nodes, many at once; see gauss.c. */
#pragma once

#include "bn/both/table.h"
#include "bn/cpu/search/near.h"

/* A matrix of covariances in which parents and `child` are rows. */
typedef struct weft_bn_covariances {
  const double *matrix;
  size_t stride, child, group;
} weft_bn_covariances;

static inline weft_bn_covariances weft_bn_near_covariances(const weft_bn_near *near, const weft_bn_problem *problem,
                                                           size_t i)
{
  return (weft_bn_covariances){ near->covariance + near->covariance_start[i], weft_bn_near_stride(near, i),
                                near->start[i + 1] - near->start[i], (size_t) problem->group[i] };
}

/* Raw scores of the child with the parents and each of `count` candidates, of which are given the covariances with each
 * parent, the variances, and the covariances with the child. These are read up to a multiple of LANES. */
void weft_bn_gauss_extend(const weft_bn_ready *ready, weft_bn_covariances covariances, const size_t *parents, size_t m,
                          const double *const *row, const double *left, const double *cross, size_t count,
                          int64_t *out);
/* Leaves out, of m parents, the one without which the child's residual variance grows least, until `most` are left and
 * each of them multiplies it by more than `factor`. Returns how many stay, in their order. `work`: (m + 1)^2. */
size_t weft_bn_gauss_thin(weft_bn_covariances covariances, size_t *parents, size_t m, size_t most, double factor,
                          double *work);
/* Raw scores without each of the parents. */
void weft_bn_gauss_without(const weft_bn_ready *ready, weft_bn_covariances covariances, const size_t *parents, size_t m,
                           int64_t *out);
