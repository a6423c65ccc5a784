/* A smooth approximation to the distribution of S = sum of f(n_ac), f(x) = x log x, over all tables with fixed margins
 * (S is G / 2 but for a constant). saddlepoint.c gives its cumulant generating function K; a linear and a quadratic
 * term make the mean and, where it is quickly found, the variance exact.
 *
 * From K follows the tail by a saddlepoint approximation with the gamma distribution of df / 2 in place of the normal
 * one (Wood, Booth and Butler 1993), which is exact where S is: at K'(theta) = s, y with y - a - a log(y / a) = theta
 * s - K(theta), a = df / 2, has a gamma tail; y moves by log(ratio of both slopes) / v as in Barndorff-Nielsen's r*. y
 * is nearly straight in s. It is found at knots, a theta each, and interpolated by a monotone cubic (Steffen 1990), so
 * that all features with the same margins share the work, and y at the mean, where the formula is 0 / 0, needs no
 * limit. */
#include <string.h>
#include "mi/null/saddlepoint.h"
#include "mi/null/table_moments.h"
#include "mi/null/smooth.h"

#define MAX_GROUPS WEFT_MI_MAX_GROUPS
#define MAX_CELLS WEFT_MI_MAX_CELLS
#define MAX_KNOTS WEFT_MI_MAX_KNOTS
#define TILTS_Z 4.0 /* no tilt is of scores beyond */
#define NO_TILT WEFT_MI_TILTS
#define BEFORE (WEFT_MI_TILTS + 1)
#define ASKED_Z 0.85      /* scores below need no tilts: p is some .2 there */
#define STEP 0.3          /* between knots: a share of what weft_mi_saddle_unit() gives */
#define VARIANCE_WORK 6e4 /* most operations that the exact variance may take, roughly */

typedef weft_mi_knot knot;

weft_mi_smooth *weft_mi_smooth_make(weft_arena *mem, size_t known)
{
  weft_mi_smooth *law = weft_arena_take(mem, 1, sizeof *law);
  if (!law) return NULL;
  law->room = known;
  law->ratio = weft_arena_take(mem, known, sizeof *law->ratio);
  for (int i = 0; i < 2; i++) law->rooms[i] = weft_arena_take(mem, known, sizeof **law->rooms);
  return law->ratio && law->rooms[0] && law->rooms[1] ? law : NULL;
}

/* y > a (or below a) with y - a - a log(y / a) = r. */
static double gamma_deviate(double a, double r, int above)
{
  double y = above ? a + r + weft_sqrt(2 * a * r) : a * weft_exp(-1 - r / a);
  for (int turn = 0; turn < 60; turn++) {
    const double step = (y - a - a * weft_log(y / a) - r) / (1 - a / y), next = y - step;
    y = next > 0 ? next : y / 2;
    if (fabs(step) < 1e-13 * y) break;
  }
  return y;
}

/* Score and y of a knot whose cumulants are known. 0 where they make no sense. */
static int finish_knot(const weft_mi_smooth *law, double k0, knot *point)
{
  const double theta = point->theta, k = point->k - k0 + theta * (law->shift + law->widening * theta / 2);
  point->score = point->slope + law->shift + law->widening * theta;
  const double r = theta * point->score - k, curvature = point->curvature + law->widening;
  if (!(r > 0) || !(curvature > 0)) return 0;
  const double y = gamma_deviate(law->a, r, point->theta > 0), v = 1 - law->a / y;
  const double ratio = v * y / (theta * weft_sqrt(law->a * curvature));
  if (!(ratio > 0)) return 0;
  point->y = y - weft_log(ratio) / v;
  return fabs(point->y) < 1e300;
}

/* The standard normal deviate with nearly the tail of y (Wilson and Hilferty 1931). */
static double deviate_of(double a, double y)
{
  return (weft_exp(weft_log(y / a) / 3) - 1 + 1 / (9 * a)) * 3 * weft_sqrt(a);
}

/* Brings the tilts that are not reached nearer to scores with p-values of some .04, .003 and 3 10^-5: between the knot
 * before and this one, where alpha and beta are nearly straight. */
static void keep_tilts(weft_mi_smooth *law, const knot *at)
{
  static const double wanted[WEFT_MI_TILTS] = { 1.8, 2.8, TILTS_Z };
  const double z = deviate_of(law->a, at->y);
  for (int i = 0; i <= WEFT_MI_TILTS; i++) { /* at last the knot before becomes this one */
    const int last = i == WEFT_MI_TILTS, to = last ? BEFORE : i;
    const double z0 = law->tilt[BEFORE].z, theta0 = law->tilt[BEFORE].theta;
    if (!last && z0 >= wanted[i]) continue;
    const double share = last || z <= wanted[i] ? 1 : (wanted[i] - z0) / (z - z0);
    law->tilt[to].theta = theta0 + share * (at->theta - theta0);
    for (uint32_t g = 0; g < law->groups.g_count; g++)
      law->tilt[to].alpha[g] = law->tilt[BEFORE].alpha[g] + share * (law->alpha[g] - law->tilt[BEFORE].alpha[g]);
    for (uint32_t h = 0; h < law->groups.h_count; h++)
      law->tilt[to].beta[h] = law->tilt[BEFORE].beta[h] + share * (law->beta[h] - law->tilt[BEFORE].beta[h]);
  }
  law->tilt[BEFORE].z = z;
}

/* Knots from theta = 0 in one direction until two have passed `until`, so that what is interpolated there depends on no
 * other score. They lie from first to last with increasing scores. */
static void walk_knots(weft_mi_smooth *law, const knot *zero, const double *start, int up, double until, int tilted)
{
  const uint32_t gs = law->groups.g_count, hs = law->groups.h_count;
  double tangent[MAX_CELLS + MAX_GROUPS];
  knot at = *zero;
  double limit = 0;
  int beyond = 0;
  memcpy(tangent, start, (gs + hs) * sizeof *tangent);
  while (up ? law->last < MAX_KNOTS : law->first > 0) {
    const double by = (up ? 1 : -1) * STEP * weft_mi_saddle_unit(law, at.curvature);
    knot next;
    for (uint32_t g = 0; g < gs; g++) law->alpha[g] += by * tangent[g];
    for (uint32_t h = 0; h < hs; h++) law->beta[h] += by * tangent[gs + h];
    if (!weft_mi_saddle_at(law, at.theta + by, tangent, &next) || !finish_knot(law, zero->k, &next)) break;
    const knot *edge = law->last > law->first ? &law->knots[up ? law->last - 1 : law->first] : NULL;
    if (edge && (up ? next.score <= edge->score || next.y <= edge->y : next.score >= edge->score || next.y >= edge->y))
      break;
    if (up)
      law->knots[law->last++] = next;
    else
      law->knots[--law->first] = next;
    at = next;
    beyond += up ? next.score > until : next.score < until;
    if (tilted) keep_tilts(law, &next);
    if (beyond == 1 && tilted && deviate_of(law->a, next.y) > ASKED_Z) limit = TILTS_Z;
    if ((beyond >= 2 && (!tilted || deviate_of(law->a, next.y) > limit)) || next.y < law->a / 20) break;
  }
}

/* Makes the mean exact, and where cells expect few rows, which makes it quick too, the variance. */
static void take_moments(weft_mi_smooth *law, const knot *zero)
{
  const double *f = law->logs->entropy, mean = weft_mi_mean(&law->groups, f);
  law->shift = mean - zero->slope;
  law->widening = 0;
  if (weft_mi_variance_work(&law->groups) > VARIANCE_WORK) return;
  law->widening = weft_mi_variance(&law->groups, f, mean, law->rooms[0], law->rooms[1]) - zero->curvature;
}

/* ---- all scores ---- */

/* Slope at knot i (Steffen 1990). */
static double steffen(const knot *at, size_t i, size_t first, size_t last)
{
  if (i == first || i + 1 == last) {
    const knot *knots = i == first ? at + i : at + i - 1;
    return (knots[1].y - knots[0].y) / (knots[1].score - knots[0].score);
  }
  const double h0 = at[i].score - at[i - 1].score, h1 = at[i + 1].score - at[i].score;
  const double s0 = (at[i].y - at[i - 1].y) / h0, s1 = (at[i + 1].y - at[i].y) / h1;
  return fmin(fmin(2 * s0, 2 * s1), (s0 * h1 + s1 * h0) / (h0 + h1));
}

static double interpolate(const weft_mi_smooth *law, double score)
{
  const knot *at = law->knots;
  size_t i = law->first;
  if (score <= at[i].score) return at[i].y + steffen(at, i, law->first, law->last) * (score - at[i].score);
  while (i + 1 < law->last && at[i + 1].score < score) i++;
  if (i + 1 == law->last) return at[i].y + steffen(at, i, law->first, law->last) * (score - at[i].score);
  const double width = at[i + 1].score - at[i].score, t = (score - at[i].score) / width;
  const double d0 = width * steffen(at, i, law->first, law->last);
  const double d1 = width * steffen(at, i + 1, law->first, law->last);
  const double rise = at[i + 1].y - at[i].y;
  return at[i].y + t * (d0 + t * (3 * rise - 2 * d0 - d1 + t * (d0 + d1 - 2 * rise)));
}

/* Finds the law at theta = 0, then walks knots upwards to the greatest score and downwards to the least, and
 * interpolates. 0 where there is no saddle or there are too few knots. */
int weft_mi_smooth_run(weft_mi_smooth *law, const weft_mi_margins *margins, const weft_mi_logs *logs,
                       const double *scores, size_t count, int tilted, double *statistic)
{
  double tangent[MAX_CELLS + MAX_GROUPS], alpha[MAX_CELLS], beta[MAX_GROUPS];
  knot zero;
  if (!weft_mi_saddle_begin(law, margins, logs) || !weft_mi_saddle_at(law, 0, tangent, &zero)) return 0;
  memcpy(alpha, law->alpha, sizeof alpha);
  memcpy(beta, law->beta, sizeof beta);
  for (int i = NO_TILT; i <= BEFORE; i++) {
    law->tilt[i].theta = law->tilt[i].z = 0;
    memcpy(law->tilt[i].alpha, alpha, sizeof alpha);
    memcpy(law->tilt[i].beta, beta, sizeof beta);
  }
  take_moments(law, &zero);
  law->first = law->last = MAX_KNOTS / 4;
  for (int i = 0; i < WEFT_MI_TILTS; i++) law->tilt[i].theta = 0;
  walk_knots(law, &zero, tangent, 1, scores[0], tilted);
  memcpy(law->alpha, alpha, sizeof alpha);
  memcpy(law->beta, beta, sizeof beta);
  walk_knots(law, &zero, tangent, 0, scores[count - 1], 0);
  if (law->last < law->first + 2) return 0;
  for (size_t i = 0; i < count; i++) statistic[i] = 2 * fmax(interpolate(law, scores[i]), 0);
  return 1;
}

double weft_mi_smooth_statistic(const weft_mi_smooth *law, double score)
{
  return 2 * fmax(interpolate(law, score), 0);
}

double weft_mi_smooth_tilt(const weft_mi_smooth *law, int which, int classes, double *tilts)
{
  const int of_g = classes == law->turned;
  const uint32_t groups = of_g ? law->groups.g_count : law->groups.h_count;
  const double *many = of_g ? law->groups.m : law->groups.w;
  const double *now = of_g ? law->tilt[which].alpha : law->tilt[which].beta;
  const double *none = of_g ? law->tilt[NO_TILT].alpha : law->tilt[NO_TILT].beta;
  uint32_t at = 0;
  for (uint32_t i = 0; i < groups; i++)
    for (double j = 0; j < many[i]; j++) tilts[at++] = now[i] - none[i] - (now[0] - none[0]);
  return law->tilt[which].theta;
}
