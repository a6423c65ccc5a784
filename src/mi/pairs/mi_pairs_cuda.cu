/* Pairs and triples on the device. Any shape of attributes: counts of a panel's tiles by 1-bit tensor cores (mma.sync
 * on compute capability 8.0 and later, POPC before), then one thread per pair scores its table. Attributes with codes
 * are counted by one block per pair, mi_codes_cuda.cu. What Hopper does otherwise is in mi_hopper_cuda.cu. */
#include <cmath>
#include <cstring>
#include "../../base/parallel.h"
#include "mi_search_cuda.cuh"
#include "mi_codes.cuh"
#include "mi_products.cuh"
#include "mi_tables.cuh"

#define HITS ((uint64_t) 1 << 20)
#define FULL_PAIRS ((size_t) 1 << 20)       /* scores that travel at a time */
#define SLACK_UNITS ((int64_t) 1 << 20)     /* with four per row, more than the rounding of f adds up to */
#define MOST_CODED 1e10                     /* pairs × rows, one block per pair */
#define MOST_SCORED 5e8                     /* pairs, one thread each */

/* ---- panels of any shape ---- */

/* Counts and scores one part. */
static weft_status run_part(weft_ctx *ctx, mi_panel *panel, mi_collector *c, uint64_t index)
{
  weft_status st = WEFT_OK;
  part p;
  WEFT_TRY(weft_mi_panel_count(ctx, panel, index, c->stream, &p));
  if (!p.na) goto done;
  score_part<<<dim3((unsigned) ((p.nb + SCORE_THREADS - 1) / SCORE_THREADS), (unsigned) p.na), SCORE_THREADS, 0,
               c->stream>>>(p, c->bar, c->hits, NULL, NULL);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

static weft_status run_parts(weft_ctx *ctx, void *data, mi_collector *c, uint64_t first, uint64_t count)
{
  weft_status st = WEFT_OK;
  for (uint64_t k = first; k < first + count; k++) WEFT_TRY(run_part(ctx, (mi_panel *) data, c, unit_dealt(c, k)));
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
                                const weft_mi_resident *r, const weft_mi_panel *panel, mi_collector *c)
{
  weft_status st = WEFT_OK;
  mi_panel job;
  st = weft_mi_panel_plan(mem, host, pack, r, pack, r, panel, (size_t) (c->hits.capacity / 2), &job);
  if (st == WEFT_OK) {
    const mi_runner r_parts = { &job, units_dealt(c, job.parts), MOST_SCORED, run_parts, parts_until };
    st = weft_mi_run_all(ctx, c, &r_parts);
  }
  weft_mi_panel_drop(mem, host, &job);
  return st;
}

/* ---- attributes with codes ---- */

struct codes_job { weft_device_arena *mem; mi_codes codes; };

static weft_status run_codes(weft_ctx *ctx, void *data, mi_collector *c, uint64_t first, uint64_t count)
{
  weft_status st = WEFT_OK;
  codes_job *job = (codes_job *) data;
  codes_out to;
  memset(&to, 0, sizeof to);
  to.bar = c->bar;
  to.hits = c->hits;
  for (uint64_t k = first; k < first + count; k++)
    WEFT_TRY(weft_mi_codes_tile(ctx, job->mem, &job->codes, unit_dealt(c, k), &to));
done:
  return st;
}

static double codes_until(const void *data, uint64_t units)
{
  const codes_job *job = (const codes_job *) data;
  return (double) units * (double) job->codes.side * (double) job->codes.side;
}

static weft_status search_codes(weft_ctx *ctx, weft_device_arena *mem, weft_arena *host, const weft_mi_pack *pack,
                                const weft_mi_resident *r, const weft_mi_panel *panel, mi_collector *c)
{
  weft_status st = WEFT_OK;
  codes_job job = { mem };
  st = weft_mi_codes_plan(ctx, mem, host, pack, r, pack, panel, 1, &job.codes);
  if (st == WEFT_OK) {
    const mi_runner r_tiles = { &job, units_dealt(c, job.codes.tiles), MOST_CODED / ((double) pack->n + 1), run_codes,
                             codes_until };
    st = weft_mi_run_all(ctx, c, &r_tiles);
  }
  weft_mi_codes_drop(mem, host, &job.codes);
  return st;
}

/* ---- entry points ---- */

/* A tuple of complete attributes says at least what each of its members says alone. When the r strongest attributes are
 * in enough tuples to fill what is kept, nothing behind the r-th of them will be kept. */
static void start_bar(const weft_mi_pack *pack, const weft_mi_resident *r, const weft_mi_search *search,
                      mi_collector *c)
{
  const double p = (double) r->complete;
  if (!c->keeper.bounded || search->by_interaction || search->min_gain > -INFINITY) return;
  if (search->near.chromosome) return; /* how many tuples are left is not known */
  for (size_t g = 0; g < pack->group_count; g++) if (pack->groups[g].side != 3) return;
  for (size_t k = 0; k < MI_STRONGEST && k < r->complete; k++) {
    const double left = p - (double) k - 1;
    if (weft_mi_choose(p, search->order) - weft_mi_choose(left, search->order) < (double) c->keeper.best.k) continue;
    const int64_t sure = r->strongest[k] - SLACK_UNITS - 4 * (int64_t) pack->n;
    if (sure <= 0) return;
    c->bar.score = weft_mi_bits(sure, r->f.unit, pack->n);
    c->started = 1;
    return;
  }
}

static int by_codes(const weft_mi_panel *panel) { return panel->g->coded || panel->h->coded; }

static int any_coded(const weft_mi_tiling *tiling)
{
  for (size_t k = 0; k < tiling->panel_count; k++) if (by_codes(&tiling->panels[k])) return 1;
  return 0;
}

static int binary_triples(const weft_ctx *ctx, const weft_mi_pack *pack)
{
  return pack->group_count == 1 && pack->p >= 3 && weft_mi_fits_binary(ctx, pack, &pack->groups[0]);
}

/* Where the columns lie, for the kernels. */
static weft_status send_near(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                             const weft_mi_search *search, mi_bar *bar)
{
  weft_status st = WEFT_OK;
  uint32_t *chromosome;
  double *position;
  bar->columns = pack->columns;
  if (!search->near.chromosome) goto done;
  WEFT_DEVICE_TAKE(chromosome, mem, pack->columns);
  WEFT_DEVICE_TAKE(position, mem, pack->columns);
  WEFT_CUDA(cudaMemcpyAsync(chromosome, search->near.chromosome, pack->columns * sizeof *chromosome,
                            cudaMemcpyHostToDevice, mem->stream));
  WEFT_CUDA(cudaMemcpyAsync(position, search->near.position, pack->columns * sizeof *position, cudaMemcpyHostToDevice,
                            mem->stream));
  WEFT_CUDA(cudaStreamSynchronize(mem->stream));
  bar->near.chromosome = chromosome;
  bar->near.position = position;
  bar->near.distance = search->near.distance;
done:
  return st;
}

weft_status weft_mi_search_panels(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack, weft_mi_resident *r,
                                  mi_collector *c)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  weft_mi_tiling tiling;
  WEFT_TRY(weft_mi_tiling_make(&host, pack, NULL, &tiling));
  for (size_t k = 0; k < tiling.panel_count; k++) {
    const weft_mi_panel *panel = &tiling.panels[k];
    if (by_codes(panel)) WEFT_TRY(search_codes(ctx, mem, &host, pack, r, panel, c));
    else if (weft_mi_fits_binary(ctx, pack, panel->g) && weft_mi_fits_binary(ctx, pack, panel->h))
      WEFT_TRY(weft_mi_hopper_binary(ctx, mem, pack, r, panel, c));
    else if (weft_mi_fits_planar(ctx, pack, panel->g) && weft_mi_fits_planar(ctx, pack, panel->h))
      WEFT_TRY(weft_mi_hopper_planar(ctx, mem, pack, r, panel, c));
    else if (weft_mi_products_fit(ctx, pack, panel->g, panel->h))
      WEFT_TRY(weft_mi_hopper_products(ctx, mem, pack, r, panel, c));
    else WEFT_TRY(search_panel(ctx, mem, &host, pack, r, panel, c));
  }
  if (any_coded(&tiling)) {
    weft_mi_found more = { NULL, 0 };
    WEFT_TRY(weft_mi_search_large(ctx, pack, c->search, weft_mi_codes_limit(ctx), &host, &more));
    for (size_t k = 0; k < more.count; k++) weft_mi_keep(&c->keeper, more.items[k].score, more.items[k].index);
  }
done:
  weft_arena_end(&host);
  return st;
}

extern "C" weft_status weft_mi_search_cuda(weft_ctx *ctx, const weft_mi_pack *pack, weft_mi_resident **device,
                                           const weft_mi_search *search, weft_arena *out_mem, weft_mi_found *out)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  weft_device_arena mem = weft_device_begin(ctx);
  const double p = (double) pack->p, possible = search->order == 2 ? p * (p - 1) / 2 : p * (p - 1) * (p - 2) / 6;
  mi_collector c;
  mi_block_plan blocks;
  int begun = 0;
  memset(&c, 0, sizeof c);
  if (search->order == 3 &&
      (search->top > HITS / 2 || !(binary_triples(ctx, pack) || weft_mi_levels_fit(ctx, pack)))) {
    st = weft_fail(ctx, WEFT_ERR_DEVICE,
                   "These triples are not for this device: see ?mi_triples."); /* R has looked before */
    goto done;
  }
  c.search = search;
  c.share = 1;
  c.bar.score = -INFINITY;
  c.bar.index = UINT64_MAX;
  c.bar.min_mi = search->min_mi;
  c.bar.min_gain = search->min_gain;
  c.bar.by_interaction = search->by_interaction;
  c.stream = mem.stream;
  c.hits.capacity = HITS;
  WEFT_DEVICE_TAKE(c.hits.items, &mem, c.hits.capacity);
  WEFT_DEVICE_TAKE(c.hits.count, &mem, 1);
  WEFT_TAKE(c.buffer, &host, c.hits.capacity);
  WEFT_TRY(weft_mi_keeper_begin(ctx, &c.keeper, search->top, possible < 1 ? 1 : (size_t) fmin(possible, 1e15)));
  begun = 1;
  WEFT_TRY(send_near(ctx, &mem, pack, search, &c.bar));
  if (search->order == 2 && !*device && !weft_mi_device_holds(ctx, pack, 0, &blocks)) {
    WEFT_TRY(weft_mi_search_blocks(ctx, &mem, pack, &blocks, &c));
    goto done;
  }
  if (!*device) WEFT_TRY(weft_mi_resident_make(ctx, pack, device));
  start_bar(pack, *device, search, &c);
  if (search->order == 2) WEFT_TRY(weft_mi_search_panels(ctx, &mem, pack, *device, &c));
  else if (binary_triples(ctx, pack)) WEFT_TRY(weft_mi_hopper_triples(ctx, &mem, pack, *device, &c));
  else {
    int searched = 0;
    if (weft_mi_sorted_fit(ctx, pack)) WEFT_TRY(weft_mi_hopper_sorted(ctx, &mem, pack, *device, &c, &searched));
    if (!searched) WEFT_TRY(weft_mi_hopper_levels(ctx, &mem, pack, *device, &c));
  }
done:
  if (begun && st == WEFT_OK) st = weft_mi_keepers_end(ctx, &c.keeper, 1, out_mem, out);
  else if (begun) weft_arena_end(&c.keeper.mem);
  weft_device_end(&mem);
  weft_arena_end(&host);
  return st;
}

/* Puts a part's scores, row after row in `mi` and `interaction`, into whole matrices. */
static void spread(weft_ctx *ctx, const weft_mi_pack *pack, const double *mi, const double *interaction, size_t place_a,
                   size_t na, size_t place_b, size_t nb, int same, double *full_mi, double *full_interaction)
{
  WEFT_PARALLEL(ctx->threads)
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
    if (coded) WEFT_TRY(weft_mi_codes_plan(ctx, &mem, &host, pack, *device, pack, panel, 1, &codes));
    else WEFT_TRY(weft_mi_panel_plan(&mem, &host, pack, *device, pack, *device, panel, FULL_PAIRS, &planes));
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
        place_a = panel->g->first + codes.i0;
        place_b = panel->h->first + codes.j0;
        na = codes.ni;
        nb = codes.nj;
      } else {
        part p;
        mi_bar none;
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
    if (coded) weft_mi_codes_drop(&mem, &host, &codes);
    else weft_mi_panel_drop(&mem, &host, &planes);
  }
  if (any_coded(&tiling)) WEFT_TRY(weft_mi_full_large(ctx, pack, weft_mi_codes_limit(ctx), mi, interaction));
done:
  weft_device_end(&mem);
  weft_arena_end(&host);
  return st;
}
