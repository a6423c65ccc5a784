/* Small decompositions; see dense_eigen.h. Symmetric matrices are brought to tridiagonal form by Householder
 * reflections, one pass over the matrix per reflection: the update by the last one and the product with the next are
 * done together, so that the cost is that of reading the matrix from cache. LAPACK finds the leading eigenpairs of the
 * tridiagonal matrix.
 *
 * Singular values: the eigenvectors L of a a' make the columns of a'L nearly orthogonal; rotations between pairs of
 * columns (one-sided Jacobi, Hestenes 1958) do the rest, so that what squaring lost in the small values is found
 * again. */
/* Build: fused. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/call/arena.h"
#include "core/call/parallel.h"
#include "core/numbers/product.h"
#include "core/call/simd.h"
#include "pca/engines/lapack.h"
#include "pca/engines/dense_eigen.h"

/* x -= a * s + b * t, then the inner product of x with v. */
#define UPDATE_AND_DOT(name, lanes, target) \
  typedef double name##_vector __attribute__((vector_size(8 * lanes), aligned(8))); \
  target static double name(size_t n, double *x, const double *a, double s, const double *b, double t, \
                            const double *v) \
  { \
    name##_vector sum = { 0 }; \
    double total = 0; \
    size_t i = 0; \
    for (; i + lanes <= n; i += lanes) { \
      name##_vector now = \
          *(name##_vector *) (x + i) - *(const name##_vector *) (a + i) * s - *(const name##_vector *) (b + i) * t; \
      *(name##_vector *) (x + i) = now; \
      sum += now * *(const name##_vector *) (v + i); \
    } \
    for (; i < n; i++) { \
      x[i] = x[i] - a[i] * s - b[i] * t; \
      total += x[i] * v[i]; \
    } \
    for (int l = 0; l < lanes; l++) total += sum[l]; \
    return total; \
  }

UPDATE_AND_DOT(portable_column, 2, )
#if WEFT_SIMD_X86
UPDATE_AND_DOT(avx2_column, 4, __attribute__((target("avx2"))))
UPDATE_AND_DOT(avx512_column, 8, __attribute__((target("avx512f"))))
#endif

typedef double (*column_step)(size_t n, double *x, const double *a, double s, const double *b, double t,
                              const double *v);

static column_step best_column_step(void)
{
#if WEFT_SIMD_X86
  if (weft_simd_level() == WEFT_SIMD_AVX512) return avx512_column;
  if (weft_simd_level() == WEFT_SIMD_AVX2) return avx2_column;
#endif
  return portable_column;
}

/* Makes x[0 .. n-1] the vector v of the reflection I - tau v v' that brings x to (beta, 0, ..); returns beta. */
static double reflection(double *x, size_t n, double *tau)
{
  double rest = 0, beta;
  for (size_t i = 1; i < n; i++) rest += x[i] * x[i];
  *tau = 0;
  if (rest == 0) {
    beta = x[0];
    x[0] = 1;
    return beta;
  }
  beta = -copysign(sqrt(x[0] * x[0] + rest), x[0]);
  *tau = (beta - x[0]) / beta;
  const double divide = x[0] - beta;
  for (size_t i = 1; i < n; i++) x[i] /= divide;
  x[0] = 1;
  return beta;
}

/* A := diagonal and off-diagonal; the reflections stay below the diagonal, column j holding v_j from row j + 1 on.
 * Both triangles of `a` are kept up, so that every access runs down a column. */
static weft_status tridiagonal(weft_ctx *ctx, double *a, size_t m, double *diagonal, double *off, double *tau,
                               double *work)
{
  weft_status st = WEFT_OK;
  const column_step step = best_column_step();
  double *w = work, *y = work + m, *zero = work + 2 * m;
  const double *last_v = zero;
  memset(work, 0, 3 * m * sizeof *work);
  for (size_t j = 0; j < m; j++) {
    const size_t left = m - j - 1;
    const int share = (int) (left / 256), threads = share < 1 ? 1 : share < ctx->threads ? share : ctx->threads;
    double *column = a + j * m, *v = column + j + 1, inner = 0;
    /* last_v and w are indexed by row; `v` of the step before is known from row j on */
    const double s = j ? w[j] : 0, t = j ? last_v[j] : 0;
    if (j % 16 == 0) WEFT_TRY(weft_poll(ctx, (double) j, (double) m));
    for (size_t i = j; i < m; i++) column[i] -= last_v[i] * s + w[i] * t;
    diagonal[j] = column[j];
    if (!left) break;
    off[j] = reflection(v, left, &tau[j]);
    WEFT_PARALLEL_FOR(threads, static)
    for (int64_t c = (int64_t) j + 1; c < (int64_t) m; c++)
      y[c] = step(left, a + (size_t) c * m + j + 1, last_v + j + 1, w[c], w + j + 1, last_v[c], v);
    for (size_t i = j + 1; i < m; i++) {
      y[i] *= tau[j];
      inner += y[i] * v[i - j - 1];
    }
    for (size_t i = j + 1; i < m; i++) w[i] = y[i] - 0.5 * tau[j] * inner * v[i - j - 1];
    last_v = column;
  }
done:
  return st;
}

/* The k largest eigenvalues (descending) and their vectors (m × k) of the symmetric a (m × m, destroyed): Householder
 * to tridiagonal form, LAPACK for that, and reflections back on all threads. */
weft_status weft_pca_leading(weft_ctx *ctx, double *a, size_t m, size_t k, double *values, double *vectors)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const column_step step = best_column_step();
  double *diagonal, *off, *tau, *work;
  WEFT_TAKE0(diagonal, &mem, m);
  WEFT_TAKE0(off, &mem, m);
  WEFT_TAKE0(tau, &mem, m);
  WEFT_TAKE(work, &mem, 3 * m);
  WEFT_TRY(tridiagonal(ctx, a, m, diagonal, off, tau, work));
  WEFT_TRY(weft_pca_tridiagonal(ctx, m, diagonal, off, k, values, vectors));
  for (size_t first = 0; first < k; first += 64) { /* the reflections, last one first, on 64 vectors at a time */
    const size_t count = k - first < 64 ? k - first : 64;
    WEFT_TRY(weft_poll(ctx, (double) first, (double) k));
    WEFT_PARALLEL(m < 128 ? 1 : ctx->threads) /* waking threads takes longer than a small one */
    WEFT_FOR(static)
    for (int64_t c = 0; c < (int64_t) count; c++) {
      double *z = vectors + (first + (size_t) c) * m;
      for (size_t j = m - 1; j-- > 0;) {
        const double *v = a + j * m + j + 1;
        const size_t left = m - j - 1;
        const double inner = step(left, z + j + 1, v, 0, v, 0, v);
        step(left, z + j + 1, v, inner * tau[j], v, 0, v);
      }
    }
  }
#ifdef WEFT_TESTS /* signs as of another library */
  if (getenv("WEFT_PCA_OTHER_SIGNS"))
    for (size_t i = 0; i < m * k; i++) vectors[i] = -vectors[i];
#endif
done:
  weft_arena_end(&mem);
  return st;
}

/* Orthonormal columns of `y` (rows × k) in its place by modified Gram-Schmidt, done twice, and y = q r. */
static void small_qr(double *y, size_t rows, size_t k, double *r)
{
  const column_step step = best_column_step();
  memset(r, 0, k * k * sizeof *r);
  for (size_t j = 0; j < k; j++) {
    double *q = y + j * rows, norm = 0;
    for (int twice = 0; twice < 2; twice++) {
      double inner = 0;
      for (size_t i = 0; i < j; i++) { /* the update by one column and the product with the next are one pass */
        const double *last = i ? y + (i - 1) * rows : q;
        inner = step(rows, q, last, i ? inner : 0, last, 0, y + i * rows);
        r[i + j * k] += inner;
      }
      if (j) step(rows, q, y + (j - 1) * rows, inner, q, 0, q);
    }
    for (size_t l = 0; l < rows; l++) norm += q[l] * q[l];
    norm = sqrt(norm);
    r[j + j * k] = norm;
    if (norm > 0)
      for (size_t l = 0; l < rows; l++) q[l] /= norm;
  }
}

/* ---- one-sided Jacobi ---- */

/* Inner products (x,x), (y,y), (x,y); and the rotation x := c x - s y, y := s x + c y. */
#define PAIRS(name, lanes, target) \
  target static void name##_inner(size_t n, const double *x, const double *y, double out[3]) \
  { \
    name##_vector xx = { 0 }, yy = { 0 }, xy = { 0 }; \
    size_t i = 0; \
    for (; i + lanes <= n; i += lanes) { \
      const name##_vector a = *(const name##_vector *) (x + i), b = *(const name##_vector *) (y + i); \
      xx += a * a; \
      yy += b * b; \
      xy += a * b; \
    } \
    out[0] = out[1] = out[2] = 0; \
    for (; i < n; i++) { \
      out[0] += x[i] * x[i]; \
      out[1] += y[i] * y[i]; \
      out[2] += x[i] * y[i]; \
    } \
    for (int l = 0; l < lanes; l++) { \
      out[0] += xx[l]; \
      out[1] += yy[l]; \
      out[2] += xy[l]; \
    } \
  } \
  target static void name##_turn(size_t n, double *x, double *y, double c, double s) \
  { \
    size_t i = 0; \
    for (; i + lanes <= n; i += lanes) { \
      const name##_vector a = *(const name##_vector *) (x + i), b = *(const name##_vector *) (y + i); \
      *(name##_vector *) (x + i) = a * c - b * s; \
      *(name##_vector *) (y + i) = a * s + b * c; \
    } \
    for (; i < n; i++) { \
      const double a = x[i], b = y[i]; \
      x[i] = c * a - s * b; \
      y[i] = s * a + c * b; \
    } \
  }

PAIRS(portable_column, 2, )
#if WEFT_SIMD_X86
PAIRS(avx2_column, 4, __attribute__((target("avx2"))))
PAIRS(avx512_column, 8, __attribute__((target("avx512f"))))
#endif

typedef struct {
  void (*inner)(size_t n, const double *x, const double *y, double out[3]);
  void (*turn)(size_t n, double *x, double *y, double c, double s);
} pair_steps;

static pair_steps best_pair_steps(void)
{
#if WEFT_SIMD_X86
  const pair_steps avx512 = { avx512_column_inner, avx512_column_turn }, avx2 = { avx2_column_inner, avx2_column_turn };
  if (weft_simd_level() == WEFT_SIMD_AVX512) return avx512;
  if (weft_simd_level() == WEFT_SIMD_AVX2) return avx2;
#endif
  const pair_steps portable = { portable_column_inner, portable_column_turn };
  return portable;
}

/* Makes columns i and j of y orthogonal and turns those of l along; 1 when they were not. */
static int turn_pair(const pair_steps *use, double *y, double *l, size_t m, size_t i, size_t j, double nothing)
{
  double in[3], zeta, t, c;
  use->inner(m, y + i * m, y + j * m, in);
  if (in[0] <= nothing || in[1] <= nothing || fabs(in[2]) <= 4 * DBL_EPSILON * sqrt(in[0]) * sqrt(in[1])) return 0;
  zeta = (in[1] - in[0]) / (2 * in[2]);
  t = copysign(1, zeta) / (fabs(zeta) + sqrt(1 + zeta * zeta));
  c = 1 / sqrt(1 + t * t);
  use->turn(m, y + i * m, y + j * m, c, c * t);
  use->turn(m, l + i * m, l + j * m, c, c * t);
  return 1;
}

/* Sweeps over all pairs in rounds of disjoint ones (a tournament), so that threads may share a round. */
static weft_status jacobi(weft_ctx *ctx, double *y, double *l, size_t m, double nothing)
{
  weft_status st = WEFT_OK;
  const pair_steps use = best_pair_steps();
  const size_t seats = m + m % 2, rounds = seats - 1;
  const int threads = m < 400 ? 1 : ctx->threads;
  int turned = 1;
  for (int sweep = 0; sweep < 40 && turned; sweep++) {
    turned = 0;
    for (size_t round = 0; round < rounds; round++) {
      int any = 0; /* several threads may set it, all to 1 */
      if (round % 8 == 0) WEFT_TRY(weft_poll(ctx, (double) round, (double) rounds));
      WEFT_PARALLEL_FOR(threads, static)
      for (int64_t s = 0; s < (int64_t) (seats / 2); s++) {
        const size_t a = s ? (round + (size_t) s) % rounds : rounds, b = (round + rounds - (size_t) s) % rounds;
        const size_t i = a < b ? a : b, j = a < b ? b : a;
        if (j < m && turn_pair(&use, y, l, m, i, j, nothing)) __atomic_store_n(&any, 1, __ATOMIC_RELAXED);
      }
      turned |= any;
    }
  }
done:
  return st;
}

/* Columns of `right` that stand for a zero value become unit vectors orthogonal to all others. */
static void complete(double *right, size_t m, const double *values, double nothing)
{
  size_t next = 0;
  for (size_t j = 0; j < m; j++) {
    double *q = right + j * m, norm = 0;
    if (values[j] > nothing) continue;
    while (norm < 0.5 / sqrt((double) m) && next < m) {
      for (size_t i = 0; i < m; i++) q[i] = i == next;
      next++;
      for (int twice = 0; twice < 2; twice++)
        for (size_t c = 0; c < m; c++) {
          double inner = 0;
          if (c == j || (values[c] <= nothing && c > j)) continue;
          for (size_t i = 0; i < m; i++) inner += right[c * m + i] * q[i];
          for (size_t i = 0; i < m; i++) q[i] -= inner * right[c * m + i];
        }
      norm = 0;
      for (size_t i = 0; i < m; i++) norm += q[i] * q[i];
      norm = sqrt(norm);
    }
    for (size_t i = 0; i < m; i++) q[i] /= norm;
  }
}

/* All singular values (descending) and vectors of a (m × m): eigenvectors of a a' bring it near to diagonal, and
 * one-sided Jacobi recovers what squaring lost. Where a value is below rounding, its right vector is any that is
 * orthogonal to the others. */
weft_status weft_pca_svd(weft_ctx *ctx, const double *a, size_t m, double *values, double *left, double *right)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const weft_view plain = weft_view_plain(a, m, 0), transposed = weft_view_plain(a, m, 1);
  double *l, *y, *norm, largest = 0;
  size_t *order;
  WEFT_TAKE(l, &mem, m * m);
  WEFT_TAKE(y, &mem, m * m);
  WEFT_TAKE(norm, &mem, m);
  WEFT_TAKE(order, &mem, m);
  WEFT_TRY(weft_product(ctx, m, m, m, 1, &plain, &transposed, 0, y, m, 1));
  for (size_t j = 0; j < m; j++)
    for (size_t i = 0; i < j; i++) y[i + j * m] = y[j + i * m];
  WEFT_TRY(weft_pca_leading(ctx, y, m, m, norm, l));
  small_qr(l, m, m, y);
  const weft_view basis = weft_view_plain(l, m, 0);
  WEFT_TRY(weft_product(ctx, m, m, m, 1, &transposed, &basis, 0, y, m, 0));
  for (size_t j = 0; j < m; j++) {
    double sum = 0;
    for (size_t i = 0; i < m; i++) sum += y[i + j * m] * y[i + j * m];
    largest = fmax(largest, sqrt(sum));
  }
  WEFT_TRY(jacobi(ctx, y, l, m, pow(DBL_EPSILON * largest, 2)));
  for (size_t j = 0; j < m; j++) {
    double sum = 0;
    size_t at = j;
    for (size_t i = 0; i < m; i++) sum += y[i + j * m] * y[i + j * m];
    norm[j] = sqrt(sum);
    for (; at > 0 && norm[order[at - 1]] < norm[j]; at--) order[at] = order[at - 1];
    order[at] = j;
  }
  for (size_t j = 0; j < m; j++) {
    const double *from = y + order[j] * m;
    values[j] = norm[order[j]];
    memcpy(left + j * m, l + order[j] * m, m * sizeof *l);
    for (size_t i = 0; i < m; i++) right[i + j * m] = values[j] > 0 ? from[i] / values[j] : 0;
  }
  small_qr(left, m, m, y); /* many rotations leave a trace in the length of columns */
  complete(right, m, values, DBL_EPSILON * largest);
done:
  weft_arena_end(&mem);
  return st;
}

/* The k leading triplets of a (m × m) to residuals of `tol` times the largest: by eigenvectors of a a' and one
 * Rayleigh-Ritz step. Where that is not accurate enough, or k is more than half of m, from the whole decomposition. */
weft_status weft_pca_svd_leading(weft_ctx *ctx, const double *a, size_t m, size_t k, double tol, double *values,
                                 double *left, double *right)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const weft_view plain = weft_view_plain(a, m, 0), transposed = weft_view_plain(a, m, 1);
  weft_view of;
  double *square, *basis, *y, *r, *left_r, *right_r, *all, worst = 0;
  if (2 * k < m && m > 24) {
    WEFT_TAKE(square, &mem, m * m);
    WEFT_TAKE(basis, &mem, m * k);
    WEFT_TAKE(y, &mem, m * k);
    WEFT_TAKE(r, &mem, k * k);
    WEFT_TAKE(left_r, &mem, k * k);
    WEFT_TAKE(right_r, &mem, k * k);
    WEFT_TRY(weft_product(ctx, m, m, m, 1, &plain, &transposed, 0, square, m, 1));
    for (size_t j = 0; j < m; j++)
      for (size_t i = 0; i < j; i++) square[i + j * m] = square[j + i * m];
    WEFT_TRY(weft_pca_leading(ctx, square, m, k, values, basis));
    small_qr(basis, m, k, r);
    of = weft_view_plain(basis, m, 0);
    WEFT_TRY(weft_product(ctx, m, k, m, 1, &transposed, &of, 0, y, m, 0)); /* a' basis = y = q r */
    small_qr(y, m, k, r);
    WEFT_TRY(weft_pca_svd(ctx, r, k, values, left_r, right_r));
    of = weft_view_plain(y, m, 0);
    weft_view small = weft_view_plain(left_r, k, 0);
    WEFT_TRY(weft_product(ctx, m, k, k, 1, &of, &small, 0, right, m, 0));
    of = weft_view_plain(basis, m, 0);
    small = weft_view_plain(right_r, k, 0);
    WEFT_TRY(weft_product(ctx, m, k, k, 1, &of, &small, 0, left, m, 0));
    /* a' left = right diag(values) holds by construction; a right = left diag(values) is what may fail */
    of = weft_view_plain(right, m, 0);
    WEFT_TRY(weft_product(ctx, m, k, m, 1, &plain, &of, 0, y, m, 0));
    for (size_t j = 0; j < k; j++) {
      double norm = 0, size = 0;
      for (size_t i = 0; i < m; i++) {
        const double e = y[i + j * m] - values[j] * left[i + j * m];
        norm += e * e;
        size += right[i + j * m] * right[i + j * m];
      }
      worst = fmax(worst, fmax(sqrt(norm), size > 0.5 ? 0 : values[0]));
    }
    if (worst <= tol * values[0]) goto done;
  }
  WEFT_TAKE(basis, &mem, m * m);
  WEFT_TAKE(y, &mem, m * m);
  WEFT_TAKE(all, &mem, m);
  WEFT_TRY(weft_pca_svd(ctx, a, m, all, basis, y));
  memcpy(values, all, k * sizeof *values);
  memcpy(left, basis, m * k * sizeof *left);
  memcpy(right, y, m * k * sizeof *right);
done:
  weft_arena_end(&mem);
  return st;
}
