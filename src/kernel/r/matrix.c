/* .Call entry points of kernel matrices that are held. Points are lists as in kernel.c. */
#include "core/r/record.h"
#include "kernel/r/kernel.h"
#include "kernel/cpu/matrix/matrix.h"
#include "kernel/cpu/matrix/cholesky.h"

static SEXP matrix_to_fill(size_t rows, size_t columns)
{
  SEXP out = weft_glue_matrix(REALSXP, (double) rows, (double) columns);
  weft_expect_large_pages(REAL(out), rows * columns * sizeof(double));
  return out;
}

typedef struct {
  int kind;
  double h, factor;
  weft_points a, b;
  double *out;
} matrix_job;
WEFT_WORK(fill_matrix, matrix_job,
          weft_kernel_matrix(ctx, job->kind, job->h, job->factor, &job->a, &job->b, job->out, job->a.n))

/* factor k(|a_i - b_j| / h): a matrix with a row for each point of a. */
SEXP C_weft_kernel_matrix(SEXP kernel, SEXP h, SEXP factor, SEXP a, SEXP b, SEXP control)
{
  matrix_job job = { weft_kernel_kind_of(kernel), Rf_asReal(h), Rf_asReal(factor), weft_kernel_points_of(a),
                     weft_kernel_points_of(b),    NULL };
  SEXP out = PROTECT(matrix_to_fill(job.a.n, job.b.n));
  job.out = REAL(out);
  WEFT_RUN_RETURN(out, control, fill_matrix, &job);
}

typedef struct {
  int kind, definite;
  double h, variance, noise;
  weft_points points;
  weft_kernel_root root;
  size_t m;
  double *v;
} root_job;
WEFT_WORK(find_root, root_job,
          weft_kernel_factor(ctx, job->kind, job->h, job->variance, job->noise, &job->points, &job->root,
                             &job->definite))
WEFT_WORK(solve_root, root_job, weft_kernel_solve(ctx, &job->root, job->m, job->v))

/* The panels of a root as R has them: a list of matrices. */
static double **panels_of(SEXP list)
{
  double **panels = (double **) R_alloc((size_t) Rf_xlength(list), sizeof *panels);
  for (R_xlen_t p = 0; p < Rf_xlength(list); p++) panels[p] = REAL(VECTOR_ELT(list, p));
  return panels;
}

/* plan: list(kernel, h, variance, noise, width). The panels of the root, or NULL where there is none. */
SEXP C_weft_kernel_factor(SEXP points, SEXP plan, SEXP control)
{
  weft_record record = weft_record_open(plan, "plan");
  root_job job = { .kind = weft_kernel_kind_of(weft_record_field(&record, "kernel")),
                   .h = weft_record_number(&record, "h"),
                   .variance = weft_record_number(&record, "variance"),
                   .noise = weft_record_number(&record, "noise"),
                   .points = weft_kernel_points_of(points) };
  job.root = (weft_kernel_root){ job.points.n, weft_record_size(&record, "width"), NULL };
  weft_record_close(&record);
  const size_t count = weft_root_panels(&job.root);
  SEXP out = PROTECT(Rf_allocVector(VECSXP, (R_xlen_t) count));
  for (size_t p = 0; p < count; p++)
    SET_VECTOR_ELT(out, (R_xlen_t) p, matrix_to_fill(weft_root_rows(&job.root, p), weft_root_columns(&job.root, p)));
  job.root.panels = panels_of(out);
  weft_glue_run(control, find_root, &job);
  UNPROTECT(1);
  return job.definite ? out : R_NilValue;
}

/* (L L')^-1 v, of the panels that C_weft_kernel_factor() made. */
SEXP C_weft_kernel_solve(SEXP panels, SEXP v, SEXP control)
{
  SEXP out = PROTECT(Rf_duplicate(v));
  root_job job = { .root = { (size_t) Rf_nrows(v), (size_t) Rf_ncols(VECTOR_ELT(panels, 0)), panels_of(panels) },
                   .m = (size_t) Rf_ncols(v),
                   .v = REAL(out) };
  WEFT_RUN_RETURN(out, control, solve_root, &job);
}
