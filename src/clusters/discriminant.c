/* The direction in which two sides of a set are farthest apart for how much the points within them vary (Fisher's
 * linear discriminant). A valley that is seen along one direction is deeper along this one if there are two groups. */
#include <string.h>
#include "clusters/internal.h"

/* Means of the two sides (2 x d). Returns whether both have points. */
static int side_means(const weft_points *points, const int *side, double *means)
{
  const size_t d = points->d;
  double count[2] = { 0, 0 };
  memset(means, 0, 2 * d * sizeof *means);
  for (size_t i = 0; i < points->n; i++) {
    count[side[i]]++;
    for (size_t j = 0; j < d; j++) means[(size_t) side[i] * d + j] += points->x[i * d + j];
  }
  if (!(count[0] > 0 && count[1] > 0)) return 0;
  for (size_t j = 0; j < 2 * d; j++) means[j] /= count[j / d];
  return 1;
}

/* Covariances within sides (lower triangle). Part of the mean variance is added, as in valley.c: few points hardly vary
 * in some directions by chance. Returns the mean variance without it. */
static double within_sides(const weft_points *points, const int *side, const double *means, double *within)
{
  static const double added = 0.1;
  const size_t d = points->d;
  double mean = 0;
  memset(within, 0, d * d * sizeof *within);
  for (size_t i = 0; i < points->n; i++) {
    const double *x = points->x + i * d, *centre = means + (size_t) side[i] * d;
    for (size_t j = 0; j < d; j++)
      for (size_t other = 0; other <= j; other++)
        within[j * d + other] += (x[j] - centre[j]) * (x[other] - centre[other]);
  }
  for (size_t j = 0; j < d; j++)
    for (size_t other = 0; other <= j; other++) within[j * d + other] /= (double) points->n;
  for (size_t j = 0; j < d; j++) mean += within[j * d + j] / (double) d;
  for (size_t j = 0; j < d; j++) within[j * d + j] += added * mean;
  return mean;
}

/* Solves matrix x = b in place by Cholesky's factor, which takes the place of the lower triangle. */
static void solve(double *matrix, size_t d, double *b)
{
  for (size_t j = 0; j < d; j++)
    for (size_t other = 0; other <= j; other++) {
      const double rest = matrix[j * d + other] - weft_clusters_product(matrix + j * d, matrix + other * d, other);
      matrix[j * d + other] = other == j ? sqrt(rest) : rest / matrix[other * d + other];
    }
  for (size_t j = 0; j < d; j++) b[j] = (b[j] - weft_clusters_product(matrix + j * d, b, j)) / matrix[j * d + j];
  for (size_t j = d; j-- > 0;) {
    for (size_t later = j + 1; later < d; later++) b[j] -= matrix[later * d + j] * b[later];
    b[j] /= matrix[j * d + j];
  }
}

/* Sides that hardly vary are skipped: the line between their centres has been tried, and is no worse. */
int weft_clusters_discriminant(const weft_points *points, weft_clusters_space *space)
{
  static const double least = 1e-12;
  const size_t d = points->d;
  double *within = space->axes, *means = space->axes + d * d;
  if (!side_means(points, space->side, means)) return 0;
  const double variance = within_sides(points, space->side, means, within);
  if (!(variance > least * weft_clusters_square(means, means + d, d))) return 0;
  for (size_t j = 0; j < d; j++) space->axis[j] = means[d + j] - means[j];
  solve(within, d, space->axis);
  return 1;
}
