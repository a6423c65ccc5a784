/* .Call entry points for numeric columns, networks, selection, binning and genotypes. */
#include <string.h>
#include "../base/glue.h"
#include "mi.h"

/* ---- all pairs of numeric columns ---- */

typedef struct { weft_mi_numeric data; double *out; } numeric_job;

static weft_status numeric(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  numeric_job *job = data;
  return backend->mi->numeric(ctx, &job->data, job->out);
}

/* x: double matrix; split: 0, or the number of columns that are compared with the rest. */
SEXP C_weft_mi_numeric(SEXP x, SEXP split, SEXP estimator, SEXP k, SEXP control)
{
  const int n = Rf_nrows(x), p = Rf_ncols(x), first = Rf_asInteger(split);
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, first ? first : p, first ? p - first : p));
  numeric_job job = { { (size_t) n, (size_t) p, REAL(x), (size_t) first, (weft_mi_estimator) Rf_asInteger(estimator),
                        Rf_asInteger(k) }, REAL(out) };
  weft_glue_run(control, numeric, &job);
  UNPROTECT(1);
  return out;
}

/* ---- networks ---- */

typedef struct { weft_network_job job; double *out; } network_job;

static weft_status network(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  network_job *job = data;
  return backend->mi->network(ctx, &job->job, job->out);
}

SEXP C_weft_mi_network(SEXP m, SEXP method, SEXP eps, SEXP keep, SEXP control)
{
  const int p = Rf_nrows(m);
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, p, p));
  network_job job = { { (size_t) p, REAL(m), (weft_network_method) Rf_asInteger(method), Rf_asReal(eps), Rf_asReal(keep) },
                      REAL(out) };
  weft_glue_run(control, network, &job);
  UNPROTECT(1);
  return out;
}
