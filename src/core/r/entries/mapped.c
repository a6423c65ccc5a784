/* Mapped files behind external pointers that R's garbage collector releases. */
#include "core/r/glue.h"
#include "core/data/mapped.h"

static void release(void *object) { weft_unmap(object); }

static const weft_handle_kind kind = { "weft_mapped", release };

const weft_mapped *weft_glue_mapped(SEXP pointer) { return weft_glue_handle_take(pointer, &kind); }

typedef struct {
  const char *path, *name;
  size_t size;
  weft_mapped *to;
} map_job;

static weft_status map(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  map_job *job = data;
  (void) backend;
  weft_unmap(job->to); /* of a first try */
  return weft_map(ctx, job->path, job->name, job->size, job->to);
}

/* size: bytes that the file must have. */
SEXP C_weft_map(SEXP path, SEXP name, SEXP size, SEXP control)
{
  SEXP handle = PROTECT(weft_glue_handle(&kind, sizeof(weft_mapped)));
  map_job job = { Rf_translateChar(STRING_ELT(path, 0)), Rf_translateCharUTF8(STRING_ELT(name, 0)),
                  (size_t) Rf_asReal(size), weft_glue_handle_take(handle, &kind) };
  WEFT_RUN_RETURN(handle, control, map, &job);
}
