/* Points on a grid, for sums of a smooth function over all pairs: with a point's share parted among the four bins
 * around it as cubic interpolation parts a value, the sum over pairs of points is that over pairs of bins, but for the
 * error of the interpolation. */
#include <string.h>
#include "kernel.h"

#define AT_ONCE ((size_t) 1 << 20)

weft_status weft_kernel_bin(weft_ctx *ctx, const weft_binning *b, double *bin, double *own)
{
  weft_status st = WEFT_OK;
  memset(bin, 0, b->bins * sizeof *bin);
  memset(own, 0, 4 * sizeof *own);
  for (size_t start = 0; start < b->n; start += AT_ONCE) {
    const size_t end = b->n - start < AT_ONCE ? b->n : start + AT_ONCE;
    WEFT_TRY(weft_poll(ctx, (double) start, (double) b->n));
    for (size_t i = start; i < end; i++) {
      const double at = (b->x[i] - b->least) * b->per_bin;
      const size_t k = (size_t) at;
      const double t = at - (double) k, s = 1 - t;
      const double w[4] = { -t * s * (1 + s) / 6, s * (1 + s) * (1 + t) / 2, t * (1 + s) * (1 + t) / 2,
                            -s * t * (1 + t) / 6 };
      double *to = bin + k - 1;
      for (int j = 0; j < 4; j++) to[j] += w[j];
      own[0] += w[0] * w[0] + w[1] * w[1] + w[2] * w[2] + w[3] * w[3];
      own[1] += w[0] * w[1] + w[1] * w[2] + w[2] * w[3];
      own[2] += w[0] * w[2] + w[1] * w[3];
      own[3] += w[0] * w[3];
    }
  }
done:
  return st;
}
