/* .Call entry points of matrices of all pairs. */
#include "mi/r/pack.h"
#include "mi/null/permutation_moments.h"

/* ---- of categories ---- */

typedef struct {
  weft_mi_handle *x;
  const weft_mi_pack *y;
  int estimator;
  double *out;
} matrix_job;
WEFT_WORK(matrix, matrix_job,
          backend->mi->matrix(ctx, &job->x->pack, weft_mi_handle_devices(job->x, backend, ctx), job->y, job->estimator,
                              job->out))

/* Information in bits between the columns of x and of y (NULL: of x). Each a matrix, a list of columns, a sparse matrix
 * or a pack's pointer. Rows with missing values are left out pair by pair, or missing values are a level. The attribute
 * "missing" counts those of x. */
SEXP C_weft_mi_matrix_counts(SEXP x, SEXP y, SEXP estimator, SEXP na_level, SEXP control)
{
  const int level = Rf_asLogical(na_level);
  const int kind = weft_kind_of(estimator, "estimator", weft_mi_entropy_names, WEFT_MI_ESTIMATORS);
  SEXP a = PROTECT(TYPEOF(x) == EXTPTRSXP ? x : weft_mi_make_pack(x, R_NilValue, 1, 1, level, control));
  SEXP b = y;
  if (y != R_NilValue && TYPEOF(y) != EXTPTRSXP) b = weft_mi_make_pack(y, R_NilValue, 1, 1, level, control);
  PROTECT(b);
  const weft_mi_pack *first = &weft_mi_handle_of(a)->pack;
  const weft_mi_pack *second = b == R_NilValue ? NULL : &weft_mi_handle_of(b)->pack;
  SEXP out = PROTECT(weft_glue_matrix(REALSXP, (double) first->p, (double) (second ? second->p : first->p)));
  matrix_job job = { weft_mi_handle_of(a), second, kind, REAL(out) };
  weft_glue_run(control, matrix, &job);
  if (a != x) weft_mi_free_pack(a);
  if (b != y) weft_mi_free_pack(b);
  UNPROTECT(3);
  return out;
}

/* ---- of numbers ---- */

typedef struct {
  weft_mi_numeric data;
  double *out;
} numeric_job;
WEFT_WORK(numeric, numeric_job, backend->mi->numeric(ctx, &job->data, job->out))

/* x: double matrix. how: list(estimator, split, k), `split` 0 or the number of columns that are compared with the
 * rest. */
SEXP C_weft_mi_numeric(SEXP x, SEXP how, SEXP control)
{
  weft_record given = weft_record_open(how, "how");
  numeric_job job = { { .n = (size_t) Rf_nrows(x),
                        .p = (size_t) Rf_ncols(x),
                        .x = REAL(x),
                        .split = weft_record_size(&given, "split"),
                        .estimator = (weft_mi_numeric_kind) weft_record_kind(&given, "estimator", weft_mi_numeric_names,
                                                                             WEFT_MI_NUMERICS),
                        .k = weft_record_integer(&given, "k") },
                      NULL };
  const size_t split = job.data.split, p = job.data.p;
  weft_record_close(&given);
  if (split > p) weft_glue_fail(WEFT_ERR_INTERNAL, "A split of %zu columns after column %zu.", p, split);
  SEXP out = PROTECT(weft_glue_matrix(REALSXP, (double) (split ? split : p), (double) (p - split)));
  job.out = REAL(out);
  WEFT_RUN_RETURN(out, control, numeric, &job);
}

typedef struct {
  weft_mi_numeric data;
  weft_mi_tails *tails;
} tails_job;
WEFT_WORK(tails, tails_job, weft_mi_tails_of(ctx, &job->data, job->tails))

/* A matrix of three rows, kurtosis, stretch and orders, for the columns of x, a double matrix, as `estimator`
 * correlates them. */
SEXP C_weft_mi_tails(SEXP x, SEXP estimator, SEXP control)
{
  tails_job job = { { .n = (size_t) Rf_nrows(x),
                      .p = (size_t) Rf_ncols(x),
                      .x = REAL_RO(x),
                      .estimator = (weft_mi_numeric_kind) weft_kind_of(estimator, "estimator", weft_mi_numeric_names,
                                                                       WEFT_MI_NUMERICS) },
                    NULL };
  SEXP out = PROTECT(weft_glue_matrix(REALSXP, 3, (double) job.data.p));
  job.tails = (weft_mi_tails *) REAL(out);
  WEFT_RUN_RETURN(out, control, tails, &job);
}
