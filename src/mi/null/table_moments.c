/* Mean and variance of S = sum of f(n_ac), f(x) = x log x, over all tables with fixed margins, from hypergeometric
 * expectations: a cell has the distribution hyper(n, c, r) of a draw of r rows of which c are of its class; given its
 * count x, another cell of the level has hyper(n - c, c', r - x), and a cell of another level and class, given also y
 * rows of the first level in that class, hyper(n - r, c' - y, r').
 *
 * Levels with the same margin are one group: r and c are margins, m and w how many levels and classes have them. */
#include "mi/null/law.h"

#define NEGLIGIBLE 1e-15

/* Probabilities of hyper(n, c, r) at low .. high, relative to their greatest, and their sum. */
typedef struct {
  size_t low, high, mode;
  double total;
} span;

static span span_of(size_t n, size_t c, size_t r)
{
  span s = { r + c > n ? r + c - n : 0, r < c ? r : c, 0, 0 };
  s.mode = (size_t) (((double) r + 1) * ((double) c + 1) / ((double) n + 2));
  if (s.mode < s.low) s.mode = s.low;
  if (s.mode > s.high) s.mode = s.high;
  return s;
}

/* The probability at x + 1 relative to that at x. */
static double rise(size_t n, size_t c, size_t r, size_t x)
{
  return (double) (r - x) * (double) (c - x) / ((double) (x + 1) * (double) (n + x + 1 - r - c));
}

/* Probabilities at s.low .. s.high, of which negligible ones are left out, to `p`. */
static span probabilities(size_t n, size_t c, size_t r, double *p)
{
  span s = span_of(n, c, r);
  size_t x;
  p[s.mode] = s.total = 1;
  for (x = s.mode; x < s.high && p[x] > NEGLIGIBLE; x++) s.total += p[x + 1] = p[x] * rise(n, c, r, x);
  s.high = x;
  for (x = s.mode; x > s.low && p[x] > NEGLIGIBLE; x--) s.total += p[x - 1] = p[x] / rise(n, c, r, x - 1);
  s.low = x;
  for (x = s.low; x <= s.high; x++) p[x] /= s.total;
  return s;
}

/* The expectation of value[x]. */
static double expectation(size_t n, size_t c, size_t r, const double *value)
{
  const span s = span_of(n, c, r);
  double p = 1, total = 1, sum = value[s.mode];
  for (size_t x = s.mode; x < s.high && p > NEGLIGIBLE; x++) {
    p *= rise(n, c, r, x);
    total += p;
    sum += p * value[x + 1];
  }
  p = 1;
  for (size_t x = s.mode; x > s.low && p > NEGLIGIBLE; x--) {
    p /= rise(n, c, r, x - 1);
    total += p;
    sum += p * value[x - 1];
  }
  return sum / total;
}

double weft_mi_mean(const weft_mi_groups *t, const double *f)
{
  double mean = 0;
  for (uint32_t g = 0; g < t->g_count; g++)
    for (uint32_t h = 0; h < t->h_count; h++)
      mean += t->m[g] * t->w[h] * expectation((size_t) t->n, (size_t) t->c[h], (size_t) t->r[g], f);
  return mean;
}

/* Counts of a cell with a probability worth a visit, roughly. */
static double width(const weft_mi_groups *t, uint32_t g, uint32_t h)
{
  const double mean = t->r[g] * t->c[h] / t->n, most = fmin(t->r[g], t->c[h]);
  return fmin(most, 16 * weft_sqrt(mean * (1 - t->r[g] / t->n) * (1 - t->c[h] / t->n)) + 6);
}

double weft_mi_variance_work(const weft_mi_groups *t)
{
  double sum = 0;
  for (uint32_t g = 0; g < t->g_count; g++)
    for (uint32_t h = 0; h < t->h_count; h++) sum += width(t, g, h);
  return sum * sum;
}

/* E f in cell (g, h), whose probabilities are in `p`, times the sum of f over all cells of other classes, in the same
 * level and in all others. `inner`: room for expectations. */
static double with_others(const weft_mi_groups *t, uint32_t g, uint32_t h, const span *s, const double *p,
                          double *inner, const double *f)
{
  const size_t n = (size_t) t->n, r = (size_t) t->r[g], c = (size_t) t->c[h];
  double sum = 0;
  for (uint32_t u = 0; u < t->h_count; u++) {
    const size_t other = (size_t) t->c[u], most = r < other ? r : other;
    const double classes = t->w[u] - (u == h);
    if (classes <= 0) continue;
    /* f of the level's own cell of class u with y rows, and of all other levels' cells, given y */
    for (size_t y = 0; y <= most; y++) {
      inner[y] = f[y];
      if (other - y > n - r) continue; /* impossible */
      for (uint32_t q = 0; q < t->g_count; q++) {
        const double levels = t->m[q] - (q == g);
        if (levels > 0) inner[y] += levels * expectation(n - r, other - y, (size_t) t->r[q], f);
      }
    }
    for (size_t x = s->low; x <= s->high; x++)
      if (f[x] > 0) sum += classes * p[x] * f[x] * expectation(n - c, other, r - x, inner);
  }
  return sum;
}

/* E f in cell (g, h) times the sum of f over all other levels' cells of the same class. */
static double with_class(const weft_mi_groups *t, uint32_t g, uint32_t h, const span *s, const double *p,
                         const double *f)
{
  const size_t n = (size_t) t->n, r = (size_t) t->r[g], c = (size_t) t->c[h];
  double sum = 0;
  for (size_t x = s->low; x <= s->high; x++) {
    double others = 0;
    if (f[x] <= 0) continue;
    for (uint32_t q = 0; q < t->g_count; q++) {
      const double levels = t->m[q] - (q == g);
      if (levels > 0) others += levels * expectation(n - r, c - x, (size_t) t->r[q], f);
    }
    sum += p[x] * f[x] * others;
  }
  return sum;
}

double weft_mi_variance(const weft_mi_groups *t, const double *f, double mean, double *room_p, double *room_inner)
{
  double square = 0;
  for (uint32_t g = 0; g < t->g_count; g++)
    for (uint32_t h = 0; h < t->h_count; h++) {
      const span s = probabilities((size_t) t->n, (size_t) t->c[h], (size_t) t->r[g], room_p);
      double own = 0;
      for (size_t x = s.low; x <= s.high; x++) own += room_p[x] * f[x] * f[x];
      own += with_class(t, g, h, &s, room_p, f) + with_others(t, g, h, &s, room_p, room_inner, f);
      square += t->m[g] * t->w[h] * own;
    }
  return square - mean * mean;
}
