/* The law of what bins of residuals say about the groups, when groups are permuted within strata. Bins are equal parts
 * of the ranks in each stratum, so that one law serves every gene. For two groups it is summed: within a stratum the
 * counts of one group in the bins are hypergeometric, and strata are added one after another. */
#include <math.h>
#include <string.h>
#include "core/call/arena.h"
#include "core/numbers/draws.h"
#include "core/call/parallel.h"
#include "ranking/ranking.h"
#include "ranking/shape.h"
#include "ranking/values.h"

enum { BINS = WEFT_RANKING_BINS };
#define MAX_STEPS 2e8 /* products of probabilities, about half a second */

/* Samples of each bin in a stratum of `size`: bin of rank i is BINS i / size. */
static void bin_sizes(size_t size, size_t *sizes)
{
  for (size_t bin = 0; bin < BINS; bin++)
    sizes[bin] = ((bin + 1) * size + BINS - 1) / BINS - (bin * size + BINS - 1) / BINS;
}

static size_t stratum_size(const weft_ranking_null *null, size_t stratum)
{
  size_t size = 0;
  for (size_t g = 0; g < null->groups; g++) size += (size_t) null->sizes[g + stratum * null->groups];
  return size;
}

size_t weft_ranking_law_size(const weft_ranking_null *null)
{
  size_t total[2] = { 0, 0 };
  double steps = 0;
  if (null->groups != 2) return 0;
  for (size_t stratum = 0; stratum < null->strata; stratum++) {
    size_t sizes[BINS];
    bin_sizes(stratum_size(null, stratum), sizes);
    steps += ((double) total[0] + 1) * ((double) total[1] + 1) * ((double) sizes[0] + 1) * ((double) sizes[1] + 1);
    total[0] += sizes[0];
    total[1] += sizes[1];
  }
  return steps <= MAX_STEPS ? (total[0] + 1) * (total[1] + 1) : 0;
}

static double log_choose(size_t n, size_t k)
{
  return lgamma((double) n + 1) - lgamma((double) k + 1) - lgamma((double) (n - k) + 1);
}

/* Adds a stratum: `law` has (reached[0] + 1) × (reached[1] + 1) probabilities in rows of `width`, `out` the next ones.
 * `second`: samples of the second group in the stratum. */
static void add_stratum(const double *law, const size_t *reached, size_t width, const size_t *sizes, size_t second,
                        double *out)
{
  const double all = log_choose(sizes[0] + sizes[1] + sizes[2], second);
  for (size_t low = 0; low <= sizes[0] && low <= second; low++) {
    for (size_t middle = 0; middle <= sizes[1] && low + middle <= second; middle++) {
      const size_t high = second - low - middle;
      if (high > sizes[2]) continue;
      const double share =
          exp(log_choose(sizes[0], low) + log_choose(sizes[1], middle) + log_choose(sizes[2], high) - all);
      for (size_t i = 0; i <= reached[0]; i++) {
        double *to = out + (i + low) * width + middle;
        for (size_t k = 0; k <= reached[1]; k++) to[k] += share * law[i * width + k];
      }
    }
  }
}

/* The statistics of all tables, from how many of the second group are in the first two bins. */
static void tables_of_law(const size_t *total, size_t second, const double *probability, double *statistic)
{
  for (size_t low = 0; low <= total[0]; low++) {
    for (size_t middle = 0; middle <= total[1]; middle++) {
      const size_t at = low * (total[1] + 1) + middle, high = second - low - middle;
      statistic[at] = 0;
      if (probability[at] == 0) continue;
      const size_t counts[BINS] = { low, middle, high };
      int32_t table[2 * BINS];
      for (size_t bin = 0; bin < BINS; bin++) {
        table[bin] = (int32_t) (total[bin] - counts[bin]);
        table[bin + BINS] = (int32_t) counts[bin];
      }
      statistic[at] = weft_ranking_bits(table, BINS, 2);
    }
  }
}

/* The exact law for two groups: batch after batch, the distribution of how many samples of the second group lie in each
 * bin (hypergeometric within a batch) is convolved with that of the batches before. All orders of sums are fixed. */
weft_status weft_ranking_law(weft_ctx *ctx, const weft_ranking_null *null, double *statistic, double *probability)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t cells = weft_ranking_law_size(null);
  size_t total[BINS] = { 0 }, second = 0, reached[2] = { 0, 0 };
  double *law, *next;
  WEFT_TAKE0(law, &mem, cells);
  WEFT_TAKE(next, &mem, cells);
  for (size_t stratum = 0; stratum < null->strata; stratum++) {
    size_t sizes[BINS];
    bin_sizes(stratum_size(null, stratum), sizes);
    for (size_t bin = 0; bin < BINS; bin++) total[bin] += sizes[bin];
    second += (size_t) null->sizes[1 + stratum * null->groups];
  }
  law[0] = 1;
  for (size_t stratum = 0; stratum < null->strata; stratum++) {
    size_t sizes[BINS];
    WEFT_TRY(weft_poll(ctx, (double) stratum, (double) null->strata));
    bin_sizes(stratum_size(null, stratum), sizes);
    memset(next, 0, cells * sizeof *next);
    add_stratum(law, reached, total[1] + 1, sizes, (size_t) null->sizes[1 + stratum * null->groups], next);
    for (size_t bin = 0; bin < 2; bin++) reached[bin] += sizes[bin];
    double *held = law;
    law = next;
    next = held;
  }
  memcpy(probability, law, cells * sizeof *law);
  tables_of_law(total, second, probability, statistic);
done:
  weft_arena_end(&mem);
  return st;
}

/* One permutation's table: labels of each stratum are dealt to its bins in random order. */
static double permuted_bits(const weft_ranking_null *null, const size_t *sizes, weft_rng rng, uint64_t first,
                            int32_t *labels, int32_t *table)
{
  memset(table, 0, BINS * null->groups * sizeof *table);
  for (size_t stratum = 0; stratum < null->strata; first += sizes[stratum++]) {
    size_t filled = 0;
    for (size_t g = 0; g < null->groups; g++)
      for (int32_t c = 0; c < null->sizes[g + stratum * null->groups]; c++) labels[filled++] = (int32_t) g;
    for (size_t i = 0; i < filled; i++) {
      const size_t other = i + (size_t) weft_draw_below(rng, first + i, filled - i);
      const int32_t label = labels[other];
      labels[other] = labels[i];
      table[BINS * i / filled + (size_t) label * BINS]++;
    }
  }
  return weft_ranking_bits(table, BINS, null->groups);
}

/* Draw d permutes the group labels within each batch by random numbers d n .. d n + n - 1 and takes the statistic of
 * the table; each thread has room for one. */
weft_status weft_ranking_permuted(weft_ctx *ctx, const weft_ranking_null *null, double *statistic)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const weft_rng rng = { null->key, 0 };
  size_t n = 0, *sizes;
  int32_t *labels, *tables;
  WEFT_TAKE(sizes, &mem, null->strata);
  for (size_t stratum = 0; stratum < null->strata; stratum++) n += sizes[stratum] = stratum_size(null, stratum);
  const int64_t draws = (int64_t) null->draws, at_once = 1 + (int64_t) (ctx->threads * 2e7 / (20 * (double) n));
  WEFT_TAKE(labels, &mem, n * (size_t) ctx->threads);
  WEFT_TAKE(tables, &mem, BINS * null->groups * (size_t) ctx->threads);
  for (int64_t first = 0; first < draws; first += at_once) {
    const int64_t end = first + at_once < draws ? first + at_once : draws;
    WEFT_TRY(weft_poll(ctx, (double) first, (double) draws));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) (end - first) * 20 * (double) n), static)
    for (int64_t d = first; d < end; d++) {
      const size_t own = (size_t) WEFT_THREAD();
      statistic[d] =
          permuted_bits(null, sizes, rng, (uint64_t) d * n, labels + own * n, tables + own * BINS * null->groups);
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}
