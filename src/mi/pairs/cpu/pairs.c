/* Pairs on the CPU. A tile of pairs is counted by popcounts of ANDs of planes, screened in single precision against the
 * threshold, and what passes is scored exactly; coded attributes are counted from codes. Threads share the tiles and
 * each keeps its own best; the order of scores is total, so the result does not depend on which thread did what. */
/* Build: shared. */
#include <math.h>
#include <string.h>
#include "core/call/parallel.h"
#include "mi/search/both/pair_tiles.h"
#include "mi/search/both/screen.h"
#include "mi/search/cpu/coded.h"
#include "mi/triples/cpu/triples.h"
#include "mi/pairs/both/pairs.h"

typedef struct {
  const weft_mi_search *search;
  weft_mi_tiling tiling;
  const int64_t *alone; /* fixed-point information of a place by itself */
  const float *alone_bits;
  weft_mi_screening screening;
  double threshold_mi, threshold_gain; /* in bits; may only rise */
  uint64_t words;                      /* 0, or only what weft_mi_large() says of them */
} shared;

static int left_out(const shared *job, size_t a, size_t b)
{
  return job->words && !weft_mi_large(job->tiling.x, a, job->tiling.x, b, job->tiling.x->classes, job->words);
}

typedef struct {
  uint32_t *both, *cells, *work;
  uint16_t *codes;
  float screen[WEFT_MI_TILE];
  weft_mi_coder coder;
  weft_mi_keeper keeper;
} workspace;

typedef struct {
  int64_t joint, gain;
  uint64_t n;
} pair_score;

/* Exact scores of pair (i, j) of a counted tile. */
static pair_score score_pair(const shared *job, const weft_mi_counts *counts, size_t i, size_t j, size_t a, size_t b,
                             workspace *w)
{
  const weft_mi_pack *p = job->tiling.x;
  pair_score out;
  weft_mi_cells(counts, i, j, w->cells);
  if (!counts->vary) {
    out.n = p->n;
    out.joint = weft_mi_joint(p, w->cells, 1, (size_t) counts->a.levels * counts->b.levels);
    out.gain = out.joint - job->alone[a] - job->alone[b];
    return out;
  }
  const uint32_t la = counts->a.levels, lb = counts->b.levels;
  out.joint = weft_mi_of_table(p, w->cells, 1, la, lb, 6, w->work, &out.n);
  out.gain = out.joint - weft_mi_of_table(p, w->cells, 1, la, lb, 2, w->work, &out.n) -
             weft_mi_of_table(p, w->cells, 1, la, lb, 4, w->work, &out.n);
  return out;
}

/* The information of both together and, only where that may reach `threshold`, that of each: no interaction is above
 * it. */
static pair_score score_coded(const shared *job, size_t i, size_t j, size_t ni, size_t a, size_t b, double threshold,
                              workspace *w)
{
  const weft_mi_pack *p = job->tiling.x;
  const uint16_t *codes[2] = { w->codes + i * p->n, w->codes + (ni + j) * p->n };
  const uint32_t levels[2] = { p->levels[a], p->levels[b] }, both = 3, each[2] = { 1, 2 };
  int64_t scores[2];
  pair_score out = { 0, 0, 0 };
  out.n = weft_mi_coded(&w->coder, p, codes, levels, 2, &both, 1, &out.joint);
  out.gain = out.joint;
  if (weft_mi_bits(out.joint, p->f.unit, out.n) < threshold) return out;
  weft_mi_coded(&w->coder, p, codes, levels, 2, each, 2, scores);
  out.gain -= scores[0] + scores[1];
  return out;
}

static void keep(const shared *job, const pair_score *score, size_t a, size_t b, workspace *w)
{
  const weft_mi_pack *p = job->tiling.x;
  const double mi = weft_mi_bits(score->joint, p->f.unit, score->n),
               gain = weft_mi_bits(score->gain, p->f.unit, score->n);
  const uint64_t x = p->column[a], y = p->column[b];
  if (!(mi >= job->search->min_mi && gain >= job->search->min_gain)) return;
  if (weft_mi_is_near(&job->search->near, x, y)) return;
  weft_mi_keep(&w->keeper, job->search->by_interaction ? gain : mi, (x < y ? x : y) * p->columns + (x < y ? y : x));
}

/* Counts a tile, screens it row by row against the threshold, and scores and keeps the pairs that may reach it. */
static void search_planes(const shared *job, const weft_mi_tile *tile, workspace *w)
{
  const size_t a0 = tile->panel->group_a->first + tile->i0, b0 = tile->panel->group_b->first + tile->j0;
  weft_mi_counts counts;
  weft_mi_tile_count(&job->tiling, tile, w->both, &counts);
  const double error = weft_mi_screen_error(&counts, &job->screening);
  const int known = !counts.vary;
  for (size_t i = 0; i < tile->ni; i++) {
    const size_t first = tile->panel->same && tile->j0 <= tile->i0 + i ? tile->i0 + i + 1 - tile->j0 : 0;
    double threshold_mi = job->threshold_mi, threshold_gain = job->threshold_gain,
           threshold = weft_mi_keeper_threshold(&w->keeper);
    if (first >= tile->nj) break;
    if (job->search->by_interaction)
      threshold_gain = fmax(threshold_gain, threshold);
    else
      threshold_mi = fmax(threshold_mi, threshold);
    /* an interaction is never above the joint information: the screen can use nothing else where the marginals
     * differ */
    const float low = (float) ((known ? threshold_mi : fmax(threshold_mi, threshold_gain)) - error);
    const float low_gain = known ? (float) (threshold_gain + (double) job->alone_bits[a0 + i] - error) : -INFINITY;
    weft_mi_screen(&counts, &job->screening, i, tile->nj, fmaxf(low, low_gain), w->screen);
    for (size_t j = first; j < tile->nj; j++) {
      if (w->screen[j] < low || w->screen[j] - job->alone_bits[b0 + j] < low_gain) continue;
      pair_score score = score_pair(job, &counts, i, j, a0 + i, b0 + j, w);
      keep(job, &score, a0 + i, b0 + j, w);
    }
  }
}

static void load_codes(const weft_mi_tiling *tiling, const weft_mi_tile *tile, uint16_t *codes)
{
  const size_t n = tiling->x->n;
  for (size_t i = 0; i < tile->ni; i++)
    weft_mi_pack_codes(tiling->x, tile->panel->group_a->first + tile->i0 + i, codes + i * n);
  for (size_t j = 0; j < tile->nj; j++)
    weft_mi_pack_codes(tiling->y, tile->panel->group_b->first + tile->j0 + j, codes + (tile->ni + j) * n);
}

static void search_codes(const shared *job, const weft_mi_tile *tile, workspace *w)
{
  const weft_mi_pack *p = job->tiling.x;
  const size_t a0 = tile->panel->group_a->first + tile->i0, b0 = tile->panel->group_b->first + tile->j0;
  load_codes(&job->tiling, tile, w->codes);
  for (size_t i = 0; i < tile->ni; i++)
    for (size_t j = tile->panel->same && tile->j0 <= tile->i0 + i ? tile->i0 + i + 1 - tile->j0 : 0; j < tile->nj;
         j++) {
      if (left_out(job, a0 + i, b0 + j)) continue;
      const double threshold = fmax(fmax(job->threshold_mi, job->threshold_gain), weft_mi_keeper_threshold(&w->keeper));
      pair_score score = score_coded(job, i, j, tile->ni, a0 + i, b0 + j, threshold, w);
      if (weft_mi_bits(score.joint, p->f.unit, score.n) < threshold) continue;
      keep(job, &score, a0 + i, b0 + j, w);
    }
}

/* Scores all pairs of a tile and writes both matrices, on both sides of the diagonal, in bits. */
static void full_tile(const shared *job, const weft_mi_tile *tile, workspace *w, double *mi, double *interaction)
{
  const weft_mi_pack *p = job->tiling.x;
  const size_t a0 = tile->panel->group_a->first + tile->i0, b0 = tile->panel->group_b->first + tile->j0;
  weft_mi_counts counts;
  if (tile->panel->coded)
    load_codes(&job->tiling, tile, w->codes);
  else
    weft_mi_tile_count(&job->tiling, tile, w->both, &counts);
  for (size_t i = 0; i < tile->ni; i++)
    for (size_t j = tile->panel->same && tile->j0 <= tile->i0 + i ? tile->i0 + i + 1 - tile->j0 : 0; j < tile->nj;
         j++) {
      if (left_out(job, a0 + i, b0 + j)) continue;
      const pair_score score = tile->panel->coded ? score_coded(job, i, j, tile->ni, a0 + i, b0 + j, -INFINITY, w)
                                                  : score_pair(job, &counts, i, j, a0 + i, b0 + j, w);
      const size_t x = p->column[a0 + i], y = p->column[b0 + j];
      mi[x * p->columns + y] = mi[y * p->columns + x] = weft_mi_bits(score.joint, p->f.unit, score.n);
      interaction[x * p->columns + y] = interaction[y * p->columns + x] = weft_mi_bits(score.gain, p->f.unit, score.n);
    }
}

/* ---- entry points ---- */

static weft_status prepare(weft_arena *mem, const weft_mi_pack *pack, int threads, shared *job, workspace **work)
{
  weft_status st = WEFT_OK;
  int64_t *alone;
  float *bits;
  WEFT_TRY(weft_mi_tiling_make(mem, pack, NULL, &job->tiling));
  WEFT_TAKE(alone, mem, pack->p);
  WEFT_TAKE(bits, mem, pack->p);
  weft_mi_marginals(pack, alone);
  for (size_t k = 0; k < pack->p; k++) bits[k] = (float) weft_mi_bits(alone[k], pack->f.unit, pack->n);
  job->alone = alone;
  job->alone_bits = bits;
  job->screening = weft_mi_screening_of(pack);
  WEFT_TAKE(*work, mem, (size_t) threads);
  for (int thread = 0; thread < threads; thread++) {
    workspace *w = &(*work)[thread];
    WEFT_TAKE(w->both, mem, job->tiling.both);
    WEFT_TAKE(w->cells, mem, job->tiling.cells);
    WEFT_TAKE(w->work, mem, job->tiling.cells);
    WEFT_TAKE(w->codes, mem, job->tiling.codes * pack->n);
    if (job->tiling.codes) WEFT_TRY(weft_mi_coder_init(&w->coder, mem, pack, 2));
  }
done:
  return st;
}

/* Operations for a pair: counting a few planes, and scoring. */
static double pair_work(const weft_mi_pack *pack) { return 15 + (double) pack->n / 32; }

/* The search for the best pairs: threads share tiles and keep their own best; between batches the highest of their
 * thresholds becomes the threshold of all. With words > 0, only tables with codes that have more entries than that. */
static weft_status search_pairs(weft_ctx *ctx, const weft_mi_pack *pack, const weft_mi_search *search, uint64_t words,
                                weft_arena *mem, weft_mi_found *out)
{
  weft_status st = WEFT_OK;
  weft_arena own = weft_arena_begin(ctx);
  const double possible = 0.5 * (double) pack->p * ((double) pack->p - 1);
  const int threads = weft_threads_worth(ctx->threads, possible * pair_work(pack));
  int begun = 0;
  weft_mi_pace pace = { 4 * (size_t) threads, 0 };
  weft_mi_keeper *keepers = NULL;
  workspace *work;
  shared job = { .search = search, .threshold_mi = search->min_mi, .threshold_gain = search->min_gain, .words = words };
  WEFT_TRY(prepare(&own, pack, threads, &job, &work));
  WEFT_TAKE(keepers, &own, (size_t) threads);
  for (; begun < threads; begun++)
    WEFT_TRY(weft_mi_keeper_begin(ctx, &work[begun].keeper, search->top, possible < 1 ? 1 : (size_t) possible));
  const size_t tiles = weft_dealt(job.tiling.tiles, search->part, search->parts);
  for (size_t first = 0; first < tiles; first += pace.batch, weft_mi_pace_next(&pace)) {
    const int64_t count = (int64_t) (tiles - first < pace.batch ? tiles - first : pace.batch);
    WEFT_TRY(weft_poll(ctx, (double) first, (double) tiles));
    weft_mi_pace_start(&pace);
    WEFT_PARALLEL(threads)
    {
      workspace *w = &work[WEFT_THREAD()];
      weft_mi_tile tile;
      WEFT_FOR(dynamic)
      for (int64_t k = 0; k < count; k++) {
        if (!weft_mi_tile_at(&job.tiling, weft_dealt_unit(first + (size_t) k, search->part, search->parts), &tile))
          continue;
        if (tile.panel->coded)
          search_codes(&job, &tile, w);
        else if (!words)
          search_planes(&job, &tile, w);
      }
    }
    for (int thread = 0; thread < threads; thread++) { /* what one thread has found raises the threshold for all */
      double *threshold = search->by_interaction ? &job.threshold_gain : &job.threshold_mi;
      *threshold = fmax(*threshold, weft_mi_keeper_threshold(&work[thread].keeper));
      if (work[thread].keeper.st != WEFT_OK) break;
    }
  }
done:
  for (int thread = 0; thread < begun; thread++) keepers[thread] = work[thread].keeper;
  st = weft_mi_keepers_close(ctx, st, keepers, begun, mem, out);
  weft_arena_end(&own);
  return st;
}

weft_status weft_mi_search_cpu(weft_ctx *ctx, const weft_mi_pack *pack, weft_mi_resident **device,
                               const weft_mi_search *search, weft_arena *mem, weft_mi_found *out)
{
  (void) device;
  return search->order == 3 ? weft_mi_search_triples(ctx, pack, search, mem, out)
                            : search_pairs(ctx, pack, search, 0, mem, out);
}

weft_status weft_mi_search_large(weft_ctx *ctx, const weft_mi_pack *pack, const weft_mi_search *search, uint64_t words,
                                 weft_arena *mem, weft_mi_found *out)
{
  return search_pairs(ctx, pack, search, words, mem, out);
}

/* Scores all pairs, threads sharing tiles. words: as in search_pairs(). */
static weft_status fill_full(weft_ctx *ctx, const weft_mi_pack *pack, uint64_t words, double *mi, double *interaction)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const int threads = weft_threads_worth(ctx->threads, 0.5 * (double) pack->p * (double) pack->p * pair_work(pack));
  weft_mi_pace pace = { 4 * (size_t) threads, 0 };
  workspace *work;
  shared job = { .words = words };
  WEFT_TRY(prepare(&mem, pack, threads, &job, &work));
  for (size_t first = 0; first < job.tiling.tiles; first += pace.batch, weft_mi_pace_next(&pace)) {
    const int64_t count = (int64_t) (job.tiling.tiles - first < pace.batch ? job.tiling.tiles - first : pace.batch);
    WEFT_TRY(weft_poll(ctx, (double) first, (double) job.tiling.tiles));
    weft_mi_pace_start(&pace);
    WEFT_PARALLEL(threads)
    {
      weft_mi_tile tile;
      WEFT_FOR(dynamic)
      for (int64_t k = 0; k < count; k++)
        if (weft_mi_tile_at(&job.tiling, first + (size_t) k, &tile) && (tile.panel->coded || !words))
          full_tile(&job, &tile, &work[WEFT_THREAD()], mi, interaction);
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}

weft_status weft_mi_full_cpu(weft_ctx *ctx, const weft_mi_pack *pack, weft_mi_resident **device, double *mi,
                             double *interaction)
{
  (void) device;
  return fill_full(ctx, pack, 0, mi, interaction);
}

weft_status weft_mi_full_large(weft_ctx *ctx, const weft_mi_pack *pack, uint64_t words, double *mi, double *interaction)
{
  return fill_full(ctx, pack, words, mi, interaction);
}
