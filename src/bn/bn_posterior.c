/* Posteriors of edges from drawn graphs, and the number of orders of a graph. */
#include <math.h>
#include <string.h>
#include "../base/parallel.h"
#include "bn_chain.h"
#include "bn_internal.h"

typedef long double real;

/* ---- edges of drawn graphs ---- */

#define NODES_EACH 8 /* nodes whose parents a thread counts at a time */

typedef struct {
  const weft_bn_table *table;
  const int32_t *sampled;
  const double *weight;
  size_t samples, ladders;
  double *edges;
} edges_job;

/* Columns first .. last - 1 of the edges, summed ladder by ladder; how far the ladders' means lie apart. room: 3 x p x
 * their number. */
static double edges_of(const edges_job *job, size_t first, size_t last, double *room)
{
  const weft_bn_table *t = job->table;
  const size_t p = t->p, cells = p * (last - first);
  double *own = room, *least = own + cells, *most = least + cells, *edges = job->edges + p * first, total = 0,
         difference = 0;
  memset(edges, 0, cells * sizeof *edges);
  for (size_t c = 0; c < job->ladders; c++) {
    double sum = 0;
    memset(own, 0, cells * sizeof *own);
    for (size_t at = c * job->samples; at < (c + 1) * job->samples; at++) {
      sum += job->weight[at];
      for (size_t i = first; i < last; i++) {
        const uint64_t *set = t->mask + (size_t) (t->start[i] + job->sampled[at * p + i]) * t->words;
        double *to = own + p * (i - first);
        for (size_t w = 0; w < t->words; w++)
          for (uint64_t word = set[w]; word; word &= word - 1)
            to[64 * w + (size_t) __builtin_ctzll(word)] += job->weight[at];
      }
    }
    total += sum;
    for (size_t k = 0; k < cells; k++) {
      const double mean = own[k] / sum;
      edges[k] += own[k];
      least[k] = c && least[k] < mean ? least[k] : mean;
      most[k] = c && most[k] > mean ? most[k] : mean;
    }
  }
  for (size_t k = 0; k < cells; k++) {
    edges[k] /= total;
    if (most[k] - least[k] > difference) difference = most[k] - least[k];
  }
  return difference;
}

weft_status weft_bn_edge_means(weft_ctx *ctx, const weft_bn_table *table, const int32_t *sampled, const double *weight,
                               size_t samples, size_t ladders, double *edges, double *difference)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const edges_job job = { table, sampled, weight, samples, ladders, edges };
  const size_t p = table->p, step = NODES_EACH * (size_t) ctx->threads;
  double *room, *apart;
  WEFT_TAKE(room, &mem, (size_t) ctx->threads * 3 * NODES_EACH * p);
  WEFT_TAKE(apart, &mem, (size_t) ctx->threads);
  *difference = 0;
  for (size_t first = 0; first < p; first += step) {
    WEFT_TRY(weft_poll(ctx, (double) first, (double) p));
    WEFT_PARALLEL(weft_threads_worth(ctx->threads, (double) (samples * ladders) * (double) (step < p ? step : p) * 10))
    WEFT_FOR(static)
    for (int k = 0; k < ctx->threads; k++) {
      const size_t from = first + NODES_EACH * (size_t) k, to = from + NODES_EACH < p ? from + NODES_EACH : p;
      apart[k] = from < p ? edges_of(&job, from, to, room + (size_t) k * 3 * NODES_EACH * p) : 0;
    }
    for (int k = 0; k < ctx->threads; k++)
      if (apart[k] > *difference) *difference = apart[k];
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* ---- how many orders a graph has ---- */

/* Sets that are closed under parents, one size after another, with the number of ways to build each: a hash table a
 * size. */
typedef struct closed_sets { size_t slots, found; uint64_t *mask; real *ways; size_t *slot; } closed_sets;

static weft_status make_closed(weft_arena *mem, size_t words, size_t limit, closed_sets *out)
{
  weft_status st = WEFT_OK;
  out->slots = 16;
  while (out->slots < 2 * limit + 2) out->slots *= 2;
  out->found = 0;
  WEFT_TAKE(out->mask, mem, out->slots * words);
  WEFT_TAKE0(out->ways, mem, out->slots);
  WEFT_TAKE(out->slot, mem, out->slots);
done:
  return st;
}

static void add_ways(closed_sets *c, const uint64_t *mask, size_t words, real ways)
{
  uint64_t hash = 0;
  for (size_t w = 0; w < words; w++) hash = (hash ^ mask[w]) * UINT64_C(0x9e3779b97f4a7c15) ^ hash >> 29;
  size_t k = (size_t) (hash >> 20) & (c->slots - 1);
  while (c->ways[k] > 0 && memcmp(c->mask + k * words, mask, words * sizeof *mask)) k = (k + 1) & (c->slots - 1);
  if (!(c->ways[k] > 0)) {
    memcpy(c->mask + k * words, mask, words * sizeof *mask);
    c->slot[c->found++] = k;
  }
  c->ways[k] += ways;
}

static weft_status count_orders(weft_ctx *ctx, const uint64_t *parents, size_t p, size_t words, size_t limit,
                                closed_sets *now, closed_sets *next, uint64_t *grown, double *out)
{
  weft_status st = WEFT_OK;
  size_t seen = 0;
  memset(grown, 0, words * sizeof *grown);
  now->found = next->found = 0;
  add_ways(now, grown, words, 1);
  for (size_t size = 0; size < p; size++) {
    WEFT_TRY(weft_poll(ctx, 0, 1));
    for (size_t k = 0; k < now->found; k++) {
      const uint64_t *mask = now->mask + now->slot[k] * words;
      for (size_t z = 0; z < p; z++) {
        if (has_bit(mask, (int32_t) z) || !fits(parents + z * words, mask, words)) continue;
        if (next->found >= limit) { seen = limit + 1; break; }
        memcpy(grown, mask, words * sizeof *grown);
        set_bit(grown, (int32_t) z);
        add_ways(next, grown, words, now->ways[now->slot[k]]);
      }
    }
    for (size_t k = 0; k < now->found; k++) now->ways[now->slot[k]] = 0;
    now->found = 0;
    seen += next->found;
    closed_sets swap = *now;
    *now = *next;
    *next = swap;
    if (seen > limit) break;
  }
  *out = seen > limit ? NAN : (double) logl(now->ways[now->slot[0]]);
  for (size_t k = 0; k < now->found; k++) now->ways[now->slot[k]] = 0;
done:
  return st;
}

weft_status weft_bn_count_orders(weft_ctx *ctx, const uint64_t *parents, size_t p, size_t m, size_t limit, double *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t words = (p + 63) / 64;
  closed_sets now, next;
  uint64_t *grown;
  WEFT_TRY(make_closed(&mem, words, limit, &now));
  WEFT_TRY(make_closed(&mem, words, limit, &next));
  WEFT_TAKE(grown, &mem, words);
  for (size_t k = 0; k < m; k++) {
    WEFT_TRY(count_orders(ctx, parents + k * p * words, p, words, limit, &now, &next, grown, &out[k]));
    WEFT_TRY(weft_poll(ctx, (double) k, (double) m));
    if (isnan(out[k])) { /* one that cannot be counted is enough to know */
      for (; k < m; k++) out[k] = NAN;
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}
