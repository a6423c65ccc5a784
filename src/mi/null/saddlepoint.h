/* What saddlepoint.c and smooth.c share: the state of a smooth law, and its cumulants at one theta. */
#pragma once

#include "mi/null/law.h"
#include "mi/null/smooth.h"

#define WEFT_MI_MAX_KNOTS 160

typedef struct {
  double log_sum, mean, v, k3, k4, f, fx, ff;
} weft_mi_cell;

typedef struct {
  double theta, k, slope, curvature, score, y;
} weft_mi_knot;

struct weft_mi_smooth {
  const weft_mi_logs *logs;
  weft_mi_groups groups; /* groups of levels (g) and of classes (h), fewer of these */
  double a;              /* df / 2 */
  double alpha[WEFT_MI_MAX_CELLS], beta[WEFT_MI_MAX_GROUPS], at_alpha[WEFT_MI_MAX_CELLS], at_beta[WEFT_MI_MAX_GROUPS];
  double step_alpha[WEFT_MI_MAX_CELLS], step_beta[WEFT_MI_MAX_GROUPS], d[WEFT_MI_MAX_CELLS], e[WEFT_MI_MAX_GROUPS];
  double chol[WEFT_MI_MAX_GROUPS * WEFT_MI_MAX_GROUPS], z[WEFT_MI_MAX_GROUPS * WEFT_MI_MAX_GROUPS];
  double b[WEFT_MI_MAX_CELLS];
  weft_mi_cell cell[WEFT_MI_MAX_CELLS];
  double anchor[WEFT_MI_MAX_CELLS];
  uint32_t stride[WEFT_MI_MAX_CELLS];
  double theta, *ratio; /* ratio[x]: exp(theta (f(x + 1) - f(x))) / (x + 1), x < filled */
  size_t filled, room;
  weft_mi_knot knots[WEFT_MI_MAX_KNOTS];
  size_t first, last;     /* knots in use */
  double shift, widening; /* of the mean and the variance */
  double *rooms[2];
  int turned; /* whether g are groups of classes */
  struct {
    double theta, z, alpha[WEFT_MI_MAX_CELLS], beta[WEFT_MI_MAX_GROUPS];
  } tilt[WEFT_MI_TILTS + 2];
  /* and what there is at theta = 0 and at the knot before */
};

/* Puts the law of these margins at theta = 0. 0 where they are of more kinds than there is room for. */
int weft_mi_saddle_begin(weft_mi_smooth *law, const weft_mi_margins *margins, const weft_mi_logs *logs);
/* How far theta has to go for a change that counts: of a gamma distribution, a share of the way to its pole at 1; of
 * one that is nearly normal, some standard deviations of S. */
double weft_mi_saddle_unit(const weft_mi_smooth *law, double curvature);
/* K and two derivatives at theta, where alpha and beta are near. tangent: how alpha and then beta change with theta. 0
 * where there is no saddlepoint. */
int weft_mi_saddle_at(weft_mi_smooth *law, double theta, double *tangent, weft_mi_knot *out);
