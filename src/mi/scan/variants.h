/* Genotypes as R or a .bed file has them, for the rows that a model uses. */
#pragma once

#include <math.h>
#include "core/call/context.h"
#include "core/data/bits.h"
#include "core/data/columns.h"
#include "core/data/genotypes.h"

/* Codes are copies of an allele, 0 to 2, WEFT_GENOTYPE_MISSING or what follows. */
enum { WEFT_VARIANT_OTHER = 4, WEFT_VARIANT_CODES };

typedef struct weft_variants {
  size_t n, p; /* rows that are used, variants */
  const weft_column *columns;
  const uint32_t *rows; /* n: where they are in a column, ascending */
} weft_variants;

/* Whether a column's first n rows are those that are used. */
static inline int weft_variants_whole(const weft_variants *variants)
{
  return variants->n && variants->rows[variants->n - 1] == variants->n - 1;
}

/* The code in one row of a column. */
static inline int weft_variant_at(const weft_column *column, size_t row)
{
  switch (column->type) {
  case WEFT_COLUMN_GENOTYPE: return weft_genotype_at((const uint8_t *) column->values, row);
  case WEFT_COLUMN_I32: {
    const int32_t value = ((const int32_t *) column->values)[row];
    return value == WEFT_NA_I32 ? WEFT_GENOTYPE_MISSING : value >= 0 && value <= 2 ? value : WEFT_VARIANT_OTHER;
  }
  case WEFT_COLUMN_F64: {
    const double value = ((const double *) column->values)[row];
    if (isnan(value)) return WEFT_GENOTYPE_MISSING;
    return value == 0 ? 0 : value == 1 ? 1 : value == 2 ? 2 : WEFT_VARIANT_OTHER;
  }
  case WEFT_COLUMN_U8: {
    const uint8_t value = ((const uint8_t *) column->values)[row];
    return value <= 2 ? value : WEFT_VARIANT_OTHER;
  }
  default: return WEFT_VARIANT_OTHER;
  }
}

/* Codes of `count` rows of a variant, from number `first` of those used. */
static inline void weft_variant_read(const weft_variants *variants, size_t j, size_t first, size_t count,
                                     uint8_t *codes)
{
  const weft_column *column = variants->columns + j;
  const uint32_t *rows = variants->rows + first;
  for (size_t i = 0; i < count; i++) codes[i] = (uint8_t) weft_variant_at(column, rows[i]);
}

/* How often each code occurs: WEFT_VARIANT_CODES × p. */
weft_status weft_variant_counts(weft_ctx *ctx, const weft_variants *variants, double *counts);
