/* NIPALS with missing values (Wold 1966; Christoffersson 1970): regressions over what is observed,
 *   p_j = sum_i x_ij t_i / sum_i t_i^2,   t_i = sum_j x_ij p_j / sum_j p_j^2     (i, j: x_ij observed),
 * p brought to unit length in between, and x -= t p' when both stand still. This is not the least-squares fit of the observed
 * values. "gs" keeps p and t orthogonal to those found before (Andrecut 2009). */
#include <math.h>
#include <string.h>
#include "../base/arena.h"
#include "../base/draws.h"
#include "../base/parallel.h"
#include "../base/simd.h"
#include "pca.h"

#define ROWS_AT_ONCE 256

typedef struct {
  weft_ctx *ctx;
  const double *x;
  size_t n, p;
  double *over, *under; /* sums of a chunk of rows for each thread: 2 × ROWS_AT_ONCE */
} observed;

/* Sums over what is observed in x: of x t and of t^2; and, onto over and under, x l and l^2. Comparing x with itself gives a
 * mask of all ones where it is a number. */
#define OBSERVED(name, lanes, target) \
  typedef double name##_vector __attribute__((vector_size(8 * lanes), aligned(8))); \
  typedef int64_t name##_mask __attribute__((vector_size(8 * lanes), aligned(8))); \
  target static void name##_sums(size_t n, const double *x, const double *t, double out[2]) \
  { \
    name##_vector over = { 0 }, under = { 0 }; \
    size_t i = 0; \
    for (; i + lanes <= n; i += lanes) { \
      const name##_vector a = *(const name##_vector *) (x + i), b = *(const name##_vector *) (t + i); \
      const name##_mask seen = a == a; \
      over += (name##_vector) ((name##_mask) a & seen) * b; \
      under += (name##_vector) ((name##_mask) b & seen) * b; \
    } \
    out[0] = out[1] = 0; \
    for (; i < n; i++) if (x[i] == x[i]) { out[0] += x[i] * t[i]; out[1] += t[i] * t[i]; } \
    for (int l = 0; l < lanes; l++) { out[0] += over[l]; out[1] += under[l]; } \
  } \
  target static void name##_add(size_t n, const double *x, double load, double *over, double *under) \
  { \
    const double square = load * load; \
    const name##_vector squares = square + (name##_vector) { 0 }; \
    size_t i = 0; \
    for (; i + lanes <= n; i += lanes) { \
      const name##_vector a = *(const name##_vector *) (x + i); \
      const name##_mask seen = a == a; \
      *(name##_vector *) (over + i) += (name##_vector) ((name##_mask) a & seen) * load; \
      *(name##_vector *) (under + i) += (name##_vector) ((name##_mask) squares & seen); \
    } \
    for (; i < n; i++) if (x[i] == x[i]) { over[i] += x[i] * load; under[i] += square; } \
  }

OBSERVED(portable, 2, )
#if WEFT_SIMD_X86
OBSERVED(wide, 4, __attribute__((target("avx2"))))
#endif

static void sums(size_t n, const double *x, const double *t, double out[2])
{
#if WEFT_SIMD_X86
  if (weft_simd_level() >= WEFT_SIMD_AVX2) { wide_sums(n, x, t, out); return; }
#endif
  portable_sums(n, x, t, out);
}

static void add(size_t n, const double *x, double load, double *over, double *under)
{
#if WEFT_SIMD_X86
  if (weft_simd_level() >= WEFT_SIMD_AVX2) { wide_add(n, x, load, over, under); return; }
#endif
  portable_add(n, x, load, over, under);
}

/* p_j from t. */
static void loads_of(const observed *o, const double *t, double *loads)
{
  WEFT_PARALLEL(o->ctx->threads)
  WEFT_FOR(static)
  for (int64_t j = 0; j < (int64_t) o->p; j++) {
    double both[2];
    sums(o->n, o->x + (size_t) j * o->n, t, both);
    loads[j] = both[1] > 0 ? both[0] / both[1] : 0;
  }
}

/* t_i from p, rows in chunks that stay in cache. */
static void scores_of(const observed *o, const double *loads, double *t)
{
  const int64_t chunks = (int64_t) ((o->n + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE);
  WEFT_PARALLEL(o->ctx->threads)
  WEFT_FOR(static)
  for (int64_t c = 0; c < chunks; c++) {
    const size_t first = (size_t) c * ROWS_AT_ONCE, rows = o->n - first < ROWS_AT_ONCE ? o->n - first : ROWS_AT_ONCE;
    double *over = o->over + WEFT_THREAD() * ROWS_AT_ONCE, *under = o->under + WEFT_THREAD() * ROWS_AT_ONCE;
    memset(over, 0, rows * sizeof *over);
    memset(under, 0, rows * sizeof *under);
    for (size_t j = 0; j < o->p; j++) add(rows, o->x + first + j * o->n, loads[j], over, under);
    for (size_t i = 0; i < rows; i++) t[first + i] = under[i] > 0 ? over[i] / under[i] : 0;
  }
}

static double length(const double *x, size_t count)
{
  double sum = 0;
  for (size_t i = 0; i < count; i++) sum += x[i] * x[i];
  return sqrt(sum);
}

static void scale_by(double *x, size_t count, double factor) { for (size_t i = 0; i < count; i++) x[i] *= factor; }

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

static void deflate(const observed *o, double *x, const double *t, const double *loads)
{
  WEFT_PARALLEL(o->ctx->threads)
  WEFT_FOR(static)
  for (int64_t j = 0; j < (int64_t) o->p; j++)
    for (size_t i = 0; i < o->n; i++) x[i + (size_t) j * o->n] -= t[i] * loads[j];
}

weft_status weft_pca_missing(weft_ctx *ctx, double *x, size_t n, size_t p, const weft_pca_job *job, weft_pca_result *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const int gs = job->method == WEFT_PCA_GS;
  const weft_rng rng = { job->key, 0x706362 };
  observed o = { ctx, x, n, p, NULL, NULL };
  double *t, *before, largest = 0;
  WEFT_TAKE(t, &mem, n);
  WEFT_TAKE(before, &mem, n);
  WEFT_TAKE(o.over, &mem, (size_t) ctx->threads * ROWS_AT_ONCE);
  WEFT_TAKE(o.under, &mem, (size_t) ctx->threads * ROWS_AT_ONCE);
  out->rank = 0;
  for (size_t k = 0; k < job->k; k++) {
    double *loads = out->v + k * p, change = INFINITY, size = 0, last = 0;
    for (size_t i = 0; i < n; i++) t[i] = 2 * weft_draw_uniform(rng, k * n + i) - 1;
    for (size_t it = 1; it <= job->most; it++) {
      WEFT_TRY(weft_poll(ctx, (double) k, (double) job->k));
      memcpy(before, t, n * sizeof *t);
      loads_of(&o, t, loads);
      if (gs) free_of(loads, out->v, p, k);
      if ((size = length(loads, p)) > 0) scale_by(loads, p, 1 / size);
      scores_of(&o, loads, t);
      if (gs) free_of(t, out->u, n, k);
      size = length(t, n);
      largest = fmax(largest, size);
      change = 0;
      for (size_t i = 0; i < n; i++) change += (t[i] - before[i]) * (t[i] - before[i]);
      change = largest > 0 ? sqrt(change) / largest : 0;
      out->iterations[k] = (int32_t) it;
      if (job->paper ? fabs(size - last) <= job->tol : change <= job->tol) break;
      last = size;
    }
    out->converged[k] = job->paper ? out->iterations[k] < (int32_t) job->most : change <= job->tol;
    out->residual[k] = change;
    out->d[k] = size > 1e-15 * (double) (n > p ? n : p) * largest ? size : 0;
    out->rank += out->d[k] > 0;
    deflate(&o, x, t, loads);
    for (size_t i = 0; i < n; i++) out->u[i + k * n] = out->d[k] > 0 ? t[i] / size : 0;
  }
done:
  weft_arena_end(&mem);
  return st;
}
