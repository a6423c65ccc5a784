/* What the blocked sampler draws for a block of real values: the same arithmetic on both back ends. real.c says
 * what it means. CUDA files that include this are compiled without contraction. */
#pragma once

#include "core/numbers/draws.h"
#include "irm/both/score.h"

#define IRM_FARTHEST_LOG 600.0
/* The normals' draws stand behind the gammas' in a sweep's indices, of which there are 2^36. */
#define IRM_NORMALS ((uint64_t) 1 << 35)

/* What a pair, a value in units and its square add to the log odds of a node. */
typedef struct irm_real_block {
  double pair, link, square;
} irm_real_block;

/* `index`: of the sweep; `at`: the block's place; `sum` and `squares` are in units. */
static WEFT_HD inline irm_real_block irm_real_draw_block(weft_rng rng, uint64_t index, uint64_t at,
                                                         const double beta[2], double unit, double sum, double squares,
                                                         double pairs)
{
  sum *= unit;
  squares *= unit * unit;
  const double rate = beta[1] + 0.5 * irm_rest(sum, squares, pairs);
  double log_tau = weft_draw_log_gamma(rng, index + at, beta[0] + 0.5 * pairs) - weft_log(rate);
  if (log_tau < -IRM_FARTHEST_LOG) log_tau = -IRM_FARTHEST_LOG; /* an empty block, β⁺ tiny: no node would join it */
  if (log_tau > IRM_FARTHEST_LOG) log_tau = IRM_FARTHEST_LOG;
  const double tau = weft_exp(log_tau), spread = weft_exp(-0.5 * (log_tau + weft_log1p(pairs)));
  const double mean = sum / (1 + pairs) + spread * weft_draw_normal(rng, index + IRM_NORMALS + at);
  const irm_real_block out = { 0.5 * (log_tau - tau * mean * mean), tau * mean * unit, -0.5 * tau * (unit * unit) };
  return out;
}
