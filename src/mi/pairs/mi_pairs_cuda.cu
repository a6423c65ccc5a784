/* Pairs and triples on the device. Any shape of attributes: counts of a panel's tiles by 1-bit tensor cores (mma.sync
 * on compute capability 8.0 and later, POPC before), then one thread a pair scores its table. On Hopper
 * binary attributes with two classes have a way of their own, mi_pairs_wgmma.cu, and so have attributes of at most
 * three levels with two to eight classes, mi_planes_wgmma.cu; other planes, mi_products_wgmma.cu. Attributes with codes
 * are counted one block a pair, mi_codes_cuda.cu. */
#include <cmath>
#include <cstring>
#include "../../base/parallel.h"
#include "mi_pairs_cuda.cuh"
#include "mi_codes.cuh"
#include "mi_products.cuh"
#include "mi_tables.cuh"

#define HITS ((uint64_t) 1 << 20)
#define FULL_PAIRS ((size_t) 1 << 20)       /* scores that travel at a time */
#define FIRST_PAIRS 1e5                     /* pairs before there is a bar */
#define FIRST_BARRED 3.2e6                  /* with a bar from single attributes: a tile for most multiprocessors */
#define GROWTH 8                            /* then so many times more */
#define SLACK_UNITS ((int64_t) 1 << 20)     /* with four a row, more than the rounding of f adds up to */
#define MOST_PAIRS 2e10                     /* between two polls */
#define MOST_CELLS 1e14                     /* pairs × rows */
#define MOST_PLANAR 1e13                    /* of attributes of three levels */
#define MOST_CODED 1e10                     /* pairs × rows, one block a pair */
#define MOST_SCORED 5e8                     /* pairs, one thread each */

/* ---- collecting ---- */

/* What a search has found so far, and the device's buffer of more. */
struct collector {
  const weft_mi_search *search;
  weft_mi_keeper keeper;
  mi_bar bar;
  mi_hits hits;
  weft_scored *buffer;        /* on the host */
  cudaStream_t stream;
  int started;                /* the bar is from single attributes */
};

/* Brings the hits of what ran; *overflow when there were more than fit, and then nothing is kept but a higher bar. */
static weft_status collect(weft_ctx *ctx, collector *c, int *overflow)
{
  weft_status st = WEFT_OK;
  unsigned long long count;
  size_t brought;
  WEFT_CUDA(cudaMemcpyAsync(&count, c->hits.count, sizeof count, cudaMemcpyDeviceToHost, c->stream));
  WEFT_CUDA(cudaStreamSynchronize(c->stream));
  *overflow = count > c->hits.capacity;
  brought = *overflow ? c->hits.capacity : (size_t) count;
  if (brought) {
    WEFT_CUDA(
        cudaMemcpyAsync(c->buffer, c->hits.items, brought * sizeof *c->buffer, cudaMemcpyDeviceToHost, c->stream));
    WEFT_CUDA(cudaStreamSynchronize(c->stream));
  }
  if (*overflow) {
    /* the bar may rise to the k-th best of what was seen, but these pairs will come again */
    if (c->keeper.bounded && c->keeper.best.k <= brought) {
      weft_scored_select(c->buffer, brought, c->keeper.best.k);
      const weft_scored kth = c->buffer[c->keeper.best.k - 1];
      weft_scored now;
      now.score = c->bar.score;
      now.index = c->bar.index;
      if (weft_scored_before(kth, now)) { c->bar.score = kth.score; c->bar.index = kth.index + 1; }
    }
    goto done;
  }
  for (size_t k = 0; k < brought; k++) weft_mi_keep(&c->keeper, c->buffer[k].score, c->buffer[k].index);
  if (c->keeper.st != WEFT_OK) {
    memcpy(ctx->message, c->keeper.ctx.message, sizeof ctx->message);
    st = c->keeper.st;
    goto done;
  }
  if (c->keeper.bounded && c->keeper.best.count >= c->keeper.best.k) {
    weft_topk_shrink(&c->keeper.best);
    weft_scored now;
    now.score = c->bar.score;
    now.index = c->bar.index;
    const weft_scored kth = c->keeper.best.bar;
    if (kth.index != UINT64_MAX && weft_scored_before(kth, now)) { c->bar.score = kth.score; c->bar.index = kth.index; }
  }
done:
  return st;
}

/* Work in units, those dealt to this part of the search: `run` does the part's units first .. first+count-1; `until` is
 * how many pairs (triples) come before one, about. Few at first, more as the bar rises. */
struct runner {
  void *job;
  uint64_t units;
  double most;                /* pairs between two polls */
  weft_status (*run)(weft_ctx *ctx, void *job, collector *c, uint64_t first, uint64_t count);
  double (*until)(const void *job, uint64_t units);
};

/* The most units from `first` on, at least one, with no more than `pairs` pairs. */
static uint64_t units_of(const runner *r, uint64_t first, double pairs)
{
  uint64_t lo = 1, hi = r->units - first;
  const double before = r->until(r->job, first);
  while (lo < hi) {
    const uint64_t mid = lo + (hi - lo + 1) / 2;
    if (r->until(r->job, first + mid) - before <= pairs) lo = mid; else hi = mid - 1;
  }
  return lo;
}

static weft_status run_all(weft_ctx *ctx, collector *c, const runner *r)
{
  weft_status st = WEFT_OK;
  const int barred = c->keeper.bounded && c->keeper.best.count >= c->keeper.best.k;
  uint64_t first = 0, halved = 0;
  while (first < r->units) {
    const double seen = r->until(r->job, first), start = c->started ? FIRST_BARRED : FIRST_PAIRS;
    const double pairs = barred || !c->keeper.bounded ? r->most : fmax(start, GROWTH * seen);
    uint64_t now = halved ? halved : units_of(r, first, fmin(pairs, r->most));
    int overflow = 0;
    WEFT_TRY(weft_poll(ctx, (double) first, (double) r->units));
    WEFT_CUDA(cudaMemsetAsync(c->hits.count, 0, sizeof *c->hits.count, c->stream));
    WEFT_TRY(r->run(ctx, r->job, c, first, now));
    WEFT_TRY(collect(ctx, c, &overflow));
    if (!overflow) { first += now; halved = 0; }
    else halved = (now + 1) / 2;
  }
done:
  return st;
}

static uint64_t units_dealt(const collector *c, uint64_t units)
{
  return weft_dealt(units, c->search->part, c->search->parts);
}
static uint64_t unit_dealt(const collector *c, uint64_t k)
{
  return weft_dealt_unit(k, c->search->part, c->search->parts);
}

/* ---- panels of any shape ---- */

/* Counts and scores one part. */
static weft_status run_part(weft_ctx *ctx, mi_panel *panel, collector *c, uint64_t index)
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

static weft_status run_parts(weft_ctx *ctx, void *data, collector *c, uint64_t first, uint64_t count)
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
                                const weft_mi_resident *r, const weft_mi_panel *panel, collector *c)
{
  weft_status st = WEFT_OK;
  mi_panel job;
  st = weft_mi_panel_plan(mem, host, pack, r, pack, r, panel, (size_t) (c->hits.capacity / 2), &job);
  if (st == WEFT_OK) {
    const runner r_parts = { &job, units_dealt(c, job.parts), MOST_SCORED, run_parts, parts_until };
    st = run_all(ctx, c, &r_parts);
  }
  weft_mi_panel_drop(mem, host, &job);
  return st;
}

/* ---- attributes with codes ---- */

struct codes_job { weft_device_arena *mem; mi_codes codes; };

static weft_status run_codes(weft_ctx *ctx, void *data, collector *c, uint64_t first, uint64_t count)
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
                                const weft_mi_resident *r, const weft_mi_panel *panel, collector *c)
{
  weft_status st = WEFT_OK;
  codes_job job = { mem };
  st = weft_mi_codes_plan(ctx, mem, host, pack, r, pack, panel, 1, &job.codes);
  if (st == WEFT_OK) {
    const runner r_tiles = { &job, units_dealt(c, job.codes.tiles), MOST_CODED / ((double) pack->n + 1), run_codes,
                             codes_until };
    st = run_all(ctx, c, &r_tiles);
  }
  weft_mi_codes_drop(mem, host, &job.codes);
  return st;
}

/* ---- binary attributes on Hopper ---- */

struct binary_job {
  mi_binary b;
  const uint8_t *tiles[2];
  uint8_t *own[2], *constants;
  uint64_t start;
};

static int fits_wgmma(const weft_ctx *ctx, const weft_mi_pack *p, const weft_mi_group *g)
{
  return !g->coded && g->shape.planes == 1 && !g->shape.missing && p->classes == 2 && p->per == 2 && p->class_rows[0] &&
         p->class_rows[1] && p->class_rows[0] <= 65535 && p->class_rows[1] <= 65535 && weft_mi_wgmma_ready(ctx->device);
}

static mi_binary describe_binary(const weft_mi_pack *p, const weft_mi_resident *r, const weft_mi_group *g,
                                 const weft_mi_group *h)
{
  mi_binary b;
  memset(&b, 0, sizeof b);
  b.r = r;
  for (int c = 0; c < 2; c++) {
    b.class_rows[c] = p->class_rows[c];
    b.steps[c] = (int) ((p->class_rows[c] + STEP_BITS - 1) / STEP_BITS);
  }
  b.first_a = g->first;
  b.first_b = h->first;
  b.count_a = g->count;
  b.count_b = h->count;
  b.row_a = g->plane0;
  b.row_b = h->plane0;
  b.columns = p->columns;
  b.plane_rows = p->plane_rows;
  b.steepest = weft_mi_steepest(p->class_rows[1] / ((double) p->class_rows[0] + p->class_rows[1]));
  b.same = g == h;
  return b;
}

/* Rows of planes in wgmma's order: those of binary attributes, or two an attribute. */
struct arranged { int rows_each; size_t first, row, count; uint32_t planes; };

static weft_status arrange(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_resident *r, const arranged *a,
                           uint8_t **out)
{
  weft_status st = WEFT_OK;
  uint8_t *tiles;
  const size_t bytes =
      a->rows_each == 1 ? (a->count + 255) / 256 * 256 * r->words * 4 : weft_mi_planes_bytes(r, a->count);
  WEFT_DEVICE_TAKE(tiles, mem, bytes);
  *out = tiles;
  if (a->rows_each == 1) WEFT_TRY(weft_mi_wgmma_arrange(ctx, r, a->row, a->count, tiles, mem->stream));
  else WEFT_TRY(weft_mi_planes_arrange(ctx, r, a->row, a->count, a->planes, tiles, mem->stream));
done:
  return st;
}

/* The same, kept with the pack for its next search. */
static weft_status arrange_once(weft_ctx *ctx, weft_mi_resident *r, const arranged *a, const uint8_t **out)
{
  weft_status st = WEFT_OK;
  if (!r->tiles || r->tiles_first != a->first || r->tiles_rows != a->rows_each) {
    if (r->tiles) weft_device_drop(&r->mem, r->tiles);
    r->tiles = NULL;
    r->mem.ctx = ctx;
    st = arrange(ctx, &r->mem, r, a, &r->tiles);
    r->mem.ctx = &r->own;
    if (st != WEFT_OK) goto done;
    WEFT_CUDA(cudaStreamSynchronize(r->mem.stream));
    r->tiles_first = a->first;
    r->tiles_rows = a->rows_each;
  }
  *out = r->tiles;
done:
  return st;
}

/* Both sides of a panel; what *own points to is for this search alone. */
static weft_status arrange_sides(weft_ctx *ctx, weft_device_arena *mem, weft_mi_resident *r,
                                 const weft_mi_panel *panel, int rows_each, uint8_t *own[2], const uint8_t *tiles[2])
{
  weft_status st = WEFT_OK;
  for (int side = 0; side < 2; side++) {
    const weft_mi_group *g = side ? panel->h : panel->g;
    const arranged a = { rows_each, g->first, g->plane0, g->count, g->shape.planes };
    if (panel->same) {
      WEFT_TRY(arrange_once(ctx, r, &a, &tiles[side]));
    } else {
      WEFT_TRY(arrange(ctx, mem, r, &a, &own[side]));
      tiles[side] = own[side];
    }
  }
done:
  return st;
}

static weft_status run_binary(weft_ctx *ctx, void *data, collector *c, uint64_t first, uint64_t count)
{
  binary_job *job = (binary_job *) data;
  return weft_mi_wgmma_pairs(ctx, &job->b, job->tiles[0], job->tiles[1], job->constants, &c->bar, &c->hits,
                             job->start + first, count, c->stream);
}

static double binary_until(const void *job, uint64_t units)
{
  (void) job;
  return (double) units * 128 * 256;
}

static weft_status search_binary(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack, weft_mi_resident *r,
                                 const weft_mi_panel *panel, collector *c)
{
  weft_status st = WEFT_OK;
  binary_job job;
  memset(&job, 0, sizeof job);
  job.b = describe_binary(pack, r, panel->g, panel->h);
  WEFT_TRY(arrange_sides(ctx, mem, r, panel, 1, job.own, job.tiles));
  WEFT_DEVICE_TAKE(job.constants, mem, weft_mi_wgmma_room(&job.b, 2));
  {
    /* neighbouring tiles share planes in the cache, so a part has a run of them */
    const uint64_t tiles = weft_mi_wgmma_tiles(&job.b),
                   end = weft_share_start(tiles, c->search->part + 1, c->search->parts);
    job.start = weft_share_start(tiles, c->search->part, c->search->parts);
    const runner r_tiles = { &job, end - job.start, fmin(MOST_PAIRS, MOST_CELLS / (double) pack->n), run_binary,
                             binary_until };
    st = run_all(ctx, c, &r_tiles);
  }
done:
  weft_device_drop(mem, job.own[0]);
  weft_device_drop(mem, job.own[1]);
  weft_device_drop(mem, job.constants);
  return st;
}

/* ---- attributes of at most three levels on Hopper ---- */

struct planar_job {
  mi_planar b;
  const uint8_t *tiles[2];
  uint8_t *own[2], *room;
  uint64_t start;
};

static int fits_planes(const weft_ctx *ctx, const weft_mi_pack *p, const weft_mi_group *g)
{
  uint32_t occupied = 0;
  for (uint32_t c = 0; c < p->classes; c++) occupied += p->class_rows[c] > 0;
  return !g->coded && g->shape.planes <= 2 && !g->shape.missing && occupied >= 2 && p->per == p->classes &&
         p->classes <= WEFT_PLANES_CLASSES && weft_mi_wgmma_ready(ctx->device);
}

static mi_planar describe_planar(const weft_mi_pack *p, const weft_mi_resident *r, const weft_mi_group *g,
                                 const weft_mi_group *h)
{
  mi_planar b;
  memset(&b, 0, sizeof b);
  b.r = r;
  b.classes = p->classes;
  for (uint32_t c = 0; c < p->classes; c++) b.class_rows[c] = p->class_rows[c];
  b.first_a = g->first;
  b.first_b = h->first;
  b.count_a = g->count;
  b.count_b = h->count;
  b.row_a = g->plane0;
  b.row_b = h->plane0;
  b.planes_a = g->shape.planes;
  b.planes_b = h->shape.planes;
  b.columns = p->columns;
  b.plane_rows = p->plane_rows;
  b.packed = p->classes == 2 && p->n <= WEFT_PLANES_PACKED;
  if (b.packed) b.steepest = weft_mi_steepest(p->class_rows[0] / (double) p->n);
  b.same = g == h;
  return b;
}

static weft_status run_planar(weft_ctx *ctx, void *data, collector *c, uint64_t first, uint64_t count)
{
  planar_job *job = (planar_job *) data;
  return weft_mi_planes_pairs(ctx, &job->b, job->tiles[0], job->tiles[1], job->room, &c->bar, &c->hits,
                              job->start + first, count, c->stream);
}

static double planar_until(const void *job, uint64_t units)
{
  (void) job;
  return (double) units * 64 * 128;
}

static weft_status search_planar(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack, weft_mi_resident *r,
                                 const weft_mi_panel *panel, collector *c)
{
  weft_status st = WEFT_OK;
  planar_job job;
  size_t bytes;
  memset(&job, 0, sizeof job);
  job.b = describe_planar(pack, r, panel->g, panel->h);
  WEFT_TRY(arrange_sides(ctx, mem, r, panel, 2, job.own, job.tiles));
  WEFT_TRY(weft_mi_planes_room(ctx, &job.b, &bytes));
  WEFT_DEVICE_TAKE(job.room, mem, bytes);
  {
    const uint64_t tiles = weft_mi_planes_tiles(&job.b),
                   end = weft_share_start(tiles, c->search->part + 1, c->search->parts);
    job.start = weft_share_start(tiles, c->search->part, c->search->parts);
    const runner r_tiles = { &job, end - job.start, fmin(MOST_PAIRS, MOST_PLANAR / (double) pack->n), run_planar,
                             planar_until };
    st = run_all(ctx, c, &r_tiles);
  }
done:
  weft_device_drop(mem, job.own[0]);
  weft_device_drop(mem, job.own[1]);
  weft_device_drop(mem, job.room);
  return st;
}

/* ---- attributes of any planes on Hopper ---- */

struct products_job { mi_products p; uint64_t start; };

static weft_status run_products(weft_ctx *ctx, void *data, collector *c, uint64_t first, uint64_t count)
{
  const products_job *job = (const products_job *) data;
  return weft_mi_products_pairs(ctx, &job->p, &c->bar, &c->hits, job->start + first, count, c->stream);
}

static weft_status search_products(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                   const weft_mi_resident *r, const weft_mi_panel *panel, collector *c)
{
  weft_status st = WEFT_OK;
  products_job job;
  WEFT_TRY(weft_mi_products_begin(ctx, mem, pack, r, panel, &job.p));
  {
    const uint64_t end = weft_share_start(job.p.tiles, c->search->part + 1, c->search->parts);
    job.start = weft_share_start(job.p.tiles, c->search->part, c->search->parts);
    const runner r_tiles = { &job, end - job.start, weft_mi_products_most(&job.p), run_products, binary_until };
    st = run_all(ctx, c, &r_tiles);
  }
done:
  weft_mi_products_end(mem, &job.p);
  return st;
}

/* ---- triples ---- */

struct triple_job {
  mi_binary b;
  const uint8_t *tiles;
  uint8_t *masked, *constants;
  uint32_t *joint;
  size_t ld;
  double parts;
};

static weft_status run_triples(weft_ctx *ctx, void *data, collector *c, uint64_t first, uint64_t count)
{
  weft_status st = WEFT_OK;
  triple_job *job = (triple_job *) data;
  /* the last attributes first: they have the fewest pairs behind them */
  for (uint64_t k = first; k < first + count; k++)
    WEFT_TRY(weft_mi_wgmma_triples(ctx, &job->b, job->tiles, job->masked, job->constants, job->joint, job->ld,
                                   (uint32_t) (job->b.count_a - 3 - unit_dealt(c, k)), &c->bar, &c->hits, c->stream));
done:
  return st;
}

/* Triples before a part's unit: about, and of all of `parts` their share. */
static double triples_before(uint64_t units, double parts)
{
  const double before = (double) units * parts;
  return before * (before + 1) * (before + 2) / 6 / parts;
}

static double triples_until(const void *data, uint64_t units)
{
  return triples_before(units, ((const triple_job *) data)->parts);
}

static weft_status search_triples(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                  const weft_mi_resident *r, collector *c)
{
  weft_status st = WEFT_OK;
  triple_job job;
  uint8_t *tiles = NULL;
  size_t bytes;
  const weft_mi_group *g = &pack->groups[0];
  const arranged all = { 1, g->first, g->plane0, g->count, 1 };
  memset(&job, 0, sizeof job);
  job.b = describe_binary(pack, r, g, g);
  job.ld = (pack->p + 255) / 256 * 256;
  bytes = job.ld * r->words * 4;
  WEFT_TRY(arrange(ctx, mem, r, &all, &tiles));
  job.tiles = tiles;
  WEFT_DEVICE_TAKE(job.masked, mem, bytes);
  WEFT_DEVICE_TAKE(job.constants, mem, weft_mi_wgmma_room(&job.b, 3));
  WEFT_DEVICE_TAKE(job.joint, mem, job.ld * job.ld);
  WEFT_TRY(weft_mi_wgmma_counts(ctx, &job.b, job.tiles, job.joint, job.ld, mem->stream));
  {
    job.parts = (double) c->search->parts;
    const runner r_fixed = { &job, units_dealt(c, pack->p - 2), fmin(MOST_PAIRS, MOST_CELLS / (double) pack->n),
                             run_triples, triples_until };
    st = run_all(ctx, c, &r_fixed);
  }
done:
  return st;
}

/* ---- triples of any few levels on Hopper ---- */

struct levels_job { mi_levels t; double parts; };

static weft_status run_levels(weft_ctx *ctx, void *data, collector *c, uint64_t first, uint64_t count)
{
  weft_status st = WEFT_OK;
  const levels_job *job = (const levels_job *) data;
  for (uint64_t k = first; k < first + count; k++)
    WEFT_TRY(weft_mi_levels_triples(ctx, &job->t, (uint32_t) (job->t.pack->p - 3 - unit_dealt(c, k)), &c->bar, &c->hits,
                                    c->stream));
done:
  return st;
}

static double levels_until(const void *data, uint64_t units)
{
  return triples_before(units, ((const levels_job *) data)->parts);
}

static weft_status search_levels(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                 const weft_mi_resident *r, collector *c)
{
  weft_status st = WEFT_OK;
  levels_job job;
  job.parts = (double) c->search->parts;
  WEFT_TRY(weft_mi_levels_begin(ctx, mem, pack, r, &job.t));
  {
    const runner r_fixed = { &job, units_dealt(c, pack->p - 2), weft_mi_levels_most(&job.t), run_levels, levels_until };
    st = run_all(ctx, c, &r_fixed);
  }
done:
  return st;
}

/* ---- entry points ---- */

/* A tuple of complete attributes says at least what each of its members says alone. When the r strongest attributes are
 * in enough tuples to fill what is kept, nothing behind the r-th of them will be kept. */
static void start_bar(const weft_mi_pack *pack, const weft_mi_resident *r, const weft_mi_search *search, collector *c)
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
  return pack->group_count == 1 && pack->p >= 3 && fits_wgmma(ctx, pack, &pack->groups[0]);
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

extern "C" weft_status weft_mi_search_cuda(weft_ctx *ctx, const weft_mi_pack *pack, weft_mi_resident **device,
                                           const weft_mi_search *search, weft_arena *out_mem, weft_mi_found *out)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  weft_device_arena mem = weft_device_begin(ctx);
  const double p = (double) pack->p, possible = search->order == 2 ? p * (p - 1) / 2 : p * (p - 1) * (p - 2) / 6;
  collector c;
  weft_mi_tiling tiling;
  int begun = 0;
  memset(&c, 0, sizeof c);
  if (search->order == 3 && (search->top > HITS / 2 || !(binary_triples(ctx, pack) || weft_mi_levels_fit(ctx, pack)))) {
    st = weft_fail(ctx, WEFT_ERR_DEVICE,
                   "These triples are not for this device: see ?mi_triples."); /* R has looked before */
    goto done;
  }
  WEFT_TRY(weft_mi_tiling_make(&host, pack, NULL, &tiling));
  if (!*device) WEFT_TRY(weft_mi_resident_make(ctx, pack, device));
  c.search = search;
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
  start_bar(pack, *device, search, &c);
  if (search->order == 3) {
    if (binary_triples(ctx, pack)) WEFT_TRY(search_triples(ctx, &mem, pack, *device, &c));
    else WEFT_TRY(search_levels(ctx, &mem, pack, *device, &c));
  } else {
    for (size_t k = 0; k < tiling.panel_count; k++) {
      const weft_mi_panel *panel = &tiling.panels[k];
      if (by_codes(panel)) WEFT_TRY(search_codes(ctx, &mem, &host, pack, *device, panel, &c));
      else if (fits_wgmma(ctx, pack, panel->g) && fits_wgmma(ctx, pack, panel->h))
        WEFT_TRY(search_binary(ctx, &mem, pack, *device, panel, &c));
      else if (fits_planes(ctx, pack, panel->g) && fits_planes(ctx, pack, panel->h))
        WEFT_TRY(search_planar(ctx, &mem, pack, *device, panel, &c));
      else if (weft_mi_products_fit(ctx, pack, panel->g, panel->h))
        WEFT_TRY(search_products(ctx, &mem, pack, *device, panel, &c));
      else WEFT_TRY(search_panel(ctx, &mem, &host, pack, *device, panel, &c));
    }
    if (any_coded(&tiling)) {
      weft_mi_found more = { NULL, 0 };
      WEFT_TRY(weft_mi_search_large(ctx, pack, search, weft_mi_codes_limit(ctx), &host, &more));
      for (size_t k = 0; k < more.count; k++) weft_mi_keep(&c.keeper, more.items[k].score, more.items[k].index);
    }
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
