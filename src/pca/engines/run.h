/* One decomposition of an open space: its products, its random numbers, when to look for convergence and to end. */
#pragma once

#include "core/call/arena.h"
#include "pca/pca.h"

/* What every engine works with. "Near" is the side of X with fewer dimensions, where an iteration starts: loadings when
 * p <= n, else scores; X times a near vector is a far one. */
typedef struct weft_pca_run {
  weft_ctx *ctx;
  const weft_pca_ops *ops;
  weft_pca_space *space;
  const weft_pca_job *job;
  size_t n, p, near, far; /* over ranks the far side, where it is rows, has this rank's alone */
  int near_is_rows;       /* p > n, rows of all ranks */
  int narrow;             /* a product takes as long for each vector of a narrow block as of a wide one */
  int sparse;             /* both products of a panel may follow each other */
  const weft_pca_ranks *ranks;
  size_t here; /* rows of the data that are here */
  double passes;
  uint64_t drawn; /* random numbers used */
  weft_pca_result *out;
} weft_pca_run;

/* near -> far, or far -> near. */
weft_status weft_pca_to_far(weft_pca_run *run, const double *s_v, size_t b, double *s_out);
weft_status weft_pca_to_near(weft_pca_run *run, const double *s_u, size_t b, double *s_out);

/* near -> near by the smaller Gram matrix, through the far vectors s_far unless X is read once. */
weft_status weft_pca_twice(weft_pca_run *run, const double *s_v, size_t b, double *s_far, double *s_out);
/* Whether that needs no far vectors. */
int weft_pca_reads_once(const weft_pca_run *run);

/* The smaller Gram matrix and its diagonal; near must be columns when there are ranks. */
weft_status weft_pca_square(weft_pca_run *run, int coarse, double *s_g, double *s_diagonal);

/* Uniform random numbers in (-1, 1), the next of the run's. */
weft_status weft_pca_random(weft_pca_run *run, double *s_out, size_t count);

/* How many more blocks until residuals that fell from `before` to `now` in so many blocks are below tol. */
double weft_pca_blocks_left(double before, double now, size_t blocks, double tol);
/* Blocks of b to take until the next look, a part of what is left. A look decomposes all that was found, so narrow
 * blocks are looked at only as often, in vectors added, as wide ones. */
size_t weft_pca_until_look(double left, size_t b);
#define WEFT_PCA_LOOK_AGAIN 8 /* blocks that a search for missed copies takes */
/* Whether a start of b random vectors may have missed a copy of one of the k largest singular values, other than the
 * last. It finds b copies of each, so only where b of them differ by no more than was reached (`residual`, relative to
 * the largest). */
int weft_pca_copies_missed(const double *values, size_t k, size_t b, double residual);
