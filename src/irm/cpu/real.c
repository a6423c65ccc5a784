/* Blocked Gibbs sampling where blocks hold real values. Given the labels, with N, Q and P a block's sum, squares and
 * pairs,
 *
 *   τ ~ Gamma(β⁺ + P/2, rate β⁻ + ½ (Q - N² / (1 + P))),   μ | τ ~ N(N / (1 + P), 1 / (τ (1 + P)))
 *
 * and given those, the sticks (blocked.c) and the other mode, a node of which n, q and p are the sum, squares and
 * pairs with cluster m of the other mode joins l with log odds
 *
 *   log μ_l + Σ_m  p ½ (log τ_lm - τ_lm μ_lm²) + n τ_lm μ_lm - q ½ τ_lm
 *
 * n, q and p are whole numbers. The sum over m has one order, so that the labels do not depend on the threads. Scores
 * are then rounded to the grid of units.h and drawn from as those of links are. */
#include "core/call/parallel.h"
#include "irm/cpu/real.h"

#define PAD (-WEFT_INFINITY)
#define FARTHEST_LOG 600.0
/* The normals' draws stand behind the gammas' in a sweep's indices, of which there are 2^36. */
#define NORMALS ((uint64_t) 1 << 35)

/* What a pair, a value in units and its square add to the log odds of a node. */
typedef struct real_block {
  double pair, link, square;
} real_block;

/* `index`: of the sweep; `at`: the block's place; `sum` and `squares` are in units. */
static real_block draw_block(weft_rng rng, uint64_t index, uint64_t at, const double beta[2], double unit, double sum,
                             double squares, double pairs)
{
  sum *= unit;
  squares *= unit * unit;
  const double rate = beta[1] + 0.5 * irm_rest(sum, squares, pairs);
  double log_tau = weft_draw_log_gamma(rng, index + at, beta[0] + 0.5 * pairs) - weft_log(rate);
  if (log_tau < -FARTHEST_LOG) log_tau = -FARTHEST_LOG; /* an empty block, β⁺ tiny: no node would join it */
  if (log_tau > FARTHEST_LOG) log_tau = FARTHEST_LOG;
  const double tau = weft_exp(log_tau), spread = weft_exp(-0.5 * (log_tau + weft_log1p(pairs)));
  const double mean = sum / (1 + pairs) + spread * weft_draw_normal(rng, index + NORMALS + at);
  const real_block out = { 0.5 * (log_tau - tau * mean * mean), tau * mean * unit, -0.5 * tau * (unit * unit) };
  return out;
}

typedef struct {
  double *sums;
  int32_t *scores;
  int64_t *links, *squares, *pairs;
} real_scratch;

struct irm_real {
  int64_t width[2];             /* clusters of each mode, rounded up to IRM_LANES */
  double *node, *link, *square; /* of block l * k[1] + m: what a pair, a value and its square in units add */
  double *rows[3];              /* these for the mode being drawn: m * width + l */
  real_scratch *scratch;        /* one per thread */
};

static int64_t rounded(int32_t k) { return ((int64_t) k + IRM_LANES - 1) / IRM_LANES * IRM_LANES; }

/* Makes tables for all blocks and each thread's work space, in `arena`. */
weft_status irm_real_make(weft_arena *arena, const irm_state *state, int threads, irm_real **out)
{
  weft_status st = WEFT_OK;
  irm_real *real;
  WEFT_TAKE0(real, arena, 1);
  for (int mode = 0; mode < 2; mode++) real->width[mode] = rounded(state->k[mode]);
  const size_t blocks = (size_t) state->k[0] * (size_t) state->k[1];
  const size_t turned[2] = { (size_t) state->k[1] * (size_t) real->width[0],
                             (size_t) state->k[0] * (size_t) real->width[1] };
  const size_t widest = (size_t) (real->width[0] > real->width[1] ? real->width[0] : real->width[1]);
  WEFT_TAKE(real->node, arena, blocks);
  WEFT_TAKE(real->link, arena, blocks);
  WEFT_TAKE(real->square, arena, blocks);
  for (int what = 0; what < 3; what++)
    WEFT_TAKE0(real->rows[what], arena, turned[0] > turned[1] ? turned[0] : turned[1]);
  WEFT_TAKE0(real->scratch, arena, (size_t) threads);
  for (int t = 0; t < threads; t++) {
    WEFT_TAKE(real->scratch[t].sums, arena, widest);
    WEFT_TAKE(real->scratch[t].scores, arena, widest);
    WEFT_TAKE(real->scratch[t].links, arena, widest);
    WEFT_TAKE(real->scratch[t].squares, arena, widest);
    WEFT_TAKE(real->scratch[t].pairs, arena, widest);
  }
  *out = real;
done:
  return st;
}

void irm_real_draw(irm_real *real, const irm_state *state)
{
  const weft_rng rng = irm_rng(state, IRM_DRAW_ETA);
  const size_t blocks = (size_t) state->k[0] * (size_t) state->k[1];
  for (size_t at = 0; at < blocks; at++) {
    const real_block drawn =
        draw_block(rng, irm_index(state, 0), at, state->chain->beta, state->graph->unit, (double) state->links[0][at],
                   (double) state->values[0][at], (double) state->pairs[0][at]);
    real->node[at] = drawn.pair;
    real->link[at] = drawn.link;
    real->square[at] = drawn.square;
  }
}

void irm_real_mode(irm_real *real, const irm_state *state, int mode)
{
  const double *from[3] = { real->node, real->link, real->square };
  for (int what = 0; what < 3; what++)
    for (int32_t m = 0; m < state->k[1 - mode]; m++)
      for (int32_t l = 0; l < state->k[mode]; l++) {
        const size_t at =
            mode == 0 ? (size_t) l * (size_t) state->k[1] + (size_t) m : (size_t) m * (size_t) state->k[1] + (size_t) l;
        real->rows[what][(size_t) m * (size_t) real->width[mode] + (size_t) l] = from[what][at];
      }
}

/* What node i has with each cluster of the other mode. */
static void count_node(const irm_state *state, int mode, int64_t i, real_scratch *scratch)
{
  const weft_irm_lists *links = &state->graph->links[mode], *missing = &state->graph->missing[mode];
  const int32_t *other = state->z[1 - mode];
  for (int32_t m = 0; m < state->k[1 - mode]; m++) {
    scratch->links[m] = scratch->squares[m] = 0;
    scratch->pairs[m] = state->sizes[1 - mode][m];
  }
  for (int64_t entry = links->start[i]; entry < links->start[i + 1]; entry++) {
    const int32_t m = other[links->to[entry]];
    scratch->links[m] += links->weight[entry];
    scratch->squares[m] += (int64_t) links->weight[entry] * links->weight[entry];
  }
  if (state->graph->missing_count[0] == 0) return;
  for (int64_t entry = missing->start[i]; entry < missing->start[i + 1]; entry++)
    scratch->pairs[other[missing->to[entry]]]--;
}

/* Draws the label of node i: a score in doubles for each cluster, then rounded to the grid and drawn from like any
 * node's. */
static void draw_node(const irm_real *real, irm_state *state, int mode, int64_t i, real_scratch *scratch)
{
  const int32_t k = state->k[mode];
  const int64_t width = real->width[mode];
  double most = -WEFT_INFINITY;
  count_node(state, mode, i, scratch);
  for (int32_t l = 0; l < k; l++) scratch->sums[l] = state->log_stick[mode][l];
  for (int32_t m = 0; m < state->k[1 - mode]; m++) {
    const size_t row = (size_t) m * (size_t) width;
    const double n = (double) scratch->links[m], q = (double) scratch->squares[m], p = (double) scratch->pairs[m];
    if (state->sizes[1 - mode][m] == 0) continue;
    for (int32_t l = 0; l < k; l++)
      scratch->sums[l] += p * real->rows[0][row + l] + n * real->rows[1][row + l] + q * real->rows[2][row + l];
  }
  for (int32_t l = 0; l < k; l++)
    if (scratch->sums[l] > most) most = scratch->sums[l];
  for (int64_t l = 0; l < width; l++) scratch->sums[l] = l < k ? irm_units(scratch->sums[l] - most) : PAD;
  const weft_rng rng = irm_rng(state, mode == 0 ? IRM_DRAW_ROW : IRM_DRAW_COL);
  state->z[mode][i] =
      irm_pick(scratch->sums, scratch->scores, width, weft_draw_words(rng, irm_index(state, (uint64_t) i), 0));
}

void irm_real_nodes(irm_real *real, irm_state *state, int mode, int64_t first, int64_t last, int threads)
{
  WEFT_PARALLEL_FOR(threads, dynamic)
  for (int64_t i = first; i < last; i++) draw_node(real, state, mode, i, &real->scratch[WEFT_THREAD()]);
}
