/* Leading eigenvectors of the smaller Gram matrix G, for few components of a large matrix: subspace iteration with
 * Chebyshev polynomials (Rutishauser 1970; Zhou and Saad 2007). With c the smallest Ritz value of a block of b > k
 * vectors, the polynomial of degree m that is small on [0, c] grows fastest beyond it:
 *
 *   h = c / 2,  Y1 = (G - h) V / h,  Y(j+1) = 2 (G - h) Yj / h - Y(j-1)
 *
 * A step is one product with G and nothing else: a quarter of the reading that an iteration on X (n = 2 p) takes, and
 * no look at the host within a cycle. What squaring loses, the caller recovers on X. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "pca_block.h"
#include "pca_small.h"

#define DEGREE 12        /* steps between two looks */
#define LONGEST 18       /* when that many suffice for the last cycle */
#define GROWTH 1e10      /* of the first vector in a cycle: others must not drown in it */
#define CYCLES 60
#define COARSE_TOL 2e-5  /* at this tolerance and above, G need not be exact */
#define SLOW 3           /* cycles that may leave more than half of the residual */

typedef struct {
  weft_pca_frame *frame;
  size_t b;
  double *s_g, *s_diagonal, *s_v, *s_w; /* s_w = (G - shift) V after a look */
  double shift;
  double values[WEFT_PCA_PANEL], residual[WEFT_PCA_PANEL]; /* |G v - value v| */
} filter;

size_t weft_pca_filter_block(const weft_pca_run *run)
{
  const size_t k = run->job->k, guard = k / 2 > 16 ? k / 2 : 16, b = (k + guard + 7) / 8 * 8;
  /* up to this order all eigenvectors of G take no longer, whatever the spectrum */
  const size_t small = run->ops == &weft_pca_cpu ? 16 * WEFT_PCA_PANEL : 8 * WEFT_PCA_PANEL;
  if (k + 12 > WEFT_PCA_PANEL) return 0;
  return run->near < small ? 0 : b < WEFT_PCA_PANEL ? b : WEFT_PCA_PANEL;
}

static weft_status put_diagonal(filter *f, const double *values, double plus, size_t count)
{
  double d[WEFT_PCA_PANEL * WEFT_PCA_PANEL];
  memset(d, 0, count * count * sizeof *d);
  for (size_t j = 0; j < count; j++) d[j + j * count] = (values ? values[j] : 0) + plus;
  return f->frame->run->ops->put(f->frame->run->space, f->frame->s_small, d, count * count);
}

/* V becomes Ritz vectors, W (G - shift) V; values and residuals with them. */
static weft_status look(filter *f)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = f->frame->run;
  const weft_pca_ops *ops = run->ops;
  weft_pca_space *space = run->space;
  weft_arena mem = weft_arena_begin(run->ctx);
  const size_t near = run->near, b = f->b, k = run->job->k;
  double *s_small = f->frame->s_small, *s_swap = f->frame->s_swap, *small, *vectors;
  WEFT_TAKE(small, &mem, b * b);
  WEFT_TAKE(vectors, &mem, b * b);
  WEFT_TRY(ops->by_square(space, f->s_g, near, b, 1, f->s_v, 0, f->s_w));
  WEFT_TRY(ops->gemm(space, 1, 0, b, b, near, 1, f->s_v, near, f->s_w, near, 0, s_small, b));
  WEFT_TRY(ops->get(space, small, s_small, b * b));
  for (size_t j = 0; j < b; j++)
    for (size_t i = 0; i < j; i++) small[i + j * b] = small[j + i * b] = 0.5 * (small[i + j * b] + small[j + i * b]);
  WEFT_TRY(weft_pca_leading(run->ctx, small, b, b, f->values, vectors));
  WEFT_TRY(weft_pca_ranks_as_first(run, f->values, b));
  WEFT_TRY(weft_pca_ranks_as_first(run, vectors, b * b));
  WEFT_TRY(ops->put(space, s_small, vectors, b * b));
  WEFT_TRY(ops->gemm(space, 0, 0, near, b, b, 1, f->s_v, near, s_small, b, 0, s_swap, near));
  WEFT_TRY(ops->copy(space, f->s_v, s_swap, near * b));
  WEFT_TRY(ops->gemm(space, 0, 0, near, b, b, 1, f->s_w, near, s_small, b, 0, s_swap, near));
  WEFT_TRY(ops->copy(space, f->s_w, s_swap, near * b));
  /* W - V diag(values) */
  WEFT_TRY(put_diagonal(f, f->values, 0, k));
  WEFT_TRY(ops->gemm(space, 0, 0, near, k, k, -1, f->s_v, near, s_small, k, 1, s_swap, near));
  WEFT_TRY(ops->gemm(space, 1, 0, k, k, near, 1, s_swap, near, s_swap, near, 0, s_small, k));
  WEFT_TRY(ops->get(space, small, s_small, k * k));
  for (size_t j = 0; j < k; j++) f->residual[j] = sqrt(fmax(0, small[j + j * k]));
  WEFT_TRY(weft_pca_ranks_as_first(run, f->residual, k));
  for (size_t j = 0; j < b; j++) f->values[j] += f->shift;
done:
  weft_arena_end(&mem);
  return st;
}

/* How often too large the worst residual of X's triplets would be: |X'u - d v| is |G v - d^2 v| / d. At most 1 ends it,
 * as does what rounding of G leaves. */
static double too_large(const filter *f)
{
  const weft_pca_run *run = f->frame->run;
  const double largest = f->values[0], floor = 0.5 * DBL_EPSILON * sqrt((double) run->near) * largest;
  double worst = 0;
  for (size_t j = 0; j < run->job->k; j++) {
    const double allowed = 0.5 * run->job->tol * sqrt(largest * fmax(f->values[j], 0));
    worst = fmax(worst, f->residual[j] / fmax(fmax(allowed, floor), DBL_MIN));
  }
  return worst;
}

/* V := p(G) V. `over`: by how much the residuals must fall. */
static weft_status cycle(filter *f, double over)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = f->frame->run;
  const weft_pca_ops *ops = run->ops;
  const size_t near = run->near, b = f->b;
  const double h = fmax(0.5 * f->values[b - 1], DBL_EPSILON * f->values[0]);
  const double fastest = acosh(fmax(f->values[0] / h - 1, 1)),
               wanted = acosh(fmax(f->values[run->job->k - 1] / h - 1, 1));
  const double needed = wanted > 0 ? ceil(log(4 * over) / wanted) : DEGREE,
               most = fastest > 0 ? floor(log(GROWTH) / fastest) : DEGREE;
  const int degree = (int) fmax(1, fmin(most, needed <= LONGEST ? needed : DEGREE));
  double *s_before = f->s_v, *s_now = f->s_w, *s_spare;
  /* W was made with another shift */
  WEFT_TRY(put_diagonal(f, NULL, (f->shift - h) / h, b));
  WEFT_TRY(ops->gemm(run->space, 0, 0, near, b, b, 1, s_before, near, f->frame->s_small, b, 1 / h, s_now, near));
  WEFT_TRY(ops->shift(run->space, f->s_g, near, f->s_diagonal, h));
  f->shift = h;
  for (int j = 2; j <= degree; j++) {
    WEFT_TRY(ops->by_square(run->space, f->s_g, near, b, 2 / h, s_now, -1, s_before));
    s_spare = s_before;
    s_before = s_now;
    s_now = s_spare;
  }
  f->s_v = s_now;
  f->s_w = s_before;
done:
  return st;
}

weft_status weft_pca_filter(weft_pca_frame *frame, size_t b, double *s_vectors)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = frame->run;
  const weft_pca_ops *ops = run->ops;
  weft_pca_space *space = run->space;
  const size_t near = run->near;
  weft_arena mem = weft_arena_begin(run->ctx);
  filter f = { frame, b, NULL, NULL, NULL, NULL, 0, { 0 }, { 0 } };
  double *r, c, before = INFINITY;
  int slow = 0;
  WEFT_TAKE(r, &mem, b * b);
  WEFT_TRY(ops->take(space, near * near, &f.s_g));
  WEFT_TRY(ops->take(space, near, &f.s_diagonal));
  WEFT_TRY(ops->take(space, near * b, &f.s_v));
  WEFT_TRY(ops->take(space, near * b, &f.s_w));
  WEFT_TRY(weft_pca_square(run, run->job->tol >= COARSE_TOL, f.s_g, f.s_diagonal));
  WEFT_TRY(weft_pca_random(run, f.s_v, near * b));
  for (int i = 0; i < CYCLES && slow < SLOW; i++) {
    double over;
    WEFT_TRY(weft_poll(run->ctx, i, CYCLES));
    WEFT_TRY(weft_pca_orthonormalise(frame, f.s_v, 0, 0, b, &c, r));
    frame->scale = 0;
    WEFT_TRY(look(&f));
    for (size_t j = 0; j < run->job->k; j++) run->out->iterations[j] = i + 1;
    over = too_large(&f);
    if (over <= 1 || i + 1 == CYCLES) break;
    slow += over > 0.5 * before;
    before = over;
    if (slow < SLOW) WEFT_TRY(cycle(&f, over));
  }
  WEFT_TRY(ops->copy(space, s_vectors, f.s_v, near * run->job->k));
done:
  {
    double *blocks[] = { f.s_g, f.s_diagonal, f.s_v, f.s_w };
    for (int i = 0; i < 4; i++) if (blocks[i]) ops->drop(space, blocks[i]);
  }
  weft_arena_end(&mem);
  return st;
}
