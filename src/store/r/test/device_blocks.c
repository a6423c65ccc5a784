/* The entry point through which R's tests see what a device is given to unpack, in builds with WEFT_TESTS=yes: the
 * columns of a packed panel, by the panel's own places and the host's functions. */
#include <math.h>
#include <string.h>
#include "core/r/packed.h"
#include "core/r/record.h"
#include "store/file/bytes.h"
#include "store/file/bitpack.h"

SEXP C_weft_store_packed_test(SEXP handle);

static uint32_t number_at(const weft_packed_panel *panel, const weft_packed_numbers *x, size_t at)
{
  const weft_store_packed packed = { panel->bytes + x->widths, x->high ? panel->bytes + x->high : NULL,
                                     panel->bytes + x->bits, (uint64_t *) (void *) (panel->bytes + x->begin) };
  uint32_t some[WEFT_STORE_CHUNK];
  weft_store_unpack(&packed, at / WEFT_STORE_CHUNK, some);
  return some[at % WEFT_STORE_CHUNK];
}

static double value_at(const weft_packed_panel *panel, const weft_packed_block *b, size_t at, size_t row)
{
  const double *size = (const double *) (void *) (panel->bytes + panel->at_size);
  double v = b->raw_bytes == 4   ? weft_store_get_float(panel->bytes + b->raw + 4 * at)
             : b->raw_bytes == 8 ? weft_store_get_double(panel->bytes + b->raw + 8 * at)
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

/* list(p, i, x) of the panel that `handle` holds, a dgCMatrix's slots. */
SEXP C_weft_store_packed_test(SEXP handle)
{
  const weft_packed_panel *panel = &((const weft_packed *) weft_glue_handle_take(handle, &weft_packed_kind))->panel;
  const uint32_t *place = (const uint32_t *) (void *) (panel->bytes + panel->at_place);
  SEXP out = PROTECT(WEFT_NAMED_LIST("p", "i", "x"));
  int *p = INTEGER(weft_result_put(out, "p", Rf_allocVector(INTSXP, (R_xlen_t) panel->p + 1)));
  int *rows = INTEGER(weft_result_put(out, "i", Rf_allocVector(INTSXP, (R_xlen_t) panel->stored)));
  double *values = REAL(weft_result_put(out, "x", Rf_allocVector(REALSXP, (R_xlen_t) panel->stored)));
  for (size_t j = 0; j < panel->p; j++) p[j] = (int) place[j];
  p[panel->p] = (int) panel->stored;
  for (size_t k = 0; k < panel->blocks; k++)
    for (size_t j = 0; j < panel->p; j++) put_column(panel, k, j, rows, values);
  weft_glue_handle_done();
  UNPROTECT(1);
  return out;
}
