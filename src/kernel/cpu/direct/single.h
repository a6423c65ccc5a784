/* Direct sums in single precision on the CPU. */
#pragma once

#include "kernel/kernel.h"

/* In float, coordinates relative to each block of queries, which should come in an order in which neighbours lie
 * together; bound[i]: greatest error of query i over Σ|w|. own: NULL, or query i leaves reference own[i] out. */
weft_status weft_kernel_direct_single(weft_ctx *ctx, const weft_kernel_task *task, const int32_t *own, int tensor,
                                      double *out, double *bound);
