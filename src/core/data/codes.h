/* From a column as R holds it to small codes: what every system that counts categories starts from. */
#pragma once

#include "core/data/bits.h"
#include "core/data/columns.h"
#include "core/call/context.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_MAX_LEVELS 65535u

typedef enum {
  WEFT_CODES_OK = 0,
  WEFT_CODES_WIDE,      /* the values span more than 16 bits: weft_encode_wide() is needed */
  WEFT_CODES_NOT_WHOLE, /* a number with a fraction, or beyond 32 bits */
  WEFT_CODES_TOO_MANY   /* more than WEFT_MAX_LEVELS distinct values */
} weft_codes_result;

/* Codes of a column: value - base, so that codes go up with the values; not every code below `levels` need occur.
 * Missing values have code 255 (one byte per code) or 65535 (two), or, as a level of their own, code levels - 1. */
typedef struct weft_codes {
  int width;       /* bytes per code: 1 or 2 */
  uint32_t levels; /* at least 1 */
  int32_t base;    /* the value of code 0 */
  size_t missing;  /* rows whose value is missing, also when that is a level */
} weft_codes;

/* How a column can be coded, without coding it. Sparse columns: over all rows, the zeros included. */
weft_codes_result weft_codes_plan(const weft_column *x, size_t n, int na_level, weft_codes *plan);

/* Writes the codes of rows first .. first+count-1 (any column but a sparse one, or a sparse one's stored values) to
 * `out`, bytes or 16-bit words as planned. */
void weft_encode(const weft_column *x, size_t first, size_t count, int na_level, const weft_codes *plan, void *out);

/* Writes all n codes of any column as planned, sparse ones filled with the code of zero. `scratch`: n bytes × width,
 * used for sparse columns only. */
void weft_encode_all(const weft_column *x, size_t n, int na_level, const weft_codes *plan, void *out, void *scratch);

/* A column whose values span more than 16 bits: codes are ranks among the distinct values. `work` holds 2n int32. */
weft_codes_result weft_encode_wide(const weft_column *x, size_t n, int na_level, weft_codes *plan, uint16_t *out,
                                   int32_t *work);

/* What is wrong, in words that follow the column's name. */
const char *weft_codes_problem(weft_codes_result r);

#ifdef __cplusplus
}
#endif
