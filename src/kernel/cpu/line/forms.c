/* What kernels are of a cell's moments; see line.h. */
#include <float.h>
#include "kernel/cpu/line/line.h"
#include "kernel/cpu/line/forms.h"

#define LANES 8

/* ---- kinds ---- */

/* Σ |factor_j| 1.25^j: how much larger than the kernel the terms of its polynomial may be, since |v| + |u| is at most
 * 1.25 in cells of a quarter of the bandwidth. */
static double size_of_terms(const weft_line_form *form)
{
  double size = 0, power = 1;
  for (int j = 0; j < form->terms; j++, power *= 1.25) size += fabs(form->factor[j]) * power;
  return size;
}

static weft_line_form powers(int terms, int odd, const double *factor)
{
  weft_line_form form = {
    .form = WEFT_LINE_OF_POWERS, .terms = terms, .sides = 1, .odd = odd, .scale = 1, .width = 0.25
  };
  for (int j = 0; j < terms; j++) form.factor[j] = factor[j];
  form.rounding = 3 * DBL_EPSILON * size_of_terms(&form);
  return form;
}

static weft_line_form exponential(int terms, double scale, const double *factor)
{
  weft_line_form form = { .form = WEFT_LINE_EXPONENTIAL, .terms = terms, .sides = 2, .odd = 1, .scale = scale };
  form.width = 2 / scale;
  for (int j = 0; j < terms; j++) form.factor[j] = factor[j];
  return form;
}

/* The rest of exp(vu) after `terms` of its series is at most z^terms / terms! e^z with z = |vu|, and exp(vu) at least
 * e^-z. */
static double greatest_product(int terms, double tolerance)
{
  double low = 0, high = terms;
  for (int k = 0; k < 60; k++) {
    const double z = (low + high) / 2, rest = terms * log(z) - lgamma(terms + 1.0) + 2 * z;
    if (rest <= log(tolerance))
      low = z;
    else
      high = z;
  }
  return low;
}

/* farthest: of a query from a cell's middle, in bandwidths; beyond, pairs are computed. */
static weft_line_form series(double tolerance, double width, double farthest)
{
  weft_line_form form = { .form = WEFT_LINE_SERIES, .sides = 1, .scale = 1, .width = width };
  for (int term = 1; term <= WEFT_LINE_MAX_TERMS; term++) {
    form.max_product[term] = greatest_product(term, tolerance);
    form.terms = term;
    if (form.max_product[term] >= farthest * form.width / 2) break;
  }
  return form;
}

weft_line_form weft_line_narrow_series(double tolerance, size_t n)
{
  return series(tolerance, 0.125, 2 + sqrt(2 * (log((double) n) - log(tolerance))));
}

/* Coefficients of r, times scale / h, as kinds.h defines the kernels; the Cauchy kernel has no such form. */
weft_line_form weft_line_form_of(int kind, double tolerance)
{
  const double one[] = { 1 }, epanechnikov[] = { 1, 0, -1 }, triangular[] = { 1, -1 }, biweight[] = { 1, 0, -2, 0, 1 },
               wendland[] = { 1, 0, -10, 20, -15, 4 };
  const double matern32[] = { 1, 1 }, matern52[] = { 1, 1, 1.0 / 3 }, matern72[] = { 1, 1, 0.4, 1.0 / 15 };
  switch (kind) {
  case WEFT_GAUSSIAN: return series(tolerance, 0.5, 2 + sqrt(-2 * log(tolerance)));
  case WEFT_LAPLACIAN: return exponential(1, 1, one);
  case WEFT_MATERN32: return exponential(2, sqrt(3), matern32);
  case WEFT_MATERN52: return exponential(3, sqrt(5), matern52);
  case WEFT_MATERN72: return exponential(4, sqrt(7), matern72);
  case WEFT_UNIFORM: return powers(1, 0, one);
  case WEFT_EPANECHNIKOV: return powers(3, 0, epanechnikov);
  case WEFT_TRIANGULAR: return powers(2, 1, triangular);
  case WEFT_BIWEIGHT: return powers(5, 0, biweight);
  case WEFT_WENDLAND: return powers(6, 1, wendland);
  case WEFT_COSINE: {
    weft_line_form form = {
      .form = WEFT_LINE_WAVE, .terms = 2, .sides = 1, .scale = 1.5707963267948966, .width = 0.25
    };
    form.rounding = 6 * DBL_EPSILON;
    return form;
  }
  default: {
    weft_line_form form = { .form = WEFT_LINE_NONE };
    return form;
  }
  }
}

/* ---- moments ---- */

/* sums += w * basis, all columns; basis *= u. */
VECTORIZE static void add_powers(const double *u, double *basis, const double *w, size_t m, int terms,
                                 const double *over, double *sums)
{
  for (int term = 0; term < terms; term++) {
    for (size_t c = 0; c < m; c++)
      for (size_t lane = 0; lane < LANES; lane++)
        sums[((size_t) term * m + c) * LANES + lane] += w[c * LANES + lane] * basis[lane];
    const double by = over ? over[term] : 1;
    for (size_t lane = 0; lane < LANES; lane++) basis[lane] *= u[lane] * by;
  }
}

VECTORIZE void weft_line_bell(const double *u, double *value)
{
  for (size_t lane = 0; lane < LANES; lane++) {
    const double s = -0.5 * u[lane] * u[lane];
    double p = 1 + s / 8;
    for (int j = 7; j > 0; j--) p = 1 + p * s * (1.0 / j);
    value[lane] = p;
  }
}

const double weft_line_over[WEFT_LINE_MAX_TERMS] = {
  1,        1.0 / 2,  1.0 / 3,  1.0 / 4,  1.0 / 5,  1.0 / 6,  1.0 / 7,  1.0 / 8,  1.0 / 9,  1.0 / 10, 1.0 / 11,
  1.0 / 12, 1.0 / 13, 1.0 / 14, 1.0 / 15, 1.0 / 16, 1.0 / 17, 1.0 / 18, 1.0 / 19, 1.0 / 20, 1.0 / 21, 1.0 / 22,
  1.0 / 23, 1.0 / 24, 1.0 / 25, 1.0 / 26, 1.0 / 27, 1.0 / 28, 1.0 / 29, 1.0 / 30, 1.0 / 31, 1.0 / 32
};

/* The basis of the form at 8 places u, then its products with powers of u and with the weights. */
void weft_line_add_moments(const weft_line_form *form, const double *u, const double *w, size_t m, double *sums)
{
  double basis[LANES], turned[LANES];
  const size_t side = (size_t) form->terms * m * LANES;
  switch (form->form) {
  case WEFT_LINE_SERIES:
    weft_line_bell(u, basis);
    add_powers(u, basis, w, m, form->terms, weft_line_over, sums);
    break;
  case WEFT_LINE_EXPONENTIAL:
    for (int k = 0; k < 2; k++) {
      for (int lane = 0; lane < LANES; lane++) basis[lane] = exp(k ? -u[lane] : u[lane]);
      add_powers(u, basis, w, m, form->terms, NULL, sums + (size_t) k * side);
    }
    break;
  case WEFT_LINE_WAVE:
    for (int lane = 0; lane < LANES; lane++) basis[lane] = cos(u[lane]), turned[lane] = sin(u[lane]);
    add_powers(u, basis, w, m, 1, NULL, sums);
    add_powers(u, turned, w, m, 1, NULL, sums + m * LANES);
    break;
  case WEFT_LINE_OF_POWERS:
    for (int lane = 0; lane < LANES; lane++) basis[lane] = 1;
    add_powers(u, basis, w, m, form->terms, NULL, sums);
    break;
  case WEFT_LINE_NONE: break;
  }
}

/* ---- queries ---- */

/* The polynomial of y + z, where y is the query's distance from the middle and z = -side u, in powers of u. */
static void shifted(const weft_line_form *form, double v, int side, double *a)
{
  const double y = side * v;
  double sign = 1;
  for (int j = 0; j < form->terms; j++) a[j] = form->factor[j];
  for (int j = 0; j < form->terms; j++) {
    for (int k = form->terms - 2; k >= j; k--) a[k] += y * a[k + 1];
    a[j] *= sign;
    sign *= -side;
  }
}

static void add_products(const double *a, const double *moments, int terms, size_t m, double times, double *sum)
{
  for (size_t c = 0; c < m; c++) {
    double total = 0;
    for (int term = 0; term < terms; term++) total += a[term] * moments[(size_t) term * m + c];
    sum[c] += times * total;
  }
}

static int add_series(const weft_line_form *form, const double *moments, double v, double reach, size_t m, double *sum)
{
  const double z = fabs(v) * reach;
  int terms = 1;
  while (terms <= form->terms && form->max_product[terms] < z) terms++;
  if (terms > form->terms) return 0;
  const double times = exp(-0.5 * v * v);
  for (size_t c = 0; c < m; c++) {
    double total = moments[(size_t) (terms - 1) * m + c];
    for (int term = terms - 2; term >= 0; term--) total = total * v + moments[(size_t) term * m + c];
    sum[c] += times * total;
  }
  return 1;
}

/* The query's coefficients for the form, times the moments. Exponentials whose value is below 1e-307 add nothing. */
int weft_line_evaluate(const weft_line_form *form, const double *moments, double v, int side, double reach, size_t m,
                       double *sum)
{
  double a[WEFT_LINE_POWERS];
  switch (form->form) {
  case WEFT_LINE_SERIES: return add_series(form, moments, v, reach, m, sum);
  case WEFT_LINE_EXPONENTIAL:
    if (side * v > 750) return 1; /* below 1e-307 */
    shifted(form, v, side, a);
    add_products(a, moments + (side > 0 ? 0 : (size_t) form->terms * m), form->terms, m, exp(-side * v), sum);
    return 1;
  case WEFT_LINE_WAVE:
    a[0] = cos(v), a[1] = sin(v);
    add_products(a, moments, 2, m, 1, sum);
    return 1;
  case WEFT_LINE_OF_POWERS:
    shifted(form, v, side, a);
    add_products(a, moments, form->terms, m, 1, sum);
    return 1;
  case WEFT_LINE_NONE: break;
  }
  return 0;
}

double weft_line_reach(const weft_line_form *form, double value)
{
  const double least = -log(value < 1e-307 ? 1e-307 : value);
  if (form->form == WEFT_LINE_SERIES) return sqrt(2 * least);
  double u = least;
  for (int k = 0; k < 50; k++) { /* P(u) exp(-u) = value: from below, where each step is too short */
    double p = 0;
    for (int j = form->terms - 1; j >= 0; j--) p = p * u + form->factor[j];
    const double next = least + log(p);
    if (next - u < 1e-3) break;
    u = next;
  }
  return (u + 0.1) / form->scale;
}
