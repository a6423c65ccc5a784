#include "pca/cpu/permuted_data.h"
#include <string.h>
#include "core/call/arena.h"
#include "core/call/parallel.h"

typedef struct {
  double draw, value;
} drawn_value;

static size_t box_of(double draw, size_t n)
{
  const size_t box = (size_t) (draw * (double) n); /* the product may be rounded to n */
  return box < n ? box : n - 1;
}

/* Ascending by draws between 0 and 1, equal ones in the order of the rows: distributed over as many buckets as there
 * are values, after which few are out of order. */
static void permute(const double *x, size_t n, weft_rng rng, uint64_t first, drawn_value *v, size_t *ends, double *out)
{
  memset(ends, 0, (n + 1) * sizeof *ends);
  for (size_t i = 0; i < n; i++) ends[box_of(weft_draw_uniform(rng, first + i), n) + 1]++;
  for (size_t box = 0; box < n; box++) ends[box + 1] += ends[box];
  for (size_t i = 0; i < n; i++) {
    const double draw = weft_draw_uniform(rng, first + i);
    v[ends[box_of(draw, n)]++] = (drawn_value){ draw, x[i] };
  }
  for (size_t i = 1; i < n; i++) {
    const drawn_value now = v[i];
    size_t at = i;
    for (; at > 0 && v[at - 1].draw > now.draw; at--) v[at] = v[at - 1];
    v[at] = now;
  }
  for (size_t i = 0; i < n; i++) out[i] = v[i].value;
}

/* Every thread has room for one column's draws; columns are independent, and each uses draws of its own indices. */
weft_status weft_pca_null(weft_ctx *ctx, const double *x, size_t n, size_t p, weft_rng rng, const double *mean,
                          double *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const double each = (mean ? 15 : 60) * (double) n;
  const int64_t count = (int64_t) p, batch = 1 + (int64_t) (ctx->threads * 2e7 / each);
  const size_t team = p < (size_t) ctx->threads ? p : (size_t) ctx->threads;
  drawn_value *v;
  size_t *ends;
  WEFT_TAKE(v, &mem, mean ? 1 : n * team);
  WEFT_TAKE(ends, &mem, mean ? 1 : (n + 1) * team);
  for (int64_t first = 0; first < count; first += batch) {
    const int64_t end = first + batch < count ? first + batch : count;
    WEFT_TRY(weft_poll(ctx, (double) first, (double) p));
    WEFT_PARALLEL_FOR(weft_threads_worth((int) team, (double) (end - first) * each), static)
    for (int64_t j = first; j < end; j++) {
      const size_t at = (size_t) j * n, own = (size_t) WEFT_THREAD();
      if (!mean) permute(x + at, n, rng, at, v + own * n, ends + own * (n + 1), out + at);
      for (size_t i = 0; mean && i < n; i++)
        out[at + i] = (weft_draw_uniform(rng, at + i) < 0.5 ? -1 : 1) * (x[at + i] - mean[j]);
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}
