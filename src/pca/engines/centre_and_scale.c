/* How X is made of the data, from the moments of their columns; see pca.h. */
#include <math.h>
#include "pca/pca.h"

/* From the moments of p columns to what is done to them: center, factor and divide, and the power of two that brings
 * the longest column near 1. A constant column has a factor of 0, and is marked where it would be divided by 0. */
void weft_pca_form_of(size_t p, const weft_pca_moments *of, const weft_pca_scaling *by, weft_pca_made *out)
{
  double largest = 0;
  out->total = 0;
  for (size_t j = 0; j < p; j++) {
    const double count = of->weight[j];
    out->center[j] = by->center ? by->center[j] : by->centred ? of->mean[j] : 0;
    const double norm = by->centred ? of->norm[j] : hypot(of->norm[j], sqrt(count) * (of->mean[j] - out->center[j]));
    double divide = by->scale ? by->scale[j] : by->scaled ? norm / sqrt(fmax(1, count - 1)) : 1;
    out->constant[j] = divide == 0;
    if (divide == 0) divide = 1;
    if (by->weights) divide /= sqrt(by->weights[j]);
    out->divide[j] = divide;
    out->factor[j] = norm / divide; /* the column's length, for now */
    largest = fmax(largest, out->factor[j]);
  }
  out->exponent = largest > 0 ? logb(largest) : 0;
  const double unit = exp2(-out->exponent);
  for (size_t j = 0; j < p; j++) {
    const double length = out->factor[j];
    out->total += length * unit * (length * unit);
    out->factor[j] = length > 0 ? unit / out->divide[j] : 0;
  }
}
