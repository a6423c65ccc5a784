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

/* ---- orthonormal_design.c ---- */

/* Q of `rows` (n × k, overwritten) and R (k × k, upper triangle), by modified Gram-Schmidt. Columns that follow from
 * those before them, up to 1e-7 of their length, become 0 in both. Returns the rank. */
size_t weft_ranking_orthonormal(double *rows, size_t n, size_t k, double *r);
/* Sum of products, in an order that depends on n alone. */
double weft_ranking_dot(const double *x, const double *y, size_t n);

/* ---- values.c ---- */

typedef struct weft_ranking_value {
  double value;
  int32_t group;
} weft_ranking_value;

/* Ascending; equal values stay in order. `other` has room for as many, `ends` for one more. */
void weft_ranking_sort(weft_ranking_value *v, weft_ranking_value *other, int32_t *ends, size_t n);
/* Bits that a table of bins × groups (column major) has about the group. */
double weft_ranking_bits(const int32_t *table, size_t bins, size_t groups);
/* Takes sorted values. `table` has room for WEFT_RANKING_BINS × groups. */
double weft_ranking_bits_of(const weft_ranking_value *v, size_t n, size_t groups, int32_t *table);
double weft_ranking_auc(const weft_ranking_value *v, size_t n);
int32_t weft_ranking_ties(const weft_ranking_value *v, size_t n);

/* ---- shape.c: the law of `shape` when groups are permuted within strata ---- */

typedef struct weft_ranking_null {
  size_t strata, groups;
  const int32_t *sizes; /* groups × strata: samples of each group in each stratum */
  size_t draws;         /* permutations, where the law is not summed */
  uint64_t key;
} weft_ranking_null;

/* How many tables the exact law has, 0 where it would take too long or there are more than two groups. */
size_t weft_ranking_law_size(const weft_ranking_null *null);
/* Statistics and probabilities of that many tables, in no order. */
weft_status weft_ranking_law(weft_ctx *ctx, const weft_ranking_null *null, double *statistic, double *probability);
/* Statistics of `draws` permutations. */
weft_status weft_ranking_permuted(weft_ctx *ctx, const weft_ranking_null *null, double *statistic);

/* ---- scaling_factors.c ---- */

/* Scaling factors of n samples from counts (n × p), whose geometric mean is 1: trimmed means of M-values. */
weft_status weft_ranking_factors(weft_ctx *ctx, const double *counts, size_t n, size_t p, double *factors);
