/* Matrices that stay on a device, behind an external pointer that R's garbage collector or weft_free() releases; and
 * raw files read in pieces. */
#include "core/data/file.h"
#include "core/r/glue.h"

/* The handle keeps the back end's operations, so that its finaliser needs no control list. */
typedef struct {
  weft_device_matrix matrix;
  weft_ctx ctx;
  const weft_device_ops *ops;
} resident;

static void release(void *object)
{
  resident *r = object;
  if (r->matrix.data && !weft_forked()) /* a forked child does not own its parent's device memory */
    r->ops->release(&r->ctx, &r->matrix);
}

static const weft_handle_kind kind = { "weft_device_matrix", release };

weft_device_matrix *weft_glue_device_matrix(SEXP handle)
{
  return &((resident *) weft_glue_handle_take(handle, &kind))->matrix;
}

typedef struct {
  const double *x;
  int64_t n, p;
  int single;
  resident *to;
} upload_job;

static weft_status upload(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  upload_job *job = data;
  job->to->ops = backend->device;
  job->to->ctx.memory = ctx->memory;
  return backend->device->upload(ctx, job->x, job->n, job->p, job->single, &job->to->matrix);
}

SEXP C_weft_upload(SEXP x, SEXP single, SEXP control)
{
  SEXP handle = PROTECT(weft_glue_handle(&kind, sizeof(resident)));
  upload_job job = { REAL(x), Rf_nrows(x), Rf_ncols(x), Rf_asLogical(single), weft_glue_handle_take(handle, &kind) };
  WEFT_RUN_RETURN(handle, control, upload, &job);
}

typedef struct {
  weft_device_matrix *m;
  double *out;
} download_job;
WEFT_WORK(download, download_job, backend->device->download(ctx, job->m, job->out))

SEXP C_weft_download(SEXP handle, SEXP control)
{
  weft_device_matrix *m = weft_glue_device_matrix(handle);
  SEXP out = PROTECT(weft_glue_matrix(REALSXP, (double) m->n, (double) m->p));
  download_job job = { m, REAL(out) };
  WEFT_RUN_RETURN(out, control, download, &job);
}

SEXP C_weft_free(SEXP handle)
{
  weft_glue_handle_free(handle, &kind);
  return R_NilValue;
}

/* c(rows, columns) of a matrix that is there, else NULL. */
SEXP C_weft_resident(SEXP handle)
{
  const resident *r = weft_glue_handle_peek(handle, &kind);
  if (!r || !r->matrix.data) return R_NilValue;
  const double n = (double) r->matrix.n, p = (double) r->matrix.p;
  SEXP out = Rf_allocVector(REALSXP, 2);
  REAL(out)[0] = n;
  REAL(out)[1] = p;
  return out;
}

/* ---- raw files ---- */

typedef struct {
  const char *path;
  int single;
  int64_t first, count;
  double *out;
} read_job;
WEFT_WORK(read_file, read_job, weft_file_read(ctx, job->path, job->single, job->first, job->count, job->out))

SEXP C_weft_file_read(SEXP path, SEXP single, SEXP first, SEXP count, SEXP control)
{
  SEXP out = PROTECT(weft_glue_vector(REALSXP, Rf_asReal(count)));
  read_job job = { Rf_translateChar(STRING_ELT(path, 0)), Rf_asLogical(single), (int64_t) Rf_asReal(first),
                   (int64_t) Rf_xlength(out), REAL(out) };
  WEFT_RUN_RETURN(out, control, read_file, &job);
}
