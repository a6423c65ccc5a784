/* Gaussian sums on tensor cores, with an error relative to each sum: the device's code. gaussian_tensor.cu derives the
 * bound.
 *
 * Coordinates are z = (x - centre) √(log2 e) / h, so that k = 2^t, t = z_q·z_x - |z_q|²/2 - |z_x|²/2. A coordinate is
 * a + b, a a multiple of a power of two `grid`, at most 2047 of it, and b at most half of it, both 16-bit floats. Sums
 * of products a a and of half squares that are rounded to grid² are whole numbers of grid² below 2^24: they are
 * exact, however large beside t. What is left (products a b, b a, b b, and the rest of the squares) is small, and is
 * summed apart.
 *
 *   16 queries          a b          64 references   a b | squares | V = z, in two 16-bit floats
 *   of a warp           |               |
 *                       t = products of both -> p = 2^t -> two 16-bit floats -> products with V -> sums of p V
 *                                               +-> sums of p and of p t
 *
 * Operands lie in memory as the lanes of a warp hold them: words of two dimensions (of two references in V), those of a
 * lane together. Sums of 64 references are added in float, of 1,024 in double. */
#pragma once

#include <cstdint>
#include <cuda_fp16.h>

#define GAUSS_TILE 64 /* references in shared memory at a time, in each of GAUSS_STAGES */
#define GAUSS_STAGES 3
#define GAUSS_RUN 16           /* tiles whose sums are added in float */
#define GAUSS_TOP 15           /* p is 2^GAUSS_TOP for a pair at distance 0, where sums are not shifted */
#define GAUSS_LIMIT 4194304.0f /* of half a square, in units of grid² */
#define GAUSS_STEPS 2047.0f    /* of a coordinate, in units of grid */
#define GAUSS_FAINT -40        /* log2 of a weight over the greatest that counts as none */

__host__ __device__ constexpr int gauss_words(int blocks, bool slopes) { return blocks * (slopes ? 1024 : 512) + 192; }

/* Whether z_q b_x is a product of one 16-bit float: where it saves much, and side by side bounds are small. */
__host__ __device__ constexpr bool gauss_coarse(int blocks) { return blocks <= 2; }

/* References that are left out: those too far from the centre, of which the nearest is so far, and faint ones; and the
 * longest rounding of a reference. `nearest` and `rounding` are floats' bits. */
struct gauss_left_out {
  unsigned long long far, faint;
  unsigned nearest, rounding;
  int bits; /* that sums of products keep beyond the 24 of a float, as gauss_probe() finds */
};

struct gauss_scheme {
  const double *centre;
  int d;
  double factor, grid, top_weight;
};

/* Coordinate j of point i is x + lo at i * row + j * column; lo may be NULL. */
struct gauss_points {
  const double *x, *lo;
  int64_t row, column;
};

__device__ static inline double gauss_coordinate(const gauss_scheme &s, const gauss_points &p, int64_t i, int j)
{
  const int64_t at = i * p.row + j * p.column;
  return (p.x[at] - s.centre[j] + (p.lo ? p.lo[at] : 0)) * s.factor;
}

__device__ static inline unsigned gauss_pair(float a, float b)
{
  const __half2 h = __floats2half2_rn(a, b);
  return *(const unsigned *) &h;
}

/* A point's length, its rounded length, and whether its coordinates are within the grid. */
__device__ static inline bool gauss_measure(const gauss_scheme &s, const gauss_points &x, int64_t i, double *square,
                                            double *rounded, double *off)
{
  bool within = true;
  *square = *rounded = *off = 0;
  for (int j = 0; j < s.d; j++) {
    const double z = gauss_coordinate(s, x, i, j), a = rint(z / s.grid) * s.grid;
    const double b = (double) __half2float(__float2half_rn((float) (z - a)));
    within = within && fabs(z) <= GAUSS_STEPS * s.grid;
    *square += z * z, *rounded += (a + b) * (a + b), *off += (z - a - b) * (z - a - b);
  }
  return within;
}

/* Words of two dimensions of a point in a block of 8: a, b, and a + b as one 16-bit float. */
__device__ static inline void gauss_split(const gauss_scheme &s, const gauss_points &x, int64_t i, int j, bool take,
                                          unsigned *a, unsigned *b, unsigned *both)
{
  float high[2] = { 0, 0 }, low[2] = { 0, 0 };
  for (int e = 0; e < 2; e++)
    if (take && j + e < s.d) {
      const double z = gauss_coordinate(s, x, i, j + e), whole = rint(z / s.grid) * s.grid;
      high[e] = (float) whole, low[e] = (float) (z - whole);
    }
  *a = gauss_pair(high[0], high[1]), *b = gauss_pair(low[0], low[1]);
  *both = gauss_pair(high[0] + low[0], high[1] + low[1]);
}

/* References at + 0 .. count - 1 of a slab to whole tiles of GAUSS_TILE; those beyond have a weight of 0. */
__global__ void gauss_references(const gauss_scheme s, const gauss_points x, const double *w, int64_t n, int64_t padded,
                                 int blocks, bool slopes, unsigned *tiles, gauss_left_out *left)
{
  const int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x;
  if (i >= padded) return;
  const int row = (int) (i % GAUSS_TILE), g = row & 7;
  unsigned *tile = tiles + i / GAUSS_TILE * gauss_words(blocks, slopes);
  float *norms = (float *) (tile + blocks * 512);
  double square = 0, rounded = 0, off = 0, half = 0, in_grid = 0;
  bool take = false;
  if (i < n && w[i] > 0) {
    const double faint = log2(w[i] / s.top_weight);
    const bool within = gauss_measure(s, x, i, &square, &rounded, &off);
    half = rounded / 2 - faint, in_grid = rint(half / (s.grid * s.grid)) * (s.grid * s.grid);
    take = faint >= GAUSS_FAINT && within && half <= GAUSS_LIMIT * s.grid * s.grid;
    if (take)
      atomicMax(&left->rounding, __float_as_uint((float) sqrt(off) * 1.000001f));
    else if (faint < GAUSS_FAINT)
      atomicAdd(&left->faint, 1ull);
    else {
      atomicAdd(&left->far, 1ull);
      atomicMin(&left->nearest, __float_as_uint((float) sqrt(square) * 0.999999f));
    }
  }
  const int pair = (row >> 3) * 4 + (g >> 1), side = g & 1;
  norms[4 * pair + side] = norms[4 * pair + side + 2] = take ? (float) (in_grid - half) : 0;
  norms[128 + 2 * pair + side] = take ? (float) -in_grid : -1e30f;
  const int words = 2 * blocks, vector = words % 4 ? 2 : 4;
  for (int b = 0; b < blocks; b++)
    for (int t = 0; t < 4; t++) {
      unsigned high, low, both;
      gauss_split(s, x, i, 8 * b + 2 * t, take, &high, &low, &both);
      unsigned *to = tile + (row >> 3) * 32 * words + (g * 4 + t) * vector;
      to[b / vector * 32 * vector + b % vector] = high;
      to[(blocks + b) / vector * 32 * vector + (blocks + b) % vector] = low;
    }
  if (!slopes) return;
  __half *v = (__half *) (tile + blocks * 512 + 192);
  for (int j = 0; j < 8 * blocks; j++) {
    const double z = take && j < s.d ? gauss_coordinate(s, x, i, j) : 0;
    const __half high = __float2half_rn((float) z);
    const int lane = (j & 7) * 4 + (row & 7) / 2, word = (row & 15) >> 3;
    __half *to = v + ((((row >> 4) * blocks + (j >> 3)) * 32 + lane) * 4 + word) * 2 + (row & 1);
    to[0] = high;
    to[4] = __float2half_rn((float) (z - (double) __half2float(high)));
  }
}

/* A query: GAUSS_TOP less half its square, on the grid; the rest of the square; the lengths of its rounding and of what
 * one 16-bit float leaves of it; its length, infinite beyond the grid; the longest of its coordinates; `shift`, by
 * which exponents are larger. */
struct gauss_query {
  float start, rest, off, coarse, length, longest, shift;
};

__global__ void gauss_queries(const gauss_scheme s, const gauss_points x, int64_t n, int64_t padded, int blocks,
                              unsigned *words, gauss_query *about)
{
  const int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x;
  if (i >= padded) return;
  const int row = (int) (i % 16), g = row & 7;
  double square = 0, rounded = 0, off = 0, longest = 0, coarse = 0;
  bool take = false;
  if (i < n) {
    take = gauss_measure(s, x, i, &square, &rounded, &off) && rounded / 2 <= GAUSS_LIMIT * s.grid * s.grid;
    for (int j = 0; j < s.d; j++) {
      const double z = gauss_coordinate(s, x, i, j), gap = z - (double) __half2float(__float2half_rn((float) z));
      longest = fmax(longest, fabs(z)), coarse += gap * gap;
    }
  }
  const double half = take ? rounded / 2 : 0, in_grid = rint(half / (s.grid * s.grid)) * (s.grid * s.grid);
  about[i] = { (float) (GAUSS_TOP - in_grid),
               (float) (in_grid - half),
               (float) sqrt(off) * 1.000001f,
               (float) sqrt(coarse) * 1.001f,
               take ? (float) sqrt(square) * 1.000001f : INFINITY,
               (float) longest * 1.000001f,
               0 };
  for (int b = 0; b < blocks; b++)
    for (int t = 0; t < 4; t++) {
      unsigned high, low, both;
      gauss_split(s, x, i, 8 * b + 2 * t, take, &high, &low, &both);
      unsigned *to = words + (i / 16 * 6 * blocks + 2 * b + (row >> 3)) * 32 + g * 4 + t;
      to[0] = high;
      to[2 * blocks * 32] = low;
      to[4 * blocks * 32] = both;
    }
}

/* For slopes: shifts exponents until the sum is from 1/2 to 1 times 2^GAUSS_TOP. */
__global__ void gauss_shift(int64_t n, const double *sum, gauss_query *about)
{
  const int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x;
  if (i >= n || !(sum[i] > 0)) return;
  const double shift = GAUSS_TOP - 1 - floor(log2(sum[i]));
  about[i].shift = (float) shift;
  about[i].start += (float) shift;
}

/* Sum p r² over sum p, r in bandwidths, of a query; at least that, where weights differ. */
__host__ __device__ static inline double gauss_square(double sum, double sum_t, const gauss_query &q)
{
  return fmax(1.3862943611198906 * (GAUSS_TOP + q.shift - sum_t / sum), 0.0) + 1e-2;
}

/* Bounds of the errors of a query, over its sum, derived in gaussian.cu: of the sum, and of a slope in bandwidths. sum:
 * of p, in units of the greatest weight; square: sum p r² over it; n: references. */
__host__ __device__ static inline void gauss_bounds(const gauss_scheme &s, const gauss_left_out &left, double nearest,
                                                    double rounding, int blocks, double n, const gauss_query &q,
                                                    double sum, double square, double *of_sum, double *of_slopes)
{
  const double unit = 1.0 / 8388608, step = (17 * exp2(-(double) left.bits) + 1) * unit, ln2 = 0.6931471805599453,
               per_z = 1.2011224087864498; /* z of a bandwidth */
  const double far = fmin(fmax((nearest - q.length) / per_z, 0.0), 1e3), off = q.off + rounding;
  const double side = sqrt((double) s.d) * s.grid / 2,
               deep = (gauss_coarse(blocks) ? 2 : 3) * ((blocks + 1) / 2) * step;
  /* the error of a value is a0 + a1 r + a2 r² at r bandwidths */
  const double a0 =
      4 * unit + ln2 * (deep * (2 * q.length * side + s.grid * s.grid) + (gauss_coarse(blocks) ? q.coarse * side : 0) +
                        off * off / 2 + (GAUSS_TOP + fabs(q.shift)) * unit / 2);
  const double a1 = ln2 * per_z * (off + deep * side), a2 = unit / 2;
  const double reach = sqrt(2 * fmax(log(n / sum) + 4.6, 1.0)), adding = 20 * unit;
  const double root = sqrt(square), longest = q.longest / per_z;
  const double faint = (double) left.faint * 0x1p-40, beyond = (double) left.far * exp(-far * far / 2);
  *of_sum = 1.03 * (a0 + (a1 + a2 * reach) * reach) + adding + (n * 0x1p-100 + faint + beyond) / sum;
  *of_slopes = 1.03 * (a0 * root + (a1 + a2 * reach) * square) + (4 * step + 14 * unit) * (longest + root) + unit +
               adding * longest +
               (n * exp2(-25.0 - GAUSS_TOP - q.shift) * GAUSS_STEPS * s.grid / per_z + faint +
                (far > 1 ? far * beyond : 0.61 * (double) left.far)) /
                   sum;
  if (!(q.length < 1e30f && sum > 0)) *of_sum = *of_slopes = INFINITY;
}

struct gauss_args {
  const unsigned *tiles, *words; /* references of this slab, queries from `first` on */
  const gauss_query *about;
  int64_t stride_words, all, chunk; /* words of a tile, tiles of this slab, and of a chunk */
  int d;
  double *partial; /* (chunk * columns + column) * stride + query, columns as gauss_columns() has them */
  int64_t stride;
};

/* Sums are made of p, or of p, p t and p z_j. */
enum gauss_mode { GAUSS_SUMS, GAUSS_SLOPES };
__host__ __device__ constexpr int gauss_columns(gauss_mode mode, int d) { return mode == GAUSS_SUMS ? 1 : d + 2; }
/* Sums in double of a thread. */
__host__ __device__ constexpr int gauss_slots(int blocks, int mt, gauss_mode mode)
{
  return mt * (mode == GAUSS_SUMS ? 2 : 4 + 4 * blocks);
}

__device__ static inline void gauss_product(float d[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                                            unsigned b1, const float c[4])
{
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}

__device__ static inline void gauss_product_of_8(float d[4], unsigned a0, unsigned a1, unsigned b0, const float c[4])
{
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a0), "r"(a1), "r"(b0), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
/* Finds how many bits products of tensor cores keep beyond a float's: whether 16 small addends beside 1 are lost. */
__global__ void gauss_probe(gauss_left_out *left)
{
  const float one[4] = { 1, 1, 1, 1 };
  int bits = 0;
  for (int k = 1; k <= 2; k++) {
    const unsigned a = gauss_pair(0x1p-12f, 0x1p-12f), b = gauss_pair(exp2f(-11.0f - k), exp2f(-11.0f - k));
    float sum[4];
    gauss_product(sum, a, a, a, a, b, b, one);
    if (bits == k - 1 && sum[0] == 1 + exp2f(-19.0f - k)) bits = k;
  }
  if (threadIdx.x == 0) left->bits = bits;
}
#else
__global__ void gauss_probe(gauss_left_out *) {}
#endif

/* d = c + products of all blocks. */
template <int BLOCKS>
__device__ static inline void gauss_products(float d[4], const unsigned (&a)[BLOCKS][2], const unsigned *b,
                                             const float c[4])
{
#pragma unroll
  for (int k = 0; k + 1 < BLOCKS; k += 2)
    gauss_product(d, a[k][0], a[k][1], a[k + 1][0], a[k + 1][1], b[k], b[k + 1], k ? d : c);
  if (BLOCKS & 1) gauss_product_of_8(d, a[BLOCKS - 1][0], a[BLOCKS - 1][1], b[BLOCKS - 1], BLOCKS > 1 ? d : c);
}

__device__ static inline float gauss_exp2(float x)
{
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ static inline void gauss_copy(void *to, const void *from)
{
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned) __cvta_generic_to_shared(to)), "l"(from));
}

__device__ static inline void gauss_copies_begun() { asm volatile("cp.async.commit_group;"); }

/* All but the last copies that were begun are there. */
__device__ static inline void gauss_await_copies()
{
  asm volatile("cp.async.wait_group %0;" ::"n"(GAUSS_STAGES - 2) : "memory");
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
/* Begins to copy a tile. */
template <int WORDS, int THREADS> __device__ static inline void gauss_fetch(unsigned *to, const unsigned *from)
{
#  pragma unroll
  for (int k = 0; k < (WORDS / 4 + THREADS - 1) / THREADS; k++) {
    const int at = k * THREADS + (int) threadIdx.x;
    if (at < WORDS / 4) gauss_copy((uint4 *) to + at, (const uint4 *) from + at);
  }
}

/* This lane's words of 8 references. */
template <int BLOCKS>
__device__ static inline void gauss_load(unsigned (&x)[2 * BLOCKS], const unsigned *group, int lane)
{
  constexpr int VECTOR = BLOCKS & 1 ? 2 : 4;
#  pragma unroll
  for (int b = 0; b < 2 * BLOCKS; b += VECTOR) {
    const unsigned *from = group + b * 32 + lane * VECTOR;
    if (VECTOR == 4) {
      const uint4 v = *(const uint4 *) from;
      x[b] = v.x, x[b + 1] = v.y, x[(b + 2) % (2 * BLOCKS)] = v.z, x[(b + 3) % (2 * BLOCKS)] = v.w;
    } else {
      const uint2 v = *(const uint2 *) from;
      x[b] = v.x, x[b + 1] = v.y;
    }
  }
}

/* Queries of a warp's strip, as its lanes have them. */
template <int BLOCKS> struct gauss_strip {
  unsigned high[BLOCKS][2], low[BLOCKS][2], both[BLOCKS][2];
  float start[2];
};

/* t of 16 queries by 8 references: the sum that is exact, and what is left. */
template <int BLOCKS>
__device__ static inline void gauss_exponents(float t[4], const gauss_strip<BLOCKS> &q, const unsigned *x,
                                              const float4 &rest, const float2 &norm)
{
  const float begun[4] = { rest.x, rest.y, rest.z, rest.w };
  float whole[4] = { q.start[0] + norm.x, q.start[0] + norm.y, q.start[1] + norm.x, q.start[1] + norm.y };
  gauss_products<BLOCKS>(t, q.low, x, begun);
  if (gauss_coarse(BLOCKS))
    gauss_products<BLOCKS>(t, q.both, x + BLOCKS, t);
  else {
    gauss_products<BLOCKS>(t, q.high, x + BLOCKS, t);
    gauss_products<BLOCKS>(t, q.low, x + BLOCKS, t);
  }
  gauss_products<BLOCKS>(whole, q.high, x, whole);
#  pragma unroll
  for (int e = 0; e < 4; e++) t[e] = whole[e] + t[e];
}

/* A pair of values as two pairs of 16-bit floats. */
__device__ static inline void gauss_halves(float first, float second, unsigned *high, unsigned *low)
{
  const __half2 h = __floats2half2_rn(first, second);
  const float2 back = __half22float2(h);
  *high = *(const unsigned *) &h;
  *low = gauss_pair(first - back.x, second - back.y);
}

/* Adds floats to a thread's sums in double, from `slot` on, and clears them; returns the slot behind. */
template <int COUNT, int THREADS> __device__ static inline double *gauss_keep(double *slot, float *x)
{
#  pragma unroll
  for (int k = 0; k < COUNT; k++) slot[k * THREADS] += (double) x[k], x[k] = 0;
  return slot + COUNT * THREADS;
}

/* Writes a strip's sums of p, and of p t, which four lanes have parts of, and of p z_j. */
template <int SIDES, int THREADS>
__device__ static inline const double *gauss_store(const double *slot, const gauss_args &args, double *out, int lane)
{
  const int t = lane & 3;
  out += lane >> 2;
#  pragma unroll
  for (int k = 0; k < (SIDES ? 4 : 2); k++) {
    double s = *slot;
    slot += THREADS;
    s += __shfl_xor_sync(~0u, s, 1);
    s += __shfl_xor_sync(~0u, s, 2);
    if (t == 0) out[(k >> 1) * args.stride + 8 * (k & 1)] = s;
  }
#  pragma unroll
  for (int k = 0; k < 4 * SIDES; k++, slot += THREADS) {
    const int j = k / 4 * 8 + 2 * t + (k & 1);
    if (j < args.d) out[(int64_t) (2 + j) * args.stride + 8 * (k >> 1 & 1)] = *slot;
  }
  return slot;
}

/* A block has 16 MT queries in each of its WARPS, and goes through a chunk of tiles. */
template <int BLOCKS, int MT, int WARPS, int RESIDENT, gauss_mode MODE>
__global__ void __launch_bounds__(32 * WARPS, RESIDENT) gauss_sums(const gauss_args args)
{
  constexpr bool SLOPES = MODE == GAUSS_SLOPES;
  constexpr int THREADS = 32 * WARPS, WORDS = gauss_words(BLOCKS, SLOPES);
  constexpr int SIDES = SLOPES ? BLOCKS : 0, SLOTS = gauss_slots(BLOCKS, MT, MODE);
  const float zero[4] = { 0, 0, 0, 0 };
  extern __shared__ __align__(16) unsigned gauss_shared[];
  double *slots = (double *) (gauss_shared + GAUSS_STAGES * WORDS) + threadIdx.x;
  const int lane = threadIdx.x & 31, t = lane & 3;
  const int64_t strip = ((int64_t) blockIdx.y * WARPS + (threadIdx.x >> 5)) * MT;
  const int64_t from = blockIdx.x * args.chunk, end = from + args.chunk < args.all ? from + args.chunk : args.all;
  gauss_strip<BLOCKS> q[MT];
  float sum[MT][2], sum_t[MT][2], sums[MT][SIDES + 1][4];
#  pragma unroll
  for (int m = 0; m < MT; m++) {
    const unsigned *words = args.words + (strip + m) * 6 * BLOCKS * 32 + lane;
#  pragma unroll
    for (int half = 0; half < 2; half++) {
      q[m].start[half] = args.about[(strip + m) * 16 + half * 8 + (lane >> 2)].start;
      sum[m][half] = sum_t[m][half] = 0;
#  pragma unroll
      for (int b = 0; b < BLOCKS; b++) {
        q[m].high[b][half] = words[(2 * b + half) * 32];
        q[m].low[b][half] = words[(2 * BLOCKS + 2 * b + half) * 32];
        if (gauss_coarse(BLOCKS)) q[m].both[b][half] = words[(4 * BLOCKS + 2 * b + half) * 32];
      }
    }
#  pragma unroll
    for (int b = 0; b < SIDES; b++)
#  pragma unroll
      for (int e = 0; e < 4; e++) sums[m][b][e] = 0;
  }
#  pragma unroll
  for (int k = 0; k < SLOTS; k++) slots[k * THREADS] = 0;
#  pragma unroll
  for (int k = 0; k < GAUSS_STAGES - 1; k++) {
    if (from + k < end)
      gauss_fetch<WORDS, THREADS>(gauss_shared + k * WORDS, args.tiles + (from + k) * args.stride_words);
    gauss_copies_begun();
  }
  for (int64_t tile = from; tile < end; tile++) {
    const int64_t next = tile + GAUSS_STAGES - 1;
    gauss_await_copies();
    __syncthreads();
    if (next < end)
      gauss_fetch<WORDS, THREADS>(gauss_shared + (next - from) % GAUSS_STAGES * WORDS,
                                  args.tiles + next * args.stride_words);
    gauss_copies_begun();
    const unsigned *here = gauss_shared + (tile - from) % GAUSS_STAGES * WORDS;
    const float4 *rests = (const float4 *) (here + 512 * BLOCKS);
    const float2 *norms = (const float2 *) (here + 512 * BLOCKS + 128);
    const uint4 *values = (const uint4 *) (here + 512 * BLOCKS + 192);
    float main[MT][SIDES + 1][4], rest[MT][SIDES + 1][4], run[MT][2];
#  pragma unroll
    for (int m = 0; m < MT; m++) run[m][0] = run[m][1] = 0;
#  pragma unroll
    for (int k = 0; k < GAUSS_TILE / 16; k++) {
      unsigned high[MT][4], low[MT][4]; /* of p */
#  pragma unroll
      for (int side = 0; side < 2; side++) {
        const int group = 2 * k + side;
        const float4 left = rests[group * 4 + t];
        const float2 norm = norms[group * 4 + t];
        unsigned x[2 * BLOCKS];
        gauss_load<BLOCKS>(x, here + group * 64 * BLOCKS, lane);
#  pragma unroll
        for (int m = 0; m < MT; m++) {
          float exponent[4], p[4];
          gauss_exponents<BLOCKS>(exponent, q[m], x, left, norm);
#  pragma unroll
          for (int e = 0; e < 4; e++) {
            p[e] = gauss_exp2(exponent[e]);
            run[m][e >> 1] += p[e];
            if (SLOPES) sum_t[m][e >> 1] = fmaf(p[e], exponent[e], sum_t[m][e >> 1]);
          }
          if (SLOPES) {
            gauss_halves(p[0], p[1], &high[m][2 * side], &low[m][2 * side]);
            gauss_halves(p[2], p[3], &high[m][2 * side + 1], &low[m][2 * side + 1]);
          }
        }
      }
#  pragma unroll
      for (int b = 0; b < SIDES; b++) {
        const uint4 v = values[(k * BLOCKS + b) * 32 + lane];
#  pragma unroll
        for (int m = 0; m < MT; m++) {
          const unsigned *h = high[m], *l = low[m];
          gauss_product(main[m][b], h[0], h[1], h[2], h[3], v.x, v.y, k ? main[m][b] : zero);
          gauss_product(rest[m][b], l[0], l[1], l[2], l[3], v.x, v.y, k ? rest[m][b] : zero);
          gauss_product(rest[m][b], h[0], h[1], h[2], h[3], v.z, v.w, rest[m][b]);
        }
      }
    }
#  pragma unroll
    for (int m = 0; m < MT; m++) {
      sum[m][0] += run[m][0], sum[m][1] += run[m][1];
#  pragma unroll
      for (int b = 0; b < SIDES; b++)
#  pragma unroll
        for (int e = 0; e < 4; e++) sums[m][b][e] += main[m][b][e] + rest[m][b][e];
    }
    if ((tile - from) % GAUSS_RUN != GAUSS_RUN - 1 && tile + 1 < end) continue;
    double *slot = slots;
#  pragma unroll
    for (int m = 0; m < MT; m++) {
      slot = gauss_keep<2, THREADS>(slot, sum[m]);
      if (SLOPES) slot = gauss_keep<2, THREADS>(slot, sum_t[m]);
      slot = gauss_keep<4 * SIDES, THREADS>(slot, sums[m][0]);
    }
  }
  const double *slot = slots;
  double *out = args.partial + blockIdx.x * (int64_t) gauss_columns(MODE, args.d) * args.stride + strip * 16;
#  pragma unroll
  for (int m = 0; m < MT; m++) slot = gauss_store<SIDES, THREADS>(slot, args, out + 16 * m, lane);
}
#else
template <int BLOCKS, int MT, int WARPS, int RESIDENT, gauss_mode MODE> __global__ void gauss_sums(const gauss_args) {}
#endif

template <int BLOCKS, int MT, int WARPS, gauss_mode MODE> constexpr size_t gauss_bytes()
{
  return GAUSS_STAGES * gauss_words(BLOCKS, MODE == GAUSS_SLOPES) * sizeof(unsigned) +
         (size_t) gauss_slots(BLOCKS, MT, MODE) * 32 * WARPS * sizeof(double);
}
