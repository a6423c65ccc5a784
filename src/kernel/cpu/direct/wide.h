/* Direct sums for many bandwidths in one pass, on the CPU. */
#pragma once

#include "kernel/kernel.h"

/* For each query and bandwidth the sums of two columns of weights of any sign, times exp(shift) for exponential
 * kernels: `shift` is the exponent of the nearest reference, so that nothing underflows. task->h is not used, points
 * have no low parts, coordinates are at most 1e8 bandwidths, and query i leaves out task->own[i] where there is such a
 * list. Kernel values are floats of distances in double: errors are at most some 1e-5 of each value for exponents up to
 * 100. out: queries * (2 * bandwidths); shift: queries * bandwidths. */
weft_status weft_kernel_direct_wide(weft_ctx *ctx, const weft_kernel_task *task, const double *h, size_t bandwidths,
                                    double *out, double *shift);
