/* Counts of genotypes among the rows that a model uses. */
#include <string.h>
#include "core/call/parallel.h"
#include "mi/scan/variants.h"

enum { PIECE = 4096 };

static void count_variant(const weft_variants *variants, size_t j, double *counts)
{
  uint8_t codes[PIECE];
  uint64_t of[WEFT_VARIANT_CODES] = { 0 };
  const weft_column *column = variants->columns + j;
  const int whole = column->type == WEFT_COLUMN_GENOTYPE && weft_variants_whole(variants);
  if (whole) weft_genotype_counts((const uint8_t *) column->values, variants->n, NULL, of);
  for (size_t first = whole ? variants->n : 0; first < variants->n; first += PIECE) {
    const size_t count = variants->n - first < PIECE ? variants->n - first : PIECE;
    weft_variant_read(variants, j, first, count, codes);
    for (size_t i = 0; i < count; i++) of[codes[i]]++;
  }
  for (int code = 0; code < WEFT_VARIANT_CODES; code++) counts[code] = (double) of[code];
}

weft_status weft_variant_counts(weft_ctx *ctx, const weft_variants *variants, double *counts)
{
  weft_status st = WEFT_OK;
  const double cost = 2 * (double) (variants->n + 1);
  const size_t at_once = 1 + (size_t) (ctx->threads * 2e7 / cost);
  for (size_t first = 0; first < variants->p; first += at_once) {
    const int64_t count = (int64_t) (variants->p - first < at_once ? variants->p - first : at_once);
    WEFT_TRY(weft_poll(ctx, (double) first, (double) variants->p));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) count * cost), guided)
    for (int64_t i = 0; i < count; i++)
      count_variant(variants, first + (size_t) i, counts + WEFT_VARIANT_CODES * (first + (size_t) i));
  }
done:
  return st;
}
