/* Leading eigenvectors of the smaller Gram matrix, by filtering. */
#pragma once

#include "pca/engines/orthonormal.h"

/* Vectors of a block that finds k; and those of a run's, 0 where other engines pay. */
size_t weft_pca_filter_width(size_t k);
size_t weft_pca_filter_block(const weft_pca_run *run);
/* Whether blocks may be wider than WEFT_PCA_PANEL: on a device. */
int weft_pca_filters_many(const weft_pca_run *run);
/* About the k leading eigenvectors, near × k, by a block of b vectors. */
weft_status weft_pca_filter(weft_pca_frame *frame, size_t b, double *s_vectors);
/* The same for a matrix that is in memory: b vectors, to `tol`, from those in s_vectors where it has `begun`. */
weft_status weft_pca_filter_of(weft_pca_frame *frame, size_t b, double *s_g, double *s_diagonal, double tol, int begun,
                               double *s_vectors);
