/* Sums of compact kernels over a grid, exactly.
 *
 * Points are sorted by cell (radix sort). A warp has up to 32 queries of one cell and visits the cells around it, a dimension at
 * a time: each lane keeps the square distance of its query from the slab chosen so far, and a branch is left when no lane is
 * within reach. So each (query, cell) is decided by the query, not by boxes, which in ten dimensions saves a factor of 60.
 * Cells met are queued with the mask of the lanes they concern. For each of them the lanes take its points, one each, as
 * bytes relative to the warp's own cell, and every query of the mask is held against them by integer dot products:
 *
 *   |q - x|² <= near  <=>  q·x - |x|²/2 >= (|q|² - near) / 2        three dp4a for up to 12 dimensions
 *
 * `near` allows for what the lattice rounds off; pairs that pass, a few in a thousand, are computed in double. */
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <ctime>
#include "kernel_grid_cuda.cuh"

#define WARPS 8
#define QUEUE 64 /* cells of a warp that wait to be met */
#define AHEAD 4  /* of them whose points are asked for at a time */
#define SLOTS (2 * GRID_REACH + 1)

/* ---- the plan, on the host ---- */

void weft_grid_reach(grid_plan *plan, double h) {
  for (int j = 0; j < plan->dims; j++) {
    plan->reach[j] = (int) ceil(h * (1 + 1e-6) / (plan->k[j] * plan->unit) + 1e-6);
    if (plan->reach[j] > plan->cells[j] - 1) plan->reach[j] = plan->cells[j] - 1;
  }
  const double units = h / plan->unit;
  plan->within = (float) ((units + 0.01) * (units + 0.01) * (1 + 1e-5));
  plan->near = (int) ceil((units + sqrt((double) plan->dims) + 0.01) * (units + sqrt((double) plan->dims) + 0.01));
}

bool weft_grid_plan(grid_plan *plan, size_t n, size_t d, const double *low, const double *high, double h) {
  double width[GRID_DIMS], cells = 1, range[GRID_DIMS];
  int halved[GRID_DIMS];
  memset(plan, 0, sizeof *plan);
  plan->d = (int) d;
  /* the widest dimensions */
  for (plan->dims = 0; plan->dims < GRID_DIMS && plan->dims < (int) d; plan->dims++) {
    int best = -1;
    for (size_t j = 0; j < d; j++) {
      bool taken = false;
      for (int t = 0; t < plan->dims; t++) taken |= plan->axis[t] == (int) j;
      if (!taken && (best < 0 || high[j] - low[j] > high[best] - low[best])) best = (int) j;
    }
    plan->axis[plan->dims] = best;
    range[plan->dims] = width[plan->dims] = (high[best] - low[best]) * (1 + 1e-6);
    plan->low[plan->dims] = low[best];
    halved[plan->dims] = 0;
  }
  if (!(width[0] > 0)) return false;
  if (plan->dims & 1) { /* code is there for even numbers of dimensions: one more that has no extent */
    const int j = plan->dims++;
    plan->axis[j] = plan->axis[0], plan->low[j] = low[plan->axis[0]], width[j] = range[j] = 0, halved[j] = 0;
  }
  plan->words = (plan->dims + 3) / 4;
  while (cells * GRID_CELL < (double) n) {
    int widest = -1;
    for (int j = 0; j < plan->dims; j++)
      if (width[j] / 2 >= 0.51 * h && halved[j] < 20 && (widest < 0 || width[j] > width[widest])) widest = j;
    if (widest < 0) break;
    width[widest] /= 2, halved[widest]++, cells *= 2;
  }
  double unit = 0;
  for (int j = 0; j < plan->dims; j++) {
    const double reach = halved[j] ? ceil(h * (1 + 1e-6) / width[j] + 1e-6) : 0;
    unit = fmax(unit, (fmin(reach, GRID_REACH) + 1) * width[j] / 126);
  }
  if (!(unit > 0) || !(range[0] / unit < 1e9)) return false;
  plan->unit = unit, plan->inv_unit = 1 / unit;
  plan->total = 1;
  for (int j = 0; j < plan->dims; j++) {
    plan->k[j] = (int) ceil(width[j] / unit);
    if (plan->k[j] < 1) plan->k[j] = 1;
    plan->cells[j] = halved[j] ? (int) ceil(range[j] / (plan->k[j] * unit)) : 1;
    if (plan->cells[j] < 1) plan->cells[j] = 1;
  }
  for (int j = plan->dims; j-- > 0;) {
    plan->stride[j] = plan->total;
    if ((double) plan->total * plan->cells[j] > 2e9) return false;
    plan->total *= (uint32_t) plan->cells[j];
  }
  weft_grid_reach(plan, h);
  for (int j = 0; j < plan->dims; j++)
    if (plan->reach[j] > GRID_REACH || (plan->reach[j] + 1) * plan->k[j] > 128) return false;
  return true;
}

/* ---- building ---- */

__device__ static inline int lattice_of(const grid_plan &g, int j, double x) {
  const double t = floor((x - g.low[j]) * g.inv_unit);
  const int most = g.cells[j] * g.k[j] - 1;
  return t < 0 ? 0 : t > most ? most : (int) t;
}

template <typename Real>
__global__ void find_cells(const grid_plan g, const Real *rows, int64_t n, uint32_t *cell, uint32_t *order) {
  for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n; i += (int64_t) gridDim.x * blockDim.x) {
    uint32_t c = 0;
    for (int j = 0; j < g.dims; j++) c += (uint32_t) (lattice_of(g, j, (double) rows[i * g.d + g.axis[j]]) / g.k[j]) * g.stride[j];
    cell[i] = c, order[i] = (uint32_t) i;
  }
}

template <typename Real>
__global__ void move_rows(const Real *from, const uint32_t *order, int64_t n, int d, Real *to) {
  for (int64_t k = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; k < n * d; k += (int64_t) gridDim.x * blockDim.x)
    to[k] = from[(int64_t) order[k / d] * d + k % d];
}

template <typename Real>
__global__ void find_local(const grid_plan g, const Real *rows, int64_t n, int32_t *local) {
  for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n; i += (int64_t) gridDim.x * blockDim.x)
    for (int w = 0; w < g.words; w++) {
      uint32_t word = 0;
      for (int j = 4 * w; j < 4 * w + 4 && j < g.dims; j++)
        word |= (uint32_t) (lattice_of(g, j, (double) rows[i * g.d + g.axis[j]]) % g.k[j]) << 8 * (j & 3);
      local[i * g.words + w] = (int32_t) word;
    }
}

/* start[c]: the first point of cell c or of a later one. */
__global__ void find_starts(const uint32_t *cell, int64_t n, uint32_t total, uint32_t *start) {
  for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i <= n; i += (int64_t) gridDim.x * blockDim.x) {
    const uint32_t before = i ? cell[i - 1] + 1 : 0, here = i < n ? cell[i] : total;
    for (uint32_t c = before; c <= here; c++) start[c] = (uint32_t) i;
  }
}

__global__ void count_runs(const uint32_t *start, uint32_t total, uint32_t *runs) {
  for (int64_t c = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; c <= total; c += (int64_t) gridDim.x * blockDim.x)
    runs[c] = c < total ? (start[c + 1] - start[c] + 31) / 32 : 0;
}

/* run: its cell and its first point */
__global__ void list_runs(const uint32_t *start, const uint32_t *first_run, uint32_t total, uint2 *run) {
  for (int64_t c = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; c < total; c += (int64_t) gridDim.x * blockDim.x)
    for (uint32_t at = start[c], k = first_run[c]; at < start[c + 1]; at += 32, k++) run[k] = make_uint2((uint32_t) c, at);
}

static double seconds_now(void) {
  struct timespec t;
  timespec_get(&t, TIME_UTC);
  return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

template <typename Real>
weft_status weft_grid_build(weft_ctx *ctx, weft_device_arena *mem, const grid_plan &plan, int64_t n, Real *from, Real *from_lo,
                            grid_points<Real> *out, double *seconds) {
  weft_status st = WEFT_OK;
  uint32_t *cell, *cell_other, *order, *order_other;
  unsigned char *scratch;
  size_t scratch_bytes = 0;
  int bits = 1;
  double began = seconds_now(), ended;
#define LAP(k) do { if (seconds) { WEFT_CUDA(cudaStreamSynchronize(mem->stream)); ended = seconds_now(); seconds[k] = ended - began; \
                                   began = ended; } } while (0)
  while (bits < 32 && (plan.total >> bits)) bits++;
  out->n = n;
  WEFT_DEVICE_TAKE(cell, mem, n);
  WEFT_DEVICE_TAKE(cell_other, mem, n);
  WEFT_DEVICE_TAKE(order, mem, n);
  WEFT_DEVICE_TAKE(order_other, mem, n);
  WEFT_TRY(weft_poll(ctx, 0, 1));
  find_cells<<<grid_for((double) n), 256, 0, mem->stream>>>(plan, from, n, cell, order);
  WEFT_CUDA(cudaGetLastError());
  LAP(0);
  {
    cub::DoubleBuffer<uint32_t> keys(cell, cell_other), values(order, order_other);
    WEFT_CUDA(cub::DeviceRadixSort::SortPairs(NULL, scratch_bytes, keys, values, n, 0, bits, mem->stream));
    WEFT_DEVICE_TAKE(scratch, mem, scratch_bytes);
    WEFT_CUDA(cub::DeviceRadixSort::SortPairs(scratch, scratch_bytes, keys, values, n, 0, bits, mem->stream));
    WEFT_CUDA(cudaStreamSynchronize(mem->stream));
    weft_device_drop(mem, scratch);
    weft_device_drop(mem, keys.Alternate());
    weft_device_drop(mem, values.Alternate());
    cell = keys.Current(), order = values.Current();
  }
  out->order = order;
  LAP(1);
  WEFT_TRY(weft_poll(ctx, 0, 1));
  WEFT_DEVICE_TAKE(out->rows, mem, n * plan.d);
  move_rows<<<grid_for((double) n * plan.d), 256, 0, mem->stream>>>(from, order, n, plan.d, out->rows);
  WEFT_CUDA(cudaGetLastError());
  WEFT_CUDA(cudaStreamSynchronize(mem->stream));
  weft_device_drop(mem, from);
  out->lo = NULL;
  if (from_lo) {
    WEFT_DEVICE_TAKE(out->lo, mem, n * plan.d);
    move_rows<<<grid_for((double) n * plan.d), 256, 0, mem->stream>>>(from_lo, order, n, plan.d, out->lo);
    WEFT_CUDA(cudaGetLastError());
    WEFT_CUDA(cudaStreamSynchronize(mem->stream));
    weft_device_drop(mem, from_lo);
  }
  LAP(2);
  WEFT_DEVICE_TAKE(out->local, mem, n * plan.words);
  find_local<<<grid_for((double) n), 256, 0, mem->stream>>>(plan, out->rows, n, out->local);
  WEFT_CUDA(cudaGetLastError());
  WEFT_DEVICE_TAKE(out->start, mem, (size_t) plan.total + 1);
  find_starts<<<grid_for((double) n + 1), 256, 0, mem->stream>>>(cell, n, plan.total, out->start);
  WEFT_CUDA(cudaGetLastError());
  WEFT_CUDA(cudaStreamSynchronize(mem->stream));
  weft_device_drop(mem, cell);
  LAP(3);
done:
  return st;
}

/* ---- the walk ---- */

template <typename Real> struct grid_args {
  grid_plan g;
  int kind, leave_one_out;
  double h, inv_h2;
  grid_points<Real> query, reference;
  const uint2 *run;
  int64_t first_run, runs;
  const double *weights; /* of the column, or NULL */
  double *out;           /* of the column */
  unsigned long long *counts;
};

template <int D> struct grid_warp {
  static const int W = (D + 3) / 4;
  float table[D][SLOTS][32];      /* square distance of each lane's query from the slabs around it */
  uint4 q[32];                    /* local words, and (|q|² - near) / 2 */
  uint32_t cell[QUEUE], mask[QUEUE], offset[W][QUEUE];
  unsigned long long tests, pairs; /* counted by lane 0 */
};

/* The pair's value, as exactly as the CPU has it. */
__device__ static double pair_value(const grid_args<double> &a, int64_t q, int64_t x) {
  const weft_points from = { (size_t) a.query.n, (size_t) a.g.d, a.query.rows, a.query.lo };
  const weft_points to = { (size_t) a.reference.n, (size_t) a.g.d, a.reference.rows, a.reference.lo };
  return weft_kernel_pair(a.kind, &from, q, &to, x, a.h, 0);
}

__device__ static double pair_value(const grid_args<float> &a, int64_t q, int64_t x) {
  const float *from = a.query.rows + q * a.g.d, *to = a.reference.rows + x * a.g.d;
  double s = 0;
#pragma unroll 5
  for (int j = 0; j < a.g.d; j++) {
    const double gap = (double) from[j] - (double) to[j];
    s += gap * gap;
  }
  return weft_kernel_of(a.kind, s * a.inv_h2, 0);
}

/* The points of a cell, one a lane, against the queries of its mask; adds to the lanes' totals. */
template <typename Real, int D>
__device__ __forceinline__ double meet(const grid_args<Real> &a, grid_warp<D> &m, int entry, uint32_t start, bool here, const int *local,
                                       int64_t first, double total, unsigned &pairs) {
  const int W = (D + 3) / 4, lane = threadIdx.x & 31;
  int x[W], norm = 0;
#pragma unroll
  for (int w = 0; w < W; w++) {
    x[w] = local[w] + (int) m.offset[w][entry];
    norm = __dp4a(x[w], x[w], norm);
  }
  const int begin = here ? -(norm >> 1) : INT_MIN / 2;
  uint32_t mask = m.mask[entry];
  while (mask) {
    const int b = __ffs((int) mask) - 1;
    mask &= mask - 1;
    const uint4 q = m.q[b];
    int dot = __dp4a(x[0], (int) q.x, begin);
    if (W > 1) dot = __dp4a(x[W > 1 ? 1 : 0], (int) q.y, dot);
    if (W > 2) dot = __dp4a(x[W > 2 ? 2 : 0], (int) q.z, dot);
    const bool hit = dot >= (int) q.w;
    if (!__any_sync(~0u, hit)) continue;
    const int64_t from = first + b, to = (int64_t) start + lane;
    double value = 0;
    if (hit && !(a.leave_one_out && from == to)) {
      value = pair_value(a, from, to);
      if (a.weights) value *= a.weights[to];
    }
    pairs += hit;
#pragma unroll
    for (int half = 16; half; half >>= 1) value += __shfl_xor_sync(~0u, value, half);
    if (lane == b) total += value;
  }
  return total;
}

__device__ static unsigned sum_lanes(unsigned v) {
  for (int half = 16; half; half >>= 1) v += __shfl_xor_sync(~0u, v, half);
  return v;
}

/* Empties the queue. */
template <typename Real, int D>
__device__ __noinline__ double work_off(const grid_args<Real> &a, grid_warp<D> &m, int n, int64_t first, double total) {
  const int W = (D + 3) / 4, lane = threadIdx.x & 31;
  unsigned tests = 0, pairs = 0; /* of this lane */
  __syncwarp();
  for (int base = 0; base < n; base += 32) {
    uint32_t start = 0, count = 0;
    if (base + lane < n) {
      const uint32_t c = m.cell[base + lane];
      start = a.reference.start[c];
      count = a.reference.start[c + 1] - start;
      tests += __popc(m.mask[base + lane]) * ((count + 31) / 32);
    }
    const int some = n - base < 32 ? n - base : 32;
    for (int e = 0; e < some; e += AHEAD) {
      int local[AHEAD][W];
      uint32_t starts[AHEAD], counts[AHEAD];
#pragma unroll
      for (int u = 0; u < AHEAD; u++) {
        const int from = (e + u) & 31;
        starts[u] = __shfl_sync(~0u, start, from);
        counts[u] = __shfl_sync(~0u, count, from);
        if (e + u >= some) counts[u] = 0;
#pragma unroll
        for (int w = 0; w < W; w++)
          local[u][w] = lane < counts[u] ? a.reference.local[((int64_t) starts[u] + lane) * W + w] : 0;
      }
#pragma unroll
      for (int u = 0; u < AHEAD; u++)
        for (uint32_t done = 0; done < counts[u]; done += 32) {
          const bool here = done + lane < counts[u];
          if (done)
#pragma unroll
            for (int w = 0; w < W; w++) local[u][w] = here ? a.reference.local[((int64_t) starts[u] + done + lane) * W + w] : 0;
          total = meet(a, m, base + e + u, starts[u] + done, here, local[u], first, total, pairs);
        }
    }
  }
  if (a.counts) {
    tests = sum_lanes(tests), pairs = sum_lanes(pairs);
    if (lane == 0) m.tests += tests, m.pairs += pairs;
  }
  __syncwarp();
  return total;
}

template <typename Real, int D> struct grid_walker {
  static const int W = (D + 3) / 4;
  const grid_args<Real> &a;
  grid_warp<D> &m;
  int lane, queued;
  int64_t first;
  double total;
  unsigned cells_seen;

  __device__ grid_walker(const grid_args<Real> &a_, grid_warp<D> &m_) : a(a_), m(m_) {}

  /* Dimension J: all slabs at once, then on within those that some query reaches. */
  template <int J> __device__ __forceinline__ void visit(float s, uint32_t cell, uint32_t o0, uint32_t o1, uint32_t o2) {
    uint32_t reached[SLOTS];
#pragma unroll
    for (int o = 0; o < SLOTS; o++) reached[o] = 0;
    reached[1] = __ballot_sync(~0u, s + m.table[J][1][lane] <= a.g.within);
    reached[2] = __ballot_sync(~0u, s + m.table[J][2][lane] <= a.g.within);
    reached[3] = __ballot_sync(~0u, s + m.table[J][3][lane] <= a.g.within);
    if (a.g.reach[J] > 1) {
      reached[0] = __ballot_sync(~0u, s + m.table[J][0][lane] <= a.g.within);
      reached[4] = __ballot_sync(~0u, s + m.table[J][4][lane] <= a.g.within);
    }
    uint32_t alive = 0, mine = 0;
#pragma unroll
    for (int o = 0; o < SLOTS; o++) {
      alive |= reached[o] ? 1u << o : 0;
      if (J == D - 1) mine = lane == o ? reached[o] : mine;
    }
    cells_seen += __popc(alive);
    if constexpr (J == D - 1) {
      if (queued + SLOTS > QUEUE) {
        total = work_off(a, m, queued, first, total);
        queued = 0;
      }
      if (mine) { /* lane o queues the cell of slab o */
        const int o = lane - GRID_REACH, at = queued + __popc(alive & ((1u << lane) - 1));
        const uint32_t byte = (uint32_t) ((o * a.g.k[J]) & 0xff) << 8 * (J & 3);
        m.cell[at] = cell + (uint32_t) o * a.g.stride[J], m.mask[at] = mine;
        m.offset[0][at] = J < 4 ? o0 | byte : o0;
        if (W > 1) m.offset[W > 1 ? 1 : 0][at] = J >= 4 && J < 8 ? o1 | byte : o1;
        if (W > 2) m.offset[W > 2 ? 2 : 0][at] = J >= 8 ? o2 | byte : o2;
      }
      queued += __popc(alive);
    } else {
      while (alive) {
        const int slot = __ffs((int) alive) - 1, o = slot - GRID_REACH;
        alive &= alive - 1;
        const uint32_t byte = (uint32_t) ((o * a.g.k[J]) & 0xff) << 8 * (J & 3);
        visit<J + 1>(s + m.table[J][slot][lane], cell + (uint32_t) o * a.g.stride[J], J < 4 ? o0 | byte : o0,
                     J >= 4 && J < 8 ? o1 | byte : o1, J >= 8 ? o2 | byte : o2);
      }
    }
  }

  __device__ void run(int64_t r) {
    const uint2 own = a.run[r];
    first = own.y;
    lane = threadIdx.x & 31;
    queued = 0, total = 0, cells_seen = 0;
    if (lane == 0) m.tests = m.pairs = 0;
    const uint32_t left = a.query.start[own.x + 1] - own.y;
    const bool here = lane < left;
    const int64_t i = first + (here ? lane : 0);
    uint32_t rest = own.x;
    int words[3] = {0, 0, 0}, norm = 0;
    __syncwarp();
#pragma unroll
    for (int j = 0; j < D; j++) {
      const int at = (int) (rest / a.g.stride[j]);
      rest %= a.g.stride[j];
      const float k = (float) a.g.k[j];
      const float x = (float) (((double) a.query.rows[i * a.g.d + a.g.axis[j]] - a.g.low[j]) * a.g.inv_unit - (double) a.g.k[j] * at);
#pragma unroll
      for (int o = -GRID_REACH; o <= GRID_REACH; o++) {
        const float gap = o < 0 ? x + (float) (-o - 1) * k : o > 0 ? (k - x) + (float) (o - 1) * k : 0;
        const bool there = abs(o) <= a.g.reach[j] && at + o >= 0 && at + o < a.g.cells[j];
        m.table[j][o + GRID_REACH][lane] = !there ? INFINITY : gap > 0 ? gap * gap : 0;
      }
    }
#pragma unroll
    for (int w = 0; w < W; w++) {
      words[w] = a.query.local[i * W + w];
      norm = __dp4a(words[w], words[w], norm);
    }
    m.q[lane] = make_uint4((uint32_t) words[0], (uint32_t) words[1], (uint32_t) words[2], (uint32_t) ((norm - a.g.near) >> 1));
    __syncwarp();
    visit<0>(here ? 0.0f : INFINITY, own.x, 0, 0, 0);
    total = work_off(a, m, queued, first, total);
    if (here) a.out[a.query.order[i]] = total;
    if (lane == 0 && a.counts) {
      atomicAdd(&a.counts[0], (unsigned long long) cells_seen);
      atomicAdd(&a.counts[1], m.tests);
      atomicAdd(&a.counts[2], m.pairs);
    }
  }
};

template <typename Real, int D> __global__ void __launch_bounds__(32 * WARPS, 3) walk_grid(const __grid_constant__ grid_args<Real> a) {
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  grid_warp<D> *mine = (grid_warp<D> *) shared_bytes + (threadIdx.x >> 5);
  const int64_t r = (int64_t) blockIdx.x * WARPS + (threadIdx.x >> 5);
  if (r >= a.runs) return;
  grid_walker<Real, D> w(a, *mine);
  w.run(a.first_run + r);
}

template <typename Real, int D> static cudaError_t launch_walk(const grid_args<Real> &a, cudaStream_t stream) {
  const size_t bytes = sizeof(grid_warp<D>) * WARPS;
  cudaError_t e = bytes > 48 * 1024 ? cudaFuncSetAttribute(walk_grid<Real, D>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int) bytes) : cudaSuccess;
  if (e != cudaSuccess) return e;
  walk_grid<Real, D><<<(unsigned) ((a.runs + WARPS - 1) / WARPS), 32 * WARPS, bytes, stream>>>(a);
  return cudaGetLastError();
}

template <typename Real> static cudaError_t launch_dims(const grid_args<Real> &a, cudaStream_t stream) {
  switch (a.g.dims) {
#define DIMS_CASE(D) case D: return launch_walk<Real, D>(a, stream);
  DIMS_CASE(2) DIMS_CASE(4) DIMS_CASE(6) DIMS_CASE(8) DIMS_CASE(10)
  default: return launch_walk<Real, 12>(a, stream);
  }
}

template <typename Real>
weft_status weft_grid_sum(weft_ctx *ctx, weft_device_arena *mem, const grid_plan &plan, int kind, double h, int leave_one_out,
                          const grid_points<Real> &query, const grid_points<Real> &reference, int m, double *out, double counts[3]) {
  weft_status st = WEFT_OK;
  uint32_t *first_run, runs = 0;
  uint2 *run;
  unsigned char *scratch;
  size_t scratch_bytes = 0;
  unsigned long long *d_counts, seen[3];
  int64_t batch = 4096;
  grid_args<Real> a = { plan, kind, leave_one_out, h, 1 / (h * h), query, reference, NULL, 0, 0, NULL, NULL, NULL };
  WEFT_DEVICE_TAKE(first_run, mem, (size_t) plan.total + 1);
  WEFT_DEVICE_TAKE(d_counts, mem, 3);
  WEFT_CUDA(cudaMemsetAsync(d_counts, 0, 3 * sizeof *d_counts, mem->stream));
  count_runs<<<grid_for((double) plan.total + 1), 256, 0, mem->stream>>>(query.start, plan.total, first_run);
  WEFT_CUDA(cudaGetLastError());
  WEFT_CUDA(cub::DeviceScan::ExclusiveSum(NULL, scratch_bytes, first_run, first_run, (int64_t) plan.total + 1, mem->stream));
  WEFT_DEVICE_TAKE(scratch, mem, scratch_bytes);
  WEFT_CUDA(cub::DeviceScan::ExclusiveSum(scratch, scratch_bytes, first_run, first_run, (int64_t) plan.total + 1, mem->stream));
  WEFT_CUDA(cudaMemcpyAsync(&runs, first_run + plan.total, sizeof runs, cudaMemcpyDeviceToHost, mem->stream));
  WEFT_CUDA(cudaStreamSynchronize(mem->stream));
  weft_device_drop(mem, scratch);
  WEFT_DEVICE_TAKE(run, mem, runs);
  list_runs<<<grid_for((double) plan.total), 256, 0, mem->stream>>>(query.start, first_run, plan.total, run);
  WEFT_CUDA(cudaGetLastError());
  WEFT_CUDA(cudaStreamSynchronize(mem->stream));
  weft_device_drop(mem, first_run);
  a.run = run, a.counts = d_counts;
  for (int c = 0; c < m; c++) {
    a.weights = reference.weights ? reference.weights + (size_t) c * reference.n : NULL;
    a.out = out + (size_t) c * query.n;
    for (int64_t at = 0; at < runs; at += a.runs) {
      const double began = seconds_now();
      WEFT_TRY(weft_poll(ctx, (double) c * runs + at, (double) m * runs));
      a.first_run = at, a.runs = runs - at < batch ? runs - at : batch;
      WEFT_CUDA(launch_dims(a, mem->stream));
      WEFT_CUDA(cudaStreamSynchronize(mem->stream));
      const double took = seconds_now() - began;
      if (took < 0.03) batch *= 2;
      else if (took > 0.08 && batch > 1024) batch /= 2;
    }
  }
  WEFT_CUDA(cudaMemcpy(seen, d_counts, sizeof seen, cudaMemcpyDeviceToHost));
  for (int k = 0; k < 3; k++) counts[k] = (double) seen[k];
  weft_device_drop(mem, run);
  weft_device_drop(mem, d_counts);
done:
  return st;
}

#define INSTANCE(Real) \
  template weft_status weft_grid_build<Real>(weft_ctx *, weft_device_arena *, const grid_plan &, int64_t, Real *, Real *, \
                                             grid_points<Real> *, double *); \
  template weft_status weft_grid_sum<Real>(weft_ctx *, weft_device_arena *, const grid_plan &, int, double, int, \
                                           const grid_points<Real> &, const grid_points<Real> &, int, double *, double *);
INSTANCE(float)
INSTANCE(double)
