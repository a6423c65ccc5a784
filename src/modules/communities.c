/* Communities by modularity (Blondel and others 2008): each node moves to the neighbouring community where modularity
 * gains most, until none moves; then communities become nodes of a smaller graph, and the same is done to it. */
#include <string.h>
#include "core/call/arena.h"
#include "modules/modules.h"

/* A graph with weights of nodes to themselves, and space for the moves. */
typedef struct {
  weft_modules_graph graph;
  double *self, *degree, *total, *to_community;
  int *community, *seen;
  double twice; /* the sum of all degrees */
} level;

/* An empty graph of p nodes and room for `edges` edges, as one level of the search. */
static weft_status level_begin(level *l, weft_arena *mem, size_t p, size_t edges)
{
  weft_status st = WEFT_OK;
  l->graph.p = p;
  WEFT_TAKE0(l->graph.start, mem, p + 1);
  WEFT_TAKE(l->graph.to, mem, edges + 1);
  WEFT_TAKE(l->graph.weight, mem, edges + 1);
  WEFT_TAKE0(l->self, mem, p);
  WEFT_TAKE0(l->degree, mem, p);
  WEFT_TAKE0(l->total, mem, p);
  WEFT_TAKE0(l->to_community, mem, p);
  WEFT_TAKE(l->community, mem, p);
  WEFT_TAKE(l->seen, mem, p);
done:
  return st;
}

static void count_degrees(level *l)
{
  l->twice = 0;
  for (size_t i = 0; i < l->graph.p; i++) {
    l->degree[i] = 2 * l->self[i];
    for (size_t at = l->graph.start[i]; at < l->graph.start[i + 1]; at++) l->degree[i] += l->graph.weight[at];
    l->total[i] = l->degree[i];
    l->community[i] = (int) i;
    l->twice += l->degree[i];
  }
}

/* Moves node i to the community where modularity gains most, of equal ones to the first; returns whether it moved. */
static int move_node(level *l, size_t i)
{
  const weft_modules_graph *g = &l->graph;
  const int own = l->community[i];
  int count = 0, best = own;
  for (size_t at = g->start[i]; at < g->start[i + 1]; at++) {
    if (!(g->weight[at] > 0)) continue;
    const int there = l->community[g->to[at]];
    if (l->to_community[there] == 0) l->seen[count++] = there;
    l->to_community[there] += g->weight[at];
  }
  l->total[own] -= l->degree[i];
  const double share = l->degree[i] / l->twice;
  double most = l->to_community[own] - share * l->total[own];
  for (int at = 0; at < count; at++) {
    const int there = l->seen[at];
    const double gain = l->to_community[there] - share * l->total[there];
    if (gain > most + 1e-12 * l->degree[i]) most = gain, best = there;
  }
  for (int at = 0; at < count; at++) l->to_community[l->seen[at]] = 0;
  l->total[best] += l->degree[i];
  l->community[i] = best;
  return best != own;
}

/* Moves nodes until none moves; returns whether any did. order NULL: as they stand. */
static weft_status move_all(weft_ctx *ctx, level *l, const int *order, int *any)
{
  enum { ROUNDS = 100 };
  *any = 0;
  for (int round = 0; round < ROUNDS; round++) {
    int moved = 0;
    for (size_t at = 0; at < l->graph.p; at++) {
      if (at % 4096 == 0) {
        const weft_status st = weft_poll(ctx, round, ROUNDS);
        if (st != WEFT_OK) return st;
      }
      moved |= move_node(l, order ? (size_t) order[at] : at);
    }
    *any |= moved;
    if (!moved) break;
  }
  return WEFT_OK;
}

/* Numbers communities in the order of their first nodes; returns how many there are. */
static size_t number_communities(level *l, int *number)
{
  size_t count = 0;
  for (size_t i = 0; i < l->graph.p; i++) number[i] = -1;
  for (size_t i = 0; i < l->graph.p; i++) {
    const int old = l->community[i];
    if (number[old] < 0) number[old] = (int) count++;
  }
  for (size_t i = 0; i < l->graph.p; i++) l->community[i] = number[l->community[i]];
  return count;
}

/* The graph of communities. members: nodes sorted by community, where each begins. */
static void contract(level *from, level *to, const size_t *begin, const int *members)
{
  size_t edges = 0;
  for (size_t c = 0; c < to->graph.p; c++) {
    int count = 0;
    to->graph.start[c] = edges;
    for (size_t at = begin[c]; at < begin[c + 1]; at++) {
      const size_t i = (size_t) members[at];
      to->self[c] += from->self[i];
      for (size_t edge = from->graph.start[i]; edge < from->graph.start[i + 1]; edge++) {
        const double weight = from->graph.weight[edge];
        const int there = from->community[from->graph.to[edge]];
        if (!(weight > 0)) continue;
        if ((size_t) there == c) {
          to->self[c] += weight / 2;
          continue;
        }
        if (from->to_community[there] == 0) from->seen[count++] = there;
        from->to_community[there] += weight;
      }
    }
    for (int at = 0; at < count; at++) {
      to->graph.to[edges] = from->seen[at];
      to->graph.weight[edges++] = from->to_community[from->seen[at]];
      from->to_community[from->seen[at]] = 0;
    }
  }
  to->graph.start[to->graph.p] = edges;
}

/* Nodes sorted by community: begin has count + 1 places. */
static void sort_members(const level *l, size_t count, size_t *begin, int *members)
{
  memset(begin, 0, (count + 1) * sizeof *begin);
  for (size_t i = 0; i < l->graph.p; i++) begin[l->community[i] + 1]++;
  for (size_t c = 0; c < count; c++) begin[c + 1] += begin[c];
  for (size_t i = 0; i < l->graph.p; i++) members[begin[l->community[i]]++] = (int) i;
  for (size_t c = count; c > 0; c--) begin[c] = begin[c - 1];
  begin[0] = 0;
}

/* Moves nodes to the neighbouring community that gains most modularity, then joins each community into one node, and
 * repeats until nothing moves (Blondel and others 2008). Nodes are visited in `order`. */
weft_status weft_modules_communities(weft_ctx *ctx, const weft_modules_graph *graph, const int *order, int *label)
{
  weft_status st = WEFT_OK;
  const size_t p = graph->p, edges = graph->start[p];
  weft_arena mem[2] = { weft_arena_begin(ctx), weft_arena_begin(ctx) }, common = weft_arena_begin(ctx);
  level levels[2];
  int *number, *members, at = 0, any;
  size_t *begin;
  memset(levels, 0, sizeof levels);
  WEFT_TAKE(number, &common, p);
  WEFT_TAKE(members, &common, p);
  WEFT_TAKE(begin, &common, p + 1);
  WEFT_TRY(level_begin(&levels[0], &mem[0], p, edges));
  memcpy(levels[0].graph.start, graph->start, (p + 1) * sizeof *graph->start);
  memcpy(levels[0].graph.to, graph->to, edges * sizeof *graph->to);
  memcpy(levels[0].graph.weight, graph->weight, edges * sizeof *graph->weight);
  for (size_t i = 0; i < p; i++) label[i] = (int) i;
  for (;; at = !at, order = NULL) {
    level *l = &levels[at], *next = &levels[!at];
    count_degrees(l);
    if (!(l->twice > 0)) break;
    WEFT_TRY(move_all(ctx, l, order, &any));
    if (!any) break;
    const size_t count = number_communities(l, number);
    for (size_t i = 0; i < p; i++) label[i] = l->community[label[i]];
    sort_members(l, count, begin, members);
    weft_arena_end(&mem[!at]);
    mem[!at] = weft_arena_begin(ctx);
    memset(next, 0, sizeof *next);
    WEFT_TRY(level_begin(next, &mem[!at], count, l->graph.start[l->graph.p]));
    contract(l, next, begin, members);
  }
done:
  weft_arena_end(&mem[0]);
  weft_arena_end(&mem[1]);
  weft_arena_end(&common);
  return st;
}
