/* What benchmarks and their tests sum (builds with WEFT_TESTS=yes): n points uniform in the unit cube, made on each
 * device from a key, so that there may be as many as its memory holds. Coordinate j of point i is word j % 4 of Philox
 * block (key, i, WEFT_STREAM_CUBE, j / 4). Query c of `samples` is point c * (n / samples). A compact kernel. */
#pragma once

#include "kernel/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_STREAM_CUBE 0x6b740002u

typedef struct weft_kernel_cube_job {
  size_t n, d, samples, bandwidths; /* samples: at most 64 */
  uint64_t key;
  int kind;
  const double *h;
  double *seconds; /* making, cells, sorting, moving, directory, then the sums of each bandwidth */
  /* bandwidths * (2 samples + 4): sums of the samples, the same directly, mean of all sums, tests of cells, of (query,
   * cell), of pairs */
  double *out;
} weft_kernel_cube_job;

/* The same points in one to three dimensions, summed over a mesh with the Gaussian kernel. Samples: at most 1,024. */
typedef struct weft_kernel_cube_mesh_job {
  size_t n, d, samples;
  uint64_t key;
  double h;
  const struct weft_mesh *mesh; /* placed over the unit cube */
  double *seconds;              /* making, sorting, spreading, convolving, gathering */
  double *out;                  /* 2 samples: sums of the samples, the same directly */
  double *rounding;             /* as weft_kernel_ops' mesh gives it */
} weft_kernel_cube_mesh_job;

static WEFT_HD inline float weft_kernel_cube_at(uint32_t word) { return (float) (word >> 8) * 5.9604644775390625e-08f; }

/* ops->cube() and ops->cube_mesh() of the CPU: the same by direct sums, which are slow. */
weft_status weft_kernel_cube(weft_ctx *ctx, const weft_kernel_cube_job *job);
weft_status weft_kernel_cube_mesh(weft_ctx *ctx, const weft_kernel_cube_mesh_job *job);
/* ops->cube() with the queries dealt over the call's devices. */
weft_status weft_kernel_cube_spread(weft_ctx *ctx, const weft_kernel_ops *ops, const weft_kernel_cube_job *job);

#ifdef __cplusplus
}
#endif
