/* Pairs and triples that Hopper's 1-bit tensor cores count (binary_hopper.cu, pairs/cuda/ternary_hopper.cu, and for any
 * planes fused_hopper.cu and counted_hopper.cu): their rows of bits are arranged in the order of shared memory, then a
 * search goes through tiles of pairs. */
#include <cmath>
#include <cstring>
#include "mi/pairs/cuda/counted_hopper.cuh"
#include "mi/search/cuda/progress.cuh"
#include "mi/pairs/cuda/binary_hopper.cuh"
#include "mi/pairs/cuda/ternary_hopper.cuh"
#include "mi/triples/cuda/few_levels.cuh"
#include "mi/search/cuda/search_hopper.cuh"
extern "C" {
#include "mi/search/both/screen.h"
}

#define MAX_PAIRS 2e10   /* between two polls */
#define MAX_CELLS 1e14   /* pairs × rows */
#define MAX_TERNARY 1e13 /* of attributes of three levels */

/* ---- rows in the order of shared memory ---- */

/* Rows of planes in wgmma's order: those of binary attributes, or two per attribute. */
struct arranged {
  int rows_each;
  size_t first, row, count;
  uint32_t planes;
};

/* Takes memory for arranged planes from `mem` and fills it; *out points to it even if filling fails. */
static weft_status arrange(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_resident *resident,
                           const arranged *rows, uint8_t **out)
{
  weft_status st = WEFT_OK;
  uint8_t *tiles;
  const size_t bytes = rows->rows_each == 1 ? (rows->count + 255) / 256 * 256 * resident->words * 4
                                            : weft_mi_planes_bytes(resident, rows->count);
  WEFT_DEVICE_TAKE(tiles, mem, bytes);
  *out = tiles;
  if (rows->rows_each == 1)
    WEFT_TRY(weft_mi_wgmma_arrange(ctx, resident, rows->row, rows->count, tiles, mem->stream));
  else
    WEFT_TRY(weft_mi_planes_arrange(ctx, resident, rows->row, rows->count, rows->planes, tiles, mem->stream));
done:
  return st;
}

/* The same, kept with the pack for its next search. */
static weft_status arrange_once(weft_ctx *ctx, weft_mi_resident *resident, const arranged *rows, const uint8_t **out)
{
  weft_status st = WEFT_OK;
  if (!resident->tiles || resident->tiles_first != rows->first || resident->tiles_rows != rows->rows_each) {
    if (resident->tiles) weft_device_drop(&resident->mem, resident->tiles);
    resident->tiles = NULL;
    resident->mem.ctx = ctx;
    st = arrange(ctx, &resident->mem, resident, rows, &resident->tiles);
    resident->mem.ctx = &resident->own;
    if (st != WEFT_OK) goto done;
    WEFT_CUDA(cudaStreamSynchronize(resident->mem.stream));
    resident->tiles_first = rows->first;
    resident->tiles_rows = rows->rows_each;
  }
  *out = resident->tiles;
done:
  return st;
}

/* Both sides of a panel; what *own points to belongs to this search alone. */
static weft_status arrange_sides(weft_ctx *ctx, weft_device_arena *mem, weft_mi_resident *resident,
                                 const weft_mi_panel *panel, int rows_each, uint8_t *own[2], const uint8_t *tiles[2])
{
  weft_status st = WEFT_OK;
  for (int side = 0; side < 2; side++) {
    const weft_mi_group *group = side ? panel->group_b : panel->group_a;
    const arranged rows = { rows_each, group->first, group->plane0, group->count, group->shape.planes };
    if (panel->same) {
      WEFT_TRY(arrange_once(ctx, resident, &rows, &tiles[side]));
    } else {
      WEFT_TRY(arrange(ctx, mem, resident, &rows, &own[side]));
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

static void describe_sides(const weft_mi_pack *p, const weft_mi_resident *resident, const weft_mi_group *group_a,
                           const weft_mi_group *group_b, mi_sides *out)
{
  out->resident = resident;
  out->first_a = group_a->first;
  out->first_b = group_b->first;
  out->count_a = group_a->count;
  out->count_b = group_b->count;
  out->row_a = group_a->plane0;
  out->row_b = group_b->plane0;
  out->columns = p->columns;
  out->plane_rows = p->plane_rows;
  out->same = group_a == group_b;
}

/* `tiles`: the runner of the whole panel. Neighbouring tiles share planes in the cache, so a part has a run of them. */
static weft_status search_tiles(weft_ctx *ctx, weft_device_arena *mem, weft_mi_resident *resident,
                                const weft_mi_panel *panel, int rows_each, size_t room, tiled_job *job, mi_runner tiles,
                                mi_collector *collector)
{
  weft_status st = WEFT_OK;
  const uint64_t end = weft_share_start(tiles.units, collector->search->part + 1, collector->search->parts);
  job->start = weft_share_start(tiles.units, collector->search->part, collector->search->parts);
  tiles.units = end - job->start;
  WEFT_TRY(arrange_sides(ctx, mem, resident, panel, rows_each, job->own, job->tiles));
  WEFT_DEVICE_TAKE(job->room, mem, room);
  WEFT_TRY(weft_mi_run_all(ctx, collector, &tiles));
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
static weft_status run_tiles(weft_ctx *ctx, void *data, mi_collector *collector, uint64_t first, uint64_t count)
{
  const shaped_job<Shape> *job = (const shaped_job<Shape> *) data;
  return work(ctx, &job->b, job->tiles[0], job->tiles[1], job->room, &collector->threshold, &collector->hits,
              job->start + first, count, collector->stream);
}

/* How many pairs `units` tiles of ROWS × COLUMNS have. */
template <int ROWS, int COLUMNS
> static double pairs_until(const void *job, uint64_t units)
{
  (void) job;
  return (double) units * ROWS * COLUMNS;
}

/* ---- binary attributes, two classes ---- */

static mi_binary describe_binary(const weft_mi_pack *p, const weft_mi_resident *resident, const weft_mi_group *group_a,
                                 const weft_mi_group *group_b)
{
  mi_binary binary;
  memset(&binary, 0, sizeof binary);
  describe_sides(p, resident, group_a, group_b, &binary);
  for (int c = 0; c < 2; c++) {
    binary.class_rows[c] = p->class_rows[c];
    binary.steps[c] = (int) ((p->class_rows[c] + STEP_BITS - 1) / STEP_BITS);
  }
  binary.steepest = weft_mi_steepest(p->class_rows[1] / ((double) p->class_rows[0] + p->class_rows[1]));
  return binary;
}

weft_status weft_mi_hopper_binary(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                  weft_mi_resident *resident, const weft_mi_panel *panel, mi_collector *collector)
{
  shaped_job<mi_binary> job = {};
  job.b = describe_binary(pack, resident, panel->group_a, panel->group_b);
  const mi_runner tiles = { &job, weft_mi_wgmma_tiles(&job.b), fmin(MAX_PAIRS, MAX_CELLS / (double) pack->n),
                            run_tiles<mi_binary, weft_mi_wgmma_pairs>, pairs_until<128, 256> };
  return search_tiles(ctx, mem, resident, panel, 1, weft_mi_wgmma_room(&job.b, 2), &job, tiles, collector);
}

/* ---- at most three levels, two to eight classes ---- */

static mi_planar describe_ternary(const weft_mi_pack *p, const weft_mi_resident *resident, const weft_mi_group *group_a,
                                  const weft_mi_group *group_b)
{
  mi_planar planar;
  memset(&planar, 0, sizeof planar);
  describe_sides(p, resident, group_a, group_b, &planar);
  planar.classes = p->classes;
  for (uint32_t c = 0; c < p->classes; c++) planar.class_rows[c] = p->class_rows[c];
  planar.planes_a = group_a->shape.planes;
  planar.planes_b = group_b->shape.planes;
  planar.packed = p->classes == 2 && p->n <= WEFT_MI_PACKED_ROWS;
  if (planar.packed) planar.steepest = weft_mi_steepest(p->class_rows[0] / (double) p->n);
  return planar;
}

/* Searches a panel of attributes of at most three levels by the kernel in ternary_hopper.cu. */
weft_status weft_mi_hopper_planar(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                  weft_mi_resident *resident, const weft_mi_panel *panel, mi_collector *collector)
{
  weft_status st = WEFT_OK;
  shaped_job<mi_planar> job = {};
  size_t bytes;
  job.b = describe_ternary(pack, resident, panel->group_a, panel->group_b);
  WEFT_TRY(weft_mi_planes_room(ctx, &job.b, &bytes));
  {
    const mi_runner tiles = { &job, weft_mi_planes_tiles(&job.b), fmin(MAX_PAIRS, MAX_TERNARY / (double) pack->n),
                              run_tiles<mi_planar, weft_mi_planes_pairs>, pairs_until<64, 128> };
    st = search_tiles(ctx, mem, resident, panel, 2, bytes, &job, tiles, collector);
  }
done:
  return st;
}

/* ---- attributes of any planes ---- */

struct products_job {
  mi_products p;
  uint64_t start;
};

static weft_status run_products(weft_ctx *ctx, void *data, mi_collector *collector, uint64_t first, uint64_t count)
{
  products_job *job = (products_job *) data;
  return weft_mi_products_pairs(ctx, &job->p, &collector->threshold, &collector->hits, job->start + first, count,
                                collector->stream);
}

/* Searches a panel of attributes of any planes, by fused_hopper.cu or counted_hopper.cu. */
weft_status weft_mi_hopper_products(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                    const weft_mi_resident *resident, const weft_mi_panel *panel,
                                    mi_collector *collector)
{
  weft_status st = WEFT_OK;
  products_job job;
  WEFT_TRY(weft_mi_products_begin(ctx, mem, pack, resident, panel, &job.p));
  {
    const uint64_t end = weft_share_start(job.p.tiles, collector->search->part + 1, collector->search->parts);
    job.start = weft_share_start(job.p.tiles, collector->search->part, collector->search->parts);
    const mi_runner tiles = { &job,         end - job.start,       weft_mi_products_max_pairs(&job.p),
                              run_products, pairs_until<128, 256>, 1 };
    WEFT_TRY(weft_mi_run_all(ctx, collector, &tiles));
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

static weft_status run_triples(weft_ctx *ctx, void *data, mi_collector *collector, uint64_t first, uint64_t count)
{
  weft_status st = WEFT_OK;
  triple_job *job = (triple_job *) data;
  /* the last attributes first: they have the fewest pairs behind them */
  for (uint64_t k = first; k < first + count; k++)
    WEFT_TRY(weft_mi_wgmma_triples(ctx, &job->b, job->tiles, job->masked, job->constants, job->joint, job->ld,
                                   (uint32_t) (job->b.count_a - 3 - unit_dealt(collector, k)), &collector->threshold,
                                   &collector->hits, collector->stream));
done:
  return st;
}

/* Roughly how many triples come before a part's unit when their first attributes are dealt to `parts` parts. */
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
                                   const weft_mi_resident *resident, mi_collector *collector)
{
  weft_status st = WEFT_OK;
  triple_job job;
  uint8_t *tiles = NULL;
  size_t bytes;
  const weft_mi_group *group = &pack->groups[0];
  const arranged all = { 1, group->first, group->plane0, group->count, 1 };
  memset(&job, 0, sizeof job);
  job.b = describe_binary(pack, resident, group, group);
  job.ld = (pack->p + 255) / 256 * 256;
  bytes = job.ld * resident->words * 4;
  WEFT_TRY(arrange(ctx, mem, resident, &all, &tiles));
  job.tiles = tiles;
  WEFT_DEVICE_TAKE(job.masked, mem, bytes);
  WEFT_DEVICE_TAKE(job.constants, mem, weft_mi_wgmma_room(&job.b, 3));
  WEFT_DEVICE_TAKE(job.joint, mem, job.ld * job.ld);
  WEFT_TRY(weft_mi_wgmma_counts(ctx, &job.b, job.tiles, job.joint, job.ld, mem->stream));
  {
    job.parts = (double) collector->search->parts;
    const mi_runner r_fixed = { &job, units_dealt(collector, pack->p - 2),
                                fmin(MAX_PAIRS, MAX_CELLS / (double) pack->n), run_triples, triples_until };
    st = weft_mi_run_all(ctx, collector, &r_fixed);
  }
done:
  return st;
}

/* ---- triples of any few levels ---- */

struct levels_job {
  mi_levels levels;
  double parts;
};

static weft_status run_levels(weft_ctx *ctx, void *data, mi_collector *collector, uint64_t first, uint64_t count)
{
  weft_status st = WEFT_OK;
  const levels_job *job = (const levels_job *) data;
  for (uint64_t k = first; k < first + count; k++)
    WEFT_TRY(weft_mi_levels_triples(ctx, &job->levels, (uint32_t) (job->levels.pack->p - 3 - unit_dealt(collector, k)),
                                    &collector->threshold, &collector->hits, collector->stream));
done:
  return st;
}

static double levels_until(const void *data, uint64_t units)
{
  return triples_before(units, ((const levels_job *) data)->parts);
}

weft_status weft_mi_hopper_levels(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                  const weft_mi_resident *resident, mi_collector *collector)
{
  weft_status st = WEFT_OK;
  levels_job job;
  job.parts = (double) collector->search->parts;
  WEFT_TRY(weft_mi_levels_begin(ctx, mem, pack, resident, &job.levels));
  {
    const mi_runner r_fixed = { &job, units_dealt(collector, pack->p - 2), weft_mi_levels_max_pairs(&job.levels),
                                run_levels, levels_until };
    st = weft_mi_run_all(ctx, collector, &r_fixed);
  }
done:
  return st;
}
