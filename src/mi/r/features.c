/* .Call entry points for single attributes: their information, and how much chance gives; and the names of kinds. */
#include "mi/r/pack.h"
#include "mi/null/exact_test.h"
#include "mi/search/cpu/coded.h"

/* ---- kinds ---- */

#define NAME(kind, name, ...) name,
#define NAME_OF_WORD(kind, name, ...) #name,
const char *const weft_network_names[] = { WEFT_NETWORK_KINDS(NAME_OF_WORD) };
const char *const weft_select_names[] = { WEFT_SELECT_KINDS(NAME) };
const char *const weft_mi_entropy_names[] = { WEFT_MI_ENTROPY_KINDS(NAME) };
const char *const weft_mi_numeric_names[] = { WEFT_MI_NUMERIC_KINDS(NAME) };
const char *const weft_bins_names[] = { WEFT_BINS_KINDS(NAME) };

static SEXP words(const char *const *names, int count)
{
  SEXP out = PROTECT(Rf_allocVector(STRSXP, count));
  for (int k = 0; k < count; k++) SET_STRING_ELT(out, k, Rf_mkChar(names[k]));
  UNPROTECT(1);
  return out;
}

/* The names in each of the room's sheets. */
SEXP C_weft_mi_kinds(void)
{
  SEXP out = PROTECT(WEFT_NAMED_LIST("network", "select", "entropy", "numeric", "bins"));
  weft_result_put(out, "network", words(weft_network_names, WEFT_NETWORK_METHODS));
  weft_result_put(out, "select", words(weft_select_names, WEFT_SELECT_METHODS));
  weft_result_put(out, "entropy", words(weft_mi_entropy_names, WEFT_MI_ESTIMATORS));
  weft_result_put(out, "numeric", words(weft_mi_numeric_names, WEFT_MI_NUMERICS));
  weft_result_put(out, "bins", words(weft_bins_names, WEFT_BINS_METHODS));
  UNPROTECT(1);
  return out;
}

/* ---- ranking ---- */

/* A named list for the scores of p attributes, and where its vectors begin. */
static SEXP make_scores(size_t p, weft_mi_rank *at)
{
  const R_xlen_t length = (R_xlen_t) p;
  SEXP out = PROTECT(WEFT_NAMED_LIST("mi", "entropy", "class_entropy", "n", "missing", "levels", "class_levels"));
  at->mi = REAL(weft_result_put(out, "mi", Rf_allocVector(REALSXP, length)));
  at->entropy = REAL(weft_result_put(out, "entropy", Rf_allocVector(REALSXP, length)));
  at->class_entropy = REAL(weft_result_put(out, "class_entropy", Rf_allocVector(REALSXP, length)));
  at->n = REAL(weft_result_put(out, "n", Rf_allocVector(REALSXP, length)));
  at->missing = REAL(weft_result_put(out, "missing", Rf_allocVector(REALSXP, length)));
  at->levels = INTEGER(weft_result_put(out, "levels", Rf_allocVector(INTSXP, length)));
  at->class_levels = INTEGER(weft_result_put(out, "class_levels", Rf_allocVector(INTSXP, length)));
  UNPROTECT(1);
  return out;
}

typedef struct {
  weft_mi_data data;
  weft_mi_rank out;
} rank_job;
WEFT_WORK(rank, rank_job, backend->mi->rank(ctx, &job->data, &job->out))

/* x: matrix, list of columns or sparse matrix with n rows; class_codes: integers from 0, NA where the row does not
 * count. */
SEXP C_weft_mi_rank(SEXP x, SEXP class_codes, SEXP class_levels, SEXP na_level, SEXP control)
{
  const size_t p = weft_glue_ncol(x), n = (size_t) Rf_xlength(class_codes);
  weft_column *columns = (weft_column *) R_alloc(p, sizeof *columns);
  rank_job job = { .data = { n, p, columns, weft_mi_class_codes(class_codes), (uint32_t) Rf_asInteger(class_levels),
                             Rf_asLogical(na_level) } };
  weft_glue_columns(x, columns);
  SEXP out = PROTECT(make_scores(p, &job.out));
  WEFT_RUN_RETURN(out, control, rank, &job);
}

typedef struct {
  const weft_mi_pack *pack;
  weft_mi_rank out;
} pack_rank_job;
WEFT_WORK(pack_rank, pack_rank_job, weft_mi_pack_rank(ctx, job->pack, &job->out))

/* What C_weft_mi_rank gives, from a pack. */
SEXP C_weft_mi_pack_rank(SEXP pack, SEXP control)
{
  pack_rank_job job = { .pack = &weft_mi_handle_of(pack)->pack };
  SEXP out = PROTECT(make_scores(job.pack->p, &job.out));
  WEFT_RUN_RETURN(out, control, pack_rank, &job);
}

/* ---- what chance gives ---- */

typedef struct {
  const weft_mi_pack *pack;
  const uint32_t *columns;
  size_t count;
  weft_mi_tests out;
} null_job;
WEFT_WORK(null_laws, null_job, weft_mi_null(ctx, job->pack, job->columns, job->count, &job->out))

static double *test_column(SEXP out, const char *name, size_t count)
{
  return REAL(weft_result_put(out, name, Rf_allocVector(REALSXP, (R_xlen_t) count)));
}

/* Tests the attributes `columns` (from 1) of a pack with classes, as exact_test.h says. */
SEXP C_weft_mi_null(SEXP pack, SEXP columns, SEXP control)
{
  const weft_mi_pack *from = &weft_mi_handle_of(pack)->pack;
  const size_t count = (size_t) Rf_xlength(columns);
  uint32_t *chosen = (uint32_t *) R_alloc(count, sizeof *chosen);
  SEXP out = PROTECT(WEFT_NAMED_LIST("p", "statistic", "correction", "log_table", "error"));
  null_job job = { from,
                   chosen,
                   count,
                   { test_column(out, "p", count), test_column(out, "statistic", count),
                     test_column(out, "correction", count), test_column(out, "log_table", count),
                     test_column(out, "error", count) } };
  for (size_t i = 0; i < count; i++) {
    const int at = INTEGER(columns)[i];
    if (at < 1 || (size_t) at > from->p) weft_glue_fail(WEFT_ERR_INTERNAL, "feature %d of %zu", at, from->p);
    chosen[i] = (uint32_t) at - 1;
  }
  WEFT_RUN_RETURN(out, control, null_laws, &job);
}
