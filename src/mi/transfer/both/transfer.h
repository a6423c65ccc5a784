/* Transfer entropy from counts: what a source's past says about a target's present beyond the target's own past,
 *   TE = I(Y_t ; X_{t-lag} | Y_{t-lag}) = (Σ f(n_sx) - Σ f(n_bx) - (Σ f(n_s) - Σ f(n_b))) / n,   f(k) = k log2 k,
 * over n steps. A target's *state* s is its level before times `levels`, plus its level now; b is its level before and
 * x the source's. Sums are whole numbers (fixed_point.h), so that all engines give the same bits.
 *
 * Scores. G = 2 n ln 2 TE has about df = (levels of x - 1) Σ_b (levels now after b, less 1) degrees of freedom. Series
 * that change slowly have larger G by chance: the mean of G / df over permuted copies is about r_x t_y / g for source x
 * and target y (row, column and total means), and z is the cube root of G g / (df r_x t_y), centred and scaled for a
 * chi-squared variable of df degrees of freedom (Wilson and Hilferty 1931). Further copies say how z is spread.
 *
 * Operations. L levels take (L - 1)(L² - 1) products of bit planes for a pair: 3 for two levels, 16 for three, 45 for
 * four. 22,469 genes and 100,954 steps of three levels are 5.05e8 pairs and 8.2e14 bits for the data and for each copy:
 * .11 s at the 7,737 T bits/s that an H200's tensor cores multiply, 2.2 s for 20 copies. */
#pragma once

#include "mi/mi.h"
#include "mi/pack/both/fixed_point.h"

#define WEFT_TRANSFER_LEVELS 16u
#define WEFT_TRANSFER_BINS (1u << 16) /* of z, 64 for a unit */
#define WEFT_TRANSFER_BELOW 1024.0    /* bins of negative z */
#define WEFT_TRANSFER_PART 65536.0    /* sums of G / df are in such parts of one */

/* The data that all copies share. */
typedef struct weft_transfer_data {
  size_t samples, genes;
  const uint8_t *codes; /* genes × samples, a gene's samples in the order of time */
  uint32_t levels;      /* codes are below */
  size_t steps;
  const uint32_t *now, *before; /* samples of a step */
  size_t source_count, target_count;
  const uint32_t *sources, *targets;     /* genes */
  const uint32_t *of_levels;             /* source_count × levels: steps before which a source has a level */
  const uint32_t *of_states;             /* target_count × levels²: steps in a state */
  const int64_t *base;                   /* of a target: f summed over states, less that over levels before */
  const uint32_t *source_df, *target_df; /* factors of df; 0: such a gene has no score */
  weft_mi_log f;
} weft_transfer_data;

typedef enum {
  WEFT_TRANSFER_SUMS,  /* adds G / df by source and by target */
  WEFT_TRANSFER_COUNT, /* counts pairs by bins of z */
  WEFT_TRANSFER_FIND   /* lists the pairs from a bin on */
} weft_transfer_goal;

/* One pass over all pairs with a score. */
typedef struct weft_transfer_pass {
  weft_transfer_goal goal;
  const uint32_t *rows;                /* samples of the sources at each step */
  const double *of_source, *of_target; /* G over df and over what is usual is fixed × of_source × of_target */
  int64_t *source_sums, *target_sums;  /* SUMS: in parts, added to */
  uint64_t *counts;                    /* COUNT: by bin, added to */
  uint32_t bin;                        /* FIND */
  uint64_t capacity, found;            /* pairs that there is room for, and that there are */
  uint64_t *pairs;                     /* source × target_count + target, in any order */
  int64_t *scores;                     /* n TE, fixed point */
} weft_transfer_pass;

/* Whether the pair has a score: neither gene is constant, and they are not the same. */
static WEFT_HD inline int weft_transfer_scored(const weft_transfer_data *data, size_t source, size_t target)
{
  return data->source_df[source] && data->target_df[target] && data->sources[source] != data->targets[target];
}

/* n TE of a pair. counts[state * per_state + level * per_level]: steps of a state before which the source has a level,
 * without the last state and the last level, which follow from `of_states` and `of_levels`. */
static WEFT_HD inline int64_t weft_transfer_fixed(const weft_mi_log *f, uint32_t levels, const uint32_t *counts,
                                                  size_t per_state, size_t per_level, const uint32_t *of_states,
                                                  const uint32_t *of_levels, int64_t base)
{
  uint32_t rest[WEFT_TRANSFER_LEVELS], with[WEFT_TRANSFER_LEVELS];
  int64_t sum = -base;
  for (uint32_t level = 0; level + 1 < levels; level++) rest[level] = of_levels[level];
  for (uint32_t before = 0, state = 0; before < levels; before++) {
    for (uint32_t level = 0; level < levels; level++) with[level] = 0;
    for (uint32_t now = 0; now < levels; now++, state++) {
      uint32_t left = of_states[state];
      for (uint32_t level = 0; level + 1 < levels; level++) {
        const uint32_t k = state + 1 < levels * levels ? counts[state * per_state + level * per_level] : rest[level];
        rest[level] -= k;
        with[level] += k;
        left -= k;
        sum += weft_mi_fixed(f, k);
      }
      with[levels - 1] += left;
      sum += weft_mi_fixed(f, left);
    }
    for (uint32_t level = 0; level < levels; level++) sum -= weft_mi_fixed(f, with[level]);
  }
  return sum;
}

/* G over df and over what is usual. */
static WEFT_HD inline double weft_transfer_ratio(int64_t fixed, double of_source, double of_target)
{
  return fixed > 0 ? weft_mul(weft_mul((double) fixed, of_source), of_target) : 0;
}

static WEFT_HD inline double weft_transfer_z(double ratio, uint32_t df)
{
  const double spread = weft_div(2.0, weft_mul(9.0, (double) df));
  const double root = ratio > 0 ? weft_exp(weft_mul(weft_log(ratio), 1.0 / 3)) : 0;
  return weft_div(weft_sub(root, weft_sub(1.0, spread)), weft_sqrt(spread));
}

static WEFT_HD inline uint32_t weft_transfer_bin(double z)
{
  const double bin = weft_add(weft_mul(z, 64.0), WEFT_TRANSFER_BELOW);
  return bin < 0 ? 0 : bin >= (double) WEFT_TRANSFER_BINS - 1 ? WEFT_TRANSFER_BINS - 1 : (uint32_t) bin;
}

static WEFT_HD inline int64_t weft_transfer_part(double ratio)
{
  return (int64_t) weft_add(weft_mul(ratio, WEFT_TRANSFER_PART), 0.5);
}

#ifdef __cplusplus
extern "C" {
#endif

/* A back end's copy of the data, made ready; weft_mi_ops has these. */
typedef struct weft_transfer_engine weft_transfer_engine;
weft_status weft_transfer_open_cpu(weft_ctx *ctx, const weft_transfer_data *data, weft_transfer_engine **out);
weft_status weft_transfer_pass_cpu(weft_ctx *ctx, weft_transfer_engine *engine, weft_transfer_pass *pass);
void weft_transfer_close_cpu(weft_ctx *ctx, weft_transfer_engine *engine);
weft_status weft_transfer_open_cuda(weft_ctx *ctx, const weft_transfer_data *data, weft_transfer_engine **out);
weft_status weft_transfer_pass_cuda(weft_ctx *ctx, weft_transfer_engine *engine, weft_transfer_pass *pass);
void weft_transfer_close_cuda(weft_ctx *ctx, weft_transfer_engine *engine);

#ifdef __cplusplus
}
#endif
