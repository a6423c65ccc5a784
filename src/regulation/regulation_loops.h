/* The CPU's inner loops, in variants behind one table (base/simd.h chooses).
 *
 * Scores of a half are kept as pairs: two rows' 16-bit scores in 32 bits, kp = ceil(m / 2) pairs per gene, an odd last
 * one with 0.
 *
 *   row form      pairs[gene][kp]                     what is broadcast
 *   panel form    pairs[panel][kp][16 genes]          what fills vectors
 *
 * Features stand part by part: `padded` of the positive parts max(z, 0), then as many of the negative ones min(z, 0);
 * without hinges, z alone. padded is the number of regulators, rounded up to whole panels; what is beyond them is 0. */
#ifndef WEFT_REGULATION_LOOPS_H
#define WEFT_REGULATION_LOOPS_H

#include <stddef.h>
#include <stdint.h>
#include "../base/context.h"

enum { WEFT_REGULATION_LANES = 16, WEFT_REGULATION_KINDS = 3 };

/* One half, as all its targets see it. */
typedef struct weft_regulation_half {
  size_t regulators, padded, steps;
  int hinges;
  double m;
  const int32_t *products;  /* features × features: sums of products */
  const double *sum;        /* of each feature's scores */
  const double *variance;   /* kinds × padded, in the scale of regulation_step.h */
  const double *least;      /* kinds × padded: weft_regulation_least() */
  const double *favour;     /* of each regulator */
} weft_regulation_half;

/* Doubles that `select` works in. */
static inline size_t weft_regulation_work(size_t padded, size_t steps) { return padded * (8 + 2 * steps); }

typedef struct weft_regulation_loops {
  /* out[i * ldo + lane] = sum over pairs of row i times the panel's gene, for i < rows. */
  void (*products)(const int32_t *row, size_t rows, size_t kp, const int32_t *panel, int32_t *out, size_t ldo);
  /* with: the target's sums of products with all features; own: the regulator that it is itself, or -1. */
  void (*select)(const weft_regulation_half *half, const int32_t *with, double sum, int64_t own, double *work,
                 int32_t *choice);
} weft_regulation_loops;

const weft_regulation_loops *weft_regulation_loops_here(void);

/* ---- phases: items that threads share; between runs of them the user is asked whether to stop ---- */

/* Operations that a thread does between two polls: some 30 ms. */
#define WEFT_REGULATION_ITEMS 1e8

typedef struct weft_regulation_phase {
  size_t first, count, halves; /* halves that are worked on, of all: what progress tells */
  size_t items;
  double cost;                 /* of an item: a rough number of operations */
} weft_regulation_phase;

typedef void weft_regulation_item(const void *engine, size_t item, int thread);
weft_status weft_regulation_items(weft_ctx *ctx, const weft_regulation_phase *phase, weft_regulation_item *work,
                                  const void *engine);

#endif
