#include "core/data/column_facts.h"
#include <math.h>
#include <string.h>
#include "core/call/arena.h"
#include "core/call/parallel.h"

/* How many columns, or other pieces with `each` operations, are done between two polls. */
static int64_t pieces_at_once(const weft_ctx *ctx, double each)
{
  return 1 + (int64_t) (ctx->threads * 2e7 / (each + 1));
}

static int team_for(const weft_ctx *ctx, int64_t pieces) { return pieces < ctx->threads ? (int) pieces : ctx->threads; }

/* ---- values ---- */

/* A hash table that counts how often each value occurs: open addressing; the number of places is a power of two, at
 * least twice the number of values. */
typedef struct value_set {
  double *value;
  int32_t *times;
  size_t places;
} value_set;

enum { FEW_VALUES = 5, FEW_BELOW = 100 };

static size_t place_of(const value_set *set, double values)
{
  uint64_t bits;
  values += 0.0; /* -0 is 0 */
  memcpy(&bits, &values, sizeof bits);
  bits *= UINT64_C(0x9e3779b97f4a7c15);
  size_t at = (size_t) (bits >> 20) & (set->places - 1);
  while (set->times[at] && set->value[at] != values) at = (at + 1) & (set->places - 1);
  return at;
}

/* How often the commonest value occurs; `few` as in the header. */
static int32_t count_values(const double *x, size_t n, const value_set *set, int32_t *few)
{
  int32_t most = 1, different = 0, whole = 1;
  memset(set->times, 0, set->places * sizeof *set->times);
  for (size_t i = 0; i < n; i++) {
    if (isnan(x[i])) continue;
    const size_t at = place_of(set, x[i]);
    if (!set->times[at]) {
      set->value[at] = x[i];
      different++;
      whole = whole && x[i] == rint(x[i]) && fabs(x[i]) < FEW_BELOW;
    }
    if (++set->times[at] > most) most = set->times[at];
  }
  *few = whole && different <= FEW_VALUES;
  return most;
}

/* All facts of column j, in one pass over its n values and, with out->same, one more that counts equal values in the
 * hash table `set`. */
static void find_facts(const double *x, size_t n, size_t j, const value_set *set, const weft_column_facts *out)
{
  int32_t missing = 0, infinite = 0;
  double least = INFINITY, greatest = -INFINITY;
  for (size_t i = 0; i < n; i++) {
    missing += isnan(x[i]) != 0;
    infinite += isinf(x[i]) != 0;
    if (x[i] < least) least = x[i];
    if (x[i] > greatest) greatest = x[i];
  }
  out->missing[j] = missing;
  out->infinite[j] = infinite;
  out->least[j] = least;
  out->greatest[j] = greatest;
  if (out->same) out->same[j] = count_values(x, n, set, &out->few[j]);
}

/* Columns are shared among threads in batches, with a poll before each. Every thread has a hash table with at least
 * twice as many places as a column has values. */
weft_status weft_column_facts_find(weft_ctx *ctx, const double *x, size_t n, size_t p, const weft_column_facts *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const double each = (double) n * (out->same ? 10 : 2);
  const int64_t batch = pieces_at_once(ctx, each), count = (int64_t) p;
  const int team = team_for(ctx, count);
  value_set *sets;
  WEFT_TAKE0(sets, &mem, (size_t) team);
  for (int t = 0; t < team && out->same; t++) {
    sets[t].places = 16;
    while (sets[t].places < 2 * n) sets[t].places *= 2;
    WEFT_TAKE(sets[t].value, &mem, sets[t].places);
    WEFT_TAKE(sets[t].times, &mem, sets[t].places);
  }
  for (int64_t first = 0; first < count; first += batch) {
    const int64_t end = first + batch < count ? first + batch : count;
    WEFT_TRY(weft_poll(ctx, (double) first, (double) p));
    WEFT_PARALLEL_FOR(weft_threads_worth(team, (double) (end - first) * each), static)
    for (int64_t j = first; j < end; j++) find_facts(x + (size_t) j * n, n, (size_t) j, &sets[WEFT_THREAD()], out);
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* ---- medians ---- */

/* Pivots are drawn at random, so that no order of values is a bad case. */
void weft_select_place(double *values, size_t n, size_t k)
{
  size_t low = 0, high = n - 1;
  uint64_t state = UINT64_C(0x2545f4914f6cdd1d);
  while (low < high) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    const double pivot = values[low + (size_t) (state % (high - low + 1))];
    size_t i = low, j = high;
    for (;;) {
      while (values[i] < pivot) i++;
      while (values[j] > pivot) j--;
      if (i >= j) break;
      const double held = values[i];
      values[i++] = values[j];
      values[j--] = held;
    }
    /* none before i is greater than the pivot, none behind j smaller */
    if (i == j) { /* both stopped at one that equals it */
      if (k == i) return;
      if (k < i)
        high = i - 1;
      else
        low = i + 1;
    } else if (k <= j)
      high = j;
    else
      low = i;
  }
}

/* mean() of two numbers in R, of one where they are the same place. */
static double mean_of(double a, double b, int count)
{
  long double mean = 0, rest = 0;
  mean += a;
  if (count == 2) mean += b;
  mean /= count;
  if (!isfinite((double) mean)) return (double) mean;
  rest += a - mean;
  if (count == 2) rest += b - mean;
  return (double) (mean + rest / count);
}

static double median_of(double *values, size_t n)
{
  const size_t half = n / 2;
  weft_select_place(values, n, half);
  if (n % 2) return mean_of(values[half], 0, 1);
  double below = values[0];
  for (size_t i = 1; i < half; i++)
    if (values[i] > below) below = values[i];
  return mean_of(below, values[half], 2);
}

/* Columns are shared among threads in batches, with a poll before each; every thread selects medians in a copy of its
 * column, once of the values and once of their distances from the median. */
weft_status weft_column_medians(weft_ctx *ctx, const double *x, size_t n, size_t p, double *median, double *deviation)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const double each = (double) n * 20;
  const int64_t batch = pieces_at_once(ctx, each), count = (int64_t) p;
  const int team = team_for(ctx, count);
  double *room;
  WEFT_TAKE(room, &mem, n * (size_t) team);
  for (int64_t first = 0; first < count; first += batch) {
    const int64_t end = first + batch < count ? first + batch : count;
    WEFT_TRY(weft_poll(ctx, (double) first, (double) p));
    WEFT_PARALLEL_FOR(weft_threads_worth(team, (double) (end - first) * each), static)
    for (int64_t j = first; j < end; j++) {
      const double *column = x + (size_t) j * n;
      double *values = room + (size_t) WEFT_THREAD() * n;
      memcpy(values, column, n * sizeof *values);
      median[j] = median_of(values, n);
      for (size_t i = 0; i < n; i++) values[i] = fabs(column[i] - median[j]);
      deviation[j] = median_of(values, n);
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* ---- rows ---- */

enum { ROWS_AT_ONCE = 16 };

static void add_squares(const double *x, size_t n, size_t p, size_t first, const double *center, const double *scale,
                        double *out)
{
  const size_t rows = n - first < ROWS_AT_ONCE ? n - first : ROWS_AT_ONCE;
  long double sums[ROWS_AT_ONCE] = { 0 };
  for (size_t j = 0; j < p; j++)
    for (size_t i = 0; i < rows; i++) {
      const double z = (x[first + i + j * n] - center[j]) / scale[j];
      sums[i] += z * z;
    }
  for (size_t i = 0; i < rows; i++) out[first + i] = (double) sums[i];
}

/* Runs of ROWS_AT_ONCE rows are shared among threads; a row's sum goes through the columns in order, so it does not
 * depend on the number of threads. */
weft_status weft_row_squares(weft_ctx *ctx, const double *x, size_t n, size_t p, const double *center,
                             const double *scale, double *out)
{
  weft_status st = WEFT_OK;
  const int64_t count = (int64_t) ((n + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE);
  const double each = 4.0 * ROWS_AT_ONCE * (double) p;
  const int64_t batch = pieces_at_once(ctx, each);
  for (int64_t first = 0; first < count; first += batch) {
    const int64_t end = first + batch < count ? first + batch : count;
    WEFT_TRY(weft_poll(ctx, (double) first, (double) count));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) (end - first) * each), static)
    for (int64_t at = first; at < end; at++) add_squares(x, n, p, (size_t) at * ROWS_AT_ONCE, center, scale, out);
  }
done:
  return st;
}

/* ---- finite ---- */

static int run_is_finite(const double *x, size_t count)
{
  int bad = 0;
  for (size_t i = 0; i < count; i++) bad |= !isfinite(x[i]);
  return !bad;
}

/* Looks at runs of 65,536 values, some at a time on all threads, and stops after the batch in which a value is not
 * finite. */
weft_status weft_all_finite(weft_ctx *ctx, const double *x, size_t count, int *finite)
{
  enum { RUN = 1 << 16 };
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const int64_t runs = (int64_t) ((count + RUN - 1) / RUN), batch = pieces_at_once(ctx, RUN);
  int bad = 0;
  uint8_t *sound;
  WEFT_TAKE(sound, &mem, (size_t) batch);
  memset(sound, 1, (size_t) batch);
  for (int64_t first = 0; first < runs && !bad; first += batch) {
    const int64_t end = first + batch < runs ? first + batch : runs;
    WEFT_TRY(weft_poll(ctx, (double) first, (double) runs));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) (end - first) * RUN / 2), static)
    for (int64_t at = first; at < end; at++) {
      const size_t from = (size_t) at * RUN;
      if (!run_is_finite(x + from, count - from < RUN ? count - from : RUN)) sound[at - first] = 0;
    }
    for (int64_t at = first; at < end; at++) bad |= !sound[at - first];
  }
  *finite = !bad;
done:
  weft_arena_end(&mem);
  return st;
}
