/* Selection on the CPU; see regulation.h. As many halves at once as a few hundred megabytes hold, each in a slot:
 *
 *   pack       (slot, panel)          scores of the half's rows as pairs, in both forms; sums and variances
 *   multiply   (slot, regulators)     correlations of all features; of few regulators, products
 *   choose     (pair, world, block)   products with some targets, then selection for each of them, in both halves;
 *                                     where features are screened, products become correlations of 16 bits at once
 *
 * Where two halves make up all rows, or all but one, products in the second are those of all rows less those in the
 * first; those of all rows are kept from the start, if they take no more than TOTAL_BYTES.
 *
 * All threads share a phase; between phases, and between runs of its items, the user is asked whether to stop. */
#include <math.h>
#include <string.h>
#include "core/numbers/loops.h"
#include "regulation/regulation.h"
#include "regulation/cpu/selection_loops.h"
#include "regulation/both/step.h"

#define LANES ((size_t) WEFT_REGULATION_LANES)
#define ROWS ((size_t) 48) /* of products at once: a multiple of what kernels take */
#define NEAR ((size_t) 12) /* regulators whose products are known at once */
#define SLOT_BYTES 2e8     /* of all slots, unless a pair needs more */
#define TOTAL_BYTES 1e9

enum { NO_ROW = -1, NOT_ALL = -2 };

typedef struct {
  weft_regulation_half half;
  int32_t *panels, *rows; /* both forms; rows by kind */
  int32_t *products;      /* features × features, where there is no screen */
  int32_t *spare;         /* features in the row that neither half of the pair has */
} slot;

/* How a thread's screens have ended, and room for the products of one target with all features. */
typedef struct {
  size_t tried, failed;
  int32_t *with;
} screening;

typedef struct {
  const weft_regulation_job *job;
  const weft_regulation_loops *loops;
  weft_regulation_screen *screen;
  size_t padded, features, panels, kp, block, blocks; /* block: targets at once */
  const int32_t *own;                                 /* of each target: which regulator it is, or -1 */
  weft_regulation_favour *favour;                     /* of each world */
  slot *slots;
  size_t count, first; /* slots in use, and the first one's half */
  int32_t *spares;     /* of each pair: the row in neither half, NO_ROW, or NOT_ALL */
  slot all;            /* all rows, in panels */
  size_t all_kp;
  int32_t *totals;             /* features × targets × worlds, or NULL */
  int32_t *target_rows, *with; /* of each thread */
  char *work;
  screening *screening;
  size_t each_row, each_with, each_work;
  int32_t *choices;
} engine;

/* All items of a phase; `cost` is a rough number of operations of each. */
static weft_status all_items(weft_ctx *ctx, const engine *e, weft_regulation_item *work, size_t count, double cost)
{
  const weft_regulation_phase phase = { e->first, e->count, e->job->halves, count, cost };
  return weft_regulation_items(ctx, &phase, work, e);
}

/* A gene's scores in m of the rows, or in all (NULL), as pairs; partner: in the rows that stand for these. */
static int64_t gather(const engine *e, size_t gene, const int32_t *rows, size_t m, const int32_t *partner, int16_t *out)
{
  const int32_t *score = e->job->scores + gene * e->job->n;
  int64_t sum = 0;
  for (size_t k = 0; k < m; k++) {
    const size_t row = rows ? (size_t) rows[k] : k;
    out[k] = (int16_t) score[partner ? (size_t) partner[row] : row];
    sum += out[k];
  }
  if (m % 2) out[m] = 0;
  return sum;
}

static int32_t part_of(int32_t z, int hinges, int part) { return !hinges ? z : part ? (z < 0 ? z : 0) : z > 0 ? z : 0; }

/* ---- phases ---- */

/* Scores of the regulators of a panel, in m of the rows or in all. */
static void pack_panel(const engine *e, const slot *s, size_t panel, const int32_t *rows, size_t m)
{
  const int hinges = e->job->hinges;
  const size_t kp = (m + 1) / 2;
  for (size_t lane = 0; lane < LANES; lane++) {
    const size_t j = panel * LANES + lane, row = s->rows ? j : lane;
    const size_t stride = (s->rows ? e->padded : LANES) * kp;
    int32_t *out = s->rows ? s->rows : s->spare;
    int16_t *whole = (int16_t *) (out + row * kp);
    double sum[2] = { 0, 0 }, squares[2] = { 0, 0 };
    if (j < e->job->regulators)
      gather(e, (size_t) e->job->regulator[j], rows, m, NULL, whole);
    else
      memset(whole, 0, kp * sizeof(int32_t));
    for (int part = 0; part <= hinges; part++) {
      int32_t *from = out + (size_t) (part + hinges) * stride + row * kp;
      int32_t *to = s->panels + ((size_t) part * (e->padded / LANES) + panel) * kp * LANES + lane;
      int16_t *v = (int16_t *) from;
      for (size_t k = 0; k < 2 * kp; k++) {
        v[k] = (int16_t) part_of(whole[k], hinges, part);
        sum[part] += v[k];
        squares[part] += v[k] * v[k];
      }
      for (size_t k = 0; k < kp; k++) to[k * LANES] = from[k];
    }
    if (s->rows) weft_regulation_note_moments(&s->half, j, sum, squares);
  }
}

static void pack(const void *data, size_t item, int thread)
{
  const engine *e = data;
  const size_t panels = e->padded / LANES, at = item / panels, panel = item % panels, half = e->first + at;
  const slot *s = &e->slots[at];
  const int32_t spare = e->spares ? e->spares[half / 2] : NOT_ALL;
  (void) thread;
  pack_panel(e, s, panel, e->job->rows + half * e->job->m, e->job->m);
  for (size_t j = panel * LANES; spare >= 0 && j < (panel + 1) * LANES; j++)
    for (int part = 0; part <= e->job->hinges; part++)
      s->spare[(size_t) part * e->padded + j] =
          j >= e->job->regulators ? 0
                                  : part_of(e->job->scores[(size_t) e->job->regulator[j] * e->job->n + (size_t) spare],
                                            e->job->hinges, part);
}

static void multiply_rows(const engine *e, const int32_t *rows, size_t count, size_t kp, const int32_t *panels,
                          int32_t *out)
{
  for (size_t panel = 0; panel < e->panels; panel++)
    e->loops->products(rows, count, kp, panels + panel * kp * LANES, out + panel * LANES, e->features);
}

static size_t near_blocks(const engine *e) { return (e->padded + NEAR - 1) / NEAR; }

static void multiply(const void *data, size_t item, int thread)
{
  const engine *e = data;
  const slot *s = &e->slots[item / near_blocks(e)];
  const size_t first = item % near_blocks(e) * NEAR, count = e->padded - first < NEAR ? e->padded - first : NEAR;
  int32_t *with = e->with + (size_t) thread * e->each_with;
  const int hinges = e->job->hinges;
  for (int part = 0; part <= hinges; part++)
    multiply_rows(e, s->rows + ((size_t) (part + hinges) * e->padded + first) * e->kp, count, e->kp, s->panels,
                  e->screen ? with + (size_t) part * NEAR * e->features
                            : s->products + ((size_t) part * e->padded + first) * e->features);
  for (size_t j = 0; e->screen && j < count; j++)
    e->loops->note_near(&s->half, first + j, with + j * e->features, with + (NEAR + j) * e->features);
}

/* Products of a block of targets with all features, in all rows. */
static void add_up(const void *data, size_t item, int thread)
{
  const engine *e = data;
  const weft_regulation_job *job = e->job;
  const size_t world = item / e->blocks, first = item % e->blocks * e->block;
  const size_t count = job->targets - first < e->block ? job->targets - first : e->block;
  int32_t *rows = e->target_rows + (size_t) thread * e->each_row;
  for (size_t t = 0; t < count; t++)
    gather(e, (size_t) job->target[first + t], NULL, job->n, world ? job->partner + (world - 1) * job->n : NULL,
           (int16_t *) (rows + t * e->all_kp));
  multiply_rows(e, rows, count, e->all_kp, e->all.panels, e->totals + (world * job->targets + first) * e->features);
}

static void pack_all(const void *data, size_t panel, int thread)
{
  const engine *e = data;
  slot s = e->all;
  s.spare += (size_t) thread * LANES * e->all_kp * WEFT_REGULATION_KINDS;
  pack_panel(e, &s, panel, NULL, e->job->n);
}

/* What the first half of a pair leaves of all rows. */
static void subtract(const engine *e, const slot *s, const int32_t *total, int32_t spare, int32_t *with)
{
  const int32_t *beside = s->spare;
  const size_t features = e->features;
  if (spare) {
    WEFT_SIMD_PRAGMA(omp simd)
    for (size_t f = 0; f < features; f++) with[f] = total[f] - with[f] - spare * beside[f];
  } else {
    WEFT_SIMD_PRAGMA(omp simd)
    for (size_t f = 0; f < features; f++) with[f] = total[f] - with[f];
  }
}

/* Targets of a block in one half, as the screen sees them. */
static void look_at_targets(const engine *e, size_t half, size_t first, size_t count, const int32_t *partner,
                            int32_t *rows, int16_t *near, weft_regulation_target *out)
{
  const weft_regulation_job *job = e->job;
  const weft_regulation_half *h = &e->slots[half - e->first].half;
  for (size_t t = 0; t < count; t++) {
    int16_t *row = (int16_t *) (rows + t * e->kp);
    const size_t gene = (size_t) job->target[first + t];
    const double sum = (double) gather(e, gene, job->rows + half * job->m, job->m, partner, row);
    double squares = 0, beside;
    for (size_t k = 0; k < job->m; k++) squares += row[k] * row[k];
    out[t].row = rows + t * e->kp;
    out[t].sum = sum;
    out[t].root = sqrt(weft_regulation_covariance(h->m, squares, sum, sum));
    out[t].by = (float) (out[t].root > 0 ? WEFT_REGULATION_NEAR / out[t].root : 0);
    out[t].near = near + t * e->features;
    out[t].own = e->own[first + t];
    beside = out[t].root > 0 ? 2 * h->max_offset * fabs(sum) / out[t].root : WEFT_INFINITY;
    out[t].error = 0.51 + WEFT_REGULATION_NEAR * 0x1p-21 * (1 + beside);
  }
}

/* What the first half of a pair leaves of all rows, in one panel. */
static void leave(const int32_t *total, size_t ldt, const int32_t *of_first, size_t count, const int32_t *spare,
                  const int32_t *beside, int32_t *out)
{
  for (size_t t = 0; t < count; t++, total += ldt) {
    __builtin_prefetch(total + 6 * LANES);
    const int32_t *one = of_first + t * LANES;
    WEFT_SIMD_PRAGMA(omp simd)
    for (size_t lane = 0; lane < LANES; lane++) out[t * LANES + lane] = total[lane] - one[lane];
    if (!spare[t]) continue;
    WEFT_SIMD_PRAGMA(omp simd)
    for (size_t lane = 0; lane < LANES; lane++) out[t * LANES + lane] -= spare[t] * beside[lane];
  }
}

/* A pair of halves, a world, and a block of targets. */
typedef struct {
  size_t pair, world, first, count;
  const int32_t *partner;
} block_of;

static block_of block_at(const engine *e, size_t item)
{
  const weft_regulation_job *job = e->job;
  const size_t worlds = 1 + job->copies, first = item % e->blocks * e->block;
  const size_t world = item / e->blocks % worlds;
  return (block_of){ item / e->blocks / worlds, world, first,
                     job->targets - first < e->block ? job->targets - first : e->block,
                     world ? job->partner + (world - 1) * job->n : NULL };
}

/* A phase's item, with a screen: products with a block of targets become 16-bit correlations at once, panel by panel,
 * for both halves of a pair. A target whose screen fails is selected exactly; a thread of whose screens half fail stops
 * trying. */
static void choose_screened(const void *data, size_t item, int thread)
{
  const engine *e = data;
  const weft_regulation_job *job = e->job;
  const block_of b = block_at(e, item);
  screening *own = &e->screening[thread];
  int32_t *rows = e->target_rows + (size_t) thread * e->each_row;
  int16_t *near = (int16_t *) (e->with + (size_t) thread * e->each_with);
  char *work = e->work + (size_t) thread * e->each_work;
  const size_t at = 2 * b.pair, halves = e->count - at < 2 ? 1 : 2;
  const int32_t spare = e->spares ? e->spares[(e->first + at) / 2] : NOT_ALL;
  const int rest = halves == 2 && e->totals && spare != NOT_ALL;
  weft_regulation_target target[2][ROWS];
  int32_t products[ROWS * LANES], of_rest[ROWS * LANES], spares[ROWS];
  for (size_t k = 0; k < halves; k++)
    look_at_targets(e, e->first + at + k, b.first, b.count, b.partner, rows + k * e->block * e->kp,
                    near + k * e->block * e->features, target[k]);
  for (size_t t = 0; rest && t < b.count; t++) {
    const size_t row = spare < 0 ? 0 : (size_t) (b.partner ? b.partner[spare] : spare);
    spares[t] = spare < 0 ? 0 : job->scores[(size_t) job->target[b.first + t] * job->n + row];
  }
  for (size_t k = 0; k < halves - (size_t) rest; k++) {
    const slot *s = &e->slots[at + k];
    for (size_t panel = 0; panel < e->panels; panel++) {
      const size_t f = panel * LANES;
      e->loops->products(target[k][0].row, b.count, e->kp, s->panels + f * e->kp, products, LANES);
      e->loops->correlate(&s->half, f, products, b.count, target[k]);
      if (!rest) continue;
      leave(e->totals + (b.world * job->targets + b.first) * e->features + f, e->features, products, b.count, spares,
            s[1].spare + f, of_rest);
      e->loops->correlate(&s[1].half, f, of_rest, b.count, target[1]);
    }
  }
  for (size_t k = 0; k < halves; k++)
    for (size_t t = 0; t < b.count; t++) {
      const slot *s = &e->slots[at + k];
      const weft_regulation_target *one = &target[k][t];
      int32_t *choice =
          e->choices + (((e->first + at + k) * (1 + job->copies) + b.world) * job->targets + b.first + t) * job->steps;
      if (own->failed < 8 || 2 * own->failed < own->tried) {
        own->tried++;
        if (e->screen(&s->half, &e->favour[b.world], one, work, choice)) continue;
        own->failed++;
      }
      multiply_rows(e, one->row, 1, e->kp, s->panels, own->with);
      e->loops->select(&s->half, &e->favour[b.world], own->with, one->sum, one->own, work, choice);
    }
}

/* A phase's item, without a screen: for a block of targets in one world, both halves of a pair one after the other.
 * Products of the targets with all features, or those of all rows less the other half's, then the exact selection. */
static void choose(const void *data, size_t item, int thread)
{
  const engine *e = data;
  const weft_regulation_job *job = e->job;
  const block_of b = block_at(e, item);
  int32_t *rows = e->target_rows + (size_t) thread * e->each_row;
  int32_t *with = e->with + (size_t) thread * e->each_with;
  char *work = e->work + (size_t) thread * e->each_work;
  for (size_t at = 2 * b.pair; at < e->count && at < 2 * b.pair + 2; at++) {
    const slot *s = &e->slots[at];
    const size_t half = e->first + at;
    const int32_t spare = e->spares ? e->spares[half / 2] : NOT_ALL;
    const int rest = at % 2 && e->totals && spare != NOT_ALL;
    double sums[ROWS];
    for (size_t t = 0; t < b.count; t++) {
      const size_t gene = (size_t) job->target[b.first + t];
      sums[t] = (double) gather(e, gene, job->rows + half * job->m, job->m, b.partner, (int16_t *) (rows + t * e->kp));
      if (rest) {
        const size_t row = spare < 0 ? 0 : (size_t) (b.partner ? b.partner[spare] : spare);
        subtract(e, s, e->totals + (b.world * job->targets + b.first + t) * e->features,
                 spare < 0 ? 0 : job->scores[gene * job->n + row], with + t * e->features);
      }
    }
    if (!rest) multiply_rows(e, rows, b.count, e->kp, s->panels, with);
    for (size_t t = 0; t < b.count; t++) {
      const size_t target = b.first + t;
      int32_t *choice = e->choices + ((half * (1 + job->copies) + b.world) * job->targets + target) * job->steps;
      const int32_t *own_with = with + t * e->features;
      e->loops->select(&s->half, &e->favour[b.world], own_with, sums[t], e->own[target], work, choice);
    }
  }
}

/* ---- the whole ---- */

static void set_sizes(engine *e, const weft_regulation_job *job)
{
  e->job = job;
  e->loops = weft_regulation_loops_here();
  e->screen = job->regulators >= WEFT_REGULATION_SCREENED ? weft_regulation_screen_here() : NULL;
  e->padded = weft_regulation_padded(job->regulators);
  e->features = e->padded * (size_t) (1 + job->hinges);
  e->panels = e->features / LANES;
  e->kp = (job->m + 1) / 2;
}

/* pairs: with room for the products of all pairs of features. */
static weft_status take_slot(weft_arena *mem, const engine *e, int pairs, slot *s)
{
  weft_status st = WEFT_OK;
  const weft_regulation_job *job = e->job;
  const size_t kinds = e->padded * (size_t) (1 + 2 * job->hinges);
  s->half = (weft_regulation_half){ .regulators = job->regulators,
                                    .padded = e->padded,
                                    .steps = job->steps,
                                    .kp = e->kp,
                                    .hinges = job->hinges,
                                    .m = (double) job->m };
  WEFT_TRY(weft_regulation_take_half(mem, &s->half, pairs && e->screen));
  WEFT_TAKE(s->panels, mem, e->features * e->kp);
  WEFT_TAKE(s->rows, mem, kinds * e->kp);
  WEFT_TAKE(s->spare, mem, e->features);
  if (pairs && !e->screen) {
    WEFT_TAKE(s->products, mem, e->features * e->features);
    s->half.products = s->products;
  }
  s->half.rows = s->rows;
  s->half.panels = s->panels;
done:
  return st;
}

/* Which row neither half of a pair has. */
static weft_status find_spares(weft_arena *mem, engine *e)
{
  weft_status st = WEFT_OK;
  const weft_regulation_job *job = e->job;
  uint8_t *in;
  WEFT_TAKE(e->spares, mem, job->halves / 2 + 1);
  WEFT_TAKE(in, mem, job->n);
  for (size_t pair = 0; pair < job->halves / 2 + 1; pair++) {
    size_t seen = 0;
    int32_t spare = NO_ROW;
    e->spares[pair] = NOT_ALL;
    if (2 * pair + 1 >= job->halves || 2 * job->m > job->n || 2 * job->m + 1 < job->n) continue;
    memset(in, 0, job->n);
    for (size_t k = 2 * pair * job->m; k < (2 * pair + 2) * job->m; k++) in[job->rows[k]] = 1;
    for (size_t i = 0; i < job->n; i++) {
      seen += in[i];
      if (!in[i]) spare = (int32_t) i;
    }
    if (seen == 2 * job->m) e->spares[pair] = spare;
  }
  weft_arena_drop(mem, in);
done:
  return st;
}

/* Products in all rows, where they are useful. */
static weft_status take_totals(weft_ctx *ctx, weft_arena *mem, engine *e)
{
  weft_status st = WEFT_OK;
  const weft_regulation_job *job = e->job;
  const size_t worlds = 1 + job->copies, threads = (size_t) ctx->threads;
  const double bytes = 4.0 * (double) e->features * (double) job->targets * (double) worlds;
  if (job->halves < 4 || bytes > TOTAL_BYTES) return WEFT_OK;
  WEFT_TRY(find_spares(mem, e));
  if (e->spares[0] == NOT_ALL) return WEFT_OK;
  WEFT_TAKE(e->totals, mem, e->features * job->targets * worlds);
  WEFT_TAKE(e->all.panels, mem, e->features * e->all_kp);
  WEFT_TAKE(e->all.spare, mem, threads * LANES * e->all_kp * WEFT_REGULATION_KINDS);
  WEFT_TRY(all_items(ctx, e, pack_all, e->padded / LANES, (double) e->all_kp * LANES * 16));
  WEFT_TRY(all_items(ctx, e, add_up, worlds * e->blocks, (double) (e->block * e->features) * (double) e->all_kp / 4));
  weft_arena_drop(mem, e->all.panels);
  weft_arena_drop(mem, e->all.spare);
done:
  return st;
}

/* The CPU's `select`: sizes, memory, then the phases pack, multiply and choose for as many halves at a time as
 * SLOT_BYTES hold. Screens where weft_regulation_screen_here() has one and there are enough regulators. */
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
  if (job->cells) {
    st = weft_regulation_select_cells(ctx, job, choices);
    goto done;
  }
  set_sizes(&e, job);
  e.choices = choices;
  e.block = e.features < 131072 / ROWS ? ROWS : 12; /* their products stay in a second-level cache */
  e.blocks = (job->targets + e.block - 1) / e.block;
  e.all_kp = (job->n + 1) / 2;
  e.each_row = e.block * (e.all_kp > 2 * e.kp ? e.all_kp : 2 * e.kp);
  e.each_with = (e.block > 2 * NEAR ? e.block : 2 * NEAR) * e.features;
  e.each_work = weft_regulation_work(e.padded, job->steps);
  bytes = (double) e.features * (3.0 * (double) e.features + 10 * (double) e.kp + 80);
  slots = bytes * (double) job->halves < SLOT_BYTES ? job->halves : (size_t) (2 + SLOT_BYTES / bytes) / 2 * 2;
  if (slots > job->halves) slots = job->halves;
  WEFT_TRY(weft_regulation_own(&mem, job, &own));
  e.own = own;
  WEFT_TRY(weft_regulation_favours(&mem, job->favour, job->regulators, e.padded, worlds, &e.favour));
  WEFT_TAKE(e.target_rows, &mem, threads * e.each_row);
  WEFT_TAKE(e.with, &mem, threads * e.each_with);
  WEFT_TAKE(e.work, &mem, threads * e.each_work);
  WEFT_TAKE0(e.screening, &mem, threads);
  for (size_t t = 0; e.screen && t < threads; t++) WEFT_TAKE(e.screening[t].with, &mem, e.features);
  WEFT_TRY(take_totals(ctx, &mem, &e));
  WEFT_TAKE0(e.slots, &mem, slots);
  for (size_t k = 0; k < slots; k++) WEFT_TRY(take_slot(&mem, &e, 1, &e.slots[k]));
  per_target = (double) e.features * ((double) e.kp / 8 + 3.0 * (double) job->steps);
  for (e.first = 0; e.first < job->halves; e.first += e.count) {
    e.count = job->halves - e.first < slots ? job->halves - e.first : slots;
    WEFT_TRY(all_items(ctx, &e, pack, e.count * (e.padded / LANES), (double) e.kp * LANES * 16));
    for (size_t k = 0; k < e.count; k++) weft_regulation_end_moments(&e.slots[k].half);
    WEFT_TRY(all_items(ctx, &e, multiply, e.count * near_blocks(&e),
                       (double) (NEAR * e.features) * ((double) e.kp / 4 + 4)));
    WEFT_TRY(all_items(ctx, &e, e.screen ? choose_screened : choose, (e.count + 1) / 2 * worlds * e.blocks,
                       2 * (double) job->targets / (double) e.blocks * per_target));
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
        const double both = s->half.variance[j] * h->target_variance[first + t];
        double r;
        if (!(both > 0) || e->own[first + t] == (int32_t) j) continue;
        r = weft_regulation_covariance(m, (double) with[t * LANES + lane], s->half.sum[j], h->target_sum[first + t]);
        r = r * r / both;
        sum[lane] += r;
        squares[lane] += r * r;
      }
  }
  for (size_t lane = 0; lane < LANES && item * LANES + lane < e->job->regulators; lane++)
    h->out[item * LANES + lane] =
        (squares[lane] - sum[lane] * sum[lane] / (double) targets) / (double) (targets > 1 ? targets - 1 : 1);
}

/* Packs the regulators in one slot, as for a half of the rows, and computes correlations panel by panel. Scores are
 * those of job->rows. */
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
  WEFT_TRY(take_slot(&mem, e, 0, &s));
  WEFT_TAKE(rows, &mem, job.targets * e->kp);
  WEFT_TAKE(sum, &mem, job.targets);
  WEFT_TAKE(variance, &mem, job.targets);
  for (size_t t = 0; t < job.targets; t++) {
    int16_t *v = (int16_t *) (rows + t * e->kp);
    double squares = 0;
    sum[t] = (double) gather(e, (size_t) job.target[t], job.rows, job.m, NULL, v);
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
