/* Linear and logistic models of single pairs of variants, over the rows in which both genotypes are known.
 *
 * The design is made orthonormal by Gram-Schmidt, twice for each column, in the order covariates, both variants,
 * interaction. Columns that follow from those before them are left out. The interaction stands last: its coefficient is
 * its effect over the length that its column had left, and no system has to be solved. A logistic model is fitted by
 * iteratively reweighted least squares from the model without variants. */
#include <string.h>
#include "core/call/arena.h"
#include "core/call/parallel.h"
#include "mi/scan/scan.h"

enum {
  OWN_TERMS = 4, /* columns of both variants alone, at most */
  INTERACTION_TERMS = 4,
  MAX_ITERATIONS = 60, /* separated classes are known by not converging */
  MAX_HALVINGS = 20
};
#define FOLLOWS 1e-7        /* of a column's length: what is left of one that follows from others */
#define ROUNDING 1e-15      /* of the greatest value: residuals this small are rounding errors */
#define CONVERGED 1e-10     /* change of the linear predictor */
#define SAME_DEVIANCE 1e-12 /* relative change */
#define ALMOST 1e-6         /* where rounding errors keep the linear predictor from converging further */
#define LARGE_PREDICTOR 12  /* probabilities within 6e-6 of 0 or 1 */

/* Work space of one thread. */
typedef struct workspace {
  double *design;   /* columns that are kept */
  double *columns;  /* the same, weighted and orthonormal */
  double *y, *rest; /* outcome; working outcome, then its residuals */
  double *root, *predictor, *before;
  double *effects;
  uint8_t *codes, *others;
  uint32_t *rows;
  size_t n, kept, tested; /* rows; columns kept, of which the last `tested` are the interaction's */
  double length;          /* that the last column had left */
} workspace;

/* A thread's memory, for one pair's rows and columns. */
static weft_status take_workspace(weft_arena *mem, const weft_refit_job *job, workspace *w)
{
  weft_status st = WEFT_OK;
  const size_t n = job->variants.n, most = job->k + OWN_TERMS + INTERACTION_TERMS;
  WEFT_TAKE(w->design, mem, n * most);
  WEFT_TAKE(w->columns, mem, n * most);
  WEFT_TAKE(w->y, mem, n);
  WEFT_TAKE(w->rest, mem, n);
  WEFT_TAKE(w->root, mem, n);
  WEFT_TAKE(w->predictor, mem, n);
  WEFT_TAKE(w->before, mem, n);
  WEFT_TAKE(w->effects, mem, most);
  WEFT_TAKE(w->codes, mem, n);
  WEFT_TAKE(w->others, mem, n);
  WEFT_TAKE(w->rows, mem, n);
done:
  return st;
}

/* ---- least squares ---- */

static double dot(const double *x, const double *y, size_t n)
{
  double sum[4] = { 0 };
  size_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (size_t l = 0; l < 4; l++) sum[l] += x[i + l] * y[i + l];
  for (; i < n; i++) sum[0] += x[i] * y[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static void take_off(double *x, double factor, const double *y, size_t n)
{
  for (size_t i = 0; i < n; i++) x[i] -= factor * y[i];
}

/* Makes a column orthogonal to `count` orthonormal ones, and of length 1. Returns the length that it had left, 0 where
 * it follows from them; it is then 0, too. */
static double orthogonalise(const double *columns, size_t count, double *column, size_t n)
{
  const double whole = sqrt(dot(column, column, n));
  for (int time = 0; time < 2; time++)
    for (size_t j = 0; j < count; j++) take_off(column, dot(columns + j * n, column, n), columns + j * n, n);
  const double length = sqrt(dot(column, column, n));
  if (!(length > FOLLOWS * whole)) return 0;
  for (size_t i = 0; i < n; i++) column[i] /= length;
  return length;
}

/* Fits w->rest by the first `count` columns, each row times w->root: effects, and residuals in w->rest. Returns the sum
 * of their squares. */
static double fit_columns(workspace *w, size_t count)
{
  const size_t n = w->n;
  for (size_t j = 0; j < count; j++) {
    double *column = w->columns + j * n;
    for (size_t i = 0; i < n; i++) column[i] = w->root[i] * w->design[i + j * n];
    w->length = orthogonalise(w->columns, j, column, n);
    if (w->length == 0) memset(column, 0, n * sizeof *column); /* where weights vanish */
    w->effects[j] = dot(column, w->rest, n);
    take_off(w->rest, w->effects[j], column, n);
  }
  return dot(w->rest, w->rest, n);
}

/* ---- designs ---- */

/* Reads both variants, and finds the rows in which both are known. */
static void read_pair(const weft_refit_job *job, const uint32_t *pair, workspace *w)
{
  weft_variant_read(&job->variants, pair[0], 0, job->variants.n, w->codes);
  weft_variant_read(&job->variants, pair[1], 0, job->variants.n, w->others);
  w->n = 0;
  for (size_t i = 0; i < job->variants.n; i++) {
    if (w->codes[i] >= WEFT_GENOTYPE_MISSING || w->others[i] >= WEFT_GENOTYPE_MISSING) continue;
    w->codes[w->n] = w->codes[i];
    w->others[w->n] = w->others[i];
    w->y[w->n] = job->y[i];
    w->rows[w->n++] = (uint32_t) i;
  }
}

static double mean_of(const uint8_t *codes, size_t n)
{
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += codes[i];
  return n ? sum / (double) n : 0;
}

/* Keeps the column that was just written unless it follows from the others; w->columns has these, orthonormal. */
static int keep_column(workspace *w)
{
  double *column = w->columns + w->kept * w->n;
  memcpy(column, w->design + w->kept * w->n, w->n * sizeof *column);
  const int there = orthogonalise(w->columns, w->kept, column, w->n) > 0;
  w->kept += (size_t) there;
  return there;
}

/* Writes one column: codes less their mean, or whether they are `level`; of one variant or, as a product, of both. */
static void write_column(workspace *w, const uint8_t *codes, int level, const uint8_t *others, int other_level)
{
  double *column = w->design + w->kept * w->n;
  const double mean = mean_of(codes, w->n), other_mean = others ? mean_of(others, w->n) : 0;
  for (size_t i = 0; i < w->n; i++) {
    column[i] = level ? codes[i] == level : codes[i] - mean;
    if (others) column[i] *= other_level ? others[i] == other_level : others[i] - other_mean;
  }
}

/* The columns of a pair's model that do not follow from others. */
static void make_design(const weft_refit_job *job, workspace *w)
{
  w->kept = w->tested = 0;
  for (size_t j = 0; j < job->k; j++) {
    const double *from = job->basis + j * job->variants.n;
    for (size_t i = 0; i < w->n; i++) w->design[i + w->kept * w->n] = from[w->rows[i]];
    keep_column(w);
  }
  const int first = job->genotypes ? 1 : 0, last = job->genotypes ? 2 : 0; /* levels; 0: the number */
  for (int variant = 0; variant < 2; variant++)
    for (int level = first; level <= last; level++) {
      write_column(w, variant ? w->others : w->codes, level, NULL, 0);
      keep_column(w);
    }
  for (int level = first; level <= last; level++)
    for (int other = first; other <= last; other++) {
      write_column(w, w->codes, level, w->others, other);
      w->tested += (size_t) keep_column(w);
    }
}

/* ---- models ---- */

typedef struct result {
  double estimate, error, statistic;
  enum weft_refit_reason reason;
} result;

static result no_result(enum weft_refit_reason reason) { return (result){ NAN, NAN, NAN, reason }; }

/* Least squares of the design: t of its last column, or F of those that are tested. */
static result fit_linear(const weft_refit_job *job, workspace *w)
{
  double greatest = 0;
  for (size_t i = 0; i < w->n; i++) {
    w->root[i] = 1;
    w->rest[i] = w->y[i];
    if (fabs(w->y[i]) > greatest) greatest = fabs(w->y[i]);
  }
  const double squares = fit_columns(w, w->kept), rounding = ROUNDING * greatest;
  if (!(squares > (double) w->n * rounding * rounding)) return no_result(WEFT_REFIT_NO_NOISE);
  const double variance = squares / (double) (w->n - w->kept), effect = w->effects[w->kept - 1];
  if (job->genotypes) {
    const double *effects = w->effects + w->kept - w->tested;
    return (result){ NAN, NAN, dot(effects, effects, w->tested) / (double) w->tested / variance, WEFT_REFIT_FINE };
  }
  return (result){ effect / w->length, sqrt(variance) / w->length, effect / sqrt(variance), WEFT_REFIT_FINE };
}

static double deviance(const workspace *w)
{
  double sum = 0;
  for (size_t i = 0; i < w->n; i++) {
    const double x = w->y[i] > 0 ? -w->predictor[i] : w->predictor[i];
    sum += x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
  }
  return 2 * sum;
}

/* One step of reweighted least squares by the first `count` columns, from w->predictor, which is kept in w->before. */
static void step_logistic(workspace *w, size_t count)
{
  for (size_t i = 0; i < w->n; i++) {
    const double x = w->predictor[i], less = exp(-fabs(x)), near = less / (1 + less), far = 1 / (1 + less);
    const double off = w->y[i] > 0 ? (x > 0 ? near : far) : (x > 0 ? -far : -near); /* y less its probability */
    w->before[i] = x;
    w->root[i] = sqrt(near * far);
    w->rest[i] = w->root[i] > 0 ? w->root[i] * x + off / w->root[i] : 0;
    w->predictor[i] = w->rest[i];
  }
  fit_columns(w, count);
  for (size_t i = 0; i < w->n; i++)
    w->predictor[i] = w->root[i] > 0 ? (w->predictor[i] - w->rest[i]) / w->root[i] : w->before[i];
}

/* Fits the first `count` columns. `whole`: until the predictor has converged, as its coefficients have then; else until
 * the deviance has, which it does where classes are separated, too. Returns the deviance, NaN where neither did. */
static double fit_logistic(const weft_refit_job *job, workspace *w, size_t count, int whole)
{
  double last, change = INFINITY, greatest = 0;
  for (size_t i = 0; i < w->n; i++) w->predictor[i] = job->start[w->rows[i]];
  last = deviance(w);
  for (int step = 0; step < MAX_ITERATIONS; step++) {
    step_logistic(w, count);
    double now = deviance(w);
    for (int time = 0; time < MAX_HALVINGS && !(now <= last + 1e-9 * (1 + last)); time++) {
      for (size_t i = 0; i < w->n; i++) w->predictor[i] = (w->predictor[i] + w->before[i]) / 2;
      now = deviance(w);
    }
    change = greatest = 0;
    for (size_t i = 0; i < w->n; i++) {
      change = fmax(change, fabs(w->predictor[i] - w->before[i]));
      greatest = fmax(greatest, fabs(w->predictor[i]));
    }
    const int still = fabs(now - last) <= SAME_DEVIANCE * (now + 0.1);
    last = now;
    if (whole ? change <= CONVERGED * (1 + greatest) : still) return last;
    if (whole && step > 25 && greatest > LARGE_PREDICTOR && change > 0.1) return NAN; /* it goes on by 1 a step */
  }
  return whole && change <= ALMOST * (1 + greatest) ? last : NAN;
}

static result fit_class(const weft_refit_job *job, workspace *w)
{
  if (job->genotypes) {
    const double whole = fit_logistic(job, w, w->kept, 0), less = fit_logistic(job, w, w->kept - w->tested, 0);
    if (isnan(whole) || isnan(less)) return no_result(WEFT_REFIT_SEPARATED);
    return (result){ NAN, NAN, less > whole ? less - whole : 0, WEFT_REFIT_FINE };
  }
  if (isnan(fit_logistic(job, w, w->kept, 1)) || w->length == 0) return no_result(WEFT_REFIT_SEPARATED);
  const double effect = w->effects[w->kept - 1];
  return (result){ effect / w->length, 1 / w->length, effect, WEFT_REFIT_FINE };
}

static int one_class(const workspace *w)
{
  size_t cases = 0;
  for (size_t i = 0; i < w->n; i++) cases += w->y[i] > 0;
  return cases == 0 || cases == w->n;
}

/* Everything about one pair: the model, or why it has none. */
static void refit_pair(const weft_refit_job *job, workspace *w, size_t at, const weft_refit_fits *out)
{
  result found;
  read_pair(job, job->pairs + 2 * at, w);
  make_design(job, w);
  if (job->start && one_class(w))
    found = no_result(WEFT_REFIT_ONE_CLASS);
  else if (w->n <= w->kept)
    found = no_result(WEFT_REFIT_FEW_ROWS);
  else if (w->tested == 0)
    found = no_result(WEFT_REFIT_COLLINEAR);
  else
    found = job->start ? fit_class(job, w) : fit_linear(job, w);
  out->rows[at] = (double) w->n;
  out->estimate[at] = found.estimate;
  out->error[at] = found.error;
  out->statistic[at] = found.statistic;
  out->freedom[at] = (double) w->tested;
  out->residual[at] = (double) w->n - (double) w->kept;
  out->reason[at] = (int32_t) found.reason;
}

/* Pairs go to the threads, between polls. */
weft_status weft_mi_refit(weft_ctx *ctx, const weft_refit_job *job, const weft_refit_fits *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const double columns = (double) (job->k + 3), steps = job->start ? 7 : 1;
  const double cost = 2 * steps * columns * columns * (double) (job->variants.n + 1);
  const size_t at_once = 1 + (size_t) (ctx->threads * 3e7 / cost);
  const int team = job->count < (size_t) ctx->threads ? (int) job->count : ctx->threads;
  workspace *spaces;
  WEFT_TAKE0(spaces, &mem, (size_t) team + 1);
  for (int t = 0; t < team; t++) WEFT_TRY(take_workspace(&mem, job, &spaces[t]));
  for (size_t first = 0; first < job->count; first += at_once) {
    const int64_t end = (int64_t) (job->count - first < at_once ? job->count : first + at_once);
    WEFT_TRY(weft_poll(ctx, (double) first, (double) job->count));
    WEFT_PARALLEL_FOR(weft_threads_worth(team, (double) (end - (int64_t) first) * cost), dynamic)
    for (int64_t at = (int64_t) first; at < end; at++) refit_pair(job, &spaces[WEFT_THREAD()], (size_t) at, out);
  }
done:
  weft_arena_end(&mem);
  return st;
}
