/* Leading eigenvectors of a Gram matrix that is made with errors, which are corrected. */
#pragma once

#include "pca/engines/orthonormal.h"

/* About the k leading eigenvectors of X'X, near × k, by blocks of b > k vectors; for ops->rough() and columns as the
 * near side. */
weft_status weft_pca_rough(weft_pca_frame *frame, size_t b, double *s_vectors);
