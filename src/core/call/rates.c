/* The rates of the host, see rates.h: each the best of some short runs, since other work on the machine can only slow
 * them down. A core's own rate takes more runs, because a core is also slow until its clock has risen. */
#include "core/call/arena.h"
#include "core/numbers/loops.h"
#include "core/call/parallel.h"
#include "core/call/rates.h"

enum { RUNS = 3, BURSTS = 10, LANES = 64, ROUNDS = 100000, PIECE = 1 << 16, LOOKUPS = 1 << 20 };
#define TABLE ((size_t) 1 << 23) /* doubles, 64 MB: no cache holds them */

/* Multiply-adds that do not wait for each other. */
INLINE double multiply_add(double by, int rounds)
{
  double x[LANES], sum = 0;
  for (int k = 0; k < LANES; k++) x[k] = k;
  for (int round = 0; round < rounds; round++) {
    WEFT_SIMD_PRAGMA(omp simd)
    for (int k = 0; k < LANES; k++) x[k] = x[k] * by + 1;
  }
  for (int k = 0; k < LANES; k++) sum += x[k];
  return sum;
}

INLINE double add_up(const double *x, size_t n)
{
  double sum = 0;
  WEFT_SIMD_REDUCE(+ : sum)
  for (size_t i = 0; i < n; i++) sum += x[i];
  return sum;
}

#define LOOPS(name, target) \
  target static double multiply_add_##name(double by, int rounds) { return multiply_add(by, rounds); } \
  target static double add_up_##name(const double *x, size_t n) { return add_up(x, n); }
WEFT_VARIANTS(LOOPS)

static double look_up(const double *table)
{
  double sum = 0;
  uint64_t at = 1;
  for (int k = 0; k < LOOKUPS; k++) {
    at = at * 6364136223846793005u + 1442695040888963407u;
    sum += table[at >> 41];
  }
  return sum;
}

/* Measures this machine: multiply-adds per second of a core, bytes per second of all threads, look-ups per second in a
 * table beyond the caches. Each rate is the best of RUNS, since other programs only slow a run down. */
weft_status weft_host_rates(weft_ctx *ctx, double rates[WEFT_HOST_RATE_COUNT])
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  double *table, *sums;
  volatile double sink = 0; /* so that the compiler leaves nothing out */
  for (int k = 0; k < WEFT_HOST_RATE_COUNT; k++) rates[k] = 0;
  WEFT_TAKE0(table, &mem, TABLE);
  WEFT_TAKE(sums, &mem, TABLE / PIECE);
  for (size_t i = 0; i < TABLE; i++) table[i] = 1;
  for (int run = 0; run < RUNS; run++) {
    WEFT_TRY(weft_poll(ctx, run, RUNS));
    double burst = 1;
    for (int k = 0; k < BURSTS; k++) {
      const double start = weft_seconds();
      sink += WEFT_VARIANT_HERE(multiply_add)(0.5 + (run + k) / 32.0, ROUNDS);
      const double took = weft_seconds() - start;
      if (took < burst) burst = took;
    }
    const double multiplied = weft_seconds();
    WEFT_PARALLEL_FOR(ctx->threads, static)
    for (size_t piece = 0; piece < TABLE / PIECE; piece++)
      sums[piece] = WEFT_VARIANT_HERE(add_up)(table + piece * PIECE, PIECE);
    const double added = weft_seconds();
    for (size_t piece = 0; piece < TABLE / PIECE; piece++) sink += sums[piece];
    const double before = weft_seconds();
    sink += look_up(table);
    const double looked = weft_seconds();
    const double each[] = { (double) LANES * ROUNDS / (burst + 1e-9),
                            (double) TABLE * sizeof *table / (added - multiplied + 1e-9),
                            LOOKUPS / (looked - before + 1e-9) };
    for (int k = 0; k < WEFT_HOST_RATE_COUNT; k++)
      if (each[k] > rates[k]) rates[k] = each[k];
  }
done:
  weft_arena_end(&mem);
  return st;
}
