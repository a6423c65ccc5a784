/* Sums in one dimension: references lie sorted in cells that are narrow compared with the bandwidth, and a cell counts
 * for a query by some moments. Each calls only what stands below it here:
 *
 *   line.c     queries
 *   build.c    the order of the references, cells and their moments
 *   scatter.c  cells and their moments without an order, for few queries
 *   forms.c    what a kernel is of a cell's moments
 *
 * A kernel of v - u, where v is the query and u a reference, both relative to the middle of the cell, is a sum of
 * products
 *
 *   POWERS       a polynomial of r: powers of u, and the polynomial's Taylor coefficients at the query; exact
 *   EXPONENTIAL  the same times exp(-r): exp(u) and exp(-u) go to the moments, one of them for either side; exact
 *   WAVE         cos: cos and sin of both; exact
 *   SERIES       exp(-r²/2) = exp(-v²/2) Σ v^t (u^t exp(-u²/2) / t!), cut off where the rest is within the tolerance
 *
 * Kernels that have odd powers of r differ on the two sides of the query, kernels with an end cut through cells, and a
 * query may leave a reference out: in these cases the cell is taken in blocks of 8 references, the affected ones pair
 * by pair, and the moments of the blocks before and after are kept as sums from either end, so that nothing is
 * subtracted. */
#pragma once

#include "kernel/kernel.h"

/* Sums over sorted references by moments of cells, exactly or within the errors. Points without low
 * parts, no `own`. part: NULL, or of which column each is a part, so that tolerances are relative to what all parts of
 * a column have together. */
weft_status weft_kernel_line(weft_ctx *ctx, const weft_kernel_task *task, const int *part, double *out,
                             weft_kernel_effort *effort);
/* Whether this kernel has sums by moments. */
int weft_kernel_has_line(int kind);
