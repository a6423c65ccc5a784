/* Running work under R: context, polling, retry, results, handles; see glue.h. */
#include <limits.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/r/glue.h"
#include "core/data/mapped.h"
#include "core/call/parallel.h"
#include "core/together/ranks.h"
#include "core/r/record.h"
#include "core/call/simd.h"

static weft_memory memory; /* the account of the whole process */
static void end_freed(void);
static void empty_results(const weft_ctx *of);
static void bind_results(weft_ctx *to);
static void unbind_results(const weft_ctx *from);

/* ---- R code inside native work ---- */

/* A work function owns memory that R knows nothing of, so no jump may cross its frames. Whatever leaves R code by a
 * jump (an error, an interrupt, a restart, a condition that somebody outside has a handler for) is stopped where it
 * would enter them; the work function frees and returns, and weft_glue_run() lets the jump continue to its target. */
typedef struct glue_run {
  struct glue_run *outer; /* of the run whose R code called this one */
  SEXP token;             /* the target of a stopped jump */
  int left;               /* R code was left by a jump */
  jmp_buf back;
} glue_run;

static glue_run *running; /* the innermost; only the thread of R comes here */

static void stop_jump(void *data, Rboolean jump)
{
  glue_run *run = data;
  if (!jump) return;
  run->left = 1;
  longjmp(run->back, 1);
}

weft_status weft_glue_eval(weft_ctx *ctx, SEXP (*f)(void *), void *data)
{
  glue_run *run = running;
  if (!run->left && !setjmp(run->back)) R_UnwindProtect(f, data, stop_jump, run, run->token);
  return run->left ? weft_fail(ctx, WEFT_ERR_INTERRUPT, "stopped by the user") : WEFT_OK;
}

/* ---- polling ---- */

typedef struct {
  weft_ctx *ctx;
  SEXP progress;
  double done, total, every, next;
} poll_state;

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

static int poll_r(void *data, double done, double total)
{
  poll_state *s = data;
  double now = weft_seconds();
  if (now < s->next) return 0; /* going into R costs tens of microseconds, more inside an IDE */
  s->next = now + s->every;
  s->done = done;
  s->total = total;
  return weft_glue_eval(s->ctx, look, s) != WEFT_OK;
}

/* ---- running ---- */

SEXP weft_glue_element(SEXP list, const char *name)
{
  SEXP names = Rf_getAttrib(list, R_NamesSymbol);
  for (R_xlen_t i = 0; i < Rf_xlength(names); i++)
    if (!strcmp(CHAR(STRING_ELT(names, i)), name)) return VECTOR_ELT(list, i);
  return R_NilValue;
}

/* Runs `work` with a context made from R's `control` list, and once more after a garbage collection where memory was
 * short. When it returns, all went well: otherwise an R condition is signalled, or the interrupt that a poll has met
 * continues, after everything native has been freed. */
void weft_glue_run(SEXP control, weft_work work, void *data)
{
  const weft_backend *backend = weft_cpu_backend();
  char why[512] = "";
  weft_record given = weft_record_open(control, "control");
  const double every = weft_record_number(&given, "poll");
  const SEXP devices = weft_record_field(&given, "devices"); /* integers, at least one */
  const char *name = weft_record_word(&given, "backend"), *libs = weft_record_word(&given, "libs");
  poll_state poll = { NULL, weft_record_field(&given, "progress"), 0, 1, every, weft_seconds() + every };
  weft_ctx ctx = { poll_r,
                   &poll,
                   weft_record_integer(&given, "threads"),
                   INTEGER(devices)[0],
                   INTEGER(devices),
                   (int) Rf_xlength(devices),
                   0,
                   weft_record_number(&given, "device_limit"),
                   &memory,
                   -1,
                   "",
                   NULL,
                   0 };
  weft_record_field(&given, "columns"); /* their names, for raise_native() */
  weft_record_close(&given);
  glue_run run = { .outer = running, .token = PROTECT(R_MakeUnwindCont()) };
  weft_status st = WEFT_OK;
  poll.ctx = &ctx;
  running = &run;
  if (!strcmp(name, "cuda")) {
    backend = weft_cuda_backend(libs, why, sizeof why);
    if (!backend) st = weft_fail(&ctx, WEFT_ERR_DEVICE, "%s", why);
  }
  const uint64_t steps = weft_ranks_steps();
  const int64_t asked = memory.allocations;
  const int lost = weft_mapped_lost();
  bind_results(&ctx);
  if (st == WEFT_OK) st = work(&ctx, backend, data);
  if (st == WEFT_ERR_MEMORY && !run.left &&
      weft_ranks_steps() == steps) { /* R may hold garbage: collect it and try once more */
    empty_results(&ctx);
    weft_cuda_free_kept();
    if (memory.fail_at < 0)
      memory.allocations = asked; /* a test lets the same one fail again, whatever is collected */
    else
      R_gc();
    ctx.column = -1;
    st = work(&ctx, backend, data);
  }
  unbind_results(&ctx);
  running = run.outer;
  end_freed();
  if (weft_mapped_lost() != lost)
    st = weft_fail(&ctx, WEFT_ERR_INPUT, "The genotype file was truncated or became unreadable while it was in use.");
  if (run.left) R_ContinueUnwind(run.token);
  if (st != WEFT_OK) weft_glue_raise(st, &ctx, control);
  UNPROTECT(1);
}

/* ---- results ---- */

typedef struct {
  SEXPTYPE type;
  R_xlen_t length;
} vector_wish;

static SEXP make_vector(void *data)
{
  const vector_wish *wish = data;
  return Rf_allocVector(wish->type, wish->length);
}

static SEXP no_vector(SEXP condition, void *data)
{
  (void) condition;
  (void) data;
  return R_NilValue;
}

SEXP weft_glue_vector(SEXPTYPE type, double length)
{
  const double bytes = length * (type == REALSXP || type == VECSXP || type == STRSXP ? 8 : type == RAWSXP ? 1 : 4);
  if (bytes < 1e6) return Rf_allocVector(type, (R_xlen_t) length);
  vector_wish wish = { type, (R_xlen_t) length };
  SEXP out = length <= 4503599627370496.0 ? R_tryCatchError(make_vector, &wish, no_vector, NULL) : R_NilValue;
  if (out == R_NilValue) {
    weft_ctx ctx;
    weft_fail_memory(&ctx, "host", bytes, weft_host_available(), "a result");
    weft_glue_fail(WEFT_ERR_MEMORY, "%s", ctx.message);
  }
  return out;
}

SEXP weft_glue_matrix(SEXPTYPE type, double rows, double columns)
{
  if (rows > INT_MAX || columns > INT_MAX)
    weft_glue_fail(WEFT_ERR_INPUT,
                   "A result may have at most 2147483647 rows and columns; it would have %.0f and %.0f.", rows,
                   columns);
  SEXP out = PROTECT(weft_glue_vector(type, rows * columns)), dim = PROTECT(Rf_allocVector(INTSXP, 2));
  INTEGER(dim)[0] = (int) rows;
  INTEGER(dim)[1] = (int) columns;
  Rf_setAttrib(out, R_DimSymbol, dim);
  UNPROTECT(2);
  return out;
}

const double *weft_glue_square(SEXP m, const char *name, size_t *p)
{
  SEXP dim = Rf_getAttrib(m, R_DimSymbol);
  if (TYPEOF(m) != REALSXP || TYPEOF(dim) != INTSXP || Rf_xlength(dim) != 2 || INTEGER(dim)[0] != INTEGER(dim)[1])
    weft_glue_fail(WEFT_ERR_INPUT, "`%s` must be a square matrix of numbers.", name);
  *p = (size_t) INTEGER(dim)[0];
  return REAL_RO(m);
}

/* ---- handles ---- */

/* Native memory behind an external pointer. R code that native work calls (a progress handler, a finaliser) may free a
 * handle that the work is using: the pointer is empty at once, and the object goes when the outermost run has ended. */
typedef struct held {
  struct held *next;
  const weft_handle_kind *kind;
} held; /* the object follows */

static held *freed;       /* while in use */
static int taken;         /* an entry point has looked a handle up, and its run has not ended yet */
static double finalisers; /* registered with R, and not called yet */

static void end_object(held *holder)
{
  holder->kind->release(holder + 1);
  free(holder);
}

static void end_freed(void)
{
  if (running) return;
  taken = 0;
  while (freed) {
    held *holder = freed;
    freed = holder->next;
    end_object(holder);
  }
}

static void empty(SEXP pointer)
{
  held *holder = R_ExternalPtrAddr(pointer);
  if (!holder) return;
  R_ClearExternalPtr(pointer);
  if (!running && !taken) {
    end_object(holder);
  } else {
    holder->next = freed;
    freed = holder;
  }
}

static void finalise(SEXP pointer)
{
  finalisers--;
  empty(pointer);
}

SEXP weft_glue_handle(const weft_handle_kind *kind, size_t size)
{
  SEXP pointer = PROTECT(R_MakeExternalPtr(NULL, Rf_install(kind->name), R_NilValue));
  R_RegisterCFinalizerEx(pointer, finalise, TRUE);
  finalisers++;
  held *holder = calloc(1, sizeof *holder + size);
  if (!holder) weft_glue_fail(WEFT_ERR_MEMORY, "Not enough host memory for a handle.");
  holder->kind = kind;
  R_SetExternalPtrAddr(pointer, holder);
  UNPROTECT(1);
  return pointer;
}

void *weft_glue_handle_peek(SEXP pointer, const weft_handle_kind *kind)
{
  if (TYPEOF(pointer) != EXTPTRSXP || R_ExternalPtrTag(pointer) != Rf_install(kind->name)) return NULL;
  held *holder = R_ExternalPtrAddr(pointer); /* NULL too where the pointer was read from a file */
  return holder ? holder + 1 : NULL;
}

void *weft_glue_handle_take(SEXP pointer, const weft_handle_kind *kind)
{
  void *object = weft_glue_handle_peek(pointer, kind);
  if (!object) weft_glue_fail(WEFT_ERR_INPUT, "This handle was freed, or belongs to another R session.");
  taken = 1;
  return object;
}

void weft_glue_handle_done(void) { end_freed(); }

void weft_glue_handle_free(SEXP pointer, const weft_handle_kind *kind)
{
  if (weft_glue_handle_peek(pointer, kind)) empty(pointer);
}

/* How many finalisers R holds: while there is one, its code must stay loaded. */
SEXP C_weft_finalisers(void) { return Rf_ScalarReal(finalisers); }

/* ---- memory that outlives a work function ---- */

/* An arena for results lives longer than the context of the run that fills it. It has a context of its own for the
 * memory account; while a run goes on, the arena belongs to the run's context, so that the run's error says what the
 * arena could not take. */
typedef struct held_arena {
  weft_arena arena;
  weft_ctx own;
  struct held_arena *next;
} held_arena;

static held_arena *results; /* those that were not ended yet */

static void bind_results(weft_ctx *to)
{
  for (held_arena *held = results; held; held = held->next)
    if (held->arena.ctx == &held->own) held->arena.ctx = to;
}

static void empty_results(const weft_ctx *of)
{
  for (held_arena *held = results; held; held = held->next)
    if (held->arena.ctx == of) weft_arena_end(&held->arena);
}

static void unbind_results(const weft_ctx *from)
{
  for (held_arena *held = results; held; held = held->next)
    if (held->arena.ctx == from) held->arena.ctx = &held->own;
}

static void unlist_arena(const held_arena *held)
{
  for (held_arena **at = &results; *at; at = &(*at)->next) {
    if (*at != held) continue;
    *at = held->next;
    break;
  }
}

static void end_arena(void *object)
{
  held_arena *held = object;
  unlist_arena(held);
  weft_arena_end(&held->arena);
}

static const weft_handle_kind arena_kind = { "weft_arena", end_arena };

/* At once, in a run or not: an arena has one user. */
void weft_glue_arena_end(SEXP holder)
{
  held_arena *held = weft_glue_handle_peek(holder, &arena_kind);
  if (held) end_arena(held);
}

/* Runs that follow leave it alone. */
void weft_glue_arena_keep(SEXP holder)
{
  const held_arena *held = weft_glue_handle_peek(holder, &arena_kind);
  if (held) unlist_arena(held);
}

SEXP weft_glue_arena(weft_arena **arena)
{
  SEXP holder = weft_glue_handle(&arena_kind, sizeof(held_arena));
  held_arena *held = weft_glue_handle_peek(holder, &arena_kind);
  held->own.memory = &memory;
  held->own.column = -1;
  held->arena = weft_arena_begin(&held->own);
  held->next = results;
  results = held;
  *arena = &held->arena;
  return holder;
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

/* Parallel regions of several threads so far, but for those of the CUDA object: for tests. */
SEXP C_weft_woken(void) { return Rf_ScalarReal((double) weft_woken()); }

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
  const char *fields[] = { "host", "host_peak", "device", "device_peak", "allocations", "device_kept", "made", "" };
  SEXP out = PROTECT(Rf_mkNamed(REALSXP, fields));
  double *v = REAL(out);
  v[0] = (double) memory.host_live;
  v[1] = (double) memory.host_peak;
  v[2] = (double) memory.device_live;
  v[3] = (double) memory.device_peak;
  v[4] = (double) memory.allocations;
  v[5] = (double) memory.device_kept;
  v[6] = (double) memory.made;
  if (fail_at != R_NilValue) {
    memory.allocations = 0;
    memory.fail_at = (int64_t) Rf_asReal(fail_at);
  }
  UNPROTECT(1);
  return out;
}
