/* Points from R's columns: one after another, and rescaled by a bandwidth of many numbers with nothing lost: differences
 * from an origin are taken exactly, divisions and the solve with a triangle done in pairs of doubles. */
#include "../base/parallel.h"
#include "kernel_scalar.h"

#define AT_ONCE 65536

/* z = L⁻¹(x - origin) for one point. z: d pairs. */
static void rescale(const double *columns, size_t n, size_t d, size_t i, const double *origin, const double *scale,
                    int full, double *out, double *lo) {
  for (size_t j = 0; j < d; j++) {
    weft_dd z = weft_two_sum(columns[j * n + i], -origin[j]);
    for (size_t k = 0; full && k < j; k++) {
      weft_dd known = {-out[k], -lo[k]}, factor = {scale[k * d + j], 0};
      z = weft_dd_add(z, weft_dd_mul(known, factor));
    }
    z = weft_dd_div(z, full ? scale[j * d + j] : scale[j]);
    out[j] = z.hi, lo[j] = z.lo;
  }
}

weft_status weft_points_fill(weft_ctx *ctx, const double *columns, size_t n, size_t d, const double *origin,
                             const double *scale, int full, double *out, double *lo) {
  weft_status st = WEFT_OK;
  for (size_t start = 0; start < n; start += AT_ONCE) {
    const size_t end = n - start < AT_ONCE ? n : start + AT_ONCE;
    WEFT_TRY(weft_poll(ctx, (double) start, (double) n));
    WEFT_PARALLEL(ctx->threads)
    WEFT_FOR(static)
    for (size_t i = start; i < end; i++) {
      if (scale) rescale(columns, n, d, i, origin, scale, full, out + i * d, lo + i * d);
      else for (size_t j = 0; j < d; j++) out[i * d + j] = columns[j * n + i];
    }
  }
done:
  return st;
}
