/* Entropy from counts by four estimators, written once for C and CUDA: the counts of a histogram are gone through three
 * times in the same order, and compiled without contraction, so that both give the same bits.
 *
 *   empirical               plug-in frequencies; in fixed point (mi_table.h)
 *   Miller-Madow            plug-in + (occupied cells - 1) / 2n nats
 *   shrink                  plug-in of λ/m + (1 - λ) n_k/n over the m occupied cells,
 *                           λ = (1 - Σ (n_k/n)²) / ((n - 1) Σ (1/m - n_k/n)²), at most 1 (Hausser and Strimmer 2009)
 *   Schürmann-Grassberger   Dirichlet posterior mean with β = 1/m a cell: Σ q_k (ψ(N + 1) - ψ(N q_k + 1)),
 *                           N = n + mβ = n + 1, q_k = (n_k + β)/N (Schürmann and Grassberger 1996)
 *
 *   weft_mi_estimate e = { 0 };
 *   for (int turn = 0; turn < weft_mi_turns(estimator); turn++) {
 *     for (every count k) weft_mi_estimate_add(&e, f, estimator, turn, k);
 *     weft_mi_estimate_turn(&e, estimator, turn);
 *   }
 *   nats = weft_mi_estimate_nats(&e, f, estimator); */
#ifndef WEFT_MI_ESTIMATE_H
#define WEFT_MI_ESTIMATE_H

#include "mi_pairs.h"

#define WEFT_MI_LN2 0.69314718055994530942

typedef struct weft_mi_estimate {
  uint64_t n;
  double cells;
  int64_t fixed;                       /* Σ f of the counts */
  double squares, away, weight, top, sum;
} weft_mi_estimate;

/* ψ(x) for x >= 1: upward recurrence to 10, then the asymptotic series. */
static WEFT_HD inline double weft_mi_digamma(double x)
{
  double below = 0;
  for (; x < 10; x += 1) below += 1 / x;
  const double y = 1 / (x * x);
  return weft_log(x) - 0.5 / x - below
         - y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y * (1.0 / 132 - y * (691.0 / 32760 - y / 12))))));
}

static WEFT_HD inline int weft_mi_turns(int estimator)
{
  return estimator == WEFT_MI_SHRINK ? 3 : estimator == WEFT_MI_SCHURMANN_GRASSBERGER ? 2 : 1;
}

static WEFT_HD inline void weft_mi_estimate_add(weft_mi_estimate *e, const weft_mi_log *f, int estimator, int turn, uint64_t k)
{
  if (!k) return;
  if (turn == 0) {
    e->n += k;
    e->cells += 1;
    if (estimator <= WEFT_MI_MILLER_MADOW) e->fixed += weft_mi_fixed(f, k);
  } else if (estimator == WEFT_MI_SCHURMANN_GRASSBERGER) {
    const double mass = (double) k + 1 / e->cells;
    e->sum += mass * (e->top - weft_mi_digamma(mass + 1));
  } else if (turn == 1) {
    const double p = (double) k / (double) e->n, away = 1 / e->cells - p;
    e->squares += p * p;
    e->away += away * away;
  } else {
    const double p = e->weight / e->cells + (1 - e->weight) * (double) k / (double) e->n;
    if (p > 0) e->sum -= p * weft_log(p);
  }
}

static WEFT_HD inline void weft_mi_estimate_turn(weft_mi_estimate *e, int estimator, int turn)
{
  const double n = (double) e->n;
  if (estimator == WEFT_MI_SCHURMANN_GRASSBERGER && turn == 0) e->top = weft_mi_digamma(n + 2);
  if (estimator == WEFT_MI_SHRINK && turn == 1) {
    e->weight = e->away > 0 && n > 1 ? (1 - e->squares) / ((n - 1) * e->away) : 1;
    if (e->weight > 1) e->weight = 1;
  }
}

/* Entropy in nats; 0 for fewer than two cells. */
static WEFT_HD inline double weft_mi_estimate_nats(const weft_mi_estimate *e, const weft_mi_log *f, int estimator)
{
  if (e->cells < 2) return 0;
  if (estimator == WEFT_MI_SCHURMANN_GRASSBERGER) return e->sum / ((double) e->n + 1);
  if (estimator == WEFT_MI_SHRINK) return e->sum;
  const double plain = weft_mi_bits(weft_mi_fixed(f, e->n) - e->fixed, f->unit, e->n) * WEFT_MI_LN2;
  return estimator == WEFT_MI_EMPIRICAL ? plain : plain + (e->cells - 1) / (2 * (double) e->n);
}

#endif
