/* Pairs of variants whose product says something about an outcome beyond covariates and both variants' own effects:
 * a score of every pair (scan.c), and whole models of the pairs that are kept (refit.c). Works on the CPU. */
#pragma once

#include "mi/mi.h"
#include "mi/scan/variants.h"
#include "mi/search/search.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Row i of the covariates and of the outcome stands multiplied by the root of its weight. `basis` has orthonormal
 * columns, `outcomes` are residuals, orthogonal to it. With weights of a logistic model without variants, and the
 * outcome less its probability, over the root, the score is that of logistic regression. */
typedef struct weft_scan_job {
  weft_variants variants;
  size_t k; /* columns of the basis */
  const double *basis;
  const double *root; /* of each row's weight; in the span of `basis` */
  size_t outcomes;    /* the first one decides what is kept */
  const double *outcome;
  int estimated;       /* the residual variance is estimated for each pair; else it is 1 */
  int genotypes;       /* all combinations of genotypes in place of the product: up to 4 degrees of freedom */
  const uint8_t *side; /* of each variant, as sides() in R/mi-pairs.R has them; NULL: all pairs */
  weft_mi_near near;
  double max_missing; /* genotypes of a variant whose pairs a device may screen */
  size_t top;         /* how many pairs to keep */
  double min_score;   /* of a pair that is kept */
} weft_scan_job;

/* The pairs kept, best first: index i * p + j of variants i < j. greatest: of each outcome over all pairs, -INFINITY
 * without a pair. tested: how many pairs have a score. `found.items` is from `mem`. */
typedef struct weft_scan_found {
  weft_mi_found found;
  double *greatest;
  double tested;
} weft_scan_found;

/* `ops`: of the back end that screens. The scores of what it lets pass are the CPU's, pair by pair. */
weft_status weft_mi_scan(weft_ctx *ctx, const weft_mi_ops *ops, const weft_scan_job *job, weft_arena *mem,
                         weft_scan_found *out);

/* The result of a device's screen: all pairs of variants that both have at most `max_missing` missing genotypes,
 * unless `done` is 0. Every pair that may be among the best `top`, or the best of any outcome, is in `index`, each
 * once. In `unsure` are those of which the CPU has to say whether they have a score; `tested` is without them. */
typedef struct weft_scan_screened {
  int done;
  double tested, max_missing;
  size_t count, unsure_count;
  uint64_t *index, *unsure;
} weft_scan_screened;

static inline int weft_scan_searches(const weft_scan_job *job, size_t i, size_t j)
{
  if (job->side && !((job->side[i] & 1 && job->side[j] & 2) || (job->side[i] & 2 && job->side[j] & 1))) return 0;
  return !weft_mi_is_near(&job->near, i, j);
}

/* Why a pair has no test. */
enum weft_refit_reason {
  WEFT_REFIT_FINE,
  WEFT_REFIT_FEW_ROWS,
  WEFT_REFIT_COLLINEAR, /* the interaction follows from the other terms */
  WEFT_REFIT_ONE_CLASS,
  WEFT_REFIT_SEPARATED, /* no finite maximum of the likelihood */
  WEFT_REFIT_NO_NOISE   /* the model leaves no residuals */
};

typedef struct weft_refit_job {
  weft_variants variants;
  size_t k;
  const double *basis; /* n × k, with orthonormal columns, the constant among what they span */
  const double *y;     /* n; 0 and 1 with `start` */
  const double *start; /* n: linear predictor of the logistic model without variants; NULL: a linear model */
  int genotypes;       /* all combinations of genotypes in place of the product: up to 4 degrees of freedom */
  size_t count;
  const uint32_t *pairs; /* 2 × count */
} weft_refit_job;

/* A value per pair. The statistic is t or z of the product; F, or twice the gain in log-likelihood, of genotypes, which
 * have no estimate. NaN where there is none. */
typedef struct weft_refit_fits {
  double *rows, *estimate, *error, *statistic;
  double *freedom, *residual; /* degrees of freedom of the interaction and of the residuals */
  int32_t *reason;
} weft_refit_fits;

weft_status weft_mi_refit(weft_ctx *ctx, const weft_refit_job *job, const weft_refit_fits *out);

/* On a device; counts: of genotypes, WEFT_VARIANT_CODES for each variant. Memory from `mem`. */
weft_status weft_mi_scan_cuda(weft_ctx *ctx, const weft_scan_job *job, const double *counts, weft_arena *mem,
                              weft_scan_screened *out);

#ifdef __cplusplus
}
#endif
