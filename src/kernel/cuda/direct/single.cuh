/* Single precision on the device. */
#pragma once

#include "kernel/cuda/host.cuh"

/* As weft_kernel_ops' single(). */
weft_status weft_kernel_single_cuda(weft_ctx *ctx, const weft_kernel_task *task, const int32_t *own, int tensor,
                                    double *out, double *bound);
