/* Views of a data set's columns as R holds them: nothing is copied. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef enum {
  WEFT_COLUMN_I32,     /* integer, logical and factor codes; INT32_MIN is missing */
  WEFT_COLUMN_F64,     /* NaN is missing */
  WEFT_COLUMN_U8,      /* raw bytes; nothing is missing */
  WEFT_COLUMN_SPARSE,  /* doubles at `rows`, zero elsewhere; NaN is missing */
  WEFT_COLUMN_PATTERN, /* one at `rows`, zero elsewhere */
  WEFT_COLUMN_GENOTYPE /* two bits per row, 0 to 2 copies or missing: genotypes.h */
} weft_column_type;

typedef struct weft_column {
  weft_column_type type;
  const void *values;
  const int32_t *rows; /* sparse: the rows of the stored values, from 0 */
  size_t stored;       /* sparse: how many are stored */
} weft_column;
