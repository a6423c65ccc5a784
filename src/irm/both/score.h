/* log Γ, log B and the contribution of a block, in arithmetic that is the same on every machine.
 *
 *   links and non-links   f(N, P) = log B(β⁺ + N, β⁻ + P - N) - log B(β⁺, β⁻)
 *   counts                f(N, P) = log Γ(β⁺ + N) - log Γ(β⁺) + β⁺ log β⁻ - (β⁺ + N) log(β⁻ + P)
 *   values                f(N, Q, P) = log Γ(β⁺ + P/2) - log Γ(β⁺) + β⁺ log β⁻ - ½ log(1 + P)
 *                                      - (β⁺ + P/2) log(β⁻ + ½ (Q - N² / (1 + P)))
 *
 * CUDA files that include this are compiled without contraction.
 * irm_f() is accurate to a few ulp of its result; irm_f_fast() takes log Γ at small arguments from tables, for the
 * differences that the samplers need. */
#pragma once

#include "core/numbers/math.h"

#define IRM_LOG_ROOT_2PI 0.91893853320467274

/* log Γ(x) - Stirling's formula, x >= 10: the asymptotic series. */
static WEFT_HD inline double irm_stirling_rest(double x)
{
  double y = 1.0 / (x * x);
  return (1.0 / 12 +
          y * (-1.0 / 360 +
               y * (1.0 / 1260 + y * (-1.0 / 1680 + y * (1.0 / 1188 + y * (-691.0 / 360360 + y * (1.0 / 156))))))) /
         x;
}

/* x > 0 */
static WEFT_HD inline double irm_log_gamma(double x)
{
  double below = 1.0;
  if (x >= 1e300) return x * (weft_log(x) - 1.0);
  for (; x < 12.0; x += 1.0) below *= x;
  double large = (x - 0.5) * weft_log(x) - x + IRM_LOG_ROOT_2PI + irm_stirling_rest(x);
  return below == 1.0 ? large : large - weft_log(below);
}

/* Without the cancellation of three large log Γ. */
static WEFT_HD inline double irm_log_beta(double a, double b)
{
  double p = a < b ? a : b, q = a < b ? b : a, share = p / (p + q);
  if (q < 12.0) return irm_log_gamma(p) + irm_log_gamma(q) - irm_log_gamma(p + q);
  double rest = irm_stirling_rest(q) - irm_stirling_rest(p + q);
  if (p < 12.0) return irm_log_gamma(p) + rest + p - p * weft_log(p + q) + (q - 0.5) * weft_log1p(-share);
  return -0.5 * weft_log(q) + IRM_LOG_ROOT_2PI + irm_stirling_rest(p) + rest + (p - 0.5) * weft_log(share) +
         q * weft_log1p(-share);
}

static WEFT_HD inline double irm_f(int poisson, const double beta[2], double links, double pairs)
{
  if (pairs == 0) return 0;
  if (!poisson) return irm_log_beta(beta[0] + links, beta[1] + pairs - links) - irm_log_beta(beta[0], beta[1]);
  return irm_log_gamma(beta[0] + links) - irm_log_gamma(beta[0]) - beta[0] * weft_log1p(pairs / beta[1]) -
         links * weft_log(beta[1] + pairs);
}

/* Q - N² / (1 + P): what is left of a block's squares when its mean is shrunk towards 0 by one more pair. */
static inline double irm_rest(double sum, double squares, double pairs)
{
  const double rest = squares - sum * sum / (1 + pairs);
  return rest > 0 ? rest : 0;
}

/* f of a block of real values, of which `sum` and `squares` are in units. */
static inline double irm_f_real(const double beta[2], double unit, double sum, double squares, double pairs)
{
  if (pairs == 0) return 0;
  const double half = 0.5 * irm_rest(sum * unit, squares * (unit * unit), pairs);
  return irm_log_gamma(beta[0] + 0.5 * pairs) - irm_log_gamma(beta[0]) - beta[0] * weft_log1p(half / beta[1]) -
         0.5 * pairs * weft_log(beta[1] + half) - 0.5 * weft_log1p(pairs);
}

/* Σ f over the blocks first .. k-1 of a row cluster, in this order. */
static inline double irm_f_row(int poisson, const double beta[2], const int64_t *links, const int64_t *pairs,
                               int32_t first, int32_t k)
{
  double sum = 0;
  for (int32_t m = first; m < k; m++) sum += irm_f(poisson, beta, (double) links[m], (double) pairs[m]);
  return sum;
}

/* log CRP of a partition with these cluster sizes. */
static inline double irm_log_crp(double alpha, const int64_t *sizes, int32_t k)
{
  double sum = 0, n = 0;
  for (int32_t l = 0; l < k; l++) {
    if (sizes[l] == 0) continue;
    sum += weft_log(alpha) + irm_log_gamma((double) sizes[l]);
    n += (double) sizes[l];
  }
  return n == 0 ? 0 : sum + irm_log_gamma(alpha) - irm_log_gamma(alpha + n);
}

/* log p(z) under sticks v_l ~ Beta(1, α), l < k, v_k = 1, integrated out; labels matter. */
static inline double irm_log_sticks(double alpha, const int64_t *sizes, int32_t k)
{
  double sum = 0, above = 0;
  for (int32_t l = k - 1; l >= 0; l--) {
    if (l < k - 1) sum += irm_log_beta(1.0 + (double) sizes[l], alpha + above) + weft_log(alpha);
    above += (double) sizes[l];
  }
  return sum;
}

/* Tables of log Γ(β⁺ + N), log Γ(β⁻ + O), log Γ(β⁺ + β⁻ + P) for whole numbers below `size`. */
typedef struct irm_tables {
  int poisson;
  double unit; /* of real values, or 0 */
  int64_t size;
  double beta[2], base;
  double *links, *others, *pairs; /* counts: pairs holds log(β⁻ + P); others is not used; values: pairs alone is, and
                                     holds log Γ(β⁺ + P/2) - ½ log(1 + P) */
} irm_tables;

/* Entries first .. last-1 of the tables of links. Where both beta are whole numbers, all three tables hold log Γ of the
 * same whole numbers, which are computed once. */
static inline void irm_tables_fill_links(irm_tables *tables, int64_t first, int64_t last)
{
  const double *beta = tables->beta;
  const int whole = beta[0] == (double) (int64_t) beta[0] && beta[1] == (double) (int64_t) beta[1];
  for (int64_t n = first; n < last; n++) tables->links[n] = irm_log_gamma(beta[0] + (double) n);
  for (int64_t n = first; n < last; n++) {
    const int64_t other = n + (int64_t) (beta[1] - beta[0]), pair = n + (int64_t) beta[1];
    tables->others[n] =
        whole && other >= first && other < last ? tables->links[other] : irm_log_gamma(beta[1] + (double) n);
    tables->pairs[n] = whole && pair < last ? tables->links[pair] : irm_log_gamma(beta[0] + beta[1] + (double) n);
  }
}

/* Entries first .. last-1 of the tables, for the beta that they have. */
static inline void irm_tables_fill_part(irm_tables *tables, int64_t first, int64_t last)
{
  const double *beta = tables->beta;
  if (!(tables->unit > 0) && !tables->poisson) {
    irm_tables_fill_links(tables, first, last);
    return;
  }
  for (int64_t n = first; n < last; n++) {
    if (tables->unit > 0) {
      tables->pairs[n] = irm_log_gamma(beta[0] + 0.5 * (double) n) - 0.5 * weft_log1p((double) n);
      continue;
    }
    tables->links[n] = irm_log_gamma(beta[0] + (double) n);
    tables->pairs[n] = weft_log(beta[1] + (double) n);
  }
}

static inline void irm_tables_begin(irm_tables *tables, int poisson, const double beta[2])
{
  tables->poisson = poisson;
  tables->beta[0] = beta[0];
  tables->beta[1] = beta[1];
  tables->base = poisson || tables->unit > 0 ? beta[0] * weft_log(beta[1]) - irm_log_gamma(beta[0])
                                             : -irm_log_beta(beta[0], beta[1]);
}

static inline void irm_tables_fill(irm_tables *tables, int poisson, const double beta[2])
{
  irm_tables_begin(tables, poisson, beta);
  irm_tables_fill_part(tables, 0, tables->size);
}

static inline double irm_f_fast(const irm_tables *tables, int64_t links, int64_t pairs)
{
  double a = links < tables->size ? tables->links[links] : irm_log_gamma(tables->beta[0] + (double) links);
  if (tables->poisson) {
    double log_pairs = pairs < tables->size ? tables->pairs[pairs] : weft_log(tables->beta[1] + (double) pairs);
    return tables->base + a - (tables->beta[0] + (double) links) * log_pairs;
  }
  int64_t o = pairs - links;
  double b = o < tables->size ? tables->others[o] : irm_log_gamma(tables->beta[1] + (double) o);
  double c =
      pairs < tables->size ? tables->pairs[pairs] : irm_log_gamma(tables->beta[0] + tables->beta[1] + (double) pairs);
  return tables->base + a + b - c;
}

/* The same for links where the tables are known to hold all three counts. */
static inline double irm_f_in_tables(const irm_tables *tables, int64_t links, int64_t pairs)
{
  return tables->base + tables->links[links] + tables->others[pairs - links] - tables->pairs[pairs];
}

/* f of a block of links, counts or real values. */
static inline double irm_f_block(const irm_tables *tables, int64_t links, int64_t squares, int64_t pairs)
{
  if (!(tables->unit > 0)) return irm_f_fast(tables, links, pairs);
  const double p = (double) pairs;
  const double half =
      0.5 * irm_rest((double) links * tables->unit, (double) squares * (tables->unit * tables->unit), p);
  const double by_size =
      pairs < tables->size ? tables->pairs[pairs] : irm_log_gamma(tables->beta[0] + 0.5 * p) - 0.5 * weft_log1p(p);
  return tables->base + by_size - (tables->beta[0] + 0.5 * p) * weft_log(tables->beta[1] + half);
}
