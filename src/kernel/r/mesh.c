/* .Call entry points of sums over a mesh; see mesh.h. */
#include <string.h>
#include "core/r/record.h"
#include "kernel/r/kernel.h"
#include "kernel/both/mesh.h"
#include "kernel/cpu/mesh/scheme.h"

/* size: list(m, extent, references, queries, on_device), extents in bandwidths. c(width, spacing, nodes, seconds of one
 * thread on the CPU, else of the device), or NULL where no mesh keeps the target, an error over the sum of weights. */
SEXP C_weft_kernel_mesh_choose(SEXP size, SEXP target)
{
  const char *names[] = { "width", "spacing", "nodes", "seconds", "" };
  weft_record record = weft_record_open(size, "size");
  SEXP extent = weft_record_field(&record, "extent");
  weft_mesh_size s = { .d = (size_t) XLENGTH(extent),
                       .m = weft_record_size(&record, "m"),
                       .references = weft_record_number(&record, "references"),
                       .queries = weft_record_number(&record, "queries"),
                       .on_device = weft_record_flag(&record, "on_device") };
  memcpy(s.extent, weft_record_doubles(&record, "extent", (double) s.d), s.d * sizeof *s.extent);
  weft_record_close(&record);
  const weft_mesh_choice c = weft_mesh_choose(&s, Rf_asReal(target));
  if (!c.width) return R_NilValue;
  SEXP out = Rf_mkNamed(REALSXP, names);
  const double values[] = { c.width, c.spacing, c.nodes, c.work * 1e-9 };
  memcpy(REAL(out), values, sizeof values);
  return out;
}

typedef struct {
  weft_kernel_task task;
  weft_mesh_scheme scheme;
  double *out, error, sum;
  int32_t *missed;
  size_t missing;
} mesh_job;

/* 0 where the choice cannot keep the target. */
static int scheme_of(mesh_job *job, SEXP choice, SEXP target)
{
  const weft_mesh_choice c = { .width = (int) REAL(choice)[0], .spacing = REAL(choice)[1] };
  return weft_mesh_make(&c, job->task.reference.d, Rf_asReal(target), &job->scheme);
}

WEFT_WORK(sum, mesh_job,
          weft_kernel_mesh(ctx, backend->kernel, &job->task, &job->scheme, job->out, job->missed, &job->missing,
                           &job->error))

/* list(sum, missed, error): missed are the queries, from 0, whose sums are not within the task's errors. NULL: no such
 * mesh. choice: as C_weft_kernel_mesh_choose() gives it, for the same target. */
SEXP C_weft_kernel_mesh(SEXP task, SEXP choice, SEXP target, SEXP control)
{
  mesh_job job = { .task = weft_kernel_task_of(task) };
  if (!scheme_of(&job, choice, target)) return R_NilValue;
  SEXP out = PROTECT(WEFT_NAMED_LIST("sum", "missed", "error"));
  job.out = REAL(weft_result_put(out, "sum", Rf_allocMatrix(REALSXP, (int) job.task.query.n, (int) job.task.m)));
  SEXP missed = PROTECT(Rf_allocVector(INTSXP, (R_xlen_t) job.task.query.n));
  job.missed = INTEGER(missed);
  weft_glue_run(control, sum, &job);
  weft_result_put(out, "missed", Rf_xlengthgets(missed, (R_xlen_t) job.missing));
  weft_result_put(out, "error", Rf_ScalarReal(job.error));
  UNPROTECT(2);
  return out;
}

WEFT_WORK(sum_pairs, mesh_job, weft_kernel_mesh_pairs(ctx, &job->task, &job->scheme, &job->sum, &job->error))

/* c(sum, error) of all ordered pairs of references, or NULL. */
SEXP C_weft_kernel_mesh_pairs(SEXP task, SEXP choice, SEXP target, SEXP control)
{
  mesh_job job = { .task = weft_kernel_task_of(task) };
  if (!scheme_of(&job, choice, target)) return R_NilValue;
  weft_glue_run(control, sum_pairs, &job);
  SEXP out = Rf_allocVector(REALSXP, 2);
  REAL(out)[0] = job.sum, REAL(out)[1] = job.error;
  return out;
}
