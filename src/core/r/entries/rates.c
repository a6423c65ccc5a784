/* .Call entry point of weft_calibrate(): the rates of the host, or of the call's device, as named numbers. */
#include "core/r/glue.h"
#include "core/call/rates.h"

typedef struct {
  double *rates;
} rates_job;
WEFT_WORK(measure, rates_job,
          backend->device ? backend->device->rates(ctx, job->rates) : weft_host_rates(ctx, job->rates))

SEXP C_weft_rates(SEXP control)
{
#define NAME(name) #name,
  static const char *const host[] = { WEFT_HOST_RATES(NAME) }, *const device[] = { WEFT_DEVICE_RATES(NAME) };
  const int here = Rf_asChar(weft_glue_element(control, "backend")) == Rf_mkChar("cpu");
  const int count = here ? WEFT_HOST_RATE_COUNT : WEFT_DEVICE_RATE_COUNT;
  SEXP out = PROTECT(Rf_allocVector(REALSXP, count)), names = PROTECT(Rf_allocVector(STRSXP, count));
  rates_job job = { REAL(out) };
  for (int k = 0; k < count; k++) SET_STRING_ELT(names, k, Rf_mkChar(here ? host[k] : device[k]));
  Rf_setAttrib(out, R_NamesSymbol, names);
  weft_glue_run(control, measure, &job);
  UNPROTECT(2);
  return out;
}
