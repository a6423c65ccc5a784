/* .Call entry points for what rules for bandwidths need to know of a column of numbers. */
#include "core/r/record.h"
#include "kernel/r/kernel.h"
#include "kernel/cpu/bandwidth/sample.h"
#include "kernel/cpu/bandwidth/bin.h"

typedef struct {
  weft_binning binning;
  double *bin, *own;
} bin_job;
WEFT_WORK(fill_bins, bin_job, weft_kernel_bin(ctx, &job->binning, job->bin, job->own))

/* list(bin, own): see weft_kernel_bin(). */
SEXP C_weft_kernel_bin(SEXP x, SEXP grid, SEXP control)
{
  weft_record record = weft_record_open(grid, "grid");
  bin_job job = { .binning = { .n = (size_t) XLENGTH(x),
                               .bins = weft_record_size(&record, "bins"),
                               .x = REAL_RO(x),
                               .least = weft_record_number(&record, "least"),
                               .per_bin = weft_record_number(&record, "per_bin") } };
  weft_record_close(&record);
  SEXP out = PROTECT(WEFT_NAMED_LIST("bin", "own"));
  job.bin = REAL(weft_result_put(out, "bin", weft_glue_vector(REALSXP, (double) job.binning.bins)));
  job.own = REAL(weft_result_put(out, "own", Rf_allocVector(REALSXP, 4)));
  WEFT_RUN_RETURN(out, control, fill_bins, &job);
}

typedef struct {
  weft_lags lags;
  double *out;
} lags_job;
WEFT_WORK(sum_lags, lags_job, weft_kernel_lag_sums(ctx, &job->lags, job->out))

/* pairs: by distance, bin by bin; lags: list(bin, reach, order); see weft_kernel_lag_sums(). A number for each h. */
SEXP C_weft_kernel_lag_sums(SEXP pairs, SEXP h, SEXP lags, SEXP control)
{
  weft_record record = weft_record_open(lags, "lags");
  lags_job job = { .lags = { .lags = (size_t) XLENGTH(pairs),
                             .bandwidths = (size_t) XLENGTH(h),
                             .pairs = REAL(pairs),
                             .h = REAL(h),
                             .bin = weft_record_number(&record, "bin"),
                             .reach = weft_record_number(&record, "reach"),
                             .order = (int) weft_record_number(&record, "order") } };
  weft_record_close(&record);
  SEXP out = PROTECT(Rf_allocVector(REALSXP, XLENGTH(h)));
  job.out = REAL(out);
  WEFT_RUN_RETURN(out, control, sum_lags, &job);
}

typedef struct {
  const double *x, *probability;
  size_t n, d, quantiles;
  double *out;
} sample_job;

static weft_status find_deviations(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  sample_job *j = data;
  weft_status st = WEFT_OK;
  (void) backend;
  for (size_t k = 0; k < j->d; k++) WEFT_TRY(weft_kernel_deviation(ctx, j->x + k * j->n, j->n, j->out + k));
done:
  return st;
}

/* Standard deviations of a matrix's columns. */
SEXP C_weft_kernel_deviations(SEXP x, SEXP control)
{
  sample_job job = { .x = REAL_RO(x), .n = (size_t) Rf_nrows(x), .d = (size_t) Rf_ncols(x) };
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t) job.d));
  job.out = REAL(out);
  WEFT_RUN_RETURN(out, control, find_deviations, &job);
}

WEFT_WORK(find_quantiles, sample_job,
          weft_kernel_quantiles(ctx, job->x, job->n, job->probability, job->quantiles, job->out))

/* R: quantiles of x, which has at least one number, all of them finite. */
SEXP C_weft_kernel_quantiles(SEXP x, SEXP probability, SEXP control)
{
  sample_job job = { .x = REAL_RO(x),
                     .n = (size_t) XLENGTH(x),
                     .probability = REAL(probability),
                     .quantiles = (size_t) XLENGTH(probability) };
  SEXP out = PROTECT(Rf_allocVector(REALSXP, XLENGTH(probability)));
  job.out = REAL(out);
  WEFT_RUN_RETURN(out, control, find_quantiles, &job);
}
