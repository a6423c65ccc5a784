/* Sums over a grid. */
#pragma once

#include "kernel/cuda/grid/grid.cuh"

/* out[order[i] + c * n]: sums of query i. counts: tests of cells, of lattice points, of pairs.
 * In a part of several (core/together/exchange.h), which all have the same points, each takes its share of the queries;
 * all get the sums, and counts of their own. */
weft_status weft_grid_sum(weft_ctx *ctx, weft_device_arena *mem, const grid_plan &plan, int kind, double h,
                          int leave_one_out, const grid_points &query, const grid_points &reference, int m, double *out,
                          double counts[3]);
