/* Vectors of draws on the CPU (draws_fill.h): OpenMP over indices, which own their draws, so that neither the number of
 * threads nor the cut into chunks changes a bit. Compiled with -ffp-contract=off (math.h). */
#include "core/numbers/draws_fill.h"
#include "core/call/parallel.h"

/* The slowest kind takes about 2 us per index: a chunk stays below the 100 ms between two polls. */
enum { CHUNK = 32768 };

static void fill_words(weft_rng rng, uint64_t first, int64_t n, uint32_t sub, int threads, double *out)
{
  WEFT_PARALLEL_FOR(weft_threads_worth(threads, 40 * (double) n), static)
  for (int64_t i = 0; i < n; i++) {
    weft_u32x4 w = weft_draw_words(rng, first + (uint64_t) i, sub);
    for (int j = 0; j < 4; j++) out[4 * i + j] = w.v[j];
  }
}

static void fill_draws(const weft_draws_law *law, weft_rng rng, uint64_t first, int64_t n, int threads, double *out)
{
  WEFT_PARALLEL_FOR(weft_threads_worth(threads, 100 * (double) n), static)
  for (int64_t i = 0; i < n; i++) out[i] = weft_draws_one(law, rng, first + (uint64_t) i);
}

/* Draws first .. first + n - 1 of a stream under one law with parameters a and b, CHUNK at a time between polls. Each
 * depends on its index alone, so threads change nothing. WEFT_ERR_INPUT for parameters that the law does not have. */
weft_status weft_draws_fill(weft_ctx *ctx, int kind, uint64_t key, uint32_t stream, uint64_t first, size_t n, double a,
                            double b, double *out)
{
  weft_status st = WEFT_OK;
  weft_draws_law law;
  weft_rng rng = { key, stream };
  const char *wrong = weft_draws_law_make(kind, a, b, &law);
  if (wrong) return weft_fail(ctx, WEFT_ERR_INPUT, "%s", wrong);
  if (kind == WEFT_DRAW_CURAND_WORDS) return weft_fail(ctx, WEFT_ERR_INPUT, "cuRAND's words need the CUDA back end");
  for (size_t at = 0; at < n; at += CHUNK) {
    int64_t count = (int64_t) (n - at < CHUNK ? n - at : CHUNK);
    WEFT_TRY(weft_poll(ctx, (double) at, (double) n));
    if (kind == WEFT_DRAW_WORDS)
      fill_words(rng, first + at, count, (uint32_t) a, ctx->threads, out + 4 * at);
    else
      fill_draws(&law, rng, first + at, count, ctx->threads, out + at);
  }
done:
  return st;
}
