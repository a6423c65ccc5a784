/* Cut points of numeric columns.
 *
 * By frequency: the values at ranks ceil(b n / bins), b = 1 .. bins - 1; equal ones count once, and none is at the
 * maximum, so that no bin is empty. The others look at a class and cut half way between neighbouring values. MDL
 * (Fayyad and Irani 1993) splits where the class entropy E within the parts is least, and continues in both parts, if
 * the gain exceeds (log2(n - 1) + log2(3^k - 2) - (k E - k1 E1 - k2 E2)) / n, k the classes present. CAIM (Kurgan and
 * Cios 2004), CACC (Tsai, Lee and Yang 2008) and Ameva (Gonzalez-Abril et al. 2009) add the cut that raises a criterion
 * most, as long as it rises; CAIM and CACC also continue until there are as many bins as classes. With r bins, s
 * classes: CAIM = mean over bins of (largest class count)^2 / bin count; with X2 the chi-squared statistic and y = X2 /
 * ln r, CACC = sqrt(y / (y + n)); Ameva = X2 / (r (s - 1)). */
#include <math.h>
#include <string.h>
#include "core/call/arena.h"
#include "core/call/parallel.h"
#include "core/data/bits.h"
#include "mi/mi.h"
#include "mi/matrix/both/numeric.h"
#include "mi/matrix/both/numeric_columns.h"

/* A column of distinct values with class counts: total[c * (distinct + 1) + v] rows of class c among the first v
 * values. */
typedef struct {
  size_t n, distinct, classes;
  const double *values;
  uint32_t *total;
  const double *f; /* f[k] = k log2 k */
} counted;

/* One thread's. */
typedef struct {
  uint32_t *order, *other, *total;
  double *values;
  size_t *stack;
  uint8_t *chosen;
} workspace;

static uint32_t between(const counted *x, size_t from, size_t to, size_t c)
{
  return x->total[c * (x->distinct + 1) + to] - x->total[c * (x->distinct + 1) + from];
}

/* Between two values; the lower one where there is no number between them. */
static double middle(const counted *x, size_t at)
{
  const double low = x->values[at - 1], middle = low / 2 + x->values[at] / 2;
  return middle < x->values[at] ? middle : low;
}

/* ---- by frequency ---- */

static int32_t frequency_cuts(const double *x, const uint32_t *order, size_t m, size_t bins, double *cuts)
{
  int32_t count = 0;
  for (size_t b = 1; b < bins && m; b++) {
    const size_t rank = (size_t) (((uint64_t) b * m + bins - 1) / bins);
    const double cut = x[order[rank ? rank - 1 : 0]];
    if (cut < x[order[m - 1]] && (!count || cut > cuts[count - 1])) cuts[count++] = cut;
  }
  return count;
}

/* ---- MDL ---- */

typedef struct {
  double n, sum;
  int classes;
} part; /* rows, n × entropy in bits, classes present */

static part measure(const counted *x, size_t from, size_t to)
{
  part p = { 0, 0, 0 };
  uint64_t n = 0;
  for (size_t c = 0; c < x->classes; c++) {
    const uint32_t k = between(x, from, to, c);
    p.sum -= x->f[k];
    p.classes += k > 0;
    n += k;
  }
  p.n = (double) n;
  p.sum += x->f[n];
  return p;
}

/* The best cut of values [from, to), or 0 when none passes. */
static size_t mdl_cut(const counted *x, size_t from, size_t to)
{
  const part whole = measure(x, from, to);
  part left = { 0, 0, 0 }, right = { 0, 0, 0 };
  size_t best = 0;
  double least = INFINITY;
  for (size_t at = from + 1; at < to; at++) {
    const part a = measure(x, from, at), b = measure(x, at, to);
    if (a.sum + b.sum < least) {
      least = a.sum + b.sum;
      best = at;
      left = a;
      right = b;
    }
  }
  if (!best) return 0;
  const double k = whole.classes, n = whole.n, all = k < 40 ? log2(pow(3, k) - 2) : k * log2(3);
  const double delta =
      all - (k * whole.sum / n - left.classes * left.sum / left.n - right.classes * right.sum / right.n);
  return (whole.sum - least) / n > (log2(n - 1) + delta) / n ? best : 0;
}

static void mdl_choose(const counted *x, workspace *w)
{
  size_t depth = 0;
  w->stack[depth++] = 0;
  w->stack[depth++] = x->distinct;
  while (depth) {
    const size_t to = w->stack[--depth], from = w->stack[--depth], at = to - from > 1 ? mdl_cut(x, from, to) : 0;
    if (!at) continue;
    w->chosen[at] = 1;
    w->stack[depth++] = from;
    w->stack[depth++] = at;
    w->stack[depth++] = at;
    w->stack[depth++] = to;
  }
}

/* ---- CAIM, CACC, Ameva ---- */

/* What is known of a bin: its rows, those of its most frequent class, and the sum of squared counts over the rows of
 * each class. */
typedef struct {
  double n, largest, squares;
} bin;

static double share_none(const bin *b) { return (void) b, 0; }
static double share_largest(const bin *b) { return b->largest * b->largest / b->n; }
static double share_squares(const bin *b) { return b->squares / b->n; }

/* A bin's share of the sum that the criterion is made of. */
static double share(const counted *x, weft_bins_method method, size_t from, size_t to)
{
  bin b = { 0, 0, 0 };
  for (size_t c = 0; c < x->classes; c++) {
    const double k = between(x, from, to, c), of_class = between(x, 0, x->distinct, c);
    b.n += k;
    if (k > b.largest) b.largest = k;
    if (k > 0) b.squares += k * k / of_class;
  }
/* clang-format off */
#define SHARE(kind, name, way, share, criterion, classes) case WEFT_BINS_##kind: return share_##share(&b);
  /* clang-format on */
  switch (method) {
    WEFT_BINS_KINDS(SHARE)
  }
#undef SHARE
  return 0; /* never: every kind has its case */
}

static double criterion_none(double sum, double chi, double bins, const counted *x)
{
  return (void) sum, (void) chi, (void) bins, (void) x, 0;
}

static double criterion_mean(double sum, double chi, double bins, const counted *x)
{
  return (void) chi, (void) x, sum / bins;
}

static double criterion_cacc(double sum, double chi, double bins, const counted *x)
{
  const double y = (chi > 0 ? chi : 0) / log(bins);
  return (void) sum, sqrt(y / (y + (double) x->n));
}

static double criterion_ameva(double sum, double chi, double bins, const counted *x)
{
  return (void) sum, chi / (bins * ((double) x->classes - 1));
}

/* A row without its functions does not compile. */
#define THERE(kind, name, way, share, criterion, classes) +sizeof &share_##share + sizeof &criterion_##criterion
enum { CRITERIA_THERE = 0 WEFT_BINS_KINDS(THERE) };
#undef THERE

static double criterion(const counted *x, weft_bins_method method, double sum, double bins)
{
  const double chi = (double) x->n * (sum - 1);
/* clang-format off */
#define CRITERION(kind, name, way, share, criterion, classes) \
  case WEFT_BINS_##kind: return criterion_##criterion(sum, chi, bins, x);
  /* clang-format on */
  switch (method) {
    WEFT_BINS_KINDS(CRITERION)
  }
#undef CRITERION
  return 0; /* never: every kind has its case */
}

/* Adds cuts to w->chosen one at a time, the one that gives the highest criterion (the first of equal ones), for as long
 * as the criterion rises or the method wants more bins. A cut divides the bin [from, to) that holds it. */
static void top_down_choose(const counted *x, weft_bins_method method, workspace *w)
{
  double sum = share(x, method, 0, x->distinct), reached = 0;
  for (size_t bins = 1; bins < x->distinct; bins++) {
    double highest = -INFINITY, best_sum = 0;
    size_t best = 0, from = 0, to = 0;
    for (size_t at = 0; at < x->distinct; at++) {
      if (at == to) { /* the next bin: there is a cut before `at` already, and none before the first value */
        from = to;
        for (to = from + 1; to < x->distinct && !w->chosen[to];) to++;
        continue;
      }
      const double now = sum - share(x, method, from, to) + (share(x, method, from, at) + share(x, method, at, to));
      const double value = criterion(x, method, now, (double) bins + 1);
      if (!best || value > highest + 1e-12 * fabs(highest)) {
        highest = value;
        best_sum = now;
        best = at;
      }
    }
    if (!best || !(highest > reached || (weft_bins_kind_of(method)->classes && bins < x->classes))) return;
    w->chosen[best] = 1;
    sum = best_sum;
    reached = highest;
  }
}

/* ---- columns ---- */

/* Whether the class counts of the values, read from the greatest down, come before those read from the least up, by the
 * first that differs. */
static int reads_backward(const counted *x)
{
  for (size_t value = 0, last = x->distinct - 1; value < last; value++, last--)
    for (size_t c = 0; c < x->classes; c++) {
      const uint32_t low = between(x, value, value + 1, c), high = between(x, last, last + 1, c);
      if (low != high) return low < high;
    }
  return 0;
}

/* The counts of the same column with its values in decreasing order. */
static void turn_round(const counted *x)
{
  for (size_t c = 0; c < x->classes; c++) {
    uint32_t *total = x->total + c * (x->distinct + 1);
    const uint32_t all = total[x->distinct];
    for (size_t value = 0, other = x->distinct; value <= other; value++, other--) {
      const uint32_t low = all - total[other], high = all - total[value];
      total[value] = low;
      total[other] = high;
    }
  }
}

/* Rows with a value and a class, in order of values, counted. Classes are numbered in the order of their codes, so that
 * sums over classes do not depend on the order of the values. */
static counted count_column(const weft_bins_job *job, size_t j, const double *f, workspace *w)
{
  const double *x = job->x + j * job->n;
  const uint32_t classes = weft_mi_order(x, job->n, w->order, w->other);
  counted out = { 0, 0, 0, w->values, w->total, f };
  uint32_t *map = w->other; /* classes that occur, from 0 */
  memset(map, 255, job->class_levels * sizeof *map);
  for (uint32_t row = 0; row < classes; row++)
    if (job->classes[w->order[row]] != WEFT_NA_U16) map[job->classes[w->order[row]]] = 0;
  for (uint32_t c = 0; c < job->class_levels; c++)
    if (!map[c]) map[c] = (uint32_t) out.classes++;
  for (uint32_t row = 0; row < classes; row++) {
    const uint16_t c = job->classes[w->order[row]];
    if (c == WEFT_NA_U16) continue;
    if (!out.n || x[w->order[row]] != w->values[out.distinct - 1]) w->values[out.distinct++] = x[w->order[row]];
    out.n++;
  }
  const size_t width = out.distinct + 1;
  memset(w->total, 0, out.classes * width * sizeof *w->total);
  for (uint32_t row = 0, value = 0; row < classes; row++) {
    const uint16_t c = job->classes[w->order[row]];
    if (c == WEFT_NA_U16) continue;
    while (x[w->order[row]] != w->values[value]) value++;
    w->total[map[c] * width + value + 1]++;
  }
  for (size_t c = 0; c < out.classes; c++)
    for (size_t value = 1; value < width; value++) w->total[c * width + value] += w->total[c * width + value - 1];
  return out;
}

/* The cuts of column j; returns how many. Which of several equally good cuts is taken depends on the direction in which
 * values are visited. That direction is decided by the counts, so that x and -x get the same bins, mirrored (unless the
 * counts read the same both ways). */
static int32_t class_cuts(const weft_bins_job *job, size_t j, const double *f, double *cuts, workspace *w)
{
  const counted x = count_column(job, j, f, w);
  int32_t count = 0;
  if (x.classes < 2 || x.distinct < 2) return 0;
  const int backward = reads_backward(&x);
  if (backward) turn_round(&x);
  memset(w->chosen, 0, x.distinct);
  if (weft_bins_kind_of(job->method)->way == WEFT_BINS_SPLITS)
    mdl_choose(&x, w);
  else
    top_down_choose(&x, job->method, w);
  for (size_t at = 1; at < x.distinct; at++)
    if (w->chosen[backward ? x.distinct - at : at]) cuts[count++] = middle(&x, at);
  return count;
}

/* Finds the cut points of all columns, threads sharing columns. Every thread has room for one column's order, class
 * counts and stack of parts. */
weft_status weft_mi_cuts(weft_ctx *ctx, const weft_bins_job *job, size_t max_cuts, double *cuts, int32_t *counts)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const int by_class = weft_bins_kind_of(job->method)->way != WEFT_BINS_BY_FREQUENCY;
  const size_t n = job->n, batch = 1 + (size_t) ctx->threads * (by_class ? 1 : 1000000 / (n + 1));
  const size_t words = n > job->class_levels ? n : job->class_levels;
  double *f = NULL;
  workspace *work;
  WEFT_TAKE0(work, &mem, (size_t) ctx->threads);
  for (int thread = 0; thread < ctx->threads; thread++) {
    WEFT_TAKE(work[thread].order, &mem, n);
    WEFT_TAKE(work[thread].other, &mem, words);
    if (!by_class) continue;
    WEFT_TAKE(work[thread].values, &mem, n);
    WEFT_TAKE(work[thread].total, &mem, (n + 1) * job->class_levels);
    WEFT_TAKE(work[thread].stack, &mem, 2 * n + 8);
    WEFT_TAKE(work[thread].chosen, &mem, n + 1);
  }
  if (by_class) {
    WEFT_TAKE(f, &mem, n + 1);
    for (size_t k = 0; k <= n; k++) f[k] = k ? (double) k * log2((double) k) : 0;
  }
  for (size_t first = 0; first < job->p; first += batch) {
    const int64_t end = (int64_t) (job->p - first < batch ? job->p : first + batch);
    WEFT_TRY(weft_poll(ctx, (double) first, (double) job->p));
    const double values = (double) (end - (int64_t) first) * (double) n;
    WEFT_PARALLEL(weft_threads_worth(ctx->threads, values * (by_class ? 100 : 30)))
    {
      workspace *w = &work[WEFT_THREAD()];
      WEFT_FOR(guided)
      for (int64_t j = (int64_t) first; j < end; j++) {
        const double *x = job->x + (size_t) j * n;
        double *own = cuts + (size_t) j * max_cuts;
        counts[j] = by_class ? class_cuts(job, (size_t) j, f, own, w)
                             : frequency_cuts(x, w->order, weft_mi_order(x, n, w->order, w->other), job->bins, own);
      }
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* ---- codes ---- */

/* 1 + how many of the increasing cuts are below x. */
static int32_t code_of(double x, const double *cuts, int32_t count)
{
  int32_t from = 0, to = count;
  if (x != x) return INT32_MIN;
  if (count <= 16) {
    for (int32_t c = 0; c < count; c++) from += cuts[c] < x;
    return from + 1;
  }
  while (from < to) {
    const int32_t at = from + (to - from) / 2;
    if (cuts[at] < x)
      from = at + 1;
    else
      to = at;
  }
  return from + 1;
}

/* Turns values into bin numbers, threads sharing columns; polls between batches of some two million values per thread.
 * */
weft_status weft_mi_cut(weft_ctx *ctx, size_t n, size_t p, const double *x, const double *cuts, const double *starts,
                        int32_t *codes)
{
  weft_status st = WEFT_OK;
  const size_t batch = 1 + (size_t) ctx->threads * 2000000 / (n + 1);
  for (size_t first = 0; first < p; first += batch) {
    const int64_t end = (int64_t) (p - first < batch ? p : first + batch);
    WEFT_TRY(weft_poll(ctx, (double) first, (double) p));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, ((double) end - (double) first) * (double) n * 5), guided)
    for (int64_t j = (int64_t) first; j < end; j++)
      for (size_t i = 0; i < n; i++)
        codes[(size_t) j * n + i] =
            code_of(x[(size_t) j * n + i], cuts + (size_t) starts[j], (int32_t) (starts[j + 1] - starts[j]));
  }
done:
  return st;
}
