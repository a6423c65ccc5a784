/* .Call entry points that list the devices of the machine and open them. */
#include <stdio.h>
#include <string.h>
#include "core/device/beside.h"
#include "core/r/record.h"

typedef struct {
  weft_device_info *list;
  int count;
} device_query;

static weft_status list_devices(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  device_query *q = data;
  weft_status st = WEFT_OK;
  for (int i = 0; i < q->count && st == WEFT_OK; i++) st = backend->device->info(ctx, i, &q->list[i]);
  return st;
}

static SEXP words(SEXP out, const char *name, int n) { return weft_result_put(out, name, Rf_allocVector(STRSXP, n)); }

static double *numbers(SEXP out, const char *name, int n)
{
  return REAL(weft_result_put(out, name, Rf_allocVector(REALSXP, n)));
}

/* A list of columns, one element per device. */
SEXP C_weft_devices(SEXP control)
{
  const char *fields[] = { "name",   "capability", "processors", "total", "available",
                           "driver", "runtime",    "built_for",  "" };
  char why[512] = "";
  const weft_backend *b = weft_cuda_backend(CHAR(Rf_asChar(weft_glue_element(control, "libs"))), why, sizeof why);
  const int n = b ? b->device->count(why, sizeof why) : 0;
  device_query q = { n ? (weft_device_info *) R_alloc((size_t) n, sizeof(weft_device_info)) : NULL, n };
  if (n) weft_glue_run(control, list_devices, &q);
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, fields));
  SEXP name = words(out, "name", n), capability = words(out, "capability", n), built_for = words(out, "built_for", n);
  double *processors = numbers(out, "processors", n), *total = numbers(out, "total", n),
         *available = numbers(out, "available", n), *driver = numbers(out, "driver", n),
         *runtime = numbers(out, "runtime", n);
  for (int i = 0; i < n; i++) {
    const weft_device_info *d = &q.list[i];
    char version[24];
    snprintf(version, sizeof version, "%d.%d", d->major, d->minor);
    SET_STRING_ELT(name, i, Rf_mkChar(d->name));
    SET_STRING_ELT(capability, i, Rf_mkChar(version));
    SET_STRING_ELT(built_for, i, Rf_mkChar(d->architectures));
    processors[i] = d->processors, total[i] = d->total, available[i] = d->available;
    driver[i] = d->driver, runtime[i] = d->runtime;
  }
  UNPROTECT(1);
  return out;
}

/* TRUE for each device that this process has opened; as many values as there are devices. */
SEXP C_weft_devices_opened(SEXP libs)
{
  char why[512] = "";
  const weft_backend *b = weft_cuda_backend(CHAR(Rf_asChar(libs)), why, sizeof why);
  const int n = b ? b->device->count(why, sizeof why) : 0;
  SEXP out = PROTECT(Rf_allocVector(LGLSXP, n));
  for (int i = 0; i < n; i++) LOGICAL(out)[i] = b->device->opened(i) != 0;
  UNPROTECT(1);
  return out;
}

/* Gives back what is kept on devices for later calls. */
SEXP C_weft_free_kept(void)
{
  weft_cuda_free_kept();
  return R_NilValue;
}

/* Begins to open devices, numbered from 0, with libraries by their names, and returns at once. */
SEXP C_weft_beside_open(SEXP libs, SEXP devices, SEXP libraries)
{
  static const char *const names[] = { "cublas", "cusolver" }; /* in the order of the bits */
  int with = 0;
  for (R_xlen_t i = 0; i < Rf_xlength(libraries); i++)
    for (int k = 0; k < 2; k++)
      if (!strcmp(CHAR(STRING_ELT(libraries, i)), names[k])) with |= 1 << k;
  for (R_xlen_t i = 0; i < Rf_xlength(devices); i++) weft_beside_open(CHAR(Rf_asChar(libs)), INTEGER(devices)[i], with);
  return R_NilValue;
}

SEXP C_weft_beside_opened(SEXP device) { return Rf_ScalarLogical(weft_beside_opened(Rf_asInteger(device))); }

SEXP C_weft_beside_wait(void)
{
  weft_beside_wait();
  return R_NilValue;
}
