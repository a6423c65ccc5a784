/* Sums of a task over a grid. */
#pragma once

#include "kernel/cuda/host.cuh"

/* As weft_kernel_ops' grid(). */
weft_status weft_kernel_grid_cuda(weft_ctx *ctx, const weft_kernel_task *task, double reach, int *done_here,
                                  double *out, weft_kernel_effort *effort);
