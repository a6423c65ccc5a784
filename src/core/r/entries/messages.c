/* Entry points of what ranks tell each other; see messages.h. R calls them when there are ranks. */
#include <string.h>
#include "core/together/messages.h"
#include "core/together/ranks.h"
#include "core/r/record.h"

static const weft_mpi_messages *messages(void) { return weft_ranks_table()->messages; }

/* A work function that does one step with the messages of the job, once it is known that there is one. */
#define WITH_MESSAGES(name, type, step) \
  static weft_status name(weft_ctx *ctx, const weft_backend *backend, void *data) \
  { \
    weft_status st = WEFT_OK; \
    type *j = data; \
    (void) backend; \
    WEFT_TRY(weft_ranks_ready(ctx)); \
    WEFT_TRY(messages()->step); \
  done: \
    return st; \
  }

typedef struct {
  int part, rank, size;
} grouping;

WITH_MESSAGES(regroup, grouping, regroup(ctx, j->part, &j->rank, &j->size))

/* list(rank, size) in the group from now on; part: NA for all ranks. */
SEXP C_weft_ranks_regroup(SEXP control, SEXP part)
{
  grouping g = { Rf_asInteger(part) == NA_INTEGER ? -1 : Rf_asInteger(part), 0, 1 };
  weft_glue_run(control, regroup, &g);
  SEXP out = PROTECT(WEFT_NAMED_LIST("rank", "size"));
  weft_result_put(out, "rank", Rf_ScalarInteger(g.rank));
  weft_result_put(out, "size", Rf_ScalarInteger(g.size));
  UNPROTECT(1);
  return out;
}

typedef struct {
  double *values;
  size_t n;
  int how;
} reduction;

WITH_MESSAGES(reduce, reduction, all_reduce(ctx, j->values, j->n, j->how))

/* Sums over the group, or the least of each when `least`. */
SEXP C_weft_ranks_reduce(SEXP control, SEXP values, SEXP least)
{
  SEXP out = PROTECT(Rf_duplicate(values));
  weft_glue_run(control, reduce,
                &(reduction){ REAL(out), (size_t) Rf_xlength(out), Rf_asLogical(least) ? WEFT_LEAST : WEFT_SUM });
  UNPROTECT(1);
  return out;
}

typedef struct {
  const double **mine;
  double **theirs;
  uint64_t *sizes, *their_sizes;
} trade;

WITH_MESSAGES(exchange_sizes, trade, exchange_sizes(ctx, j->sizes, j->their_sizes))

WITH_MESSAGES(exchange, trade, exchange(ctx, j->mine, j->sizes, j->theirs, j->their_sizes))

/* parts: what goes to each rank of the group, doubles or NULL; the result: what came from each, numeric(0) for
 * nothing. */
SEXP C_weft_ranks_exchange(SEXP control, SEXP parts)
{
  const R_xlen_t size = Rf_xlength(parts);
  trade t = { (const double **) R_alloc((size_t) size, sizeof(double *)),
              (double **) R_alloc((size_t) size, sizeof(double *)),
              (uint64_t *) R_alloc((size_t) size, sizeof(uint64_t)),
              (uint64_t *) R_alloc((size_t) size, sizeof(uint64_t)) };
  for (R_xlen_t r = 0; r < size; r++) {
    SEXP part = VECTOR_ELT(parts, r);
    t.mine[r] = part == R_NilValue ? NULL : REAL(part);
    t.sizes[r] = part == R_NilValue ? 0 : (uint64_t) Rf_xlength(part);
  }
  weft_glue_run(control, exchange_sizes, &t);
  SEXP out = PROTECT(Rf_allocVector(VECSXP, size));
  for (R_xlen_t r = 0; r < size; r++) {
    SET_VECTOR_ELT(out, r, Rf_allocVector(REALSXP, (R_xlen_t) t.their_sizes[r]));
    t.theirs[r] = REAL(VECTOR_ELT(out, r));
  }
  WEFT_RUN_RETURN(out, control, exchange, &t);
}

typedef struct {
  int to, kind;
  const double *values;
  uint64_t n;
} message;

WITH_MESSAGES(post, message, post(ctx, j->to, j->kind, j->values, (size_t) j->n))

SEXP C_weft_ranks_post(SEXP control, SEXP to, SEXP kind, SEXP values)
{
  weft_glue_run(control, post,
                &(message){ Rf_asInteger(to), Rf_asInteger(kind), REAL(values), (uint64_t) Rf_xlength(values) });
  return R_NilValue;
}

WITH_MESSAGES(look, message, look(ctx, &j->to, &j->kind, &j->n, &j->values))

/* list(from, kind, values) of a message that has arrived, or NULL. */
SEXP C_weft_ranks_receive(SEXP control)
{
  message m = { -1, 0, NULL, 0 };
  weft_glue_run(control, look, &m);
  if (m.to < 0) return R_NilValue;
  SEXP out = PROTECT(WEFT_NAMED_LIST("from", "kind", "values"));
  weft_result_put(out, "from", Rf_ScalarInteger(m.to));
  weft_result_put(out, "kind", Rf_ScalarInteger(m.kind));
  double *values = REAL(weft_result_put(out, "values", Rf_allocVector(REALSXP, (R_xlen_t) m.n)));
  if (m.n) memcpy(values, m.values, (size_t) m.n * sizeof *m.values);
  UNPROTECT(1);
  return out;
}

typedef struct {
  double mine, all;
  int ready;
} addition;

WITH_MESSAGES(total, addition, total(ctx, j->mine, &j->all, &j->ready))

/* The sum over all ranks, or NA as long as some rank has not said its number. */
SEXP C_weft_ranks_total(SEXP control, SEXP mine)
{
  addition a = { Rf_asReal(mine), 0, 0 };
  weft_glue_run(control, total, &a);
  return Rf_ScalarReal(a.ready ? a.all : NA_REAL);
}
