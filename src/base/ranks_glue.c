/* Entry points of the ranks: several R processes that mpirun started and that work on one problem. */
#include <string.h>
#include "glue.h"
#include "ranks.h"

static const weft_mpi_table *mpi; /* set when MPI has started */
static weft_rank here = { 0, 1, 0 };

const weft_mpi_table *weft_ranks_table(void) { return mpi; }

static weft_status start(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  (void) backend;
  char why[512] = "";
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

SEXP C_weft_ranks_stop(void)
{
  if (mpi && !weft_forked()) mpi->stop();
  mpi = NULL;
  return R_NilValue;
}

SEXP C_weft_ranks_end(void)
{
  if (mpi && !weft_forked()) mpi->end_all(1);
  return R_NilValue;
}

weft_rank weft_ranks_here(void) { return here; }

weft_status weft_ranks_gather(weft_ctx *ctx, const void *mine, const uint64_t *sizes, unsigned char **all)
{
  if (mpi) return mpi->all_gather(ctx, mine, sizes, all);
  memcpy(all[0], mine, (size_t) sizes[0]);
  return WEFT_OK;
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
    WEFT_TRY(mpi->all_gather(ctx, x + first, sizes, all));
    memcpy(x + first, parts, now * sizeof *x);
    for (size_t r = 1; r < size; r++) for (size_t i = 0; i < now; i++) x[first + i] += parts[r * round + i];
  }
done:
  weft_arena_end(&mem);
  return st;
}

typedef struct { const void *mine; const uint64_t *sizes; unsigned char **all; } gathering;

static weft_status gather(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  (void) backend;
  gathering *g = data;
  return weft_ranks_gather(ctx, g->mine, g->sizes, g->all);
}

/* A raw vector of every rank, as a list in the order of the ranks; the same list on all. */
SEXP C_weft_ranks_gather(SEXP control, SEXP mine)
{
  const size_t size = (size_t) here.size;
  uint64_t *sizes = (uint64_t *) R_alloc(size, sizeof *sizes), own = (uint64_t) Rf_xlength(mine);
  unsigned char **to = (unsigned char **) R_alloc(size, sizeof *to);
  if (!mpi) Rf_error("internal error: ranks were not started");
  for (size_t r = 0; r < size; r++) {
    sizes[r] = sizeof own;
    to[r] = (unsigned char *) R_alloc(1, sizeof own);
  }
  weft_glue_run(control, gather, &(gathering) { &own, sizes, to });
  SEXP all = PROTECT(Rf_allocVector(VECSXP, here.size));
  for (size_t r = 0; r < size; r++) {
    memcpy(&sizes[r], to[r], sizeof own);
    SET_VECTOR_ELT(all, (R_xlen_t) r, Rf_allocVector(RAWSXP, (R_xlen_t) sizes[r]));
    to[r] = RAW(VECTOR_ELT(all, (R_xlen_t) r));
  }
  weft_glue_run(control, gather, &(gathering) { RAW(mine), sizes, to });
  UNPROTECT(1);
  return all;
}
