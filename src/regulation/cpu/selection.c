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
#include "regulation/cpu/scores.h"
#include "regulation/cpu/screen.h"
#include "regulation/cpu/selection.h"
#include "regulation/cpu/sparse_cells.h"

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
} half_slot;

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
  half_slot *slots;
  size_t count, first; /* slots in use, and the first one's half */
  int32_t *spares;     /* of each pair: the row in neither half, NO_ROW, or NOT_ALL */
  half_slot all;       /* all rows, in panels */
  size_t all_kp;
  int32_t *totals;             /* features × targets × worlds, or NULL */
  int32_t *target_rows, *with; /* of each thread */
  char *work;
  screening *screening;
  size_t each_row, each_with, each_work;
  int32_t *choices;
} selection_engine;

/* All items of a phase; `cost` is a rough number of operations of each. */
static weft_status all_items(weft_ctx *ctx, const selection_engine *engine, weft_regulation_item *work, size_t count,
                             double cost)
{
  const weft_regulation_phase phase = { engine->first, engine->count, engine->job->halves, count, cost };
  return weft_regulation_items(ctx, &phase, work, engine);
}

/* A gene's scores in m of the rows, or in all (NULL), as pairs; partner: in the rows that stand for these. */
static int64_t gather(const selection_engine *engine, size_t gene, const int32_t *rows, size_t m,
                      const int32_t *partner, int16_t *out)
{
  const int32_t *score = engine->job->scores + gene * engine->job->n;
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
static void pack_panel(const selection_engine *engine, const half_slot *slot, size_t panel, const int32_t *rows,
                       size_t m)
{
  const int hinges = engine->job->hinges;
  const size_t kp = (m + 1) / 2;
  for (size_t lane = 0; lane < LANES; lane++) {
    const size_t j = panel * LANES + lane, row = slot->rows ? j : lane;
    const size_t stride = (slot->rows ? engine->padded : LANES) * kp;
    int32_t *out = slot->rows ? slot->rows : slot->spare;
    int16_t *whole = (int16_t *) (out + row * kp);
    double sum[2] = { 0, 0 }, squares[2] = { 0, 0 };
    if (j < engine->job->regulators)
      gather(engine, (size_t) engine->job->regulator[j], rows, m, NULL, whole);
    else
      memset(whole, 0, kp * sizeof(int32_t));
    for (int part = 0; part <= hinges; part++) {
      int32_t *from = out + (size_t) (part + hinges) * stride + row * kp;
      int32_t *to = slot->panels + ((size_t) part * (engine->padded / LANES) + panel) * kp * LANES + lane;
      int16_t *v = (int16_t *) from;
      for (size_t k = 0; k < 2 * kp; k++) {
        v[k] = (int16_t) part_of(whole[k], hinges, part);
        sum[part] += v[k];
        squares[part] += v[k] * v[k];
      }
      for (size_t k = 0; k < kp; k++) to[k * LANES] = from[k];
    }
    if (slot->rows) weft_regulation_note_moments(&slot->half, j, sum, squares);
  }
}

/* A phase's item: scores of a panel of regulators in one half, and their values in the row that the pair leaves over.
 */
static void pack(const void *data, size_t item, int thread)
{
  const selection_engine *engine = data;
  const size_t panels = engine->padded / LANES, at = item / panels, panel = item % panels, half = engine->first + at;
  const half_slot *slot = &engine->slots[at];
  const int32_t spare = engine->spares ? engine->spares[half / 2] : NOT_ALL;
  (void) thread;
  pack_panel(engine, slot, panel, engine->job->rows + half * engine->job->m, engine->job->m);
  for (size_t j = panel * LANES; spare >= 0 && j < (panel + 1) * LANES; j++)
    for (int part = 0; part <= engine->job->hinges; part++)
      slot->spare[(size_t) part * engine->padded + j] =
          j >= engine->job->regulators
              ? 0
              : part_of(engine->job->scores[(size_t) engine->job->regulator[j] * engine->job->n + (size_t) spare],
                        engine->job->hinges, part);
}

static void multiply_rows(const selection_engine *engine, const int32_t *rows, size_t count, size_t kp,
                          const int32_t *panels, int32_t *out)
{
  for (size_t panel = 0; panel < engine->panels; panel++)
    engine->loops->products(rows, count, kp, panels + panel * kp * LANES, out + panel * LANES, engine->features);
}

static size_t near_blocks(const selection_engine *engine) { return (engine->padded + NEAR - 1) / NEAR; }

/* A phase's item: products of NEAR regulators, part by part, with all features in one half; with a screen they become
 * correlations at once, otherwise they are kept in the slot. */
static void multiply(const void *data, size_t item, int thread)
{
  const selection_engine *engine = data;
  const half_slot *slot = &engine->slots[item / near_blocks(engine)];
  const size_t first = item % near_blocks(engine) * NEAR,
               count = engine->padded - first < NEAR ? engine->padded - first : NEAR;
  int32_t *with = engine->with + (size_t) thread * engine->each_with;
  const int hinges = engine->job->hinges;
  for (int part = 0; part <= hinges; part++)
    multiply_rows(engine, slot->rows + ((size_t) (part + hinges) * engine->padded + first) * engine->kp, count,
                  engine->kp, slot->panels,
                  engine->screen ? with + (size_t) part * NEAR * engine->features
                                 : slot->products + ((size_t) part * engine->padded + first) * engine->features);
  for (size_t j = 0; engine->screen && j < count; j++)
    engine->loops->note_near(&slot->half, first + j, with + j * engine->features, with + (NEAR + j) * engine->features);
}

/* Products of a block of targets with all features, in all rows. */
static void add_up(const void *data, size_t item, int thread)
{
  const selection_engine *engine = data;
  const weft_regulation_job *job = engine->job;
  const size_t world = item / engine->blocks, first = item % engine->blocks * engine->block;
  const size_t count = job->targets - first < engine->block ? job->targets - first : engine->block;
  int32_t *rows = engine->target_rows + (size_t) thread * engine->each_row;
  for (size_t target = 0; target < count; target++)
    gather(engine, (size_t) job->target[first + target], NULL, job->n,
           world ? job->partner + (world - 1) * job->n : NULL, (int16_t *) (rows + target * engine->all_kp));
  multiply_rows(engine, rows, count, engine->all_kp, engine->all.panels,
                engine->totals + (world * job->targets + first) * engine->features);
}

static void pack_all(const void *data, size_t panel, int thread)
{
  const selection_engine *engine = data;
  half_slot slot = engine->all;
  slot.spare += (size_t) thread * LANES * engine->all_kp * WEFT_REGULATION_KINDS;
  pack_panel(engine, &slot, panel, NULL, engine->job->n);
}

/* What the first half of a pair leaves of all rows. */
static void subtract(const selection_engine *engine, const half_slot *slot, const int32_t *total, int32_t spare,
                     int32_t *with)
{
  const int32_t *beside = slot->spare;
  const size_t features = engine->features;
  if (spare) {
    WEFT_SIMD_PRAGMA(omp simd)
    for (size_t feature = 0; feature < features; feature++)
      with[feature] = total[feature] - with[feature] - spare * beside[feature];
  } else {
    WEFT_SIMD_PRAGMA(omp simd)
    for (size_t feature = 0; feature < features; feature++) with[feature] = total[feature] - with[feature];
  }
}

/* Targets of a block in one half, as the screen sees them. */
static void look_at_targets(const selection_engine *engine, size_t half, size_t first, size_t count,
                            const int32_t *partner, int32_t *rows, int16_t *near, weft_regulation_target *out)
{
  const weft_regulation_job *job = engine->job;
  const weft_regulation_half *h = &engine->slots[half - engine->first].half;
  for (size_t target = 0; target < count; target++) {
    int16_t *row = (int16_t *) (rows + target * engine->kp);
    const size_t gene = (size_t) job->target[first + target];
    const double sum = (double) gather(engine, gene, job->rows + half * job->m, job->m, partner, row);
    double squares = 0, beside;
    for (size_t k = 0; k < job->m; k++) squares += row[k] * row[k];
    out[target].row = rows + target * engine->kp;
    out[target].sum = sum;
    out[target].root = sqrt(weft_regulation_covariance(h->m, squares, sum, sum));
    out[target].by = (float) (out[target].root > 0 ? WEFT_REGULATION_NEAR / out[target].root : 0);
    out[target].near = near + target * engine->features;
    out[target].own = engine->own[first + target];
    beside = out[target].root > 0 ? 2 * h->max_offset * fabs(sum) / out[target].root : WEFT_INFINITY;
    out[target].error = 0.51 + WEFT_REGULATION_NEAR * 0x1p-21 * (1 + beside);
  }
}

/* What the first half of a pair leaves of all rows, in one panel. */
static void leave(const int32_t *total, size_t ldt, const int32_t *of_first, size_t count, const int32_t *spare,
                  const int32_t *beside, int32_t *out)
{
  for (size_t target = 0; target < count; target++, total += ldt) {
    __builtin_prefetch(total + 6 * LANES);
    const int32_t *one = of_first + target * LANES;
    WEFT_SIMD_PRAGMA(omp simd)
    for (size_t lane = 0; lane < LANES; lane++) out[target * LANES + lane] = total[lane] - one[lane];
    if (!spare[target]) continue;
    WEFT_SIMD_PRAGMA(omp simd)
    for (size_t lane = 0; lane < LANES; lane++) out[target * LANES + lane] -= spare[target] * beside[lane];
  }
}

/* A pair of halves, a world, and a block of targets. */
typedef struct {
  size_t pair, world, first, count;
  const int32_t *partner;
} block_of;

static block_of block_at(const selection_engine *engine, size_t item)
{
  const weft_regulation_job *job = engine->job;
  const size_t worlds = 1 + job->copies, first = item % engine->blocks * engine->block;
  const size_t world = item / engine->blocks % worlds;
  return (block_of){ item / engine->blocks / worlds, world, first,
                     job->targets - first < engine->block ? job->targets - first : engine->block,
                     world ? job->partner + (world - 1) * job->n : NULL };
}

/* A phase's item, with a screen: products with a block of targets become 16-bit correlations at once, panel by panel,
 * for both halves of a pair. A target whose screen fails is selected exactly; a thread of whose screens half fail stops
 * trying. */
static void choose_screened(const void *data, size_t item, int thread)
{
  const selection_engine *engine = data;
  const weft_regulation_job *job = engine->job;
  const block_of block = block_at(engine, item);
  screening *own = &engine->screening[thread];
  int32_t *rows = engine->target_rows + (size_t) thread * engine->each_row;
  int16_t *near = (int16_t *) (engine->with + (size_t) thread * engine->each_with);
  char *work = engine->work + (size_t) thread * engine->each_work;
  const size_t at = 2 * block.pair, halves = engine->count - at < 2 ? 1 : 2;
  const int32_t spare = engine->spares ? engine->spares[(engine->first + at) / 2] : NOT_ALL;
  const int rest = halves == 2 && engine->totals && spare != NOT_ALL;
  weft_regulation_target target[2][ROWS];
  int32_t products[ROWS * LANES], of_rest[ROWS * LANES], spares[ROWS];
  for (size_t k = 0; k < halves; k++)
    look_at_targets(engine, engine->first + at + k, block.first, block.count, block.partner,
                    rows + k * engine->block * engine->kp, near + k * engine->block * engine->features, target[k]);
  for (size_t t = 0; rest && t < block.count; t++) {
    const size_t row = spare < 0 ? 0 : (size_t) (block.partner ? block.partner[spare] : spare);
    spares[t] = spare < 0 ? 0 : job->scores[(size_t) job->target[block.first + t] * job->n + row];
  }
  for (size_t k = 0; k < halves - (size_t) rest; k++) {
    const half_slot *slot = &engine->slots[at + k];
    for (size_t panel = 0; panel < engine->panels; panel++) {
      const size_t feature = panel * LANES;
      engine->loops->products(target[k][0].row, block.count, engine->kp, slot->panels + feature * engine->kp, products,
                              LANES);
      engine->loops->correlate(&slot->half, feature, products, block.count, target[k]);
      if (!rest) continue;
      leave(engine->totals + (block.world * job->targets + block.first) * engine->features + feature, engine->features,
            products, block.count, spares, slot[1].spare + feature, of_rest);
      engine->loops->correlate(&slot[1].half, feature, of_rest, block.count, target[1]);
    }
  }
  for (size_t k = 0; k < halves; k++)
    for (size_t t = 0; t < block.count; t++) {
      const half_slot *slot = &engine->slots[at + k];
      const weft_regulation_target *one = &target[k][t];
      int32_t *choice =
          engine->choices +
          (((engine->first + at + k) * (1 + job->copies) + block.world) * job->targets + block.first + t) * job->steps;
      if (own->failed < 8 || 2 * own->failed < own->tried) {
        own->tried++;
        if (engine->screen(&slot->half, &engine->favour[block.world], one, work, choice)) continue;
        own->failed++;
      }
      multiply_rows(engine, one->row, 1, engine->kp, slot->panels, own->with);
      engine->loops->select(&slot->half, &engine->favour[block.world], own->with, one->sum, one->own, work, choice);
    }
}

/* A phase's item, without a screen: for a block of targets in one world, both halves of a pair one after the other.
 * Products of the targets with all features, or those of all rows less the other half's, then the exact selection. */
static void choose(const void *data, size_t item, int thread)
{
  const selection_engine *engine = data;
  const weft_regulation_job *job = engine->job;
  const block_of block = block_at(engine, item);
  int32_t *rows = engine->target_rows + (size_t) thread * engine->each_row;
  int32_t *with = engine->with + (size_t) thread * engine->each_with;
  char *work = engine->work + (size_t) thread * engine->each_work;
  for (size_t at = 2 * block.pair; at < engine->count && at < 2 * block.pair + 2; at++) {
    const half_slot *slot = &engine->slots[at];
    const size_t half = engine->first + at;
    const int32_t spare = engine->spares ? engine->spares[half / 2] : NOT_ALL;
    const int rest = at % 2 && engine->totals && spare != NOT_ALL;
    double sums[ROWS];
    for (size_t t = 0; t < block.count; t++) {
      const size_t gene = (size_t) job->target[block.first + t];
      sums[t] = (double) gather(engine, gene, job->rows + half * job->m, job->m, block.partner,
                                (int16_t *) (rows + t * engine->kp));
      if (rest) {
        const size_t row = spare < 0 ? 0 : (size_t) (block.partner ? block.partner[spare] : spare);
        subtract(engine, slot, engine->totals + (block.world * job->targets + block.first + t) * engine->features,
                 spare < 0 ? 0 : job->scores[gene * job->n + row], with + t * engine->features);
      }
    }
    if (!rest) multiply_rows(engine, rows, block.count, engine->kp, slot->panels, with);
    for (size_t t = 0; t < block.count; t++) {
      const size_t target = block.first + t;
      int32_t *choice =
          engine->choices + ((half * (1 + job->copies) + block.world) * job->targets + target) * job->steps;
      const int32_t *own_with = with + t * engine->features;
      engine->loops->select(&slot->half, &engine->favour[block.world], own_with, sums[t], engine->own[target], work,
                            choice);
    }
  }
}

/* ---- the whole ---- */

static void set_sizes(selection_engine *engine, const weft_regulation_job *job)
{
  engine->job = job;
  engine->loops = weft_regulation_loops_here();
  engine->screen = job->regulators >= WEFT_REGULATION_SCREENED ? weft_regulation_screen_here() : NULL;
  engine->padded = weft_regulation_padded(job->regulators);
  engine->features = engine->padded * (size_t) (1 + job->hinges);
  engine->panels = engine->features / LANES;
  engine->kp = (job->m + 1) / 2;
}

/* pairs: with room for the products of all pairs of features. */
static weft_status take_slot(weft_arena *mem, const selection_engine *engine, int pairs, half_slot *slot)
{
  weft_status st = WEFT_OK;
  const weft_regulation_job *job = engine->job;
  const size_t kinds = engine->padded * (size_t) (1 + 2 * job->hinges);
  slot->half = (weft_regulation_half){ .regulators = job->regulators,
                                       .padded = engine->padded,
                                       .steps = job->steps,
                                       .kp = engine->kp,
                                       .hinges = job->hinges,
                                       .m = (double) job->m };
  WEFT_TRY(weft_regulation_take_half(mem, &slot->half, pairs && engine->screen));
  WEFT_TAKE(slot->panels, mem, engine->features * engine->kp);
  WEFT_TAKE(slot->rows, mem, kinds * engine->kp);
  WEFT_TAKE(slot->spare, mem, engine->features);
  if (pairs && !engine->screen) {
    WEFT_TAKE(slot->products, mem, engine->features * engine->features);
    slot->half.products = slot->products;
  }
  slot->half.rows = slot->rows;
  slot->half.panels = slot->panels;
done:
  return st;
}

/* Which row neither half of a pair has. */
static weft_status find_spares(weft_arena *mem, selection_engine *engine)
{
  weft_status st = WEFT_OK;
  const weft_regulation_job *job = engine->job;
  uint8_t *in;
  WEFT_TAKE(engine->spares, mem, job->halves / 2 + 1);
  WEFT_TAKE(in, mem, job->n);
  for (size_t pair = 0; pair < job->halves / 2 + 1; pair++) {
    size_t seen = 0;
    int32_t spare = NO_ROW;
    engine->spares[pair] = NOT_ALL;
    if (2 * pair + 1 >= job->halves || 2 * job->m > job->n || 2 * job->m + 1 < job->n) continue;
    memset(in, 0, job->n);
    for (size_t k = 2 * pair * job->m; k < (2 * pair + 2) * job->m; k++) in[job->rows[k]] = 1;
    for (size_t i = 0; i < job->n; i++) {
      seen += in[i];
      if (!in[i]) spare = (int32_t) i;
    }
    if (seen == 2 * job->m) engine->spares[pair] = spare;
  }
  weft_arena_drop(mem, in);
done:
  return st;
}

/* Products in all rows, where they are useful. */
static weft_status take_totals(weft_ctx *ctx, weft_arena *mem, selection_engine *engine)
{
  weft_status st = WEFT_OK;
  const weft_regulation_job *job = engine->job;
  const size_t worlds = 1 + job->copies, threads = (size_t) ctx->threads;
  const double bytes = 4.0 * (double) engine->features * (double) job->targets * (double) worlds;
  if (job->halves < 4 || bytes > TOTAL_BYTES) return WEFT_OK;
  WEFT_TRY(find_spares(mem, engine));
  if (engine->spares[0] == NOT_ALL) return WEFT_OK;
  WEFT_TAKE(engine->totals, mem, engine->features * job->targets * worlds);
  WEFT_TAKE(engine->all.panels, mem, engine->features * engine->all_kp);
  WEFT_TAKE(engine->all.spare, mem, threads * LANES * engine->all_kp * WEFT_REGULATION_KINDS);
  WEFT_TRY(all_items(ctx, engine, pack_all, engine->padded / LANES, (double) engine->all_kp * LANES * 16));
  WEFT_TRY(all_items(ctx, engine, add_up, worlds * engine->blocks,
                     (double) (engine->block * engine->features) * (double) engine->all_kp / 4));
  weft_arena_drop(mem, engine->all.panels);
  weft_arena_drop(mem, engine->all.spare);
done:
  return st;
}

/* The CPU's `select`: sizes, memory, then the phases pack, multiply and choose for as many halves at a time as
 * SLOT_BYTES hold. Screens where weft_regulation_screen_here() has one and there are enough regulators. */
static weft_status select_cpu(weft_ctx *ctx, const weft_regulation_job *job, int32_t *choices)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  selection_engine engine = { 0 };
  const size_t threads = (size_t) ctx->threads, worlds = 1 + job->copies;
  int32_t *own;
  size_t slots;
  double bytes, per_target;
  if (!job->targets || !job->halves) goto done;
  if (job->cells) {
    st = weft_regulation_select_cells(ctx, job, choices);
    goto done;
  }
  set_sizes(&engine, job);
  engine.choices = choices;
  engine.block = engine.features < 131072 / ROWS ? ROWS : 12; /* their products stay in a second-level cache */
  engine.blocks = (job->targets + engine.block - 1) / engine.block;
  engine.all_kp = (job->n + 1) / 2;
  engine.each_row = engine.block * (engine.all_kp > 2 * engine.kp ? engine.all_kp : 2 * engine.kp);
  engine.each_with = (engine.block > 2 * NEAR ? engine.block : 2 * NEAR) * engine.features;
  engine.each_work = weft_regulation_work(engine.padded, job->steps);
  bytes = (double) engine.features * (3.0 * (double) engine.features + 10 * (double) engine.kp + 80);
  slots = bytes * (double) job->halves < SLOT_BYTES ? job->halves : (size_t) (2 + SLOT_BYTES / bytes) / 2 * 2;
  if (slots > job->halves) slots = job->halves;
  WEFT_TRY(weft_regulation_own(&mem, job, &own));
  engine.own = own;
  WEFT_TRY(weft_regulation_favours(&mem, job->favour, job->regulators, engine.padded, worlds, &engine.favour));
  WEFT_TAKE(engine.target_rows, &mem, threads * engine.each_row);
  WEFT_TAKE(engine.with, &mem, threads * engine.each_with);
  WEFT_TAKE(engine.work, &mem, threads * engine.each_work);
  WEFT_TAKE0(engine.screening, &mem, threads);
  for (size_t thread = 0; engine.screen && thread < threads; thread++)
    WEFT_TAKE(engine.screening[thread].with, &mem, engine.features);
  WEFT_TRY(take_totals(ctx, &mem, &engine));
  WEFT_TAKE0(engine.slots, &mem, slots);
  for (size_t k = 0; k < slots; k++) WEFT_TRY(take_slot(&mem, &engine, 1, &engine.slots[k]));
  per_target = (double) engine.features * ((double) engine.kp / 8 + 3.0 * (double) job->steps);
  for (engine.first = 0; engine.first < job->halves; engine.first += engine.count) {
    engine.count = job->halves - engine.first < slots ? job->halves - engine.first : slots;
    WEFT_TRY(all_items(ctx, &engine, pack, engine.count * (engine.padded / LANES), (double) engine.kp * LANES * 16));
    for (size_t k = 0; k < engine.count; k++) weft_regulation_end_moments(&engine.slots[k].half);
    WEFT_TRY(all_items(ctx, &engine, multiply, engine.count * near_blocks(&engine),
                       (double) (NEAR * engine.features) * ((double) engine.kp / 4 + 4)));
    WEFT_TRY(all_items(ctx, &engine, engine.screen ? choose_screened : choose,
                       (engine.count + 1) / 2 * worlds * engine.blocks,
                       2 * (double) job->targets / (double) engine.blocks * per_target));
  }
done:
  weft_arena_end(&mem);
  return st;
}

const weft_regulation_ops weft_regulation_cpu = { select_cpu };

/* ---- regulators of many genes ---- */

typedef struct {
  selection_engine engine;
  const int32_t *target_rows;
  const double *target_sum, *target_variance;
  double *out;
} hubs_job;

/* 16 genes against all targets, in the order of these. */
static void hub_panel(const void *data, size_t item, int thread)
{
  const selection_engine *engine = data;
  const hubs_job *hubs = (const hubs_job *) engine;
  const half_slot *slot = &engine->slots[0];
  const size_t targets = engine->job->targets;
  const double m = (double) engine->job->m;
  double sum[LANES], squares[LANES];
  int32_t with[ROWS * LANES];
  (void) thread;
  memset(sum, 0, sizeof sum);
  memset(squares, 0, sizeof squares);
  for (size_t first = 0; first < targets; first += ROWS) {
    const size_t count = targets - first < ROWS ? targets - first : ROWS;
    engine->loops->products(hubs->target_rows + first * engine->kp, count, engine->kp,
                            slot->panels + item * engine->kp * LANES, with, LANES);
    for (size_t target = 0; target < count; target++)
      for (size_t lane = 0; lane < LANES; lane++) {
        const size_t j = item * LANES + lane;
        const double both = slot->half.variance[j] * hubs->target_variance[first + target];
        double r;
        if (!(both > 0) || engine->own[first + target] == (int32_t) j) continue;
        r = weft_regulation_covariance(m, (double) with[target * LANES + lane], slot->half.sum[j],
                                       hubs->target_sum[first + target]);
        r = r * r / both;
        sum[lane] += r;
        squares[lane] += r * r;
      }
  }
  for (size_t lane = 0; lane < LANES && item * LANES + lane < engine->job->regulators; lane++)
    hubs->out[item * LANES + lane] =
        (squares[lane] - sum[lane] * sum[lane] / (double) targets) / (double) (targets > 1 ? targets - 1 : 1);
}

/* Packs the regulators in one slot, as for a half of the rows, and computes correlations panel by panel. Scores are
 * those of job->rows. */
weft_status weft_regulation_hubs(weft_ctx *ctx, const weft_regulation_job *given, double *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_regulation_job job = *given;
  hubs_job hubs = { 0 };
  selection_engine *engine = &hubs.engine;
  half_slot slot;
  int32_t *own, *rows;
  double *sum, *variance;
  job.hinges = 0;
  set_sizes(engine, &job);
  engine->count = 1;
  engine->slots = &slot;
  hubs.out = out;
  WEFT_TRY(weft_regulation_own(&mem, &job, &own));
  engine->own = own;
  WEFT_TRY(take_slot(&mem, engine, 0, &slot));
  WEFT_TAKE(rows, &mem, job.targets * engine->kp);
  WEFT_TAKE(sum, &mem, job.targets);
  WEFT_TAKE(variance, &mem, job.targets);
  for (size_t target = 0; target < job.targets; target++) {
    int16_t *v = (int16_t *) (rows + target * engine->kp);
    double squares = 0;
    sum[target] = (double) gather(engine, (size_t) job.target[target], job.rows, job.m, NULL, v);
    for (size_t k = 0; k < 2 * engine->kp; k++) squares += v[k] * v[k];
    variance[target] = weft_regulation_covariance((double) job.m, squares, sum[target], sum[target]);
  }
  hubs.target_rows = rows;
  hubs.target_sum = sum;
  hubs.target_variance = variance;
  WEFT_TRY(all_items(ctx, engine, pack, engine->panels, (double) engine->kp * LANES * 16));
  WEFT_TRY(all_items(ctx, engine, hub_panel, engine->panels,
                     (double) (LANES * job.targets) * ((double) engine->kp / 8 + 8)));
done:
  weft_arena_end(&mem);
  return st;
}
