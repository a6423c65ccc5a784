/* Exact edge posteriors over orders on the CPU; see orders.h. A task is a top part: top parts with equally many
 * members do not depend on each other. As many tasks as there are threads run at once, each with a buffer of its own;
 * then their results are added to the sets' sums in the order of the top parts, whatever the number of threads. */
/* Build: shared. */
#include <string.h>
#include "bn/both/joint.h"
#include "bn/both/orders.h"
#include "bn/both/orders_ends.h"

#define LOW_BITS 8
#define LOW 256
#define MAX_MID_BITS 8
#define CELLS_EACH 65536 /* that a thread adds at a time */

typedef struct bench {
  uint64_t *buffer;               /* 2^mid_bits × slots */
  uint64_t within[LOW_BITS][LOW]; /* a_s of the low nodes */
  uint64_t block[LOW], one[LOW];
  weft_bn_wide_sum sum[LOW];
} bench;

typedef struct orders_job {
  const weft_bn_order_plan *plan;
  uint64_t *table;      /* 2^p: f, then b */
  bench *benches;       /* one per thread */
  const uint32_t *tops; /* of this wave */
  size_t wave;
} orders_job;

/* x[k] += x[k without bit], for all bits; or x[k] += x[k with bit]. */
static void sums_over_subsets(weft_bn_wide form, uint64_t *x, size_t n)
{
  for (size_t bit = 1; bit < n; bit <<= 1)
    for (size_t k = 0; k < n; k += 2 * bit)
      for (size_t j = k; j < k + bit; j++) x[j + bit] = weft_bn_wide_add(form, x[j + bit], x[j]);
}

static void sums_over_supersets(weft_bn_wide form, uint64_t *x, size_t n)
{
  for (size_t bit = 1; bit < n; bit <<= 1)
    for (size_t k = 0; k < n; k += 2 * bit)
      for (size_t j = k; j < k + bit; j++) x[j] = weft_bn_wide_add(form, x[j], x[j + bit]);
}

/* Sums over subsets (or supersets) of the mid parts, all slots at a time. */
static void sums_over_mids(const weft_bn_order_plan *plan, uint64_t *buffer, int supersets)
{
  const uint32_t slots = plan->slots;
  for (uint32_t bit = 1; bit < UINT32_C(1) << plan->mid_bits; bit <<= 1)
    for (uint32_t mid = 0; mid < UINT32_C(1) << plan->mid_bits; mid++) {
      if (!(mid & bit)) continue;
      uint64_t *with = buffer + weft_bn_order_at(slots, mid, 0);
      uint64_t *without = buffer + weft_bn_order_at(slots, mid ^ bit, 0);
      uint64_t *to = supersets ? without : with, *from = supersets ? with : without;
      for (uint32_t k = 0; k < slots; k++) to[k] = weft_bn_wide_add(plan->form, to[k], from[k]);
    }
}

/* a_s of a block from the slots of s. */
static void node_values(const weft_bn_order_plan *plan, const uint64_t *slots, size_t s, uint64_t *out)
{
  const size_t count = (size_t) 1 << plan->low_bits;
  memset(out, 0, count * sizeof *out);
  for (uint32_t k = plan->slot_start[s]; k < plan->slot_start[s + 1]; k++) out[plan->slot_low[k]] = slots[k];
  sums_over_subsets(plan->form, out, count);
}

/* f(W) b(W + s) of a block, in `x`, into the slots of s. */
static void keep_node(const weft_bn_order_plan *plan, uint64_t *slots, size_t s, uint64_t *x)
{
  sums_over_supersets(plan->form, x, (size_t) 1 << plan->low_bits);
  for (uint32_t k = plan->slot_start[s]; k < plan->slot_start[s + 1]; k++) slots[k] = x[plan->slot_low[k]];
}

/* f(W) for the subsets W of one block into the table, from f of smaller subsets and the block's a_s. */
static void forward_block(const orders_job *job, bench *own, uint64_t first, const uint64_t *slots)
{
  const weft_bn_order_plan *plan = job->plan;
  const size_t low_nodes = (size_t) plan->low_bits, count = (size_t) 1 << low_nodes;
  uint64_t *mine = job->table + first;
  memset(own->sum, 0, sizeof own->sum);
  for (uint64_t left = first; left; left &= left - 1) { /* the last node is a high one */
    const size_t s = (size_t) __builtin_ctzll(left);
    const uint64_t *before = job->table + (first ^ UINT64_C(1) << s);
    node_values(plan, slots, s, own->one);
    for (size_t low = 0; low < count; low++)
      weft_bn_wide_add_product(plan->form, &own->sum[low], own->one[low], before[low]);
  }
  for (size_t s = 0; s < low_nodes; s++) node_values(plan, slots, s, own->within[s]);
  for (size_t low = 0; low < count; low++) mine[low] = weft_bn_wide_of_sum(plan->form, own->sum[low]);
  if (!first) mine[0] = weft_bn_wide_of(plan->form, 1, 0);
  for (size_t low = 1; low < count; low++) { /* the last node is a low one */
    weft_bn_wide_sum sum = weft_bn_wide_as_sum(plan->form, mine[low]);
    for (size_t left = low; left; left &= left - 1) {
      const size_t s = (size_t) __builtin_ctzll(left), rest = low & ~((size_t) 1 << s);
      weft_bn_wide_add_product(plan->form, &sum, own->within[s][rest], mine[rest]);
    }
    mine[low] = weft_bn_wide_of_sum(plan->form, sum);
  }
}

/* b(W) of one block, which takes the place of f(W) in the table, and f(W) b(W + s) of every node s into its slots. */
static void backward_block(const orders_job *job, bench *own, uint64_t first, uint64_t *slots)
{
  const weft_bn_order_plan *plan = job->plan;
  const weft_bn_wide form = plan->form;
  const size_t low_nodes = (size_t) plan->low_bits, count = (size_t) 1 << low_nodes;
  const uint64_t all = ((uint64_t) 1 << plan->p) - 1;
  uint64_t *mine = job->table + first, *b = own->block;
  memset(own->sum, 0, sizeof own->sum);
  for (size_t s = low_nodes; s < (size_t) plan->p; s++) {
    const uint64_t *after = job->table + (first | UINT64_C(1) << s);
    if (first >> s & 1) {
      memset(slots + plan->slot_start[s], 0, (plan->slot_start[s + 1] - plan->slot_start[s]) * sizeof *slots);
      continue;
    }
    node_values(plan, slots, s, own->one);
    for (size_t low = 0; low < count; low++) weft_bn_wide_add_product(form, &own->sum[low], own->one[low], after[low]);
    for (size_t low = 0; low < count; low++) own->one[low] = weft_bn_wide_product(form, mine[low], after[low]);
    keep_node(plan, slots, s, own->one);
  }
  for (size_t s = 0; s < low_nodes; s++) node_values(plan, slots, s, own->within[s]);
  for (size_t low = count; low-- > 0;) {
    weft_bn_wide_sum sum = weft_bn_wide_as_sum(form, weft_bn_wide_of_sum(form, own->sum[low]));
    for (size_t left = ~low & (count - 1); left; left &= left - 1) {
      const size_t s = (size_t) __builtin_ctzll(left);
      weft_bn_wide_add_product(form, &sum, own->within[s][low], b[low | (size_t) 1 << s]);
    }
    b[low] = (first | low) == all ? weft_bn_wide_of(form, 1, 0) : weft_bn_wide_of_sum(form, sum);
  }
  for (size_t s = 0; s < low_nodes; s++) {
    const size_t bit = (size_t) 1 << s;
    for (size_t low = 0; low < count; low++)
      own->one[low] = low & bit ? 0 : weft_bn_wide_product(form, mine[low], b[low | bit]);
    keep_node(plan, slots, s, own->one);
  }
  memcpy(mine, b, count * sizeof *b);
}

/* The buffer for a top part: what a block needs of every node. */
static void load_top(const orders_job *job, bench *own, uint32_t top)
{
  const weft_bn_order_plan *plan = job->plan;
  memset(own->buffer, 0, ((size_t) plan->slots << plan->mid_bits) * sizeof *own->buffer);
  for (uint32_t c = 0; c < plan->cells; c++)
    own->buffer[weft_bn_order_at(plan->slots, plan->cell_mid[c], plan->cell_slot[c])] =
        weft_bn_order_load(plan->form, plan->top, plan->weight, plan->cell_start[c], plan->cell_start[c + 1], top);
  sums_over_mids(plan, own->buffer, 0);
}

static void forward_task(void *data, size_t t, int thread)
{
  const orders_job *job = data;
  const weft_bn_order_plan *plan = job->plan;
  bench *own = &job->benches[thread];
  load_top(job, own, job->tops[t]);
  for (uint32_t mid = 0; mid < UINT32_C(1) << plan->mid_bits; mid++)
    forward_block(job, own, weft_bn_order_block(plan->low_bits, plan->mid_bits, job->tops[t], mid),
                  own->buffer + weft_bn_order_at(plan->slots, mid, 0));
}

/* Bench t, so that unload_task() knows which buffer belongs to which top part. */
static void backward_task(void *data, size_t t, int thread)
{
  const orders_job *job = data;
  const weft_bn_order_plan *plan = job->plan;
  bench *own = &job->benches[t];
  (void) thread;
  load_top(job, own, job->tops[t]);
  for (uint32_t mid = UINT32_C(1) << plan->mid_bits; mid-- > 0;)
    backward_block(job, own, weft_bn_order_block(plan->low_bits, plan->mid_bits, job->tops[t], mid),
                   own->buffer + weft_bn_order_at(plan->slots, mid, 0));
  sums_over_mids(plan, own->buffer, 1);
}

static void unload_task(void *data, size_t t, int thread)
{
  const orders_job *job = data;
  const weft_bn_order_plan *plan = job->plan;
  const size_t last = (t + 1) * CELLS_EACH;
  (void) thread;
  for (size_t c = t * CELLS_EACH; c < plan->cells && c < last; c++) {
    const size_t at = weft_bn_order_at(plan->slots, plan->cell_mid[c], plan->cell_slot[c]);
    for (size_t k = 0; k < job->wave; k++)
      weft_bn_order_unload(plan->form, plan->top, plan->sum, plan->cell_start[c], plan->cell_start[c + 1], job->tops[k],
                           job->benches[k].buffer[at]);
  }
}

/* One direction; top parts with equally many members go together. */
static weft_status sweep(weft_ctx *ctx, orders_job *job, const uint32_t *tops, const size_t *begin, int backward)
{
  weft_status st = WEFT_OK;
  const int top_bits = job->plan->top_bits;
  const size_t threads = (size_t) ctx->threads;
  double took, done = 0, all = (double) ((size_t) 1 << top_bits);
  for (int k = 0; k <= top_bits; k++) {
    const int size = backward ? top_bits - k : k;
    for (size_t at = begin[size]; at < begin[size + 1]; at += job->wave) {
      job->wave = begin[size + 1] - at < threads ? begin[size + 1] - at : threads;
      job->tops = tops + at;
      done += (double) job->wave / all;
      WEFT_TRY(weft_bn_run_timed(ctx, threads, job->wave, backward ? backward_task : forward_task, job,
                                 backward ? 0.3 + 0.7 * done : 0.3 * done, &took));
      if (!backward) continue;
      WEFT_TRY(weft_bn_run_timed(ctx, threads, (job->plan->cells + CELLS_EACH - 1) / CELLS_EACH, unload_task, job,
                                 0.3 + 0.7 * done, &took));
    }
  }
done:
  return st;
}

/* Mid bits: buffers that stay in a cache, and enough top parts for many threads; the same for any number of them, since
 * it decides the order of some sums. */
static int choose_mid_bits(int high_bits)
{
  const int half = (high_bits + 1) / 2;
  return half < MAX_MID_BITS ? half : MAX_MID_BITS;
}

/* Takes 8 * 2^p bytes for the table and a buffer for each thread. How subsets are cut does not depend on threads, as
 * it decides the order of some sums. */
weft_status weft_bn_edges_orders_cpu(weft_ctx *ctx, const weft_bn_table *table, int64_t optimum,
                                     const weft_bn_order_shape *shape, double *edges, double *log_total)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const int p = (int) table->p, low_bits = shape->low_bits ? shape->low_bits : p < LOW_BITS ? p : LOW_BITS;
  const int mid_bits = shape->low_bits ? shape->mid_bits : choose_mid_bits(p - low_bits);
  const size_t all = ((size_t) 1 << p) - 1, threads = (size_t) ctx->threads;
  weft_bn_order_plan plan;
  orders_job job = { .plan = &plan };
  uint32_t *tops;
  size_t begin[WEFT_BN_SUBSET_NODES + 2];
  uint64_t forward;
  if (p > WEFT_BN_SUBSET_NODES || low_bits > LOW_BITS || low_bits + mid_bits > p) {
    st = weft_fail(ctx, WEFT_ERR_INTERNAL, "Sums over orders of %d nodes in blocks of 2^%d.", p, low_bits);
    goto done;
  }
  WEFT_TAKE(job.table, &mem, all + 1);
  WEFT_TRY(weft_bn_order_plan_make(ctx, &mem, table, optimum, low_bits, mid_bits, &plan));
  WEFT_TAKE(job.benches, &mem, threads);
  for (size_t k = 0; k < threads; k++) WEFT_TAKE(job.benches[k].buffer, &mem, (size_t) plan.slots << mid_bits);
  WEFT_TAKE(tops, &mem, (size_t) 1 << plan.top_bits);
  weft_bn_parts_by_size(plan.top_bits, tops, begin);
  WEFT_TRY(sweep(ctx, &job, tops, begin, 0));
  forward = job.table[all];
  WEFT_TRY(sweep(ctx, &job, tops, begin, 1));
  WEFT_TRY(weft_bn_order_edges(ctx, table, &plan, forward, job.table[0], edges, log_total));
done:
  weft_arena_end(&mem);
  return st;
}
