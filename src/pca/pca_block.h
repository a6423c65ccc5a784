/* The block engine's parts that pca.c puts together. */
#ifndef WEFT_PCA_BLOCK_H
#define WEFT_PCA_BLOCK_H

#include "../base/arena.h"
#include "pca.h"

/* What every engine works with. "Near" is the side of X with fewer dimensions, where an iteration starts: loadings when
 * p <= n, else scores; X times a near vector is a far one. */
typedef struct weft_pca_run {
  weft_ctx *ctx;
  const weft_pca_ops *ops;
  weft_pca_space *space;
  const weft_pca_job *job;
  size_t n, p, near, far;
  int near_is_rows;   /* p > n */
  double passes;
  uint64_t drawn;     /* random numbers used */
  weft_pca_result *out;
} weft_pca_run;

/* near -> far, or far -> near. */
weft_status weft_pca_to_far(weft_pca_run *run, const double *s_v, size_t b, double *s_out);
weft_status weft_pca_to_near(weft_pca_run *run, const double *s_u, size_t b, double *s_out);

/* Uniform random numbers in (-1, 1), the next of the run's. */
weft_status weft_pca_random(weft_pca_run *run, double *s_out, size_t count);

weft_status weft_pca_block(weft_pca_run *run);   /* krylov and gram */
weft_status weft_pca_vectors(weft_pca_run *run); /* gs and nipals */

#endif
