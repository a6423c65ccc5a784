/* NIPALS with missing values (Wold 1966; Christoffersson 1970): regressions over what is observed,
 *   p_j = sum_i x_ij t_i / sum_i t_i^2,   t_i = sum_j x_ij p_j / sum_j p_j^2     (i, j: x_ij observed),
 * p brought to unit length in between, and x -= t p' when both stand still. This is not the least-squares fit of the
 * observed values. "gs" keeps p and t orthogonal to those found before (Andrecut 2009). */
#include <math.h>
#include <string.h>
#include "core/call/arena.h"
#include "core/numbers/draws.h"
#include "pca/pca.h"

static double length(const double *x, size_t count)
{
  double sum = 0;
  for (size_t i = 0; i < count; i++) sum += x[i] * x[i];
  return sqrt(sum);
}

static void scale_by(double *x, size_t count, double factor)
{
  for (size_t i = 0; i < count; i++) x[i] *= factor;
}

/* x freed of the unit columns found before. */
static void free_of(double *x, const double *found, size_t count, size_t columns)
{
  for (size_t j = 0; j < columns; j++) {
    const double *q = found + j * count;
    double inner = 0;
    for (size_t i = 0; i < count; i++) inner += q[i] * x[i];
    for (size_t i = 0; i < count; i++) x[i] -= inner * q[i];
  }
}

/* Loads and new scores from the scores t. A factor of the loads divides the scores, so that NIPALS need not know all
 * loads before the scores. */
static weft_status iteration(const weft_pca_ops *ops, weft_pca_space *space, int gs, const weft_pca_result *out,
                             size_t k, size_t n, size_t p, double *t, double *loads)
{
  weft_status st = WEFT_OK;
  double size;
  if (gs) {
    WEFT_TRY(ops->observed_loads(space, t, loads));
    free_of(loads, out->v, p, k);
    if ((size = length(loads, p)) > 0) scale_by(loads, p, 1 / size);
    WEFT_TRY(ops->observed_scores(space, loads, t));
    free_of(t, out->u, n, k);
  } else {
    WEFT_TRY(ops->observed(space, t, loads));
    if ((size = length(loads, p)) > 0) {
      scale_by(loads, p, 1 / size);
      scale_by(t, n, size);
    }
  }
done:
  return st;
}

/* Component after component, each from random scores, until the scores stand still (`paper`: until their length does)
 * or job->max_iterations iterations; then X is deflated by it. out->residual is the last relative change. */
weft_status weft_pca_missing(weft_ctx *ctx, const weft_pca_ops *ops, const weft_pca_data *data,
                             const weft_pca_form *form, const weft_pca_job *job, weft_pca_result *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const int gs = job->method == WEFT_PCA_GS;
  const weft_rng rng = { job->key, 0x706362 };
  const size_t n = data->n, p = data->p;
  weft_pca_space *space = NULL;
  double *t, *before, largest = 0;
  WEFT_TAKE(t, &mem, n);
  WEFT_TAKE(before, &mem, n);
  WEFT_TRY(ops->open(ctx, data, form, &space));
  out->rank = 0;
  out->method = job->method;
  for (size_t k = 0; k < job->k; k++) {
    double *loads = out->v + k * p, change = INFINITY, size = 0, last = 0;
    for (size_t i = 0; i < n; i++) t[i] = 2 * weft_draw_uniform(rng, k * n + i) - 1;
    for (size_t it = 1; it <= job->max_iterations; it++) {
      WEFT_TRY(weft_poll(ctx, (double) k, (double) job->k));
      memcpy(before, t, n * sizeof *t);
      WEFT_TRY(iteration(ops, space, gs, out, k, n, p, t, loads));
      size = length(t, n);
      largest = fmax(largest, size);
      change = 0;
      for (size_t i = 0; i < n; i++) change += (t[i] - before[i]) * (t[i] - before[i]);
      change = largest > 0 ? sqrt(change) / largest : 0;
      out->passes += 2;
      out->iterations[k] = (int32_t) it;
      if (job->paper ? fabs(size - last) <= job->tol : change <= job->tol) break;
      last = size;
    }
    out->converged[k] = job->paper ? out->iterations[k] < (int32_t) job->max_iterations : change <= job->tol;
    out->residual[k] = change;
    out->d[k] = size > 1e-15 * (double) (n > p ? n : p) * largest ? size : 0;
    out->rank += out->d[k] > 0;
    WEFT_TRY(ops->deflate(space, t, loads));
    for (size_t i = 0; i < n; i++) out->u[i + k * n] = out->d[k] > 0 ? t[i] / size : 0;
  }
done:
  if (space) ops->close(space);
  weft_arena_end(&mem);
  return st;
}
