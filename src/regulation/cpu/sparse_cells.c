/* Sparse cells; see regulation.h. A gene's scores are its score where nothing is stored, plus something where a value
 * is stored. The same holds for its parts max(z, 0) and min(z, 0), and sums of products of two of them follow from
 *
 *   sum (a + u)(c + v) = sum u v + c sum u + a sum v + m a c          u, v: 0 where nothing is stored
 *
 * modulo 2^32, which is exact as the whole fits. A half is a union of blocks of cells, and a column's products with all
 * features are kept block by block while every half of a group takes its sum:
 *
 *   lay out    stored parts of the regulators, cell after cell, block after block
 *   multiply   (feature)         products of all features, in the halves of the group
 *   choose     (world, target)   products with a target, then selection in each of these halves */
#include <stdlib.h>
#include <string.h>
#include "core/call/parallel.h"
#include "regulation/regulation.h"
#include "regulation/cpu/selection_loops.h"
#include "regulation/both/step.h"
#include "regulation/cpu/scores.h"
#include "regulation/cpu/screen.h"
#include "regulation/cpu/sparse_cells.h"

#define LANES ((size_t) WEFT_REGULATION_LANES)
#define MIN_BYTES 2e8 /* of products that are kept, unless one half needs more */

/* ---- scores ---- */

typedef struct {
  double value;
  size_t at;
} stored;

static int by_value(const void *a, const void *b)
{
  const stored *x = a, *y = b;
  if (x->value != y->value) return x->value < y->value ? -1 : 1;
  return (x->at > y->at) - (x->at < y->at);
}

/* One gene: `count` values of n; the others are 0. */
static void score_gene(const weft_regulation_counts_of *x, size_t gene, const double *quantile, int32_t most,
                       stored *order, double *z, int16_t *out, int32_t *zero)
{
  const size_t start = (size_t) x->starts[gene], count = (size_t) x->starts[gene + 1] - start, absent = x->n - count;
  size_t negative = 0, zeros = absent;
  double mean = 0, greatest = 0, of_zero;
  for (size_t k = 0; k < count; k++) {
    const double v = x->values[start + k];
    order[k] = (stored){ x->size ? v / x->size[x->rows[start + k]] : v, k };
    negative += v < 0;
    zeros += v == 0;
  }
  *zero = 0;
  qsort(order, count, sizeof *order, by_value);
  /* as in weft_regulation_scores(), ranks below + 1 .. below + equal have the quantile 2 below + equal - 1 */
  of_zero = zeros ? quantile[2 * negative + zeros - 1] : 0;
  for (size_t first = 0, end; first < count; first = end) {
    const double v = order[first].value;
    for (end = first + 1; end < count && order[end].value == v; end++)
      ;
    const size_t below = first + (v > 0 ? absent : 0), equal = end - first + (v == 0 ? absent : 0);
    if (equal == x->n) {
      memset(out, 0, count * sizeof *out);
      return;
    }
    for (size_t k = first; k < end; k++) z[k] = quantile[2 * below + equal - 1];
    mean += (double) (end - first) * z[first];
  }
  if (!count) return;
  mean = (mean + (double) absent * of_zero) / (double) x->n;
  if (zeros) greatest = fabs(of_zero - mean);
  for (size_t k = 0; k < count; k++) greatest = fmax(greatest, fabs(z[k] - mean));
  for (size_t k = 0; k < count; k++) out[order[k].at] = (int16_t) rint((z[k] - mean) * (most / greatest));
  if (zeros) *zero = (int32_t) rint((of_zero - mean) * (most / greatest));
}

/* Threads share the genes; each thread has memory for the longest one. */
weft_status weft_regulation_cell_scores(weft_ctx *ctx, const weft_regulation_counts_of *x, const double *quantile,
                                        int32_t most, int16_t *out, int32_t *zero)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const int64_t genes = (int64_t) x->p;
  size_t longest = 1;
  stored *order;
  double *z;
  int64_t batch;
  for (size_t gene = 0; gene < x->p; gene++)
    if ((size_t) (x->starts[gene + 1] - x->starts[gene]) > longest)
      longest = (size_t) (x->starts[gene + 1] - x->starts[gene]);
  batch = (int64_t) (1 + ctx->threads * (WEFT_REGULATION_ITEMS / 64 / ((double) x->starts[x->p] / (double) genes + 1)));
  WEFT_TAKE(order, &mem, longest * (size_t) ctx->threads);
  WEFT_TAKE(z, &mem, longest * (size_t) ctx->threads);
  for (int64_t first = 0; first < genes; first += batch) {
    const int64_t end = first + batch < genes ? first + batch : genes;
    WEFT_TRY(weft_poll(ctx, (double) first, (double) genes));
    WEFT_PARALLEL(weft_threads_worth(ctx->threads, 40 * (double) (x->starts[x->p] / genes * (end - first))))
    WEFT_FOR(dynamic)
    for (int64_t gene = first; gene < end; gene++) {
      const size_t own = (size_t) WEFT_THREAD() * longest;
      score_gene(x, (size_t) gene, quantile, most, order + own, z + own, out + x->starts[gene], zero + gene);
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* ---- what all items see ---- */

typedef struct {
  int32_t *products;
  uint32_t *above; /* of each feature: the sum of what is stored beyond its score of absent values */
  weft_regulation_half half;
} half_slot;

/* A column's stored values, block after block, and what a thread needs to go through it. */
typedef struct {
  int32_t *position, *value;
  size_t *starts;     /* blocks + 1 */
  uint32_t *products; /* blocks × features */
  uint32_t *above;    /* blocks */
  int32_t absent;     /* the column's value where nothing is stored */
  int32_t *with;
  char *work;
} gene_column;

typedef struct {
  const weft_regulation_job *job;
  const weft_regulation_cells *cells;
  const weft_regulation_loops *loops;
  size_t padded, features;
  const int32_t *own;             /* of each target: which regulator it is, or -1 */
  weft_regulation_favour *favour; /* of each world */
  const int32_t *inverse;         /* n × copies: where each row of the targets stands */
  size_t *row_starts;             /* of each position: its stored parts */
  int32_t *feature, *value;
  half_slot *slots;
  size_t count, first;  /* slots in use, and the first one's half */
  gene_column *columns; /* of each thread */
  int32_t *absent;      /* of each feature */
  int32_t *choices;
} cells_engine;

enum { WHOLE = -1 };

static int32_t part_of(int32_t z, int part) { return part == WHOLE ? z : part == 0 ? (z > 0 ? z : 0) : z < 0 ? z : 0; }

/* A feature's gene and part. */
static int feature_part(const cells_engine *engine, size_t feature)
{
  return engine->job->hinges ? (int) (feature / engine->padded) : WHOLE;
}

/* ---- columns ---- */

/* A gene's stored values, in order of the blocks. inverse: NULL, or where each row stands. */
static void read_column(const cells_engine *engine, size_t gene, int part, const int32_t *inverse, gene_column *column)
{
  const weft_regulation_cells *x = engine->cells;
  const size_t start = (size_t) x->starts[gene], end = (size_t) x->starts[gene + 1], rows = x->block_rows;
  column->absent = part_of(x->absent[gene], part);
  memset(column->starts, 0, (x->blocks + 1) * sizeof *column->starts);
  memset(column->above, 0, x->blocks * sizeof *column->above);
  for (int filling = 0; filling < 2; filling++) {
    for (size_t k = start; k < end; k++) {
      const int32_t row = x->rows[k], at = x->position[inverse ? inverse[row] : row];
      const int32_t value = part_of(x->scores[k], part) - column->absent;
      size_t block;
      if (at < 0 || !value) continue;
      block = (size_t) at / rows;
      if (!filling) {
        column->starts[block + 1]++;
        column->above[block] += (uint32_t) value;
        continue;
      }
      column->position[column->starts[block]] = at;
      column->value[column->starts[block]++] = value;
    }
    if (!filling)
      for (size_t block = 0; block < x->blocks; block++) column->starts[block + 1] += column->starts[block];
  }
  for (size_t block = x->blocks; block > 0; block--)
    column->starts[block] = column->starts[block - 1]; /* each was moved to the next one's */
  column->starts[0] = 0;
}

/* Products of the column with all features, in every block. */
static void multiply_column(const cells_engine *engine, gene_column *column)
{
  memset(column->products, 0, engine->cells->blocks * engine->features * sizeof *column->products);
  for (size_t block = 0; block < engine->cells->blocks; block++) {
    uint32_t *out = column->products + block * engine->features;
    for (size_t k = column->starts[block]; k < column->starts[block + 1]; k++) {
      const size_t at = (size_t) column->position[k];
      const uint32_t v = (uint32_t) column->value[k];
      for (size_t i = engine->row_starts[at]; i < engine->row_starts[at + 1]; i++)
        out[engine->feature[i]] += v * (uint32_t) engine->value[i];
    }
  }
}

/* The column's products in one half, with what is not stored; returns its sum there. */
static double sum_half(const cells_engine *engine, const gene_column *column, size_t at, int32_t *out)
{
  const weft_regulation_cells *x = engine->cells;
  const int32_t *chosen = x->chosen + (engine->first + at) * x->taken;
  const uint32_t m = (uint32_t) engine->job->m, absent = (uint32_t) column->absent;
  const uint32_t *feature_above = engine->slots[at].above;
  uint32_t above = 0, whole;
  uint32_t *sum = (uint32_t *) out;
  memset(sum, 0, engine->features * sizeof *sum);
  for (size_t k = 0; k < x->taken; k++) {
    const uint32_t *from = column->products + (size_t) chosen[k] * engine->features;
    for (size_t feature = 0; feature < engine->features; feature++) sum[feature] += from[feature];
    above += column->above[chosen[k]];
  }
  whole = above + m * absent;
  for (size_t feature = 0; feature < engine->features; feature++)
    sum[feature] += absent * feature_above[feature] + (uint32_t) engine->absent[feature] * whole;
  return (double) (int32_t) whole;
}

/* ---- phases ---- */

static weft_status all_items(weft_ctx *ctx, const cells_engine *engine, weft_regulation_item *work, size_t count,
                             double cost)
{
  const weft_regulation_phase phase = { engine->first, engine->count, engine->job->halves, count, cost };
  return weft_regulation_items(ctx, &phase, work, engine);
}

/* Sums of a feature in the halves of the group, which products need. */
static void sum_feature(const void *data, size_t feature, int thread)
{
  const cells_engine *engine = data;
  gene_column *column = &engine->columns[thread];
  const size_t j = feature % engine->padded;
  if (j >= engine->job->regulators) return;
  read_column(engine, (size_t) engine->job->regulator[j], feature_part(engine, feature), NULL, column);
  for (size_t at = 0; at < engine->count; at++) {
    const int32_t *chosen = engine->cells->chosen + (engine->first + at) * engine->cells->taken;
    uint32_t above = 0;
    for (size_t k = 0; k < engine->cells->taken; k++) above += column->above[chosen[k]];
    engine->slots[at].above[feature] = above;
    engine->slots[at].half.sum[feature] =
        (double) (int32_t) (above + (uint32_t) engine->job->m * (uint32_t) engine->absent[feature]);
  }
}

static void multiply(const void *data, size_t feature, int thread)
{
  const cells_engine *engine = data;
  gene_column *column = &engine->columns[thread];
  const size_t j = feature % engine->padded;
  if (j >= engine->job->regulators) return;
  read_column(engine, (size_t) engine->job->regulator[j], feature_part(engine, feature), NULL, column);
  multiply_column(engine, column);
  for (size_t at = 0; at < engine->count; at++)
    sum_half(engine, column, at, engine->slots[at].products + feature * engine->features);
}

static void note_moments(const void *data, size_t item, int thread)
{
  const cells_engine *engine = data;
  const half_slot *slot = &engine->slots[item / engine->padded];
  const size_t j = item % engine->padded;
  double sum[2] = { 0, 0 }, squares[2] = { 0, 0 };
  (void) thread;
  for (int part = 0; part <= engine->job->hinges; part++) {
    const size_t feature = (size_t) part * engine->padded + j;
    sum[part] = slot->half.sum[feature];
    squares[part] = (double) slot->products[feature * engine->features + feature];
  }
  weft_regulation_note_moments(&slot->half, j, sum, squares);
}

/* A phase's item: one target in one world. Its products with all features are computed once for each block of rows; the
 * sums for a half are those of its blocks. */
static void choose(const void *data, size_t item, int thread)
{
  const cells_engine *engine = data;
  gene_column *column = &engine->columns[thread];
  const weft_regulation_job *job = engine->job;
  const size_t world = item / job->targets, t = item % job->targets, worlds = 1 + job->copies;
  read_column(engine, (size_t) job->target[t], WHOLE, world ? engine->inverse + (world - 1) * job->n : NULL, column);
  multiply_column(engine, column);
  for (size_t at = 0; at < engine->count; at++) {
    const half_slot *slot = &engine->slots[at];
    const double sum = sum_half(engine, column, at, column->with);
    const weft_regulation_favour *favour = &engine->favour[world];
    int32_t *choice = engine->choices + (((engine->first + at) * worlds + world) * job->targets + t) * job->steps;
    engine->loops->select(&slot->half, favour, column->with, sum, engine->own[t], column->work, choice);
  }
}

/* ---- the whole ---- */

/* Stored parts of the regulators by position. */
static weft_status lay_out(weft_ctx *ctx, weft_arena *mem, cells_engine *engine)
{
  weft_status st = WEFT_OK;
  const weft_regulation_cells *x = engine->cells;
  const size_t positions = x->blocks * x->block_rows;
  const int first = engine->job->hinges ? 0 : WHOLE, last = engine->job->hinges ? 1 : WHOLE;
  WEFT_TAKE0(engine->row_starts, mem, positions + 2);
  for (int filling = 0; filling < 2; filling++) {
    for (size_t j = 0; j < engine->job->regulators; j++) {
      const size_t gene = (size_t) engine->job->regulator[j];
      WEFT_TRY(weft_poll(ctx, 0, (double) engine->job->halves));
      for (int part = first; part <= last; part++) {
        const int32_t absent = part_of(x->absent[gene], part);
        const int32_t f = (int32_t) (part == 1 ? engine->padded + j : j);
        engine->absent[f] = absent;
        for (size_t k = (size_t) x->starts[gene]; k < (size_t) x->starts[gene + 1]; k++) {
          const int32_t at = x->position[x->rows[k]], value = part_of(x->scores[k], part) - absent;
          if (at < 0 || !value) continue;
          /* counts are kept two places on, so that filling leaves every start in its place */
          if (!filling) {
            engine->row_starts[at + 2]++;
            continue;
          }
          engine->feature[engine->row_starts[at + 1]] = f;
          engine->value[engine->row_starts[at + 1]++] = value;
        }
      }
    }
    if (filling) break;
    for (size_t at = 2; at < positions + 2; at++) engine->row_starts[at] += engine->row_starts[at - 1];
    WEFT_TAKE(engine->feature, mem, engine->row_starts[positions + 1]);
    WEFT_TAKE(engine->value, mem, engine->row_starts[positions + 1]);
  }
done:
  return st;
}

/* Working memory for each thread: one gene's stored scores in the order of positions, and its products with all
 * features by block. */
static weft_status take_columns(weft_ctx *ctx, weft_arena *mem, cells_engine *engine)
{
  weft_status st = WEFT_OK;
  const weft_regulation_cells *x = engine->cells;
  size_t longest = 1;
  for (size_t gene = 0; gene < engine->job->p; gene++)
    if ((size_t) (x->starts[gene + 1] - x->starts[gene]) > longest)
      longest = (size_t) (x->starts[gene + 1] - x->starts[gene]);
  WEFT_TAKE(engine->columns, mem, (size_t) ctx->threads);
  for (int thread = 0; thread < ctx->threads; thread++) {
    gene_column *column = &engine->columns[thread];
    WEFT_TAKE(column->position, mem, longest);
    WEFT_TAKE(column->value, mem, longest);
    WEFT_TAKE(column->starts, mem, x->blocks + 1);
    WEFT_TAKE(column->above, mem, x->blocks);
    WEFT_TAKE(column->products, mem, x->blocks * engine->features);
    WEFT_TAKE(column->with, mem, engine->features);
    WEFT_TAKE(column->work, mem, weft_regulation_work(engine->padded, engine->job->steps));
  }
done:
  return st;
}

/* Memory for `slots` halves at a time: all products of features, moments, and sums of scores. */
static weft_status take_slots(weft_arena *mem, cells_engine *engine, size_t slots)
{
  weft_status st = WEFT_OK;
  WEFT_TAKE(engine->slots, mem, slots);
  for (size_t k = 0; k < slots; k++) {
    half_slot *slot = &engine->slots[k];
    WEFT_TAKE0(slot->products, mem, engine->features * engine->features); /* padding stays 0 */
    WEFT_TAKE0(slot->above, mem, engine->features);
    slot->half = (weft_regulation_half){ .regulators = engine->job->regulators,
                                         .padded = engine->padded,
                                         .steps = engine->job->steps,
                                         .hinges = engine->job->hinges,
                                         .m = (double) engine->job->m,
                                         .products = slot->products };
    WEFT_TRY(weft_regulation_take_half(mem, &slot->half, 0));
  }
done:
  return st;
}

static weft_status turn_partners(weft_arena *mem, const weft_regulation_job *job, const int32_t **out)
{
  weft_status st = WEFT_OK;
  int32_t *inverse;
  WEFT_TAKE(inverse, mem, job->n * job->copies);
  for (size_t copy = 0; copy < job->copies; copy++)
    for (size_t i = 0; i < job->n; i++) inverse[copy * job->n + (size_t) job->partner[copy * job->n + i]] = (int32_t) i;
  *out = inverse;
done:
  return st;
}

/* Lays the scores out by position, then takes phases for as many halves at a time as fit in half the memory of the
 * sparse data: sums, products, moments, and a selection for each target and world. */
weft_status weft_regulation_select_cells(weft_ctx *ctx, const weft_regulation_job *job, int32_t *choices)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const weft_regulation_cells *x = job->cells;
  cells_engine engine = { 0 };
  int32_t *own;
  double bytes, budget, multiplying, summing;
  size_t slots;
  engine.job = job;
  engine.cells = x;
  engine.loops = weft_regulation_loops_here();
  engine.choices = choices;
  engine.padded = weft_regulation_padded(job->regulators);
  engine.features = engine.padded * (size_t) (1 + job->hinges);
  WEFT_TRY(weft_regulation_own(&mem, job, &own));
  engine.own = own;
  WEFT_TRY(weft_regulation_favours(&mem, job->favour, job->regulators, engine.padded, 1 + job->copies, &engine.favour));
  WEFT_TAKE0(engine.absent, &mem, engine.features);
  WEFT_TRY(turn_partners(&mem, job, &engine.inverse));
  WEFT_TRY(lay_out(ctx, &mem, &engine));
  WEFT_TRY(take_columns(ctx, &mem, &engine));
  bytes = 4.0 * (double) engine.features * (double) engine.features;
  budget = fmax(MIN_BYTES, 6.0 * (double) x->starts[job->p]); /* half of what the sparse data take */
  slots = bytes * (double) job->halves < budget ? job->halves : (size_t) (1 + budget / bytes);
  if (slots > job->halves) slots = job->halves;
  WEFT_TRY(take_slots(&mem, &engine, slots));
  multiplying = (double) x->starts[job->p] / (double) job->p *
                ((double) engine.row_starts[x->blocks * x->block_rows] / (double) (x->blocks * x->block_rows) + 8);
  for (engine.first = 0; engine.first < job->halves; engine.first += engine.count) {
    engine.count = job->halves - engine.first < slots ? job->halves - engine.first : slots;
    summing = (double) engine.count * (double) (x->taken * engine.features) / 4;
    WEFT_TRY(all_items(ctx, &engine, sum_feature, engine.features, (double) x->starts[job->p] / (double) job->p * 8));
    WEFT_TRY(all_items(ctx, &engine, multiply, engine.features, multiplying + summing));
    WEFT_TRY(all_items(ctx, &engine, note_moments, engine.count * engine.padded, 50));
    WEFT_TRY(
        all_items(ctx, &engine, choose, (1 + job->copies) * job->targets,
                  multiplying + summing + (double) engine.count * (double) engine.features * 15 * (double) job->steps));
  }
done:
  weft_arena_end(&mem);
  return st;
}
