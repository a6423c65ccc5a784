/* Kernel matrices that are held. */
#pragma once

#include "kernel/kernel.h"

/* out[i + j ld] = factor k(|a_i - b_j| / h), as accurate as direct sums. */
weft_status weft_kernel_matrix(weft_ctx *ctx, int kind, double h, double factor, const weft_points *a,
                               const weft_points *b, double *out, size_t ld);
