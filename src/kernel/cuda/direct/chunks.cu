/* Adds up the sums that blocks of threads made of chunks of the references, in the order of the chunks. */
#include "kernel/cuda/host.cuh"
#include "kernel/cuda/direct/chunks.cuh"

/* total and rest: cols * queries, compensated; `inside` may be NULL. */
__global__ void add_chunks(const double *partial, const double *inside, int chunks, int cols, int64_t stride,
                           int64_t first, int64_t count, int64_t total_stride, double *total, double *rest,
                           double *total_inside)
{
  for (int64_t k = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; k < count * cols;
       k += (int64_t) gridDim.x * blockDim.x) {
    const int64_t q = k % count, c = k / count, to = c * total_stride + first + q;
    double t = total[to], r = rest[to], in = 0;
    for (int chunk = 0; chunk < chunks; chunk++) {
      const int64_t from = ((int64_t) chunk * cols + c) * stride + q;
      weft_add_to(&t, &r, partial[from]);
      if (inside) in += inside[from];
    }
    total[to] = t, rest[to] = r;
    if (inside) total_inside[to] += in;
  }
}

void launch_add_chunks(cudaStream_t stream, const double *partial, const double *inside, int chunks, int cols,
                       int64_t stride, int64_t first, int64_t count, int64_t total_stride, double *total, double *rest,
                       double *total_inside)
{
  add_chunks<<<grid_for(count * cols), 256, 0, stream>>>(partial, inside, chunks, cols, stride, first, count,
                                                         total_stride, total, rest, total_inside);
}
