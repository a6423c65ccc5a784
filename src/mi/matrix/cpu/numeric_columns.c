/* Preparation of numeric columns, and pairs with missing values; see numeric.h. */
/* Build: shared. */
#include <string.h>
#include "core/call/parallel.h"
#include "mi/matrix/both/numeric.h"
#include "mi/matrix/both/ksg.h"

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
  uint32_t m = 0;
  for (size_t i = 0; i < n; i++)
    if (x[i] == x[i]) order[m++] = (uint32_t) i;
  for (size_t first = 0; first < m; first += 8) { /* runs of eight by insertion */
    size_t end = first + 8 < m ? first + 8 : m;
    for (size_t i = first + 1; i < end; i++) {
      uint32_t row = order[i];
      size_t j = i;
      for (; j > first && x[row] < x[order[j - 1]]; j--) order[j] = order[j - 1];
      order[j] = row;
    }
  }
  uint32_t *from = order, *to = other;
  for (size_t width = 8; width < m; width *= 2) {
    for (size_t a = 0; a < m; a += 2 * width)
      merge(x, from, a, a + width < m ? a + width : m, a + 2 * width < m ? a + 2 * width : m, to);
    uint32_t *swap = from;
    from = to;
    to = swap;
  }
  if (from != order) memcpy(order, from, m * sizeof *order);
  return m;
}

/* Twice the rank (from 1) of each row in `order`, ties averaged: whole numbers. f[2 rank] is what is correlated. */
static void rank_rows(const double *x, const uint32_t *order, size_t m, const double *f, double *out)
{
  for (size_t first = 0, end; first < m; first = end) {
    for (end = first + 1; end < m && x[order[end]] == x[order[first]];) end++;
    const size_t twice = first + 1 + end;
    for (size_t r = first; r < end; r++) out[order[r]] = f ? f[twice] : (double) twice;
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
static void normal_scores(size_t m, double *scores)
{
  for (size_t t = 2; t <= m + 1; t++) {
    double q = weft_mi_lower_quantile((double) t / (2 * ((double) m + 1)));
    scores[2 * (m + 1) - t] = -q;
    scores[t] = q;
  }
}

/* ---- scaling ---- */

/* The power of two that brings the greatest absolute value into [1/2, 1). */
static double power_of_two(const double *x, size_t m)
{
  double most = 0;
  int exponent;
  for (size_t i = 0; i < m; i++)
    if (fabs(x[i]) > most) most = fabs(x[i]);
  if (most == 0) return 1;
  frexp(most, &exponent);
  if (exponent > 1000) return ldexp(1, -1000); /* products stay finite either way */
  if (exponent < -1000) return ldexp(1, 1000);
  return ldexp(1, -exponent);
}

static int is_constant(const double *x, size_t m)
{
  for (size_t i = 1; i < m; i++)
    if (x[i] != x[0]) return 0;
  return 1;
}

static double mean_of(const double *x, size_t m)
{
  double sum = 0, rest = 0, mean;
  for (size_t i = 0; i < m; i++) sum += x[i];
  mean = sum / (double) m;
  for (size_t i = 0; i < m; i++) rest += x[i] - mean;
  return mean + rest / (double) m;
}

/* Centres x and brings it to length one; 1 when it is constant (then it is zero). In place is allowed. */
static int standardise(const double *x, size_t m, double *z)
{
  const double scale = power_of_two(x, m);
  if (is_constant(x, m)) {
    memset(z, 0, m * sizeof *z);
    return 1;
  }
  for (size_t i = 0; i < m; i++) z[i] = x[i] * scale;
  const double mean = mean_of(z, m);
  double most = 0, sum = 0;
  for (size_t i = 0; i < m; i++) z[i] -= mean;
  for (size_t i = 0; i < m; i++)
    if (fabs(z[i]) > most) most = fabs(z[i]);
  if (most == 0) return 1;
  for (size_t i = 0; i < m; i++) {
    z[i] /= most;
    sum += z[i] * z[i];
  }
  const double length = sqrt(sum);
  for (size_t i = 0; i < m; i++) z[i] /= length;
  return 0;
}

/* Multiplies by a power of two; returns 1 / standard deviation, or 0 for a constant, and the slack of the result, see
 * ksg.h. In place is allowed. */
static double scale_values(const double *x, size_t m, double *u, double *slack)
{
  const double scale = power_of_two(x, m);
  const int constant = m < 2 || is_constant(x, m);
  double largest = 0;
  for (size_t i = 0; i < m; i++) u[i] = x[i] * scale;
  for (size_t i = 0; i < m; i++)
    if (fabs(u[i]) > largest) largest = fabs(u[i]);
  *slack = WEFT_KSG_SLACK * largest;
  if (constant) return 0;
  const double mean = mean_of(u, m);
  double most = 0, sum = 0;
  for (size_t i = 0; i < m; i++)
    if (fabs(u[i] - mean) > most) most = fabs(u[i] - mean);
  for (size_t i = 0; i < m; i++) {
    double d = (u[i] - mean) / most;
    sum += d * d;
  }
  return 1 / (most * sqrt(sum / ((double) m - 1)));
}

/* ---- columns made ready ---- */

static int by_rank(weft_mi_numeric_kind e) { return weft_mi_uses(e) != WEFT_MI_VALUES; }

static int has_missing(const double *x, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (x[i] != x[i]) return 1;
  return 0;
}

/* Prepares column j: its order, and for KSG its scaled values and distances to near neighbours, else its standardised
 * values or ranks. `other` and `work` are room for n numbers. */
static void make_column(const weft_mi_ready *r, size_t j, const double *scores, uint32_t *other, double *work)
{
  const size_t n = r->data->n;
  const double *x = r->data->x + j * n;
  const weft_mi_numeric_kind e = r->data->estimator;
  weft_mi_column *column = &r->columns[j];
  uint32_t *order = r->order ? r->order + j * n : NULL;
  column->incomplete = (uint8_t) has_missing(x, n);
  column->inverse_sd = 0;
  column->constant = 0;
  if (order) r->complete[j] = weft_mi_order(x, n, order, other);
  if (column->incomplete) return; /* its pairs are prepared one by one */
  if (weft_mi_way(e) == WEFT_MI_NEIGHBOURS) {
    double *u = r->scaled + j * n, *sorted = r->sorted + j * n;
    column->inverse_sd = scale_values(x, n, u, &column->slack);
    column->constant = column->inverse_sd == 0;
    for (size_t i = 0; i < n; i++) sorted[i] = u[order[i]];
    weft_ksg_near(u, order, n, r->data->k, column->inverse_sd, r->near + j * n);
  } else {
    double *z = r->z + j * r->stride;
    if (by_rank(e)) rank_rows(x, order, n, scores, work);
    column->constant = (uint8_t) standardise(by_rank(e) ? work : x, n, z);
    memset(z + n, 0, (r->stride - n) * sizeof *z);
  }
}

/* Takes the memory that the estimator needs for all columns, and fills the tables of the digamma function for KSG. */
static weft_status take_columns(weft_arena *mem, weft_mi_ready *r)
{
  weft_status st = WEFT_OK;
  const size_t n = r->data->n, p = r->data->p;
  WEFT_TAKE0(r->columns, mem, p);
  const int neighbours = weft_mi_way(r->data->estimator) == WEFT_MI_NEIGHBOURS;
  if (neighbours || by_rank(r->data->estimator)) {
    WEFT_TAKE(r->order, mem, n * p);
    WEFT_TAKE(r->complete, mem, p);
  }
  if (neighbours) {
    WEFT_TAKE(r->scaled, mem, n * p);
    WEFT_TAKE(r->sorted, mem, n * p);
    WEFT_TAKE(r->near, mem, n * p);
    WEFT_TAKE(r->psi, mem, n + 1);
    WEFT_TAKE(r->shifted, mem, n + 1);
    r->psi[0] = r->shifted[0] = 0;
    for (size_t c = 1; c <= n; c++) {
      r->psi[c] = c == 1 ? -0.57721566490153286 : r->psi[c - 1] + 1 / ((double) c - 1);
      r->shifted[c] = r->psi[c] - 1 / (double) c;
    }
  } else {
    r->stride = (n + WEFT_DOT_LANES - 1) / WEFT_DOT_LANES * WEFT_DOT_LANES;
    WEFT_TAKE0(r->z, mem, r->stride * (p + WEFT_DOT_SPARE));
  }
done:
  return st;
}

/* Prepares all columns, threads sharing them. What the result points to comes from `mem`; `data` must outlive it. */
weft_status weft_mi_make_ready(weft_ctx *ctx, weft_arena *mem, const weft_mi_numeric *data, weft_mi_ready *r)
{
  weft_status st = WEFT_OK;
  weft_arena own = weft_arena_begin(ctx);
  const size_t n = data->n, at_once = COLUMNS_AT_ONCE(n);
  double *scores = NULL, *work;
  uint32_t *other;
  memset(r, 0, sizeof *r);
  r->data = data;
  WEFT_TRY(take_columns(mem, r));
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
      for (int64_t j = (int64_t) first; j < end; j++) make_column(r, (size_t) j, scores, other + mine, work + mine);
    }
  }
  for (size_t j = 0; j < data->p; j++) r->any_incomplete |= r->columns[j].incomplete;
done:
  weft_arena_end(&own);
  return st;
}

/* ---- pairs with missing values ---- */

weft_status weft_mi_scratch_take(weft_arena *mem, size_t n, weft_mi_scratch *s)
{
  weft_status st = WEFT_OK;
  memset(s, 0, sizeof *s);
  WEFT_TAKE(s->a, mem, n);
  WEFT_TAKE(s->b, mem, n);
  WEFT_TAKE(s->x, mem, n);
  WEFT_TAKE(s->y, mem, n);
  WEFT_TAKE(s->y_sorted, mem, n);
  WEFT_TAKE(s->near_x, mem, n);
  WEFT_TAKE(s->near_y, mem, n);
  WEFT_TAKE(s->distance, mem, n);
  WEFT_TAKE(s->nearest, mem, n);
  WEFT_TAKE(s->found, mem, n + 1);
  WEFT_TAKE(s->scores, mem, 2 * n + 2);
  WEFT_TAKE(s->order_a, mem, n);
  WEFT_TAKE(s->order_b, mem, n);
  WEFT_TAKE(s->place, mem, n);
  WEFT_TAKE0(s->counts, mem, 2 * n + 2);
done:
  return st;
}

/* The rows of `order` that are common, as places among the common rows. */
static void common_order(const uint32_t *order, size_t count, const uint32_t *place, uint32_t *out)
{
  for (size_t r = 0; r < count; r++)
    if (place[order[r]] != UINT32_MAX) *out++ = place[order[r]];
}

static double dot(const double *a, const double *b, size_t m)
{
  double lanes[WEFT_DOT_LANES] = { 0 };
  for (size_t i = 0; i < m; i++) lanes[i % WEFT_DOT_LANES] = weft_add(lanes[i % WEFT_DOT_LANES], weft_mul(a[i], b[i]));
  return weft_dot_tree(lanes);
}

/* KSG of the m rows that both columns know, which the caller has put into the scratch room together with their orders.
 * In bits; 0 where a column is constant or has too few rows. */
static double ksg_of_common(const weft_mi_ready *r, size_t m, weft_mi_scratch *s)
{
  const int k = r->data->k;
  double slack_a, slack_b;
  const double scale_a = scale_values(s->a, m, s->a, &slack_a), scale_b = scale_values(s->b, m, s->b, &slack_b);
  if (!scale_a || !scale_b || (size_t) k >= m) return 0;
  weft_ksg_near(s->a, s->order_a, m, k, scale_a, s->x);
  weft_ksg_near(s->b, s->order_b, m, k, scale_b, s->y);
  for (size_t t = 0; t < m; t++) {
    s->near_x[t] = s->x[s->order_a[t]];
    s->near_y[t] = s->y[s->order_a[t]];
  }
  for (size_t t = 0; t < m; t++) {
    s->x[t] = s->a[s->order_a[t]];
    s->y[t] = s->b[s->order_a[t]];
    s->y_sorted[t] = s->b[s->order_b[t]];
  }
  weft_ksg_pair pair = { m, k, s->x, s->y, s->y_sorted, s->near_x, s->near_y, scale_a, scale_b, slack_a, slack_b };
  weft_ksg_work work = { s->distance, s->nearest, s->found };
  return weft_ksg_bits_of_pair(&pair, r->psi, r->shifted, &work, s->counts);
}

/* Scores a pair over the rows that both columns know: these are copied, ordered by the columns' own orders, and scored
 * as a pair of complete columns. In bits. */
double weft_mi_incomplete_pair(const weft_mi_ready *r, size_t i, size_t j, weft_mi_scratch *s)
{
  const weft_mi_numeric *d = r->data;
  const double *x = d->x + i * d->n, *y = d->x + j * d->n;
  size_t m = 0;
  for (size_t row = 0; row < d->n; row++) {
    const int common = x[row] == x[row] && y[row] == y[row];
    s->place[row] = common ? (uint32_t) m : UINT32_MAX;
    if (common) {
      s->a[m] = x[row];
      s->b[m] = y[row];
      m++;
    }
  }
  if (m < 2) return 0;
  if (r->order) {
    common_order(r->order + i * d->n, r->complete[i], s->place, s->order_a);
    common_order(r->order + j * d->n, r->complete[j], s->place, s->order_b);
  }
  if (weft_mi_way(d->estimator) == WEFT_MI_NEIGHBOURS) return ksg_of_common(r, m, s);
  if (by_rank(d->estimator)) {
    const int copula = weft_mi_uses(d->estimator) == WEFT_MI_SCORES;
    if (copula && s->scored != m) {
      normal_scores(m, s->scores);
      s->scored = m;
    }
    rank_rows(s->a, s->order_a, m, copula ? s->scores : NULL, s->x);
    rank_rows(s->b, s->order_b, m, copula ? s->scores : NULL, s->y_sorted);
    memcpy(s->a, s->x, m * sizeof *s->a);
    memcpy(s->b, s->y_sorted, m * sizeof *s->b);
  }
  if (standardise(s->a, m, s->a) || standardise(s->b, m, s->b)) return 0;
  return weft_mi_of_rho(dot(s->a, s->b, m));
}
