/* .Call entry points of the mutual-information room. */
#include "../base/glue.h"
#include "mi.h"

typedef struct { weft_mi_data data; weft_mi_rank out; } rank_job;

static weft_status rank(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  rank_job *job = data;
  return backend->mi->rank(ctx, &job->data, &job->out);
}

/* x: matrix, list of columns or sparse matrix with n rows; class_codes: integers from 0, NA where the row does not count. */
SEXP C_weft_mi_rank(SEXP x, SEXP class_codes, SEXP class_levels, SEXP na_level, SEXP control)
{
  const char *fields[] = { "mi", "entropy", "class_entropy", "n", "missing", "levels", "class_levels", "" };
  const size_t p = weft_glue_ncol(x), n = (size_t) Rf_xlength(class_codes);
  const int *codes = INTEGER(class_codes);
  weft_column *columns = (weft_column *) R_alloc(p, sizeof *columns);
  uint16_t *classes = (uint16_t *) R_alloc(n, sizeof *classes);
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, fields));
  for (int k = 0; k < 7; k++) SET_VECTOR_ELT(out, k, Rf_allocVector(k < 5 ? REALSXP : INTSXP, (R_xlen_t) p));
  for (size_t i = 0; i < n; i++) classes[i] = codes[i] == NA_INTEGER ? WEFT_NA_U16 : (uint16_t) codes[i];
  weft_glue_columns(x, columns);
  rank_job job = {
    { n, p, columns, classes, (uint32_t) Rf_asInteger(class_levels), Rf_asLogical(na_level) },
    { REAL(VECTOR_ELT(out, 0)), REAL(VECTOR_ELT(out, 1)), REAL(VECTOR_ELT(out, 2)), REAL(VECTOR_ELT(out, 3)),
      INTEGER(VECTOR_ELT(out, 5)), INTEGER(VECTOR_ELT(out, 6)), REAL(VECTOR_ELT(out, 4)) }
  };
  weft_glue_run(control, rank, &job);
  UNPROTECT(1);
  return out;
}
