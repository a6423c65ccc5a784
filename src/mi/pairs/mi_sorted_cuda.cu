/* Triples with rows sorted by the fixed attribute's level (mi_triples.h), all but counting and screening them: what pairs
 * say, which bounds the interaction of their triples and gives a bar to begin with; the planes sorted for each fixed
 * attribute; and the exact scores of what passed, by a warp each, from the pack's planes.
 *
 * Attributes are taken in order of what they say alone, so that the fixed one is the strongest of a triple: the bound
 * is exact in what that one says. */
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include "mi_products_score.cuh"
#include "mi_search_cuda.cuh"
#include "mi_triples.cuh"

#define PLANES ARRANGED_PLANES
#define LEVELS 3
#define CELLS (LEVELS * WEFT_PLANES_CELLS)
#define SORTED_BYTES 192e6      /* of planes sorted in one launch */
#define CANDIDATES (1u << 23)
#define SLACK_UNITS ((int64_t) 1 << 20) /* with four per row, more than the rounding of f adds up to */

/* A pack's planes by position. */
struct placed {
  const uint32_t *planes;
  uint32_t words;
  const uint32_t *plane_row;    /* [plane][position], UINT32_MAX where there is none */
  uint32_t count;
  uint32_t first[2], last[2];   /* words of a class */
  uint32_t class_rows[2];
};

__device__ static inline uint32_t plane_word(const placed &p, uint32_t position, uint32_t plane, uint32_t word)
{
  const uint32_t row = position < p.count ? __ldg(&p.plane_row[plane * p.count + position]) : UINT32_MAX;
  return row == UINT32_MAX ? 0 : __ldg(&p.planes[(size_t) row * p.words + word]);
}

/* Rows of a class that are there, in a word of it. */
__device__ static inline uint32_t valid_rows(const placed &p, uint32_t c, uint32_t word)
{
  const uint32_t before = (word - p.first[c]) * 32;
  if (before >= p.class_rows[c]) return 0;
  return p.class_rows[c] - before >= 32 ? UINT32_MAX : (1u << (p.class_rows[c] - before)) - 1;
}

/* ---- what pairs say ---- */

#define SIDE 16                 /* attributes of a block, on each side */
#define DEPTH 32                /* words at a time */

struct pairs_args {
  placed p;
  const uint32_t *margins;      /* [class * plane_rows + row] */
  size_t plane_rows, ld;
  weft_mi_log f;
  int64_t class_fixed;
  float *pairs;                 /* in n bits, both ways round; NULL: not wanted */
  unsigned long long *best;     /* in fixed point */
};

__device__ static inline uint32_t margin_of(const pairs_args &t, uint32_t position, uint32_t plane)
{
  const uint32_t row = t.p.plane_row[plane * t.p.count + position];
  return row == UINT32_MAX ? 0 : weft_planes_pack(t.margins[row], t.margins[t.plane_rows + row]);
}

__global__ static void __launch_bounds__(SIDE * SIDE) score_pairs(const __grid_constant__ pairs_args t)
{
  __shared__ uint32_t of_a[PLANES * SIDE][DEPTH + 1], of_b[PLANES * SIDE][DEPTH + 1];
  const uint32_t x = threadIdx.x % SIDE, y = threadIdx.x / SIDE, a = blockIdx.y * SIDE + y, b = blockIdx.x * SIDE + x;
  uint32_t both[4] = { 0, 0, 0, 0 };
  if (blockIdx.x < blockIdx.y) return;
  for (uint32_t c = 0; c < 2; c++) {
    uint32_t in_class[4] = { 0, 0, 0, 0 };
    for (uint32_t w0 = t.p.first[c]; w0 < t.p.last[c]; w0 += DEPTH) {
      __syncthreads();
      for (uint32_t k = threadIdx.x; k < PLANES * SIDE * DEPTH; k += SIDE * SIDE) {
        const uint32_t row = k / DEPTH, w = w0 + k % DEPTH, plane = row % PLANES, member = row / PLANES;
        const bool there = w < t.p.last[c];
        of_a[row][k % DEPTH] = there ? plane_word(t.p, blockIdx.y * SIDE + member, plane, w) : 0;
        of_b[row][k % DEPTH] = there ? plane_word(t.p, blockIdx.x * SIDE + member, plane, w) : 0;
      }
      __syncthreads();
#pragma unroll 8
      for (uint32_t w = 0; w < DEPTH; w++)
#pragma unroll
        for (uint32_t q = 0; q < 4; q++)
          in_class[q] += (uint32_t) __popc(of_a[y * PLANES + q / 2][w] & of_b[x * PLANES + q % 2][w]);
    }
#pragma unroll
    for (int q = 0; q < 4; q++) both[q] += weft_planes_pack(c ? 0 : in_class[q], c ? in_class[q] : 0);
  }
  if (a >= b || b >= t.p.count) return;
  const uint32_t margins_a[2] = { margin_of(t, a, 0), margin_of(t, a, 1) },
                 margins_b[2] = { margin_of(t, b, 0), margin_of(t, b, 1) };
  uint32_t cell[WEFT_PLANES_CELLS];
  weft_planes_cells(both, margins_a, margins_b, weft_planes_pack(t.p.class_rows[0], t.p.class_rows[1]), cell);
  int64_t joint = weft_planes_joint(&t.f, cell) - t.class_fixed;
  if (joint < 0) joint = 0;
  if (t.pairs) t.pairs[a * t.ld + b] = t.pairs[b * t.ld + a] = (float) ((double) joint * t.f.unit);
  if ((unsigned long long) joint > *(volatile unsigned long long *) t.best)
    atomicMax(t.best, (unsigned long long) joint);
}

/* ---- sorting ---- */

struct sort_args {
  mi_sorted t;                  /* fixed, fixed_count, base, bytes, room, of */
  placed p;
  arranged_planes all;
  uint32_t *from;               /* [fixed][bit]: the rows in the fixed attribute's order */
  size_t bits;                  /* of one */
  uint8_t *planes;
  uint32_t *margins;
};

/* A warp a run of a fixed attribute: the rows of a class in a level, in order. */
__global__ static void __launch_bounds__(ARRANGE_THREADS) list_rows(const __grid_constant__ sort_args s)
{
  const uint32_t warp = (blockIdx.x * ARRANGE_THREADS + threadIdx.x) / 32, lane = threadIdx.x % 32;
  const uint32_t index = warp / (2 * LEVELS), run = warp % (2 * LEVELS), level = run / 2, c = run % 2;
  if (index >= s.t.fixed_count) return;
  const uint32_t fixed = s.t.fixed[index];
  uint32_t *const from = s.from + index * s.bits;
  const uint32_t end = s.t.of[fixed].start[run + 1] * STEP_BITS;
  uint32_t at = s.t.of[fixed].start[run] * STEP_BITS;
  for (uint32_t w0 = s.p.first[c]; w0 < s.p.last[c]; w0 += 32) {
    const uint32_t w = w0 + lane;
    uint32_t rows = 0;
    if (w < s.p.last[c]) {
      const uint32_t zero = plane_word(s.p, fixed, 0, w), one = plane_word(s.p, fixed, 1, w);
      rows = level == 0 ? zero : level == 1 ? one : valid_rows(s.p, c, w) & ~(zero | one);
    }
    const uint32_t own = (uint32_t) __popc(rows);
    uint32_t upto = own;
    for (uint32_t d = 1; d < 32; d *= 2) {
      const uint32_t before = __shfl_up_sync(0xffffffffu, upto, d);
      if (lane >= d) upto += before;
    }
    for (uint32_t k = at + upto - own; rows; rows &= rows - 1) from[k++] = w * 32 + (uint32_t) __ffs((int) rows) - 1;
    at += __shfl_sync(0xffffffffu, upto, 31);
  }
  for (uint32_t k = at + lane; k < end; k += 32) from[k] = NOWHERE;
}

/* A warp a block of 128 rows of planes in a level of a fixed attribute. */
__global__ static void __launch_bounds__(ARRANGE_THREADS) sort_planes(const __grid_constant__ sort_args s)
{
  const uint32_t warp = (blockIdx.x * ARRANGE_THREADS + threadIdx.x) / 32, lane = threadIdx.x % 32;
  const uint32_t before = s.t.base / WEFT_PLANES_A, blocks = (uint32_t) (s.all.room / WEFT_PLANES_A) - before;
  const uint32_t index = warp / (LEVELS * blocks), level = warp / blocks % LEVELS, block = before + warp % blocks;
  if (index >= s.t.fixed_count) return;
  const weft_triples_fixed *const of = s.t.of + s.t.fixed[index];
  const uint32_t *const from = s.from + index * s.bits, steps = of->start[2 * LEVELS];
  uint8_t *const out = s.planes + index * s.t.bytes - (size_t) before * steps * BLOCK_BYTES;
  uint32_t count[2][4] = { { 0, 0, 0, 0 }, { 0, 0, 0, 0 } };
#pragma unroll
  for (uint32_t c = 0; c < 2; c++)
    arrange_run(s.all, from, block, 2 * of->start[2 * level + c], 2 * of->start[2 * level + c + 1], steps, out,
                count[c]);
  for (uint32_t i = 0; i < 4; i++) {
    const size_t row = (size_t) block * 128 + i * 32 + lane, attribute = weft_planes_attribute(row) - s.t.base;
    s.margins[((index * LEVELS + level) * s.t.room + attribute) * PLANES + weft_planes_plane(row)] =
        weft_planes_pack(count[0][i], count[1][i]);
  }
}

/* ---- scoring ---- */

struct score_args {
  placed p;
  mi_candidates passed;
  const uint32_t *column;       /* by position */
  uint64_t columns;
  weft_mi_log f;
  int64_t class_fixed;
  mi_bar bar;
  mi_hits hits;
};

/* Value i of all lanes, added up, for lane i. */
__device__ static inline uint32_t added_up(uint32_t (&v)[32])
{
  const uint32_t lane = threadIdx.x % 32;
#pragma unroll
  for (uint32_t half = 16; half; half /= 2) {
    const bool upper = lane & half;
#pragma unroll
    for (uint32_t i = 0; i < half; i++) {
      const uint32_t keep = upper ? v[i + half] : v[i], give = upper ? v[i] : v[i + half];
      v[i] = keep + __shfl_xor_sync(0xffffffffu, give, (int) half);
    }
  }
  return v[0];
}

/* The cell of lane's number of three attributes: a word of rows in class 0 above rows in class 1. */
__device__ static inline uint32_t cell_of_lane(const placed &p, const uint32_t (&position)[3])
{
  const uint32_t lane = threadIdx.x % 32;
  uint32_t cell[32];
#pragma unroll
  for (int i = 0; i < 32; i++) cell[i] = 0;
#pragma unroll 1
  for (uint32_t c = 0; c < 2; c++)
    for (uint32_t w = p.first[c] + lane; w < p.last[c]; w += 32) {
      uint32_t of[3][LEVELS];
#pragma unroll
      for (int k = 0; k < 3; k++) {
        of[k][0] = plane_word(p, position[k], 0, w);
        of[k][1] = plane_word(p, position[k], 1, w);
        of[k][2] = valid_rows(p, c, w) & ~(of[k][0] | of[k][1]);
      }
#pragma unroll
      for (int i = 0; i < CELLS; i++)
        cell[i] += (uint32_t) __popc(of[0][i / 9] & of[1][i / 3 % 3] & of[2][i % 3]) << (c ? 0 : 16);
    }
  return added_up(cell);
}

/* A warp a triple. Nothing when more passed than there was room for: they come again. */
__global__ static void __launch_bounds__(ARRANGE_THREADS) score_passed(const __grid_constant__ score_args t)
{
  __shared__ uint32_t tables[ARRANGE_WARPS][2 * CELLS];
  const uint32_t lane = threadIdx.x % 32, count = *t.passed.count;
  uint32_t *const cells = tables[threadIdx.x / 32];
  if (count > t.passed.capacity) return;
  for (uint32_t k = (blockIdx.x * ARRANGE_THREADS + threadIdx.x) / 32; k < count; k += gridDim.x * ARRANGE_WARPS) {
    const unsigned long long item = t.passed.items[k];
    const uint32_t last = WEFT_TRIPLES_PLACES - 1;
    const uint32_t position[3] = { (uint32_t) (item >> 42), (uint32_t) (item >> 21) & last, (uint32_t) item & last };
    const uint32_t word = cell_of_lane(t.p, position);
    __syncwarp(); /* all have read the table before */
    if (lane < CELLS) {
      cells[(lane / 9 * 2) * 9 + lane % 9] = word >> 16;
      cells[(lane / 9 * 2 + 1) * 9 + lane % 9] = word & 0xffffu;
    }
    __syncwarp();
    const triple_score score = score_cells(t.f, LEVELS, 2, t.class_fixed, cells);
    if (lane) continue;
    const uint64_t index =
        triple_index(t.columns, t.column[position[0]], t.column[position[1]], t.column[position[2]]);
    const double mi = weft_mi_bits(score.joint, t.f.unit, score.n),
                 gain = weft_mi_bits(score.joint - score.greatest, t.f.unit, score.n);
    if (mi_passes(t.bar, mi, gain, index)) mi_append(t.hits, t.bar.by_interaction ? gain : mi, index);
  }
}

/* ---- host ---- */

/* (for measurements) */
#include <cstdio>
#include <cstdlib>
static thread_local double spent[4], lap;
static const char *timing = NULL;
#define LAP(k) do { if (timing) { cudaStreamSynchronize(lap_stream); const double now_ = weft_seconds(); \
    spent[k] += now_ - lap; lap = now_; } } while (0)

struct sorted_job {
  const weft_mi_pack *pack;
  const weft_mi_resident *r;
  weft_device_arena *mem;
  const uint32_t *order;        /* place of a position */
  placed p;
  arranged_planes all;
  weft_triples_fixed *of;
  uint32_t *column, *from;
  uint8_t *planes;
  uint32_t *margins;
  float *pairs;
  unsigned long long *items;
  uint32_t *counts, *host_counts; /* of the launches of a run */
  uint32_t most_steps, batch, capacity;
  int processors, gains;
  double parts;
};

int weft_mi_sorted_fit(const weft_ctx *ctx, const weft_mi_pack *p)
{
  for (size_t g = 0; g < p->group_count; g++)
    if (p->groups[g].coded || p->groups[g].shape.missing || p->groups[g].shape.planes > PLANES) return 0;
  return p->p >= 3 && p->p < WEFT_TRIPLES_PLACES && p->classes == 2 && p->per == 2 && p->class_rows[0] &&
         p->class_rows[1] && p->n <= WEFT_PLANES_PACKED && weft_mi_wgmma_ready(ctx->device);
}

template <typename T>
static weft_status send(weft_ctx *ctx, weft_device_arena *mem, const T *from, size_t count, T **out)
{
  weft_status st = WEFT_OK;
  T *to;
  WEFT_DEVICE_TAKE(to, mem, count);
  WEFT_CUDA(cudaMemcpyAsync(to, from, count * sizeof *to, cudaMemcpyHostToDevice, mem->stream));
  WEFT_CUDA(cudaStreamSynchronize(mem->stream)); /* `from` may end */
  *out = to;
done:
  return st;
}

/* Bytes of what is sorted for one fixed attribute. */
static double bytes_of_one(const sorted_job *job)
{
  const double room = (double) job->all.room, bits = job->most_steps * (double) STEP_BITS;
  return PLANES * room * bits / 8 + 4 * bits + LEVELS * PLANES * 4 * room;
}

/* How many attributes are held fixed in one launch; 0: no room. */
static uint32_t choose_batch(weft_ctx *ctx, const sorted_job *job)
{
  const double room = (double) job->all.room;
  const double once = room * 8 * job->r->words + (job->gains ? 4 * room * room : 0) + 8.0 * CANDIDATES + 100 * room + 1e6;
  const double left = 0.9 * weft_device_available(ctx) - once;
  return (uint32_t) fmax(0, fmin(fmin(MOST_FIXED, (double) job->all.count),
                                 fmin(fmax(1, SORTED_BYTES / bytes_of_one(job)), left / bytes_of_one(job))));
}

/* Everything that depends on positions. */
static weft_status place_all(weft_ctx *ctx, weft_arena *host, sorted_job *job)
{
  weft_status st = WEFT_OK;
  const weft_mi_pack *p = job->pack;
  const int many = p->n > WEFT_TRIPLES_FEW;
  uint32_t *order, *column;
  weft_triples_fixed *of;
  int64_t *alone;
  WEFT_TAKE(order, host, p->p);
  WEFT_TAKE(column, host, p->p);
  WEFT_TAKE(of, host, p->p);
  WEFT_TAKE(alone, host, p->p);
  weft_mi_marginals(p, alone);
  std::iota(order, order + p->p, 0u);
  std::stable_sort(order, order + p->p, [&](uint32_t a, uint32_t b) { return alone[a] > alone[b]; });
  for (size_t k = 0; k < p->p; k++) {
    const weft_mi_group *g = &p->groups[p->group_of[order[k]]];
    uint32_t level[LEVELS][2];
    for (uint32_t c = 0; c < 2; c++) {
      level[2][c] = p->class_rows[c];
      for (uint32_t q = 0; q < PLANES; q++) {
        level[q][c] =
            q < g->shape.planes ? p->margins[c * p->plane_rows + weft_mi_plane_row(g, order[k], q)] : 0;
        level[2][c] -= level[q][c];
      }
    }
    of[k] = weft_triples_fix(level, (double) alone[order[k]] * p->f.unit, STEP_BITS, many);
    if (of[k].start[2 * LEVELS] > job->most_steps) job->most_steps = of[k].start[2 * LEVELS];
    column[k] = p->column[order[k]];
  }
  job->order = order;
  WEFT_TRY(send(ctx, job->mem, of, p->p, &job->of));
  WEFT_TRY(send(ctx, job->mem, column, p->p, &job->column));
done:
  return st;
}

static void describe_planes(sorted_job *job)
{
  const weft_mi_pack *p = job->pack;
  job->p.planes = job->all.planes;
  job->p.words = job->all.words;
  job->p.plane_row = job->all.plane_row;
  job->p.count = (uint32_t) job->all.count;
  for (uint32_t c = 0; c < 2; c++) {
    job->p.first[c] = weft_mi_resident_words(p, c);
    job->p.last[c] = weft_mi_resident_words(p, c + 1);
    job->p.class_rows[c] = p->class_rows[c];
  }
}

/* What all pairs say. By information alone, the triples with the best pair give the search a bar when they are as many
 * as it keeps. */
static weft_status look_at_pairs(weft_ctx *ctx, const sorted_job *job, mi_collector *c)
{
  weft_status st = WEFT_OK;
  const weft_mi_pack *p = job->pack;
  const int barred = !c->search->by_interaction && !(c->search->min_gain > -INFINITY) && c->keeper.bounded &&
                     c->keeper.best.k + 2 <= p->p;
  const unsigned blocks = (unsigned) ((p->p + SIDE - 1) / SIDE);
  unsigned long long best;
  pairs_args t;
  memset(&t, 0, sizeof t);
  if (!barred && !job->gains) goto done;
  t.p = job->p;
  t.margins = job->r->margins;
  t.plane_rows = p->plane_rows;
  t.ld = job->all.room;
  t.f = job->r->f;
  t.class_fixed = p->class_fixed;
  t.pairs = job->pairs;
  WEFT_DEVICE_TAKE(t.best, job->mem, 1);
  WEFT_CUDA(cudaMemsetAsync(t.best, 0, sizeof *t.best, job->mem->stream));
  if (t.pairs) WEFT_CUDA(cudaMemsetAsync(t.pairs, 0, t.ld * t.ld * sizeof *t.pairs, job->mem->stream));
  score_pairs<<<dim3(blocks, blocks), SIDE * SIDE, 0, job->mem->stream>>>(t);
  WEFT_CUDA(cudaGetLastError());
  WEFT_CUDA(cudaMemcpyAsync(&best, t.best, sizeof best, cudaMemcpyDeviceToHost, job->mem->stream));
  WEFT_CUDA(cudaStreamSynchronize(job->mem->stream));
  weft_device_drop(job->mem, t.best);
  if (barred) {
    const int64_t sure = (int64_t) best - SLACK_UNITS - 4 * (int64_t) p->n;
    const double bar = weft_mi_bits(sure, p->f.unit, p->n);
    if (sure > 0 && bar > c->bar.score) {
      c->bar.score = bar;
      c->started = 1;
    }
  }
done:
  return st;
}

/* Fixed attributes k .. k+count-1 of this part, the last positions first: they have the fewest pairs behind them. */
static mi_sorted describe(const sorted_job *job, const mi_collector *c, uint64_t k, uint32_t count)
{
  const double n = (double) job->pack->n;
  const mi_bar *bar = &c->bar;
  const double mi = bar->by_interaction ? bar->min_mi : fmax(bar->min_mi, bar->score),
               gain = bar->by_interaction ? fmax(bar->min_gain, bar->score) : bar->min_gain;
  uint32_t least = UINT32_MAX;
  mi_sorted t;
  memset(&t, 0, sizeof t);
  t.planes = job->planes;
  t.bytes = PLANES * job->all.room * ((size_t) job->most_steps * STEP_BITS / 8);
  t.margins = (const uint2 *) job->margins;
  t.of = job->of;
  t.fixed_count = count;
  for (uint32_t i = 0; i < count; i++) {
    t.fixed[i] = (uint32_t) (job->all.count - 3 - unit_dealt(c, k + i));
    if (t.fixed[i] < least) least = t.fixed[i];
  }
  t.base = (least + 1) / WEFT_PLANES_B * WEFT_PLANES_B;
  t.count = (uint32_t) job->all.count;
  t.room = job->all.room - t.base;
  t.grid.tiles_a = (t.count - t.base + WEFT_PLANES_A - 1) / WEFT_PLANES_A;
  t.grid.tiles_b = (t.count - t.base + WEFT_PLANES_B - 1) / WEFT_PLANES_B;
  t.grid.same = 1;
  t.tiles = (uint32_t) tiles_of(&t.grid);
  t.units = t.tiles * count;
  t.bar_mi = (float) (mi * n);
  t.bar_gain = (float) (gain * n);
  t.pairs = gain > -INFINITY ? job->pairs : NULL;
  t.ld = job->all.room;
  t.many = job->pack->n > WEFT_TRIPLES_FEW;
  t.magic = weft_triples_magic(t.many);
  t.passed.items = job->items;
  t.passed.capacity = job->capacity;
  return t;
}

static weft_status sort_rows(weft_ctx *ctx, const sorted_job *job, const mi_sorted *t, cudaStream_t s)
{
  weft_status st = WEFT_OK;
  const uint32_t runs = t->fixed_count * 2 * LEVELS,
                 warps = t->fixed_count * LEVELS * (uint32_t) ((job->all.room - t->base) / WEFT_PLANES_A);
  sort_args sort;
  memset(&sort, 0, sizeof sort);
  sort.t = *t;
  sort.p = job->p;
  sort.all = job->all;
  sort.from = job->from;
  sort.bits = (size_t) job->most_steps * STEP_BITS;
  sort.planes = job->planes;
  sort.margins = job->margins;
  list_rows<<<(runs + ARRANGE_WARPS - 1) / ARRANGE_WARPS, ARRANGE_THREADS, 0, s>>>(sort);
  WEFT_CUDA(cudaGetLastError());
  sort_planes<<<(warps + ARRANGE_WARPS - 1) / ARRANGE_WARPS, ARRANGE_THREADS, 0, s>>>(sort);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

static weft_status screen_and_score(weft_ctx *ctx, const sorted_job *job, const mi_sorted *t, const mi_collector *c)
{
  weft_status st = WEFT_OK;
  score_args score;
  const cudaStream_t lap_stream = c->stream;
  LAP(0);
  WEFT_TRY(weft_mi_sorted_screen(ctx, t, c->stream));
  LAP(1);
  memset(&score, 0, sizeof score);
  score.p = job->p;
  score.passed = t->passed;
  score.column = job->column;
  score.columns = job->pack->columns;
  score.f = job->r->f;
  score.class_fixed = job->pack->class_fixed;
  score.bar = c->bar;
  score.hits = c->hits;
  score_passed<<<(unsigned) (4 * job->processors), ARRANGE_THREADS, 0, c->stream>>>(score);
  WEFT_CUDA(cudaGetLastError());
  LAP(2);
done:
  return st;
}

/* A launch of which more passed than there is room for, again in pieces of which no more can pass. */
static weft_status run_in_pieces(weft_ctx *ctx, const sorted_job *job, mi_sorted *t, const mi_collector *c)
{
  weft_status st = WEFT_OK;
  const uint32_t units = t->units, piece = job->capacity / (WEFT_PLANES_A * WEFT_PLANES_B);
  unsigned long long found = 0;
  WEFT_TRY(sort_rows(ctx, job, t, c->stream));
  for (t->first = 0; t->first < units && found <= c->hits.capacity; t->first += piece) {
    t->units = units - t->first < piece ? units - t->first : piece;
    WEFT_TRY(weft_poll(ctx, c->before, 1));
    WEFT_CUDA(cudaMemsetAsync(t->passed.count, 0, sizeof *t->passed.count, c->stream));
    WEFT_TRY(screen_and_score(ctx, job, t, c));
    WEFT_CUDA(cudaMemcpyAsync(&found, c->hits.count, sizeof found, cudaMemcpyDeviceToHost, c->stream));
    WEFT_CUDA(cudaStreamSynchronize(c->stream));
  }
done:
  return st;
}

static weft_status run_sorted(weft_ctx *ctx, void *data, mi_collector *c, uint64_t first, uint64_t count)
{
  weft_status st = WEFT_OK;
  const sorted_job *job = (const sorted_job *) data;
  const size_t launches = (size_t) ((count + job->batch - 1) / job->batch);
  mi_sorted t;
  double passed = 0, again = 0;
  lap = weft_seconds();
  spent[0] = spent[1] = spent[2] = 0;
  WEFT_CUDA(cudaMemsetAsync(job->counts, 0, launches * sizeof *job->counts, c->stream));
  for (size_t k = 0; k < launches; k++) {
    const uint64_t from = first + k * job->batch, left = first + count - from;
    t = describe(job, c, from, left < job->batch ? (uint32_t) left : job->batch);
    t.passed.count = job->counts + k;
    WEFT_TRY(sort_rows(ctx, job, &t, c->stream));
    WEFT_TRY(screen_and_score(ctx, job, &t, c));
  }
  WEFT_CUDA(cudaMemcpyAsync(job->host_counts, job->counts, launches * sizeof *job->counts, cudaMemcpyDeviceToHost,
                            c->stream));
  WEFT_CUDA(cudaStreamSynchronize(c->stream));
  for (size_t k = 0; k < launches; k++) {
    const uint64_t from = first + k * job->batch, left = first + count - from;
    passed += job->host_counts[k];
    if (job->host_counts[k] <= job->capacity) continue;
    again++;
    t = describe(job, c, from, left < job->batch ? (uint32_t) left : job->batch);
    t.passed.count = job->counts + k;
    WEFT_TRY(run_in_pieces(ctx, job, &t, c));
  }
  if (timing) fprintf(stderr, "units %g+%g: sort %.2f screen %.2f score %.2f ms, passed %.0f, again %.0f, bar %.6f\n",
                      (double) first, (double) count, spent[0] * 1e3, spent[1] * 1e3, spent[2] * 1e3, passed, again,
                      c->bar.score);
done:
  return st;
}

/* Triples before a part's unit, about. */
static double sorted_until(const void *data, uint64_t units)
{
  const double parts = ((const sorted_job *) data)->parts, before = (double) units * parts;
  return before * (before + 1) * (before + 2) / 6 / parts;
}

weft_status weft_mi_hopper_sorted(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                  const weft_mi_resident *r, mi_collector *c, int *done_here)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  sorted_job job;
  const double began = weft_seconds();
  *done_here = 0;
  memset(&job, 0, sizeof job);
  timing = getenv("WEFT_TRIPLES_TIMES");
  job.pack = pack;
  job.r = r;
  job.mem = mem;
  job.gains = c->search->by_interaction || c->search->min_gain > -INFINITY;
  job.parts = (double) c->search->parts;
  job.capacity = CANDIDATES;
  job.all.count = pack->p;
  job.all.room = (pack->p + WEFT_PLANES_B - 1) / WEFT_PLANES_B * WEFT_PLANES_B;
  WEFT_TRY(place_all(ctx, &host, &job));
  job.batch = choose_batch(ctx, &job);
  if (!job.batch) goto done;
  WEFT_CUDA(cudaDeviceGetAttribute(&job.processors, cudaDevAttrMultiProcessorCount, ctx->device));
  WEFT_TRY(weft_mi_arranged_in_order(ctx, mem, pack, r, job.order, &job.all));
  describe_planes(&job);
  WEFT_DEVICE_TAKE(job.planes, mem, job.batch * PLANES * job.all.room * ((size_t) job.most_steps * STEP_BITS / 8));
  WEFT_DEVICE_TAKE(job.from, mem, job.batch * (size_t) job.most_steps * STEP_BITS);
  WEFT_DEVICE_TAKE(job.margins, mem, job.batch * LEVELS * PLANES * job.all.room);
  WEFT_DEVICE_TAKE(job.items, mem, job.capacity);
  WEFT_DEVICE_TAKE(job.counts, mem, pack->p);
  WEFT_TAKE(job.host_counts, &host, pack->p);
  if (job.gains) WEFT_DEVICE_TAKE(job.pairs, mem, job.all.room * job.all.room);
  if (timing) { cudaStreamSynchronize(mem->stream); fprintf(stderr, "begun %.2f ms\n", 1e3 * (weft_seconds() - began)); }
  WEFT_TRY(look_at_pairs(ctx, &job, c));
  if (timing) fprintf(stderr, "with pairs %.2f ms, batch %u\n", 1e3 * (weft_seconds() - began), job.batch);
  {
    const double most = 0.1 / (1.5e-11 + (double) pack->n * 1e-15);
    const mi_runner fixed = { &job, units_dealt(c, pack->p - 2), most, run_sorted, sorted_until };
    WEFT_TRY(weft_mi_run_all(ctx, c, &fixed));
  }
  *done_here = 1;
done:
  weft_arena_end(&host);
  return st;
}
