/* Passes over pairs on the CPU: products of the targets' planes, one for every state but the last, with the sources'
 * planes, one for every level but the last. Threads share tiles. */
/* Build: shared. */
#include <stdatomic.h>
#include <string.h>
#include "core/call/arena.h"
#include "core/call/parallel.h"
#include "core/data/bits.h"
#include "mi/transfer/both/transfer.h"

#define TILE_PLANES 64 /* of targets, at least: popcount_tile() rearranges the other side once for as many */
#define TILE_SOURCES 32

struct weft_transfer_engine {
  weft_arena mem;
  const weft_transfer_data *data;
  size_t words, states, levels; /* states and levels with planes */
  uint64_t *of_target, *of_source;
};

typedef struct {
  uint32_t *counts;
  int64_t *source_sums, *target_sums;
  uint64_t *bins;
} workspace;

/* Planes 0 .. planes - 1 of one byte per step. */
static void make_planes(const uint8_t *codes, size_t steps, size_t planes, size_t words, uint64_t *out)
{
  for (size_t plane = 0; plane < planes; plane++)
    weft_bits()->plane_u8(codes, steps, (uint8_t) plane, out + plane * words);
}

/* Makes the planes of all targets from their states or, with `rows`, of all sources from their levels there. */
static weft_status fill_planes(weft_ctx *ctx, weft_transfer_engine *engine, const uint32_t *rows)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const weft_transfer_data *data = engine->data;
  const size_t genes = rows ? data->source_count : data->target_count, planes = rows ? engine->levels : engine->states;
  const int threads = weft_threads_worth(ctx->threads, (double) genes * (double) data->steps);
  const size_t batch = (size_t) threads * (1 + (size_t) (5e7 / ((double) data->steps * (double) (planes + 1))));
  uint8_t *codes;
  WEFT_TAKE(codes, &mem, (size_t) threads * data->steps);
  for (size_t first = 0; first < genes; first += batch) {
    const int64_t end = (int64_t) (genes - first < batch ? genes : first + batch);
    WEFT_TRY(weft_poll(ctx, 0, 1));
    WEFT_PARALLEL_FOR(threads, guided)
    for (int64_t gene = (int64_t) first; gene < end; gene++) {
      uint8_t *own = codes + (size_t) WEFT_THREAD() * data->steps;
      const uint8_t *from = data->codes + (size_t) (rows ? data->sources : data->targets)[gene] * data->samples;
      for (size_t k = 0; k < data->steps; k++)
        own[k] = rows ? from[rows[k]] : (uint8_t) (from[data->before[k]] * data->levels + from[data->now[k]]);
      make_planes(own, data->steps, planes, engine->words,
                  (rows ? engine->of_source : engine->of_target) + (size_t) gene * planes * engine->words);
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* Takes room for the planes of both sides and fills the targets', which no copy changes. */
weft_status weft_transfer_open_cpu(weft_ctx *ctx, const weft_transfer_data *data, weft_transfer_engine **out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_transfer_engine *engine;
  *out = NULL;
  WEFT_TAKE(engine, &mem, 1);
  engine->data = data;
  engine->words = weft_plane_words(data->steps);
  engine->levels = data->levels - 1;
  engine->states = (size_t) data->levels * data->levels - 1;
  WEFT_TAKE(engine->of_target, &mem, data->target_count * engine->states * engine->words);
  WEFT_TAKE(engine->of_source, &mem, data->source_count * engine->levels * engine->words);
  engine->mem = mem;
  WEFT_TRY(fill_planes(ctx, engine, NULL));
  *out = engine;
done:
  if (st != WEFT_OK) weft_arena_end(&mem);
  return st;
}

void weft_transfer_close_cpu(weft_ctx *ctx, weft_transfer_engine *engine)
{
  weft_arena mem = engine->mem; /* which holds the engine */
  (void) ctx;
  weft_arena_end(&mem);
}

/* Scores one pair for the pass. */
static void take_score(const weft_transfer_data *data, weft_transfer_pass *pass, _Atomic uint64_t *found, size_t i,
                       size_t j, int64_t fixed, workspace *w)
{
  const double ratio = weft_transfer_ratio(fixed, pass->of_source[i], pass->of_target[j]);
  if (pass->goal == WEFT_TRANSFER_SUMS) {
    w->source_sums[i] += weft_transfer_part(ratio);
    w->target_sums[j] += weft_transfer_part(ratio);
    return;
  }
  const uint32_t bin = weft_transfer_bin(weft_transfer_z(ratio, data->source_df[i] * data->target_df[j]));
  if (pass->goal == WEFT_TRANSFER_COUNT) {
    w->bins[bin]++;
    return;
  }
  if (bin < pass->bin) return;
  const uint64_t at = atomic_fetch_add(found, 1);
  if (at >= pass->capacity) return;
  pass->pairs[at] = (uint64_t) i * data->target_count + j;
  pass->scores[at] = fixed;
}

/* The pairs of sources from `i0` on with targets from `j0` on. */
static void score_tile(const weft_transfer_engine *engine, weft_transfer_pass *pass, _Atomic uint64_t *found, size_t i0,
                       size_t sources, size_t j0, size_t targets, workspace *w)
{
  const weft_transfer_data *data = engine->data;
  const size_t words = engine->words, across = sources * engine->levels, all = (size_t) data->levels * data->levels;
  weft_bits()->popcount_tile(engine->of_target + j0 * engine->states * words, targets * engine->states, words,
                             engine->of_source + i0 * engine->levels * words, across, words, words, w->counts, across);
  for (size_t j = j0; j < j0 + targets; j++)
    for (size_t i = i0; i < i0 + sources; i++) {
      if (!weft_transfer_scored(data, i, j)) continue;
      const uint32_t *counts = w->counts + (j - j0) * engine->states * across + (i - i0) * engine->levels;
      take_score(data, pass, found, i, j,
                 weft_transfer_fixed(&data->f, data->levels, counts, across, 1, data->of_states + j * all,
                                     data->of_levels + i * data->levels, data->base[j]),
                 w);
    }
}

/* A thread's room for a pass. */
static weft_status take_workspace(weft_arena *mem, const weft_transfer_engine *engine, const weft_transfer_pass *pass,
                                  size_t tile_targets, workspace *w)
{
  weft_status st = WEFT_OK;
  memset(w, 0, sizeof *w);
  WEFT_TAKE(w->counts, mem, tile_targets * engine->states * TILE_SOURCES * engine->levels);
  if (pass->goal == WEFT_TRANSFER_SUMS) {
    WEFT_TAKE0(w->source_sums, mem, engine->data->source_count);
    WEFT_TAKE0(w->target_sums, mem, engine->data->target_count);
  }
  if (pass->goal == WEFT_TRANSFER_COUNT) WEFT_TAKE0(w->bins, mem, WEFT_TRANSFER_BINS);
done:
  return st;
}

static void add_workspace(const weft_transfer_data *data, const workspace *w, weft_transfer_pass *pass)
{
  if (w->source_sums) {
    for (size_t i = 0; i < data->source_count; i++) pass->source_sums[i] += w->source_sums[i];
    for (size_t j = 0; j < data->target_count; j++) pass->target_sums[j] += w->target_sums[j];
  }
  if (w->bins)
    for (uint32_t b = 0; b < WEFT_TRANSFER_BINS; b++) pass->counts[b] += w->bins[b];
}

/* Makes the sources' planes and scores all tiles, in batches between which it polls. */
weft_status weft_transfer_pass_cpu(weft_ctx *ctx, weft_transfer_engine *engine, weft_transfer_pass *pass)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const weft_transfer_data *data = engine->data;
  const size_t tile_targets = (TILE_PLANES + engine->states - 1) / engine->states;
  const size_t down = (data->target_count + tile_targets - 1) / tile_targets,
               across = (data->source_count + TILE_SOURCES - 1) / TILE_SOURCES, tiles = down * across;
  const double tile_work =
      (double) (tile_targets * engine->states * TILE_SOURCES * engine->levels) * (10 + (double) engine->words / 4);
  const int threads = weft_threads_worth(ctx->threads, (double) tiles * tile_work);
  const size_t batch = (size_t) threads * (1 + (size_t) (5e7 / tile_work));
  _Atomic uint64_t found = 0;
  workspace *work;
  WEFT_TAKE(work, &mem, (size_t) threads);
  for (int thread = 0; thread < threads; thread++)
    WEFT_TRY(take_workspace(&mem, engine, pass, tile_targets, &work[thread]));
  WEFT_TRY(weft_poll(ctx, 0, 1));
  WEFT_TRY(fill_planes(ctx, engine, pass->rows));
  for (size_t first = 0; first < tiles; first += batch) {
    const int64_t end = (int64_t) (tiles - first < batch ? tiles : first + batch);
    WEFT_TRY(weft_poll(ctx, (double) first, (double) tiles));
    WEFT_PARALLEL_FOR(threads, dynamic)
    for (int64_t tile = (int64_t) first; tile < end; tile++) {
      const size_t i0 = (size_t) tile % across * TILE_SOURCES, j0 = (size_t) tile / across * tile_targets;
      const size_t left_i = data->source_count - i0, left_j = data->target_count - j0;
      score_tile(engine, pass, &found, i0, left_i < TILE_SOURCES ? left_i : TILE_SOURCES, j0,
                 left_j < tile_targets ? left_j : tile_targets, &work[WEFT_THREAD()]);
    }
  }
  for (int thread = 0; thread < threads; thread++) add_workspace(data, &work[thread], pass);
  pass->found = atomic_load(&found);
done:
  weft_arena_end(&mem);
  return st;
}
