/* Points on a grid, for sums of a smooth function over all pairs: when a point's share is divided among the four bins
 * around it as in cubic interpolation, the sum over pairs of points is that over pairs of bins, except for the
 * interpolation error. */
#include <math.h>
#include <string.h>
#include "kernel/cpu/bandwidth/sample.h"

#define AT_ONCE ((size_t) 1 << 20)
#define FEW 256 /* points whose shares are computed together */
#define LANES 8

typedef struct {
  uint32_t bin[FEW];
  double share[4][FEW];
  double own[4][LANES]; /* sums over all points, lane by lane, so that they are added in the same order everywhere */
} shares;

VECTORIZE static void find_shares(const double *x, double least, double per_bin, shares *s)
{
  for (size_t i = 0; i < FEW; i++) {
    const double at = (x[i] - least) * per_bin;
    const int32_t k = (int32_t) at; /* bins are fewer than 2^31 */
    const double t = at - (double) k, r = 1 - t;
    s->bin[i] = (uint32_t) k;
    s->share[0][i] = -t * r * (1 + r) / 6;
    s->share[1][i] = r * (1 + r) * (1 + t) / 2;
    s->share[2][i] = t * (1 + r) * (1 + t) / 2;
    s->share[3][i] = -r * t * (1 + t) / 6;
  }
}

VECTORIZE static void add_own(shares *s, size_t count)
{
  for (size_t i = count; i < FEW; i++)
    for (int j = 0; j < 4; j++) s->share[j][i] = 0;
  for (size_t i = 0; i < FEW; i += LANES)
    for (size_t l = 0; l < LANES; l++) {
      const double a = s->share[0][i + l], b = s->share[1][i + l], c = s->share[2][i + l], d = s->share[3][i + l];
      s->own[0][l] += a * a + b * b + c * c + d * d;
      s->own[1][l] += a * b + b * c + c * d;
      s->own[2][l] += a * c + b * d;
      s->own[3][l] += a * d;
    }
}

/* Runs of FEW points at a time find their four shares, which are added to bin and, as products with themselves, to
 * own. */
weft_status weft_kernel_bin(weft_ctx *ctx, const weft_binning *b, double *bin, double *own)
{
  weft_status st = WEFT_OK;
  shares s;
  memset(bin, 0, b->bins * sizeof *bin);
  memset(s.own, 0, sizeof s.own);
  for (size_t start = 0; start < b->n; start += FEW) {
    const size_t count = b->n - start < FEW ? b->n - start : FEW;
    double last[FEW];
    const double *x = b->x + start;
    if (start % AT_ONCE == 0) WEFT_TRY(weft_poll(ctx, (double) start, (double) b->n));
    if (count < FEW) {
      for (size_t i = 0; i < FEW; i++) last[i] = x[i < count ? i : 0];
      x = last;
    }
    find_shares(x, b->least, b->per_bin, &s);
    for (size_t i = 0; i < count; i++) {
      double *to = bin + s.bin[i] - 1;
      to[0] += s.share[0][i], to[1] += s.share[1][i], to[2] += s.share[2][i], to[3] += s.share[3][i];
    }
    add_own(&s, count);
  }
  for (int j = 0; j < 4; j++) {
    own[j] = 0;
    for (int l = 0; l < LANES; l++) own[j] += s.own[j][l];
  }
done:
  return st;
}

/* For each bandwidth, pairs of each lag times the function at that lag, up to l->reach. */
weft_status weft_kernel_lag_sums(weft_ctx *ctx, const weft_lags *l, double *out)
{
  weft_status st = WEFT_OK;
  for (size_t k = 0; k < l->bandwidths; k++) {
    const double per_lag = l->bin / l->h[k], most = ceil(l->reach / per_lag);
    const size_t lags = most < (double) l->lags ? (size_t) most : l->lags;
    double sum = 0;
    for (size_t i = 0; i < lags; i++) {
      const double u = (double) i * per_lag, s = u * u, bell = exp(-0.5 * s);
      if (i % AT_ONCE == 0) WEFT_TRY(weft_poll(ctx, (double) k, (double) l->bandwidths));
      sum += l->pairs[i] * bell * (l->order == 0 ? 1 : l->order == 4 ? (s - 6) * s + 3 : ((s - 15) * s + 45) * s - 15);
    }
    out[k] = sum;
  }
done:
  return st;
}
