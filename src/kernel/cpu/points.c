/* Points from R's columns: one after another, and rescaled by a bandwidth of many numbers with nothing lost:
 * differences from an origin are taken exactly, divisions and the solve with a triangle done in pairs of doubles. */
#include <stdatomic.h>
#include <string.h>
#include "core/call/parallel.h"
#include "core/together/ranks_digest.h"
#include "kernel/both/scalar.h"
#include "kernel/cpu/points.h"

#define AT_ONCE ((size_t) 1 << 18)

/* z = L⁻¹(x - origin) for one point. z: d pairs. */
static void rescale(const double *columns, size_t n, size_t d, size_t i, const double *origin, const double *scale,
                    int full, double *out, double *lo)
{
  for (size_t j = 0; j < d; j++) {
    weft_dd z = weft_two_sum(columns[j * n + i], -origin[j]);
    for (size_t k = 0; full && k < j; k++) {
      weft_dd known = { -out[k], -lo[k] }, factor = { scale[k * d + j], 0 };
      z = weft_dd_add(z, weft_dd_mul(known, factor));
    }
    z = weft_dd_div(z, full ? scale[j * d + j] : scale[j]);
    out[j] = z.hi, lo[j] = z.lo;
  }
}

/* Threads share the rows; with a scale each row is rescaled in pairs of doubles. */
weft_status weft_points_fill(weft_ctx *ctx, const double *columns, size_t n, size_t d, const double *origin,
                             const double *scale, int full, double *out, double *lo)
{
  weft_status st = WEFT_OK;
  for (size_t start = 0; start < n; start += AT_ONCE) {
    const size_t end = n - start < AT_ONCE ? n : start + AT_ONCE;
    WEFT_TRY(weft_poll(ctx, (double) start, (double) n));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) (end - start) * (double) d * (scale ? 20 : 2)), static)
    for (size_t i = start; i < end; i++) {
      if (scale)
        rescale(columns, n, d, i, origin, scale, full, out + i * d, lo + i * d);
      else
        for (size_t j = 0; j < d; j++) out[i * d + j] = columns[j * n + i];
    }
  }
done:
  return st;
}

/* Computes the points anew, row order[i] as point i, and compares bits; stops at the first batch that differs. */
weft_status weft_points_check(weft_ctx *ctx, const double *columns, size_t n, size_t d, const double *origin,
                              const double *scale, int full, const int32_t *order, const double *x, const double *x_lo,
                              int *same)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  atomic_int all = 1;
  double *scratch;
  WEFT_TAKE(scratch, &mem, 2 * d * (size_t) ctx->threads);
  for (size_t start = 0; start < n && atomic_load(&all); start += AT_ONCE) {
    const size_t end = n - start < AT_ONCE ? n : start + AT_ONCE;
    WEFT_TRY(weft_poll(ctx, (double) start, (double) n));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) (end - start) * (double) d * (scale ? 20 : 2)), static)
    for (size_t i = start; i < end; i++) {
      const size_t row = (size_t) order[i];
      double *z = scratch + 2 * d * (size_t) WEFT_THREAD(), *lo = z + d;
      if (scale) rescale(columns, n, d, row, origin, scale, full, z, lo);
      for (size_t j = 0; j < d; j++) {
        const double known = scale ? z[j] : columns[j * n + row];
        if (!(x[i * d + j] == known && (!scale || x_lo[i * d + j] == lo[j]))) atomic_store(&all, 0);
      }
    }
  }
  *same = atomic_load(&all);
done:
  weft_arena_end(&mem);
  return st;
}

#define LANES 8
#define PIECE ((size_t) 1 << 16)

/* Numbers in lanes: extremes of each, what is not finite (x - x is 0 otherwise), and chains of a digest, each of which
 * waits for a product of the number before. */
typedef struct {
  double low[LANES], high[LANES], nothing[LANES];
  uint64_t chain[LANES];
} lanes;

__attribute__((always_inline)) static inline size_t read_lanes(const double *x, size_t count, int digest, lanes *out)
{
  lanes own = *out;
  size_t i = 0;
  for (; i + LANES <= count; i += LANES) {
    uint64_t word[LANES];
    if (digest) memcpy(word, x + i, sizeof word);
    for (int k = 0; k < LANES; k++) {
      own.low[k] = x[i + k] < own.low[k] ? x[i + k] : own.low[k];
      own.high[k] = x[i + k] > own.high[k] ? x[i + k] : own.high[k];
      own.nothing[k] += x[i + k] - x[i + k];
    }
    for (int k = 0; digest && k < LANES; k++) own.chain[k] = weft_digest_step(own.chain[k], word[k]);
  }
  *out = own;
  return i;
}

VECTORIZE static size_t read_ranges(const double *x, size_t count, lanes *out) { return read_lanes(x, count, 0, out); }
VECTORIZE static size_t read_both(const double *x, size_t count, lanes *out) { return read_lanes(x, count, 1, out); }

/* range: as weft_points_facts() has it; word: NULL, or gets the digest. */
static void facts_of(const double *x, size_t count, double *range, uint64_t *word)
{
  lanes of;
  weft_digest digest = weft_digest_begin();
  double strange = 0;
  for (int k = 0; k < LANES; k++)
    of.low[k] = INFINITY, of.high[k] = -INFINITY, of.nothing[k] = 0, of.chain[k] = (uint64_t) k;
  size_t i = (word ? read_both : read_ranges)(x, count, &of);
  if (word) {
    for (int k = 0; k < LANES; k++) weft_digest_word(&digest, of.chain[k]);
    weft_digest_bytes(&digest, x + i, (count - i) * sizeof *x);
    *word = weft_digest_end(&digest);
  }
  for (int k = 1; k < LANES; k++)
    of.low[0] = fmin(of.low[0], of.low[k]), of.high[0] = fmax(of.high[0], of.high[k]), of.nothing[0] += of.nothing[k];
  if (of.nothing[0] != 0) of.low[0] = INFINITY, of.high[0] = -INFINITY, i = 0;
  for (; i < count; i++) {
    const int finite = x[i] - x[i] == 0;
    if (finite) of.low[0] = fmin(of.low[0], x[i]), of.high[0] = fmax(of.high[0], x[i]);
    strange += !finite;
  }
  range[0] = of.low[0], range[1] = of.high[0], range[2] = strange;
}

/* A piece is PIECE numbers of a column, so that its digest finds them in the cache. Batches of pieces are shared by the
 * threads; what pieces give is joined in order, so it does not depend on the threads. */
weft_status weft_points_facts(weft_ctx *ctx, const double *columns, size_t n, size_t d, double *range, uint64_t *digest)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t each = (n + PIECE - 1) / PIECE, pieces = each * d;
  const size_t most = (size_t) ctx->threads * (n < 256 ? 4096 : n < PIECE ? (16 * PIECE + n - 1) / n : 16);
  const size_t together = pieces < most ? pieces : most;
  weft_digest all = weft_digest_begin();
  double *part;
  uint64_t *word;
  WEFT_TAKE(part, &mem, 3 * together);
  WEFT_TAKE(word, &mem, together);
  weft_digest_word(&all, n);
  weft_digest_word(&all, d);
  for (size_t j = 0; j < d; j++) range[3 * j] = INFINITY, range[3 * j + 1] = -INFINITY, range[3 * j + 2] = 0;
  for (size_t first = 0; first < pieces; first += together) {
    const size_t count = pieces - first < together ? pieces - first : together;
    WEFT_TRY(weft_poll(ctx, (double) first, (double) pieces));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, 3 * (double) count * (double) (n < PIECE ? n : PIECE)), static)
    for (size_t k = 0; k < count; k++) {
      const size_t at = (first + k) % each * PIECE, rows = n - at < PIECE ? n - at : PIECE;
      const double *x = columns + (first + k) / each * n + at;
      facts_of(x, rows, part + 3 * k, digest ? word + k : NULL);
    }
    for (size_t k = 0; k < count; k++) {
      double *to = range + 3 * ((first + k) / each);
      to[0] = fmin(to[0], part[3 * k]), to[1] = fmax(to[1], part[3 * k + 1]), to[2] += part[3 * k + 2];
      if (digest) weft_digest_word(&all, word[k]);
    }
  }
  if (digest) *digest = weft_digest_end(&all);
done:
  weft_arena_end(&mem);
  return st;
}

/* Threads share runs of rows, between which the user is asked. */
weft_status weft_points_signs(weft_ctx *ctx, const double *columns, size_t n, const int32_t *part, const double *sign,
                              size_t parts, double *out)
{
  weft_status st = WEFT_OK;
  const size_t together = (size_t) ctx->threads * 64 * PIECE;
  for (size_t first = 0; first < n; first += together) {
    const size_t last = n - first < together ? n : first + together;
    WEFT_TRY(weft_poll(ctx, (double) first, (double) n));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, 3 * (double) parts * (double) (last - first)), static)
    for (size_t i = first; i < last; i++)
      for (size_t c = 0; c < parts; c++) {
        const double w = sign[c] * columns[(size_t) part[c] * n + i];
        out[i * parts + c] = w > 0 ? w : 0;
      }
  }
done:
  return st;
}
