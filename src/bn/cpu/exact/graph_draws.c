/* Independent draws from the posterior that is uniform over graphs (Talvitie, Vuoksenmaa and Koivisto 2020), layer by
 * layer, with a_v(C) and B(C) of graphs.h. After the layers within C, the last of them L, the next layer is N with a
 * weight of
 *   Π_{v in N} (a_v(C) - a_v(C - L)) Σ_{X outside C + N} (-1)^|X| Π_{v in X} a_v(C) B(C + N + X),
 * where the sum is over completions in which no other node has all parents within C. Relative to B(C), the sum times
 * Π_{v in N} a_v(C) is a difference of probabilities, which are whole numbers of units as terms are in graphs.h. */
#include <math.h>
#include "core/numbers/draws.h"
#include "bn/both/graphs.h"
#include "bn/both/graphs_ends.h"
#include "bn/both/joint.h"

#define STREAM 0x62676472u /* of the draws */
#define DRAWS_EACH 64      /* random numbers per layer: one for the layer, one per node */

typedef struct graph_sums {
  const weft_bn_table *table;
  weft_bn_graph_plan plan;
  weft_bn_reals a, after;
} graph_sums;

/* What a thread works with for one C: nodes outside, their a_v(C), and numbers for all their subsets, the subset's
 * members being its bits. */
typedef struct bench {
  size_t node[WEFT_BN_MAX_GRAPH_NODES];
  weft_bn_real a[WEFT_BN_MAX_GRAPH_NODES], *product;
  uint64_t *rest;
  double *running;
} bench;

typedef struct draws_job {
  const graph_sums *sums;
  bench *benches;
  const double *first; /* running sums of the weights of first layers, by their nodes */
  uint64_t key;
  int32_t *sampled;
} draws_job;

/* Subsets of `outside` in the order of their numbers. */
static size_t next_subset(size_t n, size_t outside) { return (n - outside) & outside; }

static weft_bn_real sum_of_node(const graph_sums *sums, size_t v, size_t c)
{
  return weft_bn_read(sums->a, v * sums->plan.all + c);
}

/* The weight of each next layer, as running sums; returns the nodes' number. */
static size_t layer_weights(const graph_sums *sums, bench *own, size_t c, size_t last)
{
  const size_t outside = sums->plan.all - 1 - c;
  size_t k = 0;
  own->product[0] = weft_bn_real_ratio(weft_bn_one(), weft_bn_read(sums->after, c));
  for (size_t left = outside; left; left &= left - 1, k++) {
    own->node[k] = (size_t) __builtin_ctzll(left);
    own->a[k] = sum_of_node(sums, own->node[k], c);
    for (size_t r = 0; r < (size_t) 1 << k; r++)
      own->product[r | (size_t) 1 << k] = weft_bn_real_product(own->product[r], own->a[k]);
  }
  const size_t count = (size_t) 1 << k;
  for (size_t r = 0, n = 0; r < count; r++, n = next_subset(n, outside))
    own->rest[r] =
        weft_bn_graph_term(own->product[r], weft_bn_one(), weft_bn_read(sums->after, c | n), -WEFT_BN_GRAPH_BITS);
  for (size_t j = 0; j < k; j++)
    for (size_t r = 0; r < count; r++)
      if (!(r >> j & 1)) own->rest[r] -= own->rest[r | (size_t) 1 << j];
  own->running[0] = 1;
  for (size_t j = 0; j < k; j++) {
    const weft_bn_real early =
        c ? weft_bn_real_ratio(sum_of_node(sums, own->node[j], c & ~last), own->a[j]) : weft_bn_real_of(0, 0);
    const double fresh = 1 - ldexp((double) early.fraction, early.exponent);
    for (size_t r = 0; r < (size_t) 1 << j; r++)
      own->running[r | (size_t) 1 << j] = own->running[r] * (fresh > 0 ? fresh : 0);
  }
  own->running[0] = 0; /* a layer has at least one node */
  for (size_t r = 1; r < count; r++) {
    const int64_t rest = (int64_t) own->rest[r];
    own->running[r] = own->running[r - 1] + (rest > 0 ? own->running[r] * (double) rest : 0);
  }
  return k;
}

/* The first entry of running sums that exceeds the fraction `share` of the last. */
static size_t find_share(const double *running, size_t count, double share)
{
  const double wanted = running[count - 1] * share;
  size_t low = 0, high = count - 1;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (running[middle] > wanted)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

/* Which of v's sets within C that have a member of L (the first layer: that are empty), with the probability of its
 * weight. Sets are sorted by weight: the first that fits has the greatest exponent. */
static int32_t draw_parents(const graph_sums *sums, size_t v, size_t c, size_t last, double share)
{
  const weft_bn_table *table = sums->table;
  const weft_bn_reals weight = sums->plan.weight;
  const int64_t end = table->start[v + 1];
  double total = 0, sum = 0;
  int64_t first = -1, pick = table->start[v];
  for (int pass = 0; pass < 2; pass++)
    for (int64_t k = pass ? first : table->start[v]; k >= 0 && k < end && (!pass || sum <= total * share); k++) {
      if (table->mask[k] & ~c || (c && !(table->mask[k] & last)) || !weight.fraction[k]) continue;
      if (first < 0) first = k;
      const int apart = weight.exponent[first] - weight.exponent[k];
      const double own = apart < 64 ? (double) (weight.fraction[k] >> apart) : 0;
      if (!pass)
        total += own;
      else if (own > 0) {
        sum += own;
        pick = k;
      }
    }
  return (int32_t) (pick - table->start[v]);
}

/* Draws graph t layer by layer: the nodes of the next layer, then the parents of each. Draw numbers depend on t
 * alone. */
static void draw_task(void *data, size_t t, int thread)
{
  const draws_job *job = data;
  const graph_sums *sums = job->sums;
  const size_t p = sums->plan.p;
  const weft_rng rng = { job->key, STREAM };
  bench *own = &job->benches[thread];
  uint64_t draw = (uint64_t) t * p * DRAWS_EACH;
  size_t c = 0, last = 0;
  for (size_t layer = 0; c != sums->plan.all - 1; layer++, draw += DRAWS_EACH) {
    const size_t k = layer ? layer_weights(sums, own, c, last) : p;
    const size_t r = find_share(layer ? own->running : job->first, (size_t) 1 << k, weft_draw_uniform(rng, draw));
    size_t next = 0;
    for (size_t j = 0; j < k; j++) {
      const size_t v = layer ? own->node[j] : j;
      if (!(r >> j & 1)) continue;
      next |= (size_t) 1 << v;
      job->sampled[t * p + v] = draw_parents(sums, v, c, last, weft_draw_uniform(rng, draw + 1 + v));
    }
    c |= next;
    last = next;
  }
}

/* Makes the sums once (see graphs.c), then draws in parallel; each thread has three tables of 2^p numbers. */
weft_status weft_bn_draw_graphs(weft_ctx *ctx, const weft_bn_table *table, int64_t optimum, uint64_t key, size_t draws,
                                int32_t *sampled)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  graph_sums sums = { .table = table };
  draws_job job = { .sums = &sums, .key = key, .sampled = sampled };
  WEFT_TRY(weft_bn_graph_plan_make(ctx, &mem, table, optimum, &sums.plan));
  WEFT_TRY(weft_bn_graph_completions(ctx, &mem, table, &sums.plan, 0.3, &sums.a, &sums.after));
  WEFT_TAKE(job.benches, &mem, (size_t) ctx->threads + 1);
  for (int k = 0; k <= ctx->threads; k++) {
    WEFT_TAKE(job.benches[k].product, &mem, sums.plan.all);
    WEFT_TAKE(job.benches[k].rest, &mem, sums.plan.all);
    WEFT_TAKE(job.benches[k].running, &mem, sums.plan.all);
  }
  layer_weights(&sums, &job.benches[ctx->threads], 0, 0);
  job.first = job.benches[ctx->threads].running;
  WEFT_TRY(weft_bn_run_tasks(ctx, (size_t) ctx->threads, draws, draw_task, &job, 0.3, 1));
done:
  weft_arena_end(&mem);
  return st;
}
