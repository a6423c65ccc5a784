/* The parts of the block engine, which decompose.c combines. */
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
  size_t n, p, near,
      far;          /* over ranks the far side, where it is rows, has this rank's alone; else all is on every rank */
  int near_is_rows; /* p > n, rows of all ranks */
  int narrow;       /* a product takes as long for each vector of a narrow block as of a wide one */
  int sparse;       /* both products of a panel may follow each other */
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

/* ---- over ranks (ranks.c) ---- */

weft_status weft_pca_ranks_to_far(weft_pca_run *run, const double *s_v, size_t b, double *s_out);
weft_status weft_pca_ranks_to_near(weft_pca_run *run, const double *s_u, size_t b, double *s_out);
/* `count` numbers in the space's memory become their sums over the ranks. */
weft_status weft_pca_ranks_add(weft_pca_run *run, double *s_x, size_t count);
/* Numbers on the host become the first rank's. Nothing happens without ranks. */
weft_status weft_pca_ranks_as_first(weft_pca_run *run, double *x, size_t count);
/* Whether all ranks say yes. */
weft_status weft_pca_ranks_agree(weft_pca_run *run, int *yes);

/* Uniform random numbers in (-1, 1), the next of the run's. */
weft_status weft_pca_random(weft_pca_run *run, double *s_out, size_t count);

/* What orthonormalise() works with: room for coefficients and for a panel in passing. */
#define WEFT_PCA_PANEL 64 /* vectors orthogonalised at once, at most */
typedef struct weft_pca_frame {
  weft_pca_run *run;
  double *s_small, *small; /* ((what is before) + PANEL) × PANEL, there and on the host */
  double *s_swap;          /* rows × PANEL */
  double scale;            /* the largest norm seen: what counts as zero is relative to it */
} weft_pca_frame;

/* The panel of b columns behind the first `before` of `s_basis` (near or far vectors) is made orthonormal and
 * orthogonal to them: old panel = basis c + new panel r; c: before × b, r: b × b. Directions that vanish give rows of
 * zeros in r and are replaced by random ones. */
weft_status weft_pca_orthonormalise(weft_pca_frame *frame, double *s_basis, int far, size_t before, size_t b, double *c,
                                    double *r);
/* b random near vectors behind the first `before` of `s_basis`, orthonormal and orthogonal to them. */
weft_status weft_pca_random_block(weft_pca_frame *frame, double *s_basis, size_t before, size_t b);

/* About the k leading eigenvectors of the smaller Gram matrix, near × k. `b`: weft_pca_filter_block(), 0 where others
 * pay. */
size_t weft_pca_filter_block(const weft_pca_run *run);
weft_status weft_pca_filter(weft_pca_frame *frame, size_t b, double *s_vectors);
/* The same of a matrix that is there: b vectors, to `tol`, from those in s_vectors where it has `begun`. */
weft_status weft_pca_filter_of(weft_pca_frame *frame, size_t b, double *s_g, double *s_diagonal, double tol, int begun,
                               double *s_vectors);
/* The same of a matrix that is made with errors, which are corrected. */
weft_status weft_pca_rough(weft_pca_frame *frame, size_t b, double *s_vectors);

/* The same of a Gram matrix that is not formed, by blocks of job->block. `capacity`: weft_pca_lanczos_capacity(), 0
 * where others pay. */
size_t weft_pca_lanczos_capacity(const weft_pca_run *run);
weft_status weft_pca_lanczos(weft_pca_frame *frame, size_t capacity, double *s_vectors);

/* ---- when to look, and when to end ---- */

/* How many more blocks until residuals that fell from `before` to `now` in so many blocks are below tol. */
double weft_pca_blocks_left(double before, double now, size_t blocks, double tol);
/* Blocks of b to take until the next look, a part of what is left. A look decomposes all that was found, so narrow
 * blocks are looked at only as often, in vectors added, as wide ones. */
size_t weft_pca_until_look(double left, size_t b);
#define WEFT_PCA_LOOK_AGAIN 8 /* blocks that a search for missed copies takes */
/* Whether a start of b random vectors may have missed a copy of one of the k largest singular values. It finds b copies
 * of each, so only where b of them are one to what was reached (`residual`, relative to the largest): vectors that span
 * a part of a cluster are not so near to being singular unless the whole cluster is so narrow. Copies of the last value
 * would change nothing. */
int weft_pca_copies_missed(const double *values, size_t k, size_t b, double residual);

weft_status weft_pca_block(weft_pca_run *run); /* krylov and gram */
/* The triplets of X in the span of the job's `start`: Rayleigh-Ritz, two passes. Residuals are those of X. */
weft_status weft_pca_ritz(weft_pca_run *run);
weft_status weft_pca_vectors(weft_pca_run *run); /* gs and nipals */
