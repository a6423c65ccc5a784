/* Preparation of numeric columns, and pairs with missing values; see numeric.h. */
/* Build: shared. */
#include <string.h>
#include "core/call/parallel.h"
#include "mi/matrix/both/numeric.h"
#include "mi/matrix/both/ksg.h"
#include "mi/matrix/both/numeric_columns.h"

#define COLUMNS_AT_ONCE(n) (1 + (size_t) 2000000 / ((n) + 1)) /* between polls: some 50 ms */

/* ---- order, ranks, scores ---- */

/* Merges runs of rows ordered by value; equal values stay in order of rows. */
static void merge(const double *x, const uint32_t *from, size_t a, size_t middle, size_t end, uint32_t *to)
{
  size_t b = middle;
  for (size_t out = a; out < end; out++)
    to[out] = a < middle && (b >= end || !(x[from[b]] < x[from[a]])) ? from[a++] : from[b++];
}

/* A stable merge sort of the known rows by value, from runs of eight that are sorted by insertion. `order` and `other`
 * have room for n rows; returns how many rows are known. */
uint32_t weft_mi_order(const double *x, size_t n, uint32_t *order, uint32_t *other)
{
  uint32_t known = 0;
  for (size_t i = 0; i < n; i++)
    if (x[i] == x[i]) order[known++] = (uint32_t) i;
  for (size_t first = 0; first < known; first += 8) { /* runs of eight by insertion */
    size_t end = first + 8 < known ? first + 8 : known;
    for (size_t i = first + 1; i < end; i++) {
      uint32_t row = order[i];
      size_t j = i;
      for (; j > first && x[row] < x[order[j - 1]]; j--) order[j] = order[j - 1];
      order[j] = row;
    }
  }
  uint32_t *from = order, *to = other;
  for (size_t width = 8; width < known; width *= 2) {
    for (size_t a = 0; a < known; a += 2 * width)
      merge(x, from, a, a + width < known ? a + width : known, a + 2 * width < known ? a + 2 * width : known, to);
    uint32_t *swap = from;
    from = to;
    to = swap;
  }
  if (from != order) memcpy(order, from, known * sizeof *order);
  return known;
}

/* Twice the rank (from 1) of each row in `order`, ties averaged: whole numbers. f[2 rank] is what is correlated. */
static void rank_rows(const double *x, const uint32_t *order, size_t count, const double *f, double *out)
{
  for (size_t first = 0, end; first < count; first = end) {
    for (end = first + 1; end < count && x[order[end]] == x[order[first]];) end++;
    const size_t twice = first + 1 + end;
    for (size_t row = first; row < end; row++) out[order[row]] = f ? f[twice] : (double) twice;
  }
}

/* Newton's steps with Halley's correction on Φ(x) = erfc(-x / √2) / 2, from a start that is within one of the root. */
double weft_mi_lower_quantile(double p)
{
  double t = sqrt(-2 * log(p)), x = -(t - (2.3 + 0.27 * t) / (1 + t * (0.99 + 0.045 * t)));
  if (p == 0.5) return 0;
  for (int step = 0; step < 20; step++) {
    double density = 0.39894228040143268 * exp(-0.5 * x * x), error = 0.5 * erfc(-x * 0.70710678118654752) - p;
    double u = error / density, next = x - u / (1 + 0.5 * x * u);
    if (fabs(next - x) <= 1e-15 * fabs(x)) return next;
    x = next;
  }
  return x;
}

/* scores[t] = Φ⁻¹((t / 2) / (m + 1)) for t = 2 .. 2m: symmetric to the bit. */
static void normal_scores(size_t count, double *scores)
{
  for (size_t rank = 2; rank <= count + 1; rank++) {
    double q = weft_mi_lower_quantile((double) rank / (2 * ((double) count + 1)));
    scores[2 * (count + 1) - rank] = -q;
    scores[rank] = q;
  }
}

/* ---- scaling ---- */

/* The power of two that brings the greatest absolute value into [1/2, 1). */
static double power_of_two(const double *x, size_t count)
{
  double most = 0;
  int exponent;
  for (size_t i = 0; i < count; i++)
    if (fabs(x[i]) > most) most = fabs(x[i]);
  if (most == 0) return 1;
  frexp(most, &exponent);
  if (exponent > 1000) return ldexp(1, -1000); /* products stay finite either way */
  if (exponent < -1000) return ldexp(1, 1000);
  return ldexp(1, -exponent);
}

static int is_constant(const double *x, size_t count)
{
  for (size_t i = 1; i < count; i++)
    if (x[i] != x[0]) return 0;
  return 1;
}

static double mean_of(const double *x, size_t count)
{
  double sum = 0, rest = 0, mean;
  for (size_t i = 0; i < count; i++) sum += x[i];
  mean = sum / (double) count;
  for (size_t i = 0; i < count; i++) rest += x[i] - mean;
  return mean + rest / (double) count;
}

/* Centres x and brings it to length one; 1 when it is constant (then it is zero). In place is allowed. */
static int standardise(const double *x, size_t count, double *z)
{
  const double scale = power_of_two(x, count);
  if (is_constant(x, count)) {
    memset(z, 0, count * sizeof *z);
    return 1;
  }
  for (size_t i = 0; i < count; i++) z[i] = x[i] * scale;
  const double mean = mean_of(z, count);
  double most = 0, sum = 0;
  for (size_t i = 0; i < count; i++) z[i] -= mean;
  for (size_t i = 0; i < count; i++)
    if (fabs(z[i]) > most) most = fabs(z[i]);
  if (most == 0) return 1;
  for (size_t i = 0; i < count; i++) {
    z[i] /= most;
    sum += z[i] * z[i];
  }
  const double length = sqrt(sum);
  for (size_t i = 0; i < count; i++) z[i] /= length;
  return 0;
}

/* Multiplies by a power of two; returns 1 / standard deviation, or 0 for a constant, and the slack of the result, see
 * ksg.h. In place is allowed. */
static double scale_values(const double *x, size_t count, double *scaled, double *slack)
{
  const double scale = power_of_two(x, count);
  const int constant = count < 2 || is_constant(x, count);
  double largest = 0;
  for (size_t i = 0; i < count; i++) scaled[i] = x[i] * scale;
  for (size_t i = 0; i < count; i++)
    if (fabs(scaled[i]) > largest) largest = fabs(scaled[i]);
  *slack = WEFT_KSG_SLACK * largest;
  if (constant) return 0;
  const double mean = mean_of(scaled, count);
  double most = 0, sum = 0;
  for (size_t i = 0; i < count; i++)
    if (fabs(scaled[i] - mean) > most) most = fabs(scaled[i] - mean);
  for (size_t i = 0; i < count; i++) {
    double apart = (scaled[i] - mean) / most;
    sum += apart * apart;
  }
  return 1 / (most * sqrt(sum / ((double) count - 1)));
}

/* ---- columns made ready ---- */

static int by_rank(weft_mi_numeric_kind estimator) { return weft_mi_uses(estimator) != WEFT_MI_VALUES; }

static int has_missing(const double *x, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (x[i] != x[i]) return 1;
  return 0;
}

/* Prepares column j: its order, and for KSG its scaled values and distances to near neighbours, else its standardised
 * values or ranks. `other` and `work` are room for n numbers. */
static void make_column(const weft_mi_ready *ready, size_t j, const double *scores, uint32_t *other, double *work)
{
  const size_t n = ready->data->n;
  const double *x = ready->data->x + j * n;
  const weft_mi_numeric_kind estimator = ready->data->estimator;
  weft_mi_column *column = &ready->columns[j];
  uint32_t *order = ready->order ? ready->order + j * n : NULL;
  column->incomplete = (uint8_t) has_missing(x, n);
  column->inverse_sd = 0;
  column->constant = 0;
  if (order) ready->complete[j] = weft_mi_order(x, n, order, other);
  if (column->incomplete) return; /* its pairs are prepared one by one */
  if (weft_mi_way(estimator) == WEFT_MI_NEIGHBOURS) {
    double *u = ready->scaled + j * n, *sorted = ready->sorted + j * n;
    column->inverse_sd = scale_values(x, n, u, &column->slack);
    column->constant = column->inverse_sd == 0;
    for (size_t i = 0; i < n; i++) sorted[i] = u[order[i]];
    weft_ksg_near(u, order, n, ready->data->k, column->inverse_sd, ready->near + j * n);
  } else {
    double *z = ready->z + j * ready->stride;
    if (by_rank(estimator)) rank_rows(x, order, n, scores, work);
    column->constant = (uint8_t) standardise(by_rank(estimator) ? work : x, n, z);
    memset(z + n, 0, (ready->stride - n) * sizeof *z);
  }
}

/* Takes the memory that the estimator needs for all columns, and fills the tables of the digamma function for KSG. */
static weft_status take_columns(weft_arena *mem, weft_mi_ready *ready)
{
  weft_status st = WEFT_OK;
  const size_t n = ready->data->n, p = ready->data->p;
  WEFT_TAKE0(ready->columns, mem, p);
  const int neighbours = weft_mi_way(ready->data->estimator) == WEFT_MI_NEIGHBOURS;
  if (neighbours || by_rank(ready->data->estimator)) {
    WEFT_TAKE(ready->order, mem, n * p);
    WEFT_TAKE(ready->complete, mem, p);
  }
  if (neighbours) {
    WEFT_TAKE(ready->scaled, mem, n * p);
    WEFT_TAKE(ready->sorted, mem, n * p);
    WEFT_TAKE(ready->near, mem, n * p);
    WEFT_TAKE(ready->psi, mem, n + 1);
    WEFT_TAKE(ready->shifted, mem, n + 1);
    ready->psi[0] = ready->shifted[0] = 0;
    for (size_t c = 1; c <= n; c++) {
      ready->psi[c] = c == 1 ? -0.57721566490153286 : ready->psi[c - 1] + 1 / ((double) c - 1);
      ready->shifted[c] = ready->psi[c] - 1 / (double) c;
    }
  } else {
    ready->stride = (n + WEFT_DOT_LANES - 1) / WEFT_DOT_LANES * WEFT_DOT_LANES;
    WEFT_TAKE0(ready->z, mem, ready->stride * (p + WEFT_DOT_SPARE));
  }
done:
  return st;
}

/* Prepares all columns, threads sharing them. What the result points to comes from `mem`; `data` must outlive it. */
weft_status weft_mi_make_ready(weft_ctx *ctx, weft_arena *mem, const weft_mi_numeric *data, weft_mi_ready *ready)
{
  weft_status st = WEFT_OK;
  weft_arena own = weft_arena_begin(ctx);
  const size_t n = data->n, at_once = COLUMNS_AT_ONCE(n);
  double *scores = NULL, *work;
  uint32_t *other;
  memset(ready, 0, sizeof *ready);
  ready->data = data;
  WEFT_TRY(take_columns(mem, ready));
  WEFT_TAKE(other, &own, n * (size_t) ctx->threads);
  WEFT_TAKE(work, &own, n * (size_t) ctx->threads);
  if (weft_mi_uses(data->estimator) == WEFT_MI_SCORES) {
    WEFT_TAKE(scores, &own, 2 * n + 2);
    normal_scores(n, scores);
  }
  for (size_t first = 0; first < data->p; first += at_once) {
    const int64_t end = (int64_t) (data->p - first < at_once ? data->p : first + at_once);
    WEFT_TRY(weft_poll(ctx, 0, 1));
    WEFT_PARALLEL(weft_threads_worth(ctx->threads, ((double) end - (double) first) * (double) n * 40))
    {
      const size_t mine = (size_t) WEFT_THREAD() * n;
      WEFT_FOR(guided)
      for (int64_t j = (int64_t) first; j < end; j++) make_column(ready, (size_t) j, scores, other + mine, work + mine);
    }
  }
  for (size_t j = 0; j < data->p; j++) ready->any_incomplete |= ready->columns[j].incomplete;
done:
  weft_arena_end(&own);
  return st;
}

/* ---- pairs with missing values ---- */

weft_status weft_mi_scratch_take(weft_arena *mem, size_t n, weft_mi_scratch *scratch)
{
  weft_status st = WEFT_OK;
  memset(scratch, 0, sizeof *scratch);
  WEFT_TAKE(scratch->a, mem, n);
  WEFT_TAKE(scratch->b, mem, n);
  WEFT_TAKE(scratch->x, mem, n);
  WEFT_TAKE(scratch->y, mem, n);
  WEFT_TAKE(scratch->y_sorted, mem, n);
  WEFT_TAKE(scratch->near_x, mem, n);
  WEFT_TAKE(scratch->near_y, mem, n);
  WEFT_TAKE(scratch->distance, mem, n);
  WEFT_TAKE(scratch->nearest, mem, n);
  WEFT_TAKE(scratch->found, mem, n + 1);
  WEFT_TAKE(scratch->scores, mem, 2 * n + 2);
  WEFT_TAKE(scratch->order_a, mem, n);
  WEFT_TAKE(scratch->order_b, mem, n);
  WEFT_TAKE(scratch->place, mem, n);
  WEFT_TAKE0(scratch->counts, mem, 2 * n + 2);
done:
  return st;
}

/* The rows of `order` that are common, as places among the common rows. */
static void common_order(const uint32_t *order, size_t count, const uint32_t *place, uint32_t *out)
{
  for (size_t r = 0; r < count; r++)
    if (place[order[r]] != UINT32_MAX) *out++ = place[order[r]];
}

static double dot(const double *a, const double *b, size_t count)
{
  double lanes[WEFT_DOT_LANES] = { 0 };
  for (size_t i = 0; i < count; i++)
    lanes[i % WEFT_DOT_LANES] = weft_add(lanes[i % WEFT_DOT_LANES], weft_mul(a[i], b[i]));
  return weft_dot_tree(lanes);
}

/* KSG of the m rows that both columns know, which the caller has put into the scratch room together with their orders.
 * In bits; 0 where a column is constant or has too few rows. */
static double ksg_of_common(const weft_mi_ready *ready, size_t count, weft_mi_scratch *scratch)
{
  const int k = ready->data->k;
  double slack_a, slack_b;
  const double scale_a = scale_values(scratch->a, count, scratch->a, &slack_a),
               scale_b = scale_values(scratch->b, count, scratch->b, &slack_b);
  if (!scale_a || !scale_b || (size_t) k >= count) return 0;
  weft_ksg_near(scratch->a, scratch->order_a, count, k, scale_a, scratch->x);
  weft_ksg_near(scratch->b, scratch->order_b, count, k, scale_b, scratch->y);
  for (size_t row = 0; row < count; row++) {
    scratch->near_x[row] = scratch->x[scratch->order_a[row]];
    scratch->near_y[row] = scratch->y[scratch->order_a[row]];
  }
  for (size_t row = 0; row < count; row++) {
    scratch->x[row] = scratch->a[scratch->order_a[row]];
    scratch->y[row] = scratch->b[scratch->order_a[row]];
    scratch->y_sorted[row] = scratch->b[scratch->order_b[row]];
  }
  weft_ksg_pair pair = { count,   k,       scratch->x, scratch->y, scratch->y_sorted, scratch->near_x, scratch->near_y,
                         scale_a, scale_b, slack_a,    slack_b };
  weft_ksg_work work = { scratch->distance, scratch->nearest, scratch->found };
  return weft_ksg_bits_of_pair(&pair, ready->psi, ready->shifted, &work, scratch->counts);
}

/* Scores a pair over the rows that both columns know: these are copied, ordered by the columns' own orders, and scored
 * as a pair of complete columns. In bits. */
double weft_mi_incomplete_pair(const weft_mi_ready *ready, size_t i, size_t j, weft_mi_scratch *scratch)
{
  const weft_mi_numeric *data = ready->data;
  const double *x = data->x + i * data->n, *y = data->x + j * data->n;
  size_t common_rows = 0;
  for (size_t row = 0; row < data->n; row++) {
    const int common = x[row] == x[row] && y[row] == y[row];
    scratch->place[row] = common ? (uint32_t) common_rows : UINT32_MAX;
    if (common) {
      scratch->a[common_rows] = x[row];
      scratch->b[common_rows] = y[row];
      common_rows++;
    }
  }
  if (common_rows < 2) return 0;
  if (ready->order) {
    common_order(ready->order + i * data->n, ready->complete[i], scratch->place, scratch->order_a);
    common_order(ready->order + j * data->n, ready->complete[j], scratch->place, scratch->order_b);
  }
  if (weft_mi_way(data->estimator) == WEFT_MI_NEIGHBOURS) return ksg_of_common(ready, common_rows, scratch);
  if (by_rank(data->estimator)) {
    const int copula = weft_mi_uses(data->estimator) == WEFT_MI_SCORES;
    if (copula && scratch->scored != common_rows) {
      normal_scores(common_rows, scratch->scores);
      scratch->scored = common_rows;
    }
    rank_rows(scratch->a, scratch->order_a, common_rows, copula ? scratch->scores : NULL, scratch->x);
    rank_rows(scratch->b, scratch->order_b, common_rows, copula ? scratch->scores : NULL, scratch->y_sorted);
    memcpy(scratch->a, scratch->x, common_rows * sizeof *scratch->a);
    memcpy(scratch->b, scratch->y_sorted, common_rows * sizeof *scratch->b);
  }
  if (standardise(scratch->a, common_rows, scratch->a) || standardise(scratch->b, common_rows, scratch->b)) return 0;
  return weft_mi_of_rho(dot(scratch->a, scratch->b, common_rows));
}
