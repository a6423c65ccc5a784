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
 * n, q and p are whole numbers. The sum over m has one order, so that the labels depend neither on the threads nor on
 * the back end (real.cu). Scores are then rounded to the grid of units.h and drawn from as those of links
 * are. */
#include "core/call/parallel.h"
#include "irm/cpu/real.h"
#include "irm/both/real_block.h"

#define PAD (-WEFT_INFINITY)

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
weft_status irm_real_make(weft_arena *arena, const irm_state *s, int threads, irm_real **out)
{
  weft_status st = WEFT_OK;
  irm_real *r;
  WEFT_TAKE0(r, arena, 1);
  for (int mode = 0; mode < 2; mode++) r->width[mode] = rounded(s->k[mode]);
  const size_t blocks = (size_t) s->k[0] * (size_t) s->k[1];
  const size_t turned[2] = { (size_t) s->k[1] * (size_t) r->width[0], (size_t) s->k[0] * (size_t) r->width[1] };
  const size_t widest = (size_t) (r->width[0] > r->width[1] ? r->width[0] : r->width[1]);
  WEFT_TAKE(r->node, arena, blocks);
  WEFT_TAKE(r->link, arena, blocks);
  WEFT_TAKE(r->square, arena, blocks);
  for (int what = 0; what < 3; what++) WEFT_TAKE0(r->rows[what], arena, turned[0] > turned[1] ? turned[0] : turned[1]);
  WEFT_TAKE0(r->scratch, arena, (size_t) threads);
  for (int t = 0; t < threads; t++) {
    WEFT_TAKE(r->scratch[t].sums, arena, widest);
    WEFT_TAKE(r->scratch[t].scores, arena, widest);
    WEFT_TAKE(r->scratch[t].links, arena, widest);
    WEFT_TAKE(r->scratch[t].squares, arena, widest);
    WEFT_TAKE(r->scratch[t].pairs, arena, widest);
  }
  *out = r;
done:
  return st;
}

void irm_real_draw(irm_real *r, const irm_state *s)
{
  const weft_rng rng = irm_rng(s, IRM_DRAW_ETA);
  const size_t blocks = (size_t) s->k[0] * (size_t) s->k[1];
  for (size_t at = 0; at < blocks; at++) {
    const irm_real_block b =
        irm_real_draw_block(rng, irm_index(s, 0), at, s->chain->beta, s->graph->unit, (double) s->links[0][at],
                            (double) s->values[0][at], (double) s->pairs[0][at]);
    r->node[at] = b.pair;
    r->link[at] = b.link;
    r->square[at] = b.square;
  }
}

void irm_real_mode(irm_real *r, const irm_state *s, int mode)
{
  const double *from[3] = { r->node, r->link, r->square };
  for (int what = 0; what < 3; what++)
    for (int32_t m = 0; m < s->k[1 - mode]; m++)
      for (int32_t l = 0; l < s->k[mode]; l++) {
        const size_t at =
            mode == 0 ? (size_t) l * (size_t) s->k[1] + (size_t) m : (size_t) m * (size_t) s->k[1] + (size_t) l;
        r->rows[what][(size_t) m * (size_t) r->width[mode] + (size_t) l] = from[what][at];
      }
}

/* What node i has with each cluster of the other mode. */
static void count_node(const irm_state *s, int mode, int64_t i, real_scratch *t)
{
  const weft_irm_lists *links = &s->graph->links[mode], *missing = &s->graph->missing[mode];
  const int32_t *other = s->z[1 - mode];
  for (int32_t m = 0; m < s->k[1 - mode]; m++) {
    t->links[m] = t->squares[m] = 0;
    t->pairs[m] = s->sizes[1 - mode][m];
  }
  for (int64_t e = links->start[i]; e < links->start[i + 1]; e++) {
    const int32_t m = other[links->to[e]];
    t->links[m] += links->weight[e];
    t->squares[m] += (int64_t) links->weight[e] * links->weight[e];
  }
  if (s->graph->missing_count[0] == 0) return;
  for (int64_t e = missing->start[i]; e < missing->start[i + 1]; e++) t->pairs[other[missing->to[e]]]--;
}

/* Draws the label of node i: a score in doubles for each cluster, then rounded to the grid and drawn from like any
 * node's. */
static void draw_node(const irm_real *r, irm_state *s, int mode, int64_t i, real_scratch *t)
{
  const int32_t k = s->k[mode];
  const int64_t width = r->width[mode];
  double most = -WEFT_INFINITY;
  count_node(s, mode, i, t);
  for (int32_t l = 0; l < k; l++) t->sums[l] = s->log_stick[mode][l];
  for (int32_t m = 0; m < s->k[1 - mode]; m++) {
    const size_t row = (size_t) m * (size_t) width;
    const double n = (double) t->links[m], q = (double) t->squares[m], p = (double) t->pairs[m];
    if (s->sizes[1 - mode][m] == 0) continue;
    for (int32_t l = 0; l < k; l++)
      t->sums[l] += p * r->rows[0][row + l] + n * r->rows[1][row + l] + q * r->rows[2][row + l];
  }
  for (int32_t l = 0; l < k; l++)
    if (t->sums[l] > most) most = t->sums[l];
  for (int64_t l = 0; l < width; l++) t->sums[l] = l < k ? irm_units(t->sums[l] - most) : PAD;
  const weft_rng rng = irm_rng(s, mode == 0 ? IRM_DRAW_ROW : IRM_DRAW_COL);
  s->z[mode][i] = irm_pick(t->sums, t->scores, width, weft_draw_words(rng, irm_index(s, (uint64_t) i), 0));
}

void irm_real_nodes(irm_real *r, irm_state *s, int mode, int64_t first, int64_t last, int threads)
{
  WEFT_PARALLEL_FOR(threads, dynamic)
  for (int64_t i = first; i < last; i++) draw_node(r, s, mode, i, &r->scratch[WEFT_THREAD()]);
}
