/* Quadruples of attributes of at most three levels and two classes, on Hopper's 1-bit tensor cores. Planes of two
 * attributes that both have them are planes of a pair, four for three levels and one for two, and quadruples are pairs
 * of pairs: the kernel that counts products of planes (pairs/cuda/counted_hopper.cu) counts those of a panel of pairs
 * (a, b), in the order of b, with a panel of pairs (c, d), in the order of c, where b < c. The same kernel counts both
 * panels with single attributes, which gives triples, and these with each other. A thread then completes the table of a
 * quadruple from planes of four, three, two and one attributes, adds up its information in single precision, and
 * scores what may pass exactly. */
#include <cmath>
#include <cstring>
#include <numeric>
#include <algorithm>
#include "mi/pairs/cuda/counted_hopper.cuh"
#include "mi/search/cuda/progress.cuh"
#include "mi/triples/cuda/few_levels.cuh"
#include "mi/triples/cuda/quadruples.cuh"

#define SIDE_PAIRS 2048u /* of a panel, for three levels; a multiple of 16 tiles of 128 */
#define SIDE_BINARY 8192u
#define SIDE_FEW_BINARY 4096u /* up to FEW_PAIRS of them */
#define FEW_PAIRS 65536u
#define SAMPLED_TILES 64u /* scored for a first threshold, a strip of each */
#define STRIP 8           /* rows of a tile that a block scores */
#define ROUNDING 4e-5     /* of the rows: more than single precision takes off the information, in bits */
#define PAIR_THREADS 256
#define AT_ONCE 1.5e13 /* products of rows between two polls */

/* Counts as the kernel writes them: [tile][product][row][column]. */
struct quad_counts {
  const uint32_t *words;
  uint32_t tiles_b, products;
};

__device__ static inline uint32_t count_at(const quad_counts &counts, uint32_t row, uint32_t column, uint32_t product)
{
  const uint32_t ta = row / ROWS_A, tb = column / ROWS_B;
  const size_t tile = (size_t) (ta / GROUP) * counts.tiles_b * GROUP + tb * GROUP + ta % GROUP;
  return __ldg(&counts.words[(tile * counts.products + product) * AREA + row % ROWS_A * ROWS_B + column % ROWS_B]);
}

struct quad_args {
  quad_counts four, with_a, with_b, two; /* pairs and pairs; pairs (a, b) and singles; singles and pairs (c, d) */
  const uint2 *pairs_a, *pairs_b;
  uint32_t first_a, first_b, pairs; /* of the panels; of all */
  uint32_t all;                     /* rows of class 0 in the high half, of class 1 in the low one */
  uint32_t attributes;
  uint64_t n;
  float least; /* sum that a quadruple needs */
  weft_mi_log f;
  int64_t class_fixed;
  mi_threshold threshold;
  mi_hits hits;
};

/* ---- planes of pairs ---- */

struct pair_planes {
  const uint32_t *planes, *plane_row; /* the pack's; [plane][attribute], UINT32_MAX where there is none */
  uint32_t words, steps, attributes, planes_each;
  const uint2 *pairs; /* NULL: single attributes */
  uint32_t first, count, room;
  uint8_t *out;
};

__device__ static inline uint4 plane_piece(const pair_planes &p, uint32_t attribute, uint32_t plane, uint32_t piece)
{
  const uint32_t row = p.plane_row[plane * p.attributes + attribute];
  if (row == UINT32_MAX) return make_uint4(0, 0, 0, 0);
  return __ldg((const uint4 *) (p.planes + (size_t) row * p.words) + piece);
}

/* A thread writes 128 bits of a plane, in the order of the tensor cores: 8 rows by half a step next to each other.
 * blockIdx.y: the plane. */
__global__ static void __launch_bounds__(PAIR_THREADS) arrange_pairs(const __grid_constant__ pair_planes p)
{
  const uint32_t at = blockIdx.x * PAIR_THREADS + threadIdx.x, eights = p.room / 8;
  const uint32_t row = at / 16 % eights * 8 + at % 8, piece = at / 16 / eights * 2 + at / 8 % 2, q = blockIdx.y;
  if (piece >= 2 * p.steps) return;
  uint4 bits = make_uint4(0, 0, 0, 0);
  if (row < p.count && !p.pairs) bits = plane_piece(p, p.first + row, q, piece);
  if (row < p.count && p.pairs) {
    const uint2 pair = p.pairs[p.first + row];
    const uint4 one = plane_piece(p, pair.x, q / p.planes_each, piece),
                other = plane_piece(p, pair.y, q % p.planes_each, piece);
    bits = make_uint4(one.x & other.x, one.y & other.y, one.z & other.z, one.w & other.w);
  }
  *(uint4 *) (p.out + (size_t) q * p.room * p.words * 4 + piece_offset(row, piece, p.steps)) = bits;
}

/* ---- scores ---- */

/* Every combination of planes and "any level" (P) of four attributes, from what was counted; then every combination of
 * levels. */
template <int P>
__device__ static inline void fill_table(const quad_args &args, uint32_t i, uint32_t j, uint2 ab, uint2 cd,
                                         uint32_t (&table)[(P + 1) * (P + 1) * (P + 1) * (P + 1)])
{
  constexpr int L = P + 1;
  const uint32_t of[4] = { ab.x, ab.y, cd.x, cd.y };
  const auto at = [](int x, int y, int z, int w) { return ((x * L + y) * L + z) * L + w; };
#pragma unroll
  for (int q = 0; q < P * P; q++) {
    const int x = q / P, y = q % P;
#pragma unroll
    for (int r = 0; r < P * P; r++)
      table[at(x, y, r / P, r % P)] = count_at(args.four, i, j, (uint32_t) (q * P * P + r));
#pragma unroll
    for (int r = 0; r < P; r++) {
      table[at(x, y, r, P)] = count_at(args.with_a, i, of[2], (uint32_t) (q * P + r));
      table[at(x, y, P, r)] = count_at(args.with_a, i, of[3], (uint32_t) (q * P + r));
      table[at(r, P, x, y)] = count_at(args.with_b, of[0], j, (uint32_t) (r * P * P + q));
      table[at(P, r, x, y)] = count_at(args.with_b, of[1], j, (uint32_t) (r * P * P + q));
    }
    table[at(x, y, P, P)] = count_at(args.two, of[0], of[1], (uint32_t) q);
    table[at(x, P, y, P)] = count_at(args.two, of[0], of[2], (uint32_t) q);
    table[at(x, P, P, y)] = count_at(args.two, of[0], of[3], (uint32_t) q);
    table[at(P, x, y, P)] = count_at(args.two, of[1], of[2], (uint32_t) q);
    table[at(P, x, P, y)] = count_at(args.two, of[1], of[3], (uint32_t) q);
    table[at(P, P, x, y)] = count_at(args.two, of[2], of[3], (uint32_t) q);
  }
#pragma unroll
  for (int x = 0; x < P; x++) {
    table[at(x, P, P, P)] = count_at(args.two, of[0], of[0], (uint32_t) (x * P + x));
    table[at(P, x, P, P)] = count_at(args.two, of[1], of[1], (uint32_t) (x * P + x));
    table[at(P, P, x, P)] = count_at(args.two, of[2], of[2], (uint32_t) (x * P + x));
    table[at(P, P, P, x)] = count_at(args.two, of[3], of[3], (uint32_t) (x * P + x));
  }
  table[at(P, P, P, P)] = args.all;
#pragma unroll
  for (int apart = 1; apart <= L * L * L; apart *= L)
#pragma unroll
    for (int k = 0; k < L * L * L * L; k++) {
      if (k / apart % L != P) continue;
#pragma unroll
      for (int q = 1; q <= P; q++) table[k] -= table[k - q * apart];
    }
}

/* x log2 x of a count. Without the instructions by which __log2f() serves denormal numbers. */
__device__ static inline float times_log2(float x)
{
  float log2;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(log2) : "f"(x + 1e-30f));
  return x * log2;
}

/* k0 log2 k0 + k1 log2 k1 - m log2 m, over all cells. Half a word becomes a number in the fraction of 2^23. */
template <int CELLS> __device__ static inline float quick_sum(const uint32_t (&table)[CELLS])
{
  float sum = 0;
#pragma unroll
  for (int k = 0; k < CELLS; k++) {
    const float one = __uint_as_float(__byte_perm(table[k], 0x4b000000u, 0x7432)) - 8388608.0f,
                other = __uint_as_float(__byte_perm(table[k], 0x4b000000u, 0x7410)) - 8388608.0f;
    sum += times_log2(one) + times_log2(other) - times_log2(one + other);
  }
  return sum;
}

/* The same in fixed point, of one lane's table by its warp: few lanes have one that may pass. */
template <int CELLS>
__device__ static inline int64_t exact_sum(const weft_mi_log &f, const uint32_t (&table)[CELLS], int from)
{
  const int lane = threadIdx.x % 32;
  uint32_t mine[(CELLS + 31) / 32] = { 0 };
  int64_t sum = 0;
#pragma unroll
  for (int k = 0; k < CELLS; k++) {
    const uint32_t cell = __shfl_sync(0xffffffffu, table[k], from);
    if (lane == k % 32) mine[k / 32] = cell;
  }
#pragma unroll
  for (const uint32_t cell : mine) {
    const uint32_t one = cell >> 16, other = cell & 0xffffu;
    sum += weft_mi_fixed(&f, one) + weft_mi_fixed(&f, other) - weft_mi_fixed(&f, one + other);
  }
#pragma unroll
  for (int apart = 16; apart; apart /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, apart);
  return sum;
}

/* The lexicographic rank of a < b < c < d. */
__device__ static inline uint64_t rank_of(uint64_t p, uint2 ab, uint2 cd)
{
  const auto four = [](uint64_t m) { return m < 4 ? 0 : m * (m - 1) * (m - 2) / 6 * (m - 3) / 4; };
  const uint64_t a = p - 1 - ab.x, b = p - 1 - ab.y, c = p - 1 - cd.x, d = p - 1 - cd.y;
  const uint64_t three = b < 3 ? 0 : b * (b - 1) * (b - 2) / 6, two = c < 2 ? 0 : c * (c - 1) / 2;
  return four(p) - 1 - four(a) - three - two - d;
}

/* Blocks of STRIP rows of a tile, a thread per column. */
template <int P>
__global__ static void __launch_bounds__(ROWS_B, P == 1 ? 4 : 2)
    score_quadruples(const __grid_constant__ quad_args args)
{
  const uint32_t tile = blockIdx.y, within = tile % (args.four.tiles_b * GROUP);
  const uint32_t ta = tile / (args.four.tiles_b * GROUP) * GROUP + within % GROUP, tb = within / GROUP;
  const uint32_t place = tb * ROWS_B + threadIdx.x;
  if (args.first_b + tb * ROWS_B >= args.pairs) return;
  const uint32_t j = min(place, args.pairs - args.first_b - 1);
  const uint2 cd = args.pairs_b[args.first_b + j];
  for (uint32_t row = 0; row < STRIP; row++) {
    const uint32_t i = ta * ROWS_A + blockIdx.x * STRIP + row;
    if (args.first_a + i >= args.pairs) break;
    const uint2 ab = args.pairs_a[args.first_a + i];
    const bool there = place == j && ab.y < cd.x;
    uint32_t table[(P + 1) * (P + 1) * (P + 1) * (P + 1)];
    if (!__any_sync(0xffffffffu, there)) break; /* nor in the rows behind */
    fill_table<P>(args, i, j, ab, cd, table);
    uint32_t passing = __ballot_sync(0xffffffffu, there && quick_sum(table) >= args.least);
    for (; passing; passing &= passing - 1) {
      const int from = __ffs((int) passing) - 1;
      const int64_t sum = exact_sum(args.f, table, from) - args.class_fixed;
      if (threadIdx.x % 32 != (uint32_t) from) continue;
      const double mi = weft_mi_bits(sum > 0 ? sum : 0, args.f.unit, args.n);
      const uint64_t rank = rank_of(args.attributes, ab, cd);
      if (mi_passes(args.threshold, mi, 0, rank)) mi_append(args.hits, mi, rank);
    }
  }
}

/* ---- host ---- */

struct quad_job {
  const weft_mi_pack *pack;
  const weft_mi_resident *resident;
  cudaStream_t stream;
  uint32_t planes, attributes, room, pairs, side; /* room: for attributes; side: pairs of a panel */
  uint32_t *plane_row;
  uint2 *pairs_a, *pairs_b;
  uint32_t *low_b, *high_c; /* of each tile of 128 pairs (a, b), its least b; of each of 256 (c, d), its greatest c */
  uint8_t *singles, *panel_a, *panel_b;
  uint32_t *two, *with_a, *with_b, *four;
  uint2 *panels; /* host: numbers of panels that have quadruples */
  uint64_t count;
  uint32_t held; /* the panel of (a, b) that is there */
};

/* Tiles that the kernel which counts may write. */
static size_t tiles_for(uint32_t rows, uint32_t columns)
{
  const size_t groups = ((rows + ROWS_A - 1) / ROWS_A + GROUP - 1) / GROUP;
  return groups * GROUP * (columns / ROWS_B);
}

/* Arranges the planes of some pairs, or of single attributes where `pairs` is NULL, for the tensor cores. */
static weft_status arrange(weft_ctx *ctx, const quad_job *job, const uint2 *pairs, uint32_t first, uint32_t count,
                           uint32_t room, uint8_t *out)
{
  weft_status st = WEFT_OK;
  const uint32_t steps = job->resident->words / STEP_WORDS, planes = pairs ? job->planes * job->planes : job->planes;
  const pair_planes p = { job->resident->planes,
                          job->plane_row,
                          job->resident->words,
                          steps,
                          job->attributes,
                          job->planes,
                          pairs,
                          first,
                          count,
                          room,
                          out };
  const size_t threads = (size_t) room * 2 * steps;
  arrange_pairs<<<dim3((unsigned) ((threads + PAIR_THREADS - 1) / PAIR_THREADS), planes), PAIR_THREADS, 0,
                  job->stream>>>(p);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

/* Counts all products of planes of rows_a by rows_b. pairs: of pairs from first_a and first_b on, but for tiles without
 * a quadruple. */
static weft_status count(weft_ctx *ctx, const quad_job *job, const uint8_t *a, uint32_t rows_a, uint32_t planes_a,
                         const uint8_t *b, uint32_t rows_b, uint32_t planes_b, uint32_t *out, quad_counts *made,
                         const uint2 *firsts)
{
  mi_counting units;
  memset(&units, 0, sizeof units);
  weft_mi_counting_classes(job->pack, &units);
  units.a = a;
  units.b = b;
  units.plane_a = (size_t) rows_a * job->resident->words * 4;
  units.plane_b = (size_t) rows_b * job->resident->words * 4;
  units.stratum_classes = job->pack->per;
  units.planes_a = planes_a;
  units.planes_b = planes_b;
  units.products = planes_a * planes_b;
  units.grid.tiles_a = rows_a / ROWS_A;
  units.grid.tiles_b = rows_b / ROWS_B;
  units.units = (uint32_t) (tiles_of(&units.grid) * units.products);
  units.out = out;
  if (firsts) {
    units.low_a = job->low_b + firsts->x / ROWS_A;
    units.high_b = job->high_c + firsts->y / ROWS_B;
  }
  *made = { out, units.grid.tiles_b, units.products };
  return weft_mi_count_products(ctx, &units, job->stream);
}

/* Attributes in the order of their columns; all pairs in both orders; panels with b < c in some of their pairs. */
static weft_status place_all(weft_ctx *ctx, weft_device_arena *mem, weft_arena *host, quad_job *job)
{
  weft_status st = WEFT_OK;
  const weft_mi_pack *pack = job->pack;
  const uint32_t p = job->attributes, sides = (job->pairs + job->side - 1) / job->side;
  const uint32_t tiles = (job->pairs + job->side) / ROWS_A + 1; /* of the last panel, too */
  uint32_t *order, *rows, *ordered, *low_b, *high_c;
  uint2 *pairs_a, *pairs_b;
  size_t at = 0;
  WEFT_TAKE(order, host, p);
  WEFT_TAKE(rows, host, (size_t) job->planes * p);
  WEFT_TAKE(ordered, host, (size_t) job->planes * p);
  WEFT_TAKE(pairs_a, host, job->pairs);
  WEFT_TAKE(pairs_b, host, job->pairs);
  WEFT_TAKE(low_b, host, tiles);
  WEFT_TAKE(high_c, host, tiles);
  WEFT_TAKE(job->panels, host, (size_t) sides * sides);
  std::iota(order, order + p, 0u);
  std::sort(order, order + p, [&](uint32_t x, uint32_t y) { return pack->column[x] < pack->column[y]; });
  weft_mi_plane_rows(pack, job->planes, rows);
  for (uint32_t q = 0; q < job->planes; q++)
    for (uint32_t k = 0; k < p; k++) ordered[q * p + k] = rows[q * p + order[k]];
  for (uint32_t b = 1; b < p; b++)
    for (uint32_t a = 0; a < b; a++) pairs_a[at++] = make_uint2(a, b);
  at = 0;
  for (uint32_t c = 0; c < p; c++)
    for (uint32_t d = c + 1; d < p; d++) pairs_b[at++] = make_uint2(c, d);
  for (uint32_t x = 0; x < sides; x++)
    for (uint32_t y = 0; y < sides; y++) {
      const uint32_t last = std::min(job->pairs, (y + 1) * job->side) - 1;
      if (pairs_a[x * job->side].y < pairs_b[last].x) job->panels[job->count++] = make_uint2(x, y);
    }
  for (uint32_t tile = 0; tile < tiles; tile++) {
    low_b[tile] = tile * ROWS_A < job->pairs ? pairs_a[tile * ROWS_A].y : UINT32_MAX;
    high_c[tile] = tile * ROWS_B < job->pairs ? pairs_b[std::min(job->pairs, (tile + 1) * ROWS_B) - 1].x : 0;
  }
  for (uint64_t k = 0; k < job->count; k++) /* one that is full of quadruples goes first, for a threshold */
    if (job->panels[k].x == 0 && job->panels[k].y == sides / 2) std::swap(job->panels[0], job->panels[k]);
  WEFT_TRY(weft_device_send(mem, low_b, tiles, &job->low_b));
  WEFT_TRY(weft_device_send(mem, high_c, tiles, &job->high_c));
  WEFT_TRY(weft_device_send(mem, ordered, (size_t) job->planes * p, &job->plane_row));
  WEFT_TRY(weft_device_send(mem, pairs_a, job->pairs, &job->pairs_a));
  WEFT_TRY(weft_device_send(mem, pairs_b, job->pairs, &job->pairs_b));
done:
  return st;
}

static weft_status take_memory(weft_ctx *ctx, weft_device_arena *mem, quad_job *job)
{
  weft_status st = WEFT_OK;
  const size_t bytes = (size_t) job->resident->words * 4, single = job->planes, pair = single * single;
  (void) ctx;
  WEFT_DEVICE_TAKE(job->singles, mem, bytes * single * job->room);
  WEFT_DEVICE_TAKE(job->panel_a, mem, bytes * pair * job->side);
  WEFT_DEVICE_TAKE(job->panel_b, mem, bytes * pair * job->side);
  WEFT_DEVICE_TAKE(job->two, mem, tiles_for(job->room, job->room) * pair * AREA);
  WEFT_DEVICE_TAKE(job->with_a, mem, tiles_for(job->side, job->room) * pair * single * AREA);
  WEFT_DEVICE_TAKE(job->with_b, mem, tiles_for(job->room, job->side) * pair * single * AREA);
  WEFT_DEVICE_TAKE(job->four, mem, tiles_for(job->side, job->side) * pair * pair * AREA);
done:
  return st;
}

static float lowest_sum(const quad_job *job, const mi_threshold *threshold)
{
  const double n = (double) job->pack->n, mi = fmax(threshold->min_mi, threshold->score);
  return (float) (mi * n + (double) job->pack->class_fixed * job->pack->f.unit - ROUNDING * n - 1e-3);
}

static quad_args args_of(const quad_job *job, const mi_collector *collector)
{
  const uint32_t single = job->planes, pair = single * single;
  quad_args args;
  memset(&args, 0, sizeof args);
  args.two = { job->two, job->room / ROWS_B, pair };
  args.with_a = { job->with_a, job->room / ROWS_B, pair * single };
  args.pairs_a = job->pairs_a;
  args.pairs_b = job->pairs_b;
  args.pairs = job->pairs;
  args.all = job->pack->class_rows[0] << 16 | job->pack->class_rows[1];
  args.attributes = job->attributes;
  args.n = job->pack->n;
  args.least = lowest_sum(job, &collector->threshold);
  args.f = job->resident->f;
  args.class_fixed = job->pack->class_fixed;
  args.threshold = collector->threshold;
  args.hits = collector->hits;
  return args;
}

/* Counts and scores a panel: `blocks` of it. */
static weft_status run_panel(weft_ctx *ctx, quad_job *job, uint2 now, dim3 blocks, quad_args args)
{
  weft_status st = WEFT_OK;
  const uint32_t single = job->planes, pair = single * single, side = job->side;
  const uint2 firsts = make_uint2(now.x * side, now.y * side);
  args.first_a = firsts.x;
  args.first_b = firsts.y;
  if (now.x != job->held) {
    WEFT_TRY(arrange(ctx, job, job->pairs_a, firsts.x, std::min(side, job->pairs - firsts.x), side, job->panel_a));
    WEFT_TRY(
        count(ctx, job, job->panel_a, side, pair, job->singles, job->room, single, job->with_a, &args.with_a, NULL));
    job->held = now.x;
  }
  WEFT_TRY(arrange(ctx, job, job->pairs_b, firsts.y, std::min(side, job->pairs - firsts.y), side, job->panel_b));
  WEFT_TRY(count(ctx, job, job->singles, job->room, single, job->panel_b, side, pair, job->with_b, &args.with_b, NULL));
  WEFT_TRY(count(ctx, job, job->panel_a, side, pair, job->panel_b, side, pair, job->four, &args.four, &firsts));
  if (single == 1)
    score_quadruples<1><<<blocks, ROWS_B, 0, job->stream>>>(args);
  else
    score_quadruples<2><<<blocks, ROWS_B, 0, job->stream>>>(args);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

/* Panels first .. first + count - 1. */
static weft_status run_panels(weft_ctx *ctx, void *data, mi_collector *collector, uint64_t first, uint64_t panels)
{
  weft_status st = WEFT_OK;
  quad_job *job = (quad_job *) data;
  const dim3 blocks(ROWS_A / STRIP, (unsigned) tiles_for(job->side, job->side));
  const quad_args args = args_of(job, collector);
  for (uint64_t k = first; k < first + panels; k++) WEFT_TRY(run_panel(ctx, job, job->panels[k], blocks, args));
done:
  return st;
}

/* Scores a strip of some tiles, for a threshold: without one, almost every warp of the first panels would score
 * exactly. */
static weft_status sample(weft_ctx *ctx, quad_job *job, mi_collector *collector)
{
  weft_status st = WEFT_OK;
  const uint32_t sides = (job->pairs + job->side - 1) / job->side;
  const unsigned tiles = (unsigned) std::min<size_t>(SAMPLED_TILES, tiles_for(job->side, job->side));
  WEFT_CUDA(cudaMemsetAsync(collector->hits.count, 0, sizeof *collector->hits.count, job->stream));
  WEFT_TRY(run_panel(ctx, job, make_uint2(0, sides / 2), dim3(1, tiles), args_of(job, collector)));
  WEFT_TRY(weft_mi_raise_threshold(ctx, collector));
done:
  return st;
}

/* Roughly how many quadruples come before a panel. */
static double panels_until(const void *data, uint64_t units)
{
  const quad_job *job = (const quad_job *) data;
  return (double) units * job->side * job->side;
}

/* Sends pairs, counts single attributes with each other, and goes through the panels. */
weft_status weft_mi_quadruples(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                               const weft_mi_resident *resident, mi_collector *collector)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  quad_counts two;
  quad_job job;
  memset(&job, 0, sizeof job);
  job.pack = pack;
  job.resident = resident;
  job.stream = mem->stream;
  job.planes = 1;
  for (size_t g = 0; g < pack->group_count; g++) job.planes = std::max(job.planes, pack->groups[g].shape.planes);
  job.attributes = (uint32_t) pack->p;
  job.room = (job.attributes + ROWS_B - 1) / ROWS_B * ROWS_B;
  job.pairs = job.attributes * (job.attributes - 1) / 2;
  job.side = job.planes > 1 ? SIDE_PAIRS : job.pairs <= FEW_PAIRS ? SIDE_FEW_BINARY : SIDE_BINARY;
  job.side = std::min(job.side, (job.pairs + ROWS_B - 1) / ROWS_B * ROWS_B);
  job.held = UINT32_MAX;
  WEFT_TRY(place_all(ctx, mem, &host, &job));
  WEFT_TRY(take_memory(ctx, mem, &job));
  WEFT_TRY(arrange(ctx, &job, NULL, 0, job.attributes, job.room, job.singles));
  WEFT_TRY(count(ctx, &job, job.singles, job.room, job.planes, job.singles, job.room, job.planes, job.two, &two, NULL));
  if (collector->keeper.bounded) WEFT_TRY(sample(ctx, &job, collector));
  {
    const double limit = fmax(1, AT_ONCE / ((double) pack->n * pow(job.planes, 4)));
    const mi_runner runner = { &job, job.count, limit, run_panels, panels_until };
    WEFT_TRY(weft_mi_run_all(ctx, collector, &runner));
  }
done:
  weft_arena_end(&host);
  return st;
}
