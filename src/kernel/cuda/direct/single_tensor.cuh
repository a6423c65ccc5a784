/* Single precision on tensor cores. */
#pragma once

#include "kernel/cuda/host.cuh"

#define TENSOR_DIMS 36
/* What products in pairs of 16-bit floats add to (2d + 9); derived in single_tensor.cu. */
#define TENSOR_ERROR(d) (32 + 4 * (d))

/* Whether this kernel, in d dimensions, has a kernel for the device's tensor cores. */
bool weft_kernel_tensor_can(int kind, int64_t d);
/* Queries that share a middle, and so a block. */
int weft_kernel_tensor_tile(int d);
/* One column of weights. */
weft_status weft_kernel_launch_tensor(const tile_launch<float> &tiles);
