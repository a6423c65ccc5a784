/* The KSG estimator of one pair on the CPU; see mi_ksg.h.
 *
 * The points lie in order of x. From a point the search goes right and left, eight points a step, until x alone is
 * farther away than the k-th neighbour found so far: with n points in the plane, about sqrt(k n) of them. One more pass
 * over this window finds e_x and e_y; n_x lies in the window too, and n_y is a search in the sorted y. */
#include <string.h>
#include "mi_ksg.h"
#include "mi_simd.h"

#define STEP 16 /* points looked at together */

/* Distances of the next STEP points from (x, y); those below the k-th nearest enter the increasing list. */
INLINE double look_at(const weft_ksg_pair *p, ptrdiff_t from, double x, double y, double *nearest)
{
  const int last = p->k - 1;
  const double *restrict px = p->x + from, *restrict py = p->y + from;
  const double scale_x = p->scale_x, scale_y = p->scale_y;
  double distance[STEP], least = INFINITY;
  WEFT_SIMD_REDUCE(min:least)
  for (int t = 0; t < STEP; t++) {
    const double dx = fabs(px[t] - x) * scale_x, dy = fabs(py[t] - y) * scale_y, d = dx > dy ? dx : dy;
    distance[t] = d;
    least = d < least ? d : least;
  }
  if (!(least < nearest[last])) return nearest[last];
  for (int t = 0; t < STEP; t++) {
    int at = last;
    if (!(distance[t] < nearest[last])) continue;
    for (; at > 0 && nearest[at - 1] > distance[t]; at--) nearest[at] = nearest[at - 1];
    nearest[at] = distance[t];
  }
  return nearest[last];
}

/* How many of the increasing values lie within e of y, itself left out. */
INLINE size_t within(const double *sorted, size_t n, double y, double e)
{
  size_t below = 0, upto = 0; /* values more than e below y; values not more than e above it */
  for (size_t left = n, half; left > 1; left -= half) {
    half = left / 2;
    below += y - sorted[below + half - 1] > e ? half : 0;
    upto += sorted[upto + half - 1] - y <= e ? half : 0;
  }
  below += y - sorted[below] > e;
  upto += sorted[upto] - y <= e;
  return upto - below - 1;
}

/* Points of the window [from, to) within `reach`: the greatest distances along x and y, and how many (itself among them). */
INLINE size_t extent(const weft_ksg_pair *p, size_t from, size_t to, double x, double y, double reach, double *e_x,
                     double *e_y)
{
  const double *restrict px = p->x, *restrict py = p->y;
  const double scale_x = p->scale_x, scale_y = p->scale_y;
  double most_x = 0, most_y = 0, count = 0;
  WEFT_SIMD_PRAGMA(omp simd reduction(max:most_x,most_y) reduction(+:count))
  for (size_t s = from; s < to; s++) {
    const double dx = fabs(px[s] - x), dy = fabs(py[s] - y);
    const int in = (dx * scale_x <= reach) & (dy * scale_y <= reach);
    const double in_x = in ? dx : 0, in_y = in ? dy : 0;
    count += in ? 1.0 : 0.0;
    most_x = in_x > most_x ? in_x : most_x;
    most_y = in_y > most_y ? in_y : most_y;
  }
  *e_x = most_x;
  *e_y = most_y;
  return (size_t) count;
}

INLINE void count_points(const weft_ksg_pair *p, double *nearest, uint32_t *counts)
{
  const size_t n = p->n;
  for (size_t i = 0; i < n; i++) {
    const double x = p->x[i], y = p->y[i];
    size_t left = i, right = i + 1; /* the window is [left, right); what lies beyond an end is infinitely far */
    int go_left = 1, go_right = 1;
    double reach = INFINITY, e_x, e_y;
    for (int t = 0; t < p->k; t++) nearest[t] = INFINITY;
    while (go_left || go_right) {
      go_right = go_right && right < n && (p->x[right] - x) * p->scale_x <= reach;
      if (go_right) { reach = look_at(p, (ptrdiff_t) right, x, y, nearest); right += STEP; }
      go_left = go_left && left > 0 && (x - p->x[left - 1]) * p->scale_x <= reach;
      if (go_left) {
        reach = look_at(p, (ptrdiff_t) left - STEP, x, y, nearest); /* may begin in the padding */
        left -= left < STEP ? left : STEP;
      }
    }
    const size_t k = extent(p, left, right, x, y, reach, &e_x, &e_y) - 1, end = right < n ? right : n;
    counts[within(p->x + left, end - left, x, e_x)]++;
    counts[within(p->y_sorted, n, y, e_y)]++;
    counts[n + k]++;
  }
}

#define COUNT(name, target) \
  target static void count_##name(const weft_ksg_pair *p, double *nearest, uint32_t *counts) { count_points(p, nearest, counts); }
WEFT_VARIANTS(COUNT)

double weft_ksg_bits_of_pair(const weft_ksg_pair *pair, const double *psi, const double *shifted, double *nearest,
                             uint32_t *counts)
{
  const size_t n = pair->n;
  WEFT_VARIANT_HERE(count)(pair, nearest, counts);
  const double sum_psi = weft_ksg_sum(counts, psi, n), sum_k = weft_ksg_sum(counts + n, shifted, n);
  memset(counts, 0, 2 * n * sizeof *counts);
  return weft_ksg_bits(sum_psi, sum_k, (double) n, psi[n]);
}
