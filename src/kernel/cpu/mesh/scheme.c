/* Windows, taps and their error; see mesh.h.
 *
 * In nodes, the kernel is exp(-r² / 2s²) with s = 1 / spacing, and the window of Kaiser and Bessel I0(b sqrt(1 - z²)),
 * z = 2r / width. A window that is sampled at nodes has, beside its transform at an angle t below pi, those at t + 2 pi
 * k, which are small; with taps whose transform is that of the kernel over the window's, squared, what is left are
 * these and what the kernel has beyond pi. b follows a line that keeps both about equal.
 *
 * The error is not derived from that but measured: it is the greatest difference between the scheme as computed and the
 * kernel, over all distances in whole nodes and PLACES Chebyshev points of either point's cell. It is a smooth function
 * of the places, polynomials of degree `degree` minus exp of a square, and the margin covers what lies between. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "kernel/both/mesh.h"
#include "kernel/cpu/mesh/scheme.h"

#define ANGLES 128 /* of 0 .. pi, for the taps */
#define PLACES 12
#define MARGIN 2.0
#define PI 3.14159265358979323846

static double bessel_i0(double x)
{
  double term = 1, sum = 1;
  for (int k = 1; term > sum * 1e-18; k++) {
    term *= x * x / 4 / ((double) k * k);
    sum += term;
  }
  return sum;
}

static double shape_of(const weft_mesh_scheme *scheme) { return scheme->width * (3.2 - 1.75 * scheme->spacing); }

/* The Fourier transform of the window, scaled to a greatest value of 1, at an angle of 0 .. pi; half the width times
 * the angle must be below b. at_zero: the Bessel function at b. */
static double transform_of_window(int width, double b, double at_zero, double angle)
{
  const double half = width * angle / 2, q = sqrt(b * b - half * half);
  return width * sinh(q) / (q * at_zero);
}

/* The window's polynomial in one lane, found by Chebyshev interpolation and written as powers. */
static void fill_piece(weft_mesh_scheme *scheme, int lane, double b, double at_zero)
{
  enum { N = WEFT_MESH_DEGREE + 1 };
  double value[N], power[2][N] = { { 1 }, { 0, 1 } }, sum[N] = { 0 };
  for (int k = 0; k < N; k++) {
    const double t = (1 + cos(PI * (k + 0.5) / N)) / 2, z = 2 * (lane - (scheme->width / 2 - 1) - t) / scheme->width;
    value[k] = bessel_i0(b * sqrt(fmax(0, 1 - z * z))) / at_zero;
  }
  for (int k = 0; k < N; k++) {
    double c = 0;
    for (int i = 0; i < N; i++) c += value[i] * cos(PI * k * (i + 0.5) / N);
    c *= (k ? 2.0 : 1.0) / N;
    for (int i = 0; i <= k; i++) sum[i] += c * power[0][i];
    double next[N] = { 0 }; /* of the polynomial after the next: 2 y T(k + 1) - T(k) */
    for (int i = 0; i + 1 < N; i++) next[i + 1] = 2 * power[1][i];
    for (int i = 0; i < N; i++) next[i] -= power[0][i];
    memcpy(power[0], power[1], sizeof next);
    memcpy(power[1], next, sizeof next);
  }
  for (int k = 0; k < N; k++) scheme->piece[k * scheme->lanes + lane] = sum[k];
}

/* Drops powers that add less than a small share of the target. */
static void trim_degree(weft_mesh_scheme *scheme, double target)
{
  scheme->degree = WEFT_MESH_DEGREE;
  for (double left = 0.01 * target; scheme->degree > 1; scheme->degree--) {
    double most = 0;
    for (int lane = 0; lane < scheme->lanes; lane++)
      most = fmax(most, fabs(scheme->piece[scheme->degree * scheme->lanes + lane]));
    left -= most;
    if (left < 0) return;
  }
}

/* Taps of all lags; drops those at the ends that add less than a small share of the target. */
static void fill_taps(weft_mesh_scheme *scheme, double b, double at_zero, double target)
{
  double spectrum[ANGLES + 1], tap[WEFT_MESH_TAPS + 1], left = 0.01 * target;
  const double h = 1 / scheme->spacing;
  for (int k = 0; k <= ANGLES; k++) {
    const double angle = PI * k / ANGLES, window = transform_of_window(scheme->width, b, at_zero, angle);
    spectrum[k] = h * sqrt(2 * PI) * exp(-0.5 * angle * angle * h * h) / (window * window) / ANGLES;
    if (k == 0 || k == ANGLES) spectrum[k] /= 2;
  }
  for (int lag = 0; lag <= WEFT_MESH_TAPS; lag++) {
    tap[lag] = 0;
    for (int k = 0; k <= ANGLES; k++) tap[lag] += spectrum[k] * cos(PI * ((k * lag) % (2 * ANGLES)) / ANGLES);
  }
  for (scheme->taps = WEFT_MESH_TAPS; scheme->taps > 0; scheme->taps--) {
    left -= 2 * fabs(tap[scheme->taps]) * scheme->width;
    if (left < 0) break;
  }
  for (int lag = -scheme->taps; lag <= scheme->taps; lag++) scheme->tap[lag + scheme->taps] = tap[lag < 0 ? -lag : lag];
}

/* The window's value in each lane for a point at place t of its cell, computed as vector code does it. */
static void window_at(const weft_mesh_scheme *scheme, double t, double *value)
{
  for (int lane = 0; lane < scheme->width; lane++) {
    double v = scheme->piece[scheme->degree * scheme->lanes + lane];
    for (int k = scheme->degree - 1; k >= 0; k--) v = v * (2 * t - 1) + scheme->piece[k * scheme->lanes + lane];
    value[lane] = v;
  }
}

/* The scheme's value for a point at lag 0 + t[a] and one at lag + t[b], minus the kernel; beyond the taps' reach only
 * the kernel is left. */
static void measure_error(weft_mesh_scheme *scheme)
{
  enum { W = WEFT_MESH_WIDTH };
  double t[PLACES], window[PLACES][W], far[2 * WEFT_MESH_TAPS + 2 * W + 1], most = 0, below = 0, greatest = 0, gain = 0;
  const int width = scheme->width, reach = scheme->taps + width - 1, lags = 2 * scheme->taps + width;
  const double half = 0.5 * scheme->spacing * scheme->spacing;
  for (int a = 0; a < PLACES; a++) {
    double sum = 0;
    t[a] = (1 + cos(PI * (a + 0.5) / PLACES)) / 2;
    window_at(scheme, t[a], window[a]);
    for (int lane = 0; lane < width; lane++) sum += fabs(window[a][lane]);
    greatest = fmax(greatest, sum);
  }
  for (int k = 0; k <= 2 * scheme->taps; k++) below += fmax(-scheme->tap[k], 0);
  for (int a = 0; a < PLACES; a++) {
    double all = 0;
    for (int k = 0; k < lags; k++) { /* node k - taps, from that where the window of the first begins */
      far[k] = 0;
      for (int lane = 0; lane < width; lane++)
        if (k - lane >= 0 && k - lane <= 2 * scheme->taps) far[k] += window[a][lane] * scheme->tap[k - lane];
      all += fabs(far[k]);
    }
    gain = fmax(gain, all);
    for (int b = 0; b <= a; b++) /* the others by symmetry */
      for (int lag = -reach; lag <= reach; lag++) {
        double sum = 0;
        for (int lane = 0; lane < width; lane++) {
          const int k = lag + lane + scheme->taps;
          if (k >= 0 && k < lags) sum += window[b][lane] * far[k];
        }
        const double r = lag + t[b] - t[a];
        most = fmax(most, fabs(sum - exp(-half * r * r)));
      }
  }
  scheme->error = MARGIN * most + exp(-half * (double) (reach * reach));
  scheme->size = 1 + scheme->error + 2 * below * greatest;
  scheme->gain = MARGIN * gain;
}

static void make_with_spacing(weft_mesh_scheme *scheme, double target)
{
  const double b = shape_of(scheme), at_zero = bessel_i0(b);
  memset(scheme->piece, 0, sizeof scheme->piece);
  for (int lane = 0; lane < scheme->width; lane++) fill_piece(scheme, lane, b, at_zero);
  trim_degree(scheme, target);
  fill_taps(scheme, b, at_zero, target);
  measure_error(scheme);
}

/* The error that one dimension may have. */
static double in_one_dimension(size_t d, double target) { return expm1(log1p(target) / (double) d); }

int weft_mesh_make(const weft_mesh_choice *choice, size_t d, double target, weft_mesh_scheme *scheme)
{
  const double most = in_one_dimension(d, target);
  scheme->width = choice->width, scheme->lanes = scheme->width > 8 ? 16 : 8, scheme->spacing = choice->spacing;
  for (int tries = 0; tries < 8; tries++, scheme->spacing *= 0.95) {
    make_with_spacing(scheme, most);
    if (scheme->error <= most) return 1;
  }
  return 0;
}

/* ---- the choice ---- */

/* The greatest spacing, in bandwidths, whose error is at most 10^-2, 10^-3, ..., 10^-13; 0 where none is. Only the
 * choice depends on it: the error of the chosen scheme is measured. */
#define LEVELS 12
static const struct {
  int width;
  double spacing[LEVELS];
} widest[] = {
  { 4, { 0.72, 0.43, 0 } },
  { 6, { 0.77, 0.72, 0.65, 0.39, 0.18, 0 } },
  { 8, { 0.69, 0.66, 0.63, 0.56, 0.52, 0.43, 0.26, 0 } },
  { 10, { 0.63, 0.60, 0.58, 0.57, 0.50, 0.47, 0.43, 0.36, 0.28, 0 } },
  { 12, { 0.59, 0.56, 0.54, 0.53, 0.47, 0.45, 0.43, 0.41, 0.37, 0.31, 0.24, 0.16 } },
  { 14, { 0.55, 0.53, 0.51, 0.50, 0.46, 0.43, 0.41, 0.40, 0.38, 0.36, 0.32, 0.26 } },
  { 16, { 0.52, 0.50, 0.49, 0.48, 0.44, 0.42, 0.40, 0.39, 0.37, 0.36, 0.35, 0.32 } },
};

static double widest_spacing(size_t row, double error)
{
  const double level = fmax(-log10(error) - 2, 0);
  const size_t k = (size_t) ceil(level);
  if (k >= LEVELS) return 0;
  const double narrow = widest[row].spacing[k], wide = widest[row].spacing[k ? k - 1 : 0];
  return narrow > 0 ? narrow + ((double) k - level) * (wide - narrow) : 0;
}

/* Nodes of a mesh, and nanoseconds of one thread: of a point its windows, and vectors of eight for each row of nodes;
 * of a node its taps. Measured on a busy AVX-512 core. A device goes through blocks of 8^d nodes around a point. */
static void price(const weft_mesh_size *size, weft_mesh_choice *c, double error)
{
  const double vectors = c->width > 8 ? 2 : 1, taps = 2 * sqrt(2 * log(4 / error)) / c->spacing + 1;
  const double d = (double) size->d, m = (double) size->m, rows = pow(c->width, d - 1);
  c->nodes = 1;
  for (size_t j = 0; j < size->d; j++) c->nodes *= size->extent[j] / c->spacing + c->width + (j ? 0 : 8);
  if (size->on_device) { /* blocks of nodes that a warp meets, and points */
    const double blocks = m * pow(vectors, d), met = fmin(size->references, c->nodes) + fmin(size->queries, c->nodes);
    c->work = 1e6 + (size->references + size->queries) * (0.03 + 0.2 * blocks) + 1.2 * met * blocks +
              m * c->nodes * (0.01 + d * taps * 5e-3);
    return;
  }
  const double of_point = 30 + d * vectors * (6 + c->width) * 0.8 + m * rows * (vectors + 0.5) * 1.2;
  c->work = 3e5 + (size->references + size->queries) * of_point + m * c->nodes * (2 + d * (3 + taps * 0.5));
}

weft_mesh_choice weft_mesh_choose(const weft_mesh_size *size, double target)
{
  const double error = in_one_dimension(size->d, target);
  weft_mesh_choice best = { 0 };
  if (!(error >= 1e-13)) return best;
  for (size_t row = 0; row < sizeof widest / sizeof *widest; row++) {
    weft_mesh_choice now = { .width = widest[row].width, .spacing = widest_spacing(row, error) };
    if (!(now.spacing > 0)) continue;
    price(size, &now, error);
    if (!best.width || now.work < best.work) best = now;
  }
  return best;
}
