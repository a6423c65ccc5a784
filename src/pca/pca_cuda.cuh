/* What the CUDA files of the room share. */
#ifndef WEFT_PCA_CUDA_CUH
#define WEFT_PCA_CUDA_CUH

#include "../base/device.cuh"
#include "pca.h"

/* What a step of GS-PCA works on: X with `ld` rows from column to column, rows n .. ld-1 zero, ld a multiple of 16. */
struct weft_pca_dense { const double *x; int64_t n, p, ld; };

/* True when the fused kernel takes a matrix of this shape on this device. */
bool weft_pca_fused_fits(int64_t p);
/* u = X v and w = X'u with one reading of X. `partial`: weft_pca_fused_partial(p) doubles. */
size_t weft_pca_fused_partial(int64_t p);
cudaError_t weft_pca_fused(const weft_pca_dense *m, const double *v, double *u, double *w, double *partial, cudaStream_t stream);
/* w freed twice of the k columns of `found`; out = { |u|, |w|, |w / |u| - |u| v| }; v = w / |w|. k <= 256. */
cudaError_t weft_pca_after(const double *found, int k, double *v, const double *u, double *w, int64_t n, int64_t p, double *out,
                           cudaStream_t stream);

#endif
