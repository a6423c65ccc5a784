/* Leading eigenvectors of the smaller Gram matrix, which is not formed. */
#pragma once

#include "pca/engines/orthonormal.h"

/* Vectors that Lanczos has room for; 0 where other engines pay. */
size_t weft_pca_lanczos_capacity(const weft_pca_run *run);
/* About the k leading eigenvectors, near × k, by blocks of job->block, within that capacity. */
weft_status weft_pca_lanczos(weft_pca_frame *frame, size_t capacity, double *s_vectors);
