/* Exact edge posteriors under a uniform prior over graphs on the device: the sums of bn_graphs.c over all pairs of a
 * subset and a set of nodes outside it, 3^p, three times: B, F and D. A block of threads takes one subset C for B and
 * D, or one subset S for F. The nodes it adds over are in three groups, of which
 *   the first is the thread's number: 2^8 threads,
 *   the second and the third are loops, with the products over their subsets in shared memory:
 *     middle[2^8], top[2^9]
 * Terms of both signs cancel: products and sums have twice a double's precision (bn_pair.h), and each subset's number
 * an exponent of its own. No term exceeds the sum over positive graphs that it is a part of, and single nodes give a
 * sum's exponent but for a factor of p: they are looked at first. a_v(C) and D_v(C), where nothing cancels, are words
 * of bn_wide.h. */
#include <cstring>
#include "../base/device.cuh"
#include "bn_cuda.cuh"
#include "bn_internal.h"
#include "bn_orders.h"
#include "bn_pair.h"

#define GROUP_BITS 8
#define THREADS (1 << GROUP_BITS)
#define TOP_BITS 9
#define MOST_NODES (2 * GROUP_BITS + TOP_BITS)
#define LANES (THREADS / GROUP_BITS) /* that sum up for one node of the first group */
#define TERMS_EACH 4e9               /* of a launch */
#define FRACTION_BITS 48             /* of words: fields of 16 bits hold twice the range of a long double */
#define NOWHERE (-(1 << 28))         /* an exponent below all */

struct graph_job {
  int p;
  weft_bn_wide form;
  uint64_t *a;                  /* v << p | C: a_v(C), then D_v(C), then its sums over supersets */
  double2 *forward, *backward;  /* F, B: hi and lo */
  int32_t *forward_exponent, *backward_exponent;
  const uint32_t *sets;         /* by size */
};

__device__ static weft_bn_pair pair_at(const double2 *value, const int32_t *exponent, uint32_t at)
{
  const double2 x = value[at];
  const weft_bn_pair pair = { x.x, x.y, exponent[at] };
  return pair;
}

__device__ static void put_pair(double2 *value, int32_t *exponent, uint32_t at, weft_bn_pair x)
{
  const weft_bn_pair normal = weft_bn_pair_normal(x);
  value[at] = make_double2(normal.hi, normal.lo);
  exponent[at] = normal.exponent;
}

/* The members of `from` whose numbers among its members are the bits of `pick`. */
__device__ static uint32_t members(uint32_t from, uint32_t pick)
{
  uint32_t out = 0;
  for (; pick; pick >>= 1, from &= from - 1) if (pick & 1) out |= from & (0 - from);
  return out;
}

/* The weights of one node's sets. */
__global__ static void put_weights(uint64_t *a, const uint32_t *mask, const uint64_t *weight, uint32_t sets)
{
  const uint32_t k = blockIdx.x * THREADS + threadIdx.x;
  if (k < sets) a[mask[k]] = weight[k];
}

/* The probability of each of one node's sets. */
__global__ static void take_shares(weft_bn_wide form, const uint64_t *through, const uint32_t *mask,
                                   const uint64_t *weight, double *share, uint32_t sets)
{
  const uint32_t k = blockIdx.x * THREADS + threadIdx.x;
  if (k >= sets) return;
  const uint64_t x = weight[k], y = through[mask[k]];
  const int32_t exponent = weft_bn_wide_field(form, x) + weft_bn_wide_field(form, y) - 2 * form.bias;
  share[k] = x && y ? weft_bn_wide_fraction(form, x) * weft_bn_wide_fraction(form, y) * weft_bn_power(exponent) : 0;
}

/* Sums over subsets or supersets: the bit `bit` of all p × 2^p words, in pairs. */
template <bool SUPERSETS>
__global__ static void add_bit(weft_bn_wide form, uint64_t *a, size_t pairs, int bit)
{
  const size_t k = (size_t) blockIdx.x * THREADS + threadIdx.x;
  if (k >= pairs) return;
  const size_t without = (k >> bit << (bit + 1)) | (k & (((size_t) 1 << bit) - 1));
  const size_t with = without | (size_t) 1 << bit;
  if (SUPERSETS) a[without] = weft_bn_wide_add(form, a[without], a[with]);
  else a[with] = weft_bn_wide_add(form, a[with], a[without]);
}

/* ---- B and D: what all nodes outside C can add ---- */

/* The nodes outside C, a node of the first group first. */
struct outside_nodes {
  uint32_t bit[MOST_NODES];
  uint64_t word[MOST_NODES];     /* a_v(C) */
  int32_t alone[MOST_NODES];     /* the exponent of a_v(C) B(C + v) */
};

/* Of all subsets of a group of nodes. */
struct products {
  double hi[1 << TOP_BITS], lo[1 << TOP_BITS];
  int32_t exponent[1 << TOP_BITS];
  uint32_t set[1 << TOP_BITS];
};

/* Π of -a_v(C) over the picked ones of `count` nodes from number `first` on, cyclically among all `nodes`. */
__device__ static weft_bn_pair product_of(weft_bn_wide form, const outside_nodes &outside, int nodes, int first,
                                          uint32_t pick, uint32_t *set)
{
  weft_bn_pair product = { 1, 0, 0 };
  *set = 0;
  for (int j = first; pick; pick >>= 1, j++) {
    const int at = j < nodes ? j : j - nodes;
    if (!(pick & 1)) continue;
    product = weft_bn_pair_times_word(form, product, outside.word[at], 1);
    *set |= outside.bit[at];
  }
  return product;
}

__device__ static void fill_products(weft_bn_wide form, const outside_nodes &outside, int nodes, int first, int bits,
                                     products *out)
{
  for (uint32_t k = threadIdx.x; k < 1u << bits; k += THREADS) {
    const weft_bn_pair product = product_of(form, outside, nodes, first, k, &out->set[k]);
    out->hi[k] = product.hi;
    out->lo[k] = product.lo;
    out->exponent[k] = product.exponent;
  }
}

__device__ static weft_bn_pair product_at(const products &from, uint32_t k)
{
  const weft_bn_pair product = { from.hi[k], from.lo[k], from.exponent[k] };
  return product;
}

/* Σ over R with the thread's part of the first group of Π_{v in R} -a_v(C) B(C + R), with exponent `scale`. All
 * threads come here, and the tables are theirs when they leave. */
__device__ static weft_bn_pair thread_sum(const graph_job &job, uint32_t c, const outside_nodes &outside, int nodes,
                                          int first, int32_t scale, products *middle, products *top)
{
  const int own_bits = nodes < GROUP_BITS ? nodes : GROUP_BITS;
  const int middle_bits = nodes - own_bits < GROUP_BITS ? nodes - own_bits : GROUP_BITS;
  const int top_bits = nodes - own_bits - middle_bits;
  weft_bn_pair sum = { 0, 0, scale };
  uint32_t own_set;
  __syncthreads();
  fill_products(job.form, outside, nodes, first + own_bits, middle_bits, middle);
  fill_products(job.form, outside, nodes, first + own_bits + middle_bits, top_bits, top);
  __syncthreads();
  if (threadIdx.x >> own_bits) return sum;
  const weft_bn_pair own = product_of(job.form, outside, nodes, first, threadIdx.x, &own_set);
  for (uint32_t t = 0; t < 1u << top_bits; t++) {
    const weft_bn_pair head = weft_bn_pair_times(own, product_at(*top, t));
    const uint32_t base = c | own_set | top->set[t];
    weft_bn_pair part = { 0, 0, scale - head.exponent };
    if (head.hi == 0) continue;
    for (uint32_t m = 0; m < 1u << middle_bits; m++)
      part = weft_bn_pair_add(part, weft_bn_pair_times(product_at(*middle, m),
                                                       pair_at(job.backward, job.backward_exponent,
                                                               base | middle->set[m])));
    sum = weft_bn_pair_add(sum, weft_bn_pair_times(head, part));
  }
  return sum;
}

/* Nodes outside C into shared memory; returns the exponent that the sums get. */
__device__ static int32_t open_outside(const graph_job &job, uint32_t c, int nodes, outside_nodes *outside)
{
  int32_t scale = NOWHERE;
  if ((int) threadIdx.x < nodes) {
    const uint32_t bit = members(((1u << job.p) - 1) & ~c, 1u << threadIdx.x);
    const uint64_t word = job.a[((size_t) (__ffs((int) bit) - 1) << job.p) | c];
    const weft_bn_pair rest = pair_at(job.backward, job.backward_exponent, c | bit);
    outside->bit[threadIdx.x] = bit;
    outside->word[threadIdx.x] = word;
    outside->alone[threadIdx.x] =
      word && rest.hi > 0 ? weft_bn_wide_field(job.form, word) - job.form.bias + rest.exponent : NOWHERE;
  }
  __syncthreads();
  for (int j = 0; j < nodes; j++) scale = outside->alone[j] > scale ? outside->alone[j] : scale;
  return scale;
}

/* The threads' numbers are summed up in a halving tree: the first `width` threads of each `width` have one sum. */
__device__ static weft_bn_pair sum_threads(weft_bn_pair own, unsigned width, double *hi, double *lo)
{
  const unsigned t = threadIdx.x, within = t % width;
  for (unsigned half = width / 2; half; half /= 2) {
    hi[t] = own.hi;
    lo[t] = own.lo;
    __syncthreads();
    if (within < half) {
      const weft_bn_pair other = { hi[t + half], lo[t + half], own.exponent };
      own = weft_bn_pair_add(own, other);
    }
    __syncthreads();
  }
  return own;
}

__global__ static void __launch_bounds__(THREADS) backward_sums(graph_job job, uint32_t first, int nodes)
{
  __shared__ outside_nodes outside;
  __shared__ products middle, top;
  __shared__ double hi[THREADS], lo[THREADS];
  const uint32_t c = job.sets[first + blockIdx.x];
  const int32_t scale = open_outside(job, c, nodes, &outside);
  /* B(C) itself is still zero: that R is not empty needs no care */
  const weft_bn_pair own = thread_sum(job, c, outside, nodes, 0, scale, &middle, &top);
  weft_bn_pair sum = sum_threads(own, THREADS, hi, lo);
  if (threadIdx.x) return;
  sum.hi = -sum.hi;
  sum.lo = -sum.lo;
  put_pair(job.backward, job.backward_exponent, c, sum);
}

/* D_v(C) relative to B(none) in the place of a_v(C). Each group of nodes is the first one once: the threads' sums where
 * v is in R are those that belong to v. */
__global__ static void __launch_bounds__(THREADS) derivatives(graph_job job, uint32_t first, int nodes)
{
  __shared__ outside_nodes outside;
  __shared__ products middle, top;
  __shared__ double hi[THREADS], lo[THREADS], part_hi[THREADS], part_lo[THREADS];
  const uint32_t c = job.sets[first + blockIdx.x];
  const int32_t scale = open_outside(job, c, nodes, &outside);
  const weft_bn_pair f = pair_at(job.forward, job.forward_exponent, c);
  const weft_bn_pair whole = pair_at(job.backward, job.backward_exponent, 0);
  const int j = threadIdx.x / LANES;
  for (int from = 0; from < nodes; from += GROUP_BITS) {
    const weft_bn_pair own = thread_sum(job, c, outside, nodes, from, scale, &middle, &top);
    weft_bn_pair part = { 0, 0, scale };
    hi[threadIdx.x] = own.hi;
    lo[threadIdx.x] = own.lo;
    __syncthreads();
    for (int k = threadIdx.x % LANES; k < THREADS / 2; k += LANES) { /* threads whose number has bit j */
      const int t = (k >> j << (j + 1)) | 1 << j | (k & ((1 << j) - 1));
      const weft_bn_pair one = { hi[t], lo[t], scale };
      part = weft_bn_pair_add(part, one);
    }
    part = sum_threads(part, LANES, part_hi, part_lo);
    const int at = from + j;
    if (threadIdx.x % LANES || at >= nodes) continue; /* the last group may end early: its nodes had their turn */
    const uint64_t word = outside.word[at];
    const int32_t exponent = scale + f.exponent - whole.exponent - weft_bn_wide_field(job.form, word) + job.form.bias;
    const double value = word ? -part.hi * f.hi / (whole.hi * weft_bn_wide_fraction(job.form, word)) : 0;
    job.a[((size_t) (__ffs((int) outside.bit[at]) - 1) << job.p) | c] = weft_bn_wide_of(job.form, value, exponent);
  }
  for (uint32_t v = threadIdx.x; v < (uint32_t) job.p; v += THREADS)
    if (c >> v & 1) job.a[((size_t) v << job.p) | c] = 0;
}

/* ---- F: graphs within S ---- */

/* R's members have all their parents in S - R. A thread has the members of R among the first ones of S. */
__global__ static void __launch_bounds__(THREADS) forward_sums(graph_job job, uint32_t first, int nodes)
{
  __shared__ double hi[THREADS], lo[THREADS];
  __shared__ int32_t alone[MOST_NODES];
  const uint32_t s = job.sets[first + blockIdx.x];
  const int own_bits = nodes < GROUP_BITS ? nodes : GROUP_BITS;
  const uint32_t own_nodes = members(s, (1u << own_bits) - 1), rest = s & ~own_nodes;
  weft_bn_pair sum = { 0, 0, NOWHERE };
  if ((int) threadIdx.x < nodes) {
    const uint32_t bit = members(s, 1u << threadIdx.x), c = s ^ bit;
    const uint64_t word = job.a[((size_t) (__ffs((int) bit) - 1) << job.p) | c];
    const weft_bn_pair before = pair_at(job.forward, job.forward_exponent, c);
    alone[threadIdx.x] =
      word && before.hi > 0 ? weft_bn_wide_field(job.form, word) - job.form.bias + before.exponent : NOWHERE;
  }
  __syncthreads();
  for (int k = 0; k < nodes; k++) sum.exponent = alone[k] > sum.exponent ? alone[k] : sum.exponent;
  if (!(threadIdx.x >> own_bits)) {
    const uint32_t own = members(own_nodes, threadIdx.x);
    uint32_t more = 0;
    do {
      const uint32_t r = own | more, c = s ^ r;
      weft_bn_pair term = pair_at(job.forward, job.forward_exponent, c); /* F(S) itself is still zero */
      for (uint32_t left = r; left && term.hi != 0; left &= left - 1)
        term = weft_bn_pair_times_word(job.form, term, job.a[((size_t) (__ffs((int) left) - 1) << job.p) | c], 1);
      sum = weft_bn_pair_add(sum, term);
      more = (more - rest) & rest;
    } while (more);
  }
  sum = sum_threads(sum, THREADS, hi, lo);
  if (threadIdx.x) return;
  sum.hi = -sum.hi;
  sum.lo = -sum.lo;
  put_pair(job.forward, job.forward_exponent, s, sum);
}

/* ---- host ---- */

typedef void graph_kernel(graph_job job, uint32_t first, int nodes);

/* The kernel over all subsets of `size`, in launches that end soon. */
static weft_status over_sets(weft_ctx *ctx, const graph_job &job, graph_kernel *kernel, const size_t *begin, int size,
                             int nodes, double terms_each, double from, double to, cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  const size_t last = begin[size + 1];
  size_t now = (size_t) (TERMS_EACH / terms_each);
  if (!now) now = 1;
  for (size_t at = begin[size]; at < last; at += now) {
    const size_t count = last - at < now ? last - at : now;
    kernel<<<(unsigned) count, THREADS, 0, stream>>>(job, (uint32_t) at, nodes);
    WEFT_CUDA(cudaGetLastError());
    WEFT_CUDA(cudaStreamSynchronize(stream));
    WEFT_TRY(weft_poll(ctx, from + (to - from) * (double) (at + count - begin[size]) / (double) (last - begin[size]),
                       1));
  }
done:
  return st;
}

template <bool SUPERSETS>
static weft_status add_bits(weft_ctx *ctx, const graph_job &job, cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  const size_t pairs = (size_t) job.p << (job.p - 1);
  for (int bit = 0; bit < job.p; bit++)
    add_bit<SUPERSETS><<<(unsigned) ((pairs + THREADS - 1) / THREADS), THREADS, 0, stream>>>(job.form, job.a, pairs,
                                                                                            bit);
  WEFT_CUDA(cudaGetLastError());
  WEFT_CUDA(cudaStreamSynchronize(stream));
  WEFT_TRY(weft_poll(ctx, 0, 1));
done:
  return st;
}

/* The number 1 for one subset. */
static weft_status put_one(weft_ctx *ctx, double2 *value, size_t at, cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  const double2 one = { 1, 0 };
  WEFT_CUDA(cudaMemcpyAsync(value + at, &one, sizeof one, cudaMemcpyHostToDevice, stream));
  WEFT_CUDA(cudaStreamSynchronize(stream));
done:
  return st;
}

/* 3^p terms each of B and F, and as many for each group of nodes of D. Subset sizes in turn. */
static weft_status all_sums(weft_ctx *ctx, const graph_job &job, const size_t *begin, cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  const int p = job.p;
  WEFT_TRY(put_one(ctx, job.backward, ((size_t) 1 << p) - 1, stream));
  WEFT_TRY(put_one(ctx, job.forward, 0, stream));
  for (int size = p - 1; size >= 0; size--)
    WEFT_TRY(over_sets(ctx, job, backward_sums, begin, size, p - size, ldexp(1, p - size), 0, 0.2, stream));
  for (int size = 1; size <= p; size++)
    WEFT_TRY(over_sets(ctx, job, forward_sums, begin, size, size, (1 + size / 4) * ldexp(1, size), 0.2, 0.5, stream));
  for (int size = 0; size <= p; size++)
    WEFT_TRY(over_sets(ctx, job, derivatives, begin, size, p - size,
                       ((p - size + GROUP_BITS - 1) / GROUP_BITS + 1) * ldexp(1, p - size), 0.5, 1, stream));
done:
  return st;
}

template <typename T>
static weft_status send(weft_ctx *ctx, weft_device_arena *mem, const T *from, size_t count, T **out)
{
  weft_status st = WEFT_OK;
  T *to;
  WEFT_DEVICE_TAKE(to, mem, count);
  *out = to;
  WEFT_CUDA(cudaMemcpyAsync(to, from, count * sizeof *from, cudaMemcpyHostToDevice, mem->stream));
  WEFT_CUDA(cudaStreamSynchronize(mem->stream));
done:
  return st;
}

/* The words of all a_v(C). */
static weft_status subset_words(weft_ctx *ctx, const graph_job &job, const weft_bn_table *table, const uint32_t *mask,
                                const uint64_t *weight, cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  WEFT_CUDA(cudaMemsetAsync(job.a, 0, ((size_t) job.p << job.p) * sizeof *job.a, stream));
  for (int v = 0; v < job.p; v++) {
    const int64_t first = table->start[v], sets = table->start[v + 1] - first;
    put_weights<<<(unsigned) ((sets + THREADS - 1) / THREADS), THREADS, 0, stream>>>(
      job.a + ((size_t) v << job.p), mask + first, weight + first, (uint32_t) sets);
  }
  WEFT_TRY(add_bits<false>(ctx, job, stream));
done:
  return st;
}

static weft_status shares(weft_ctx *ctx, const graph_job &job, const weft_bn_table *table, const uint32_t *mask,
                          const uint64_t *weight, double *share, cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  WEFT_TRY(add_bits<true>(ctx, job, stream));
  for (int v = 0; v < job.p; v++) {
    const int64_t first = table->start[v], sets = table->start[v + 1] - first;
    take_shares<<<(unsigned) ((sets + THREADS - 1) / THREADS), THREADS, 0, stream>>>(
      job.form, job.a + ((size_t) v << job.p), mask + first, weight + first, share + first, (uint32_t) sets);
  }
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

/* Tables of all subsets, zero, and the subsets by size. */
static weft_status take_tables(weft_ctx *ctx, weft_device_arena *mem, weft_arena *host, graph_job *job, size_t *begin)
{
  weft_status st = WEFT_OK;
  const size_t all = (size_t) 1 << job->p;
  uint32_t *sets, *d_sets;
  WEFT_DEVICE_TAKE(job->a, mem, (size_t) job->p << job->p);
  WEFT_DEVICE_TAKE(job->forward, mem, all);
  WEFT_DEVICE_TAKE(job->backward, mem, all);
  WEFT_DEVICE_TAKE(job->forward_exponent, mem, all);
  WEFT_DEVICE_TAKE(job->backward_exponent, mem, all);
  WEFT_CUDA(cudaMemsetAsync(job->forward, 0, all * sizeof *job->forward, mem->stream));
  WEFT_CUDA(cudaMemsetAsync(job->backward, 0, all * sizeof *job->backward, mem->stream));
  WEFT_CUDA(cudaMemsetAsync(job->forward_exponent, 0, all * sizeof *job->forward_exponent, mem->stream));
  WEFT_CUDA(cudaMemsetAsync(job->backward_exponent, 0, all * sizeof *job->backward_exponent, mem->stream));
  WEFT_TAKE(sets, host, all);
  weft_bn_parts_by_size(job->p, sets, begin);
  WEFT_TRY(send(ctx, mem, sets, all, &d_sets));
  job->sets = d_sets;
  weft_arena_drop(host, sets);
done:
  return st;
}

extern "C" weft_status weft_bn_edges_graphs_cuda(weft_ctx *ctx, const weft_bn_table *table, int64_t optimum,
                                                 double *edges, double *log_total, double *error)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  weft_device_arena mem = weft_device_begin(ctx);
  const size_t p = table->p, total = (size_t) table->start[p];
  size_t begin[MOST_NODES + 2];
  graph_job job = { (int) p, { FRACTION_BITS, 1 << (63 - FRACTION_BITS) } };
  uint32_t *mask, *d_mask;
  uint64_t *weight, *d_weight;
  double *share, *d_share, offset;
  double2 whole;
  int32_t exponent;
  if (p > MOST_NODES) {
    st = weft_fail(ctx, WEFT_ERR_INTERNAL, "Sums over graphs of %zu nodes on a device.", p);
    goto done;
  }
  WEFT_TRY(weft_bn_graphs_offset(ctx, table, optimum, &offset));
  WEFT_TRY(take_tables(ctx, &mem, &host, &job, begin));
  WEFT_TAKE(mask, &host, total);
  WEFT_TAKE(weight, &host, total);
  WEFT_TAKE(share, &host, total);
  for (size_t v = 0; v < p; v++)
    for (int64_t k = table->start[v]; k < table->start[v + 1]; k++) {
      mask[k] = (uint32_t) table->mask[k];
      weight[k] = weft_bn_weight_word(job.form, table->score[table->start[v]] - table->score[k], table->bits);
    }
  WEFT_TRY(send(ctx, &mem, mask, total, &d_mask));
  WEFT_TRY(send(ctx, &mem, weight, total, &d_weight));
  WEFT_DEVICE_TAKE(d_share, &mem, total);
  WEFT_TRY(subset_words(ctx, job, table, d_mask, d_weight, mem.stream));
  WEFT_TRY(all_sums(ctx, job, begin, mem.stream));
  WEFT_CUDA(cudaMemcpyAsync(&whole, job.backward, sizeof whole, cudaMemcpyDeviceToHost, mem.stream));
  WEFT_CUDA(cudaMemcpyAsync(&exponent, job.backward_exponent, sizeof exponent, cudaMemcpyDeviceToHost, mem.stream));
  WEFT_TRY(shares(ctx, job, table, d_mask, d_weight, d_share, mem.stream));
  WEFT_CUDA(cudaMemcpyAsync(share, d_share, total * sizeof *share, cudaMemcpyDeviceToHost, mem.stream));
  WEFT_CUDA(cudaStreamSynchronize(mem.stream));
  if (!(whole.x > 0)) exponent = 0; /* no graph: the next call says so */
  *log_total = offset + log(whole.x) + exponent * 0.693147180559945309417;
  WEFT_TRY(weft_bn_graphs_edges(ctx, table, whole.x > 0, share, edges, error));
done:
  weft_device_end(&mem);
  weft_arena_end(&host);
  return st;
}
