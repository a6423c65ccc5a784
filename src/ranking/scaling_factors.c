/* Scaling factors of counts: trimmed means of M-values (Robinson and Oshlack 2010).
 *
 * For a sample and a reference with totals N and N_r, a gene with counts y and y_r has M = log2((y / N) / (y_r / N_r))
 * and A = log2((y / N) (y_r / N_r)) / 2. Of the genes counted in both, 30 % with the least and the greatest M and 5 %
 * with the least and the greatest A are left out; the factor is 2 to the mean of M over the others, weighted by the
 * inverse of its variance (N - y) / (N y) + (N_r - y_r) / (N_r y_r). The reference is the sample whose upper quartile
 * of y / N is nearest to the mean upper quartile. */
#include <math.h>
#include "core/call/arena.h"
#include "core/data/column_facts.h"
#include "core/call/parallel.h"
#include "ranking/ranking.h"
#include "ranking/scaling_factors.h"

#define TRIM_M 0.3
#define TRIM_A 0.05

/* One thread's: counts of a sample, M, A, variance, and room to select in. */
typedef struct sample_space {
  double *y, *m, *a, *variance, *room;
} sample_space;

static void read_sample(const double *counts, size_t n, size_t p, size_t i, double *y)
{
  for (size_t j = 0; j < p; j++) y[j] = isnan(counts[i + j * n]) ? 0 : counts[i + j * n];
}

static double total_of(const double *y, size_t p)
{
  double sum = 0;
  for (size_t j = 0; j < p; j++) sum += y[j];
  return sum;
}

/* The upper quartile, between two values as in R's quantile(). Changes the order of y. */
static double upper_quartile(double *y, size_t p)
{
  const double place = 0.75 * (double) (p - 1);
  const size_t low = (size_t) place;
  weft_select_place(y, p, low);
  const double first = y[low];
  if (low + 1 >= p) return first;
  double second = y[low + 1];
  for (size_t j = low + 2; j < p; j++)
    if (y[j] < second) second = y[j];
  return first + (place - (double) low) * (second - first);
}

/* Values whose rank, of equal ones the mean rank, is from `trim` to `count` + 1 - `trim`: those from *low to *high. */
static void trimmed_range(const double *values, size_t count, size_t trim, double *room, double *low, double *high)
{
  for (int upper = 0; upper < 2; upper++) {
    double *bound = upper ? high : low, next = upper ? -INFINITY : INFINITY;
    size_t beyond = 0, equal = 0;
    for (size_t j = 0; j < count; j++) room[j] = values[j];
    weft_select_place(room, count, upper ? count - trim : trim - 1);
    *bound = room[upper ? count - trim : trim - 1];
    for (size_t j = 0; j < count; j++) {
      equal += values[j] == *bound;
      if (upper ? values[j] > *bound : values[j] < *bound)
        beyond++;
      else if (values[j] != *bound && (upper ? values[j] > next : values[j] < next))
        next = values[j];
    }
    /* twice the mean rank from this side; where it is below the trim, all equal values are left out */
    if (2 * beyond + equal + 1 < 2 * trim) *bound = next;
  }
}

/* The factor of one sample (counts y of p genes) against the reference: 2 to the weighted mean of log ratios M, without
 * the extreme M and the extreme levels A. Genes that are 0 in either are left out; 1 where nothing is left. */
static double factor_of(const double *y, double total, const double *reference, double reference_total, size_t p,
                        const sample_space *space)
{
  size_t count = 0;
  double greatest = 0, low_m, high_m, low_a, high_a, sum = 0, weights = 0;
  for (size_t j = 0; j < p; j++) {
    if (!(y[j] > 0 && reference[j] > 0)) continue;
    const double here = y[j] / total, there = reference[j] / reference_total;
    space->m[count] = log2(here / there);
    space->a[count] = (log2(here) + log2(there)) / 2;
    space->variance[count] =
        (total - y[j]) / total / y[j] + (reference_total - reference[j]) / reference_total / reference[j];
    if (fabs(space->m[count]) > greatest) greatest = fabs(space->m[count]);
    count++;
  }
  if (!count || greatest < 1e-6) return 1;
  trimmed_range(space->m, count, (size_t) ((double) count * TRIM_M) + 1, space->room, &low_m, &high_m);
  trimmed_range(space->a, count, (size_t) ((double) count * TRIM_A) + 1, space->room, &low_a, &high_a);
  for (size_t j = 0; j < count; j++) {
    const double m = space->m[j], a = space->a[j];
    if (m < low_m || m > high_m || a < low_a || a > high_a || !(space->variance[j] > 0)) continue;
    sum += m / space->variance[j];
    weights += 1 / space->variance[j];
  }
  return weights > 0 ? exp2(sum / weights) : 1;
}

static weft_status take_spaces(weft_arena *mem, size_t p, int team, sample_space *spaces)
{
  weft_status st = WEFT_OK;
  for (int t = 0; t < team; t++) {
    WEFT_TAKE(spaces[t].y, mem, p);
    WEFT_TAKE(spaces[t].m, mem, p);
    WEFT_TAKE(spaces[t].a, mem, p);
    WEFT_TAKE(spaces[t].variance, mem, p);
    WEFT_TAKE(spaces[t].room, mem, p);
  }
done:
  return st;
}

/* The sample whose quartile is nearest to the mean. */
static size_t choose_reference(const double *quartile, size_t n)
{
  const double mean = total_of(quartile, n) / (double) n;
  size_t best = 0;
  for (size_t i = 1; i < n; i++)
    if (fabs(quartile[i] - mean) < fabs(quartile[best] - mean)) best = i;
  return best;
}

/* Two passes over the samples: totals and upper quartiles, by which the reference is chosen (the quartile nearest to
 * the mean), then the factors; at the end they are divided by their geometric mean. */
weft_status weft_ranking_factors(weft_ctx *ctx, const double *counts, size_t n, size_t p, double *factors)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const int team = n < (size_t) ctx->threads ? (int) n : ctx->threads;
  double *total, *quartile, *reference, mean = 0;
  sample_space *spaces;
  WEFT_TAKE(total, &mem, n);
  WEFT_TAKE(quartile, &mem, n);
  WEFT_TAKE(reference, &mem, p);
  WEFT_TAKE(spaces, &mem, (size_t) team);
  WEFT_TRY(take_spaces(&mem, p, team, spaces));
  const int64_t at_once = 1 + (int64_t) (team * 2e7 / (20 * (double) p + 1)), samples = (int64_t) n;
  size_t chosen = 0;
  for (int pass = 0; pass < 2; pass++) {
    for (int64_t first = 0; first < samples; first += at_once) {
      const int64_t end = first + at_once < samples ? first + at_once : samples;
      WEFT_TRY(weft_poll(ctx, (double) (first + pass * samples), 2.0 * (double) n));
      WEFT_PARALLEL_FOR(weft_threads_worth(team, (double) (end - first) * 20 * (double) p), static)
      for (int64_t i = first; i < end; i++) {
        const sample_space *space = &spaces[WEFT_THREAD()];
        read_sample(counts, n, p, (size_t) i, space->y);
        if (pass) {
          factors[i] = factor_of(space->y, total[i], reference, total[chosen], p, space);
        } else {
          total[i] = total_of(space->y, p);
          quartile[i] = upper_quartile(space->y, p) / total[i];
        }
      }
    }
    if (!pass) {
      chosen = choose_reference(quartile, n);
      read_sample(counts, n, p, chosen, reference);
    }
  }
  for (size_t i = 0; i < n; i++) mean += log(factors[i]) / (double) n;
  for (size_t i = 0; i < n; i++) factors[i] /= exp(mean);
done:
  weft_arena_end(&mem);
  return st;
}
