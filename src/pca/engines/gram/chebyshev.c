/* Leading eigenvectors of the smaller Gram matrix G, for few components of a large matrix: subspace iteration with
 * Chebyshev polynomials (Rutishauser 1970; Zhou and Saad 2007). With c the smallest Ritz value of a block of b > k
 * vectors, the polynomial of degree m that is small on [0, c] grows fastest beyond it:
 *
 *   h = c / 2,  Y1 = (G - h) V / h,  Y(j+1) = 2 (G - h) Yj / h - Y(j-1)
 *
 * A step is one product with G and nothing else: a quarter of the reading that an iteration on X (n = 2 p) takes, and
 * no look at the host within a cycle. What squaring loses, the caller recovers on X.
 *
 * In a cycle the leading vectors must not grow so much that they drown the others. Those that have converged are
 * therefore locked: the cycle is one of G - V diag(values) V' of these, and moves the others alone. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "pca/limits.h"
#include "pca/engines/gram/chebyshev.h"
#include "pca/engines/dense_eigen.h"
#include "pca/engines/orthonormal.h"
#include "pca/engines/ranks.h"
#include "pca/engines/run.h"

#define DEGREE 12   /* steps between two looks */
#define LONGEST 18  /* when that many suffice for the last cycle */
#define GROWTH 1e10 /* of the first vector that moves in a cycle: others must not drown in it */
#define CYCLES 60
#define COARSE_TOL 2e-5 /* at this tolerance and above, G need not be exact */
#define SLOW 3          /* cycles that may leave more than half of the residual */

typedef struct {
  weft_pca_frame *frame;
  size_t b, locked;
  double *s_g, *s_diagonal, *s_v, *s_w; /* s_w = (G - shift) V after a look */
  const double *s_locked;               /* within a cycle: the first of V */
  double shift, tol;
  double values[WEFT_PCA_WIDEST], residual[WEFT_PCA_WIDEST]; /* |G v - value v| */
} filter;

size_t weft_pca_filter_width(size_t k)
{
  const size_t guard = k / 2 > 16 ? k / 2 : 16, b = (k + guard + 7) / 8 * 8;
  const size_t most = k <= WEFT_PCA_FILTER_K ? WEFT_PCA_PANEL : WEFT_PCA_WIDEST;
  return b < most ? b : most;
}

int weft_pca_filters_many(const weft_pca_run *run)
{
#ifdef WEFT_TESTS
  if (getenv("WEFT_PCA_FILTER_MANY")) return 1; /* on the CPU too */
#endif
  return run->ops != &weft_pca_cpu;
}

size_t weft_pca_filter_block(const weft_pca_run *run)
{
  const size_t small = run->ops == &weft_pca_cpu ? WEFT_PCA_FILTER_ABOVE_CPU : WEFT_PCA_FILTER_ABOVE_DEVICE;
  const size_t many = weft_pca_filters_many(run) ? WEFT_PCA_FILTER_K_DEVICE : WEFT_PCA_FILTER_K;
  return run->job->k > many || run->near < small ? 0 : weft_pca_filter_width(run->job->k);
}

static weft_status put_diagonal(filter *state, const double *values, double plus, size_t count)
{
  double *d = state->frame->small;
  memset(d, 0, count * count * sizeof *d);
  for (size_t j = 0; j < count; j++) d[j + j * count] = (values ? values[j] : 0) + plus;
  return state->frame->run->ops->put(state->frame->run->space, state->frame->s_small, d, count * count);
}

/* V becomes Ritz vectors, W (G - shift) V; values and residuals with them. */
static weft_status look(filter *state)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = state->frame->run;
  const weft_pca_ops *ops = run->ops;
  weft_pca_space *space = run->space;
  weft_arena mem = weft_arena_begin(run->ctx);
  const size_t near = run->near, b = state->b, k = run->job->k;
  double *s_small = state->frame->s_small, *s_swap = state->frame->s_swap, *small, *vectors;
  WEFT_TAKE(small, &mem, b * b);
  WEFT_TAKE(vectors, &mem, b * b);
  WEFT_TRY(ops->by_square(space, state->s_g, near, b, 1, state->s_v, 0, state->s_w));
  WEFT_TRY(ops->gemm(space, 1, 0, b, b, near, 1, state->s_v, near, state->s_w, near, 0, s_small, b));
  WEFT_TRY(ops->get(space, small, s_small, b * b));
  for (size_t j = 0; j < b; j++)
    for (size_t i = 0; i < j; i++) small[i + j * b] = small[j + i * b] = 0.5 * (small[i + j * b] + small[j + i * b]);
  WEFT_TRY(weft_pca_leading(run->ctx, small, b, b, state->values, vectors));
  WEFT_TRY(weft_pca_ranks_as_first(run, state->values, b));
  WEFT_TRY(weft_pca_ranks_as_first(run, vectors, b * b));
  WEFT_TRY(ops->put(space, s_small, vectors, b * b));
  WEFT_TRY(ops->gemm(space, 0, 0, near, b, b, 1, state->s_v, near, s_small, b, 0, s_swap, near));
  WEFT_TRY(ops->copy(space, state->s_v, s_swap, near * b));
  WEFT_TRY(ops->gemm(space, 0, 0, near, b, b, 1, state->s_w, near, s_small, b, 0, s_swap, near));
  WEFT_TRY(ops->copy(space, state->s_w, s_swap, near * b));
  /* W - V diag(values) */
  WEFT_TRY(put_diagonal(state, state->values, 0, k));
  WEFT_TRY(ops->gemm(space, 0, 0, near, k, k, -1, state->s_v, near, s_small, k, 1, s_swap, near));
  WEFT_TRY(ops->gemm(space, 1, 0, k, k, near, 1, s_swap, near, s_swap, near, 0, s_small, k));
  WEFT_TRY(ops->get(space, small, s_small, k * k));
  for (size_t j = 0; j < k; j++) state->residual[j] = sqrt(fmax(0, small[j + j * k]));
  WEFT_TRY(weft_pca_ranks_as_first(run, state->residual, k));
  for (size_t j = 0; j < b; j++) state->values[j] += state->shift;
done:
  weft_arena_end(&mem);
  return st;
}

/* How often too large the residual of X's triplet j would be: |X'u - d v| is |G v - d^2 v| / d. At most 1 ends it, as
 * does what rounding of G leaves. */
static double too_large(const filter *state, size_t j)
{
  const double largest = state->values[0], floor = 0.5 * DBL_EPSILON * sqrt((double) state->frame->run->near) * largest,
               allowed = 0.5 * state->tol * sqrt(largest * fmax(state->values[j], 0));
  return state->residual[j] / fmax(fmax(allowed, floor), DBL_MIN);
}

/* The worst of these; the first that are small enough are locked. */
static double assess(filter *state)
{
  const size_t k = state->frame->run->job->k;
  double worst = 0;
  state->locked = 0;
  for (size_t j = 0; j < k; j++) {
    const double over = too_large(state, j);
    if (over <= 1 && state->locked == j) state->locked++;
    worst = fmax(worst, over);
  }
  return worst;
}

/* Y := 2 (G - h) X / h - Y for the vectors that move, without what is locked (`s_scaled`: these times their values). */
static weft_status step(filter *state, double h, const double *s_scaled, const double *s_x, double *s_y)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = state->frame->run;
  const weft_pca_ops *ops = run->ops;
  const size_t near = run->near, m = state->locked, moving = state->b - m;
  double *s_small = state->frame->s_small;
  WEFT_TRY(ops->by_square(run->space, state->s_g, near, moving, 2 / h, s_x, -1, s_y));
  if (!m) goto done;
  WEFT_TRY(ops->gemm(run->space, 1, 0, m, moving, near, 1, state->s_locked, near, s_x, near, 0, s_small, m));
  WEFT_TRY(ops->gemm(run->space, 0, 0, near, moving, m, -2 / h, s_scaled, near, s_small, m, 1, s_y, near));
done:
  return st;
}

/* V := p(G) V, but for what is locked. `over`: by how much the residuals must fall. */
static weft_status cycle(filter *state, double over)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = state->frame->run;
  const weft_pca_ops *ops = run->ops;
  const size_t near = run->near, b = state->b, m = state->locked, moving = b - m;
  const double h = fmax(0.5 * state->values[b - 1], DBL_EPSILON * state->values[0]);
  const double fastest = acosh(fmax(state->values[m] / h - 1, 1)),
               wanted = acosh(fmax(state->values[run->job->k - 1] / h - 1, 1));
  const double needed = wanted > 0 ? ceil(log(4 * over) / wanted) : DEGREE,
               most = fastest > 0 ? floor(log(GROWTH) / fastest) : DEGREE;
  const int degree = (int) fmax(1, fmin(most, needed <= LONGEST ? needed : DEGREE));
  double *s_before = state->s_v + m * near, *s_now = state->s_w + m * near, *s_scaled = state->frame->s_swap, *s_spare;
  /* W was made with another shift */
  WEFT_TRY(put_diagonal(state, NULL, (state->shift - h) / h, moving));
  WEFT_TRY(ops->gemm(run->space, 0, 0, near, moving, moving, 1, s_before, near, state->frame->s_small, moving, 1 / h,
                     s_now, near));
  if (m) {
    state->s_locked = state->s_v;
    WEFT_TRY(put_diagonal(state, state->values, 0, m));
    WEFT_TRY(
        ops->gemm(run->space, 0, 0, near, m, m, 1, state->s_locked, near, state->frame->s_small, m, 0, s_scaled, near));
  }
  WEFT_TRY(ops->shift(run->space, state->s_g, near, state->s_diagonal, h));
  state->shift = h;
  for (int j = 2; j <= degree; j++) {
    WEFT_TRY(step(state, h, s_scaled, s_now, s_before));
    s_spare = s_before;
    s_before = s_now;
    s_now = s_spare;
  }
  if (s_now == state->s_w + m * near) {
    s_spare = state->s_v;
    state->s_v = state->s_w;
    state->s_w = s_spare;
    if (m) WEFT_TRY(ops->copy(run->space, state->s_v, state->s_locked, near * m));
  }
done:
  return st;
}

/* Cycles of filtering, orthonormal vectors and a look, until all k have converged, CYCLES are over, or SLOW cycles left
 * more than half of the residual. Always succeeds: what is short of `tol` the caller finds from residuals on X. s_g
 * comes back as it was. */
weft_status weft_pca_filter_of(weft_pca_frame *frame, size_t b, double *s_g, double *s_diagonal, double tol, int begun,
                               double *s_vectors)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = frame->run;
  const weft_pca_ops *ops = run->ops;
  weft_pca_space *space = run->space;
  const size_t near = run->near;
  weft_arena mem = weft_arena_begin(run->ctx);
  filter state = { .frame = frame, .b = b, .s_g = s_g, .s_diagonal = s_diagonal, .tol = tol };
  double *r, c, before = INFINITY;
  int slow = 0;
  WEFT_TAKE(r, &mem, b * b);
  WEFT_TRY(ops->take(space, near * b, &state.s_v));
  WEFT_TRY(ops->take(space, near * b, &state.s_w));
  if (begun)
    WEFT_TRY(ops->copy(space, state.s_v, s_vectors, near * b));
  else
    WEFT_TRY(weft_pca_random(run, state.s_v, near * b));
  for (int i = 0; i < CYCLES && slow < SLOW; i++) {
    double over;
    WEFT_TRY(weft_poll(run->ctx, i, CYCLES));
    WEFT_TRY(weft_pca_orthonormalise(frame, state.s_v, 0, 0, b, &c, r));
    frame->scale = 0;
    WEFT_TRY(look(&state));
    for (size_t j = 0; j < run->job->k; j++) run->out->iterations[j] = i + 1;
    over = assess(&state);
    if (over <= 1 || i + 1 == CYCLES) break;
    slow += over > 0.5 * before;
    before = over;
    if (slow < SLOW) WEFT_TRY(cycle(&state, over));
  }
  WEFT_TRY(ops->shift(space, s_g, near, s_diagonal, 0));
  WEFT_TRY(ops->copy(space, s_vectors, state.s_v, near * b));
done:
  if (state.s_v) ops->drop(space, state.s_v);
  if (state.s_w) ops->drop(space, state.s_w);
  weft_arena_end(&mem);
  return st;
}

/* Forms the Gram matrix (near × near, freed at the end), roughly where the tolerance allows it, and filters. */
weft_status weft_pca_filter(weft_pca_frame *frame, size_t b, double *s_vectors)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = frame->run;
  const weft_pca_ops *ops = run->ops;
  const size_t near = run->near;
  double *s_g = NULL, *s_diagonal = NULL, *s_v = NULL;
  WEFT_TRY(ops->take(run->space, near * near, &s_g));
  WEFT_TRY(ops->take(run->space, near, &s_diagonal));
  WEFT_TRY(ops->take(run->space, near * b, &s_v));
  WEFT_TRY(weft_pca_square(run, run->job->tol >= COARSE_TOL, s_g, s_diagonal));
  WEFT_TRY(weft_pca_filter_of(frame, b, s_g, s_diagonal, run->job->tol, 0, s_v));
  WEFT_TRY(ops->copy(run->space, s_vectors, s_v, near * run->job->k));
done : {
  double *blocks[] = { s_g, s_diagonal, s_v };
  for (int i = 0; i < 3; i++)
    if (blocks[i]) ops->drop(run->space, blocks[i]);
}
  return st;
}
