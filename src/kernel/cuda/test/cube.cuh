/* Benchmarks' points on the device. */
#pragma once

#include "kernel/both/test/cube.h"

weft_status weft_kernel_cube_cuda(weft_ctx *ctx, const struct weft_kernel_cube_job *job);
