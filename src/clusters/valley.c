/* The deepest valley in the density of points.
 *
 * Points without groups have one mode: along any line their density rises to it and falls after it. So, on at least one
 * side of any cut, density does not rise with the distance from the cut. Let u be the distances of the m points next to
 * the cut on one side from the last point before it, and r the distance of the point after them. Where density does not
 * rise, the mean of u / r is at most as large as that of uniform numbers, so that
 *
 *   z = (mean(u) / r - 1/2) sqrt(12 m)
 *
 * has mean 0 and variance 1, or is less. A side's rise is the greatest z over m; a cut's depth is the lesser rise of
 * its two sides, as a valley rises on both; the depth of the valley is that of the deepest cut. m grows by a third from
 * 3 up: few points show a small group, many a shallow valley. Only the points next to the cut count, so that neither
 * heavy tails nor groups of unequal size matter.
 *
 * Directions are chosen from the data, and so depths are compared with those of null data (tree.c). If density
 * is log-concave, that of one side of a cut is so too, and its projection has one mode (Prekopa 1973): this is why sets
 * are divided by planes, all points of a set at once. */
#include <stddef.h>
#include <string.h>
#include "clusters/internal.h"
#include "core/numbers/loops.h"

/* What one thread needs to look for valleys in n points of d coordinates. */
weft_status weft_clusters_space_take(weft_arena *mem, size_t n, size_t d, size_t means, weft_clusters_space *space)
{
  weft_status st = WEFT_OK;
  WEFT_TAKE(space->projection, mem, n);
  WEFT_TAKE(space->sums, mem, n + 1);
  WEFT_TAKE(space->excess, mem, n);
  WEFT_TAKE(space->starts, mem, n + 1);
  WEFT_TAKE(space->centres, mem, means * d);
  WEFT_TAKE(space->moved, mem, means * d);
  WEFT_TAKE(space->distance, mem, n);
  WEFT_TAKE(space->axis, mem, d);
  WEFT_TAKE(space->points, mem, n * d);
  WEFT_TAKE(space->axes, mem, 3 * d * d);
  WEFT_TAKE(space->labels, mem, n);
  WEFT_TAKE(space->sizes, mem, means);
  WEFT_TAKE(space->side, mem, n);
done:
  return st;
}

/* Quicksort by the middle of three, with insertion for few numbers; recursion goes into the smaller part. */
static void sort_numbers(double *x, ptrdiff_t n)
{
  enum { FEW = 16 };
  while (n > FEW) {
    const double first = x[0], middle = x[n / 2], last = x[n - 1];
    const double low = first < middle ? first : middle, high = first < middle ? middle : first;
    const double pivot = last < low ? low : last > high ? high : last;
    ptrdiff_t left = 0, right = n - 1;
    while (left <= right) {
      while (x[left] < pivot) left++;
      while (x[right] > pivot) right--;
      if (left > right) break;
      const double swapped = x[left];
      x[left++] = x[right];
      x[right--] = swapped;
    }
    if (right + 1 < n - left) {
      sort_numbers(x, right + 1);
      x += left;
      n -= left;
    } else {
      sort_numbers(x + left, n - left);
      n = right + 1;
    }
  }
  for (ptrdiff_t i = 1; i < n; i++) {
    const double now = x[i];
    ptrdiff_t at = i;
    for (; at > 0 && x[at - 1] > now; at--) x[at] = x[at - 1];
    x[at] = now;
  }
}

/* Which of n intervals of equal length, of which there are `scale` in a unit, has a number that far above the least. */
static size_t interval_of(double above, double scale, size_t n)
{
  const size_t at = (size_t) (above * scale);
  return at < n ? at : n - 1;
}

/* Sorts space->projection: numbers go to as many intervals of equal length as there are numbers, and each interval is
 * sorted by itself. space->sums is scratch. */
static void sort_projection(weft_clusters_space *space, size_t n)
{
  enum { MANY = 64 };
  double *x = space->projection, *moved = space->sums, low = x[0], high = x[0];
  int *starts = space->starts;
  for (size_t i = 1; i < n; i++) {
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
  }
  const double scale = (double) (n - 1) / (high - low);
  if (n < MANY || !(scale > 0 && scale <= DBL_MAX && high - low <= DBL_MAX)) {
    sort_numbers(x, (ptrdiff_t) n);
    return;
  }
  memset(starts, 0, (n + 1) * sizeof *starts);
  for (size_t i = 0; i < n; i++) starts[interval_of(x[i] - low, scale, n) + 1]++;
  for (size_t i = 0; i < n; i++) starts[i + 1] += starts[i];
  for (size_t i = 0; i < n; i++) moved[starts[interval_of(x[i] - low, scale, n)]++] = x[i];
  memcpy(x, moved, n * sizeof *x);
  for (size_t at = 0, first = 0; at < n; first = (size_t) starts[at++])
    if ((size_t) starts[at] > first + 1) sort_numbers(x + first, (ptrdiff_t) ((size_t) starts[at] - first));
}

typedef struct valley {
  double depth, cut;
} valley;

/* How many points next to a cut are looked at, in ascending order, and sqrt(12 m) of each. */
enum { STEPS = 64 }; /* the last m is above 10^7 */
typedef struct windows {
  size_t count, m[STEPS];
  double root[STEPS];
} windows;

static windows windows_of(size_t n)
{
  windows out = { 0 };
  for (size_t m = 3; m < n && out.count<STEPS; m += m> 5 ? m / 3 : 1) {
    out.m[out.count] = m;
    out.root[out.count++] = sqrt(12.0 * (double) m);
  }
  return out;
}

/* The rise on the left of a cut before the sorted number `at`, and on its right: the greatest z. */
static double rise_left(const weft_clusters_space *space, const windows *look, size_t at)
{
  const double from = space->projection[at];
  double greatest = -WEFT_INFINITY;
  for (size_t step = 0; step < look->count && look->m[step] < at; step++) {
    const size_t m = look->m[step];
    const double mean = from - (space->sums[at] - space->sums[at - m]) / (double) m;
    const double z = (mean / (from - space->projection[at - 1 - m]) - 0.5) * look->root[step];
    if (z > greatest) greatest = z;
  }
  return greatest;
}

static double rise_right(const weft_clusters_space *space, const windows *look, size_t n, size_t at)
{
  const double from = space->projection[at - 1];
  double greatest = -WEFT_INFINITY;
  for (size_t step = 0; step < look->count && look->m[step] < n - at; step++) {
    const size_t m = look->m[step];
    const double mean = (space->sums[at + m] - space->sums[at]) / (double) m - from;
    const double z = (mean / (space->projection[at + m] - from) - 0.5) * look->root[step];
    if (z > greatest) greatest = z;
  }
  return greatest;
}

/* For each cut of the sorted numbers y from `first` to `last`: m times the mean distance of the m numbers on its left,
 * less `share` of the distance of the number before these, and a margin; the greatest so far. */
INLINE void exceed_body(const double *y, const double *sums, size_t m, size_t first, size_t last, double share,
                        double margin, double *excess)
{
  const double times = (double) m;
  WEFT_SIMD_PRAGMA(omp simd)
  for (size_t at = first; at <= last; at++) {
    const double sum = times * y[at] - (sums[at] - sums[at - m]);
    const double over = sum - share * (y[at] - y[at - 1 - m]) + margin;
    excess[at] = over > excess[at] ? over : excess[at];
  }
}

typedef void exceed_loop(const double *y, const double *sums, size_t m, size_t first, size_t last, double share,
                         double margin, double *excess);
#define EXCEED(variant, attributes) \
  attributes static void exceed_##variant(const double *y, const double *sums, size_t m, size_t first, size_t last, \
                                          double share, double margin, double *excess) \
  { \
    exceed_body(y, sums, m, first, last, share, margin, excess); \
  }
WEFT_VARIANTS(EXCEED)

/* Fills space->excess: below 0 where the rise on a cut's left is `depth` >= 0 at most. Margins are wider than rounding,
 * so that rise_left() decides wherever it might. */
static void screen_left(weft_clusters_space *space, const windows *look, size_t n, double depth)
{
  exceed_loop *const exceed = WEFT_VARIANT_HERE(exceed);
  const double *y = space->projection, greatest = fmax(fabs(y[0]), fabs(y[n - 1]));
  const size_t last = n - WEFT_CLUSTERS_SMALLEST;
  for (size_t at = WEFT_CLUSTERS_SMALLEST; at <= last; at++) space->excess[at] = -WEFT_INFINITY;
  for (size_t step = 0; step < look->count; step++) {
    const size_t m = look->m[step], first = m < WEFT_CLUSTERS_SMALLEST ? WEFT_CLUSTERS_SMALLEST : m + 1;
    const double share = (depth / look->root[step] + 0.5) * (double) m * (1 - 1e-9);
    exceed(y, space->sums, m, first, last, share, 1e-13 * (double) m * greatest, space->excess);
  }
}

/* A cut between any two neighbours of the sorted numbers is as deep as the lesser of how clearly the density rises on
 * its left and on its right. Sorts space->projection. `depth`: only deeper valleys are looked for; with it, the result
 * says that there is none. */
static valley valley_of(weft_clusters_space *space, size_t n, double depth)
{
  valley deepest = { depth, 0 };
  const int screened = depth >= 0 && n > 2 * WEFT_CLUSTERS_SMALLEST;
  const windows look = windows_of(n);
  const double *y = space->projection;
  sort_projection(space, n);
  space->sums[0] = 0;
  for (size_t i = 0; i < n; i++) space->sums[i + 1] = space->sums[i] + y[i];
  if (screened) screen_left(space, &look, n, depth);
  for (size_t at = WEFT_CLUSTERS_SMALLEST; at + WEFT_CLUSTERS_SMALLEST <= n; at++) {
    if (screened && space->excess[at] < 0) continue;
    const double cut = y[at - 1] + 0.5 * (y[at] - y[at - 1]);
    if (!(cut > y[at - 1] && cut < y[at])) continue; /* equal numbers stay together, and no distance is 0 */
    const double left = rise_left(space, &look, at);
    if (left <= deepest.depth) continue;
    const double right = rise_right(space, &look, n, at), lesser = left < right ? left : right;
    if (lesser > deepest.depth) deepest = (valley){ lesser, cut };
  }
  return deepest;
}

/* Projects the points on space->axis; where their valley is deeper than `deepest`, takes over its depth and sides. */
static void try_axis(const weft_points *points, weft_clusters_space *space, double *deepest)
{
  const size_t n = points->n, d = points->d;
  for (size_t i = 0; i < n; i++) {
    const double place = weft_clusters_product(points->x + i * d, space->axis, d);
    space->projection[i] = space->distance[i] = place; /* the first copy is sorted */
  }
  const valley found = valley_of(space, n, *deepest);
  if (!(found.depth > *deepest)) return;
  *deepest = found.depth;
  for (size_t i = 0; i < n; i++) space->side[i] = space->distance[i] >= found.cut;
}

/* Fills space->axis with the direction from one centre to another; 0 where both are the same. */
static int axis_between(weft_clusters_space *space, size_t from, size_t to, size_t d)
{
  double square = 0;
  for (size_t j = 0; j < d; j++) {
    space->axis[j] = space->centres[to * d + j] - space->centres[from * d + j];
    square += space->axis[j] * space->axis[j];
  }
  if (!(square > 0)) return 0;
  for (size_t j = 0; j < d; j++) space->axis[j] /= sqrt(square);
  return 1;
}

/* Gives space->points units in which their coordinates vary more equally. Part of the mean variance is added, as of few
 * points some directions hardly vary by chance. */
static void equalise(weft_clusters_space *space, size_t n, size_t d)
{
  static const double added = 0.1;
  double *variance = space->axis, total = 0;
  for (size_t j = 0; j < d; j++) {
    double mean = 0, square = 0;
    for (size_t i = 0; i < n; i++) mean += space->points[i * d + j] / (double) n;
    for (size_t i = 0; i < n; i++) square += (space->points[i * d + j] - mean) * (space->points[i * d + j] - mean);
    variance[j] = square / (double) n;
    total += variance[j];
  }
  for (size_t j = 0; j < d; j++) variance[j] = 1 / sqrt(variance[j] + added * total / (double) d);
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < d; j++) space->points[i * d + j] *= variance[j];
}

/* Tries the lines between the centres of 2 .. `means` groups. Draws number `first` and following. */
static void try_means(const weft_points *points, size_t means, weft_rng rng, uint64_t first, weft_clusters_space *space,
                      double *deepest)
{
  enum { ROUNDS = 8 }; /* directions need no convergence */
  for (size_t k = 2; k <= means && k <= points->n; k++) {
    weft_clusters_start(points, k, rng, first + (k << 8), space);
    weft_clusters_iterate(points, k, ROUNDS, space);
    for (size_t to = 1; to < k; to++)
      for (size_t from = 0; from < to; from++)
        if (axis_between(space, from, to, points->d)) try_axis(points, space, deepest);
  }
}

/* Tries the first AXES axes, then the lines between centres of k-means, plain and in equalised units; last, again and
 * again, the discriminant direction of the sides of the deepest valley so far. */
double weft_clusters_deepest(const weft_clusters_search *search, uint64_t draw, size_t n, size_t d,
                             weft_clusters_space *space)
{
  enum { AXES = 10, ROUNDS = 4 };
  const weft_points points = { space->points, n, d };
  const weft_rng rng = { search->key, WEFT_CLUSTERS_STARTS };
  double deepest = -WEFT_INFINITY;
  memset(space->side, 0, n * sizeof *space->side);
  for (size_t j = 0; j < d && j < AXES; j++) {
    for (size_t other = 0; other < d; other++) space->axis[other] = other == j;
    try_axis(&points, space, &deepest);
  }
  if (d == 1) return deepest;
  try_means(&points, search->means, rng, draw << 16, space, &deepest);
  equalise(space, n, d);
  try_means(&points, search->equal_means, rng, (draw << 16) + (1 << 12), space, &deepest);
  for (int round = 0; round < ROUNDS && weft_clusters_discriminant(&points, space); round++) {
    const double before = deepest;
    try_axis(&points, space, &deepest);
    if (!(deepest > before)) break;
  }
  return deepest;
}
