/* Orthonormal bases, a panel at a time: block classical Gram-Schmidt against what is there and Cholesky within the
 * panel, in rounds until one finds nothing more (CGS2 and CholeskyQR2 as a rule). Coefficients are gathered on the
 * host. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "pca/engines/dense_eigen.h"
#include "pca/engines/orthonormal.h"
#include "pca/engines/ranks.h"
#include "pca/engines/run.h"

#define ROUNDS 12   /* two are usual */
#define COLLAPSES 5 /* rounds that a vector may take to find what is left of it */
#define CLEAN 1e-8  /* the most that a round may find and still be the last: it leaves the square of that */

/* With g the b × b Gram matrix of a panel: t such that (panel t) has about orthonormal columns, and its inverse. By
 * Cholesky when g is well conditioned, else by eigenvectors with small eigenvalues lifted: the next round does the
 * rest. */
static int cholesky(const double *g, size_t b, double *t, double *inverse)
{
  double scale[WEFT_PCA_WIDEST];
  memset(inverse, 0, b * b * sizeof *inverse);
  memset(t, 0, b * b * sizeof *t);
  for (size_t j = 0; j < b; j++) {
    if (!(g[j + j * b] > 0)) return 0;
    scale[j] = sqrt(g[j + j * b]);
  }
  for (size_t j = 0; j < b; j++) { /* inverse = L' with g = L L', upper triangular */
    for (size_t i = 0; i <= j; i++) {
      double s = g[i + j * b] / (scale[i] * scale[j]);
      for (size_t l = 0; l < i; l++) s -= inverse[l + i * b] * inverse[l + j * b];
      if (i < j)
        inverse[i + j * b] = s / inverse[i + i * b];
      else if (s < 1e-4)
        return 0;
      else
        inverse[j + j * b] = sqrt(s);
    }
  }
  for (size_t j = 0; j < b; j++) { /* t = inverse^-1 */
    t[j + j * b] = 1 / inverse[j + j * b];
    for (size_t i = j; i-- > 0;) {
      double s = 0;
      for (size_t l = i + 1; l <= j; l++) s += inverse[i + l * b] * t[l + j * b];
      t[i + j * b] = -s / inverse[i + i * b];
    }
  }
  for (size_t j = 0; j < b; j++)
    for (size_t i = 0; i < b; i++) {
      inverse[i + j * b] *= scale[j];
      t[i + j * b] /= scale[i];
    }
  return 1;
}

/* What cholesky() gives, for a Gram matrix g that is too near to singular: t = V / sqrt(values), after scaling to a
 * unit diagonal; eigenvalues below rounding are lifted to it. */
static weft_status by_eigenvectors(weft_pca_frame *frame, const double *g, size_t b, double *t, double *inverse)
{
  weft_status st = WEFT_OK;
  double scale[WEFT_PCA_WIDEST], value[WEFT_PCA_WIDEST], *vectors, *work;
  weft_arena mem = weft_arena_begin(frame->run->ctx);
  WEFT_TAKE(vectors, &mem, b * b);
  WEFT_TAKE(work, &mem, b * b);
  for (size_t j = 0; j < b; j++) scale[j] = g[j + j * b] > 0 ? sqrt(g[j + j * b]) : 1;
  for (size_t j = 0; j < b; j++)
    for (size_t i = 0; i < b; i++) work[i + j * b] = g[i + j * b] / (scale[i] * scale[j]);
  WEFT_TRY(weft_pca_leading(frame->run->ctx, work, b, b, value, vectors));
  WEFT_TRY(weft_pca_ranks_as_first(frame->run, value, b));
  WEFT_TRY(weft_pca_ranks_as_first(frame->run, vectors, b * b));
  for (size_t j = 0; j < b; j++) {
    const double lifted = sqrt(fmax(value[j], (double) b * 4 * DBL_EPSILON));
    for (size_t i = 0; i < b; i++) {
      t[i + j * b] = vectors[i + j * b] / (scale[i] * lifted);
      inverse[j + i * b] = vectors[i + j * b] * scale[i] * lifted;
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}

static void multiply(const double *a, const double *b, size_t m, size_t n, size_t k, double *c, int add)
{
  for (size_t j = 0; j < n; j++) {
    if (!add)
      for (size_t i = 0; i < m; i++) c[i + j * m] = 0;
    for (size_t l = 0; l < k; l++) {
      const double x = b[l + j * k];
      if (x != 0)
        for (size_t i = 0; i < m; i++) c[i + j * m] += a[i + l * m] * x;
    }
  }
}

/* Rounds of: inner products with all that is there, their share taken off, Cholesky within the panel. A round that
 * finds nothing more ends it, two as a rule; vectors that vanish are replaced by random ones. WEFT_ERR_INTERNAL after
 * ROUNDS. */
weft_status weft_pca_orthonormalise(weft_pca_frame *frame, double *s_basis, int far, size_t before, size_t b, double *c,
                                    double *r)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = frame->run;
  const weft_pca_ops *ops = run->ops;
  weft_pca_space *space = run->space;
  weft_arena mem = weft_arena_begin(run->ctx);
  const size_t all = before + b, rows = far ? run->far : run->near;
  const weft_pca_ranks *ranks = far && !run->near_is_rows ? run->ranks : NULL; /* each has its rows of the vectors */
  double *s_panel = s_basis + before * rows, *g, *t, *inverse, *product;
  int settled = 0;
  WEFT_TAKE(g, &mem, b * b);
  WEFT_TAKE(t, &mem, b * b);
  WEFT_TAKE(inverse, &mem, b * b);
  WEFT_TAKE(product, &mem, b * b);
  memset(c, 0, before * b * sizeof *c);
  memset(r, 0, b * b * sizeof *r);
  for (size_t j = 0; j < b; j++) r[j + j * b] = 1;
  for (int round = 0; round < ROUNDS && !settled; round++) {
    double found = 0, off = 0;
    int again = 0;
    WEFT_TRY(ops->gemm(space, 1, 0, all, b, rows, 1, s_basis, rows, s_panel, rows, 0, frame->s_small, all));
    if (ranks) WEFT_TRY(weft_pca_ranks_add(run, frame->s_small, all * b));
    WEFT_TRY(ops->get(space, frame->small, frame->s_small, all * b));
    if (!ranks) WEFT_TRY(weft_pca_ranks_as_first(run, frame->small, all * b));
    for (size_t j = 0; j < b; j++) {
      const double *column = frame->small + j * all;
      for (size_t i = 0; i < before; i++) found = fmax(found, fabs(column[i]));
      for (size_t i = 0; i < b; i++) {
        g[i + j * b] = column[before + i];
        off = fmax(off, fabs(g[i + j * b] - (i == j)));
      }
    }
    /* c += found r */
    for (size_t j = 0; j < b; j++)
      for (size_t l = 0; l < b; l++) {
        const double x = r[l + j * b];
        if (x != 0)
          for (size_t i = 0; i < before; i++) c[i + j * before] += frame->small[i + l * all] * x;
      }
    if (before && found > 0)
      WEFT_TRY(ops->gemm(space, 0, 0, rows, b, before, -1, s_basis, rows, frame->s_small, all, 1, s_panel, rows));
    for (size_t j = 0; j < b; j++) { /* the Gram matrix of what is left */
      const double *column = frame->small + j * all;
      for (size_t i = 0; i <= j; i++) {
        double s = 0;
        for (size_t l = 0; l < before; l++) s += frame->small[l + i * all] * column[l];
        g[i + j * b] -= s;
        g[j + i * b] = g[i + j * b];
      }
      if (g[j + j * b] < 1e-10 * column[before + j]) again = 1; /* cancelled: measure what is left in the next round */
    }
    for (size_t j = 0; j < b; j++) {
      const double norm = sqrt(frame->small[before + j + j * all]);
      double carries = 0;
      for (size_t l = 0; l < b; l++) carries = fmax(carries, fabs(r[j + l * b]));
      if (round == 0) frame->scale = fmax(frame->scale, norm);
      /* unit vectors stay, whatever their direction: they only need to be orthogonal; what collapses again and again
       * lies in the span of the others, and only its rounding is left */
      if (norm > 0 &&
          (carries == 0 || (round && norm > 0.5) || (round < COLLAPSES && norm * carries > DBL_EPSILON * frame->scale)))
        continue;
      if (ranks) run->drawn += ranks->first;
      WEFT_TRY(weft_pca_random(run, s_panel + j * rows, rows));
      if (ranks) run->drawn += ranks->all - ranks->first - rows;
      for (size_t l = 0; l < b; l++) r[j + l * b] = 0;
      again = 1;
    }
    settled = !again && found < CLEAN && off < CLEAN;
    if (again) continue;
    if (!cholesky(g, b, t, inverse)) {
      WEFT_TRY(by_eigenvectors(frame, g, b, t, inverse));
      settled = 0;
    }
    multiply(inverse, r, b, b, b, product, 0);
    memcpy(r, product, b * b * sizeof *r);
    WEFT_TRY(ops->put(space, frame->s_small, t, b * b));
    WEFT_TRY(ops->gemm(space, 0, 0, rows, b, b, 1, s_panel, rows, frame->s_small, b, 0, frame->s_swap, rows));
    WEFT_TRY(ops->copy(space, s_panel, frame->s_swap, rows * b));
  }
  if (!settled) st = weft_fail(run->ctx, WEFT_ERR_INTERNAL, "a block of vectors could not be made orthonormal");
done:
  weft_arena_end(&mem);
  return st;
}

/* Random vectors made orthonormal; the frame's scale stays, since it is about the data. */
weft_status weft_pca_random_block(weft_pca_frame *frame, double *s_basis, size_t before, size_t b)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = frame->run;
  weft_arena mem = weft_arena_begin(run->ctx);
  const double scale = frame->scale; /* of the data, about which random vectors say nothing */
  double *c, *r;
  WEFT_TAKE(c, &mem, (before + 1) * b);
  WEFT_TAKE(r, &mem, b * b);
  WEFT_TRY(weft_pca_random(run, s_basis + before * run->near, b * run->near));
  WEFT_TRY(weft_pca_orthonormalise(frame, s_basis, 0, before, b, c, r));
  frame->scale = scale;
done:
  weft_arena_end(&mem);
  return st;
}
