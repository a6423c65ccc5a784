/* X on a device, and products with it. */
#pragma once

#include "pca/cuda/pca.cuh"

/* count numbers of device memory become `value`, on the stream. */
cudaError_t weft_pca_fill(double *x, int64_t count, double value, cudaStream_t stream);

/* The operations product, twice and gemm of pca.h. */
weft_status weft_pca_product(weft_pca_space *space, int transposed, const double *v, size_t b, double *out);
weft_status weft_pca_twice_cuda(weft_pca_space *space, const double *v, size_t b, double *out);
weft_status weft_pca_gemm(weft_pca_space *space, int ta, int tb, size_t m, size_t n, size_t k, double alpha,
                          const double *a, size_t lda, const double *b, size_t ldb, double beta, double *c, size_t ldc);
/* Puts X on the device: whole where it fits, else room for its pieces; sparse blocks always whole. */
weft_status weft_pca_place(weft_pca_space *space);
