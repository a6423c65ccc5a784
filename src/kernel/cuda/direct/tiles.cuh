/* Tiles of kernel sums on the device, one template for float and double.
 *
 * A block of 256 threads sums a chunk of references for a tile of queries. Coordinates lie in shared memory, a
 * dimension's together; each thread has 2V queries by 2V references (V: numbers in 16 bytes, 4 floats or 2 doubles), so
 * that 4 loads feed 64 (16) products:
 *
 *             references, T at a time
 *           tx = 0 1 2 ... 15 | 0 1 2 ... 15       thread (tq, tx): queries    V tq .. and T/2 + V tq ..
 *    tq 0   +------------------------------+                       references V tx .. and T/2 + V tx ..
 *       1   |  V x V of a thread           |
 *      ..   |                              |       T = 32 V
 *
 * A pair costs d multiply-adds by |q|² + |x|² - 2 q·x (EXPAND; in float, about the middle of the block's queries), or
 * 2d instructions by differences. Sums of RUN terms in a lane go on in double, partial sums of chunks are added in
 * their order. */
#pragma once

#include "core/device/device.cuh"
#include "kernel/both/scalar.h"

#define TILE_THREADS 256
#define DIM_STEP 64   /* dimensions in shared memory at a time */
#define FAR 1e30      /* s of a pair that is left out: its kernel value is set to 0 */
#define RUN_TERMS 128 /* of a lane, before they go on in double */

template <typename Real> struct tile_shape;
template <> struct tile_shape<float> {
  static const int V = 4, T = 128;
};
template <> struct tile_shape<double> {
  static const int V = 2, T = 64;
};

/* Coordinates are dimension-major: x[j * stride + i]. In float they are pairs hi + lo of z = x * scale. */
template <typename Real> struct tile_points {
  const Real *x, *lo;
  int64_t n, stride;
};

template <typename Real> struct tile_args {
  tile_points<Real> query, reference;
  const Real *weights;     /* dimension-major as well: w[c * stride + i] */
  const float *centre;     /* EXPAND or float: d a block of queries */
  int d, cols;             /* cols: of this launch, at most COLS */
  int64_t rows_end, chunk; /* references to sum: 0 .. rows_end - 1, `chunk` of them a block */
  int first_block;         /* of queries; blockIdx.y counts from here, blockIdx.x counts chunks */
  int64_t omit;            /* query i leaves reference i - omit out; INT64_MIN: none does */
  Real near;
  double *partial;    /* (chunk * cols + c) * out_stride + q */
  double *inside;     /* the same; NULL in float */
  int64_t out_stride; /* of partial and inside */
  Real inv_h2;        /* in double; floats come scaled */
};

__device__ static inline float fast_exp2(float x)
{
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ static inline float fast_sqrt(float x)
{
  float y;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ static inline float fast_inverse(float x)
{
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

#define LOG2_E 1.4426950408889634f
#define WEFT_KINDS_IN_FAST_FLOATS
#include "kernel/kinds.h"
#undef WEFT_KINDS_IN_FAST_FLOATS

/* clang-format off */
#define VALUE_EXPANDED(name) case WEFT_##name: return single_##name(t);
#define VALUE_APART(name) case WEFT_##name: return single_##name(t);
/* clang-format on */
#define VALUE_NEVER(name)

template <int KIND> __device__ static inline float value_single(float t)
{
  switch (KIND) {
#define ROW(name, known_as, form, single, ...) VALUE_##single(name)
    WEFT_KERNEL_ROWS(ROW)
#undef ROW
  }
  return NAN;
}

/* clang-format off */
#define VALUE_EXPONENTIAL(name) \
case WEFT_##name: \
  u = weft_exponent_##name(s); \
  return weft_factor_##name(s, u) * exp(-u);
#define VALUE_ALGEBRAIC(name) case WEFT_##name: return weft_value_##name(s);
#define VALUE_COMPACT(name) case WEFT_##name: return weft_value_##name(t, s);
#define VALUE_STEP(name) case WEFT_##name: return s <= 1;
/* clang-format on */

template <int KIND> __device__ static inline double value_double(double s)
{
  double t = fmax(1 - s, 0.0), u;
  switch (KIND) {
#define ROW(name, known_as, form, ...) VALUE_##form(name)
    WEFT_KERNEL_ROWS(ROW)
#undef ROW
  }
  return NAN;
}

/* With one product less, and without the reduction of an argument that is never large. */
template <> __device__ inline double value_double<WEFT_GAUSSIAN>(double s) { return exp(-0.5 * s); }
template <> __device__ inline double value_double<WEFT_COSINE>(double s)
{
  return sinpi(0.5 * fmax(1 - s, 0.0) / (1 + sqrt(s)));
}

/* References in shared memory at a time: several tiles where all dimensions fit, so that warps drift apart between
 * barriers. */
template <typename Real> __host__ __device__ static inline int tile_rows(int d)
{
  return tile_shape<Real>::T * (d <= DIM_STEP / 4 ? 4 : d <= DIM_STEP / 2 ? 2 : 1);
}

template <typename Real> struct alignas(16) pack16 {
  Real v[16 / sizeof(Real)];
};

__device__ static inline float from_pair(float hi, float lo, float centre) { return (hi - centre) + lo; }

/* ---- the sums of a block of queries, tile by tile ---- */

/* Shared memory of a block, dimension after dimension: a tile of queries and several of references. */
template <typename Real> struct tile_memory {
  Real *q, *x, *q_lo, *x_lo; /* [dimension][query or reference]; the low halves only of pairs */
  Real *w;                   /* [column of weights][reference] */
  Real *q_term, *x_term;     /* what a query, and a reference, adds to all its expanded distances */
  double *total;             /* (i * COLS + c) * TILE_THREADS + thread */
  int rows;                  /* references */
};

/* Where a thread is: the queries tq * V + i and T / 2 + tq * V + i are its own, and so are references by tx. */
struct tile_place {
  int thread, tq, tx;
  int64_t block, first_query;
};

template <typename Real, bool PAIRS
, int COLS > __device__ static __forceinline__ tile_memory<Real> divide_memory(unsigned char *bytes, int d)
{
  const int T = tile_shape<Real>::T, dims = d < DIM_STEP ? d : DIM_STEP;
  tile_memory<Real> memory;
  memory.rows = tile_rows<Real>(d);
  memory.q = (Real *) bytes;
  memory.x = memory.q + (size_t) dims * T;
  memory.q_lo = memory.x + (size_t) dims * memory.rows;
  memory.x_lo = memory.q_lo + (PAIRS ? (size_t) dims * T : 0);
  memory.w = memory.x_lo + (PAIRS ? (size_t) dims * memory.rows : 0);
  memory.q_term = memory.w + COLS * memory.rows;
  memory.x_term = memory.q_term + T;
  memory.total = (double *) (memory.x_term + memory.rows);
  return memory;
}

/* Dimensions j0 .. j0 + width - 1 of the block's queries. */
template <typename Real, bool EXPAND, bool PAIRS
> __device__ static __forceinline__ void load_queries(const tile_args<Real> &args, const tile_memory<Real> &memory,
                                                      const tile_place &p, const float *centre, int j0, int width)
{
  const int T = tile_shape<Real>::T;
  for (int k = p.thread; k < width * T; k += TILE_THREADS) {
    const int j = k / T, l = k % T;
    const int64_t i = p.first_query + l < args.query.n ? p.first_query + l : args.query.n - 1,
                  place = (j0 + j) * args.query.stride + i;
    Real v = args.query.x[place];
    if (sizeof(Real) == 4)
      v = from_pair((float) v, (float) args.query.lo[place], centre[j0 + j]);
    else if (PAIRS)
      memory.q_lo[k] = args.query.lo[place];
    memory.q[k] = EXPAND ? 2 * v : v;
  }
}

/* The same of references at .. end - 1. */
template <typename Real, bool PAIRS
> __device__ static __forceinline__ void load_references(const tile_args<Real> &args, const tile_memory<Real> &memory,
                                                         const tile_place &p, const float *centre, int j0, int width,
                                                         int64_t at, int64_t end)
{
  for (int k = p.thread; k < width * memory.rows; k += TILE_THREADS) {
    const int j = k / memory.rows, l = k & (memory.rows - 1);
    const int64_t i = at + l < end ? at + l : end - 1, place = (j0 + j) * args.reference.stride + i;
    Real v = args.reference.x[place];
    if (sizeof(Real) == 4)
      v = from_pair((float) v, (float) args.reference.lo[place], centre[j0 + j]);
    else if (PAIRS)
      memory.x_lo[k] = args.reference.lo[place];
    memory.x[k] = v;
  }
}

template <typename Real, int COLS>
__device__ static __forceinline__ void load_weights(const tile_args<Real> &args, const tile_memory<Real> &memory,
                                                    const tile_place &p, int64_t at, int64_t end)
{
  for (int k = p.thread; k < COLS * memory.rows; k += TILE_THREADS) {
    const int c = k / memory.rows;
    const int64_t i = at + (k & (memory.rows - 1));
    memory.w[k] = i < end && c < args.cols ? args.weights[c * args.reference.stride + i] : (Real) 0;
  }
}

/* The squares of expanded distances; those of queries only where `queries`. */
template <typename Real>
__device__ static __forceinline__ void square_terms(const tile_memory<Real> &memory, const tile_place &p, int width,
                                                    bool queries, bool one_more)
{
  const int T = tile_shape<Real>::T;
  for (int k = p.thread; k < memory.rows; k += TILE_THREADS) {
    Real s = 0;
    for (int j = 0; j < width; j++) s += memory.x[j * memory.rows + k] * memory.x[j * memory.rows + k];
    memory.x_term[k] = -s;
  }
  if (queries && p.thread < T) {
    Real s = 0;
    for (int j = 0; j < width; j++) s += memory.q[j * T + p.thread] * memory.q[j * T + p.thread];
    memory.q_term[p.thread] = (one_more ? 1 : 0) - s * (Real) 0.25;
  }
}

/* A thread's numbers of a row: those of its first half tile, and of its second. */
template <typename Real> __device__ static __forceinline__ void take_halves(const Real *row, pack16<Real> (&out)[2])
{
  out[0] = *(const pack16<Real> *) row, out[1] = *(const pack16<Real> *) (row + tile_shape<Real>::T / 2);
}

/* Adds what `width` dimensions make of the distances between a thread's queries and its references of the tile `part`;
 * `first`: they are the first dimensions. */
template <typename Real, bool EXPAND, bool PAIRS
, int P > __device__ static __forceinline__ void add_distances(const tile_memory<Real> &memory, const tile_place &p,
                                                               int part, int width, bool first, Real (&acc)[P][P])
{
  const int V = tile_shape<Real>::V, T = tile_shape<Real>::T;
  pack16<Real> qv[2], xv[2];
  if (EXPAND) {
    take_halves(memory.q_term + p.tq * V, qv);
    take_halves(memory.x_term + part + p.tx * V, xv);
  }
#pragma unroll
  for (int i = 0; i < P; i++)
#pragma unroll
    for (int k = 0; k < P; k++) {
      const Real start = EXPAND ? qv[i / V].v[i % V] + xv[k / V].v[k % V] : (Real) 0;
      if (first)
        acc[i][k] = start;
      else if (EXPAND)
        acc[i][k] += start;
    }
#pragma unroll 1
  for (int j = 0; j < width; j++) {
    const int q_at = j * T + p.tq * V, x_at = j * memory.rows + part + p.tx * V;
    take_halves(memory.q + q_at, qv);
    take_halves(memory.x + x_at, xv);
    pack16<Real> ql[2], xl[2];
    if (PAIRS) {
      take_halves(memory.q_lo + q_at, ql);
      take_halves(memory.x_lo + x_at, xl);
    }
#pragma unroll
    for (int i = 0; i < P; i++)
#pragma unroll
      for (int k = 0; k < P; k++) {
        const Real b = qv[i / V].v[i % V], y = xv[k / V].v[k % V];
        if (EXPAND)
          acc[i][k] += b * y;
        else {
          Real gap = b - y;
          if (PAIRS) gap += ql[i / V].v[i % V] - xl[k / V].v[k % V];
          acc[i][k] += gap * gap;
        }
      }
  }
}

/* A query is not paired with itself. */
template <typename Real, int P>
__device__ static __forceinline__ void omit_own(const tile_place &p, int64_t first_reference, Real (&acc)[P][P])
{
  const int V = tile_shape<Real>::V, T = tile_shape<Real>::T;
#pragma unroll
  for (int i = 0; i < P; i++)
#pragma unroll
    for (int k = 0; k < P; k++)
      if (p.first_query + i / V * (T / 2) + p.tq * V + i % V == first_reference + k / V * (T / 2) + p.tx * V + k % V)
        acc[i][k] = (Real) FAR;
}

/* Weights of references within reach, for the bounds of rounding. */
template <typename Real, int KIND, int COLS, int P>
__device__ static __forceinline__ void add_inside(const tile_args<Real> &args, const tile_memory<Real> &memory,
                                                  const tile_place &p, int part, const Real (&acc)[P][P],
                                                  Real (&inside)[P * COLS])
{
  const int V = tile_shape<Real>::V, T = tile_shape<Real>::T;
#pragma unroll
  for (int c = 0; c < COLS; c++) {
    const pack16<Real> *wv = (const pack16<Real> *) (memory.w + c * memory.rows + part + p.tx * V);
#pragma unroll
    for (int k = 0; k < P; k++) {
      const Real weight = wv[k / V * (T / 2 / V)].v[k % V];
#pragma unroll
      for (int i = 0; i < P; i++) {
        const double s = (double) acc[i][k];
        inside[i * COLS + c] +=
            (WEFT_KERNEL_IN(STEP, KIND) ? fabs(s - 1) <= args.near : s < 1 + args.near) ? weight : (Real) 0;
      }
    }
  }
}

/* `own_tile`: some of the distances are FAR, and count nothing. */
template <typename Real, int KIND, int COLS, int P>
__device__ static __forceinline__ void add_values(const tile_memory<Real> &memory, const tile_place &p, int part,
                                                  bool own_tile, const Real (&acc)[P][P], Real (&sum)[P * COLS])
{
  const int V = tile_shape<Real>::V, T = tile_shape<Real>::T;
#pragma unroll
  for (int k = 0; k < P; k++) {
    Real weight[COLS];
#pragma unroll
    for (int c = 0; c < COLS; c++)
      weight[c] = ((const pack16<Real> *) (memory.w + c * memory.rows + part + p.tx * V))[k / V * (T / 2 / V)].v[k % V];
#pragma unroll
    for (int i = 0; i < P; i++) {
      Real value;
      if (sizeof(Real) == 4)
        value = (Real) value_single<KIND>((float) acc[i][k]);
      else
        value = own_tile && acc[i][k] == (Real) FAR ? (Real) 0 : (Real) value_double<KIND>((double) acc[i][k]);
#pragma unroll
      for (int c = 0; c < COLS; c++) sum[i * COLS + c] += value * weight[c];
    }
  }
}

/* Adds up what the 16 lanes of a query, tx = 0 .. 15, have in `total`. */
template <typename Real, int COLS>
__device__ static __forceinline__ void write_sums(const tile_args<Real> &args, const tile_memory<Real> &memory,
                                                  const tile_place &p, double *out)
{
  const int V = tile_shape<Real>::V, T = tile_shape<Real>::T;
  for (int k = p.thread; k < T * args.cols; k += TILE_THREADS) {
    const int l = k % T, c = k / T, half = l / (T / 2), in_half = l % (T / 2);
    const int i = half * V + in_half % V, owner = in_half / V; /* tq */
    double s = 0;
    for (int other = 0; other < 16; other++) {
      const int of = ((owner >> 2) * 2 + (other >> 3)) * 32 + (owner & 3) * 8 + (other & 7);
      s += memory.total[(i * COLS + c) * TILE_THREADS + of];
    }
    if (p.first_query + l < args.query.n)
      out[((int64_t) blockIdx.x * args.cols + c) * args.out_stride + p.first_query + l] = s;
  }
}

/* A block: a tile of queries against a chunk of references. Writes the sums of each query and column to args.partial
 * and, for compact kernels in double, the weights within reach to args.inside; COLS: the most columns of a launch. */
template <typename Real, int KIND, bool EXPAND, bool PAIRS
, int COLS > __global__ void __launch_bounds__(TILE_THREADS, sizeof(Real) == 4 && COLS == 1 ? 2 : 1)
                 sum_tiles(const tile_args<Real> args)
{
  const int T = tile_shape<Real>::T, P = 2 * tile_shape<Real>::V;
  const bool single = sizeof(Real) == 4, compact = WEFT_KERNEL_IN(COMPACT, KIND);
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  const tile_memory<Real> memory = divide_memory < Real, PAIRS
  , COLS > (shared_bytes, args.d);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int64_t block = args.first_block + blockIdx.y; /* of this launch's queries */
  const tile_place p = { (int) threadIdx.x, (warp >> 1) * 4 + (lane >> 3), (warp & 1) * 8 + (lane & 7), block,
                         block * T };
  const int64_t from = (int64_t) blockIdx.x * args.chunk;
  const int64_t end = from + args.chunk < args.rows_end ? from + args.chunk : args.rows_end;
  const float *centre = single ? args.centre + block * args.d : NULL;
  Real sum[P * COLS], inside[P * COLS];
#pragma unroll
  for (int i = 0; i < P * COLS; i++) {
    sum[i] = inside[i] = 0;
    memory.total[i * TILE_THREADS + p.thread] = 0;
  }
  int terms = 0;
  for (int64_t at = from; at < end; at += memory.rows) {
    Real acc[P][P];
    for (int j0 = 0; j0 < args.d; j0 += DIM_STEP) {
      const int width = args.d - j0 < DIM_STEP ? args.d - j0 : DIM_STEP;
      const bool new_queries = at == from || args.d > DIM_STEP;
      __syncthreads();
      if (new_queries) load_queries < Real, EXPAND, PAIRS
      > (args, memory, p, centre, j0, width);
      load_references < Real, PAIRS
      > (args, memory, p, centre, j0, width, at, end);
      if (j0 == 0) load_weights<Real, COLS>(args, memory, p, at, end);
      if (EXPAND) {
        __syncthreads();
        square_terms(memory, p, width, new_queries, compact && j0 == 0);
      }
      __syncthreads();
      for (int part = 0; part < memory.rows; part += T) {
        add_distances < Real, EXPAND, PAIRS
        , P > (memory, p, part, width, j0 == 0, acc);
        if (j0 + width < args.d) continue; /* one tile, then */
        if (!single)
#pragma unroll
          for (int i = 0; i < P; i++)
#pragma unroll
            for (int k = 0; k < P; k++) acc[i][k] *= args.inv_h2;
        const int64_t counterpart = at + part + args.omit; /* of the tile's first reference among the queries */
        const bool own_tile =
            !single && args.omit != INT64_MIN && counterpart < p.first_query + T && counterpart + T > p.first_query;
        if (own_tile) omit_own(p, counterpart, acc);
        if (!single && compact) add_inside<Real, KIND, COLS>(args, memory, p, part, acc, inside);
        add_values<Real, KIND, COLS>(memory, p, part, own_tile, acc, sum);
      }
    }
    terms += memory.rows / 16;
    if (terms < RUN_TERMS && at + memory.rows < end) continue;
    terms = 0;
#pragma unroll
    for (int i = 0; i < P * COLS; i++) {
      memory.total[i * TILE_THREADS + p.thread] += (double) sum[i];
      sum[i] = 0;
    }
  }
  __syncthreads();
  for (int pass = 0; pass < (compact && !single ? 2 : 1); pass++) {
    if (pass) {
      __syncthreads();
#pragma unroll
      for (int i = 0; i < P * COLS; i++) memory.total[i * TILE_THREADS + p.thread] = (double) inside[i];
      __syncthreads();
    }
    write_sums<Real, COLS>(args, memory, p, pass ? args.inside : args.partial);
  }
}

/* Bytes of shared memory of an instance. */
template <typename Real> static inline size_t tile_bytes(int d, int cols, bool pairs)
{
  const size_t T = tile_shape<Real>::T, P = 2 * tile_shape<Real>::V, dims = d < DIM_STEP ? d : DIM_STEP;
  const size_t XT = tile_rows<Real>(d);
  return sizeof(Real) * ((T + XT) * dims * (pairs ? 2 : 1) + cols * XT + T + XT) +
         sizeof(double) * P * cols * TILE_THREADS;
}
