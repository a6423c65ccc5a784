/* Links between groups; see links.h. */
#include <string.h>
#include "core/call/parallel.h"
#include "irm/cpu/nested/links.h"

/* Ends of links between two polls, and nodes in a thread's piece of work. */
#define POLL_LINKS 5e7
enum { PIECE = 1024 };

static void add_links(irm_nested *state, irm_level *level, int32_t home, int32_t goal, int64_t x)
{
  level->e[0][(int64_t) home * level->k + goal] += x;
  if (state->directed) level->e[1][(int64_t) goal * level->k + home] += x;
}

static void clear_links(irm_nested *state, irm_level *level)
{
  for (int way = 0; way <= state->directed; way++)
    memset(level->e[way], 0, (size_t) level->k * (size_t) level->k * sizeof(int64_t));
}

void irm_links_sum(irm_nested *state, irm_level *level)
{
  for (int way = 0; way <= state->directed; way++)
    for (int32_t home = 0; home < level->k; home++) {
      int64_t sum = 0;
      for (int32_t goal = 0; goal < level->k && level->size[home]; goal++)
        sum += level->e[way][(int64_t) home * level->k + goal];
      level->sum[way][home] = sum;
    }
}

void irm_links_lift(irm_nested *state, int l)
{
  irm_level *above = &state->level[l];
  const irm_level *below = above - 1;
  clear_links(state, above);
  for (int32_t home = 0; home < below->k; home++)
    for (int32_t goal = 0; goal < below->k && below->size[home]; goal++) {
      const int64_t x = below->e[0][(int64_t) home * below->k + goal];
      if (x) add_links(state, above, above->b[home], above->b[goal], x);
    }
  irm_links_sum(state, above);
}

int irm_links_tables(irm_nested *state, int32_t *side)
{
  const irm_level *level = &state->level[0];
  const int64_t each = (int64_t) (*side = level->count[0] + level->count[1]) * *side;
  const int tables = state->room / each < state->threads ? (int) (state->room / each) : state->threads;
  memset(state->tables, 0, (size_t) (tables * each) * sizeof *state->tables);
  return tables;
}

/* Rows by threads; row and column numbers become groups. */
void irm_links_add(irm_nested *state, int tables, int32_t side)
{
  irm_level *level = &state->level[0];
  const int64_t each = (int64_t) side * side;
  WEFT_PARALLEL_FOR(weft_threads_worth(state->threads, (double) (tables * each)), static)
  for (int32_t a = 0; a < side; a++) {
    const int32_t home = irm_active(level, a >= level->count[0])[a - (a >= level->count[0] ? level->count[0] : 0)];
    for (int32_t c = 0; c < side; c++) {
      const int32_t goal = irm_active(level, c >= level->count[0])[c - (c >= level->count[0] ? level->count[0] : 0)];
      int64_t sum = 0;
      for (int table = 0; table < tables; table++) sum += state->tables[table * each + (int64_t) a * side + c];
      level->e[0][(int64_t) home * level->k + goal] += sum;
      if (state->directed) level->e[1][(int64_t) goal * level->k + home] += sum;
    }
  }
}

/* Adds the links of rows first .. last - 1 to a table of side x side. */
static void count_rows(const irm_nested *state, const int32_t *labels, int64_t first, int64_t last, int64_t side,
                       int64_t *table)
{
  const weft_irm_graph *graph = state->graph;
  const weft_irm_lists *lists = &graph->links[0];
  const int32_t *others = labels + (state->bipartite ? graph->n[0] : 0);
  for (int64_t i = first; i < last; i++) {
    int64_t *row = table + labels[i] * side;
    for (int64_t j = lists->start[i]; j < lists->start[i + 1]; j++) {
      const int64_t x = lists->weight ? lists->weight[j] : 1;
      const int32_t goal = others[lists->to[j]];
      row[goal] += x;
      if (state->bipartite) table[goal * side + labels[i]] += x;
    }
    if (graph->self_weight) row[labels[i]] += (state->directed ? 1 : 2) * (int64_t) graph->self_weight[i];
  }
}

/* Small graphs count into the links themselves, large ones into tables. */
weft_status irm_links_count(weft_ctx *poll, irm_nested *state)
{
  weft_status st = WEFT_OK;
  irm_level *level = &state->level[0];
  const int64_t n = state->graph->n[0], *start = state->graph->links[0].start;
  int32_t side = level->k;
  const int tables = state->views ? irm_links_tables(state, &side) : 1;
  const int32_t *labels = state->views ? state->goes : level->b;
  clear_links(state, level);
  for (int64_t i = 0; i < state->n && state->views; i++) state->goes[i] = irm_group_place(level, level->b[i]);
  for (int64_t first = 0, last = 0; first < n; first = last) {
    while (last < n && (double) (start[last] - start[first]) < POLL_LINKS) last++;
    WEFT_PARALLEL_FOR(weft_threads_worth(tables, (double) (start[last] - start[first])), dynamic)
    for (int64_t at = first; at < last; at += PIECE)
      count_rows(state, labels, at, at + PIECE < last ? at + PIECE : last, side,
                 state->views ? state->tables + WEFT_THREAD() * (int64_t) side * side : level->e[0]);
    if (poll) WEFT_TRY(weft_poll(poll, (double) last, (double) n));
  }
  if (state->views) irm_links_add(state, tables, side);
  for (int32_t home = 0; home < level->k && state->directed && !state->views; home++)
    for (int32_t goal = 0; goal < level->k && level->size[home]; goal++)
      level->e[1][(int64_t) goal * level->k + home] = level->e[0][(int64_t) home * level->k + goal];
  irm_links_sum(state, level);
done:
  return st;
}
