/* Genes that differ between classes, or change with a number: the interface of the room. Structs in, structs out; no R.
 *
 * Every gene is a column of values, fitted by (weighted) least squares on one design. The empirical Bayes step over all
 * genes is R's (R/ranking-moderate.R): it handles one number per gene. Sources: Smyth (2004) for the model, Law and
 * others (2014) for precision weights, Robinson and Oshlack (2010) for scaling factors. */
#pragma once

#include "core/call/context.h"

/* The number of equal-frequency bins of the information: a middle one, so that spread shows. */
#define WEFT_RANKING_BINS 3

/* A line through `count` knots with increasing x, constant beyond the outer ones: the square root of the residual
 * standard deviation against log2 counts. */
typedef struct weft_ranking_line {
  size_t count;
  const double *x, *y;
} weft_ranking_line;

typedef struct weft_ranking_job {
  size_t n, p;             /* samples, genes */
  const double *values;    /* n × p, column major; NaN is missing */
  size_t k, tested;        /* columns of the design; the last `tested` are the hypothesis */
  const double *design;    /* n × k, of full rank */
  const double *weight;    /* of each sample; NULL: all 1 */
  weft_ranking_line line;  /* precision weights: count is 0 where there are none */
  const double *log_size;  /* with them: a value plus its sample's log_size is a log2 count */
  size_t shown;            /* contrasts of the tested coefficients, of which the clearest is reported */
  const double *contrasts; /* tested × shown */
  size_t groups;           /* levels of the class; 0: the outcome is something else */
  const int32_t *group;    /* of each sample, from 0 */
  size_t strata;           /* batches, at least 1 */
  const int32_t *stratum;  /* of each sample, from 0 */
  int adjusted;            /* the design has more than a constant beside what is tested */
  int described;           /* bits, auc, ties and shape are wanted */
} weft_ranking_job;

/* A value per gene, but where it says otherwise. NaN where a gene cannot be tested. */
typedef struct weft_ranking_fits {
  double *mean;                /* of the values that are there */
  double *variance, *df;       /* residual variance, and its degrees of freedom */
  double *numerator;           /* sum of squares of the hypothesis over `tested`: F times the variance */
  double *estimate, *unscaled; /* the clearest contrast, and its standard error over the residual standard deviation */
  int32_t *contrast;           /* which one, from 0 */
  double *group_variance;      /* groups × p: residual variance of each group; NaN where it has no freedom */
  double *sample_noise;        /* n: sums over genes without gaps of squared studentised residuals */
  double *sample_shift;        /* n: sums over them of residuals over the gene's standard deviation */
  double *bits, *auc;          /* information of the bins about the group; P(second group > first), two groups only */
  int32_t *ties;               /* how many values the commonest one has */
  double *shape;               /* bits that residuals, in bins within each stratum, have about the group */
} weft_ranking_fits;

weft_status weft_ranking_fit(weft_ctx *ctx, const weft_ranking_job *job, const weft_ranking_fits *out);
