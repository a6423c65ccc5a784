/* Block Golub-Kahan-Lanczos with full reorthogonalisation and Rayleigh-Ritz extraction (Golub, Luk and Overton 1981; thick
 * restart after Wu and Simon 2000, Baglama and Reichel 2005).
 *
 *   X P = Q H                     P: near × J, Q: far × J, orthonormal; H: J × J, held whole on the host
 *   X'Q = P H' + N R E'           N: the next block of P; E: the last columns of Q
 *
 * With H = A S C', the triplets (Q a, s, P c) satisfy X v = s u to rounding, and X'u - s v = N R (rows of a that belong to
 * the last block): the residual is known without a pass. H is gathered from the Gram-Schmidt coefficients, so restarts,
 * vanished directions and truncated blocks need no special structure. When P fills the near space the triplets are those of
 * X to rounding, whatever its spectrum: that is how all components are had.
 *
 * "gram" begins with the eigenvectors of the smaller Gram matrix instead of a random block, and goes on only when residuals
 * ask for it: squaring loses components below 1e-8 of the largest. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "pca_block.h"
#include "pca_small.h"

#define PANEL 64       /* vectors orthogonalised at once, at most */
#define ROUNDS 12      /* of orthogonalisation; two are usual */
#define LOOK_AGAIN 8   /* blocks that a search for missed copies takes */
#define CLEAN 1e-8     /* what a round may find and still be the last: it leaves the square */

typedef struct {
  weft_pca_run *run;
  weft_arena mem;
  size_t capacity;        /* columns that P, Q and H have room for, besides the next block */
  size_t size;            /* J */
  size_t last;            /* columns of Q in the last block */
  size_t next;            /* columns of N, which stand in P behind the J */
  double *s_p, *s_q, *h;  /* h: leading dimension `capacity` */
  double *r;              /* R: r_rows × last */
  size_t r_rows;
  double *s_small, *s_swap, *small; /* coefficients and a block of vectors in passing */
  double *left, *right, *values;    /* of H */
  double scale;           /* the largest norm seen: what counts as nothing is relative to it */
} engine;

/* ---- orthogonalisation ---- */

/* With g the b × b Gram matrix of a panel: t such that (panel t) has about orthonormal columns, and its inverse. By Cholesky
 * when g is well conditioned, else by eigenvectors with small eigenvalues lifted: the next round does the rest. */
static int cholesky(const double *g, size_t b, double *t, double *inverse)
{
  double scale[PANEL];
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
      if (i < j) inverse[i + j * b] = s / inverse[i + i * b];
      else if (s < 1e-4) return 0;
      else inverse[j + j * b] = sqrt(s);
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
    for (size_t i = 0; i < b; i++) { inverse[i + j * b] *= scale[j]; t[i + j * b] /= scale[i]; }
  return 1;
}

static weft_status by_eigenvectors(engine *e, const double *g, size_t b, double *t, double *inverse)
{
  weft_status st = WEFT_OK;
  double scale[PANEL], value[PANEL], *vectors, *work;
  weft_arena mem = weft_arena_begin(e->run->ctx);
  WEFT_TAKE(vectors, &mem, b * b);
  WEFT_TAKE(work, &mem, b * b);
  for (size_t j = 0; j < b; j++) scale[j] = g[j + j * b] > 0 ? sqrt(g[j + j * b]) : 1;
  for (size_t j = 0; j < b; j++) for (size_t i = 0; i < b; i++) work[i + j * b] = g[i + j * b] / (scale[i] * scale[j]);
  WEFT_TRY(weft_pca_leading(e->run->ctx, work, b, b, value, vectors));
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
    if (!add) for (size_t i = 0; i < m; i++) c[i + j * m] = 0;
    for (size_t l = 0; l < k; l++) {
      const double x = b[l + j * k];
      if (x != 0) for (size_t i = 0; i < m; i++) c[i + j * m] += a[i + l * m] * x;
    }
  }
}

/* The panel of b columns behind the first `before` of `s_basis` (rows high) is made orthonormal and orthogonal to them:
 * old panel = basis c + new panel r; c: before × b, r: b × b. Directions that vanish give rows of zeros in r and are
 * replaced by random ones. */
static weft_status orthonormalise(engine *e, double *s_basis, size_t rows, size_t before, size_t b, double *c, double *r)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = e->run;
  const weft_pca_ops *ops = run->ops;
  weft_pca_space *space = run->space;
  weft_arena mem = weft_arena_begin(run->ctx);
  const size_t all = before + b;
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
    WEFT_TRY(ops->gemm(space, 1, 0, all, b, rows, 1, s_basis, rows, s_panel, rows, 0, e->s_small, all));
    WEFT_TRY(ops->get(space, e->small, e->s_small, all * b));
    for (size_t j = 0; j < b; j++) {
      const double *column = e->small + j * all;
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
        if (x != 0) for (size_t i = 0; i < before; i++) c[i + j * before] += e->small[i + l * all] * x;
      }
    if (before && found > 0) WEFT_TRY(ops->gemm(space, 0, 0, rows, b, before, -1, s_basis, rows, e->s_small, all, 1, s_panel, rows));
    for (size_t j = 0; j < b; j++) { /* the Gram matrix of what is left */
      const double *column = e->small + j * all;
      for (size_t i = 0; i <= j; i++) {
        double s = 0;
        for (size_t l = 0; l < before; l++) s += e->small[l + i * all] * column[l];
        g[i + j * b] -= s;
        g[j + i * b] = g[i + j * b];
      }
      if (g[j + j * b] < 1e-10 * column[before + j]) again = 1; /* cancelled: measure what is left in the next round */
    }
    for (size_t j = 0; j < b; j++) {
      const double norm = sqrt(e->small[before + j + j * all]);
      double carries = 0;
      for (size_t l = 0; l < b; l++) carries = fmax(carries, fabs(r[j + l * b]));
      if (round == 0) e->scale = fmax(e->scale, norm);
      /* unit vectors stay, whatever they carry: they only need to be orthogonal */
      if (norm > 0 && (carries == 0 || (round && norm > 0.5) || norm * carries > DBL_EPSILON * e->scale)) continue;
      WEFT_TRY(weft_pca_random(run, s_panel + j * rows, rows));
      for (size_t l = 0; l < b; l++) r[j + l * b] = 0;
      again = 1;
    }
    settled = !again && found < CLEAN && off < CLEAN;
    if (again) continue;
    if (!cholesky(g, b, t, inverse)) {
      WEFT_TRY(by_eigenvectors(e, g, b, t, inverse));
      settled = 0;
    }
    multiply(inverse, r, b, b, b, product, 0);
    memcpy(r, product, b * b * sizeof *r);
    WEFT_TRY(ops->put(space, e->s_small, t, b * b));
    WEFT_TRY(ops->gemm(space, 0, 0, rows, b, b, 1, s_panel, rows, e->s_small, b, 0, e->s_swap, rows));
    WEFT_TRY(ops->copy(space, s_panel, e->s_swap, rows * b));
  }
  if (!settled) st = weft_fail(run->ctx, WEFT_ERR_INTERNAL, "a block of vectors could not be made orthonormal");
done:
  weft_arena_end(&mem);
  return st;
}

/* X P -> Q and H for the b columns of P from `size` on, which become the last block. */
static weft_status extend(engine *e, size_t b)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = e->run;
  weft_arena mem = weft_arena_begin(run->ctx);
  const size_t before = e->size;
  double *c, *r;
  WEFT_TAKE(c, &mem, (before + 1) * b);
  WEFT_TAKE(r, &mem, b * b);
  WEFT_TRY(weft_pca_to_far(run, e->s_p + before * run->near, b, e->s_q + before * run->far));
  WEFT_TRY(orthonormalise(e, e->s_q, run->far, before, b, c, r));
  for (size_t j = 0; j < b; j++) {
    memcpy(e->h + (before + j) * e->capacity, c + j * before, before * sizeof *c);
    memcpy(e->h + (before + j) * e->capacity + before, r + j * b, b * sizeof *r);
    for (size_t i = 0; i < before; i++) e->h[before + j + i * e->capacity] = 0;
  }
  e->size += b;
  e->last = b;
done:
  weft_arena_end(&mem);
  return st;
}

/* X'Q of the last block, freed of P: the next block and R. When there is no room for so many in the near space, any
 * basis of what is left of it serves. */
static weft_status residual_block(engine *e)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = e->run;
  weft_arena mem = weft_arena_begin(run->ctx);
  const size_t b = e->last, room = run->near - e->size;
  double *s_n = e->s_p + e->size * run->near, *c, *r;
  WEFT_TAKE(c, &mem, (e->size + b) * b);
  WEFT_TAKE(r, &mem, b * b);
  e->next = b < room ? b : room;
  e->r_rows = 0;
  if (b > room) {
    if (room) {
      WEFT_TRY(weft_pca_random(run, s_n, room * run->near));
      WEFT_TRY(orthonormalise(e, e->s_p, run->near, e->size, room, c, r));
    }
    goto done;
  }
  WEFT_TRY(weft_pca_to_near(run, e->s_q + (e->size - b) * run->far, b, s_n));
  WEFT_TRY(orthonormalise(e, e->s_p, run->near, e->size, b, c, r));
  memcpy(e->r, r, b * b * sizeof *r);
  e->r_rows = b;
done:
  weft_arena_end(&mem);
  return st;
}

/* ---- extraction ---- */

/* The k leading triplets of H into left, right, values, and their residuals. */
static weft_status extract(engine *e, size_t k, double tol)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(e->run->ctx);
  const size_t size = e->size, first = size - e->last;
  double *h;
  WEFT_TAKE(h, &mem, size * size);
  for (size_t j = 0; j < size; j++) memcpy(h + j * size, e->h + j * e->capacity, size * sizeof *h);
  WEFT_TRY(weft_pca_svd_leading(e->run->ctx, h, size, k, tol, e->values, e->left, e->right));
  for (size_t i = 0; i < k && i < e->run->job->k; i++) {
    double sum = 0;
    for (size_t row = 0; row < e->r_rows; row++) {
      double x = 0;
      for (size_t l = 0; l < e->last; l++) x += e->r[row + l * e->r_rows] * e->left[first + l + i * size];
      sum += x * x;
    }
    e->run->out->residual[i] = e->values[0] > 0 ? sqrt(sum) / e->values[0] : 0;
    if (e->r_rows == 0 && e->next) e->run->out->residual[i] = INFINITY; /* not known: the block was cut */
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* s_basis (rows × size) := s_basis small (size × k), panel by panel of rows left to the product. */
static weft_status rotate(engine *e, double *s_basis, size_t rows, const double *small, size_t k)
{
  weft_status st = WEFT_OK;
  const weft_pca_ops *ops = e->run->ops;
  weft_pca_space *space = e->run->space;
  double *s_to = NULL, *s_small = NULL;
  WEFT_TRY(ops->take(space, rows * k, &s_to));
  WEFT_TRY(ops->take(space, e->size * k, &s_small));
  WEFT_TRY(ops->put(space, s_small, small, e->size * k));
  WEFT_TRY(ops->gemm(space, 0, 0, rows, k, e->size, 1, s_basis, rows, s_small, e->size, 0, s_to, rows));
  WEFT_TRY(ops->copy(space, s_basis, s_to, rows * k));
done:
  if (s_to) ops->drop(space, s_to);
  if (s_small) ops->drop(space, s_small);
  return st;
}

/* Keeps the `keep` leading triplets (extracted before) and the next block. */
static weft_status restart(engine *e, size_t keep)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = e->run;
  const size_t near = run->near;
  WEFT_TRY(rotate(e, e->s_p, near, e->right, keep));
  WEFT_TRY(rotate(e, e->s_q, run->far, e->left, keep));
  WEFT_TRY(run->ops->copy(run->space, e->s_swap, e->s_p + e->size * near, e->next * near));
  WEFT_TRY(run->ops->copy(run->space, e->s_p + keep * near, e->s_swap, e->next * near));
  for (size_t j = 0; j < keep; j++)
    for (size_t i = 0; i < keep; i++) e->h[i + j * e->capacity] = i == j ? e->values[i] : 0;
  e->size = keep;
done:
  return st;
}

/* ---- the iteration ---- */

static size_t least(size_t a, size_t b) { return a < b ? a : b; }
static size_t most(size_t a, size_t b) { return a > b ? a : b; }

/* Memory for `capacity` columns and a next block. */
static weft_status open_engine(engine *e, weft_pca_run *run, size_t capacity)
{
  weft_status st = WEFT_OK;
  const size_t widest = PANEL;
  const weft_pca_ops *ops = run->ops;
  const size_t high = most(run->near, run->far);
  memset(e, 0, sizeof *e);
  e->run = run;
  e->mem = weft_arena_begin(run->ctx);
  e->capacity = capacity;
  WEFT_TRY(ops->take(run->space, run->near * (capacity + most(widest, run->job->k)), &e->s_p));
  WEFT_TRY(ops->take(run->space, run->far * capacity, &e->s_q));
  WEFT_TRY(ops->take(run->space, (capacity + widest) * widest, &e->s_small));
  WEFT_TRY(ops->take(run->space, high * widest, &e->s_swap));
  WEFT_TAKE0(e->h, &e->mem, capacity * capacity);
  WEFT_TAKE(e->r, &e->mem, widest * widest);
  WEFT_TAKE(e->small, &e->mem, (capacity + widest) * widest);
  WEFT_TAKE(e->left, &e->mem, capacity * capacity);
  WEFT_TAKE(e->right, &e->mem, capacity * capacity);
  WEFT_TAKE(e->values, &e->mem, capacity);
done:
  return st;
}

/* The first columns of the guess, which are loadings, as near vectors. */
static weft_status place_guess(engine *e, size_t columns)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = e->run;
  double *s_guess = NULL;
  if (!run->near_is_rows) return run->ops->put(run->space, e->s_p, run->job->start, run->p * columns);
  WEFT_TRY(run->ops->take(run->space, run->p * columns, &s_guess));
  WEFT_TRY(run->ops->put(run->space, s_guess, run->job->start, run->p * columns));
  WEFT_TRY(run->ops->product(run->space, 0, s_guess, columns, e->s_p));
  run->passes += 1;
done:
  if (s_guess) run->ops->drop(run->space, s_guess);
  return st;
}

/* The first block: the guess, filled up with random vectors. */
static weft_status first_block(engine *e, size_t b)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = e->run;
  weft_arena mem = weft_arena_begin(run->ctx);
  const size_t given = run->job->start ? least(run->job->k, b) : 0;
  double *c, *r;
  WEFT_TAKE(c, &mem, 1);
  WEFT_TAKE(r, &mem, b * b);
  if (given) WEFT_TRY(place_guess(e, given));
  if (given < b) WEFT_TRY(weft_pca_random(run, e->s_p + given * run->near, (b - given) * run->near));
  WEFT_TRY(orthonormalise(e, e->s_p, run->near, 0, b, c, r));
  e->scale = 0;
  e->next = b;
done:
  weft_arena_end(&mem);
  return st;
}

/* All of the near space, panel by panel: any basis of it will do. */
static weft_status whole_space(engine *e)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = e->run;
  weft_arena mem = weft_arena_begin(run->ctx);
  const size_t near = run->near;
  double *unit;
  WEFT_TAKE0(unit, &mem, near * PANEL);
  for (size_t j = 0; j < near; j += PANEL) {
    const size_t b = least(PANEL, near - j);
    memset(unit, 0, near * PANEL * sizeof *unit);
    for (size_t i = 0; i < b; i++) unit[j + i + i * near] = 1;
    WEFT_TRY(run->ops->put(run->space, e->s_p + j * near, unit, near * b));
    WEFT_TRY(extend(e, b));
    WEFT_TRY(weft_poll(run->ctx, (double) j, (double) near));
  }
  e->next = 0;
  e->r_rows = 0;
  WEFT_TRY(extract(e, run->job->k, run->job->tol));
done:
  weft_arena_end(&mem);
  return st;
}

/* X'U - V diag(s) of the k triplets that P, Q and H hold now: norms relative to the largest value, and those columns that
 * are too large, a panel's worth, as the next block. e->next is 0 when there are none, PANEL + 1 when there are too many. */
static weft_status true_residuals(engine *e)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = e->run;
  const weft_pca_ops *ops = run->ops;
  const size_t k = run->job->k, near = run->near;
  weft_arena mem = weft_arena_begin(run->ctx);
  double *s_out = e->s_p + k * near, *c, *r;
  double *host;
  WEFT_TAKE(host, &mem, near);
  WEFT_TAKE(c, &mem, k * PANEL);
  WEFT_TAKE(r, &mem, PANEL * PANEL);
  e->next = 0;
  e->r_rows = 0;
  WEFT_TRY(weft_pca_to_near(run, e->s_q, k, s_out));
  for (size_t j = 0; j < k; j++) {
    double sum = 0;
    WEFT_TRY(ops->put(run->space, e->s_small, &e->values[j], 1));
    WEFT_TRY(ops->gemm(run->space, 0, 0, near, 1, 1, -1, e->s_p + j * near, near, e->s_small, 1, 1, s_out + j * near, near));
    WEFT_TRY(ops->get(run->space, host, s_out + j * near, near));
    for (size_t i = 0; i < near; i++) sum += host[i] * host[i];
    run->out->residual[j] = e->values[0] > 0 ? sqrt(sum) / e->values[0] : 0;
    if (run->out->residual[j] <= run->job->tol || e->next > PANEL) continue;
    if (e->next < PANEL && e->next < near - k)
      WEFT_TRY(ops->copy(run->space, s_out + e->next * near, s_out + j * near, near));
    e->next++;
  }
  if (e->next > near - k) e->next = PANEL + 1;
  if (e->next && e->next <= PANEL) WEFT_TRY(orthonormalise(e, e->s_p, near, k, e->next, c, r));
done:
  weft_arena_end(&mem);
  return st;
}

/* The eigenvectors of the Gram matrix (or the guess, when there is one), by Rayleigh-Ritz the triplets of X in their span,
 * and their residuals. */
static weft_status gram_start(engine *e)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = e->run;
  const size_t k = run->job->k;
  double *c, *r;
  weft_arena mem = weft_arena_begin(run->ctx);
  WEFT_TAKE(c, &mem, k * PANEL);
  WEFT_TAKE(r, &mem, PANEL * PANEL);
  if (run->job->start) WEFT_TRY(place_guess(e, k));
  else WEFT_TRY(run->ops->gram(run->space, run->near_is_rows, k, e->s_p));
  run->passes += 1;
  for (size_t j = 0; j < k; j += PANEL) {
    WEFT_TRY(orthonormalise(e, e->s_p, run->near, j, least(PANEL, k - j), c, r));
    e->scale = 0;
  }
  for (size_t j = 0; j < k; j += PANEL) WEFT_TRY(extend(e, least(PANEL, k - j)));
  WEFT_TRY(extract(e, k, 1e-13));
  WEFT_TRY(restart(e, k));
  WEFT_TRY(true_residuals(e));
done:
  weft_arena_end(&mem);
  return st;
}

static weft_status random_next(engine *e, size_t b)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = e->run;
  weft_arena mem = weft_arena_begin(run->ctx);
  double *c, *r, *s_next = e->s_p + e->size * run->near;
  WEFT_TAKE(c, &mem, e->size * b);
  WEFT_TAKE(r, &mem, b * b);
  WEFT_TRY(weft_pca_random(run, s_next, b * run->near));
  WEFT_TRY(orthonormalise(e, e->s_p, run->near, e->size, b, c, r));
  e->next = b;
done:
  weft_arena_end(&mem);
  return st;
}

/* The triplets are P, Q and the diagonal of H themselves. */
static void identity(engine *e)
{
  const size_t k = e->size;
  memset(e->left, 0, k * k * sizeof *e->left);
  for (size_t j = 0; j < k; j++) e->left[j + j * k] = 1;
  memcpy(e->right, e->left, k * k * sizeof *e->left);
}

static int settled(const weft_pca_run *run)
{
  for (size_t i = 0; i < run->job->k; i++) if (!(run->out->residual[i] <= run->job->tol)) return 0;
  return 1;
}

static double worst(const weft_pca_run *run)
{
  double w = 0;
  for (size_t i = 0; i < run->job->k; i++) w = fmax(w, run->out->residual[i]);
  return w;
}

/* How many more blocks until the residuals, falling as they did between two looks, are small enough. */
static size_t blocks_to_go(double before, double now, size_t blocks, double tol)
{
  const double fall = log(before / now) / (double) blocks;
  if (!isfinite(fall) || !(fall > 0)) return 4;
  const double go = 0.9 * log(now / tol) / fall;
  return go < 1 ? 1 : go > 12 ? 12 : (size_t) go;
}

/* Goes on until the residuals are small, P is the whole near space, or the blocks are used up. A block start finds as many
 * copies of a value as it has vectors; when more could be wanted, random blocks behind the found triplets look for others
 * until a look finds none. */
static weft_status iterate(engine *e, size_t b)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = e->run;
  const weft_pca_job *job = run->job;
  const size_t k = job->k;
  const double tol = fmax(0.1 * job->tol, 3e-14);
  size_t since = 0, look = 3, blocks = 0;
  double before = 0, found = -1;
  for (;;) {
    const int last = e->size + e->next >= run->near || blocks + 1 >= job->most;
    int out_of_room;
    size_t keep;
    WEFT_TRY(weft_poll(run->ctx, (double) blocks, (double) job->most));
    WEFT_TRY(extend(e, e->next));
    WEFT_TRY(residual_block(e));
    blocks++;
    since++;
    out_of_room = e->size + e->next > e->capacity;
    if (e->size < k || (since < look && !out_of_room && !last)) continue;
    keep = out_of_room ? least(k + b, e->size) : k;
    WEFT_TRY(extract(e, keep, tol));
    for (size_t i = 0; i < k; i++) run->out->iterations[i] = (int32_t) blocks;
    if (last) break;
    if (settled(run) && since >= look) {
      double sum = 0;
      for (size_t i = 0; i < k; i++) sum += e->values[i];
      if (k < b || sum <= found * (1 + 1e-12)) break;
      found = sum;
      WEFT_TRY(restart(e, k));
      WEFT_TRY(random_next(e, least(b, run->near - k)));
      since = 0;
      look = LOOK_AGAIN;
      continue;
    }
    look = blocks_to_go(before, worst(run), since, job->tol);
    before = worst(run);
    since = 0;
    if (out_of_room) WEFT_TRY(restart(e, keep));
  }
done:
  return st;
}

/* U and V of the k triplets to the host. */
static weft_status deliver(engine *e)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = e->run;
  const size_t k = run->job->k;
  double *near = run->near_is_rows ? run->out->u : run->out->v, *far = run->near_is_rows ? run->out->v : run->out->u;
  WEFT_TRY(rotate(e, e->s_p, run->near, e->right, k));
  WEFT_TRY(rotate(e, e->s_q, run->far, e->left, k));
  WEFT_TRY(run->ops->get(run->space, near, e->s_p, run->near * k));
  WEFT_TRY(run->ops->get(run->space, far, e->s_q, run->far * k));
  memcpy(run->out->d, e->values, k * sizeof *e->values);
done:
  return st;
}

/* Room for columns: enough that restarts are rare, within a quarter of the memory that is free. */
static size_t choose_capacity(const weft_pca_run *run, size_t b)
{
  const size_t k = run->job->k;
  const double bytes = 8.0 * ((double) run->near + (double) run->far), have = weft_host_available();
  size_t wanted = most(3 * k + 4 * b, 40 * b);
  if (have > 0 && 0.25 * have / bytes < (double) wanted) wanted = (size_t) (0.25 * have / bytes);
  return least(most(wanted, k + b + 2 * PANEL), run->near);
}

static size_t choose_block(const weft_pca_run *run)
{
  const size_t spare = (run->job->k + 13) / 8 * 8, b = run->job->block ? run->job->block : spare < 16 ? 16 : spare;
  return least(least(b, PANEL), run->near);
}

static void close_engine(engine *e)
{
  const weft_pca_ops *ops = e->run->ops;
  double *blocks[] = { e->s_p, e->s_q, e->s_small, e->s_swap };
  for (int i = 0; i < 4; i++) if (blocks[i]) ops->drop(e->run->space, blocks[i]);
  weft_arena_end(&e->mem);
}

weft_status weft_pca_block(weft_pca_run *run)
{
  weft_status st = WEFT_OK;
  const size_t k = run->job->k, near = run->near, b = choose_block(run);
  const int gram = run->job->method == WEFT_PCA_GRAM && 3 * k < near && near > 2 * PANEL;
  int whole = !gram && (3 * k >= near || near <= 2 * PANEL);
  engine e;
  for (size_t i = 0; i < k; i++) run->out->iterations[i] = 1;
  if (!whole) {
    WEFT_TRY(open_engine(&e, run, choose_capacity(run, b)));
    if (gram) {
      WEFT_TRY(gram_start(&e));
      if (run->job->most == 1) identity(&e);
      else if (e.next && e.next <= PANEL) WEFT_TRY(iterate(&e, b));
      else if (e.next) whole = 1; /* too much was lost by squaring */
      else identity(&e);
    } else {
      WEFT_TRY(first_block(&e, b));
      WEFT_TRY(iterate(&e, b));
    }
  }
  if (whole) {
    if (gram) close_engine(&e);
    WEFT_TRY(open_engine(&e, run, near));
    WEFT_TRY(whole_space(&e));
  }
  WEFT_TRY(deliver(&e));
done:
  close_engine(&e);
  return st;
}
