/* Forward selection for one target, with few exact gains: in every step all features are screened in 16-bit
 * arithmetic, and only those that may be the best are computed as regulation_step.h says. What is chosen is therefore
 * the same as if all had been (regulation_loops.c, which does that where the screen cannot tell enough apart).
 *
 * All features have unit variance here, and the target a unit of its own, so that numbers stay within [-2, 2):
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
#include "../base/loops.h"
#include "regulation.h"
#include "regulation_loops.h"
#include "regulation_step.h"
#include "regulation_sweep.h"

#define SUSPECTS 512              /* more in one step, and the screen gives up */
#define NEAR_BAR 0.9              /* a part of the best gain: such features are remembered for the next step's bar */
#define WATCHED 2                 /* regulators whose gains are computed before a step, so that there is a bar */
#define PARTS_SUM 1.4143          /* the most that the shares of two parts add up to: z's variance is at least theirs */
#define ONE_Q 16384.0
#define ONE_D 8192.0
#define ONE_C 32768.0
#define MOST_ERROR 2000.0

typedef struct { double q, r, d[WEFT_REGULATION_KINDS]; } errors;
typedef struct { double least, greatest; int32_t kind, j; } suspect; /* bounds of its gain */

/* A chosen feature: how its products are found, and what its direction takes from others, as in regulation_step.h. */
typedef struct {
  int kind;
  size_t j;
  double sum, scale, share, before[WEFT_REGULATION_MOST_STEPS];
} direction;

typedef struct {
  const weft_regulation_half *h;
  const weft_regulation_favour *favour;
  const int32_t *with;
  double sum, unit;                 /* of the target: its residuals are kept times `unit` */
  int64_t own;
  size_t count;                     /* steps taken */
  direction chosen[WEFT_REGULATION_MOST_STEPS];
  errors error;
  double error_q[WEFT_REGULATION_MOST_STEPS];
  float *rho;                       /* features: covariances with the target before the first step */
  float *most;                      /* runs of regulators: the greatest gain in the first step */
  int16_t *r, *d, *q;               /* features; kinds × padded; steps × features */
  suspect suspects[SUSPECTS], watched[WATCHED];
  size_t found, watches;
  double collect;                   /* least gain of what is collected */
  double reached;                   /* a gain that is reached for certain */
  double collect_share;
} screen;

size_t weft_regulation_work(size_t padded, size_t steps)
{
  const size_t screening = padded * (3 * sizeof(float) + (2 + 3 + 2 * steps) * sizeof(int16_t));
  const size_t whole = padded * ((8 + 2 * steps) * sizeof(double) + 2 * sizeof(int32_t));
  return (screening > whole ? screening : whole) + 64;
}

/* ---- exact gains ---- */

/* The sum of products of a part and a chosen feature. */
INLINE double product_of(const screen *s, dot_product *dot, int part, size_t j, const direction *c)
{
  const weft_regulation_half *h = s->h;
  const int32_t *row = h->rows + ((size_t) (part + h->hinges) * h->padded + j) * h->kp;
  return dot(row, h->rows + ((size_t) c->kind * h->padded + c->j) * h->kp, h->kp);
}

/* A part's residual, and its place in each direction. */
INLINE double follow_part(const screen *s, dot_product *dot, int part, size_t j, double *q)
{
  const weft_regulation_half *h = s->h;
  const size_t at = (size_t) part * h->padded + j;
  double r = weft_regulation_covariance(h->m, (double) s->with[at], h->sum[at], s->sum);
  for (size_t k = 0; k < s->count; k++) {
    const direction *c = &s->chosen[k];
    double own = weft_regulation_covariance(h->m, product_of(s, dot, part, j, c), h->sum[at], c->sum);
    for (size_t l = 0; l < k; l++) own = weft_sub(own, weft_mul(q[l], c->before[l]));
    q[k] = weft_mul(own, c->scale);
    r = weft_sub(r, weft_mul(q[k], c->share));
  }
  return r;
}

typedef struct { double gain, r, d, q[WEFT_REGULATION_MOST_STEPS]; } exact;

INLINE exact follow(const screen *s, dot_product *dot, int kind, size_t j)
{
  const weft_regulation_half *h = s->h;
  const size_t at = (size_t) kind * h->padded + j;
  exact e;
  if (!h->hinges || kind) {
    e.r = follow_part(s, dot, h->hinges ? kind - 1 : 0, j, e.q);
  } else {
    double q[WEFT_REGULATION_MOST_STEPS];
    const double r = follow_part(s, dot, 0, j, e.q);
    e.r = weft_add(r, follow_part(s, dot, 1, j, q));
    for (size_t k = 0; k < s->count; k++) e.q[k] = weft_add(e.q[k], q[k]);
  }
  e.d = h->variance[at];
  for (size_t k = 0; k < s->count; k++) e.d = weft_sub(e.d, weft_mul(e.q[k], e.q[k]));
  e.gain = weft_regulation_gain(e.r, e.d, h->least[at], s->favour->whole[j]);
  return e;
}

static int barred(const screen *s, size_t j)
{
  if ((int64_t) j == s->own) return 1;
  for (size_t k = 0; k < s->count; k++) if (s->chosen[k].j == j) return 1;
  return 0;
}

/* ---- suspects ---- */

/* Notes a feature that may be the best. Gains are in parts of the greatest favour. 0: there are too many. */
static int suspect_one(screen *s, int kind, size_t j, double least, double greatest)
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
  s->suspects[s->found++] = (suspect) { least, greatest, kind, (int32_t) j };
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
static void watch(screen *s, const suspect *one)
{
  size_t at = s->watches;
  if (barred(s, (size_t) one->j)) return;
  for (size_t i = 0; i < s->watches; i++) if (s->watched[i].j == one->j) return;
  for (; at > 0 && s->watched[at - 1].greatest < one->greatest; at--)
    if (at < WATCHED) s->watched[at] = s->watched[at - 1];
  if (at < WATCHED) s->watched[at] = *one;
  if (s->watches < WATCHED) s->watches++;
}

/* After a step: what the next best reach now, so that there is a bar before the screen. */
INLINE void expect(screen *s, dot_product *dot)
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
    const double gain = follow(s, dot, s->watched[k].kind, (size_t) s->watched[k].j).gain / s->favour->greatest;
    s->watched[k].greatest = gain;
    if (gain > s->reached) s->reached = gain * (1 - 1e-12);
  }
  s->collect_share = NEAR_BAR;
  s->collect = s->reached > 0 ? s->reached * NEAR_BAR : 1e-12 * s->unit * s->unit;
}

/* Regulators that are out: their variance is such that no test finds them. */
INLINE void bar_all(screen *s, int hinges)
{
  for (int kind = 0; kind <= 2 * hinges; kind++) {
    int16_t *d = s->d + (size_t) kind * s->h->padded;
    if (s->own >= 0) d[s->own] = 32767;
    for (size_t k = 0; k < s->count; k++) d[s->chosen[k].j] = 32767;
  }
}

/* ---- the first step, in single precision ---- */

/* What run `at` of regulators gains at most. fresh: their covariances with the target are noted first, in units of the
 * features. */
INLINE float begin_run(const screen *s, int hinges, int fresh, size_t at, float sum)
{
  const weft_regulation_half *h = s->h;
  const size_t second = h->padded + at;
  const float *favour = s->favour->parts + at;
  const int32_t *with = s->with + at, *with_too = s->with + second;
  const float *slope = h->slope + at, *slope_too = h->slope + second, *offset = h->offset + at,
              *offset_too = h->offset + second;
  const int16_t *one = h->part + at, *two = h->part + second;
  float *rho = s->rho + at, *rho_too = s->rho + second, most = 0;
  WEFT_SIMD_GREATEST(most)
  for (size_t i = 0; i < RUN; i++) {
    const float p = fresh ? (float) with[i] * slope[i] - offset[i] * sum : rho[i];
    float g = p * p;
    if (hinges) {
      const float n = fresh ? (float) with_too[i] * slope_too[i] - offset_too[i] * sum : rho_too[i];
      const float z = (p * one[i] + n * two[i]) * (float) (1 / ONE_C);
      g = n * n > g ? n * n : g;
      g = z * z > g ? z * z : g;
      if (fresh) rho_too[i] = n;
    }
    if (fresh) rho[i] = p;
    g *= favour[i];
    most = g > most ? g : most;
  }
  return most;
}

/* The same of all runs; returns the greatest. */
INLINE float begin(screen *s, int hinges, float sum)
{
  float most = 0;
  for (size_t run = 0; run < s->h->padded / RUN; run++) s->most[run] = begin_run(s, hinges, 1, run * RUN, sum);
  if (s->own >= 0) {
    const size_t own = (size_t) s->own, run = own / RUN;
    for (int part = 0; part <= hinges; part++) s->rho[(size_t) part * s->h->padded + own] = 0;
    s->most[run] = begin_run(s, hinges, 0, run * RUN, sum);
  }
  for (size_t run = 0; run < s->h->padded / RUN; run++) most = s->most[run] > most ? s->most[run] : most;
  return most;
}

/* Collects who is near the best; 0: too many. */
INLINE int collect_first(screen *s, int hinges, double error)
{
  const size_t padded = s->h->padded;
  const float *rho = s->rho, *favour = s->favour->parts;
  const int16_t *one = s->h->part, *two = one + padded;
  for (size_t at = 0; at < padded; at += RUN) {
    if (s->most[at / RUN] < (float) s->collect * (1 - 1e-4f)) continue;
    for (size_t j = at; j < at + RUN; j++) {
      const float n = hinges ? rho[padded + j] : 0;
      const float z = (rho[j] * one[j] + n * (hinges ? two[j] : 0)) * (float) (1 / ONE_C);
      const float r[WEFT_REGULATION_KINDS] = { hinges ? z : rho[j], rho[j], n };
      for (int kind = 0; kind <= 2 * hinges; kind++) {
        double f, size, e, low, high;
        if (r[kind] * r[kind] * favour[j] < (float) s->collect * (1 - 1e-4f) || barred(s, j)) continue;
        f = sqrt((double) favour[j]);
        size = fabs((double) r[kind]) * f;
        e = error * f;
        low = fmax(0, size * (1 - 1e-6) - e);
        high = size * (1 + 1e-6) + e;
        if (!suspect_one(s, kind, j, low * low, high * high)) return 0;
      }
    }
  }
  return 1;
}

/* ---- later steps ---- */

/* Regulator j, whose gain by `kind` may be the best; 0: too many suspects. */
static int suspect_kind(screen *s, int kind, size_t j)
{
  const weft_regulation_half *h = s->h;
  const int whole = kind == 0 && h->hinges;
  const int16_t *r = s->r + j;
  const double add = whole ? PARTS_SUM * s->error.r + 2.1 : s->error.r, into = s->unit / ONE_Q;
  const double size = fabs(whole ? (r[0] * (double) h->part[j] + r[h->padded] * (double) h->part[h->padded + j]) / ONE_C
                                 : r[kind == 2 ? h->padded : 0]);
  const double f = s->favour->parts[j], around = s->error.d[kind] / ONE_D;
  const double d = s->d[(size_t) kind * h->padded + j] / ONE_D;
  const double low = fmax(0, (size - add) * into), high = (size + add) * into;
  double least, greatest;
  if (barred(s, j) || d + around < WEFT_REGULATION_LEFT * (1 - 1e-6)) return 1; /* it says nothing new */
  least = d - around > WEFT_REGULATION_LEFT * (1 + 1e-6) ? f * (1 - 1e-6) * low * low / (d + around) : 0;
  greatest = f * (1 + 1e-6) * high * high / fmax(d - around, WEFT_REGULATION_LEFT / 2);
  return suspect_one(s, kind, j, least, greatest);
}

static int16_t in_parts(double x, double one)
{
  const double v = rint(x * one);
  return (int16_t) (v > 32767 ? 32767 : v < -32767 ? -32767 : v);
}

/* The test for the gains that are collected now. 0: nothing can be told apart. */
static int set_test(const screen *s, test *t)
{
  const double limit = s->collect / (s->unit * s->unit);
  const int hinges = s->h->hinges;
  double bar = limit;
  t->shift = 0;
  if (!(limit > 0)) return 0;
  while (bar < 1.0 / 64 && t->shift < 12) { bar *= 4; t->shift++; } /* rounding is a fiftieth of it, at most */
  if (bar > 0.9999) bar = 0.9999;
  t->bar = (int16_t) floor(bar * ONE_C);
  t->cap = (int16_t) (32767 >> t->shift);
  t->add = (int16_t) ceil(hinges ? PARTS_SUM * s->error.r + 2.1 : s->error.r); /* z's errors are the greatest */
  t->slack = (int16_t) ceil(2.5 + bar * s->error.d[0]);
  return 1;
}

/* All features lose the direction chosen last, and those that may be the best are collected; 0: too many. */
INLINE int screen_step(screen *s, int hinges, const turn *t, sweep_loop *loop)
{
  const size_t padded = s->h->padded;
  test now;
  const sweep w = { t, &now, s->count - 1, padded, padded * (size_t) (1 + hinges), s->h->part, s->favour->coarse, s->q,
                    s->r, s->d, s->count == 1 ? s->h->start : s->d };
  uint32_t flags;
  double known = -1;
  for (size_t at = 0; at < padded;) {
    if (s->collect != known) { known = s->collect; if (!set_test(s, &now)) return 0; }
    at = loop(&w, hinges, at, &flags);
    for (; flags; flags &= flags - 1)
      for (int kind = 0; kind <= 2 * hinges; kind++)
        if (!suspect_kind(s, kind, at - RUN + (size_t) __builtin_ctz(flags))) return 0;
  }
  return 1;
}

/* ---- between steps ---- */

/* Residuals in a unit that leaves room for what the next direction takes: all that may still be chosen are at most
 * sqrt(gain / favour), the direction takes `share`. */
INLINE void fit_unit(screen *s, int hinges, double gain, double share, double error)
{
  const size_t features = s->h->padded * (size_t) (1 + hinges);
  const double most = fmax((sqrt(gain / s->favour->least) + share) / 1.85, share / 0.9999);
  if (s->count == 1) {
    const float by = (float) (ONE_Q / most);
    s->unit = most;
    WEFT_SIMD_PRAGMA(omp simd)
    for (size_t f = 0; f < features; f++) {
      s->r[f] = (int16_t) ((int32_t) (s->rho[f] * by + 40000.5f) - 40000);
    }
    s->error.r = 0.52 + error / most * ONE_Q * 1.01;
    return;
  }
  while (s->unit < most) {
    s->unit *= 2;
    for (size_t f = 0; f < features; f++) s->r[f] = (int16_t) (s->r[f] >> 1);
    s->error.r = s->error.r / 2 + 1;
  }
}

/* The direction of the feature that was just chosen, for the screen; 0: errors have grown too large. */
INLINE int prepare(screen *s, int hinges, const exact *e, double first_error, turn *t)
{
  const weft_regulation_half *h = s->h;
  const direction *c = &s->chosen[s->count - 1];
  const size_t at = (size_t) c->kind * h->padded + c->j, step = s->count - 1;
  const double unit = h->unit[at], left = e->d * unit * unit, share = fabs(c->share);
  double scale = 1 / sqrt(left), num = 0.52, whole;
  t->near = h->near + at * h->padded * (size_t) (1 + hinges);
  fit_unit(s, hinges, e->gain / s->favour->greatest, share, first_error);
  t->shift = 0;
  while (scale >= 2 && t->shift < 6) { scale /= 2; t->shift++; }
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
  return s->error.d[0] < MOST_ERROR && PARTS_SUM * s->error.r < MOST_ERROR && s->error.d[2 * hinges] < MOST_ERROR;
}

/* Correlations with the feature that was just chosen come from memory while other things are done. */
INLINE void fetch_near(const weft_regulation_half *h, int hinges, int kind, size_t j)
{
  const size_t features = h->padded * (size_t) (1 + hinges);
  const int16_t *near = h->near + ((size_t) kind * h->padded + j) * features;
  for (size_t f = 0; f < features; f += 32) __builtin_prefetch(near + f, 0, 2);
}

INLINE void take(screen *s, int hinges, const exact *e, int kind, size_t j, int32_t *choice)
{
  const weft_regulation_half *h = s->h;
  direction *c = &s->chosen[s->count];
  const int32_t feature = 1 + (int32_t) ((size_t) kind * h->regulators + j);
  const double root = weft_sqrt(e->d);
  choice[s->count] = e->r > 0 ? feature : -feature;
  c->kind = kind;
  c->j = j;
  c->sum = !hinges || kind == 1 ? h->sum[j] : kind == 2 ? h->sum[h->padded + j]
                                                        : weft_add(h->sum[j], h->sum[h->padded + j]);
  c->scale = weft_div(1.0, root);
  c->share = weft_div(e->r, root);
  memcpy(c->before, e->q, s->count * sizeof *c->before);
  s->count++;
}

/* 0: the screen has not told enough apart. */
INLINE int screened_body(const weft_regulation_half *h, const weft_regulation_favour *favour, int hinges,
                         const int32_t *with, double sum, int64_t own, char *work, int32_t *choice,
                         dot_product *dot, sweep_loop *loop)
{
  const size_t padded = h->padded, features = padded * (size_t) (1 + hinges);
  screen s;
  turn t;
  double error, most, around;
  int kind = 0;
  size_t j = 0;
  exact best;
  s.h = h;
  s.favour = favour;
  s.with = with;
  s.sum = sum;
  s.own = own;
  s.count = s.found = s.watches = 0;
  s.unit = 1;
  memset(&s.error, 0, sizeof s.error);
  s.rho = (float *) (void *) work;
  s.r = (int16_t *) (void *) (s.rho + features);
  s.d = s.r + features;
  s.q = s.d + (size_t) (1 + 2 * hinges) * padded;
  memset(choice, 0, h->steps * sizeof *choice);
  s.most = (float *) (void *) (s.q + h->steps * features);
  most = sqrt((double) begin(&s, hinges, (float) sum));
  error = (most / sqrt(favour->least) + 2 * (double) h->offset_most * fabs(sum)) * 0x1p-21;
  around = 1.5 * error + 8e-5 * most / sqrt(favour->least); /* shares of parts are rounded, too */
  s.reached = fmax(0, most - around);
  s.reached *= s.reached;
  if (!(s.reached > 0)) return 0;
  for (double share = NEAR_BAR; share > 0.05 && s.found < WATCHED + 1; share *= 0.7) { /* for the next bar, some more */
    s.found = 0;
    s.collect_share = share;
    s.collect = s.reached * share;
    if (!collect_first(&s, hinges, around)) return 0;
    if (s.collect_share != share) break; /* there were more than can be kept */
  }
  best = best_suspect(&s, dot, &kind, &j);
  if (!(best.gain > 0)) return 0;
  take(&s, hinges, &best, kind, j, choice);
  while (s.count < h->steps) {
    fetch_near(h, hinges, kind, j);
    if (s.count > 1) bar_all(&s, hinges);
    if (!prepare(&s, hinges, &best, error, &t)) return 0;
    expect(&s, dot);
    if (!screen_step(&s, hinges, &t, loop)) return 0;
    best = best_suspect(&s, dot, &kind, &j);
    if (!(best.gain > 0)) return 0;
    take(&s, hinges, &best, kind, j, choice);
  }
  return 1;
}

#define SCREENED(variant, target) \
  target static int screened_##variant(const weft_regulation_half *h, const weft_regulation_favour *favour, \
                                       const int32_t *with, double sum, int64_t own, char *work, int32_t *choice) \
  { \
    return h->hinges ? screened_body(h, favour, 1, with, sum, own, work, choice, dot_##variant, sweep_##variant) \
                     : screened_body(h, favour, 0, with, sum, own, work, choice, dot_##variant, sweep_##variant); \
  }
WEFT_VARIANTS(SCREENED)

weft_regulation_screen *weft_regulation_screen_here(void) { return WEFT_VARIANT_HERE(screened); }
