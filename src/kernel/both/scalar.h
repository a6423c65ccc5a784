/* One pair at a time, with more digits: cases that the tiles leave undecided are decided here.
 *
 * Near the boundary of a compact kernel all of k is in 1 - s, where s = r²/h². It is computed in pairs of doubles
 * (Dekker 1971; two_sum after Knuth), exact to 2^-100 or so, so that ties on a lattice are ties. */
#pragma once

#include "kernel/kernel.h"

typedef struct weft_dd {
  double hi, lo;
} weft_dd;

static WEFT_HD inline weft_dd weft_two_sum(double a, double b)
{
  double s = a + b, t = s - a;
  weft_dd r = { s, (a - (s - t)) + (b - t) };
  return r;
}

static WEFT_HD inline weft_dd weft_dd_add(weft_dd a, weft_dd b)
{
  weft_dd s = weft_two_sum(a.hi, b.hi), t = weft_two_sum(a.lo, b.lo);
  s = weft_two_sum(s.hi, s.lo + t.hi);
  return weft_two_sum(s.hi, s.lo + t.lo);
}

static WEFT_HD inline weft_dd weft_dd_mul(weft_dd a, weft_dd b)
{
  double p = a.hi * b.hi, e = fma(a.hi, b.hi, -p);
  e += a.hi * b.lo + a.lo * b.hi;
  return weft_two_sum(p, e);
}

static WEFT_HD inline weft_dd weft_dd_div(weft_dd a, double b)
{
  double q = a.hi / b, rest = fma(-q, b, a.hi) + a.lo;
  return weft_two_sum(q, rest / b);
}

static WEFT_HD inline double weft_square_distance(const weft_points *a, size_t i, const weft_points *b, size_t k)
{
  const size_t d = a->d;
  double sum = 0;
  for (size_t j = 0; j < d; j++) {
    double gap = a->x[i * d + j] - b->x[k * d + j];
    if (a->lo) gap += a->lo[i * d + j] - b->lo[k * d + j];
    sum += gap * gap;
  }
  return sum;
}

/* 1 - r²/h², correctly signed. */
static WEFT_HD inline double weft_inside_exactly(const weft_points *a, size_t i, const weft_points *b, size_t k,
                                                 double h)
{
  const size_t d = a->d;
  weft_dd sum = { 0, 0 };
  for (size_t j = 0; j < d; j++) {
    weft_dd gap = weft_two_sum(a->x[i * d + j], -b->x[k * d + j]);
    if (a->lo) gap = weft_dd_add(gap, weft_two_sum(a->lo[i * d + j], -b->lo[k * d + j]));
    sum = weft_dd_add(sum, weft_dd_mul(gap, gap));
  }
  weft_dd square = { h * h, fma(h, h, -(h * h)) }, minus = { -sum.hi, -sum.lo }, rest = weft_dd_add(square, minus);
  return (rest.hi + rest.lo) / square.hi;
}

/* k of one pair, good to 1e-13 of itself. */
static WEFT_HD inline double weft_kernel_pair(int kind, const weft_points *a, size_t i, const weft_points *b, size_t k,
                                              double h, double shift)
{
  double s = weft_square_distance(a, i, b, k) / (h * h);
  if (!weft_kernel_compact(kind) || s > 1.0625) return weft_kernel_of(kind, s, shift);
  if (weft_kernel_step(kind) && s < 0.9375) return 1;
  const int near_end = s > 0.75; /* 1 - s has the digits of k there, s those of r where it is small */
  const double t = near_end ? weft_inside_exactly(a, i, b, k, h) : 1 - s;
  if (weft_kernel_step(kind)) return t >= 0;
  return t > 0 ? weft_kernel_inside(kind, t, near_end ? 1 - t : s) : 0;
}

/* Compensated addition to total + rest. */
static WEFT_HD inline void weft_add_to(double *total, double *rest, double v)
{
  weft_dd s = weft_two_sum(*total, v);
  *total = s.hi;
  *rest += s.lo;
}
