/* Gaussian sums on tensor cores: the operation of kernel.h. */
#pragma once

#include "kernel/kernel.h"

weft_status weft_kernel_gaussian_cuda(weft_ctx *ctx, const weft_kernel_task *task, const double *scale, int moved,
                                      double *out, double *slopes, double *bounds);
