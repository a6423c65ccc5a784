/* Directed networks by stability-selected forward regression (Haury, Mordelet, Vera-Licona and Vert 2012).
 *
 * Genes come as scores: whole numbers of about 12 bits, small enough for every sum of products over a half of the
 * samples to fit in 32 bits. A regulator z offers the features z, max(z, 0) and min(z, 0); z is the sum of the other
 * two, its parts. So sums of products of parts suffice, and they are exact in any order of addition. For each
 * half of the samples and each target, `steps` features are chosen one after the other: the one whose residual
 * covariance r and residual variance d have the greatest r^2 / d. That is double arithmetic, element by element
 * (step.h): threads, vector variants and devices choose the same features.
 *
 *   scores, halves, partners      scores.c: once, on the host
 *   select                        the back end's: what was chosen, in every half, for every target;
 *                                 sparse_cells.c: of sparse scores
 *   counts, edges                 regulation/cpu/edges.c: choices to edges
 *
 * R's names for them are in R/regulation.R. */
#pragma once

#include "core/call/arena.h"
#include "core/call/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { WEFT_REGULATION_MAX_STEPS = 32, WEFT_REGULATION_MAX_SCORE = 2047 };

/* Sparse scores, and halves that are unions of blocks of rows. */
typedef struct weft_regulation_cells {
  const int32_t *starts, *rows; /* rows of gene g at starts[g] .. starts[g + 1] - 1 */
  const int16_t *scores;
  const int32_t *absent;
  size_t blocks, block_rows;
  const int32_t *position; /* of each row: block times block_rows, plus its place there; or -1 */
  size_t taken;
  const int32_t *chosen; /* taken × halves: blocks of each half; its rows are taken * block_rows */
} weft_regulation_cells;

typedef struct weft_regulation_job {
  size_t n, p;
  const int32_t *scores;              /* n × p, column major */
  const weft_regulation_cells *cells; /* NULL; else in place of `scores` and `rows` */
  size_t regulators, targets;
  const int32_t *regulator, *target; /* columns of `scores`, from 0 */
  size_t m, halves;
  const int32_t *rows; /* m × halves */
  size_t copies;
  /* n × copies: null copies, in which row i of the regulators meets row partner[i] of the targets */
  const int32_t *partner;
  const double *favour; /* regulators × (1 + copies): what r^2 / d is multiplied by, above 0 */
  int hinges;           /* offer max(z, 0) and min(z, 0) too */
  size_t steps;
} weft_regulation_job;

/* A choice: 1 + kind * regulators + regulator, negative where the effect is; 0: nothing was left to choose. Kinds are
 * z, max(z, 0), min(z, 0). Ties go to the smallest. choices: steps × targets × (1 + copies) × halves. */
static inline size_t weft_regulation_choices(const weft_regulation_job *job)
{
  return job->steps * job->targets * (1 + job->copies) * job->halves;
}

typedef struct weft_regulation_ops {
  weft_status (*select)(weft_ctx *ctx, const weft_regulation_job *job, int32_t *choices);
} weft_regulation_ops;

extern const weft_regulation_ops weft_regulation_cpu, weft_regulation_cuda;

#ifdef __cplusplus
}
#endif
