/* One iteration of GS-PCA with X read once, on devices with clusters of thread blocks. */
#pragma once

#include "pca/cuda/pca.cuh"

/* What a step of GS-PCA works on: X in the layout of weft_pca_tile(). */
struct weft_pca_dense {
  const double *tiled;
  int64_t n, p;
};

/* True when the fused kernel takes a matrix of this shape on this device. */
bool weft_pca_fused_fits(int64_t p);
/* Numbers in the layout of panels, and X (ld rows per column) put into it. */
size_t weft_pca_tiled_count(int64_t n, int64_t p);
cudaError_t weft_pca_tile(const double *x, int64_t n, int64_t p, int64_t ld, double *to, cudaStream_t stream);
/* u = X v and `parts` parts of w = X'u with one reading of X. `partial`: weft_pca_fused_partial(p) doubles. */
size_t weft_pca_fused_partial(int64_t p);
cudaError_t weft_pca_fused(const weft_pca_dense *m, const double *v, double *u, double *partial, int *parts,
                           cudaStream_t stream);
/* w (the sum of the parts, when there are some) freed of the k columns of `found`, twice where needed; v = w / |w|;
 * then, in memory that the host sees, out = { |u|, |w|, |w / |u| - |u| v|, turn }. k <= 256. */
cudaError_t weft_pca_after(const double *found, int k, const double *partial, int parts, double *v, const double *u,
                           double *w, int64_t n, int64_t p, double *out, double turn, cudaStream_t stream);
