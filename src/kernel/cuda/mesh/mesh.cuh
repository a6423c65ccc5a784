/* Sums over a mesh on a device. */
#pragma once

#include "kernel/cuda/host.cuh"
#include "kernel/both/mesh.h"

/* As weft_kernel_ops' mesh(). */
weft_status weft_kernel_mesh_cuda(weft_ctx *ctx, const weft_kernel_task *task, const struct weft_mesh *mesh,
                                  const double *total, double *out, double *rounding);
