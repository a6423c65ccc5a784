/* The least-squares fit of the observed values by EM: gaps are filled; components, means (and standard deviations) of
 * the filled matrix and the fits of its gaps, which fill them again, are found in turn until the fits stand still.
 *
 * The errors of the gaps fall by a factor each time that may be near 1. Anderson's acceleration (1965; Walker and Ni
 * 2011) therefore fills them with
 *
 *   g - sum_j c_j (g_j - g_j-1),   c: the least squares of |r - sum_j c_j (r_j - r_j-1)|,   r = g - x over the spread
 *
 * where x were the gaps and g their fits. EM never increases what is left of the observed squares. Where that does, the
 * gaps go back to the last fits, and acceleration rests for some steps. The same differences show how slow EM is: it
 * ends when the fits are near where they end, not when they move little. A fit that moves without end is told by its
 * size (runs_away()).
 *
 * The matrix stays in one space, in which only gaps change (refill()). The moments of columns follow from sums of these
 * changes. Where that takes less (choose_squares()), components are found on the Gram matrix, by filtering the vectors
 * of the step before; X is then read once in a step, for the scores, and only the last vectors are corrected on X. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "core/call/arena.h"
#include "core/call/parallel.h"
#include "core/numbers/loops.h"
#include "pca/engines/gram/chebyshev.h"
#include "pca/limits.h"

#define DEPTH 10          /* differences kept */
#define NEAR 0.02         /* the change of a cell from which on acceleration pays */
#define LONGEST_REST 16   /* steps of plain EM after fills that were worse */
#define MIN_PIVOT 1e-6    /* of a difference against newer ones, both of length 1; far above its rounding */
#define BETWEEN_POLLS 4e6 /* cells */
#define PART 2048         /* gaps that a thread takes at once */
#define TOO_LONG 5        /* readings of X in a step from which on a Gram matrix takes less time */
#define FADES 1.05        /* growth in a step of what is remembered of slow ones */
#define AHEAD 100         /* tolerances that fits may be from where they end; their last step is at most one */
#define TOO_FAR 50        /* spreads from its column's mean at which a fit has run away, in a row of ordinary values */

/* Of one part: squares of the changes of what gaps were filled with, and products of each difference with the newest
 * one and with the last changes. */
typedef struct {
  double filled, with_newest[DEPTH], with_moved[DEPTH];
} part_sums;

typedef struct {
  weft_ctx *ctx;
  const weft_pca_ops *ops;
  const weft_pca_em *em;
  weft_pca_data data; /* of x */
  weft_pca_form form;
  weft_pca_space *space; /* from the first decomposition on */
  double *x;             /* filled */
  int32_t *row, *column; /* of the gaps, column after column */
  size_t *first;         /* gap of a column; p + 1 */
  int32_t *starts;       /* the same; NULL where there are too many */
  const double *values;  /* of the gaps in x */
  weft_pca_moments moments;
  double *mean, *unit, *sum, *square; /* p: the first means; of (x - mean) / unit, sums (0 at first) and squares */
  weft_pca_job inner;
  weft_pca_result *out;
  double *start;                 /* the loadings found before */
  double *scores, *loads;        /* k × n, k × p: in the units of the data */
  double *fit, *moved;           /* of the gaps: their fits, and the changes over the spread */
  double *of_column;             /* the largest of a column's changes, the sum of their squares, the farthest fit */
  size_t depth, used, newest;    /* differences: room for them, how many there are, where the last is */
  float *by_fit, *by_moved;      /* gaps × depth, over the spread */
  double *last_fit, *last_moved; /* of the step before */
  int known;                     /* there was one */
  double part;                   /* of the gaps' distance from where they end: what a slow step takes of it */
  double products[DEPTH * DEPTH];
  double with_moved[DEPTH]; /* products of the differences with the last changes */
  part_sums *sums;          /* of parts of the gaps */
  size_t parts;
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

/* Fills the gaps of column j; its sums follow, once they are known. */
static void fill_column(em_space *state, size_t j, const double *with)
{
  const weft_pca_em *em = state->em;
  double *x = state->x + j * em->n, sum = 0, square = 0;
  for (size_t g = state->first[j]; g < state->first[j + 1]; g++) {
    const size_t i = (size_t) state->row[g];
    if (state->space) {
      const double before = (x[i] - state->mean[j]) / state->unit[j],
                   after = (with[g] - state->mean[j]) / state->unit[j];
      const double weight = em->weights ? em->weights[i] : 1;
      sum += weight * (after - before);
      square += weight * (after - before) * (after + before);
    }
    x[i] = with[g];
  }
  state->sum[j] += sum;
  state->square[j] += square;
}

static void fill(em_space *state, const double *with)
{
  WEFT_PARALLEL_FOR(weft_threads_worth(state->ctx->threads, 4 * (double) state->em->gaps), static)
  for (int64_t j = 0; j < (int64_t) state->em->p; j++) fill_column(state, (size_t) j, with);
  state->values = with;
}

/* Copies column j and counts its gaps; or, with `list`, lists them. */
static size_t gaps_of_column(em_space *state, size_t j, int list)
{
  const size_t n = state->em->n;
  const double *from = state->em->x + j * n;
  size_t found = 0, at = state->first[j];
  if (!list) {
    memcpy(state->x + j * n, from, n * sizeof *from);
    for (size_t i = 0; i < n; i++) found += isnan(from[i]) != 0;
    return found;
  }
  for (size_t i = 0; i < n && at < state->first[j + 1]; i++) {
    if (!isnan(from[i])) continue;
    state->row[at] = (int32_t) i;
    state->column[at++] = (int32_t) j;
  }
  return found;
}

/* The copy of x, and where its gaps are. */
static weft_status find_gaps(em_space *state)
{
  weft_status st = WEFT_OK;
  const weft_pca_em *em = state->em;
  const int threads = weft_threads_worth(state->ctx->threads, 0.5 * (double) em->n * (double) em->p);
  const size_t at_once = (size_t) (BETWEEN_POLLS / (double) em->n * threads) + 1;
  state->first[0] = 0;
  for (int list = 0; list < 2; list++) {
    for (size_t from = 0; from < em->p; from += at_once) {
      const size_t to = from + at_once < em->p ? from + at_once : em->p;
      WEFT_TRY(weft_poll(state->ctx, 0, 0));
      WEFT_PARALLEL_FOR(threads, static)
      for (int64_t j = (int64_t) from; j < (int64_t) to; j++) {
        const size_t found = gaps_of_column(state, (size_t) j, list);
        if (!list) state->first[j + 1] = found;
      }
    }
    for (size_t j = 0; j < em->p && !list; j++) state->first[j + 1] += state->first[j];
    if (state->first[em->p] != em->gaps)
      return weft_fail(state->ctx, WEFT_ERR_INTERNAL, "%.0f gaps were counted, and %.0f found.", (double) em->gaps,
                       (double) state->first[em->p]);
  }
  for (size_t j = 0; j <= em->p && state->starts; j++) state->starts[j] = (int32_t) state->first[j];
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
  WEFT_TAKE(state->first, mem, p + 1);
  if (gaps <= INT32_MAX) WEFT_TAKE(state->starts, mem, p + 1);
  WEFT_TAKE(state->mean, mem, p);
  WEFT_TAKE(state->unit, mem, p);
  WEFT_TAKE0(state->sum, mem, p);
  WEFT_TAKE0(state->square, mem, p);
  WEFT_TAKE(state->start, mem, p * k);
  WEFT_TAKE(state->scores, mem, n * k);
  WEFT_TAKE(state->loads, mem, p * k);
  WEFT_TAKE(state->fit, mem, gaps);
  WEFT_TAKE(state->moved, mem, gaps);
  WEFT_TAKE(state->of_column, mem, 3 * p);
  state->depth = em->fall >= 0 ? 0 : DEPTH; /* how soon a fall is small says something about plain EM alone */
  if (have > 0 && 8.0 * (double) gaps * (double) state->depth > 0.25 * have)
    state->depth = (size_t) (0.25 * have / (8.0 * (double) gaps));
  state->parts = (gaps + PART - 1) / PART;
  if (state->depth) {
    WEFT_TAKE(state->by_fit, mem, gaps * state->depth);
    WEFT_TAKE(state->by_moved, mem, gaps * state->depth);
    WEFT_TAKE(state->last_fit, mem, gaps);
    WEFT_TAKE(state->last_moved, mem, gaps);
    WEFT_TAKE(state->sums, mem, state->parts);
  }
  WEFT_TRY(find_gaps(state));
  fill(state, em->first);
done:
  return st;
}

/* The moments of the matrix that is filled first, and what the sums of its columns start from. */
static weft_status first_moments(em_space *state)
{
  weft_status st = WEFT_OK;
  WEFT_TRY(weft_pca_cpu.moments(state->ctx, &state->data, state->em->weights, &state->moments));
  for (size_t j = 0; j < state->em->p; j++) {
    const double mean = state->moments.mean[j], norm = state->moments.norm[j], weight = state->moments.weight[j];
    state->mean[j] = mean;
    state->unit[j] = norm > 0 ? norm / sqrt(weight) : mean != 0 ? fabs(mean) : 1;
    state->square[j] = norm > 0 ? weight : 0;
    state->sum[j] = 0;
  }
done:
  return st;
}

static void moments_of_sums(em_space *state)
{
  for (size_t j = 0; j < state->em->p; j++) {
    const double weight = state->moments.weight[j], sum = state->sum[j];
    state->moments.mean[j] = state->mean[j] + state->unit[j] * (sum / weight);
    state->moments.norm[j] = state->unit[j] * sqrt(fmax(0, state->square[j] - sum * (sum / weight)));
  }
}

/* The components of the filled matrix. *read: how often it was. */
static weft_status decompose(em_space *state, double *read)
{
  weft_status st = WEFT_OK;
  const weft_pca_em *em = state->em;
  const weft_pca_cells cells = { em->n, em->p, em->gaps, state->row, state->column, state->starts, state->values };
  const weft_pca_form form = { .center = em->made->center, .factor = em->made->factor, .row = em->row, .refilled = 1 };
  const double passes = state->out->passes;
  if (state->space)
    moments_of_sums(state);
  else
    WEFT_TRY(first_moments(state));
  weft_pca_form_of(em->p, &state->moments, &em->scaling, em->made);
  state->form = form;
  if (state->space)
    WEFT_TRY(state->ops->refill(state->space, &cells));
  else
    WEFT_TRY(state->ops->open(state->ctx, &state->data, &state->form, &state->space));
  WEFT_TRY(weft_pca_in(state->ctx, state->ops, state->space, &state->data, &state->form, &state->inner, state->out));
  *read = state->out->passes;
  state->out->passes += passes;
  memcpy(state->start, state->out->v, em->p * state->inner.k * sizeof *state->start);
  state->inner.start = state->start;
  state->inner.begun = state->inner.filtered != NULL;
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

/* The fits of column j's gaps and their changes: of these the largest, the sum of squares in the units of X, and the
 * fit that is farthest from the column's mean. */
static void fit_column(em_space *state, size_t j)
{
  const weft_pca_em *em = state->em;
  const size_t k = state->inner.k;
  const double unit = em->spread[j] * em->made->factor[j], *loads = state->loads + j * k;
  double change = 0, squares = 0, farthest = 0;
  for (size_t g = state->first[j]; g < state->first[j + 1]; g++) {
    const size_t i = (size_t) state->row[g];
    const double *scores = state->scores + i * k, before = state->values[g]; /* often the fit of the step before */
    double sum = 0;
    for (size_t c = 0; c < k; c++) sum += scores[c] * loads[c];
    state->fit[g] = sum + em->made->center[j];
    state->moved[g] = (state->fit[g] - before) / em->spread[j];
    const double scaled = state->moved[g] * unit * (em->row ? em->row[i] : 1);
    change = fmax(change, fabs(state->moved[g]));
    squares += scaled * scaled;
    farthest = fmax(farthest, fabs(state->fit[g] - state->mean[j]));
  }
  state->of_column[3 * j] = change;
  state->of_column[3 * j + 1] = squares;
  state->of_column[3 * j + 2] = farthest / em->spread[j];
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
  WEFT_PARALLEL_FOR(weft_threads_worth(state->ctx->threads, 2 * (double) n * (double) k), static)
  for (int64_t row = 0; row < (int64_t) n; row++) {
    const size_t i = (size_t) row;
    const double weight = em->row ? em->row[i] : 1;
    if (weight > 0)
      for (size_t c = 0; c < k; c++) state->scores[c + i * k] = state->out->d[c] * state->out->u[i + c * n] / weight;
    else
      project_row(state, i, state->scores + i * k);
  }
  for (size_t first = 0, last; first < p; first = last) {
    const double most = (double) state->first[first] + BETWEEN_POLLS * state->ctx->threads / (double) k;
    for (last = first + 1; last < p && (double) state->first[last + 1] <= most;) last++;
    const double work = (double) (state->first[last] - state->first[first]) * (double) k;
    WEFT_TRY(weft_poll(state->ctx, 0, 0));
    WEFT_PARALLEL_FOR(weft_threads_worth(state->ctx->threads, work), static)
    for (int64_t j = (int64_t) first; j < (int64_t) last; j++) fit_column(state, (size_t) j);
  }
  *change = *squares = 0;
  for (size_t j = 0; j < p; j++) {
    *change = fmax(*change, state->of_column[3 * j]);
    *squares += state->of_column[3 * j + 1];
  }
done:
  return st;
}

/* The root mean square of row i's known values, in spreads of their columns. */
static double reach_of_row(const em_space *state, size_t i)
{
  const weft_pca_em *em = state->em;
  double sum = 0, known = 0;
  for (size_t j = 0; j < em->p; j++) {
    const double value = em->x[i + j * em->n];
    if (isnan(value)) continue;
    const double scaled = (value - state->mean[j]) / em->spread[j];
    sum += scaled * scaled;
    known++;
  }
  return sqrt(sum / fmax(1, known));
}

/* Whether a fit is out of all proportion to the known values of its row and column. Such a fit mostly has no end: a
 * component that is nearly one gap alone costs no observed square, and the longer it is, the better its small rest fits
 * the known values of the gap's row and column. Their squares then have an infimum that no fit reaches. */
static int runs_away(const em_space *state)
{
  const weft_pca_em *em = state->em;
  for (size_t j = 0; j < em->p; j++) {
    if (state->of_column[3 * j + 2] <= TOO_FAR) continue;
    for (size_t g = state->first[j]; g < state->first[j + 1]; g++) {
      const double far = fabs(state->fit[g] - state->mean[j]) / (TOO_FAR * em->spread[j]);
      if (far <= 1) continue;
      const double reach = reach_of_row(state, (size_t) state->row[g]);
      if (far > fmax(1, reach * reach)) return 1;
    }
  }
  return 0;
}

/* ---- acceleration ---- */

static size_t place(const em_space *state, size_t age) { return (state->newest + state->depth - age) % state->depth; }

/* a'b, in eight sums. */
static double inner_product(size_t count, const float *a, const double *b)
{
  double sum[8] = { 0 };
  size_t i = 0;
  for (; i + 8 <= count; i += 8)
    for (size_t lane = 0; lane < 8; lane++) sum[lane] += (double) a[i + lane] * b[i + lane];
  for (; i < count; i++) sum[i % 8] += (double) a[i] * b[i];
  return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

/* One part's differences from the step before, and what their products add up to. */
static void remember_part(em_space *state, size_t part)
{
  const size_t gaps = state->em->gaps, first = part * PART, count = gaps - first < PART ? gaps - first : PART;
  const double *fit = state->fit + first, *moved = state->moved + first;
  double *last_fit = state->last_fit + first, *last_moved = state->last_moved + first, change[PART];
  float *fits = state->by_fit + state->newest * gaps + first, *moves = state->by_moved + state->newest * gaps + first;
  part_sums *sums = &state->sums[part];
  memset(sums, 0, sizeof *sums);
  for (size_t g = 0; g < count && state->known; g++) {
    const double by = (fit[g] - last_fit[g]) / state->em->spread[state->column[first + g]];
    change[g] = moved[g] - last_moved[g];
    const double filled = by - change[g];
    sums->filled += filled * filled;
    fits[g] = (float) by, moves[g] = (float) change[g];
  }
  for (size_t i = 0; i < state->used; i++) {
    const float *earlier = state->by_moved + i * gaps + first;
    sums->with_newest[i] = inner_product(count, earlier, change);
    sums->with_moved[i] = inner_product(count, earlier, moved);
  }
  memcpy(last_fit, fit, count * sizeof *fit);
  memcpy(last_moved, moved, count * sizeof *moved);
}

/* The step joins the differences, which are kept as floats: their combination is an offer that the next step tries. */
static weft_status remember(em_space *state)
{
  weft_status st = WEFT_OK;
  double filled = 0, *newest = state->products + state->newest * DEPTH;
  if (state->known) {
    state->newest = state->used ? (state->newest + 1) % state->depth : 0;
    if (state->used < state->depth) state->used++;
    newest = state->products + state->newest * DEPTH;
    memset(newest, 0, DEPTH * sizeof *newest);
  }
  memset(state->with_moved, 0, sizeof state->with_moved);
  const size_t at_once = (size_t) (BETWEEN_POLLS / PART) + 1;
  for (size_t first = 0; first < state->parts; first += at_once) {
    const size_t last = state->parts - first < at_once ? state->parts : first + at_once;
    WEFT_TRY(weft_poll(state->ctx, 0, 0));
    WEFT_PARALLEL_FOR(weft_threads_worth(state->ctx->threads, (double) (last - first) * PART * 8), static)
    for (int64_t part = (int64_t) first; part < (int64_t) last; part++) remember_part(state, (size_t) part);
  }
  for (size_t part = 0; part < state->parts && state->known; part++) {
    filled += state->sums[part].filled;
    for (size_t i = 0; i < state->used; i++) {
      newest[i] += state->sums[part].with_newest[i];
      state->with_moved[i] += state->sums[part].with_moved[i];
    }
  }
  if (state->known) {
    for (size_t i = 0; i < state->used; i++) state->products[state->newest + i * DEPTH] = newest[i];
    state->part = fmin(1, FADES * state->part);
    if (filled > 0) state->part = fmin(state->part, sqrt(newest[state->newest] / filled));
  }
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
 * that newer ones nearly give are left out. Returns how many there are. */
static size_t coefficients(const em_space *state, double *c)
{
  double l[DEPTH][DEPTH], length[DEPTH];
  size_t count = 0;
  for (; count < state->used; count++) {
    const size_t at = place(state, count);
    double rest = 1;
    length[count] = sqrt(state->products[at + at * DEPTH]);
    if (!(length[count] > 0 && isfinite(length[count]))) break;
    c[count] = state->with_moved[at] / length[count];
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

static void add_difference(size_t count, double *sum, double by, const float *difference)
{
  WEFT_SIMD_PRAGMA(omp simd)
  for (size_t g = 0; g < count; g++) sum[g] += by * (double) difference[g];
}

/* The gaps' fits, from which the combination of differences is taken. */
static weft_status extrapolate(em_space *state)
{
  weft_status st = WEFT_OK;
  const size_t gaps = state->em->gaps;
  double c[DEPTH];
  const size_t count = coefficients(state, c);
  const size_t at_once = PART * ((size_t) (BETWEEN_POLLS / PART) / (count + 1) + 1);
  for (size_t begin = 0; begin < gaps; begin += at_once) {
    const size_t end = gaps - begin < at_once ? gaps : begin + at_once;
    const int64_t parts = (int64_t) ((end - begin + PART - 1) / PART);
    WEFT_TRY(weft_poll(state->ctx, 0, 0));
    WEFT_PARALLEL_FOR(weft_threads_worth(state->ctx->threads, 0.5 * (double) ((end - begin) * count)), static)
    for (int64_t part = 0; part < parts; part++) {
      const size_t first = begin + (size_t) part * PART, here = end - first < PART ? end - first : PART;
      double by[PART] = { 0 };
      for (size_t i = 0; i < count; i++) add_difference(here, by, c[i], state->by_fit + place(state, i) * gaps + first);
      for (size_t g = 0; g < here; g++) state->fit[first + g] -= by[g] * state->em->spread[state->column[first + g]];
    }
  }
done:
  return st;
}

/* ---- the iteration ---- */

/* From now on components are found on a Gram matrix that follows the gaps, where the last step read X so often that
 * this takes less. */
static weft_status choose_squares(em_space *state, weft_arena *mem, double read)
{
  weft_status st = WEFT_OK;
  const weft_pca_em *em = state->em;
  const size_t k = state->inner.k;
  if (state->inner.filtered || read < TOO_LONG || em->p > em->n || k > WEFT_PCA_FILTER_K || !state->starts) return st;
  if (em->p < WEFT_PCA_EM_SQUARES || em->p > WEFT_PCA_EM_MAX_SQUARES) return st;
  if ((double) em->gaps > WEFT_PCA_EM_SHARE * (double) em->n * (double) em->p) return st;
  WEFT_TAKE(state->inner.filtered, mem, em->p * weft_pca_filter_width(k));
  state->inner.method = WEFT_PCA_GRAM;
  state->inner.uncorrected = 1;
done:
  return st;
}

weft_status weft_pca_by_em(weft_ctx *ctx, const weft_pca_ops *ops, const weft_pca_em *em, const weft_pca_job *job,
                           weft_pca_result *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  em_space state = { .ctx = ctx, .ops = ops, .em = em, .inner = *job, .out = out };
  const weft_pca_data data = { .n = em->n, .p = em->p, .panels = 1, .fetch = fetch, .source = &state, .stays = 1 };
  double before = INFINITY, change = INFINITY, unit = 0;
  size_t steps = 0, resting = 0, rest = 1;
  const double *fits = NULL;
  int extrapolated = 0, exact = 0, converged = 0, away = 0;
  state.data = data;
  state.inner.tol = 1e-3;
  state.part = 1;
  state.inner.block = (job->k + 10) / 8 * 8;
  out->passes = 0;
  WEFT_TRY(open_em(&state, &mem));
  while (!converged && steps < job->max_iterations) {
    double squares, left, read;
    WEFT_TRY(weft_poll(ctx, (double) steps, (double) job->max_iterations));
    WEFT_TRY(decompose(&state, &read));
    if (steps) WEFT_TRY(choose_squares(&state, &mem, read)); /* the first step began at random */
    WEFT_TRY(fit_gaps(&state, &change, &squares));
    if (!steps++) unit = em->made->exponent;
    const double into = pow(4, em->made->exponent - unit); /* the units of the first step */
    left = em->made->total - squares;
    for (size_t i = 0; i < job->k; i++) left -= out->d[i] * out->d[i];
    left *= into;
    const int small = change <= job->tol && state.inner.tol <= fmax(job->tol, 1e-10);
    if (extrapolated && !small && left > before + 1e-13 * em->made->total * into) {
      fill(&state, state.last_fit);
      forget(&state);
      resting = rest;
      if (rest < LONGEST_REST) rest *= 2;
      extrapolated = 0;
      continue;
    }
    extrapolated = 0;
    fits = state.fit;
    if (em->fall >= 0 && !small && before - left <= em->fall * left) break;
    if ((away = state.depth && runs_away(&state))) break;
    before = left;
    if (state.depth) {
      if (exact) forget(&state); /* its differences are by other vectors */
      WEFT_TRY(remember(&state));
      fits = state.last_fit; /* the others may become a combination */
      if (state.used && (small || (!resting && change < NEAR))) {
        WEFT_TRY(extrapolate(&state));
        extrapolated = 1;
      }
      if (resting) resting--;
    }
    if (small && (exact || !state.depth || (state.used && change <= AHEAD * job->tol * state.part))) {
      if ((converged = !state.inner.uncorrected)) break;
      state.inner.uncorrected = extrapolated = 0; /* one more step, for exact vectors */
      exact = 1;
    } else
      exact = 0;
    fill(&state, state.fit);
    state.inner.tol = fmax(1e-10, fmin(state.inner.tol, 0.01 * change)); /* no more exact than the gaps are */
  }
  if (fits) memcpy(em->cells, fits, em->gaps * sizeof *fits);
  for (size_t i = 0; i < job->k; i++) {
    out->iterations[i] = (int32_t) steps;
    out->converged[i] = converged;
    out->residual[i] = away ? INFINITY : change;
  }
done:
  if (state.space) ops->close(state.space);
  weft_arena_end(&mem);
  return st;
}
