/* The .Call entry point of matrix products. */
#include "glue.h"
#include "product.h"

typedef struct { size_t m, n, k; weft_view a, b; double *out; } product_job;
WEFT_WORK(multiply, product_job,
          weft_product(ctx, job->m, job->n, job->k, 1, &job->a, &job->b, 0, job->out, job->m, 0))

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
