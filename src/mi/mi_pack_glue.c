/* .Call entry points of packs: making one, what it holds, giving it back, and matrices of all pairs. A pack lives behind an
 * external pointer with its own arena, and with the copy that a device back end keeps of it. */
#include <string.h>
#include "../base/ranks_digest.h"
#include "mi.h"
#include "mi_pack_glue.h"

static void release(void *object)
{
  weft_mi_handle *h = object;
  for (int k = 0; k < WEFT_MOST_DEVICES; k++) /* a forked child does not own device memory */
    if (h->device[k] && !weft_forked()) h->ops->release(&h->ctx, h->device[k]);
  weft_arena_end(&h->mem);
}

static const weft_handle_kind kind = { "weft_mi_pack", release };

weft_mi_handle *weft_mi_handle_of(SEXP pointer) { return weft_glue_handle_take(pointer, &kind); }

weft_mi_resident **weft_mi_handle_devices(weft_mi_handle *h, const weft_backend *backend, const weft_ctx *ctx)
{
  if (!backend->device) return h->device;
  h->ops = backend->mi;
  for (int k = 0; k < ctx->device_count; k++) {
    if (h->device[k] && h->on[k] != ctx->devices[k]) {
      h->ops->release(&h->ctx, h->device[k]);
      h->device[k] = NULL;
    }
    h->on[k] = ctx->devices[k];
  }
  return h->device;
}

typedef struct { weft_mi_handle *handle; const weft_column *columns; size_t p, n; const uint16_t *classes; uint32_t class_levels; int na_level; } build_job;

static weft_status build(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  build_job *job = data;
  weft_mi_handle *h = job->handle;
  (void) backend;
  weft_arena_end(&h->mem); /* of a first try that ran short of memory */
  h->ctx = *ctx;
  h->ctx.poll = NULL;
  h->mem = weft_arena_begin(ctx);
  weft_status st = weft_mi_pack_build(ctx, &h->mem, job->columns, job->p, job->n, job->classes, job->class_levels, job->na_level, &h->pack);
  h->mem.ctx = &h->ctx;
  return st;
}

/* class_codes: integers from 0 with NA, or NULL: all rows, one class. */
SEXP weft_mi_make_pack(SEXP x, SEXP class_codes, uint32_t class_levels, int na_level, SEXP control)
{
  const size_t p = weft_glue_ncol(x), n = class_codes == R_NilValue ? weft_glue_nrow(x) : (size_t) Rf_xlength(class_codes);
  weft_column *columns = (weft_column *) R_alloc(p, sizeof *columns);
  uint16_t *classes = (uint16_t *) R_alloc(n, sizeof *classes);
  SEXP pointer = PROTECT(weft_glue_handle(&kind, sizeof(weft_mi_handle)));
  weft_mi_handle *h = weft_mi_handle_of(pointer);
  for (size_t i = 0; i < n; i++) {
    const int code = class_codes == R_NilValue ? 0 : INTEGER(class_codes)[i];
    classes[i] = code == NA_INTEGER ? WEFT_NA_U16 : (uint16_t) code;
  }
  weft_glue_columns(x, columns);
  build_job job = { h, columns, p, n, classes, class_levels, na_level };
  weft_glue_run(control, build, &job);
  UNPROTECT(1);
  return pointer;
}

SEXP C_weft_mi_pack(SEXP x, SEXP class_codes, SEXP class_levels, SEXP na_level, SEXP control)
{
  return weft_mi_make_pack(x, class_codes, (uint32_t) Rf_asInteger(class_levels), Rf_asLogical(na_level), control);
}

/* What a pack says of itself: rows, attributes, classes, bytes; missing values and levels of every attribute. */
SEXP C_weft_mi_pack_info(SEXP pointer)
{
  const char *fields[] = { "n", "p", "classes", "bytes", "on_device", "missing", "levels", "class_rows", "" };
  const weft_mi_handle *h = weft_mi_handle_of(pointer);
  const weft_mi_pack *pack = &h->pack;
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, fields));
  size_t coded = 0;
  int on_device = 0;
  for (int k = 0; k < WEFT_MOST_DEVICES; k++) on_device |= h->device[k] != NULL;
  for (size_t g = 0; g < pack->group_count; g++) coded += pack->groups[g].coded ? pack->groups[g].count : 0;
  SET_VECTOR_ELT(out, 0, Rf_ScalarReal((double) pack->n));
  SET_VECTOR_ELT(out, 1, Rf_ScalarReal((double) pack->p));
  SET_VECTOR_ELT(out, 2, Rf_ScalarReal((double) pack->classes));
  SET_VECTOR_ELT(out, 3, Rf_ScalarReal(8.0 * (double) pack->words * (double) pack->plane_rows + 2.0 * (double) coded * (double) pack->n));
  SET_VECTOR_ELT(out, 4, Rf_ScalarLogical(on_device));
  SET_VECTOR_ELT(out, 5, Rf_allocVector(REALSXP, (R_xlen_t) pack->p));
  SET_VECTOR_ELT(out, 6, Rf_allocVector(INTSXP, (R_xlen_t) pack->p));
  SET_VECTOR_ELT(out, 7, Rf_allocVector(REALSXP, (R_xlen_t) pack->classes));
  for (size_t c = 0; c < pack->classes; c++) REAL(VECTOR_ELT(out, 7))[c] = (double) pack->class_rows[c];
  for (size_t j = 0; j < pack->p; j++) {
    REAL(VECTOR_ELT(out, 5))[j] = pack->missing[j];
    INTEGER(VECTOR_ELT(out, 6))[j] = (int) pack->levels[pack->place[j]];
  }
  weft_glue_handle_done();
  UNPROTECT(1);
  return out;
}

/* Eight bytes that differ when what is packed does. */
SEXP C_weft_mi_pack_digest(SEXP pointer)
{
  const weft_mi_pack *pack = &weft_mi_handle_of(pointer)->pack;
  weft_digest d = weft_digest_begin();
  size_t coded = 0;
  for (size_t g = 0; g < pack->group_count; g++) coded += pack->groups[g].coded ? pack->groups[g].count : 0;
  weft_digest_word(&d, pack->n);
  weft_digest_bytes(&d, pack->class_rows, pack->classes * sizeof *pack->class_rows);
  weft_digest_bytes(&d, pack->place, pack->p * sizeof *pack->place);
  weft_digest_bytes(&d, pack->levels, pack->p * sizeof *pack->levels);
  weft_digest_bytes(&d, pack->missing, pack->p * sizeof *pack->missing);
  weft_digest_bytes(&d, pack->bits, pack->words * pack->plane_rows * sizeof *pack->bits);
  weft_digest_bytes(&d, pack->codes, coded * pack->n * sizeof *pack->codes);
  const uint64_t all = weft_digest_end(&d);
  SEXP out = Rf_allocVector(RAWSXP, sizeof all);
  memcpy(RAW(out), &all, sizeof all);
  return out;
}

SEXP C_weft_mi_pack_free(SEXP pointer)
{
  weft_glue_handle_free(pointer, &kind);
  return R_NilValue;
}

SEXP C_weft_mi_pack_alive(SEXP pointer) { return Rf_ScalarLogical(weft_glue_handle_peek(pointer, &kind) != NULL); }

/* ---- ranking ---- */

typedef struct { const weft_mi_pack *pack; weft_mi_rank out; } rank_job;

static weft_status rank(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  rank_job *job = data;
  (void) backend;
  return weft_mi_pack_rank(ctx, job->pack, &job->out);
}

/* As C_weft_mi_rank, from a pack. */
SEXP C_weft_mi_pack_rank(SEXP pack, SEXP control)
{
  const char *fields[] = { "mi", "entropy", "class_entropy", "n", "missing", "levels", "class_levels", "" };
  const weft_mi_pack *from = &weft_mi_handle_of(pack)->pack;
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, fields));
  for (int k = 0; k < 7; k++) SET_VECTOR_ELT(out, k, Rf_allocVector(k < 5 ? REALSXP : INTSXP, (R_xlen_t) from->p));
  rank_job job = { from, { REAL(VECTOR_ELT(out, 0)), REAL(VECTOR_ELT(out, 1)), REAL(VECTOR_ELT(out, 2)), REAL(VECTOR_ELT(out, 3)),
                           INTEGER(VECTOR_ELT(out, 5)), INTEGER(VECTOR_ELT(out, 6)), REAL(VECTOR_ELT(out, 4)) } };
  weft_glue_run(control, rank, &job);
  UNPROTECT(1);
  return out;
}

/* ---- matrices ---- */

typedef struct { weft_mi_handle *x; const weft_mi_pack *y; int estimator; double *out; } matrix_job;

static weft_status matrix(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  matrix_job *job = data;
  return backend->mi->matrix(ctx, &job->x->pack, weft_mi_handle_devices(job->x, backend, ctx), job->y, job->estimator, job->out);
}

/* Information in bits between the columns of x and of y (NULL: of x). Each a matrix, a list of columns, a sparse matrix or a
 * pack's pointer. Missing values leave out rows pair by pair, or are a level. The attribute "missing" counts those of x. */
SEXP C_weft_mi_matrix_counts(SEXP x, SEXP y, SEXP estimator, SEXP na_level, SEXP control)
{
  const int level = Rf_asLogical(na_level);
  SEXP a = PROTECT(TYPEOF(x) == EXTPTRSXP ? x : weft_mi_make_pack(x, R_NilValue, 1, level, control));
  SEXP b = PROTECT(y == R_NilValue || TYPEOF(y) == EXTPTRSXP ? y : weft_mi_make_pack(y, R_NilValue, 1, level, control));
  const weft_mi_pack *first = &weft_mi_handle_of(a)->pack, *second = b == R_NilValue ? NULL : &weft_mi_handle_of(b)->pack;
  SEXP out = PROTECT(weft_glue_matrix(REALSXP, (double) first->p, (double) (second ? second->p : first->p)));
  matrix_job job = { weft_mi_handle_of(a), second, Rf_asInteger(estimator), REAL(out) };
  weft_glue_run(control, matrix, &job);
  if (a != x) weft_glue_handle_free(a, &kind);
  if (b != y) weft_glue_handle_free(b, &kind);
  UNPROTECT(3);
  return out;
}
