/* Direct sums on the CPU: all pairs of queries and references. */
#pragma once

#include "kernel/kernel.h"

/* out[i + c * queries]: f_c of query i or its logarithm, as exact as doubles allow; adds to `effort`. */
weft_status weft_kernel_direct(weft_ctx *ctx, const weft_kernel_task *task, double *out, weft_kernel_effort *effort);
/* The listed queries of a direct sum again, pair by pair and with more digits. */
weft_status weft_kernel_repeat(weft_ctx *ctx, const weft_kernel_task *task, const size_t *list, size_t count,
                               double *out);
