/* .Call entry points of packs: making one, what it holds, giving it back. A pack lives behind an external pointer with
 * its own arena, and with the copy that a device back end keeps of it. */
#include <string.h>
#include "core/together/ranks_digest.h"
#include "core/r/record.h"
#include "mi/mi.h"
#include "mi/r/pack.h"

static void release(void *object)
{
  weft_mi_handle *handle = object;
  for (int k = 0; k < WEFT_MOST_DEVICES; k++) /* a forked child does not own device memory */
    if (handle->device[k] && !weft_forked()) handle->ops->release(&handle->ctx, handle->device[k]);
  weft_arena_end(&handle->mem);
}

static const weft_handle_kind kind = { "weft_mi_pack", release };

weft_mi_handle *weft_mi_handle_anywhere(SEXP pointer) { return weft_glue_handle_take(pointer, &kind); }

weft_mi_handle *weft_mi_handle_of(SEXP pointer)
{
  weft_mi_handle *handle = weft_mi_handle_anywhere(pointer);
  if (handle->pack.away.at) Rf_error("planes that only a device has are for searches over pairs and triples");
  return handle;
}

weft_mi_resident **weft_mi_handle_devices(weft_mi_handle *handle, const weft_backend *backend, const weft_ctx *ctx)
{
  if (!backend->device) return handle->device;
  handle->ops = backend->mi;
  for (int k = 0; k < ctx->device_count; k++) {
    if (handle->device[k] && handle->on[k] != ctx->devices[k]) {
      handle->ops->release(&handle->ctx, handle->device[k]);
      handle->device[k] = NULL;
    }
    handle->on[k] = ctx->devices[k];
  }
  return handle->device;
}

typedef struct {
  weft_mi_handle *handle;
  const weft_column *columns;
  size_t p, n;
  weft_mi_classes classes;
  int na_level;
} build_job;

static void begin(weft_ctx *ctx, weft_mi_handle *handle)
{
  weft_arena_end(&handle->mem); /* of a first try that ran short of memory, or of room on the device */
  handle->ctx = *ctx;
  handle->ctx.poll = NULL;
  handle->mem = weft_arena_begin(ctx);
}

/* Planes made where they will be used, where the back end can and has room. */
static weft_status plant(weft_ctx *ctx, const weft_mi_ops *ops, build_job *job)
{
  weft_status st = WEFT_OK;
  weft_mi_handle *handle = job->handle;
  WEFT_TRY(weft_mi_pack_begin(&handle->mem, &job->classes, job->p, job->n, &handle->pack));
  st = ops->plant(ctx, &handle->mem, job->columns, job->na_level, &handle->pack, &handle->device[0]);
  if (st == WEFT_ERR_MEMORY) return WEFT_OK; /* the host makes them */
  WEFT_TRY(st);
  handle->ops = ops;
  handle->on[0] = ctx->devices[0];
  handle->pack.away = (struct weft_mi_away){ ops, handle->device[0] };
done:
  return st;
}

/* Packs into the handle: on the device where it can make the planes itself and has room for them, else on the host. The
 * handle owns the memory and keeps it when this call's context ends. */
static weft_status build(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  weft_status st = WEFT_OK;
  build_job *job = data;
  weft_mi_handle *handle = job->handle;
  begin(ctx, handle);
  if (backend->mi->plant && ctx->device_count == 1 && weft_mi_pack_plantable(job->columns, job->p, &job->classes)) {
    WEFT_TRY(plant(ctx, backend->mi, job));
    if (handle->device[0]) goto done;
    begin(ctx, handle);
  }
  st = weft_mi_pack_build(ctx, &handle->mem, job->columns, job->p, job->n, &job->classes, job->na_level, &handle->pack);
done:
  handle->mem.ctx = &handle->ctx;
  return st;
}

SEXP weft_mi_make_pack(SEXP x, SEXP class_codes, uint32_t class_levels, uint32_t strata, int na_level, SEXP control)
{
  const int one_class = class_codes == R_NilValue;
  const size_t p = weft_glue_ncol(x), n = one_class ? weft_glue_nrow(x) : (size_t) Rf_xlength(class_codes);
  weft_column *columns = (weft_column *) R_alloc(p, sizeof *columns);
  uint16_t *classes = one_class ? (uint16_t *) R_alloc(n, sizeof *classes) : weft_mi_class_codes(class_codes);
  SEXP pointer = PROTECT(weft_glue_handle(&kind, sizeof(weft_mi_handle)));
  weft_mi_handle *handle = weft_mi_handle_anywhere(pointer);
  if (one_class) memset(classes, 0, n * sizeof *classes);
  weft_glue_columns(x, columns);
  build_job job = { handle, columns, p, n, { classes, class_levels * strata, class_levels }, na_level };
  WEFT_RUN_RETURN(pointer, control, build, &job);
}

void weft_mi_free_pack(SEXP pointer) { weft_glue_handle_free(pointer, &kind); }

/* classes: list(codes, or NULL for one class; levels: of a stratum; strata). */
SEXP C_weft_mi_pack(SEXP x, SEXP classes, SEXP na_level, SEXP control)
{
  weft_record given = weft_record_open(classes, "classes");
  const SEXP codes = weft_record_field(&given, "codes");
  const uint32_t levels = (uint32_t) weft_record_integer(&given, "levels"),
                 strata = (uint32_t) weft_record_integer(&given, "strata");
  weft_record_close(&given);
  return weft_mi_make_pack(x, codes, levels, strata, Rf_asLogical(na_level), control);
}

/* What describes a pack: rows, attributes, classes, bytes; missing values and levels of every attribute. */
SEXP C_weft_mi_pack_info(SEXP pointer)
{
  const weft_mi_handle *handle = weft_mi_handle_anywhere(pointer);
  const weft_mi_pack *pack = &handle->pack;
  SEXP out = PROTECT(WEFT_NAMED_LIST("n", "p", "classes", "bytes", "on_device", "missing", "levels", "class_rows"));
  size_t coded = 0;
  int on_device = 0;
  for (int k = 0; k < WEFT_MOST_DEVICES; k++) on_device |= handle->device[k] != NULL;
  for (size_t group = 0; group < pack->group_count; group++)
    coded += pack->groups[group].coded ? pack->groups[group].count : 0;
  weft_result_put(out, "n", Rf_ScalarReal((double) pack->n));
  weft_result_put(out, "p", Rf_ScalarReal((double) pack->p));
  weft_result_put(out, "classes", Rf_ScalarReal((double) pack->classes));
  weft_result_put(out, "bytes",
                  Rf_ScalarReal(8.0 * (double) pack->words * (double) pack->plane_rows +
                                2.0 * (double) coded * (double) pack->n));
  weft_result_put(out, "on_device", Rf_ScalarLogical(on_device));
  double *missing = REAL(weft_result_put(out, "missing", Rf_allocVector(REALSXP, (R_xlen_t) pack->p)));
  int *levels = INTEGER(weft_result_put(out, "levels", Rf_allocVector(INTSXP, (R_xlen_t) pack->p)));
  double *rows = REAL(weft_result_put(out, "class_rows", Rf_allocVector(REALSXP, (R_xlen_t) pack->classes)));
  for (size_t c = 0; c < pack->classes; c++) rows[c] = (double) pack->class_rows[c];
  for (size_t j = 0; j < pack->p; j++) {
    missing[j] = pack->missing[j];
    levels[j] = (int) pack->levels[pack->place[j]];
  }
  weft_glue_handle_done();
  UNPROTECT(1);
  return out;
}

/* Eight bytes that differ when the packed data differ. */
SEXP C_weft_mi_pack_digest(SEXP pointer)
{
  const weft_mi_pack *pack = &weft_mi_handle_of(pointer)->pack;
  weft_digest digest = weft_digest_begin();
  size_t coded = 0;
  for (size_t group = 0; group < pack->group_count; group++)
    coded += pack->groups[group].coded ? pack->groups[group].count : 0;
  weft_digest_word(&digest, pack->n);
  weft_digest_word(&digest, pack->per);
  weft_digest_bytes(&digest, pack->class_rows, pack->classes * sizeof *pack->class_rows);
  weft_digest_bytes(&digest, pack->place, pack->p * sizeof *pack->place);
  weft_digest_bytes(&digest, pack->levels, pack->p * sizeof *pack->levels);
  weft_digest_bytes(&digest, pack->missing, pack->p * sizeof *pack->missing);
  weft_digest_bytes(&digest, pack->bits, pack->words * pack->plane_rows * sizeof *pack->bits);
  weft_digest_bytes(&digest, pack->codes, coded * pack->n * sizeof *pack->codes);
  const uint64_t all = weft_digest_end(&digest);
  SEXP out = Rf_allocVector(RAWSXP, sizeof all);
  memcpy(RAW(out), &all, sizeof all);
  return out;
}

SEXP C_weft_mi_pack_free(SEXP pointer)
{
  weft_mi_free_pack(pointer);
  return R_NilValue;
}

SEXP C_weft_mi_pack_alive(SEXP pointer) { return Rf_ScalarLogical(weft_glue_handle_peek(pointer, &kind) != NULL); }
