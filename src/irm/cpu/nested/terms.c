/* Functions of counts; see terms.h. */
#include <math.h>
#include "irm/cpu/nested/terms.h"

#define PI 3.14159265358979324
/* log x! and partitions are tabled below these. */
enum { MAX_FACTORIALS = 1 << 20, MAX_PARTS = 600 };
/* Grid of the law of partitions, in log u: LAW_STEP from LAW_FIRST on. */
enum { LAW_POINTS = 3300 };
#define LAW_FIRST (-6.6)
#define LAW_STEP (1.0 / 256)

static double log_choose(const irm_nested *t, int64_t n, int64_t x)
{
  return irm_log_factorial(t, n) - irm_log_factorial(t, x) - irm_log_factorial(t, n - x);
}

static double dilogarithm(double x)
{
  double power = x, sum = 0;
  if (x > 0.5) return PI * PI / 6 - (x < 1 ? weft_log(x) * weft_log(1 - x) : 0) - dilogarithm(1 - x);
  for (int k = 1; k < 60; k++, power *= x) sum += power / ((double) k * k);
  return sum;
}

/* Exact for small e; else Szekeres' law log q = f(u) - log e + √e g(u), u = n / √e, from a
 * grid by cubic interpolation; for few parts C(e - 1, n - 1) / n!. */
double irm_log_partitions(const irm_nested *t, int64_t e, int64_t n)
{
  double u, at, x, sum = 0, root = sqrt((double) e);
  if (n > e) n = e;
  if (e == 0 || n <= 1) return 0;
  if (e < t->exact) return t->parts[e * t->exact + n];
  if ((double) n < sqrt(root)) return log_choose(t, e - 1, n - 1) - irm_log_factorial(t, n);
  u = weft_log((double) n / root);
  at = (u - LAW_FIRST) / LAW_STEP;
  if (at < 1) at = 1;
  if (at > LAW_POINTS - 3) at = LAW_POINTS - 3;
  const int64_t j = (int64_t) at;
  x = at - (double) j;
  const double c[4] = { -x * (x - 1) * (x - 2) / 6, (x + 1) * (x - 1) * (x - 2) / 2, -(x + 1) * x * (x - 2) / 2,
                        (x + 1) * x * (x - 1) / 6 };
  for (int m = 0; m < 4; m++) sum += c[m] * (t->law[0][j - 1 + m] + root * t->law[1][j - 1 + m]);
  return sum - weft_log((double) e);
}

/* f and g of the law on its grid, with v = u √Li₂(1 - exp(-v)). */
static void make_law(irm_nested *t)
{
  for (int j = 0; j < LAW_POINTS; j++) {
    const double u = weft_exp(LAW_FIRST + LAW_STEP * j);
    double v = u, last;
    do {
      last = v;
      v = u * sqrt(dilogarithm(1 - weft_exp(-v)));
    } while (fabs(v - last) > 1e-12 * v && v > 1e-12);
    const double none = weft_log1p(-weft_exp(-v));
    t->law[0][j] = weft_log(v) - 0.5 * weft_log1p(-weft_exp(-v) * (1 + 0.5 * u * u)) - 1.5 * IRM_LOG_2 - weft_log(u) -
                   weft_log(PI);
    t->law[1][j] = 2 * v / u - u * none;
  }
}

/* q(e, n) = q(e, n - 1) + q(e - n, n), as logarithms. */
static void make_parts(irm_nested *t)
{
  const int64_t m = t->exact;
  for (int64_t e = 0; e < m; e++) {
    t->parts[e * m] = e ? -INFINITY : 0;
    for (int64_t n = 1; n < m; n++) {
      const double fewer = t->parts[e * m + n - 1], more = n <= e ? t->parts[(e - n) * m + n] : -INFINITY;
      const double high = fewer > more ? fewer : more, low = fewer > more ? more : fewer;
      t->parts[e * m + n] = low == -INFINITY ? high : high + weft_log1p(weft_exp(low - high));
    }
  }
}

weft_status irm_terms_make(weft_arena *arena, irm_nested *t)
{
  weft_status st = WEFT_OK;
  t->table = t->ends + t->n + (int64_t) t->level[0].k * t->level[0].k + 2;
  if (t->table > MAX_FACTORIALS) t->table = MAX_FACTORIALS;
  WEFT_TAKE(t->log_factorial, arena, (size_t) t->table);
  for (int64_t x = 0; x < t->table; x++) t->log_factorial[x] = irm_log_gamma((double) x + 1);
  if (!t->degrees) return st;
  const int grows = irm_has_missing(t->graph); /* links that are drawn come and go */
  t->exact = t->ends + 1 < MAX_PARTS && !grows ? t->ends + 1 : MAX_PARTS;
  WEFT_TAKE(t->parts, arena, (size_t) (t->exact * t->exact));
  for (int d = 0; d < 2; d++) WEFT_TAKE(t->law[d], arena, LAW_POINTS);
  make_parts(t);
  if (t->ends >= t->exact || grows) make_law(t);
done:
  return st;
}

double irm_partition_term(const irm_nested *t, int64_t n, int64_t groups)
{
  return n ? log_choose(t, n - 1, groups - 1) + irm_log_factorial(t, n) + weft_log((double) n) : 0;
}

double irm_group_term(const irm_nested *t, int64_t out, int64_t in, int64_t n)
{
  double sum;
  if (!n) return 0;
  if (!t->degrees) return (double) (t->directed ? out + in : out) * weft_log((double) n);
  sum = irm_log_factorial(t, out) + irm_log_partitions(t, out, n) + irm_log_factorial(t, n);
  if (t->directed) sum += irm_log_factorial(t, in) + irm_log_partitions(t, in, n) + irm_log_factorial(t, n);
  return sum;
}
