/* Leading eigenvectors of the smaller Gram matrix G = X'X of a sparse X, which is not formed: block Lanczos with full
 * reorthogonalisation and thick restarts (Wu and Simon 2000).
 *
 *   G P = P T + N R E'     P: near × J, orthonormal; T: J × J, on the host; N: the next block; E: the last columns
 *
 * With T a = a t the pair (t, P a) has the residual |R (rows of a that belong to the last block)|. Against the block
 * engine on X (block.c) no basis of the far side is kept orthonormal, which takes most of the time there, and
 * narrow blocks need fewer vectors in all. What squaring loses, the caller recovers on X. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "pca/engines/block.h"
#include "pca/engines/dense_eigen.h"

typedef struct {
  weft_pca_frame frame;
  weft_pca_run *run;
  size_t b;              /* vectors multiplied at once */
  size_t capacity, size; /* columns of P: room for them, besides the next block; J */
  double *s_p, *s_far;   /* near × (capacity + b); far × b */
  double *t, *r;         /* leading dimension `capacity`; b × b */
  double *values, *vectors, *work;
} lanczos;

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

size_t weft_pca_lanczos_capacity(const weft_pca_run *run)
{
  const size_t k = run->job->k, b = run->job->block, wanted = 2 * k + 16 * b;
  return run->narrow && b && 2 * (wanted + b) <= run->near ? wanted : 0;
}

/* Appends the next block to P. G times that block gives another one, R, and the last columns of T. */
static weft_status extend(lanczos *e)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = e->run;
  weft_arena mem = weft_arena_begin(run->ctx);
  const size_t b = e->b, before = e->size, size = before + b;
  double *c;
  WEFT_TAKE(c, &mem, size * b);
  WEFT_TRY(weft_pca_twice(run, e->s_p + before * run->near, b, e->s_far, e->s_p + size * run->near));
  WEFT_TRY(weft_pca_orthonormalise(&e->frame, e->s_p, 0, size, b, c, e->r));
  for (size_t j = 0; j < b; j++)
    for (size_t i = 0; i < size; i++) {
      const double both = i < before ? c[i + j * size] : 0.5 * (c[i + j * size] + c[before + j + (i - before) * size]);
      e->t[i + (before + j) * e->capacity] = e->t[before + j + i * e->capacity] = both;
    }
  e->size = size;
done:
  weft_arena_end(&mem);
  return st;
}

/* The `keep` leading pairs of T, and how often too large the worst residual of X's triplets would be: |X'u - d v| is
 * |G v - d^2 v| / d, and no smaller than what rounding leaves. */
static weft_status extract(lanczos *e, size_t keep, double *over)
{
  weft_status st = WEFT_OK;
  const weft_pca_run *run = e->run;
  const size_t b = e->b, size = e->size;
  for (size_t j = 0; j < size; j++) memcpy(e->work + j * size, e->t + j * e->capacity, size * sizeof *e->t);
  WEFT_TRY(weft_pca_leading(run->ctx, e->work, size, keep, e->values, e->vectors));
  const double largest = fmax(e->values[0], 0), floor = 0.5 * DBL_EPSILON * sqrt((double) run->near) * largest;
  *over = 0;
  for (size_t i = 0; i < run->job->k; i++) {
    const double allowed = 0.5 * run->job->tol * sqrt(largest * fmax(e->values[i], 0));
    const double *last = e->vectors + i * size + size - b;
    double sum = 0;
    for (size_t row = 0; row < b; row++) {
      double x = 0;
      for (size_t l = 0; l < b; l++) x += e->r[row + l * b] * last[l];
      sum += x * x;
    }
    *over = fmax(*over, sqrt(sum) / fmax(fmax(allowed, floor), DBL_MIN));
  }
done:
  return st;
}

/* P := P (the `keep` leading vectors of T), behind which the next block moves. */
static weft_status restart(lanczos *e, size_t keep)
{
  weft_status st = WEFT_OK;
  const weft_pca_ops *ops = e->run->ops;
  weft_pca_space *space = e->run->space;
  const size_t b = e->b, near = e->run->near;
  double *s_to = NULL, *s_small = NULL;
  WEFT_TRY(ops->take(space, near * keep, &s_to));
  WEFT_TRY(ops->take(space, e->size * keep, &s_small));
  WEFT_TRY(ops->put(space, s_small, e->vectors, e->size * keep));
  WEFT_TRY(ops->gemm(space, 0, 0, near, keep, e->size, 1, e->s_p, near, s_small, e->size, 0, s_to, near));
  WEFT_TRY(ops->copy(space, e->s_p, s_to, near * keep));
  WEFT_TRY(ops->copy(space, e->frame.s_swap, e->s_p + e->size * near, b * near));
  WEFT_TRY(ops->copy(space, e->s_p + keep * near, e->frame.s_swap, b * near));
  memset(e->t, 0, e->capacity * e->capacity * sizeof *e->t);
  for (size_t j = 0; j < keep; j++) e->t[j + j * e->capacity] = e->values[j];
  e->size = keep;
done:
  if (s_to) ops->drop(space, s_to);
  if (s_small) ops->drop(space, s_small);
  return st;
}

/* The worst residual tells when to look next. From a start of b vectors at most b copies of an eigenvalue are found;
 * where there may be more, random blocks are appended to the vectors until one finds no further copy. */
static weft_status iterate(lanczos *e)
{
  weft_status st = WEFT_OK;
  const weft_pca_job *job = e->run->job;
  const size_t k = job->k, b = e->b;
  size_t since = 0, look = 0; /* blocks from one look to the next */
  double before = 0, found = -1;
  for (size_t blocks = 1; blocks <= job->max_iterations || e->size < k + b; blocks++) {
    double over, sum = 0;
    int full;
    WEFT_TRY(weft_poll(e->run->ctx, (double) blocks, (double) job->max_iterations));
    WEFT_TRY(extend(e));
    for (size_t i = 0; i < k; i++) e->run->out->iterations[i] = (int32_t) blocks;
    full = e->size + b > e->capacity;
    since++;
    if (e->size < k + b || (since < look && !full && blocks < job->max_iterations)) continue;
    const size_t keep = least((e->capacity + k) / 2, e->size - b);
    WEFT_TRY(extract(e, keep, &over));
    if (over > 1 && blocks < job->max_iterations) {
      /* early on, residuals do not fall and are not informative */
      look = (size_t) fmin(fmax(2, 0.8 * weft_pca_blocks_left(before, over, since, 1)), 2 + (double) (e->size / b / 4));
      before = over;
      since = 0;
      if (full) WEFT_TRY(restart(e, keep));
      continue;
    }
    for (size_t i = 0; i < k; i++) sum += e->values[i];
    WEFT_TRY(restart(e, k));
    for (size_t i = 0; i < k; i++) e->values[i] = sqrt(fmax(0, e->values[i]));
    if (over > 1 || !weft_pca_copies_missed(e->values, k, b, job->tol) || sum <= found * (1 + 1e-12)) break;
    found = sum;
    before = 0;
    since = 0;
    look = WEFT_PCA_LOOK_AGAIN;
    WEFT_TRY(weft_pca_random_block(&e->frame, e->s_p, e->size, b));
  }
done:
  return st;
}

/* Takes room for `capacity` vectors and a next block, starts from a random block, and leaves the k leading Ritz vectors
 * in s_vectors. */
weft_status weft_pca_lanczos(weft_pca_frame *frame, size_t capacity, double *s_vectors)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = frame->run;
  const weft_pca_ops *ops = run->ops;
  weft_arena mem = weft_arena_begin(run->ctx);
  lanczos e = { .frame = *frame, .run = run, .b = run->job->block, .capacity = capacity };
  e.frame.s_small = NULL;
  WEFT_TRY(ops->take(run->space, run->near * (capacity + e.b), &e.s_p));
  if (!weft_pca_reads_once(run)) WEFT_TRY(ops->take(run->space, run->far * e.b, &e.s_far));
  WEFT_TRY(ops->take(run->space, (capacity + e.b) * e.b, &e.frame.s_small));
  WEFT_TAKE(e.frame.small, &mem, (capacity + e.b) * e.b);
  WEFT_TAKE(e.r, &mem, e.b * e.b);
  WEFT_TAKE0(e.t, &mem, capacity * capacity);
  WEFT_TAKE(e.work, &mem, capacity * capacity);
  WEFT_TAKE(e.vectors, &mem, capacity * capacity);
  WEFT_TAKE(e.values, &mem, capacity);
  WEFT_TRY(weft_pca_random_block(&e.frame, e.s_p, 0, e.b));
  WEFT_TRY(iterate(&e));
  WEFT_TRY(ops->copy(run->space, s_vectors, e.s_p, run->near * run->job->k));
  frame->scale = e.frame.scale;
done:
  if (e.s_p) ops->drop(run->space, e.s_p);
  if (e.s_far) ops->drop(run->space, e.s_far);
  if (e.frame.s_small) ops->drop(run->space, e.frame.s_small);
  weft_arena_end(&mem);
  return st;
}
