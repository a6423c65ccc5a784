/* Permutation tests of pairs of complete attributes of at most three levels, two classes of at most 65,535 rows
 * together, on Hopper's 1-bit tensor cores (wgmma, compute capability 9.0a): many label sets at a time.
 *
 * Counts of all rows are the same whatever the labels, so that a tile's are made once; of each label set only the rows
 * of the rarer class are counted, whose planes are arranged for each set (mi_arrange.cuh). A tile goes through one set
 * after the other, and while a set is counted, the one before is screened (mi_planes_screen.cuh).
 *
 * A set's sides are new in every tile, so that no cache of the multiprocessor has them: the producer brings them into
 * shared memory behind the set's rows, and threads read the set's bar before they count it.
 *
 * Of a label set only the greatest score is wanted. Threads raise it in memory, and read it there as their bar, so that
 * the host need not look before the end. The pairs that were found are scored by a warp for each pair and label set. */
#include <climits>
#include <cmath>
#include <cstring>
#include "../../base/parallel.h"
#include "mi_products.cuh"
#include "mi_search_cuda.cuh"
#define SCREENED 2 /* pairs at a time */
#include "mi_mma_wgmma.cuh"
#include "mi_planes_screen.cuh"

#define PLANES ARRANGED_PLANES
#define STAGES 7
#define BATCH 2                 /* products started at once */
#define COUNTING 512            /* threads: four warpgroups, each a half of side a and a half of side b */
#define LABEL_THREADS (COUNTING + 128) /* registers go from warpgroup to warpgroup, so the producer is a whole one */
#define PAIRS 16                /* of a thread in a tile */
#define SLOTS 2                 /* of a set's sides */
#define SHARED_BYTES (STAGES * STAGE_BYTES + WORDS_BYTES + SLOTS * sizeof(tile_sides))
#define MOST_SETS 32            /* at a time */
#define MOST_BYTES 2e9          /* of their planes */
#define MOMENT 0.1              /* seconds between two polls */
#define SLACK_UNITS ((int64_t) 1 << 20) /* with four per row, more than the rounding of f adds up to */

/* ---- planes of label sets ---- */

struct label_sides {
  arranged_planes all;
  const uint32_t *margins;      /* [class][row of planes] */
  size_t plane_rows;
  const uint32_t *from;         /* [set][bit]: the rows of the class that is counted */
  size_t bits, bytes;           /* of a set's row and of all its planes */
  uint8_t *out;
  uint32_t class_rows[2];       /* of the class that is counted, and of both */
  weft_mi_log f;
  int64_t class_fixed;
  double scale;                 /* fixed point to units of the screen */
  float4 *sides;                /* [set][place]; NULL: planes alone */
  float *own;
  int64_t *alone;
  long long *start;             /* [set]: the greatest score is no less; NULL: not known */
};

/* What an attribute says alone, from its planes' rows in the class and in both. */
__device__ static int64_t said_alone(const weft_mi_log &f, int64_t class_fixed, const uint32_t (&class_rows)[2],
                                     const uint32_t (&in_class)[PLANES], const uint32_t (&rows)[PLANES])
{
  const uint32_t last = class_rows[0] - in_class[0] - in_class[1], last_rows = class_rows[1] - rows[0] - rows[1];
  int64_t sum = f.table[last] + f.table[last_rows - last] - f.table[last_rows] - class_fixed;
  for (uint32_t q = 0; q < PLANES; q++)
    sum += f.table[in_class[q]] + f.table[rows[q] - in_class[q]] - f.table[rows[q]];
  return sum > 0 ? sum : 0;
}

__device__ static void make_side(const label_sides &t, uint32_t set, size_t place, const uint32_t (&in_class)[PLANES])
{
  uint32_t rows[PLANES], packed[PLANES];
  for (uint32_t q = 0; q < PLANES; q++) {
    const uint32_t row = place < t.all.count ? t.all.plane_row[q * t.all.count + place] : UINT32_MAX;
    rows[q] = row == UINT32_MAX ? 0 : t.margins[row] + t.margins[t.plane_rows + row];
    packed[q] = weft_planes_pack(in_class[q], rows[q] - in_class[q]);
  }
  const int64_t alone = said_alone(t.f, t.class_fixed, t.class_rows, in_class, rows);
  const size_t at = set * t.all.room + place;
  t.sides[at] = words_of_side(weft_planes_side_of(packed));
  t.alone[at] = alone;
  t.own[at] = (float) ((double) alone * t.scale);
  if (t.start && place < t.all.count)
    atomicMax(&t.start[set], (long long) (alone - SLACK_UNITS - 4 * (int64_t) t.class_rows[1]));
}

/* A warp a block of 128 rows of planes of a set. */
__global__ static void __launch_bounds__(ARRANGE_THREADS) arrange_labels(const __grid_constant__ label_sides t)
{
  const uint32_t set = blockIdx.y, lane = threadIdx.x % 32;
  const size_t block = (size_t) blockIdx.x * ARRANGE_WARPS + threadIdx.x / 32;
  const uint32_t steps = (uint32_t) (t.bits / STEP_BITS);
  uint32_t count[4] = { 0, 0, 0, 0 };
  if (block >= t.all.room / WEFT_PLANES_A) return;
  arrange_run(t.all, t.from + set * t.bits, block, 0, 2 * steps, steps, t.out + set * t.bytes, count);
  if (!t.sides) return;
  for (int i = 0; i < 4; i++) { /* plane 1 of an attribute is eight rows behind its plane 0 */
    const uint32_t plane[PLANES] = { count[i], __shfl_down_sync(0xffffffffu, count[i], 8) };
    const size_t row = block * 128 + i * 32 + lane;
    if (weft_planes_plane(row) == 0) make_side(t, set, weft_planes_attribute(row), plane);
  }
}

/* ---- the greatest score of every set ---- */

struct label_args {
  uint32_t sets;
  int steps_all, steps;         /* k-steps of all rows, of a set's */
  const uint8_t *whole, *planes; /* of all rows; [set] */
  size_t bytes, count, room;
  tile_grid grid;
  uint64_t first, tiles;        /* of this launch */
  const float4 *sides;
  const float *own;
  const int64_t *alone;
  long long *start, *best;      /* [set], in fixed point */
  int by_interaction;
  double base, scale;           /* a score's bar: base + score * scale */
  uint32_t all;                 /* packed rows */
  weft_mi_log f;
  int64_t class_fixed;
  const uint8_t *side;          /* [place]: in which of two sets of attributes */
  const uint32_t *column;
  weft_mi_near near;
};

/* What the screen of a set and tile needs. */
struct tile_sides {
  float4 b[WEFT_PLANES_B], a[WEFT_PLANES_A];
  float own_b[WEFT_PLANES_B], own_a[WEFT_PLANES_A];
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* A thread's attribute of side a, and that of side b in one of its pairs. */
__device__ static inline uint32_t a_of(uint32_t thread) { return weft_planes_a(thread / 256 * 128 + thread % 128); }
__device__ static inline uint32_t b_of(uint32_t thread, uint32_t pair)
{
  return thread / 128 % 2 * (WEFT_PLANES_B / 2) + weft_planes_b(thread, pair);
}

struct set_screen { planes_screen pairs; uint32_t set; const tile_sides *of; }; /* NULL: of none */

__device__ static inline weft_planes_side side_in(const float4 &words)
{
  const weft_planes_side out = { { words.x, words.y }, { words.z, words.w } };
  return out;
}

/* In units of the screen. */
__device__ static inline float bar_of(const label_args &t, long long best, long long start)
{
  const long long known = best > start ? best : start;
  return known == LLONG_MIN ? -INFINITY : (float) (t.base + (double) known * t.scale);
}

__device__ static inline set_screen begin_set(const label_args &t, const tile_sides *of, uint32_t set, uint32_t one,
                                              uint32_t b0, float bar)
{
  const uint32_t at = a_of(threadIdx.x);
  const set_screen s = { { one, b0, 0, 0, side_in(of->a[at]), t.by_interaction ? bar + of->own_a[at] : bar }, set, of };
  return s;
}

__device__ static inline void screen_set(const label_args &t, const uint4 *mine, set_screen *s)
{
  planes_screen *p = &s->pairs;
  const uint32_t b0 = b_of(threadIdx.x, p->at);
#pragma unroll
  for (uint32_t k = 0; k < SCREENED; k++) {
    const uint32_t b = b0 + weft_planes_b(0, k);
    float over = squares_of(mine[(p->at + k) * COUNTING], p->a, side_in(s->of->b[b]), t.all) - p->bar_gain;
    if (t.by_interaction) over -= s->of->own_b[b];
    p->passed |= (uint32_t) !(over < 0) << (p->at + k);
  }
  p->at += SCREENED;
}

__device__ static inline bool is_allowed(const label_args &t, uint32_t one, uint32_t other)
{
  if (one >= other || other >= t.count) return false;
  const uint32_t a = t.side[one], b = t.side[other];
  if (!((a & 1 && b & 2) || (a & 2 && b & 1))) return false;
  return !t.near.chromosome || !weft_mi_is_near(&t.near, t.column[one], t.column[other]);
}

/* Screens what is left, scores what passed, and gives the sides' slot back. */
__device__ static inline void end_set(const label_args &t, const uint4 *mine, set_screen *s, uint64_t *empty)
{
  planes_screen *p = &s->pairs;
  if (!s->of) return;
  while (p->at < PAIRS) screen_set(t, mine, s);
  for (; p->passed; p->passed &= p->passed - 1) {
    const uint32_t k = (uint32_t) __ffs((int) p->passed) - 1, other = p->b0 + b_of(threadIdx.x, k);
    if (!is_allowed(t, p->one, other)) continue;
    const size_t a = s->set * t.room + p->one, b = s->set * t.room + other;
    const uint4 four = mine[k * COUNTING];
    const uint32_t both[4] = { four.x, four.y, four.z, four.w };
    uint32_t cell[WEFT_PLANES_CELLS], of_a[2], of_b[2];
    words_of(p->a, of_a);
    words_of(side_in(s->of->b[b_of(threadIdx.x, k)]), of_b);
    weft_planes_cells(both, of_a, of_b, t.all, cell);
    int64_t score = weft_planes_joint(&t.f, cell) - t.class_fixed;
    if (score < 0) score = 0;
    if (t.by_interaction) score -= t.alone[a] + t.alone[b];
    if (score > *(volatile long long *) &t.best[s->set]) atomicMax(&t.best[s->set], (long long) score);
  }
  s->of = NULL;
  __syncwarp();
  if (threadIdx.x % 32 == 0) barrier_arrive(empty);
}

/* Counts of all rows. */
__device__ static inline void put_rows(const uint32_t (&c)[64], uint4 *mine)
{
#pragma unroll
  for (uint32_t k = 0; k < PAIRS; k++)
    mine[k * COUNTING] = make_uint4(c[weft_planes_register(k, 0, 0)], c[weft_planes_register(k, 0, 1)],
                                    c[weft_planes_register(k, 1, 0)], c[weft_planes_register(k, 1, 1)]);
}

/* Counts of a set's class above those of all rows. */
__device__ static inline void put_above(const uint32_t (&c)[64], uint4 *mine)
{
#pragma unroll
  for (uint32_t k = 0; k < PAIRS; k++) {
    const uint4 rows = mine[k * COUNTING];
    mine[k * COUNTING] = make_uint4(__byte_perm(rows.x, c[weft_planes_register(k, 0, 0)], 0x5410),
                                     __byte_perm(rows.y, c[weft_planes_register(k, 0, 1)], 0x5410),
                                     __byte_perm(rows.z, c[weft_planes_register(k, 1, 0)], 0x5410),
                                     __byte_perm(rows.w, c[weft_planes_register(k, 1, 1)], 0x5410));
  }
}

__device__ static inline void bring_sides(const label_args &t, uint32_t set, uint32_t ta, uint32_t tb, tile_sides *to,
                                          uint64_t *full)
{
  const size_t a = set * t.room + (size_t) ta * WEFT_PLANES_A, b = set * t.room + (size_t) tb * WEFT_PLANES_B;
  barrier_expect(full, sizeof *to);
  bulk_copy(to->b, t.sides + b, sizeof to->b, full);
  bulk_copy(to->a, t.sides + a, sizeof to->a, full);
  bulk_copy(to->own_b, t.own + b, sizeof to->own_b, full);
  bulk_copy(to->own_a, t.own + a, sizeof to->own_a, full);
}

__global__ static void __launch_bounds__(LABEL_THREADS, 1) search_labels(const __grid_constant__ label_args t)
{
  extern __shared__ __align__(1024) uint8_t stages[];
  __shared__ ring<STAGES> copies;
  __shared__ ring<SLOTS> filled;
  tile_sides *const slots = (tile_sides *) (stages + STAGES * STAGE_BYTES + WORDS_BYTES);
  const uint32_t thread = threadIdx.x, warp_of_block = __shfl_sync(0xffffffffu, thread / 32, 0);
  make_ring(&filled, COUNTING / 32);
  make_ring(&copies, COUNTING / 32);

  uint32_t step = 0, turn = 0, ta, tb; /* k-steps and sets since the start */
  tile_walk at = { 0, 0 };
  if (warp_of_block >= COUNTING / 32) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (thread == COUNTING) for (uint64_t k = blockIdx.x; k < t.tiles; k += gridDim.x) {
      if (!place_tile(&t.grid, &at, t.first + k, &ta, &tb)) continue;
      for (uint32_t s = 0; s <= t.sets; s++) { /* all rows, then the sets */
        const uint8_t *const planes = s ? t.planes + (s - 1) * t.bytes : t.whole;
        const int steps = s ? t.steps : t.steps_all;
        bring_tile(&copies, stages, planes + (size_t) ta * steps * BLOCK_BYTES,
                   planes + (size_t) tb * 2 * steps * BLOCK_BYTES, steps, &step);
        if (!s) continue;
        if (turn >= SLOTS) barrier_wait(&filled.empty[turn % SLOTS], (turn / SLOTS - 1) & 1);
        bring_sides(t, s - 1, ta, tb, &slots[turn % SLOTS], &filled.full[turn % SLOTS]);
        turn++;
      }
    }
    return;
  }

  asm volatile("setmaxnreg.inc.sync.aligned.u32 112;"); /* of 96 that a thread starts with */
  const uint32_t own_a = thread / 256 * 64 * 32, own_b = (1 + thread / 128 % 2) * BLOCK_BYTES; /* in a stage */
  uint4 *const mine = (uint4 *) (stages + STAGES * STAGE_BYTES) + thread;
  set_screen last = { nothing_to_screen(), 0, NULL };
  last.pairs.at = PAIRS;
  for (uint64_t k = blockIdx.x; k < t.tiles; k += gridDim.x) {
    if (!place_tile(&t.grid, &at, t.first + k, &ta, &tb)) continue;
    const uint32_t one = ta * WEFT_PLANES_A + a_of(thread), b0 = tb * WEFT_PLANES_B;
#pragma unroll 1
    for (uint32_t s = 0; s <= t.sets; s++) {
      const uint32_t steps = (uint32_t) (s ? t.steps : t.steps_all);
      long long best = 0, begun = 0; /* needed after the set was counted: it may have risen since */
      if (s) {
        best = *(volatile long long *) &t.best[s - 1];
        begun = *(volatile long long *) &t.start[s - 1];
      }
      uint32_t c[64], due = 0;
#pragma unroll
      for (int i = 0; i < 64; i++) c[i] = 0;
      const auto start = [&](const uint8_t *from) {
        mma_64_rows(c, operand_descriptor(from + own_a), operand_descriptor(from + own_b));
      };
      count_batches<BATCH>(&copies, stages, (int) steps, &step, c, start, [&](uint32_t products) {
        for (due += products * (PAIRS / SCREENED); due >= steps; due -= steps)
          if (last.pairs.at < PAIRS) screen_set(t, mine, &last);
      });
      end_set(t, mine, &last, &filled.empty[(turn - 1) % SLOTS]);
      if (s) {
        put_above(c, mine);
        barrier_wait(&filled.full[turn % SLOTS], turn / SLOTS & 1);
        last = begin_set(t, &slots[turn % SLOTS], s - 1, one, b0, bar_of(t, best, begun));
        turn++;
      } else put_rows(c, mine);
    }
  }
  end_set(t, mine, &last, &filled.empty[(turn - 1) % SLOTS]);
}

#else /* host side, and devices that never run it */
__global__ static void search_labels(const __grid_constant__ label_args t) { (void) t; }
#endif

/* ---- the pairs that were found ---- */

struct found_args {
  arranged_planes all;
  const uint32_t *labels;       /* [set][word of a row of planes]: rows of the class */
  uint32_t sets;
  const uint32_t *places;       /* two a pair */
  size_t pairs;
  const double *observed;
  int by_interaction;
  uint32_t class_rows[2];
  weft_mi_log f;
  int64_t class_fixed;
  unsigned int *at_least;       /* [pair] */
};

/* One thread a bit of a set. */
__global__ static void mark_labels(const uint32_t *from, size_t bits, uint32_t words, uint32_t *labels)
{
  const size_t k = (size_t) blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= bits || from[blockIdx.y * bits + k] == NOWHERE) return;
  const uint32_t bit = from[blockIdx.y * bits + k];
  atomicOr(&labels[(size_t) blockIdx.y * words + bit / 32], 1u << bit % 32);
}

/* A warp for each pair and set. */
__global__ static void __launch_bounds__(ARRANGE_THREADS) score_found(const __grid_constant__ found_args t)
{
  const uint32_t lane = threadIdx.x % 32;
  const size_t warp = ((size_t) blockIdx.x * ARRANGE_THREADS + threadIdx.x) / 32, pair = warp / t.sets;
  if (pair >= t.pairs) return;
  const uint32_t *const labels = t.labels + warp % t.sets * t.all.words, *plane[4]; /* two of one, two of the other */
  uint32_t in_class[8] = {}, rows[8] = {}; /* of planes by themselves, and of one's with the other's */
  for (uint32_t q = 0; q < 4; q++) {
    const uint32_t row = t.all.plane_row[q % 2 * t.all.count + t.places[2 * pair + q / 2]];
    plane[q] = row == UINT32_MAX ? NULL : t.all.planes + (size_t) row * t.all.words;
  }
  for (uint32_t w = lane; w < t.all.words; w += 32) {
    const uint32_t label = labels[w];
    uint32_t of[8];
#pragma unroll
    for (int q = 0; q < 4; q++) of[q] = plane[q] ? plane[q][w] : 0;
#pragma unroll
    for (int q = 0; q < 4; q++) of[4 + q] = of[q / 2] & of[2 + q % 2];
#pragma unroll
    for (int q = 0; q < 8; q++) {
      in_class[q] += (uint32_t) __popc(of[q] & label);
      rows[q] += (uint32_t) __popc(of[q]);
    }
  }
#pragma unroll
  for (int q = 0; q < 8; q++)
    for (int half = 16; half; half /= 2) {
      in_class[q] += __shfl_xor_sync(0xffffffffu, in_class[q], half);
      rows[q] += __shfl_xor_sync(0xffffffffu, rows[q], half);
    }
  uint32_t word[8], cell[WEFT_PLANES_CELLS];
#pragma unroll
  for (int q = 0; q < 8; q++) word[q] = weft_planes_pack(in_class[q], rows[q] - in_class[q]);
  const uint32_t of_a[2] = { word[0], word[1] }, of_b[2] = { word[2], word[3] },
                 both[4] = { word[4], word[5], word[6], word[7] };
  weft_planes_cells(both, of_a, of_b, weft_planes_pack(t.class_rows[0], t.class_rows[1] - t.class_rows[0]), cell);
  int64_t score = weft_planes_joint(&t.f, cell) - t.class_fixed;
  if (score < 0) score = 0;
  if (t.by_interaction) {
    const uint32_t k_a[2] = { in_class[0], in_class[1] }, m_a[2] = { rows[0], rows[1] },
                   k_b[2] = { in_class[2], in_class[3] }, m_b[2] = { rows[2], rows[3] };
    score -= said_alone(t.f, t.class_fixed, t.class_rows, k_a, m_a) +
             said_alone(t.f, t.class_fixed, t.class_rows, k_b, m_b);
  }
  if (lane == 0 && weft_mi_bits(score, t.f.unit, t.class_rows[1]) >= t.observed[pair]) atomicAdd(&t.at_least[pair], 1u);
}

/* ---- host ---- */

int weft_mi_labels_fit(const weft_ctx *ctx, const weft_mi_pack *p)
{
  for (size_t g = 0; g < p->group_count; g++)
    if (p->groups[g].coded || p->groups[g].shape.missing || p->groups[g].shape.planes > PLANES) return 0;
  return p->p >= 2 && p->classes == 2 && p->per == 2 && p->class_rows[0] && p->class_rows[1] &&
         p->n <= WEFT_PLANES_PACKED && weft_mi_wgmma_ready(ctx->device);
}

/* What a call keeps on the device. */
struct labels_job {
  const weft_mi_pack *pack;
  const weft_mi_relabelling *how;
  const weft_mi_resident *r;
  weft_device_arena *mem;
  arranged_planes all;
  uint32_t counted;             /* the class */
  uint32_t batch;               /* sets at a time */
  int steps_all, steps;
  size_t bits, bytes;           /* of a set */
  double steepest;
  uint8_t *whole, *planes, *side;
  uint32_t *from, *labels, *places;
  float4 *sides;
  float *own;
  int64_t *alone;
  long long *start, *best;
  double *observed;
  unsigned int *at_least;
  weft_mi_near near;
};

static int steps_of(size_t rows) { return (int) ((rows + STEP_BITS - 1) / STEP_BITS); }

/* Bytes of a call with so many sets at a time, about. */
static double bytes_of(const labels_job *job, double sets)
{
  const double room = (double) job->all.room, words = job->r->words;
  return PLANES * room * (words * 4 + job->steps_all * 32.0) +
         sets * ((double) job->bytes + room * (sizeof(float4) + sizeof(float) + sizeof(int64_t)) +
                 4.0 * (double) job->bits + 4 * words) + 1e6;
}

/* Seconds of a pair and set, about. */
static double seconds_of(const labels_job *job) { return (double) job->bits * 1e-15 + 4e-12; }

/* 0 in job->batch: no room. */
static void choose_batch(weft_ctx *ctx, labels_job *job)
{
  const double have = 0.9 * weft_device_available(ctx), pairs = (double) job->all.count * (double) job->all.count / 2;
  double most = fmin(fmin(MOST_SETS, (double) job->how->sets), MOST_BYTES / (double) job->bytes);
  most = fmin(most, 4 * MOMENT / (pairs * seconds_of(job)));
  job->batch = most < 1 ? 1 : (uint32_t) most;
  while (job->batch && bytes_of(job, job->batch) > have) job->batch /= 2;
}

/* The bit of a row of planes on the device where sorted row r lies. */
static uint32_t bit_of(const weft_mi_pack *p, uint32_t r)
{
  return r < p->class_rows[0] ? r : weft_mi_resident_words(p, 1) * 32 + (r - p->class_rows[0]);
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

static label_sides sides_of(const labels_job *job)
{
  const weft_mi_pack *p = job->pack;
  label_sides t;
  memset(&t, 0, sizeof t);
  t.all = job->all;
  t.margins = job->r->margins;
  t.plane_rows = p->plane_rows;
  t.from = job->from;
  t.bits = job->bits;
  t.bytes = job->bytes;
  t.out = job->planes;
  t.class_rows[0] = p->class_rows[job->counted];
  t.class_rows[1] = (uint32_t) p->n;
  t.f = job->r->f;
  t.class_fixed = p->class_fixed;
  t.scale = job->r->f.unit / job->steepest;
  t.sides = job->sides;
  t.own = job->own;
  t.alone = job->alone;
  return t;
}

static weft_status arrange(weft_ctx *ctx, const label_sides *t, uint32_t sets, cudaStream_t s)
{
  weft_status st = WEFT_OK;
  const size_t blocks = (t->all.room / WEFT_PLANES_A + ARRANGE_WARPS - 1) / ARRANGE_WARPS;
  arrange_labels<<<dim3((unsigned) blocks, sets), ARRANGE_THREADS, 0, s>>>(*t);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

/* The planes of all rows. */
static weft_status arrange_whole(weft_ctx *ctx, weft_arena *host, labels_job *job)
{
  weft_status st = WEFT_OK;
  const size_t n = job->pack->n, bits = (size_t) job->steps_all * STEP_BITS;
  label_sides t = sides_of(job);
  uint32_t *from, *sent;
  WEFT_TAKE(from, host, bits);
  for (size_t k = 0; k < bits; k++) from[k] = k < n ? bit_of(job->pack, (uint32_t) k) : NOWHERE;
  WEFT_TRY(send(ctx, job->mem, from, bits, &sent));
  t.from = sent;
  t.bits = bits;
  t.out = job->whole;
  t.sides = NULL;
  WEFT_TRY(arrange(ctx, &t, 1, job->mem->stream));
done:
  return st;
}

static weft_status send_near(weft_ctx *ctx, labels_job *job)
{
  weft_status st = WEFT_OK;
  const weft_mi_near *near = &job->how->search->near;
  uint32_t *chromosome;
  double *position;
  if (!near->chromosome) goto done;
  WEFT_TRY(send(ctx, job->mem, near->chromosome, job->pack->columns, &chromosome));
  WEFT_TRY(send(ctx, job->mem, near->position, job->pack->columns, &position));
  job->near.chromosome = chromosome;
  job->near.position = position;
  job->near.distance = near->distance;
done:
  return st;
}

static weft_status begin_labels(weft_ctx *ctx, weft_arena *host, labels_job *job)
{
  weft_status st = WEFT_OK;
  const weft_mi_pack *p = job->pack;
  const weft_mi_relabelling *how = job->how;
  weft_device_arena *mem = job->mem;
  uint8_t *side;
  uint32_t *places;
  WEFT_TAKE(side, host, p->p);
  WEFT_TAKE(places, host, 2 * how->count);
  for (size_t k = 0; k < p->p; k++) side[k] = (uint8_t) p->groups[p->group_of[k]].side;
  for (size_t k = 0; k < 2 * how->count; k++) places[k] = p->place[how->columns[k]];
  WEFT_TRY(weft_mi_arranged_begin(ctx, mem, p, job->r, &job->all));
  WEFT_DEVICE_TAKE(job->whole, mem, arranged_bytes_of(job->all.room, (size_t) job->steps_all * STEP_BITS));
  WEFT_DEVICE_TAKE(job->planes, mem, job->batch * job->bytes);
  WEFT_DEVICE_TAKE(job->from, mem, job->batch * job->bits);
  WEFT_DEVICE_TAKE(job->labels, mem, job->batch * (size_t) job->r->words);
  WEFT_DEVICE_TAKE(job->sides, mem, job->batch * job->all.room);
  WEFT_DEVICE_TAKE(job->own, mem, job->batch * job->all.room);
  WEFT_DEVICE_TAKE(job->alone, mem, job->batch * job->all.room);
  WEFT_DEVICE_TAKE(job->start, mem, job->batch);
  WEFT_DEVICE_TAKE(job->best, mem, job->batch);
  WEFT_DEVICE_TAKE(job->at_least, mem, how->count);
  WEFT_CUDA(cudaMemsetAsync(job->at_least, 0, how->count * sizeof *job->at_least, mem->stream));
  WEFT_TRY(send(ctx, mem, side, p->p, &job->side));
  WEFT_TRY(send(ctx, mem, places, 2 * how->count, &job->places));
  WEFT_TRY(send(ctx, mem, how->observed, how->count, &job->observed));
  WEFT_TRY(send_near(ctx, job));
  WEFT_TRY(arrange_whole(ctx, host, job));
done:
  return st;
}

/* Makes label sets first .. first+sets-1 and sends where their rows lie. `from` and, for each thread, `perm` are
 * room. */
static weft_status draw_labels(weft_ctx *ctx, const labels_job *job, size_t first, uint32_t sets, uint32_t *from,
                               uint32_t *perm)
{
  weft_status st = WEFT_OK;
  const weft_mi_pack *p = job->pack;
  const size_t rows = p->class_rows[job->counted];
  WEFT_PARALLEL(ctx->threads)
  WEFT_FOR(dynamic)
  for (int64_t k = 0; k < (int64_t) sets; k++) {
    uint32_t *const to = from + (size_t) k * job->bits;
    job->how->draw(job->how->data, first + (size_t) k, job->counted, perm + (size_t) WEFT_THREAD() * p->n, to);
    for (size_t i = 0; i < job->bits; i++) to[i] = i < rows ? bit_of(p, to[i]) : NOWHERE;
  }
  WEFT_CUDA(cudaMemcpyAsync(job->from, from, sets * job->bits * sizeof *from, cudaMemcpyHostToDevice,
                            job->mem->stream));
done:
  return st;
}

static weft_status count_found(weft_ctx *ctx, const labels_job *job, uint32_t sets)
{
  weft_status st = WEFT_OK;
  const cudaStream_t s = job->mem->stream;
  const size_t warps = job->how->count * sets, words = job->r->words;
  found_args t;
  memset(&t, 0, sizeof t);
  if (!warps) goto done;
  t.all = job->all;
  t.labels = job->labels;
  t.sets = sets;
  t.places = job->places;
  t.pairs = job->how->count;
  t.observed = job->observed;
  t.by_interaction = job->how->search->by_interaction;
  t.class_rows[0] = job->pack->class_rows[job->counted];
  t.class_rows[1] = (uint32_t) job->pack->n;
  t.f = job->r->f;
  t.class_fixed = job->pack->class_fixed;
  t.at_least = job->at_least;
  WEFT_CUDA(cudaMemsetAsync(job->labels, 0, sets * words * sizeof *job->labels, s));
  mark_labels<<<dim3((unsigned) ((job->bits + 255) / 256), sets), 256, 0, s>>>(job->from, job->bits, (uint32_t) words,
                                                                               job->labels);
  WEFT_CUDA(cudaGetLastError());
  score_found<<<(unsigned) ((warps + ARRANGE_WARPS - 1) / ARRANGE_WARPS), ARRANGE_THREADS, 0, s>>>(t);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

static label_args search_of(const labels_job *job, uint32_t sets)
{
  const weft_mi_pack *p = job->pack;
  const uint32_t rows[2] = { p->class_rows[job->counted], p->class_rows[1 - job->counted] };
  label_args t;
  memset(&t, 0, sizeof t);
  t.sets = sets;
  t.steps_all = job->steps_all;
  t.steps = job->steps;
  t.whole = job->whole;
  t.planes = job->planes;
  t.bytes = job->bytes;
  t.count = p->p;
  t.room = job->all.room;
  t.grid.tiles_a = (uint32_t) ((p->p + WEFT_PLANES_A - 1) / WEFT_PLANES_A);
  t.grid.tiles_b = (uint32_t) ((p->p + WEFT_PLANES_B - 1) / WEFT_PLANES_B);
  t.grid.same = 1;
  t.sides = job->sides;
  t.own = job->own;
  t.alone = job->alone;
  t.start = job->start;
  t.best = job->best;
  t.by_interaction = job->how->search->by_interaction;
  t.base = weft_planes_measure(1, rows, 2, job->steepest, 1).base;
  t.scale = job->r->f.unit / job->steepest;
  t.all = weft_planes_pack(rows[0], rows[1]);
  t.f = job->r->f;
  t.class_fixed = p->class_fixed;
  t.side = job->side;
  t.column = job->r->column;
  t.near = job->near;
  return t;
}

/* All pairs under the sets that are there: `behind` of how->sets are done. */
static weft_status search_sets(weft_ctx *ctx, const labels_job *job, uint32_t sets, size_t behind)
{
  weft_status st = WEFT_OK;
  label_args t = search_of(job, sets);
  const uint64_t tiles = tiles_of(&t.grid);
  const double each = (double) WEFT_PLANES_A * WEFT_PLANES_B * sets * seconds_of(job);
  const uint64_t most = (uint64_t) fmax(1, MOMENT / each);
  int processors = 0;
  WEFT_CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, ctx->device));
  WEFT_CUDA(weft_device_allow_shared((const void *) search_labels, SHARED_BYTES));
  for (t.first = 0; t.first < tiles; t.first += t.tiles) {
    t.tiles = tiles - t.first < most ? tiles - t.first : most;
    search_labels<<<t.tiles < (uint64_t) processors ? (unsigned) t.tiles : (unsigned) processors, LABEL_THREADS,
                    SHARED_BYTES, job->mem->stream>>>(t);
    WEFT_CUDA(cudaGetLastError());
    if (t.first + t.tiles == tiles) break; /* what comes next waits for the stream */
    WEFT_CUDA(cudaStreamSynchronize(job->mem->stream));
    WEFT_TRY(weft_poll(ctx, (double) behind + sets * ((double) t.first / (double) tiles), (double) job->how->sets));
  }
done:
  return st;
}

static weft_status run_sets(weft_ctx *ctx, weft_arena *host, const labels_job *job)
{
  weft_status st = WEFT_OK;
  const weft_mi_pack *p = job->pack;
  const weft_mi_relabelling *how = job->how;
  const cudaStream_t s = job->mem->stream;
  label_sides sides = sides_of(job);
  int whole = !how->search->by_interaction && !job->near.chromosome; /* the best attribute's best pair counts */
  long long *best;
  uint32_t *from, *perm;
  WEFT_TAKE(best, host, job->batch);
  WEFT_TAKE(from, host, job->batch * job->bits);
  WEFT_TAKE(perm, host, (size_t) ctx->threads * p->n);
  for (size_t g = 0; g < p->group_count; g++) whole &= p->groups[g].side == 3;
  sides.start = whole ? job->start : NULL;
  for (size_t first = 0; first < how->sets; first += job->batch) {
    const uint32_t sets = how->sets - first < job->batch ? (uint32_t) (how->sets - first) : job->batch;
    WEFT_TRY(weft_poll(ctx, (double) first, (double) how->sets));
    for (uint32_t k = 0; k < sets; k++) best[k] = LLONG_MIN;
    WEFT_CUDA(cudaMemcpyAsync(job->best, best, sets * sizeof *best, cudaMemcpyHostToDevice, s));
    WEFT_CUDA(cudaMemcpyAsync(job->start, best, sets * sizeof *best, cudaMemcpyHostToDevice, s));
    WEFT_TRY(draw_labels(ctx, job, first, sets, from, perm));
    WEFT_TRY(arrange(ctx, &sides, sets, s));
    WEFT_TRY(count_found(ctx, job, sets));
    WEFT_TRY(search_sets(ctx, job, sets, first));
    WEFT_CUDA(cudaMemcpyAsync(best, job->best, sets * sizeof *best, cudaMemcpyDeviceToHost, s));
    WEFT_CUDA(cudaStreamSynchronize(s));
    for (uint32_t k = 0; k < sets; k++)
      how->greatest[first + k] = best[k] == LLONG_MIN ? -INFINITY : weft_mi_bits(best[k], p->f.unit, p->n);
  }
done:
  return st;
}

extern "C" weft_status weft_mi_relabel_cuda(weft_ctx *ctx, const weft_mi_pack *pack, weft_mi_resident **device,
                                            const weft_mi_relabelling *how, int *done_here)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  weft_device_arena mem = weft_device_begin(ctx);
  unsigned int *at_least;
  mi_block_plan plan;
  labels_job job;
  *done_here = 0;
  memset(&job, 0, sizeof job);
  if (!weft_mi_labels_fit(ctx, pack) || !weft_mi_device_holds(ctx, pack, 0, &plan)) goto done;
  if (!*device) WEFT_TRY(weft_mi_resident_make(ctx, pack, device));
  job.pack = pack;
  job.how = how;
  job.r = *device;
  job.mem = &mem;
  job.counted = pack->class_rows[1] < pack->class_rows[0];
  job.steps_all = steps_of(pack->n);
  job.steps = steps_of(pack->class_rows[job.counted]);
  job.bits = (size_t) job.steps * STEP_BITS;
  job.all.room = (pack->p + WEFT_PLANES_B - 1) / WEFT_PLANES_B * WEFT_PLANES_B;
  job.all.count = pack->p;
  job.bytes = arranged_bytes_of(job.all.room, job.bits);
  job.steepest = weft_mi_steepest(pack->class_rows[job.counted] / (double) pack->n);
  choose_batch(ctx, &job);
  if (!job.batch) goto done;
  WEFT_TRY(begin_labels(ctx, &host, &job));
  WEFT_TRY(run_sets(ctx, &host, &job));
  WEFT_TAKE(at_least, &host, how->count);
  WEFT_CUDA(cudaMemcpyAsync(at_least, job.at_least, how->count * sizeof *at_least, cudaMemcpyDeviceToHost, mem.stream));
  WEFT_CUDA(cudaStreamSynchronize(mem.stream));
  for (size_t k = 0; k < how->count; k++) how->at_least[k] = at_least[k];
  *done_here = 1;
done:
  weft_device_end(&mem);
  weft_arena_end(&host);
  return st;
}
