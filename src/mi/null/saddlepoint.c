/* The cumulants of S = sum of f(n_ac), f(x) = x log x, over all tables with fixed margins (S is G / 2 but for
 * a constant).
 *
 * Independent Poisson counts with weights exp(theta f(x) + (alpha_a + beta_c) x) / x!, given their margins, are the
 * tables' distribution tilted by theta. Their margins have nearly a normal density, and with its next term (Daniels
 * 1954, McCullagh 1987, 6.3) the cumulant generating function of S is
 *
 *   K(theta) = Phi(theta) - log det H(theta) / 2 + c(theta), less the same at theta = 0,
 *
 * where Phi is the logarithm of the weights' sum at the alpha and beta that give the margins, H the covariance of the
 * margins, and c the fourth-order term. Beyond its least and greatest possible count a cell continues as if f were
 * straight there: no table has such counts, and cut off, they would make the density of the margins far from normal. A
 * linear term makes the mean exact, which is a sum over cells of hypergeometric expectations.
 *
 * Levels with the same margin are one group with a multiplicity: they have the same alpha. */
#include <string.h>
#include "mi/null/saddlepoint.h"
#include "mi/null/smooth.h"

#define MAX_GROUPS WEFT_MI_MAX_GROUPS
#define MAX_CELLS WEFT_MI_MAX_CELLS
#define MAX_PAIRED 400 /* groups of cells whose pairs are looked at for the fourth-order term */
#define MAX_NEWTON 60
#define DIFFERENCE 0.02 /* of numerical derivatives: a share of what weft_mi_saddle_unit() gives */
#define NEGLIGIBLE 1e-17

typedef weft_mi_cell cell_sums;

/* ---- cells ---- */

static double slope_at(double x) { return weft_log(x) + 1; }

static void fill_ratios(weft_mi_smooth *law, size_t until)
{
  const double *f = law->logs->entropy;
  for (size_t x = law->filled; x < until; x++)
    law->ratio[x] = weft_exp(law->theta * (f[x + 1] - f[x])) / (double) (x + 1);
  if (until > law->filled) law->filled = until;
}

/* The bounds of a cell's count, and f with its straight continuations. */
typedef struct {
  double low, high, low_slope, high_slope;
} bounds;

static bounds bounds_of(const weft_mi_smooth *law, uint32_t g, uint32_t h)
{
  const double r = law->groups.r[g], c = law->groups.c[h], low = r + c > law->groups.n ? r + c - law->groups.n : 0;
  bounds range = { low, r < c ? r : c, 0, 0 };
  range.high_slope = slope_at(range.high);
  if (low > 0) range.low_slope = slope_at(low);
  return range;
}

static double f_at(const weft_mi_smooth *law, const bounds *range, double x)
{
  const double *f = law->logs->entropy;
  if (x > range->high) return f[(size_t) range->high] + range->high_slope * (x - range->high);
  if (x < range->low) return f[(size_t) range->low] + range->low_slope * (x - range->low);
  return f[(size_t) x];
}

typedef struct {
  double w, d, d2, d3, d4, f, fd, ff;
} power_sums;

static inline void add_point(power_sums *sums, double w, double d, double f)
{
  const double wd = w * d, wd2 = wd * d, wf = w * f;
  sums->w += w;
  sums->d += wd;
  sums->d2 += wd2;
  sums->d3 += wd2 * d;
  sums->d4 += wd2 * d * d;
  sums->f += wf;
  sums->fd += wf * d;
  sums->ff += wf * f;
}

/* Log of the weight at x, less the part that the anchor has too. */
static double log_weight(const weft_mi_smooth *law, const bounds *range, double x, double eta)
{
  return law->theta * f_at(law, range, x) - law->logs->factorial[(size_t) x] + eta * x;
}

/* Points from the anchor in steps of `stride`, which is more than 1 where the weights change so slowly that a sum over
 * fewer points is as exact. */
static void sum_far(const weft_mi_smooth *law, const bounds *range, double x0, double stride, double eta, double f0,
                    double base, power_sums *sums)
{
  for (int up = 0; up < 2; up++) {
    double before = 1;
    for (double x = up ? x0 + stride : x0 - stride; x >= 0 && x < (double) law->room; x += up ? stride : -stride) {
      const double w = weft_exp(log_weight(law, range, x, eta) - base);
      add_point(sums, w, x - x0, f_at(law, range, x) - f0);
      if (w < NEGLIGIBLE * sums->w && w <= before) break;
      before = w;
    }
  }
}

/* Every point, by ratios of neighbours. */
static void sum_near(weft_mi_smooth *law, const bounds *range, size_t x0, double eta, double f0, power_sums *sums)
{
  const double *f = law->logs->entropy, up = weft_exp(eta);
  const double beyond = weft_exp(law->theta * range->high_slope + eta);
  const double below = range->low > 0 ? weft_exp(law->theta * range->low_slope + eta) : 1;
  const size_t high = (size_t) range->high, low = (size_t) range->low;
  double w = 1;
  fill_ratios(law, high);
  for (size_t x = x0; x + 1 < law->room; x++) {
    const double by = x >= high ? beyond / (double) (x + 1) : x < low ? below / (double) (x + 1) : law->ratio[x] * up;
    const double fx = x + 1 > high  ? f[high] + range->high_slope * (double) (x + 1 - high)
                      : x + 1 < low ? f[low] - range->low_slope * (double) (low - x - 1)
                                    : f[x + 1];
    w *= by;
    add_point(sums, w, (double) (x + 1) - (double) x0, fx - f0);
    if (w < NEGLIGIBLE * sums->w && by < 1) break;
  }
  w = 1;
  for (size_t x = x0; x > 0; x--) {
    const size_t y = x - 1;
    const double by = y >= high ? beyond / (double) x : y < low ? below / (double) x : law->ratio[y] * up;
    const double fx = y > high  ? f[high] + range->high_slope * (double) (y - high)
                      : y < low ? f[low] - range->low_slope * (double) (low - y)
                                : f[y];
    w /= by;
    add_point(sums, w, (double) y - (double) x0, fx - f0);
    if (w < NEGLIGIBLE * sums->w && by > 1) break;
  }
}

/* Log of the sum of a cell's weights, the cumulants of its count x and what f(x) has in common with it. */
static void sum_cell(weft_mi_smooth *law, uint32_t g, uint32_t h)
{
  const size_t i = (size_t) g * law->groups.h_count + h;
  const bounds range = bounds_of(law, g, h);
  const double eta = law->alpha[g] + law->beta[h], x0 = law->anchor[i], f0 = f_at(law, &range, x0);
  const double base = log_weight(law, &range, x0, eta);
  power_sums sums = { 1, 0, 0, 0, 0, 0, 0, 0 };
  cell_sums *out = &law->cell[i];
  if (law->stride[i] > 1)
    sum_far(law, &range, x0, law->stride[i], eta, f0, base, &sums);
  else
    sum_near(law, &range, (size_t) x0, eta, f0, &sums);
  const double d = sums.d / sums.w, d2 = sums.d2 / sums.w, d3 = sums.d3 / sums.w, d4 = sums.d4 / sums.w,
               f = sums.f / sums.w;
  out->log_sum = base + weft_log(sums.w * law->stride[i]);
  out->mean = x0 + d;
  out->v = d2 - d * d;
  out->k3 = d3 - 3 * d * d2 + 2 * d * d * d;
  out->k4 = d4 - 4 * d * d3 + 6 * d * d * d2 - 3 * d * d * d * d - 3 * out->v * out->v;
  out->f = f0 + f;
  out->fx = sums.fd / sums.w - f * d;
  out->ff = sums.ff / sums.w - f * f;
}

/* Chooses where the sums of cells begin and in which steps they go. It stays the same for all evaluations near one
 * theta, so that their differences are smooth. */
static void place_anchors(weft_mi_smooth *law)
{
  for (size_t i = 0; i < (size_t) law->groups.g_count * law->groups.h_count; i++) {
    const double x = floor(law->cell[i].mean + 0.5), sd = weft_sqrt(law->cell[i].v), top = (double) law->room - 1;
    law->anchor[i] = x < 0 ? 0 : x > top ? top : x;
    law->stride[i] = sd > 12 ? (uint32_t) (sd / 6) : 1;
  }
}

static void set_theta(weft_mi_smooth *law, double theta)
{
  law->theta = theta;
  law->filled = 0;
}

/* ---- the saddlepoint of the margins ---- */

/* Cells at the present alpha and beta; returns Phi. */
static double evaluate(weft_mi_smooth *law)
{
  const uint32_t gs = law->groups.g_count, hs = law->groups.h_count;
  double phi = 0;
  for (uint32_t g = 0; g < gs; g++) {
    for (uint32_t h = 0; h < hs; h++) {
      sum_cell(law, g, h);
      phi += law->groups.m[g] * law->groups.w[h] * law->cell[g * hs + h].log_sum;
    }
    phi -= law->groups.m[g] * law->groups.r[g] * law->alpha[g];
  }
  for (uint32_t h = 0; h < hs; h++) phi -= law->groups.w[h] * law->groups.c[h] * law->beta[h];
  return phi;
}

/* The covariance H of the margins: d and e are its diagonal, and `chol` the Cholesky factor of what is left of it for
 * the classes, without the last group. Returns 0 where rounding leaves nothing positive. */
static int factorise(weft_mi_smooth *law)
{
  const uint32_t gs = law->groups.g_count, hs = law->groups.h_count;
  const cell_sums *cell = law->cell;
  for (uint32_t h = 0; h < hs; h++) law->e[h] = 0;
  for (uint32_t g = 0; g < gs; g++) {
    law->d[g] = 0;
    for (uint32_t h = 0; h < hs; h++) {
      law->d[g] += law->groups.w[h] * cell[g * hs + h].v;
      law->e[h] += law->groups.m[g] * cell[g * hs + h].v;
    }
    if (!(law->d[g] > 0)) return 0;
  }
  for (uint32_t i = 0; i + 1 < hs; i++)
    for (uint32_t j = 0; j <= i; j++) {
      double sum = i == j ? law->groups.w[i] * law->e[i] : 0;
      for (uint32_t g = 0; g < gs; g++)
        sum -= law->groups.w[i] * law->groups.w[j] * law->groups.m[g] * cell[g * hs + i].v * cell[g * hs + j].v /
               law->d[g];
      for (uint32_t t = 0; t < j; t++) sum -= law->chol[i * hs + t] * law->chol[j * hs + t];
      if (i == j && !(sum > 0)) return 0;
      law->chol[i * hs + j] = i == j ? weft_sqrt(sum) : sum / law->chol[j * hs + j];
    }
  return 1;
}

/* x = A^-1 x with the factor; the last group stays 0. */
static void solve_classes(const weft_mi_smooth *law, double *x)
{
  const uint32_t hs = law->groups.h_count;
  for (uint32_t i = 0; i + 1 < hs; i++) {
    for (uint32_t t = 0; t < i; t++) x[i] -= law->chol[i * hs + t] * x[t];
    x[i] /= law->chol[i * hs + i];
  }
  for (uint32_t i = hs - 1; i-- > 0;) {
    for (uint32_t t = i + 1; t + 1 < hs; t++) x[i] -= law->chol[t * hs + i] * x[t];
    x[i] /= law->chol[i * hs + i];
  }
  x[hs - 1] = 0;
}

/* Solves in place: (rows, columns) = H^-1 (rows, columns), with one number for each group. */
static void solve_margins(const weft_mi_smooth *law, double *rows, double *columns)
{
  const uint32_t gs = law->groups.g_count, hs = law->groups.h_count;
  for (uint32_t h = 0; h < hs; h++) {
    for (uint32_t g = 0; g < gs; g++) columns[h] -= law->groups.m[g] * law->cell[g * hs + h].v * rows[g] / law->d[g];
    columns[h] *= law->groups.w[h];
  }
  solve_classes(law, columns);
  for (uint32_t g = 0; g < gs; g++) {
    for (uint32_t h = 0; h < hs; h++) rows[g] -= law->groups.w[h] * law->cell[g * hs + h].v * columns[h];
    rows[g] /= law->d[g];
  }
}

/* The excess of the margins; returns the greatest share. */
static double excess(weft_mi_smooth *law)
{
  const uint32_t gs = law->groups.g_count, hs = law->groups.h_count;
  double worst = 0;
  for (uint32_t h = 0; h < hs; h++) law->step_beta[h] = -law->groups.c[h];
  for (uint32_t g = 0; g < gs; g++) {
    law->step_alpha[g] = -law->groups.r[g];
    for (uint32_t h = 0; h < hs; h++) {
      law->step_alpha[g] += law->groups.w[h] * law->cell[g * hs + h].mean;
      law->step_beta[h] += law->groups.m[g] * law->cell[g * hs + h].mean;
    }
    worst = fmax(worst, fabs(law->step_alpha[g]) / law->groups.r[g]);
  }
  for (uint32_t h = 0; h < hs; h++) worst = fmax(worst, fabs(law->step_beta[h]) / law->groups.c[h]);
  return worst;
}

/* Newton's method for alpha and beta, from what they are. Leaves cells and factor there. 0 where it fails. */
static int find_saddle(weft_mi_smooth *law, double *phi)
{
  const uint32_t gs = law->groups.g_count, hs = law->groups.h_count;
  *phi = evaluate(law);
  for (int turn = 0; turn < MAX_NEWTON; turn++) {
    if (!(fabs(*phi) < 1e300) || !factorise(law)) return 0;
    if (excess(law) < 1e-9) return 1;
    solve_margins(law, law->step_alpha, law->step_beta);
    double scale = 1, longest = 0, next;
    for (uint32_t g = 0; g < gs; g++) longest = fmax(longest, fabs(law->step_alpha[g]));
    if (longest > 2) scale = 2 / longest;
    memcpy(law->at_alpha, law->alpha, gs * sizeof *law->alpha);
    memcpy(law->at_beta, law->beta, hs * sizeof *law->beta);
    do {
      for (uint32_t g = 0; g < gs; g++) law->alpha[g] = law->at_alpha[g] - scale * law->step_alpha[g];
      for (uint32_t h = 0; h < hs; h++) law->beta[h] = law->at_beta[h] - scale * law->step_beta[h];
      next = evaluate(law);
      scale /= 2;
    } while (!(next <= *phi + 1e-9 * (1 + fabs(*phi))) && scale > 1e-3);
    *phi = next;
  }
  return 0;
}

/* ---- the next term ---- */

/* The inverse of H between the margins of a group g or h and another, but for what only a margin has with itself: z of
 * classes, b of levels and classes. */
static void invert(weft_mi_smooth *law)
{
  const uint32_t gs = law->groups.g_count, hs = law->groups.h_count;
  for (uint32_t j = 0; j < hs; j++) {
    double x[MAX_GROUPS] = { 0 };
    if (j + 1 < hs) {
      x[j] = 1;
      solve_classes(law, x);
    }
    for (uint32_t i = 0; i < hs; i++) law->z[i * hs + j] = x[i];
  }
  for (uint32_t g = 0; g < gs; g++)
    for (uint32_t h = 0; h < hs; h++) {
      double sum = 0;
      for (uint32_t i = 0; i < hs; i++) sum += law->groups.w[i] * law->cell[g * hs + i].v * law->z[i * hs + h];
      law->b[g * hs + h] = sum / law->d[g];
    }
}

/* u_i' H^-1 u_j of cells (g, h) and (q, p), where u marks a cell's two margins: of cells in different levels and
 * classes; the same level adds 1 / d, and the same class 1 / e. */
static double shared(const weft_mi_smooth *law, uint32_t g, uint32_t h, uint32_t q, uint32_t p)
{
  const uint32_t hs = law->groups.h_count;
  double sum = law->z[h * hs + p] - law->b[g * hs + p] - law->b[q * hs + h];
  for (uint32_t i = 0; i < hs; i++) sum += law->b[g * hs + i] * law->groups.w[i] * law->cell[q * hs + i].v / law->d[q];
  if (h == p) sum -= 1 / (law->groups.w[h] * law->e[h]);
  return sum;
}

/* c(theta): sum of k4 q_ii^2 / 8 - sum of k3_i k3_j (q_ii q_ij q_jj / 8 + q_ij^3 / 12). */
static double fourth_order(weft_mi_smooth *law)
{
  const uint32_t gs = law->groups.g_count, hs = law->groups.h_count, cells = gs * hs;
  double own[MAX_PAIRED], sum = 0;
  if (cells > MAX_PAIRED) return 0;
  invert(law);
  for (uint32_t i = 0; i < cells; i++) {
    const uint32_t g = i / hs, h = i % hs;
    own[i] = shared(law, g, h, g, h) + 1 / law->d[g] + 1 / law->e[h];
    sum += law->groups.m[g] * law->groups.w[h] * law->cell[i].k4 * own[i] * own[i] / 8;
  }
  for (uint32_t i = 0; i < cells; i++)
    for (uint32_t j = 0; j <= i; j++) {
      const uint32_t g = i / hs, h = i % hs, q = j / hs, p = j % hs;
      const double apart = shared(law, g, h, q, p), both = law->cell[i].k3 * law->cell[j].k3 * (i == j ? 1 : 2);
      for (int same = 0; same < 4; same++) {
        const int level = same & 1, class = same >> 1;
        if ((level && g != q) || (class && h != p)) continue;
        const double levels = level ? law->groups.m[g] : law->groups.m[g] * (law->groups.m[q] - (g == q));
        const double classes = class ? law->groups.w[h] : law->groups.w[h] * (law->groups.w[p] - (h == p));
        const double x = apart + (level ? 1 / law->d[g] : 0) + (class ? 1 / law->e[h] : 0);
        sum -= levels * classes * both * x * (own[i] * own[j] / 8 + x * x / 12);
      }
    }
  return sum;
}

/* The term added to Phi: -log det H / 2 + c, at the saddlepoint. */
static double correction(weft_mi_smooth *law)
{
  double log_det = 0;
  for (uint32_t g = 0; g < law->groups.g_count; g++) log_det += law->groups.m[g] * weft_log(law->d[g]);
  for (uint32_t h = 0; h < law->groups.h_count; h++) {
    log_det += (law->groups.w[h] - 1) * weft_log(law->e[h]);
    if (h + 1 < law->groups.h_count) log_det += 2 * weft_log(law->chol[h * law->groups.h_count + h]);
  }
  return fourth_order(law) - log_det / 2;
}

/* ---- a law, at one theta ---- */

/* Distinct margins and how many there are of each; 0 when they are too many. */
static uint32_t group(const uint32_t *sorted, uint32_t count, double *margin, double *many, uint32_t room)
{
  uint32_t groups = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (!i || sorted[i] != sorted[i - 1]) {
      if (groups == room) return 0;
      margin[groups] = sorted[i];
      many[groups++] = 0;
    }
    many[groups - 1]++;
  }
  return groups;
}

/* Sets up a law for these margins: groups of equal ones, starting values of alpha and beta, and anchors of the cells. 0
 * where there are more groups than room. */
int weft_mi_saddle_begin(weft_mi_smooth *law, const weft_mi_margins *margins, const weft_mi_logs *logs)
{
  const double n = (double) margins->n;
  law->logs = logs;
  law->groups.n = n;
  law->a = 0.5 * (margins->l - 1) * (margins->k - 1);
  law->groups.g_count = group(margins->levels, margins->l, law->groups.r, law->groups.m, MAX_CELLS);
  law->groups.h_count = group(margins->classes, margins->k, law->groups.c, law->groups.w, MAX_GROUPS);
  law->turned = !law->groups.h_count || law->groups.h_count > law->groups.g_count;
  if (law->turned) { /* the side of fewer groups is the classes */
    law->groups.g_count = group(margins->classes, margins->k, law->groups.r, law->groups.m, MAX_CELLS);
    law->groups.h_count = group(margins->levels, margins->l, law->groups.c, law->groups.w, MAX_GROUPS);
  }
  if (!law->groups.g_count || !law->groups.h_count || law->groups.g_count * law->groups.h_count > MAX_CELLS) return 0;
  for (uint32_t g = 0; g < law->groups.g_count; g++) {
    law->alpha[g] = weft_log(law->groups.r[g] / n);
    for (uint32_t h = 0; h < law->groups.h_count; h++) {
      cell_sums *cell = &law->cell[g * law->groups.h_count + h];
      cell->mean = cell->v = law->groups.r[g] * law->groups.c[h] / n;
    }
  }
  for (uint32_t h = 0; h < law->groups.h_count; h++) law->beta[h] = weft_log(law->groups.c[h]);
  place_anchors(law);
  return 1;
}

double weft_mi_saddle_unit(const weft_mi_smooth *law, double curvature)
{
  return fmin(weft_sqrt(law->a), 4) / weft_sqrt(curvature);
}

/* K and its first two derivatives at theta: exact for the leading term, by differences for the correction, which needs
 * two more saddles near by. `tangent` gets the derivatives of alpha and beta. 0 where no saddle is found. */
int weft_mi_saddle_at(weft_mi_smooth *law, double theta, double *tangent, weft_mi_knot *out)
{
  const uint32_t gs = law->groups.g_count, hs = law->groups.h_count;
  double phi, middle, side[2], saved[MAX_CELLS + MAX_GROUPS], slope = 0, curvature = 0;
  set_theta(law, theta);
  if (!find_saddle(law, &phi)) return 0;
  place_anchors(law);
  if (!find_saddle(law, &phi)) return 0;
  for (uint32_t p = 0; p < hs; p++) tangent[gs + p] = 0;
  for (uint32_t g = 0; g < gs; g++) {
    tangent[g] = 0;
    for (uint32_t p = 0; p < hs; p++) {
      const cell_sums *cell = &law->cell[g * hs + p];
      slope += law->groups.m[g] * law->groups.w[p] * cell->f;
      curvature += law->groups.m[g] * law->groups.w[p] * cell->ff;
      tangent[g] -= law->groups.w[p] * cell->fx;
      tangent[gs + p] -= law->groups.m[g] * cell->fx;
    }
  }
  memcpy(saved, tangent, (gs + hs) * sizeof *saved);
  solve_margins(law, tangent, tangent + gs);
  for (uint32_t i = 0; i < gs + hs; i++)
    curvature -= (i < gs ? law->groups.m[i] : law->groups.w[i - gs]) * saved[i] * tangent[i];
  middle = correction(law);
  memcpy(saved, law->alpha, gs * sizeof *saved);
  memcpy(saved + gs, law->beta, hs * sizeof *saved);
  const double h = DIFFERENCE * weft_mi_saddle_unit(law, curvature);
  for (int up = 0; up < 2; up++) {
    const double by = up ? h : -h;
    double ignored;
    set_theta(law, theta + by);
    for (uint32_t g = 0; g < gs; g++) law->alpha[g] = saved[g] + by * tangent[g];
    for (uint32_t p = 0; p < hs; p++) law->beta[p] = saved[gs + p] + by * tangent[gs + p];
    if (!find_saddle(law, &ignored)) return 0;
    side[up] = correction(law);
  }
  memcpy(law->alpha, saved, gs * sizeof *saved);
  memcpy(law->beta, saved + gs, hs * sizeof *saved);
  out->theta = theta;
  out->k = phi + middle;
  out->slope = slope + (side[1] - side[0]) / (2 * h);
  out->curvature = curvature + (side[1] - 2 * middle + side[0]) / (h * h);
  return out->curvature > 0 && out->curvature < 1e300;
}
