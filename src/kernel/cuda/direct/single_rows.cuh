/* Single precision in float, coordinates in registers. */
#pragma once

#include "kernel/cuda/host.cuh"

bool weft_kernel_rows_can(int kind, int64_t nq, int64_t d, int64_t m);
int weft_kernel_rows_tile(void);
weft_status weft_kernel_launch_rows(const tile_launch<float> &tiles);
