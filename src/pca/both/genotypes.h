/* Values of genotypes, shared by the CPU and devices. */
#pragma once

#include "core/numbers/draws.h"

/* The entries of X that the four codes of a column stand for, by their bits: two copies, missing, one, none. Weights of
 * rows are left out. */
WEFT_HD static inline void weft_pca_code_values(double center, double factor, double missing, double values[4])
{
  values[0] = (2 - center) * factor;
  values[1] = (missing - center) * factor;
  values[2] = (1 - center) * factor;
  values[3] = (0 - center) * factor;
}
