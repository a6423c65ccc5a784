/* Where chains start: random nodes, the leaders, are the first of the clusters, and every other node joins the one
 * that it has most in common with,
 *
 *   Σ_{j: linked with both} log(1 + K / leaders that j is linked with)  /  √(links of the leader)
 *
 * over the nodes j of the other mode. Random clusters of all nodes look alike, and take ten sweeps of a graph of ten
 * thousand nodes to become different; these do not, and other leaders give each chain clusters of its own. As this is
 * only a start, a node considers only as many of its links as make about COMMON_WORK steps. Ties go to the first
 * leader, counted from a random one on; a node that has nothing in common with any leader gets a random one. */
#include <math.h>
#include <string.h>
#include "core/call/arena.h"
#include "core/numbers/draws.h"
#include "core/call/parallel.h"
#include "irm/cpu/start.h"

#define COMMON_WORK 4096
#define POLL_LINKS 20000000
#define START_STREAM 0x80000000u
/* A chain's draws are 2^CHAIN_BITS numbers: first the leaders', then, from NODE_DRAWS on, each node's. */
#define CHAIN_BITS 40
#define NODE_DRAWS ((uint64_t) 1 << 39)

/* For one mode and one direction: the leaders, as numbers from 0, that each node of the other side is linked with. */
typedef struct lead_lists {
  int64_t *start;
  int32_t *to;
  double *weight;
} lead_lists;

typedef struct leaders {
  int32_t count, *node;
  double *scale;
  lead_lists lists[2];
} leaders;

/* Draws up to `wanted` different nodes of a mode, with 1 / sqrt(links + 1) of each as its scale. */
static weft_status choose_leaders(weft_arena *mem, const weft_irm_graph *graph, int mode, int directions, weft_rng rng,
                                  uint64_t index, int32_t wanted, leaders *out)
{
  weft_status st = WEFT_OK;
  const int64_t n = graph->n[mode];
  uint8_t *taken;
  WEFT_TAKE0(taken, mem, (size_t) n);
  WEFT_TAKE(out->node, mem, (size_t) wanted);
  WEFT_TAKE(out->scale, mem, (size_t) wanted);
  out->count = 0;
  for (int32_t leader = 0; leader < wanted; leader++) {
    const int64_t i = (int64_t) weft_draw_below(rng, index + (uint64_t) leader, (uint64_t) n);
    int64_t links = 1;
    if (taken[i]) continue;
    taken[i] = 1;
    for (int direction = 0; direction < directions; direction++)
      links += graph->links[mode + direction].start[i + 1] - graph->links[mode + direction].start[i];
    out->scale[out->count] = 1 / sqrt((double) links);
    out->node[out->count++] = (int32_t) i;
  }
done:
  return st;
}

/* For each node of the other side, the leaders that it is linked with, and how much such a link counts: the fewer
 * leaders it has, the more. */
static weft_status list_leaders(weft_arena *mem, const weft_irm_lists *links, const leaders *leads, int64_t n_other,
                                lead_lists *out)
{
  weft_status st = WEFT_OK;
  WEFT_TAKE0(out->start, mem, (size_t) n_other + 2);
  WEFT_TAKE(out->weight, mem, (size_t) n_other);
  for (int32_t leader = 0; leader < leads->count; leader++)
    for (int64_t entry = links->start[leads->node[leader]]; entry < links->start[leads->node[leader] + 1]; entry++)
      out->start[links->to[entry] + 2]++;
  for (int64_t j = 0; j < n_other; j++) {
    const double count = (double) out->start[j + 2];
    out->weight[j] = count > 0 ? weft_log1p((double) leads->count / count) : 0;
    out->start[j + 2] += out->start[j + 1];
  }
  WEFT_TAKE(out->to, mem, (size_t) out->start[n_other + 1] + 1);
  for (int32_t leader = 0; leader < leads->count; leader++)
    for (int64_t entry = links->start[leads->node[leader]]; entry < links->start[leads->node[leader] + 1]; entry++)
      out->to[out->start[links->to[entry] + 1]++] = leader;
done:
  return st;
}

/* Adds what node i has in common with each leader. */
static void add_common(const weft_irm_lists *links, const lead_lists *leads, int64_t i, double *common)
{
  const int64_t first = links->start[i], last = links->start[i + 1];
  int64_t work = 0, step = 1;
  for (int64_t entry = first; entry < last; entry++)
    work += leads->start[links->to[entry] + 1] - leads->start[links->to[entry]];
  if (work > COMMON_WORK) step = (work + COMMON_WORK - 1) / COMMON_WORK;
  for (int64_t entry = first; entry < last; entry += step) {
    const int32_t j = links->to[entry];
    for (int64_t x = leads->start[j]; x < leads->start[j + 1]; x++) common[leads->to[x]] += leads->weight[j];
  }
}

static int32_t best_leader(const leaders *leads, const double *common, int32_t first)
{
  int32_t best = first;
  double most = 0;
  for (int32_t leader = 0; leader < leads->count; leader++) {
    const int32_t at = first + leader < leads->count ? first + leader : first + leader - leads->count;
    const double value = common[at] * leads->scale[at];
    if (value > most) {
      most = value;
      best = at;
    }
  }
  return best;
}

/* Gives every node of a mode the number of a leader; threads share the nodes, each of which has a draw of its own. */
static weft_status start_mode(weft_ctx *ctx, const weft_irm_graph *graph, int mode, weft_rng rng, uint64_t index,
                              int32_t k, int32_t *z)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const int one_mode = graph->type != WEFT_IRM_BIPARTITE, directions = graph->type == WEFT_IRM_DIRECTED ? 2 : 1;
  const int threads = graph->link_count[mode] > 100000 ? ctx->threads : 1;
  leaders leads;
  double *common;
  WEFT_TRY(choose_leaders(&mem, graph, mode, directions, rng, index, k, &leads));
  for (int direction = 0; direction < directions; direction++)
    WEFT_TRY(list_leaders(&mem, &graph->links[mode + direction], &leads, one_mode ? graph->n[0] : graph->n[1 - mode],
                          &leads.lists[direction]));
  WEFT_TAKE(common, &mem, (size_t) threads * (size_t) leads.count);
  for (int64_t from = 0, until = 0; from < graph->n[mode]; from = until) {
    for (int64_t links = 0; until < graph->n[mode] && links < POLL_LINKS; until++)
      links += 100 + leads.count + graph->links[mode].start[until + 1] - graph->links[mode].start[until];
    WEFT_PARALLEL_FOR(threads, dynamic)
    for (int64_t chunk = from; chunk < until; chunk += 64)
      for (int64_t i = chunk; i < until && i < chunk + 64; i++) {
        double *own = common + (size_t) WEFT_THREAD() * (size_t) leads.count;
        memset(own, 0, (size_t) leads.count * sizeof *own);
        for (int direction = 0; direction < directions; direction++)
          add_common(&graph->links[mode + direction], &leads.lists[direction], i, own);
        z[i] = best_leader(&leads, own,
                           (int32_t) weft_draw_below(rng, index + NODE_DRAWS + (uint64_t) i, (uint64_t) leads.count));
      }
    WEFT_TRY(weft_poll(ctx, (double) until, (double) graph->n[mode]));
  }
  for (int32_t leader = 0; leader < leads.count; leader++) z[leads.node[leader]] = leader;
done:
  weft_arena_end(&mem);
  return st;
}

weft_status weft_irm_start(weft_ctx *ctx, const weft_irm_graph *graph, uint64_t key, const int32_t k[2],
                           uint32_t number, int32_t *const z[2])
{
  weft_status st = WEFT_OK;
  for (int mode = 0; mode < (graph->type == WEFT_IRM_BIPARTITE ? 2 : 1); mode++) {
    const weft_rng rng = { key, START_STREAM + (uint32_t) mode };
    WEFT_TRY(start_mode(ctx, graph, mode, rng, (uint64_t) number << CHAIN_BITS, k[mode], z[mode]));
  }
done:
  return st;
}
