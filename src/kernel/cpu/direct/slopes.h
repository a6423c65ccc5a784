/* Slopes of kernel sums, all pairs on the CPU: operations of kernel.h. */
#pragma once

#include "kernel/kernel.h"

weft_status weft_kernel_slopes(weft_ctx *ctx, const weft_kernel_task *task, const double *each, double *out);
weft_status weft_kernel_gaussian(weft_ctx *ctx, const weft_kernel_task *task, const double *scale, int moved,
                                 double *out, double *slopes, double *bounds);
