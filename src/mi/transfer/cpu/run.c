/* A test of all pairs; see run.h. Copies move the sources' past around within each series: what a source does stays in
 * its order, and so does the target, but they no longer meet. */
#include <math.h>
#include <string.h>
#include "core/call/arena.h"
#include "core/call/parallel.h"
#include "core/numbers/draws.h"
#include "mi/transfer/cpu/codes.h"
#include "mi/transfer/cpu/run.h"

#define STREAM 74     /* of draws */
#define PRIOR 10.0    /* pairs of means that are taken to be average */
#define MAX_TIED 16e6 /* edges of a bin that are brought beyond `top` */
#define LN2 0.69314718055994530942

typedef struct {
  weft_arena mem;
  weft_transfer_data data;
  uint8_t *codes;
  uint32_t *rows; /* of a copy */
  double *of_source, *of_target;
  uint32_t *first; /* steps before each series, and the end */
} work;

/* ---- ready ---- */

/* The table of f, whose unit keeps f of all steps below 2^62. */
static weft_status make_log(weft_arena *mem, uint64_t n, weft_mi_log *f)
{
  weft_status st = WEFT_OK;
  int64_t *table;
  f->shift = 50;
  while (f->shift > 0 && weft_mi_f((double) n) * ldexp(1, f->shift) >= ldexp(1, 62)) f->shift--;
  f->unit = ldexp(1, -f->shift);
  f->known = n + 1 < WEFT_MI_LOG_TABLE ? n + 1 : WEFT_MI_LOG_TABLE;
  WEFT_TAKE(table, mem, f->known);
  for (uint64_t k = 0; k < f->known; k++) table[k] = weft_mi_fixed_of(k, f->unit);
  f->table = table;
done:
  return st;
}

/* The steps of all series: sample i and the one `lag` before. */
static weft_status make_steps(const weft_transfer_job *job, work *w)
{
  weft_status st = WEFT_OK;
  uint32_t *now, *before;
  size_t steps = 0;
  WEFT_TAKE(w->first, &w->mem, job->series + 1);
  for (size_t s = 0; s < job->series; s++) {
    const uint32_t length = job->starts[s + 1] - job->starts[s];
    w->first[s] = (uint32_t) steps;
    steps += length > job->lag ? length - job->lag : 0;
  }
  w->first[job->series] = (uint32_t) steps;
  WEFT_TAKE(now, &w->mem, steps);
  WEFT_TAKE(before, &w->mem, steps);
  WEFT_TAKE(w->rows, &w->mem, steps);
  for (size_t s = 0, k = 0; s < job->series; s++)
    for (uint32_t i = job->starts[s] + job->lag; i < job->starts[s + 1]; i++, k++) {
      now[k] = i;
      before[k] = i - job->lag;
    }
  w->data.steps = steps;
  w->data.now = now;
  w->data.before = before;
done:
  return st;
}

/* Steps by a source's level before them. */
static uint32_t count_source(const weft_transfer_data *data, size_t source, uint32_t *of_levels)
{
  const uint8_t *codes = data->codes + (size_t) data->sources[source] * data->samples;
  uint32_t levels = 0;
  memset(of_levels, 0, data->levels * sizeof *of_levels);
  for (size_t k = 0; k < data->steps; k++) of_levels[codes[data->before[k]]]++;
  for (uint32_t level = 0; level < data->levels; level++) levels += of_levels[level] > 0;
  return levels ? levels - 1 : 0;
}

/* Steps by a target's state, and its part of the scores. */
static uint32_t count_target(const weft_transfer_data *data, size_t target, uint32_t *of_states, int64_t *base)
{
  const uint8_t *codes = data->codes + (size_t) data->targets[target] * data->samples;
  const uint32_t levels = data->levels;
  uint32_t df = 0;
  memset(of_states, 0, (size_t) levels * levels * sizeof *of_states);
  for (size_t k = 0; k < data->steps; k++) of_states[codes[data->before[k]] * levels + codes[data->now[k]]]++;
  *base = 0;
  for (uint32_t before = 0; before < levels; before++) {
    uint64_t rows = 0;
    uint32_t seen = 0;
    for (uint32_t now = 0; now < levels; now++) {
      const uint32_t k = of_states[before * levels + now];
      rows += k;
      seen += k > 0;
      *base += weft_mi_fixed(&data->f, k);
    }
    df += seen ? seen - 1 : 0;
    *base -= weft_mi_fixed(&data->f, rows);
  }
  return df;
}

/* Margins, degrees of freedom and the targets' parts of the scores, which no copy changes. */
static weft_status count_genes(weft_ctx *ctx, work *w)
{
  weft_status st = WEFT_OK;
  weft_transfer_data *data = &w->data;
  const size_t levels = data->levels;
  const int threads =
      weft_threads_worth(ctx->threads, 2 * (double) (data->source_count + data->target_count) * (double) data->steps);
  const size_t most = data->source_count > data->target_count ? data->source_count : data->target_count,
               batch = (size_t) threads * (1 + (size_t) (2e7 / (double) (data->steps + 100)));
  uint32_t *of_levels, *of_states, *source_df, *target_df;
  int64_t *base;
  WEFT_TAKE(of_levels, &w->mem, data->source_count * levels);
  WEFT_TAKE(of_states, &w->mem, data->target_count * levels * levels);
  WEFT_TAKE(source_df, &w->mem, data->source_count);
  WEFT_TAKE(target_df, &w->mem, data->target_count);
  WEFT_TAKE(base, &w->mem, data->target_count);
  for (size_t first = 0; first < most; first += batch) {
    const int64_t end = (int64_t) (most - first < batch ? most : first + batch);
    WEFT_TRY(weft_poll(ctx, 0, 1));
    WEFT_PARALLEL_FOR(threads, guided)
    for (int64_t k = (int64_t) first; k < end; k++) {
      if (k < (int64_t) data->source_count)
        source_df[k] = count_source(data, (size_t) k, of_levels + (size_t) k * levels);
      if (k < (int64_t) data->target_count)
        target_df[k] = count_target(data, (size_t) k, of_states + (size_t) k * levels * levels, &base[k]);
    }
  }
  data->of_levels = of_levels;
  data->of_states = of_states;
  data->source_df = source_df;
  data->target_df = target_df;
  data->base = base;
done:
  return st;
}

/* Steps, levels, logarithms and margins of a job. */
static weft_status make_ready(weft_ctx *ctx, const weft_transfer_job *job, work *w)
{
  weft_status st = WEFT_OK;
  weft_transfer_data *data = &w->data;
  WEFT_TRY(make_steps(job, w));
  data->samples = job->samples;
  data->genes = job->genes;
  data->sources = job->sources;
  data->targets = job->targets;
  data->source_count = job->source_count;
  data->target_count = job->target_count;
  WEFT_TAKE(w->codes, &w->mem, job->genes * job->samples);
  WEFT_TAKE(w->of_source, &w->mem, job->source_count);
  WEFT_TAKE(w->of_target, &w->mem, job->target_count);
  WEFT_TRY(weft_transfer_codes(ctx, job->columns, job->n, job->genes, job->order, job->samples, job->bins, w->codes,
                               &data->levels));
  data->codes = w->codes;
  WEFT_TRY(make_log(&w->mem, data->steps, &data->f));
  WEFT_TRY(count_genes(ctx, w));
done:
  return st;
}

/* ---- copies ---- */

/* Samples of the sources in a copy: each series goes round by a number of steps, at least one. */
static void draw_rows(const weft_transfer_job *job, work *w, size_t copy)
{
  const weft_rng rng = { job->key, STREAM };
  for (size_t s = 0; s < job->series; s++) {
    const uint32_t from = w->first[s], length = w->first[s + 1] - from;
    const uint32_t by =
        length > 1 ? 1 + (uint32_t) weft_draw_below(rng, (uint64_t) copy * job->series + s, length - 1) : 0;
    for (uint32_t i = 0; i < length; i++)
      w->rows[from + i] = w->data.before[from + (i < length - by ? i + by : i + by - length)];
  }
}

/* The factor that turns n TE in fixed point into G over df. */
static void plain_factors(work *w)
{
  const weft_transfer_data *data = &w->data;
  const double unit = 2 * LN2 * data->f.unit;
  for (size_t i = 0; i < data->source_count; i++) w->of_source[i] = data->source_df[i] ? unit / data->source_df[i] : 0;
  for (size_t j = 0; j < data->target_count; j++) w->of_target[j] = data->target_df[j] ? 1.0 / data->target_df[j] : 0;
}

/* How many targets a source has, and so on: scored pairs of each. */
static double count_pairs(const weft_transfer_data *data, double *of_source, double *of_target, double *by_gene)
{
  double sources = 0, targets = 0, tested = 0;
  memset(by_gene, 0, 2 * data->genes * sizeof *by_gene);
  for (size_t i = 0; i < data->source_count; i++) {
    if (!data->source_df[i]) continue;
    sources++;
    by_gene[data->sources[i]]++;
  }
  for (size_t j = 0; j < data->target_count; j++) {
    if (!data->target_df[j]) continue;
    targets++;
    by_gene[data->genes + data->targets[j]]++;
  }
  for (size_t i = 0; i < data->source_count; i++) {
    of_source[i] = data->source_df[i] ? targets - by_gene[data->genes + data->sources[i]] : 0;
    tested += of_source[i];
  }
  for (size_t j = 0; j < data->target_count; j++)
    of_target[j] = data->target_df[j] ? sources - by_gene[data->targets[j]] : 0;
  return tested;
}

/* Divides the factors by what is usual for a source and a target: means of G / df, drawn to their mean by PRIOR pairs.
 */
static void divide_by_usual(work *w, const int64_t *source_sums, const int64_t *target_sums, const double *of_source,
                            const double *of_target, double copies)
{
  const weft_transfer_data *data = &w->data;
  double sum = 0, pairs = 0;
  for (size_t i = 0; i < data->source_count; i++) {
    sum += (double) source_sums[i] / WEFT_TRANSFER_PART;
    pairs += of_source[i] * copies;
  }
  const double mean = sum > 0 ? sum / pairs : 1;
  for (size_t i = 0; i < data->source_count; i++) {
    const double usual =
        ((double) source_sums[i] / WEFT_TRANSFER_PART + PRIOR * mean) / (of_source[i] * copies + PRIOR);
    w->of_source[i] /= usual;
  }
  for (size_t j = 0; j < data->target_count; j++) {
    const double usual =
        ((double) target_sums[j] / WEFT_TRANSFER_PART + PRIOR * mean) / (of_target[j] * copies + PRIOR);
    w->of_target[j] *= mean / usual;
  }
}

/* ---- decisions ---- */

/* p- and q-values of bins, from pairs of the data and of permuted copies, and how many pairs there are from each bin
 * on. */
static void bin_values(const uint64_t *data, const uint64_t *null, double *p, double *q, double *reach)
{
  double copies = 0, above = 0, pairs = 0, least = 1;
  for (uint32_t b = 0; b < WEFT_TRANSFER_BINS; b++) copies += (double) null[b];
  for (uint32_t b = WEFT_TRANSFER_BINS; b-- > 0;) {
    above += (double) null[b];
    pairs += (double) data[b];
    p[b] = (1 + above) / (1 + copies);
    reach[b] = pairs;
  }
  for (uint32_t b = 0; b < WEFT_TRANSFER_BINS; b++) {
    if (reach[b] > 0) least = fmin(least, pairs * p[b] / reach[b]);
    q[b] = least;
  }
}

/* The bin from which edges are brought. */
static uint32_t first_bin(const double *q, const double *reach, const weft_transfer_job *job, double *significant)
{
  uint32_t bin = 0;
  if (job->permutations)
    while (bin < WEFT_TRANSFER_BINS - 1 && q[bin] > job->fdr) bin++;
  *significant = !job->permutations || q[bin] <= job->fdr ? reach[bin] : 0;
  if (*significant == 0) return WEFT_TRANSFER_BINS;
  while (bin < WEFT_TRANSFER_BINS - 1 && reach[bin + 1] >= job->top) bin++;
  if (reach[bin] > job->top + MAX_TIED) bin++;
  return bin;
}

/* Columns of the edges that the last pass found. */
static weft_status describe_edges(const work *w, const weft_transfer_pass *found, const double *p, const double *q,
                                  weft_arena *mem, weft_transfer_edges *out)
{
  weft_status st = WEFT_OK;
  const weft_transfer_data *data = &w->data;
  const double n = (double) data->steps;
  out->count = (size_t) found->found;
  WEFT_TAKE(out->source, mem, out->count);
  WEFT_TAKE(out->target, mem, out->count);
  WEFT_TAKE(out->te, mem, out->count);
  WEFT_TAKE(out->usual, mem, out->count);
  WEFT_TAKE(out->z, mem, out->count);
  WEFT_TAKE(out->p, mem, out->count);
  WEFT_TAKE(out->q, mem, out->count);
  for (size_t k = 0; k < out->count; k++) {
    const size_t i = (size_t) (found->pairs[k] / data->target_count),
                 j = (size_t) (found->pairs[k] % data->target_count);
    const double ratio = weft_transfer_ratio(found->scores[k], w->of_source[i], w->of_target[j]);
    out->source[k] = (uint32_t) i;
    out->target[k] = (uint32_t) j;
    out->te[k] = found->scores[k] > 0 ? weft_mi_bits(found->scores[k], data->f.unit, data->steps) : 0;
    out->usual[k] = data->f.unit / (w->of_source[i] * w->of_target[j] * n);
    out->z[k] = weft_transfer_z(ratio, data->source_df[i] * data->target_df[j]);
    out->p[k] = p[weft_transfer_bin(out->z[k])];
    out->q[k] = q[weft_transfer_bin(out->z[k])];
  }
done:
  return st;
}

/* ---- the whole ---- */

/* The first half of the copies gives the usual size of scores, the second half their spread. */
static weft_status pass_copies(weft_ctx *ctx, const weft_mi_ops *ops, weft_transfer_engine *engine,
                               const weft_transfer_job *job, work *w, uint64_t *null, double *tested)
{
  weft_status st = WEFT_OK;
  const size_t sources = job->source_count, targets = job->target_count, half = job->permutations / 2;
  int64_t *source_sums, *target_sums;
  double *of_source, *of_target, *by_gene;
  WEFT_TAKE0(source_sums, &w->mem, sources);
  WEFT_TAKE0(target_sums, &w->mem, targets);
  WEFT_TAKE(of_source, &w->mem, sources);
  WEFT_TAKE(of_target, &w->mem, targets);
  WEFT_TAKE(by_gene, &w->mem, 2 * job->genes);
  *tested = count_pairs(&w->data, of_source, of_target, by_gene);
  for (size_t copy = 0; copy < job->permutations; copy++) {
    weft_transfer_pass pass = { .goal = copy < half ? WEFT_TRANSFER_SUMS : WEFT_TRANSFER_COUNT,
                                .rows = w->rows,
                                .of_source = w->of_source,
                                .of_target = w->of_target,
                                .source_sums = source_sums,
                                .target_sums = target_sums,
                                .counts = null };
    if (copy == half) divide_by_usual(w, source_sums, target_sums, of_source, of_target, (double) half);
    draw_rows(job, w, copy);
    ctx->stage = (double) copy;
    WEFT_TRY(ops->transfer_pass(ctx, engine, &pass));
  }
done:
  return st;
}

/* Copies first, then the data: its bins decide which pairs are edges, and another pass finds them. */
weft_status weft_mi_transfer(weft_ctx *ctx, const weft_mi_ops *ops, const weft_transfer_job *job, weft_arena *mem,
                             weft_transfer_edges *out)
{
  weft_status st = WEFT_OK;
  work w = { .mem = weft_arena_begin(ctx) };
  weft_transfer_engine *engine = NULL;
  weft_transfer_pass pass = { 0 };
  uint64_t *counts, *null;
  double *p, *q, *reach;
  WEFT_TAKE0(counts, &w.mem, WEFT_TRANSFER_BINS);
  WEFT_TAKE0(null, &w.mem, WEFT_TRANSFER_BINS);
  WEFT_TAKE(p, &w.mem, WEFT_TRANSFER_BINS);
  WEFT_TAKE(q, &w.mem, WEFT_TRANSFER_BINS);
  WEFT_TAKE(reach, &w.mem, WEFT_TRANSFER_BINS);
  WEFT_TRY(make_ready(ctx, job, &w));
  WEFT_TRY(ops->transfer_open(ctx, &w.data, &engine));
  ctx->stages = (double) job->permutations + 2;
  plain_factors(&w);
  WEFT_TRY(pass_copies(ctx, ops, engine, job, &w, null, &out->tested));
  pass.rows = w.data.before;
  pass.of_source = w.of_source;
  pass.of_target = w.of_target;
  pass.goal = WEFT_TRANSFER_COUNT;
  pass.counts = counts;
  ctx->stage = (double) job->permutations;
  WEFT_TRY(ops->transfer_pass(ctx, engine, &pass));
  bin_values(counts, null, p, q, reach);
  pass.bin = first_bin(q, reach, job, &out->significant);
  if (pass.bin < WEFT_TRANSFER_BINS && reach[pass.bin] > 0) {
    pass.goal = WEFT_TRANSFER_FIND;
    pass.capacity = (uint64_t) reach[pass.bin];
    WEFT_TAKE(pass.pairs, &w.mem, pass.capacity);
    WEFT_TAKE(pass.scores, &w.mem, pass.capacity);
    ctx->stage = (double) job->permutations + 1;
    WEFT_TRY(ops->transfer_pass(ctx, engine, &pass));
  }
  WEFT_TRY(describe_edges(&w, &pass, p, q, mem, out));
  out->steps = (double) w.data.steps;
  out->levels = w.data.levels;
done:
  ctx->stages = 0;
  if (engine) ops->transfer_close(ctx, engine);
  weft_arena_end(&w.mem);
  return st;
}
