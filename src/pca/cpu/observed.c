/* The CPU's regressions over what is observed; see observed.h. A column is read from memory once per iteration: its
 * loading is found, and added to the sums of all scores while the column is in the first-level cache. Columns are cut
 * into slices with sums of their own, which are added in order, so that threads change nothing. */
/* Build: fused. */
#include <string.h>
#include "core/call/arena.h"
#include "core/call/parallel.h"
#include "core/call/simd.h"
#include "pca/cpu/observed.h"

#define SLICES 8

/* Over the observed values x: the sums of x t and of t^2; and x l and l^2 added to `over` and `under`. Comparing x with
 * itself gives a mask whose bits are all 1 where x is a number. */
#define OBSERVED(name, lanes, target) \
  typedef double name##_vector __attribute__((vector_size(8 * lanes), aligned(8))); \
  typedef int64_t name##_mask __attribute__((vector_size(8 * lanes), aligned(8))); \
  target static void name##_sums(size_t n, const double *x, const double *t, double out[2]) \
  { \
    name##_vector over[4] = { { 0 } }, under[4] = { { 0 } }; \
    size_t i = 0; \
    for (; i + 4 * lanes <= n; i += 4 * lanes) \
      for (int u = 0; u < 4; u++) { \
        const name##_vector a = *(const name##_vector *) (x + i + u * lanes), \
                            b = *(const name##_vector *) (t + i + u * lanes); \
        const name##_mask seen = a == a; \
        over[u] += (name##_vector)((name##_mask) a & seen) * b; \
        under[u] += (name##_vector)((name##_mask) b & seen) * b; \
      } \
    out[0] = out[1] = 0; \
    for (; i < n; i++) \
      if (x[i] == x[i]) { \
        out[0] += x[i] * t[i]; \
        out[1] += t[i] * t[i]; \
      } \
    for (int u = 0; u < 4; u++) \
      for (int l = 0; l < lanes; l++) { \
        out[0] += over[u][l]; \
        out[1] += under[u][l]; \
      } \
  } \
  target static void name##_add(size_t n, const double *x, double load, double *over, double *under) \
  { \
    const double square = load * load; \
    const name##_vector squares = square + (name##_vector){ 0 }; \
    size_t i = 0; \
    for (; i + lanes <= n; i += lanes) { \
      const name##_vector a = *(const name##_vector *) (x + i); \
      const name##_mask seen = a == a; \
      *(name##_vector *) (over + i) += (name##_vector)((name##_mask) a & seen) * load; \
      *(name##_vector *) (under + i) += (name##_vector)((name##_mask) squares & seen); \
    } \
    for (; i < n; i++) \
      if (x[i] == x[i]) { \
        over[i] += x[i] * load; \
        under[i] += square; \
      } \
  }

OBSERVED(portable, 2, )
#if WEFT_SIMD_X86
OBSERVED(avx2, 4, __attribute__((target("avx2,fma"))))
OBSERVED(avx512, 8, __attribute__((target("avx512f"))))
#endif

typedef struct {
  void (*sums)(size_t n, const double *x, const double *t, double out[2]);
  void (*add)(size_t n, const double *x, double load, double *over, double *under);
} kernel;

static kernel best_kernel(void)
{
  const kernel portable = { portable_sums, portable_add };
#if WEFT_SIMD_X86
  const kernel avx2 = { avx2_sums, avx2_add }, avx512 = { avx512_sums, avx512_add };
  if (weft_simd_level() == WEFT_SIMD_AVX512) return avx512;
  if (weft_simd_level() == WEFT_SIMD_AVX2 && __builtin_cpu_supports("fma")) return avx2;
#endif
  return portable;
}

/* loads from t when `find`; new scores when `scores`, from those loads or from the ones given. */
static weft_status regress(weft_ctx *ctx, const double *x, size_t n, size_t p, const double *t, double *loads, int find,
                           double *scores)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const kernel use = best_kernel();
  const int threads = weft_threads_worth(ctx->threads, (double) n * (double) p / 4);
  const size_t each = (p + SLICES - 1) / SLICES;
  double *over = NULL;
  if (scores) WEFT_TAKE0(over, &mem, 2 * SLICES * n);
  WEFT_PARALLEL_FOR(threads, static)
  for (int s = 0; s < SLICES; s++) {
    const size_t last = ((size_t) s + 1) * each < p ? ((size_t) s + 1) * each : p;
    for (size_t j = (size_t) s * each; j < last; j++) {
      double both[2];
      if (find) {
        use.sums(n, x + j * n, t, both);
        loads[j] = both[1] > 0 ? both[0] / both[1] : 0;
      }
      if (scores) use.add(n, x + j * n, loads[j], over + 2 * (size_t) s * n, over + (2 * (size_t) s + 1) * n);
    }
  }
  if (!scores) goto done;
  for (int s = 1; s < SLICES; s++)
    for (size_t i = 0; i < 2 * n; i++) over[i] += over[2 * (size_t) s * n + i];
  for (size_t i = 0; i < n; i++) scores[i] = over[n + i] > 0 ? over[i] / over[n + i] : 0;
done:
  weft_arena_end(&mem);
  return st;
}

weft_status weft_pca_observed(weft_ctx *ctx, const double *x, size_t n, size_t p, double *t, double *loads)
{
  return regress(ctx, x, n, p, t, loads, 1, t);
}

weft_status weft_pca_observed_loads(weft_ctx *ctx, const double *x, size_t n, size_t p, const double *t, double *loads)
{
  return regress(ctx, x, n, p, t, loads, 1, NULL);
}

weft_status weft_pca_observed_scores(weft_ctx *ctx, const double *x, size_t n, size_t p, const double *loads, double *t)
{
  return regress(ctx, x, n, p, NULL, (double *) loads, 0, t);
}

weft_status weft_pca_deflate(weft_ctx *ctx, double *x, size_t n, size_t p, const double *t, const double *loads)
{
  WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) n * (double) p / 4), static)
  for (int64_t j = 0; j < (int64_t) p; j++)
    for (size_t i = 0; i < n; i++) x[i + (size_t) j * n] -= t[i] * loads[j];
  return WEFT_OK;
}
