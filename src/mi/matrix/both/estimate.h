/* Entropy from counts by four estimators, written once for C and CUDA: the counts of a histogram are read up to three
 * times, always in the same order, and the code is compiled without contraction, so that both give the same bits.
 *
 *   empirical               plug-in frequencies; in fixed point (fixed_point.h)
 *   Miller-Madow            plug-in + (occupied cells - 1) / 2n nats
 *   shrink                  plug-in of λ/m + (1 - λ) n_k/n over the m occupied cells,
 *                           λ = (1 - Σ (n_k/n)²) / ((n - 1) Σ (1/m - n_k/n)²), at most 1 (Hausser and Strimmer 2009)
 *   Schürmann-Grassberger   Dirichlet posterior mean with β = 1/m per cell: Σ q_k (ψ(N + 1) - ψ(N q_k + 1)),
 *                           N = n + mβ = n + 1, q_k = (n_k + β)/N (Schürmann and Grassberger 1996)
 *
 *   weft_mi_estimate e = { 0 };
 *   for (int turn = 0; turn < weft_mi_turns(estimator); turn++) {
 *     for (every count k) weft_mi_estimate_add(&e, f, estimator, turn, k);
 *     weft_mi_estimate_turn(&e, estimator, turn);
 *   }
 *   nats = weft_mi_estimate_nats(&e, f, estimator); */
#pragma once

#include "mi/matrix/kinds.h"
#include "mi/search/search.h"

#define WEFT_MI_LN2 0.69314718055994530942

typedef struct weft_mi_estimate {
  uint64_t n;
  double cells;
  int64_t fixed; /* Σ f of the counts */
  double squares, away, weight, top, sum;
} weft_mi_estimate;

/* ψ(x) for x >= 1: upward recurrence to 10, then the asymptotic series. */
static WEFT_HD inline double weft_mi_digamma(double x)
{
  double below = 0;
  for (; x < 10; x += 1) below += 1 / x;
  const double y = 1 / (x * x);
  return weft_log(x) - 0.5 / x - below -
         y * (1.0 / 12 -
              y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y * (1.0 / 132 - y * (691.0 / 32760 - y / 12))))));
}

static WEFT_HD inline int weft_mi_turns(int estimator)
{
/* clang-format off */
#define WEFT_MI_TURNS(kind, name, entropy, turns, whole) case WEFT_MI_##kind: return turns;
  /* clang-format on */
  switch ((weft_mi_estimator) estimator) {
    WEFT_MI_ENTROPY_KINDS(WEFT_MI_TURNS)
  }
#undef WEFT_MI_TURNS
  return 0; /* never: every kind has its case */
}

static WEFT_HD inline int weft_mi_whole(int estimator)
{
/* clang-format off */
#define WEFT_MI_WHOLE(kind, name, entropy, turns, whole) case WEFT_MI_##kind: return whole;
  /* clang-format on */
  switch ((weft_mi_estimator) estimator) {
    WEFT_MI_ENTROPY_KINDS(WEFT_MI_WHOLE)
  }
#undef WEFT_MI_WHOLE
  return 0; /* never: every kind has its case */
}

/* ---- a count that is not 0, in turn `turn`; in turn 0 it is in n and cells already ---- */

static WEFT_HD inline void weft_mi_add_empirical(weft_mi_estimate *estimate, const weft_mi_log *f, int turn, uint64_t k)
{
  if (turn == 0) estimate->fixed += weft_mi_fixed(f, k);
}

static WEFT_HD inline void weft_mi_add_miller_madow(weft_mi_estimate *estimate, const weft_mi_log *f, int turn,
                                                    uint64_t k)
{
  weft_mi_add_empirical(estimate, f, turn, k);
}

static WEFT_HD inline void weft_mi_add_shrink(weft_mi_estimate *estimate, const weft_mi_log *f, int turn, uint64_t k)
{
  (void) f;
  if (turn == 1) {
    const double p = (double) k / (double) estimate->n, away = 1 / estimate->cells - p;
    estimate->squares += p * p;
    estimate->away += away * away;
  } else if (turn == 2) {
    const double p = estimate->weight / estimate->cells + (1 - estimate->weight) * (double) k / (double) estimate->n;
    if (p > 0) estimate->sum -= p * weft_log(p);
  }
}

static WEFT_HD inline void weft_mi_add_schurmann_grassberger(weft_mi_estimate *estimate, const weft_mi_log *f, int turn,
                                                             uint64_t k)
{
  (void) f;
  if (turn != 1) return;
  const double mass = (double) k + 1 / estimate->cells;
  estimate->sum += mass * (estimate->top - weft_mi_digamma(mass + 1));
}

/* Takes one count of a table into the estimate, in pass `turn` of those that the estimator needs. Counts of zero say
 * nothing. */
static WEFT_HD inline void weft_mi_estimate_add(weft_mi_estimate *estimate, const weft_mi_log *f, int estimator,
                                                int turn, uint64_t k)
{
  if (!k) return;
  if (turn == 0) {
    estimate->n += k;
    estimate->cells += 1;
  }
/* clang-format off */
#define WEFT_MI_ADD(kind, name, entropy, turns, whole) \
  case WEFT_MI_##kind: weft_mi_add_##entropy(estimate, f, turn, k); break;
  /* clang-format on */
  switch ((weft_mi_estimator) estimator) {
    WEFT_MI_ENTROPY_KINDS(WEFT_MI_ADD)
  }
#undef WEFT_MI_ADD
}

/* ---- the end of a turn ---- */

static WEFT_HD inline void weft_mi_end_empirical(weft_mi_estimate *estimate, int turn)
{
  (void) estimate;
  (void) turn;
}
static WEFT_HD inline void weft_mi_end_miller_madow(weft_mi_estimate *estimate, int turn)
{
  (void) estimate;
  (void) turn;
}

static WEFT_HD inline void weft_mi_end_shrink(weft_mi_estimate *estimate, int turn)
{
  const double n = (double) estimate->n;
  if (turn != 1) return;
  estimate->weight = estimate->away > 0 && n > 1 ? (1 - estimate->squares) / ((n - 1) * estimate->away) : 1;
  if (estimate->weight > 1) estimate->weight = 1;
}

static WEFT_HD inline void weft_mi_end_schurmann_grassberger(weft_mi_estimate *estimate, int turn)
{
  if (turn == 0) estimate->top = weft_mi_digamma((double) estimate->n + 2);
}

static WEFT_HD inline void weft_mi_estimate_turn(weft_mi_estimate *estimate, int estimator, int turn)
{
/* clang-format off */
#define WEFT_MI_END(kind, name, entropy, turns, whole) \
  case WEFT_MI_##kind: weft_mi_end_##entropy(estimate, turn); break;
  /* clang-format on */
  switch ((weft_mi_estimator) estimator) {
    WEFT_MI_ENTROPY_KINDS(WEFT_MI_END)
  }
#undef WEFT_MI_END
}

/* ---- entropy in nats, of two cells or more ---- */

static WEFT_HD inline double weft_mi_nats_empirical(const weft_mi_estimate *estimate, const weft_mi_log *f)
{
  return weft_mi_bits(weft_mi_fixed(f, estimate->n) - estimate->fixed, f->unit, estimate->n) * WEFT_MI_LN2;
}

static WEFT_HD inline double weft_mi_nats_miller_madow(const weft_mi_estimate *estimate, const weft_mi_log *f)
{
  return weft_mi_nats_empirical(estimate, f) + (estimate->cells - 1) / (2 * (double) estimate->n);
}

static WEFT_HD inline double weft_mi_nats_shrink(const weft_mi_estimate *estimate, const weft_mi_log *f)
{
  (void) f;
  return estimate->sum;
}

static WEFT_HD inline double weft_mi_nats_schurmann_grassberger(const weft_mi_estimate *estimate, const weft_mi_log *f)
{
  (void) f;
  return estimate->sum / ((double) estimate->n + 1);
}

/* A row without its functions does not compile. */
#define WEFT_MI_THERE(kind, name, entropy, turns, whole) \
  +sizeof &weft_mi_add_##entropy + sizeof &weft_mi_end_##entropy + sizeof &weft_mi_nats_##entropy
enum { WEFT_MI_ENTROPIES_THERE = 0 WEFT_MI_ENTROPY_KINDS(WEFT_MI_THERE) };
#undef WEFT_MI_THERE

/* 0 for fewer than two cells. */
static WEFT_HD inline double weft_mi_estimate_nats(const weft_mi_estimate *estimate, const weft_mi_log *f,
                                                   int estimator)
{
  if (estimate->cells < 2) return 0;
/* clang-format off */
#define WEFT_MI_NATS(kind, name, entropy, turns, whole) case WEFT_MI_##kind: return weft_mi_nats_##entropy(estimate, f);
  /* clang-format on */
  switch ((weft_mi_estimator) estimator) {
    WEFT_MI_ENTROPY_KINDS(WEFT_MI_NATS)
  }
#undef WEFT_MI_NATS
  return 0; /* never: every kind has its case */
}
