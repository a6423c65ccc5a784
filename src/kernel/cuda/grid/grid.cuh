/* A grid of points on the device (grid.cu) and sums over it (sum.cu), for what runs them. */
#pragma once

#include "kernel/cuda/host.cuh"

#define GRID_DIMS 12 /* most dimensions that are cut */
#define GRID_REACH 2 /* cells away that a kernel may reach */
#define GRID_CELL 62 /* points that a cell should have at most */
#define GRID_FINE 8  /* halvings of a cell by which its points are ordered, at most */

/* Coordinates are counted in a lattice unit; a cell is k of them wide in each dimension. */
struct grid_plan {
  int d, dims, words; /* words of 4 bytes per point: (dims + 3) / 4 */
  /* halvings within a cell: of which dimension, how often by then */
  int fine, fine_dim[GRID_FINE], fine_level[GRID_FINE];
  int axis[GRID_DIMS], k[GRID_DIMS], cells[GRID_DIMS], reach[GRID_DIMS];
  uint32_t stride[GRID_DIMS], total;
  double low[GRID_DIMS], unit, inv_unit;
  float within; /* square of the reach in units, with slack */
  int near;     /* the same between lattice points */
};

/* Points in the order of their cells. */
struct grid_points {
  int64_t n;
  double *rows, *lo; /* n * d, a point's coordinates together; lo may be NULL */
  double *weights;   /* m columns of n, or NULL for 1 */
  uint32_t *order;   /* the row that point i was */
  int32_t *local;    /* n * words: bytes, each a coordinate within its cell in units */
  uint32_t *start;   /* cells + 1 */
};

/* False where no grid makes sense: points are few, or all within reach of each other. */
bool weft_grid_plan(grid_plan *plan, size_t n, size_t d, const double *low, const double *high, double h);

/* rows, lo: moved into the cells' order (out of place: `from` is freed). */
weft_status weft_grid_build(weft_ctx *ctx, weft_device_arena *mem, const grid_plan &plan, int64_t n, double *from,
                            double *from_lo, grid_points *out);
