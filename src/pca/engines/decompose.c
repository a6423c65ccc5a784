/* One decomposition, from the open space to components with their signs fixed: see pca.h. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "core/call/parallel.h"
#include "pca/engines/block.h"
#include "pca/engines/power_iteration.h"
#include "pca/engines/run.h"

/* Residuals that single precision can reach. */
#define SINGLE_TOL 1e-6

/* Values below the level of rounding count as zero: of the products, which grows with the longest
 * side, and of the centring, scaling and weighting of each number, which does not. */
static void cut_at_rank(const weft_pca_run *run)
{
  const size_t longest = run->ranks ? run->ranks->all : run->n;
  const double largest = run->out->d[0];
  const double floor = (8 + (double) (longest > run->p ? longest : run->p)) * DBL_EPSILON * largest;
  run->out->rank = 0;
  for (size_t j = 0; j < run->job->k; j++) {
    if (run->out->d[j] > floor)
      run->out->rank++;
    else
      run->out->d[j] = 0;
  }
}

/* The largest loading of component j becomes positive; among loadings that differ by rounding the first decides, so
 * that back ends agree. Loadings of columns that are zero are exactly 0, unless the value is so small that it is of the
 * size of their rounding: there vectors would no longer be orthogonal. */
static void orient_one(const weft_pca_run *run, const double *factor, size_t j)
{
  const size_t n = run->n, p = run->p;
  double *v = run->out->v + j * p, *u = run->out->u + j * (run->out->ld ? run->out->ld : n), largest = 0;
  size_t at = 0;
  if (run->out->d[j] > 0)
    for (size_t i = 0; i < p; i++)
      if (factor[i] == 0 && fabs(v[i]) < 1e-11) v[i] = 0;
  for (size_t i = 0; i < p; i++) largest = fmax(largest, fabs(v[i]));
  while (at < p && fabs(v[at]) < largest * (1 - 1e-7)) at++;
  if (at == p || v[at] >= 0) return;
  for (size_t i = 0; i < p; i++) v[i] = -v[i];
  for (size_t i = 0; i < n; i++) u[i] = -u[i];
}

static void orient(const weft_pca_run *run, const double *factor)
{
  const size_t k = run->job->k;
  const int threads = weft_threads_worth(run->ctx->threads, 0.5 * (double) (run->n + run->p) * (double) k);
  WEFT_PARALLEL_FOR(threads, dynamic)
  for (int64_t j = 0; j < (int64_t) k; j++) orient_one(run, factor, (size_t) j);
}

/* After single precision: one Rayleigh-Ritz step in double on what was found. */
static weft_status refine(weft_pca_run *run, const weft_pca_job *job)
{
  weft_pca_job once = *job;
  once.method = WEFT_PCA_GRAM;
  once.choose = 0;
  once.start = run->out->v;
  once.max_iterations = 1;
  run->job = &once;
  run->ops->refine(run->space);
  return weft_pca_block(run);
}

/* Runs the method's engine, then in double precision once more where X was kept single; values below rounding become 0,
 * signs are fixed. All buffers of `out` are the caller's. */
weft_status weft_pca_in(weft_ctx *ctx, const weft_pca_ops *ops, weft_pca_space *space, const weft_pca_data *data,
                        const weft_pca_form *form, const weft_pca_job *job, weft_pca_result *out)
{
  weft_status st = WEFT_OK;
  const size_t p = data->p, all = data->ranks ? data->ranks->all : data->n;
  const int wide = p > all;
  const size_t n = wide ? all : data->n; /* the rows of vectors here */
  weft_pca_job coarse = *job;
  weft_pca_run run = { ctx,
                       ops,
                       space,
                       &coarse,
                       n,
                       p,
                       wide ? n : p,
                       wide ? p : n,
                       wide,
                       data->sparse && !data->ranks && ops == &weft_pca_cpu,
                       data->sparse,
                       data->ranks,
                       data->n,
                       0,
                       0,
                       out };
  const int vectors = job->method == WEFT_PCA_GS || job->method == WEFT_PCA_NIPALS;
  if (form->single && !job->paper) coarse.tol = fmax(job->tol, SINGLE_TOL);
  out->method = job->method;
  WEFT_TRY(vectors ? weft_pca_vectors(&run) : weft_pca_block(&run));
  if (form->single && !vectors) WEFT_TRY(refine(&run, &coarse));
  run.job = &coarse;
  cut_at_rank(&run);
  orient(&run, form->factor);
  for (size_t j = 0; j < job->k; j++)
    out->converged[j] = out->d[j] == 0 || out->converged[j] || (!vectors && out->residual[j] <= coarse.tol);
  out->passes = run.passes;
done:
  return st;
}

weft_status weft_pca(weft_ctx *ctx, const weft_pca_ops *ops, const weft_pca_data *data, const weft_pca_form *form,
                     const weft_pca_job *job, weft_pca_result *out)
{
  weft_status st = WEFT_OK;
  weft_pca_space *space = NULL;
  WEFT_TRY(ops->open(ctx, data, form, &space));
  WEFT_TRY(weft_pca_in(ctx, ops, space, data, form, job, out));
done:
  if (space) ops->close(space);
  return st;
}
