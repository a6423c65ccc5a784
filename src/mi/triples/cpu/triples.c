/* Triples on the CPU. With attribute i held fixed, a triple is a pair whose class is (level of i, class): i's planes
 * are ANDed into one side of a tile of pairs, and counting, screening and scoring go on as for pairs.
 *
 *   parts of the table       part = level of i × classes + class
 *   a level without a plane  counts over all rows, less those of the other levels
 *
 * Triples are taken in order of place, i < j < k, so that each comes once. */
/* Build: shared. */
#include <math.h>
#include <string.h>
#include "core/call/parallel.h"
#include "mi/search/both/pair_tiles.h"
#include "mi/search/both/screen.h"
#include "mi/search/cpu/coded.h"
#include "mi/triples/cpu/triples.h"

#define CHUNK 256 /* fixed attributes a unit of work */

typedef struct {
  const weft_mi_search *search;
  weft_mi_tiling tiling;
  const float *alone_bits;
  weft_mi_screening screening;
  double threshold_mi, threshold_gain;
  size_t chunks; /* of fixed attributes per tile */
} shared;

typedef struct {
  uint32_t *all;  /* counts of the tile's pairs over all rows */
  uint32_t *both; /* by level of i */
  uint32_t *margin_a, *margin_b, *totals;
  uint64_t *masked; /* planes of side a, ANDed */
  uint32_t *cells, *work;
  uint16_t *codes;
  float screen[WEFT_MI_TILE], (*pairs)[WEFT_MI_TILE];
  weft_mi_coder coder;
  weft_mi_keeper keeper;
} workspace;

typedef struct {
  int64_t joint, gain;
  uint64_t n;
} triple_score;

/* Keeps a triple that is above the thresholds; its index has the columns in increasing order. */
static void keep(const shared *job, const triple_score *score, size_t i, size_t a, size_t b, workspace *w)
{
  const weft_mi_pack *p = job->tiling.x;
  const double mi = weft_mi_bits(score->joint, p->f.unit, score->n),
               gain = weft_mi_bits(score->gain, p->f.unit, score->n);
  uint64_t x = p->column[i], y = p->column[a], z = p->column[b], swap;
  if (!(mi >= job->search->min_mi && gain >= job->search->min_gain)) return;
  if (x > y) {
    swap = x;
    x = y;
    y = swap;
  }
  if (y > z) {
    swap = y;
    y = z;
    z = swap;
  }
  if (x > y) {
    swap = x;
    x = y;
    y = swap;
  }
  weft_mi_keep(&w->keeper, job->search->by_interaction ? gain : mi, (x * p->columns + y) * p->columns + z);
}

/* ---- from planes ---- */

/* Counts of the tile within each level of the attribute at place i. `all`: the tile's counts over all rows. */
static void count_levels(const weft_mi_pack *p, const weft_mi_tile *tile, size_t i, const weft_mi_counts *all,
                         workspace *w, weft_mi_counts *counts)
{
  const weft_mi_group *group_a = tile->panel->group_a, *group_b = tile->panel->group_b,
                      *fixed = &p->groups[p->group_of[i]];
  const weft_bits_ops *ops = weft_bits();
  const uint32_t pa = group_a->shape.planes, pb = group_b->shape.planes, classes = p->classes,
                 levels = fixed->shape.levels;
  const size_t area = (size_t) pa * pb * all->stride;
  *counts = *all;
  counts->vary |= fixed->shape.missing;
  counts->parts = levels * classes;
  counts->both = w->both;
  counts->margin_a = w->margin_a;
  counts->margin_b = w->margin_b;
  counts->totals = w->totals;
  counts->plane_a = counts->plane_b = WEFT_MI_TILE;
  counts->part_a = (size_t) pa * WEFT_MI_TILE;
  counts->part_b = (size_t) pb * WEFT_MI_TILE;
  for (uint32_t q = 0; q < fixed->shape.planes; q++) {
    const size_t row = weft_mi_plane_row(fixed, i, q);
    const uint64_t *mask = p->bits + row * p->words;
    for (uint32_t x = 0; x < pa; x++)
      for (size_t m = 0; m < tile->ni; m++) {
        const uint64_t *plane = p->bits + (group_a->plane0 + x * group_a->count + tile->i0 + m) * p->words;
        uint64_t *out = w->masked + (x * WEFT_MI_TILE + m) * p->words;
        for (size_t k = 0; k < p->words; k++) out[k] = plane[k] & mask[k];
      }
    for (uint32_t c = 0; c < classes; c++) {
      const uint32_t part = q * classes + c;
      const size_t first = p->class_word[c], words = p->class_word[c + 1] - first;
      w->totals[part] = p->margins[c * p->plane_rows + row];
      for (uint32_t x = 0; x < pa; x++)
        for (size_t m = 0; m < tile->ni; m++)
          w->margin_a[part * counts->part_a + x * WEFT_MI_TILE + m] =
              (uint32_t) ops->popcount(w->masked + (x * WEFT_MI_TILE + m) * p->words + first, words);
      for (uint32_t y = 0; y < pb; y++) {
        const uint64_t *b = p->bits + (group_b->plane0 + y * group_b->count + tile->j0) * p->words + first;
        ops->popcount_tile(mask + first, 1, p->words, b, tile->nj, p->words, words,
                           w->margin_b + part * counts->part_b + y * WEFT_MI_TILE, WEFT_MI_TILE);
        for (uint32_t x = 0; x < pa; x++)
          ops->popcount_tile(w->masked + x * WEFT_MI_TILE * p->words + first, tile->ni, p->words, b, tile->nj, p->words,
                             words, w->both + part * area + (x * pb + y) * all->stride, WEFT_MI_TILE);
      }
    }
  }
  if (fixed->shape.missing) return;
  /* the last level: all rows less the other levels */
  for (uint32_t c = 0; c < classes; c++) {
    const uint32_t part = (levels - 1) * classes + c;
    w->totals[part] = p->class_rows[c];
    memcpy(w->both + part * area, all->both + c * area, area * sizeof *w->both);
    for (uint32_t x = 0; x < pa; x++)
      memcpy(w->margin_a + part * counts->part_a + x * WEFT_MI_TILE, all->margin_a + c * all->part_a + x * all->plane_a,
             tile->ni * sizeof(uint32_t));
    for (uint32_t y = 0; y < pb; y++)
      memcpy(w->margin_b + part * counts->part_b + y * WEFT_MI_TILE, all->margin_b + c * all->part_b + y * all->plane_b,
             tile->nj * sizeof(uint32_t));
    for (uint32_t q = 0; q + 1 < levels; q++) {
      const uint32_t other = q * classes + c;
      w->totals[part] -= w->totals[other];
      for (size_t k = 0; k < area; k++) w->both[part * area + k] -= w->both[other * area + k];
      for (size_t k = 0; k < counts->part_a; k++)
        w->margin_a[part * counts->part_a + k] -= w->margin_a[other * counts->part_a + k];
      for (size_t k = 0; k < counts->part_b; k++)
        w->margin_b[part * counts->part_b + k] -= w->margin_b[other * counts->part_b + k];
    }
  }
}

/* Scores a triple exactly: its information, and its gain over the best of its three pairs, whose tables are sums of its
 * own. */
static triple_score score_triple(const weft_mi_pack *p, const weft_mi_counts *counts, uint32_t levels, size_t m,
                                 size_t j, workspace *w)
{
  const uint32_t la = counts->a.levels, lb = counts->b.levels;
  static const int pairs[] = { 3, 5, 6 };
  triple_score out;
  int64_t greatest = 0;
  weft_mi_cells(counts, m, j, w->cells);
  out.joint = weft_mi_of_table(p, w->cells, levels, la, lb, 7, w->work, &out.n);
  for (int k = 0; k < 3; k++) {
    const int64_t pair = weft_mi_of_table(p, w->cells, levels, la, lb, pairs[k], w->work, &out.n);
    if (pair > greatest) greatest = pair;
  }
  out.gain = out.joint - greatest;
  return out;
}

/* Triples of the attribute at place i with the tile's pairs. */
static void search_fixed(const shared *job, const weft_mi_tile *tile, size_t i, const weft_mi_counts *all, int gains,
                         workspace *w)
{
  const weft_mi_pack *p = job->tiling.x;
  const weft_mi_shape *shape = &p->groups[p->group_of[i]].shape;
  const size_t a0 = tile->panel->group_a->first + tile->i0, b0 = tile->panel->group_b->first + tile->j0;
  weft_mi_counts counts;
  count_levels(p, tile, i, all, w, &counts);
  const int known = !counts.vary;
  const double error = weft_mi_screen_error(&counts, &job->screening);
  for (size_t m = i >= a0 ? i - a0 + 1 : 0; m < tile->ni; m++) {
    const size_t first = tile->panel->same && tile->j0 <= tile->i0 + m ? tile->i0 + m + 1 - tile->j0 : 0;
    const double threshold = weft_mi_keeper_threshold(&w->keeper);
    const double threshold_gain =
        job->search->by_interaction ? fmax(job->threshold_gain, threshold) : job->threshold_gain;
    const double threshold_mi = job->search->by_interaction ? job->threshold_mi : fmax(job->threshold_mi, threshold);
    if (first >= tile->nj) break;
    /* the interaction is at most joint - what i says alone, and joint - what the pair says */
    const float low = (float) (fmax(threshold_mi, threshold_gain + (known ? (double) job->alone_bits[i] : 0)) - error);
    const float low_gain = gains && known ? (float) (threshold_gain - 2 * error) : -INFINITY;
    weft_mi_screen(&counts, &job->screening, m, tile->nj, fmaxf(low, low_gain), w->screen);
    for (size_t j = first; j < tile->nj; j++) {
      if (w->screen[j] < low || (gains && w->screen[j] - w->pairs[m][j] < low_gain)) continue;
      const triple_score score = score_triple(p, &counts, shape->levels, m, j, w);
      keep(job, &score, i, a0 + m, b0 + j, w);
    }
  }
}

static void search_planes(const shared *job, const weft_mi_tile *tile, size_t from, size_t to, workspace *w)
{
  const int gains = job->search->by_interaction || job->search->min_gain > -INFINITY;
  weft_mi_counts all;
  weft_mi_tile_count(&job->tiling, tile, w->all, &all);
  for (size_t m = 0; gains && m < tile->ni; m++)
    weft_mi_screen(&all, &job->screening, m, tile->nj, -INFINITY, w->pairs[m]);
  for (size_t i = from; i < to; i++) search_fixed(job, tile, i, &all, gains, w);
}

/* ---- from codes ---- */

static void search_codes(const shared *job, const weft_mi_tile *tile, size_t from, size_t to, workspace *w)
{
  const weft_mi_pack *p = job->tiling.x;
  const size_t a0 = tile->panel->group_a->first + tile->i0, b0 = tile->panel->group_b->first + tile->j0, n = p->n;
  static const uint32_t masks[] = { 7, 3, 5, 6 };
  uint16_t *a = w->codes + n, *b = a + tile->ni * n;
  for (size_t m = 0; m < tile->ni; m++) weft_mi_pack_codes(p, a0 + m, a + m * n);
  for (size_t j = 0; j < tile->nj; j++) weft_mi_pack_codes(p, b0 + j, b + j * n);
  for (size_t i = from; i < to; i++) {
    weft_mi_pack_codes(p, i, w->codes);
    for (size_t m = i >= a0 ? i - a0 + 1 : 0; m < tile->ni; m++)
      for (size_t j = tile->panel->same && tile->j0 <= tile->i0 + m ? tile->i0 + m + 1 - tile->j0 : 0; j < tile->nj;
           j++) {
        const uint16_t *codes[] = { w->codes, a + m * n, b + j * n };
        const uint32_t levels[] = { p->levels[i], p->levels[a0 + m], p->levels[b0 + j] };
        int64_t scores[4], greatest;
        triple_score out;
        out.n = weft_mi_coded(&w->coder, p, codes, levels, 3, masks, 4, scores);
        greatest = scores[1] > scores[2] ? scores[1] : scores[2];
        out.joint = scores[0];
        out.gain = scores[0] - (greatest > scores[3] ? greatest : scores[3]);
        keep(job, &out, i, a0 + m, b0 + j, w);
      }
  }
}

/* ---- entry point ---- */

static weft_status prepare(weft_arena *mem, const weft_mi_pack *p, int threads, shared *job, workspace **work)
{
  weft_status st = WEFT_OK;
  uint32_t levels = 1, planes = 1;
  int64_t *alone;
  float *bits;
  WEFT_TRY(weft_mi_tiling_make(mem, p, NULL, &job->tiling));
  for (size_t g = 0; g < p->group_count; g++) {
    if (p->groups[g].coded) continue;
    if (p->groups[g].shape.levels > levels) levels = p->groups[g].shape.levels;
    if (p->groups[g].shape.planes > planes) planes = p->groups[g].shape.planes;
  }
  job->chunks = (p->p + CHUNK - 1) / CHUNK;
  WEFT_TAKE(alone, mem, p->p);
  WEFT_TAKE(bits, mem, p->p);
  weft_mi_marginals(p, alone);
  for (size_t k = 0; k < p->p; k++) bits[k] = (float) weft_mi_bits(alone[k], p->f.unit, p->n);
  job->alone_bits = bits;
  job->screening = weft_mi_screening_of(p);
  const size_t margins = (size_t) levels * p->classes * planes * WEFT_MI_TILE;
  WEFT_TAKE(*work, mem, (size_t) threads);
  for (int thread = 0; thread < threads; thread++) {
    workspace *w = &(*work)[thread];
    WEFT_TAKE(w->all, mem, job->tiling.both);
    WEFT_TAKE(w->both, mem, job->tiling.both * levels);
    WEFT_TAKE0(w->margin_a, mem, margins);
    WEFT_TAKE0(w->margin_b, mem, margins);
    WEFT_TAKE(w->totals, mem, levels * p->classes);
    WEFT_TAKE(w->masked, mem, planes * WEFT_MI_TILE * p->words);
    WEFT_TAKE(w->cells, mem, job->tiling.cells * levels);
    WEFT_TAKE(w->work, mem, job->tiling.cells * levels);
    WEFT_TAKE(w->pairs, mem, WEFT_MI_TILE);
    WEFT_TAKE(w->codes, mem, (job->tiling.codes + 1) * p->n);
    if (job->tiling.codes) WEFT_TRY(weft_mi_coder_init(&w->coder, mem, p, 3));
  }
done:
  return st;
}

/* Unit k of the work: a tile and the fixed attributes from .. to-1 with it. */
static void search_unit(const shared *job, size_t unit, workspace *w)
{
  weft_mi_tile tile;
  if (!weft_mi_tile_at(&job->tiling, unit / job->chunks, &tile)) return;
  const size_t from = unit % job->chunks * CHUNK, end = tile.panel->group_a->first + tile.i0 + tile.ni - 1;
  const size_t to = from + CHUNK < end ? from + CHUNK : end;
  if (from >= to) return;
  if (tile.panel->coded)
    search_codes(job, &tile, from, to, w);
  else
    search_planes(job, &tile, from, to, w);
}

/* weft_mi_ops.search for triples on the CPU: threads share units of work, each a tile of pairs with some fixed
 * attributes; between batches the highest threshold becomes the threshold of all. */
weft_status weft_mi_search_triples(weft_ctx *ctx, const weft_mi_pack *pack, const weft_mi_search *search,
                                   weft_arena *mem, weft_mi_found *out)
{
  weft_status st = WEFT_OK;
  weft_arena own = weft_arena_begin(ctx);
  const double p = (double) pack->p, possible = p * (p - 1) * (p - 2) / 6;
  const int threads = weft_threads_worth(ctx->threads, possible * (30 + (double) pack->n / 8));
  int begun = 0;
  weft_mi_pace pace = { (size_t) threads, 0 };
  weft_mi_keeper *keepers = NULL;
  workspace *work;
  shared job = { .search = search, .threshold_mi = search->min_mi, .threshold_gain = search->min_gain };
  WEFT_TRY(prepare(&own, pack, threads, &job, &work));
  WEFT_TAKE(keepers, &own, (size_t) threads);
  for (; begun < threads; begun++)
    WEFT_TRY(
        weft_mi_keeper_begin(ctx, &work[begun].keeper, search->top, possible < 1 ? 1 : (size_t) fmin(possible, 1e15)));
  const size_t units = weft_dealt(job.tiling.tiles * job.chunks, search->part, search->parts);
  for (size_t first = 0; first < units; first += pace.batch, weft_mi_pace_next(&pace)) {
    const int64_t count = (int64_t) (units - first < pace.batch ? units - first : pace.batch);
    WEFT_TRY(weft_poll(ctx, (double) first, (double) units));
    weft_mi_pace_start(&pace);
    WEFT_PARALLEL_FOR(threads, dynamic)
    for (int64_t k = 0; k < count; k++)
      search_unit(&job, weft_dealt_unit(first + (size_t) k, search->part, search->parts), &work[WEFT_THREAD()]);
    for (int thread = 0; thread < threads; thread++) {
      double *threshold = search->by_interaction ? &job.threshold_gain : &job.threshold_mi;
      *threshold = fmax(*threshold, weft_mi_keeper_threshold(&work[thread].keeper));
    }
  }
done:
  for (int thread = 0; thread < begun; thread++) keepers[thread] = work[thread].keeper;
  st = weft_mi_keepers_close(ctx, st, keepers, begun, mem, out);
  weft_arena_end(&own);
  return st;
}
