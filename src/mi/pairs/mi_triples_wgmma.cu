/* Triples of complete attributes of at most three levels and two classes of at most 65,535 rows together, on Hopper's
 * 1-bit tensor cores (wgmma, compute capability 9.0a).
 *
 * For each attribute i in turn, rows are sorted by i's level and the class. Within a level of i a triple is then a pair
 * over a run of rows, so that the products of all levels together are those of one pair, and nothing is ANDed. The
 * planes are arranged as for pairs (mi_planes.h), six runs of whole k-steps one after the other. A tile of 64 attributes
 * by 128 is counted level after level; while the tensor cores count a level, the one before is screened
 * (mi_planes_screen.cuh), and its squares are added to a sum of each pair's, kept in shared memory. The bound on
 * information that these squares are holds for the triple's 27 cells as for a pair's nine.
 *
 * What may reach the bar is noted, and then scored exactly, a warp a triple, from the planes. Triples are taken in order
 * of place, i < j < k, so that each comes once; many attributes i go through one launch. */
#include <cmath>
#include <cstring>
#define SCREENED 4 /* pairs at a time */
#include "mi_planes_screen.cuh"
#include "mi_products_score.cuh"

#define LEVELS 3
#define PLANES ARRANGED_PLANES
#define RUNS (2 * LEVELS)       /* [level of the fixed attribute][class] */
#define STAGES 5
#define SUMS_BYTES (WEFT_PLANES_PAIRS * CONSUMERS * 4)
#define SHARED_BYTES (STAGES * STAGE_BYTES + WORDS_BYTES + SUMS_BYTES)
#define BATCH_BYTES ((size_t) 256 << 20) /* of sorted planes */
#define SORT_THREADS ARRANGE_THREADS
#define SORT_WARPS ARRANGE_WARPS
#define PLACE_BITS 21

/* Of one fixed attribute. */
struct sorted_runs {
  uint32_t rows[RUNS];
  int steps[RUNS], all_steps;   /* k-steps */
};

/* ---- rows sorted by the fixed attribute ---- */

struct sort_args {
  arranged_planes all;
  const uint32_t *class_word, *class_rows, *margins;
  size_t plane_rows, bits, bytes;
  uint32_t fixed[SORTED_BATCH];
  uint32_t *from;
  sorted_runs *runs;
  uint8_t *out;
  float4 *sides;
};

__device__ static sorted_runs runs_of(const sort_args &t, uint32_t fixed)
{
  sorted_runs out;
  out.all_steps = 0;
  for (uint32_t c = 0; c < 2; c++) {
    out.rows[2 * PLANES + c] = t.class_rows[c];
    for (uint32_t q = 0; q < PLANES; q++) {
      const uint32_t row = t.all.plane_row[q * t.all.count + fixed];
      out.rows[2 * q + c] = row == UINT32_MAX ? 0 : t.margins[c * t.plane_rows + row];
      out.rows[2 * PLANES + c] -= out.rows[2 * q + c];
    }
  }
  for (uint32_t k = 0; k < RUNS; k++) {
    out.steps[k] = (int) ((out.rows[k] + STEP_BITS - 1) / STEP_BITS);
    out.all_steps += out.steps[k];
  }
  return out;
}

/* The rows of a word in each level of the fixed attribute. */
__device__ static inline void levels_of_word(const sort_args &t, const uint32_t *const (&plane)[PLANES], uint32_t c,
                                             uint32_t w, uint32_t (&level)[LEVELS])
{
  const uint32_t first = (w - t.class_word[c]) * 32, rows = t.class_rows[c];
  uint32_t rest = first + 32 <= rows ? 0xffffffffu : first < rows ? (1u << (rows - first)) - 1 : 0;
  for (uint32_t q = 0; q < PLANES; q++) {
    level[q] = plane[q] ? plane[q][w] : 0;
    rest &= ~level[q];
  }
  level[PLANES] = rest;
}

/* Sums over the threads before this one, by all threads of a block. */
__device__ static inline void sum_before(uint32_t (&count)[LEVELS], uint32_t (*room)[LEVELS])
{
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (uint32_t l = 0; l < LEVELS; l++) {
    const uint32_t own = count[l];
    for (uint32_t d = 1; d < 32; d *= 2) {
      const uint32_t before = __shfl_up_sync(0xffffffffu, count[l], d);
      if (lane >= d) count[l] += before;
    }
    if (lane == 31) room[warp][l] = count[l];
    count[l] -= own;
  }
  __syncthreads();
  for (uint32_t l = 0; l < LEVELS; l++) for (uint32_t k = 0; k < warp; k++) count[l] += room[k][l];
  __syncthreads();
}

/* A block for each fixed attribute: where the bits of a sorted row come from. `from` is NOWHERE before. */
__global__ static void __launch_bounds__(SORT_THREADS) sort_rows(const __grid_constant__ sort_args t)
{
  __shared__ uint32_t room[SORT_WARPS][LEVELS];
  const uint32_t slot = blockIdx.x, fixed = t.fixed[slot], thread = threadIdx.x;
  const sorted_runs runs = runs_of(t, fixed);
  const uint32_t *plane[PLANES];
  uint32_t *const from = t.from + slot * t.bits;
  if (thread == 0) t.runs[slot] = runs;
  for (uint32_t q = 0; q < PLANES; q++) {
    const uint32_t row = t.all.plane_row[q * t.all.count + fixed];
    plane[q] = row == UINT32_MAX ? NULL : t.all.planes + (size_t) row * t.all.words;
  }
  for (uint32_t c = 0; c < 2; c++) {
    const uint32_t first = t.class_word[c], end = t.class_word[c + 1];
    const uint32_t each = (end - first + SORT_THREADS - 1) / SORT_THREADS, begin = first + thread * each;
    const uint32_t stop = begin + each < end ? begin + each : end;
    uint32_t next[LEVELS] = { 0, 0, 0 }, level[LEVELS], step = 0;
    for (uint32_t w = begin; w < stop; w++) {
      levels_of_word(t, plane, c, w, level);
      for (uint32_t l = 0; l < LEVELS; l++) next[l] += (uint32_t) __popc(level[l]);
    }
    sum_before(next, room);
    for (uint32_t k = 0; k < RUNS; k++) {
      if (k % 2 == c) next[k / 2] += step * STEP_BITS;
      step += (uint32_t) runs.steps[k];
    }
    for (uint32_t w = begin; w < stop; w++) {
      levels_of_word(t, plane, c, w, level);
      for (uint32_t l = 0; l < LEVELS; l++)
        for (uint32_t left = level[l]; left; left &= left - 1)
          from[next[l]++] = w * 32 + (uint32_t) __ffs((int) left) - 1;
    }
  }
}

/* The first attribute that is arranged: those of whole tiles behind the fixed one. */
__device__ static inline size_t first_arranged(uint32_t fixed)
{
  return (size_t) (fixed + 1) / WEFT_PLANES_B * WEFT_PLANES_B;
}

/* A warp arranges a block of 128 rows of planes over a level of the fixed attribute, and makes the attributes' sides
 * from what it counts. */
__global__ static void __launch_bounds__(SORT_THREADS) arrange_sorted(const __grid_constant__ sort_args t)
{
  const uint32_t slot = blockIdx.y, lane = threadIdx.x % 32, warp = blockIdx.x * SORT_WARPS + threadIdx.x / 32;
  const uint32_t level = warp % LEVELS;
  const size_t block = first_arranged(t.fixed[slot]) / WEFT_PLANES_A + warp / LEVELS;
  if (block >= t.all.room / WEFT_PLANES_A) return;
  const sorted_runs &runs = t.runs[slot];
  uint32_t step = 0, packed[4] = { 0, 0, 0, 0 };
  for (uint32_t k = 0; k < 2 * level; k++) step += (uint32_t) runs.steps[k];
  for (uint32_t c = 0; c < 2; c++) {
    const uint32_t end = step + (uint32_t) runs.steps[2 * level + c];
    uint32_t count[4] = { 0, 0, 0, 0 };
    arrange_run(t.all, t.from + slot * t.bits, block, 2 * step, 2 * end, (uint32_t) runs.all_steps,
                t.out + slot * t.bytes, count);
    for (int i = 0; i < 4; i++) packed[i] += weft_planes_pack(c ? 0 : count[i], c ? count[i] : 0);
    step = end;
  }
  for (int i = 0; i < 4; i++) { /* plane 1 of an attribute is eight rows behind its plane 0 */
    const uint32_t plane[PLANES] = { packed[i], __shfl_down_sync(0xffffffffu, packed[i], 8) };
    const size_t row = block * 128 + i * 32 + lane;
    if (weft_planes_plane(row) == 0)
      t.sides[(slot * LEVELS + level) * t.all.room + weft_planes_attribute(row)] =
          words_of_side(weft_planes_side_of(plane));
  }
}

/* ---- the screen ---- */

struct sorted_args {
  uint32_t slots, fixed[SORTED_BATCH];
  uint64_t end[SORTED_BATCH];   /* tiles until the end of a fixed attribute's */
  uint32_t tiles_a, tiles_b;
  const uint8_t *planes;
  size_t bytes, room, count;
  const sorted_runs *runs;
  const float4 *sides;
  const float *own;
  float bar_mi, bar_gain;       /* in units of the screen */
  mi_hits hits;
};

/* Where a walk through the tiles of all fixed attributes has come. */
struct sorted_walk { uint32_t slot; tile_grid grid; tile_walk walk; };

__device__ static inline void enter_slot(const sorted_args &t, uint32_t slot, sorted_walk *w)
{
  w->slot = slot;
  w->grid.tiles_a = t.tiles_a;
  w->grid.tiles_b = t.tiles_b;
  w->grid.same = 1;
  w->grid.low = PLANES * (t.fixed[slot] + 1);
  w->walk.base = slot ? t.end[slot - 1] : 0;
  w->walk.group = w->grid.low / ROWS_A / GROUP;
}

/* Tile k of all, not below the last one's; 0 when there is nothing in it. */
__device__ static inline int place_sorted(const sorted_args &t, sorted_walk *w, uint64_t k, uint32_t *ta, uint32_t *tb)
{
  if (k >= t.end[w->slot]) {
    uint32_t slot = w->slot;
    while (k >= t.end[slot]) slot++;
    enter_slot(t, slot, w);
  }
  return place_tile(&w->grid, &w->walk, k, ta, tb);
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* A level of the fixed attribute in a tile. `most`: the greatest sum of a pair so far. */
struct level_screen { planes_screen pairs; const float4 *sides; uint32_t fixed, all, last; float most; };

/* All fields have values: ptxas 13.0 took one that was left open for that of the level being counted. */
__device__ static inline level_screen no_level(const sorted_args &t)
{
  level_screen none = { nothing_to_screen(), t.sides, 0, 0, 0, -INFINITY };
  return none;
}

/* The sum of a pair begins below zero, by its bar. */
__device__ static inline void begin_sums(const sorted_args &t, float own, const float *own_b, float *sums)
{
#pragma unroll 4
  for (uint32_t k = 0; k < WEFT_PLANES_PAIRS; k++)
    sums[k * CONSUMERS] = -fmaxf(t.bar_mi, t.bar_gain + fmaxf(own, __ldg(&own_b[weft_planes_b(0, k)])));
}

__device__ static inline level_screen begin_level(const sorted_args &t, const sorted_walk &w, uint32_t level,
                                                  uint32_t one, uint32_t b0, float *sums)
{
  const sorted_runs &runs = t.runs[w.slot];
  const float4 *const sides = t.sides + (w.slot * LEVELS + level) * t.room;
  const uint32_t b = b0 + weft_planes_b(threadIdx.x, 0);
  level_screen s;
  s.sides = sides + b;
  s.fixed = t.fixed[w.slot];
  s.all = weft_planes_pack(runs.rows[2 * level], runs.rows[2 * level + 1]);
  s.last = level == LEVELS - 1;
  s.most = -INFINITY;
  s.pairs = { one, b, 0, 0, load_side(&sides[one]), 0 };
  /* the interaction is at most the information less what the strongest says alone */
  if (level == 0) begin_sums(t, fmaxf(__ldg(&t.own[s.fixed]), __ldg(&t.own[one])), t.own + b, sums);
  return s;
}

/* Screens the next pairs. All loads come before any store, so that no pair waits for another. */
__device__ static inline void screen_level(const uint4 *mine, float *sums, level_screen *s)
{
  const uint32_t at = s->pairs.at;
  const float4 *const sides = s->sides + weft_planes_b(0, at);
  uint4 words[SCREENED];
  weft_planes_side b[SCREENED];
  float sum[SCREENED];
#pragma unroll
  for (uint32_t k = 0; k < SCREENED; k++) {
    words[k] = mine[(at + k) * CONSUMERS];
    b[k] = load_side(&sides[weft_planes_b(0, k)]);
    sum[k] = sums[(at + k) * CONSUMERS];
  }
#pragma unroll
  for (uint32_t k = 0; k < SCREENED; k++) {
    sum[k] += squares_of(words[k], s->pairs.a, b[k], s->all);
    s->most = fmaxf(s->most, sum[k]);
  }
#pragma unroll
  for (uint32_t k = 0; k < SCREENED; k++) sums[(at + k) * CONSUMERS] = sum[k];
  s->pairs.at += SCREENED;
}

/* Screens what is left of a level. Behind the last, notes the pairs that may reach their bars. */
__device__ static inline void end_level(const sorted_args &t, const uint4 *mine, float *sums, level_screen *s)
{
  const planes_screen *p = &s->pairs;
  while (p->at < WEFT_PLANES_PAIRS) screen_level(mine, sums, s);
  if (!s->last || s->most < 0) return;
#pragma unroll 1
  for (uint32_t k = 0; k < WEFT_PLANES_PAIRS; k++) {
    const uint32_t other = p->b0 + weft_planes_b(0, k);
    if (!(sums[k * CONSUMERS] < 0) && p->one > s->fixed && other > p->one && other < t.count)
      mi_append(t.hits, 0, ((uint64_t) s->fixed << PLACE_BITS | p->one) << PLACE_BITS | other);
  }
}

__global__ static void __launch_bounds__(SCREENING_THREADS, 1) search_sorted(const __grid_constant__ sorted_args t)
{
  extern __shared__ __align__(1024) uint8_t stages[];
  __shared__ ring<STAGES> copies;
  const uint32_t thread = threadIdx.x, warp_of_block = __shfl_sync(0xffffffffu, thread / 32, 0);
  const uint64_t count = t.end[t.slots - 1];
  make_ring(&copies);

  uint32_t step = 0, ta, tb; /* k-steps since the start */
  sorted_walk at;
  enter_slot(t, 0, &at);
  if (warp_of_block >= CONSUMERS / 32) {
    give_registers();
    if (thread == CONSUMERS) for (uint64_t k = blockIdx.x; k < count; k += gridDim.x) {
      if (!place_sorted(t, &at, k, &ta, &tb)) continue;
      const uint8_t *const planes = t.planes + at.slot * t.bytes;
      const int steps = t.runs[at.slot].all_steps;
      bring_tile(&copies, stages, planes + (size_t) ta * steps * BLOCK_BYTES,
                 planes + (size_t) tb * 2 * steps * BLOCK_BYTES, steps, &step);
    }
    return;
  }

  take_registers();
  uint4 *const mine = (uint4 *) (stages + STAGES * STAGE_BYTES) + thread;
  float *const sums = (float *) (stages + STAGES * STAGE_BYTES + WORDS_BYTES) + thread;
  level_screen last = no_level(t);
  for (uint64_t k = blockIdx.x; k < count; k += gridDim.x) {
    if (!place_sorted(t, &at, k, &ta, &tb)) continue;
    const uint32_t one = ta * WEFT_PLANES_A + weft_planes_a(thread), b0 = tb * WEFT_PLANES_B;
#pragma unroll 1
    for (uint32_t level = 0; level < LEVELS; level++) {
      const int *const steps = t.runs[at.slot].steps + 2 * level;
      const uint32_t both = (uint32_t) (steps[0] + steps[1]);
      uint32_t c[128], due = 0;
      const auto meanwhile = [&] {
        for (due += WEFT_PLANES_PAIRS / SCREENED; due >= both; due -= both)
          if (last.pairs.at < WEFT_PLANES_PAIRS) screen_level(mine, sums, &last);
      };
      count_packed(&copies, stages, steps, &step, c, meanwhile);
      end_level(t, mine, sums, &last);
      put_all(c, mine);
      last = begin_level(t, at, level, one, b0, sums);
    }
  }
  end_level(t, mine, sums, &last);
}

#else /* host side, and devices that never run it */
__global__ static void search_sorted(const __grid_constant__ sorted_args t) { (void) t; }
#endif

/* ---- exact scores ---- */

struct exact_args {
  const uint32_t *planes, *class_word, *class_rows, *plane_row, *column;
  uint32_t words;
  size_t count, columns;
  weft_mi_log f;
  int64_t class_fixed;
  mi_bar bar;
  mi_hits hits;
};

#define ANY 2                   /* of a triple's counts: whatever the level */
#define CELLS (LEVELS * LEVELS * LEVELS)

/* By a warp: cells [level and class][level][level] of the attributes at three places. First rows in planes x, y and z,
 * ANY of them for each; what is left of these is the last level. */
__device__ static void count_triple(const exact_args &t, const uint32_t (&place)[3], uint32_t *cells)
{
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t *plane[3][PLANES];
  for (int a = 0; a < 3; a++)
    for (uint32_t q = 0; q < PLANES; q++) {
      const uint32_t row = t.plane_row[q * t.count + place[a]];
      plane[a][q] = row == UINT32_MAX ? NULL : t.planes + (size_t) row * t.words;
    }
  __syncwarp(); /* all have read the one before */
  for (uint32_t c = 0; c < 2; c++) {
    uint32_t count[CELLS] = {};
    for (uint32_t w = t.class_word[c] + lane; w < t.class_word[c + 1]; w += 32) {
      uint32_t of[3][LEVELS];
#pragma unroll
      for (int a = 0; a < 3; a++) {
        for (uint32_t q = 0; q < PLANES; q++) of[a][q] = plane[a][q] ? plane[a][q][w] : 0;
        of[a][ANY] = 0xffffffffu;
      }
#pragma unroll
      for (int k = 0; k < CELLS - 1; k++)
        count[k] += (uint32_t) __popc(of[0][k / 9] & of[1][k / 3 % 3] & of[2][k % 3]);
    }
    count[CELLS - 1] = lane ? 0 : t.class_rows[c];
#pragma unroll
    for (uint32_t k = 0; k < CELLS; k++) {
      uint32_t sum = count[k];
      for (int half = 16; half; half /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, half);
      if (lane == k) cells[(k / 9 * 2 + c) * 9 + k % 9] = sum;
    }
  }
  for (uint32_t axis = 0; axis < 3; axis++) { /* 2 × 9 lines of the table along each */
    const uint32_t of_line = lane % 9, c = lane / 9;
    const uint32_t stride = axis == 0 ? 18 : axis == 1 ? 3 : 1;
    const uint32_t start = axis == 0 ? of_line : of_line / 3 * 18 + (axis == 1 ? of_line % 3 : of_line % 3 * 3);
    uint32_t *const line = cells + c * 9 + start;
    __syncwarp();
    if (c < 2) line[ANY * stride] -= line[0] + line[stride];
  }
  __syncwarp();
}

/* A warp for each triple that was noted. */
__global__ static void __launch_bounds__(SORT_THREADS) score_noted(const __grid_constant__ exact_args t)
{
  __shared__ uint32_t tables[SORT_WARPS][2 * CELLS];
  const uint64_t noted = *t.hits.count, count = noted < t.hits.capacity ? noted : t.hits.capacity;
  uint32_t *const cells = tables[threadIdx.x / 32];
  for (uint64_t k = (uint64_t) blockIdx.x * SORT_WARPS + threadIdx.x / 32; k < count;
       k += (uint64_t) gridDim.x * SORT_WARPS) {
    const uint64_t at = t.hits.items[k].index, low = (1u << PLACE_BITS) - 1;
    const uint32_t place[3] = { (uint32_t) (at >> 2 * PLACE_BITS), (uint32_t) (at >> PLACE_BITS & low),
                                (uint32_t) (at & low) };
    count_triple(t, place, cells);
    const triple_score s = score_cells(t.f, LEVELS, 2, t.class_fixed, cells);
    const double mi = weft_mi_bits(s.joint, t.f.unit, s.n), gain = weft_mi_bits(s.joint - s.greatest, t.f.unit, s.n);
    const uint64_t index = triple_index(t.columns, t.column[place[0]], t.column[place[1]], t.column[place[2]]);
    if (threadIdx.x % 32) continue;
    t.hits.items[k].score = mi_passes(t.bar, mi, gain, index) ? t.bar.by_interaction ? gain : mi : -INFINITY;
    t.hits.items[k].index = index;
  }
}

/* ---- host ---- */

int weft_mi_sorted_fit(const weft_ctx *ctx, const weft_mi_pack *p)
{
  for (size_t g = 0; g < p->group_count; g++)
    if (p->groups[g].coded || p->groups[g].shape.missing || p->groups[g].shape.planes > PLANES) return 0;
  return p->p >= 3 && p->p <= (size_t) 1 << PLACE_BITS && p->classes == 2 && p->per == 2 && p->class_rows[0] &&
         p->class_rows[1] && p->n <= WEFT_PLANES_PACKED && weft_mi_wgmma_ready(ctx->device);
}

__global__ static void make_own(const int64_t *alone, size_t count, size_t room, double scale, float *own)
{
  const size_t k = (size_t) blockIdx.x * blockDim.x + threadIdx.x;
  if (k < room) own[k] = k < count ? (float) ((double) alone[k] * scale) : 0;
}

static sort_args sorting(const mi_sorted *job)
{
  const weft_mi_resident *r = job->r;
  sort_args t;
  memset(&t, 0, sizeof t);
  t.all = job->all;
  t.class_word = r->class_word;
  t.class_rows = r->class_rows;
  t.margins = r->margins;
  t.plane_rows = job->pack->plane_rows;
  t.bits = job->bits;
  t.bytes = job->bytes;
  t.from = job->from;
  t.runs = job->runs;
  t.out = job->planes;
  t.sides = job->sides;
  return t;
}

weft_status weft_mi_sorted_begin(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                 const weft_mi_resident *r, mi_sorted *out)
{
  weft_status st = WEFT_OK;
  size_t steps = 0, most;
  memset(out, 0, sizeof *out);
  out->pack = pack;
  out->r = r;
  out->steepest = weft_mi_steepest(pack->class_rows[0] / (double) pack->n);
  for (int c = 0; c < 2; c++) steps += pack->class_rows[c] / STEP_BITS + LEVELS; /* each run is rounded up */
  out->bits = steps * STEP_BITS;
  WEFT_TRY(weft_mi_arranged_begin(ctx, mem, pack, r, &out->all));
  out->bytes = arranged_bytes_of(out->all.room, out->bits);
  most = BATCH_BYTES / out->bytes;
  most = most < 1 ? 1 : most > SORTED_BATCH ? SORTED_BATCH : most;
  out->batch = (uint32_t) weft_device_chunk(ctx, most, (double) (out->bytes + out->bits * sizeof *out->from +
                                                                 LEVELS * out->all.room * sizeof *out->sides), 0);
  if (!out->batch) { st = WEFT_ERR_MEMORY; goto done; }
  WEFT_DEVICE_TAKE(out->from, mem, out->batch * out->bits);
  WEFT_DEVICE_TAKE(out->planes, mem, out->batch * out->bytes);
  WEFT_DEVICE_TAKE(out->runs, mem, out->batch);
  WEFT_DEVICE_TAKE(out->sides, mem, out->batch * LEVELS * out->all.room);
  WEFT_DEVICE_TAKE(out->own, mem, out->all.room);
  make_own<<<(unsigned) ((out->all.room + 255) / 256), 256, 0, mem->stream>>>(r->alone, pack->p, out->all.room,
                                                                          r->f.unit / out->steepest, out->own);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

double weft_mi_sorted_most(const mi_sorted *job) { return 0.1 / ((double) job->pack->n * 1e-15 + 1.5e-11); }

static weft_status sort_planes(weft_ctx *ctx, const mi_sorted *job, const uint32_t *fixed, uint32_t count,
                               cudaStream_t s)
{
  weft_status st = WEFT_OK;
  const unsigned blocks = (unsigned) ((job->all.room / WEFT_PLANES_A * LEVELS + SORT_WARPS - 1) / SORT_WARPS);
  sort_args t = sorting(job);
  memcpy(t.fixed, fixed, count * sizeof *fixed);
  WEFT_CUDA(cudaMemsetAsync(job->from, 255, count * job->bits * sizeof *job->from, s));
  sort_rows<<<count, SORT_THREADS, 0, s>>>(t);
  WEFT_CUDA(cudaGetLastError());
  arrange_sorted<<<dim3(blocks, count), SORT_THREADS, 0, s>>>(t);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

weft_status weft_mi_sorted_screen(weft_ctx *ctx, const mi_sorted *job, const uint32_t *fixed, uint32_t count,
                                  const mi_bar *bar, const mi_hits *hits, cudaStream_t s)
{
  weft_status st = WEFT_OK;
  const weft_mi_pack *p = job->pack;
  const weft_planes_units u = weft_planes_measure(1, p->class_rows, 2, job->steepest, LEVELS);
  int processors = 0;
  uint64_t tiles = 0;
  sorted_args t;
  memset(&t, 0, sizeof t);
  t.slots = count;
  t.tiles_a = (uint32_t) ((p->p + WEFT_PLANES_A - 1) / WEFT_PLANES_A);
  t.tiles_b = (uint32_t) ((p->p + WEFT_PLANES_B - 1) / WEFT_PLANES_B);
  for (uint32_t k = 0; k < count; k++) {
    const tile_grid grid = { t.tiles_a, t.tiles_b, 1, PLANES * (fixed[k] + 1) };
    t.fixed[k] = fixed[k];
    t.end[k] = tiles += tiles_of(&grid);
  }
  t.planes = job->planes;
  t.bytes = job->bytes;
  t.room = job->all.room;
  t.count = p->p;
  t.runs = job->runs;
  t.sides = job->sides;
  t.own = job->own;
  t.bar_mi = (float) (u.base + (bar->by_interaction ? bar->min_mi : fmax(bar->min_mi, bar->score)) * u.unit);
  t.bar_gain = (float) (u.base + (bar->by_interaction ? fmax(bar->min_gain, bar->score) : bar->min_gain) * u.unit);
  t.hits = *hits;
  WEFT_TRY(sort_planes(ctx, job, fixed, count, s));
  WEFT_CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, ctx->device));
  WEFT_CUDA(weft_device_allow_shared((const void *) search_sorted, SHARED_BYTES));
  search_sorted<<<tiles < (uint64_t) processors ? (unsigned) tiles : (unsigned) processors, SCREENING_THREADS,
                  SHARED_BYTES, s>>>(t);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

weft_status weft_mi_sorted_score(weft_ctx *ctx, const mi_sorted *job, const mi_bar *bar, const mi_hits *hits,
                                 cudaStream_t s)
{
  weft_status st = WEFT_OK;
  const weft_mi_resident *r = job->r;
  int processors = 0;
  exact_args t;
  memset(&t, 0, sizeof t);
  t.planes = r->planes;
  t.class_word = r->class_word;
  t.class_rows = r->class_rows;
  t.plane_row = job->all.plane_row;
  t.column = r->column;
  t.words = r->words;
  t.count = job->pack->p;
  t.columns = job->pack->columns;
  t.f = r->f;
  t.class_fixed = job->pack->class_fixed;
  t.bar = *bar;
  t.hits = *hits;
  WEFT_CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, ctx->device));
  score_noted<<<(unsigned) (4 * processors), SORT_THREADS, 0, s>>>(t);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}
