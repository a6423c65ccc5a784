/* Tiles of pairs; see pair_tiles.h. */
/* Build: shared. */
#include <math.h>
#include <string.h>
#include "mi/search/both/pair_tiles.h"

#define BOTH_WORDS 65536 /* counts of a tile: 256 KB, in the second-level cache */
#define MIN_ROWS 4       /* but counting takes four attributes at once, and half as fast two */

/* ---- tilings ---- */

/* Popcounts cost about half a nanosecond per word, a table's cells one nanosecond each; from codes, every row costs
 * about four, and a cell, of which there are at most as many as rows, six. */
static int better_from_codes(const weft_mi_pack *x, const weft_mi_group *group_a, const weft_mi_group *group_b)
{
  if (group_a->coded || group_b->coded) return 1;
  const double planes = (double) group_a->shape.planes * group_b->shape.planes;
  const double cells = (double) group_a->shape.levels * group_b->shape.levels * x->classes;
  return planes * (0.5 * (double) x->words + x->classes) + cells >
         64 + 4.2 * (double) x->n + 6 * fmin(cells, (double) x->n);
}

static int wanted(const weft_mi_group *group_a, const weft_mi_group *group_b)
{
  return (group_a->side & 1 && group_b->side & 2) || (group_a->side & 2 && group_b->side & 1);
}

/* Makes a panel for every two groups that have pairs to search, and cuts it into tiles whose counts stay in the cache.
 * Also finds how much room a tile takes at most. */
weft_status weft_mi_tiling_make(weft_arena *mem, const weft_mi_pack *x, const weft_mi_pack *y, weft_mi_tiling *out)
{
  weft_status st = WEFT_OK;
  const weft_mi_pack *other = y ? y : x;
  memset(out, 0, sizeof *out);
  out->x = x;
  out->y = other;
  WEFT_TAKE(out->panels, mem, x->group_count * other->group_count);
  for (size_t a = 0; a < x->group_count; a++)
    for (size_t b = y ? 0 : a; b < other->group_count; b++) {
      const weft_mi_group *group_a = &x->groups[a], *group_b = &other->groups[b];
      if (!y && !wanted(group_a, group_b)) continue;
      weft_mi_panel *panel = &out->panels[out->panel_count++];
      const size_t planes = (size_t) x->classes * group_a->shape.planes * group_b->shape.planes;
      size_t cells = (size_t) x->classes * group_a->shape.levels * group_b->shape.levels, side = WEFT_MI_TILE;
      memset(panel, 0, sizeof *panel);
      panel->group_a = group_a;
      panel->group_b = group_b;
      panel->same = group_a == group_b;
      panel->coded = better_from_codes(x, group_a, group_b);
      panel->columns = panel->rows = WEFT_MI_TILE;
      if (panel->coded) {
        while (side > 2 && side * x->n > (size_t) 1 << 22) side /= 2;
        panel->rows = panel->columns = side;
        if (2 * side > out->codes) out->codes = 2 * side;
      } else {
        while (panel->rows > MIN_ROWS && planes * panel->rows * WEFT_MI_TILE > BOTH_WORDS) panel->rows /= 2;
        if (planes * panel->rows * WEFT_MI_TILE > out->both) out->both = planes * panel->rows * WEFT_MI_TILE;
        if (cells > out->cells) out->cells = cells;
      }
      panel->across = (group_b->count + panel->columns - 1) / panel->columns;
      panel->first = out->tiles;
      out->tiles += panel->across * ((group_a->count + panel->rows - 1) / panel->rows);
    }
done:
  return st;
}

/* Finds tile `index` of all panels; 0 where it has no pair, below the diagonal of a group with itself. */
int weft_mi_tile_at(const weft_mi_tiling *tiling, size_t index, weft_mi_tile *out)
{
  size_t lo = 0, hi = tiling->panel_count;
  while (hi - lo > 1) {
    size_t mid = (lo + hi) / 2;
    if (tiling->panels[mid].first <= index)
      lo = mid;
    else
      hi = mid;
  }
  const weft_mi_panel *p = &tiling->panels[lo];
  index -= p->first;
  out->panel = p;
  out->i0 = index / p->across * p->rows;
  out->j0 = index % p->across * p->columns;
  out->ni = p->group_a->count - out->i0 < p->rows ? p->group_a->count - out->i0 : p->rows;
  out->nj = p->group_b->count - out->j0 < p->columns ? p->group_b->count - out->j0 : p->columns;
  return !p->same || out->j0 + out->nj > out->i0;
}

/* Counts a tile: for each class and pair of planes, the rows that have both bits. The result points into `both` and the
 * packs. */
void weft_mi_tile_count(const weft_mi_tiling *tiling, const weft_mi_tile *tile, uint32_t *both, weft_mi_counts *counts)
{
  const weft_mi_pack *x = tiling->x, *y = tiling->y;
  const weft_mi_group *group_a = tile->panel->group_a, *group_b = tile->panel->group_b;
  const weft_bits_ops *ops = weft_bits();
  counts->a = group_a->shape;
  counts->b = group_b->shape;
  counts->vary = counts->a.missing || counts->b.missing;
  counts->parts = x->classes;
  counts->both = both;
  counts->ld = WEFT_MI_TILE;
  counts->stride = tile->panel->rows * WEFT_MI_TILE;
  counts->margin_a = x->margins + group_a->plane0 + tile->i0;
  counts->margin_b = y->margins + group_b->plane0 + tile->j0;
  counts->part_a = x->plane_rows;
  counts->part_b = y->plane_rows;
  counts->plane_a = group_a->count;
  counts->plane_b = group_b->count;
  counts->totals = x->class_rows;
  for (uint32_t c = 0; c < x->classes; c++)
    for (uint32_t pa = 0; pa < group_a->shape.planes; pa++)
      for (uint32_t pb = 0; pb < group_b->shape.planes; pb++, both += counts->stride)
        ops->popcount_tile(x->bits + (group_a->plane0 + pa * group_a->count + tile->i0) * x->words + x->class_word[c],
                           tile->ni, x->words,
                           y->bits + (group_b->plane0 + pb * group_b->count + tile->j0) * y->words + y->class_word[c],
                           tile->nj, y->words, x->class_word[c + 1] - x->class_word[c], both, WEFT_MI_TILE);
}

/* ---- tables ---- */

int64_t weft_mi_joint(const weft_mi_pack *pack, const uint32_t *cells, uint32_t groups, size_t area)
{
  weft_mi_by_class all = weft_mi_by_class_of(&pack->f, pack->per);
  for (uint32_t group = 0; group < groups; group++, cells += pack->classes * area)
    for (size_t k = 0; k < area; k++)
      for (uint32_t c = 0; c < pack->classes; c++) weft_mi_by_class_add(&all, cells[c * area + k]);
  const int64_t sum = all.sum - pack->class_fixed;
  return sum > 0 ? sum : 0;
}

/* Information about the class of those attributes of a table that the mask names (bit 0: the group, 1: a, 2: b), in
 * fixed point. The others are summed over in `work`; *n: the rows of the table. */
int64_t weft_mi_of_table(const weft_mi_pack *pack, const uint32_t *cells, uint32_t groups, uint32_t la, uint32_t lb,
                         int mask, uint32_t *work, uint64_t *n)
{
  const uint32_t classes = pack->classes, dg = mask & 1 ? groups : 1, da = mask & 2 ? la : 1, db = mask & 4 ? lb : 1,
                 area = dg * da * db;
  weft_mi_by_class levels = weft_mi_by_class_of(&pack->f, pack->per), all = levels;
  memset(work, 0, (size_t) area * classes * sizeof *work);
  for (uint32_t group = 0; group < groups; group++)
    for (uint32_t c = 0; c < classes; c++)
      for (uint32_t x = 0; x < la; x++)
        for (uint32_t y = 0; y < lb; y++)
          work[(((mask & 1 ? group : 0) * da + (mask & 2 ? x : 0)) * db + (mask & 4 ? y : 0)) * classes + c] +=
              *cells++;
  for (size_t k = 0; k < (size_t) area * classes; k++) weft_mi_by_class_add(&levels, work[k]);
  for (uint32_t c = 0; c < classes; c++) {
    uint64_t rows = 0;
    for (uint32_t k = 0; k < area; k++) rows += work[(size_t) k * classes + c];
    weft_mi_by_class_add(&all, rows);
  }
  *n = all.n;
  return levels.sum > all.sum ? levels.sum - all.sum : 0;
}

/* What every complete attribute says about the class by itself, in fixed point, from its margins; 0 for those with
 * codes or missing values. */
void weft_mi_marginals(const weft_mi_pack *pack, int64_t *out)
{
  for (size_t place = 0; place < pack->p; place++) {
    const weft_mi_group *group = &pack->groups[pack->group_of[place]];
    const uint32_t *margins = pack->margins + group->plane0 + (place - group->first);
    weft_mi_by_class levels = weft_mi_by_class_of(&pack->f, pack->per);
    out[place] = 0;
    if (group->coded || group->shape.missing) continue;
    for (uint32_t q = 0; q <= group->shape.planes; q++)
      for (uint32_t c = 0; c < pack->classes; c++) {
        uint32_t k = pack->class_rows[c];
        if (q < group->shape.planes)
          k = margins[c * pack->plane_rows + q * group->count];
        else
          for (uint32_t p = 0; p < group->shape.planes; p++) k -= margins[c * pack->plane_rows + p * group->count];
        weft_mi_by_class_add(&levels, k);
      }
    if (levels.sum > pack->class_fixed) out[place] = levels.sum - pack->class_fixed;
  }
}

/* ---- keeping ---- */

weft_status weft_mi_keeper_begin(weft_ctx *ctx, weft_mi_keeper *k, size_t top, size_t possible)
{
  memset(k, 0, sizeof *k);
  k->ctx = *ctx;
  k->mem = weft_arena_begin(&k->ctx);
  k->bounded = top != SIZE_MAX;
  if (k->bounded) k->st = weft_topk_init(&k->best, &k->mem, top < possible ? top : possible);
  if (k->st != WEFT_OK) memcpy(ctx->message, k->ctx.message, sizeof ctx->message);
  return k->st;
}

/* Adds a tuple to the best k, or to a growing list where all are kept. When memory is short, k->st says so, and later
 * tuples are dropped. */
void weft_mi_keep(weft_mi_keeper *k, double score, uint64_t index)
{
  if (k->bounded) {
    weft_topk_push(&k->best, score, index);
    return;
  }
  if (k->st != WEFT_OK) return;
  if (k->count == k->capacity) {
    const size_t larger = k->capacity ? 2 * k->capacity : 1024;
    weft_scored *all = weft_arena_take(&k->mem, larger, sizeof *all);
    if (!all) {
      k->st = WEFT_ERR_MEMORY;
      return;
    }
    if (k->count) memcpy(all, k->all, k->count * sizeof *all);
    weft_arena_drop(&k->mem, k->all);
    k->all = all;
    k->capacity = larger;
  }
  k->all[k->count++] = (weft_scored){ score, index };
}

/* Joins what threads have kept into one sorted result, whose memory is from `mem`, and frees their lists. Passes on the
 * first error of a thread. */
weft_status weft_mi_keepers_end(weft_ctx *ctx, weft_mi_keeper *keepers, int threads, weft_arena *mem,
                                weft_mi_found *out)
{
  weft_status st = WEFT_OK;
  size_t total = 0;
  for (int thread = 0; thread < threads; thread++) {
    if (keepers[thread].st != WEFT_OK) {
      memcpy(ctx->message, keepers[thread].ctx.message, sizeof ctx->message);
      st = keepers[thread].st;
      goto done;
    }
    total += keepers[thread].count;
  }
  if (threads && keepers[0].bounded) {
    for (int thread = 1; thread < threads; thread++) weft_topk_merge(&keepers[0].best, &keepers[thread].best);
    out->count = weft_topk_sort(&keepers[0].best);
    WEFT_TAKE(out->items, mem, out->count);
    if (out->count) memcpy(out->items, keepers[0].best.items, out->count * sizeof *out->items);
  } else {
    WEFT_TAKE(out->items, mem, total);
    out->count = 0;
    for (int thread = 0; thread < threads; thread++) {
      if (keepers[thread].count)
        memcpy(out->items + out->count, keepers[thread].all, keepers[thread].count * sizeof *out->items);
      out->count += keepers[thread].count;
    }
    weft_scored_sort(out->items, out->count);
  }
done:
  for (int thread = 0; thread < threads; thread++) weft_arena_end(&keepers[thread].mem);
  return st;
}

weft_status weft_mi_keepers_close(weft_ctx *ctx, weft_status st, weft_mi_keeper *keepers, int begun, weft_arena *mem,
                                  weft_mi_found *out)
{
  if (st == WEFT_OK) return weft_mi_keepers_end(ctx, keepers, begun, mem, out);
  for (int thread = 0; thread < begun; thread++) weft_arena_end(&keepers[thread].mem);
  return st;
}

/* ---- pacing ---- */

void weft_mi_pace_start(weft_mi_pace *p) { p->started = weft_seconds(); }

void weft_mi_pace_next(weft_mi_pace *p)
{
  const double took = weft_seconds() - p->started;
  if (took < 0.02)
    p->batch *= 2;
  else if (took > 0.06 && p->batch > 1)
    p->batch /= 2;
}
