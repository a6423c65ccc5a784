/* The .Call entry points of cube.h. */
#include "core/r/record.h"
#include "kernel/both/test/cube.h"
#include "kernel/r/kernel.h"
#include "kernel/both/mesh.h"
#include "kernel/cpu/mesh/scheme.h"

static weft_status cube(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  return weft_kernel_cube_spread(ctx, backend->kernel, data);
}

/* cube: list(n, d, samples, key, kernel, h), where `h` may be several bandwidths. list(out, seconds) as in
 * cube.h. */
SEXP C_weft_kernel_cube(SEXP cube_list, SEXP control)
{
  weft_record record = weft_record_open(cube_list, "cube");
  weft_kernel_cube_job job = { .n = weft_record_size(&record, "n"),
                               .d = weft_record_size(&record, "d"),
                               .samples = weft_record_size(&record, "samples"),
                               .key = weft_record_key(&record, "key"),
                               .kind = weft_kernel_kind_of(weft_record_field(&record, "kernel")) };
  SEXP h = weft_record_field(&record, "h");
  weft_record_close(&record);
  job.h = REAL(h), job.bandwidths = (size_t) Rf_xlength(h);
  SEXP out = PROTECT(WEFT_NAMED_LIST("out", "seconds"));
  job.out = REAL(weft_result_put(out, "out", Rf_allocMatrix(REALSXP, 2 * (int) job.samples + 4, (int) job.bandwidths)));
  job.seconds = REAL(weft_result_put(out, "seconds", Rf_allocVector(REALSXP, 5 + (R_xlen_t) job.bandwidths)));
  WEFT_RUN_RETURN(out, control, cube, &job);
}

static weft_status cube_mesh(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  return backend->kernel->cube_mesh(ctx, data);
}

/* cube: list(n, d, samples, key, h, width, spacing). list(out, seconds) as in cube.h; error: the greatest of a
 * sum, over n; nodes. NULL where such a mesh does not keep the target. */
SEXP C_weft_kernel_cube_mesh(SEXP cube_list, SEXP target, SEXP control)
{
  weft_record record = weft_record_open(cube_list, "cube");
  double rounding = 0;
  weft_kernel_cube_mesh_job job = { .n = weft_record_size(&record, "n"),
                                    .d = weft_record_size(&record, "d"),
                                    .samples = weft_record_size(&record, "samples"),
                                    .key = weft_record_key(&record, "key"),
                                    .h = weft_record_number(&record, "h"),
                                    .rounding = &rounding };
  const weft_mesh_choice choice = { .width = (int) weft_record_number(&record, "width"),
                                    .spacing = weft_record_number(&record, "spacing") };
  weft_record_close(&record);
  const weft_mesh_box box = { .most = { 1, 1, 1 } };
  weft_mesh_scheme scheme;
  weft_mesh mesh = { .d = job.d, .m = 1, .scheme = &scheme };
  if (!weft_mesh_make(&choice, job.d, Rf_asReal(target), &scheme)) return R_NilValue;
  weft_mesh_place(&mesh, &box, &box, job.h);
  job.mesh = &mesh;
  SEXP out = PROTECT(WEFT_NAMED_LIST("out", "seconds", "error", "nodes"));
  job.out = REAL(weft_result_put(out, "out", Rf_allocMatrix(REALSXP, (int) job.samples, 2)));
  job.seconds = REAL(weft_result_put(out, "seconds", Rf_allocVector(REALSXP, 5)));
  weft_glue_run(control, cube_mesh, &job);
  weft_result_put(out, "error", Rf_ScalarReal(weft_mesh_error(&mesh) + rounding));
  weft_result_put(out, "nodes", Rf_ScalarReal((double) mesh.nodes));
  UNPROTECT(1);
  return out;
}
