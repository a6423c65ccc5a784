/* Benchmarks' points over a mesh on the device. */
#pragma once

#include "kernel/both/test/cube.h"

weft_status weft_kernel_cube_mesh_cuda(weft_ctx *ctx, const struct weft_kernel_cube_mesh_job *job);
