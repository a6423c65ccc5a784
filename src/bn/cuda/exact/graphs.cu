/* Exact edge posteriors over graphs on the device; see graphs.h. Blocks of threads take one subset C each, those
 * with equally many members in launches of at most MAX_TERMS terms. A thread has one low part of R and goes through
 * its middle and top parts: neighbouring lanes differ in the lowest nodes outside C, so that they read and add to words
 * that lie together. Products over middle parts are in shared memory:
 *   middle   256 × (fraction, exponent, members)
 * Every number is that of the CPU; sums are of whole numbers, in any order. */
#include <cstring>
#include "core/device/device.cuh"
#include "bn/cuda/bn.cuh"
#include "bn/both/graphs.h"
#include "bn/both/graphs_ends.h"

#define THREADS (1 << WEFT_BN_LOW_NODES)
#define MIDDLE (1 << WEFT_BN_MIDDLE_NODES)
#define WARP 32
#define ALL_LANES 0xffffffffu
#define STRETCH 16     /* middle parts in a row, whose lowest four bits the compiler knows */
#define MAX_TERMS 1e10 /* of one launch: less than a tenth of a second */

struct graphs_job {
  int p;
  uint32_t all; /* all nodes */
  weft_bn_reals a, after;
  unsigned long long *closed; /* Q */
  const uint32_t *by_size;
};

struct middle_part {
  uint64_t fraction;
  int32_t exponent;
  uint32_t members;
};

struct set_bench {
  middle_part middle[MIDDLE];
  weft_bn_real a[WARP]; /* of the nodes outside C, and the nodes */
  uint32_t node[WARP];
  unsigned long long sum[WARP]; /* S of each of them; or B(C), in the first */
  weft_bn_real start;
  int32_t unit;
  int negative; /* terms have the other sign */
};

__device__ static uint64_t warp_sum(uint64_t x)
{
  for (int apart = WARP / 2; apart; apart /= 2) x += __shfl_xor_sync(ALL_LANES, (unsigned long long) x, apart);
  return x;
}

__device__ static int32_t warp_most(int32_t x)
{
  for (int apart = WARP / 2; apart; apart /= 2) {
    const int32_t other = __shfl_xor_sync(ALL_LANES, x, apart);
    x = other > x ? other : x;
  }
  return x;
}

/* The first warp: lane v has node v. Start and unit are 0 where no term is to be added. */
template <bool FORWARD> __device__ static void begin_set(const graphs_job &job, set_bench &own, uint32_t c)
{
  const uint32_t v = threadIdx.x, bit = v < WARP ? 1u << v : 0, outside = job.all & ~c;
  const bool open = (outside & bit) != 0;
  const size_t at = ((size_t) v << job.p) + c;
  weft_bn_real a = weft_bn_real_of(0, 0);
  if (open) {
    const int k = __popc(outside & (bit - 1));
    a = weft_bn_read(job.a, at);
    own.a[k] = a;
    own.node[k] = v;
  }
  own.sum[v] = 0;
  if (FORWARD) {
    if (v == 0) {
      const uint64_t closed = job.closed[c];
      own.start = weft_bn_graph_scale(closed, weft_bn_read(job.after, c));
      own.unit = -WEFT_BN_GRAPH_BITS;
      own.negative = weft_bn_is_negative(closed);
    }
    if (job.all & c & bit) weft_bn_write(job.a, at, weft_bn_real_of(0, 0));
    return;
  }
  weft_bn_real step = weft_bn_real_of(0, 0);
  if (open) step = weft_bn_graph_step(a, weft_bn_read(job.after, c | bit));
  const int32_t most = warp_most(step.fraction ? step.exponent : INT32_MIN);
  const uint64_t bound = warp_sum(step.fraction ? weft_bn_graph_bound(step, most) : 0);
  if (v == 0) {
    own.start = bound ? weft_bn_one() : weft_bn_real_of(0, 0);
    own.unit = bound ? weft_bn_graph_unit(bound, most) : 0;
    own.negative = 0;
  }
}

/* Product and members of the part of R that has nodes `from` to `to` outside C. */
__device__ static weft_bn_real part_of(const set_bench &own, weft_bn_real start, int from, int to, uint32_t part,
                                       uint32_t *members)
{
  weft_bn_real x = start;
  uint32_t found = 0;
  for (int j = from; j < to; j++)
    if (part >> (j - from) & 1) {
      x = weft_bn_real_product(x, own.a[j]);
      found |= 1u << own.node[j];
    }
  *members = found;
  return x;
}

/* Adds x, of all lanes whose bit is set, to own.sum[k]. */
__device__ static void keep_sum(set_bench &own, int k, uint64_t x)
{
  const uint64_t sum = warp_sum(x);
  if (threadIdx.x % WARP == 0) atomicAdd(&own.sum[k], (unsigned long long) sum);
}

/* All terms of the set C that the block has: B(C), or with FORWARD what C adds to Q, and S_v(C) / a_v(C) for its
 * open nodes. */
template <bool FORWARD> __global__ static void __launch_bounds__(THREADS) visit_sets(graphs_job job, size_t first)
{
  __shared__ set_bench own;
  const uint32_t c = job.by_size[first + blockIdx.x], r = threadIdx.x;
  const int open = job.p - __popc(c), low_end = open < WEFT_BN_LOW_NODES ? open : WEFT_BN_LOW_NODES;
  const int middle_end = open < low_end + WEFT_BN_MIDDLE_NODES ? open : low_end + WEFT_BN_MIDDLE_NODES;
  const uint32_t lows = 1u << low_end, middles = 1u << (middle_end - low_end), tops = 1u << (open - middle_end);
  uint64_t total = 0, with[WEFT_BN_MIDDLE_NODES];
  if (r < WARP) begin_set<FORWARD>(job, own, c);
  __syncthreads();
  const weft_bn_real start = own.start;
  const int32_t unit = own.unit;
  const uint32_t odd = own.negative + __popc(r);
  uint32_t low_members;
  const weft_bn_real low = part_of(own, start, 0, low_end, r, &low_members);
  for (uint32_t m = r; m < middles; m += THREADS) {
    uint32_t members;
    const weft_bn_real x = part_of(own, weft_bn_one(), low_end, middle_end, m, &members);
    middle_part part;
    part.fraction = x.fraction;
    part.exponent = x.exponent;
    part.members = members;
    own.middle[m] = part;
  }
#pragma unroll
  for (int j = 0; j < WEFT_BN_MIDDLE_NODES; j++) with[j] = 0;
  __syncthreads();
  for (uint32_t t = 0; t < (start.fraction ? tops : 0); t++) {
    uint32_t top_members;
    const weft_bn_real top = part_of(own, weft_bn_one(), middle_end, open, t, &top_members);
    const weft_bn_real base = weft_bn_real_product(low, top);
    const uint32_t base_members = c | low_members | top_members, base_odd = odd + __popc(t);
    uint64_t row = 0;
    for (uint32_t stretch = 0; stretch < middles && r < lows; stretch += STRETCH) {
      const uint32_t stretch_odd = base_odd + __popc(stretch);
      uint64_t part = 0;
#pragma unroll
      for (uint32_t i = 0; i < STRETCH; i++) {
        if (stretch + i >= middles || !(r | t | stretch | i)) continue; /* R is not empty */
        const middle_part middle = own.middle[stretch + i];
        const uint32_t next = base_members | middle.members;
        const uint64_t term = weft_bn_graph_term(base, weft_bn_real_of(middle.fraction, middle.exponent),
                                                 weft_bn_read(job.after, next), unit);
        const uint64_t signed_term = (stretch_odd + __popc(i)) & 1 ? term : 0 - term;
        part += signed_term;
        if (FORWARD) {
          if (term) atomicAdd(&job.closed[next], (unsigned long long) signed_term);
          if (i & 1) with[0] += signed_term;
          if (i & 2) with[1] += signed_term;
          if (i & 4) with[2] += signed_term;
          if (i & 8) with[3] += signed_term;
        }
      }
      if (FORWARD)
#pragma unroll
        for (int j = 4; j < WEFT_BN_MIDDLE_NODES; j++) with[j] += stretch >> j & 1 ? part : 0;
      row += part;
    }
    total += row;
    if (FORWARD)
      for (int j = middle_end; j < open; j++)
        if (t >> (j - middle_end) & 1) keep_sum(own, j, row);
  }
  if (FORWARD) {
    for (int j = 0; j < low_end; j++) keep_sum(own, j, r >> j & 1 ? total : 0);
#pragma unroll
    for (int j = 0; j < WEFT_BN_MIDDLE_NODES; j++)
      if (low_end + j < middle_end) keep_sum(own, low_end + j, with[j]);
  } else {
    keep_sum(own, 0, total);
  }
  __syncthreads();
  if (!FORWARD && r == 0) weft_bn_write(job.after, c, open ? weft_bn_real_of_units(own.sum[0], unit) : weft_bn_one());
  if (FORWARD && (int) r < open)
    weft_bn_write(job.a, ((size_t) own.node[r] << job.p) + c, weft_bn_graph_share(own.sum[r], own.a[r]));
}

/* One bit of the sums over subsets (or supersets, of numbers with signs) of all nodes. */
template <bool SUPERSETS> __global__ static void sum_bit(weft_bn_reals x, size_t pairs, size_t bit)
{
  const size_t i = (size_t) blockIdx.x * THREADS + threadIdx.x, without = ((i & ~(bit - 1)) << 1) | (i & (bit - 1));
  if (i >= pairs) return;
  const weft_bn_real one = weft_bn_read(x, without), other = weft_bn_read(x, without | bit);
  if (SUPERSETS)
    weft_bn_write(x, without, weft_bn_signed_sum(one, other));
  else
    weft_bn_write(x, without | bit, weft_bn_real_sum(other, one));
}

/* Spreads one number per parent set over the table of all subsets: set k's goes to x[at[k]]. */
__global__ static void put_sets(weft_bn_reals x, weft_bn_reals of_sets, const uint64_t *at, size_t sets)
{
  const size_t k = (size_t) blockIdx.x * THREADS + threadIdx.x;
  if (k < sets) weft_bn_write(x, at[k], weft_bn_read(of_sets, k));
}

__global__ static void take_sets(weft_bn_reals x, weft_bn_reals of_sets, const uint64_t *at, size_t sets)
{
  const size_t k = (size_t) blockIdx.x * THREADS + threadIdx.x;
  if (k < sets) weft_bn_write(of_sets, k, weft_bn_read(x, at[k]));
}

/* ---- host ---- */

static weft_status take_reals(weft_device_arena *mem, size_t count, weft_bn_reals *out)
{
  weft_status st = WEFT_OK;
  WEFT_DEVICE_TAKE(out->fraction, mem, count);
  WEFT_DEVICE_TAKE(out->exponent, mem, count);
done:
  return st;
}

static weft_status clear_reals(weft_ctx *ctx, weft_bn_reals x, size_t count, cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  WEFT_CUDA(cudaMemsetAsync(x.fraction, 0, count * sizeof *x.fraction, stream));
  WEFT_CUDA(cudaMemsetAsync(x.exponent, 0, count * sizeof *x.exponent, stream));
done:
  return st;
}

static unsigned blocks_for(size_t items) { return (unsigned) ((items + THREADS - 1) / THREADS); }

template <bool SUPERSETS>
static weft_status sum_all(weft_ctx *ctx, const graphs_job &job, double progress, cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  const size_t all = (size_t) job.all + 1, pairs = (size_t) job.p * all / 2;
  for (size_t bit = 1; bit < all; bit *= 2) {
    sum_bit<SUPERSETS><<<blocks_for(pairs), THREADS, 0, stream>>>(job.a, pairs, bit);
    WEFT_CUDA(cudaGetLastError());
    WEFT_CUDA(cudaStreamSynchronize(stream));
    WEFT_TRY(weft_poll(ctx, progress, 1));
  }
done:
  return st;
}

template <bool FORWARD>
/* Visits the subsets of all sizes, from the largest or with FORWARD from the empty one, in launches of at most
 * MAX_TERMS terms. */
static weft_status visit_all(weft_ctx *ctx, const graphs_job &job, const size_t *begin, double from, double to,
                             cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  double whole = 1, done = 0, waiting = 0;
  for (int v = 0; v < job.p; v++) whole *= 3;
  for (int step = 0; step <= job.p; step++) {
    const int size = FORWARD ? step : job.p - step;
    const double terms = (double) ((size_t) 1 << (job.p - size));
    const size_t most = terms < MAX_TERMS ? (size_t) (MAX_TERMS / terms) : 1;
    for (size_t first = begin[size], count; first < begin[size + 1]; first += count) {
      count = begin[size + 1] - first < most ? begin[size + 1] - first : most;
      visit_sets<FORWARD><<<(unsigned) count, THREADS, 0, stream>>>(job, first);
      WEFT_CUDA(cudaGetLastError());
      done += (double) count * terms;
      waiting += (double) count * terms;
      if (waiting < MAX_TERMS / 2) continue;
      waiting = 0;
      WEFT_CUDA(cudaStreamSynchronize(stream));
      WEFT_TRY(weft_poll(ctx, from + (to - from) * done / whole, 1));
    }
  }
  WEFT_CUDA(cudaStreamSynchronize(stream));
  WEFT_TRY(weft_poll(ctx, to, 1));
done:
  return st;
}

template <typename T>
static weft_status copy(weft_ctx *ctx, T *to, const T *from, size_t count, cudaMemcpyKind kind, cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  WEFT_CUDA(cudaMemcpyAsync(to, from, count * sizeof *from, kind, stream));
  WEFT_CUDA(cudaStreamSynchronize(stream));
done:
  return st;
}

/* The device's weft_bn_edges_graphs_op: some 12 (p + 2) 2^p bytes of the device. Weights go up, sums come back, and
 * the host makes the edges of them. */
extern "C" weft_status weft_bn_edges_graphs_cuda(weft_ctx *ctx, const weft_bn_table *table, int64_t optimum,
                                                 double *edges, double *log_total, double *error)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  weft_device_arena mem = weft_device_begin(ctx);
  const size_t p = table->p, all = (size_t) 1 << p, sets = (size_t) table->start[p];
  const uint64_t one = UINT64_C(1) << WEFT_BN_GRAPH_BITS;
  cudaStream_t stream = mem.stream;
  weft_bn_graph_plan plan;
  weft_bn_real none;
  weft_bn_reals of_sets;
  graphs_job job;
  uint64_t *at, *d_at, *d_closed, closed;
  uint32_t *d_by_size;
  memset(&job, 0, sizeof job);
  none = weft_bn_real_of(0, 0);
  /* the largest tables first: what does not fit is refused before anything is done */
  WEFT_TRY(take_reals(&mem, p * all, &job.a));
  WEFT_TRY(take_reals(&mem, all, &job.after));
  WEFT_DEVICE_TAKE(d_closed, &mem, all);
  WEFT_DEVICE_TAKE(d_by_size, &mem, all);
  WEFT_TRY(take_reals(&mem, sets, &of_sets));
  WEFT_DEVICE_TAKE(d_at, &mem, sets);
  WEFT_TRY(weft_bn_graph_plan_make(ctx, &host, table, optimum, &plan));
  WEFT_TAKE(at, &host, sets);
  for (size_t v = 0; v < p; v++)
    for (int64_t k = table->start[v]; k < table->start[v + 1]; k++) at[k] = v * all + table->mask[k];
  job.p = (int) p;
  job.all = (uint32_t) (all - 1);
  job.closed = (unsigned long long *) d_closed;
  job.by_size = d_by_size;
  WEFT_TRY(copy(ctx, d_at, at, sets, cudaMemcpyHostToDevice, stream));
  WEFT_TRY(copy(ctx, d_by_size, plan.by_size, all, cudaMemcpyHostToDevice, stream));
  WEFT_TRY(copy(ctx, of_sets.fraction, plan.weight.fraction, sets, cudaMemcpyHostToDevice, stream));
  WEFT_TRY(copy(ctx, of_sets.exponent, plan.weight.exponent, sets, cudaMemcpyHostToDevice, stream));
  WEFT_TRY(clear_reals(ctx, job.a, p * all, stream));
  WEFT_TRY(clear_reals(ctx, job.after, all, stream));
  WEFT_CUDA(cudaMemsetAsync(d_closed, 0, all * sizeof *d_closed, stream));
  WEFT_TRY(copy(ctx, d_closed, &one, 1, cudaMemcpyHostToDevice, stream));
  put_sets<<<blocks_for(sets), THREADS, 0, stream>>>(job.a, of_sets, d_at, sets);
  WEFT_TRY(sum_all<false>(ctx, job, 0, stream));
  WEFT_TRY(visit_all<false>(ctx, job, plan.begin, 0, 0.4, stream));
  WEFT_TRY(copy(ctx, &none.fraction, job.after.fraction, 1, cudaMemcpyDeviceToHost, stream));
  WEFT_TRY(copy(ctx, &none.exponent, job.after.exponent, 1, cudaMemcpyDeviceToHost, stream));
  if (!none.fraction) {
    st = weft_fail(ctx, WEFT_ERR_INPUT, "No graph has all required parents within the limits.");
    goto done;
  }
  WEFT_TRY(visit_all<true>(ctx, job, plan.begin, 0.4, 1, stream));
  WEFT_TRY(sum_all<true>(ctx, job, 1, stream));
  take_sets<<<blocks_for(sets), THREADS, 0, stream>>>(job.a, of_sets, d_at, sets);
  WEFT_CUDA(cudaGetLastError());
  WEFT_TRY(copy(ctx, plan.through.fraction, of_sets.fraction, sets, cudaMemcpyDeviceToHost, stream));
  WEFT_TRY(copy(ctx, plan.through.exponent, of_sets.exponent, sets, cudaMemcpyDeviceToHost, stream));
  WEFT_TRY(copy(ctx, &closed, d_closed + all - 1, 1, cudaMemcpyDeviceToHost, stream));
  WEFT_TRY(weft_bn_graph_edges(ctx, table, &plan, none, closed, edges, log_total, error));
done:
  weft_device_end(&mem);
  weft_arena_end(&host);
  return st;
}
