/* X on a device of which a few cells change again and again: the operation refill of pca.h. */
#pragma once

#include "pca/cuda/pca.cuh"

weft_status weft_pca_refill_cuda(weft_pca_space *space, const weft_pca_cells *cells);
