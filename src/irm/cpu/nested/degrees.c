/* Degrees of the nodes; see degrees.h. */
#include <string.h>
#include "core/call/parallel.h"
#include "irm/cpu/nested/degrees.h"
#include "irm/cpu/nested/terms.h"

/* Nodes between two polls. */
enum { POLL_NODES = 1 << 20 };

static void add_degree(irm_nested *state, int32_t home, int32_t c, int32_t by)
{
  const uint64_t key = (uint64_t) home * (uint64_t) state->classes + (uint64_t) c;
  if (state->counts.key)
    irm_count_add(&state->counts, key, by);
  else
    state->counts.count[key] += by;
}

void irm_degrees_count(irm_nested *state)
{
  const int32_t *b = state->level[0].b;
  if (!state->degrees) return;
  if (state->counts.key)
    memset(state->counts.key, 0xff, state->counts.size * sizeof *state->counts.key);
  else
    memset(state->counts.count, 0, state->counts.size * sizeof *state->counts.count);
  state->counts.used = 0;
  for (int way = 0; way <= state->directed; way++)
    for (int64_t i = 0; i < state->n; i++) add_degree(state, b[i], state->class_of[way][i], 1);
}

void irm_degrees_move(irm_nested *state, int32_t i, int32_t home, int32_t goal)
{
  if (!state->degrees) return;
  for (int way = 0; way <= state->directed; way++) {
    add_degree(state, home, state->class_of[way][i], -1);
    add_degree(state, goal, state->class_of[way][i], 1);
  }
  if (state->counts.key && 2 * state->counts.used > state->counts.size) irm_degrees_count(state);
}

/* Sums of the links of each node, by all threads. */
static weft_status sum_links(weft_ctx *poll, irm_nested *state)
{
  weft_status st = WEFT_OK;
  const weft_irm_graph *graph = state->graph;
  for (int way = 0; way < (graph->type == WEFT_IRM_UNDIRECTED ? 1 : 2); way++) {
    const weft_irm_lists *lists = &graph->links[way];
    const int64_t n = graph->n[state->bipartite ? way : 0];
    int64_t *degree = state->degree[way] + (state->bipartite && way ? graph->n[0] : 0);
    for (int64_t first = 0, last; first < n; first = last) {
      last = first + POLL_NODES < n ? first + POLL_NODES : n;
      const double links = (double) (lists->start[last] - lists->start[first]);
      WEFT_PARALLEL_FOR(poll ? weft_threads_worth(poll->threads, links) : 1, guided)
      for (int64_t i = first; i < last; i++) {
        int64_t sum = lists->weight ? 0 : lists->start[i + 1] - lists->start[i];
        for (int64_t j = lists->start[i]; j < lists->start[i + 1] && lists->weight; j++) sum += lists->weight[j];
        degree[i] = sum;
      }
      if (poll) WEFT_TRY(weft_poll(poll, (double) last, (double) n));
    }
  }
done:
  return st;
}

/* Degrees, with links of nodes to themselves. */
static weft_status sum_degrees(weft_ctx *poll, irm_nested *state)
{
  weft_status st = WEFT_OK;
  const weft_irm_graph *graph = state->graph;
  WEFT_TRY(sum_links(poll, state));
  state->constant = graph->log_factorials;
  for (int64_t i = 0; i < state->n && graph->self_weight; i++) {
    state->degree[0][i] += (state->directed ? 1 : 2) * graph->self_weight[i];
    if (state->directed) state->degree[1][i] += graph->self_weight[i];
    if (!state->directed) state->constant += graph->self_weight[i] * IRM_LOG_2;
  }
  state->ends = 0;
  for (int64_t i = 0; i < state->n; i++) state->ends += state->degree[0][i];
done:
  return st;
}

/* Numbers the different degrees, which a hashed table collects. */
static void number_classes(irm_nested *state, irm_degree_counts *found)
{
  memset(found->key, 0xff, found->size * sizeof *found->key);
  state->classes = 0;
  for (int way = 0; way <= state->directed; way++)
    for (int64_t i = 0; i < state->n; i++) {
      const uint64_t key = 2 * (uint64_t) state->degree[way][i] + (uint64_t) way;
      const size_t at = irm_count_slot(found, key);
      if (found->key[at] == UINT64_MAX) {
        found->key[at] = key;
        found->count[at] = (int32_t) state->classes++;
      }
      state->class_of[way][i] = found->count[at];
    }
}

void irm_degrees_read(irm_nested *state)
{
  sum_degrees(NULL, state);
  number_classes(state, &state->counts); /* which has no other use now */
}

/* Links that are drawn change degrees: then there are as many classes as nodes at most, and counts are hashed. */
weft_status irm_degrees_make(weft_ctx *poll, weft_arena *arena, irm_nested *state)
{
  weft_status st = WEFT_OK;
  const int grows = irm_has_missing(state->graph);
  const size_t most = (size_t) state->n * (size_t) (1 + state->directed);
  irm_degree_counts found = { .size = 64 };
  weft_arena mem = weft_arena_begin(poll);
  WEFT_TAKE(state->degree[0], arena, (size_t) state->n);
  state->degree[1] = state->degree[0];
  if (state->directed) WEFT_TAKE(state->degree[1], arena, (size_t) state->n);
  WEFT_TRY(sum_degrees(poll, state));
  for (int way = 0; way <= state->directed; way++) WEFT_TAKE(state->class_of[way], arena, (size_t) state->n);
  while (found.size < 4 * most) found.size *= 2;
  WEFT_TAKE(found.key, &mem, found.size);
  WEFT_TAKE(found.count, &mem, found.size);
  number_classes(state, &found);
  const size_t classes = grows ? most : (size_t) state->classes;
  /* a plain table, where it takes no more memory */
  state->counts.size = (size_t) state->level[0].k * classes;
  if (grows || state->counts.size > 3 * found.size) {
    state->counts.size = found.size;
    WEFT_TAKE(state->counts.key, arena, found.size);
  }
  WEFT_TAKE(state->counts.count, arena, state->counts.size);
  WEFT_TAKE0(state->class_count, arena, classes);
  WEFT_TAKE(state->class_touched, arena, classes);
done:
  weft_arena_end(&mem);
  return st;
}
