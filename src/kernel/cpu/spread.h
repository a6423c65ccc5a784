/* Sums with the queries dealt over the call's devices. */
#pragma once

#include "kernel/kernel.h"

/* Direct sums with the queries dealt over the call's devices; kernel/cpu/spread.c. */
weft_status weft_kernel_direct_spread(weft_ctx *ctx, const weft_kernel_ops *ops, const weft_kernel_task *task,
                                      double *out, weft_kernel_effort *effort);
weft_status weft_kernel_single_spread(weft_ctx *ctx, const weft_kernel_ops *ops, const weft_kernel_task *task,
                                      const int32_t *own, int tensor, double *out, double *bound);
weft_status weft_kernel_slopes_spread(weft_ctx *ctx, const weft_kernel_ops *ops, const weft_kernel_task *task,
                                      const double *each, double *out);
weft_status weft_kernel_gaussian_spread(weft_ctx *ctx, const weft_kernel_ops *ops, const weft_kernel_task *task,
                                        const double *scale, int moved, double *out, double *slopes, double *bounds);
/* ops->grid() with the queries dealt in the same way; all devices have all points. */
weft_status weft_kernel_grid_spread(weft_ctx *ctx, const weft_kernel_ops *ops, const weft_kernel_task *task,
                                    double reach, int *done, double *out, weft_kernel_effort *effort);
