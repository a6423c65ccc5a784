/* Triples of complete attributes of two to five levels on Hopper. With attribute i held fixed, a triple is a pair whose
 * classes are those of strata, the levels of i: i's planes, and what none of them has, are ANDed into the planes of
 * side a, and pairs are counted and screened as in counted_hopper.cu. The information of the triple is that within
 * the strata and what i says alone, I(C; X Y Z) = I(C; Y Z | X) + I(C; X). All attributes have the planes of the one
 * with most levels; those that they lack are empty, and so are the levels.
 *
 * Triples are taken in order of place, i < j < k, so that each comes once. */
#include <cmath>
#include <cstring>
#include "mi/plan.h"
#include "mi/pairs/cuda/counted_hopper.cuh"
#include "mi/pairs/cuda/counted_score.cuh"
#include "mi/pairs/cuda/binary_hopper.cuh"
#include "mi/triples/cuda/few_levels.cuh"

#define THREADS 256
#define MAX_CLASSES WEFT_MI_TRIPLE_CLASSES

/* ---- planes ---- */

/* One thread per 16 bytes of a plane of all attributes, in order of place. Rows past the end are zero. */
__global__ static void arrange_places(const uint32_t *planes, uint32_t words, const uint32_t *plane_row, size_t count,
                                      size_t room, uint8_t *out)
{
  const uint32_t pieces = words / 4;
  const size_t k = (size_t) blockIdx.x * THREADS + threadIdx.x, place = k / pieces;
  const uint32_t piece = (uint32_t) (k % pieces);
  if (place >= room) return;
  const uint32_t row = place < count ? plane_row[place] : UINT32_MAX;
  uint4 v = { 0, 0, 0, 0 };
  if (row != UINT32_MAX) v = *(const uint4 *) (planes + (size_t) row * words + piece * 4);
  *(uint4 *) (out + piece_offset(place, piece, words / STEP_WORDS)) = v;
}

__device__ static inline uint4 both_of(uint4 a, uint4 b)
{
  return make_uint4(a.x & b.x, a.y & b.y, a.z & b.z, a.w & b.w);
}
__device__ static inline uint4 without(uint4 a, uint4 b)
{
  return make_uint4(a.x & ~b.x, a.y & ~b.y, a.z & ~b.z, a.w & ~b.w);
}

struct levels_args {
  const uint8_t *tiles;
  size_t plane, count;
  uint32_t planes, steps, fixed;
  uint8_t *masked; /* [level][plane] */
};

/* One thread per 16 bytes of the planes behind the fixed attribute: within each of its levels. */
__global__ static void mask_levels(levels_args args)
{
  const size_t k = (size_t) blockIdx.x * THREADS + threadIdx.x, pieces = args.plane / 16;
  if (k >= args.planes * pieces) return;
  const size_t in_plane = k % pieces;
  const uint32_t in_block = (uint32_t) (in_plane % (BLOCK_BYTES / 16)),
                 step = (uint32_t) (in_plane / (BLOCK_BYTES / 16) % args.steps), piece = 2 * step + in_block / 8 % 2;
  if (in_plane / (BLOCK_BYTES / 16) / args.steps * 128 + 127 <= args.fixed) return;
  uint4 rest = ((const uint4 *) args.tiles)[k];
  for (uint32_t q = 0; q < args.planes; q++) {
    const uint4 level = *(const uint4 *) (args.tiles + q * args.plane + piece_offset(args.fixed, piece, args.steps));
    ((uint4 *) (args.masked + q * args.planes * args.plane))[k] = both_of(rest, level);
    rest = without(rest, level);
  }
  ((uint4 *) (args.masked + args.planes * args.planes * args.plane))[k] = rest;
}

struct margins_args {
  levels_args planes;
  uint32_t classes;
  int class_step[MAX_CLASSES + 1];
  const uint32_t *of_planes, *class_rows, *plane_row; /* the pack's margins, [class * plane_rows + row] */
  size_t plane_rows;
  uint32_t *margins, *rows;
};

/* Rows of the fixed attribute's level in a class. */
__device__ static uint32_t rows_of(const margins_args &args, uint32_t level, uint32_t c)
{
  uint32_t rest = args.class_rows[c];
  for (uint32_t q = 0; q < args.planes.planes; q++) {
    const uint32_t row = args.plane_row[q * args.planes.count + args.planes.fixed];
    const uint32_t rows = row == UINT32_MAX ? 0 : args.of_planes[c * args.plane_rows + row];
    if (q == level) return rows;
    rest -= rows;
  }
  return rest;
}

/* One warp per row of the masked planes behind the fixed attribute: its bits by class. */
__global__ static void __launch_bounds__(THREADS) level_margins(const __grid_constant__ margins_args args)
{
  const uint32_t planes = args.planes.planes, lane = threadIdx.x % 32;
  const size_t warp = ((size_t) blockIdx.x * THREADS + threadIdx.x) / 32,
               behind = args.planes.count - args.planes.fixed - 1;
  if (blockIdx.x == 0 && threadIdx.x < (planes + 1) * args.classes)
    args.rows[threadIdx.x] = rows_of(args, threadIdx.x / args.classes, threadIdx.x % args.classes);
  if (warp >= behind * planes * (planes + 1)) return;
  const size_t place = args.planes.fixed + 1 + warp % behind;
  const uint32_t plane = (uint32_t) (warp / behind % planes), level = (uint32_t) (warp / behind / planes);
  const uint8_t *from = args.planes.masked + (level * planes + plane) * args.planes.plane;
  for (uint32_t c = 0; c < args.classes; c++) {
    uint32_t sum = 0;
    const uint32_t end = 2 * (uint32_t) args.class_step[c + 1];
    for (uint32_t piece = 2 * (uint32_t) args.class_step[c] + lane; piece < end; piece += 32) {
      const uint4 v = *(const uint4 *) (from + piece_offset(place, piece, args.planes.steps));
      sum += (uint32_t) (__popc(v.x) + __popc(v.y) + __popc(v.z) + __popc(v.w));
    }
    for (int half = 16; half; half /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, half);
    if (lane == 0)
      args.margins[((size_t) (level * args.classes + c) * planes + plane) * args.planes.count + place] = sum;
  }
}

/* ---- scoring ---- */

struct triple_args {
  mi_scoring pair; /* strata: the fixed attribute's levels */
  uint32_t fixed;
};

/* Offers the triple, whose information is `joint` and the greatest of two of its members `greatest`. */
__device__ static void offer_triple(const triple_args &args, const counted &p, int64_t joint, int64_t greatest,
                                    uint64_t n)
{
  const mi_scoring &pair = args.pair;
  const uint64_t index = triple_index(pair.columns, pair.column[args.fixed], pair.column[p.one], pair.column[p.other]);
  const double mi = weft_mi_bits(joint, pair.f.unit, n), gain = weft_mi_bits(joint - greatest, pair.f.unit, n);
  if (mi_passes(pair.threshold, mi, gain, index))
    mi_append(pair.hits, pair.threshold.by_interaction ? gain : mi, index);
}

/* Information of two of the three, from cells (class of a stratum, level of one, level of other). */
template <class Cell> __device__ static int64_t of_two(const mi_scoring &args, const Cell &cell)
{
  uint64_t n;
  const int64_t sum = joint_sum(args.f, args.per, args.per, args.a.levels, args.a.levels, cell, &n) - args.class_fixed;
  return sum > 0 ? sum : 0;
}

/* Scores a triple exactly by one thread, from counts in memory: its information, less the best of its three pairs. */
__device__ __noinline__ static void score_triple(const triple_args &args, const counted &p)
{
  const mi_scoring &pair = args.pair;
  const uint32_t levels = pair.a.levels, per = pair.per;
  const auto cell = [&](uint32_t c, uint32_t x, uint32_t y) { return cell_of(pair, p, c, x, y); };
  uint64_t n;
  int64_t joint = joint_sum(pair.f, pair.classes, per, levels, levels, cell, &n) - pair.class_fixed, greatest;
  if (joint < 0) joint = 0;
  greatest = of_two(pair, [&](uint32_t c, uint32_t x, uint32_t y) {
    uint64_t k = 0;
    for (uint32_t q = 0; q < levels; q++) k += cell(q * per + c, x, y);
    return k;
  });
  for (int side = 0; side < 2; side++) {
    const int64_t with = of_two(pair, [&](uint32_t c, uint32_t q, uint32_t x) {
      uint64_t k = 0;
      for (uint32_t y = 0; y < levels; y++) k += side ? cell(q * per + c, y, x) : cell(q * per + c, x, y);
      return k;
    });
    if (with > greatest) greatest = with;
  }
  offer_triple(args, p, joint, greatest, n);
}

/* The same by a warp. */
__device__ __noinline__ static void score_triple_together(const triple_args &args, const counted &p, uint32_t *room)
{
  const mi_scoring &pair = args.pair;
  const triple_score score = score_cells(pair.f, pair.a.levels, pair.per, pair.class_fixed, fill_table(pair, p, room));
  if (threadIdx.x % 32 == 0) offer_triple(args, p, score.joint, score.greatest, score.n);
}

/* Blocks of STRIP rows of a tile, a thread per column. */
template <uint32_t L>
__global__ static void __launch_bounds__(ROWS_B) score_levels(const __grid_constant__ triple_args args)
{
  __shared__ score_room room;
  const mi_scoring &s = args.pair;
  tile_walk walk = s.start;
  uint32_t ta, tb;
  if (!place_tile(&s.grid, &walk, s.first + blockIdx.y, &ta, &tb)) return;
  if (threadIdx.x == 0) room.count = 0;
  __syncthreads();
  const float of_fixed = alone_of(s, args.fixed);
  for (uint32_t row = blockIdx.x * STRIP; row < (blockIdx.x + 1) * STRIP; row++) {
    const counted p = pair_at(s, ta, tb, row, threadIdx.x);
    if (p.other >= s.count_b || p.other <= p.one) break; /* and so are the rows behind */
    if (p.one <= args.fixed) continue;
    weft_products_sums sums = screen_pair<L, L>(s, p, 0);
    sums.joint += of_fixed;
    /* the interaction is at most the information less what the strongest says alone */
    const float own = fmaxf(of_fixed, fmaxf(alone_of(s, p.one), alone_of(s, p.other)));
    if (weft_products_passes(&sums, 0, own, s.threshold_mi, s.threshold_gain, s.error)) queue_pair(&room, row);
  }
  __syncthreads();
  score_queue(
      s, ta, tb, &room, [&](const counted &p) { score_triple(args, p); },
      [&](const counted &p, uint32_t *table) { score_triple_together(args, p, table); });
}

/* ---- host ---- */

static size_t products_of(const weft_mi_pack *p, uint32_t levels)
{
  return (size_t) levels * weft_mi_counts_words(p) * (levels - 1) * (levels - 1);
}

static uint32_t levels_of(const weft_mi_pack *p)
{
  uint32_t most = 2;
  for (size_t g = 0; g < p->group_count; g++)
    if (p->groups[g].shape.levels > most) most = p->groups[g].shape.levels;
  return most;
}

static tile_grid grid_of(const weft_mi_pack *p, uint32_t low)
{
  const tile_grid grid = { (uint32_t) ((p->p + ROWS_A - 1) / ROWS_A), (uint32_t) ((p->p + ROWS_B - 1) / ROWS_B), 1,
                           low };
  return grid;
}

void weft_mi_plane_rows(const weft_mi_pack *p, uint32_t planes, uint32_t *out)
{
  for (uint32_t q = 0; q < planes; q++)
    for (size_t place = 0; place < p->p; place++) {
      const weft_mi_group *group = &p->groups[p->group_of[place]];
      out[q * p->p + place] = q < group->shape.planes ? (uint32_t) weft_mi_plane_row(group, place, q) : UINT32_MAX;
    }
}

/* Arranges the planes of all attributes and takes memory for those of one fixed attribute and for a batch of tiles'
 * counts. Memory is from `mem`. */
weft_status weft_mi_levels_begin(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                 const weft_mi_resident *resident, mi_levels *out)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  const uint32_t levels = levels_of(pack), planes = levels - 1;
  const size_t room = (pack->p + ROWS_B - 1) / ROWS_B * ROWS_B, bytes = products_of(pack, levels) * AREA * 4;
  const tile_grid all = grid_of(pack, 0);
  size_t limit = COUNTS_BYTES / bytes;
  uint32_t *rows;
  memset(out, 0, sizeof *out);
  out->pack = pack;
  out->resident = resident;
  out->levels = levels;
  out->plane = room * resident->words * 4;
  WEFT_TAKE(rows, &host, planes * pack->p);
  weft_mi_plane_rows(pack, planes, rows);
  WEFT_DEVICE_TAKE(out->plane_row, mem, planes * pack->p);
  WEFT_DEVICE_TAKE(out->tiles, mem, planes * out->plane);
  WEFT_DEVICE_TAKE(out->masked, mem, levels * planes * out->plane);
  WEFT_DEVICE_TAKE(out->margins, mem, levels * pack->classes * planes * pack->p);
  WEFT_DEVICE_TAKE(out->rows, mem, levels * pack->classes);
  WEFT_CUDA(
      cudaMemcpyAsync(out->plane_row, rows, planes * pack->p * sizeof *rows, cudaMemcpyHostToDevice, mem->stream));
  WEFT_CUDA(cudaStreamSynchronize(mem->stream)); /* `rows` ends here */
  for (uint32_t q = 0; q < planes; q++) {
    arrange_places<<<(unsigned) ((out->plane / 16 + THREADS - 1) / THREADS), THREADS, 0, mem->stream>>>(
        resident->planes, resident->words, out->plane_row + q * pack->p, pack->p, room, out->tiles + q * out->plane);
    WEFT_CUDA(cudaGetLastError());
  }
  if (limit > tiles_of(&all)) limit = (size_t) tiles_of(&all);
  if (limit > MAX_BATCH) limit = MAX_BATCH;
  out->batch = (uint32_t) weft_device_chunk(ctx, limit, (double) bytes, 0);
  if (!out->batch) {
    st = WEFT_ERR_MEMORY;
    goto done;
  }
  WEFT_DEVICE_TAKE(out->counts, mem, out->batch * (bytes / sizeof *out->counts));
done:
  weft_arena_end(&host);
  return st;
}

double weft_mi_levels_max_pairs(const mi_levels *job)
{
  const double planes = job->levels - 1, cells = (double) job->levels * job->levels * job->levels;
  return 0.1 / ((double) job->pack->n * job->levels * planes * planes / 3e15 + cells * job->pack->classes * 4e-12);
}

/* The planes within the levels of attribute `fixed`, and their margins. */
static weft_status mask(weft_ctx *ctx, const mi_levels *job, const mi_counting *units, uint32_t fixed,
                        cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  const weft_mi_pack *p = job->pack;
  const uint32_t planes = job->levels - 1;
  const size_t pieces = planes * (job->plane / 16), warps = (p->p - fixed - 1) * planes * job->levels;
  margins_args args;
  memset(&args, 0, sizeof args);
  args.planes.tiles = job->tiles;
  args.planes.plane = job->plane;
  args.planes.count = p->p;
  args.planes.planes = planes;
  args.planes.steps = (uint32_t) units->steps;
  args.planes.fixed = fixed;
  args.planes.masked = job->masked;
  args.classes = p->classes;
  memcpy(args.class_step, units->class_step, sizeof args.class_step);
  args.of_planes = job->resident->margins;
  args.class_rows = job->resident->class_rows;
  args.plane_row = job->plane_row;
  args.plane_rows = p->plane_rows;
  args.margins = job->margins;
  args.rows = job->rows;
  mask_levels<<<(unsigned) ((pieces + THREADS - 1) / THREADS), THREADS, 0, stream>>>(args.planes);
  WEFT_CUDA(cudaGetLastError());
  level_margins<<<(unsigned) ((warps * 32 + THREADS - 1) / THREADS), THREADS, 0, stream>>>(args);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

/* What the kernel that scores has to know for one fixed attribute: its levels are strata, each with all classes. */
static triple_args scoring(const mi_levels *job, const mi_counting *units, uint32_t fixed,
                           const mi_threshold *threshold, const mi_hits *hits)
{
  const weft_mi_pack *p = job->pack;
  const uint32_t planes = job->levels - 1;
  triple_args out;
  memset(&out, 0, sizeof out);
  mi_scoring *args = &out.pair;
  args->counts = job->counts;
  args->planes_a = args->planes_b = planes;
  args->products = units->products;
  args->a.planes = args->b.planes = planes;
  args->a.levels = args->b.levels = job->levels;
  args->classes = job->levels * p->classes;
  args->per = p->classes;
  args->words = units->words;
  args->packed = units->packed;
  args->margin_a = args->margin_b = job->margins;
  args->class_rows = job->rows;
  args->plane_rows = planes * p->p;
  args->count_a = args->count_b = p->p;
  args->columns = p->columns;
  args->column = job->resident->column;
  args->alone = job->resident->alone;
  args->f = job->resident->f;
  args->class_fixed = p->class_fixed;
  args->grid = units->grid;
  args->threshold_mi =
      (float) (threshold->by_interaction ? threshold->min_mi : fmax(threshold->min_mi, threshold->score));
  args->threshold_gain =
      (float) (threshold->by_interaction ? fmax(threshold->min_gain, threshold->score) : threshold->min_gain);
  args->error = (float) weft_products_error(job->levels * job->levels, args->classes);
  args->threshold = *threshold;
  args->hits = *hits;
  out.fixed = fixed;
  return out;
}

/* Searches all triples of one fixed attribute and pairs behind it: masks the planes by its levels, then counts and
 * scores batches of tiles. */
weft_status weft_mi_levels_triples(weft_ctx *ctx, const mi_levels *job, uint32_t fixed, const mi_threshold *threshold,
                                   const mi_hits *hits, cudaStream_t stream)
{
  static void (*const kernels[])(const triple_args) = { score_levels<2>, score_levels<3>, score_levels<4>,
                                                        score_levels<5> };
  weft_status st = WEFT_OK;
  const weft_mi_pack *p = job->pack;
  const uint32_t planes = job->levels - 1;
  tile_walk walk = { 0, (fixed + 1) / ROWS_A / GROUP };
  mi_counting units;
  triple_args triples;
  uint64_t tiles;
  memset(&units, 0, sizeof units);
  weft_mi_counting_classes(p, &units);
  units.a = job->masked;
  units.b = job->tiles;
  units.plane_a = units.plane_b = job->plane;
  units.stratum_a = planes * job->plane;
  units.planes_a = units.planes_b = planes;
  units.products = (uint32_t) products_of(p, job->levels);
  units.grid = grid_of(p, fixed + 1);
  units.out = job->counts;
  tiles = tiles_of(&units.grid);
  triples = scoring(job, &units, fixed, threshold, hits);
  WEFT_TRY(mask(ctx, job, &units, fixed, stream));
  for (uint64_t at = 0; at < tiles; at += job->batch) {
    const uint32_t now = tiles - at < job->batch ? (uint32_t) (tiles - at) : job->batch;
    uint32_t ta, tb;
    place_tile(&units.grid, &walk, at, &ta, &tb);
    units.start = triples.pair.start = walk;
    units.first = triples.pair.first = at;
    units.units = now * units.products;
    WEFT_TRY(weft_mi_count_products(ctx, &units, stream));
    kernels[job->levels - 2]<<<dim3(ROWS_A / STRIP, now), ROWS_B, 0, stream>>>(triples);
    WEFT_CUDA(cudaGetLastError());
  }
done:
  return st;
}
