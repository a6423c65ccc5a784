/* Pairs and triples that Hopper's 1-bit tensor cores count (binary_hopper.cu, pairs/cuda/ternary_hopper.cu, and for any
 * planes fused_hopper.cu and counted_hopper.cu): their rows of bits are arranged in the order of shared memory, then a
 * search goes through tiles of pairs. */
#include <cmath>
#include <cstring>
#include "mi/pairs/cuda/counted.cuh"
#include "mi/search/cuda/progress.cuh"

#define MOST_PAIRS 2e10  /* between two polls */
#define MOST_CELLS 1e14  /* pairs × rows */
#define MOST_PLANAR 1e13 /* of attributes of three levels */
#define MANY_ROWS 100000 /* more classes than two: above, counting takes longer than the screen */

/* ---- rows in the order of shared memory ---- */

/* Rows of planes in wgmma's order: those of binary attributes, or two per attribute. */
struct arranged {
  int rows_each;
  size_t first, row, count;
  uint32_t planes;
};

/* Takes memory for arranged planes from `mem` and fills it; *out points to it even if filling fails. */
static weft_status arrange(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_resident *r, const arranged *a,
                           uint8_t **out)
{
  weft_status st = WEFT_OK;
  uint8_t *tiles;
  const size_t bytes =
      a->rows_each == 1 ? (a->count + 255) / 256 * 256 * r->words * 4 : weft_mi_planes_bytes(r, a->count);
  WEFT_DEVICE_TAKE(tiles, mem, bytes);
  *out = tiles;
  if (a->rows_each == 1)
    WEFT_TRY(weft_mi_wgmma_arrange(ctx, r, a->row, a->count, tiles, mem->stream));
  else
    WEFT_TRY(weft_mi_planes_arrange(ctx, r, a->row, a->count, a->planes, tiles, mem->stream));
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

/* Both sides of a panel; what *own points to belongs to this search alone. */
static weft_status arrange_sides(weft_ctx *ctx, weft_device_arena *mem, weft_mi_resident *r, const weft_mi_panel *panel,
                                 int rows_each, uint8_t *own[2], const uint8_t *tiles[2])
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

/* ---- pairs ---- */

/* A search through tiles of a panel. */
struct tiled_job {
  const uint8_t *tiles[2];
  uint8_t *own[2], *room;
  uint64_t start; /* first tile of this part */
};

static void describe_sides(const weft_mi_pack *p, const weft_mi_resident *r, const weft_mi_group *g,
                           const weft_mi_group *h, mi_sides *out)
{
  out->r = r;
  out->first_a = g->first;
  out->first_b = h->first;
  out->count_a = g->count;
  out->count_b = h->count;
  out->row_a = g->plane0;
  out->row_b = h->plane0;
  out->columns = p->columns;
  out->plane_rows = p->plane_rows;
  out->same = g == h;
}

/* `tiles`: the runner of the whole panel. Neighbouring tiles share planes in the cache, so a part has a run of them. */
static weft_status search_tiles(weft_ctx *ctx, weft_device_arena *mem, weft_mi_resident *r, const weft_mi_panel *panel,
                                int rows_each, size_t room, tiled_job *job, mi_runner tiles, mi_collector *c)
{
  weft_status st = WEFT_OK;
  const uint64_t end = weft_share_start(tiles.units, c->search->part + 1, c->search->parts);
  job->start = weft_share_start(tiles.units, c->search->part, c->search->parts);
  tiles.units = end - job->start;
  WEFT_TRY(arrange_sides(ctx, mem, r, panel, rows_each, job->own, job->tiles));
  WEFT_DEVICE_TAKE(job->room, mem, room);
  WEFT_TRY(weft_mi_run_all(ctx, c, &tiles));
done:
  weft_device_drop(mem, job->own[0]);
  weft_device_drop(mem, job->own[1]);
  weft_device_drop(mem, job->room);
  return st;
}

template <typename Shape> struct shaped_job : tiled_job {
  Shape b;
};

/* `work` counts tiles first .. first + count - 1 of what a Shape describes. */
template <typename Shape, auto work>
static weft_status run_tiles(weft_ctx *ctx, void *data, mi_collector *c, uint64_t first, uint64_t count)
{
  const shaped_job<Shape> *job = (const shaped_job<Shape> *) data;
  return work(ctx, &job->b, job->tiles[0], job->tiles[1], job->room, &c->bar, &c->hits, job->start + first, count,
              c->stream);
}

/* How many pairs `units` tiles of so many rows and columns have. */
template <int ROWS, int COLUMNS
> static double pairs_until(const void *job, uint64_t units)
{
  (void) job;
  return (double) units * ROWS * COLUMNS;
}

/* ---- binary attributes, two classes ---- */

int weft_mi_fits_binary(const weft_ctx *ctx, const weft_mi_pack *p, const weft_mi_group *g)
{
  return !g->coded && g->shape.planes == 1 && !g->shape.missing && p->classes == 2 && p->per == 2 && p->class_rows[0] &&
         p->class_rows[1] && p->class_rows[0] <= 65535 && p->class_rows[1] <= 65535 && weft_mi_wgmma_ready(ctx->device);
}

static mi_binary describe_binary(const weft_mi_pack *p, const weft_mi_resident *r, const weft_mi_group *g,
                                 const weft_mi_group *h)
{
  mi_binary b;
  memset(&b, 0, sizeof b);
  describe_sides(p, r, g, h, &b);
  for (int c = 0; c < 2; c++) {
    b.class_rows[c] = p->class_rows[c];
    b.steps[c] = (int) ((p->class_rows[c] + STEP_BITS - 1) / STEP_BITS);
  }
  b.steepest = weft_mi_steepest(p->class_rows[1] / ((double) p->class_rows[0] + p->class_rows[1]));
  return b;
}

weft_status weft_mi_hopper_binary(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack, weft_mi_resident *r,
                                  const weft_mi_panel *panel, mi_collector *c)
{
  shaped_job<mi_binary> job = {};
  job.b = describe_binary(pack, r, panel->g, panel->h);
  const mi_runner tiles = { &job, weft_mi_wgmma_tiles(&job.b), fmin(MOST_PAIRS, MOST_CELLS / (double) pack->n),
                            run_tiles<mi_binary, weft_mi_wgmma_pairs>, pairs_until<128, 256> };
  return search_tiles(ctx, mem, r, panel, 1, weft_mi_wgmma_room(&job.b, 2), &job, tiles, c);
}

/* ---- at most three levels, two to eight classes ---- */

int weft_mi_fits_planar(const weft_ctx *ctx, const weft_mi_pack *p, const weft_mi_group *g)
{
  uint32_t occupied = 0;
  for (uint32_t c = 0; c < p->classes; c++) occupied += p->class_rows[c] > 0;
  const int packed = p->classes == 2 && p->n <= WEFT_PLANES_PACKED;
  return !g->coded && g->shape.planes <= 2 && !g->shape.missing && occupied >= 2 && p->per == p->classes &&
         p->classes <= WEFT_PLANES_CLASSES && (packed || p->n > MANY_ROWS) && weft_mi_wgmma_ready(ctx->device);
}

static mi_planar describe_planar(const weft_mi_pack *p, const weft_mi_resident *r, const weft_mi_group *g,
                                 const weft_mi_group *h)
{
  mi_planar b;
  memset(&b, 0, sizeof b);
  describe_sides(p, r, g, h, &b);
  b.classes = p->classes;
  for (uint32_t c = 0; c < p->classes; c++) b.class_rows[c] = p->class_rows[c];
  b.planes_a = g->shape.planes;
  b.planes_b = h->shape.planes;
  b.packed = p->classes == 2 && p->n <= WEFT_PLANES_PACKED;
  if (b.packed) b.steepest = weft_mi_steepest(p->class_rows[0] / (double) p->n);
  return b;
}

/* Searches a panel of attributes of at most three levels by the kernel in ternary_hopper.cu. */
weft_status weft_mi_hopper_planar(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack, weft_mi_resident *r,
                                  const weft_mi_panel *panel, mi_collector *c)
{
  weft_status st = WEFT_OK;
  shaped_job<mi_planar> job = {};
  size_t bytes;
  job.b = describe_planar(pack, r, panel->g, panel->h);
  WEFT_TRY(weft_mi_planes_room(ctx, &job.b, &bytes));
  {
    const mi_runner tiles = { &job, weft_mi_planes_tiles(&job.b), fmin(MOST_PAIRS, MOST_PLANAR / (double) pack->n),
                              run_tiles<mi_planar, weft_mi_planes_pairs>, pairs_until<64, 128> };
    st = search_tiles(ctx, mem, r, panel, 2, bytes, &job, tiles, c);
  }
done:
  return st;
}

/* ---- attributes of any planes ---- */

struct products_job {
  mi_products p;
  uint64_t start;
};

static weft_status run_products(weft_ctx *ctx, void *data, mi_collector *c, uint64_t first, uint64_t count)
{
  products_job *job = (products_job *) data;
  return weft_mi_products_pairs(ctx, &job->p, &c->bar, &c->hits, job->start + first, count, c->stream);
}

/* Searches a panel of attributes of any planes, by fused_hopper.cu or counted_hopper.cu. */
weft_status weft_mi_hopper_products(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                    const weft_mi_resident *r, const weft_mi_panel *panel, mi_collector *c)
{
  weft_status st = WEFT_OK;
  products_job job;
  WEFT_TRY(weft_mi_products_begin(ctx, mem, pack, r, panel, &job.p));
  {
    const uint64_t end = weft_share_start(job.p.tiles, c->search->part + 1, c->search->parts);
    job.start = weft_share_start(job.p.tiles, c->search->part, c->search->parts);
    const mi_runner tiles = { &job,         end - job.start,       weft_mi_products_most(&job.p),
                              run_products, pairs_until<128, 256>, 1 };
    WEFT_TRY(weft_mi_run_all(ctx, c, &tiles));
  }
done:
  weft_mi_products_end(&job.p);
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

static weft_status run_triples(weft_ctx *ctx, void *data, mi_collector *c, uint64_t first, uint64_t count)
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

/* Roughly how many triples come before a part's unit when their first attributes are dealt to so many parts. */
static double triples_before(uint64_t units, double parts)
{
  const double before = (double) units * parts;
  return before * (before + 1) * (before + 2) / 6 / parts;
}

static double triples_until(const void *data, uint64_t units)
{
  return triples_before(units, ((const triple_job *) data)->parts);
}

/* Searches binary triples: counts all pairs once, then takes one fixed attribute after the other. */
weft_status weft_mi_hopper_triples(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                   const weft_mi_resident *r, mi_collector *c)
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
    const mi_runner r_fixed = { &job, units_dealt(c, pack->p - 2), fmin(MOST_PAIRS, MOST_CELLS / (double) pack->n),
                                run_triples, triples_until };
    st = weft_mi_run_all(ctx, c, &r_fixed);
  }
done:
  return st;
}

/* ---- triples of any few levels ---- */

struct levels_job {
  mi_levels t;
  double parts;
};

static weft_status run_levels(weft_ctx *ctx, void *data, mi_collector *c, uint64_t first, uint64_t count)
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

weft_status weft_mi_hopper_levels(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                  const weft_mi_resident *r, mi_collector *c)
{
  weft_status st = WEFT_OK;
  levels_job job;
  job.parts = (double) c->search->parts;
  WEFT_TRY(weft_mi_levels_begin(ctx, mem, pack, r, &job.t));
  {
    const mi_runner r_fixed = { &job, units_dealt(c, pack->p - 2), weft_mi_levels_most(&job.t), run_levels,
                                levels_until };
    st = weft_mi_run_all(ctx, c, &r_fixed);
  }
done:
  return st;
}
