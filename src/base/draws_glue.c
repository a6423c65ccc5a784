/* .Call entry point of the draws: what the tests, and nothing else, see of them in R. */
#define R_NO_REMAP
#include <Rinternals.h>
#include <R_ext/Rdynload.h>
#include "draws_fill.h"

typedef weft_status (*fill_function)(weft_ctx *, int, uint64_t, uint32_t, uint64_t, size_t, double, double, double *);

/* A 64-bit number as c(high, low), its 32-bit halves as doubles. */
static uint64_t join_halves(SEXP halves)
{
  return (uint64_t) REAL(halves)[0] << 32 | (uint64_t) REAL(halves)[1];
}

SEXP C_weft_draws(SEXP kind, SEXP n, SEXP a, SEXP b, SEXP key, SEXP stream, SEXP first, SEXP backend, SEXP threads)
{
  weft_memory memory = {0};
  weft_ctx ctx = {0};
  fill_function fill = weft_draws_fill;
  R_xlen_t count = (R_xlen_t) Rf_asReal(n);
  SEXP out = PROTECT(Rf_allocVector(REALSXP, count * weft_draws_width(Rf_asInteger(kind))));
  ctx.threads = Rf_asInteger(threads);
  ctx.memory = &memory;
  if (strcmp(CHAR(Rf_asChar(backend)), "cuda") == 0) {
    fill = (fill_function) R_FindSymbol("weft_draws_fill_cuda", "weft_cuda", NULL);
    if (!fill) Rf_error("the CUDA back end is not loaded");
  }
  if (fill(&ctx, Rf_asInteger(kind), join_halves(key), (uint32_t) Rf_asReal(stream), join_halves(first), (size_t) count,
           Rf_asReal(a), Rf_asReal(b), REAL(out)) != WEFT_OK)
    Rf_error("%s", ctx.message);
  UNPROTECT(1);
  return out;
}
