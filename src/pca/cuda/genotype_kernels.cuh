/* The product of packed genotypes with at most 64 vectors on a device, decoded into the operands of the tensor cores
 * for doubles; included by genotypes.cu and tools/race-pca.cu.
 *
 *   out (m x b) = A in      A: people x variants for X v, variants x people for X'u
 *
 * A block of threads has ROWS rows of the result and all of its columns, each of its eight warps 32 rows; it goes along
 * the terms DEPTH at a time, in two buffers. A warp's thread of group g = lane / 4 and place q = lane % 4 holds two
 * tiles of 16 x 16 of A: rows g and g + 8, columns q, q + 4, q + 8 and q + 12. Which row and term these are is free, so
 * that the four genotypes of a byte belong to one thread: column q + 4 s is term 4 q + s, and for X v the four rows are
 * people 4 g to 4 g + 3. */
#pragma once

#include <cstdint>
#include <cuda_pipeline_primitives.h>

#define ROWS 256
#define DEPTH 32
#define ALONG (DEPTH + 2)          /* doubles from one column of `in` to the next: threads meet no bank twice */
#define CODES_ALONG (ROWS / 4 + 8) /* bytes from one variant to the next, for X v */

/* ---- the product ---- */

struct genotype_job {
  const uint8_t *codes; /* of the first variant */
  int64_t pitch;        /* bytes from one variant to the next */
  const double *values; /* four per variant */
  int64_t rows, terms;  /* of the result; summed */
  const double *in;
  int64_t in_rows;
  int b;
  double *out;
  int64_t out_rows;
  const double *times; /* a factor for each row of the result, or NULL */
  bool add;            /* to what is there */
  int64_t depth;       /* terms of a block */
  double *partial;     /* rows x b for each share of the terms; NULL: there is one share */
};

/* c += a b for tiles of 16 x 16 and 16 x 8; a[h + 2 s]: row g + 8 h, column q + 4 s; b[s]: row q + 4 s, column g;
 * c[e + 2 h]: row g + 8 h, column 2 q + e. */
__device__ static inline void multiply(double (&c)[4], const double (&a)[8], const double (&b)[4])
{
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, "
      "{%12, %13, %14, %15}, {%0, %1, %2, %3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]), "d"(b[0]), "d"(b[1]),
        "d"(b[2]), "d"(b[3]));
#elif __CUDA_ARCH__ >= 800
#  pragma unroll
  for (int s = 0; s < 4; s++)
#  pragma unroll
    for (int h = 0; h < 2; h++)
      asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                   : "+d"(c[2 * h]), "+d"(c[2 * h + 1])
                   : "d"(a[h + 2 * s]), "d"(b[s]));
#else
  const int lane = (int) threadIdx.x % 32, g = lane / 4, q = lane % 4;
#  pragma unroll
  for (int s = 0; s < 4; s++)
    for (int l = 0; l < 4; l++) {
      const double left = __shfl_sync(~0u, b[s], 8 * q + l), right = __shfl_sync(~0u, b[s], 8 * q + 4 + l);
#  pragma unroll
      for (int h = 0; h < 2; h++) {
        const double x = __shfl_sync(~0u, a[h + 2 * s], 4 * g + l);
        c[2 * h] += x * left;
        c[2 * h + 1] += x * right;
      }
    }
#endif
}

/* Where the values of variant v of a buffer begin: with a gap after each four, so that threads meet no bank twice. */
__device__ static inline int slot_of(int v) { return 4 * v + 4 * (v / 4); }

template <bool transposed, int TILES> struct genotype_buffers {
  double in[2][8 * TILES][ALONG];
  uint8_t codes[2][transposed ? ROWS * DEPTH / 4 : DEPTH * CODES_ALONG];
  double values[transposed ? 4 * ROWS : 10 * DEPTH]; /* of the rows; of the terms, twice */
};

/* Begins to copy terms first .. first + DEPTH - 1, of which those from `end` on are zero, to a buffer. */
template <bool transposed, int TILES>
__device__ static inline void fetch(const genotype_job &job, genotype_buffers<transposed, TILES> &to, int buffer,
                                    int64_t row, int64_t first, int64_t end)
{
  const int thread = (int) threadIdx.x;
  for (int at = thread; at < 8 * TILES * DEPTH; at += ROWS) {
    const int column = at / DEPTH, k = at % DEPTH;
    const bool there = column < job.b && first + k < end;
    __pipeline_memcpy_async(&to.in[buffer][column][k], job.in + (there ? first + k + column * job.in_rows : 0), 8,
                            there ? 0 : 8);
  }
  if (transposed) {
    const bool there = row + thread < job.rows;
    __pipeline_memcpy_async(&to.codes[buffer][thread * (DEPTH / 4)],
                            job.codes + (there ? (row + thread) * job.pitch + first / 4 : 0), 8, there ? 0 : 8);
  } else {
    const int v = thread / 8, part = thread % 8;
    const bool there = first + v < end;
    __pipeline_memcpy_async(&to.codes[buffer][v * CODES_ALONG + 8 * part],
                            job.codes + (there ? (first + v) * job.pitch + row / 4 + 8 * part : 0), 8, there ? 0 : 8);
    if (thread < 2 * DEPTH) {
      const int w = thread / 2;
      const bool known = first + w < end;
      __pipeline_memcpy_async(&to.values[buffer * 5 * DEPTH + slot_of(w) + 2 * (thread % 2)],
                              job.values + (known ? 4 * (first + w) + 2 * (thread % 2) : 0), 16, known ? 0 : 16);
    }
  }
  __pipeline_commit();
}

/* The thread's part of A for the 16 terms of a step. */
template <bool transposed, int TILES>
__device__ static inline void decode(const genotype_buffers<transposed, TILES> &from, int buffer, int step,
                                     double (&a)[2][8])
{
  const int warp = (int) threadIdx.x / 32, g = (int) threadIdx.x % 32 / 4, q = (int) threadIdx.x % 4;
#pragma unroll
  for (int part = 0; part < 4; part++) {
    if (transposed) { /* a row: tile part / 2, half part % 2 */
      const int row = 32 * warp + 8 * part + g;
      const int byte = from.codes[buffer][row * (DEPTH / 4) + 4 * step + q];
#pragma unroll
      for (int s = 0; s < 4; s++) a[part / 2][part % 2 + 2 * s] = from.values[4 * row + (byte >> 2 * s & 3)];
    } else { /* a variant */
      const int v = 16 * step + 4 * q + part;
      const int byte = from.codes[buffer][v * CODES_ALONG + 8 * warp + g];
      const double *values = from.values + buffer * 5 * DEPTH + slot_of(v);
#pragma unroll
      for (int r = 0; r < 4; r++) a[r / 2][r % 2 + 2 * part] = values[byte >> 2 * r & 3];
    }
  }
}

__device__ static inline void store(const genotype_job &job, int64_t row, int column, double value)
{
  double *to = job.out + row + column * job.out_rows;
  if (job.times) value *= job.times[row];
  *to = job.add ? *to + value : value;
}

template <bool transposed, int TILES> __global__ void __launch_bounds__(ROWS) genotype_product(const genotype_job job)
{
  __shared__ __align__(16) genotype_buffers<transposed, TILES> held;
  const int warp = (int) threadIdx.x / 32, g = (int) threadIdx.x % 32 / 4, q = (int) threadIdx.x % 4;
  const int64_t row = (int64_t) blockIdx.x * ROWS, begin = blockIdx.y * job.depth,
                end = begin + job.depth < job.terms ? begin + job.depth : job.terms;
  double c[2][TILES][4];
#pragma unroll
  for (int at = 0; at < 2 * TILES * 4; at++) c[at / 4 / TILES][at / 4 % TILES][at % 4] = 0;
  if (transposed)
    for (int at = (int) threadIdx.x; at < 4 * ROWS; at += ROWS)
      held.values[at] = row + at / 4 < job.rows ? job.values[4 * row + at] : 0;
  fetch<transposed, TILES>(job, held, 0, row, begin, end);
  for (int64_t first = begin, turn = 0; first < end; first += DEPTH, turn++) {
    const int buffer = (int) (turn & 1);
    if (first + DEPTH < end)
      fetch<transposed, TILES>(job, held, buffer ^ 1, row, first + DEPTH, end);
    else
      __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
#pragma unroll
    for (int step = 0; step < DEPTH / 16; step++) {
      double a[2][8];
      decode<transposed, TILES>(held, buffer, step, a);
#pragma unroll
      for (int t = 0; t < TILES; t++) {
        const double2 *in = (const double2 *) &held.in[buffer][8 * t + g][16 * step + 4 * q];
        const double2 low = in[0], high = in[1];
        const double b[4] = { low.x, low.y, high.x, high.y };
        multiply(c[0][t], a[0], b);
        multiply(c[1][t], a[1], b);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int part = 0; part < 4; part++) {
    const int64_t at = row + 32 * warp + (transposed ? 8 * part + g : 4 * g + part);
    if (at >= job.rows) continue;
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        const int column = 8 * t + 2 * q + e;
        if (column >= job.b) continue;
        const double value = c[part / 2][t][part % 2 * 2 + e];
        if (job.partial)
          job.partial[((int64_t) blockIdx.y * job.b + column) * job.rows + at] = value;
        else
          store(job, at, column, value);
      }
  }
}

/* The result from its shares, added in their order. */
__global__ void add_shares(const genotype_job job, int shares)
{
  const int64_t at = blockIdx.x * (int64_t) blockDim.x + threadIdx.x, all = job.rows * job.b;
  double sum = 0;
  if (at >= all) return;
  for (int s = 0; s < shares; s++) sum += job.partial[s * all + at];
  store(job, at % job.rows, (int) (at / job.rows), sum);
}

/* to[i + j n] = from[i + j n] by[i] */
__global__ void weigh_rows(double *to, const double *from, int64_t n, int64_t count, const double *by)
{
  const int64_t at = blockIdx.x * (int64_t) blockDim.x + threadIdx.x;
  if (at < count) to[at] = from[at] * by[at % n];
}

template <bool transposed> static void launch(const genotype_job &job, dim3 blocks, cudaStream_t stream)
{
  if (job.b <= 8)
    genotype_product<transposed, 1><<<blocks, ROWS, 0, stream>>>(job);
  else if (job.b <= 16)
    genotype_product<transposed, 2><<<blocks, ROWS, 0, stream>>>(job);
  else if (job.b <= 32)
    genotype_product<transposed, 4><<<blocks, ROWS, 0, stream>>>(job);
  else if (job.b <= 48)
    genotype_product<transposed, 6><<<blocks, ROWS, 0, stream>>>(job);
  else
    genotype_product<transposed, 8><<<blocks, ROWS, 0, stream>>>(job);
}
