/* Permutation tests of pairs of complete attributes of at most three levels, two classes of at most 65,535 rows
 * together, on Hopper: many label sets at a time. The planes of the rarer class's rows are arranged for each set
 * (arrange.cuh), and all pairs counted and screened by the kernel of permute_ternary_hopper.cu. Only the greatest score
 * of a label set is wanted, so that the host need not look before the end. The pairs that were found are scored by a
 * warp for each pair and label set. */
#include <climits>
#include <cmath>
#include <cstring>
#include "core/call/parallel.h"
#include "mi/plan.h"
#include "mi/search/cuda/arrange.cuh"
#include "mi/permutations/cuda/permute_ternary.cuh"
#include "mi/search/cuda/progress.cuh"
#include "mi/pairs/cuda/binary_hopper.cuh"
#include "mi/pack/cuda/capacity.cuh"
#include "mi/pack/cuda/pack.cuh"
#include "mi/permutations/cuda/permute_ternary_hopper.cuh"
extern "C" {
#include "mi/search/both/screen.h"
#include "mi/permutations/both/permute_ternary.h"
}

#define PLANES ARRANGED_PLANES
#define MAX_SETS 32                     /* at a time */
#define MAX_BYTES 2e9                   /* of their planes */
#define MOMENT 0.1                      /* seconds between two polls */
#define SLACK_UNITS ((int64_t) 1 << 20) /* with four per row, more than the rounding of f adds up to */

/* ---- planes of label sets ---- */

struct label_sides {
  arranged_planes all;
  const uint32_t *margins; /* [class][row of planes] */
  size_t plane_rows;
  const uint32_t *from; /* [set][bit]: the rows of the class that is counted */
  size_t bits, bytes;   /* of a set's row and of all its planes */
  uint8_t *out;
  uint32_t class_rows[2]; /* of the class that is counted, and of both */
  weft_mi_log f;
  int64_t class_fixed;
  double scale;           /* fixed point to units of the screen */
  weft_words_side *sides; /* [set][place]; NULL: planes alone */
  float *own;
  int64_t *alone;
  long long *start; /* [set]: the greatest score is no less; NULL: not known */
};

/* The information of an attribute alone, from its planes' rows in the class and in both. */
__device__ static int64_t said_alone(const weft_mi_log &f, int64_t class_fixed, const uint32_t (&class_rows)[2],
                                     const uint32_t (&in_class)[PLANES], const uint32_t (&rows)[PLANES])
{
  const uint32_t last = class_rows[0] - in_class[0] - in_class[1], last_rows = class_rows[1] - rows[0] - rows[1];
  int64_t sum = f.table[last] + f.table[last_rows - last] - f.table[last_rows] - class_fixed;
  for (uint32_t q = 0; q < PLANES; q++) sum += f.table[in_class[q]] + f.table[rows[q] - in_class[q]] - f.table[rows[q]];
  return sum > 0 ? sum : 0;
}

/* A thread per label set and attribute: its margins in the rarer class and in all rows, its information alone, and the
 * threshold that this gives the set. */
__device__ static void make_side(const label_sides &args, uint32_t set, size_t place,
                                 const uint32_t (&in_class)[PLANES])
{
  uint32_t rows[PLANES];
  weft_words_side side;
  for (uint32_t q = 0; q < PLANES; q++) {
    const uint32_t row = place < args.all.count ? args.all.plane_row[q * args.all.count + place] : UINT32_MAX;
    rows[q] = row == UINT32_MAX ? 0 : args.margins[row] + args.margins[args.plane_rows + row];
    side.plane[q] = weft_planes_pack(in_class[q], rows[q] - in_class[q]);
  }
  const int64_t alone = said_alone(args.f, args.class_fixed, args.class_rows, in_class, rows);
  const size_t at = set * args.all.room + place;
  args.sides[at] = side;
  args.alone[at] = alone;
  args.own[at] = (float) ((double) alone * args.scale);
  if (args.start && place < args.all.count)
    atomicMax(&args.start[set], (long long) (alone - SLACK_UNITS - 4 * (int64_t) args.class_rows[1]));
}

/* One warp per block of 128 rows of planes of a set. */
__global__ static void __launch_bounds__(ARRANGE_THREADS) arrange_labels(const __grid_constant__ label_sides args)
{
  const uint32_t set = blockIdx.y, lane = threadIdx.x % 32;
  const size_t block = (size_t) blockIdx.x * ARRANGE_WARPS + threadIdx.x / 32;
  const uint32_t steps = (uint32_t) (args.bits / STEP_BITS);
  uint32_t count[4] = { 0, 0, 0, 0 };
  if (block >= args.all.room / WEFT_PLANES_A) return;
  arrange_run(args.all, args.from + set * args.bits, block, 0, 2 * steps, steps, args.out + set * args.bytes, count);
  if (!args.sides) return;
  for (int i = 0; i < 4; i++) { /* plane 1 of an attribute is eight rows behind its plane 0 */
    const uint32_t plane[PLANES] = { count[i], __shfl_down_sync(0xffffffffu, count[i], 8) };
    const size_t row = block * 128 + i * 32 + lane;
    if (weft_planes_plane(row) == 0) make_side(args, set, weft_planes_attribute(row), plane);
  }
}

/* ---- the pairs that were found ---- */

struct found_args {
  arranged_planes all;
  const uint32_t *labels; /* [set][word of a row of planes]: rows of the class */
  uint32_t sets;
  const uint32_t *places; /* two a pair */
  size_t pairs;
  const double *observed;
  int by_interaction;
  uint32_t class_rows[2];
  weft_mi_log f;
  int64_t class_fixed;
  unsigned int *at_least; /* [pair] */
};

/* One thread per bit of a set. */
__global__ static void mark_labels(const uint32_t *from, size_t bits, uint32_t words, uint32_t *labels)
{
  const size_t k = (size_t) blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= bits || from[blockIdx.y * bits + k] == NOWHERE) return;
  const uint32_t bit = from[blockIdx.y * bits + k];
  atomicOr(&labels[(size_t) blockIdx.y * words + bit / 32], 1u << bit % 32);
}

/* A warp for each pair and set. */
__global__ static void __launch_bounds__(ARRANGE_THREADS) score_found(const __grid_constant__ found_args args)
{
  const uint32_t lane = threadIdx.x % 32;
  const size_t warp = ((size_t) blockIdx.x * ARRANGE_THREADS + threadIdx.x) / 32, pair = warp / args.sets;
  if (pair >= args.pairs) return;
  const uint32_t *const labels = args.labels + warp % args.sets * args.all.words,
                        *plane[4];         /* two of one, two of the other */
  uint32_t in_class[8] = {}, rows[8] = {}; /* of planes by themselves, and of one's with the other's */
  for (uint32_t q = 0; q < 4; q++) {
    const uint32_t row = args.all.plane_row[q % 2 * args.all.count + args.places[2 * pair + q / 2]];
    plane[q] = row == UINT32_MAX ? NULL : args.all.planes + (size_t) row * args.all.words;
  }
  for (uint32_t w = lane; w < args.all.words; w += 32) {
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
  weft_planes_cells(both, of_a, of_b, weft_planes_pack(args.class_rows[0], args.class_rows[1] - args.class_rows[0]),
                    cell);
  int64_t score = weft_planes_joint(&args.f, cell) - args.class_fixed;
  if (score < 0) score = 0;
  if (args.by_interaction) {
    const uint32_t k_a[2] = { in_class[0], in_class[1] }, m_a[2] = { rows[0], rows[1] },
                   k_b[2] = { in_class[2], in_class[3] }, m_b[2] = { rows[2], rows[3] };
    score -= said_alone(args.f, args.class_fixed, args.class_rows, k_a, m_a) +
             said_alone(args.f, args.class_fixed, args.class_rows, k_b, m_b);
  }
  if (lane == 0 && weft_mi_bits(score, args.f.unit, args.class_rows[1]) >= args.observed[pair])
    atomicAdd(&args.at_least[pair], 1u);
}

/* ---- host ---- */

/* What a call keeps on the device. */
struct labels_job {
  const weft_mi_pack *pack;
  const weft_mi_relabelling *how;
  const weft_mi_resident *resident;
  weft_device_arena *mem;
  arranged_planes all;
  uint32_t counted; /* the class */
  uint32_t batch;   /* sets at a time */
  int steps_all, steps;
  size_t bits, bytes; /* of a set */
  double steepest;
  uint8_t *whole, *planes, *side;
  uint32_t *from, *labels, *places;
  weft_words_side *sides;
  float *own;
  int64_t *alone;
  long long *start, *best;
  double *observed;
  unsigned int *at_least;
  weft_mi_near near;
};

static int steps_of(size_t rows) { return (int) ((rows + STEP_BITS - 1) / STEP_BITS); }

/* Roughly the bytes of a call with `sets` label sets at a time. */
static double bytes_of(const labels_job *job, double sets)
{
  const double room = (double) job->all.room, words = job->resident->words;
  return PLANES * room * (words * 4 + job->steps_all * 32.0) +
         sets * ((double) job->bytes + room * (sizeof(weft_words_side) + sizeof(float) + sizeof(int64_t)) +
                 4.0 * (double) job->bits + 4 * words) +
         1e6;
}

/* Roughly the seconds of a pair and set. */
static double seconds_of(const labels_job *job) { return (double) job->bits * 1e-15 + 4e-12; }

/* 0 in job->batch: no room. */
static void choose_batch(weft_ctx *ctx, labels_job *job)
{
  const double have = 0.9 * weft_device_available(ctx), pairs = (double) job->all.count * (double) job->all.count / 2;
  double limit = fmin(fmin(MAX_SETS, (double) job->how->sets), MAX_BYTES / (double) job->bytes);
  limit = fmin(limit, 4 * MOMENT / (pairs * seconds_of(job)));
  job->batch = limit < 1 ? 1 : (uint32_t) limit;
  while (job->batch && bytes_of(job, job->batch) > have) job->batch /= 2;
}

/* The bit of a row of planes on the device where sorted row r lies. */
static uint32_t bit_of(const weft_mi_pack *p, uint32_t r)
{
  return r < p->class_rows[0] ? r : weft_mi_resident_words(p, 1) * 32 + (r - p->class_rows[0]);
}

/* Fixed point to units of the screen. */
static double scale_of(const labels_job *job) { return job->resident->f.unit / job->steepest * WEFT_WORDS_SCALE; }

/* What the kernels that arrange a batch's planes have to know of the job. */
static label_sides sides_of(const labels_job *job)
{
  const weft_mi_pack *p = job->pack;
  label_sides args;
  memset(&args, 0, sizeof args);
  args.all = job->all;
  args.margins = job->resident->margins;
  args.plane_rows = p->plane_rows;
  args.from = job->from;
  args.bits = job->bits;
  args.bytes = job->bytes;
  args.out = job->planes;
  args.class_rows[0] = p->class_rows[job->counted];
  args.class_rows[1] = (uint32_t) p->n;
  args.f = job->resident->f;
  args.class_fixed = p->class_fixed;
  args.scale = scale_of(job);
  args.sides = job->sides;
  args.own = job->own;
  args.alone = job->alone;
  return args;
}

static weft_status arrange(weft_ctx *ctx, const label_sides *args, uint32_t sets, cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  const size_t blocks = (args->all.room / WEFT_PLANES_A + ARRANGE_WARPS - 1) / ARRANGE_WARPS;
  arrange_labels<<<dim3((unsigned) blocks, sets), ARRANGE_THREADS, 0, stream>>>(*args);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

/* The planes of all rows. */
static weft_status arrange_whole(weft_ctx *ctx, weft_arena *host, labels_job *job)
{
  weft_status st = WEFT_OK;
  const size_t n = job->pack->n, bits = (size_t) job->steps_all * STEP_BITS;
  label_sides args = sides_of(job);
  uint32_t *from, *sent;
  WEFT_TAKE(from, host, bits);
  for (size_t k = 0; k < bits; k++) from[k] = k < n ? bit_of(job->pack, (uint32_t) k) : NOWHERE;
  WEFT_TRY(weft_device_send(job->mem, from, bits, &sent));
  args.from = sent;
  args.bits = bits;
  args.out = job->whole;
  args.sides = NULL;
  WEFT_TRY(arrange(ctx, &args, 1, job->mem->stream));
done:
  return st;
}

/* Takes the device memory of a batch of label sets, and sends what all sets share: the bits of all rows, the pairs that
 * were found, their scores, and neighbours. */
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
  WEFT_TRY(weft_mi_arranged_begin(ctx, mem, p, job->resident, &job->all));
  WEFT_DEVICE_TAKE(job->whole, mem, arranged_bytes_of(job->all.room, (size_t) job->steps_all * STEP_BITS));
  WEFT_DEVICE_TAKE(job->planes, mem, job->batch * job->bytes);
  WEFT_DEVICE_TAKE(job->from, mem, job->batch * job->bits);
  WEFT_DEVICE_TAKE(job->labels, mem, job->batch * (size_t) job->resident->words);
  WEFT_DEVICE_TAKE(job->sides, mem, job->batch * job->all.room);
  WEFT_DEVICE_TAKE(job->own, mem, job->batch * job->all.room);
  WEFT_DEVICE_TAKE(job->alone, mem, job->batch * job->all.room);
  WEFT_DEVICE_TAKE(job->start, mem, job->batch);
  WEFT_DEVICE_TAKE(job->best, mem, job->batch);
  WEFT_DEVICE_TAKE(job->at_least, mem, how->count);
  WEFT_CUDA(cudaMemsetAsync(job->at_least, 0, how->count * sizeof *job->at_least, mem->stream));
  WEFT_TRY(weft_device_send(mem, side, p->p, &job->side));
  WEFT_TRY(weft_device_send(mem, places, 2 * how->count, &job->places));
  WEFT_TRY(weft_device_send(mem, how->observed, how->count, &job->observed));
  WEFT_TRY(weft_mi_send_near(mem, &how->search->near, p->columns, &job->near));
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
  WEFT_PARALLEL(weft_threads_worth(ctx->threads, 8 * (double) sets * (double) job->bits))
  WEFT_FOR(dynamic)
  for (int64_t k = 0; k < (int64_t) sets; k++) {
    uint32_t *const to = from + (size_t) k * job->bits;
    job->how->draw(job->how->data, first + (size_t) k, job->counted, perm + (size_t) WEFT_THREAD() * p->n, to);
    for (size_t i = 0; i < job->bits; i++) to[i] = i < rows ? bit_of(p, to[i]) : NOWHERE;
  }
  WEFT_CUDA(
      cudaMemcpyAsync(job->from, from, sets * job->bits * sizeof *from, cudaMemcpyHostToDevice, job->mem->stream));
done:
  return st;
}

/* Scores the pairs that were found under each label set of a batch, a warp for each, and counts those that score at
 * least as much as observed. */
static weft_status count_found(weft_ctx *ctx, const labels_job *job, uint32_t sets)
{
  weft_status st = WEFT_OK;
  const cudaStream_t stream = job->mem->stream;
  const size_t warps = job->how->count * sets, words = job->resident->words;
  found_args args;
  memset(&args, 0, sizeof args);
  if (!warps) goto done;
  args.all = job->all;
  args.labels = job->labels;
  args.sets = sets;
  args.places = job->places;
  args.pairs = job->how->count;
  args.observed = job->observed;
  args.by_interaction = job->how->search->by_interaction;
  args.class_rows[0] = job->pack->class_rows[job->counted];
  args.class_rows[1] = (uint32_t) job->pack->n;
  args.f = job->resident->f;
  args.class_fixed = job->pack->class_fixed;
  args.at_least = job->at_least;
  WEFT_CUDA(cudaMemsetAsync(job->labels, 0, sets * words * sizeof *job->labels, stream));
  mark_labels<<<dim3((unsigned) ((job->bits + 255) / 256), sets), 256, 0, stream>>>(job->from, job->bits,
                                                                                    (uint32_t) words, job->labels);
  WEFT_CUDA(cudaGetLastError());
  score_found<<<(unsigned) ((warps + ARRANGE_WARPS - 1) / ARRANGE_WARPS), ARRANGE_THREADS, 0, stream>>>(args);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

/* What the kernel that searches all pairs has to know of a batch of label sets. */
static label_args search_of(const labels_job *job, uint32_t sets)
{
  const weft_mi_pack *p = job->pack;
  const uint32_t rows[2] = { p->class_rows[job->counted], p->class_rows[1 - job->counted] };
  label_args args;
  memset(&args, 0, sizeof args);
  args.sets = sets;
  args.steps_all = job->steps_all;
  args.steps = job->steps;
  args.whole = job->whole;
  args.planes = job->planes;
  args.bytes = job->bytes;
  args.count = p->p;
  args.room = job->all.room;
  args.grid.tiles_a = (uint32_t) ((p->p + WEFT_PLANES_A - 1) / WEFT_PLANES_A);
  args.grid.tiles_b = (uint32_t) ((p->p + WEFT_PLANES_B - 1) / WEFT_PLANES_B);
  args.grid.same = 1;
  args.sides = job->sides;
  args.own = job->own;
  args.alone = job->alone;
  args.start = job->start;
  args.best = job->best;
  args.by_interaction = job->how->search->by_interaction;
  args.base = weft_words_measure(rows, job->steepest).base;
  args.scale = scale_of(job);
  args.magic = WEFT_WORDS_MAGIC;
  args.many = p->n > WEFT_WORDS_FEW;
  args.all = weft_planes_pack(rows[0], rows[1]);
  args.f = job->resident->f;
  args.class_fixed = p->class_fixed;
  args.side = job->side;
  args.column = job->resident->column;
  args.near = job->near;
  return args;
}

/* All pairs under the sets that are there: `behind` of how->sets are done. */
static weft_status search_sets(weft_ctx *ctx, const labels_job *job, uint32_t sets, size_t behind)
{
  weft_status st = WEFT_OK;
  label_args args = search_of(job, sets);
  const uint64_t tiles = tiles_of(&args.grid);
  const double each = (double) WEFT_PLANES_A * WEFT_PLANES_B * sets * seconds_of(job);
  const uint64_t limit = (uint64_t) fmax(1, MOMENT / each);
  for (args.first = 0; args.first < tiles; args.first += args.tiles) {
    args.tiles = tiles - args.first < limit ? tiles - args.first : limit;
    WEFT_TRY(weft_mi_search_labels(ctx, &args, job->mem->stream));
    if (args.first + args.tiles == tiles) break; /* what comes next waits for the stream */
    WEFT_CUDA(cudaStreamSynchronize(job->mem->stream));
    WEFT_TRY(weft_poll(ctx, (double) behind + sets * ((double) args.first / (double) tiles), (double) job->how->sets));
  }
done:
  return st;
}

/* Goes through the label sets in batches: draws labels on the host, arranges planes, scores what was found, searches
 * for the greatest score, and fetches it. Polls between batches. */
static weft_status run_sets(weft_ctx *ctx, weft_arena *host, const labels_job *job)
{
  weft_status st = WEFT_OK;
  const weft_mi_pack *p = job->pack;
  const weft_mi_relabelling *how = job->how;
  const cudaStream_t stream = job->mem->stream;
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
    WEFT_CUDA(cudaMemcpyAsync(job->best, best, sets * sizeof *best, cudaMemcpyHostToDevice, stream));
    WEFT_CUDA(cudaMemcpyAsync(job->start, best, sets * sizeof *best, cudaMemcpyHostToDevice, stream));
    WEFT_TRY(draw_labels(ctx, job, first, sets, from, perm));
    WEFT_TRY(arrange(ctx, &sides, sets, stream));
    WEFT_TRY(count_found(ctx, job, sets));
    WEFT_TRY(search_sets(ctx, job, sets, first));
    WEFT_CUDA(cudaMemcpyAsync(best, job->best, sets * sizeof *best, cudaMemcpyDeviceToHost, stream));
    WEFT_CUDA(cudaStreamSynchronize(stream));
    for (uint32_t k = 0; k < sets; k++)
      how->greatest[first + k] = best[k] == LLONG_MIN ? -INFINITY : weft_mi_bits(best[k], p->f.unit, p->n);
  }
done:
  return st;
}

/* Describes the job, chooses how many label sets go at once, and runs them all. *done_here stays 0 where shape or
 * memory do not allow it. */
extern "C" weft_status weft_mi_relabel_cuda(weft_ctx *ctx, const weft_mi_pack *pack, weft_mi_resident **device,
                                            const weft_mi_relabelling *how, int *done_here)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  weft_device_arena mem = weft_device_begin(ctx);
  unsigned int *at_least;
  mi_block_plan plan;
  labels_job job;
  const weft_mi_facts facts = weft_mi_facts_of(pack, weft_mi_wgmma_ready(ctx->device));
  *done_here = 0;
  memset(&job, 0, sizeof job);
  if (weft_mi_permutation_engine(&facts) != WEFT_MI_LABEL_SETS_TOGETHER || !weft_mi_device_holds(ctx, pack, 0, &plan))
    goto done;
  if (!*device) WEFT_TRY(weft_mi_resident_make(ctx, pack, device));
  job.pack = pack;
  job.how = how;
  job.resident = *device;
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
