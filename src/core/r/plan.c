/* Plans for R: its questions and the answers; see plan.h. */
#include <string.h>
#include "core/r/plan.h"
#include "core/r/record.h"

void weft_plan_sizes(SEXP sizes, const char *const *names, int count, double *out)
{
  const SEXP given = Rf_getAttrib(sizes, R_NamesSymbol);
  for (int k = 0; k < count; k++) out[k] = 0;
  for (R_xlen_t i = 0; i < Rf_xlength(sizes); i++) {
    const char *name = CHAR(STRING_ELT(given, i));
    const SEXP value = VECTOR_ELT(sizes, i);
    int at = 0;
    while (at < count && strcmp(names[at], name)) at++;
    if (at == count || Rf_xlength(value) != 1 || !(Rf_isNumeric(value) || Rf_isLogical(value)))
      weft_glue_fail(WEFT_ERR_INTERNAL, "A plan was asked for with a size `%s` that is unknown or no number.", name);
    out[at] = Rf_asReal(value);
  }
}

weft_slowness weft_plan_slowness(SEXP slowness)
{
  weft_slowness out;
  if (TYPEOF(slowness) != REALSXP || (size_t) Rf_xlength(slowness) * sizeof(double) != sizeof out)
    weft_glue_fail(WEFT_ERR_INTERNAL, "A plan needs a number for each rate.");
  memcpy(&out, REAL(slowness), sizeof out);
  return out;
}

/* As plan.h says; an engine that is not there is NA. */
SEXP weft_plan_result(const weft_plan *plan)
{
  SEXP out = PROTECT(
      WEFT_NAMED_LIST("cpu", "cuda", "bytes", "bytes_cuda", "device_bytes", "beside", "divided", "engine", "stays"));
  const char *const engines[] = { plan->on_cpu, plan->on_device, plan->on_hopper ? plan->on_hopper : plan->on_device },
                    *const where[] = { "cpu", "cuda", "hopper" };
  weft_result_put(out, "cpu", Rf_ScalarReal(plan->cpu));
  weft_result_put(out, "cuda", Rf_ScalarReal(plan->cuda));
  weft_result_put(out, "bytes", Rf_ScalarReal(plan->bytes));
  weft_result_put(out, "bytes_cuda", Rf_ScalarReal(plan->bytes_cuda > 0 ? plan->bytes_cuda : plan->bytes));
  weft_result_put(out, "device_bytes", Rf_ScalarReal(plan->device_bytes));
  weft_result_put(out, "beside", Rf_ScalarReal(plan->beside));
  weft_result_put(out, "divided", Rf_ScalarReal(plan->divided));
  const SEXP engine = weft_result_put(out, "engine", Rf_allocVector(STRSXP, 3));
  const SEXP names = PROTECT(Rf_allocVector(STRSXP, 3));
  for (int k = 0; k < 3; k++) {
    SET_STRING_ELT(engine, k, engines[k] ? Rf_mkChar(engines[k]) : NA_STRING);
    SET_STRING_ELT(names, k, Rf_mkChar(where[k]));
  }
  Rf_setAttrib(engine, R_NamesSymbol, names);
  if (plan->stays) weft_result_put(out, "stays", Rf_mkString(plan->stays));
  UNPROTECT(2);
  return out;
}
