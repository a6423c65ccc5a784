/* Products of digits; see digits.cuh. A block has 128 rows of a and of b, in steps of 64 bytes of depth
 * through shared memory; the next step's bytes are on their way in registers meanwhile. Warps stand two by four, each
 * for 64 × 32 sums. */
#include "regulation/cuda/digits.cuh"

#define SIDE 128
#define DEPTH 64
#define STRIDE (DEPTH + 16) /* bytes of a row in shared memory: the eight rows of a fragment lie in different banks */
#define THREADS 256
#define PIECES 2 /* of 16 bytes that a thread brings of each operand: SIDE * DEPTH / 16 / THREADS */

/* c += a b for 16 × 32 of a, by rows, and 32 × 8 of b, by columns. */
__device__ static inline void multiply_add(uint32_t (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
#if __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  /* the same in quarters: 8 × 16 of a, 16 × 8 of b */
#  pragma unroll
  for (int part = 0; part < 4; part++)
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
                 : "+r"(c[2 * (part % 2)]), "+r"(c[2 * (part % 2) + 1])
                 : "r"(a[part]), "r"(b[part / 2]));
#endif
}

struct operand {
  const int8_t *digits;
  size_t plane, depth;
}; /* from the block's first row on */

__device__ static inline void fetch(const operand &x, int digit, size_t at, uint4 (&pieces)[PIECES])
{
#pragma unroll
  for (int k = 0; k < PIECES; k++) {
    const size_t piece = threadIdx.x + k * (size_t) THREADS;
    pieces[k] =
        *(const uint4 *) (x.digits + digit * x.plane + piece / (DEPTH / 16) * x.depth + at + piece % (DEPTH / 16) * 16);
  }
}

__device__ static inline void put(int8_t *shared, const uint4 (&pieces)[PIECES])
{
#pragma unroll
  for (int k = 0; k < PIECES; k++) {
    const int piece = (int) threadIdx.x + k * THREADS;
    *(uint4 *) (shared + piece / (DEPTH / 16) * STRIDE + piece % (DEPTH / 16) * 16) = pieces[k];
  }
}

__device__ static inline uint32_t word(const int8_t *shared, int row, int byte)
{
  return *(const uint32_t *) (shared + row * STRIDE + byte);
}

/* Which digits meet in each quarter of the steps: high high, high low, low high, low low. */
__device__ static inline int a_digit(size_t quarter) { return quarter < 2; }
__device__ static inline int b_digit(size_t quarter) { return !(quarter & 1); }

/* A block's tile of 128 x 128 sums of products, from digits that are copied to shared memory 64 bytes of depth at a
 * time, the next ones on their way to registers. The four pairs of digits follow one another; sums are multiplied by 64
 * in between. */
__global__ static void __launch_bounds__(THREADS)
    multiply(const int8_t *a_digits, size_t a_plane, const int8_t *b_digits, size_t b_plane, size_t b_rows,
             size_t depth, int32_t *out)
{
  __shared__ __align__(16) int8_t a_shared[SIDE * STRIDE], b_shared[SIDE * STRIDE];
  const size_t first_a = blockIdx.y * (size_t) SIDE, first_b = blockIdx.x * (size_t) SIDE, steps = depth / DEPTH;
  const operand a = { a_digits + first_a * depth, a_plane, depth }, b = { b_digits + first_b * depth, b_plane, depth };
  const int warp = (int) threadIdx.x / 32, lane = (int) threadIdx.x % 32, group = lane / 4, quad = lane % 4;
  const int row0 = warp / 4 * 64, column0 = warp % 4 * 32;
  uint32_t sum[4][4][4];
  uint4 a_next[PIECES], b_next[PIECES];
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
      for (int k = 0; k < 4; k++) sum[i][j][k] = 0;
  fetch(a, a_digit(0), 0, a_next);
  fetch(b, b_digit(0), 0, b_next);
  for (size_t step = 0; step < 4 * steps; step++) {
    const size_t next = step + 1;
    if (step == steps || step == 3 * steps) {
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
          for (int k = 0; k < 4; k++) sum[i][j][k] *= 64;
    }
    __syncthreads();
    put(a_shared, a_next);
    put(b_shared, b_next);
    __syncthreads();
    if (next < 4 * steps) {
      fetch(a, a_digit(next / steps), next % steps * DEPTH, a_next);
      fetch(b, b_digit(next / steps), next % steps * DEPTH, b_next);
    }
#pragma unroll
    for (int byte = 0; byte < DEPTH; byte += 32) {
      uint32_t fa[4][4], fb[4][2];
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int k = 0; k < 4; k++)
          fa[i][k] = word(a_shared, row0 + 16 * i + group + k % 2 * 8, byte + quad * 4 + k / 2 * 16);
#pragma unroll
      for (int j = 0; j < 4; j++)
#pragma unroll
        for (int k = 0; k < 2; k++) fb[j][k] = word(b_shared, column0 + 8 * j + group, byte + quad * 4 + k * 16);
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) multiply_add(sum[i][j], fa[i], fb[j]);
    }
  }
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
      for (int k = 0; k < 2; k++) {
        const size_t row = first_a + row0 + 16 * i + group + 8 * k, column = first_b + column0 + 8 * j + quad * 2;
        *(int2 *) (out + row * b_rows + column) = make_int2((int) sum[i][j][2 * k], (int) sum[i][j][2 * k + 1]);
      }
}

void weft_digits_multiply(const int8_t *a, size_t a_rows, const int8_t *b, size_t b_rows, size_t depth, int32_t *out,
                          cudaStream_t s)
{
  const dim3 grid((unsigned) (b_rows / SIDE), (unsigned) (a_rows / SIDE));
  multiply<<<grid, THREADS, 0, s>>>(a, a_rows * depth, b, b_rows * depth, b_rows, depth, out);
}
