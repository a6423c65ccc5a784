/* Scores of single families, by one thread each; see scorer.c. */
#pragma once

#include "bn/both/joint.h"
#include "bn/cpu/search/near.h"
#include "bn/cpu/search/search.h"

/* One thread's work space for scoring sets. */
typedef struct weft_bn_scorer {
  weft_bn_ready *ready;
  weft_bn_bench bench;
  size_t *more;                  /* p */
  int64_t *value, *grown;        /* p */
  struct weft_bn_branch *branch; /* p */
  double *row;            /* Gaussian: covariances of the candidates with each parent, their own, with the node */
  double *whole;          /* Gaussian, few nodes: p^2, an inverse; NULL elsewhere */
  double *penalty;        /* p: of a configuration of the parents, in units (shared) */
  size_t *required_count; /* p (shared) */
  double configurations;  /* of parents that are not required, at most, for scores without a penalty; 0: any number */
  int thread;
  double scored;
  double swept; /* Gaussian: steps of sweeping matrices, to thin out parents */
} weft_bn_scorer;

weft_status weft_bn_scorers_make(weft_arena *mem, weft_bn_ready *ready, weft_bn_scorer *out);
/* out[k] = score of i with the parents and more[k]; NEVER where there is none. `parents` ascend. */
void weft_bn_scorer_extend(weft_bn_scorer *scorer, size_t i, const size_t *parents, size_t m, const size_t *more,
                           size_t count, int64_t *out);
/* The score of i with m parents, ascending; NEVER where there is none. */
int64_t weft_bn_scorer_value(weft_bn_scorer *scorer, size_t i, const size_t *parents, size_t m);
/* The required parents of i, ascending; returns how many. */
size_t weft_bn_required_of(const weft_bn_problem *problem, size_t i, size_t *out);
/* Scores of i with parents and one more candidate, for each of them (NEVER for those that are parents), and with each
 * parent left out. Parents are places among the candidates of i, ascending. */
void weft_bn_scorer_near(weft_bn_scorer *scorer, const weft_bn_near *near, size_t i, const size_t *at, size_t m,
                         int64_t *out);
void weft_bn_scorer_without(weft_bn_scorer *scorer, const weft_bn_near *near, size_t i, const size_t *at, size_t m,
                            int64_t *out);
