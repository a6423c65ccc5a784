/* The Gram matrix on a device, and its eigenvectors: operations of pca.h. */
#pragma once

#include "pca/cuda/pca.cuh"

/* square of pca.h. */
weft_status weft_pca_square(weft_pca_space *space, int rows, int coarse, double *g, double *diagonal);
/* shift, correct and eigen of pca.h. */
weft_status weft_pca_shift(weft_pca_space *space, double *g, size_t order, const double *diagonal, double by);
weft_status weft_pca_correct(weft_pca_space *space, double *g, size_t order, const double *m, const double *v, size_t b,
                             double *diagonal);
weft_status weft_pca_eigen(weft_pca_space *space, double *g, size_t order, size_t k, double *vectors);
