/* Selection on a device; see regulation.h. Half after half, and within a half some thousand targets at once:
 *
 *   pack      a warp per gene: scores of the half's rows in two digits of base 64 (digits.cuh), sums and variances
 *   multiply  products of all features, and of targets with features, on 8-bit tensor cores
 *   choose    a block per target
 *
 * Sparse cells are unpacked half by half into the same digits.
 *
 * A block keeps no state of its features: what is left of each in a step is computed again from the products with those
 * chosen so far. That is some ten values of 32 bits per feature and step, instead of as many doubles that would have to
 * be kept, and gives the same bits as the CPU, which keeps them (step.h). */
/* Build: exact. */
#include <cstring>
#include "core/device/device.cuh"
#include "core/call/parallel.h"
#include "regulation/regulation.h"
#include "regulation/cuda/digits.cuh"
#include "regulation/both/step.h"

#define WARPS 8                    /* of a block that packs */
#define THREADS 256                /* of a block that chooses */
#define AT_ONCE ((size_t) 1 << 26) /* products of targets with features that are kept */
#define CHOICES_KEPT ((size_t) 1 << 24)
#define DIGITS_KEPT ((size_t) 1 << 31) /* of one digit of targets */
#define KINDS 3
#define FULL 0xffffffffu

struct half_view {
  const int32_t *products;                       /* features × features */
  const double *sum, *variance, *least, *favour; /* features; kinds × padded twice; regulators */
  size_t regulators, padded;
  double m;
};

/* ---- packing ---- */

__device__ static long long warp_sum(long long x)
{
  for (int step = 16; step; step /= 2) x += __shfl_xor_sync(FULL, x, step);
  return x;
}

struct pack_job {
  const int16_t *scores;                /* p × n, gene after gene */
  const int32_t *gene, *rows, *partner; /* partner: NULL, or the row that stands for each */
  size_t n, m, depth, count, padded;
  int8_t *digits;                 /* weft_digits, `padded` rows per part */
  size_t plane;                   /* bytes of one digit of all */
  double *sum, *variance, *least; /* of regulators */
};

__device__ static int score_at(const pack_job &job, size_t gene, size_t k)
{
  if (k >= job.m) return 0;
  const int32_t row = job.rows[k];
  return job.scores[gene * job.n + (job.partner ? job.partner[row] : row)];
}

__device__ static void put_digits(const pack_job &job, size_t row, size_t k, int value)
{
  const int high = weft_high_digit(value);
  job.digits[row * job.depth + k] = (int8_t) (value - 64 * high);
  job.digits[job.plane + row * job.depth + k] = (int8_t) high;
}

/* A target, not divided into parts. */
__global__ static void pack_targets(pack_job job)
{
  const size_t target = blockIdx.x * (size_t) WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (target >= job.count) return;
  const size_t gene = (size_t) job.gene[target];
  long long sum = 0;
  for (size_t k = lane; k < job.depth; k += 32) {
    const int v = score_at(job, gene, k);
    put_digits(job, target, k, v);
    sum += v;
  }
  sum = warp_sum(sum);
  if (lane == 0) job.sum[target] = (double) sum;
}

__device__ static void put_moments(const pack_job &job, size_t j, int kind, double sum, double squares)
{
  const double variance = weft_regulation_covariance((double) job.m, squares, sum, sum);
  job.variance[kind * job.padded + j] = variance;
  job.least[kind * job.padded + j] = weft_regulation_min_residual(variance);
}

template <bool HINGES>
__device__ static void note_regulator(const pack_job &job, size_t j, const long long (&sum)[2],
                                      const long long (&squares)[2])
{
  job.sum[j] = (double) sum[0];
  put_moments(job, j, 0, (double) (sum[0] + sum[1]), (double) (squares[0] + squares[1]));
  if (!HINGES) return;
  job.sum[job.padded + j] = (double) sum[1];
  put_moments(job, j, 1, (double) sum[0], (double) squares[0]);
  put_moments(job, j, 2, (double) sum[1], (double) squares[1]);
}

/* A regulator, divided into its parts. */
template <bool HINGES> __global__ static void pack_regulators(pack_job job)
{
  const size_t j = blockIdx.x * (size_t) WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (j >= job.count) return;
  const size_t gene = (size_t) job.gene[j];
  long long sum[2] = { 0, 0 }, squares[2] = { 0, 0 };
  for (size_t k = lane; k < job.depth; k += 32) {
    const int v = score_at(job, gene, k), first = HINGES && v < 0 ? 0 : v, second = v - first;
    put_digits(job, j, k, first);
    if (HINGES) put_digits(job, job.padded + j, k, second);
    sum[0] += first;
    sum[1] += second;
    squares[0] += first * first;
    squares[1] += second * second;
  }
  for (int part = 0; part < 2; part++) {
    sum[part] = warp_sum(sum[part]);
    squares[part] = warp_sum(squares[part]);
  }
  if (lane == 0) note_regulator<HINGES>(job, j, sum, squares);
}

/* ---- packing of sparse cells ---- */

/* Where a stored value stands in the half at hand. */
struct cells_view {
  const int32_t *starts, *rows, *absent, *position;
  const int16_t *scores;
  const int32_t *place;   /* of each block: which one of the half's it is, or -1 */
  const int32_t *inverse; /* NULL, or where each row of the targets stands */
  int32_t block_rows;
};

__device__ static int64_t place_of(const cells_view &x, int64_t stored)
{
  const int32_t row = x.rows[stored], at = x.position[x.inverse ? x.inverse[row] : row];
  const int32_t block = at < 0 ? -1 : x.place[at / x.block_rows];
  return block < 0 ? -1 : (int64_t) block * x.block_rows + at % x.block_rows;
}

/* A target's value where nothing is stored, then its stored values. */
__global__ static void pack_cell_targets(pack_job job, cells_view x)
{
  const size_t target = blockIdx.x * (size_t) WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (target >= job.count) return;
  const int32_t gene = job.gene[target], absent = x.absent[gene];
  long long sum = 0;
  for (size_t k = lane; k < job.depth; k += 32) put_digits(job, target, k, k < job.m ? absent : 0);
  __syncwarp();
  for (int64_t s = x.starts[gene] + (int64_t) lane; s < x.starts[gene + 1]; s += 32) {
    const int64_t k = place_of(x, s);
    if (k < 0) continue;
    put_digits(job, target, (size_t) k, x.scores[s]);
    sum += x.scores[s] - absent;
  }
  sum = warp_sum(sum);
  if (lane == 0) job.sum[target] = (double) (sum + (long long) job.m * absent);
}

/* A warp for each regulator of sparse scores: writes the digits of its parts for the rows of the half, first those of
 * genes that are absent, then the stored ones. Notes its sums and sums of squares. */
template <bool HINGES> __global__ static void pack_cell_regulators(pack_job job, cells_view x)
{
  const size_t j = blockIdx.x * (size_t) WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (j >= job.count) return;
  const int32_t gene = job.gene[j], absent = x.absent[gene];
  const int absent_first = HINGES && absent < 0 ? 0 : absent, absent_second = absent - absent_first;
  long long sum[2] = { 0, 0 }, squares[2] = { 0, 0 };
  for (size_t k = lane; k < job.depth; k += 32) {
    put_digits(job, j, k, k < job.m ? absent_first : 0);
    if (HINGES) put_digits(job, job.padded + j, k, k < job.m ? absent_second : 0);
  }
  __syncwarp();
  for (int64_t s = x.starts[gene] + (int64_t) lane; s < x.starts[gene + 1]; s += 32) {
    const int64_t k = place_of(x, s);
    if (k < 0) continue;
    const int v = x.scores[s], first = HINGES && v < 0 ? 0 : v, second = v - first;
    put_digits(job, j, (size_t) k, first);
    if (HINGES) put_digits(job, job.padded + j, (size_t) k, second);
    sum[0] += first - absent_first;
    sum[1] += second - absent_second;
    squares[0] += first * first - absent_first * absent_first;
    squares[1] += second * second - absent_second * absent_second;
  }
  for (int part = 0; part < 2; part++) {
    const long long value = part ? absent_second : absent_first;
    sum[part] = warp_sum(sum[part]) + (long long) job.m * value;
    squares[part] = warp_sum(squares[part]) + (long long) job.m * value * value;
  }
  if (lane == 0) note_regulator<HINGES>(job, j, sum, squares);
}

/* ---- choosing ---- */

/* As on the CPU (selection_loops.c). MAX_KEPT: directions that may be kept. */
template <int MAX_KEPT> struct direction {
  const int32_t *with, *with_too;
  double sum, scale, share, before[MAX_KEPT];
};

template <int MAX_KEPT> struct residual {
  double r[2], d[KINDS], q[MAX_KEPT][2];
};

/* What is left of regulator j's features after `depth` directions. */
template <bool HINGES, int MAX_KEPT>
__device__ static void look(const half_view &view, const direction<MAX_KEPT> *chosen, int depth, const int32_t *with,
                            double sum, size_t j, residual<MAX_KEPT> &out)
{
  const int parts = HINGES ? 2 : 1;
#pragma unroll
  for (int part = 0; part < parts; part++) {
    const size_t at = part * view.padded + j;
    out.r[part] = weft_regulation_covariance(view.m, (double) with[at], view.sum[at], sum);
  }
#pragma unroll
  for (int kind = 0; kind < (HINGES ? KINDS : 1); kind++) out.d[kind] = view.variance[kind * view.padded + j];
#pragma unroll
  for (int k = 0; k < MAX_KEPT; k++) {
    if (k >= depth) break;
    const direction<MAX_KEPT> &c = chosen[k];
#pragma unroll
    for (int part = 0; part < parts; part++) {
      const size_t at = part * view.padded + j;
      int product = c.with[at];
      if (c.with_too) product += c.with_too[at];
      double q = weft_regulation_covariance(view.m, (double) product, view.sum[at], c.sum);
#pragma unroll
      for (int l = 0; l < k; l++) q = weft_sub(q, weft_mul(out.q[l][part], c.before[l]));
      q = weft_mul(q, c.scale);
      out.q[k][part] = q;
      out.r[part] = weft_sub(out.r[part], weft_mul(q, c.share));
      out.d[HINGES + part] = weft_sub(out.d[HINGES + part], weft_mul(q, q));
    }
    if (HINGES) {
      const double q = weft_add(out.q[k][0], out.q[k][1]);
      out.d[0] = weft_sub(out.d[0], weft_mul(q, q));
    }
  }
}

template <bool HINGES> __device__ static double of_kind(const double (&x)[2], int kind)
{
  return !HINGES || kind == 1 ? x[0] : kind == 2 ? x[1] : weft_add(x[0], x[1]);
}

struct candidate {
  double gain;
  int32_t feature;
}; /* kind * regulators + regulator */

__device__ static bool before(const candidate &a, const candidate &b)
{
  return a.gain > b.gain || (a.gain == b.gain && a.feature < b.feature);
}

__device__ static candidate best_of_block(candidate c, candidate *shared)
{
  for (int step = 16; step; step /= 2) {
    const candidate other = { __shfl_xor_sync(FULL, c.gain, step), __shfl_xor_sync(FULL, c.feature, step) };
    if (before(other, c)) c = other;
  }
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = c;
  __syncthreads();
  c = shared[0];
  for (int w = 1; w < THREADS / 32; w++)
    if (before(shared[w], c)) c = shared[w];
  return c;
}

/* Block b is for target b of those at hand. own: of each target, or -1. */
template <bool HINGES, int MAX_KEPT>
__global__ static void __launch_bounds__(THREADS)
    choose(half_view view, const int32_t *with_all, const double *sums, const int32_t *own, int steps, int32_t *choices)
{
  __shared__ direction<MAX_KEPT> chosen[MAX_KEPT];
  __shared__ candidate bests[THREADS / 32];
  const int slots = (MAX_KEPT + 2 + 3) / 4 * 4;
  __shared__ int32_t barred[slots]; /* regulators that may not be chosen: the target itself and those chosen; else -1 */
  const size_t features = view.padded * (HINGES ? 2 : 1);
  const int32_t *with = with_all + blockIdx.x * features;
  const double sum = sums[blockIdx.x];
  int32_t *out = choices + (size_t) blockIdx.x * steps;
  residual<MAX_KEPT> left;
  for (int k = (int) threadIdx.x; k < slots; k += THREADS) barred[k] = k ? -1 : own[blockIdx.x];
  for (int step = (int) threadIdx.x; step < steps; step += THREADS) out[step] = 0;
  __syncthreads();
  for (int step = 0; step < steps; step++) {
    candidate best = { 0, INT32_MAX };
    for (size_t j = threadIdx.x; j < view.regulators; j += THREADS) {
      bool out_of_it = false;
#pragma unroll
      for (int k = 0; k < slots; k++) out_of_it |= barred[k] == (int32_t) j;
      if (out_of_it) continue;
      look<HINGES, MAX_KEPT>(view, chosen, step, with, sum, j, left);
#pragma unroll
      for (int kind = 0; kind < (HINGES ? KINDS : 1); kind++) {
        const candidate c = { weft_regulation_gain(of_kind<HINGES>(left.r, kind), left.d[kind],
                                                   view.least[kind * view.padded + j], view.favour[j]),
                              (int32_t) (kind * view.regulators + j) };
        if (before(c, best)) best = c;
      }
    }
    best = best_of_block(best, bests);
    if (!(best.gain > 0)) return;
    if (threadIdx.x == 0) {
      const int kind = best.feature / (int32_t) view.regulators;
      const size_t j = (size_t) best.feature % view.regulators, negative = view.padded + j;
      look<HINGES, MAX_KEPT>(view, chosen, step, with, sum, j, left);
      const double r = of_kind<HINGES>(left.r, kind);
      out[step] = r > 0 ? best.feature + 1 : -(best.feature + 1);
      barred[step + 1] = (int32_t) j;
      if (step + 1 < steps) {
        direction<MAX_KEPT> &c = chosen[step];
        double d = left.d[0];
        if (HINGES) d = kind == 1 ? left.d[1] : kind == 2 ? left.d[2] : d;
        const double root = weft_sqrt(d);
        c.with = view.products + (kind == 2 ? negative : j) * features;
        c.with_too = HINGES && kind == 0 ? view.products + negative * features : NULL;
        c.sum = !HINGES || kind == 1 ? view.sum[j]
                : kind == 2          ? view.sum[negative]
                                     : weft_add(view.sum[j], view.sum[negative]);
        c.scale = weft_div(1.0, root);
        c.share = weft_div(r, root);
#pragma unroll
        for (int k = 0; k < MAX_KEPT; k++)
          if (k < step) c.before[k] = of_kind<HINGES>(left.q[k], kind);
      }
    }
    __syncthreads();
  }
}

template <bool HINGES>
static void launch_choose(const half_view &view, const int32_t *with, const double *sums, const int32_t *own, int steps,
                          int32_t *choices, size_t targets, cudaStream_t s)
{
  const unsigned blocks = (unsigned) targets;
  if (steps <= 5)
    choose<HINGES, 4><<<blocks, THREADS, 0, s>>>(view, with, sums, own, steps, choices);
  else if (steps <= 9)
    choose<HINGES, 8><<<blocks, THREADS, 0, s>>>(view, with, sums, own, steps, choices);
  else
    choose<HINGES, WEFT_REGULATION_MAX_STEPS - 1><<<blocks, THREADS, 0, s>>>(view, with, sums, own, steps, choices);
}

/* ---- the whole ---- */

struct resident {
  int16_t *scores;
  int32_t *regulator, *target, *own, *rows, *partner;
  int32_t *starts, *stored_rows, *absent, *position, *places, *inverse; /* of sparse cells */
  int8_t *regulator_digits, *target_digits;
  int32_t *products, *with, *choices;
  double *sum, *variance, *least, *favour, *target_sum;
  size_t padded, features, depth, block; /* block: targets at once */
  size_t kept, each;                     /* halves whose choices are kept, and how many of a half */
};

static void narrow(const void *data, size_t first, size_t count, void *out, int threads)
{
  const int32_t *from = (const int32_t *) data + first;
  int16_t *to = (int16_t *) out;
  WEFT_PARALLEL(threads)
  WEFT_FOR(static)
  for (int64_t i = 0; i < (int64_t) count; i++) to[i] = (int16_t) from[i];
}

static void copy_numbers(const void *data, size_t first, size_t count, void *out, int threads)
{
  (void) threads;
  memcpy(out, (const int32_t *) data + first, count * sizeof(int32_t));
}

static void copy_shorts(const void *data, size_t first, size_t count, void *out, int threads)
{
  (void) threads;
  memcpy(out, (const int16_t *) data + first, count * sizeof(int16_t));
}

static void copy_doubles(const void *data, size_t first, size_t count, void *out, int threads)
{
  (void) threads;
  memcpy(out, (const double *) data + first, count * sizeof(double));
}

static size_t round_up(size_t x, size_t to) { return (x + to - 1) / to * to; }

static weft_status send_numbers(weft_device_arena *mem, const int32_t *from, size_t count, int32_t **out)
{
  weft_status st = WEFT_OK;
  int32_t *there;
  WEFT_DEVICE_TAKE(there, mem, count);
  WEFT_TRY(weft_device_upload(mem, there, count, sizeof *there, copy_numbers, from));
  *out = there;
done:
  return st;
}

/* Which regulator each target is, or -1. */
static weft_status find_own(weft_ctx *ctx, weft_device_arena *mem, const weft_regulation_job *job, int32_t **out)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  int32_t *own, *of_gene;
  WEFT_TAKE(own, &host, job->targets);
  WEFT_TAKE(of_gene, &host, job->p);
  for (size_t gene = 0; gene < job->p; gene++) of_gene[gene] = -1;
  for (size_t j = 0; j < job->regulators; j++) of_gene[job->regulator[j]] = (int32_t) j;
  for (size_t target = 0; target < job->targets; target++) own[target] = of_gene[job->target[target]];
  WEFT_TRY(send_numbers(mem, own, job->targets, out));
done:
  weft_arena_end(&host);
  return st;
}

/* Scores as they are stored, where rows stand, and the place of every block in every half. */
static weft_status send_cells(weft_ctx *ctx, weft_device_arena *mem, const weft_regulation_job *job, resident *device)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  const weft_regulation_cells *x = job->cells;
  const size_t stored = (size_t) x->starts[job->p];
  int32_t *places, *inverse;
  WEFT_TAKE(places, &host, x->blocks * job->halves);
  for (size_t k = 0; k < x->blocks * job->halves; k++) places[k] = -1;
  for (size_t half = 0; half < job->halves; half++)
    for (size_t k = 0; k < x->taken; k++)
      places[half * x->blocks + (size_t) x->chosen[half * x->taken + k]] = (int32_t) k;
  WEFT_TAKE(inverse, &host, job->n * job->copies);
  for (size_t copy = 0; copy < job->copies; copy++)
    for (size_t i = 0; i < job->n; i++) inverse[copy * job->n + (size_t) job->partner[copy * job->n + i]] = (int32_t) i;
  WEFT_TRY(send_numbers(mem, places, x->blocks * job->halves, &device->places));
  WEFT_TRY(send_numbers(mem, inverse, job->n * job->copies, &device->inverse));
  WEFT_TRY(send_numbers(mem, x->starts, job->p + 1, &device->starts));
  WEFT_TRY(send_numbers(mem, x->rows, stored, &device->stored_rows));
  WEFT_TRY(send_numbers(mem, x->absent, job->p, &device->absent));
  WEFT_TRY(send_numbers(mem, x->position, job->n, &device->position));
  WEFT_DEVICE_TAKE(device->scores, mem, stored);
  WEFT_TRY(weft_device_upload(mem, device->scores, stored, sizeof *device->scores, copy_shorts, x->scores));
done:
  weft_arena_end(&host);
  return st;
}

/* Takes all device memory of a call and sends what does not change: scores or sparse cells, rows of halves, partners,
 * favours, genes. Sizes of blocks of targets follow from AT_ONCE and DIGITS_KEPT. */
static weft_status set_up(weft_ctx *ctx, weft_device_arena *mem, const weft_regulation_job *job, resident *device)
{
  weft_status st = WEFT_OK;
  device->padded = round_up(job->regulators, WEFT_DIGITS_SIDE);
  device->features = device->padded * (job->hinges ? 2 : 1);
  device->depth = round_up(job->m, WEFT_DIGITS_DEPTH);
  device->block = round_up(AT_ONCE / device->features + 1, WEFT_DIGITS_SIDE);
  if (device->block > job->targets) device->block = round_up(job->targets, WEFT_DIGITS_SIDE);
  while (device->block > WEFT_DIGITS_SIDE && device->block * device->depth > DIGITS_KEPT)
    device->block = round_up(device->block / 2, WEFT_DIGITS_SIDE);
  device->each = job->steps * job->targets * (1 + job->copies);
  device->kept = 1 + CHOICES_KEPT / device->each < job->halves ? 1 + CHOICES_KEPT / device->each : job->halves;
  WEFT_DEVICE_TAKE(device->products, mem, device->features * device->features);
  WEFT_DEVICE_TAKE(device->with, mem, device->block * device->features);
  WEFT_DEVICE_TAKE(device->choices, mem, device->each * device->kept);
  WEFT_DEVICE_TAKE(device->regulator_digits, mem, 2 * device->features * device->depth);
  WEFT_DEVICE_TAKE(device->target_digits, mem, 2 * device->block * device->depth);
  WEFT_DEVICE_TAKE(device->sum, mem, device->features);
  WEFT_DEVICE_TAKE(device->variance, mem, KINDS * device->padded);
  WEFT_DEVICE_TAKE(device->least, mem, KINDS * device->padded);
  WEFT_DEVICE_TAKE(device->target_sum, mem, device->block);
  /* rows that no gene fills are multiplied too */
  WEFT_CUDA(cudaMemsetAsync(device->regulator_digits, 0, 2 * device->features * device->depth, mem->stream));
  WEFT_CUDA(cudaMemsetAsync(device->target_digits, 0, 2 * device->block * device->depth, mem->stream));
  if (job->cells)
    WEFT_TRY(send_cells(ctx, mem, job, device));
  else {
    WEFT_DEVICE_TAKE(device->scores, mem, job->n * job->p);
    WEFT_TRY(weft_device_upload(mem, device->scores, job->n * job->p, sizeof *device->scores, narrow, job->scores));
    WEFT_TRY(send_numbers(mem, job->rows, job->m * job->halves, &device->rows));
    WEFT_TRY(send_numbers(mem, job->partner, job->n * job->copies, &device->partner));
  }
  WEFT_DEVICE_TAKE(device->favour, mem, job->regulators * (1 + job->copies));
  WEFT_TRY(weft_device_upload(mem, device->favour, job->regulators * (1 + job->copies), sizeof *device->favour,
                              copy_doubles, job->favour));
  WEFT_TRY(send_numbers(mem, job->regulator, job->regulators, &device->regulator));
  WEFT_TRY(send_numbers(mem, job->target, job->targets, &device->target));
  WEFT_TRY(find_own(ctx, mem, job, &device->own));
done:
  return st;
}

/* What cells are in one half; `world` of the targets, 0 for regulators. */
static cells_view view_cells(const weft_regulation_job *job, const resident *device, size_t half, size_t world)
{
  const cells_view x = { device->starts,
                         device->stored_rows,
                         device->absent,
                         device->position,
                         device->scores,
                         device->places + half * job->cells->blocks,
                         world ? device->inverse + (world - 1) * job->n : NULL,
                         (int32_t) job->cells->block_rows };
  return x;
}

/* Products of all features in one half. */
static cudaError_t begin_half(const weft_regulation_job *job, const resident *device, size_t half, cudaStream_t s)
{
  pack_job pack = { device->scores,
                    device->regulator,
                    job->cells ? NULL : device->rows + half * job->m,
                    NULL,
                    job->n,
                    job->m,
                    device->depth,
                    job->regulators,
                    device->padded,
                    device->regulator_digits,
                    device->features * device->depth,
                    device->sum,
                    device->variance,
                    device->least };
  const unsigned blocks = (unsigned) ((job->regulators + WARPS - 1) / WARPS);
  if (job->cells && job->hinges)
    pack_cell_regulators<true><<<blocks, 32 * WARPS, 0, s>>>(pack, view_cells(job, device, half, 0));
  else if (job->cells)
    pack_cell_regulators<false><<<blocks, 32 * WARPS, 0, s>>>(pack, view_cells(job, device, half, 0));
  else if (job->hinges)
    pack_regulators<true><<<blocks, 32 * WARPS, 0, s>>>(pack);
  else
    pack_regulators<false><<<blocks, 32 * WARPS, 0, s>>>(pack);
  weft_digits_multiply(device->regulator_digits, device->features, device->regulator_digits, device->features,
                       device->depth, device->products, s);
  return cudaGetLastError();
}

/* Choices of `count` targets from `first` on, in one world of the half. */
static cudaError_t choose_for(const weft_regulation_job *job, const resident *device, size_t half, size_t world,
                              size_t first, size_t count, int32_t *choices, cudaStream_t s)
{
  const int32_t *partner = world && !job->cells ? device->partner + (world - 1) * job->n : NULL;
  const pack_job pack = { device->scores,
                          device->target + first,
                          job->cells ? NULL : device->rows + half * job->m,
                          partner,
                          job->n,
                          job->m,
                          device->depth,
                          count,
                          0,
                          device->target_digits,
                          device->block * device->depth,
                          device->target_sum,
                          NULL,
                          NULL };
  const half_view view = {
    device->products, device->sum,    device->variance, device->least, device->favour + world * job->regulators,
    job->regulators,  device->padded, (double) job->m
  };
  const unsigned blocks = (unsigned) ((count + WARPS - 1) / WARPS);
  if (job->cells)
    pack_cell_targets<<<blocks, 32 * WARPS, 0, s>>>(pack, view_cells(job, device, half, world));
  else
    pack_targets<<<blocks, 32 * WARPS, 0, s>>>(pack);
  weft_digits_multiply(device->target_digits, device->block, device->regulator_digits, device->features, device->depth,
                       device->with, s);
  const auto launch = job->hinges ? launch_choose<true> : launch_choose<false>;
  launch(view, device->with, device->target_sum, device->own + first, (int) job->steps, choices, count, s);
  return cudaGetLastError();
}

/* The device's `select`: half by half, world by world, a block of targets at a time. Choices of several halves are kept
 * on the device before they are copied to the host. */
static weft_status select_cuda(weft_ctx *ctx, const weft_regulation_job *job, int32_t *choices)
{
  weft_status st = WEFT_OK;
  weft_device_arena mem = weft_device_begin(ctx);
  resident device;
  cudaEvent_t passed[2] = { NULL, NULL }; /* the host is at most two launches ahead, for interrupts */
  size_t turn = 0, kept = 0;
  if (!job->targets || !job->halves) goto done;
  memset(&device, 0, sizeof device);
  WEFT_TRY(set_up(ctx, &mem, job, &device));
  for (int k = 0; k < 2; k++) WEFT_CUDA(cudaEventCreateWithFlags(&passed[k], cudaEventDisableTiming));
  for (size_t half = 0; half < job->halves; half++) {
    WEFT_CUDA(begin_half(job, &device, half, mem.stream));
    for (size_t world = 0; world <= job->copies; world++) {
      for (size_t first = 0; first < job->targets; first += device.block) {
        const size_t count = job->targets - first < device.block ? job->targets - first : device.block;
        WEFT_TRY(weft_poll(ctx, (double) half, (double) job->halves));
        WEFT_CUDA(cudaEventSynchronize(passed[turn % 2]));
        WEFT_CUDA(choose_for(job, &device, half, world, first, count,
                             device.choices + kept * device.each + (world * job->targets + first) * job->steps,
                             mem.stream));
        WEFT_CUDA(cudaEventRecord(passed[turn++ % 2], mem.stream));
      }
    }
    if (++kept < device.kept && half + 1 < job->halves) continue;
    WEFT_TRY(weft_device_download(&mem, choices + (half + 1 - kept) * device.each, device.choices,
                                  kept * device.each * sizeof *choices));
    kept = 0;
  }
done:
  for (int k = 0; k < 2; k++)
    if (passed[k]) cudaEventDestroy(passed[k]);
  weft_device_end(&mem);
  return st;
}

const weft_regulation_ops weft_regulation_cuda = { select_cuda };
