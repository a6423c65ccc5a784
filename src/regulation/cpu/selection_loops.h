/* The CPU's inner loops, in variants behind one table (core/call/simd.h chooses).
 *
 * Scores of a half are kept as pairs: two rows' 16-bit scores in 32 bits, kp = ceil(m / 2) pairs per gene, an odd last
 * one with 0.
 *
 *   row form      pairs[gene][kp]                     what is broadcast
 *   panel form    pairs[panel][kp][16 genes]          what fills vectors
 *
 * Features stand part by part: `padded` of the positive parts max(z, 0), then as many of the negative ones min(z, 0);
 * without hinges, z alone. padded is the number of regulators, rounded up to whole panels, or two where features are
 * screened; what is beyond them is 0. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include "regulation/limits.h"
#include "core/call/arena.h"

/* With fewer regulators than SCREENED, all gains are computed sooner than a screen pays. */
enum { WEFT_REGULATION_LANES = 16, WEFT_REGULATION_KINDS = 3 };

static inline size_t weft_regulation_padded(size_t regulators)
{
  const size_t step = regulators < WEFT_REGULATION_SCREENED ? 16 : 32;
  return (regulators + step - 1) / step * step;
}

/* One half, as all its targets see it. */
typedef struct weft_regulation_half {
  size_t regulators, padded, steps, kp;
  int hinges;
  double m;
  /* sums of products of all features; NULL where they are found from scores: in row form by kind, and in panels */
  const int32_t *products, *rows, *panels;
  double *sum;      /* of each feature's scores */
  double *variance; /* kinds × padded, in the scale of step.h */
  double *least;    /* kinds × padded: weft_regulation_min_residual() */
  /* what features are screened by (screen.c) */
  double *unit;          /* kinds × padded: one over the standard deviation, 0 of constants */
  float *slope, *offset; /* of each feature: m and its sum, in its unit */
  float max_offset;      /* the greatest size of an offset */
  int16_t *part;         /* of each feature: its standard deviation as a share of that of z */
  int16_t *start;        /* kinds × padded: the residual variance before the first step */
  int16_t *near;         /* kinds × padded × features: correlations */
} weft_regulation_half;

/* What a world's regulators are favoured by, and the same in parts of the greatest. */
typedef struct weft_regulation_favour {
  double greatest, least; /* least: in parts of the greatest */
  double *whole;          /* of each regulator, padded with 1 */
  float *parts;
  int16_t *coarse, *root; /* parts, and their roots, rounded up */
} weft_regulation_favour;

weft_status weft_regulation_favours(weft_arena *mem, const double *given, size_t regulators, size_t padded,
                                    size_t worlds, weft_regulation_favour **out);

/* Room for all that belongs to the features of a half, but products and scores. */
weft_status weft_regulation_take_half(weft_arena *mem, weft_regulation_half *half, int screened);

/* Moments of regulator j from the sums and sums of squares of its parts. */
void weft_regulation_note_moments(const weft_regulation_half *half, size_t j, const double *sum, const double *squares);

/* Once those of all regulators are noted. */
void weft_regulation_end_moments(weft_regulation_half *half);

/* A target in a half, as the screen sees it. */
typedef struct weft_regulation_target {
  const int32_t *row; /* its scores */
  double sum, root;   /* of its scores; of its variance, in the scale of step.h */
  float by;           /* from covariances to `near` */
  int16_t *near;      /* of each feature: the correlation in parts of NEAR, in which the screen works */
  double error;       /* of these; from MAX_NEAR on the screen is of no use */
  int64_t own;        /* the regulator that it is itself, or -1 */
} weft_regulation_target;

typedef struct weft_regulation_loops {
  /* out[i * ldo + lane] = sum over pairs of row i times the panel's gene, for i < rows. */
  void (*products)(const int32_t *row, size_t rows, size_t kp, const int32_t *panel, int32_t *out, size_t ldo);
  /* Regulator j's correlations with all features, kind by kind, from the sums of products of its parts. */
  void (*note_near)(const weft_regulation_half *half, size_t j, const int32_t *positive, const int32_t *negative);
  /* Correlations of some targets with the features of the panel that begins at feature `at`, from their sums of
   * products (rows of LANES). */
  void (*correlate)(const weft_regulation_half *half, size_t at, const int32_t *products, size_t targets,
                    const weft_regulation_target *target);
  /* with: the target's sums of products with all features; own: the regulator that it is itself, or -1. */
  void (*select)(const weft_regulation_half *half, const weft_regulation_favour *favour, const int32_t *with,
                 double sum, int64_t own, char *work, int32_t *choice);
} weft_regulation_loops;

const weft_regulation_loops *weft_regulation_loops_here(void);
