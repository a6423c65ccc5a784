/* Sums of compact kernels over a grid, exactly.
 *
 * Points are sorted by cell (grid.cu). A warp has up to 32 queries of one cell, and each lane keeps the
 * square distances of its query from the slabs around the cell, dimension by dimension. A cell around is an offset in
 * the first dimensions and one in the last: square distances of the latter are kept in a table, those of the former are
 * summed one after another, and the two meet where their sum is within reach of some lane. So each (query, cell) is
 * decided by the query, not by boxes, which in ten dimensions saves a factor of 60, without a walk down a tree of
 * dimensions, whose inner nodes would be as many as its leaves. Cells met are queued with the mask of the lanes they
 * concern. For each of them the lanes take its points, two each, as bytes relative to the warp's own cell, and every
 * query of the mask is compared with them by integer dot products:
 *
 *   |q - x|² <= near  <=>  q·x - |x|²/2 >= (|q|² - near) / 2        three dp4a for up to 12 dimensions
 *
 * `near` allows for what the lattice rounds off; pairs that pass, a few in a thousand, are gathered and computed in
 * double, 32 at a time. */
#include <cuda_fp16.h>
#include <cub/device/device_scan.cuh>
#include "core/together/exchange.h"
#include "kernel/cuda/grid/grid.cuh"
#include "kernel/cuda/grid/sum.cuh"

/* Warps of a block: they are independent of each other, and the slowest would keep the slots of the others occupied. */
#define WARPS 1
#define BLOCKS 20 /* of a multiprocessor */
#define QUEUE 64  /* cells of a warp that wait to be met */
#define AHEAD 2   /* of them whose points are asked for at a time */
#define LATER 48  /* offsets in the last dimensions that a warp keeps at a time */
#define STRIPE 64 /* runs that a part of several has together: neighbours, which meet the same cells */
#define HITS 160  /* pairs that wait to be computed: 96 and what two points per lane may add */
#define SLOTS (2 * GRID_REACH + 1)
#define CENTRE(dims) (((1u << 3 * (dims)) - 1) / 7 * GRID_REACH) /* the offset of no cells: 3 bits per dimension */

/* ---- runs: the queries of a warp ---- */

__global__ void count_runs(const uint32_t *start, uint32_t total, uint32_t *runs)
{
  for (int64_t c = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; c <= total; c += (int64_t) gridDim.x * blockDim.x)
    runs[c] = c < total ? (start[c + 1] - start[c] + 31) / 32 : 0;
}

/* Points of a run: as many in each of the runs of a cell, at most 32. */
__device__ static inline uint32_t run_size(uint32_t points)
{
  const uint32_t runs = (points + 31) / 32;
  return runs ? (points + runs - 1) / runs : 0;
}

/* run: its cell and its first point */
__global__ void list_runs(const uint32_t *start, const uint32_t *first_run, uint32_t total, uint2 *run)
{
  for (int64_t c = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; c < total; c += (int64_t) gridDim.x * blockDim.x) {
    const uint32_t size = run_size(start[c + 1] - start[c]);
    for (uint32_t at = start[c], k = first_run[c]; k < first_run[c + 1]; at += size, k++)
      run[k] = make_uint2((uint32_t) c, at);
  }
}

/* ---- the walk ---- */

struct grid_args {
  grid_plan g;
  int kind, leave_one_out;
  double h;
  grid_points query, reference;
  /* offsets of cells around: 3 bits per dimension, of the first dimensions and of the last */
  const uint32_t *first, *last;
  int firsts, lasts;
  const uint2 *run;
  int64_t all_runs;
  int part, parts;         /* of several devices, dealt stripes of runs */
  int64_t first_run, runs; /* of a launch, counted among those of the part */
  const double *weights;   /* of the column, or NULL */
  double *out;             /* of the column */
  unsigned long long *counts;
};

/* Dimensions of the second part of an offset: few, since a warp keeps a table of them. */
static __host__ __device__ constexpr int last_dims(int dims) { return dims / 2 - (dims >= 8); }

/* Square distances are rounded down to 16 bits: a cell in doubt is met. */
template <int D> struct grid_warp {
  uint4 q[32];                /* local words, and (|q|² - near) / 2 */
  __half table[D][SLOTS][32]; /* square distance of each lane's query from the slabs around it */
  __half later[LATER][32];    /* the same over the last dimensions, for the offsets kept */
  float least[D][SLOTS];      /* of all lanes */
  float later_min[LATER];
  uint32_t later_code[LATER];
  uint32_t early[QUEUE], late[QUEUE], mask[QUEUE]; /* cells to be met: the parts of their offset, their lanes */
  uint32_t hit_point[HITS];
  unsigned char hit_query[HITS];
  int hits;
  unsigned long long cells, tests, pairs; /* counted by lane 0 */
};

/* The pair's value, as exactly as the CPU has it. */
__device__ static double pair_value(const grid_args &args, int64_t q, int64_t x)
{
  const weft_points from = { (size_t) args.query.n, (size_t) args.g.d, args.query.rows, args.query.lo };
  const weft_points to = { (size_t) args.reference.n, (size_t) args.g.d, args.reference.rows, args.reference.lo };
  return weft_kernel_pair(args.kind, &from, q, &to, x, args.h, 0);
}

__device__ static inline unsigned sum_lanes(unsigned v)
{
  for (int half = 16; half; half >>= 1) v += __shfl_xor_sync(~0u, v, half);
  return v;
}

/* Least of numbers that are not negative: their bits are in their order. */
__device__ static inline float min_of_lanes(float x)
{
  uint32_t bits = __float_as_uint(x);
#if __CUDA_ARCH__ >= 800
  bits = __reduce_min_sync(~0u, bits);
#else
  for (int half = 16; half; half >>= 1) bits = min(bits, __shfl_xor_sync(~0u, bits, half));
#endif
  return __uint_as_float(bits);
}

/* The highest bit that is set, and clears it: one instruction less than for the lowest. */
__device__ static inline int take_last(uint32_t &bits)
{
  const int at = 31 - __clz((int) bits);
  bits ^= 1u << at;
  return at;
}

/* A warp's queries. */
struct grid_run {
  uint32_t cell, first;
  int lane;
};

/* Computed anew where it is used, so that the compiler knows that it is shared memory. */
template <int D> __device__ __forceinline__ grid_warp<D> &own_part(void)
{
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  return ((grid_warp<D> *) shared_bytes)[threadIdx.x >> 5];
}

/* `count` of the pairs that wait, from `from` on; adds to the lanes' totals in the pairs' order. */
template <int D>
__device__ __noinline__ double compute(const grid_args &args, grid_run own, int from, int count, double total)
{
  grid_warp<D> &shared = own_part<D>();
  int query = 0;
  double value = 0;
  __syncwarp();
  if (own.lane < count) {
    query = shared.hit_query[from + own.lane];
    const int64_t x = shared.hit_point[from + own.lane], q = (int64_t) own.first + query;
    if (!(args.leave_one_out && q == x)) value = pair_value(args, q, x);
    if (args.weights) value *= args.weights[x];
  }
  for (int k = 0; k < count; k++) {
    const double v = __shfl_sync(~0u, value, k);
    if (__shfl_sync(~0u, query, k) == own.lane) total += v;
  }
  if (own.lane == 0) shared.pairs += count;
  __syncwarp();
  return total;
}

template <int D>
__device__ __forceinline__ int keep(grid_warp<D> &shared, bool hit, int query, uint32_t point, int hits)
{
  const uint32_t some = __ballot_sync(~0u, hit);
  if (hit) {
    const int at = hits + __popc(some & ((1u << (threadIdx.x & 31)) - 1));
    shared.hit_point[at] = point, shared.hit_query[at] = (unsigned char) query;
  }
  return hits + __popc(some);
}

/* Points of a cell, a lane's two or one, against the queries of its mask. */
template <int SETS, int D>
__device__ __forceinline__ void meet(const grid_args &args, const grid_run &own, uint32_t mask, const uint32_t *offset,
                                     int (*local)[(D + 3) / 4], uint32_t start, uint32_t count, int &hits,
                                     double &total)
{
  const int W = (D + 3) / 4;
  grid_warp<D> &shared = own_part<D>();
  int x[SETS][W], begin[SETS];
#pragma unroll
  for (int s = 0; s < SETS; s++) {
    int norm = 0;
#pragma unroll
    for (int w = 0; w < W; w++) {
      x[s][w] = local[s][w] + (int) offset[w];
      norm = __dp4a(x[s][w], x[s][w], norm);
    }
    begin[s] = own.lane + 32 * s < count ? -(norm >> 1) : INT_MIN / 2;
  }
  while (mask) {
    do { /* no calls in this loop, so that values stay in registers */
      const int b = take_last(mask);
      const uint4 q = shared.q[b];
      bool hit[SETS], any = false;
#pragma unroll
      for (int s = 0; s < SETS; s++) {
        int dot = __dp4a(x[s][0], (int) q.x, begin[s]);
        if (W > 1) dot = __dp4a(x[s][W > 1 ? 1 : 0], (int) q.y, dot);
        if (W > 2) dot = __dp4a(x[s][W > 2 ? 2 : 0], (int) q.z, dot);
        hit[s] = dot >= (int) q.w;
        any |= hit[s];
      }
      if (!__any_sync(~0u, any)) continue;
#pragma unroll
      for (int s = 0; s < SETS; s++) hits = keep(shared, hit[s], b, start + 32 * s + own.lane, hits);
    } while (mask && hits <= HITS - 64);
    while (hits >= 32) {
      hits -= 32;
      total = compute<D>(args, own, hits, 32, total);
    }
  }
}

template <int W>
__device__ __forceinline__ void load(const int32_t *points, int lane, uint32_t start, uint32_t count, int (*local)[W])
{
#pragma unroll
  for (int s = 0; s < 2; s++)
#pragma unroll
    for (int w = 0; w < W; w++)
      local[s][w] = lane + 32 * s < count ? points[((int64_t) start + lane + 32 * s) * W + w] : 0;
}

/* Meets the cells queued. */
template <int D> __device__ __noinline__ double work_off(const grid_args &args, grid_run own, int queued, double total)
{
  const int W = (D + 3) / 4, F = D - last_dims(D);
  grid_warp<D> &shared = own_part<D>();
  const int32_t *points = args.reference.local;
  __syncwarp();
  int hits = shared.hits;
  for (int base = 0; base < queued; base += 32) {
    const int some = queued - base < 32 ? queued - base : 32;
    uint32_t start = 0, count = 0, mask = 0, offset[W], cell = own.cell;
#pragma unroll
    for (int w = 0; w < W; w++) offset[w] = 0;
    if (own.lane < some) {
      const uint32_t early = shared.early[base + own.lane], late = shared.late[base + own.lane];
      mask = shared.mask[base + own.lane];
#pragma unroll
      for (int j = 0; j < D; j++) {
        const int o = (int) ((j < F ? early >> 3 * (j < F ? j : 0) : late >> 3 * (j < F ? 0 : j - F)) & 7) - GRID_REACH;
        cell += (uint32_t) o * args.g.stride[j];
        offset[j / 4] |= (uint32_t) ((o * args.g.k[j]) & 0xff) << 8 * (j & 3);
      }
      start = args.reference.start[cell];
      count = args.reference.start[cell + 1] - start;
    }
    for (int e = 0; e < some; e += AHEAD) {
      int local[AHEAD][2][W];
#pragma unroll
      for (int u = 0; u < AHEAD; u++) {
        const uint32_t at = __shfl_sync(~0u, start, (e + u) & 31), n = __shfl_sync(~0u, count, (e + u) & 31);
        load<W>(points, own.lane, at, e + u < some ? n : 0, local[u]);
      }
#pragma unroll
      for (int u = 0; u < AHEAD; u++) {
        const int from = (e + u) & 31;
        const uint32_t those = __shfl_sync(~0u, mask, from);
        uint32_t at = __shfl_sync(~0u, start, from), n = __shfl_sync(~0u, count, from), by[W];
#pragma unroll
        for (int w = 0; w < W; w++) by[w] = __shfl_sync(~0u, offset[w], from);
        if (e + u >= some) n = 0;
        for (; n; at += 64, n -= 64) {
          if (n > 32)
            meet<2, D>(args, own, those, by, local[u], at, n, hits, total);
          else
            meet<1, D>(args, own, those, by, local[u], at, n, hits, total);
          if (n <= 64) break;
          load<W>(points, own.lane, at + 64, n - 64, local[u]);
        }
      }
    }
    if (args.counts) {
      const unsigned tests = sum_lanes(__popc(mask) * ((count + 31) / 32));
      if (own.lane == 0) shared.cells += some, shared.tests += tests;
    }
  }
  __syncwarp();
  if (own.lane == 0) shared.hits = hits;
  __syncwarp();
  return total;
}

/* Sums over the dimensions of an offset, from FROM on. */
template <int FROM, int DIMS, int D> __device__ __forceinline__ float min_of(const grid_warp<D> &shared, uint32_t code)
{
  float s = 0;
#pragma unroll
  for (int j = 0; j < DIMS; j++) s += shared.least[FROM + j][code >> 3 * j & 7];
  return s;
}
template <int FROM, int DIMS, int D>
__device__ __forceinline__ float distance(const grid_warp<D> &shared, uint32_t code, int lane)
{
  float s = 0;
#pragma unroll
  for (int j = 0; j < DIMS; j++) s += __half2float(shared.table[FROM + j][code >> 3 * j & 7][lane]);
  return s;
}

/* Every offset of the first dimensions with those kept of the last; queues the cells that some query reaches. */
template <int D>
__device__ __forceinline__ void pair_up(const grid_args &args, const grid_run &own, int kept, int &queued,
                                        double &total)
{
  const int F = D - last_dims(D), lane = own.lane;
  grid_warp<D> &shared = own_part<D>();
  const float within = args.g.within;
  for (int at = 0; at < args.firsts; at += 32) {
    const uint32_t codes = at + lane < args.firsts ? args.first[at + lane] : CENTRE(F);
    uint32_t some = __ballot_sync(~0u, at + lane < args.firsts && min_of<0, F>(shared, codes) <= within);
    while (some) {
      const uint32_t code = __shfl_sync(~0u, codes, take_last(some));
      const float s = distance<0, F>(shared, code, lane), left = within - s, most = within - min_of_lanes(s);
      if (most < 0) continue;
      for (int k = 0; k < kept; k += 32) {
        const bool may = k + lane < kept && shared.later_min[k + lane] <= most;
        uint32_t with = __ballot_sync(~0u, may);
        while (with) {
          const int e = k + take_last(with);
          const uint32_t mask = __ballot_sync(~0u, __half2float(shared.later[e][lane]) <= left);
          if (!mask) continue;
          if (lane == 0)
            shared.early[queued] = code, shared.late[queued] = shared.later_code[e], shared.mask[queued] = mask;
          if (++queued < QUEUE) continue;
          total = work_off<D>(args, own, queued, total);
          queued = 0;
        }
      }
    }
  }
}

/* Keeps offsets of the last dimensions that some query reaches, as many at a time as there is room for, and pairs them
 * up. */
template <int D> __device__ __forceinline__ double visit(const grid_args &args, const grid_run &own)
{
  const int L = last_dims(D), F = D - L, lane = own.lane;
  grid_warp<D> &shared = own_part<D>();
  uint32_t codes = 0, waiting = 0;
  int next = 0, queued = 0;
  double total = 0;
  do {
    int kept = 0;
    while (kept < LATER) {
      if (!waiting) {
        if (next >= args.lasts) break;
        codes = next + lane < args.lasts ? args.last[next + lane] : CENTRE(L);
        waiting = __ballot_sync(~0u, next + lane < args.lasts && min_of<F, L>(shared, codes) <= args.g.within);
        next += 32;
        continue;
      }
      const uint32_t code = __shfl_sync(~0u, codes, take_last(waiting));
      const float s = distance<F, L>(shared, code, lane), least = min_of_lanes(s);
      if (least > args.g.within) continue;
      shared.later[kept][lane] = __float2half_rd(s);
      if (lane == 0) shared.later_code[kept] = code, shared.later_min[kept] = least;
      kept++;
    }
    __syncwarp();
    pair_up<D>(args, own, kept, queued, total);
    __syncwarp();
  } while (waiting || next < args.lasts);
  return work_off<D>(args, own, queued, total);
}

/* A warp for each run of queries: distances of each query from the slabs around the cell go to a table, visit() then
 * finds and meets the cells within reach, and the sums are written. */
template <int D> __global__ void __launch_bounds__(32 * WARPS, BLOCKS) walk_grid(const __grid_constant__ grid_args args)
{
  const int W = (D + 3) / 4;
  const int64_t own_run = args.first_run + (int64_t) blockIdx.x * WARPS + (threadIdx.x >> 5);
  const int64_t r = (own_run / STRIPE * args.parts + args.part) * STRIPE + own_run % STRIPE;
  if (own_run >= args.first_run + args.runs || r >= args.all_runs) return;
  grid_warp<D> &shared = own_part<D>();
  const uint2 asked = args.run[r];
  const uint32_t end = args.query.start[asked.x + 1], size = run_size(end - args.query.start[asked.x]);
  const grid_run own = { asked.x, asked.y, (int) (threadIdx.x & 31) };
  const bool here = own.lane < size && own.first + own.lane < end;
  const int64_t i = own.first + (here ? own.lane : 0);
  uint32_t rest = own.cell;
  int words[3] = { 0, 0, 0 }, norm = 0;
  if (own.lane == 0) shared.hits = 0, shared.cells = shared.tests = shared.pairs = 0;
#pragma unroll
  for (int j = 0; j < D; j++) {
    const int at = (int) (rest / args.g.stride[j]);
    rest %= args.g.stride[j];
    const float k = (float) args.g.k[j];
    const float x =
        (float) (((double) args.query.rows[i * args.g.d + args.g.axis[j]] - args.g.low[j]) * args.g.inv_unit -
                 (double) args.g.k[j] * at);
#pragma unroll
    for (int o = -GRID_REACH; o <= GRID_REACH; o++) {
      const float gap = o < 0 ? x + (float) (-o - 1) * k : o > 0 ? (k - x) + (float) (o - 1) * k : 0;
      const bool there = abs(o) <= args.g.reach[j] && at + o >= 0 && at + o < args.g.cells[j];
      const float s = !there || (j == 0 && !here) ? INFINITY : gap > 0 ? gap * gap : 0, least = min_of_lanes(s);
      shared.table[j][o + GRID_REACH][own.lane] = __float2half_rd(s);
      if (own.lane == 0) shared.least[j][o + GRID_REACH] = least;
    }
  }
#pragma unroll
  for (int w = 0; w < W; w++) {
    words[w] = args.query.local[i * W + w];
    norm = __dp4a(words[w], words[w], norm);
  }
  shared.q[own.lane] =
      make_uint4((uint32_t) words[0], (uint32_t) words[1], (uint32_t) words[2], (uint32_t) ((norm - args.g.near) >> 1));
  __syncwarp();
  double total = visit<D>(args, own);
  if (shared.hits) total = compute<D>(args, own, 0, shared.hits, total);
  if (args.counts && own.lane == 0) {
    atomicAdd(&args.counts[0], shared.cells);
    atomicAdd(&args.counts[1], shared.tests);
    atomicAdd(&args.counts[2], shared.pairs);
  }
  if (here) args.out[args.query.order[i]] = total;
}

template <int D> static cudaError_t launch_walk(const grid_args &args, cudaStream_t stream)
{
  const size_t bytes = sizeof(grid_warp<D>) * WARPS;
  static_assert(sizeof(grid_warp<D>) * WARPS <= 48 * 1024, "more shared memory needs an attribute");
  walk_grid<D><<<(unsigned) ((args.runs + WARPS - 1) / WARPS), 32 * WARPS, bytes, stream>>>(args);
  return cudaGetLastError();
}

static cudaError_t launch_dims(const grid_args &args, cudaStream_t stream)
{
  switch (args.g.dims) {
/* clang-format off */
#define DIMS_CASE(D) case D: return launch_walk<D>(args, stream);
    /* clang-format on */
    DIMS_CASE(2)
    DIMS_CASE(4)
    DIMS_CASE(6)
    DIMS_CASE(8)
    DIMS_CASE(10)
  default: return launch_walk<12>(args, stream);
  }
}

/* Offsets of cells that some point of a cell may reach, in dimensions from .. to - 1. */
static int list_offsets(const grid_plan &plan, int from, int to, uint32_t *out)
{
  int count = 0, o[GRID_DIMS];
  for (int j = from; j < to; j++) o[j] = -plan.reach[j];
  for (int j = from; j < to;) {
    double s = 0;
    uint32_t code = 0;
    for (j = from; j < to; j++) {
      const double gap = abs(o[j]) > 1 ? (double) (abs(o[j]) - 1) * plan.k[j] : 0;
      s += gap * gap;
      code |= (uint32_t) (o[j] + GRID_REACH) << 3 * (j - from);
    }
    if (s <= plan.within) out[count++] = code;
    for (j = from; j < to && ++o[j] > plan.reach[j]; j++) o[j] = -plan.reach[j]; /* past the last one, j is `to` */
  }
  return count;
}

/* Lists offsets of cells and runs of queries once, then launches runs in batches, whose number follows the time that
 * the last one took (results do not depend on it). Working memory is dropped again from mem. */
weft_status weft_grid_sum(weft_ctx *ctx, weft_device_arena *mem, const grid_plan &plan, int kind, double h,
                          int leave_one_out, const grid_points &query, const grid_points &reference, int m, double *out,
                          double counts[3])
{
  weft_status st = WEFT_OK;
  uint32_t *first_run, runs = 0;
  uint2 *run;
  unsigned char *scratch;
  size_t scratch_bytes = 0;
  unsigned long long *d_counts, seen[3];
  int64_t batch = 4096, own_runs;
  const int parts = ctx->meeting ? ctx->meeting->parts : 1, part = parts > 1 ? ctx->part : 0;
  const int split = plan.dims - last_dims(plan.dims);
  uint32_t *first, *last, *host;
  size_t most = 1;
  grid_args args = { plan, kind, leave_one_out, h,     query, reference, NULL, NULL, 0,   0,
                     NULL, 0,    part,          parts, 0,     0,         NULL, NULL, NULL };
  weft_arena hold = weft_arena_begin(ctx);
  for (int j = 0; j < split; j++) most *= SLOTS;
  WEFT_TAKE(host, &hold, most);
  WEFT_DEVICE_TAKE(first, mem, most);
  WEFT_DEVICE_TAKE(last, mem, most);
  args.first = first, args.last = last;
  args.firsts = list_offsets(plan, 0, split, host);
  WEFT_CUDA(cudaMemcpyAsync(first, host, args.firsts * sizeof *host, cudaMemcpyHostToDevice, mem->stream));
  WEFT_CUDA(cudaStreamSynchronize(mem->stream));
  args.lasts = list_offsets(plan, split, plan.dims, host);
  WEFT_CUDA(cudaMemcpyAsync(last, host, args.lasts * sizeof *host, cudaMemcpyHostToDevice, mem->stream));
  WEFT_CUDA(cudaStreamSynchronize(mem->stream));
  WEFT_DEVICE_TAKE(first_run, mem, (size_t) plan.total + 1);
  WEFT_DEVICE_TAKE(d_counts, mem, 3);
  WEFT_CUDA(cudaMemsetAsync(d_counts, 0, 3 * sizeof *d_counts, mem->stream));
  count_runs<<<grid_for((double) plan.total + 1), 256, 0, mem->stream>>>(query.start, plan.total, first_run);
  WEFT_CUDA(cudaGetLastError());
  WEFT_CUDA(
      cub::DeviceScan::ExclusiveSum(NULL, scratch_bytes, first_run, first_run, (int64_t) plan.total + 1, mem->stream));
  WEFT_DEVICE_TAKE(scratch, mem, scratch_bytes);
  WEFT_CUDA(cub::DeviceScan::ExclusiveSum(scratch, scratch_bytes, first_run, first_run, (int64_t) plan.total + 1,
                                          mem->stream));
  WEFT_CUDA(cudaMemcpyAsync(&runs, first_run + plan.total, sizeof runs, cudaMemcpyDeviceToHost, mem->stream));
  WEFT_CUDA(cudaStreamSynchronize(mem->stream));
  weft_device_drop(mem, scratch);
  WEFT_DEVICE_TAKE(run, mem, runs);
  list_runs<<<grid_for((double) plan.total), 256, 0, mem->stream>>>(query.start, first_run, plan.total, run);
  WEFT_CUDA(cudaGetLastError());
  WEFT_CUDA(cudaStreamSynchronize(mem->stream));
  weft_device_drop(mem, first_run);
  args.run = run, args.all_runs = runs, args.counts = d_counts;
  own_runs = ((runs + STRIPE - 1) / STRIPE + parts - 1 - part) / parts * STRIPE;
  if (parts > 1) WEFT_CUDA(cudaMemsetAsync(out, 0, query.n * m * sizeof *out, mem->stream));
  for (int c = 0; c < m; c++) {
    args.weights = reference.weights ? reference.weights + (size_t) c * reference.n : NULL;
    args.out = out + (size_t) c * query.n;
    for (int64_t at = 0; at < own_runs; at += args.runs) {
      const double began = weft_seconds();
      WEFT_TRY(weft_poll(ctx, (double) c * own_runs + at, (double) m * own_runs));
      args.first_run = at, args.runs = own_runs - at < batch ? own_runs - at : batch;
      WEFT_CUDA(launch_dims(args, mem->stream));
      WEFT_CUDA(cudaStreamSynchronize(mem->stream));
      const double took = weft_seconds() - began;
      if (took < 0.12)
        batch *= took < 0.03 ? 4 : 2; /* a launch ends with few runs left, each of some milliseconds */
      else if (took > 0.4 && batch > 1024)
        batch /= 2;
    }
  }
  if (parts > 1) WEFT_TRY(weft_device_join_add(mem, out, query.n * m));
  WEFT_CUDA(cudaMemcpy(seen, d_counts, sizeof seen, cudaMemcpyDeviceToHost));
  for (int k = 0; k < 3; k++) counts[k] = (double) seen[k];
  weft_device_drop(mem, run);
  weft_device_drop(mem, d_counts);
  weft_device_drop(mem, first);
  weft_device_drop(mem, last);
done:
  weft_arena_end(&hold);
  return st;
}
