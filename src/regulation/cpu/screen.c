/* Forward selection for one target, with few exact gains: in every step all features are screened in 16-bit
 * arithmetic, and only those that may be the best are computed as step.h says. What is chosen is therefore
 * the same as if all had been (selection_loops.c, which does that where the screen cannot tell enough apart).
 *
 * All features have unit variance here, and the target has a unit of its own, so that numbers stay within [-2, 2):
 *
 *   correlations, directions q and residuals r    in parts of 2^14
 *   residual variances d, and squares             in parts of 2^13, as the products of the former come out
 *   coefficients                                  in parts of 2^15
 *
 * In each step, `error` bounds how far q, r and d are from the true values, over all features: a product of two such
 * numbers is rounded by half a unit, and a coefficient is wrong by 2^-16, which is another half. A feature may be the
 * best if (|r| + error)^2 favour >= threshold (d - error), where the threshold is a gain that some feature is known to
 * reach. */
#include <math.h>
#include <string.h>
#include "core/numbers/loops.h"
#include "regulation/regulation.h"
#include "regulation/cpu/selection_loops.h"
#include "regulation/both/step.h"
#include "regulation/cpu/screen_loops.h"
#include "regulation/cpu/screen.h"

#define SUSPECTS 512       /* with more in one step, the screen gives up */
#define NEAR_THRESHOLD 0.9 /* a part of the best gain: such features are remembered for the next step's threshold */
#define FIRST 4            /* regulators that are looked at in the first step, so that some can be watched */
#define WATCHED 2          /* regulators whose gains are computed before a step, so that there is a threshold */
#define PARTS_SUM 1.4143   /* the most that the shares of two parts add up to: z's variance is at least theirs */
#define ONE_Q 16384.0
#define ONE_D 8192.0
#define ONE_C 32768.0
#define MAX_ERROR 2000.0

typedef struct {
  double q, r, d[WEFT_REGULATION_KINDS];
} errors;
typedef struct {
  double least, greatest;
  int32_t kind, j;
} suspect; /* bounds of its gain */

/* A chosen feature: how its products are found, and what its direction takes from others, as in step.h. */
typedef struct {
  int kind;
  size_t j;
  double sum, scale, share, before[WEFT_REGULATION_MAX_STEPS];
} direction;

typedef struct {
  const weft_regulation_half *half;
  const weft_regulation_favour *favour;
  const weft_regulation_target *target;
  double unit; /* the target's residuals are kept times `unit` */
  int64_t own;
  size_t count; /* steps taken */
  direction chosen[WEFT_REGULATION_MAX_STEPS];
  errors error;
  double error_q[WEFT_REGULATION_MAX_STEPS];
  int16_t *r, *d, *q; /* features; kinds × padded; steps × features */
  int16_t *size;      /* padded: what regulators reach in the first step */
  suspect suspects[SUSPECTS], watched[WATCHED];
  size_t found, watches;
  double collect; /* least gain of what is collected */
  double reached; /* a gain that is reached for certain */
  double collect_share;
} screen_state;

size_t weft_regulation_work(size_t padded, size_t steps)
{
  const size_t screening = padded * (1 + 3 + 2 * steps) * sizeof(int16_t);
  const size_t whole = padded * ((8 + 2 * steps) * sizeof(double) + 2 * sizeof(int32_t));
  return (screening > whole ? screening : whole) + 64;
}

/* ---- exact gains ---- */

/* The sum of products of a part, whose scores are in `row`, and a chosen feature. */
INLINE double product_of(const screen_state *screen, dot_product *dot, const int32_t *row, const direction *chosen)
{
  const weft_regulation_half *half = screen->half;
  return dot(row, half->rows + ((size_t) chosen->kind * half->padded + chosen->j) * half->kp, half->kp);
}

/* A part's residual, and its place in each direction. */
INLINE double follow_part(const screen_state *screen, dot_product *dot, int part, size_t j, double *q)
{
  const weft_regulation_half *half = screen->half;
  const size_t at = (size_t) part * half->padded + j;
  const int32_t *row = half->rows + ((size_t) (part + half->hinges) * half->padded + j) * half->kp;
  double r = weft_regulation_covariance(half->m, (double) dot(row, screen->target->row, half->kp), half->sum[at],
                                        screen->target->sum);
  for (size_t k = 0; k < screen->count; k++) {
    const direction *chosen = &screen->chosen[k];
    double own = weft_regulation_covariance(half->m, product_of(screen, dot, row, chosen), half->sum[at], chosen->sum);
    for (size_t l = 0; l < k; l++) own = weft_sub(own, weft_mul(q[l], chosen->before[l]));
    q[k] = weft_mul(own, chosen->scale);
    r = weft_sub(r, weft_mul(q[k], chosen->share));
  }
  return r;
}

typedef struct {
  double gain, r, d, q[WEFT_REGULATION_MAX_STEPS];
} exact;

/* The exact gain of feature (kind, j) after the directions chosen so far, with its covariance r, its variance d and its
 * products q with them: the same operations in the same order as selection without a screen, so the same bits. */
INLINE exact follow(const screen_state *screen, dot_product *dot, int kind, size_t j)
{
  const weft_regulation_half *half = screen->half;
  const size_t at = (size_t) kind * half->padded + j;
  exact found;
  if (!half->hinges || kind) {
    found.r = follow_part(screen, dot, half->hinges ? kind - 1 : 0, j, found.q);
  } else {
    double q[WEFT_REGULATION_MAX_STEPS];
    const double r = follow_part(screen, dot, 0, j, found.q);
    found.r = weft_add(r, follow_part(screen, dot, 1, j, q));
    for (size_t k = 0; k < screen->count; k++) found.q[k] = weft_add(found.q[k], q[k]);
  }
  found.d = half->variance[at];
  for (size_t k = 0; k < screen->count; k++) found.d = weft_sub(found.d, weft_mul(found.q[k], found.q[k]));
  found.gain = weft_regulation_gain(found.r, found.d, half->least[at], screen->favour->whole[j]);
  return found;
}

INLINE int barred(const screen_state *screen, size_t j)
{
  if ((int64_t) j == screen->own) return 1;
  for (size_t k = 0; k < screen->count; k++)
    if (screen->chosen[k].j == j) return 1;
  return 0;
}

/* ---- suspects ---- */

/* A regulator's scores are fetched from memory while other work is done. */
INLINE void fetch_scores(const weft_regulation_half *half, size_t j)
{
  for (int part = 0; part <= half->hinges; part++) {
    const int32_t *row = half->rows + ((size_t) (part + half->hinges) * half->padded + j) * half->kp;
    for (size_t k = 0; k < half->kp && k < 64; k += 16) __builtin_prefetch(row + k);
  }
}

/* Notes a feature that may be the best. Gains are in parts of the greatest favour. 0: there are too many. */
INLINE int suspect_one(screen_state *screen, int kind, size_t j, double least, double greatest)
{
  if (least > screen->reached) { screen->reached = least; }
  if (screen->reached * screen->collect_share > screen->collect)
    screen->collect = screen->reached * screen->collect_share;
  if (greatest < screen->collect) return 1;
  if (screen->found == SUSPECTS) {
    size_t kept = 0;
    screen->collect_share = 1;
    screen->collect = screen->reached;
    for (size_t k = 0; k < screen->found; k++)
      if (screen->suspects[k].greatest >= screen->collect) screen->suspects[kept++] = screen->suspects[k];
    screen->found = kept;
    if (kept > SUSPECTS / 2) return 0;
  }
  screen->suspects[screen->found++] = (suspect){ least, greatest, kind, (int32_t) j };
  if (greatest >= screen->reached) fetch_scores(screen->half, j);
  return 1;
}

/* The best of the suspects: of equal ones the smallest kind, then the smallest regulator. */
INLINE exact best_suspect(const screen_state *screen, dot_product *dot, int *kind, size_t *j)
{
  exact best = { .gain = 0 };
  for (size_t k = 0; k < screen->found; k++) {
    const suspect *one = &screen->suspects[k];
    exact found;
    if (one->greatest < screen->reached * (1 - 1e-9)) continue;
    found = follow(screen, dot, one->kind, (size_t) one->j);
    if (found.gain < best.gain || !(found.gain > 0)) continue;
    if (found.gain == best.gain && (one->kind > *kind || (one->kind == *kind && (size_t) one->j > *j))) continue;
    best = found;
    *kind = one->kind;
    *j = (size_t) one->j;
  }
  return best;
}

/* Puts a feature that may be chosen next among the watched, by its gain. */
INLINE void watch(screen_state *screen, const suspect *one)
{
  size_t at = screen->watches;
  if (barred(screen, (size_t) one->j)) return;
  for (size_t i = 0; i < screen->watches; i++)
    if (screen->watched[i].j == one->j) return;
  for (; at > 0 && screen->watched[at - 1].greatest < one->greatest; at--)
    if (at < WATCHED) screen->watched[at] = screen->watched[at - 1];
  if (at < WATCHED) screen->watched[at] = *one;
  if (screen->watches < WATCHED) screen->watches++;
}

/* Bounds of the gain of regulator j by `kind`, where its residuals and variance are as given; 0: it may not be
 * chosen. */
INLINE int bounds_of(const screen_state *screen, int kind, size_t j, int16_t r, int16_t r_too, int16_t d_now,
                     double *least, double *greatest)
{
  const weft_regulation_half *half = screen->half;
  const int whole = kind == 0 && half->hinges;
  const double add = whole ? PARTS_SUM * screen->error.r + 2.1 : screen->error.r, into = screen->unit / ONE_Q;
  const double size = fabs(whole ? (r * (double) half->part[j] + r_too * (double) half->part[half->padded + j]) / ONE_C
                           : kind == 2 ? r_too
                                       : r);
  const double f = screen->favour->parts[j], around = screen->error.d[kind] / ONE_D, d = d_now / ONE_D;
  const double low = size > add ? (size - add) * into : 0, high = (size + add) * into;
  if (d + around < WEFT_REGULATION_LEFT * (1 - 1e-6) || barred(screen, j)) return 0; /* it contributes nothing new */
  *least = d - around > WEFT_REGULATION_LEFT * (1 + 1e-6) ? f * (1 - 1e-6) * low * low / (d + around) : 0;
  *greatest =
      f * (1 + 1e-6) * high * high / (d - around > WEFT_REGULATION_LEFT / 2 ? d - around : WEFT_REGULATION_LEFT / 2);
  return 1;
}

/* Regulator j, which may be the best; 0: too many suspects. */
INLINE int suspect_all(screen_state *screen, int hinges, turned after, size_t j)
{
  for (int kind = 0; kind <= 2 * hinges; kind++) {
    double least, greatest;
    if (bounds_of(screen, kind, j, after.r[0], after.r[1], after.d[kind], &least, &greatest) &&
        !suspect_one(screen, kind, j, least, greatest))
      return 0;
  }
  return 1;
}

/* ---- the first step ---- */

/* Collects the features that are near the best, and for the next step's threshold at least FIRST regulators where there
 * are as many; 0: too many, or none. */
INLINE int collect_first(screen_state *screen, int hinges, const sweep *w, size_loop *sizes, reach_loop *reach)
{
  int16_t top[RUN], best[FIRST] = { 0 };
  const double add = hinges ? PARTS_SUM * screen->error.r + 2.1 : screen->error.r;
  double threshold;
  sizes(w, hinges, screen->favour->root, screen->size, top);
  for (size_t i = 0; i < RUN; i++) {
    size_t at = FIRST;
    for (; at > 0 && best[at - 1] < top[i]; at--)
      if (at < FIRST) best[at] = best[at - 1];
    if (at < FIRST) best[at] = top[i];
  }
  threshold = best[0] * sqrt(NEAR_THRESHOLD);
  threshold = fmin(fmin(threshold, best[FIRST - 1]), best[0] - 2 * add - 5); /* roots and products are rounded */
  threshold = fmax(threshold, best[0] * 0.22 - 2 * add - 5);
  if (!(threshold >= 1)) return 0;
  screen->collect = 0;
  screen->collect_share = 1e-3;
  for (size_t at = 0; at < w->padded; at += RUN)
    for (uint32_t flags = reach(screen->size + at, (int16_t) floor(threshold)); flags; flags &= flags - 1) {
      const size_t j = at + (size_t) __builtin_ctz(flags);
      if (!suspect_all(screen, hinges, turned_before(w, hinges, screen->half->start, j), j)) return 0;
    }
  return screen->reached > 0;
}

/* ---- later steps ---- */

/* Once a turn is set: the least gains that the next best now reach, so that there is a threshold before the screen. */
INLINE void expect(screen_state *screen, int hinges, const sweep *w)
{
  suspect earlier[WATCHED];
  const size_t count = screen->watches;
  memcpy(earlier, screen->watched, sizeof earlier);
  screen->watches = 0;
  for (size_t k = 0; k < screen->found; k++) watch(screen, &screen->suspects[k]);
  for (size_t k = 0; k < count; k++) watch(screen, &earlier[k]);
  screen->found = 0;
  screen->reached = 0;
  for (size_t k = 0; k < screen->watches; k++) {
    suspect *one = &screen->watched[k];
    const turned after = turn_one(w, hinges, (size_t) one->j);
    one->greatest = 0;
    for (int kind = 0; kind <= 2 * hinges; kind++) {
      double least, greatest;
      if (!bounds_of(screen, kind, (size_t) one->j, after.r[0], after.r[1], after.d[kind], &least, &greatest)) continue;
      if (greatest > one->greatest) one->greatest = greatest;
      if (least > screen->reached) screen->reached = least;
    }
  }
  screen->collect_share = screen->count + 1 < screen->half->steps ? NEAR_THRESHOLD : 1;
  screen->collect = screen->reached > 0 ? screen->reached * screen->collect_share : 1e-12 * screen->unit * screen->unit;
}

/* Regulators that are excluded: their variance is set so that no test selects them. */
INLINE void threshold_all(screen_state *screen, int hinges)
{
  for (int kind = 0; kind <= 2 * hinges; kind++) {
    int16_t *d = screen->d + (size_t) kind * screen->half->padded;
    if (screen->own >= 0) d[screen->own] = 32767;
    for (size_t k = 0; k < screen->count; k++) d[screen->chosen[k].j] = 32767;
  }
}

INLINE int16_t in_parts(double x, double one)
{
  const double v = rint(x * one);
  return (int16_t) (v > 32767 ? 32767 : v < -32767 ? -32767 : v);
}

/* The test for the gains that are being collected. 0: nothing can be told apart. */
INLINE int set_test(const screen_state *screen, test *t)
{
  const double limit = screen->collect / (screen->unit * screen->unit);
  const int hinges = screen->half->hinges;
  double threshold = limit;
  t->shift = 0;
  if (!(limit > 0)) return 0;
  while (threshold < 1.0 / 64 && t->shift < 12) {
    threshold *= 4;
    t->shift++;
  } /* rounding is a fiftieth of it, at most */
  if (threshold > 0.9999) threshold = 0.9999;
  t->threshold = (int16_t) floor(threshold * ONE_C);
  t->cap = (int16_t) (32767 >> t->shift);
  t->add =
      (int16_t) ceil(hinges ? PARTS_SUM * screen->error.r + 2.1 : screen->error.r); /* z's errors are the greatest */
  t->slack = (int16_t) ceil(2.5 + threshold * screen->error.d[0]);
  return 1;
}

/* Removes the direction chosen last from all features, and collects those that may be the best; 0: too many. */
INLINE int screen_step(screen_state *screen, int hinges, const sweep *w, test *now, sweep_loop *loop)
{
  uint32_t flags;
  double known = -1;
  for (size_t at = 0; at < w->padded;) {
    if (screen->collect != known) {
      known = screen->collect;
      if (!set_test(screen, now)) return 0;
    }
    at = loop(w, hinges, at, &flags);
    for (; flags; flags &= flags - 1) {
      const size_t j = at - RUN + (size_t) __builtin_ctz(flags);
      if (!suspect_all(screen, hinges, w->last ? turn_one(w, hinges, j) : turned_before(w, hinges, screen->d, j), j))
        return 0;
    }
  }
  return 1;
}

/* ---- between steps ---- */

/* Puts residuals into a unit that leaves room for what the next direction takes: all that may still be chosen are at
 * most sqrt(gain / favour), the direction takes `share`. */
INLINE void fit_unit(screen_state *screen, int hinges, double gain, double share)
{
  const size_t features = screen->half->padded * (size_t) (1 + hinges);
  const double most = fmax((sqrt(gain / screen->favour->least) + share) / 1.85, share / 0.9999);
  while (screen->unit < most) {
    screen->unit *= 2;
    WEFT_SIMD_PRAGMA(omp simd)
    for (size_t feature = 0; feature < features; feature++) screen->r[feature] = (int16_t) (screen->r[feature] >> 1);
    screen->error.r = screen->error.r / 2 + 1;
  }
}

/* The direction of the feature that was just chosen, for the screen; 0: errors have grown too large. */
INLINE int prepare(screen_state *screen, int hinges, const exact *found, turn *turn)
{
  const weft_regulation_half *half = screen->half;
  const direction *chosen = &screen->chosen[screen->count - 1];
  const size_t at = (size_t) chosen->kind * half->padded + chosen->j, step = screen->count - 1;
  const double unit = half->unit[at], left = found->d * unit * unit, share = fabs(chosen->share);
  double scale = 1 / sqrt(left), num = 0.51 + 0x1p-7 * (1 + 2 * (double) half->max_offset * fabs(chosen->sum * unit)),
         whole;
  turn->near = half->near + at * half->padded * (size_t) (1 + hinges);
  fit_unit(screen, hinges, found->gain / screen->favour->greatest, share);
  turn->shift = 0;
  while (scale >= 2 && turn->shift < 6) {
    scale /= 2;
    turn->shift++;
  }
  turn->stretch = in_parts(scale - 1, ONE_C);
  turn->share = in_parts(chosen->share / screen->unit, ONE_C);
  for (size_t k = 0; k < step; k++) {
    const double there = chosen->before[k] * unit;
    turn->before[k] = in_parts(there, ONE_C);
    num += fabs(there) * screen->error_q[k] * 1.001 + 1.02;
  }
  screen->error.q = screen->error_q[step] = 1.001 * (num / sqrt(left) + 1.2);
  whole = PARTS_SUM * screen->error.q + 2.1;
  screen->error.r += share / screen->unit * screen->error.q + 1.02;
  for (int kind = 0; kind <= 2 * hinges; kind++) {
    const double own = kind == 0 && hinges ? whole : screen->error.q;
    screen->error.d[kind] += own * (1 + own / 32768) + 0.52;
  }
  return screen->error.d[0] < MAX_ERROR && PARTS_SUM * screen->error.r < MAX_ERROR &&
         screen->error.d[2 * hinges] < MAX_ERROR;
}

/* Correlations with the feature that was just chosen are fetched from memory while other work is done. */
INLINE void fetch_near(const weft_regulation_half *half, int hinges, int kind, size_t j)
{
  const size_t features = half->padded * (size_t) (1 + hinges);
  const int16_t *near = half->near + ((size_t) kind * half->padded + j) * features;
  for (size_t feature = 0; feature < features; feature += 32) __builtin_prefetch(near + feature, 0, 2);
}

/* Notes feature (kind, j) as the next direction, with what later steps need of it, and writes the choice with the sign
 * of r. */
INLINE void take(screen_state *screen, int hinges, const exact *found, int kind, size_t j, int32_t *choice)
{
  const weft_regulation_half *half = screen->half;
  direction *chosen = &screen->chosen[screen->count];
  const int32_t feature = 1 + (int32_t) ((size_t) kind * half->regulators + j);
  const double root = weft_sqrt(found->d);
  choice[screen->count] = found->r > 0 ? feature : -feature;
  chosen->kind = kind;
  chosen->j = j;
  chosen->sum = !hinges || kind == 1 ? half->sum[j]
                : kind == 2          ? half->sum[half->padded + j]
                                     : weft_add(half->sum[j], half->sum[half->padded + j]);
  chosen->scale = weft_div(1.0, root);
  chosen->share = weft_div(found->r, root);
  memcpy(chosen->before, found->q, screen->count * sizeof *chosen->before);
  screen->count++;
}

/* 0: the screen could not tell enough features apart. */
INLINE int screened_body(const weft_regulation_half *half, const weft_regulation_favour *favour, int hinges,
                         const weft_regulation_target *target, char *work, int32_t *choice, dot_product *dot,
                         sweep_loop *loop, size_loop *sizes, reach_loop *reach)
{
  const size_t padded = half->padded, features = padded * (size_t) (1 + hinges);
  screen_state screen;
  turn turn;
  test now;
  sweep w;
  int kind = 0;
  size_t j = 0;
  exact best;
  screen.half = half;
  screen.favour = favour;
  screen.target = target;
  screen.own = target->own;
  screen.count = screen.found = screen.watches = 0;
  screen.reached = 0;
  screen.unit = target->root * (ONE_Q / WEFT_REGULATION_NEAR);
  memset(&screen.error, 0, sizeof screen.error);
  screen.error.r = target->error;
  screen.r = target->near;
  screen.d = (int16_t *) (void *) work;
  screen.q = screen.d + (size_t) (1 + 2 * hinges) * padded;
  screen.size = screen.q + half->steps * features;
  memset(choice, 0, half->steps * sizeof *choice);
  if (!(target->error < WEFT_REGULATION_MAX_NEAR)) return 0;
  if (screen.own >= 0)
    for (int part = 0; part <= hinges; part++) screen.r[(size_t) part * padded + (size_t) screen.own] = 0;
  w = (sweep){ &turn,          &now,     0,        padded,   features,    half->part,
               favour->coarse, screen.q, screen.r, screen.d, half->start, 0 };
  if (!collect_first(&screen, hinges, &w, sizes, reach)) return 0;
  for (;;) {
    best = best_suspect(&screen, dot, &kind, &j);
    if (!(best.gain > 0)) return 0;
    take(&screen, hinges, &best, kind, j, choice);
    if (screen.count == half->steps) return 1;
    fetch_near(half, hinges, kind, j);
    if (screen.count > 1) {
      threshold_all(&screen, hinges);
      w.before = screen.d;
    }
    if (!prepare(&screen, hinges, &best, &turn)) return 0;
    w.step = screen.count - 1;
    w.last = screen.count + 1 == half->steps;
    expect(&screen, hinges, &w);
    if (!screen_step(&screen, hinges, &w, &now, loop)) return 0;
  }
}

#define SCREENED_FOR(variant, hinges) \
  screened_body(h, favour, hinges, target, work, choice, dot_##variant, sweep_##variant, sizes_##variant, \
                reach_##variant)
#define SCREENED(variant, attributes) \
  attributes static int screened_##variant(const weft_regulation_half *h, const weft_regulation_favour *favour, \
                                           const weft_regulation_target *target, char *work, int32_t *choice) \
  { \
    return h->hinges ? SCREENED_FOR(variant, 1) : SCREENED_FOR(variant, 0); \
  }
WEFT_VARIANTS(SCREENED)

weft_regulation_screen *weft_regulation_screen_here(void) { return WEFT_VARIANT_HERE(screened); }
