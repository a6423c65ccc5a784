/* Declarations that the files of this room share. */
#pragma once

#include "clusters/clusters.h"
#include "core/call/arena.h"

/* Streams of draws (draws.h). */
enum { WEFT_CLUSTERS_NULL = 1, WEFT_CLUSTERS_STARTS, WEFT_CLUSTERS_ROWS, WEFT_CLUSTERS_MEANS };

/* Memory of one thread for a search in sets of at most n points with d coordinates. */
typedef struct weft_clusters_space {
  double *projection, *sums;  /* n; n + 1 */
  double *excess;             /* n */
  int *starts;                /* n + 1 */
  double *centres, *moved;    /* means x d each */
  double *distance, *axis;    /* n; d */
  double *points, *axes;      /* n x d; 3 d x d */
  int *labels, *sizes, *side; /* n; means; n */
} weft_clusters_space;

weft_status weft_clusters_space_take(weft_arena *mem, size_t n, size_t d, size_t means, weft_clusters_space *space);

/* The deepest valley of the n points in space->points, whose units it changes, along any of the directions of the
 * search; space->side tells which points (1) lie beyond it. `draw` numbers the search: its random starts depend on that
 * and on the key alone. */
double weft_clusters_deepest(const weft_clusters_search *search, uint64_t draw, size_t n, size_t d,
                             weft_clusters_space *space);

/* space->axis becomes the discriminant direction of the two sides (space->side) of at least two points of two or more
 * coordinates. Returns 0 where there is none. */
int weft_clusters_discriminant(const weft_points *points, weft_clusters_space *space);

/* Starts of k-means (Arthur and Vassilvitskii 2007), draws number `first` and following; and Lloyd's iteration, at most
 * `rounds`. labels (n) are those of the last means but one. */
void weft_clusters_start(const weft_points *points, size_t k, weft_rng rng, uint64_t first, weft_clusters_space *space);
void weft_clusters_iterate(const weft_points *points, size_t k, int rounds, weft_clusters_space *space);

/* Sums of products in four parts, which do not wait for each other; their order is fixed. */
static inline double weft_clusters_square(const double *x, const double *y, size_t d)
{
  double part[4] = { 0, 0, 0, 0 };
  size_t j = 0;
  for (; j + 4 <= d; j += 4)
    for (size_t lane = 0; lane < 4; lane++) part[lane] += (x[j + lane] - y[j + lane]) * (x[j + lane] - y[j + lane]);
  for (; j < d; j++) part[0] += (x[j] - y[j]) * (x[j] - y[j]);
  return (part[0] + part[1]) + (part[2] + part[3]);
}

static inline double weft_clusters_product(const double *x, const double *y, size_t d)
{
  double part[4] = { 0, 0, 0, 0 };
  size_t j = 0;
  for (; j + 4 <= d; j += 4)
    for (size_t lane = 0; lane < 4; lane++) part[lane] += x[j + lane] * y[j + lane];
  for (; j < d; j++) part[0] += x[j] * y[j];
  return (part[0] + part[1]) + (part[2] + part[3]);
}

/* The nearest of k centres, the first of equals; *square becomes the squared distance. */
static inline size_t weft_clusters_nearest(const double *x, const double *centres, size_t k, size_t d, double *square)
{
  size_t nearest = 0;
  double least = WEFT_INFINITY;
  for (size_t group = 0; group < k; group++) {
    const double sum = weft_clusters_square(x, centres + group * d, d);
    if (sum < least) {
      least = sum;
      nearest = group;
    }
  }
  *square = least;
  return nearest;
}

/* Copies the points of a set, less their mean and turned to their principal axes, to space->points; `variance` (d)
 * becomes the variances along them, in descending order. Returns how many of these are more than rounding. */
size_t weft_clusters_turn(const weft_points *points, const int *rows, size_t count, weft_clusters_space *space,
                          double *variance);
