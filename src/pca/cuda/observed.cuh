/* Regressions over what is observed, on a device: operations of pca.h. */
#pragma once

#include "pca/cuda/pca.cuh"

weft_status weft_pca_observed_cuda(weft_pca_space *space, double *t, double *loads);
weft_status weft_pca_observed_loads_cuda(weft_pca_space *space, const double *t, double *loads);
weft_status weft_pca_observed_scores_cuda(weft_pca_space *space, const double *loads, double *t);
weft_status weft_pca_deflate_cuda(weft_pca_space *space, const double *t, const double *loads);
