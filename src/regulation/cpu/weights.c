/* Measures that rank edges beside their areas. Correlations are made by blocks of targets; a sum over targets is taken
 * by one thread for each regulator, and a sum over regulators by one thread for each target, so that results do not
 * depend on the number of threads. */
#include <math.h>
#include <string.h>
#include "core/call/parallel.h"
#include "core/numbers/product.h"
#include "regulation/cpu/weights.h"

/* A group of values: how many, their sum, and the sum of their squares. */
typedef struct {
  double count, sum, squares;
} moments;

static inline void add_value(moments *m, double v)
{
  m->count++;
  m->sum += v;
  m->squares += v * v;
}

/* (v - mean) / standard deviation of the group; 0 where its values are equal. */
static double standardised(double v, const moments *m)
{
  const double count = m->count > 1 ? m->count : 1, mean = m->sum / count;
  const double variance = (m->squares - count * mean * mean) / (count > 2 ? count - 1 : 1);
  return variance <= 1e-12 * mean * mean ? 0 : (v - mean) / sqrt(variance);
}

/* Similarities become minus the logarithm of 1 - r^2, halved; of a gene with itself NaN. Returns the column's moments.
 */
static moments relate(const weft_regulation_listed *edges, const double *scale, size_t target, double *column)
{
  moments all = { 0, 0, 0 };
  const int32_t gene = edges->target[target];
  for (size_t j = 0; j < edges->regulators; j++) {
    const double r = column[j] / (scale[edges->regulator[j]] * scale[gene]), square = r * r;
    column[j] = edges->regulator[j] == gene ? NAN : -0.5 * log1p(-(square < 1 - 1e-12 ? square : 1 - 1e-12));
    if (edges->regulator[j] != gene) add_value(&all, column[j]);
  }
  return all;
}

/* Similarities of all regulators (left: their columns of z) with some targets, a column for each. */
static weft_status similarities(weft_ctx *ctx, const weft_regulation_listed *edges,
                                const weft_regulation_similar *genes, const double *left, size_t first, size_t count,
                                double *right, double *out)
{
  for (size_t t = 0; t < count; t++) {
    const size_t gene = (size_t) edges->target[first + t];
    if (genes->whole)
      for (size_t j = 0; j < edges->regulators; j++)
        out[t * edges->regulators + j] = genes->whole[gene * genes->p + (size_t) edges->regulator[j]];
    else
      memcpy(right + t * genes->n, genes->weighted + gene * genes->n, genes->n * sizeof *right);
  }
  if (genes->whole) return WEFT_OK;
  const weft_view a = weft_view_plain(left, genes->n, 1), b = weft_view_plain(right, genes->n, 0);
  return weft_product(ctx, edges->regulators, count, genes->n, 1, &a, &b, 0, out, edges->regulators, 0);
}

/* The signed sum of squares of two standard scores, squeezed into 0 to 1 (after Faith and others 2007). */
static double joined(double from, double to)
{
  const double both = from * fabs(from) + to * fabs(to), distance = copysign(sqrt(fabs(both)), both);
  return 0.5 + 0.5 * distance / (3 + fabs(distance));
}

/* A block of targets at a time: their correlations with all regulators give the moments that standardise values. */
weft_status weft_regulation_excess(weft_ctx *ctx, const weft_regulation_listed *edges,
                                   const weft_regulation_similar *genes, size_t block, double *excess)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t regulators = edges->regulators, targets = edges->targets;
  const size_t all = (size_t) edges->starts[targets];
  const size_t wide = block < targets ? block : targets;
  double *scale, *left = NULL, *right = NULL, *related, *to;
  moments *of_regulator;
  WEFT_TAKE(scale, &mem, genes->p);
  WEFT_TAKE(related, &mem, regulators * wide);
  WEFT_TAKE(to, &mem, all);
  WEFT_TAKE0(of_regulator, &mem, regulators);
  for (size_t g = 0; g < genes->p; g++) scale[g] = genes->own[g] > 0 ? sqrt(genes->own[g]) : 1;
  if (!genes->whole) {
    WEFT_TAKE(left, &mem, genes->n * regulators);
    WEFT_TAKE(right, &mem, genes->n * wide);
    for (size_t j = 0; j < regulators; j++)
      memcpy(left + j * genes->n, genes->z + (size_t) edges->regulator[j] * genes->n, genes->n * sizeof *left);
  }
  for (size_t first = 0; first < targets; first += wide) {
    const size_t count = first + wide < targets ? wide : targets - first;
    const int threads = weft_threads_worth(ctx->threads, 10.0 * (double) (regulators * count));
    WEFT_TRY(weft_poll(ctx, (double) first, (double) targets));
    WEFT_TRY(similarities(ctx, edges, genes, left, first, count, right, related));
    WEFT_PARALLEL_FOR(threads, static)
    for (int64_t t = 0; t < (int64_t) count; t++) {
      const double *column = related + (size_t) t * regulators;
      const moments of_target = relate(edges, scale, first + (size_t) t, related + (size_t) t * regulators);
      for (size_t e = (size_t) edges->starts[first + (size_t) t]; e < (size_t) edges->starts[first + (size_t) t + 1];
           e++) {
        excess[e] = column[edges->from[e] - 1];
        to[e] = standardised(excess[e], &of_target);
      }
    }
    WEFT_PARALLEL_FOR(threads, static)
    for (int64_t j = 0; j < (int64_t) regulators; j++)
      for (size_t t = 0; t < count; t++) {
        const double v = related[t * regulators + (size_t) j];
        if (!isnan(v)) add_value(&of_regulator[j], v);
      }
  }
  for (size_t e = 0; e < all; e++)
    excess[e] = joined(standardised(excess[e], &of_regulator[edges->from[e] - 1]), to[e]);
done:
  weft_arena_end(&mem);
  return st;
}

/* The place of an edge from a regulator (from 0) to a target, or SIZE_MAX. */
static size_t find_edge(const weft_regulation_listed *edges, int32_t regulator, int32_t target)
{
  size_t low = (size_t) edges->starts[target], high = (size_t) edges->starts[target + 1];
  const size_t end = high;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (edges->from[middle] - 1 < regulator)
      low = middle + 1;
    else
      high = middle;
  }
  return low < end && edges->from[low] - 1 == regulator ? low : SIZE_MAX;
}

weft_status weft_regulation_reversed(weft_ctx *ctx, const weft_regulation_listed *edges, const double *area,
                                     const int32_t *back, const int32_t *there, double *reversed)
{
  const size_t targets = edges->targets, batch = (size_t) 1 << 12;
  for (size_t first = 0; first < targets; first += batch) {
    const size_t end = first + batch < targets ? first + batch : targets;
    const double work = 50 * (edges->starts[end] - edges->starts[first]);
    const weft_status st = weft_poll(ctx, (double) first, (double) targets);
    if (st) return st;
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, work), static)
    for (int64_t t = (int64_t) first; t < (int64_t) end; t++)
      for (size_t e = (size_t) edges->starts[t]; e < (size_t) edges->starts[t + 1]; e++) {
        const int32_t gene = back[edges->from[e] - 1];
        reversed[e] = NAN;
        if (gene < 0 || there[t] < 0) continue;
        const size_t found = find_edge(edges, there[t], gene);
        reversed[e] = found == SIZE_MAX ? 0 : area[found];
      }
  }
  return WEFT_OK;
}
