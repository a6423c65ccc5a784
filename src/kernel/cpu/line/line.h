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
 * query may leave a reference out: in these cases the cell is taken in blocks of 16 references, the affected ones pair
 * by pair, and the moments of the blocks before and after are kept as sums from either end, so that nothing is
 * subtracted. */
#pragma once

#include "kernel/both/scalar.h"

#define WEFT_LINE_BLOCK ((size_t) 16)
#define WEFT_LINE_MAX_TERMS 32
#define WEFT_LINE_POWERS 6

typedef enum weft_line_kind {
  WEFT_LINE_NONE,
  WEFT_LINE_OF_POWERS,
  WEFT_LINE_EXPONENTIAL,
  WEFT_LINE_WAVE,
  WEFT_LINE_SERIES
} weft_line_kind;

/* ---- forms.c ---- */

typedef struct weft_line_form {
  weft_line_kind form;
  int terms, sides;                            /* moments of a cell and column: terms for each side that has its own */
  int odd;                                     /* the two sides of a query differ */
  double factor[WEFT_LINE_POWERS];             /* of powers of r scale / h */
  double scale, width;                         /* width: of a cell, in bandwidths */
  double rounding;                             /* of a sum, over the weights that are summed */
  double max_product[WEFT_LINE_MAX_TERMS + 1]; /* of a series: the greatest |v| |u| that so many terms suffice for */
} weft_line_form;

/* How a kernel is summed; form WEFT_LINE_NONE where it has no such sums. tolerance: relative, of series. */
weft_line_form weft_line_form_of(int kind, double tolerance);
/* A series for cells of an eighth of the bandwidth, for queries as far from a cell as n references may matter. */
weft_line_form weft_line_narrow_series(double tolerance, size_t n);
/* exp(-u²/2) for |u| <= 1/4, 8 lanes, to rounding; 1 / t of a series' terms t = 1, 2, ... */
void weft_line_bell(const double *u, double *value);
extern const double weft_line_over[WEFT_LINE_MAX_TERMS];
/* Moments of up to 8 references at once: adds w * basis to sums[(side * terms + t) * m + c], 8 lanes each. u, w: 8
 * lanes; lanes without a reference have weight 0. */
void weft_line_add_moments(const weft_line_form *form, const double *u, const double *w, size_t m, double *sums);
/* Adds to sum[c] what moments give a query at v, whose references lie on its left (side 1) or right (-1); reach: the
 * greatest |u|. Returns 0 where a series has too few terms, and adds nothing. */
int weft_line_evaluate(const weft_line_form *form, const double *moments, double v, int side, double reach, size_t m,
                       double *sum);
/* A distance in bandwidths from which on the kernel is at most `value`, in (0, 1). Kernels without an end. */
double weft_line_reach(const weft_line_form *form, double value);

/* ---- build.c ---- */

typedef struct weft_line_cell {
  size_t first, count;          /* references, in their order here */
  size_t block;                 /* the first */
  double lo, hi, middle, reach; /* reach: greatest |u| */
} weft_line_cell;

typedef struct weft_line {
  const weft_kernel_task *task;
  weft_line_form form;
  double per_unit;                    /* u = (x - middle) * per_unit */
  size_t n, m, cells, blocks, stride; /* stride: moments of all columns */
  size_t most;                        /* references of a cell */
  double *x, *w;                      /* in order; NULL where references were scattered */
  uint32_t *order;
  weft_line_cell *cell;
  double *total;          /* cells * stride */
  double *before, *after; /* blocks * stride: of the blocks before and after each in its cell; NULL where not needed */
  double *left, *right;   /* (cells + 1) * m: weights of the cells before, and from here on */
} weft_line;

weft_status weft_line_build(weft_ctx *ctx, weft_arena *mem, const weft_kernel_task *task, weft_line *line);

/* ---- scatter.c ---- */

/* The same for a form of weft_line_narrow_series(), with neither references nor blocks. *done = 0 where cells would be
 * too many, or too narrow beside the coordinates. Some weight is positive. */
weft_status weft_line_scatter(weft_ctx *ctx, weft_arena *mem, const weft_kernel_task *task, weft_line *line, int *done);
