/* Direct sums in float where coordinates fit into registers: up to 16 dimensions, one column of weights.
 *
 * A thread keeps all coordinates of 4 queries, and a block of 128 threads has 512. References lie in shared memory, a
 * dimension's together; all lanes of a warp read the same 4 at a time, which is one transaction, and feeds 16 products
 * per lane. A pair takes d + 3 instructions and d / 16 loads of one transaction, where the tiles of tiles.cuh
 * have loads of 4: on one H200, d = 10, 1.65e12 pairs per second against 1.11e12 (Epanechnikov), 1.46e12 against
 * 0.92e12 (Gaussian). Arithmetic and bound are those of single.cu: s by the expansion, about the middle of
 * the block's queries, 128 terms in a lane before they go on in double. */
#include "kernel/cuda/direct/single.cuh"
#include "kernel/cuda/direct/single_rows.cuh"

#define ROW_THREADS 128
#define ROW_QUERIES 4
#define ROWS 256 /* references in shared memory */

/* A thread's 4 queries against the references of a chunk, coordinates in registers (D of them, 0 beyond args.d),
 * references 256 at a time in shared memory. One column of weights; sums of runs in float, totals in double. */
template <int KIND, int D>
__global__ void __launch_bounds__(ROW_THREADS, D <= 6 ? 6 : 4) sum_rows(const tile_args<float> args)
{
  const bool compact = WEFT_KERNEL_IN(COMPACT, KIND);
  __shared__ __align__(16) float x[D][ROWS], x_term[ROWS], w[ROWS];
  const int thread = threadIdx.x;
  const int64_t block = args.first_block + blockIdx.y, first = block * (ROW_THREADS * ROW_QUERIES) + thread;
  const int64_t from = (int64_t) blockIdx.x * args.chunk;
  const int64_t end = from + args.chunk < args.rows_end ? from + args.chunk : args.rows_end;
  const float *centre = args.centre + block * args.d;
  float q[ROW_QUERIES][D], q_term[ROW_QUERIES];
  double total[ROW_QUERIES];
#pragma unroll
  for (int i = 0; i < ROW_QUERIES; i++) {
    const int64_t asked = first + i * ROW_THREADS, at = asked < args.query.n ? asked : args.query.n - 1;
    float square = 0;
#pragma unroll
    for (int j = 0; j < D; j++) {
      const float z = j < args.d ? from_pair(args.query.x[j * args.query.stride + at],
                                             args.query.lo[j * args.query.stride + at], centre[j])
                                 : 0;
      square += z * z;
      q[i][j] = 2 * z;
    }
    q_term[i] = (compact ? 1 : 0) - square;
    total[i] = 0;
  }
  for (int64_t at = from; at < end; at += ROWS) {
    __syncthreads();
#pragma unroll
    for (int r = thread; r < ROWS; r += ROW_THREADS) {
      const int64_t i = at + r < end ? at + r : end - 1;
      float square = 0;
#pragma unroll
      for (int j = 0; j < D; j++) {
        const float z = j < args.d ? from_pair(args.reference.x[j * args.reference.stride + i],
                                               args.reference.lo[j * args.reference.stride + i], centre[j])
                                   : 0;
        x[j][r] = z;
        square += z * z;
      }
      x_term[r] = -square;
      w[r] = at + r < end ? args.weights[i] : 0;
    }
    __syncthreads();
    for (int run = 0; run < ROWS; run += RUN_TERMS) {
      float sum[ROW_QUERIES] = { 0 };
#pragma unroll 2
      for (int k = run; k < run + RUN_TERMS; k += 4) {
        float acc[ROW_QUERIES][4];
        const float4 start = *(const float4 *) (x_term + k);
#pragma unroll
        for (int i = 0; i < ROW_QUERIES; i++)
          acc[i][0] = q_term[i] + start.x, acc[i][1] = q_term[i] + start.y, acc[i][2] = q_term[i] + start.z,
          acc[i][3] = q_term[i] + start.w;
#pragma unroll
        for (int j = 0; j < D; j++) {
          const float4 y = *(const float4 *) (x[j] + k);
#pragma unroll
          for (int i = 0; i < ROW_QUERIES; i++) {
            acc[i][0] = fmaf(q[i][j], y.x, acc[i][0]), acc[i][1] = fmaf(q[i][j], y.y, acc[i][1]);
            acc[i][2] = fmaf(q[i][j], y.z, acc[i][2]), acc[i][3] = fmaf(q[i][j], y.w, acc[i][3]);
          }
        }
        const float4 weight = *(const float4 *) (w + k);
#pragma unroll
        for (int i = 0; i < ROW_QUERIES; i++) {
          sum[i] = fmaf(value_single<KIND>(acc[i][0]), weight.x, sum[i]);
          sum[i] = fmaf(value_single<KIND>(acc[i][1]), weight.y, sum[i]);
          sum[i] = fmaf(value_single<KIND>(acc[i][2]), weight.z, sum[i]);
          sum[i] = fmaf(value_single<KIND>(acc[i][3]), weight.w, sum[i]);
        }
      }
#pragma unroll
      for (int i = 0; i < ROW_QUERIES; i++) total[i] += (double) sum[i];
    }
  }
#pragma unroll
  for (int i = 0; i < ROW_QUERIES; i++) {
    const int64_t at = first + i * ROW_THREADS;
    if (at < args.query.n) args.partial[(int64_t) blockIdx.x * args.out_stride + at] = total[i];
  }
}

bool weft_kernel_rows_can(int kind, int64_t nq, int64_t d, int64_t m)
{
  return WEFT_KERNEL_IN(EXPANDED, kind) && d <= 16 && m == 1 && nq >= 4096;
}

int weft_kernel_rows_tile(void) { return ROW_THREADS * ROW_QUERIES; }

template <int KIND> static cudaError_t launch_kind(const tile_launch<float> &tiles)
{
  const dim3 grid((unsigned) tiles.chunks, (unsigned) tiles.blocks);
  switch ((tiles.args.d + 1) / 2) {
  case 1: sum_rows<KIND, 2><<<grid, ROW_THREADS, 0, tiles.stream>>>(tiles.args); break;
  case 2: sum_rows<KIND, 4><<<grid, ROW_THREADS, 0, tiles.stream>>>(tiles.args); break;
  case 3: sum_rows<KIND, 6><<<grid, ROW_THREADS, 0, tiles.stream>>>(tiles.args); break;
  case 4: sum_rows<KIND, 8><<<grid, ROW_THREADS, 0, tiles.stream>>>(tiles.args); break;
  case 5: sum_rows<KIND, 10><<<grid, ROW_THREADS, 0, tiles.stream>>>(tiles.args); break;
  case 6: sum_rows<KIND, 12><<<grid, ROW_THREADS, 0, tiles.stream>>>(tiles.args); break;
  default: sum_rows<KIND, 16><<<grid, ROW_THREADS, 0, tiles.stream>>>(tiles.args);
  }
  return cudaGetLastError();
}

/* Launches sum_rows() for the kernel and the number of dimensions of `tiles`; kernels that are not EXPANDED fail. */
weft_status weft_kernel_launch_rows(const tile_launch<float> &tiles)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = tiles.ctx;
/* clang-format off */
#define CASE_EXPANDED(name) case WEFT_##name: WEFT_CUDA(launch_kind<WEFT_##name>(tiles)); break;
/* clang-format on */
#define CASE_APART(name)
#define CASE_NEVER(name)
#define ROW(name, known_as, form, single, ...) CASE_##single(name)
  switch (tiles.kind) {
    WEFT_KERNEL_ROWS(ROW)
#undef ROW
  default: st = weft_fail(ctx, WEFT_ERR_INTERNAL, "no such kernel by rows: %d", tiles.kind);
  }
done:
  return st;
}
