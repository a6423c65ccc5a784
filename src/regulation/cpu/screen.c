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
 * best if (|r| + error)^2 favour >= bar (d - error), where the bar is a gain that some feature is known to reach. */
#include <math.h>
#include <string.h>
#include "core/numbers/loops.h"
#include "regulation/regulation.h"
#include "regulation/cpu/selection_loops.h"
#include "regulation/both/step.h"
#include "regulation/cpu/screen_loops.h"

#define SUSPECTS 512     /* with more in one step, the screen gives up */
#define NEAR_BAR 0.9     /* a part of the best gain: such features are remembered for the next step's bar */
#define FIRST 4          /* regulators that are looked at in the first step, so that some can be watched */
#define WATCHED 2        /* regulators whose gains are computed before a step, so that there is a bar */
#define PARTS_SUM 1.4143 /* the most that the shares of two parts add up to: z's variance is at least theirs */
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
  const weft_regulation_half *h;
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
} screen;

size_t weft_regulation_work(size_t padded, size_t steps)
{
  const size_t screening = padded * (1 + 3 + 2 * steps) * sizeof(int16_t);
  const size_t whole = padded * ((8 + 2 * steps) * sizeof(double) + 2 * sizeof(int32_t));
  return (screening > whole ? screening : whole) + 64;
}

/* ---- exact gains ---- */

/* The sum of products of a part, whose scores are in `row`, and a chosen feature. */
INLINE double product_of(const screen *s, dot_product *dot, const int32_t *row, const direction *c)
{
  const weft_regulation_half *h = s->h;
  return dot(row, h->rows + ((size_t) c->kind * h->padded + c->j) * h->kp, h->kp);
}

/* A part's residual, and its place in each direction. */
INLINE double follow_part(const screen *s, dot_product *dot, int part, size_t j, double *q)
{
  const weft_regulation_half *h = s->h;
  const size_t at = (size_t) part * h->padded + j;
  const int32_t *row = h->rows + ((size_t) (part + h->hinges) * h->padded + j) * h->kp;
  double r = weft_regulation_covariance(h->m, (double) dot(row, s->target->row, h->kp), h->sum[at], s->target->sum);
  for (size_t k = 0; k < s->count; k++) {
    const direction *c = &s->chosen[k];
    double own = weft_regulation_covariance(h->m, product_of(s, dot, row, c), h->sum[at], c->sum);
    for (size_t l = 0; l < k; l++) own = weft_sub(own, weft_mul(q[l], c->before[l]));
    q[k] = weft_mul(own, c->scale);
    r = weft_sub(r, weft_mul(q[k], c->share));
  }
  return r;
}

typedef struct {
  double gain, r, d, q[WEFT_REGULATION_MAX_STEPS];
} exact;

/* The exact gain of feature (kind, j) after the directions chosen so far, with its covariance r, its variance d and its
 * products q with them: the same operations in the same order as selection without a screen, so the same bits. */
INLINE exact follow(const screen *s, dot_product *dot, int kind, size_t j)
{
  const weft_regulation_half *h = s->h;
  const size_t at = (size_t) kind * h->padded + j;
  exact e;
  if (!h->hinges || kind) {
    e.r = follow_part(s, dot, h->hinges ? kind - 1 : 0, j, e.q);
  } else {
    double q[WEFT_REGULATION_MAX_STEPS];
    const double r = follow_part(s, dot, 0, j, e.q);
    e.r = weft_add(r, follow_part(s, dot, 1, j, q));
    for (size_t k = 0; k < s->count; k++) e.q[k] = weft_add(e.q[k], q[k]);
  }
  e.d = h->variance[at];
  for (size_t k = 0; k < s->count; k++) e.d = weft_sub(e.d, weft_mul(e.q[k], e.q[k]));
  e.gain = weft_regulation_gain(e.r, e.d, h->least[at], s->favour->whole[j]);
  return e;
}

INLINE int barred(const screen *s, size_t j)
{
  if ((int64_t) j == s->own) return 1;
  for (size_t k = 0; k < s->count; k++)
    if (s->chosen[k].j == j) return 1;
  return 0;
}

/* ---- suspects ---- */

/* A regulator's scores are fetched from memory while other work is done. */
INLINE void fetch_scores(const weft_regulation_half *h, size_t j)
{
  for (int part = 0; part <= h->hinges; part++) {
    const int32_t *row = h->rows + ((size_t) (part + h->hinges) * h->padded + j) * h->kp;
    for (size_t k = 0; k < h->kp && k < 64; k += 16) __builtin_prefetch(row + k);
  }
}

/* Notes a feature that may be the best. Gains are in parts of the greatest favour. 0: there are too many. */
INLINE int suspect_one(screen *s, int kind, size_t j, double least, double greatest)
{
  if (least > s->reached) { s->reached = least; }
  if (s->reached * s->collect_share > s->collect) s->collect = s->reached * s->collect_share;
  if (greatest < s->collect) return 1;
  if (s->found == SUSPECTS) {
    size_t kept = 0;
    s->collect_share = 1;
    s->collect = s->reached;
    for (size_t k = 0; k < s->found; k++)
      if (s->suspects[k].greatest >= s->collect) s->suspects[kept++] = s->suspects[k];
    s->found = kept;
    if (kept > SUSPECTS / 2) return 0;
  }
  s->suspects[s->found++] = (suspect){ least, greatest, kind, (int32_t) j };
  if (greatest >= s->reached) fetch_scores(s->h, j);
  return 1;
}

/* The best of the suspects: of equal ones the smallest kind, then the smallest regulator. */
INLINE exact best_suspect(const screen *s, dot_product *dot, int *kind, size_t *j)
{
  exact best = { .gain = 0 };
  for (size_t k = 0; k < s->found; k++) {
    const suspect *one = &s->suspects[k];
    exact e;
    if (one->greatest < s->reached * (1 - 1e-9)) continue;
    e = follow(s, dot, one->kind, (size_t) one->j);
    if (e.gain < best.gain || !(e.gain > 0)) continue;
    if (e.gain == best.gain && (one->kind > *kind || (one->kind == *kind && (size_t) one->j > *j))) continue;
    best = e;
    *kind = one->kind;
    *j = (size_t) one->j;
  }
  return best;
}

/* Puts a feature that may be chosen next among the watched, by its gain. */
INLINE void watch(screen *s, const suspect *one)
{
  size_t at = s->watches;
  if (barred(s, (size_t) one->j)) return;
  for (size_t i = 0; i < s->watches; i++)
    if (s->watched[i].j == one->j) return;
  for (; at > 0 && s->watched[at - 1].greatest < one->greatest; at--)
    if (at < WATCHED) s->watched[at] = s->watched[at - 1];
  if (at < WATCHED) s->watched[at] = *one;
  if (s->watches < WATCHED) s->watches++;
}

/* Bounds of the gain of regulator j by `kind`, where its residuals and variance are as given; 0: it may not be
 * chosen. */
INLINE int bounds_of(const screen *s, int kind, size_t j, int16_t r, int16_t r_too, int16_t d_now, double *least,
                     double *greatest)
{
  const weft_regulation_half *h = s->h;
  const int whole = kind == 0 && h->hinges;
  const double add = whole ? PARTS_SUM * s->error.r + 2.1 : s->error.r, into = s->unit / ONE_Q;
  const double size = fabs(whole       ? (r * (double) h->part[j] + r_too * (double) h->part[h->padded + j]) / ONE_C
                           : kind == 2 ? r_too
                                       : r);
  const double f = s->favour->parts[j], around = s->error.d[kind] / ONE_D, d = d_now / ONE_D;
  const double low = size > add ? (size - add) * into : 0, high = (size + add) * into;
  if (d + around < WEFT_REGULATION_LEFT * (1 - 1e-6) || barred(s, j)) return 0; /* it contributes nothing new */
  *least = d - around > WEFT_REGULATION_LEFT * (1 + 1e-6) ? f * (1 - 1e-6) * low * low / (d + around) : 0;
  *greatest =
      f * (1 + 1e-6) * high * high / (d - around > WEFT_REGULATION_LEFT / 2 ? d - around : WEFT_REGULATION_LEFT / 2);
  return 1;
}

/* Regulator j, which may be the best; 0: too many suspects. */
INLINE int suspect_all(screen *s, int hinges, turned o, size_t j)
{
  for (int kind = 0; kind <= 2 * hinges; kind++) {
    double least, greatest;
    if (bounds_of(s, kind, j, o.r[0], o.r[1], o.d[kind], &least, &greatest) &&
        !suspect_one(s, kind, j, least, greatest))
      return 0;
  }
  return 1;
}

/* ---- the first step ---- */

/* Collects the features that are near the best, and for the next step's bar at least FIRST regulators where there are
 * as many; 0: too many, or none. */
INLINE int collect_first(screen *s, int hinges, const sweep *w, size_loop *sizes, reach_loop *reach)
{
  int16_t top[RUN], best[FIRST] = { 0 };
  const double add = hinges ? PARTS_SUM * s->error.r + 2.1 : s->error.r;
  double bar;
  sizes(w, hinges, s->favour->root, s->size, top);
  for (size_t i = 0; i < RUN; i++) {
    size_t at = FIRST;
    for (; at > 0 && best[at - 1] < top[i]; at--)
      if (at < FIRST) best[at] = best[at - 1];
    if (at < FIRST) best[at] = top[i];
  }
  bar = best[0] * sqrt(NEAR_BAR);
  bar = fmin(fmin(bar, best[FIRST - 1]), best[0] - 2 * add - 5); /* roots and products are rounded */
  bar = fmax(bar, best[0] * 0.22 - 2 * add - 5);
  if (!(bar >= 1)) return 0;
  s->collect = 0;
  s->collect_share = 1e-3;
  for (size_t at = 0; at < w->padded; at += RUN)
    for (uint32_t flags = reach(s->size + at, (int16_t) floor(bar)); flags; flags &= flags - 1) {
      const size_t j = at + (size_t) __builtin_ctz(flags);
      if (!suspect_all(s, hinges, turned_before(w, hinges, s->h->start, j), j)) return 0;
    }
  return s->reached > 0;
}

/* ---- later steps ---- */

/* Once a turn is set: the least gains that the next best now reach, so that there is a bar before the screen. */
INLINE void expect(screen *s, int hinges, const sweep *w)
{
  suspect earlier[WATCHED];
  const size_t count = s->watches;
  memcpy(earlier, s->watched, sizeof earlier);
  s->watches = 0;
  for (size_t k = 0; k < s->found; k++) watch(s, &s->suspects[k]);
  for (size_t k = 0; k < count; k++) watch(s, &earlier[k]);
  s->found = 0;
  s->reached = 0;
  for (size_t k = 0; k < s->watches; k++) {
    suspect *one = &s->watched[k];
    const turned o = turn_one(w, hinges, (size_t) one->j);
    one->greatest = 0;
    for (int kind = 0; kind <= 2 * hinges; kind++) {
      double least, greatest;
      if (!bounds_of(s, kind, (size_t) one->j, o.r[0], o.r[1], o.d[kind], &least, &greatest)) continue;
      if (greatest > one->greatest) one->greatest = greatest;
      if (least > s->reached) s->reached = least;
    }
  }
  s->collect_share = s->count + 1 < s->h->steps ? NEAR_BAR : 1;
  s->collect = s->reached > 0 ? s->reached * s->collect_share : 1e-12 * s->unit * s->unit;
}

/* Regulators that are excluded: their variance is set so that no test selects them. */
INLINE void bar_all(screen *s, int hinges)
{
  for (int kind = 0; kind <= 2 * hinges; kind++) {
    int16_t *d = s->d + (size_t) kind * s->h->padded;
    if (s->own >= 0) d[s->own] = 32767;
    for (size_t k = 0; k < s->count; k++) d[s->chosen[k].j] = 32767;
  }
}

INLINE int16_t in_parts(double x, double one)
{
  const double v = rint(x * one);
  return (int16_t) (v > 32767 ? 32767 : v < -32767 ? -32767 : v);
}

/* The test for the gains that are being collected. 0: nothing can be told apart. */
INLINE int set_test(const screen *s, test *t)
{
  const double limit = s->collect / (s->unit * s->unit);
  const int hinges = s->h->hinges;
  double bar = limit;
  t->shift = 0;
  if (!(limit > 0)) return 0;
  while (bar < 1.0 / 64 && t->shift < 12) {
    bar *= 4;
    t->shift++;
  } /* rounding is a fiftieth of it, at most */
  if (bar > 0.9999) bar = 0.9999;
  t->bar = (int16_t) floor(bar * ONE_C);
  t->cap = (int16_t) (32767 >> t->shift);
  t->add = (int16_t) ceil(hinges ? PARTS_SUM * s->error.r + 2.1 : s->error.r); /* z's errors are the greatest */
  t->slack = (int16_t) ceil(2.5 + bar * s->error.d[0]);
  return 1;
}

/* Removes the direction chosen last from all features, and collects those that may be the best; 0: too many. */
INLINE int screen_step(screen *s, int hinges, const sweep *w, test *now, sweep_loop *loop)
{
  uint32_t flags;
  double known = -1;
  for (size_t at = 0; at < w->padded;) {
    if (s->collect != known) {
      known = s->collect;
      if (!set_test(s, now)) return 0;
    }
    at = loop(w, hinges, at, &flags);
    for (; flags; flags &= flags - 1) {
      const size_t j = at - RUN + (size_t) __builtin_ctz(flags);
      if (!suspect_all(s, hinges, w->last ? turn_one(w, hinges, j) : turned_before(w, hinges, s->d, j), j)) return 0;
    }
  }
  return 1;
}

/* ---- between steps ---- */

/* Puts residuals into a unit that leaves room for what the next direction takes: all that may still be chosen are at
 * most sqrt(gain / favour), the direction takes `share`. */
INLINE void fit_unit(screen *s, int hinges, double gain, double share)
{
  const size_t features = s->h->padded * (size_t) (1 + hinges);
  const double most = fmax((sqrt(gain / s->favour->least) + share) / 1.85, share / 0.9999);
  while (s->unit < most) {
    s->unit *= 2;
    WEFT_SIMD_PRAGMA(omp simd)
    for (size_t f = 0; f < features; f++) s->r[f] = (int16_t) (s->r[f] >> 1);
    s->error.r = s->error.r / 2 + 1;
  }
}

/* The direction of the feature that was just chosen, for the screen; 0: errors have grown too large. */
INLINE int prepare(screen *s, int hinges, const exact *e, turn *t)
{
  const weft_regulation_half *h = s->h;
  const direction *c = &s->chosen[s->count - 1];
  const size_t at = (size_t) c->kind * h->padded + c->j, step = s->count - 1;
  const double unit = h->unit[at], left = e->d * unit * unit, share = fabs(c->share);
  double scale = 1 / sqrt(left), num = 0.51 + 0x1p-7 * (1 + 2 * (double) h->max_offset * fabs(c->sum * unit)), whole;
  t->near = h->near + at * h->padded * (size_t) (1 + hinges);
  fit_unit(s, hinges, e->gain / s->favour->greatest, share);
  t->shift = 0;
  while (scale >= 2 && t->shift < 6) {
    scale /= 2;
    t->shift++;
  }
  t->stretch = in_parts(scale - 1, ONE_C);
  t->share = in_parts(c->share / s->unit, ONE_C);
  for (size_t k = 0; k < step; k++) {
    const double there = c->before[k] * unit;
    t->before[k] = in_parts(there, ONE_C);
    num += fabs(there) * s->error_q[k] * 1.001 + 1.02;
  }
  s->error.q = s->error_q[step] = 1.001 * (num / sqrt(left) + 1.2);
  whole = PARTS_SUM * s->error.q + 2.1;
  s->error.r += share / s->unit * s->error.q + 1.02;
  for (int kind = 0; kind <= 2 * hinges; kind++) {
    const double own = kind == 0 && hinges ? whole : s->error.q;
    s->error.d[kind] += own * (1 + own / 32768) + 0.52;
  }
  return s->error.d[0] < MAX_ERROR && PARTS_SUM * s->error.r < MAX_ERROR && s->error.d[2 * hinges] < MAX_ERROR;
}

/* Correlations with the feature that was just chosen are fetched from memory while other work is done. */
INLINE void fetch_near(const weft_regulation_half *h, int hinges, int kind, size_t j)
{
  const size_t features = h->padded * (size_t) (1 + hinges);
  const int16_t *near = h->near + ((size_t) kind * h->padded + j) * features;
  for (size_t f = 0; f < features; f += 32) __builtin_prefetch(near + f, 0, 2);
}

/* Notes feature (kind, j) as the next direction, with what later steps need of it, and writes the choice with the sign
 * of r. */
INLINE void take(screen *s, int hinges, const exact *e, int kind, size_t j, int32_t *choice)
{
  const weft_regulation_half *h = s->h;
  direction *c = &s->chosen[s->count];
  const int32_t feature = 1 + (int32_t) ((size_t) kind * h->regulators + j);
  const double root = weft_sqrt(e->d);
  choice[s->count] = e->r > 0 ? feature : -feature;
  c->kind = kind;
  c->j = j;
  c->sum = !hinges || kind == 1 ? h->sum[j]
           : kind == 2          ? h->sum[h->padded + j]
                                : weft_add(h->sum[j], h->sum[h->padded + j]);
  c->scale = weft_div(1.0, root);
  c->share = weft_div(e->r, root);
  memcpy(c->before, e->q, s->count * sizeof *c->before);
  s->count++;
}

/* 0: the screen could not tell enough features apart. */
INLINE int screened_body(const weft_regulation_half *h, const weft_regulation_favour *favour, int hinges,
                         const weft_regulation_target *target, char *work, int32_t *choice, dot_product *dot,
                         sweep_loop *loop, size_loop *sizes, reach_loop *reach)
{
  const size_t padded = h->padded, features = padded * (size_t) (1 + hinges);
  screen s;
  turn t;
  test now;
  sweep w;
  int kind = 0;
  size_t j = 0;
  exact best;
  s.h = h;
  s.favour = favour;
  s.target = target;
  s.own = target->own;
  s.count = s.found = s.watches = 0;
  s.reached = 0;
  s.unit = target->root * (ONE_Q / WEFT_REGULATION_NEAR);
  memset(&s.error, 0, sizeof s.error);
  s.error.r = target->error;
  s.r = target->near;
  s.d = (int16_t *) (void *) work;
  s.q = s.d + (size_t) (1 + 2 * hinges) * padded;
  s.size = s.q + h->steps * features;
  memset(choice, 0, h->steps * sizeof *choice);
  if (!(target->error < WEFT_REGULATION_MAX_NEAR)) return 0;
  if (s.own >= 0)
    for (int part = 0; part <= hinges; part++) s.r[(size_t) part * padded + (size_t) s.own] = 0;
  w = (sweep){ &t, &now, 0, padded, features, h->part, favour->coarse, s.q, s.r, s.d, h->start, 0 };
  if (!collect_first(&s, hinges, &w, sizes, reach)) return 0;
  for (;;) {
    best = best_suspect(&s, dot, &kind, &j);
    if (!(best.gain > 0)) return 0;
    take(&s, hinges, &best, kind, j, choice);
    if (s.count == h->steps) return 1;
    fetch_near(h, hinges, kind, j);
    if (s.count > 1) {
      bar_all(&s, hinges);
      w.before = s.d;
    }
    if (!prepare(&s, hinges, &best, &t)) return 0;
    w.step = s.count - 1;
    w.last = s.count + 1 == h->steps;
    expect(&s, hinges, &w);
    if (!screen_step(&s, hinges, &w, &now, loop)) return 0;
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
