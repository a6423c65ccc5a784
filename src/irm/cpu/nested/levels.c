/* The state of nested groups; see levels.h. */
#include <string.h>
#include "irm/cpu/nested/degrees.h"
#include "irm/cpu/nested/levels.h"
#include "irm/cpu/nested/links.h"
#include "irm/cpu/nested/lists.h"
#include "irm/cpu/nested/terms.h"

/* ---- making ---- */

int64_t weft_irm_nested_words(const int32_t k[2])
{
  int64_t words = 0;
  int32_t nodes = k[0] + k[1], first = k[0], second = k[1];
  for (int l = 1; l < IRM_LEVELS; l++) {
    words += nodes;
    if (l > 1) first = (first + 1) / 2;
    if (l > 1) second = (second + 1) / 2;
    nodes = first + second;
  }
  return words;
}

/* Room for a level of `nodes` nodes with first + second groups. */
static weft_status make_level(weft_arena *arena, irm_level *level, int64_t nodes, int32_t first, int32_t second,
                              int directed)
{
  weft_status st = WEFT_OK;
  const size_t k = (size_t) first + (size_t) second;
  level->nodes = (int32_t) nodes;
  level->k = (int32_t) k;
  level->split = first;
  WEFT_TAKE(level->b, arena, (size_t) nodes);
  WEFT_TAKE(level->next, arena, (size_t) nodes);
  WEFT_TAKE(level->before, arena, (size_t) nodes);
  WEFT_TAKE(level->first, arena, k);
  WEFT_TAKE(level->size, arena, k);
  WEFT_TAKE(level->active, arena, k);
  WEFT_TAKE(level->place, arena, k);
  WEFT_TAKE(level->spare, arena, k);
  WEFT_TAKE(level->touched, arena, k);
  for (int d = 0; d < 2; d++) {
    WEFT_TAKE0(level->w[d], arena, k);
    if (d && !directed) {
      level->e[1] = level->e[0];
      level->sum[1] = level->sum[0];
      continue;
    }
    WEFT_TAKE(level->e[d], arena, k * k);
    WEFT_TAKE(level->sum[d], arena, k);
  }
done:
  return st;
}

static void count_factorials(irm_nested *t)
{
  for (int64_t i = 0; i < t->n && t->degrees; i++)
    for (int d = 0; d <= t->directed; d++) t->constant -= irm_log_factorial(t, t->degree[d][i]);
}

void irm_nested_read_degrees(irm_nested *t)
{
  irm_degrees_read(t);
  count_factorials(t);
}

/* Each level from the second on has room for half as many groups as the one below. */
weft_status irm_nested_make(weft_ctx *ctx, weft_arena *arena, const weft_irm_graph *graph, int degrees,
                            const int32_t k[2], uint64_t key, uint32_t chain, irm_nested *out)
{
  weft_status st = WEFT_OK;
  irm_nested *t = out;
  int32_t first = k[0], second = k[1];
  memset(t, 0, sizeof *t);
  t->graph = graph;
  t->directed = graph->type == WEFT_IRM_DIRECTED;
  t->bipartite = graph->type == WEFT_IRM_BIPARTITE;
  t->degrees = degrees;
  t->top = IRM_LEVELS - 1;
  t->n = graph->n[0] + (t->bipartite ? graph->n[1] : 0);
  t->rng = (weft_rng){ key, chain };
  for (int l = 0; l < IRM_LEVELS; l++) {
    const int64_t nodes = l ? t->level[l - 1].k : t->n;
    if (l > 1) first = (first + 1) / 2;
    if (l > 1) second = (second + 1) / 2;
    if (l == t->top)
      WEFT_TRY(make_level(arena, &t->level[l], nodes, 1, t->bipartite, t->directed));
    else
      WEFT_TRY(make_level(arena, &t->level[l], nodes, first, second, t->directed));
  }
  WEFT_TRY(irm_degrees_make(ctx, arena, t));
  WEFT_TAKE(t->order, arena, (size_t) t->n + (size_t) t->level[0].k);
  WEFT_TAKE(t->side, arena, (size_t) t->n + (size_t) t->level[0].k);
  WEFT_TRY(irm_terms_make(arena, t));
  count_factorials(t);
done:
  return st;
}

/* Sizes and lists of a level from its labels. */
static void list_level(irm_nested *t, int l)
{
  irm_level *level = &t->level[l];
  memset(level->size, 0, (size_t) level->k * sizeof *level->size);
  level->present[0] = level->present[1] = level->count[0] = level->count[1] = 0;
  level->spares[0] = level->spares[1] = 0;
  for (int32_t r = 0; r < level->k; r++) level->first[r] = -1;
  for (int32_t i = level->nodes - 1; i >= 0; i--) {
    if (level->b[i] < 0) continue;
    irm_link_member(level, i, level->b[i]);
    level->size[level->b[i]]++;
    level->present[irm_node_type(t, l, i)]++;
  }
  for (int32_t r = 0; r < level->k; r++) {
    level->place[r] = -1;
    if (level->size[r]) irm_enlist(level, r);
  }
  for (int32_t r = level->k - 1; r >= 0; r--)
    if (!level->size[r])
      level->spare[(irm_type_of(level, r) ? level->split : 0) + level->spares[irm_type_of(level, r)]++] = r;
}

weft_status irm_nested_set(weft_ctx *poll, irm_nested *t, int32_t *const z[2], const int32_t *upper)
{
  weft_status st = WEFT_OK;
  irm_level *level = t->level;
  for (int64_t i = 0; i < t->graph->n[0]; i++) level->b[i] = z[0][i];
  for (int64_t j = 0; t->bipartite && j < t->graph->n[1]; j++) level->b[t->graph->n[0] + j] = level->split + z[1][j];
  list_level(t, 0);
  WEFT_TRY(irm_links_count(poll, t));
  irm_degrees_count(t);
  irm_nested_set_upper(t, upper);
done:
  return st;
}

/* A label that does not fit becomes the first of its type. */
void irm_nested_set_upper(irm_nested *t, const int32_t *upper)
{
  for (int l = 1; l <= t->top; l++) {
    irm_level *above = &t->level[l];
    const irm_level *below = above - 1;
    for (int32_t i = 0; i < above->nodes; i++) {
      const int type = irm_type_of(below, i);
      const int fits =
          upper && l < t->top && upper[i] >= 0 && upper[i] < above->k && irm_type_of(above, upper[i]) == type;
      above->b[i] = !below->size[i] ? -1 : fits ? upper[i] : type ? above->split : 0;
    }
    if (upper) upper += above->nodes;
    list_level(t, l);
    irm_links_lift(t, l);
  }
}

void irm_nested_get(const irm_nested *t, int32_t *const z[2], int32_t *upper)
{
  const irm_level *level = t->level;
  for (int64_t i = 0; i < t->graph->n[0]; i++) z[0][i] = level->b[i];
  for (int64_t j = 0; t->bipartite && j < t->graph->n[1]; j++) z[1][j] = level->b[t->graph->n[0] + j] - level->split;
  for (int l = 1; l <= t->top && upper; l++) {
    const irm_level *above = &t->level[l];
    for (int32_t i = 0; i < above->nodes; i++) upper[i] = above->b[i] < 0 ? 0 : above->b[i];
    upper += above->nodes;
  }
}

/* ---- the description length ---- */

static double level_length(const irm_nested *t, int l)
{
  const irm_level *level = &t->level[l];
  double sum = 0;
  for (int type = 0; type < 2; type++) {
    sum += irm_partition_term(t, level->present[type], level->count[type]);
    for (int32_t a = 0; a < level->count[type]; a++) {
      const int32_t r = irm_active(level, type)[a];
      sum -= irm_log_factorial(t, level->size[r]);
      if (!l) sum += irm_group_term(t, level->sum[0][r], level->sum[1][r], level->size[r]);
      for (int32_t s = t->directed ? 0 : r; s < level->k; s++)
        sum += irm_link_term(t, l, r == s, level->e[0][(int64_t) r * level->k + s], level->size[r], level->size[s]);
    }
  }
  return sum;
}

double irm_nested_length_above(const irm_nested *t, int l)
{
  double sum = 0;
  for (; l <= t->top; l++) sum += level_length(t, l);
  return sum;
}

double irm_nested_length(const irm_nested *t)
{
  const irm_level *level = &t->level[0];
  const irm_degree_counts *counts = &t->counts;
  double sum = t->constant + irm_nested_length_above(t, 0);
  for (size_t at = 0; at < counts->size && t->degrees && counts->key; at++)
    if (counts->key[at] != UINT64_MAX) sum -= irm_log_factorial(t, counts->count[at]);
  for (int32_t r = 0; r < level->k && t->degrees && !counts->key; r++)
    for (int64_t c = 0; c < t->classes && level->size[r]; c++)
      sum -= irm_log_factorial(t, counts->count[r * t->classes + c]);
  return sum;
}
