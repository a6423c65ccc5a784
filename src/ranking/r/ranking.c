/* .Call entry points of the ranking room. */
#include "core/r/record.h"
#include "ranking/ranking.h"
#include "ranking/scaling_factors.h"
#include "ranking/shape.h"

/* ---- fits ---- */

typedef struct fit_job {
  weft_ranking_job job;
  weft_ranking_fits out;
} fit_job;
WEFT_WORK(fit_genes, fit_job, weft_ranking_fit(ctx, &job->job, &job->out))

/* model: list(design, tested, weight, line_x, line_y, log_size, contrasts, groups, group, strata, stratum, adjusted,
 * described); see weft_ranking_job. NULL where there is none. */
static weft_ranking_job job_of(SEXP values, SEXP model)
{
  weft_record given = weft_record_open(model, "model");
  SEXP design = weft_record_field(&given, "design"), contrasts = weft_record_field(&given, "contrasts"),
       knots = weft_record_field(&given, "line_x");
  weft_ranking_job job = { .n = (size_t) Rf_nrows(values), .p = (size_t) Rf_ncols(values), .values = REAL_RO(values) };
  const double n = (double) job.n;
  job.k = (size_t) Rf_ncols(design);
  job.design = weft_record_doubles(&given, "design", n * (double) job.k);
  job.tested = weft_record_size(&given, "tested");
  job.weight = weft_record_doubles_or_null(&given, "weight", n);
  job.line.count = (size_t) Rf_xlength(knots);
  job.line.x = weft_record_doubles_or_null(&given, "line_x", WEFT_ANY_LENGTH);
  job.line.y = weft_record_doubles_or_null(&given, "line_y", (double) job.line.count);
  job.log_size = weft_record_doubles_or_null(&given, "log_size", n);
  job.shown = (size_t) Rf_ncols(contrasts);
  job.contrasts = weft_record_doubles(&given, "contrasts", (double) (job.tested * job.shown));
  job.groups = weft_record_size(&given, "groups");
  job.group = weft_record_integers_or_null(&given, "group", n);
  job.strata = weft_record_size(&given, "strata");
  job.stratum = weft_record_integers(&given, "stratum", n);
  job.adjusted = weft_record_flag(&given, "adjusted");
  job.described = weft_record_flag(&given, "described");
  weft_record_close(&given);
  return job;
}

static double *put_numbers(SEXP result, const char *name, size_t length)
{
  return REAL(weft_result_put(result, name, Rf_allocVector(REALSXP, (R_xlen_t) length)));
}

static int *put_integers(SEXP result, const char *name, size_t length)
{
  return INTEGER(weft_result_put(result, name, Rf_allocVector(INTSXP, (R_xlen_t) length)));
}

/* values: a double matrix, samples in rows. A list as weft_ranking_fits; the last four are NULL unless described. */
SEXP C_weft_ranking_fit(SEXP values, SEXP model, SEXP control)
{
  fit_job job = { .job = job_of(values, model) };
  const size_t p = job.job.p;
  SEXP out = PROTECT(WEFT_NAMED_LIST("mean", "variance", "df", "numerator", "estimate", "unscaled", "contrast",
                                     "group_variance", "sample_noise", "sample_shift", "bits", "auc", "ties", "shape"));
  weft_ranking_fits *fits = &job.out;
  fits->mean = put_numbers(out, "mean", p);
  fits->variance = put_numbers(out, "variance", p);
  fits->df = put_numbers(out, "df", p);
  fits->numerator = put_numbers(out, "numerator", p);
  fits->estimate = put_numbers(out, "estimate", p);
  fits->unscaled = put_numbers(out, "unscaled", p);
  fits->contrast = put_integers(out, "contrast", p);
  fits->group_variance =
      REAL(weft_result_put(out, "group_variance", weft_glue_matrix(REALSXP, (double) job.job.groups, (double) p)));
  fits->sample_noise = put_numbers(out, "sample_noise", job.job.n);
  fits->sample_shift = put_numbers(out, "sample_shift", job.job.n);
  if (job.job.described) {
    fits->bits = put_numbers(out, "bits", p);
    fits->auc = put_numbers(out, "auc", p);
    fits->ties = put_integers(out, "ties", p);
    fits->shape = put_numbers(out, "shape", p);
  }
  WEFT_RUN_RETURN(out, control, fit_genes, &job);
}

/* ---- the law of shape ---- */

typedef struct null_job {
  weft_ranking_null null;
  double *statistic, *probability;
} null_job;
WEFT_WORK(null_law, null_job,
          job->probability ? weft_ranking_law(ctx, &job->null, job->statistic, job->probability)
                           : weft_ranking_permuted(ctx, &job->null, job->statistic))

/* null: list(sizes: an integer matrix, groups × strata; draws, key). list(statistic, probability): the exact law, or
 * permutations, where `probability` is NULL. */
SEXP C_weft_ranking_shape(SEXP null, SEXP control)
{
  weft_record given = weft_record_open(null, "null");
  SEXP sizes = weft_record_field(&given, "sizes");
  null_job job = { .null = { .strata = (size_t) Rf_ncols(sizes), .groups = (size_t) Rf_nrows(sizes) } };
  job.null.sizes = weft_record_integers(&given, "sizes", (double) Rf_xlength(sizes));
  job.null.draws = weft_record_size(&given, "draws");
  job.null.key = weft_record_key(&given, "key");
  weft_record_close(&given);
  const size_t cells = weft_ranking_law_size(&job.null);
  SEXP out = PROTECT(WEFT_NAMED_LIST("statistic", "probability"));
  job.statistic = put_numbers(out, "statistic", cells ? cells : job.null.draws);
  if (cells) job.probability = put_numbers(out, "probability", cells);
  WEFT_RUN_RETURN(out, control, null_law, &job);
}

/* ---- scaling factors ---- */

typedef struct factors_job {
  const double *counts;
  size_t n, p;
  double *out;
} factors_job;
WEFT_WORK(factors, factors_job, weft_ranking_factors(ctx, job->counts, job->n, job->p, job->out))

/* counts: a double matrix, samples in rows, each with counts. A factor for each sample. */
SEXP C_weft_ranking_factors(SEXP counts, SEXP control)
{
  SEXP out = PROTECT(Rf_allocVector(REALSXP, Rf_nrows(counts)));
  factors_job job = { REAL_RO(counts), (size_t) Rf_nrows(counts), (size_t) Rf_ncols(counts), REAL(out) };
  WEFT_RUN_RETURN(out, control, factors, &job);
}
