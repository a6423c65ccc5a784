/* Mean and variance of S = sum of f(n_ac), f(x) = x log x, over all tables with fixed margins, from hypergeometric
 * expectations: a cell has the distribution hyper(n, c, r) of a draw of r rows of which c are of its class; given its
 * count x, another cell of the level has hyper(n - c, c', r - x), and a cell of another level and class, given also y
 * rows of the first level in that class, hyper(n - r, c' - y, r').
 *
 * Levels with the same margin are one group: r and c are margins, m and w how many levels and classes have them. */
#include "mi/null/law.h"
#include "mi/null/table_moments.h"

#define NEGLIGIBLE 1e-15

/* Probabilities of hyper(n, c, r) at low .. high, relative to their greatest, and their sum. */
typedef struct {
  size_t low, high, mode;
  double total;
} span;

static span span_of(size_t n, size_t c, size_t r)
{
  span range = { r + c > n ? r + c - n : 0, r < c ? r : c, 0, 0 };
  range.mode = (size_t) (((double) r + 1) * ((double) c + 1) / ((double) n + 2));
  if (range.mode < range.low) range.mode = range.low;
  if (range.mode > range.high) range.mode = range.high;
  return range;
}

/* The probability at x + 1 relative to that at x. */
static double rise(size_t n, size_t c, size_t r, size_t x)
{
  return (double) (r - x) * (double) (c - x) / ((double) (x + 1) * (double) (n + x + 1 - r - c));
}

/* Probabilities at s.low .. s.high, of which negligible ones are left out, to `p`. */
static span probabilities(size_t n, size_t c, size_t r, double *p)
{
  span range = span_of(n, c, r);
  size_t x;
  p[range.mode] = range.total = 1;
  for (x = range.mode; x < range.high && p[x] > NEGLIGIBLE; x++) range.total += p[x + 1] = p[x] * rise(n, c, r, x);
  range.high = x;
  for (x = range.mode; x > range.low && p[x] > NEGLIGIBLE; x--) range.total += p[x - 1] = p[x] / rise(n, c, r, x - 1);
  range.low = x;
  for (x = range.low; x <= range.high; x++) p[x] /= range.total;
  return range;
}

/* The expectation of value[x]. */
static double expectation(size_t n, size_t c, size_t r, const double *value)
{
  const span range = span_of(n, c, r);
  double p = 1, total = 1, sum = value[range.mode];
  for (size_t x = range.mode; x < range.high && p > NEGLIGIBLE; x++) {
    p *= rise(n, c, r, x);
    total += p;
    sum += p * value[x + 1];
  }
  p = 1;
  for (size_t x = range.mode; x > range.low && p > NEGLIGIBLE; x--) {
    p /= rise(n, c, r, x - 1);
    total += p;
    sum += p * value[x - 1];
  }
  return sum / total;
}

double weft_mi_mean(const weft_mi_groups *groups, const double *f)
{
  double mean = 0;
  for (uint32_t g = 0; g < groups->g_count; g++)
    for (uint32_t h = 0; h < groups->h_count; h++)
      mean += groups->m[g] * groups->w[h] *
              expectation((size_t) groups->n, (size_t) groups->c[h], (size_t) groups->r[g], f);
  return mean;
}

/* Counts of a cell with a probability worth a visit, roughly. */
static double width(const weft_mi_groups *groups, uint32_t g, uint32_t h)
{
  const double mean = groups->r[g] * groups->c[h] / groups->n, limit = fmin(groups->r[g], groups->c[h]);
  return fmin(limit, 16 * weft_sqrt(mean * (1 - groups->r[g] / groups->n) * (1 - groups->c[h] / groups->n)) + 6);
}

double weft_mi_variance_work(const weft_mi_groups *groups)
{
  double sum = 0;
  for (uint32_t g = 0; g < groups->g_count; g++)
    for (uint32_t h = 0; h < groups->h_count; h++) sum += width(groups, g, h);
  return sum * sum;
}

/* E f in cell (g, h), whose probabilities are in `p`, times the sum of f over all cells of other classes, in the same
 * level and in all others. `inner`: room for expectations. */
static double with_others(const weft_mi_groups *groups, uint32_t g, uint32_t h, const span *range, const double *p,
                          double *inner, const double *f)
{
  const size_t n = (size_t) groups->n, r = (size_t) groups->r[g], c = (size_t) groups->c[h];
  double sum = 0;
  for (uint32_t u = 0; u < groups->h_count; u++) {
    const size_t other = (size_t) groups->c[u], limit = r < other ? r : other;
    const double classes = groups->w[u] - (u == h);
    if (classes <= 0) continue;
    /* f of the level's own cell of class u with y rows, and of all other levels' cells, given y */
    for (size_t y = 0; y <= limit; y++) {
      inner[y] = f[y];
      if (other - y > n - r) continue; /* impossible */
      for (uint32_t q = 0; q < groups->g_count; q++) {
        const double levels = groups->m[q] - (q == g);
        if (levels > 0) inner[y] += levels * expectation(n - r, other - y, (size_t) groups->r[q], f);
      }
    }
    for (size_t x = range->low; x <= range->high; x++)
      if (f[x] > 0) sum += classes * p[x] * f[x] * expectation(n - c, other, r - x, inner);
  }
  return sum;
}

/* E f in cell (g, h) times the sum of f over all other levels' cells of the same class. */
static double with_class(const weft_mi_groups *groups, uint32_t g, uint32_t h, const span *range, const double *p,
                         const double *f)
{
  const size_t n = (size_t) groups->n, r = (size_t) groups->r[g], c = (size_t) groups->c[h];
  double sum = 0;
  for (size_t x = range->low; x <= range->high; x++) {
    double others = 0;
    if (f[x] <= 0) continue;
    for (uint32_t q = 0; q < groups->g_count; q++) {
      const double levels = groups->m[q] - (q == g);
      if (levels > 0) others += levels * expectation(n - r, c - x, (size_t) groups->r[q], f);
    }
    sum += p[x] * f[x] * others;
  }
  return sum;
}

double weft_mi_variance(const weft_mi_groups *groups, const double *f, double mean, double *room_p, double *room_inner)
{
  double square = 0;
  for (uint32_t g = 0; g < groups->g_count; g++)
    for (uint32_t h = 0; h < groups->h_count; h++) {
      const span range = probabilities((size_t) groups->n, (size_t) groups->c[h], (size_t) groups->r[g], room_p);
      double own = 0;
      for (size_t x = range.low; x <= range.high; x++) own += room_p[x] * f[x] * f[x];
      own += with_class(groups, g, h, &range, room_p, f) + with_others(groups, g, h, &range, room_p, room_inner, f);
      square += groups->m[g] * groups->w[h] * own;
    }
  return square - mean * mean;
}
