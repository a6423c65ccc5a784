/* The entry point through which R's tests see what a device is given to unpack, in builds with WEFT_TESTS=yes: the
 * columns of a packed panel, by the panel's own places and the host's functions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/r/packed.h"
#include "core/r/record.h"
#include "store/file/bytes.h"
#include "store/file/bitpack.h"

SEXP C_weft_store_packed_test(SEXP handle);
SEXP C_weft_panels_test(SEXP packed, SEXP part, SEXP choice);

static const uint8_t *streams(const weft_packed_panel *panel) { return panel->there ? panel->there : panel->bytes; }

static uint32_t number_at(const weft_packed_panel *panel, const weft_packed_numbers *x, size_t at)
{
  const uint8_t *bytes = streams(panel);
  const weft_store_packed packed = { (uint8_t *) bytes + x->widths, x->high ? (uint8_t *) bytes + x->high : NULL,
                                     (uint8_t *) bytes + x->bits, (uint64_t *) (void *) (bytes + x->begin) };
  uint32_t some[WEFT_STORE_CHUNK];
  weft_store_unpack(&packed, at / WEFT_STORE_CHUNK, some);
  return some[at % WEFT_STORE_CHUNK];
}

static double value_at(const weft_packed_panel *panel, const weft_packed_block *b, size_t at, size_t row)
{
  const double *size = (const double *) (void *) (panel->bytes + panel->at_size);
  double v = b->raw_bytes == 4   ? weft_store_get_float(streams(panel) + b->raw + 4 * at)
             : b->raw_bytes == 8 ? weft_store_get_double(streams(panel) + b->raw + 8 * at)
                                 : (double) number_at(panel, &b->whole, at) + 1;
  if (panel->at_size) v /= size[row];
  return panel->log1p ? log1p(v) : v;
}

/* Column j of block k. */
static void put_column(const weft_packed_panel *panel, size_t k, size_t j, int *rows, double *values)
{
  const weft_packed_block *b = &weft_packed_blocks(panel)[k];
  const uint32_t *first = (const uint32_t *) (void *) (panel->bytes + panel->at_first) + k * panel->p + j,
                 *place = (const uint32_t *) (void *) (panel->bytes + panel->at_place) + k * panel->p + j;
  size_t row = (size_t) b->row;
  for (size_t to = place[0], at = *first; to < place[panel->p]; to++, at++, row++) {
    row += number_at(panel, &b->gaps, at);
    rows[to] = (int) row;
    values[to] = value_at(panel, b, at, row);
  }
}

/* list(p, i, x, row) of a panel, a dgCMatrix's slots and the first row. */
static SEXP columns_of(const weft_packed_panel *panel)
{
  const uint32_t *place = (const uint32_t *) (void *) (panel->bytes + panel->at_place);
  SEXP out = PROTECT(WEFT_NAMED_LIST("p", "i", "x", "row"));
  int *p = INTEGER(weft_result_put(out, "p", Rf_allocVector(INTSXP, (R_xlen_t) panel->p + 1)));
  int *rows = INTEGER(weft_result_put(out, "i", Rf_allocVector(INTSXP, (R_xlen_t) panel->stored)));
  double *values = REAL(weft_result_put(out, "x", Rf_allocVector(REALSXP, (R_xlen_t) panel->stored)));
  weft_result_put(out, "row", Rf_ScalarReal((double) panel->row));
  for (size_t j = 0; j < panel->p; j++) p[j] = (int) place[j];
  p[panel->p] = (int) panel->stored;
  for (size_t k = 0; k < panel->blocks; k++)
    for (size_t j = 0; j < panel->p; j++) put_column(panel, k, j, rows, values);
  UNPROTECT(1);
  return out;
}

/* The columns of the panel that `handle` holds. */
SEXP C_weft_store_packed_test(SEXP handle)
{
  SEXP out = columns_of(&((const weft_packed *) weft_glue_handle_take(handle, &weft_packed_kind))->panel);
  weft_glue_handle_done();
  return out;
}

/* ---- panels that stay: in the host's memory in place of a device's ---- */

static weft_status keep(weft_ctx *ctx, const double *x, int64_t n, int64_t p, int single, weft_device_matrix *out)
{
  const weft_device_matrix m = { malloc((size_t) n * 8), n, p, 0, single };
  (void) ctx;
  if (!m.data) return WEFT_ERR_MEMORY;
  memcpy(m.data, x, (size_t) n * 8);
  *out = m;
  return WEFT_OK;
}

static void let_go(weft_ctx *ctx, weft_device_matrix *m)
{
  (void) ctx;
  free(m->data);
}

/* packed: handles of the panels, one after another; part: of each, from 0. choice: list(columns, size, log1p, part).
 * list(the panels of that choice). */
SEXP C_weft_panels_test(SEXP packed, SEXP part, SEXP choice)
{
  static const weft_device_ops host = { .upload = keep, .release = let_go };
  const SEXP columns = weft_glue_element(choice, "columns"), size = weft_glue_element(choice, "size"),
             one = weft_glue_element(choice, "part");
  const size_t count = (size_t) Rf_xlength(packed);
  weft_memory memory;
  weft_ctx ctx;
  weft_resident kept;
  memset(&memory, 0, sizeof memory);
  memset(&ctx, 0, sizeof ctx);
  memset(&kept, 0, sizeof kept);
  ctx.memory = &memory;
  const weft_packed *last = weft_glue_handle_take(VECTOR_ELT(packed, (R_xlen_t) count - 1), &weft_packed_kind);
  weft_status st = weft_resident_begin(&ctx, &kept, count, last->panel.row + last->panel.n, last->panel.p);
  for (size_t t = 0; t < count && st == WEFT_OK; t++) {
    const weft_packed *from = weft_glue_handle_take(VECTOR_ELT(packed, (R_xlen_t) t), &weft_packed_kind);
    st = weft_resident_add(&ctx, &host, &kept, &from->panel, (size_t) REAL(part)[t]);
  }
  if (st != WEFT_OK) weft_glue_fail(st, "%s", ctx.message);
  weft_resident_choice of = { .of = &kept,
                              .columns = columns == R_NilValue ? NULL : REAL(columns),
                              .size = size == R_NilValue ? NULL : REAL(size),
                              .p = columns == R_NilValue ? kept.p : (size_t) Rf_xlength(columns),
                              .part = one == R_NilValue ? WEFT_RESIDENT_ALL : (size_t) Rf_asReal(one),
                              .log1p = Rf_asLogical(weft_glue_element(choice, "log1p")) };
  const size_t begin = one == R_NilValue ? 0 : weft_resident_first(&kept, of.part),
               end = one == R_NilValue ? count : weft_resident_first(&kept, of.part + 1);
  SEXP out = PROTECT(Rf_allocVector(VECSXP, (R_xlen_t) (end - begin)));
  for (size_t t = begin; t < end; t++) {
    const weft_packed_panel *panel;
    if (weft_resident_fetch(&ctx, &of, t - begin, &panel) != WEFT_OK) weft_glue_fail(WEFT_ERR_INTERNAL, "no panel");
    SET_VECTOR_ELT(out, (R_xlen_t) (t - begin), columns_of(panel));
  }
  weft_packed_end(&of.to);
  weft_resident_end(&kept);
  weft_glue_handle_done();
  UNPROTECT(1);
  return out;
}
