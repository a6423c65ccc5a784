/* The .Call entry points of matrix products, and of the check of square matrices that comes before them. */
#include "core/r/glue.h"
#include "core/numbers/product.h"

typedef struct {
  size_t m, n, k;
  weft_view a, b;
  double *out;
} product_job;
WEFT_WORK(multiply, product_job, weft_product(ctx, job->m, job->n, job->k, 1, &job->a, &job->b, 0, job->out, job->m, 0))

/* a b, or a' b where `transposed`; matrices of doubles. */
SEXP C_weft_product(SEXP a, SEXP b, SEXP transposed, SEXP control)
{
  const int t = Rf_asLogical(transposed);
  const size_t rows = (size_t) Rf_nrows(a), columns = (size_t) Rf_ncols(a);
  product_job job = { .m = t ? columns : rows, .n = (size_t) Rf_ncols(b), .k = t ? rows : columns };
  if (TYPEOF(a) != REALSXP || TYPEOF(b) != REALSXP || (size_t) Rf_nrows(b) != job.k)
    weft_glue_fail(WEFT_ERR_INTERNAL, "The sides of a product do not fit.");
  SEXP out = PROTECT(weft_glue_matrix(REALSXP, (double) job.m, (double) job.n));
  job.a = weft_view_plain(REAL_RO(a), rows, t);
  job.b = weft_view_plain(REAL_RO(b), job.k, 0);
  job.out = REAL(out);
  WEFT_RUN_RETURN(out, control, multiply, &job);
}

typedef struct {
  const double *x;
  size_t p;
  int yes;
} symmetric_job;
WEFT_WORK(compare, symmetric_job, weft_symmetric(ctx, job->x, job->p, &job->yes))

/* Whether a square matrix of doubles equals its transpose. */
SEXP C_weft_symmetric(SEXP x, SEXP control)
{
  symmetric_job job = { .yes = 0 };
  job.x = weft_glue_square(x, "x", &job.p);
  weft_glue_run(control, compare, &job);
  return Rf_ScalarLogical(job.yes);
}
