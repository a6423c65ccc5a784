/* Genotypes from PLINK's binary format: four a byte, the first in the lowest bits; 00 two copies of the first allele, 10
 * one, 11 none, 01 missing. */
#include "../base/parallel.h"
#include "mi.h"

weft_status weft_mi_genotypes(weft_ctx *ctx, const uint8_t *packed, size_t n, size_t p, int32_t *out)
{
  static const int32_t copies[4] = { 2, INT32_MIN, 1, 0 };
  weft_status st = WEFT_OK;
  const size_t bytes = (n + 3) / 4, batch = 1 + (size_t) ctx->threads * 20000000 / (n + 1);
  for (size_t first = 0; first < p; first += batch) {
    const int64_t end = (int64_t) (p - first < batch ? p : first + batch);
    WEFT_TRY(weft_poll(ctx, (double) first, (double) p));
    WEFT_PARALLEL(ctx->threads)
    WEFT_FOR(static)
    for (int64_t j = (int64_t) first; j < end; j++)
      for (size_t i = 0; i < n; i++)
        out[(size_t) j * n + i] = copies[packed[(size_t) j * bytes + i / 4] >> (2 * (i % 4)) & 3];
  }
done:
  return st;
}
