/* The choice of a mesh: windows, taps, and the cheapest of them within an error. */
#pragma once

#include "kernel/both/mesh.h"

/* What a scheme is chosen for: extents in bandwidths, numbers of points, columns of weights; whether for a device. */
typedef struct weft_mesh_size {
  size_t d, m;
  double extent[WEFT_MESH_DIMENSIONS], references, queries;
  int on_device;
} weft_mesh_size;
typedef struct weft_mesh_choice {
  int width;
  double spacing, nodes, work;
} weft_mesh_choice; /* work: nanoseconds */

/* The cheapest scheme with an error of at most `target` in d dimensions; width 0 where there is none. */
weft_mesh_choice weft_mesh_choose(const weft_mesh_size *size, double target);
/* 0 where no spacing up to the choice's keeps the target. */
int weft_mesh_make(const weft_mesh_choice *choice, size_t d, double target, weft_mesh_scheme *scheme);
