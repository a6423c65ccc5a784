/* What a kernel is of a cell's moments; line.h has the formulas. */
#pragma once

#include "kernel/kernel.h"

#define WEFT_LINE_MAX_TERMS 32
#define WEFT_LINE_POWERS 6

typedef enum weft_line_kind {
  WEFT_LINE_NONE,
  WEFT_LINE_OF_POWERS,
  WEFT_LINE_EXPONENTIAL,
  WEFT_LINE_WAVE,
  WEFT_LINE_SERIES
} weft_line_kind;

typedef struct weft_line_form {
  weft_line_kind form;
  int terms, sides;                            /* moments of a cell and column: terms for each side that has its own */
  int odd;                                     /* the two sides of a query differ */
  double factor[WEFT_LINE_POWERS];             /* of powers of r scale / h */
  double scale, width;                         /* width: of a cell, in bandwidths */
  double rounding;                             /* of a sum, over the weights that are summed */
  double max_product[WEFT_LINE_MAX_TERMS + 1]; /* of a series: the greatest |v| |u| for which t terms suffice */
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
