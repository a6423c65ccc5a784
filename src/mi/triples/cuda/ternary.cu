/* The search for triples with rows sorted by the fixed attribute's level (triples/cuda/ternary_screen.cuh): planes are
 * sorted for some fixed attributes at a time, screened (ternary_hopper.cu), and what passed is scored
 * (ternary_score.cu).
 *
 * Attributes are taken in order of their information alone, so that the fixed one is the strongest of a triple: the
 * bound is exact in that one's information. */
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <type_traits>
#include "mi/pairs/cuda/counted_hopper.cuh"
#include "mi/search/cuda/progress.cuh"
#include "mi/triples/cuda/ternary.cuh"
#include "mi/pairs/cuda/binary_hopper.cuh"
#include "mi/pack/cuda/capacity.cuh"
#include "mi/triples/cuda/ternary_hopper.cuh"
#include "mi/triples/cuda/ternary_score.cuh"

#define PLANES ARRANGED_PLANES
#define LEVELS TRIPLE_LEVELS
#define SORTED_BYTES 80e6 /* of what is sorted for one launch */
#define CANDIDATES (1u << 23)
#define TURNS 2                         /* launches that have buffers of their own */
#define SLACK_UNITS ((int64_t) 1 << 20) /* with four per row, more than the rounding of f adds up to */

/* ---- sorting ---- */

struct sort_args {
  mi_sorted sorted; /* fixed, fixed_count, base, bytes, room, of */
  mi_placed p;
  arranged_planes all;
  uint32_t *from; /* [fixed][bit]: the rows in the fixed attribute's order */
  size_t bits;    /* of one */
  uint8_t *planes;
  weft_words_side *margins;
};

/* One warp per run of a fixed attribute: the rows of a class in a level, in order. */
__global__ static void __launch_bounds__(ARRANGE_THREADS) list_rows(const __grid_constant__ sort_args args)
{
  const uint32_t warp = (blockIdx.x * ARRANGE_THREADS + threadIdx.x) / 32, lane = threadIdx.x % 32;
  const uint32_t index = warp / (2 * LEVELS), run = warp % (2 * LEVELS), level = run / 2, c = run % 2;
  if (index >= args.sorted.fixed_count) return;
  const uint32_t fixed = args.sorted.fixed[index];
  uint32_t *const from = args.from + index * args.bits;
  const uint32_t end = args.sorted.of[fixed].start[run + 1] * STEP_BITS;
  uint32_t at = args.sorted.of[fixed].start[run] * STEP_BITS;
  for (uint32_t w0 = args.p.first[c]; w0 < args.p.last[c]; w0 += 32) {
    const uint32_t w = w0 + lane;
    uint32_t rows = 0;
    if (w < args.p.last[c]) {
      const uint32_t zero = plane_word(args.p, fixed, 0, w), one = plane_word(args.p, fixed, 1, w);
      rows = level == 0 ? zero : level == 1 ? one : valid_rows(args.p, c, w) & ~(zero | one);
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

/* One warp per block of 128 rows of planes in a level of a fixed attribute. */
__global__ static void __launch_bounds__(FEW_THREADS) sort_planes(const __grid_constant__ sort_args args)
{
  const uint32_t warp = (blockIdx.x * FEW_THREADS + threadIdx.x) / 32, lane = threadIdx.x % 32;
  const uint32_t before = args.sorted.base / WEFT_PLANES_A,
                 blocks = (uint32_t) (args.all.room / WEFT_PLANES_A) - before;
  const uint32_t index = warp / (LEVELS * blocks), level = warp / blocks % LEVELS, block = before + warp % blocks;
  if (index >= args.sorted.fixed_count) return;
  const weft_triples_fixed *const of = args.sorted.of + args.sorted.fixed[index];
  const uint32_t *const from = args.from + index * args.bits, steps = of->start[2 * LEVELS];
  uint8_t *const out = args.planes + index * args.sorted.bytes - (size_t) before * steps * BLOCK_BYTES;
  uint32_t count[2][4] = { { 0, 0, 0, 0 }, { 0, 0, 0, 0 } };
#pragma unroll
  for (uint32_t c = 0; c < 2; c++)
    arrange_run(args.all, from, block, 2 * of->start[2 * level + c], 2 * of->start[2 * level + c + 1], steps, out,
                count[c]);
  for (uint32_t i = 0; i < 4; i++) {
    const size_t row = (size_t) block * 128 + i * 32 + lane, attribute = weft_planes_attribute(row) - args.sorted.base;
    args.margins[(index * LEVELS + level) * args.sorted.room + attribute].plane[weft_planes_plane(row)] =
        weft_planes_pack(count[0][i], count[1][i]);
  }
}

/* ---- host ---- */

struct sorted_job {
  const weft_mi_pack *pack;
  const weft_mi_resident *resident;
  weft_device_arena *mem;
  uint32_t *order; /* place of a position */
  mi_placed p;
  arranged_planes all;
  weft_triples_fixed *of;
  uint32_t *column, *margins_of_all;
  uint4 *words;
  float *pairs;
  unsigned long long *best;
  uint32_t *from[TURNS];
  uint8_t *planes[TURNS];
  weft_words_side *margins[TURNS];
  unsigned long long *items[TURNS];
  uint32_t *counts, *host_counts; /* of the launches of a run */
  uint32_t max_steps, batch, capacity;
  int gains;
  double parts;
  cudaStream_t side; /* sorts for the next launch, and scores what passed in the one before */
  cudaEvent_t begun, sorted[TURNS], screened[TURNS], scored;
};

static size_t bytes_of_planes(const sorted_job *job)
{
  return PLANES * job->all.room * ((size_t) job->max_steps * STEP_BITS / 8);
}

/* One block of the device's memory for all. NULL: its size. */
static size_t lay_out(sorted_job *job, uint8_t *block)
{
  const size_t count = job->all.count, room = job->all.room, bits = (size_t) job->max_steps * STEP_BITS;
  size_t at = 0;
  const auto part = [&](auto *&field, size_t items) {
    field = (std::remove_reference_t<decltype(field)>) (block + at);
    at += (items * sizeof *field + 255) / 256 * 256;
  };
  part(job->of, count);
  part(job->column, count);
  part(job->margins_of_all, PLANES * count);
  part(job->best, 1);
  part(job->counts, count);
  for (int k = 0; k < TURNS; k++) {
    part(job->from[k], job->batch * bits);
    part(job->planes[k], job->batch * bytes_of_planes(job));
    part(job->margins[k], job->batch * LEVELS * room);
    part(job->items[k], (size_t) job->capacity);
  }
  part(job->words, room * room);
  if (job->gains) part(job->pairs, room * room);
  return at;
}

/* How many attributes are held fixed in one launch; 0: no room. */
static uint32_t choose_batch(weft_ctx *ctx, sorted_job *job)
{
  const double bits = job->max_steps * (double) STEP_BITS,
               sides = LEVELS * sizeof(weft_words_side) * (double) job->all.room,
               one = (double) bytes_of_planes(job) + 4 * bits + sides;
  const double arranged = (double) job->all.room * 8 * job->resident->words + 1e6;
  job->batch = (uint32_t) fmax(1, fmin(fmin(MAX_FIXED, (double) job->all.count), SORTED_BYTES / one));
  while (job->batch && (double) lay_out(job, NULL) + arranged > 0.9 * weft_device_available(ctx)) job->batch /= 2;
  return job->batch;
}

/* Everything that depends on positions. */
static weft_status place_all(weft_ctx *ctx, weft_arena *host, sorted_job *job)
{
  weft_status st = WEFT_OK;
  const weft_mi_pack *p = job->pack;
  const cudaStream_t stream = job->mem->stream;
  uint32_t *order, *column, *margins;
  weft_triples_fixed *of;
  int64_t *alone;
  uint8_t *block;
  WEFT_TAKE(order, host, p->p);
  WEFT_TAKE(column, host, p->p);
  WEFT_TAKE(margins, host, PLANES * p->p);
  WEFT_TAKE(of, host, p->p);
  WEFT_TAKE(alone, host, p->p);
  weft_mi_marginals(p, alone);
  std::iota(order, order + p->p, 0u);
  std::stable_sort(order, order + p->p, [&](uint32_t a, uint32_t b) { return alone[a] > alone[b]; });
  for (size_t k = 0; k < p->p; k++) {
    const weft_mi_group *group = &p->groups[p->group_of[order[k]]];
    uint32_t level[LEVELS][2];
    for (uint32_t c = 0; c < 2; c++) {
      level[2][c] = p->class_rows[c];
      for (uint32_t q = 0; q < PLANES; q++) {
        level[q][c] =
            q < group->shape.planes ? p->margins[c * p->plane_rows + weft_mi_plane_row(group, order[k], q)] : 0;
        level[2][c] -= level[q][c];
      }
    }
    for (uint32_t q = 0; q < PLANES; q++) margins[q * p->p + k] = weft_planes_pack(level[q][0], level[q][1]);
    of[k] = weft_triples_fix(level, (double) alone[order[k]] * p->f.unit, STEP_BITS);
    if (of[k].start[2 * LEVELS] > job->max_steps) job->max_steps = of[k].start[2 * LEVELS];
    column[k] = p->column[order[k]];
  }
  job->order = order;
  if (!choose_batch(ctx, job)) goto done;
  WEFT_DEVICE_TAKE(block, job->mem, lay_out(job, NULL));
  lay_out(job, block);
  WEFT_CUDA(cudaMemcpyAsync(job->of, of, p->p * sizeof *of, cudaMemcpyHostToDevice, stream));
  WEFT_CUDA(cudaMemcpyAsync(job->column, column, p->p * sizeof *column, cudaMemcpyHostToDevice, stream));
  WEFT_CUDA(
      cudaMemcpyAsync(job->margins_of_all, margins, PLANES * p->p * sizeof *margins, cudaMemcpyHostToDevice, stream));
  WEFT_CUDA(cudaStreamSynchronize(stream)); /* these end here */
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

/* What all pairs say. By information alone, the triples with the best pair give the search a threshold when they are as
 * many as it keeps. */
static weft_status look_at_pairs(weft_ctx *ctx, const sorted_job *job, mi_collector *collector)
{
  weft_status st = WEFT_OK;
  const weft_mi_pack *p = job->pack;
  const int behind = !collector->search->by_interaction && !(collector->search->min_gain > -INFINITY) &&
                     collector->keeper.bounded && collector->keeper.best.k + 2 <= p->p;
  unsigned long long best;
  mi_sorted_pairs args;
  memset(&args, 0, sizeof args);
  args.p = job->p;
  args.margins = job->margins_of_all;
  args.words = job->words;
  args.ld = job->all.room;
  args.f = job->resident->f;
  args.class_fixed = p->class_fixed;
  args.pairs = job->pairs;
  args.best = job->best;
  WEFT_CUDA(cudaMemsetAsync(args.best, 0, sizeof *args.best, job->mem->stream));
  if (args.pairs) WEFT_CUDA(cudaMemsetAsync(args.pairs, 0, args.ld * args.ld * sizeof *args.pairs, job->mem->stream));
  WEFT_TRY(weft_mi_sorted_pairs(ctx, &args, job->mem->stream));
  WEFT_CUDA(cudaMemcpyAsync(&best, args.best, sizeof best, cudaMemcpyDeviceToHost, job->mem->stream));
  WEFT_CUDA(cudaStreamSynchronize(job->mem->stream));
  if (behind) {
    const int64_t sure = (int64_t) best - SLACK_UNITS - 4 * (int64_t) p->n;
    const double threshold = weft_mi_bits(sure, p->f.unit, p->n);
    if (sure > 0 && threshold > collector->threshold.score) {
      collector->threshold.score = threshold;
      collector->started = 1;
    }
  }
done:
  return st;
}

/* Fixed attributes k .. k+count-1 of this part, the last positions first: they have the fewest pairs behind them. */
static mi_sorted describe(const sorted_job *job, const mi_collector *collector, uint64_t k, uint32_t count, int turn)
{
  const double n = (double) job->pack->n;
  const mi_threshold *threshold = &collector->threshold;
  const double mi = threshold->by_interaction ? threshold->min_mi : fmax(threshold->min_mi, threshold->score),
               gain = threshold->by_interaction ? fmax(threshold->min_gain, threshold->score) : threshold->min_gain;
  uint32_t least = UINT32_MAX;
  mi_sorted sorted;
  memset(&sorted, 0, sizeof sorted);
  sorted.planes = job->planes[turn];
  sorted.bytes = bytes_of_planes(job);
  sorted.margins = job->margins[turn];
  sorted.of = job->of;
  sorted.fixed_count = count;
  for (uint32_t i = 0; i < count; i++) {
    sorted.fixed[i] = (uint32_t) (job->all.count - 3 - unit_dealt(collector, k + i));
    if (sorted.fixed[i] < least) least = sorted.fixed[i];
  }
  sorted.base = (least + 1) / WEFT_PLANES_B * WEFT_PLANES_B;
  sorted.count = (uint32_t) job->all.count;
  sorted.room = job->all.room - sorted.base;
  sorted.grid.tiles_a = (sorted.count - sorted.base + WEFT_PLANES_A - 1) / WEFT_PLANES_A;
  sorted.grid.tiles_b = (sorted.count - sorted.base + WEFT_PLANES_B - 1) / WEFT_PLANES_B;
  sorted.grid.same = 1;
  sorted.tiles = (uint32_t) tiles_of(&sorted.grid);
  sorted.units = sorted.tiles * count;
  sorted.threshold_mi = (float) (mi * n);
  sorted.threshold_gain = (float) (gain * n);
  sorted.pairs = gain > -INFINITY ? job->pairs : NULL;
  sorted.ld = job->all.room;
  sorted.many = job->pack->n > WEFT_WORDS_FEW;
  sorted.magic = WEFT_WORDS_MAGIC;
  sorted.passed.items = job->items[turn];
  sorted.passed.capacity = job->capacity;
  return sorted;
}

/* Sorts the rows of some fixed attributes by level and class, and makes the planes and margins of all attributes in
 * that order. turn: which of the two sets of buffers. */
static weft_status sort_rows(weft_ctx *ctx, const sorted_job *job, const mi_sorted *sorted, int turn,
                             cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  const uint32_t runs = sorted->fixed_count * 2 * LEVELS,
                 warps = sorted->fixed_count * LEVELS * (uint32_t) ((job->all.room - sorted->base) / WEFT_PLANES_A);
  sort_args sort;
  memset(&sort, 0, sizeof sort);
  sort.sorted = *sorted;
  sort.p = job->p;
  sort.all = job->all;
  sort.from = job->from[turn];
  sort.bits = (size_t) job->max_steps * STEP_BITS;
  sort.planes = job->planes[turn];
  sort.margins = job->margins[turn];
  list_rows<<<(runs + ARRANGE_WARPS - 1) / ARRANGE_WARPS, ARRANGE_THREADS, 0, stream>>>(sort);
  WEFT_CUDA(cudaGetLastError());
  sort_planes<<<(warps * 32 + FEW_THREADS - 1) / FEW_THREADS, FEW_THREADS, 0, stream>>>(sort);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

/* Scores exactly what passed the screen, and appends what is not behind the threshold to the hits. */
static weft_status score(weft_ctx *ctx, const sorted_job *job, const mi_sorted *sorted, const mi_collector *collector,
                         cudaStream_t stream)
{
  const mi_threshold *threshold = &collector->threshold;
  const double least = threshold->by_interaction ? fmax(threshold->min_gain, threshold->score) : threshold->min_gain;
  mi_sorted_scores a;
  memset(&a, 0, sizeof a);
  a.p = job->p;
  a.passed = sorted->passed;
  a.margins = job->margins_of_all;
  a.words = job->words;
  a.pairs = sorted->pairs;
  a.ld = sorted->ld;
  a.all = weft_planes_pack(job->pack->class_rows[0], job->pack->class_rows[1]);
  a.n = job->pack->n;
  a.share = 1 / (double) job->pack->n;
  a.min_mi = threshold->by_interaction ? threshold->min_mi : fmax(threshold->min_mi, threshold->score);
  a.min_gain = least - 1e-6; /* pairs are rounded to 24 bits, and say no more than a bit */
  a.column = job->column;
  a.columns = job->pack->columns;
  a.f = job->resident->f;
  a.class_fixed = job->pack->class_fixed;
  a.threshold = *threshold;
  a.hits = collector->hits;
  return weft_mi_sorted_score(ctx, &a, stream);
}

/* Repeats a launch of which more passed than there is room for, in pieces so small that this cannot happen. */
static weft_status run_in_pieces(weft_ctx *ctx, const sorted_job *job, mi_sorted *sorted, const mi_collector *collector)
{
  weft_status st = WEFT_OK;
  const uint32_t units = sorted->units, piece = job->capacity / (WEFT_PLANES_A * WEFT_PLANES_B);
  unsigned long long found = 0;
  WEFT_TRY(sort_rows(ctx, job, sorted, 0, collector->stream));
  for (sorted->first = 0; sorted->first < units && found <= collector->hits.capacity; sorted->first += piece) {
    sorted->units = units - sorted->first < piece ? units - sorted->first : piece;
    WEFT_TRY(weft_poll(ctx, collector->before, 1));
    WEFT_CUDA(cudaMemsetAsync(sorted->passed.count, 0, sizeof *sorted->passed.count, collector->stream));
    WEFT_TRY(weft_mi_sorted_screen(ctx, sorted, collector->stream));
    WEFT_TRY(score(ctx, job, sorted, collector, collector->stream));
    WEFT_CUDA(cudaMemcpyAsync(&found, collector->hits.count, sizeof found, cudaMemcpyDeviceToHost, collector->stream));
    WEFT_CUDA(cudaStreamSynchronize(collector->stream));
  }
done:
  return st;
}

/* Scores what passed in launch k when that has finished. */
static weft_status score_behind(weft_ctx *ctx, const sorted_job *job, const mi_sorted *sorted, size_t k,
                                const mi_collector *collector)
{
  weft_status st = WEFT_OK;
  WEFT_CUDA(cudaStreamWaitEvent(job->side, job->screened[k % TURNS], 0));
  WEFT_TRY(score(ctx, job, sorted, collector, job->side));
done:
  return st;
}

/* Two streams: while a launch is screened, rows are sorted for the next, and what passed in the one before is scored. A
 * launch's buffers were last used two launches before, whose scores come before this one's sorting. */
static weft_status run_launches(weft_ctx *ctx, const sorted_job *job, const mi_collector *collector, uint64_t first,
                                uint64_t count)
{
  weft_status st = WEFT_OK;
  mi_sorted sorted[TURNS];
  size_t k = 0;
  WEFT_CUDA(cudaEventRecord(job->begun, collector->stream));
  WEFT_CUDA(cudaStreamWaitEvent(job->side, job->begun, 0));
  for (uint64_t at = 0; at < count; at += job->batch, k++) {
    const int turn = (int) (k % TURNS);
    const uint32_t now = count - at < job->batch ? (uint32_t) (count - at) : job->batch;
    sorted[turn] = describe(job, collector, first + at, now, turn);
    sorted[turn].passed.count = job->counts + k;
    WEFT_TRY(sort_rows(ctx, job, &sorted[turn], turn, job->side));
    WEFT_CUDA(cudaEventRecord(job->sorted[turn], job->side));
    WEFT_CUDA(cudaStreamWaitEvent(collector->stream, job->sorted[turn], 0));
    WEFT_TRY(weft_mi_sorted_screen(ctx, &sorted[turn], collector->stream));
    WEFT_CUDA(cudaEventRecord(job->screened[turn], collector->stream));
    if (k) WEFT_TRY(score_behind(ctx, job, &sorted[(k - 1) % TURNS], k - 1, collector));
  }
  WEFT_TRY(score_behind(ctx, job, &sorted[(k - 1) % TURNS], k - 1, collector));
  WEFT_CUDA(cudaEventRecord(job->scored, job->side));
  WEFT_CUDA(cudaStreamWaitEvent(collector->stream, job->scored, 0));
done:
  return st;
}

/* Launches fixed attributes first .. first+count-1, then looks at how many triples passed: a launch of which more
 * passed than its buffer holds is done again in pieces. */
static weft_status run_sorted(weft_ctx *ctx, void *data, mi_collector *collector, uint64_t first, uint64_t count)
{
  weft_status st = WEFT_OK;
  const sorted_job *job = (const sorted_job *) data;
  const size_t launches = (size_t) ((count + job->batch - 1) / job->batch);
  mi_sorted sorted;
  WEFT_CUDA(cudaMemsetAsync(job->counts, 0, launches * sizeof *job->counts, collector->stream));
  WEFT_TRY(run_launches(ctx, job, collector, first, count));
  WEFT_CUDA(cudaMemcpyAsync(job->host_counts, job->counts, launches * sizeof *job->counts, cudaMemcpyDeviceToHost,
                            collector->stream));
  WEFT_CUDA(cudaStreamSynchronize(collector->stream));
  for (size_t k = 0; k < launches; k++) {
    const uint64_t from = first + k * job->batch, left = first + count - from;
    if (job->host_counts[k] <= job->capacity) continue;
    sorted = describe(job, collector, from, left < job->batch ? (uint32_t) left : job->batch, 0);
    sorted.passed.count = job->counts + k;
    WEFT_TRY(run_in_pieces(ctx, job, &sorted, collector));
  }
done:
  return st;
}

/* Roughly how many triples come before a part's unit. */
static double sorted_until(const void *data, uint64_t units)
{
  const double parts = ((const sorted_job *) data)->parts, before = (double) units * parts;
  return before * (before + 1) * (before + 2) / 6 / parts;
}

static weft_status open_streams(weft_ctx *ctx, sorted_job *job)
{
  weft_status st = WEFT_OK;
  cudaEvent_t *const events[] = { &job->begun,       &job->sorted[0],   &job->sorted[1],
                                  &job->screened[0], &job->screened[1], &job->scored };
  WEFT_CUDA(cudaStreamCreateWithFlags(&job->side, cudaStreamNonBlocking));
  for (cudaEvent_t *event : events) WEFT_CUDA(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
done:
  return st;
}

static void close_streams(const sorted_job *job)
{
  const cudaEvent_t events[] = { job->begun,       job->sorted[0],   job->sorted[1],
                                 job->screened[0], job->screened[1], job->scored };
  if (job->side) {
    cudaStreamSynchronize(job->side);
    cudaStreamDestroy(job->side);
  }
  for (cudaEvent_t event : events)
    if (event) cudaEventDestroy(event);
}

/* Places all buffers, orders attributes by what they say alone, counts pairs, which give the threshold, and runs the
 * fixed attributes. *done_here stays 0 where the device has no room. */
weft_status weft_mi_hopper_sorted(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                  const weft_mi_resident *resident, mi_collector *collector, int *done_here)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  const double p = (double) pack->p, possible = p * (p - 1) * (p - 2) / 6;
  sorted_job job;
  *done_here = 0;
  memset(&job, 0, sizeof job);
  job.pack = pack;
  job.resident = resident;
  job.mem = mem;
  job.gains = collector->search->by_interaction || collector->search->min_gain > -INFINITY;
  job.parts = (double) collector->search->parts;
  job.capacity = (uint32_t) fmin(CANDIDATES, fmax(possible, WEFT_PLANES_A * WEFT_PLANES_B));
  job.all.count = pack->p;
  job.all.room = (pack->p + WEFT_PLANES_B - 1) / WEFT_PLANES_B * WEFT_PLANES_B;
  WEFT_TRY(place_all(ctx, &host, &job));
  if (!job.batch) goto done;
  WEFT_TRY(open_streams(ctx, &job));
  WEFT_TRY(weft_mi_arranged_in_order(ctx, mem, pack, resident, job.order, &job.all));
  describe_planes(&job);
  WEFT_TAKE(job.host_counts, &host, pack->p);
  WEFT_TRY(look_at_pairs(ctx, &job, collector));
  {
    const double limit = 0.02 / (1.5e-11 + (double) pack->n * 1e-15);
    const mi_runner fixed = { &job, units_dealt(collector, pack->p - 2), limit, run_sorted, sorted_until };
    WEFT_TRY(weft_mi_run_all(ctx, collector, &fixed));
  }
  *done_here = 1;
done:
  close_streams(&job);
  weft_arena_end(&host);
  return st;
}
