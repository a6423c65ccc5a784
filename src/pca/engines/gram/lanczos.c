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
#include "pca/engines/dense_eigen.h"
#include "pca/engines/gram/lanczos.h"
#include "pca/engines/orthonormal.h"
#include "pca/engines/run.h"

typedef struct {
  weft_pca_frame frame;
  weft_pca_run *run;
  size_t b;              /* vectors multiplied at once */
  size_t capacity, size; /* columns of P: room for them, besides the next block; J */
  double *s_p, *s_far;   /* near × (capacity + b); far × b */
  double *t, *r;         /* leading dimension `capacity`; b × b */
  double *values, *vectors, *work;
} lanczos;

static size_t min_of(size_t a, size_t b) { return a < b ? a : b; }

size_t weft_pca_lanczos_capacity(const weft_pca_run *run)
{
  const size_t k = run->job->k, b = run->job->block, wanted = 2 * k + 16 * b;
  return run->narrow && b && 2 * (wanted + b) <= run->near ? wanted : 0;
}

/* Appends the next block to P. G times that block gives another one, R, and the last columns of T. */
static weft_status extend(lanczos *search)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = search->run;
  weft_arena mem = weft_arena_begin(run->ctx);
  const size_t b = search->b, before = search->size, size = before + b;
  double *c;
  WEFT_TAKE(c, &mem, size * b);
  WEFT_TRY(weft_pca_twice(run, search->s_p + before * run->near, b, search->s_far, search->s_p + size * run->near));
  WEFT_TRY(weft_pca_orthonormalise(&search->frame, search->s_p, 0, size, b, c, search->r));
  for (size_t j = 0; j < b; j++)
    for (size_t i = 0; i < size; i++) {
      const double both = i < before ? c[i + j * size] : 0.5 * (c[i + j * size] + c[before + j + (i - before) * size]);
      search->t[i + (before + j) * search->capacity] = search->t[before + j + i * search->capacity] = both;
    }
  search->size = size;
done:
  weft_arena_end(&mem);
  return st;
}

/* The `keep` leading pairs of T, and how often too large the worst residual of X's triplets would be: |X'u - d v| is
 * |G v - d^2 v| / d, and no smaller than what rounding leaves. */
static weft_status extract(lanczos *search, size_t keep, double *over)
{
  weft_status st = WEFT_OK;
  const weft_pca_run *run = search->run;
  const size_t b = search->b, size = search->size;
  for (size_t j = 0; j < size; j++)
    memcpy(search->work + j * size, search->t + j * search->capacity, size * sizeof *search->t);
  WEFT_TRY(weft_pca_leading(run->ctx, search->work, size, keep, search->values, search->vectors));
  const double largest = fmax(search->values[0], 0), floor = 0.5 * DBL_EPSILON * sqrt((double) run->near) * largest;
  *over = 0;
  for (size_t i = 0; i < run->job->k; i++) {
    const double allowed = 0.5 * run->job->tol * sqrt(largest * fmax(search->values[i], 0));
    const double *last = search->vectors + i * size + size - b;
    double sum = 0;
    for (size_t row = 0; row < b; row++) {
      double x = 0;
      for (size_t l = 0; l < b; l++) x += search->r[row + l * b] * last[l];
      sum += x * x;
    }
    *over = fmax(*over, sqrt(sum) / fmax(fmax(allowed, floor), DBL_MIN));
  }
done:
  return st;
}

/* P := P (the `keep` leading vectors of T), behind which the next block moves. */
static weft_status restart(lanczos *search, size_t keep)
{
  weft_status st = WEFT_OK;
  const weft_pca_ops *ops = search->run->ops;
  weft_pca_space *space = search->run->space;
  const size_t b = search->b, near = search->run->near;
  double *s_to = NULL, *s_small = NULL;
  WEFT_TRY(ops->take(space, near * keep, &s_to));
  WEFT_TRY(ops->take(space, search->size * keep, &s_small));
  WEFT_TRY(ops->put(space, s_small, search->vectors, search->size * keep));
  WEFT_TRY(
      ops->gemm(space, 0, 0, near, keep, search->size, 1, search->s_p, near, s_small, search->size, 0, s_to, near));
  WEFT_TRY(ops->copy(space, search->s_p, s_to, near * keep));
  WEFT_TRY(ops->copy(space, search->frame.s_swap, search->s_p + search->size * near, b * near));
  WEFT_TRY(ops->copy(space, search->s_p + keep * near, search->frame.s_swap, b * near));
  memset(search->t, 0, search->capacity * search->capacity * sizeof *search->t);
  for (size_t j = 0; j < keep; j++) search->t[j + j * search->capacity] = search->values[j];
  search->size = keep;
done:
  if (s_to) ops->drop(space, s_to);
  if (s_small) ops->drop(space, s_small);
  return st;
}

/* The worst residual tells when to look next. From a start of b vectors at most b copies of an eigenvalue are found;
 * where there may be more, random blocks are appended to the vectors until one finds no further copy. */
static weft_status iterate(lanczos *search)
{
  weft_status st = WEFT_OK;
  const weft_pca_job *job = search->run->job;
  const size_t k = job->k, b = search->b;
  size_t since = 0, look = 0; /* blocks from one look to the next */
  double before = 0, found = -1;
  for (size_t blocks = 1; blocks <= job->max_iterations || search->size < k + b; blocks++) {
    double over, sum = 0;
    int full;
    WEFT_TRY(weft_poll(search->run->ctx, (double) blocks, (double) job->max_iterations));
    WEFT_TRY(extend(search));
    for (size_t i = 0; i < k; i++) search->run->out->iterations[i] = (int32_t) blocks;
    full = search->size + b > search->capacity;
    since++;
    if (search->size < k + b || (since < look && !full && blocks < job->max_iterations)) continue;
    const size_t keep = min_of((search->capacity + k) / 2, search->size - b);
    WEFT_TRY(extract(search, keep, &over));
    if (over > 1 && blocks < job->max_iterations) {
      /* early on, residuals do not fall and are not informative */
      look = (size_t) fmin(fmax(2, 0.8 * weft_pca_blocks_left(before, over, since, 1)),
                           2 + (double) (search->size / b / 4));
      before = over;
      since = 0;
      if (full) WEFT_TRY(restart(search, keep));
      continue;
    }
    for (size_t i = 0; i < k; i++) sum += search->values[i];
    WEFT_TRY(restart(search, k));
    for (size_t i = 0; i < k; i++) search->values[i] = sqrt(fmax(0, search->values[i]));
    if (over > 1 || !weft_pca_copies_missed(search->values, k, b, job->tol) || sum <= found * (1 + 1e-12)) break;
    found = sum;
    before = 0;
    since = 0;
    look = WEFT_PCA_LOOK_AGAIN;
    WEFT_TRY(weft_pca_random_block(&search->frame, search->s_p, search->size, b));
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
  lanczos search = { .frame = *frame, .run = run, .b = run->job->block, .capacity = capacity };
  search.frame.s_small = NULL;
  WEFT_TRY(ops->take(run->space, run->near * (capacity + search.b), &search.s_p));
  if (!weft_pca_reads_once(run)) WEFT_TRY(ops->take(run->space, run->far * search.b, &search.s_far));
  WEFT_TRY(ops->take(run->space, (capacity + search.b) * search.b, &search.frame.s_small));
  WEFT_TAKE(search.frame.small, &mem, (capacity + search.b) * search.b);
  WEFT_TAKE(search.r, &mem, search.b * search.b);
  WEFT_TAKE0(search.t, &mem, capacity * capacity);
  WEFT_TAKE(search.work, &mem, capacity * capacity);
  WEFT_TAKE(search.vectors, &mem, capacity * capacity);
  WEFT_TAKE(search.values, &mem, capacity);
  WEFT_TRY(weft_pca_random_block(&search.frame, search.s_p, 0, search.b));
  WEFT_TRY(iterate(&search));
  WEFT_TRY(ops->copy(run->space, s_vectors, search.s_p, run->near * run->job->k));
  frame->scale = search.frame.scale;
done:
  if (search.s_p) ops->drop(run->space, search.s_p);
  if (search.s_far) ops->drop(run->space, search.s_far);
  if (search.frame.s_small) ops->drop(run->space, search.frame.s_small);
  weft_arena_end(&mem);
  return st;
}
