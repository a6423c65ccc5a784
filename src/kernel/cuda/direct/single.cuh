/* Between single.cu and single_tensor.cu. */
#pragma once

#include "kernel/cuda/host.cuh"

#define TENSOR_DIMS 36
/* What products in pairs of 16-bit floats add to (2d + 9); derived in single_tensor.cu. */
#define TENSOR_ERROR(d) (32 + 4 * (d))

/* Whether this kernel, in so many dimensions, has a kernel for the device's tensor cores. */
bool weft_kernel_tensor_can(int kind, int64_t d);
/* Queries that share a middle, and so a block. */
int weft_kernel_tensor_tile(int d);
/* One column of weights. */
weft_status weft_kernel_launch_tensor(const tile_launch<float> &l);

/* single_rows.cu: the same in float, coordinates in registers. */
bool weft_kernel_rows_can(int kind, int64_t nq, int64_t d, int64_t m);
int weft_kernel_rows_tile(void);
weft_status weft_kernel_launch_rows(const tile_launch<float> &l);
