/* How steep kernels are, for what knows how far off distances may be. */
#ifndef WEFT_KERNEL_SLOPES_H
#define WEFT_KERNEL_SLOPES_H

#include "kernel.h"

/* Of k(r) at h = 1: max |k'| and max r |k'|, in the order of weft_kernel_kind; of the uniform kernel there are none. */
static const double weft_kernel_slopes[WEFT_KERNELS][2] = {
  {0.6066, 0.7358}, {1, 0.3679}, {0.6373, 0.5414}, {0.5745, 0.6080}, {0.6496, 0.5},
  {0, 0}, {2, 2}, {1, 1}, {1.5397, 1}, {1.5708, 1.5708}
};

#endif
