/* Pairs on the device, and matrices of them. Any shape of attributes: counts of a panel's tiles by 1-bit tensor cores
 * (mma.sync on compute capability 8.0 and later, POPC before), then one thread per pair scores its table. Attributes
 * with codes are counted by one block per pair, coded.cu. What Hopper does instead is in search_hopper.cu. */
#include <cmath>
#include <cstring>
#include "core/call/parallel.h"
#include "mi/plan.h"
#include "mi/search/cuda/progress.cuh"
#include "mi/pairs/cuda/coded.cuh"
#include "mi/pairs/cuda/binary_hopper.cuh"
#include "mi/pairs/cuda/counted_hopper.cuh"
#include "mi/pairs/cuda/table_score.cuh"
#include "mi/pack/cuda/pack.cuh"
#include "mi/search/cuda/search_hopper.cuh"
#include "mi/pairs/cuda/pairs.cuh"
extern "C" {
#include "mi/pairs/both/pairs.h"
}

#define FULL_PAIRS ((size_t) 1 << 20) /* scores that travel at a time */
#define MAX_CODED 1e10                /* pairs × rows, one block per pair */
#define MAX_SCORED 5e8                /* pairs, one thread each */

/* ---- panels of any shape ---- */

/* Counts and scores one part. */
static weft_status run_part(weft_ctx *ctx, mi_panel *panel, mi_collector *collector, uint64_t index)
{
  weft_status st = WEFT_OK;
  part p;
  WEFT_TRY(weft_mi_panel_count(ctx, panel, index, collector->stream, &p));
  if (!p.na) goto done;
  score_part<<<dim3((unsigned) ((p.nb + SCORE_THREADS - 1) / SCORE_THREADS), (unsigned) p.na), SCORE_THREADS, 0,
               collector->stream>>>(p, collector->threshold, collector->hits, NULL, NULL);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

static weft_status run_parts(weft_ctx *ctx, void *data, mi_collector *collector, uint64_t first, uint64_t count)
{
  weft_status st = WEFT_OK;
  for (uint64_t k = first; k < first + count; k++)
    WEFT_TRY(run_part(ctx, (mi_panel *) data, collector, unit_dealt(collector, k)));
done:
  return st;
}

static double parts_until(const void *data, uint64_t units)
{
  const mi_panel *panel = (const mi_panel *) data;
  return (double) units * (double) panel->rows * (double) panel->columns;
}

/* A part must not have more pairs than the buffer has room: the parts are small at first. */
static weft_status search_panel(weft_ctx *ctx, weft_device_arena *mem, weft_arena *host, const weft_mi_pack *pack,
                                const weft_mi_resident *resident, const weft_mi_panel *panel, mi_collector *collector)
{
  weft_status st = WEFT_OK;
  mi_panel job;
  st = weft_mi_panel_plan(mem, host, pack, resident, pack, resident, panel, (size_t) (collector->hits.capacity / 2),
                          &job);
  if (st == WEFT_OK) {
    const mi_runner r_parts = { &job, units_dealt(collector, job.parts), MAX_SCORED, run_parts, parts_until };
    st = weft_mi_run_all(ctx, collector, &r_parts);
  }
  weft_mi_panel_drop(mem, host, &job);
  return st;
}

/* ---- attributes with codes ---- */

struct codes_job {
  weft_device_arena *mem;
  mi_codes codes;
};

static weft_status run_codes(weft_ctx *ctx, void *data, mi_collector *collector, uint64_t first, uint64_t count)
{
  weft_status st = WEFT_OK;
  codes_job *job = (codes_job *) data;
  codes_out to;
  memset(&to, 0, sizeof to);
  to.threshold = collector->threshold;
  to.hits = collector->hits;
  for (uint64_t k = first; k < first + count; k++)
    WEFT_TRY(weft_mi_codes_tile(ctx, job->mem, &job->codes, unit_dealt(collector, k), &to));
done:
  return st;
}

static double codes_until(const void *data, uint64_t units)
{
  const codes_job *job = (const codes_job *) data;
  return (double) units * (double) job->codes.side * (double) job->codes.side;
}

static weft_status search_codes(weft_ctx *ctx, weft_device_arena *mem, weft_arena *host, const weft_mi_pack *pack,
                                const weft_mi_resident *resident, const weft_mi_panel *panel, mi_collector *collector)
{
  weft_status st = WEFT_OK;
  codes_job job = { mem };
  st = weft_mi_codes_plan(ctx, mem, host, pack, resident, pack, panel, 1, &job.codes);
  if (st == WEFT_OK) {
    const mi_runner r_tiles = { &job, units_dealt(collector, job.codes.tiles), MAX_CODED / ((double) pack->n + 1),
                                run_codes, codes_until };
    st = weft_mi_run_all(ctx, collector, &r_tiles);
  }
  weft_mi_codes_drop(mem, host, &job.codes);
  return st;
}

/* ---- all panels ---- */

static int by_codes(const weft_mi_panel *panel) { return panel->group_a->coded || panel->group_b->coded; }

static int any_coded(const weft_mi_tiling *tiling)
{
  for (size_t k = 0; k < tiling->panel_count; k++)
    if (by_codes(&tiling->panels[k])) return 1;
  return 0;
}

/* Searches each panel by the engine that the plan has for it. The CPU then searches the pairs with codes whose tables
 * are too large. src/mi/README.md has the conditions in a table. */
weft_status weft_mi_search_panels(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                  weft_mi_resident *resident, mi_collector *collector)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  weft_mi_tiling tiling;
  const weft_mi_facts facts = weft_mi_facts_of(pack, weft_mi_wgmma_ready(ctx->device));
  WEFT_TRY(weft_mi_tiling_make(&host, pack, NULL, &tiling));
  for (size_t k = 0; k < tiling.panel_count; k++) {
    const weft_mi_panel *panel = &tiling.panels[k];
    switch (weft_mi_pairs_engine(&facts, weft_mi_side_of(panel->group_a), weft_mi_side_of(panel->group_b))) {
    case WEFT_MI_DEVICE_CODES: WEFT_TRY(search_codes(ctx, mem, &host, pack, resident, panel, collector)); break;
    case WEFT_MI_BINARY: WEFT_TRY(weft_mi_hopper_binary(ctx, mem, pack, resident, panel, collector)); break;
    case WEFT_MI_TERNARY: WEFT_TRY(weft_mi_hopper_planar(ctx, mem, pack, resident, panel, collector)); break;
    case WEFT_MI_FUSED:
    case WEFT_MI_COUNTED: WEFT_TRY(weft_mi_hopper_products(ctx, mem, pack, resident, panel, collector)); break;
    default: WEFT_TRY(search_panel(ctx, mem, &host, pack, resident, panel, collector));
    }
  }
  if (any_coded(&tiling)) {
    weft_mi_found more = { NULL, 0 };
    WEFT_TRY(weft_mi_search_large(ctx, pack, collector->search, weft_mi_codes_limit(ctx), &host, &more));
    for (size_t k = 0; k < more.count; k++) weft_mi_keep(&collector->keeper, more.items[k].score, more.items[k].index);
  }
done:
  weft_arena_end(&host);
  return st;
}

/* ---- all scores ---- */

/* Puts a part's scores, row after row in `mi` and `interaction`, into whole matrices. */
static void spread(weft_ctx *ctx, const weft_mi_pack *pack, const double *mi, const double *interaction, size_t place_a,
                   size_t na, size_t place_b, size_t nb, int same, double *full_mi, double *full_interaction)
{
  WEFT_PARALLEL(weft_threads_worth(ctx->threads, 8 * (double) na * (double) nb))
  WEFT_FOR(static)
  for (int64_t a = 0; a < (int64_t) na; a++) {
    const size_t i = (size_t) a, x = pack->column[place_a + i];
    for (size_t j = same && place_a + i >= place_b ? place_a + i + 1 - place_b : 0; j < nb; j++) {
      const size_t y = pack->column[place_b + j];
      full_mi[x * pack->columns + y] = full_mi[y * pack->columns + x] = mi[i * nb + j];
      full_interaction[x * pack->columns + y] = full_interaction[y * pack->columns + x] = interaction[i * nb + j];
    }
  }
}

/* weft_mi_ops.full on the device: every panel in parts of at most FULL_PAIRS pairs, which are scored, brought back, and
 * spread over both matrices by the host. */
extern "C" weft_status weft_mi_full_cuda(weft_ctx *ctx, const weft_mi_pack *pack, weft_mi_resident **device, double *mi,
                                         double *interaction)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  weft_device_arena mem = weft_device_begin(ctx);
  double *d_mi, *d_interaction, *host_mi, *host_interaction;
  weft_mi_tiling tiling;
  if (!pack->p) goto done;
  WEFT_TRY(weft_mi_tiling_make(&host, pack, NULL, &tiling));
  if (!*device) WEFT_TRY(weft_mi_resident_make(ctx, pack, device));
  WEFT_DEVICE_TAKE(d_mi, &mem, FULL_PAIRS);
  WEFT_DEVICE_TAKE(d_interaction, &mem, FULL_PAIRS);
  WEFT_CUDA(cudaMemsetAsync(d_mi, 0, FULL_PAIRS * sizeof *d_mi, mem.stream)); /* what is skipped travels back too */
  WEFT_CUDA(cudaMemsetAsync(d_interaction, 0, FULL_PAIRS * sizeof *d_mi, mem.stream));
  WEFT_TAKE(host_mi, &host, FULL_PAIRS);
  WEFT_TAKE(host_interaction, &host, FULL_PAIRS);
  for (size_t k = 0; k < tiling.panel_count; k++) {
    const weft_mi_panel *panel = &tiling.panels[k];
    const int coded = by_codes(panel);
    mi_panel planes;
    mi_codes codes;
    memset(&planes, 0, sizeof planes);
    memset(&codes, 0, sizeof codes);
    if (coded)
      WEFT_TRY(weft_mi_codes_plan(ctx, &mem, &host, pack, *device, pack, panel, 1, &codes));
    else
      WEFT_TRY(weft_mi_panel_plan(&mem, &host, pack, *device, pack, *device, panel, FULL_PAIRS, &planes));
    const uint64_t parts = coded ? codes.tiles : planes.parts;
    for (uint64_t index = 0; index < parts; index++) {
      size_t place_a, na, place_b, nb;
      WEFT_TRY(weft_poll(ctx, (double) k + (double) index / (double) parts, (double) tiling.panel_count));
      if (coded) {
        codes_out to;
        memset(&to, 0, sizeof to);
        to.mi = d_mi;
        to.interaction = d_interaction;
        WEFT_TRY(weft_mi_codes_tile(ctx, &mem, &codes, index, &to));
        place_a = panel->group_a->first + codes.i0;
        place_b = panel->group_b->first + codes.j0;
        na = codes.ni;
        nb = codes.nj;
      } else {
        part p;
        mi_threshold none;
        mi_hits nowhere;
        memset(&none, 0, sizeof none);
        memset(&nowhere, 0, sizeof nowhere);
        WEFT_TRY(weft_mi_panel_count(ctx, &planes, index, mem.stream, &p));
        place_a = p.place_a;
        place_b = p.place_b;
        na = p.na;
        nb = p.nb;
        if (na)
          score_part<<<dim3((unsigned) ((nb + SCORE_THREADS - 1) / SCORE_THREADS), (unsigned) na), SCORE_THREADS, 0,
                       mem.stream>>>(p, none, nowhere, d_mi, d_interaction);
        WEFT_CUDA(cudaGetLastError());
      }
      if (!na) continue;
      WEFT_CUDA(cudaMemcpyAsync(host_mi, d_mi, na * nb * sizeof *d_mi, cudaMemcpyDeviceToHost, mem.stream));
      WEFT_CUDA(
          cudaMemcpyAsync(host_interaction, d_interaction, na * nb * sizeof *d_mi, cudaMemcpyDeviceToHost, mem.stream));
      WEFT_CUDA(cudaStreamSynchronize(mem.stream));
      spread(ctx, pack, host_mi, host_interaction, place_a, na, place_b, nb, panel->same, mi, interaction);
    }
    if (coded)
      weft_mi_codes_drop(&mem, &host, &codes);
    else
      weft_mi_panel_drop(&mem, &host, &planes);
  }
  if (any_coded(&tiling)) WEFT_TRY(weft_mi_full_large(ctx, pack, weft_mi_codes_limit(ctx), mi, interaction));
done:
  weft_device_end(&mem);
  weft_arena_end(&host);
  return st;
}
