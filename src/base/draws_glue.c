/* .Call entry point of the draws: what the tests, and nothing else, see of them in R. */
#include "draws_fill.h"
#include "glue.h"

typedef struct { int kind; uint64_t key, first; uint32_t stream; size_t n; double a, b, *out; } draws_job;

static weft_status fill(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  draws_job *j = data;
  return backend->draws(ctx, j->kind, j->key, j->stream, j->first, j->n, j->a, j->b, j->out);
}

/* A 64-bit number as c(high, low), its 32-bit halves as doubles. */
static uint64_t join_halves(SEXP halves)
{
  return (uint64_t) REAL(halves)[0] << 32 | (uint64_t) REAL(halves)[1];
}

SEXP C_weft_draws(SEXP kind, SEXP n, SEXP a, SEXP b, SEXP key, SEXP stream, SEXP first, SEXP control)
{
  R_xlen_t count = (R_xlen_t) Rf_asReal(n);
  SEXP out = PROTECT(Rf_allocVector(REALSXP, count * weft_draws_width(Rf_asInteger(kind))));
  draws_job job = { Rf_asInteger(kind), join_halves(key), join_halves(first), (uint32_t) Rf_asReal(stream),
                    (size_t) count, Rf_asReal(a), Rf_asReal(b), REAL(out) };
  weft_glue_run(control, fill, &job);
  UNPROTECT(1);
  return out;
}
