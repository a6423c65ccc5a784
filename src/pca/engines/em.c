/* The least-squares fit of the observed values by EM: gaps are filled; components, means (and standard deviations) of
 * the filled matrix and the fits of its gaps, which fill them again, are found in turn until the fits stand still.
 *
 * The errors of the gaps fall by a factor each time that may be near 1. Anderson's acceleration (1965; Walker and Ni
 * 2011) therefore fills them with
 *
 *   g - sum_j c_j (g_j - g_j-1),   c: the least squares of |r - sum_j c_j (r_j - r_j-1)|,   r = g - x over the spread
 *
 * where x were the gaps and g their fits. EM never increases what is left of the observed squares. Where that does, the
 * gaps go back to the last fits, and acceleration rests for some steps. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "core/call/arena.h"
#include "core/call/parallel.h"
#include "core/numbers/product.h"
#include "pca/pca.h"

#define DEPTH 10          /* differences kept */
#define NEAR 0.02         /* the change of a cell from which on acceleration pays */
#define LONGEST_REST 16   /* steps of plain EM after fills that were worse */
#define MIN_PIVOT 1e-10   /* of a difference against newer ones, both of length 1 */
#define BETWEEN_POLLS 4e6 /* cells */

typedef struct {
  weft_ctx *ctx;
  const weft_pca_ops *ops;
  const weft_pca_em *em;
  weft_pca_data data; /* of x */
  double *x;          /* filled */
  int32_t *row, *column;
  weft_pca_moments moments;
  weft_pca_job inner;
  weft_pca_result *out;
  double *start;                 /* the loadings found before */
  double *scores, *loads;        /* k × n, k × p: in the units of the data */
  double *fit, *moved;           /* of the gaps: their fits, and the changes over the spread */
  size_t depth, used, newest;    /* differences: room for them, how many there are, where the last is */
  double *by_fit, *by_moved;     /* gaps × depth */
  double *last_fit, *last_moved; /* of the step before */
  int known;                     /* there was one */
  double products[DEPTH * DEPTH];
} em_space;

static weft_status fetch(weft_ctx *ctx, void *source, size_t index, weft_pca_panel *out)
{
  const em_space *state = source;
  const weft_pca_panel panel = { .n = state->em->n, .p = state->em->p, .ld = state->em->n, .dense = state->x };
  (void) ctx;
  (void) index;
  *out = panel;
  return WEFT_OK;
}

static double *cell(const em_space *state, size_t g)
{
  return state->x + (size_t) state->row[g] + (size_t) state->column[g] * state->em->n;
}

static void fill(em_space *state, const double *with)
{
  for (size_t g = 0; g < state->em->gaps; g++) *cell(state, g) = with[g];
}

/* The copy of x, and where its gaps are. */
static weft_status find_gaps(em_space *state)
{
  weft_status st = WEFT_OK;
  const weft_pca_em *em = state->em;
  size_t found = 0;
  double since = 0;
  for (size_t j = 0; j < em->p; j++, since += (double) em->n) {
    const double *from = em->x + j * em->n;
    if (since > BETWEEN_POLLS) {
      WEFT_TRY(weft_poll(state->ctx, 0, 0));
      since = 0;
    }
    memcpy(state->x + j * em->n, from, em->n * sizeof *from);
    for (size_t i = 0; i < em->n; i++) {
      if (!isnan(from[i])) continue;
      if (found == em->gaps) return weft_fail(state->ctx, WEFT_ERR_INTERNAL, "More gaps than were counted.");
      state->row[found] = (int32_t) i;
      state->column[found++] = (int32_t) j;
    }
  }
  if (found < em->gaps) return weft_fail(state->ctx, WEFT_ERR_INTERNAL, "Fewer gaps than were counted.");
done:
  return st;
}

/* Takes all memory from `mem`, lists the gaps and fills them with em->first. How many steps are remembered for
 * extrapolation (e->depth) is cut to a quarter of the memory that is free. */
static weft_status open_em(em_space *state, weft_arena *mem)
{
  weft_status st = WEFT_OK;
  const weft_pca_em *em = state->em;
  const size_t n = em->n, p = em->p, k = state->inner.k, gaps = em->gaps;
  const double have = weft_host_available();
  double **const of_columns[] = { &state->moments.mean, &state->moments.norm, &state->moments.weight,
                                  &state->moments.missing, &state->moments.infinite };
  for (size_t i = 0; i < sizeof of_columns / sizeof *of_columns; i++) WEFT_TAKE(*of_columns[i], mem, p);
  WEFT_TAKE(state->x, mem, n * p);
  WEFT_TAKE(state->row, mem, gaps);
  WEFT_TAKE(state->column, mem, gaps);
  WEFT_TAKE(state->start, mem, p * k);
  WEFT_TAKE(state->scores, mem, n * k);
  WEFT_TAKE(state->loads, mem, p * k);
  WEFT_TAKE(state->fit, mem, gaps);
  WEFT_TAKE(state->moved, mem, gaps);
  state->depth = em->fall >= 0 ? 0 : DEPTH; /* how soon a fall is small says something about plain EM alone */
  if (have > 0 && 16.0 * (double) gaps * (double) state->depth > 0.25 * have)
    state->depth = (size_t) (0.25 * have / (16.0 * (double) gaps));
  if (state->depth) {
    WEFT_TAKE(state->by_fit, mem, gaps * state->depth);
    WEFT_TAKE(state->by_moved, mem, gaps * state->depth);
    WEFT_TAKE(state->last_fit, mem, gaps);
    WEFT_TAKE(state->last_moved, mem, gaps);
  }
  WEFT_TRY(find_gaps(state));
  fill(state, em->first);
done:
  return st;
}

/* The components of the filled matrix. */
static weft_status decompose(em_space *state)
{
  weft_status st = WEFT_OK;
  const weft_pca_em *em = state->em;
  WEFT_TRY(weft_pca_cpu.moments(state->ctx, &state->data, em->weights, &state->moments));
  weft_pca_form_of(em->p, &state->moments, &em->scaling, em->made);
  const weft_pca_form form = { .center = em->made->center, .factor = em->made->factor, .row = em->row };
  const double passes = state->out->passes;
  WEFT_TRY(weft_pca(state->ctx, state->ops, &state->data, &form, &state->inner, state->out));
  state->out->passes += passes;
  memcpy(state->start, state->out->v, em->p * state->inner.k * sizeof *state->start);
  state->inner.start = state->start;
done:
  return st;
}

/* The scores of rows of weight 0, which no component knows: by projection. */
static void project_row(em_space *state, size_t i, double *scores)
{
  const size_t p = state->em->p;
  for (size_t c = 0; c < state->inner.k; c++) {
    scores[c] = 0;
    for (size_t j = 0; j < p; j++)
      scores[c] += (state->x[i + j * state->em->n] - state->em->made->center[j]) * state->em->made->factor[j] *
                   state->out->v[j + c * p];
  }
}

/* The gaps' fits, and by how much they move. *change: the largest, over the spread; *squares: the sum of squares in
 * the units of X. */
static weft_status fit_gaps(em_space *state, double *change, double *squares)
{
  weft_status st = WEFT_OK;
  const weft_pca_em *em = state->em;
  const size_t n = em->n, p = em->p, k = state->inner.k;
  const weft_pca_made *made = em->made;
  for (size_t c = 0; c < k; c++)
    for (size_t j = 0; j < p; j++)
      state->loads[c + j * k] = made->factor[j] > 0 ? state->out->v[j + c * p] / made->factor[j] : 0;
  for (size_t i = 0; i < n; i++) {
    const double weight = em->row ? em->row[i] : 1;
    if (weight > 0)
      for (size_t c = 0; c < k; c++) state->scores[c + i * k] = state->out->d[c] * state->out->u[i + c * n] / weight;
    else
      project_row(state, i, state->scores + i * k);
  }
  const size_t at_once = (size_t) (BETWEEN_POLLS / (double) k) + 1;
  for (size_t first = 0; first < em->gaps; first += at_once) {
    const size_t last = first + at_once < em->gaps ? first + at_once : em->gaps;
    WEFT_TRY(weft_poll(state->ctx, 0, 0));
    WEFT_PARALLEL_FOR(weft_threads_worth(state->ctx->threads, (double) (last - first) * (double) k), static)
    for (int64_t g = (int64_t) first; g < (int64_t) last; g++) {
      const size_t j = (size_t) state->column[g];
      const double *scores = state->scores + (size_t) state->row[g] * k, *loads = state->loads + j * k;
      double sum = 0;
      for (size_t c = 0; c < k; c++) sum += scores[c] * loads[c];
      state->fit[g] = sum + made->center[j];
      state->moved[g] = (state->fit[g] - *cell(state, (size_t) g)) / em->spread[j];
    }
  }
  *change = *squares = 0;
  for (size_t g = 0; g < em->gaps; g++) {
    const double scaled = state->moved[g] * em->spread[state->column[g]] * made->factor[state->column[g]] *
                          (em->row ? em->row[state->row[g]] : 1);
    *change = fmax(*change, fabs(state->moved[g]));
    *squares += scaled * scaled;
  }
done:
  return st;
}

/* ---- acceleration ---- */

static size_t place(const em_space *state, size_t age) { return (state->newest + state->depth - age) % state->depth; }

/* The step joins the differences. */
static weft_status remember(em_space *state)
{
  weft_status st = WEFT_OK;
  const size_t gaps = state->em->gaps;
  double products[DEPTH];
  if (state->known) {
    state->newest = state->used ? (state->newest + 1) % state->depth : 0;
    if (state->used < state->depth) state->used++;
    double *fits = state->by_fit + state->newest * gaps, *moves = state->by_moved + state->newest * gaps;
    for (size_t g = 0; g < gaps; g++) {
      fits[g] = state->fit[g] - state->last_fit[g];
      moves[g] = state->moved[g] - state->last_moved[g];
    }
    const weft_view all = weft_view_plain(state->by_moved, gaps, 1), one = weft_view_plain(moves, gaps, 0);
    WEFT_TRY(weft_product(state->ctx, state->used, 1, gaps, 1, &all, &one, 0, products, state->used, 0));
    for (size_t i = 0; i < state->used; i++)
      state->products[i + state->newest * DEPTH] = state->products[state->newest + i * DEPTH] = products[i];
  }
  memcpy(state->last_fit, state->fit, gaps * sizeof *state->fit);
  memcpy(state->last_moved, state->moved, gaps * sizeof *state->moved);
  state->known = 1;
done:
  return st;
}

static void forget(em_space *state)
{
  state->used = 0;
  state->known = 0;
}

/* The coefficients c of the differences, the newest first, by Cholesky of their inner products; those from the first on
 * that newer ones nearly give are left out. Returns how many there are. `inner`: products with the step's changes. */
static size_t coefficients(const em_space *state, const double *inner, double *c)
{
  double l[DEPTH][DEPTH], length[DEPTH];
  size_t count = 0;
  for (; count < state->used; count++) {
    const size_t at = place(state, count);
    double rest = 1;
    length[count] = sqrt(state->products[at + at * DEPTH]);
    if (!(length[count] > 0 && isfinite(length[count]))) break;
    c[count] = inner[at] / length[count];
    for (size_t i = 0; i < count; i++) {
      double s = state->products[at + place(state, i) * DEPTH] / (length[count] * length[i]);
      for (size_t m = 0; m < i; m++) s -= l[count][m] * l[i][m];
      l[count][i] = s / l[i][i];
      rest -= l[count][i] * l[count][i];
      c[count] -= l[count][i] * c[i];
    }
    if (!(rest >= MIN_PIVOT)) break;
    l[count][count] = sqrt(rest);
    c[count] /= l[count][count];
  }
  for (size_t i = count; i-- > 0;) {
    for (size_t m = i + 1; m < count; m++) c[i] -= l[m][i] * c[m];
    c[i] /= l[i][i];
  }
  for (size_t i = 0; i < count; i++) c[i] /= length[i];
  return count;
}

/* The gaps' fits, from which the combination of differences is taken. */
static weft_status extrapolate(em_space *state)
{
  weft_status st = WEFT_OK;
  const size_t gaps = state->em->gaps;
  const weft_view all = weft_view_plain(state->by_moved, gaps, 1), now = weft_view_plain(state->moved, gaps, 0);
  double inner[DEPTH], c[DEPTH];
  WEFT_TRY(weft_product(state->ctx, state->used, 1, gaps, 1, &all, &now, 0, inner, state->used, 0));
  const size_t count = coefficients(state, inner, c);
  for (size_t i = 0; i < count; i++) {
    WEFT_TRY(weft_poll(state->ctx, 0, 0));
    weft_add_scaled(gaps, state->fit, -c[i], state->by_fit + place(state, i) * gaps);
  }
done:
  return st;
}

/* ---- the iteration ---- */

weft_status weft_pca_by_em(weft_ctx *ctx, const weft_pca_ops *ops, const weft_pca_em *em, const weft_pca_job *job,
                           weft_pca_result *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  em_space state = { .ctx = ctx, .ops = ops, .em = em, .inner = *job, .out = out };
  const weft_pca_data data = { em->n, em->p, 1, fetch, &state, 1, 0, NULL, NULL, NULL };
  double before = INFINITY, change = INFINITY, unit = 0;
  size_t steps = 0, resting = 0, rest = 1;
  int extrapolated = 0, converged = 0;
  state.data = data;
  state.inner.tol = 1e-3;
  state.inner.block = (job->k + 10) / 8 * 8;
  out->passes = 0;
  WEFT_TRY(open_em(&state, &mem));
  while (!converged && steps < job->max_iterations) {
    double squares, left;
    WEFT_TRY(weft_poll(ctx, (double) steps, (double) job->max_iterations));
    WEFT_TRY(decompose(&state));
    WEFT_TRY(fit_gaps(&state, &change, &squares));
    if (!steps++) unit = em->made->exponent;
    const double into = pow(4, em->made->exponent - unit); /* the units of the first step */
    left = em->made->total - squares;
    for (size_t i = 0; i < job->k; i++) left -= out->d[i] * out->d[i];
    left *= into;
    converged = change <= job->tol && state.inner.tol <= fmax(job->tol, 1e-10);
    if (extrapolated && !converged && left > before + 1e-13 * em->made->total * into) {
      fill(&state, state.last_fit);
      forget(&state);
      resting = rest;
      if (rest < LONGEST_REST) rest *= 2;
      extrapolated = 0;
      continue;
    }
    extrapolated = 0;
    memcpy(em->cells, state.fit, em->gaps * sizeof *state.fit);
    if (converged || (em->fall >= 0 && before - left <= em->fall * left)) break;
    before = left;
    if (state.depth) {
      WEFT_TRY(remember(&state));
      if (resting) {
        resting--;
      } else if (state.used && change < NEAR) {
        WEFT_TRY(extrapolate(&state));
        extrapolated = 1;
      }
    }
    fill(&state, state.fit);
    state.inner.tol = fmax(1e-10, fmin(state.inner.tol, 0.01 * change)); /* no more exact than the gaps are */
  }
  for (size_t i = 0; i < job->k; i++) {
    out->iterations[i] = (int32_t) steps;
    out->converged[i] = converged;
    out->residual[i] = change;
  }
done:
  weft_arena_end(&mem);
  return st;
}
