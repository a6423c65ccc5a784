/* .Call entry points of greedy selection. */
#include "mi/r/glue.h"

typedef struct {
  weft_mi_data data;
  weft_select_method method;
  size_t k, found;
  int32_t *feature;
  double *score;
} select_job;
WEFT_WORK(select_features, select_job,
          weft_mi_select(ctx, &job->data, job->method, job->k, job->feature, job->score, &job->found))

/* list(feature from 1, score), shorter than k when the selection stopped. how: list(method, k). */
SEXP C_weft_mi_select(SEXP x, SEXP class_codes, SEXP class_levels, SEXP na_level, SEXP how, SEXP control)
{
  weft_record given = weft_record_open(how, "how");
  const weft_select_method method =
      (weft_select_method) weft_record_kind(&given, "method", weft_select_names, WEFT_SELECT_METHODS);
  const size_t limit = weft_record_size(&given, "k");
  weft_record_close(&given);
  const size_t p = weft_glue_ncol(x), n = (size_t) Rf_xlength(class_codes);
  weft_column *columns = (weft_column *) R_alloc(p, sizeof *columns);
  int32_t *feature = (int32_t *) R_alloc(limit, sizeof *feature);
  double *score = (double *) R_alloc(limit, sizeof *score);
  weft_glue_columns(x, columns);
  select_job job = { { n, p, columns, weft_mi_class_codes(class_codes), (uint32_t) Rf_asInteger(class_levels),
                       Rf_asLogical(na_level) },
                     method,
                     limit,
                     0,
                     feature,
                     score };
  weft_glue_run(control, select_features, &job);
  SEXP out = PROTECT(WEFT_NAMED_LIST("feature", "score"));
  int *features = INTEGER(weft_result_put(out, "feature", Rf_allocVector(INTSXP, (R_xlen_t) job.found)));
  double *scores = REAL(weft_result_put(out, "score", Rf_allocVector(REALSXP, (R_xlen_t) job.found)));
  for (size_t i = 0; i < job.found; i++) {
    features[i] = feature[i] + 1;
    scores[i] = score[i];
  }
  UNPROTECT(1);
  return out;
}
