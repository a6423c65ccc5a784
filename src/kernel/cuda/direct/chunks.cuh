/* Partial sums of chunks of references, joined in their order. */
#pragma once

#include "kernel/cuda/host.cuh"

void launch_add_chunks(cudaStream_t stream, const double *partial, const double *inside, int chunks, int cols,
                       int64_t stride, int64_t first, int64_t count, int64_t total_stride, double *total, double *rest,
                       double *total_inside);
