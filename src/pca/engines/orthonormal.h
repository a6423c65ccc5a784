/* Orthonormal bases, a panel of vectors at a time. */
#pragma once

#include "pca/engines/run.h"

#define WEFT_PCA_PANEL 64   /* vectors orthogonalised at once, at most; */
#define WEFT_PCA_WIDEST 160 /* near ones with nothing before them */

/* What weft_pca_orthonormalise() works with: room for coefficients and for a panel in passing. */
typedef struct weft_pca_frame {
  weft_pca_run *run;
  double *s_small, *small; /* ((what is before) + PANEL) × PANEL, there and on the host; or WEFT_PCA_WIDEST squared */
  double *s_swap;          /* rows × PANEL; or near × WEFT_PCA_WIDEST */
  double scale;            /* the largest norm seen: what counts as zero is relative to it */
} weft_pca_frame;

/* The panel of b columns behind the first `before` of `s_basis` (near or far vectors) is made orthonormal and
 * orthogonal to them: old panel = basis c + new panel r; c: before × b, r: b × b. Directions that vanish give rows of
 * zeros in r and are replaced by random ones. */
weft_status weft_pca_orthonormalise(weft_pca_frame *frame, double *s_basis, int far, size_t before, size_t b, double *c,
                                    double *r);
/* b random near vectors behind the first `before` of `s_basis`, orthonormal and orthogonal to them. */
weft_status weft_pca_random_block(weft_pca_frame *frame, double *s_basis, size_t before, size_t b);
