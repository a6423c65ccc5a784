/* Vectors of draws: element i of the result is the draw of index first + i (draws.h), on the CPU or on the device.
 * The tests compare the two, and R draws through it. Native code calls draws.h where it needs a draw.
 *
 * What a kind takes from `a` and `b`:
 *   words, curand_words     a: sub-counter            four 32-bit words per index; cuRAND's on the device only
 *   gamma, log_gamma        a: shape
 *   beta, log_beta, log1m_beta  a, b: shapes          the draw, its logarithm, the logarithm of one minus it
 *   below                   a: n below 2^64           rounded to double where it is above 2^53
 *   categorical, categorical_log  a: categories, at most 64; category j from 0 has weight 1 + b j >= 0 */
#pragma once

#include "core/call/context.h"
#include "core/numbers/draws.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The kinds, as R calls them too. */
/* clang-format off */
#define WEFT_DRAW_LIST(X) \
  X(WORDS, "words") X(CURAND_WORDS, "curand_words") X(UNIFORM, "uniform") X(NORMAL, "normal") \
  X(EXPONENTIAL, "exponential") X(GUMBEL, "gumbel") X(GAMMA, "gamma") X(LOG_GAMMA, "log_gamma") X(BETA, "beta") \
  X(LOG_BETA, "log_beta") X(LOG1M_BETA, "log1m_beta") X(BELOW, "below") X(CATEGORICAL, "categorical") \
  X(CATEGORICAL_LOG, "categorical_log")
/* clang-format on */
#define WEFT_DRAW_ENUM(kind, name) WEFT_DRAW_##kind,
typedef enum { WEFT_DRAW_LIST(WEFT_DRAW_ENUM) WEFT_DRAW_KINDS } weft_draw_kind;

/* `out` has n elements, 4 n for the kinds of words. The index wraps at 2^64. */
weft_status weft_draws_fill(weft_ctx *ctx, int kind, uint64_t key, uint32_t stream, uint64_t first, size_t n, double a,
                            double b, double *out);
weft_status weft_draws_fill_cuda(weft_ctx *ctx, int kind, uint64_t key, uint32_t stream, uint64_t first, size_t n,
                                 double a, double b, double *out);

#ifdef __cplusplus
}
#endif

/* Doubles that one index gives. */
static WEFT_HD inline int weft_draws_width(int kind)
{
  return kind == WEFT_DRAW_WORDS || kind == WEFT_DRAW_CURAND_WORDS ? 4 : 1;
}

/* A kind with its parameters, ready to draw; passed to kernels by value. */
enum { WEFT_DRAWS_CATEGORIES = 64 };
typedef struct weft_draws_law {
  int kind;
  double a, b;
  double weights[WEFT_DRAWS_CATEGORIES]; /* or their logarithms */
} weft_draws_law;

/* NULL, or what is wrong with the parameters. */
static inline const char *weft_draws_law_make(int kind, double a, double b, weft_draws_law *law)
{
  law->kind = kind;
  law->a = a;
  law->b = b;
  switch (kind) {
  case WEFT_DRAW_WORDS:
  case WEFT_DRAW_CURAND_WORDS:
    return a >= 0 && a <= 4294967295.0 ? NULL : "`a`, the sub-counter, must be between 0 and 2^32 - 1";
  case WEFT_DRAW_GAMMA:
  case WEFT_DRAW_LOG_GAMMA: return a > 0 && a <= DBL_MAX ? NULL : "`a`, the shape, must be positive and finite";
  case WEFT_DRAW_BETA:
  case WEFT_DRAW_LOG_BETA:
  case WEFT_DRAW_LOG1M_BETA:
    return a > 0 && a <= DBL_MAX && b > 0 && b <= DBL_MAX ? NULL
                                                          : "`a` and `b`, the shapes, must be positive and finite";
  case WEFT_DRAW_BELOW: return a >= 1 && a < 18446744073709551616.0 ? NULL : "`a` must be at least 1 and below 2^64";
  case WEFT_DRAW_CATEGORICAL:
  case WEFT_DRAW_CATEGORICAL_LOG:
    if (!(a >= 1 && a <= WEFT_DRAWS_CATEGORIES)) return "`a`, the number of categories, must be between 1 and 64";
    for (int j = 0; j < (int) a; j++) {
      double weight = weft_mul_add(b, j, 1.0);
      if (!(weight >= 0 && weight <= DBL_MAX)) return "each weight 1 + b j must be finite and at least 0";
      law->weights[j] = kind == WEFT_DRAW_CATEGORICAL ? weight : weft_log(weight);
    }
    return NULL;
  default: return kind >= 0 && kind < WEFT_DRAW_KINDS ? NULL : "unknown kind of draw";
  }
}

/* The draw of one index; not for the kinds of words. */
static WEFT_HD inline double weft_draws_one(const weft_draws_law *law, weft_rng rng, uint64_t index)
{
  double log_x, log_1mx;
  switch (law->kind) {
  case WEFT_DRAW_UNIFORM: return weft_draw_uniform(rng, index);
  case WEFT_DRAW_NORMAL: return weft_draw_normal(rng, index);
  case WEFT_DRAW_EXPONENTIAL: return weft_draw_exponential(rng, index);
  case WEFT_DRAW_GUMBEL: return weft_draw_gumbel(rng, index);
  case WEFT_DRAW_GAMMA: return weft_draw_gamma(rng, index, law->a);
  case WEFT_DRAW_LOG_GAMMA: return weft_draw_log_gamma(rng, index, law->a);
  case WEFT_DRAW_BETA: return weft_draw_beta(rng, index, law->a, law->b);
  case WEFT_DRAW_LOG_BETA: weft_draw_log_beta(rng, index, law->a, law->b, &log_x, &log_1mx); return log_x;
  case WEFT_DRAW_LOG1M_BETA: weft_draw_log_beta(rng, index, law->a, law->b, &log_x, &log_1mx); return log_1mx;
  case WEFT_DRAW_BELOW: return (double) weft_draw_below(rng, index, (uint64_t) law->a);
  case WEFT_DRAW_CATEGORICAL: return (double) weft_draw_categorical(rng, index, law->weights, (int64_t) law->a);
  case WEFT_DRAW_CATEGORICAL_LOG: return (double) weft_draw_categorical_log(rng, index, law->weights, (int64_t) law->a);
  default: return WEFT_NAN;
  }
}
