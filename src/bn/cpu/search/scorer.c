/* Scoring single families for a search of many nodes; see search.h. */
#include <string.h>
#include "bn/cpu/search/gauss.h"
#include "bn/cpu/search/grow_shrink_trees.h"
#include "bn/cpu/search/scorer.h"
#include "bn/cpu/table/set_terms.h"

/* Makes one scorer a thread in `mem`; penalties and counts of required parents are shared by all. */
weft_status weft_bn_scorers_make(weft_arena *mem, weft_bn_ready *ready, weft_bn_scorer *out)
{
  weft_status st = WEFT_OK;
  const weft_bn_problem *problem = ready->problem;
  const size_t p = problem->p;
  double *penalty;
  size_t *required;
  WEFT_TAKE(penalty, mem, p);
  WEFT_TAKE(required, mem, p);
  for (size_t i = 0; i < p; i++) {
    penalty[i] = weft_bn_penalty(problem, i) * ready->unit;
    required[i] = weft_bn_required(problem, i);
  }
  for (size_t t = 0; t < problem->threads; t++) {
    weft_bn_scorer *scorer = &out[t];
    *scorer = (weft_bn_scorer){ .ready = ready, .penalty = penalty, .required_count = required, .thread = (int) t };
    if (problem->levels) scorer->configurations = (double) problem->n / problem->completions;
    WEFT_TRY(weft_bn_bench_make(mem, ready, &scorer->bench));
    WEFT_TAKE(scorer->more, mem, p);
    WEFT_TAKE(scorer->value, mem, p);
    WEFT_TAKE(scorer->grown, mem, p);
    WEFT_TAKE(scorer->branch, mem, p);
    if (weft_bn_gauss(problem)) WEFT_TAKE(scorer->row, mem, (WEFT_BN_MAX_PARENTS + 3) * (p + WEFT_BN_GAUSS_LANES));
    if (weft_bn_gauss(problem) && p < WEFT_BN_FEW_NODES) WEFT_TAKE(scorer->whole, mem, p * p);
  }
done:
  return st;
}

size_t weft_bn_required_of(const weft_bn_problem *problem, size_t i, size_t *out)
{
  size_t m = 0;
  for (size_t v = 0; v < problem->p && problem->required; v++)
    if (problem->required[i + problem->p * v]) out[m++] = v;
  return m;
}

/* What is read of the scatter matrix is put side by side first. */
static void extend_gauss(weft_bn_scorer *scorer, size_t i, const size_t *parents, size_t m, const size_t *more,
                         size_t count, int64_t *out)
{
  const weft_bn_problem *problem = scorer->ready->problem;
  const size_t p = problem->p, group = (size_t) problem->group[i], width = count + WEFT_BN_GAUSS_LANES;
  const weft_bn_covariances covariances = { problem->scatter + group * p * p, p, i, group };
  const double *row[WEFT_BN_MAX_PARENTS + 1];
  double *left = scorer->row + m * width, *cross = left + width;
  for (size_t j = 0; j <= m; j++) {
    const double *from = covariances.matrix + (j < m ? parents[j] : i) * p;
    double *to = j < m ? scorer->row + j * width : cross;
    for (size_t k = 0; k < count; k++) to[k] = from[more[k]];
    row[j] = to;
  }
  for (size_t k = 0; k < count; k++) left[k] = covariances.matrix[more[k] * p + more[k]];
  for (size_t k = count; k < width; k++) left[k] = cross[k] = 0;
  weft_bn_gauss_extend(scorer->ready, covariances, parents, m, row, left, cross, count, out);
}

/* Scores without a penalty rise again where parents separate all rows: of sets with more configurations than rows they
 * say nothing. */
static void leave_out_rich(const weft_bn_scorer *scorer, size_t i, const size_t *parents, size_t m, const size_t *more,
                           size_t count, int64_t *out)
{
  const int32_t *levels = scorer->ready->problem->levels;
  double configurations = 1;
  if (m + 1 <= scorer->required_count[i] || scorer->penalty[i] > 0) return;
  for (size_t j = 0; j < m; j++) configurations *= levels[parents[j]];
  for (size_t k = 0; k < count; k++)
    if (configurations * levels[more[k]] > scorer->configurations) out[k] = WEFT_BN_NEVER;
}

/* Counts or factors the set once for all of `more`, then adds each set's share: penalty, prior and required parents. */
void weft_bn_scorer_extend(weft_bn_scorer *scorer, size_t i, const size_t *parents, size_t m, const size_t *more,
                           size_t count, int64_t *out)
{
  weft_bn_share base = weft_bn_share_begin(scorer->required_count[i]);
  scorer->scored += (double) count;
  if (weft_bn_gauss(scorer->ready->problem))
    extend_gauss(scorer, i, parents, m, more, count, out);
  else
    weft_bn_extend(scorer->ready, scorer->thread, &scorer->bench, i, parents, m, more, count, out);
  for (size_t j = 0; j < m; j++) weft_bn_share_add(scorer->ready, i, parents[j], scorer->penalty[i], &base);
  for (size_t k = 0; k < count; k++) {
    weft_bn_share with = base;
    weft_bn_share_add(scorer->ready, i, more[k], scorer->penalty[i], &with);
    const int64_t share = weft_bn_share_of(with, scorer->penalty[i]);
    out[k] = share == WEFT_BN_NEVER ? WEFT_BN_NEVER : out[k] + share;
  }
  if (scorer->configurations > 0) leave_out_rich(scorer, i, parents, m, more, count, out);
}

int64_t weft_bn_scorer_value(weft_bn_scorer *scorer, size_t i, const size_t *parents, size_t m)
{
  int64_t value;
  if (m) {
    weft_bn_scorer_extend(scorer, i, parents, m - 1, parents + m - 1, 1, &value);
    return value;
  }
  const int64_t share = weft_bn_set_share(scorer->ready, i, parents, 0, scorer->required_count[i], scorer->penalty[i]);
  scorer->scored++;
  return share == WEFT_BN_NEVER ? WEFT_BN_NEVER
                                : weft_bn_alone(scorer->ready, scorer->thread, &scorer->bench, i) + share;
}

/* ---- among a node's candidates, which are named by their places in its list ---- */

static int64_t shares_of(const int64_t *share, const size_t *at, size_t m)
{
  int64_t all = 0;
  for (size_t j = 0; j < m; j++) all += share[at[j]];
  return all;
}

static void names_of(const weft_bn_near *near, size_t i, const size_t *at, size_t m, size_t *out)
{
  for (size_t j = 0; j < m; j++) out[j] = (size_t) near->node[near->start[i] + at[j]];
}

/* With covariances at hand the Gaussian score reads them as they are; otherwise the places are turned into nodes
 * first. out has one value for each candidate of i. */
void weft_bn_scorer_near(weft_bn_scorer *scorer, const weft_bn_near *near, size_t i, const size_t *at, size_t m,
                         int64_t *out)
{
  const size_t from = near->start[i], count = near->start[i + 1] - from;
  if (near->covariance) {
    const int64_t *share = near->share + from, base = shares_of(share, at, m);
    const weft_bn_covariances covariances = weft_bn_near_covariances(near, scorer->ready->problem, i);
    const double *row[WEFT_BN_MAX_PARENTS + 1];
    for (size_t j = 0; j < m; j++) row[j] = covariances.matrix + at[j] * covariances.stride;
    weft_bn_gauss_extend(scorer->ready, covariances, at, m, row, covariances.matrix + (count + 1) * covariances.stride,
                         covariances.matrix + count * covariances.stride, count, out);
    for (size_t k = 0; k < count; k++) out[k] += base + share[k];
    scorer->scored += (double) (count - m);
  } else {
    size_t set[WEFT_BN_MAX_PARENTS + 1], more = 0, j = 0;
    names_of(near, i, at, m, set);
    for (size_t k = 0; k < count; k++) {
      if (j < m && at[j] == k)
        j++;
      else
        scorer->more[more++] = (size_t) near->node[from + k];
    }
    weft_bn_scorer_extend(scorer, i, set, m, scorer->more, more, scorer->value);
    for (size_t k = count, of = m; k-- > 0;) {
      if (of && at[of - 1] == k)
        of--;
      else
        out[k] = scorer->value[k - of];
    }
  }
  for (size_t j = 0; j < m; j++) out[at[j]] = WEFT_BN_NEVER;
}

/* out[k]: score of i without the k-th of its m parents, which are places among its candidates. */
void weft_bn_scorer_without(weft_bn_scorer *scorer, const weft_bn_near *near, size_t i, const size_t *at, size_t m,
                            int64_t *out)
{
  if (near->covariance) {
    const int64_t *share = near->share + near->start[i], base = shares_of(share, at, m);
    weft_bn_gauss_without(scorer->ready, weft_bn_near_covariances(near, scorer->ready->problem, i), at, m, out);
    for (size_t k = 0; k < m; k++) out[k] += base - share[at[k]];
    scorer->scored += (double) m;
    return;
  }
  size_t set[WEFT_BN_MAX_PARENTS + 1], rest[WEFT_BN_MAX_PARENTS + 1];
  names_of(near, i, at, m, set);
  for (size_t k = 0; k < m; k++) {
    memcpy(rest, set, k * sizeof *rest);
    memcpy(rest + k, set + k + 1, (m - k - 1) * sizeof *rest);
    out[k] = weft_bn_scorer_value(scorer, i, rest, m - 1);
  }
}
