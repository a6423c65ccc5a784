/* Direct sums with the products on tensor cores.
 *
 * A coordinate a, relative to the middle of a block's queries, is a pair of 16-bit floats h + l, good to 2^-22
 * |a| + 2^-25. Of the four products of two pairs three are taken. A pair of dimensions takes three 32-bit words of the
 * inner dimension of the product, and one word has the reference's norm, so that t = B - |q - x|² comes out whole
 * (B - |q|² is where accumulators start):
 *
 *   word        3p            3p + 1        3p + 2        8 KS - 1
 *   query       2h 2h'        2h 2h'        2l 2l'        1 1
 *   reference   h h'          l l'          h h'          -|x|² in two 16-bit floats
 *
 * 16-bit floats end at 65504: references where |x|² > 60000 count as 0, which is right for compact kernels and the
 * Gaussian as long as the bound says anything; other kernels are summed in float.
 *
 * What this adds to the bound of single.cu, in units of u = 2^-24 and of A² + 1, A = |q| + |x|: 6 for the
 * pairs and the product left out, √d / 2 for their absolute part, 4 for the norm, and 17 per step of 16 for sums that
 * may be truncated: with (3d + 2) / 16 + 1 steps at most 4d + 32. A warp has 16 MT queries; eight warps share 512
 * references at a time. */
#include <cuda_fp16.h>
#include "kernel/cuda/direct/single.cuh"
#include "kernel/cuda/direct/single_tensor.cuh"

#define TENSOR_ROWS 512 /* references in shared memory */

__device__ static inline unsigned half_pair(float a, float b)
{
  const __half2 h = __floats2half2_rn(a, b);
  return *(const unsigned *) &h;
}

__device__ static inline float rest_of(float a) { return a - __half2float(__float2half_rn(a)); }

__device__ static inline void multiply(float d[4], const unsigned a[4], unsigned b0, unsigned b1, const float c[4])
{
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}

__device__ static inline void load_matrices(unsigned b[4], const void *row)
{
  const unsigned at = (unsigned) __cvta_generic_to_shared(row);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
               : "r"(at));
}

__device__ static inline void load_two_matrices(unsigned b[2], const void *row)
{
  const unsigned at = (unsigned) __cvta_generic_to_shared(row);
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(b[0]), "=r"(b[1]) : "r"(at));
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
/* Direct sums on tensor cores: a warp's 16 MT queries against rows of references, one product of 16-bit matrices giving
 * -s, or 1 - s for compact kernels. KS: steps of 16 words in depth, enough for args.d dimensions. One column; runs in
 * float, totals in double. */
template <int KIND, int KS, int MT>
__global__ void __launch_bounds__(256, KS *MT <= 8 ? 2 : 1) sum_tensor(const tile_args<float> args)
{
  const int WORDS = 8 * KS, STRIDE = WORDS + 4, PAIRS
  = (WORDS - 1) / 3;
  const bool compact = WEFT_KERNEL_IN(COMPACT, KIND);
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  unsigned *rows = (unsigned *) shared_bytes; /* TENSOR_ROWS * STRIDE */
  float *w = (float *) (rows + TENSOR_ROWS * STRIDE), *centre = w + TENSOR_ROWS;
  const int thread = threadIdx.x, lane = thread & 31, warp = thread >> 5, g = lane >> 2, t = lane & 3;
  const int64_t block = args.first_block + blockIdx.y, first = block * (128 * MT) + warp * 16 * MT;
  const int64_t from = (int64_t) blockIdx.x * args.chunk;
  const int64_t end = from + args.chunk < args.rows_end ? from + args.chunk : args.rows_end;
  unsigned left[MT][KS][4];
  float start[MT][4], sum[MT][2];
  double total[MT][2];
  for (int j = thread; j < 2 * PAIRS + 4; j += 256)
    centre[j] = j < args.d ? args.centre[block * args.d + j] : 0; /* read to the end of a pair */
  __syncthreads();
#  pragma unroll
  for (int mt = 0; mt < MT; mt++)
#  pragma unroll
    for (int half = 0; half < 2; half++) {
      const int64_t asked = first + mt * 16 + half * 8 + g, i = asked < args.query.n ? asked : args.query.n - 1;
      float square = 0;
      for (int j = 0; j < args.d; j++) {
        const float z =
            from_pair(args.query.x[j * args.query.stride + i], args.query.lo[j * args.query.stride + i], centre[j]);
        square = fmaf(z, z, square);
      }
      start[mt][2 * half] = start[mt][2 * half + 1] = (compact ? 1.0f : 0.0f) - square;
      sum[mt][half] = 0;
      total[mt][half] = 0;
#  pragma unroll
      for (int k = 0; k < 2 * KS; k++) {
        const int word = 4 * k + t, p = word / 3, part = word % 3;
        float z[2] = { 0, 0 };
#  pragma unroll
        for (int e = 0; e < 2; e++)
          if (2 * p + e < args.d && p < PAIRS) {
            const int64_t at = (2 * p + e) * args.query.stride + i;
            z[e] = from_pair(args.query.x[at], args.query.lo[at], centre[2 * p + e]);
            if (part == 2) z[e] = rest_of(z[e]);
          }
        left[mt][k >> 1][(k & 1) * 2 + half] = word == WORDS - 1 ? half_pair(1, 1) : half_pair(2 * z[0], 2 * z[1]);
      }
    }
  int run = 0;
  for (int64_t at = from; at < end; at += TENSOR_ROWS) {
    __syncthreads();
    for (int r = thread; r < TENSOR_ROWS; r += 256) {
      const int64_t asked = at + r, i = asked < end ? asked : end - 1;
      unsigned words[WORDS];
      float square = 0;
#  pragma unroll
      for (int k = 0; k < WORDS; k++) words[k] = 0;
#  pragma unroll
      for (int p = 0; p < PAIRS; p++)
        if (2 * p < args.d) {
          float z[2] = { 0, 0 };
#  pragma unroll
          for (int e = 0; e < 2; e++)
            if (2 * p + e < args.d) {
              const int64_t place = (2 * p + e) * args.reference.stride + i;
              z[e] = from_pair(args.reference.x[place], args.reference.lo[place], centre[2 * p + e]);
              square = fmaf(z[e], z[e], square);
            }
          words[3 * p] = words[3 * p + 2] = half_pair(z[0], z[1]);
          words[3 * p + 1] = half_pair(rest_of(z[0]), rest_of(z[1]));
        }
      const bool far = !(square <= 60000);
      words[WORDS - 1] = half_pair(-square, rest_of(-square));
      w[r] = asked < end && !far ? args.weights[i] : 0;
#  pragma unroll
      for (int k = 0; k < WORDS; k += 4)
        *(uint4 *) (rows + r * STRIDE + k) =
            far ? make_uint4(0, 0, 0, 0) : make_uint4(words[k], words[k + 1], words[k + 2], words[k + 3]);
    }
    __syncthreads();
#  pragma unroll 2
    for (int n = 0; n < TENSOR_ROWS; n += 8) {
      unsigned right[KS][2];
      const unsigned *row = rows + (n + (lane & 7)) * STRIDE;
#  pragma unroll
      for (int k = 0; k + 1 < KS; k += 2) load_matrices(right[k], row + 8 * k + 4 * (lane >> 3));
      if (KS & 1) load_two_matrices(right[KS - 1], row + 8 * (KS - 1) + 4 * ((lane >> 3) & 1));
      const float2 weight = *(const float2 *) (w + n + 2 * t);
#  pragma unroll
      for (int mt = 0; mt < MT; mt++) {
        float s[4];
        multiply(s, left[mt][0], right[0][0], right[0][1], start[mt]);
#  pragma unroll
        for (int k = 1; k < KS; k++) multiply(s, left[mt][k], right[k][0], right[k][1], s);
        sum[mt][0] = fmaf(value_single<KIND>(s[0]), weight.x, sum[mt][0]);
        sum[mt][0] = fmaf(value_single<KIND>(s[1]), weight.y, sum[mt][0]);
        sum[mt][1] = fmaf(value_single<KIND>(s[2]), weight.x, sum[mt][1]);
        sum[mt][1] = fmaf(value_single<KIND>(s[3]), weight.y, sum[mt][1]);
      }
    }
    run += TENSOR_ROWS / 4;
    if (run < RUN_TERMS && at + TENSOR_ROWS < end) continue;
    run = 0;
#  pragma unroll
    for (int mt = 0; mt < MT; mt++)
#  pragma unroll
      for (int half = 0; half < 2; half++) {
        total[mt][half] += (double) sum[mt][half];
        sum[mt][half] = 0;
      }
  }
#  pragma unroll
  for (int mt = 0; mt < MT; mt++)
#  pragma unroll
    for (int half = 0; half < 2; half++) {
      double s = total[mt][half];
      s += __shfl_xor_sync(~0u, s, 1);
      s += __shfl_xor_sync(~0u, s, 2);
      const int64_t i = first + mt * 16 + half * 8 + g;
      if (t == 0 && i < args.query.n) args.partial[(int64_t) blockIdx.x * args.out_stride + i] = s;
    }
}

#else
template <int KIND, int KS, int MT> __global__ void sum_tensor(const tile_args<float>) {}
#endif

template <int KIND, int KS, int MT> static cudaError_t launch(const tile_launch<float> &tiles)
{
  const size_t bytes = (size_t) TENSOR_ROWS * (8 * KS + 4) * 4 + TENSOR_ROWS * 4 + (2 * (8 * KS - 1) / 3 + 8) * 4;
  const cudaError_t e = weft_device_allow_shared((const void *) sum_tensor<KIND, KS, MT>, bytes);
  if (e != cudaSuccess) return e;
  sum_tensor<KIND, KS, MT>
      <<<dim3((unsigned) tiles.chunks, (unsigned) tiles.blocks), 256, bytes, tiles.stream>>>(tiles.args);
  return cudaGetLastError();
}

bool weft_kernel_tensor_can(int kind, int64_t d)
{
  return WEFT_KERNEL_IN(TENSOR, kind) && d <= TENSOR_DIMS &&
         weft_device_compiled_for((const void *) sum_tensor<WEFT_GAUSSIAN, 1, 4>, 80);
}

/* Steps of 16 that d dimensions take, of those there are instances of. */
static int steps_of(int d) { return d <= 4 ? 1 : d <= 10 ? 2 : d <= 20 ? 4 : 7; }

int weft_kernel_tensor_tile(int d) { return 128 * (steps_of(d) == 7 ? 3 : 4); }

template <int KIND> static cudaError_t launch_kind(const tile_launch<float> &tiles)
{
  switch (steps_of(tiles.args.d)) {
  case 1: return launch<KIND, 1, 4>(tiles);
  case 2: return launch<KIND, 2, 4>(tiles);
  case 4: return launch<KIND, 4, 4>(tiles);
  default: return launch<KIND, 7, 3>(tiles);
  }
}

/* Launches sum_tensor() for the kernel and the number of dimensions of `tiles`; kernels without TENSOR fail. */
weft_status weft_kernel_launch_tensor(const tile_launch<float> &tiles)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = tiles.ctx;
/* clang-format off */
#define CASE_YES(name) case WEFT_##name: WEFT_CUDA(launch_kind<WEFT_##name>(tiles)); break;
/* clang-format on */
#define CASE_NO(name)
#define ROW(name, known_as, form, single, tensor, ...) CASE_##tensor(name)
  switch (tiles.kind) {
    WEFT_KERNEL_ROWS(ROW)
#undef ROW
  default: st = weft_fail(ctx, WEFT_ERR_INTERNAL, "no such kernel on tensor cores: %d", tiles.kind);
  }
done:
  return st;
}
