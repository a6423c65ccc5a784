/* What rules for bandwidths need to know of a column: its standard deviation and its quartiles. */
#include <math.h>
#include <string.h>
#include "kernel/cpu/bandwidth/sample.h"
#include "kernel/cpu/points.h"

#define AT_ONCE ((size_t) 1 << 18)
#define CLASSES 4096

typedef struct {
  long double first, second;
} sums; /* of x - from and of its square */

/* Four sums at once: a single one would have to wait for each of its additions. */
static weft_status sum_up(weft_ctx *ctx, const double *x, size_t n, long double from, sums *out)
{
  weft_status st = WEFT_OK;
  sums a = { 0, 0 }, b = a, c = a, d = a;
#define ADD(to, value) \
  do { \
    const long double away = (value) -from; \
    to.first += away, to.second += away * away; \
  } while (0)
  for (size_t start = 0; start < n; start += AT_ONCE) {
    const size_t end = n - start < AT_ONCE ? n : start + AT_ONCE;
    size_t i = start;
    WEFT_TRY(weft_poll(ctx, (double) start, (double) n));
    for (; i + 4 <= end; i += 4) {
      ADD(a, x[i]);
      ADD(b, x[i + 1]);
      ADD(c, x[i + 2]);
      ADD(d, x[i + 3]);
    }
    for (; i < end; i++) ADD(a, x[i]);
  }
#undef ADD
  out->first = a.first + b.first + (c.first + d.first), out->second = a.second + b.second + (c.second + d.second);
done:
  return st;
}

/* Two passes in extended precision: the mean, then the squares about it, corrected for the rounding of the mean. */
weft_status weft_kernel_deviation(weft_ctx *ctx, const double *x, size_t n, double *out)
{
  weft_status st = WEFT_OK;
  const long double all = (long double) n;
  long double mean;
  sums about;
  *out = NAN;
  if (n < 2) goto done;
  WEFT_TRY(sum_up(ctx, x, n, 0, &about));
  mean = about.first / all;
  WEFT_TRY(sum_up(ctx, x, n, mean, &about)); /* the mean was rounded: corrects for that */
  about.second -= about.first * about.first / all;
  *out = about.second > 0 ? (double) sqrtl(about.second / (all - 1)) : 0;
done:
  return st;
}

/* ---- quantiles ---- */

/* The k-th smallest of n numbers, counted from 0. Reorders x: no number before place k is greater, none behind it
 * smaller. */
static double select_kth(double *x, size_t n, size_t k)
{
  size_t low = 0, high = n - 1;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    /* the median of three goes first, which makes the partitioning below end before `high` */
    const size_t at = (x[low] < x[middle]) == (x[middle] < x[high]) ? middle
                      : (x[low] < x[middle]) == (x[high] < x[low])  ? low
                                                                    : high;
    const double pivot = x[at];
    size_t i = low, j = high;
    x[at] = x[low], x[low] = pivot;
    for (;;) {
      while (x[i] < pivot) i++;
      while (x[j] > pivot) j--;
      if (i >= j) break;
      const double other = x[i];
      x[i++] = x[j], x[j--] = other;
    }
    if (k <= j)
      high = j; /* up to j none is greater than the pivot, and behind it none less */
    else
      low = j + 1;
  }
  return x[k];
}

static size_t class_of(double x, double least, double per_class)
{
  const double at = (x - least) * per_class;
  return at < CLASSES ? (size_t) at : CLASSES - 1;
}

/* Values of the classes of the k-th and the next value: *first is how many lie before, *count how many there are. */
static void classes_of(const uint64_t *of_class, size_t k, size_t n, size_t *from, size_t *to, size_t *first,
                       size_t *count)
{
  size_t before = 0, c = 0;
  while (before + of_class[c] <= k) before += of_class[c++];
  *from = c, *first = before;
  before += of_class[c];
  while (before <= k + 1 && before < n) before += of_class[++c];
  *to = c, *count = before - *first;
}

/* Counts the numbers in classes of equal width, which tell between which classes a quantile lies; only these numbers
 * are copied and partly sorted. */
weft_status weft_kernel_quantiles(weft_ctx *ctx, const double *x, size_t n, const double *probability, size_t quantiles,
                                  double *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  double range[3], *some, per_class;
  uint64_t *of_class;
  WEFT_TRY(weft_points_facts(ctx, x, n, 1, range, NULL));
  per_class = (CLASSES - 1) / (range[1] - range[0]);
  if (!(per_class > 0 && per_class < INFINITY)) per_class = 0; /* all in one class */
  WEFT_TAKE0(of_class, &mem, CLASSES);
  for (size_t start = 0; start < n; start += AT_ONCE) {
    const size_t end = n - start < AT_ONCE ? n : start + AT_ONCE;
    WEFT_TRY(weft_poll(ctx, (double) start, (double) n));
    for (size_t i = start; i < end; i++) of_class[class_of(x[i], range[0], per_class)]++;
  }
  for (size_t q = 0; q < quantiles; q++) {
    const double place = probability[q] * (double) (n - 1), part = place - floor(place);
    const size_t k = (size_t) floor(place);
    size_t from, to, first, count, filled = 0;
    classes_of(of_class, k, n, &from, &to, &first, &count);
    WEFT_TAKE(some, &mem, count);
    for (size_t i = 0; i < n; i++) {
      const size_t c = class_of(x[i], range[0], per_class);
      if (i % AT_ONCE == 0) WEFT_TRY(weft_poll(ctx, (double) i, (double) n));
      if (c >= from && c <= to) some[filled++] = x[i];
    }
    out[q] = select_kth(some, count, k - first);
    if (part > 0) {
      double next = INFINITY;
      for (size_t i = k - first + 1; i < count; i++) next = fmin(next, some[i]);
      out[q] += part * (next - out[q]);
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}
