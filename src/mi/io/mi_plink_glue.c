/* .Call entry points of PLINK files. */
#include "../../base/record.h"
#include "../mi_glue.h"

typedef struct { const char *path; size_t n, p; const double *wanted; int32_t *out; } genotypes_job;

static weft_status genotypes(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  genotypes_job *job = data;
  (void) backend;
  return weft_mi_genotypes(ctx, job->path, job->n, job->wanted, job->p, job->out);
}

/* wanted: numbers of variants, from 0. */
SEXP C_weft_mi_genotypes(SEXP path, SEXP n, SEXP wanted, SEXP control)
{
  SEXP out = PROTECT(weft_glue_matrix(INTSXP, Rf_asReal(n), (double) Rf_xlength(wanted)));
  genotypes_job job = { Rf_translateChar(STRING_ELT(path, 0)), (size_t) Rf_asReal(n), (size_t) Rf_xlength(wanted),
                        REAL(wanted), INTEGER(out) };
  weft_glue_run(control, genotypes, &job);
  UNPROTECT(1);
  return out;
}

typedef struct { const weft_column *columns; size_t n, p; double *counts, *hwe; } summary_job;

static weft_status summarise(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  summary_job *job = data;
  (void) backend;
  return weft_mi_genotype_summary(ctx, job->columns, job->n, job->p, job->counts, job->hwe);
}

/* x: what genotype_columns() in R/plink.R makes. list(counts: 4 × variants, hwe: one per variant). */
SEXP C_weft_mi_genotype_summary(SEXP x, SEXP control)
{
  const char *fields[] = { "counts", "hwe", "" };
  const size_t p = weft_glue_ncol(x);
  weft_column *columns = (weft_column *) R_alloc(p, sizeof *columns);
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, fields));
  summary_job job = { columns, weft_glue_nrow(x), p, NULL, NULL };
  job.counts = REAL(weft_result_put(out, "counts", weft_glue_matrix(REALSXP, 4, (double) p)));
  job.hwe = REAL(weft_result_put(out, "hwe", weft_glue_vector(REALSXP, (double) p)));
  weft_glue_columns(x, columns);
  weft_glue_run(control, summarise, &job);
  UNPROTECT(1);
  return out;
}
