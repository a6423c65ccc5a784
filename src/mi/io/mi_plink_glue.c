/* .Call entry points of PLINK files. */
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
