/* What every room's glue uses. Glue is the only code that knows SEXP. An entry point
 *   1. allocates the R objects it returns and points a struct of plain C at R's memory,
 *   2. hands a work function to weft_glue_run(), which makes the context, runs it, collects garbage and tries once more
 *      when memory was short, and signals a classed R condition after the work function has freed what it owned,
 *   3. returns.
 * No R call that can jump stands inside a work function; the poll in the context catches what R signals and keeps
 * it. */
#pragma once

#ifndef R_NO_REMAP
#  define R_NO_REMAP
#endif
#ifndef STRICT_R_HEADERS
#  define STRICT_R_HEADERS
#endif
#include <R.h>
#include <Rinternals.h>
#include "core/call/arena.h"
#include "core/call/backend.h"
#include "core/data/columns.h"
#include "core/data/mapped.h"
#include "core/r/columns.h"
#include "core/r/entries/mapped.h"
#include "core/r/fail.h"
#include "core/r/handle.h"

typedef weft_status (*weft_work)(weft_ctx *ctx, const weft_backend *backend, void *data);

/* A work function that only calls: an expression of `ctx`, `backend` and `job`, of type `job_type *`. */
#define WEFT_WORK(name, job_type, ...) \
  static weft_status name(weft_ctx *ctx, const weft_backend *backend, void *data) \
  { \
    job_type *job = data; \
    (void) ctx, (void) backend; \
    return __VA_ARGS__; \
  }

/* `control` is the list made by R's run_control(): backend, libs, threads, devices, device_limit, progress, columns. */
void weft_glue_run(SEXP control, weft_work work, void *data);

/* The end of an entry point that returns `out`, the one object it has protected, as the run has filled it. */
#define WEFT_RUN_RETURN(out, control, work, data) \
  do { \
    weft_glue_run(control, work, data); \
    UNPROTECT(1); \
    return out; \
  } while (0)

/* Runs R code that a work function needs: f(data), which may jump. After a jump the status says to stop; the jump goes
 * on to its target (a handler, the top level) once the work function has freed what it owns and returned. */
weft_status weft_glue_eval(weft_ctx *ctx, SEXP (*f)(void *), void *data);

/* Native objects behind external pointers, which R's garbage collector or a call ends: `release` frees what the object
 * owns. An object is zero at first, and then `release` must do nothing. An object that is freed while a run uses
 * it is released when that run has ended. */
typedef struct weft_handle_kind {
  const char *name;
  void (*release)(void *object);
} weft_handle_kind;

SEXP weft_glue_handle(const weft_handle_kind *kind, size_t size);
/* NULL unless the pointer is a handle of this kind, of this session, and was not freed. */
void *weft_glue_handle_peek(SEXP pointer, const weft_handle_kind *kind);
/* As above, to be used until the next run has ended, or weft_glue_handle_done() is called; an R error in place of
 * NULL. */
void *weft_glue_handle_take(SEXP pointer, const weft_handle_kind *kind);
void weft_glue_handle_done(void);
void weft_glue_handle_free(SEXP pointer, const weft_handle_kind *kind);

/* An arena that R's garbage collector ends: for results whose size is known only when the work is done. Protect the
 * returned pointer while blocks are in use; every .Call may end it early with weft_glue_arena_end(). The next
 * weft_glue_run() reports what the arena cannot take, and empties it before a second try. */
SEXP weft_glue_arena(weft_arena **arena);
void weft_glue_arena_end(SEXP holder);
/* Once it is filled: it lives on beside the runs of later calls, which would otherwise empty it before a second try. */
void weft_glue_arena_keep(SEXP holder);

/* R's vectors and matrices for results; a classed error where R has no memory for one, or a side has more than 2^31
 * - 1. */
SEXP weft_glue_vector(SEXPTYPE type, double length);
SEXP weft_glue_matrix(SEXPTYPE type, double rows, double columns);

/* The numbers of a square matrix of doubles, and its side; a classed error about `name` when it is something else. */
const double *weft_glue_square(SEXP m, const char *name, size_t *p);

/* Element `name` of a list, or R_NilValue. */
SEXP weft_glue_element(SEXP list, const char *name);
