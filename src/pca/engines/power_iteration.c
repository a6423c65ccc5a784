/* NIPALS-PCA and GS-PCA, a component at a time (Wold 1966; Andrecut 2009). One iteration is u = R v, w = R'u, where R
 * is what is left of X. The deflated matrix is not formed:
 *
 *   gs      for v orthogonal to the found loadings R v = X v, so that freeing w of them, twice, is the whole deflation
 *   nipals  R v = X v - T (P'v), R'u = X'u - P (T'u), with T and P as they came out: its loss of orthogonality is that
 *           of the deflated matrix
 *
 * An iteration ends when |R'u - s v| <= tol times the largest value, or by the paper's test of s against the last one.
 * Without the latter, gs ends with a Rayleigh-Ritz step on what it found. */
#include <float.h>
#include <math.h>
#include "pca/engines/block.h"
#include "pca/engines/power_iteration.h"
#include "pca/engines/run.h"

typedef struct {
  weft_pca_run *run;
  double *s_v, *s_u, *s_w;    /* p, n, p */
  double *s_loads, *s_scores; /* p × k, n × k: unit vectors (gs), P and T (nipals) */
  double *s_small;
  double largest;
} vectors_engine;

static weft_status inner(vectors_engine *engine, const double *s_a, const double *s_b, size_t count, double *out)
{
  weft_status st = WEFT_OK;
  const weft_pca_ops *ops = engine->run->ops;
  WEFT_TRY(ops->gemm(engine->run->space, 1, 0, 1, 1, count, 1, s_a, count, s_b, count, 0, engine->s_small, 1));
  WEFT_TRY(ops->get(engine->run->space, out, engine->s_small, 1));
done:
  return st;
}

/* x *= factor, by way of a product with a number. */
static weft_status times(vectors_engine *engine, double *s_x, size_t count, double factor, double *s_swap)
{
  weft_status st = WEFT_OK;
  const weft_pca_ops *ops = engine->run->ops;
  const double one = 1;
  WEFT_TRY(ops->put(engine->run->space, engine->s_small, &one, 1));
  WEFT_TRY(ops->gemm(engine->run->space, 0, 0, count, 1, 1, factor, s_x, count, engine->s_small, 1, 0, s_swap, count));
  WEFT_TRY(ops->copy(engine->run->space, s_x, s_swap, count));
done:
  return st;
}

static weft_status unit(vectors_engine *engine, double *s_x, size_t count, double *norm)
{
  weft_status st = WEFT_OK;
  double square;
  double *s_swap = NULL;
  WEFT_TRY(inner(engine, s_x, s_x, count, &square));
  *norm = sqrt(square);
  WEFT_TRY(engine->run->ops->take(engine->run->space, count, &s_swap));
  if (*norm > 0) WEFT_TRY(times(engine, s_x, count, 1 / *norm, s_swap));
done:
  if (s_swap) engine->run->ops->drop(engine->run->space, s_swap);
  return st;
}

/* x -= a (b'y): a and x have `rows` rows, b and y `from`. */
static weft_status subtract(vectors_engine *engine, double *s_x, const double *s_a, size_t rows, const double *s_b,
                            const double *s_y, size_t from, size_t columns)
{
  weft_status st = WEFT_OK;
  const weft_pca_ops *ops = engine->run->ops;
  if (!columns) return st;
  WEFT_TRY(ops->gemm(engine->run->space, 1, 0, columns, 1, from, 1, s_b, from, s_y, from, 0, engine->s_small, columns));
  WEFT_TRY(
      ops->gemm(engine->run->space, 0, 0, rows, 1, columns, -1, s_a, rows, engine->s_small, columns, 1, s_x, rows));
done:
  return st;
}

/* A random unit vector orthogonal to the columns found (rows × found). */
static weft_status random_unit(vectors_engine *engine, double *s_x, size_t rows, const double *s_found, size_t found)
{
  weft_status st = WEFT_OK;
  double norm;
  WEFT_TRY(weft_pca_random(engine->run, s_x, rows));
  for (int twice = 0; twice < 2; twice++) {
    WEFT_TRY(subtract(engine, s_x, s_found, rows, s_found, s_x, rows, found));
    WEFT_TRY(unit(engine, s_x, rows, &norm));
  }
done:
  return st;
}

/* nipals: u = R v, w = R'u; out as weft_pca_ops.step(). */
static weft_status nipals_step(vectors_engine *engine, size_t found, double out[3])
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = engine->run;
  const weft_pca_ops *ops = run->ops;
  double uu, ww, norm;
  WEFT_TRY(ops->product(run->space, 0, engine->s_v, 1, engine->s_u));
  WEFT_TRY(subtract(engine, engine->s_u, engine->s_scores, run->n, engine->s_loads, engine->s_v, run->p, found));
  WEFT_TRY(ops->product(run->space, 1, engine->s_u, 1, engine->s_w));
  WEFT_TRY(subtract(engine, engine->s_w, engine->s_loads, run->p, engine->s_scores, engine->s_u, run->n, found));
  WEFT_TRY(inner(engine, engine->s_u, engine->s_u, run->n, &uu));
  WEFT_TRY(inner(engine, engine->s_w, engine->s_w, run->p, &ww));
  out[0] = sqrt(uu);
  out[1] = sqrt(ww);
  /* |w / s - s v|, with |v| = 1 */
  WEFT_TRY(ops->put(run->space, engine->s_small, &uu, 1));
  WEFT_TRY(
      ops->gemm(run->space, 0, 0, run->p, 1, 1, -1, engine->s_v, run->p, engine->s_small, 1, 1, engine->s_w, run->p));
  WEFT_TRY(inner(engine, engine->s_w, engine->s_w, run->p, &norm));
  out[2] = out[0] > 0 ? sqrt(norm) / out[0] : 0;
  WEFT_TRY(ops->put(run->space, engine->s_small, &uu, 1));
  WEFT_TRY(
      ops->gemm(run->space, 0, 0, run->p, 1, 1, 1, engine->s_v, run->p, engine->s_small, 1, 1, engine->s_w, run->p));
  WEFT_TRY(ops->copy(run->space, engine->s_v, engine->s_w, run->p));
  WEFT_TRY(unit(engine, engine->s_v, run->p, &norm));
done:
  return st;
}

/* Component `found`; *nothing: what is left of X is rounding. */
static weft_status component(vectors_engine *engine, size_t found, int *nothing)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = engine->run;
  const weft_pca_job *job = run->job;
  const weft_pca_ops *ops = run->ops;
  const int gs = job->method == WEFT_PCA_GS;
  const double floor = (double) (run->near > run->far ? run->near : run->far) * DBL_EPSILON;
  double *s_load = engine->s_loads + found * run->p, *s_score = engine->s_scores + found * run->n, out[3], before = 0,
         norm;
  int done_with = 0;
  *nothing = 0;
  WEFT_TRY(random_unit(engine, engine->s_v, run->p, engine->s_loads, gs ? found : 0));
  for (size_t j = 1; j <= job->max_iterations && !done_with; j++) {
    WEFT_TRY(weft_poll(run->ctx, (double) found, (double) job->k));
    WEFT_TRY(gs ? ops->step(run->space, engine->s_loads, found, engine->s_v, engine->s_u, engine->s_w, out)
                : nipals_step(engine, found, out));
    run->passes += 2;
    engine->largest = fmax(engine->largest, out[0]);
    run->out->iterations[found] = (int32_t) j;
    if (out[0] <= floor * engine->largest || !(out[1] > 0)) {
      *nothing = 1;
      break;
    }
    run->out->residual[found] = out[2] / engine->largest;
    done_with = job->paper ? fabs(out[0] - before) <= job->tol : run->out->residual[found] <= job->tol;
    before = out[0];
  }
  run->out->converged[found] = done_with || *nothing;
  if (*nothing) goto done;
  /* the triplet that belongs to v: u = R v exactly */
  WEFT_TRY(ops->copy(run->space, s_load, engine->s_v, run->p));
  WEFT_TRY(ops->product(run->space, 0, engine->s_v, 1, s_score));
  run->passes += 1;
  if (gs) {
    WEFT_TRY(subtract(engine, s_score, engine->s_scores, run->n, engine->s_scores, s_score, run->n, found));
    WEFT_TRY(unit(engine, s_score, run->n, &norm));
    run->out->d[found] = norm;
    for (int twice = 0; twice < 2; twice++) {
      WEFT_TRY(subtract(engine, s_score, engine->s_scores, run->n, engine->s_scores, s_score, run->n, found));
      WEFT_TRY(unit(engine, s_score, run->n, &norm));
    }
  } else {
    WEFT_TRY(subtract(engine, s_score, engine->s_scores, run->n, engine->s_loads, engine->s_v, run->p, found));
    WEFT_TRY(inner(engine, s_score, s_score, run->n, &norm));
    run->out->d[found] = sqrt(norm);
  }
done:
  return st;
}

/* gs: loadings that are accurate to `tol` leave as much of X out of U diag(d) V'. Rotated within their span, they leave
 * the square of that: the rest is X minus its projection on their span, and nothing with all components. */
static weft_status turn_among_themselves(vectors_engine *engine, size_t found)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = engine->run;
  const weft_pca_ops *ops = run->ops;
  const weft_pca_job *job = run->job;
  weft_pca_job span = *job;
  span.k = found;
  span.start = run->out->v;
  WEFT_TRY(ops->get(run->space, run->out->v, engine->s_loads, run->p * found));
  run->job = &span;
  WEFT_TRY(weft_pca_ritz(run));
  WEFT_TRY(ops->put(run->space, engine->s_loads, run->out->v, run->p * found));
  WEFT_TRY(ops->put(run->space, engine->s_scores, run->out->u, run->n * found));
done:
  run->job = job;
  return st;
}

/* Copies all to the host, and brings nipals' scores to unit length. */
static weft_status deliver(vectors_engine *engine)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = engine->run;
  weft_pca_result *out = run->out;
  const size_t k = run->job->k;
  WEFT_TRY(run->ops->get(run->space, out->u, engine->s_scores, run->n * k));
  WEFT_TRY(run->ops->get(run->space, out->v, engine->s_loads, run->p * k));
  if (run->job->method == WEFT_PCA_NIPALS)
    for (size_t j = 0; j < k; j++)
      if (out->d[j] > 0)
        for (size_t i = 0; i < run->n; i++) out->u[i + j * run->n] /= out->d[j];
done:
  return st;
}

/* Component after component by gs or nipals until k are found or nothing is left of X. Beyond the rank come arbitrary
 * orthogonal vectors with value 0. */
weft_status weft_pca_vectors(weft_pca_run *run)
{
  weft_status st = WEFT_OK;
  const weft_pca_ops *ops = run->ops;
  const size_t k = run->job->k, n = run->n, p = run->p;
  vectors_engine engine = { run, NULL, NULL, NULL, NULL, NULL, NULL, 0 };
  size_t found = 0;
  int nothing = 0;
  WEFT_TRY(ops->take(run->space, p, &engine.s_v));
  WEFT_TRY(ops->take(run->space, n, &engine.s_u));
  WEFT_TRY(ops->take(run->space, p, &engine.s_w));
  WEFT_TRY(ops->take(run->space, p * k, &engine.s_loads));
  WEFT_TRY(ops->take(run->space, n * k, &engine.s_scores));
  WEFT_TRY(ops->take(run->space, k + 1, &engine.s_small));
  while (found < k && !nothing) {
    WEFT_TRY(component(&engine, found, &nothing));
    if (!nothing) found++;
  }
  if (run->job->method == WEFT_PCA_GS && !run->job->paper && found > 1) WEFT_TRY(turn_among_themselves(&engine, found));
  for (size_t j = found; j < k; j++) { /* beyond the rank: vectors that are orthogonal to the others, value 0 */
    run->out->d[j] = 0;
    run->out->residual[j] = 0;
    run->out->converged[j] = 1;
    WEFT_TRY(random_unit(&engine, engine.s_loads + j * p, p, engine.s_loads, j));
    WEFT_TRY(
        random_unit(&engine, engine.s_scores + j * n, n, engine.s_scores, run->job->method == WEFT_PCA_GS ? j : 0));
  }
  WEFT_TRY(deliver(&engine));
done : {
  double *blocks[] = { engine.s_v, engine.s_u, engine.s_w, engine.s_loads, engine.s_scores, engine.s_small };
  for (int i = 0; i < 6; i++)
    if (blocks[i]) ops->drop(run->space, blocks[i]);
}
  return st;
}
