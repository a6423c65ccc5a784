/* Selection on the CPU; see regulation.h. As many halves at once as a few hundred megabytes hold, each in a slot:
 *
 *   pack       (slot, panel)          scores of the half's rows as pairs, in both forms; sums and variances
 *   multiply   (slot, block of rows)  products of all features, above the diagonal
 *   mirror     (slot, block of rows)  ... and below it
 *   choose     (slot, world, block)   products with some targets, then selection for each of them
 *
 * All threads share a phase; between phases, and between runs of its items, the user is asked whether to stop. */
#include <math.h>
#include <string.h>
#include "regulation.h"
#include "regulation_loops.h"
#include "regulation_step.h"

#define LANES ((size_t) WEFT_REGULATION_LANES)
#define ROWS ((size_t) 48)        /* of products at once: a multiple of the lanes and of what kernels take */
#define SLOT_BYTES 2e8            /* of all slots, unless one needs more */

typedef struct {
  int32_t *panels, *rows, *products; /* both forms; features × features */
  double *sum, *variance, *least;
} slot;

typedef struct {
  const weft_regulation_job *job;
  const weft_regulation_loops *loops;
  size_t padded, features, panels, kp, block, blocks; /* block: targets at once */
  const int32_t *own;              /* of each target: which regulator it is, or -1 */
  double *favour;                  /* padded × worlds */
  slot *slots;
  size_t count, first;             /* slots in use, and the first one's half */
  int32_t *target_rows, *with;     /* of each thread */
  double *work;
  int32_t *choices;
} engine;

/* All items of a phase; `cost` is a rough number of operations of each. */
static weft_status all_items(weft_ctx *ctx, const engine *e, weft_regulation_item *work, size_t count, double cost)
{
  const weft_regulation_phase phase = { e->first, e->count, e->job->halves, count, cost };
  return weft_regulation_items(ctx, &phase, work, e);
}

/* A gene's scores in the half's rows (partner: in the rows that stand for these), as pairs. */
static int64_t gather(const engine *e, size_t gene, size_t half, const int32_t *partner, int16_t *out)
{
  const size_t m = e->job->m;
  const int32_t *score = e->job->scores + gene * e->job->n, *rows = e->job->rows + half * m;
  int64_t sum = 0;
  for (size_t k = 0; k < m; k++) {
    out[k] = (int16_t) score[partner ? partner[rows[k]] : rows[k]];
    sum += out[k];
  }
  if (m % 2) out[m] = 0;
  return sum;
}

/* ---- phases ---- */

static void note_moments(const engine *e, const slot *s, size_t j)
{
  const int hinges = e->job->hinges;
  const double m = (double) e->job->m;
  double sum[2] = { 0, 0 }, squares[2] = { 0, 0 };
  for (int part = 0; part <= hinges; part++) {
    const int16_t *v = (const int16_t *) (s->rows + ((size_t) part * e->padded + j) * e->kp);
    for (size_t k = 0; k < 2 * e->kp; k++) { sum[part] += v[k]; squares[part] += v[k] * v[k]; }
    s->sum[(size_t) part * e->padded + j] = sum[part];
  }
  for (int kind = 0; kind <= 2 * hinges; kind++) {
    const double whole = (kind == 2 ? 0 : sum[0]) + (kind == 1 ? 0 : sum[1]);
    const double square = (kind == 2 ? 0 : squares[0]) + (kind == 1 ? 0 : squares[1]);
    const size_t at = (size_t) kind * e->padded + j;
    s->variance[at] = weft_regulation_covariance(m, square, whole, whole);
    s->least[at] = weft_regulation_least(s->variance[at]);
  }
}

static void pack(const void *data, size_t item, int thread)
{
  const engine *e = data;
  const slot *s = &e->slots[item / (e->padded / LANES)];
  const size_t panel = item % (e->padded / LANES), half = e->first + item / (e->padded / LANES);
  const int hinges = e->job->hinges;
  (void) thread;
  for (size_t lane = 0; lane < LANES; lane++) {
    const size_t j = panel * LANES + lane;
    int16_t *positive = (int16_t *) (s->rows + j * e->kp), *negative = (int16_t *) (s->rows + (e->padded + j) * e->kp);
    if (j < e->job->regulators) gather(e, (size_t) e->job->regulator[j], half, NULL, positive);
    else memset(positive, 0, e->kp * sizeof(int32_t));
    for (size_t k = 0; hinges && k < 2 * e->kp; k++) {
      negative[k] = positive[k] < 0 ? positive[k] : 0;
      positive[k] = positive[k] > 0 ? positive[k] : 0;
    }
    note_moments(e, s, j);
    for (int part = 0; part <= hinges; part++) {
      const int32_t *from = s->rows + ((size_t) part * e->padded + j) * e->kp;
      int32_t *to = s->panels + ((size_t) part * (e->padded / LANES) + panel) * e->kp * LANES + lane;
      for (size_t k = 0; k < e->kp; k++) to[k * LANES] = from[k];
    }
  }
}

static size_t row_blocks(const engine *e) { return (e->features + ROWS - 1) / ROWS; }

static void multiply(const void *data, size_t item, int thread)
{
  const engine *e = data;
  const slot *s = &e->slots[item / row_blocks(e)];
  const size_t first = item % row_blocks(e) * ROWS, count = e->features - first < ROWS ? e->features - first : ROWS;
  (void) thread;
  for (size_t panel = first / LANES; panel < e->panels; panel++)
    e->loops->products(s->rows + first * e->kp, count, e->kp, s->panels + panel * e->kp * LANES,
                       s->products + first * e->features + panel * LANES, e->features);
}

static void mirror(const void *data, size_t item, int thread)
{
  const engine *e = data;
  const slot *s = &e->slots[item / row_blocks(e)];
  const size_t first = item % row_blocks(e) * ROWS, end = first + ROWS < e->features ? first + ROWS : e->features;
  (void) thread;
  for (size_t column = 0; column < first; column += LANES)
    for (size_t i = first; i < end; i++)
      for (size_t j = column; j < column + LANES; j++)
        s->products[i * e->features + j] = s->products[j * e->features + i];
}

/* Products of all features with target t, which is regulator j. */
static double products_of_regulator(const engine *e, const slot *s, size_t j, int32_t *with)
{
  const int32_t *positive = s->products + j * e->features, *negative = s->products + (e->padded + j) * e->features;
  if (!e->job->hinges) { memcpy(with, positive, e->features * sizeof *with); return s->sum[j]; }
  for (size_t f = 0; f < e->features; f++) with[f] = positive[f] + negative[f];
  return s->sum[j] + s->sum[e->padded + j];
}

static void choose(const void *data, size_t item, int thread)
{
  const engine *e = data;
  const weft_regulation_job *job = e->job;
  const size_t worlds = 1 + job->copies, world = item / e->blocks % worlds, at = item / e->blocks / worlds;
  const size_t half = e->first + at, first = item % e->blocks * e->block;
  const size_t end = first + e->block < job->targets ? first + e->block : job->targets;
  const slot *s = &e->slots[at];
  const int32_t *partner = world ? job->partner + (world - 1) * job->n : NULL;
  int32_t *rows = e->target_rows + (size_t) thread * e->block * e->kp;
  int32_t *with = e->with + (size_t) thread * (e->block + 1) * e->features;
  double *work = e->work + (size_t) thread * weft_regulation_work(e->padded, job->steps), sums[ROWS];
  const weft_regulation_half view = { job->regulators, e->padded, job->steps, job->hinges, (double) job->m, s->products,
                                      s->sum, s->variance, s->least, e->favour + world * e->padded };
  size_t packed = 0, place[ROWS];
  for (size_t t = first; t < end; t++) { /* those whose products are not known yet are packed side by side */
    if (!world && e->own[t] >= 0) continue;
    place[packed] = t;
    sums[packed] = (double) gather(e, (size_t) job->target[t], half, partner, (int16_t *) (rows + packed * e->kp));
    packed++;
  }
  for (size_t panel = 0; packed && panel < e->panels; panel++)
    e->loops->products(rows, packed, e->kp, s->panels + panel * e->kp * LANES, with + panel * LANES, e->features);
  for (size_t t = first, next = 0; t < end; t++) {
    const int known = !(next < packed && place[next] == t);
    int32_t *own_with = known ? with + packed * e->features : with + next * e->features;
    const double sum = known ? products_of_regulator(e, s, (size_t) e->own[t], own_with) : sums[next];
    next += !known;
    e->loops->select(&view, own_with, sum, e->own[t], work,
                     e->choices + ((half * worlds + world) * job->targets + t) * job->steps);
  }
}

/* ---- the whole ---- */

static void set_sizes(engine *e, const weft_regulation_job *job)
{
  e->job = job;
  e->loops = weft_regulation_loops_here();
  e->padded = (job->regulators + LANES - 1) / LANES * LANES;
  e->features = e->padded * (size_t) (1 + job->hinges);
  e->panels = e->features / LANES;
  e->kp = (job->m + 1) / 2;
}

static weft_status take_slot(weft_arena *mem, const engine *e, slot *s)
{
  weft_status st = WEFT_OK;
  WEFT_TAKE(s->panels, mem, e->features * e->kp);
  WEFT_TAKE(s->rows, mem, e->features * e->kp);
  WEFT_TAKE(s->products, mem, e->features * e->features);
  WEFT_TAKE(s->sum, mem, e->features);
  WEFT_TAKE(s->variance, mem, WEFT_REGULATION_KINDS * e->padded);
  WEFT_TAKE(s->least, mem, WEFT_REGULATION_KINDS * e->padded);
done:
  return st;
}

static weft_status select_cpu(weft_ctx *ctx, const weft_regulation_job *job, int32_t *choices)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  engine e = { 0 };
  const size_t threads = (size_t) ctx->threads, worlds = 1 + job->copies;
  int32_t *own;
  size_t slots;
  double bytes, per_target;
  if (!job->targets || !job->halves) goto done;
  if (job->cells) { st = weft_regulation_select_cells(ctx, job, choices); goto done; }
  set_sizes(&e, job);
  e.choices = choices;
  e.block = e.features < 131072 / ROWS ? ROWS : 12; /* their products stay in a second-level cache */
  e.blocks = (job->targets + e.block - 1) / e.block;
  bytes = 4.0 * (double) e.features * ((double) e.features + 2 * (double) e.kp + 14);
  slots = bytes * (double) job->halves < SLOT_BYTES ? job->halves : (size_t) (1 + SLOT_BYTES / bytes);
  WEFT_TRY(weft_regulation_own(&mem, job, &own));
  e.own = own;
  WEFT_TAKE0(e.favour, &mem, e.padded * (1 + job->copies));
  for (size_t world = 0; world <= job->copies; world++)
    memcpy(e.favour + world * e.padded, job->favour + world * job->regulators, job->regulators * sizeof *e.favour);
  WEFT_TAKE(e.slots, &mem, slots);
  for (size_t k = 0; k < slots; k++) WEFT_TRY(take_slot(&mem, &e, &e.slots[k]));
  WEFT_TAKE(e.target_rows, &mem, threads * e.block * e.kp);
  WEFT_TAKE(e.with, &mem, threads * (e.block + 1) * e.features); /* one more for a target that is a regulator */
  WEFT_TAKE(e.work, &mem, threads * weft_regulation_work(e.padded, job->steps));
  per_target = (double) e.features * ((double) e.kp / 4 + 15.0 * (double) job->steps);
  for (e.first = 0; e.first < job->halves; e.first += e.count) {
    e.count = job->halves - e.first < slots ? job->halves - e.first : slots;
    WEFT_TRY(all_items(ctx, &e, pack, e.count * (e.padded / LANES), (double) e.kp * LANES * 16));
    WEFT_TRY(all_items(ctx, &e, multiply, e.count * row_blocks(&e), (double) (ROWS * e.features * e.kp) / 8));
    WEFT_TRY(all_items(ctx, &e, mirror, e.count * row_blocks(&e), (double) (ROWS * e.features)));
    WEFT_TRY(all_items(ctx, &e, choose, e.count * worlds * e.blocks,
                       (double) job->targets / (double) e.blocks * per_target));
  }
done:
  weft_arena_end(&mem);
  return st;
}

const weft_regulation_ops weft_regulation_cpu = { select_cpu };

/* ---- regulators of many genes ---- */

typedef struct {
  engine e;
  const int32_t *target_rows;
  const double *target_sum, *target_variance;
  double *out;
} hubs_job;

/* 16 genes against all targets, in the order of these. */
static void hub_panel(const void *data, size_t item, int thread)
{
  const engine *e = data;
  const hubs_job *h = (const hubs_job *) e;
  const slot *s = &e->slots[0];
  const size_t targets = e->job->targets;
  const double m = (double) e->job->m;
  double sum[LANES], squares[LANES];
  int32_t with[ROWS * LANES];
  (void) thread;
  memset(sum, 0, sizeof sum);
  memset(squares, 0, sizeof squares);
  for (size_t first = 0; first < targets; first += ROWS) {
    const size_t count = targets - first < ROWS ? targets - first : ROWS;
    e->loops->products(h->target_rows + first * e->kp, count, e->kp, s->panels + item * e->kp * LANES, with, LANES);
    for (size_t t = 0; t < count; t++)
      for (size_t lane = 0; lane < LANES; lane++) {
        const size_t j = item * LANES + lane;
        const double both = s->variance[j] * h->target_variance[first + t];
        double r;
        if (!(both > 0) || e->own[first + t] == (int32_t) j) continue;
        r = weft_regulation_covariance(m, (double) with[t * LANES + lane], s->sum[j], h->target_sum[first + t]);
        r = r * r / both;
        sum[lane] += r;
        squares[lane] += r * r;
      }
  }
  for (size_t lane = 0; lane < LANES && item * LANES + lane < e->job->regulators; lane++)
    h->out[item * LANES + lane] =
      (squares[lane] - sum[lane] * sum[lane] / (double) targets) / (double) (targets > 1 ? targets - 1 : 1);
}

weft_status weft_regulation_hubs(weft_ctx *ctx, const weft_regulation_job *given, double *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_regulation_job job = *given;
  hubs_job h = { 0 };
  engine *e = &h.e;
  slot s;
  int32_t *own, *rows;
  double *sum, *variance;
  job.hinges = 0;
  set_sizes(e, &job);
  e->count = 1;
  e->slots = &s;
  h.out = out;
  WEFT_TRY(weft_regulation_own(&mem, &job, &own));
  e->own = own;
  WEFT_TAKE(s.panels, &mem, e->features * e->kp);
  WEFT_TAKE(s.rows, &mem, e->features * e->kp);
  WEFT_TAKE(s.sum, &mem, e->features);
  WEFT_TAKE(s.variance, &mem, e->features);
  WEFT_TAKE(s.least, &mem, e->features);
  WEFT_TAKE(rows, &mem, job.targets * e->kp);
  WEFT_TAKE(sum, &mem, job.targets);
  WEFT_TAKE(variance, &mem, job.targets);
  for (size_t t = 0; t < job.targets; t++) {
    int16_t *v = (int16_t *) (rows + t * e->kp);
    double squares = 0;
    sum[t] = (double) gather(e, (size_t) job.target[t], 0, NULL, v);
    for (size_t k = 0; k < 2 * e->kp; k++) squares += v[k] * v[k];
    variance[t] = weft_regulation_covariance((double) job.m, squares, sum[t], sum[t]);
  }
  h.target_rows = rows;
  h.target_sum = sum;
  h.target_variance = variance;
  WEFT_TRY(all_items(ctx, e, pack, e->panels, (double) e->kp * LANES * 16));
  WEFT_TRY(all_items(ctx, e, hub_panel, e->panels, (double) (LANES * job.targets) * ((double) e->kp / 8 + 8)));
done:
  weft_arena_end(&mem);
  return st;
}
