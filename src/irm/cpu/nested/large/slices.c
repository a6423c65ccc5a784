/* Visits of the nodes of a large graph, downhill, by threads.
 *
 * A visit takes the nodes in SLICES slices, every SLICES-th node in each. All nodes of a slice look from the same state
 * where they would go: each tries the groups of TRIES draws (or its group's twin), and takes the best. Then all go at
 * once. Threads count the links that this changes in tables of their own. All counts are whole numbers, which add up
 * to the same in any order. A group never loses its last node. */
#include <string.h>
#include "core/call/parallel.h"
#include "irm/cpu/nested/changes.h"
#include "irm/cpu/nested/degrees.h"
#include "irm/cpu/nested/links.h"
#include "irm/cpu/nested/lists.h"
#include "irm/cpu/nested/moves.h"
#include "irm/cpu/nested/large/slices.h"
#include "irm/cpu/nested/terms.h"

/* Slices of a visit; nodes of a graph that is large enough; draws of a node, and groups that it tries. */
enum { SLICES = 16, LARGE_NODES = 65536, DRAWS = 16, TRIES = 4 };
/* Links of a node, on average: with fewer, parting groups in two finds worse ones (10^5 nodes, 3 x 10^5 links, 20
 * groups: NMI .73, a start from single nodes .77). */
enum { MIN_DEGREE = 10 };
/* Numbers in all tables, unless one takes more; ends of links between two polls. */
enum { TABLES = 1 << 23, POLL_ENDS = 10000000 };

/* As many tables as threads, unless they would be larger than TABLES; and a view for each thread. */
weft_status irm_slices_make(weft_arena *arena, irm_nested *state, int threads)
{
  weft_status st = WEFT_OK;
  const int64_t each = (int64_t) state->level[0].k * state->level[0].k;
  if (state->n < LARGE_NODES || state->ends * (1 + state->directed) < MIN_DEGREE * state->n) return st;
  state->threads = threads;
  state->room = each > TABLES ? each : threads * each < TABLES ? threads * each : TABLES;
  WEFT_TAKE(state->tables, arena, (size_t) state->room);
  WEFT_TAKE(state->goes, arena, (size_t) state->n);
  WEFT_TAKE0(state->views, arena, (size_t) threads);
  for (int v = 0; v < threads; v++)
    for (int l = 0; l < IRM_LEVELS; l++) {
      const size_t k = (size_t) state->level[l].k;
      WEFT_TAKE(state->views[v].level[l].touched, arena, k);
      for (int way = 0; way < 2; way++) WEFT_TAKE0(state->views[v].level[l].w[way], arena, k);
    }
done:
  return st;
}

/* The state as it is now, for view `v`. */
static irm_nested *look(irm_nested *state, int v)
{
  irm_nested *view = &state->views[v];
  irm_level own[IRM_LEVELS];
  memcpy(own, view->level, sizeof own);
  *view = *state;
  for (int l = 0; l < IRM_LEVELS; l++) {
    irm_level *level = &view->level[l];
    level->touched = own[l].touched;
    level->touches = own[l].nodes ? own[l].touches : 0;
    for (int way = 0; way < 2; way++) level->w[way] = own[l].w[way];
  }
  return view;
}

/* ---- draws ---- */

/* Groups that a node with links to those of this type may be in. */
static int other_type(const irm_nested *state, int type) { return state->bipartite && !type; }

/* For each group, the links with the groups that a node linked with it may be in, summed up in their order. */
static void sum_up_links(irm_nested *state)
{
  const irm_level *level = &state->level[0];
  const int32_t side = level->count[0] + level->count[1];
  WEFT_PARALLEL_FOR(weft_threads_worth(state->threads, (double) side * side), static)
  for (int32_t a = 0; a < side; a++) {
    const int type = a >= level->count[0], to = other_type(state, type);
    const int32_t near = irm_active(level, type)[a - (type ? level->count[0] : 0)];
    int64_t sum = 0, *row = state->tables + (int64_t) a * side;
    for (int32_t one = 0; one < level->count[to]; one++) {
      const int64_t at = (int64_t) near * level->k + irm_active(level, to)[one];
      row[one] = sum += level->e[0][at] + (state->directed ? level->e[1][at] : 0);
    }
  }
}

/* As irm_nested_draw_group(), from these sums. `total`: links of what was taken. */
static int32_t draw(irm_nested *view, int type, int64_t total)
{
  const irm_level *level = &view->level[0];
  const int32_t *active = irm_active(level, type), groups = level->count[type];
  int32_t near = -1, low = 0, high = groups - 1;
  if (!total) return active[irm_nested_below(view, groups)];
  int64_t at = irm_nested_below(view, total);
  for (int32_t one = 0; at >= 0; one++) {
    near = level->touched[one];
    at -= level->w[0][near] + level->w[1][near];
  }
  const int64_t *row = view->tables + (int64_t) irm_group_place(level, near) * (level->count[0] + level->count[1]);
  at = irm_nested_below(view, level->sum[0][near] + (view->directed ? level->sum[1][near] : 0) + groups);
  if (at < groups) return active[at];
  at -= groups;
  while (low < high) {
    const int32_t middle = low + (high - low) / 2;
    if (row[middle] > at)
      high = middle;
    else
      low = middle + 1;
  }
  return active[low];
}

/* ---- where nodes go ---- */

/* Change of the links to other groups than s when what was taken leaves its group r, or comes to it. */
static double leave_links(const irm_nested *view, int32_t home, int32_t goal)
{
  const irm_level *level = &view->level[0];
  double sum = 0;
  for (int way = 0; way <= view->directed; way++) {
    const int64_t *e = level->e[way] + (int64_t) home * level->k, *w = level->w[way];
    for (int32_t one = 0; one < level->touches; one++) {
      const int32_t near = level->touched[one];
      if (near != home && near != goal && w[near])
        sum += irm_log_factorial(view, e[near]) - irm_log_factorial(view, e[near] - w[near]);
    }
  }
  return sum;
}

static double come_links(const irm_nested *view, int32_t home, int32_t goal)
{
  const irm_level *level = &view->level[0];
  double sum = 0;
  for (int way = 0; way <= view->directed; way++) {
    const int64_t *e = level->e[way] + (int64_t) goal * level->k, *w = level->w[way];
    for (int32_t one = 0; one < level->touches; one++) {
      const int32_t near = level->touched[one];
      if (near != home && near != goal && w[near])
        sum += irm_log_factorial(view, e[near]) - irm_log_factorial(view, e[near] + w[near]);
    }
  }
  return sum;
}

/* The links with s that a node leaving r takes along, as leave_links() counts them. */
static double leave_one(const irm_nested *view, int32_t home, int32_t goal)
{
  const irm_level *level = &view->level[0];
  double sum = 0;
  for (int way = 0; way <= view->directed; way++) {
    const int64_t x = level->e[way][(int64_t) home * level->k + goal], w = level->w[way][goal];
    if (w) sum += irm_log_factorial(view, x) - irm_log_factorial(view, x - w);
  }
  return sum;
}

/* The group to which node i goes: to another one, or (with `twin`) to its group's twin. */
static int32_t best_group(irm_nested *view, int32_t i, const int32_t *twin, uint64_t start)
{
  const irm_level *level = &view->level[0];
  const int32_t home = level->b[i];
  const int type = irm_type_of(level, home);
  int32_t tried[TRIES], best = home;
  double least = -1e-7, leave = 0;
  int64_t total = 0;
  if (level->size[home] == 1 || level->count[type] == 1 || (twin && twin[home] == home)) return home;
  view->counter = start;
  irm_nested_take(view, 0, i);
  for (int32_t one = 0; one < level->touches; one++)
    total += level->w[0][level->touched[one]] + level->w[1][level->touched[one]];
  for (int one = 0, left = 0; one < (twin ? 1 : TRIES); one++) {
    int before = 0;
    const int32_t goal = tried[one] = twin ? twin[home] : draw(view, type, total);
    while (tried[before] != goal) before++;
    if (goal == home || before < one) continue;
    if (!left++) leave = leave_links(view, home, home) + irm_leave_change(view, i, home);
    const double by =
        leave - leave_one(view, home, goal) + come_links(view, home, goal) + irm_come_change(view, i, home, goal);
    if (by >= least) continue;
    least = by;
    best = goal;
  }
  return best;
}

/* Nodes first, first + SLICES, ... from the from-th on, up to the until-th. */
static void look_where(irm_nested *state, const int32_t *twin, int64_t first, int64_t from, int64_t until,
                       uint64_t start)
{
  const int64_t piece = 64;
  WEFT_PARALLEL(weft_threads_worth(state->threads, 1e3 * (double) (until - from)))
  {
    irm_nested *view = look(state, WEFT_THREAD());
    WEFT_FOR(dynamic)
    for (int64_t some = from; some < until; some += piece)
      for (int64_t one = some; one < until && one < some + piece; one++) {
        const int64_t i = first + SLICES * one;
        state->goes[i] = best_group(view, (int32_t) i, twin, start + DRAWS * (uint64_t) one);
      }
  }
}

/* ---- going there ---- */

/* Changes of links with the neighbours in a list, d: 0 those that i is linked to, 1 (directed) that are linked to it.
 * Those that go themselves count their own ends. */
static void count_moved(const irm_nested *state, const weft_irm_lists *lists, int64_t at, int64_t offset, int way,
                        int32_t home, int32_t goal, int32_t side, int64_t *table)
{
  const irm_level *level = &state->level[0];
  const int64_t from = (int64_t) irm_group_place(level, home) * side,
                to = (int64_t) irm_group_place(level, goal) * side;
  for (int64_t j = lists->start[at]; j < lists->start[at + 1]; j++) {
    const int64_t x = lists->weight ? lists->weight[j] : 1, other = offset + lists->to[j];
    const int32_t now = level->b[other], later = state->goes[other];
    const int64_t near = irm_group_place(level, now), v = now == later ? near : irm_group_place(level, later);
    if (!way) {
      table[from + near] -= x;
      table[to + v] += x;
    }
    if (now != later || (!way && state->directed)) continue;
    table[near * side + from / side] -= x;
    table[near * side + to / side] += x;
  }
}

static void count_moved_node(const irm_nested *state, int64_t i, int32_t side, int64_t *table)
{
  const weft_irm_graph *graph = state->graph;
  const irm_level *level = &state->level[0];
  const int32_t home = level->b[i], goal = state->goes[i];
  if (state->bipartite && i >= graph->n[0])
    count_moved(state, &graph->links[1], i - graph->n[0], 0, 0, home, goal, side, table);
  else
    count_moved(state, &graph->links[0], i, state->bipartite ? graph->n[0] : 0, 0, home, goal, side, table);
  if (state->directed) count_moved(state, &graph->links[1], i, 0, 1, home, goal, side, table);
  if (!graph->self_weight) return;
  const int64_t self = (state->directed ? 1 : 2) * (int64_t) graph->self_weight[i];
  table[(int64_t) irm_group_place(level, home) * (side + 1)] -= self;
  table[(int64_t) irm_group_place(level, goal) * (side + 1)] += self;
}

/* Sizes, ends and degrees of the groups that the nodes of a slice leave and come to. The number that go. */
static int64_t move_sizes(irm_nested *state, int64_t first)
{
  irm_level *level = &state->level[0];
  int64_t moved = 0;
  for (int64_t i = first; i < state->n; i += SLICES) {
    const int32_t home = level->b[i], goal = state->goes[i];
    if (home == goal) continue;
    if (level->size[home] == 1) {
      state->goes[i] = home;
      continue;
    }
    level->size[home]--;
    level->size[goal]++;
    for (int way = 0; way <= state->directed; way++) {
      level->sum[way][home] -= state->degree[way][i];
      level->sum[way][goal] += state->degree[way][i];
    }
    moved++;
  }
  return moved;
}

/* Moves the nodes of a slice to where they go. */
static weft_status move_slice(weft_ctx *poll, irm_nested *state, int64_t first, int64_t *moved)
{
  weft_status st = WEFT_OK;
  irm_level *level = &state->level[0];
  int32_t side;
  const int64_t here = move_sizes(state, first), step = SLICES * (int64_t) 256;
  *moved += here;
  if (!here) return st;
  const int tables = irm_links_tables(state, &side);
  WEFT_PARALLEL_FOR(weft_threads_worth(tables, 1e3 * (double) here), dynamic)
  for (int64_t some = first; some < state->n; some += step)
    for (int64_t i = some; i < state->n && i < some + step; i += SLICES)
      if (level->b[i] != state->goes[i])
        count_moved_node(state, i, side, state->tables + WEFT_THREAD() * (int64_t) side * side);
  irm_links_add(state, tables, side);
  for (int64_t i = first; i < state->n; i += SLICES) {
    const int32_t home = level->b[i];
    if (home == state->goes[i]) continue;
    level->b[i] = state->goes[i];
    irm_degrees_move(state, (int32_t) i, home, state->goes[i]);
  }
  for (int l = 1; l <= state->top && (state->level[l].count[0] > 1 || state->level[l].count[1] > 1); l++)
    irm_links_lift(state, l);
  if (poll) WEFT_TRY(weft_poll(poll, 0, 1));
done:
  return st;
}

/* The members of each group, in the order of the nodes. */
static void list_members(irm_level *level)
{
  for (int32_t home = 0; home < level->k; home++) level->first[home] = -1;
  for (int32_t i = level->nodes - 1; i >= 0; i--) irm_link_member(level, i, level->b[i]);
}

/* The slices come in their order, from a random one on; lists of members are made anew in the end. */
weft_status irm_slices_visit(weft_ctx *poll, irm_nested *state, const int32_t *twin, int64_t *moved)
{
  weft_status st = WEFT_OK;
  const int64_t mean = state->ends / state->n + 20, chunk = POLL_ENDS / mean + 1;
  const int turn = (int) irm_nested_below(state, SLICES);
  memcpy(state->goes, state->level[0].b, (size_t) state->n * sizeof *state->goes);
  for (int slice = 0; slice < SLICES; slice++) {
    const int64_t first = (slice + turn) % SLICES, count = (state->n - first + SLICES - 1) / SLICES;
    const uint64_t start = state->counter;
    if (!twin) sum_up_links(state);
    for (int64_t from = 0; from < count; from += chunk) {
      look_where(state, twin, first, from, from + chunk < count ? from + chunk : count, start);
      if (poll) WEFT_TRY(weft_poll(poll, (double) first, (double) state->n));
    }
    state->counter = start + DRAWS * (uint64_t) count;
    WEFT_TRY(move_slice(poll, state, first, moved));
  }
  list_members(&state->level[0]);
done:
  return st;
}
