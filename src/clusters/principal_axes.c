/* Principal axes of a set of points, by Jacobi's rotations: the sets have few coordinates. */
#include <string.h>
#include "clusters/internal.h"

/* The covariances of a set's points, whose means are put into space->axis. */
static void covariances(const weft_points *points, const int *rows, size_t count, weft_clusters_space *space,
                        double *covariance)
{
  const size_t d = points->d;
  double *mean = space->axis, *centred = space->points;
  memset(mean, 0, d * sizeof *mean);
  memset(covariance, 0, d * d * sizeof *covariance);
  for (size_t i = 0; i < count; i++)
    for (size_t j = 0; j < d; j++) mean[j] += points->x[(size_t) rows[i] * d + j];
  for (size_t j = 0; j < d; j++) mean[j] /= (double) count;
  for (size_t i = 0; i < count; i++) {
    const double *x = points->x + (size_t) rows[i] * d;
    for (size_t j = 0; j < d; j++) centred[j] = x[j] - mean[j];
    for (size_t j = 0; j < d; j++)
      for (size_t other = 0; other <= j; other++) covariance[j * d + other] += centred[j] * centred[other];
  }
  for (size_t j = 0; j < d; j++)
    for (size_t other = 0; other <= j; other++)
      covariance[other * d + j] = covariance[j * d + other] /= (double) (count - 1);
}

/* Rotates two rows of length d. */
static void rotate_rows(double *first, double *second, size_t d, double cosine, double sine)
{
  for (size_t i = 0; i < d; i++) {
    const double x = first[i], y = second[i];
    first[i] = cosine * x - sine * y;
    second[i] = sine * x + cosine * y;
  }
}

/* One rotation, which makes the covariance of coordinates j and other 0. By symmetry, columns are copies of rows. */
static void rotate(double *covariance, double *axes, size_t d, size_t j, size_t other)
{
  double *row = covariance + j * d, *other_row = covariance + other * d;
  const double off = row[other], first = row[j], second = other_row[other];
  const double theta = (second - first) / (2 * off);
  const double tangent = (theta >= 0 ? 1 : -1) / (fabs(theta) + sqrt(theta * theta + 1));
  const double cosine = 1 / sqrt(tangent * tangent + 1), sine = tangent * cosine;
  rotate_rows(row, other_row, d, cosine, sine);
  rotate_rows(axes + j * d, axes + other * d, d, cosine, sine);
  row[j] = first - tangent * off;
  other_row[other] = second + tangent * off;
  row[other] = other_row[j] = 0;
  for (size_t i = 0; i < d; i++) {
    covariance[i * d + j] = row[i];
    covariance[i * d + other] = other_row[i];
  }
}

/* Eigenvectors become the rows of axes, eigenvalues the diagonal of the covariances. */
static void eigen_axes(double *covariance, double *axes, size_t d)
{
  enum { SWEEPS = 30 };
  double trace = 0;
  for (size_t j = 0; j < d; j++) trace += covariance[j * d + j];
  for (size_t j = 0; j < d; j++)
    for (size_t other = 0; other < d; other++) axes[j * d + other] = j == other;
  for (int sweep = 0; sweep < SWEEPS; sweep++) {
    size_t rotations = 0;
    for (size_t j = 0; j < d; j++)
      for (size_t other = j + 1; other < d; other++) {
        if (!(fabs(covariance[j * d + other]) > 1e-15 * trace)) continue;
        rotate(covariance, axes, d, j, other);
        rotations++;
      }
    if (!rotations) break;
  }
}

/* Puts the chosen points into space->points on their principal axes, of which it returns how many have any variance. */
size_t weft_clusters_turn(const weft_points *points, const int *rows, size_t count, weft_clusters_space *space,
                          double *variance)
{
  const size_t d = points->d;
  double *covariance = space->axes, *axes = space->axes + d * d, *sorted = space->axes + 2 * d * d;
  size_t kept = 0;
  covariances(points, rows, count, space, covariance);
  eigen_axes(covariance, axes, d);
  for (size_t place = 0; place < d; place++) { /* the greatest eigenvalue that is left, the first of equals */
    size_t greatest = 0;
    for (size_t j = 1; j < d; j++)
      if (covariance[j * d + j] > covariance[greatest * d + greatest]) greatest = j;
    variance[place] = covariance[greatest * d + greatest];
    covariance[greatest * d + greatest] = -WEFT_INFINITY;
    memcpy(sorted + place * d, axes + greatest * d, d * sizeof *sorted);
  }
  while (kept < d && variance[kept] > 1e-12 * variance[0] && variance[kept] > 0) kept++;
  for (size_t i = 0; i < count; i++)
    for (size_t place = 0; place < kept; place++) {
      const double *axis = sorted + place * d;
      space->points[i * kept + place] = weft_clusters_product(points->x + (size_t) rows[i] * d, axis, d) -
                                        weft_clusters_product(space->axis, axis, d);
    }
  return kept;
}
