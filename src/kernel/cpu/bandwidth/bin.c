/* Points on a grid, for sums of a smooth function over all pairs: when a point's share is divided among the four bins
 * around it as in cubic interpolation, the sum over pairs of points is that over pairs of bins, except for the
 * interpolation error. */
#include <math.h>
#include <string.h>
#include "kernel/cpu/bandwidth/sample.h"
#include "kernel/cpu/bandwidth/bin.h"

#define AT_ONCE ((size_t) 1 << 20)
#define FEW 256 /* points whose shares are computed together */
#define LANES 8

typedef struct {
  uint32_t bin[FEW];
  double share[4][FEW];
  double own[4][LANES]; /* sums over all points, lane by lane, so that they are added in the same order everywhere */
} point_shares;

VECTORIZE static void find_shares(const double *x, double least, double per_bin, point_shares *shares)
{
  for (size_t i = 0; i < FEW; i++) {
    const double at = (x[i] - least) * per_bin;
    const int32_t k = (int32_t) at; /* bins are fewer than 2^31 */
    const double t = at - (double) k, r = 1 - t;
    shares->bin[i] = (uint32_t) k;
    shares->share[0][i] = -t * r * (1 + r) / 6;
    shares->share[1][i] = r * (1 + r) * (1 + t) / 2;
    shares->share[2][i] = t * (1 + r) * (1 + t) / 2;
    shares->share[3][i] = -r * t * (1 + t) / 6;
  }
}

VECTORIZE static void add_own(point_shares *shares, size_t count)
{
  for (size_t i = count; i < FEW; i++)
    for (int j = 0; j < 4; j++) shares->share[j][i] = 0;
  for (size_t i = 0; i < FEW; i += LANES)
    for (size_t lane = 0; lane < LANES; lane++) {
      const double a = shares->share[0][i + lane], b = shares->share[1][i + lane], c = shares->share[2][i + lane],
                   d = shares->share[3][i + lane];
      shares->own[0][lane] += a * a + b * b + c * c + d * d;
      shares->own[1][lane] += a * b + b * c + c * d;
      shares->own[2][lane] += a * c + b * d;
      shares->own[3][lane] += a * d;
    }
}

/* Runs of FEW points at a time find their four shares, which are added to bin and, as products with themselves, to
 * own. */
weft_status weft_kernel_bin(weft_ctx *ctx, const weft_binning *binning, double *bin, double *own)
{
  weft_status st = WEFT_OK;
  point_shares shares;
  memset(bin, 0, binning->bins * sizeof *bin);
  memset(shares.own, 0, sizeof shares.own);
  for (size_t start = 0; start < binning->n; start += FEW) {
    const size_t count = binning->n - start < FEW ? binning->n - start : FEW;
    double last[FEW];
    const double *x = binning->x + start;
    if (start % AT_ONCE == 0) WEFT_TRY(weft_poll(ctx, (double) start, (double) binning->n));
    if (count < FEW) {
      for (size_t i = 0; i < FEW; i++) last[i] = x[i < count ? i : 0];
      x = last;
    }
    find_shares(x, binning->least, binning->per_bin, &shares);
    for (size_t i = 0; i < count; i++) {
      double *to = bin + shares.bin[i] - 1;
      to[0] += shares.share[0][i], to[1] += shares.share[1][i], to[2] += shares.share[2][i],
          to[3] += shares.share[3][i];
    }
    add_own(&shares, count);
  }
  for (int j = 0; j < 4; j++) {
    own[j] = 0;
    for (int lane = 0; lane < LANES; lane++) own[j] += shares.own[j][lane];
  }
done:
  return st;
}

/* For each bandwidth, pairs of each lag times the function at that lag, up to lags->reach. */
weft_status weft_kernel_lag_sums(weft_ctx *ctx, const weft_lags *lags, double *out)
{
  weft_status st = WEFT_OK;
  for (size_t k = 0; k < lags->bandwidths; k++) {
    const double per_lag = lags->bin / lags->h[k], most = ceil(lags->reach / per_lag);
    const size_t used = most < (double) lags->lags ? (size_t) most : lags->lags;
    double sum = 0;
    for (size_t i = 0; i < used; i++) {
      const double u = (double) i * per_lag, s = u * u, bell = exp(-0.5 * s);
      if (i % AT_ONCE == 0) WEFT_TRY(weft_poll(ctx, (double) k, (double) lags->bandwidths));
      sum += lags->pairs[i] * bell *
             (lags->order == 0   ? 1
              : lags->order == 4 ? (s - 6) * s + 3
                                 : ((s - 15) * s + 45) * s - 15);
    }
    out[k] = sum;
  }
done:
  return st;
}
