/* The KSG estimator of one pair on the CPU; see ksg.h.
 *
 * The points lie in order of x. Where the k-th neighbour of a point is likely to be is guessed from how close its
 * values lie in x alone and in y alone: if the columns were independent, about twice k points would be within the
 * guess. Those within are collected from the window of points that x alone does not exclude, without branches; if they
 * are fewer than k, the guess grows. The k-th distance is chosen among the few collected, and e_x and e_y are found
 * from them. n_x and n_y are searches in sorted values. What is found does not depend on the guess. */
/* Build: shared. */
#include <string.h>
#include "mi/matrix/both/ksg.h"
#include "core/numbers/loops.h"

/* Numbers of the points of the window [from, to) within `reach` of (x, y), itself among them; returns how many. */
INLINE size_t collect(const weft_ksg_pair *p, size_t from, size_t to, double x, double y, double reach,
                      double *distance, uint32_t *found)
{
  const double *restrict px = p->x, *restrict py = p->y;
  const double scale_x = p->scale_x, scale_y = p->scale_y;
  size_t count = 0;
  WEFT_SIMD_PRAGMA(omp simd)
  for (size_t s = from; s < to; s++) {
    const double dx = fabs(px[s] - x) * scale_x, dy = fabs(py[s] - y) * scale_y;
    distance[s - from] = dx > dy ? dx : dy;
  }
  for (size_t s = from; s < to; s++) {
    found[count] = (uint32_t) s;
    count += distance[s - from] <= reach;
  }
  return count;
}

/* The k-th least of distance[found[.] - from], point `self` left out. `nearest`: k numbers. */
INLINE double kth_distance(const double *distance, const uint32_t *found, size_t count, size_t from, size_t self,
                           double *nearest, int k)
{
  for (int t = 0; t < k; t++) nearest[t] = INFINITY;
  for (size_t c = 0; c < count; c++) {
    const double d = distance[found[c] - from];
    int at = k - 1;
    if (found[c] == self || !(d < nearest[at])) continue;
    for (; at > 0 && nearest[at - 1] > d; at--) nearest[at] = nearest[at - 1];
    nearest[at] = d;
  }
  return nearest[k - 1];
}

/* Among the points collected, counts those within reach_x and reach_y, the point itself included, and finds their
 * greatest distances along x and y. */
INLINE size_t extent(const weft_ksg_pair *p, const uint32_t *found, size_t count, double x, double y, double reach_x,
                     double reach_y, double *e_x, double *e_y)
{
  const double scale_x = p->scale_x, scale_y = p->scale_y;
  size_t within_reach = 0;
  double max_x = 0, max_y = 0;
  for (size_t c = 0; c < count; c++) {
    const double dx = fabs(p->x[found[c]] - x), dy = fabs(p->y[found[c]] - y);
    const int in = dx * scale_x <= reach_x && dy * scale_y <= reach_y;
    within_reach += (size_t) in;
    max_x = in && dx > max_x ? dx : max_x;
    max_y = in && dy > max_y ? dy : max_y;
  }
  *e_x = max_x;
  *e_y = max_y;
  return within_reach;
}

/* The window of points within `reach` of point i along x. */
INLINE void find_window(const weft_ksg_pair *p, size_t i, double reach, size_t *left, size_t *right)
{
  const double x = p->x[i], *xs = p->x, scale = p->scale_x;
  size_t below = 0, upto = 0;
  for (size_t rest = p->n, half; rest > 1; rest -= half) {
    half = rest / 2;
    below += (x - xs[below + half - 1]) * scale > reach ? half : 0;
    upto += (xs[upto + half - 1] - x) * scale <= reach ? half : 0;
  }
  *left = below + ((x - xs[below]) * scale > reach);
  *right = upto + ((xs[upto] - x) * scale <= reach);
}

/* Adds the numbers n_x, n_y and k of every point to `counts`. Points are collected until the k-th distance and what
 * lies within the slack beyond it are among them. */
INLINE void count_points(const weft_ksg_pair *p, weft_ksg_work *w, uint32_t *counts)
{
  const size_t n = p->n;
  const double beyond_x = p->slack_x * p->scale_x, beyond_y = p->slack_y * p->scale_y;
  const double beyond = WEFT_KSG_SLACKS * (beyond_x > beyond_y ? beyond_x : beyond_y);
  for (size_t i = 0; i < n; i++) {
    const double x = p->x[i], y = p->y[i];
    double near = p->near_x[i] * p->near_y[i], guess = near + beyond, reach, e_x, e_y;
    size_t left, right, count;
    for (;;) {
      find_window(p, i, guess, &left, &right);
      count = collect(p, left, right, x, y, guess, w->distance, w->found);
      if (count <= (size_t) p->k) { /* itself is among them */
        near = near > 0 ? 1.7 * near : 1e-3;
        guess = near + beyond;
        continue;
      }
      reach = kth_distance(w->distance, w->found, count, left, i, w->nearest, p->k);
      if (reach + beyond <= guess) break;
      guess = reach + beyond;
    }
    const size_t k = extent(p, w->found, count, x, y, reach + beyond_x, reach + beyond_y, &e_x, &e_y) - 1;
    counts[weft_ksg_within(p->x + left, (uint32_t) (right - left), x, e_x + p->slack_x)]++;
    counts[weft_ksg_within(p->y_sorted, (uint32_t) n, y, e_y + p->slack_y)]++;
    counts[n + k]++;
  }
}

#define COUNT(name, target) \
  target static void count_##name(const weft_ksg_pair *p, weft_ksg_work *w, uint32_t *counts) \
  { \
    count_points(p, w, counts); \
  }
WEFT_VARIANTS(COUNT)

double weft_ksg_bits_of_pair(const weft_ksg_pair *pair, const double *psi, const double *shifted, weft_ksg_work *work,
                             uint32_t *counts)
{
  const size_t n = pair->n;
  WEFT_VARIANT_HERE(count)(pair, work, counts);
  const double sum_psi = weft_ksg_sum(counts, psi, n), sum_k = weft_ksg_sum(counts + n, shifted, n);
  memset(counts, 0, 2 * n * sizeof *counts);
  return weft_ksg_bits(sum_psi, sum_k, (double) n, psi[n]);
}

/* The square root of the half width, in standard deviations, of a window of sqrt(2 k n) values around each: the product
 * of two such is the half width of a square that, were the columns independent, would hold 2k points. */
void weft_ksg_near(const double *values, const uint32_t *order, size_t n, int k, double inverse_sd, double *near)
{
  size_t width = (size_t) sqrt(2.0 * k * (double) n);
  if (width > n - 1) width = n - 1;
  for (size_t r = 0; r < n; r++) {
    size_t low = r > width / 2 ? r - width / 2 : 0;
    if (low + width > n - 1) low = n - 1 - width;
    const double own = values[order[r]], below = own - values[order[low]], above = values[order[low + width]] - own;
    near[order[r]] = sqrt((below > above ? below : above) * inverse_sd);
  }
}
