/* Exact edge posteriors over orders on the device; see orders.h. One top part at a time: its buffer is loaded and
 * summed over mid parts by kernels over cells and slots; then blocks of threads take one (top, mid) each, those with
 * equally many members in one launch. A block of threads works on the 2^9 low parts in shared memory, on up to nine
 * nodes at a time:
 *   values[node][low]   a_s, then f(W) b(W + s)            9 × 512 words
 *   block[low]          f(W), or b(W)                          512 words
 * Every sum has the order that the CPU gives it, so that equal cuts of subsets give equal bits. */
#include <cstring>
#include "core/device/device.cuh"
#include "bn/cuda/bn.cuh"
#include "bn/cuda/exact/subsets.cuh"
#include "bn/both/orders.h"
#include "bn/both/orders_ends.h"

#define THREADS 256
#define LOW_BITS 9
#define LOW 512
#define EACH (LOW / THREADS) /* low parts of a thread */
#define BATCH LOW_BITS       /* nodes at a time; the low ones are one batch */
#define MAX_MID_BITS 15
#define MAX_BUFFER 8e9 /* bytes */
#define FUSED_BITS 5   /* mid bits that one kernel sums over */

struct orders_job {
  weft_bn_order_plan plan; /* of pointers to device memory */
  weft_bn_subsets table;
  uint64_t *buffer;
  const uint32_t *mids;      /* by size */
  const uint16_t *low_order; /* low parts by size */
};

__global__ static void load_cells(orders_job job, uint32_t top)
{
  const weft_bn_order_plan &plan = job.plan;
  const uint32_t c = blockIdx.x * THREADS + threadIdx.x;
  if (c >= plan.cells) return;
  job.buffer[weft_bn_order_at(plan.slots, plan.cell_mid[c], plan.cell_slot[c])] =
      weft_bn_order_load(plan.form, plan.top, plan.weight, plan.cell_start[c], plan.cell_start[c + 1], top);
}

__global__ static void unload_cells(orders_job job, uint32_t top)
{
  const weft_bn_order_plan &plan = job.plan;
  const uint32_t c = blockIdx.x * THREADS + threadIdx.x;
  if (c >= plan.cells) return;
  weft_bn_order_unload(plan.form, plan.top, plan.sum, plan.cell_start[c], plan.cell_start[c + 1], top,
                       job.buffer[weft_bn_order_at(plan.slots, plan.cell_mid[c], plan.cell_slot[c])]);
}

/* Sums over subsets (or supersets) of mid bits shift .. shift + BITS - 1. A thread has one slot and one choice of the
 * other mid bits, blockIdx.y. */
template <int BITS, bool SUPERSETS> __global__ static void sum_mids(orders_job job, int shift)
{
  const uint32_t slots = job.plan.slots, slot = blockIdx.x * THREADS + threadIdx.x, others = blockIdx.y;
  const uint32_t mid = (others >> shift << (shift + BITS)) | (others & ((1u << shift) - 1));
  uint64_t x[1 << BITS];
  if (slot >= slots) return;
#pragma unroll
  for (uint32_t k = 0; k < 1 << BITS; k++) x[k] = job.buffer[weft_bn_order_at(slots, mid | k << shift, slot)];
#pragma unroll
  for (uint32_t bit = 1; bit < 1 << BITS; bit <<= 1)
#pragma unroll
    for (uint32_t k = 0; k < 1 << BITS; k++)
      if (k & bit) {
        if (SUPERSETS)
          x[k ^ bit] = weft_bn_wide_add(job.plan.form, x[k ^ bit], x[k]);
        else
          x[k] = weft_bn_wide_add(job.plan.form, x[k], x[k ^ bit]);
      }
#pragma unroll
  for (uint32_t k = 0; k < 1 << BITS; k++) job.buffer[weft_bn_order_at(slots, mid | k << shift, slot)] = x[k];
}

/* The lowest `most` members of a set of nodes. */
__device__ static uint64_t first_members(uint64_t nodes, int most)
{
  uint64_t rest = nodes;
  for (int k = 0; k < most; k++) rest &= rest - 1;
  return nodes & ~rest;
}

__device__ static int lowest(uint64_t nodes) { return __ffsll((long long) nodes) - 1; }

/* Sums over subsets (or supersets) of low parts of n nodes. All threads come here; all are done when they leave. */
template <bool SUPERSETS> __device__ static void sum_lows(const weft_bn_order_plan &plan, uint64_t *values, int n)
{
  const int half_bits = plan.low_bits - 1, pairs = n << half_bits;
  for (int bit = 1; bit < 1 << plan.low_bits; bit <<= 1) {
    for (int i = threadIdx.x; i < pairs; i += THREADS) {
      const int j = i & ((1 << half_bits) - 1), low = ((j & ~(bit - 1)) << 1) | (j & (bit - 1));
      uint64_t *without = values + (i >> half_bits) * LOW + low, *with = without + bit;
      if (SUPERSETS)
        *without = weft_bn_wide_add(plan.form, *without, *with);
      else
        *with = weft_bn_wide_add(plan.form, *with, *without);
    }
    __syncthreads();
  }
}

/* a_s of a batch of nodes, one after another in `values`. */
__device__ static void node_values(const weft_bn_order_plan &plan, const uint64_t *slots, uint64_t nodes,
                                   uint64_t *values)
{
  const int n = __popcll(nodes);
  __syncthreads();
  for (int i = threadIdx.x; i < n * LOW; i += THREADS) values[i] = 0;
  __syncthreads();
  for (uint64_t *of_node = values; nodes; nodes &= nodes - 1, of_node += LOW) {
    const int s = lowest(nodes);
    for (uint32_t k = plan.slot_start[s] + threadIdx.x; k < plan.slot_start[s + 1]; k += THREADS)
      of_node[plan.slot_low[k]] = slots[k];
  }
  __syncthreads();
  sum_lows<false>(plan, values, n);
}

/* f(W) b(W + s) of a batch into its slots. */
__device__ static void keep_nodes(const weft_bn_order_plan &plan, uint64_t *slots, uint64_t nodes, uint64_t *values)
{
  __syncthreads();
  sum_lows<true>(plan, values, __popcll(nodes));
  for (const uint64_t *of_node = values; nodes; nodes &= nodes - 1, of_node += LOW) {
    const int s = lowest(nodes);
    for (uint32_t k = plan.slot_start[s] + threadIdx.x; k < plan.slot_start[s + 1]; k += THREADS)
      slots[k] = of_node[plan.slot_low[k]];
  }
}

/* low_order[from .. from + sets - 1] are the low parts of the next size. */
__device__ static int next_size(int sets, int size, int bits) { return sets * (bits - size) / (size + 1); }

/* f(W) of one block of subsets, as forward_block() of orders.c, by a block of threads. */
__global__ static void __launch_bounds__(THREADS) forward_blocks(orders_job job, uint32_t top, uint32_t first_mid)
{
  __shared__ uint64_t values[BATCH * LOW], block[LOW];
  const weft_bn_order_plan &plan = job.plan;
  const weft_bn_wide form = plan.form;
  const uint32_t mid = job.mids[first_mid + blockIdx.x];
  const uint64_t first = weft_bn_order_block(plan.low_bits, plan.mid_bits, top, mid);
  const uint64_t *slots = job.buffer + weft_bn_order_at(plan.slots, mid, 0);
  const int count = 1 << plan.low_bits;
  weft_bn_wide_sum sum[EACH] = {};
  for (uint64_t left = first, now; left; left &= ~now) { /* the last node is a high one */
    now = first_members(left, BATCH);
    node_values(plan, slots, now, values);
    const uint64_t *a = values;
    for (uint64_t rest = now; rest; rest &= rest - 1, a += LOW) {
      const uint64_t *before = weft_bn_subset_at(job.table, first ^ (rest & (0 - rest)));
#pragma unroll
      for (int k = 0; k < EACH; k++) {
        const int low = threadIdx.x + k * THREADS;
        if (low < count) weft_bn_wide_add_product(form, &sum[k], a[low], before[low]);
      }
    }
  }
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    const int low = threadIdx.x + k * THREADS;
    if (low < count)
      block[low] = first | (uint64_t) low ? weft_bn_wide_of_sum(form, sum[k]) : weft_bn_wide_of(form, 1, 0);
  }
  node_values(plan, slots, ((uint64_t) 1 << plan.low_bits) - 1, values);
  for (int size = 1, from = 1, sets = plan.low_bits; size <= plan.low_bits;
       from += sets, sets = next_size(sets, size, plan.low_bits), size++) { /* the last node is a low one */
    for (int k = from + threadIdx.x; k < from + sets; k += THREADS) {
      const uint32_t low = job.low_order[k];
      weft_bn_wide_sum own = weft_bn_wide_as_sum(form, block[low]);
      for (uint32_t left = low; left; left &= left - 1) {
        const int s = __ffs((int) left) - 1;
        const uint32_t rest = low & ~(1u << s);
        weft_bn_wide_add_product(form, &own, values[s * LOW + rest], block[rest]);
      }
      block[low] = weft_bn_wide_of_sum(form, own);
    }
    __syncthreads();
  }
  uint64_t *mine = weft_bn_subset_at(job.table, first);
  for (int low = threadIdx.x; low < count; low += THREADS) mine[low] = block[low];
}

/* b(W) of one block in place of f(W), and f(W) b(W + s) into the slots, as backward_block() of orders.c. */
__global__ static void __launch_bounds__(THREADS) backward_blocks(orders_job job, uint32_t top, uint32_t first_mid)
{
  __shared__ uint64_t values[BATCH * LOW], block[LOW];
  const weft_bn_order_plan &plan = job.plan;
  const weft_bn_wide form = plan.form;
  const uint32_t mid = job.mids[first_mid + blockIdx.x];
  const uint64_t first = weft_bn_order_block(plan.low_bits, plan.mid_bits, top, mid);
  const uint64_t all = ((uint64_t) 1 << plan.p) - 1, low_nodes = ((uint64_t) 1 << plan.low_bits) - 1;
  uint64_t *slots = job.buffer + weft_bn_order_at(plan.slots, mid, 0), *mine = weft_bn_subset_at(job.table, first);
  const int count = 1 << plan.low_bits;
  weft_bn_wide_sum sum[EACH] = {};
  uint64_t f[EACH];
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    const int low = threadIdx.x + k * THREADS;
    f[k] = low < count ? mine[low] : 0;
  }
  for (uint64_t left = all & ~low_nodes & ~first, now; left; left &= ~now) { /* the next node is a high one */
    now = first_members(left, BATCH);
    node_values(plan, slots, now, values);
    uint64_t *a = values;
    for (uint64_t rest = now; rest; rest &= rest - 1, a += LOW) {
      const uint64_t *after = weft_bn_subset_at(job.table, first | (rest & (0 - rest)));
#pragma unroll
      for (int k = 0; k < EACH; k++) {
        const int low = threadIdx.x + k * THREADS;
        if (low >= count) continue;
        const uint64_t b = after[low];
        weft_bn_wide_add_product(form, &sum[k], a[low], b);
        a[low] = weft_bn_wide_product(form, f[k], b); /* no other thread reads this value */
      }
    }
    keep_nodes(plan, slots, now, values);
  }
  for (uint64_t left = first; left; left &= left - 1) {
    const int s = lowest(left);
    for (uint32_t k = plan.slot_start[s] + threadIdx.x; k < plan.slot_start[s + 1]; k += THREADS) slots[k] = 0;
  }
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    const int low = threadIdx.x + k * THREADS;
    if (low < count)
      block[low] = (first | (uint64_t) low) == all ? weft_bn_wide_of(form, 1, 0) : weft_bn_wide_of_sum(form, sum[k]);
  }
  node_values(plan, slots, low_nodes, values);
  for (int size = 1, from = count - 1, sets = plan.low_bits; size <= plan.low_bits;
       sets = next_size(sets, size, plan.low_bits), size++) { /* the next node is a low one */
    from -= sets;
    for (int k = from + threadIdx.x; k < from + sets; k += THREADS) {
      const uint32_t low = job.low_order[k];
      weft_bn_wide_sum own = weft_bn_wide_as_sum(form, block[low]);
      for (uint32_t left = ~low & (uint32_t) low_nodes; left; left &= left - 1) {
        const int s = __ffs((int) left) - 1;
        weft_bn_wide_add_product(form, &own, values[s * LOW + low], block[low | 1u << s]);
      }
      block[low] = weft_bn_wide_of_sum(form, own);
    }
    __syncthreads();
  }
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    const int low = threadIdx.x + k * THREADS;
    if (low >= count) continue;
    for (int s = 0; s < plan.low_bits; s++)
      values[s * LOW + low] = low >> s & 1 ? 0 : weft_bn_wide_product(form, f[k], block[low | 1 << s]);
    mine[low] = block[low];
  }
  keep_nodes(plan, slots, low_nodes, values);
}

/* ---- host ---- */

template <bool SUPERSETS> static void launch_sum_mids(const orders_job &job, cudaStream_t stream)
{
  const int bits = job.plan.mid_bits;
  const unsigned wide = (job.plan.slots + THREADS - 1) / THREADS;
  for (int shift = 0; shift < bits; shift += FUSED_BITS) {
    const int now = bits - shift < FUSED_BITS ? bits - shift : FUSED_BITS;
    const dim3 grid(wide, 1u << (bits - now));
    switch (now) {
    case 1: sum_mids<1, SUPERSETS><<<grid, THREADS, 0, stream>>>(job, shift); break;
    case 2: sum_mids<2, SUPERSETS><<<grid, THREADS, 0, stream>>>(job, shift); break;
    case 3: sum_mids<3, SUPERSETS><<<grid, THREADS, 0, stream>>>(job, shift); break;
    case 4: sum_mids<4, SUPERSETS><<<grid, THREADS, 0, stream>>>(job, shift); break;
    default: sum_mids<FUSED_BITS, SUPERSETS><<<grid, THREADS, 0, stream>>>(job, shift);
    }
  }
}

/* One top part in one direction; mid parts by size. */
static weft_status run_top(weft_ctx *ctx, const orders_job &job, uint32_t top, const size_t *begin, bool backward,
                           cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  const weft_bn_order_plan &plan = job.plan;
  const unsigned over_cells = (plan.cells + THREADS - 1) / THREADS;
  WEFT_CUDA(cudaMemsetAsync(job.buffer, 0, ((size_t) plan.slots << plan.mid_bits) * sizeof *job.buffer, stream));
  load_cells<<<over_cells, THREADS, 0, stream>>>(job, top);
  launch_sum_mids<false>(job, stream);
  for (int k = 0; k <= plan.mid_bits; k++) {
    const int size = backward ? plan.mid_bits - k : k;
    const unsigned blocks = (unsigned) (begin[size + 1] - begin[size]);
    if (backward)
      backward_blocks<<<blocks, THREADS, 0, stream>>>(job, top, (uint32_t) begin[size]);
    else
      forward_blocks<<<blocks, THREADS, 0, stream>>>(job, top, (uint32_t) begin[size]);
  }
  if (backward) {
    launch_sum_mids<true>(job, stream);
    unload_cells<<<over_cells, THREADS, 0, stream>>>(job, top);
  }
  WEFT_CUDA(cudaGetLastError());
  WEFT_CUDA(cudaStreamSynchronize(stream));
done:
  return st;
}

static weft_status send_plan(weft_device_arena *mem, const weft_bn_order_plan *from, weft_bn_order_plan *to)
{
  weft_status st = WEFT_OK;
  *to = *from;
  WEFT_TRY(weft_device_send(mem, from->weight, from->sets, &to->weight));
  WEFT_TRY(weft_device_send(mem, from->sum, from->sets, &to->sum));
  WEFT_TRY(weft_device_send(mem, from->top, from->sets, &to->top));
  WEFT_TRY(weft_device_send(mem, from->cell_start, (size_t) from->cells + 1, &to->cell_start));
  WEFT_TRY(weft_device_send(mem, from->cell_mid, from->cells, &to->cell_mid));
  WEFT_TRY(weft_device_send(mem, from->cell_slot, from->cells, &to->cell_slot));
  WEFT_TRY(weft_device_send(mem, from->slot_start, (size_t) from->p + 1, &to->slot_start));
  WEFT_TRY(weft_device_send(mem, from->slot_low, from->slots, &to->slot_low));
done:
  return st;
}

/* As many as the buffer has room for: fewer top parts, each of which loads it anew. */
static int choose_mid_bits(const weft_bn_table *table, int low_bits, double room)
{
  double slots = 0;
  int bits = (int) table->p - low_bits < MAX_MID_BITS ? (int) table->p - low_bits : MAX_MID_BITS;
  for (size_t i = 0; i < table->p; i++) {
    const double sets = (double) (table->start[i + 1] - table->start[i]);
    slots += sets < 1 << low_bits ? sets : 1 << low_bits;
  }
  room = room < MAX_BUFFER ? room : MAX_BUFFER;
  while (bits > 0 && slots * 8 * (1 << bits) > room) bits--;
  return bits;
}

/* The device's weft_bn_edges_orders_op: 8 * 2^p bytes for the table (subsets.cuh), and the buffer in what the device
 * has left. */
extern "C" weft_status weft_bn_edges_orders_cuda(weft_ctx *ctx, const weft_bn_table *table, int64_t optimum,
                                                 const weft_bn_order_shape *shape, double *edges, double *log_total)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  weft_device_arena mem = weft_device_begin(ctx);
  const int p = (int) table->p, low_bits = shape->low_bits ? shape->low_bits : p < LOW_BITS ? p : LOW_BITS;
  const size_t subsets = (size_t) 1 << p;
  const double sets_bytes = 32.0 * (double) table->start[p];
  size_t begin[WEFT_BN_SUBSET_NODES + 2], top_begin[WEFT_BN_SUBSET_NODES + 2], done_tops = 0, tops_count;
  int mid_bits = shape->mid_bits;
  weft_bn_order_plan plan;
  orders_job job;
  weft_bn_subset_store store;
  uint32_t *parts, *tops, *d_mids;
  uint16_t *lows, *d_lows;
  uint64_t ends[2];
  memset(&job, 0, sizeof job);
  memset(&store, 0, sizeof store);
  if (p > WEFT_BN_SUBSET_NODES || low_bits > LOW_BITS || mid_bits > MAX_MID_BITS || low_bits + mid_bits > p) {
    st = weft_fail(ctx, WEFT_ERR_INTERNAL, "Sums over orders of %d nodes in blocks of 2^%d.", p, low_bits);
    goto done;
  }
  WEFT_TRY(weft_bn_subsets_take(&mem, p, &store));
  job.table = store.subsets;
  if (!shape->low_bits) mid_bits = choose_mid_bits(table, low_bits, 0.9 * (weft_device_available(ctx) - sets_bytes));
  WEFT_TRY(weft_bn_order_plan_make(ctx, &host, table, optimum, low_bits, mid_bits, &plan));
  WEFT_TRY(send_plan(&mem, &plan, &job.plan));
  WEFT_DEVICE_TAKE(job.buffer, &mem, (size_t) plan.slots << mid_bits);
  WEFT_TAKE(parts, &host, (size_t) 1 << (mid_bits > low_bits ? mid_bits : low_bits));
  WEFT_TAKE(lows, &host, (size_t) 1 << low_bits);
  WEFT_TAKE(tops, &host, (size_t) 1 << plan.top_bits);
  weft_bn_parts_by_size(low_bits, parts, begin);
  for (size_t k = 0; k < (size_t) 1 << low_bits; k++) lows[k] = (uint16_t) parts[k];
  WEFT_TRY(weft_device_send(&mem, lows, (size_t) 1 << low_bits, &d_lows));
  weft_bn_parts_by_size(mid_bits, parts, begin);
  WEFT_TRY(weft_device_send(&mem, parts, (size_t) 1 << mid_bits, &d_mids));
  weft_bn_parts_by_size(plan.top_bits, tops, top_begin);
  job.mids = d_mids;
  job.low_order = d_lows;
  tops_count = (size_t) 1 << plan.top_bits;
  for (size_t k = 0; k < tops_count; k++) {
    WEFT_TRY(run_top(ctx, job, tops[k], begin, false, mem.stream));
    WEFT_TRY(weft_poll(ctx, 0.3 * (double) ++done_tops / (double) tops_count, 1));
  }
  WEFT_CUDA(cudaMemcpyAsync(&ends[0], weft_bn_subset_at(job.table, subsets - 1), sizeof *ends, cudaMemcpyDefault,
                            mem.stream));
  WEFT_CUDA(cudaStreamSynchronize(mem.stream));
  for (int size = plan.top_bits; size >= 0; size--)
    for (size_t k = top_begin[size]; k < top_begin[size + 1]; k++) {
      WEFT_TRY(run_top(ctx, job, tops[k], begin, true, mem.stream));
      WEFT_TRY(weft_poll(ctx, 0.3 + 0.7 * (double) (++done_tops - tops_count) / (double) tops_count, 1));
    }
  WEFT_CUDA(cudaMemcpyAsync(&ends[1], job.table.part[0], sizeof *ends, cudaMemcpyDefault, mem.stream));
  WEFT_CUDA(cudaMemcpyAsync(plan.sum, job.plan.sum, plan.sets * sizeof *plan.sum, cudaMemcpyDeviceToHost, mem.stream));
  WEFT_CUDA(cudaStreamSynchronize(mem.stream));
  WEFT_TRY(weft_bn_order_edges(ctx, table, &plan, ends[0], ends[1], edges, log_total));
done:
  weft_bn_subsets_end(&store);
  weft_device_end(&mem);
  weft_arena_end(&host);
  return st;
}
