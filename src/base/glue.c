/* Running work under R: context, polling, retry, conditions, handles; see glue.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "glue.h"
#include "parallel.h"
#include "ranks.h"
#include "simd.h"

static weft_memory memory; /* the account of the whole process */

/* ---- polling ---- */

/* A work function owns memory that R knows nothing of, so no jump may cross its frames. poll_r() catches the interrupt
 * or error, keeps the condition and says "stop"; the work function frees and returns; raise() signals it again. */
typedef struct { SEXP progress, kept; double done, total, every, next; } poll_state;

static SEXP look(void *data)
{
  poll_state *s = data;
  R_CheckUserInterrupt();
  if (s->progress != R_NilValue) {
    SEXP done = PROTECT(Rf_ScalarReal(s->done)), total = PROTECT(Rf_ScalarReal(s->total));
    SEXP call = PROTECT(Rf_lang3(s->progress, done, total));
    Rf_eval(call, R_GlobalEnv);
    UNPROTECT(3);
  }
  return R_NilValue;
}

static SEXP keep(SEXP condition, void *data)
{
  SET_VECTOR_ELT(((poll_state *) data)->kept, 0, condition);
  return R_NilValue;
}

static int poll_r(void *data, double done, double total)
{
  poll_state *s = data;
  double now = weft_seconds();
  if (now < s->next) return 0; /* going into R costs tens of microseconds, more inside an IDE */
  s->next = now + s->every;
  s->done = done;
  s->total = total;
  SEXP classes = PROTECT(Rf_allocVector(STRSXP, 2));
  SET_STRING_ELT(classes, 0, Rf_mkChar("error"));
  SET_STRING_ELT(classes, 1, Rf_mkChar("interrupt"));
  R_tryCatch(look, s, classes, keep, s, NULL, NULL);
  UNPROTECT(1);
  return VECTOR_ELT(s->kept, 0) != R_NilValue;
}

/* ---- running ---- */

SEXP weft_glue_element(SEXP list, const char *name)
{
  SEXP names = Rf_getAttrib(list, R_NamesSymbol);
  for (R_xlen_t i = 0; i < Rf_xlength(names); i++)
    if (!strcmp(CHAR(STRING_ELT(names, i)), name)) return VECTOR_ELT(list, i);
  return R_NilValue;
}

/* Calls weft:::raise_native(status, message, column, condition, control), which does not return. */
static void raise(weft_status st, const weft_ctx *ctx, SEXP condition, SEXP control)
{
  static const char *const names[] = { "ok", "input", "memory", "device", "interrupt", "internal" };
  SEXP package = PROTECT(Rf_mkString("weft"));
  SEXP space = PROTECT(R_FindNamespace(package));
  SEXP status = PROTECT(Rf_mkString(names[st]));
  SEXP message = PROTECT(Rf_ScalarString(Rf_mkCharCE(ctx->message, CE_UTF8)));
  SEXP column = PROTECT(ctx->column < 0 ? Rf_ScalarReal(NA_REAL) : Rf_ScalarReal((double) ctx->column + 1));
  SEXP call = PROTECT(Rf_lang6(Rf_install("raise_native"), status, message, column, condition, control));
  Rf_eval(call, space);
  UNPROTECT(6);
}

void weft_glue_run(SEXP control, weft_work work, void *data)
{
  SEXP kept = PROTECT(Rf_allocVector(VECSXP, 1));
  const weft_backend *backend = weft_cpu_backend();
  char why[512] = "";
  double every = Rf_asReal(weft_glue_element(control, "poll"));
  poll_state poll = { weft_glue_element(control, "progress"), kept, 0, 1, every, weft_seconds() + every };
  const SEXP devices = weft_glue_element(control, "devices"); /* integers, at least one */
  weft_ctx ctx = { poll_r, &poll, Rf_asInteger(weft_glue_element(control, "threads")), INTEGER(devices)[0], INTEGER(devices),
                   (int) Rf_xlength(devices), 0, Rf_asReal(weft_glue_element(control, "device_limit")), &memory, -1, "", NULL, 0 };
  weft_status st = WEFT_OK;
  if (!strcmp(CHAR(Rf_asChar(weft_glue_element(control, "backend"))), "cuda")) {
    backend = weft_cuda_backend(CHAR(Rf_asChar(weft_glue_element(control, "libs"))), why, sizeof why);
    if (!backend) st = weft_fail(&ctx, WEFT_ERR_DEVICE, "%s", why);
  }
  const uint64_t steps = weft_ranks_steps();
  if (st == WEFT_OK) st = work(&ctx, backend, data);
  if (st == WEFT_ERR_MEMORY && weft_ranks_steps() == steps) { /* R may hold garbage: collect it and try once more */
    R_gc();
    ctx.column = -1;
    st = work(&ctx, backend, data);
  }
  if (st != WEFT_OK) raise(st, &ctx, VECTOR_ELT(kept, 0), control);
  UNPROTECT(1);
}

/* ---- memory that outlives a work function ---- */

typedef struct { weft_arena arena; weft_ctx ctx; } held_arena;

void weft_glue_arena_end(SEXP holder)
{
  held_arena *held = R_ExternalPtrAddr(holder);
  if (!held) return;
  weft_arena_end(&held->arena);
  free(held);
  R_ClearExternalPtr(holder);
}

SEXP weft_glue_arena(weft_arena **arena)
{
  SEXP holder = PROTECT(R_MakeExternalPtr(NULL, R_NilValue, R_NilValue));
  R_RegisterCFinalizer(holder, weft_glue_arena_end);
  held_arena *held = calloc(1, sizeof *held);
  if (!held) Rf_error("out of memory");
  held->ctx.memory = &memory;
  held->ctx.column = -1;
  held->arena = weft_arena_begin(&held->ctx);
  R_SetExternalPtrAddr(holder, held);
  *arena = &held->arena;
  UNPROTECT(1);
  return holder;
}

/* ---- columns ---- */

static SEXP slot(SEXP x, const char *name) { return R_do_slot(x, Rf_install(name)); }
static int is_sparse(SEXP x) { return Rf_isS4(x) && R_has_slot(x, Rf_install("p")); }

size_t weft_glue_ncol(SEXP x)
{
  if (is_sparse(x)) return (size_t) INTEGER(slot(x, "Dim"))[1];
  return TYPEOF(x) == VECSXP ? (size_t) Rf_xlength(x) : (size_t) Rf_ncols(x);
}

size_t weft_glue_nrow(SEXP x)
{
  if (is_sparse(x)) return (size_t) INTEGER(slot(x, "Dim"))[0];
  if (TYPEOF(x) == VECSXP) return Rf_xlength(x) ? (size_t) Rf_xlength(VECTOR_ELT(x, 0)) : 0;
  return (size_t) Rf_nrows(x);
}

/* The type, the bytes of an element, and the start of an ordinary vector. */
static weft_column view_of(SEXP x, size_t *size)
{
  weft_column v = { WEFT_COLUMN_I32, NULL, NULL, 0 };
  *size = sizeof(int32_t);
  switch (TYPEOF(x)) {
  case INTSXP: v.values = INTEGER(x); break;
  case LGLSXP: v.values = LOGICAL(x); break;
  case REALSXP: v.type = WEFT_COLUMN_F64; v.values = REAL(x); *size = sizeof(double); break;
  case RAWSXP: v.type = WEFT_COLUMN_U8; v.values = RAW(x); *size = 1; break;
  default: Rf_error("internal error: a column of type %s reached the native code", Rf_type2char(TYPEOF(x)));
  }
  return v;
}

static void sparse_columns(SEXP x, weft_column *views)
{
  const int *start = INTEGER(slot(x, "p")), *rows = INTEGER(slot(x, "i"));
  const double *values = R_has_slot(x, Rf_install("x")) ? REAL(slot(x, "x")) : NULL;
  size_t p = weft_glue_ncol(x);
  for (size_t j = 0; j < p; j++) {
    weft_column v = { values ? WEFT_COLUMN_SPARSE : WEFT_COLUMN_PATTERN, values ? values + start[j] : NULL,
                      rows + start[j], (size_t) (start[j + 1] - start[j]) };
    views[j] = v;
  }
}

void weft_glue_columns(SEXP x, weft_column *views)
{
  size_t p = weft_glue_ncol(x), size;
  if (is_sparse(x)) {
    sparse_columns(x, views);
  } else if (TYPEOF(x) == VECSXP) {
    for (size_t j = 0; j < p; j++) views[j] = view_of(VECTOR_ELT(x, (R_xlen_t) j), &size);
  } else {
    size_t n = weft_glue_nrow(x);
    weft_column first = view_of(x, &size);
    for (size_t j = 0; j < p; j++) {
      views[j] = first;
      views[j].values = (const char *) first.values + j * n * size;
    }
  }
}

/* ---- entry points: what this machine has ---- */

SEXP C_weft_cuda_missing(SEXP libs)
{
  char why[512] = "";
  if (weft_cuda_backend(CHAR(Rf_asChar(libs)), why, sizeof why)) return R_NilValue;
  return Rf_mkString(why);
}

SEXP C_weft_mpi(SEXP libs)
{
  char text[512] = "";
  const weft_mpi_table *mpi = weft_mpi_open(CHAR(Rf_asChar(libs)), text, sizeof text);
  if (mpi) mpi->describe(text, sizeof text);
  SEXP out = PROTECT(Rf_mkString(text));
  Rf_setAttrib(out, Rf_install("available"), Rf_ScalarLogical(mpi != NULL));
  UNPROTECT(1);
  return out;
}

typedef struct { weft_device_info *list; int count; } device_query;

static weft_status list_devices(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  device_query *q = data;
  weft_status st = WEFT_OK;
  for (int i = 0; i < q->count && st == WEFT_OK; i++) st = backend->device->info(ctx, i, &q->list[i]);
  return st;
}

/* A list of columns, one row a device. */
SEXP C_weft_devices(SEXP control)
{
  const char *fields[] = { "name", "capability", "processors", "total", "available", "driver", "runtime", "built_for", "" };
  char why[512] = "";
  const weft_backend *b = weft_cuda_backend(CHAR(Rf_asChar(weft_glue_element(control, "libs"))), why, sizeof why);
  int n = b ? b->device->count(why, sizeof why) : 0;
  device_query q = { n ? (weft_device_info *) R_alloc((size_t) n, sizeof(weft_device_info)) : NULL, n };
  if (n) weft_glue_run(control, list_devices, &q);
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, fields));
  for (int k = 0; fields[k][0]; k++)
    SET_VECTOR_ELT(out, k, Rf_allocVector(k == 0 || k == 1 || k == 7 ? STRSXP : REALSXP, n));
  for (int i = 0; i < n; i++) {
    const weft_device_info *d = &q.list[i];
    char capability[24];
    snprintf(capability, sizeof capability, "%d.%d", d->major, d->minor);
    SET_STRING_ELT(VECTOR_ELT(out, 0), i, Rf_mkChar(d->name));
    SET_STRING_ELT(VECTOR_ELT(out, 1), i, Rf_mkChar(capability));
    REAL(VECTOR_ELT(out, 2))[i] = d->processors;
    REAL(VECTOR_ELT(out, 3))[i] = d->total;
    REAL(VECTOR_ELT(out, 4))[i] = d->available;
    REAL(VECTOR_ELT(out, 5))[i] = d->driver;
    REAL(VECTOR_ELT(out, 6))[i] = d->runtime;
    SET_STRING_ELT(VECTOR_ELT(out, 7), i, Rf_mkChar(d->architectures));
  }
  UNPROTECT(1);
  return out;
}

SEXP C_weft_threads(SEXP wanted, SEXP option)
{
  return Rf_ScalarInteger(weft_threads_for(Rf_asInteger(wanted), Rf_asInteger(option)));
}

SEXP C_weft_openmp(void)
{
#ifdef _OPENMP
  return Rf_ScalarInteger(_OPENMP);
#else
  return Rf_ScalarInteger(NA_INTEGER);
#endif
}

/* The name of the vector variant in use. A level from 0 (portable) puts that one in use first, for tests; NULL when the
 * machine lacks it. */
SEXP C_weft_simd(SEXP level)
{
  if (level != R_NilValue && weft_simd_set((weft_simd) Rf_asInteger(level))) return R_NilValue;
  return Rf_mkString(weft_simd_name(weft_simd_level()));
}

SEXP C_weft_host_available(void) { return Rf_ScalarReal(weft_host_available()); }

/* The account as it stands; a number sets which allocation from now on is to fail (0: none). */
SEXP C_weft_memory(SEXP fail_at)
{
  const char *fields[] = { "host", "host_peak", "device", "device_peak", "allocations", "" };
  SEXP out = PROTECT(Rf_mkNamed(REALSXP, fields));
  double *v = REAL(out);
  v[0] = (double) memory.host_live;
  v[1] = (double) memory.host_peak;
  v[2] = (double) memory.device_live;
  v[3] = (double) memory.device_peak;
  v[4] = (double) memory.allocations;
  if (fail_at != R_NilValue) {
    memory.allocations = 0;
    memory.fail_at = (int64_t) Rf_asReal(fail_at);
  }
  UNPROTECT(1);
  return out;
}
