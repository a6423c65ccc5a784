/* Scores, halves and partners; see regulation.h. All on the host, for both back ends. */
#include <stdlib.h>
#include <string.h>
#include "core/numbers/draws.h"
#include "core/call/parallel.h"
#include "regulation/regulation.h"
#include "regulation/cpu/selection_loops.h"
#include "regulation/cpu/scores.h"

#define AT_ONCE 4e6 /* values that a thread reads between two polls */

static int64_t batch_of(const weft_ctx *ctx, size_t each)
{
  return (int64_t) (1 + ctx->threads * AT_ONCE / ((double) each + 1));
}

/* ---- scores ---- */

typedef struct {
  double value;
  int32_t row;
} placed;

static int by_value(const void *a, const void *b)
{
  const placed *x = a, *y = b;
  if (x->value != y->value) return x->value < y->value ? -1 : 1;
  return (x->row > y->row) - (x->row < y->row);
}

/* order: ascending */
static double median_of(const placed *order, size_t n)
{
  const double low = order[(n - 1) / 2].value, high = order[n / 2].value;
  return low == high ? low : low / 2 + high / 2;
}

/* z becomes a mixture: by_rank times itself, and the rest from the values: distances from their median in units of the
 * median absolute deviation (of a normal variable 0.6745), no greater than quantiles are, so that a few extremes do not
 * decide. Where half of the values are equal, or infinite, there is no such unit, and z stays. `order` is sorted
 * anew. */
static void blend_values(const double *x, size_t n, const weft_regulation_scale *scale, placed *order, double *z)
{
  const double centre = median_of(order, n), most = scale->quantile[2 * n - 2];
  double unit;
  if (!(fabs(centre) < WEFT_INFINITY)) return;
  for (size_t i = 0; i < n; i++) order[i].value = fabs(x[order[i].row] - centre);
  qsort(order, n, sizeof *order, by_value);
  unit = median_of(order, n) / 0.6744897501960817;
  if (!(unit > 0 && unit < WEFT_INFINITY)) return;
  for (size_t i = 0; i < n; i++) {
    const double value = fmax(-most, fmin(most, (x[i] - centre) / unit));
    z[i] = scale->by_rank * z[i] + (1 - scale->by_rank) * value;
  }
}

/* One column; `order` has room for n. */
static void place_column(const double *x, size_t n, const weft_regulation_scale *scale, placed *order, double *z)
{
  for (size_t i = 0; i < n; i++) {
    order[i].value = x[i];
    order[i].row = (int32_t) i;
  }
  qsort(order, n, sizeof *order, by_value);
  for (size_t first = 0, end; first < n; first = end) {
    for (end = first + 1; end < n && order[end].value == order[first].value; end++)
      ;
    /* ranks first + 1 .. end: twice their average is first + 1 + end */
    for (size_t k = first; k < end; k++) z[order[k].row] = scale->quantile[first + end - 1];
  }
  if (scale->by_rank < 1) blend_values(x, n, scale, order, z);
}

/* Sums run over rows in their order. */
static void score_places(const double *z, size_t n, int32_t most, int32_t *out)
{
  double mean = 0, greatest = 0;
  size_t equal = 1;
  while (equal < n && z[equal] == z[0]) equal++;
  if (equal == n) {
    memset(out, 0, n * sizeof *out);
    return;
  }
  for (size_t i = 0; i < n; i++) mean += z[i];
  mean /= (double) n;
  for (size_t i = 0; i < n; i++) greatest = fmax(greatest, fabs(z[i] - mean));
  for (size_t i = 0; i < n; i++) out[i] = (int32_t) rint((z[i] - mean) * (most / greatest));
}

/* Places or scores of all columns, whichever output is not NULL; threads share the columns. */
static weft_status columns(weft_ctx *ctx, const double *x, size_t n, size_t p, const weft_regulation_scale *scale,
                           double *places, int32_t *scores)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const int64_t batch = batch_of(ctx, 16 * n), count = (int64_t) p;
  placed *order;
  double *room;
  WEFT_TAKE(order, &mem, n * (size_t) ctx->threads);
  WEFT_TAKE(room, &mem, n * (size_t) ctx->threads);
  for (int64_t first = 0; first < count; first += batch) {
    const int64_t end = first + batch < count ? first + batch : count;
    WEFT_TRY(weft_poll(ctx, (double) first, (double) p));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) (end - first) * (double) n * 40), dynamic)
    for (int64_t j = first; j < end; j++) {
      const size_t own = (size_t) WEFT_THREAD() * n, at = (size_t) j * n;
      double *z = places ? places + at : room + own;
      if (scale->quantile) place_column(x + at, n, scale, order + own, z);
      if (scores) score_places(scale->quantile ? z : x + at, n, scale->most, scores + at);
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}

weft_status weft_regulation_places(weft_ctx *ctx, const double *x, size_t n, size_t p,
                                   const weft_regulation_scale *scale, double *out)
{
  return columns(ctx, x, n, p, scale, out, NULL);
}

weft_status weft_regulation_scores(weft_ctx *ctx, const double *x, size_t n, size_t p,
                                   const weft_regulation_scale *scale, int32_t *out)
{
  return columns(ctx, x, n, p, scale, NULL, out);
}

/* ---- names ---- */

/* Steele, Lea and Flood's finaliser (2014) over the bits seen so far and the next value's. */
static uint64_t mixed(uint64_t seen, double value)
{
  uint64_t h = seen + weft_bits_of(value + 0.0) + UINT64_C(0x9e3779b97f4a7c15); /* -0 is 0 */
  h = (h ^ (h >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  h = (h ^ (h >> 27)) * UINT64_C(0x94d049bb133111eb);
  return h ^ (h >> 31);
}

typedef struct {
  uint64_t key;
  uint32_t again;
  int32_t row;
} sorted_row;

static int by_key(const void *a, const void *b)
{
  const sorted_row *x = a, *y = b;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  if (x->again != y->again) return x->again < y->again ? -1 : 1;
  return (x->row > y->row) - (x->row < y->row);
}

/* A row's name is mixed from its values in the order of the columns; equal names are then numbered in the order of the
 * rows. */
weft_status weft_regulation_names(weft_ctx *ctx, const double *x, size_t n, size_t p, weft_regulation_name *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t batch = (size_t) batch_of(ctx, n);
  sorted_row *order;
  WEFT_TAKE(order, &mem, n);
  for (size_t i = 0; i < n; i++) {
    out[i].values = 0;
    out[i].again = 0;
  }
  for (size_t first = 0; first < p; first += batch) {
    const size_t end = p - first < batch ? p : first + batch;
    WEFT_TRY(weft_poll(ctx, (double) first, (double) p));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) (end - first) * (double) n * 2), static)
    for (int64_t i = 0; i < (int64_t) n; i++)
      for (size_t j = first; j < end; j++) out[i].values = mixed(out[i].values, x[(size_t) i + j * n]);
  }
  for (size_t i = 0; i < n; i++) order[i] = (sorted_row){ out[i].values, 0, (int32_t) i };
  qsort(order, n, sizeof *order, by_key);
  for (size_t i = 1; i < n; i++)
    if (order[i].key == order[i - 1].key) out[order[i].row].again = out[order[i - 1].row].again + 1;
done:
  weft_arena_end(&mem);
  return st;
}

/* ---- halves and partners ---- */

enum { STREAM_HALVES = 0, STREAM_PARTNERS = 1 };

/* Rows in the order of their draws number `index`. */
static void draw_order(const weft_regulation_name *names, size_t n, uint64_t key, uint32_t purpose, uint64_t index,
                       sorted_row *order)
{
  /* the stream says what the draw is for, so its number goes into the key of a second round */
  const weft_u32x4 w = weft_draw_words((weft_rng){ key, purpose }, index, 0);
  const weft_rng rng = { ((uint64_t) w.v[0] << 32) | w.v[1], purpose };
  for (size_t i = 0; i < n; i++) {
    const weft_u32x4 v = weft_draw_words(rng, names[i].values, names[i].again);
    order[i] = (sorted_row){ ((uint64_t) v.v[0] << 32) | v.v[1], names[i].again, (int32_t) i };
  }
  qsort(order, n, sizeof *order, by_key);
}

/* For each pair an order of the rows is drawn; its first m rows are the first half, the second half begins where as few
 * rows as can be are in both. */
weft_status weft_regulation_halves(weft_ctx *ctx, const weft_regulation_name *names, size_t n, size_t m, size_t pairs,
                                   uint64_t key, int32_t *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t second = m < n - m ? m : n - m; /* place of the second half's first row */
  sorted_row *order;
  uint8_t *in;
  WEFT_TAKE(order, &mem, n);
  WEFT_TAKE(in, &mem, n);
  for (size_t pair = 0; pair < pairs; pair++) {
    int32_t *to[2] = { out + 2 * pair * m, out + (2 * pair + 1) * m };
    WEFT_TRY(weft_poll(ctx, (double) pair, (double) pairs));
    draw_order(names, n, key, STREAM_HALVES, pair, order);
    /* with odd n, or small halves, the last rows are in neither; where two do not fit in n, the middle rows are in
     * both */
    for (size_t k = 0; k < n; k++)
      in[order[k].row] = (uint8_t) ((k < m ? 1 : 0) | (k >= second && k < second + m ? 2 : 0));
    for (size_t i = 0; i < n; i++)
      for (int k = 0; k < 2; k++)
        if (in[i] & (1 << k)) *to[k]++ = (int32_t) i;
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* `count` random orders of the rows; `cycles`: instead, of each row the one that follows it. */
static weft_status draw_orders(weft_ctx *ctx, const weft_regulation_name *names, size_t n, size_t count,
                               uint32_t stream, uint64_t key, int cycles, int32_t *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  sorted_row *order;
  WEFT_TAKE(order, &mem, n);
  for (size_t c = 0; c < count; c++) {
    WEFT_TRY(weft_poll(ctx, (double) c, (double) count));
    draw_order(names, n, key, stream, c, order);
    for (size_t k = 0; k < n; k++)
      if (cycles)
        out[c * n + (size_t) order[k].row] = order[k + 1 < n ? k + 1 : 0].row;
      else
        out[c * n + k] = order[k].row;
  }
done:
  weft_arena_end(&mem);
  return st;
}

weft_status weft_regulation_orders(weft_ctx *ctx, const weft_regulation_name *names, size_t n, size_t count,
                                   uint32_t stream, uint64_t key, int32_t *out)
{
  return draw_orders(ctx, names, n, count, stream, key, 0, out);
}

weft_status weft_regulation_partners(weft_ctx *ctx, const weft_regulation_name *names, size_t n, size_t copies,
                                     uint64_t key, int32_t *out)
{
  return draw_orders(ctx, names, n, copies, STREAM_PARTNERS, key, 1, out);
}

/* ---- what both ways of selection on the CPU share ---- */

weft_status weft_regulation_items(weft_ctx *ctx, const weft_regulation_phase *phase, weft_regulation_item *work,
                                  const void *engine)
{
  weft_status st = WEFT_OK;
  const size_t count = phase->items;
  const size_t batch = (size_t) (1 + ctx->threads * (WEFT_REGULATION_ITEMS / (phase->cost + 1)));
  for (size_t first = 0; first < count; first += batch) {
    const int64_t end = (int64_t) (count - first < batch ? count : first + batch);
    const double share = (double) first / (double) count;
    WEFT_TRY(weft_poll(ctx, (double) phase->first + share * (double) phase->count, (double) phase->halves));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) (end - (int64_t) first) * phase->cost), dynamic)
    for (int64_t item = (int64_t) first; item < end; item++) work(engine, (size_t) item, WEFT_THREAD());
  }
done:
  return st;
}

weft_status weft_regulation_own(weft_arena *mem, const weft_regulation_job *job, int32_t **out)
{
  weft_status st = WEFT_OK;
  int32_t *of_gene;
  WEFT_TAKE(*out, mem, job->targets);
  WEFT_TAKE(of_gene, mem, job->p);
  for (size_t gene = 0; gene < job->p; gene++) of_gene[gene] = -1;
  for (size_t j = 0; j < job->regulators; j++) of_gene[job->regulator[j]] = (int32_t) j;
  for (size_t target = 0; target < job->targets; target++) (*out)[target] = of_gene[job->target[target]];
done:
  return st;
}
