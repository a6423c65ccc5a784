/* See permutation_moments.h. The permutations of one column give r² a mean of 1 / (n - 1) and a second moment that
 * depends on the product of both columns' kurtosis alone (Pitman 1937); that of tau-b's square is that without ties
 * times what ties stretch both columns' by, but for terms of the order of 1 / n. R/mi-law.R makes p-values of these.
 *
 * Of more than SAMPLED rows, ranks are those of rows at equal distances; for values, orders are not counted then: there
 * are enough of them. */
#include <math.h>
#include <string.h>
#include "core/call/parallel.h"
#include "mi/matrix/both/numeric.h"
#include "mi/null/permutation_moments.h"
#include "mi/matrix/both/numeric_columns.h"

#define SAMPLED ((size_t) 20000)
#define COLUMNS_AT_ONCE(n) (1 + (size_t) 2000000 / ((n) + 1)) /* between polls: some 50 ms */

typedef struct {
  double *values, *scores;
  uint32_t *order, *other;
} workspace;

typedef struct {
  const weft_mi_numeric *data;
  const double *log_factorial; /* of 0 .. the rows taken */
  weft_mi_tails *tails;
} tails_job;

/* The unbiased sample excess kurtosis (k4 / k2 squared). Values are divided by the greatest absolute one first, so that
 * nothing overflows; 0 for constants and fewer than four rows. */
static double excess_kurtosis(const double *x, size_t n)
{
  const double rows = (double) n;
  double largest = 0, sum = 0, squares = 0, fourth = 0;
  if (n < 4) return 0;
  for (size_t i = 0; i < n; i++)
    if (fabs(x[i]) > largest) largest = fabs(x[i]);
  if (largest == 0) return 0;
  for (size_t i = 0; i < n; i++) sum += x[i] / largest;
  for (size_t i = 0; i < n; i++) {
    const double away = x[i] / largest - sum / rows;
    squares += away * away;
    fourth += away * away * away * away;
  }
  if (!(squares > 0) || !(fourth > 0)) return 0;
  return (rows - 1) / ((rows - 2) * (rows - 3)) * ((rows + 1) * rows * fourth / (squares * squares) - 3 * (rows - 1));
}

/* What is correlated of a run of equal values whose ranks, from 1, have the mean twice / 2. */
static double score_of(const weft_mi_numeric *data, double value, size_t twice, size_t rows)
{
  const double share = (double) twice / (2 * ((double) rows + 1));
  switch (weft_mi_uses(data->estimator)) {
  case WEFT_MI_VALUES: return value;
  case WEFT_MI_RANKS: return (double) twice;
  case WEFT_MI_SCORES: return share <= 0.5 ? weft_mi_lower_quantile(share) : -weft_mi_lower_quantile(1 - share);
  }
  return 0; /* never: every kind has its case */
}

/* Every step-th value that is not missing; all of them when these are all the same. */
static size_t take_rows(const double *x, size_t n, size_t step, double *out)
{
  size_t taken = 0;
  int varies = 0;
  for (size_t i = 0; i < n; i += step)
    if (x[i] == x[i]) out[taken++] = x[i];
  for (size_t i = 1; i < taken && !varies; i++) varies = out[i] != out[0];
  return varies || step == 1 ? taken : take_rows(x, n, 1, out);
}

/* What column j adds to the law of its pairs: kurtosis of its scores, the stretch by ties (Kendall), and the logarithm
 * of the number of different orders of its rows. */
static void column_tails(const tails_job *job, size_t j, const workspace *w)
{
  const weft_mi_numeric *data = job->data;
  const double *x = data->x + j * data->n;
  const int by_value = weft_mi_uses(data->estimator) == WEFT_MI_VALUES;
  const size_t known = take_rows(x, data->n, by_value ? 1 : data->n / (SAMPLED + 1) + 1, w->values);
  double same = 0, pairs = 0, triples = 0;
  int distinct = 1;
  if (by_value && known > SAMPLED) {
    job->tails[j] = (weft_mi_tails){ excess_kurtosis(w->values, known), 1, INFINITY };
    return;
  }
  weft_mi_order(w->values, known, w->order, w->other);
  for (size_t first = 0, end; first < known; first = end) {
    const double value = w->values[w->order[first]];
    for (end = first + 1; end < known && w->values[w->order[end]] == value;) end++;
    const double tied = (double) (end - first);
    same += job->log_factorial[end - first];
    pairs += tied * (tied - 1);
    triples += tied * (tied - 1) * (tied - 2);
    distinct &= end - first == 1;
    for (size_t r = first; r < end; r++) w->scores[r] = score_of(data, value, first + 1 + end, known);
  }
  const double rows = (double) known, untied_pairs = rows * (rows - 1) - pairs;
  job->tails[j] =
      (weft_mi_tails){ excess_kurtosis(w->scores, known),
                       known > 2 && untied_pairs > 0 ? (rows * (rows - 1) - triples / (rows - 2)) / untied_pairs : 1,
                       job->log_factorial[known] - same - (distinct && known > 1 ? log(2) : 0) };
}

/* Threads share columns; each has room for one column's values, scores and orders. */
weft_status weft_mi_tails_of(weft_ctx *ctx, const weft_mi_numeric *data, weft_mi_tails *tails)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t n = data->n, at_once = COLUMNS_AT_ONCE(n), room = n * (size_t) ctx->threads;
  double *log_factorial, *values, *scores;
  uint32_t *order, *other;
  WEFT_TAKE(log_factorial, &mem, n + 1);
  WEFT_TAKE(values, &mem, room);
  WEFT_TAKE(scores, &mem, room);
  WEFT_TAKE(order, &mem, room);
  WEFT_TAKE(other, &mem, room);
  log_factorial[0] = 0;
  for (size_t k = 1; k <= n; k++) log_factorial[k] = log_factorial[k - 1] + log((double) k);
  const tails_job job = { data, log_factorial, tails };
  for (size_t first = 0; first < data->p; first += at_once) {
    const int64_t end = (int64_t) (data->p - first < at_once ? data->p : first + at_once);
    WEFT_TRY(weft_poll(ctx, 0, 1));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, ((double) end - (double) first) * (double) n * 60), guided)
    for (int64_t j = (int64_t) first; j < end; j++) {
      const size_t mine = (size_t) WEFT_THREAD() * n;
      const workspace w = { values + mine, scores + mine, order + mine, other + mine };
      column_tails(&job, (size_t) j, &w);
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}
