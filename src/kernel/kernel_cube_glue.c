/* The .Call entry point of kernel_cube.h. */
#include "../base/record.h"
#include "kernel_cube.h"
#include "kernel_glue.h"

static weft_status cube(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  return weft_kernel_cube_spread(ctx, backend->kernel, data);
}

/* cube: list(n, d, samples, key, kernel, h), where `h` may be several bandwidths. list(out, seconds) as in
 * kernel_cube.h. */
SEXP C_weft_kernel_cube(SEXP cube_list, SEXP control)
{
  const char *fields[] = { "out", "seconds", "" };
  weft_record record = weft_record_open(cube_list, "cube");
  weft_kernel_cube_job job = { .n = weft_record_size(&record, "n"),
                               .d = weft_record_size(&record, "d"),
                               .samples = weft_record_size(&record, "samples"),
                               .key = weft_record_key(&record, "key"),
                               .kind = weft_kernel_kind_of(weft_record_field(&record, "kernel")) };
  SEXP h = weft_record_field(&record, "h");
  weft_record_close(&record);
  job.h = REAL(h), job.bandwidths = (size_t) Rf_xlength(h);
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, fields));
  job.out = REAL(weft_result_put(out, "out", Rf_allocMatrix(REALSXP, 2 * (int) job.samples + 4, (int) job.bandwidths)));
  job.seconds = REAL(weft_result_put(out, "seconds", Rf_allocVector(REALSXP, 5 + (R_xlen_t) job.bandwidths)));
  weft_glue_run(control, cube, &job);
  UNPROTECT(1);
  return out;
}
