/* Entry points of the ranks: several R processes that mpirun started and that work on one problem. */
#include <string.h>
#include "core/r/glue.h"
#include "core/together/ranks.h"
#include "core/r/record.h"

static const weft_mpi_table *mpi(void) { return weft_ranks_table(); } /* NULL before MPI has started */

static weft_status start(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  (void) backend;
  char why[512] = "";
  weft_rank here;
  if (weft_ranks_table()) return WEFT_OK;
  const weft_mpi_table *opened = weft_mpi_open(data, why, sizeof why);
  if (!opened) return weft_fail(ctx, WEFT_ERR_DEVICE, "%s", why);
  weft_status st = opened->start(ctx, &here);
  if (st == WEFT_OK) weft_ranks_join(opened, here);
  return st;
}

/* list(rank, size, on_host: its number among the ranks of this host) */
SEXP C_weft_ranks_start(SEXP control)
{
  weft_glue_run(control, start, (void *) CHAR(Rf_asChar(weft_glue_element(control, "libs"))));
  const weft_rank here = weft_ranks_here();
  SEXP out = PROTECT(WEFT_NAMED_LIST("rank", "size", "on_host"));
  weft_result_put(out, "rank", Rf_ScalarInteger(here.rank));
  weft_result_put(out, "size", Rf_ScalarInteger(here.size));
  weft_result_put(out, "on_host", Rf_ScalarInteger(here.on_host));
  UNPROTECT(1);
  return out;
}

/* why: what the others are told when a call is still open */
SEXP C_weft_ranks_stop(SEXP why)
{
  if (mpi() && !weft_forked()) mpi()->stop(Rf_translateCharUTF8(Rf_asChar(why)));
  weft_ranks_join(NULL, weft_ranks_here());
  return R_NilValue;
}

SEXP C_weft_ranks_end(void)
{
  if (mpi() && !weft_forked()) mpi()->end_all(1);
  return R_NilValue;
}

/* ---- calls ---- */

typedef struct {
  uint64_t number, digest;
  int same;
  const char *why;
} call;

static weft_status enter(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  weft_status st = WEFT_OK;
  call *c = data;
  (void) backend;
  WEFT_TRY(weft_ranks_ready(ctx));
  WEFT_TRY(mpi()->enter(ctx, c->number, c->digest, &c->same));
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
  WEFT_TRY(mpi()->leave(ctx));
done:
  return st;
}

/* Waits until all ranks have the call's result. */
SEXP C_weft_ranks_leave(SEXP control)
{
  weft_glue_run(control, leave, NULL);
  return R_NilValue;
}

WEFT_WORK(give_up, call, mpi()->give_up(ctx, job->why))

/* why: a string. The call ends with an error on every rank. */
SEXP C_weft_ranks_give_up(SEXP control, SEXP why)
{
  call c = { 0, 0, 0, Rf_translateCharUTF8(Rf_asChar(why)) };
  if (mpi() && !weft_forked()) weft_glue_run(control, give_up, &c);
  return R_NilValue;
}

SEXP C_weft_ranks_forget(void)
{
  if (mpi() && !weft_forked()) mpi()->forget();
  return R_NilValue;
}

static SEXP string_of(const char *text) { return Rf_ScalarString(Rf_mkCharCE(text, CE_UTF8)); }

/* list(rank, why) of a rank that has told that it stopped, or NULL. */
SEXP C_weft_ranks_heard(void)
{
  char why[WEFT_WHY] = "";
  const int from = mpi() && !weft_forked() ? mpi()->heard(why) : -1;
  if (from < 0) return R_NilValue;
  SEXP out = PROTECT(WEFT_NAMED_LIST("rank", "why"));
  weft_result_put(out, "rank", Rf_ScalarInteger(from));
  weft_result_put(out, "why", string_of(why));
  UNPROTECT(1);
  return out;
}

/* list(how, why) with an element per rank, about the last call that all gave up. how: 1 it stopped, 2 its script had
 * ended, 0 neither. */
SEXP C_weft_ranks_stopped(void)
{
  SEXP out = PROTECT(WEFT_NAMED_LIST("how", "why"));
  const int size = weft_ranks_here().size;
  int *how = INTEGER(weft_result_put(out, "how", Rf_allocVector(INTSXP, size)));
  SEXP reasons = weft_result_put(out, "why", Rf_allocVector(STRSXP, size));
  for (int r = 0; r < size; r++) {
    char why[WEFT_WHY] = "";
    how[r] = mpi() ? mpi()->stopped(r, why) : 0;
    SET_STRING_ELT(reasons, r, Rf_mkCharCE(why, CE_UTF8));
  }
  UNPROTECT(1);
  return out;
}

/* ---- gathering ---- */

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
  WEFT_TRY(mpi()->all_numbers(ctx, (double) g->own, g->numbers));
done:
  return st;
}

WEFT_WORK(gather, gathering, weft_ranks_gather(ctx, job->mine, job->sizes, job->all))

/* A raw vector of every rank, as a list in the order of the ranks; the same list on all. */
SEXP C_weft_ranks_gather(SEXP control, SEXP mine)
{
  const size_t size = (size_t) weft_ranks_here().size;
  uint64_t *sizes = (uint64_t *) R_alloc(size, sizeof *sizes);
  gathering g = { RAW(mine), (uint64_t) Rf_xlength(mine), sizes, (double *) R_alloc(size, sizeof(double)),
                  (unsigned char **) R_alloc(size, sizeof(unsigned char *)) };
  weft_glue_run(control, gather_sizes, &g);
  SEXP all = PROTECT(Rf_allocVector(VECSXP, (R_xlen_t) size));
  for (size_t r = 0; r < size; r++) {
    sizes[r] = (uint64_t) g.numbers[r];
    SET_VECTOR_ELT(all, (R_xlen_t) r, Rf_allocVector(RAWSXP, (R_xlen_t) sizes[r]));
    g.all[r] = RAW(VECTOR_ELT(all, (R_xlen_t) r));
  }
  WEFT_RUN_RETURN(all, control, gather, &g);
}
