/* .Call entry points of counts of independent genes. */
#include "core/r/glue.h"
#include "core/r/record.h"
#include "pca/cpu/counts.h"
#include "pca/r/routines.h"

typedef struct {
  const double *x;
  weft_pca_count_model model;
  weft_rng rng;
  double most;
  double *out;
} counts_job;
WEFT_WORK(find_moments, counts_job, weft_pca_counts_moments(ctx, job->x, &job->model, job->out))
WEFT_WORK(find_residuals, counts_job, weft_pca_counts_residuals(ctx, job->x, &job->model, job->most, job->out))
WEFT_WORK(draw_counts, counts_job, weft_pca_counts_draw(ctx, &job->model, job->rng, job->out))

/* The fields depth and share, whose lengths are the shape. */
static void read_means(weft_record *given, weft_pca_count_model *model)
{
  model->n = (size_t) Rf_xlength(weft_record_field(given, "depth"));
  model->p = (size_t) Rf_xlength(weft_record_field(given, "share"));
  model->depth = weft_record_doubles(given, "depth", (double) model->n);
  model->share = weft_record_doubles(given, "share", (double) model->p);
}

/* x: a double matrix of counts. how: list(depth, share). */
SEXP C_weft_pca_counts_moments(SEXP x, SEXP how, SEXP control)
{
  counts_job job = { .x = REAL_RO(x) };
  weft_record given = weft_record_open(how, "how");
  read_means(&given, &job.model);
  weft_record_close(&given);
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t) job.model.p));
  job.out = REAL(out);
  WEFT_RUN_RETURN(out, control, find_moments, &job);
}

/* how: list(depth, share, dispersion, most). */
SEXP C_weft_pca_counts_residuals(SEXP x, SEXP how, SEXP control)
{
  counts_job job = { .x = REAL_RO(x) };
  weft_record given = weft_record_open(how, "how");
  read_means(&given, &job.model);
  job.model.dispersion = weft_record_doubles(&given, "dispersion", (double) job.model.p);
  job.most = weft_record_number(&given, "most");
  weft_record_close(&given);
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, (int) job.model.n, (int) job.model.p));
  job.out = REAL(out);
  WEFT_RUN_RETURN(out, control, find_residuals, &job);
}

/* how: list(depth, share, dispersion, key: a 64-bit number in two halves, stream). */
SEXP C_weft_pca_counts_draw(SEXP how, SEXP control)
{
  counts_job job = { .x = NULL };
  weft_record given = weft_record_open(how, "how");
  read_means(&given, &job.model);
  job.model.dispersion = weft_record_doubles(&given, "dispersion", (double) job.model.p);
  job.rng.key = weft_record_key(&given, "key");
  job.rng.stream = (uint32_t) weft_record_size(&given, "stream");
  weft_record_close(&given);
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, (int) job.model.n, (int) job.model.p));
  job.out = REAL(out);
  WEFT_RUN_RETURN(out, control, draw_counts, &job);
}
