/* Conditional Gaussian nodes. A node of numbers is normal with a mean that is linear in its parents that are numbers,
 * c of them; intercept, slopes and variance are those of the configuration of its parents that are categories:
 *
 *     Σ_k [ln p(rows of configuration k)] - penalty × q (c + 2)      q configurations, whether they occur or not
 *     ln p = -n/2 (ln 2π + ln s²) - (n - c - 1)/2                    s² = sum of squared residuals / (n - c - 1)
 *
 * There is no such score when a configuration that occurs has no more than c + 1 rows, or no residual variance. A
 * number that others determine within a configuration has no slope there. Values depend on the set alone: parents are
 * taken in ascending order, rows in the order of the data. */
/* Build: shared. */
#include <math.h>
#include <string.h>
#include "bn/cpu/table/mixed.h"

#define COLLINEAR 1e-10 /* of its variance, what may be left of a number that others determine */
#define EXACT 1e-13     /* the same of the node itself */
#define MAX_UNITS 2e15

weft_status weft_bn_mixed_make(weft_arena *mem, const weft_bn_ready *ready, weft_bn_mixed *out)
{
  weft_status st = WEFT_OK;
  const weft_bn_problem *problem = ready->problem;
  uint32_t most = 1;
  *out = (weft_bn_mixed){ 0 };
  for (size_t j = 0; j < problem->p; j++)
    if (ready->columns.levels[j] > most) most = ready->columns.levels[j];
  WEFT_TAKE(out->row, mem, problem->n + 1);
  WEFT_TAKE(out->other, mem, problem->n + 1);
  WEFT_TAKE(out->end, mem, problem->n + 1);
  WEFT_TAKE(out->count, mem, (size_t) most + 1);
  WEFT_TAKE(out->value, mem, (ready->max_parents + 2) * (problem->n + 1));
done:
  return st;
}

/* Rows that count for the child, in the order of one category. */
static void sort_by(const weft_bn_ready *ready, weft_bn_mixed *mixed, size_t v, size_t rows)
{
  const uint16_t *code = ready->columns.codes + v * ready->columns.n;
  const size_t levels = ready->columns.levels[v];
  memset(mixed->count, 0, (levels + 1) * sizeof *mixed->count);
  for (size_t k = 0; k < rows; k++) mixed->count[code[mixed->row[k]] + 1]++;
  for (size_t level = 0; level < levels; level++) mixed->count[level + 1] += mixed->count[level];
  for (size_t k = 0; k < rows; k++) mixed->other[mixed->count[code[mixed->row[k]]]++] = mixed->row[k];
  int32_t *sorted = mixed->other;
  mixed->other = mixed->row;
  mixed->row = sorted;
}

/* Sorts the rows by the categories, unless they are, and notes where configurations end. Returns how many rows count.
 */
static size_t sort_rows(const weft_bn_ready *ready, weft_bn_mixed *mixed, size_t i, const size_t *by, size_t count)
{
  const weft_bn_problem *problem = ready->problem;
  const int32_t *set = problem->set ? problem->set + i * problem->n : NULL;
  size_t rows = 0;
  if (mixed->held && mixed->by == count && (!set || mixed->child == i) &&
      !memcmp(mixed->sorted, by, count * sizeof *by))
    return mixed->parts ? (size_t) mixed->end[mixed->parts - 1] : 0;
  for (size_t r = 0; r < problem->n; r++)
    if (!set || !set[r]) mixed->row[rows++] = (int32_t) r;
  for (size_t k = 0; k < count; k++) sort_by(ready, mixed, by[k], rows);
  mixed->parts = 0;
  for (size_t k = 1; k <= rows; k++) {
    int ends = k == rows;
    for (size_t j = 0; j < count && !ends; j++) {
      const uint16_t *code = ready->columns.codes + by[j] * ready->columns.n;
      ends = code[mixed->row[k]] != code[mixed->row[k - 1]];
    }
    if (ends) mixed->end[mixed->parts++] = (int32_t) k;
  }
  memcpy(mixed->sorted, by, count * sizeof *by);
  mixed->by = count;
  mixed->child = i;
  mixed->held = 1;
  return rows;
}

/* One configuration's numbers less their mean; equal numbers become 0. */
static void centre(const double *x, const int32_t *row, size_t n, double *out)
{
  double sum = 0;
  for (size_t k = 0; k < n; k++) sum += out[k] = x[row[k]] - x[row[0]];
  const double mean = sum / (double) n;
  for (size_t k = 0; k < n; k++) out[k] -= mean;
}

static double dot(const double *a, const double *b, size_t n)
{
  double sum[4] = { 0 };
  size_t k = 0;
  for (; k + 4 <= n; k += 4)
    for (size_t j = 0; j < 4; j++) sum[j] += a[k + j] * b[k + j];
  for (; k < n; k++) sum[0] += a[k] * b[k];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* The child's sum of squared residuals: `value` has `count` columns of n centred numbers, the child last, which are
 * made orthogonal one after the other. Negative when the parents determine the child. */
static double residual(double *value, size_t count, size_t n)
{
  double left = 0;
  for (size_t j = 0; j < count; j++) {
    double *own = value + j * n;
    const double whole = dot(own, own, n);
    for (size_t k = 0; k < j; k++) {
      const double *other = value + k * n, slope = dot(own, other, n);
      for (size_t r = 0; r < n && slope != 0; r++) own[r] -= slope * other[r];
    }
    left = dot(own, own, n);
    if (j + 1 == count) return left > EXACT * whole ? left : -1;
    const double times = left > COLLINEAR * whole ? 1 / sqrt(left) : 0;
    for (size_t r = 0; r < n; r++) own[r] *= times;
  }
  return left;
}

int64_t weft_bn_mixed_value(const weft_bn_ready *ready, weft_bn_mixed *mixed, size_t i, const size_t *parents, size_t m)
{
  const weft_bn_problem *problem = ready->problem;
  size_t by[WEFT_BN_MAX_PARENTS + 1], number[WEFT_BN_MAX_PARENTS + 2], categories = 0, numbers = 0;
  double configurations = 1, total = 0;
  for (size_t v = 0, met = 0; met < m && v < problem->p; v++) { /* ascending */
    size_t k = 0;
    while (k < m && parents[k] != v) k++;
    if (k == m) continue;
    met++;
    if (problem->number[v])
      number[numbers++] = v;
    else {
      by[categories++] = v;
      configurations *= problem->levels[v];
    }
  }
  number[numbers] = i;
  const size_t rows = sort_rows(ready, mixed, i, by, categories);
  const double each = problem->completions, lost = (double) (numbers + 1);
  for (size_t part = 0, from = 0; part < mixed->parts; from = (size_t) mixed->end[part++]) {
    const size_t n = (size_t) mixed->end[part] - from;
    if ((double) n <= each * lost) return WEFT_BN_NEVER;
    for (size_t j = 0; j <= numbers; j++)
      centre(problem->numbers + number[j] * problem->n, mixed->row + from, n, mixed->value + j * n);
    const double squares = residual(mixed->value, numbers + 1, n) / each, degrees = (double) n / each - lost;
    if (!(squares > 0)) return WEFT_BN_NEVER;
    total -= 0.5 * (double) n / each * (log(2 * M_PI) + log(squares / degrees)) + 0.5 * degrees;
  }
  total -= (double) rows / each * problem->log_unit[i];
  total -= weft_bn_penalty_of(problem->score, (double) rows / each) * configurations * (double) (numbers + 2);
  total *= ready->unit;
  return total > -MAX_UNITS ? (int64_t) rint(total) : WEFT_BN_NEVER;
}
