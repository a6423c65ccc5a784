/* The proven optimum on the device: the recursion of best_graph.c over subsets W = (high, low). A block of threads
 * takes one high part with all its 1,024 low parts, in shared memory: first the last nodes among the high ones, whose
 * smaller subsets are whole in device memory, then those among the low ones, one size of low parts after another. High
 * parts of the same size do not depend on each other. All values are whole numbers: the optimum and the graph are those
 * of the CPU. */
#include <chrono>
#include <cstring>
#include "core/device/device.cuh"
#include "bn/limits.h"
#include "bn/cuda/bn.cuh"
#include "bn/cuda/exact/subsets.cuh"

#define LOW_BITS 10
#define LOW 1024
#define THREADS 256
#define MAX_NODES WEFT_BN_SUBSET_NODES
#define DENSE_PARENTS 20 /* nodes with more possible parents go through their sets */
#define LAUNCH_SECONDS 0.03

/* g of one node: a table over the subsets of the nodes that its sets use, or none. */
struct sink {
  uint64_t used;
  int64_t table;
};

struct exact_job {
  const sink *sinks;
  const int64_t *tables;     /* of all nodes, one after another; sink.table < 0: none */
  const uint32_t *low_index; /* 64 per node: what bits 0 .. 4 and 5 .. 9 of W add to its index */
  const int64_t *start, *score;
  const uint64_t *mask;
  const uint32_t *high;      /* of this launch */
  const uint16_t *low_order; /* low parts by size */
  weft_bn_subsets best;      /* int64_t */
  int p, low_bits;
};

__device__ static int64_t scan_sets(const exact_job &job, int s, uint64_t before)
{
  for (int64_t k = job.start[s]; k < job.start[s + 1]; k++)
    if (!(job.mask[k] & ~before)) return job.score[k];
  return WEFT_BN_NEVER;
}

__host__ __device__ static int64_t *best_at(const weft_bn_subsets &best, uint64_t subset)
{
  return (int64_t *) weft_bn_subset_at(best, subset);
}

/* best(W) for the 1,024 subsets W with one high part, by one block of threads. */
__global__ static void __launch_bounds__(THREADS) optimum_block(exact_job job)
{
  __shared__ int64_t mine[LOW];
  __shared__ uint32_t low_index[MAX_NODES * 64], base[MAX_NODES];
  __shared__ int64_t table[MAX_NODES];
  const uint64_t high = (uint64_t) job.high[blockIdx.x] << job.low_bits;
  const int count = 1 << job.low_bits, thread = threadIdx.x;
  for (int k = thread; k < 64 * job.p; k += THREADS) low_index[k] = job.low_index[k];
  if (thread < job.p) {
    uint32_t index = 0, bit = 1;
    for (uint64_t used = job.sinks[thread].used; used; used &= used - 1, bit <<= 1)
      if (high & used & (0 - used)) index |= bit;
    base[thread] = index;
    table[thread] = job.sinks[thread].table;
  }
  __syncthreads();
  const auto g = [&](int s, uint32_t low) -> int64_t {
    if (table[s] < 0) return scan_sets(job, s, (high | low) & ~((uint64_t) 1 << s));
    return job.tables[table[s] + base[s] + low_index[64 * s + low % 32] + low_index[64 * s + 32 + low / 32]];
  };
  for (int low = thread; low < count; low += THREADS) { /* the last node is among the high ones */
    int64_t most = high | (uint64_t) low ? INT64_MIN / 2 : 0;
    for (uint64_t left = high; left; left &= left - 1) {
      const int s = __ffsll((long long) left) - 1;
      const int64_t value = best_at(job.best, high & ~(left & (0 - left)))[low] + g(s, low);
      most = value > most ? value : most;
    }
    mine[low] = most;
  }
  __syncthreads();
  int from = 1; /* low_order[0] is the empty one */
  for (int size = 1, sets = job.low_bits; size <= job.low_bits;
       sets = sets * (job.low_bits - size) / (size + 1), size++) {
    for (int k = from + thread; k < from + sets; k += THREADS) {
      const uint32_t low = job.low_order[k];
      int64_t most = mine[low];
      for (uint32_t left = low; left; left &= left - 1) {
        const int s = __ffs((int) left) - 1;
        const uint32_t rest = low & ~(1u << s);
        const int64_t value = mine[rest] + g(s, rest);
        most = value > most ? value : most;
      }
      mine[low] = most;
    }
    from += sets;
    __syncthreads();
  }
  for (int low = thread; low < count; low += THREADS) best_at(job.best, high)[low] = mine[low];
}

/* ---- host ---- */

static uint32_t index_of(uint64_t set, uint64_t used)
{
  uint32_t index = 0, bit = 1;
  for (; used; used &= used - 1, bit <<= 1)
    if (set & used & (0 - used)) index |= bit;
  return index;
}

/* Sinks, their tables and the shares of low bits. */
static weft_status make_sinks(weft_ctx *ctx, weft_device_arena *mem, weft_arena *host, const weft_bn_table *table,
                              exact_job *job)
{
  weft_status st = WEFT_OK;
  const size_t p = table->p;
  size_t total = 0;
  sink *sinks, *d_sinks;
  uint32_t *low_index, *d_low;
  int64_t *tables, *d_tables;
  WEFT_TAKE(sinks, host, p);
  WEFT_TAKE0(low_index, host, 64 * p);
  for (size_t s = 0; s < p; s++) {
    sinks[s].used = 0;
    for (int64_t k = table->start[s]; k < table->start[s + 1]; k++) sinks[s].used |= table->mask[k];
    const int parents = __builtin_popcountll(sinks[s].used);
    sinks[s].table = parents > DENSE_PARENTS ? -1 : (int64_t) total;
    if (parents <= DENSE_PARENTS) total += (size_t) 1 << parents;
    for (uint32_t bits = 0; bits < 32; bits++) {
      low_index[64 * s + bits] = index_of(bits, sinks[s].used);
      low_index[64 * s + 32 + bits] = job->low_bits > 5 ? index_of(bits << 5, sinks[s].used) : 0;
    }
  }
  WEFT_TAKE(tables, host, total);
  for (size_t s = 0; s < p; s++) {
    if (sinks[s].table < 0) continue;
    int64_t *one = tables + sinks[s].table;
    const size_t size = (size_t) 1 << __builtin_popcountll(sinks[s].used);
    for (size_t k = 0; k < size; k++) one[k] = WEFT_BN_NEVER;
    for (int64_t k = table->start[s + 1]; k-- > table->start[s];)
      one[index_of(table->mask[k], sinks[s].used)] = table->score[k];
    for (size_t bit = 1; bit < size; bit <<= 1)
      for (size_t k = 0; k < size; k++)
        if ((k & bit) && one[k ^ bit] > one[k]) one[k] = one[k ^ bit];
    WEFT_TRY(weft_poll(ctx, 0, 1));
  }
  WEFT_DEVICE_TAKE(d_sinks, mem, p);
  WEFT_DEVICE_TAKE(d_low, mem, 64 * p);
  WEFT_DEVICE_TAKE(d_tables, mem, total);
  WEFT_CUDA(cudaMemcpyAsync(d_sinks, sinks, p * sizeof *sinks, cudaMemcpyHostToDevice, mem->stream));
  WEFT_CUDA(cudaMemcpyAsync(d_low, low_index, 64 * p * sizeof *low_index, cudaMemcpyHostToDevice, mem->stream));
  WEFT_CUDA(cudaMemcpyAsync(d_tables, tables, total * sizeof *tables, cudaMemcpyHostToDevice, mem->stream));
  WEFT_CUDA(cudaStreamSynchronize(mem->stream));
  weft_arena_drop(host, tables);
  job->sinks = d_sinks;
  job->low_index = d_low;
  job->tables = d_tables;
done:
  return st;
}

/* The parent sets themselves, for nodes without a table. */
static weft_status send_sets(weft_ctx *ctx, weft_device_arena *mem, const weft_bn_table *table, exact_job *job)
{
  weft_status st = WEFT_OK;
  const size_t total = (size_t) table->start[table->p];
  int64_t *start, *score;
  uint64_t *mask;
  WEFT_DEVICE_TAKE(start, mem, table->p + 1);
  WEFT_DEVICE_TAKE(score, mem, total);
  WEFT_DEVICE_TAKE(mask, mem, total);
  WEFT_CUDA(cudaMemcpyAsync(start, table->start, (table->p + 1) * sizeof *start, cudaMemcpyHostToDevice, mem->stream));
  WEFT_CUDA(cudaMemcpyAsync(score, table->score, total * sizeof *score, cudaMemcpyHostToDevice, mem->stream));
  WEFT_CUDA(cudaMemcpyAsync(mask, table->mask, total * sizeof *mask, cudaMemcpyHostToDevice, mem->stream));
  job->start = start;
  job->score = score;
  job->mask = mask;
done:
  return st;
}

static int64_t first_that_fits(const weft_bn_table *table, size_t s, uint64_t before, int32_t *pick)
{
  for (int64_t k = table->start[s]; k < table->start[s + 1]; k++)
    if (!(table->mask[k] & ~before)) {
      *pick = (int32_t) (k - table->start[s]);
      return table->score[k];
    }
  *pick = 0;
  return WEFT_BN_NEVER;
}

/* From the whole set downwards: the lowest node that can stand last, with its first set that fits. */
static weft_status trace_back(weft_ctx *ctx, weft_device_arena *mem, const weft_bn_table *table,
                              const weft_bn_subsets &best, int32_t *best_sets, int64_t *score)
{
  weft_status st = WEFT_OK;
  uint64_t left = ((uint64_t) 1 << table->p) - 1;
  int64_t value, before[MAX_NODES];
  WEFT_CUDA(cudaMemcpyAsync(&value, best_at(best, left), sizeof value, cudaMemcpyDefault, mem->stream));
  WEFT_CUDA(cudaStreamSynchronize(mem->stream));
  *score = value;
  if (value < WEFT_BN_NEVER / 2) {
    st = weft_fail(ctx, WEFT_ERR_INPUT, "No graph has all required parents within the limits.");
    goto done;
  }
  while (left) {
    for (size_t s = 0; s < table->p; s++)
      if (left >> s & 1)
        WEFT_CUDA(cudaMemcpyAsync(&before[s], best_at(best, left ^ (uint64_t) 1 << s), sizeof value, cudaMemcpyDefault,
                                  mem->stream));
    WEFT_CUDA(cudaStreamSynchronize(mem->stream));
    for (size_t s = 0; s < table->p; s++) {
      const uint64_t rest = left & ~((uint64_t) 1 << s);
      int32_t pick;
      if (rest == left || before[s] + first_that_fits(table, s, rest, &pick) != value) continue;
      best_sets[s] = pick;
      value = before[s];
      left = rest;
      break;
    }
  }
done:
  return st;
}

/* High parts and low parts sorted by their size; begin[k]: the first of size k. */
static void by_size(uint32_t *out, size_t count, size_t *begin)
{
  size_t at[MAX_NODES + 2];
  memset(begin, 0, (MAX_NODES + 2) * sizeof *begin);
  for (size_t k = 0; k < count; k++) begin[__builtin_popcountll(k) + 1]++;
  for (size_t k = 0; k <= MAX_NODES; k++) begin[k + 1] += begin[k];
  memcpy(at, begin, sizeof at);
  for (size_t k = 0; k < count; k++) out[at[__builtin_popcountll(k)]++] = (uint32_t) k;
}

/* Takes 8 * 2^p bytes for best(W) (subsets.cuh); more than MAX_NODES nodes go to the CPU, which refuses them. */
extern "C" weft_status weft_bn_optimum_cuda(weft_ctx *ctx, const weft_bn_table *table, int32_t *best_sets,
                                            int64_t *score)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  weft_device_arena mem = weft_device_begin(ctx);
  const size_t p = table->p;
  size_t begin[MAX_NODES + 2], blocks, done_blocks = 0;
  uint32_t *high, *d_high;
  uint16_t *low, *d_low;
  exact_job job;
  weft_bn_subset_store store;
  memset(&job, 0, sizeof job);
  memset(&store, 0, sizeof store);
  if (p > MAX_NODES || !p) {
    st = weft_bn_optimum_cpu(ctx, table, best_sets, score);
    goto done;
  }
  job.p = (int) p;
  job.low_bits = p < LOW_BITS ? (int) p : LOW_BITS;
  blocks = (size_t) 1 << (p - job.low_bits);
  WEFT_TRY(weft_bn_subsets_take(&mem, (int) p, &store));
  job.best = store.subsets;
  WEFT_TRY(make_sinks(ctx, &mem, &host, table, &job));
  WEFT_TRY(send_sets(ctx, &mem, table, &job));
  WEFT_TAKE(high, &host, blocks > LOW ? blocks : LOW);
  WEFT_TAKE(low, &host, LOW);
  by_size(high, (size_t) 1 << job.low_bits, begin);
  for (size_t k = 0; k < (size_t) 1 << job.low_bits; k++) low[k] = (uint16_t) high[k];
  WEFT_DEVICE_TAKE(d_low, &mem, LOW);
  WEFT_CUDA(
      cudaMemcpyAsync(d_low, low, ((size_t) 1 << job.low_bits) * sizeof *low, cudaMemcpyHostToDevice, mem.stream));
  WEFT_CUDA(cudaStreamSynchronize(mem.stream));
  by_size(high, blocks, begin);
  WEFT_DEVICE_TAKE(d_high, &mem, blocks);
  WEFT_CUDA(cudaMemcpyAsync(d_high, high, blocks * sizeof *high, cudaMemcpyHostToDevice, mem.stream));
  job.low_order = d_low;
  {
    size_t portion = 4096;
    for (size_t size = 0; size <= p - job.low_bits; size++)
      for (size_t first = begin[size]; first < begin[size + 1];) {
        const size_t now = portion < begin[size + 1] - first ? portion : begin[size + 1] - first;
        const auto started = std::chrono::steady_clock::now();
        job.high = d_high + first;
        optimum_block<<<(unsigned) now, THREADS, 0, mem.stream>>>(job);
        WEFT_CUDA(cudaGetLastError());
        WEFT_CUDA(cudaStreamSynchronize(mem.stream));
        const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
        if (took < LAUNCH_SECONDS / 2 && now == portion)
          portion *= 4;
        else if (took > 2 * LAUNCH_SECONDS && portion > 64)
          portion /= 2;
        first += now;
        done_blocks += now;
        WEFT_TRY(weft_poll(ctx, (double) done_blocks, (double) blocks));
      }
  }
  WEFT_TRY(trace_back(ctx, &mem, table, job.best, best_sets, score));
done:
  weft_bn_subsets_end(&store);
  weft_device_end(&mem);
  weft_arena_end(&host);
  return st;
}
