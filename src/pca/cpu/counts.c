#include "pca/cpu/counts.h"
#include <math.h>
#include "core/call/parallel.h"

/* Genes of about 2e7 operations at a time, between which R may interrupt. `each`: operations of a cell. */
static int64_t genes_at_once(const weft_ctx *ctx, const weft_pca_count_model *model, double each)
{
  return 1 + (int64_t) (ctx->threads * 2e7 / (each * (double) model->n));
}

static double dispersion_of(const double *x, const weft_pca_count_model *model, size_t j)
{
  const size_t n = model->n;
  const double spare = n > 1 ? (double) n / (double) (n - 1) : 1; /* the share was fitted */
  double beyond = 0, squares = 0;
  for (size_t i = 0; i < n; i++) {
    const double mean = model->depth[i] * model->share[j], rest = x[i] - mean;
    beyond += spare * rest * rest - mean;
    squares += mean * mean;
  }
  return squares > 0 && beyond > 0 ? beyond / squares : 0;
}

weft_status weft_pca_counts_moments(weft_ctx *ctx, const double *x, const weft_pca_count_model *model, double *out)
{
  weft_status st = WEFT_OK;
  const int64_t p = (int64_t) model->p, batch = genes_at_once(ctx, model, 6);
  for (int64_t first = 0; first < p; first += batch) {
    const int64_t end = first + batch < p ? first + batch : p;
    WEFT_TRY(weft_poll(ctx, (double) first, (double) p));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) (end - first) * 6 * (double) model->n), static)
    for (int64_t j = first; j < end; j++) out[j] = dispersion_of(x + (size_t) j * model->n, model, (size_t) j);
  }
done:
  return st;
}

/* out (n × p): Pearson residuals (x - mean) / sqrt(mean + dispersion mean^2), cut at +-`most`; the mean is depth times
 * share, and a mean of 0 gives 0. */
weft_status weft_pca_counts_residuals(weft_ctx *ctx, const double *x, const weft_pca_count_model *model, double most,
                                      double *out)
{
  weft_status st = WEFT_OK;
  const size_t n = model->n;
  const int64_t p = (int64_t) model->p, batch = genes_at_once(ctx, model, 20);
  for (int64_t first = 0; first < p; first += batch) {
    const int64_t end = first + batch < p ? first + batch : p;
    WEFT_TRY(weft_poll(ctx, (double) first, (double) p));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) (end - first) * 20 * (double) n), static)
    for (int64_t j = first; j < end; j++)
      for (size_t i = 0; i < n; i++) {
        const size_t at = (size_t) j * n + i;
        const double mean = model->depth[i] * model->share[j];
        const double z = mean > 0 ? (x[at] - mean) / sqrt(mean + model->dispersion[j] * mean * mean) : 0;
        out[at] = z > most ? most : z < -most ? -most : z;
      }
  }
done:
  return st;
}

/* log k! for whole k >= 0, by Stirling's series from 10 on (error below 1e-12). */
static double log_factorial(double k)
{
  static const double few[] = { 0,
                                0,
                                0.69314718055994531,
                                1.7917594692280550,
                                3.1780538303479456,
                                4.7874917427820460,
                                6.5792512120101010,
                                8.5251613610654143,
                                10.604602902745250,
                                12.801827480081469 };
  if (k < 10) return few[(int) k];
  const double m = k + 1, r = 1 / m;
  return (m - 0.5) * log(m) - m + 0.91893853320467274 +
         r * (1.0 / 12 - r * r * (1.0 / 360 - r * r * (1.0 / 1260 - r * r / 1680)));
}

/* Blocks of words beyond those that the gamma of the same index takes (draws.h). */
enum { POISSON_BLOCKS = 0x40000000, POISSON_ATTEMPTS = 64, POISSON_SMALL = 10, POISSON_TERMS = 200 };

/* Poisson of a small mean: the distribution function is added up until it reaches a uniform. */
static double poisson_small(weft_rng rng, uint64_t index, double mean)
{
  const weft_u32x4 w = weft_draw_words(rng, index, POISSON_BLOCKS);
  const double u = weft_u01(w.v[0], w.v[1]);
  double term = exp(-mean), sum = term;
  int k = 0;
  while (u > sum && k < POISSON_TERMS) {
    k++;
    term *= mean / k;
    sum += term;
  }
  return k;
}

/* Poisson of a mean of 10 or more, by transformed rejection (Hoermann 1993, PTRS); nine in ten first attempts do. */
static double poisson_large(weft_rng rng, uint64_t index, double mean)
{
  const double root = sqrt(mean), b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), reach = 0.9277 - 3.6224 / (b - 2), log_mean = log(mean);
  for (uint32_t t = 0; t < POISSON_ATTEMPTS; t++) {
    const weft_u32x4 w = weft_draw_words(rng, index, POISSON_BLOCKS + t);
    const double u = weft_u01(w.v[0], w.v[1]) - 0.5, v = weft_u01(w.v[2], w.v[3]), us = 0.5 - fabs(u);
    const double k = floor((2 * a / us + b) * u + mean + 0.43);
    if (us >= 0.07 && v <= reach) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (log(v * inverse_alpha / (a / (us * us) + b)) <= k * log_mean - mean - log_factorial(k)) return k;
  }
  return floor(mean);
}

/* A Poisson count whose mean is itself a gamma of the dispersion's shape. */
static double negative_binomial(weft_rng rng, uint64_t index, double mean, double dispersion)
{
  if (dispersion > 1e-8) mean *= dispersion * weft_draw_gamma(rng, index, 1 / dispersion);
  if (!(mean > 0)) return 0;
  return mean < POISSON_SMALL ? poisson_small(rng, index, mean) : poisson_large(rng, index, mean);
}

/* out (n × p): counts drawn from the model, draw i + j n for sample i of gene j, whatever the number of threads. */
weft_status weft_pca_counts_draw(weft_ctx *ctx, const weft_pca_count_model *model, weft_rng rng, double *out)
{
  weft_status st = WEFT_OK;
  const size_t n = model->n;
  const int64_t p = (int64_t) model->p, batch = genes_at_once(ctx, model, 200);
  for (int64_t first = 0; first < p; first += batch) {
    const int64_t end = first + batch < p ? first + batch : p;
    WEFT_TRY(weft_poll(ctx, (double) first, (double) p));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) (end - first) * 200 * (double) n), static)
    for (int64_t j = first; j < end; j++)
      for (size_t i = 0; i < n; i++) {
        const size_t at = (size_t) j * n + i;
        out[at] = negative_binomial(rng, at, model->depth[i] * model->share[j], model->dispersion[j]);
      }
  }
done:
  return st;
}
