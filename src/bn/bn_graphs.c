/* Exact posteriors and exact draws under a uniform prior over graphs, by inclusion and exclusion over subsets (Tian
 * and He 2009; Talvitie, Vuoksenmaa and Koivisto 2020), 3^p steps. With a_v(C) = Σ of the weights of v's parent sets
 * within C, and nodes that have all parents within C taken together as R:
 *   B(C) = Σ_{R outside C, not empty} (-1)^(|R| + 1) Π_{v in R} a_v(C) B(C + R)   what all nodes outside C can add
 *   F(C + R) gets (-1)^(|R| + 1) F(C) Π_{v in R} a_v(C)                             graphs on C + R
 *   D_v(C) = dB(none) / da_v(C),   P(v has parents P) = weight_v(P) Σ_{C with P} D_v(C) / B(none)
 * Signs alternate. F(C) B(C) / B(none) is the probability that no edge enters C, so that a rounding error at C ends up
 * in the result at most as it is there, times the expected number of sets R to choose from: 3^p units of the last place
 * at worst, if the graph without edges has all the weight, and usually far fewer. Sums are long double; how far the
 * probabilities of each node's sets are from 1 in sum is measured, and is part of the result.
 *
 * Draws: layer by layer. After the layers within C, the last of them L, the next layer is N with a weight of
 *   Π_{v in N} (a_v(C) - a_v(C - L)) Σ_{X outside C + N} (-1)^|X| Π_{v in X} a_v(C) B(C + N + X),
 * where the sum is over completions in which no other node has all parents within C. */
#include <math.h>
#include <string.h>
#include "../base/draws.h"
#include "../base/parallel.h"
#include "bn_internal.h"

typedef long double real;

#define MOST_GAP 10500.0        /* nats that long doubles span, with room for the number of graphs */
#define WORST_ERROR 1e-6
#define STREAM 0x62676472u      /* of the draws */
#define DRAWS_EACH 64           /* random numbers per layer: one for the layer, one per node */

typedef struct graph_sums {
  const weft_bn_table *table;
  size_t p, all;
  real *a;                      /* 2^p per node: a_v(C), later D_v(C) */
  real *forward, *backward;     /* F, B */
  real *weight;                 /* of each set, relative to its node's best */
  double offset;                /* Σ of the best scores */
} graph_sums;

/* What a thread works with for one C: nodes outside, their a_v(C), and numbers for all their subsets, the subset's
 * members being its bits. */
typedef struct bench { size_t node[64]; real a[64]; real *product, *rest; } bench;

static weft_status subset_sums(weft_ctx *ctx, weft_arena *mem, const weft_bn_table *t, int64_t optimum, graph_sums *out)
{
  weft_status st = WEFT_OK;
  const size_t p = t->p, all = (size_t) 1 << p;
  const double unit = ldexp(1.0, t->bits);
  *out = (graph_sums) { .table = t, .p = p, .all = all };
  WEFT_TAKE0(out->a, mem, p * all);
  WEFT_TAKE(out->weight, mem, (size_t) t->start[p]);
  for (size_t i = 0; i < p; i++) out->offset += (double) t->score[t->start[i]] / unit;
  if (out->offset - (double) optimum / unit > MOST_GAP)
    WEFT_TRY(weft_fail(ctx, WEFT_ERR_INPUT, "The scores lie too far apart for sums over graphs: the best network is "
                       "worth %.0f nats less than the best parents of each node, at most %.0f are taken.",
                       out->offset - (double) optimum / unit, MOST_GAP));
  for (size_t i = 0; i < p; i++) {
    real *a = out->a + i * all;
    for (int64_t k = t->start[i]; k < t->start[i + 1]; k++)
      a[t->mask[k]] = out->weight[k] = expl((real) (t->score[k] - t->score[t->start[i]]) / unit);
    for (size_t bit = 1; bit < all; bit <<= 1) {
      WEFT_TRY(weft_poll(ctx, 0, 1));
      for (size_t s = 0; s < all; s++) if (s & bit) a[s] += a[s ^ bit];
    }
  }
done:
  return st;
}

/* The nodes outside C with their a_v(C), and the products over all subsets of them; returns how many. */
static size_t open_set(const graph_sums *g, bench *own, size_t c)
{
  size_t k = 0;
  for (size_t left = g->all - 1 - c; left; left &= left - 1, k++) {
    own->node[k] = (size_t) __builtin_ctzll(left);
    own->a[k] = g->a[own->node[k] * g->all + c];
  }
  own->product[0] = 1;
  for (size_t j = 0; j < k; j++)
    for (size_t r = 0; r < (size_t) 1 << j; r++) own->product[r | (size_t) 1 << j] = own->product[r] * own->a[j];
  return k;
}

/* Subsets of `outside` in the order of their numbers. */
static size_t next_subset(size_t n, size_t outside) { return (n - outside) & outside; }

static real with_sign(size_t r, real x) { return __builtin_popcountll(r) & 1 ? x : -x; }

typedef struct sums_job { graph_sums *sums; bench *benches; const uint32_t *sets; } sums_job;

static void backward_task(void *data, size_t t, int thread)
{
  const sums_job *job = data;
  graph_sums *g = job->sums;
  const size_t c = job->sets[t], outside = g->all - 1 - c;
  bench *own = &job->benches[thread];
  const size_t count = (size_t) 1 << open_set(g, own, c);
  real sum = outside == 0;
  for (size_t r = 1, n = next_subset(0, outside); r < count; r++, n = next_subset(n, outside))
    sum += with_sign(r, own->product[r] * g->backward[c | n]);
  g->backward[c] = sum;
}

/* D_v(C) takes the place of a_v(C). The sum over R is folded one node after another, the last one first: when it is
 * node j's turn, `rest` has sums over the nodes after j. */
static void derivative_task(void *data, size_t c, int thread)
{
  const sums_job *job = data;
  graph_sums *g = job->sums;
  const size_t outside = g->all - 1 - c;
  bench *own = &job->benches[thread];
  const size_t k = open_set(g, own, c), count = (size_t) 1 << k;
  for (size_t r = 0, n = 0; r < count; r++, n = next_subset(n, outside))
    own->rest[r] = with_sign(r, g->backward[c | n]);
  for (size_t j = k; j-- > 0; ) {
    const size_t half = (size_t) 1 << j;
    real sum = 0;
    for (size_t r = 0; r < half; r++) {
      sum += own->product[r] * own->rest[r + half];
      own->rest[r] += own->a[j] * own->rest[r + half];
    }
    g->a[own->node[j] * g->all + c] = g->forward[c] * sum;
  }
  for (size_t inside = c; inside; inside &= inside - 1) g->a[(size_t) __builtin_ctzll(inside) * g->all + c] = 0;
}

static weft_status forward_sums(weft_ctx *ctx, graph_sums *g, bench *own)
{
  weft_status st = WEFT_OK;
  size_t work = 0;
  g->forward[0] = 1;
  for (size_t c = 0; c < g->all; c++) {
    const size_t outside = g->all - 1 - c, count = (size_t) 1 << open_set(g, own, c);
    const real f = g->forward[c];
    for (size_t r = 1, n = next_subset(0, outside); r < count; r++, n = next_subset(n, outside))
      g->forward[c | n] += with_sign(r, f * own->product[r]);
    if ((work += count) < (size_t) 1 << 20) continue;
    work = 0;
    WEFT_TRY(weft_poll(ctx, 0.3 + 0.3 * (double) c / (double) g->all, 1));
  }
done:
  return st;
}

/* Subsets by size: sets[begin[k]] is the first of size k. */
static void by_size(size_t p, uint32_t *sets, size_t *begin)
{
  size_t at[64];
  memset(begin, 0, (p + 2) * sizeof *begin);
  for (size_t s = 0; s < (size_t) 1 << p; s++) begin[__builtin_popcountll(s) + 1]++;
  for (size_t k = 0; k <= p; k++) begin[k + 1] += begin[k];
  memcpy(at, begin, (p + 1) * sizeof *at);
  for (size_t s = 0; s < (size_t) 1 << p; s++) sets[at[__builtin_popcountll(s)]++] = (uint32_t) s;
}

static weft_status make_benches(weft_ctx *ctx, weft_arena *mem, size_t all, bench **out)
{
  weft_status st = WEFT_OK;
  bench *benches;
  WEFT_TAKE(benches, mem, (size_t) ctx->threads);
  for (int k = 0; k < ctx->threads; k++) {
    WEFT_TAKE(benches[k].product, mem, all);
    WEFT_TAKE(benches[k].rest, mem, all);
  }
  *out = benches;
done:
  return st;
}

/* a and B of all sets. */
static weft_status completions(weft_ctx *ctx, weft_arena *mem, const weft_bn_table *table, int64_t optimum,
                               graph_sums *g, bench **benches)
{
  weft_status st = WEFT_OK;
  size_t begin[66];
  uint32_t *sets;
  WEFT_TRY(subset_sums(ctx, mem, table, optimum, g));
  WEFT_TAKE(g->backward, mem, g->all);
  WEFT_TRY(make_benches(ctx, mem, g->all, benches));
  WEFT_TAKE(sets, mem, g->all);
  by_size(g->p, sets, begin);
  for (size_t size = g->p + 1; size-- > 0; ) {
    sums_job job = { g, *benches, sets + begin[size] };
    WEFT_TRY(weft_bn_run_tasks(ctx, (size_t) ctx->threads, begin[size + 1] - begin[size], backward_task, &job,
                               0.3 * (double) (g->all - begin[size + 1]) / (double) g->all,
                               0.3 * (double) (g->all - begin[size]) / (double) g->all));
  }
  weft_arena_drop(mem, sets);
  if (!(g->backward[0] > 0))
    WEFT_TRY(weft_fail(ctx, WEFT_ERR_INPUT, "No graph has all required parents within the limits."));
done:
  return st;
}

weft_status weft_bn_edges_graphs(weft_ctx *ctx, const weft_bn_table *table, int64_t optimum, double *edges,
                                 double *log_total, double *error)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t p = table->p;
  graph_sums g;
  bench *benches;
  WEFT_TRY(completions(ctx, &mem, table, optimum, &g, &benches));
  WEFT_TAKE0(g.forward, &mem, g.all);
  WEFT_TRY(forward_sums(ctx, &g, benches));
  sums_job job = { &g, benches, NULL };
  WEFT_TRY(weft_bn_run_tasks(ctx, (size_t) ctx->threads, g.all, derivative_task, &job, 0.6, 1));
  memset(edges, 0, p * p * sizeof *edges);
  *error = 0;
  for (size_t v = 0; v < p; v++) {
    real *through = g.a + v * g.all, total = 0;
    for (size_t bit = 1; bit < g.all; bit <<= 1) {
      WEFT_TRY(weft_poll(ctx, 1, 1));
      for (size_t s = 0; s < g.all; s++) if (!(s & bit)) through[s] += through[s | bit];
    }
    for (int64_t k = table->start[v]; k < table->start[v + 1]; k++) {
      const real share = g.weight[k] * through[table->mask[k]] / g.backward[0];
      total += share;
      for (uint64_t left = table->mask[k]; left; left &= left - 1)
        edges[(size_t) __builtin_ctzll(left) + p * v] += (double) share;
    }
    *error = fmax(*error, fabs((double) (total - 1)));
    for (size_t u = 0; u < p; u++) edges[u + p * v] = fmin(fmax(edges[u + p * v], 0), 1);
  }
  *log_total = g.offset + (double) logl(g.backward[0]);
  if (!(*error < WORST_ERROR))
    WEFT_TRY(weft_fail(ctx, WEFT_ERR_INPUT, "The sums over graphs cancel: probabilities of a node's parents "
                       "differ from 1 by %.2g in sum.", *error));
done:
  weft_arena_end(&mem);
  return st;
}

/* ---- draws ---- */

typedef struct draws_job {
  const graph_sums *sums;
  bench *benches;
  const real *first;            /* running sums of the weights of first layers, by their nodes */
  uint64_t key;
  int32_t *sampled;
} draws_job;

/* The weight of each next layer, in `rest`, as running sums; returns the nodes' number. */
static size_t layer_weights(const graph_sums *g, bench *own, size_t c, size_t last)
{
  const size_t outside = g->all - 1 - c;
  size_t k = 0;
  for (size_t left = outside; left; left &= left - 1, k++) {
    own->node[k] = (size_t) __builtin_ctzll(left);
    own->a[k] = g->a[own->node[k] * g->all + c];
  }
  const size_t count = (size_t) 1 << k;
  for (size_t r = 0, n = 0; r < count; r++, n = next_subset(n, outside)) own->rest[r] = g->backward[c | n];
  for (size_t j = 0; j < k; j++)
    for (size_t r = 0; r < count; r++)
      if (!(r >> j & 1)) own->rest[r] -= own->a[j] * own->rest[r | (size_t) 1 << j];
  own->product[0] = 1;
  for (size_t j = 0; j < k; j++) {
    const real early = c ? g->a[own->node[j] * g->all + (c & ~last)] : 0, fresh = own->a[j] - early;
    for (size_t r = 0; r < (size_t) 1 << j; r++)
      own->product[r | (size_t) 1 << j] = own->product[r] * (fresh > 0 ? fresh : 0);
  }
  own->rest[0] = 0; /* a layer has at least one node */
  for (size_t r = 1; r < count; r++) {
    const real weight = own->product[r] * own->rest[r];
    own->rest[r] = own->rest[r - 1] + (weight > 0 ? weight : 0);
  }
  return k;
}

/* The first entry of running sums above `share` of the last. */
static size_t find_share(const real *running, size_t count, double share)
{
  const real wanted = running[count - 1] * (real) share;
  size_t low = 0, high = count - 1;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (running[middle] > wanted) high = middle;
    else low = middle + 1;
  }
  return low;
}

/* Which of v's sets within C that have a member of L (the first layer: that are empty), with the probability of its
 * weight. */
static int32_t draw_parents(const graph_sums *g, size_t v, size_t c, size_t last, double share)
{
  const weft_bn_table *t = g->table;
  real total = 0, sum = 0;
  int32_t pick = 0;
  for (int64_t k = t->start[v]; k < t->start[v + 1]; k++)
    if (!(t->mask[k] & ~c) && (!c || t->mask[k] & last)) total += g->weight[k];
  for (int64_t k = t->start[v]; k < t->start[v + 1] && sum <= total * (real) share; k++)
    if (!(t->mask[k] & ~c) && (!c || t->mask[k] & last) && g->weight[k] > 0) {
      sum += g->weight[k];
      pick = (int32_t) (k - t->start[v]);
    }
  return pick;
}

static void draw_task(void *data, size_t t, int thread)
{
  const draws_job *job = data;
  const graph_sums *g = job->sums;
  const weft_rng rng = { job->key, STREAM };
  bench *own = &job->benches[thread];
  uint64_t draw = (uint64_t) t * g->p * DRAWS_EACH;
  size_t c = 0, last = 0;
  for (size_t layer = 0; c != g->all - 1; layer++, draw += DRAWS_EACH) {
    const size_t k = layer ? layer_weights(g, own, c, last) : g->p;
    const size_t r = find_share(layer ? own->rest : job->first, (size_t) 1 << k, weft_draw_uniform(rng, draw));
    size_t next = 0;
    for (size_t j = 0; j < k; j++) {
      const size_t v = layer ? own->node[j] : j;
      if (!(r >> j & 1)) continue;
      next |= (size_t) 1 << v;
      job->sampled[t * g->p + v] = draw_parents(g, v, c, last, weft_draw_uniform(rng, draw + 1 + v));
    }
    c |= next;
    last = next;
  }
}

weft_status weft_bn_draw_graphs(weft_ctx *ctx, const weft_bn_table *table, int64_t optimum, uint64_t key, size_t draws,
                                int32_t *sampled)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  graph_sums g;
  bench *benches;
  real *first;
  WEFT_TRY(completions(ctx, &mem, table, optimum, &g, &benches));
  WEFT_TAKE(first, &mem, g.all);
  layer_weights(&g, benches, 0, 0);
  memcpy(first, benches->rest, g.all * sizeof *first);
  draws_job job = { &g, benches, first, key, sampled };
  WEFT_TRY(weft_bn_run_tasks(ctx, (size_t) ctx->threads, draws, draw_task, &job, 0.3, 1));
done:
  weft_arena_end(&mem);
  return st;
}
