/* .Call entry points of cutting numeric columns into bins. */
#include <string.h>
#include "mi/r/glue.h"

typedef struct {
  weft_bins_job job;
  size_t max_cuts;
  double *cuts;
  int32_t *counts;
  weft_arena *held;
} cuts_job;

static weft_status find_cuts(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  cuts_job *job = data;
  weft_status st = WEFT_OK;
  (void) backend;
  WEFT_TAKE(job->cuts, job->held, job->job.p * job->max_cuts);
  st = weft_mi_cuts(ctx, &job->job, job->max_cuts, job->cuts, job->counts);
done:
  return st;
}

/* A list of p vectors of cut points. how: list(method, bins). class_codes: integers from 0, NA where the row does not
 * count. */
SEXP C_weft_mi_cuts(SEXP x, SEXP how, SEXP class_codes, SEXP class_levels, SEXP control)
{
  weft_record given = weft_record_open(how, "how");
  const weft_bins_method method =
      (weft_bins_method) weft_record_kind(&given, "method", weft_bins_names, WEFT_BINS_METHODS);
  const size_t bins = weft_record_size(&given, "bins");
  weft_record_close(&given);
  const int by_class = weft_bins_kind_of(method)->way != WEFT_BINS_BY_FREQUENCY;
  const size_t n = (size_t) Rf_nrows(x), p = (size_t) Rf_ncols(x);
  int32_t *counts = (int32_t *) R_alloc(p, sizeof *counts);
  weft_arena *held;
  SEXP holder = PROTECT(weft_glue_arena(&held));
  cuts_job job = { { n, p, REAL(x), method, bins, by_class ? weft_mi_class_codes(class_codes) : NULL,
                     by_class ? (uint32_t) Rf_asInteger(class_levels) : 0 },
                   by_class ? n : bins,
                   NULL,
                   counts,
                   held };
  weft_glue_run(control, find_cuts, &job);
  SEXP out = PROTECT(Rf_allocVector(VECSXP, (R_xlen_t) p));
  for (size_t j = 0; j < p; j++) {
    SEXP cuts = Rf_allocVector(REALSXP, counts[j]);
    SET_VECTOR_ELT(out, (R_xlen_t) j, cuts);
    if (counts[j]) memcpy(REAL(cuts), job.cuts + j * job.max_cuts, (size_t) counts[j] * sizeof(double));
  }
  weft_glue_arena_end(holder);
  UNPROTECT(2);
  return out;
}

typedef struct {
  size_t n, p;
  const double *x, *cuts, *starts;
  int32_t *codes;
} cut_job;
WEFT_WORK(cut_values, cut_job, weft_mi_cut(ctx, job->n, job->p, job->x, job->cuts, job->starts, job->codes))

/* An integer matrix of bins from 1. cuts: all columns' one after another; starts: where each begins, from 0, and the
 * end. */
SEXP C_weft_mi_cut(SEXP x, SEXP cuts, SEXP starts, SEXP control)
{
  SEXP out = PROTECT(weft_glue_matrix(INTSXP, Rf_nrows(x), Rf_ncols(x)));
  cut_job job = { (size_t) Rf_nrows(x), (size_t) Rf_ncols(x), REAL(x), REAL(cuts), REAL(starts), INTEGER(out) };
  WEFT_RUN_RETURN(out, control, cut_values, &job);
}
