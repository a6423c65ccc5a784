/* Block Golub-Kahan-Lanczos with full reorthogonalisation and Rayleigh-Ritz extraction (Golub, Luk and Overton 1981;
 * thick restart after Wu and Simon 2000, Baglama and Reichel 2005).
 *
 *   X P = Q H                     P: near × J, Q: far × J, orthonormal; H: J × J, held whole on the host
 *   X'Q = P H' + N R E'           N: the next block of P; E: the last columns of Q
 *
 * With H = A S C', the triplets (Q a, s, P c) satisfy X v = s u to rounding, and X'u - s v = N R (rows of a that belong
 * to the last block): the residual is known without a pass. H is gathered from the Gram-Schmidt coefficients, so
 * restarts, vanished directions and truncated blocks need no special structure. When P fills the near space the
 * triplets are those of X to rounding, whatever its spectrum: that is how all components are found.
 *
 * "gram" begins with the eigenvectors of the smaller Gram matrix instead of a random block, and continues only when
 * residuals require it: squaring loses components below 1e-8 of the largest. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "pca/engines/block.h"
#include "pca/engines/gram/chebyshev.h"
#include "pca/engines/dense_eigen.h"
#include "pca/engines/gram/gram_half.h"
#include "pca/engines/gram/lanczos.h"
#include "pca/engines/orthonormal.h"
#include "pca/engines/ranks.h"
#include "pca/engines/run.h"
#include "pca/limits.h"

#define PANEL WEFT_PCA_PANEL
/* From this order on, a rough Gram matrix whose errors are corrected takes less time than an exact one. */
#ifdef WEFT_TESTS
#  define ROUGH_ORDER 4000
#else
#  define ROUGH_ORDER WEFT_PCA_ROUGH_ORDER
#endif

typedef struct {
  weft_pca_run *run;
  weft_arena mem;
  size_t capacity;       /* columns that P, Q and H have room for, besides the next block */
  size_t size;           /* J */
  size_t last;           /* columns of Q in the last block */
  size_t next;           /* columns of N, which follow the J columns of P */
  size_t together;       /* columns that gram_start() takes at once */
  size_t lanczos;        /* columns with which Lanczos on the Gram matrix begins; 0: it is not used */
  double *s_p, *s_q, *h; /* h: leading dimension `capacity` */
  double *r;             /* R: r_rows × last */
  size_t r_rows;
  double *left, *right, *values; /* of H */
  weft_pca_frame frame;
} krylov;

static size_t min_of(size_t a, size_t b) { return a < b ? a : b; }
static size_t max_of(size_t a, size_t b) { return a > b ? a : b; }

/* X P -> Q and H for the b columns of P from `size` on, which become the last block. */
static weft_status extend(krylov *engine, size_t b)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = engine->run;
  weft_arena mem = weft_arena_begin(run->ctx);
  const size_t before = engine->size;
  double *c, *r;
  WEFT_TAKE(c, &mem, (before + 1) * b);
  WEFT_TAKE(r, &mem, b * b);
  WEFT_TRY(weft_pca_to_far(run, engine->s_p + before * run->near, b, engine->s_q + before * run->far));
  WEFT_TRY(weft_pca_orthonormalise(&engine->frame, engine->s_q, 1, before, b, c, r));
  for (size_t j = 0; j < b; j++) {
    memcpy(engine->h + (before + j) * engine->capacity, c + j * before, before * sizeof *c);
    memcpy(engine->h + (before + j) * engine->capacity + before, r + j * b, b * sizeof *r);
    for (size_t i = 0; i < before; i++) engine->h[before + j + i * engine->capacity] = 0;
  }
  engine->size += b;
  engine->last = b;
done:
  weft_arena_end(&mem);
  return st;
}

/* X'Q of the last block, freed of P: the next block and R. When there is no room for so many in the near space, any
 * basis of its remainder will do. */
static weft_status residual_block(krylov *engine)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = engine->run;
  weft_arena mem = weft_arena_begin(run->ctx);
  const size_t b = engine->last, room = run->near - engine->size;
  double *s_n = engine->s_p + engine->size * run->near, *c, *r;
  WEFT_TAKE(c, &mem, (engine->size + b) * b);
  WEFT_TAKE(r, &mem, b * b);
  engine->next = b < room ? b : room;
  engine->r_rows = 0;
  if (b > room) {
    if (room) WEFT_TRY(weft_pca_random_block(&engine->frame, engine->s_p, engine->size, room));
    goto done;
  }
  WEFT_TRY(weft_pca_to_near(run, engine->s_q + (engine->size - b) * run->far, b, s_n));
  WEFT_TRY(weft_pca_orthonormalise(&engine->frame, engine->s_p, 0, engine->size, b, c, r));
  memcpy(engine->r, r, b * b * sizeof *r);
  engine->r_rows = b;
done:
  weft_arena_end(&mem);
  return st;
}

/* ---- extraction ---- */

/* The k leading triplets of H into left, right, values, and their residuals. */
static weft_status extract(krylov *engine, size_t k, double tol)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(engine->run->ctx);
  const size_t size = engine->size, first = size - engine->last;
  double *h;
  WEFT_TAKE(h, &mem, size * size);
  for (size_t j = 0; j < size; j++) memcpy(h + j * size, engine->h + j * engine->capacity, size * sizeof *h);
  WEFT_TRY(weft_pca_svd_leading(engine->run->ctx, h, size, k, tol, engine->values, engine->left, engine->right));
  WEFT_TRY(weft_pca_ranks_as_first(engine->run, engine->values, k));
  WEFT_TRY(weft_pca_ranks_as_first(engine->run, engine->left, size * k));
  WEFT_TRY(weft_pca_ranks_as_first(engine->run, engine->right, size * k));
  for (size_t i = 0; i < k && i < engine->run->job->k; i++) {
    double sum = 0;
    for (size_t row = 0; row < engine->r_rows; row++) {
      double x = 0;
      for (size_t l = 0; l < engine->last; l++)
        x += engine->r[row + l * engine->r_rows] * engine->left[first + l + i * size];
      sum += x * x;
    }
    engine->run->out->residual[i] = engine->values[0] > 0 ? sqrt(sum) / engine->values[0] : 0;
    if (engine->r_rows == 0 && engine->next)
      engine->run->out->residual[i] = INFINITY; /* not known: the block was truncated */
  }
  WEFT_TRY(weft_pca_ranks_as_first(engine->run, engine->run->out->residual, min_of(k, engine->run->job->k)));
done:
  weft_arena_end(&mem);
  return st;
}

/* s_basis (rows × size) := s_basis small (size × k); cutting rows into panels is left to the product. */
static weft_status rotate(krylov *engine, double *s_basis, size_t rows, const double *small, size_t k)
{
  weft_status st = WEFT_OK;
  const weft_pca_ops *ops = engine->run->ops;
  weft_pca_space *space = engine->run->space;
  double *s_to = NULL, *s_small = NULL;
  WEFT_TRY(ops->take(space, rows * k, &s_to));
  WEFT_TRY(ops->take(space, engine->size * k, &s_small));
  WEFT_TRY(ops->put(space, s_small, small, engine->size * k));
  WEFT_TRY(ops->gemm(space, 0, 0, rows, k, engine->size, 1, s_basis, rows, s_small, engine->size, 0, s_to, rows));
  WEFT_TRY(ops->copy(space, s_basis, s_to, rows * k));
done:
  if (s_to) ops->drop(space, s_to);
  if (s_small) ops->drop(space, s_small);
  return st;
}

/* Keeps the `keep` leading triplets (extracted before) and the next block. */
static weft_status restart(krylov *engine, size_t keep)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = engine->run;
  const size_t near = run->near;
  WEFT_TRY(rotate(engine, engine->s_p, near, engine->right, keep));
  WEFT_TRY(rotate(engine, engine->s_q, run->far, engine->left, keep));
  WEFT_TRY(run->ops->copy(run->space, engine->frame.s_swap, engine->s_p + engine->size * near, engine->next * near));
  WEFT_TRY(run->ops->copy(run->space, engine->s_p + keep * near, engine->frame.s_swap, engine->next * near));
  for (size_t j = 0; j < keep; j++)
    for (size_t i = 0; i < keep; i++) engine->h[i + j * engine->capacity] = i == j ? engine->values[i] : 0;
  engine->size = keep;
done:
  return st;
}

/* ---- the iteration ---- */

/* Memory for `capacity` columns and a next block. */
static weft_status open_engine(krylov *engine, weft_pca_run *run, size_t capacity)
{
  weft_status st = WEFT_OK;
  const size_t widest = PANEL, k = run->job->k;
  const size_t filtered = k <= WEFT_PCA_FILTER_K_DEVICE ? weft_pca_filter_width(k) : 0;
  const weft_pca_ops *ops = run->ops;
  /* on a device a pass takes longer than what wider panels do; processes must take the same panels on any back end */
  const int wide = filtered > PANEL && k > PANEL && weft_pca_filters_many(run) && (!run->ranks || run->ranks->parts);
  const size_t together = wide ? k : PANEL, swap = max_of(max_of(run->near, run->far) * together, run->near * filtered);
  const size_t small = max_of((capacity + widest) * widest, filtered * filtered);
  memset(engine, 0, sizeof *engine);
  engine->run = engine->frame.run = run;
  engine->mem = weft_arena_begin(run->ctx);
  engine->capacity = capacity;
  engine->together = together;
  WEFT_TRY(ops->take(run->space, run->near * (capacity + max_of(widest, k)), &engine->s_p));
  WEFT_TRY(ops->take(run->space, run->far * capacity, &engine->s_q));
  WEFT_TRY(ops->take(run->space, small, &engine->frame.s_small));
  WEFT_TRY(ops->take(run->space, swap, &engine->frame.s_swap));
  WEFT_TAKE0(engine->h, &engine->mem, capacity * capacity);
  WEFT_TAKE(engine->r, &engine->mem, widest * widest);
  WEFT_TAKE(engine->frame.small, &engine->mem, small);
  WEFT_TAKE(engine->left, &engine->mem, capacity * capacity);
  WEFT_TAKE(engine->right, &engine->mem, capacity * capacity);
  WEFT_TAKE(engine->values, &engine->mem, capacity);
done:
  return st;
}

/* The first columns of the guess, which are loadings, as near vectors. */
static weft_status place_guess(krylov *engine, size_t columns)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = engine->run;
  double *s_guess = NULL;
  if (!run->near_is_rows) return run->ops->put(run->space, engine->s_p, run->job->start, run->p * columns);
  WEFT_TRY(run->ops->take(run->space, run->p * columns, &s_guess));
  WEFT_TRY(run->ops->put(run->space, s_guess, run->job->start, run->p * columns));
  WEFT_TRY(weft_pca_to_near(run, s_guess, columns, engine->s_p));
done:
  if (s_guess) run->ops->drop(run->space, s_guess);
  return st;
}

/* The first block: the guess, completed by random vectors. */
static weft_status first_block(krylov *engine, size_t b)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = engine->run;
  weft_arena mem = weft_arena_begin(run->ctx);
  const size_t given = run->job->start ? min_of(run->job->k, b) : 0;
  double *c, *r;
  WEFT_TAKE(c, &mem, 1);
  WEFT_TAKE(r, &mem, b * b);
  if (given) WEFT_TRY(place_guess(engine, given));
  if (given < b) WEFT_TRY(weft_pca_random(run, engine->s_p + given * run->near, (b - given) * run->near));
  WEFT_TRY(weft_pca_orthonormalise(&engine->frame, engine->s_p, 0, 0, b, c, r));
  engine->frame.scale = 0;
  engine->next = b;
done:
  weft_arena_end(&mem);
  return st;
}

/* All of the near space, panel by panel: any basis of it will do. */
static weft_status whole_space(krylov *engine)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = engine->run;
  weft_arena mem = weft_arena_begin(run->ctx);
  const size_t near = run->near;
  double *unit;
  WEFT_TAKE0(unit, &mem, near * PANEL);
  for (size_t j = 0; j < near; j += PANEL) {
    const size_t b = min_of(PANEL, near - j);
    memset(unit, 0, near * PANEL * sizeof *unit);
    for (size_t i = 0; i < b; i++) unit[j + i + i * near] = 1;
    WEFT_TRY(run->ops->put(run->space, engine->s_p + j * near, unit, near * b));
    WEFT_TRY(extend(engine, b));
    WEFT_TRY(weft_poll(run->ctx, (double) j, (double) near));
  }
  engine->next = 0;
  engine->r_rows = 0;
  WEFT_TRY(extract(engine, run->job->k, run->job->tol));
done:
  weft_arena_end(&mem);
  return st;
}

/* X'U - V diag(s) of the k triplets that P, Q and H hold now: norms relative to the largest value, and those columns
 * that are too large, a panel's worth, as the next block. e->next is 0 when there are none, PANEL + 1 when there are
 * too many. */
static weft_status true_residuals(krylov *engine)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = engine->run;
  const weft_pca_ops *ops = run->ops;
  const size_t k = run->job->k, near = run->near;
  weft_arena mem = weft_arena_begin(run->ctx);
  double *s_out = engine->s_p + k * near, *c, *r;
  WEFT_TAKE(c, &mem, k * PANEL);
  WEFT_TAKE(r, &mem, PANEL * PANEL);
  engine->next = 0;
  engine->r_rows = 0;
  WEFT_TRY(weft_pca_to_near(run, engine->s_q, k, s_out));
  for (size_t first = 0; first < k; first += PANEL) {
    const size_t b = min_of(PANEL, k - first);
    memset(r, 0, b * b * sizeof *r);
    for (size_t j = 0; j < b; j++) r[j + j * b] = engine->values[first + j];
    WEFT_TRY(ops->put(run->space, engine->frame.s_small, r, b * b));
    WEFT_TRY(ops->gemm(run->space, 0, 0, near, b, b, -1, engine->s_p + first * near, near, engine->frame.s_small, b, 1,
                       s_out + first * near, near));
    WEFT_TRY(ops->gemm(run->space, 1, 0, b, b, near, 1, s_out + first * near, near, s_out + first * near, near, 0,
                       engine->frame.s_small, b));
    WEFT_TRY(ops->get(run->space, r, engine->frame.s_small, b * b));
    for (size_t j = 0; j < b; j++)
      run->out->residual[first + j] = engine->values[0] > 0 ? sqrt(fmax(0, r[j + j * b])) / engine->values[0] : 0;
  }
  WEFT_TRY(weft_pca_ranks_as_first(run, run->out->residual, k));
  for (size_t j = 0; j < k; j++) {
    if (run->out->residual[j] <= run->job->tol || engine->next > PANEL) continue;
    if (engine->next < PANEL && engine->next < near - k)
      WEFT_TRY(ops->copy(run->space, s_out + engine->next * near, s_out + j * near, near));
    engine->next++;
  }
  if (engine->next > near - k) engine->next = PANEL + 1;
  if (engine->next && engine->next <= PANEL)
    WEFT_TRY(weft_pca_orthonormalise(&engine->frame, engine->s_p, 0, k, engine->next, c, r));
done:
  weft_arena_end(&mem);
  return st;
}

/* Whether the Gram matrix is computed roughly and then corrected (gram/gram_half.c), in rounds of a pass or two. The
 * parts of one call take the same rounds; processes, whose back ends may differ, add up exact matrices. */
static int by_rough(const weft_pca_run *run)
{
  const int large = run->near >= (run->job->tol >= WEFT_PCA_ROUGH_TOL ? WEFT_PCA_FILTER_ABOVE_DEVICE : ROUGH_ORDER);
  return (!run->ranks || run->ranks->parts) && !run->near_is_rows && large && run->ops->rough &&
         run->ops->rough(run->space, run->near);
}

/* Puts them at the front of P, filtered from what an earlier run left in job->filtered. */
static weft_status filter_again(krylov *engine)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = engine->run;
  const weft_pca_ops *ops = run->ops;
  const weft_pca_job *job = run->job;
  const size_t near = run->near, b = weft_pca_filter_width(job->k);
  double *s_g = NULL, *s_diagonal = NULL, *s_v = NULL;
  WEFT_TRY(ops->take(run->space, near * near, &s_g));
  WEFT_TRY(ops->take(run->space, near, &s_diagonal));
  WEFT_TRY(ops->take(run->space, near * b, &s_v));
  WEFT_TRY(weft_pca_square(run, 0, s_g, s_diagonal));
  if (job->begun) WEFT_TRY(ops->put(run->space, s_v, job->filtered, near * b));
  WEFT_TRY(weft_pca_filter_of(&engine->frame, b, s_g, s_diagonal, job->tol, job->begun, s_v));
  WEFT_TRY(ops->get(run->space, job->filtered, s_v, near * b));
  WEFT_TRY(ops->copy(run->space, engine->s_p, s_v, near * job->k));
done : {
  double *blocks[] = { s_g, s_diagonal, s_v };
  for (int i = 0; i < 3; i++)
    if (blocks[i]) ops->drop(run->space, blocks[i]);
}
  return st;
}

/* The leading eigenvectors of the Gram matrix, which is destroyed: of a small one on the host, which takes less time
 * than a device's library, and that need not be opened. */
static weft_status all_eigenvectors(krylov *engine, double *s_g)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = engine->run;
  const weft_pca_ops *ops = run->ops;
  const size_t near = run->near, k = run->job->k;
  double *g, *values, *vectors;
  if (ops == &weft_pca_cpu || !WEFT_PCA_HOST_EIGEN(near, k)) return ops->eigen(run->space, s_g, near, k, engine->s_p);
  weft_arena mem = weft_arena_begin(run->ctx);
  WEFT_TAKE(g, &mem, near * near);
  WEFT_TAKE(values, &mem, k);
  WEFT_TAKE(vectors, &mem, near * k);
  WEFT_TRY(ops->get(run->space, g, s_g, near * near));
  WEFT_TRY(weft_pca_leading(run->ctx, g, near, k, values, vectors));
  WEFT_TRY(ops->put(run->space, engine->s_p, vectors, near * k));
done:
  weft_arena_end(&mem);
  return st;
}

/* Puts the k leading eigenvectors of the Gram matrix at the front of P. */
static weft_status gram_vectors(krylov *engine)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = engine->run;
  const weft_pca_ops *ops = run->ops;
  const size_t near = run->near;
  double b = (double) weft_pca_filter_block(run), *s_g = NULL, *s_diagonal = NULL, *vectors;
  if (engine->lanczos) return weft_pca_lanczos(&engine->frame, engine->lanczos, engine->s_p);
  if (run->job->filtered) return filter_again(engine);
  weft_arena mem = weft_arena_begin(run->ctx);
  int roughly = by_rough(run);
  WEFT_TRY(weft_pca_ranks_as_first(run, &b, 1)); /* it depends on the back end, in which ranks may differ */
  if (run->ranks && run->ranks->parts) WEFT_TRY(weft_pca_ranks_agree(run, &roughly));
  if (b > 0) {
    st = (roughly ? weft_pca_rough : weft_pca_filter)(&engine->frame, (size_t) b, engine->s_p);
    goto done;
  }
  WEFT_TRY(ops->take(run->space, near * near, &s_g));
  WEFT_TRY(ops->take(run->space, near, &s_diagonal));
  WEFT_TRY(weft_pca_square(run, 0, s_g, s_diagonal));
  WEFT_TRY(all_eigenvectors(engine, s_g));
  if (run->ranks) {
    WEFT_TAKE(vectors, &mem, near * run->job->k);
    WEFT_TRY(ops->get(run->space, vectors, engine->s_p, near * run->job->k));
    WEFT_TRY(weft_pca_ranks_as_first(run, vectors, near * run->job->k));
    WEFT_TRY(ops->put(run->space, engine->s_p, vectors, near * run->job->k));
  }
done:
  weft_arena_end(&mem);
  if (s_g) ops->drop(run->space, s_g);
  if (s_diagonal) ops->drop(run->space, s_diagonal);
  return st;
}

/* U and d of the vectors that were filtered, by one reading of X; residuals are not looked at. */
static weft_status project(krylov *engine)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = engine->run;
  const weft_pca_ops *ops = run->ops;
  const size_t k = run->job->k;
  double *s_far = NULL, *small = engine->frame.small, *s_small = engine->frame.s_small;
  WEFT_TRY(ops->take(run->space, run->far * k, &s_far));
  WEFT_TRY(weft_pca_to_far(run, engine->s_p, k, s_far));
  WEFT_TRY(ops->gemm(run->space, 1, 0, k, k, run->far, 1, s_far, run->far, s_far, run->far, 0, s_small, k));
  WEFT_TRY(ops->get(run->space, small, s_small, k * k));
  for (size_t j = 0; j < k; j++) {
    const double square = small[j + j * k];
    engine->values[j] = sqrt(fmax(square, 0));
    run->out->residual[j] = 0;
    for (size_t i = 0; i < k; i++) small[i + j * k] = 0;
    small[j + j * k] = square > 0 ? 1 / engine->values[j] : 0;
  }
  WEFT_TRY(ops->put(run->space, s_small, small, k * k));
  WEFT_TRY(ops->gemm(run->space, 0, 0, run->far, k, k, 1, s_far, run->far, s_small, k, 0, engine->s_q, run->far));
  engine->size = k;
  engine->next = 0;
done:
  if (s_far) ops->drop(run->space, s_far);
  return st;
}

/* The eigenvectors of the Gram matrix (or the guess, when there is one), by Rayleigh-Ritz the triplets of X in their
 * span, and their residuals. */
static weft_status gram_start(krylov *engine)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = engine->run;
  const size_t k = run->job->k;
  double *c, *r;
  weft_arena mem = weft_arena_begin(run->ctx);
  WEFT_TAKE(c, &mem, k * engine->together);
  WEFT_TAKE(r, &mem, engine->together * engine->together);
  if (run->job->start && !run->job->filtered) {
    WEFT_TRY(place_guess(engine, k));
  } else {
    WEFT_TRY(gram_vectors(engine));
    if (!engine->lanczos) run->passes += 1;
  }
  if (run->job->filtered && run->job->uncorrected) {
    WEFT_TRY(project(engine));
    goto done;
  }
  for (size_t j = 0; j < k; j += engine->together) {
    WEFT_TRY(weft_pca_orthonormalise(&engine->frame, engine->s_p, 0, j, min_of(engine->together, k - j), c, r));
    engine->frame.scale = 0;
  }
  for (size_t j = 0; j < k; j += engine->together) WEFT_TRY(extend(engine, min_of(engine->together, k - j)));
  WEFT_TRY(extract(engine, k, 1e-13));
  WEFT_TRY(restart(engine, k));
  WEFT_TRY(true_residuals(engine));
done:
  weft_arena_end(&mem);
  return st;
}

/* The triplets are P, Q and the diagonal of H themselves. */
static void identity(krylov *engine)
{
  const size_t k = engine->size;
  memset(engine->left, 0, k * k * sizeof *engine->left);
  for (size_t j = 0; j < k; j++) engine->left[j + j * k] = 1;
  memcpy(engine->right, engine->left, k * k * sizeof *engine->left);
}

static int settled(const weft_pca_run *run)
{
  for (size_t i = 0; i < run->job->k; i++)
    if (!(run->out->residual[i] <= run->job->tol)) return 0;
  return 1;
}

static double worst(const weft_pca_run *run)
{
  double w = 0;
  for (size_t i = 0; i < run->job->k; i++) w = fmax(w, run->out->residual[i]);
  return w;
}

/* Whether the remaining blocks would take longer than the Gram matrix and its eigenvectors; at most as many remain as
 * fill the near space. */
static int gram_is_less(const weft_pca_run *run, size_t blocks, double left, size_t b)
{
  const weft_pca_job *job = run->job;
  const double all = ceil((double) run->near / (double) b), to_go = fmin(left, all - (double) blocks);
  return job->gram_blocks > 0 && to_go > job->gram_blocks + job->gram_steps * ((double) blocks + to_go);
}

/* Continues until the residuals are small, P is the whole near space, or the blocks are used up. From a start of b
 * vectors at most b copies of a singular value are found; where there may be more, random blocks are appended to the
 * triplets until one finds no further copy. `*left`, if it is asked for, is set when the Gram matrix would take less
 * time. */
static weft_status iterate(krylov *engine, size_t b, int *left)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = engine->run;
  const weft_pca_job *job = run->job;
  const size_t k = job->k;
  const double tol = fmax(0.1 * job->tol, 3e-14);
  size_t since = 0, look = job->start ? 1 : max_of(2, 32 / b), blocks = 0; /* a guess may do by itself */
  double before = 0, found = -1, to_go;
  for (;;) {
    const int last = engine->size + engine->next >= run->near || blocks + 1 >= job->max_iterations;
    int out_of_room;
    size_t keep;
    WEFT_TRY(weft_poll(run->ctx, (double) blocks, (double) job->max_iterations));
    WEFT_TRY(extend(engine, engine->next));
    WEFT_TRY(residual_block(engine));
    blocks++;
    since++;
    out_of_room = engine->size + engine->next > engine->capacity;
    if (engine->size < k || (since < look && !out_of_room && !last)) continue;
    keep = out_of_room ? min_of(k + 3 * b, engine->size - b) : k; /* with few, what a restart discards costs passes */
    WEFT_TRY(extract(engine, keep, tol));
    for (size_t i = 0; i < k; i++) run->out->iterations[i] = (int32_t) blocks;
    if (last) break;
    if (settled(run) && since >= look) {
      double sum = 0;
      for (size_t i = 0; i < k; i++) sum += engine->values[i];
      const int may = job->start ? k >= b : weft_pca_copies_missed(engine->values, k, b, worst(run));
      if (!may || sum <= found * (1 + 1e-12)) break;
      found = sum;
      WEFT_TRY(restart(engine, k));
      engine->next = min_of(b, run->near - k);
      WEFT_TRY(weft_pca_random_block(&engine->frame, engine->s_p, k, engine->next));
      since = 0;
      look = WEFT_PCA_LOOK_AGAIN;
      continue;
    }
    to_go = weft_pca_blocks_left(before, worst(run), since, job->tol);
    if (left && before > 0 && gram_is_less(run, blocks, to_go, b)) {
      *left = 1;
      break;
    }
    look = before > 0 ? weft_pca_until_look(to_go, b) : max_of(1, 16 / b);
    before = worst(run);
    since = 0;
    if (out_of_room) WEFT_TRY(restart(engine, keep));
  }
done:
  return st;
}

/* b far vectors to the host, where those that are rows may lie in a taller array. */
static weft_status get_far(weft_pca_run *run, const double *s_from, size_t b, double *to)
{
  weft_status st = WEFT_OK;
  const size_t far = run->far, ld = run->near_is_rows || !run->out->ld ? far : run->out->ld;
  if (ld == far) return run->ops->get(run->space, to, s_from, far * b);
  for (size_t j = 0; j < b; j++) WEFT_TRY(run->ops->get(run->space, to + j * ld, s_from + j * far, far));
done:
  return st;
}

/* U'U of scores that are far vectors, which the host would take a pass over all of them to find. */
static weft_status cross(krylov *engine)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = engine->run;
  const weft_pca_ops *ops = run->ops;
  const size_t k = run->job->k, far = run->far;
  double *s_cross = NULL;
  if (!run->out->cross || run->near_is_rows || ops == &weft_pca_cpu) return st;
  WEFT_TRY(ops->take(run->space, k * k, &s_cross));
  WEFT_TRY(ops->gemm(run->space, 1, 0, k, k, far, 1, engine->s_q, far, engine->s_q, far, 0, s_cross, k));
  if (run->ranks) WEFT_TRY(weft_pca_ranks_add(run, s_cross, k * k));
  WEFT_TRY(ops->get(run->space, run->out->cross, s_cross, k * k));
done:
  if (s_cross) ops->drop(run->space, s_cross);
  return st;
}

/* Copies U and V of the k triplets to the host. */
static weft_status deliver(krylov *engine)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = engine->run;
  const size_t k = run->job->k;
  double *near = run->near_is_rows ? run->out->u : run->out->v, *far = run->near_is_rows ? run->out->v : run->out->u;
  WEFT_TRY(rotate(engine, engine->s_p, run->near, engine->right, k));
  WEFT_TRY(rotate(engine, engine->s_q, run->far, engine->left, k));
  WEFT_TRY(run->ops->get(run->space, near, engine->s_p, run->near * k));
  WEFT_TRY(get_far(run, engine->s_q, k, far));
  WEFT_TRY(cross(engine));
  memcpy(run->out->d, engine->values, k * sizeof *engine->values);
done:
  return st;
}

/* Room for columns, within a quarter of the memory that is free. More room saves few passes when a restart keeps enough
 * (see iterate()), and costs more in orthogonalisation and small problems. */
static size_t choose_capacity(const weft_pca_run *run, size_t b)
{
  const size_t k = run->job->k;
  const double bytes = 8.0 * ((double) run->near + (double) run->far);
  const double have = run->ranks ? -1 : weft_host_available(); /* ranks must arrive at the same number */
  size_t wanted = k + 12 * b;
  if (have > 0 && 0.25 * have / bytes < (double) wanted) wanted = (size_t) (0.25 * have / bytes);
  return min_of(max_of(wanted, k + 2 * b + 2 * PANEL), run->near);
}

static size_t choose_block(const weft_pca_run *run)
{
  const size_t spare = (run->job->k + 13) / 8 * 8, b = run->job->block ? run->job->block : spare < 16 ? 16 : spare;
  return min_of(min_of(b, PANEL), run->near);
}

static void close_engine(krylov *engine)
{
  const weft_pca_ops *ops = engine->run->ops;
  double *blocks[] = { engine->s_p, engine->s_q, engine->frame.s_small, engine->frame.s_swap };
  for (int i = 0; i < 4; i++)
    if (blocks[i]) ops->drop(engine->run->space, blocks[i]);
  weft_arena_end(&engine->mem);
}

/* Room for more columns, when k triplets and a next block are what there is. */
static weft_status widen(krylov *engine, size_t capacity)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = engine->run;
  const weft_pca_ops *ops = run->ops;
  krylov wide;
  WEFT_TRY(open_engine(&wide, run, capacity));
  WEFT_TRY(ops->copy(run->space, wide.s_p, engine->s_p, run->near * (engine->size + engine->next)));
  WEFT_TRY(ops->copy(run->space, wide.s_q, engine->s_q, run->far * engine->size));
  for (size_t j = 0; j < engine->size; j++)
    memcpy(wide.h + j * capacity, engine->h + j * engine->capacity, engine->size * sizeof *engine->h);
  memcpy(wide.values, engine->values, engine->size * sizeof *engine->values);
  wide.size = engine->size;
  wide.next = engine->next;
  wide.frame.scale = engine->frame.scale;
done:
  close_engine(st == WEFT_OK ? engine : &wide);
  if (st == WEFT_OK) *engine = wide;
  return st;
}

weft_status weft_pca_ritz(weft_pca_run *run)
{
  weft_status st = WEFT_OK;
  krylov engine;
  WEFT_TRY(open_engine(&engine, run, run->job->k));
  WEFT_TRY(gram_start(&engine));
  identity(&engine);
  WEFT_TRY(deliver(&engine));
done:
  close_engine(&engine);
  return st;
}

/* Begins with eigenvectors of the Gram matrix and continues only where residuals require it. `*whole` is set when too
 * much was lost by squaring. `lanczos`: of a matrix that is not formed. */
static weft_status by_gram(krylov *engine, weft_pca_run *run, size_t b, size_t lanczos, int *whole)
{
  weft_status st = WEFT_OK;
  int steps_over;
  WEFT_TRY(open_engine(engine, run, run->job->k));
  engine->lanczos = lanczos;
  WEFT_TRY(gram_start(engine));
  steps_over = lanczos && run->out->iterations[0] >= (int32_t) run->job->max_iterations;
  *whole = engine->next > PANEL;
  if (run->job->max_iterations == 1 || steps_over || !engine->next) {
    *whole = 0;
    identity(engine);
  } else if (!*whole) {
    WEFT_TRY(widen(engine, choose_capacity(run, b)));
    WEFT_TRY(iterate(engine, b, NULL));
  }
done:
  return st;
}

/* Begins with a random block. If the job says how long the Gram matrix would take, it ends as soon as that is less than
 * what is left, and sets `*left`. */
static weft_status by_blocks(krylov *engine, weft_pca_run *run, size_t b, int *left)
{
  weft_status st = WEFT_OK;
  WEFT_TRY(open_engine(engine, run, choose_capacity(run, b)));
  WEFT_TRY(first_block(engine, b));
  WEFT_TRY(iterate(engine, b, left));
done:
  return st;
}

/* Decides how krylov and gram run: the whole near space where it is small, Lanczos on the Gram matrix that is not
 * formed, a Gram matrix that is formed, or block Krylov on X; the latter gives way to gram where its first blocks show
 * that it will take longer (by_blocks(), gram_is_less()). */
weft_status weft_pca_block(weft_pca_run *run)
{
  weft_status st = WEFT_OK;
  const size_t k = run->job->k, near = run->near, b = choose_block(run);
  const int begun = run->job->start || run->job->method == WEFT_PCA_GRAM; /* less remains than from a random block */
  const int small = 3 * k >= near || near <= (begun ? PANEL / 2 : 2 * PANEL);
  size_t lanczos;
  int squares = !run->job->choose || run->ops->squares(run->space, near), gram, whole;
  krylov engine;
  memset(&engine, 0, sizeof engine);
  engine.run = run;
  if (run->ranks) {
    /* the rows of other ranks are not available for products */
    if (run->near_is_rows && !run->job->start) squares = 0;
    WEFT_TRY(weft_pca_ranks_agree(run, &squares));
  }
  gram = run->job->method == WEFT_PCA_GRAM && !small && squares;
  lanczos = gram || run->job->start ? 0 : weft_pca_lanczos_capacity(run);
  whole = !gram && !lanczos && small;
  if (!squares) run->out->method = WEFT_PCA_KRYLOV;
  for (size_t i = 0; i < k; i++) run->out->iterations[i] = 1;
  if (!whole && !gram && !lanczos) {
    WEFT_TRY(by_blocks(&engine, run, b, squares && !run->ranks && !run->job->start ? &gram : NULL));
    if (gram) {
      close_engine(&engine);
      run->out->method = WEFT_PCA_GRAM;
      for (size_t i = 0; i < k; i++) run->out->iterations[i] = 1;
    }
  }
  if (gram || lanczos) {
    WEFT_TRY(by_gram(&engine, run, b, lanczos, &whole));
    if (whole) close_engine(&engine);
  }
  if (whole) {
    WEFT_TRY(open_engine(&engine, run, near));
    WEFT_TRY(whole_space(&engine));
  }
  WEFT_TRY(deliver(&engine));
done:
  close_engine(&engine);
  return st;
}
