/* .Call entry points of column_facts.h. `x` is a double matrix. */
#include "core/data/column_facts.h"
#include "core/r/glue.h"
#include "core/r/record.h"

typedef struct {
  const double *x, *center, *scale;
  size_t n, p;
  weft_column_facts facts;
  double *median, *deviation, *rows;
  int finite;
} facts_job;

static facts_job job_of(SEXP x)
{
  return (facts_job){ .x = REAL_RO(x), .n = (size_t) Rf_nrows(x), .p = (size_t) Rf_ncols(x) };
}

WEFT_WORK(find_facts, facts_job, weft_column_facts_find(ctx, job->x, job->n, job->p, &job->facts))

/* list(missing, infinite, least, greatest, same, few): a value per column; the last two are NULL without `same`. */
SEXP C_weft_column_facts(SEXP x, SEXP same, SEXP control)
{
  facts_job job = job_of(x);
  SEXP out = PROTECT(WEFT_NAMED_LIST("missing", "infinite", "least", "greatest", "same", "few"));
  const R_xlen_t p = (R_xlen_t) job.p;
  job.facts.missing = INTEGER(weft_result_put(out, "missing", Rf_allocVector(INTSXP, p)));
  job.facts.infinite = INTEGER(weft_result_put(out, "infinite", Rf_allocVector(INTSXP, p)));
  job.facts.least = REAL(weft_result_put(out, "least", Rf_allocVector(REALSXP, p)));
  job.facts.greatest = REAL(weft_result_put(out, "greatest", Rf_allocVector(REALSXP, p)));
  if (Rf_asLogical(same)) {
    job.facts.same = INTEGER(weft_result_put(out, "same", Rf_allocVector(INTSXP, p)));
    job.facts.few = LOGICAL(weft_result_put(out, "few", Rf_allocVector(LGLSXP, p)));
  }
  WEFT_RUN_RETURN(out, control, find_facts, &job);
}

WEFT_WORK(medians, facts_job, weft_column_medians(ctx, job->x, job->n, job->p, job->median, job->deviation))

/* list(median, mad) of a matrix with rows and without missing values. */
SEXP C_weft_column_medians(SEXP x, SEXP control)
{
  facts_job job = job_of(x);
  SEXP out = PROTECT(WEFT_NAMED_LIST("median", "mad"));
  job.median = REAL(weft_result_put(out, "median", Rf_allocVector(REALSXP, (R_xlen_t) job.p)));
  job.deviation = REAL(weft_result_put(out, "mad", Rf_allocVector(REALSXP, (R_xlen_t) job.p)));
  WEFT_RUN_RETURN(out, control, medians, &job);
}

WEFT_WORK(row_squares, facts_job, weft_row_squares(ctx, job->x, job->n, job->p, job->center, job->scale, job->rows))

/* A value for each row; center and scale: doubles, one for each column. */
SEXP C_weft_row_squares(SEXP x, SEXP center, SEXP scale, SEXP control)
{
  facts_job job = job_of(x);
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t) job.n));
  job.center = REAL_RO(center);
  job.scale = REAL_RO(scale);
  job.rows = REAL(out);
  WEFT_RUN_RETURN(out, control, row_squares, &job);
}

WEFT_WORK(look, facts_job, weft_all_finite(ctx, job->x, job->n * job->p, &job->finite))

SEXP C_weft_all_finite(SEXP x, SEXP control)
{
  facts_job job = { .x = REAL_RO(x), .n = (size_t) XLENGTH(x), .p = 1 };
  weft_glue_run(control, look, &job);
  return Rf_ScalarLogical(job.finite);
}
