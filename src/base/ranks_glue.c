/* Entry points of the ranks: several R processes that mpirun started and that work on one problem. */
#include <string.h>
#include "glue.h"
#include "ranks.h"

static const weft_mpi_table *mpi; /* set when MPI has started */
static weft_rank here = { 0, 1, 0 };

const weft_mpi_table *weft_ranks_table(void) { return mpi; }
uint64_t weft_ranks_steps(void) { return mpi ? mpi->steps() : 0; }
weft_rank weft_ranks_here(void) { return here; }

weft_status weft_ranks_ready(weft_ctx *ctx)
{
  if (!mpi) return weft_fail(ctx, WEFT_ERR_INTERNAL, "ranks were not started");
  if (weft_forked())
    return weft_fail(ctx, WEFT_ERR_DEVICE, "MPI does not survive fork(): a forked process is no rank of the job");
  return WEFT_OK;
}

static weft_status start(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  (void) backend;
  char why[512] = "";
  if (mpi) return WEFT_OK;
  const weft_mpi_table *opened = weft_mpi_open(data, why, sizeof why);
  if (!opened) return weft_fail(ctx, WEFT_ERR_DEVICE, "%s", why);
  weft_status st = opened->start(ctx, &here);
  if (st == WEFT_OK) mpi = opened;
  return st;
}

/* c(rank, size, number on this host) */
SEXP C_weft_ranks_start(SEXP control)
{
  weft_glue_run(control, start, (void *) CHAR(Rf_asChar(weft_glue_element(control, "libs"))));
  SEXP out = Rf_allocVector(INTSXP, 3);
  const int values[] = { here.rank, here.size, here.on_host };
  memcpy(INTEGER(out), values, sizeof values);
  return out;
}

/* why: what the others are told when a call is still open */
SEXP C_weft_ranks_stop(SEXP why)
{
  if (mpi && !weft_forked()) mpi->stop(Rf_translateCharUTF8(Rf_asChar(why)));
  mpi = NULL;
  return R_NilValue;
}

SEXP C_weft_ranks_end(void)
{
  if (mpi && !weft_forked()) mpi->end_all(1);
  return R_NilValue;
}

/* ---- calls ---- */

typedef struct { uint64_t number, digest; int same; const char *why; } call;

static weft_status enter(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  weft_status st = WEFT_OK;
  call *c = data;
  (void) backend;
  WEFT_TRY(weft_ranks_ready(ctx));
  WEFT_TRY(mpi->enter(ctx, c->number, c->digest, &c->same));
done:
  return st;
}

/* Whether all ranks enter the call of this number with the same digest. */
SEXP C_weft_ranks_enter(SEXP control, SEXP number, SEXP digest)
{
  call c = { (uint64_t) Rf_asReal(number), 0, 1, NULL };
  memcpy(&c.digest, RAW(digest), sizeof c.digest);
  weft_glue_run(control, enter, &c);
  return Rf_ScalarLogical(c.same);
}

static weft_status leave(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  weft_status st = WEFT_OK;
  (void) backend;
  (void) data;
  WEFT_TRY(weft_ranks_ready(ctx));
  WEFT_TRY(mpi->leave(ctx));
done:
  return st;
}

/* Waits until all ranks have the call's result. */
SEXP C_weft_ranks_leave(SEXP control)
{
  weft_glue_run(control, leave, NULL);
  return R_NilValue;
}

static weft_status give_up(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  (void) backend;
  return mpi->give_up(ctx, ((call *) data)->why);
}

/* why: a string. The call ends with an error on every rank. */
SEXP C_weft_ranks_give_up(SEXP control, SEXP why)
{
  call c = { 0, 0, 0, Rf_translateCharUTF8(Rf_asChar(why)) };
  if (mpi && !weft_forked()) weft_glue_run(control, give_up, &c);
  return R_NilValue;
}

SEXP C_weft_ranks_forget(void)
{
  if (mpi && !weft_forked()) mpi->forget();
  return R_NilValue;
}

static SEXP string_of(const char *text) { return Rf_ScalarString(Rf_mkCharCE(text, CE_UTF8)); }

/* list(rank, why) of a rank that has told that it stopped, or NULL. */
SEXP C_weft_ranks_heard(void)
{
  const char *fields[] = { "rank", "why", "" };
  char why[WEFT_WHY] = "";
  const int from = mpi && !weft_forked() ? mpi->heard(why) : -1;
  if (from < 0) return R_NilValue;
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, fields));
  SET_VECTOR_ELT(out, 0, Rf_ScalarInteger(from));
  SET_VECTOR_ELT(out, 1, string_of(why));
  UNPROTECT(1);
  return out;
}

/* list(how, why), of every rank when all gave up last: 1 stopped, 2 its script had ended; 0 neither. */
SEXP C_weft_ranks_stopped(void)
{
  const char *fields[] = { "how", "why", "" };
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, fields));
  SET_VECTOR_ELT(out, 0, Rf_allocVector(INTSXP, here.size));
  SET_VECTOR_ELT(out, 1, Rf_allocVector(STRSXP, here.size));
  for (int r = 0; r < here.size; r++) {
    char why[WEFT_WHY] = "";
    INTEGER(VECTOR_ELT(out, 0))[r] = mpi ? mpi->stopped(r, why) : 0;
    SET_STRING_ELT(VECTOR_ELT(out, 1), r, Rf_mkCharCE(why, CE_UTF8));
  }
  UNPROTECT(1);
  return out;
}

/* ---- gathering ---- */

weft_status weft_ranks_gather(weft_ctx *ctx, const void *mine, const uint64_t *sizes, unsigned char **all)
{
  weft_status st = WEFT_OK;
  if (!mpi) {
    memcpy(all[0], mine, (size_t) sizes[0]);
    return st;
  }
  WEFT_TRY(weft_ranks_ready(ctx));
  WEFT_TRY(mpi->all_gather(ctx, mine, sizes, all));
done:
  return st;
}

weft_status weft_ranks_add(weft_ctx *ctx, double *x, size_t count)
{
  enum { ROUND = 1 << 20 }; /* numbers a rank at a time */
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t size = (size_t) here.size, round = count < ROUND ? count : ROUND;
  double *parts;
  uint64_t *sizes;
  unsigned char **all;
  if (!mpi || size == 1) return WEFT_OK;
  WEFT_TAKE(parts, &mem, size * round);
  WEFT_TAKE(sizes, &mem, size);
  WEFT_TAKE(all, &mem, size);
  for (size_t first = 0; first < count; first += round) {
    const size_t now = count - first < round ? count - first : round;
    for (size_t r = 0; r < size; r++) {
      sizes[r] = now * sizeof *x;
      all[r] = (unsigned char *) (parts + r * round);
    }
    WEFT_TRY(weft_ranks_gather(ctx, x + first, sizes, all));
    memcpy(x + first, parts, now * sizeof *x);
    for (size_t r = 1; r < size; r++) for (size_t i = 0; i < now; i++) x[first + i] += parts[r * round + i];
  }
done:
  weft_arena_end(&mem);
  return st;
}

typedef struct {
  const void *mine;
  uint64_t own;
  const uint64_t *sizes;
  double *numbers;
  unsigned char **all;
} gathering;

static weft_status gather_sizes(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  weft_status st = WEFT_OK;
  gathering *g = data;
  (void) backend;
  WEFT_TRY(weft_ranks_ready(ctx));
  WEFT_TRY(mpi->all_numbers(ctx, (double) g->own, g->numbers));
done:
  return st;
}

static weft_status gather(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  gathering *g = data;
  (void) backend;
  return weft_ranks_gather(ctx, g->mine, g->sizes, g->all);
}

/* A raw vector of every rank, as a list in the order of the ranks; the same list on all. */
SEXP C_weft_ranks_gather(SEXP control, SEXP mine)
{
  const size_t size = (size_t) here.size;
  uint64_t *sizes = (uint64_t *) R_alloc(size, sizeof *sizes);
  gathering g = { RAW(mine), (uint64_t) Rf_xlength(mine), sizes, (double *) R_alloc(size, sizeof(double)),
                  (unsigned char **) R_alloc(size, sizeof(unsigned char *)) };
  weft_glue_run(control, gather_sizes, &g);
  SEXP all = PROTECT(Rf_allocVector(VECSXP, here.size));
  for (size_t r = 0; r < size; r++) {
    sizes[r] = (uint64_t) g.numbers[r];
    SET_VECTOR_ELT(all, (R_xlen_t) r, Rf_allocVector(RAWSXP, (R_xlen_t) sizes[r]));
    g.all[r] = RAW(VECTOR_ELT(all, (R_xlen_t) r));
  }
  weft_glue_run(control, gather, &g);
  UNPROTECT(1);
  return all;
}
