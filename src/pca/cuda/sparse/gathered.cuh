/* Products that gather the stored values of sparse blocks on a device, for few of them. */
#pragma once

#include "pca/cuda/pca.cuh"

/* Makes compressed rows of the blocks that stay, so that products gather from then on, where at most a twentieth of X
 * is stored and there is room. Called once, when all blocks are there. */
weft_status weft_pca_gather_from(weft_pca_space *space);
/* The operation product of pca.h, where space->gathers. */
weft_status weft_pca_gathered(weft_pca_space *space, int transposed, const double *v, size_t b, double *out);
