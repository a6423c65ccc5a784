/* Leading eigenvectors of the smaller Gram matrix G = X'X, of which only R = G + E is formed, in half the time or less:
 * E is what narrow products leave out. The vectors V of R are nearly those of G. A pass or two over X give G V exactly,
 * and what that says is put into R:
 *
 *   M = D - V (V'D) / 2,  D = G V - R V,   R := R + M V' + V M'
 *
 * Now R V = G V, and the error that is left acts beyond V only: each round multiplies the error of the vectors by |E|
 * over the gap between the wanted values and those that are not in V, a thousandth where E is a millionth. V has some
 * vectors more than are wanted, for that gap. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "pca/engines/gram/chebyshev.h"
#include "pca/engines/dense_eigen.h"
#include "pca/engines/gram/gram_half.h"
#include "pca/engines/orthonormal.h"
#include "pca/engines/ranks.h"
#include "pca/engines/run.h"

#define ROUNDS 12
#define FALL 0.3       /* of the residual in a round, at least */
#define FIRST_TOL 1e-7 /* of the vectors of R in the first round; a thousandth of it in each that follows */

typedef struct {
  weft_pca_frame *frame;
  size_t b;                             /* vectors */
  double *s_g, *s_diagonal, *s_v, *s_w; /* s_w: G V, then M */
  double *s_far, *s_swap, *s_small;     /* X V; near × b; b × b */
  double *small, *vectors, *values;     /* on the host */
} rough;

/* Memory for the rough Gram matrix and three blocks of b vectors; blocks of the space are given back by close_rough(),
 * also after a failure. */
static weft_status open_rough(rough *state, weft_pca_frame *frame, size_t b, weft_arena *mem)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = frame->run;
  const weft_pca_ops *ops = run->ops;
  const size_t near = run->near;
  memset(state, 0, sizeof *state);
  state->frame = frame;
  state->b = b;
  WEFT_TAKE(state->small, mem, state->b * state->b);
  WEFT_TAKE(state->vectors, mem, state->b * state->b);
  WEFT_TAKE(state->values, mem, state->b);
  WEFT_TRY(ops->take(run->space, near * near, &state->s_g));
  WEFT_TRY(ops->take(run->space, near, &state->s_diagonal));
  WEFT_TRY(ops->take(run->space, near * state->b, &state->s_v));
  WEFT_TRY(ops->take(run->space, near * state->b, &state->s_w));
  WEFT_TRY(ops->take(run->space, near * state->b, &state->s_swap));
  if (!weft_pca_reads_once(run)) WEFT_TRY(ops->take(run->space, run->far * state->b, &state->s_far));
  WEFT_TRY(ops->take(run->space, state->b * state->b, &state->s_small));
done:
  return st;
}

static void close_rough(rough *state)
{
  double *blocks[] = { state->s_g,   state->s_diagonal, state->s_v,    state->s_w,
                       state->s_far, state->s_swap,     state->s_small };
  for (int i = 0; i < 7; i++)
    if (blocks[i]) state->frame->run->ops->drop(state->frame->run->space, blocks[i]);
}

/* V: leading eigenvectors of R. */
static weft_status solve(rough *state, int round)
{
  const double tol = fmax(0.2 * state->frame->run->job->tol, FIRST_TOL * pow(1e-3, round));
  return weft_pca_filter_of(state->frame, state->b, state->s_g, state->s_diagonal, tol, round > 0, state->s_v);
}

/* s_basis := s_basis (r->vectors) */
static weft_status rotate(rough *state, double *s_basis)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = state->frame->run;
  const weft_pca_ops *ops = run->ops;
  const size_t near = run->near, b = state->b;
  WEFT_TRY(ops->gemm(run->space, 0, 0, near, b, b, 1, s_basis, near, state->s_small, b, 0, state->s_swap, near));
  WEFT_TRY(ops->copy(run->space, s_basis, state->s_swap, near * b));
done:
  return st;
}

static weft_status put_diagonal(rough *state)
{
  memset(state->small, 0, state->b * state->b * sizeof *state->small);
  for (size_t j = 0; j < state->b; j++) state->small[j + j * state->b] = state->values[j];
  return state->frame->run->ops->put(state->frame->run->space, state->s_small, state->small, state->b * state->b);
}

/* W := G V, V and W rotated to Ritz vectors of G; `over`: how often too large the worst residual of X's
 * triplets would be, as too_large() in chebyshev.c has it. */
static weft_status look(rough *state, double *over)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = state->frame->run;
  const weft_pca_ops *ops = run->ops;
  weft_pca_space *space = run->space;
  const size_t near = run->near, b = state->b, k = run->job->k;
  WEFT_TRY(weft_pca_twice(run, state->s_v, b, state->s_far, state->s_w));
  WEFT_TRY(ops->gemm(space, 1, 0, b, b, near, 1, state->s_v, near, state->s_w, near, 0, state->s_small, b));
  WEFT_TRY(ops->get(space, state->small, state->s_small, b * b));
  for (size_t j = 0; j < b; j++)
    for (size_t i = 0; i < j; i++)
      state->small[i + j * b] = state->small[j + i * b] = 0.5 * (state->small[i + j * b] + state->small[j + i * b]);
  WEFT_TRY(weft_pca_leading(run->ctx, state->small, b, b, state->values, state->vectors));
  WEFT_TRY(weft_pca_ranks_as_first(run, state->values, b));
  WEFT_TRY(weft_pca_ranks_as_first(run, state->vectors, b * b));
  WEFT_TRY(ops->put(space, state->s_small, state->vectors, b * b));
  WEFT_TRY(rotate(state, state->s_v));
  WEFT_TRY(rotate(state, state->s_w));
  WEFT_TRY(put_diagonal(state));
  WEFT_TRY(ops->copy(space, state->s_swap, state->s_w, near * b));
  WEFT_TRY(ops->gemm(space, 0, 0, near, b, b, -1, state->s_v, near, state->s_small, b, 1, state->s_swap, near));
  WEFT_TRY(ops->gemm(space, 1, 0, b, b, near, 1, state->s_swap, near, state->s_swap, near, 0, state->s_small, b));
  WEFT_TRY(ops->get(space, state->small, state->s_small, b * b));
  *over = 0;
  for (size_t j = 0; j < k; j++) {
    const double largest = state->values[0], floor = DBL_EPSILON * sqrt((double) near) * largest,
                 allowed = 0.5 * run->job->tol * sqrt(largest * fmax(state->values[j], 0));
    *over = fmax(*over, sqrt(fmax(0, state->small[j + j * b])) / fmax(fmax(allowed, floor), DBL_MIN));
  }
  WEFT_TRY(weft_pca_ranks_as_first(run, over, 1));
done:
  return st;
}

static weft_status correct(rough *state)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = state->frame->run;
  const weft_pca_ops *ops = run->ops;
  weft_pca_space *space = run->space;
  const size_t near = run->near, b = state->b;
  WEFT_TRY(ops->by_square(space, state->s_g, near, b, -1, state->s_v, 1, state->s_w)); /* D */
  WEFT_TRY(ops->gemm(space, 1, 0, b, b, near, 1, state->s_v, near, state->s_w, near, 0, state->s_small, b));
  WEFT_TRY(ops->gemm(space, 0, 0, near, b, b, -0.5, state->s_v, near, state->s_small, b, 1, state->s_w, near));
  WEFT_TRY(ops->correct(space, state->s_g, near, state->s_w, state->s_v, b, state->s_diagonal));
done:
  return st;
}

/* Rounds of solving with the rough matrix, looking at exact residuals and correcting the matrix, until they are small
 * enough or fall too slowly; s_vectors: the k leading ones. See the head of the file. */
weft_status weft_pca_rough(weft_pca_frame *frame, size_t b, double *s_vectors)
{
  weft_status st = WEFT_OK;
  weft_pca_run *run = frame->run;
  weft_arena mem = weft_arena_begin(run->ctx);
  double before = INFINITY;
  rough state;
  WEFT_TRY(open_rough(&state, frame, b, &mem));
  WEFT_TRY(weft_pca_square(run, 1, state.s_g, state.s_diagonal));
  for (int round = 0; round < ROUNDS; round++) {
    double over;
    WEFT_TRY(weft_poll(run->ctx, round, ROUNDS));
    WEFT_TRY(solve(&state, round));
    WEFT_TRY(look(&state, &over));
    if (over <= 1 || over > FALL * before) break;
    before = over;
    WEFT_TRY(correct(&state));
  }
  WEFT_TRY(run->ops->copy(run->space, s_vectors, state.s_v, run->near * run->job->k));
done:
  close_rough(&state);
  weft_arena_end(&mem);
  return st;
}
