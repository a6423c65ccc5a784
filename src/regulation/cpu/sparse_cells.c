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
  for (size_t g = 0; g < x->p; g++)
    if ((size_t) (x->starts[g + 1] - x->starts[g]) > longest) longest = (size_t) (x->starts[g + 1] - x->starts[g]);
  batch = (int64_t) (1 + ctx->threads * (WEFT_REGULATION_ITEMS / 64 / ((double) x->starts[x->p] / (double) genes + 1)));
  WEFT_TAKE(order, &mem, longest * (size_t) ctx->threads);
  WEFT_TAKE(z, &mem, longest * (size_t) ctx->threads);
  for (int64_t first = 0; first < genes; first += batch) {
    const int64_t end = first + batch < genes ? first + batch : genes;
    WEFT_TRY(weft_poll(ctx, (double) first, (double) genes));
    WEFT_PARALLEL(weft_threads_worth(ctx->threads, 40 * (double) (x->starts[x->p] / genes * (end - first))))
    WEFT_FOR(dynamic)
    for (int64_t g = first; g < end; g++) {
      const size_t own = (size_t) WEFT_THREAD() * longest;
      score_gene(x, (size_t) g, quantile, most, order + own, z + own, out + x->starts[g], zero + g);
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
} slot;

/* A column's stored values, block after block, and what a thread needs to go through it. */
typedef struct {
  int32_t *position, *value;
  size_t *starts;     /* blocks + 1 */
  uint32_t *products; /* blocks × features */
  uint32_t *above;    /* blocks */
  int32_t absent;     /* the column's value where nothing is stored */
  int32_t *with;
  char *work;
} column;

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
  slot *slots;
  size_t count, first; /* slots in use, and the first one's half */
  column *columns;     /* of each thread */
  int32_t *absent;     /* of each feature */
  int32_t *choices;
} engine;

enum { WHOLE = -1 };

static int32_t part_of(int32_t z, int part) { return part == WHOLE ? z : part == 0 ? (z > 0 ? z : 0) : z < 0 ? z : 0; }

/* A feature's gene and part. */
static int feature_part(const engine *e, size_t f) { return e->job->hinges ? (int) (f / e->padded) : WHOLE; }

/* ---- columns ---- */

/* A gene's stored values, in order of the blocks. inverse: NULL, or where each row stands. */
static void read_column(const engine *e, size_t gene, int part, const int32_t *inverse, column *c)
{
  const weft_regulation_cells *x = e->cells;
  const size_t start = (size_t) x->starts[gene], end = (size_t) x->starts[gene + 1], block = x->block_rows;
  c->absent = part_of(x->absent[gene], part);
  memset(c->starts, 0, (x->blocks + 1) * sizeof *c->starts);
  memset(c->above, 0, x->blocks * sizeof *c->above);
  for (int filling = 0; filling < 2; filling++) {
    for (size_t k = start; k < end; k++) {
      const int32_t row = x->rows[k], at = x->position[inverse ? inverse[row] : row];
      const int32_t value = part_of(x->scores[k], part) - c->absent;
      size_t b;
      if (at < 0 || !value) continue;
      b = (size_t) at / block;
      if (!filling) {
        c->starts[b + 1]++;
        c->above[b] += (uint32_t) value;
        continue;
      }
      c->position[c->starts[b]] = at;
      c->value[c->starts[b]++] = value;
    }
    if (!filling)
      for (size_t b = 0; b < x->blocks; b++) c->starts[b + 1] += c->starts[b];
  }
  for (size_t b = x->blocks; b > 0; b--) c->starts[b] = c->starts[b - 1]; /* each was moved to the next one's */
  c->starts[0] = 0;
}

/* Products of the column with all features, in every block. */
static void multiply_column(const engine *e, column *c)
{
  memset(c->products, 0, e->cells->blocks * e->features * sizeof *c->products);
  for (size_t b = 0; b < e->cells->blocks; b++) {
    uint32_t *out = c->products + b * e->features;
    for (size_t k = c->starts[b]; k < c->starts[b + 1]; k++) {
      const size_t at = (size_t) c->position[k];
      const uint32_t v = (uint32_t) c->value[k];
      for (size_t i = e->row_starts[at]; i < e->row_starts[at + 1]; i++)
        out[e->feature[i]] += v * (uint32_t) e->value[i];
    }
  }
}

/* The column's products in one half, with what is not stored; returns its sum there. */
static double sum_half(const engine *e, const column *c, size_t at, int32_t *out)
{
  const weft_regulation_cells *x = e->cells;
  const int32_t *chosen = x->chosen + (e->first + at) * x->taken;
  const uint32_t m = (uint32_t) e->job->m, absent = (uint32_t) c->absent;
  const uint32_t *feature_above = e->slots[at].above;
  uint32_t above = 0, whole;
  uint32_t *sum = (uint32_t *) out;
  memset(sum, 0, e->features * sizeof *sum);
  for (size_t k = 0; k < x->taken; k++) {
    const uint32_t *from = c->products + (size_t) chosen[k] * e->features;
    for (size_t f = 0; f < e->features; f++) sum[f] += from[f];
    above += c->above[chosen[k]];
  }
  whole = above + m * absent;
  for (size_t f = 0; f < e->features; f++) sum[f] += absent * feature_above[f] + (uint32_t) e->absent[f] * whole;
  return (double) (int32_t) whole;
}

/* ---- phases ---- */

static weft_status all_items(weft_ctx *ctx, const engine *e, weft_regulation_item *work, size_t count, double cost)
{
  const weft_regulation_phase phase = { e->first, e->count, e->job->halves, count, cost };
  return weft_regulation_items(ctx, &phase, work, e);
}

/* Sums of a feature in the halves of the group, which products need. */
static void sum_feature(const void *data, size_t f, int thread)
{
  const engine *e = data;
  column *c = &e->columns[thread];
  const size_t j = f % e->padded;
  if (j >= e->job->regulators) return;
  read_column(e, (size_t) e->job->regulator[j], feature_part(e, f), NULL, c);
  for (size_t at = 0; at < e->count; at++) {
    const int32_t *chosen = e->cells->chosen + (e->first + at) * e->cells->taken;
    uint32_t above = 0;
    for (size_t k = 0; k < e->cells->taken; k++) above += c->above[chosen[k]];
    e->slots[at].above[f] = above;
    e->slots[at].half.sum[f] = (double) (int32_t) (above + (uint32_t) e->job->m * (uint32_t) e->absent[f]);
  }
}

static void multiply(const void *data, size_t f, int thread)
{
  const engine *e = data;
  column *c = &e->columns[thread];
  const size_t j = f % e->padded;
  if (j >= e->job->regulators) return;
  read_column(e, (size_t) e->job->regulator[j], feature_part(e, f), NULL, c);
  multiply_column(e, c);
  for (size_t at = 0; at < e->count; at++) sum_half(e, c, at, e->slots[at].products + f * e->features);
}

static void note_moments(const void *data, size_t item, int thread)
{
  const engine *e = data;
  const slot *s = &e->slots[item / e->padded];
  const size_t j = item % e->padded;
  double sum[2] = { 0, 0 }, squares[2] = { 0, 0 };
  (void) thread;
  for (int part = 0; part <= e->job->hinges; part++) {
    const size_t f = (size_t) part * e->padded + j;
    sum[part] = s->half.sum[f];
    squares[part] = (double) s->products[f * e->features + f];
  }
  weft_regulation_note_moments(&s->half, j, sum, squares);
}

/* A phase's item: one target in one world. Its products with all features are computed once for each block of rows; the
 * sums for a half are those of its blocks. */
static void choose(const void *data, size_t item, int thread)
{
  const engine *e = data;
  column *c = &e->columns[thread];
  const weft_regulation_job *job = e->job;
  const size_t world = item / job->targets, t = item % job->targets, worlds = 1 + job->copies;
  read_column(e, (size_t) job->target[t], WHOLE, world ? e->inverse + (world - 1) * job->n : NULL, c);
  multiply_column(e, c);
  for (size_t at = 0; at < e->count; at++) {
    const slot *s = &e->slots[at];
    const double sum = sum_half(e, c, at, c->with);
    const weft_regulation_favour *favour = &e->favour[world];
    int32_t *choice = e->choices + (((e->first + at) * worlds + world) * job->targets + t) * job->steps;
    e->loops->select(&s->half, favour, c->with, sum, e->own[t], c->work, choice);
  }
}

/* ---- the whole ---- */

/* Stored parts of the regulators by position. */
static weft_status lay_out(weft_ctx *ctx, weft_arena *mem, engine *e)
{
  weft_status st = WEFT_OK;
  const weft_regulation_cells *x = e->cells;
  const size_t positions = x->blocks * x->block_rows;
  const int first = e->job->hinges ? 0 : WHOLE, last = e->job->hinges ? 1 : WHOLE;
  WEFT_TAKE0(e->row_starts, mem, positions + 2);
  for (int filling = 0; filling < 2; filling++) {
    for (size_t j = 0; j < e->job->regulators; j++) {
      const size_t gene = (size_t) e->job->regulator[j];
      WEFT_TRY(weft_poll(ctx, 0, (double) e->job->halves));
      for (int part = first; part <= last; part++) {
        const int32_t absent = part_of(x->absent[gene], part);
        const int32_t f = (int32_t) (part == 1 ? e->padded + j : j);
        e->absent[f] = absent;
        for (size_t k = (size_t) x->starts[gene]; k < (size_t) x->starts[gene + 1]; k++) {
          const int32_t at = x->position[x->rows[k]], value = part_of(x->scores[k], part) - absent;
          if (at < 0 || !value) continue;
          /* counts are kept two places on, so that filling leaves every start in its place */
          if (!filling) {
            e->row_starts[at + 2]++;
            continue;
          }
          e->feature[e->row_starts[at + 1]] = f;
          e->value[e->row_starts[at + 1]++] = value;
        }
      }
    }
    if (filling) break;
    for (size_t at = 2; at < positions + 2; at++) e->row_starts[at] += e->row_starts[at - 1];
    WEFT_TAKE(e->feature, mem, e->row_starts[positions + 1]);
    WEFT_TAKE(e->value, mem, e->row_starts[positions + 1]);
  }
done:
  return st;
}

/* Working memory for each thread: one gene's stored scores in the order of positions, and its products with all
 * features by block. */
static weft_status take_columns(weft_ctx *ctx, weft_arena *mem, engine *e)
{
  weft_status st = WEFT_OK;
  const weft_regulation_cells *x = e->cells;
  size_t longest = 1;
  for (size_t g = 0; g < e->job->p; g++)
    if ((size_t) (x->starts[g + 1] - x->starts[g]) > longest) longest = (size_t) (x->starts[g + 1] - x->starts[g]);
  WEFT_TAKE(e->columns, mem, (size_t) ctx->threads);
  for (int thread = 0; thread < ctx->threads; thread++) {
    column *c = &e->columns[thread];
    WEFT_TAKE(c->position, mem, longest);
    WEFT_TAKE(c->value, mem, longest);
    WEFT_TAKE(c->starts, mem, x->blocks + 1);
    WEFT_TAKE(c->above, mem, x->blocks);
    WEFT_TAKE(c->products, mem, x->blocks * e->features);
    WEFT_TAKE(c->with, mem, e->features);
    WEFT_TAKE(c->work, mem, weft_regulation_work(e->padded, e->job->steps));
  }
done:
  return st;
}

/* Memory for `slots` halves at a time: all products of features, moments, and sums of scores. */
static weft_status take_slots(weft_arena *mem, engine *e, size_t slots)
{
  weft_status st = WEFT_OK;
  WEFT_TAKE(e->slots, mem, slots);
  for (size_t k = 0; k < slots; k++) {
    slot *s = &e->slots[k];
    WEFT_TAKE0(s->products, mem, e->features * e->features); /* padding stays 0 */
    WEFT_TAKE0(s->above, mem, e->features);
    s->half = (weft_regulation_half){ .regulators = e->job->regulators,
                                      .padded = e->padded,
                                      .steps = e->job->steps,
                                      .hinges = e->job->hinges,
                                      .m = (double) e->job->m,
                                      .products = s->products };
    WEFT_TRY(weft_regulation_take_half(mem, &s->half, 0));
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
  engine e = { 0 };
  int32_t *own;
  double bytes, budget, multiplying, summing;
  size_t slots;
  e.job = job;
  e.cells = x;
  e.loops = weft_regulation_loops_here();
  e.choices = choices;
  e.padded = weft_regulation_padded(job->regulators);
  e.features = e.padded * (size_t) (1 + job->hinges);
  WEFT_TRY(weft_regulation_own(&mem, job, &own));
  e.own = own;
  WEFT_TRY(weft_regulation_favours(&mem, job->favour, job->regulators, e.padded, 1 + job->copies, &e.favour));
  WEFT_TAKE0(e.absent, &mem, e.features);
  WEFT_TRY(turn_partners(&mem, job, &e.inverse));
  WEFT_TRY(lay_out(ctx, &mem, &e));
  WEFT_TRY(take_columns(ctx, &mem, &e));
  bytes = 4.0 * (double) e.features * (double) e.features;
  budget = fmax(MIN_BYTES, 6.0 * (double) x->starts[job->p]); /* half of what the sparse data take */
  slots = bytes * (double) job->halves < budget ? job->halves : (size_t) (1 + budget / bytes);
  if (slots > job->halves) slots = job->halves;
  WEFT_TRY(take_slots(&mem, &e, slots));
  multiplying = (double) x->starts[job->p] / (double) job->p *
                ((double) e.row_starts[x->blocks * x->block_rows] / (double) (x->blocks * x->block_rows) + 8);
  for (e.first = 0; e.first < job->halves; e.first += e.count) {
    e.count = job->halves - e.first < slots ? job->halves - e.first : slots;
    summing = (double) e.count * (double) (x->taken * e.features) / 4;
    WEFT_TRY(all_items(ctx, &e, sum_feature, e.features, (double) x->starts[job->p] / (double) job->p * 8));
    WEFT_TRY(all_items(ctx, &e, multiply, e.features, multiplying + summing));
    WEFT_TRY(all_items(ctx, &e, note_moments, e.count * e.padded, 50));
    WEFT_TRY(all_items(ctx, &e, choose, (1 + job->copies) * job->targets,
                       multiplying + summing + (double) e.count * (double) e.features * 15 * (double) job->steps));
  }
done:
  weft_arena_end(&mem);
  return st;
}
