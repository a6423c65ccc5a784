/* What a parent set adds to its raw score: penalty, prior, required parents; and by how much a subset must be better
 * for the set to be dropped. */
/* Build: shared. */
#include <math.h>
#include "bn/cpu/table/set_terms.h"

double weft_bn_penalty(const weft_bn_problem *problem, size_t i)
{
  double rows = (double) problem->n;
  if (problem->set)
    for (size_t r = 0; r < problem->n; r++) rows -= problem->set[i * problem->n + r] != 0;
  const double each = weft_bn_penalty_of(problem->score, rows / problem->completions);
  return each > 0 ? each * (problem->levels[i] - 1) : 0; /* Gaussian nodes have no levels, and no penalty */
}

/* What parent `v` of `i` adds by itself. */
int64_t weft_bn_edge_share(const weft_bn_ready *ready, size_t i, size_t v)
{
  const weft_bn_problem *problem = ready->problem;
  return problem->edge_prior ? (int64_t) rint(problem->edge_prior[i + problem->p * v] * ready->unit) : 0;
}

static int is_required(const weft_bn_problem *problem, size_t i, size_t v)
{
  return problem->required && problem->required[i + problem->p * v];
}

size_t weft_bn_required(const weft_bn_problem *problem, size_t i)
{
  size_t count = 0;
  for (size_t v = 0; v < problem->p; v++) count += (size_t) is_required(problem, i, v);
  return count;
}

weft_bn_share weft_bn_share_begin(size_t required) { return (weft_bn_share){ .lacking = required, .q = 1 }; }

void weft_bn_share_add(const weft_bn_ready *ready, size_t i, size_t v, double penalty, weft_bn_share *share)
{
  share->edges += weft_bn_edge_share(ready, i, v);
  share->lacking -= (size_t) is_required(ready->problem, i, v);
  if (penalty > 0) share->q *= ready->problem->levels[v];
}

int64_t weft_bn_set_share(const weft_bn_ready *ready, size_t i, const size_t *parents, size_t m, size_t required,
                          double penalty)
{
  weft_bn_share share = weft_bn_share_begin(required);
  for (size_t j = 0; j < m; j++) weft_bn_share_add(ready, i, parents[j], penalty, &share);
  return weft_bn_share_of(share, penalty);
}

/* Scores that are equal mathematically may differ by the rounding of their joint values. */
#define TIE_UNITS 8

int64_t weft_bn_slack(const weft_bn_ready *ready)
{
  const double nats = ready->problem->slack;
  if (!(nats > 0)) return -TIE_UNITS;
  return nats < 1e6 ? (int64_t) rint(nats * ready->unit) : -2 * WEFT_BN_NEVER;
}
