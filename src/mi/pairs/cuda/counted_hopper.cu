/* Attributes of any number of planes, with or without missing values, and any number of classes, on Hopper's 1-bit
 * tensor cores (wgmma, compute capability 9.0a). What fits binary_hopper.cu or ternary_hopper.cu is faster there.
 *
 * Every plane is arranged by itself, so that a thread that holds a product's accumulators has the same 128 pairs in all
 * products of planes. One kernel counts: a unit of work is a tile of 128 attributes by 256, a plane of each and a
 * class, or two classes of at most 65,535 rows, which share a word. Counts go to memory; complete attributes have L - 1
 * planes for L levels and those with missing values L, so that only these pay for their ninth product. Another kernel
 * has one thread per pair: it completes the tables from margins, screens by logarithms (counted.cuh) and scores what
 * passes exactly. Tiles go through both in batches. */
/* Build: hopper. */
#include <cmath>
#include "mi/plan.h"
#include "mi/pairs/cuda/counted_hopper.cuh"
#include "mi/pairs/cuda/counted_score.cuh"
#include "mi/search/cuda/tiles_hopper.cuh"
#include "mi/pairs/cuda/binary_hopper.cuh"
#include "mi/pairs/cuda/fused_hopper.cuh"

#define STAGES 16
#define SHARED_BYTES (STAGES * STAGE_BYTES)

/* ---- counting ---- */

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* What a unit counts: false when nothing is in its tile. */
struct unit {
  const uint8_t *a, *b;
  uint32_t class_index, end;
};

__device__ static inline bool unit_at(const mi_counting &args, uint32_t k, tile_walk *walk, unit *out)
{
  uint32_t ta, tb;
  if (!place_tile(&args.grid, walk, args.first + k / args.products, &ta, &tb)) return false;
  if (args.low_a && args.low_a[ta] >= args.high_b[tb]) return false;
  const uint32_t product = k % args.products, planes = args.planes_a * args.planes_b, word = product / planes;
  const uint32_t stratum = word / args.words, of_stratum = word % args.words * (args.packed ? 2 : 1);
  const uint32_t plane_a = product % planes / args.planes_b, plane_b = product % args.planes_b;
  out->a = args.a + stratum * args.stratum_a + plane_a * args.plane_a + (size_t) ta * args.steps * BLOCK_BYTES;
  out->b = args.b + plane_b * args.plane_b + (size_t) tb * 2 * args.steps * BLOCK_BYTES;
  out->class_index = stratum * args.stratum_classes + of_stratum;
  out->end = out->class_index + (args.packed && of_stratum + 1 < args.per ? 2 : 1);
  return true;
}

/* A warp loads steps of planes into a ring of stages; two warpgroups count a unit of work and write its 128 x 256
 * counts, two classes in a word where they fit. */
__global__ static void __launch_bounds__(THREADS, 1) count_products(const __grid_constant__ mi_counting args)
{
  extern __shared__ __align__(1024) uint8_t stages[];
  __shared__ ring<STAGES> copies;
  const uint32_t thread = threadIdx.x, warp_of_block = __shfl_sync(0xffffffffu, thread / 32, 0);
  make_ring(&copies);

  uint32_t step = 0; /* k-steps since the start */
  tile_walk walk = args.start;
  unit now;
  if (warp_of_block >= CONSUMERS / 32) {
    if (thread == CONSUMERS)
      for (uint32_t k = blockIdx.x; k < args.units; k += gridDim.x) {
        if (!unit_at(args, k, &walk, &now)) continue;
        bring_steps(&copies, stages, now.a, now.b, args.steps, args.class_step[now.class_index],
                    args.class_step[now.end], &step);
      }
    return;
  }

  const uint32_t group = warp_of_block / 4, lane = thread % 32, warp = warp_of_block % 4;
  for (uint32_t k = blockIdx.x; k < args.units; k += gridDim.x) {
    uint32_t c[128];
    if (!unit_at(args, k, &walk, &now)) continue;
    const uint32_t first = now.class_index, second = first + 1;
#  pragma unroll
    for (int i = 0; i < 128; i++) c[i] = 0;
    count_steps(&copies, stages, args.class_step[second] - args.class_step[first], &step, c);
    if (args.packed) {
#  pragma unroll
      for (int i = 0; i < 128; i++) c[i] <<= 16;
      if (second < now.end)
        count_steps(&copies, stages, args.class_step[second + 1] - args.class_step[second], &step, c);
    }
    /* A thread holds rows lane / 4 and lane / 4 + 8 of its warp's 16, columns 8 j + 2 (lane % 4) and the next. */
    uint32_t *out = args.out + (size_t) k * AREA + (group * 64 + warp * 16 + lane / 4) * ROWS_B + lane % 4 * 2;
#  pragma unroll
    for (int i = 0; i < 128; i += 2) *(uint2 *) (out + i / 2 % 2 * 8 * ROWS_B + i / 4 * 8) = make_uint2(c[i], c[i + 1]);
  }
}

#else /* host side, and devices that never run it */
__global__ static void count_products(const __grid_constant__ mi_counting args) { (void) args; }
#endif

weft_status weft_mi_count_products(weft_ctx *ctx, const mi_counting *units, cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  int processors = 0;
  WEFT_CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, ctx->device));
  WEFT_CUDA(weft_device_allow_shared((const void *) count_products, SHARED_BYTES));
  count_products<<<(units->units < (uint32_t) processors ? units->units : (unsigned) processors), THREADS, SHARED_BYTES,
                   stream>>>(*units);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

int weft_mi_counts_pack(const weft_mi_pack *p)
{
  for (uint32_t c = 0; c < p->classes; c++)
    if (p->class_rows[c] > WEFT_MI_PACKED_ROWS) return 0;
  return 1;
}

uint32_t weft_mi_counts_words(const weft_mi_pack *p) { return weft_mi_counts_pack(p) ? (p->per + 1) / 2 : p->per; }

void weft_mi_counting_classes(const weft_mi_pack *p, mi_counting *args)
{
  for (uint32_t c = 0; c < p->classes; c++)
    args->class_step[c + 1] = args->class_step[c] + (int) ((p->class_rows[c] + STEP_BITS - 1) / STEP_BITS);
  args->steps = args->class_step[p->classes];
  args->per = p->per;
  args->words = weft_mi_counts_words(p);
  args->packed = weft_mi_counts_pack(p);
}

/* ---- scoring ---- */

__device__ static void offer_pair(const mi_scoring &args, const counted &p, const pair_score &score)
{
  const uint64_t x = args.column[args.place_a + p.one], y = args.column[args.place_b + p.other];
  mi_offer(args.threshold, args.hits, weft_mi_bits(score.joint, args.f.unit, score.n),
           weft_mi_bits(score.gain, args.f.unit, score.n), (x < y ? x : y) * args.columns + (x < y ? y : x));
}

__device__ __noinline__ static void score_pair(const mi_scoring &args, const counted &p)
{
  const auto cell = [&](uint32_t c, uint32_t x, uint32_t y) { return cell_of(args, p, c, x, y); };
  offer_pair(args, p,
             args.a.missing || args.b.missing
                 ? score_varying(args.f, args.classes, args.per, args.a.levels, args.b.levels, cell)
                 : score_complete(args.f, args.classes, args.per, args.a.levels, args.b.levels, cell, args.class_fixed,
                                  args.alone[args.place_a + p.one], args.alone[args.place_b + p.other]));
}

/* The same by a warp, from all cells, class after class. */
__device__ __noinline__ static void score_together(const mi_scoring &args, const counted &p, const uint32_t *cells)
{
  const uint32_t la = args.a.levels, lb = args.b.levels, area = la * lb;
  pair_score score;
  uint64_t n;
  int64_t of_classes = args.class_fixed, of_a, of_b;
  int64_t joint = warp_sum(
      args.f, args.classes, args.per, area, [&](uint32_t c, uint32_t i) { return cells[c * area + i]; }, &score.n);
  if (args.a.missing || args.b.missing) {
    of_classes = warp_sum(
        args.f, args.classes, args.per, 1,
        [&](uint32_t c, uint32_t) {
          uint64_t k = 0;
          for (uint32_t i = 0; i < area; i++) k += cells[c * area + i];
          return k;
        },
        &n);
    of_a = warp_sum(
               args.f, args.classes, args.per, la,
               [&](uint32_t c, uint32_t x) {
                 uint64_t k = 0;
                 for (uint32_t y = 0; y < lb; y++) k += cells[c * area + x * lb + y];
                 return k;
               },
               &n) -
           of_classes;
    of_b = warp_sum(
               args.f, args.classes, args.per, lb,
               [&](uint32_t c, uint32_t y) {
                 uint64_t k = 0;
                 for (uint32_t x = 0; x < la; x++) k += cells[c * area + x * lb + y];
                 return k;
               },
               &n) -
           of_classes;
    if (of_a < 0) of_a = 0;
    if (of_b < 0) of_b = 0;
  } else {
    of_a = args.alone[args.place_a + p.one];
    of_b = args.alone[args.place_b + p.other];
  }
  joint -= of_classes;
  score.joint = joint > 0 ? joint : 0;
  score.gain = score.joint - of_a - of_b;
  if (threadIdx.x % 32 == 0) offer_pair(args, p, score);
}

/* 0 when a pair is behind the threshold. */
template <uint32_t LA, uint32_t LB> __device__ static inline int may_pass(const mi_scoring &args, const counted &p)
{
  const int each = (args.a.missing || args.b.missing) && args.threshold_gain > -INFINITY;
  const weft_products_sums sums = screen_pair<LA, LB>(args, p, each);
  float own = 0;
  if (!each && args.threshold_gain > -INFINITY)
    own = (float) ((double) (args.alone[args.place_a + p.one] + args.alone[args.place_b + p.other]) * args.f.unit);
  return weft_products_passes(&sums, each, own, args.threshold_mi, args.threshold_gain, args.error);
}

/* Blocks of STRIP rows of a tile, a thread per column. LA 0: no screen. */
template <uint32_t LA, uint32_t LB>
__global__ static void __launch_bounds__(ROWS_B) score_products(const __grid_constant__ mi_scoring args)
{
  __shared__ score_room room;
  tile_walk walk = args.start;
  uint32_t ta, tb;
  if (!place_tile(&args.grid, &walk, args.first + blockIdx.y, &ta, &tb)) return;
  if (threadIdx.x == 0) room.count = 0;
  __syncthreads();
  for (uint32_t row = blockIdx.x * STRIP; row < (blockIdx.x + 1) * STRIP; row++) {
    const counted p = pair_at(args, ta, tb, row, threadIdx.x);
    if (p.other >= args.count_b || p.one >= args.count_a || (args.grid.same && p.other <= p.one))
      break; /* so is the rest */
    if constexpr (LA == 0)
      score_pair(args, p);
    else if (may_pass<LA, LB>(args, p))
      queue_pair(&room, row);
  }
  if constexpr (LA == 0) return;
  __syncthreads();
  score_queue(
      args, ta, tb, &room, [&](const counted &p) { score_pair(args, p); },
      [&](const counted &p, uint32_t *table) { score_together(args, p, fill_table(args, p, table)); });
}

typedef void (*score_kernel)(const mi_scoring);

static score_kernel kernel_for(uint32_t la, uint32_t lb)
{
#define ROW(a) \
  { \
    score_products<a, 2>, score_products<a, 3>, score_products<a, 4>, score_products<a, 5> \
  }
  static const score_kernel kernels[4][4] = { ROW(2), ROW(3), ROW(4), ROW(5) };
#undef ROW
  const uint32_t limit = WEFT_PRODUCTS_LEVELS;
  return la < 2 || lb < 2 || la > limit || lb > limit ? score_products<0, 0> : kernels[la - 2][lb - 2];
}

/* ---- what passed without its counts being kept ---- */

#define PASSED_WARPS 4
#define PASSED_WORDS 3000 /* a warp's room: four planes and 64 classes take 64 (4 × 4 + 5 × 5) */
#define MAX_PASSED ((size_t) 1 << 20)
#define MIN_PASSED ((size_t) 1 << 12)

struct passed_args {
  mi_scoring scoring;
  const uint32_t *planes_a, *planes_b, *class_word; /* the groups' planes in the order of the pack */
  uint32_t row_words;
  mi_passed passed;
};

/* A warp for each pair: its counts once more, by population counts. */
__global__ static void __launch_bounds__(32 * PASSED_WARPS) score_passed(const __grid_constant__ passed_args list)
{
  __shared__ uint32_t rooms[PASSED_WARPS][PASSED_WORDS];
  const mi_scoring &args = list.scoring;
  const uint32_t lane = threadIdx.x % 32, pa = args.planes_a, pb = args.planes_b, lb = args.b.levels,
                 area = args.a.levels * lb;
  uint32_t *const both = rooms[threadIdx.x / 32], *const cells = both + args.classes * pa * pb;
  const uint32_t found = *list.passed.count;
  for (uint32_t k = blockIdx.x * PASSED_WARPS + threadIdx.x / 32; k < found; k += gridDim.x * PASSED_WARPS) {
    const uint2 pair = list.passed.pairs[k];
    const counted p = { NULL, pair.x, pair.y };
    __syncwarp(); /* all have read the one before */
    for (uint32_t i = 0; i < args.classes * pa * pb; i++) {
      const uint32_t c = i / (pa * pb), x = i / pb % pa, y = i % pb;
      const uint32_t *of_a = list.planes_a + (x * args.count_a + p.one) * list.row_words,
                     *of_b = list.planes_b + (y * args.count_b + p.other) * list.row_words;
      uint32_t rows = 0;
      for (uint32_t w = list.class_word[c] + lane; w < list.class_word[c + 1]; w += 32)
        rows += (uint32_t) __popc(__ldg(&of_a[w]) & __ldg(&of_b[w]));
      rows = __reduce_add_sync(0xffffffffu, rows);
      if (lane == 0) both[i] = rows;
    }
    __syncwarp();
    for (uint32_t i = lane; i < args.classes * area; i += 32) {
      const uint32_t c = i / area;
      cells[i] = cell_from(
          pa, pb, __ldg(&args.class_rows[c]), i % area / lb, i % lb,
          [&](uint32_t q, uint32_t r) { return both[(c * pa + q) * pb + r]; },
          [&](uint32_t q) { return margin_a(args, p, c, q); }, [&](uint32_t q) { return margin_b(args, p, c, q); });
    }
    __syncwarp();
    score_together(args, p, cells);
  }
}

/* ---- host ---- */

static size_t room_of(const weft_mi_group *group) { return (group->count + ROWS_B - 1) / ROWS_B * ROWS_B; }

static size_t products_of(const weft_mi_pack *p, const weft_mi_group *group_a, const weft_mi_group *group_b)
{
  return (size_t) (p->classes / p->per) * weft_mi_counts_words(p) * group_a->shape.planes * group_b->shape.planes;
}

/* Puts the planes of both sides into the order of the shared memory, unless they are in it already: order 1 for
 * products through memory, 2 for the kernel that counts and screens at once. */
static weft_status arrange(weft_ctx *ctx, mi_products *job, int order)
{
  weft_status st = WEFT_OK;
  const weft_mi_resident *resident = job->resident;
  const cudaStream_t stream = job->mem->stream;
  if (job->order == order) goto done;
  for (int k = 0; k < (job->panel->same ? 1 : 2); k++) {
    const weft_mi_group *group = k ? job->panel->group_b : job->panel->group_a;
    const size_t plane = room_of(group) * resident->words * 4;
    if (order == 2)
      WEFT_TRY(weft_mi_screened_arrange(ctx, resident, group, room_of(group), job->sides[k], stream));
    else
      for (uint32_t q = 0; q < group->shape.planes; q++)
        WEFT_TRY(weft_mi_wgmma_arrange(ctx, resident, group->plane0 + q * group->count, group->count,
                                       job->sides[k] + q * plane, stream));
  }
  job->order = order;
done:
  return st;
}

static weft_status take_sides(weft_ctx *ctx, mi_products *job)
{
  weft_status st = WEFT_OK;
  (void) ctx;
  for (int k = 0; k < 2; k++) {
    const weft_mi_group *group = k ? job->panel->group_b : job->panel->group_a;
    uint8_t *planes = job->sides[0];
    if (!k || !job->panel->same)
      WEFT_DEVICE_TAKE(planes, job->mem, room_of(group) * job->resident->words * 4 * group->shape.planes);
    job->sides[k] = planes;
  }
done:
  return st;
}

static size_t tile_bytes(const mi_products *job)
{
  return products_of(job->pack, job->panel->group_a, job->panel->group_b) * AREA * sizeof *job->counts;
}

/* Leaves room for counts, which are needed when more passes than is listed. */
static weft_status begin_screened(weft_ctx *ctx, mi_products *job)
{
  weft_status st = WEFT_OK;
  const weft_mi_group *group[2] = { job->panel->group_a, job->panel->group_b };
  const int sides = job->panel->same ? 1 : 2;
  const double left = weft_device_available(ctx) - (double) tile_bytes(job);
  mi_screened s;
  float *side;
  size_t floats = 0, listed = (size_t) job->tiles * (AREA / 4);
  memset(&s, 0, sizeof s);
  s.pack = job->pack;
  s.a = group[0]->shape;
  s.b = group[1]->shape;
  s.grid = job->grid;
  for (int k = 0; k < 2; k++) {
    s.planes[k] = job->sides[k];
    s.count[k] = group[k]->count;
    s.room[k] = room_of(group[k]);
    if (k < sides) floats += weft_mi_screened_floats(job->pack, group[k], s.room[k]);
  }
  if (listed > MAX_PASSED) listed = MAX_PASSED;
  if (listed < MIN_PASSED) listed = MIN_PASSED;
  if (2 * ((double) floats * sizeof(float) + (double) listed * sizeof(uint2)) > left) goto done;
  WEFT_DEVICE_TAKE(side, job->mem, floats);
  s.side[0] = job->screened.side[0] = side;
  WEFT_DEVICE_TAKE(s.passed.pairs, job->mem, listed + 1);
  s.passed.count = (uint32_t *) (s.passed.pairs + listed);
  s.passed.capacity = (uint32_t) listed;
  s.side[1] = s.side[0] + (sides - 1) * weft_mi_screened_floats(job->pack, group[0], s.room[0]);
  job->screened = s;
  for (int k = 0; k < sides; k++)
    WEFT_TRY(weft_mi_screened_side(ctx, job->pack, job->resident, group[k], s.room[k], s.side[k], job->mem->stream));
done:
  return st;
}

/* Describes a panel's tiles, takes memory for the arranged planes, and prepares the kernel that counts and screens at
 * once where it fits. Taken memory is given back by weft_mi_products_end(), also after an error. */
weft_status weft_mi_products_begin(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                   const weft_mi_resident *resident, const weft_mi_panel *panel, mi_products *out)
{
  weft_status st = WEFT_OK;
  const weft_mi_group *group_a = panel->group_a, *group_b = panel->group_b;
  const weft_mi_facts facts = weft_mi_facts_of(pack, 1);
  memset(out, 0, sizeof *out);
  out->pack = pack;
  out->resident = resident;
  out->panel = panel;
  out->mem = mem;
  out->grid.tiles_a = (uint32_t) ((group_a->count + ROWS_A - 1) / ROWS_A);
  out->grid.tiles_b = (uint32_t) ((group_b->count + ROWS_B - 1) / ROWS_B);
  out->grid.same = panel->same;
  out->tiles = tiles_of(&out->grid);
  WEFT_TRY(take_sides(ctx, out));
  if (weft_mi_pairs_fused(&facts, weft_mi_side_of(group_a), weft_mi_side_of(group_b)))
    WEFT_TRY(begin_screened(ctx, out));
done:
  return st;
}

void weft_mi_products_end(mi_products *job)
{
  if (job->sides[1] != job->sides[0]) weft_device_drop(job->mem, job->sides[1]);
  weft_device_drop(job->mem, job->sides[0]);
  weft_device_drop(job->mem, job->counts);
  weft_device_drop(job->mem, job->screened.side[0]);
  weft_device_drop(job->mem, job->screened.passed.pairs);
}

double weft_mi_products_max_pairs(const mi_products *job)
{
  const weft_mi_shape a = job->panel->group_a->shape, b = job->panel->group_b->shape;
  const int screened = kernel_for(a.levels, b.levels) != score_products<0, 0>;
  const double counting = (double) job->pack->n * a.planes * b.planes / 3e15;
  const double cells = (double) a.levels * b.levels * job->pack->classes;
  if (job->screened.pack) return 0.1 / (counting + 1e-12 * cells);
  return 0.1 / (counting + cells * (screened ? 4e-12 : 2e-11 * (a.planes + b.planes)));
}

/* What the kernel that counts has to know of a panel. */
static mi_counting counting(const mi_products *job)
{
  const weft_mi_pack *pack = job->pack;
  const weft_mi_group *group_a = job->panel->group_a, *group_b = job->panel->group_b;
  mi_counting args;
  memset(&args, 0, sizeof args);
  args.a = job->sides[0];
  args.b = job->sides[1];
  args.plane_a = room_of(group_a) * job->resident->words * 4;
  args.plane_b = room_of(group_b) * job->resident->words * 4;
  weft_mi_counting_classes(pack, &args);
  args.stratum_classes = pack->per;
  args.planes_a = group_a->shape.planes;
  args.planes_b = group_b->shape.planes;
  args.products = (uint32_t) products_of(pack, group_a, group_b);
  args.grid = job->grid;
  args.out = job->counts;
  return args;
}

/* What the kernel that scores has to know of a panel, with the threshold as the screen reads it: in bits, in single
 * precision. */
static mi_scoring scoring(const mi_products *job, const mi_threshold *threshold, const mi_hits *hits)
{
  const weft_mi_pack *p = job->pack;
  const weft_mi_resident *resident = job->resident;
  const weft_mi_group *group_a = job->panel->group_a, *group_b = job->panel->group_b;
  mi_scoring args;
  memset(&args, 0, sizeof args);
  args.counts = job->counts;
  args.planes_a = group_a->shape.planes;
  args.planes_b = group_b->shape.planes;
  args.products = (uint32_t) products_of(p, group_a, group_b);
  args.a = group_a->shape;
  args.b = group_b->shape;
  args.classes = p->classes;
  args.per = p->per;
  args.words = weft_mi_counts_words(p);
  args.packed = weft_mi_counts_pack(p);
  args.margin_a = resident->margins + group_a->plane0;
  args.margin_b = resident->margins + group_b->plane0;
  args.class_rows = resident->class_rows;
  args.plane_rows = p->plane_rows;
  args.count_a = group_a->count;
  args.count_b = group_b->count;
  args.place_a = group_a->first;
  args.place_b = group_b->first;
  args.columns = p->columns;
  args.column = resident->column;
  args.alone = resident->alone;
  args.f = resident->f;
  args.class_fixed = p->class_fixed;
  args.grid = job->grid;
  args.threshold_mi =
      (float) (threshold->by_interaction ? threshold->min_mi : fmax(threshold->min_mi, threshold->score));
  args.threshold_gain =
      (float) (threshold->by_interaction ? fmax(threshold->min_gain, threshold->score) : threshold->min_gain);
  args.error = (float) weft_products_error(group_a->shape.levels * group_b->shape.levels, p->classes);
  args.threshold = *threshold;
  args.hits = *hits;
  return args;
}

/* Screens tiles, and scores what passed; *done_here: 0 when it was more than is listed. */
static weft_status screen_pairs(weft_ctx *ctx, mi_products *job, const mi_threshold *threshold, const mi_hits *hits,
                                uint64_t first, uint64_t count, cudaStream_t stream, int *done_here)
{
  weft_status st = WEFT_OK;
  const mi_passed passed = job->screened.passed;
  const weft_mi_resident *resident = job->resident;
  const passed_args args = { scoring(job, threshold, hits),
                             resident->planes + job->panel->group_a->plane0 * (size_t) resident->words,
                             resident->planes + job->panel->group_b->plane0 * (size_t) resident->words,
                             resident->class_word,
                             resident->words,
                             passed };
  const int open = !(args.scoring.threshold_mi > -INFINITY) && !(args.scoring.threshold_gain > -INFINITY);
  uint32_t found;
  *done_here = 0;
  if (!job->screened.pack || count > UINT32_MAX / 64 || (open && count * AREA > passed.capacity)) goto done;
  WEFT_TRY(arrange(ctx, job, 2));
  WEFT_TRY(weft_mi_screen_pairs(ctx, &job->screened, threshold, first, (uint32_t) count, stream));
  WEFT_CUDA(cudaMemcpyAsync(&found, passed.count, sizeof found, cudaMemcpyDeviceToHost, stream));
  WEFT_CUDA(cudaStreamSynchronize(stream));
  if (found > passed.capacity) goto done;
  *done_here = 1;
  if (!found) goto done;
  score_passed<<<(unsigned) fmin(4096, (found + PASSED_WARPS - 1) / PASSED_WARPS), 32 * PASSED_WARPS, 0, stream>>>(
      args);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

/* Takes memory for the counts of a batch of tiles when it is first needed: as many tiles as fit, but not more than the
 * panel has. */
static weft_status take_counts(weft_ctx *ctx, mi_products *job)
{
  weft_status st = WEFT_OK;
  const size_t bytes = tile_bytes(job);
  size_t limit = COUNTS_BYTES / bytes;
  if (job->counts) goto done;
  if (limit > MAX_BATCH) limit = MAX_BATCH;
  if (limit > job->tiles) limit = (size_t) job->tiles;
  job->batch = (uint32_t) weft_device_chunk(ctx, limit, (double) bytes, 0);
  if (!job->batch) {
    st = WEFT_ERR_MEMORY;
    goto done;
  }
  WEFT_DEVICE_TAKE(job->counts, job->mem, job->batch * (bytes / sizeof *job->counts));
done:
  return st;
}

/* Scores tiles from counts in memory. */
static weft_status count_pairs(weft_ctx *ctx, const mi_products *job, const mi_threshold *threshold,
                               const mi_hits *hits, uint64_t first, uint64_t count, cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  mi_counting units = counting(job);
  mi_scoring pairs = scoring(job, threshold, hits);
  const score_kernel score = kernel_for(pairs.a.levels, pairs.b.levels);
  tile_walk walk = { 0, 0 };
  for (uint64_t at = first; at < first + count; at += job->batch) {
    const uint32_t now = first + count - at < job->batch ? (uint32_t) (first + count - at) : job->batch;
    uint32_t ta, tb;
    place_tile(&job->grid, &walk, at, &ta, &tb);
    units.start = pairs.start = walk;
    units.first = pairs.first = at;
    units.units = now * units.products;
    WEFT_TRY(weft_mi_count_products(ctx, &units, stream));
    score<<<dim3(ROWS_A / STRIP, now), ROWS_B, 0, stream>>>(pairs);
    WEFT_CUDA(cudaGetLastError());
  }
done:
  return st;
}

weft_status weft_mi_products_pairs(weft_ctx *ctx, mi_products *job, const mi_threshold *threshold, const mi_hits *hits,
                                   uint64_t first, uint64_t count, cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  int done_here;
  WEFT_TRY(screen_pairs(ctx, job, threshold, hits, first, count, stream, &done_here));
  if (done_here) goto done;
  WEFT_TRY(take_counts(ctx, job));
  WEFT_TRY(arrange(ctx, job, 1));
  WEFT_TRY(count_pairs(ctx, job, threshold, hits, first, count, stream));
done:
  return st;
}
