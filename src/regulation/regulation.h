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

/* ---- scores and halves ---- */

/* How columns become scores. quantile: of the ranks 1, 1.5, 2 .. n; by_rank: from 0 to 1. */
typedef struct {
  const double *quantile;
  double by_rank;
  int32_t most;
} weft_regulation_scale;

/* out (n × p): every column of x becomes quantile[2 rank - 2] (ranks are averages over ties); then by_rank times that
 * plus 1 - by_rank times the distance from the median in normal units, limited to the range of the quantiles. */
weft_status weft_regulation_places(weft_ctx *ctx, const double *x, size_t n, size_t p,
                                   const weft_regulation_scale *scale, double *out);

/* out (n × p): places, or x itself where `quantile` is NULL; their distances from the mean in parts of the greatest
 * one, times `most`, rounded. Constants become 0. */
weft_status weft_regulation_scores(weft_ctx *ctx, const double *x, size_t n, size_t p,
                                   const weft_regulation_scale *scale, int32_t *out);

/* What a row's draws depend on: its values, so that neither its place nor the other rows matter. `again` counts earlier
 * rows of the same values. */
typedef struct {
  uint64_t values;
  uint32_t again;
} weft_regulation_name;
weft_status weft_regulation_names(weft_ctx *ctx, const double *x, size_t n, size_t p, weft_regulation_name *out);

/* out (m × 2 pairs, m up to n): rows from 0, ascending; columns 2k and 2k + 1 have no row in common where m is up to
 * n / 2, and else as few as can be. */
weft_status weft_regulation_halves(weft_ctx *ctx, const weft_regulation_name *names, size_t n, size_t m, size_t pairs,
                                   uint64_t key, int32_t *out);

/* out (n × count): rows from 0, each column in an order drawn anew. Streams from WEFT_REGULATION_ORDERS on are for
 * them. */
enum { WEFT_REGULATION_ORDERS = 2 };
weft_status weft_regulation_orders(weft_ctx *ctx, const weft_regulation_name *names, size_t n, size_t count,
                                   uint32_t stream, uint64_t key, int32_t *out);

/* out (n × copies): for every row another one; each column is one cycle through all rows. */
weft_status weft_regulation_partners(weft_ctx *ctx, const weft_regulation_name *names, size_t n, size_t copies,
                                     uint64_t key, int32_t *out);

/* Sparse values, n × p by columns: rows of column g at starts[g] .. starts[g + 1] - 1. size: what each row's values are
 * divided by, or NULL. */
typedef struct {
  size_t n, p;
  const int32_t *starts, *rows;
  const double *values, *size;
} weft_regulation_counts_of;

/* The same scores: out, one for each stored value; absent, of each gene where nothing is stored. */
weft_status weft_regulation_cell_scores(weft_ctx *ctx, const weft_regulation_counts_of *x, const double *quantile,
                                        int32_t most, int16_t *out, int32_t *absent);

/* ---- selection ---- */

/* Sparse scores, and halves that are unions of blocks of rows. */
typedef struct weft_regulation_cells {
  const int32_t *starts, *rows; /* as above */
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

/* Selection with cells on the CPU, which `select` of its table leads to. */
weft_status weft_regulation_select_cells(weft_ctx *ctx, const weft_regulation_job *job, int32_t *choices);

/* Which regulator each target is, or -1. */
weft_status weft_regulation_own(weft_arena *mem, const weft_regulation_job *job, int32_t **out);

/* The halves dealt over the call's devices, pair by pair. */
weft_status weft_regulation_spread(weft_ctx *ctx, const weft_regulation_ops *ops, const weft_regulation_job *job,
                                   int32_t *choices);

/* For every gene among `gene` (columns of the job's scores) the variance, over the job's targets, of its squared
 * correlation: it is large for regulators of many genes. On the CPU. */
weft_status weft_regulation_hubs(weft_ctx *ctx, const weft_regulation_job *job, double *out);

/* ---- edges ---- */

typedef struct weft_regulation_chosen {
  size_t regulators, targets, worlds, halves, steps;
  const int32_t *choices;
  size_t world; /* 0: the data; else the null copy */
} weft_regulation_chosen;

/* counts[t]: how many regulators were ever chosen for target t. sums, squares: of each regulator's areas (below), over
 * targets. */
weft_status weft_regulation_counts(weft_ctx *ctx, const weft_regulation_chosen *chosen, double *counts, double *sums,
                                   double *squares);

/* Edges of target t at starts[t] .. starts[t + 1] - 1, by regulator. area: sum over halves of steps - step;
 * signed_area: with the sign of the effect; times: in how many halves; both: in how many pairs of halves twice. */
typedef struct {
  int32_t *regulator, *target, *area, *signed_area, *times, *both;
} weft_regulation_edges;

/* out (regulators × targets): area / full times the regulator's share, 0 where there is no edge. */
weft_status weft_regulation_weights(weft_ctx *ctx, const weft_regulation_edges *edges, const double *starts,
                                    size_t regulators, size_t targets, double full, const double *share, double *out);
weft_status weft_regulation_list(weft_ctx *ctx, const weft_regulation_chosen *chosen, const double *starts,
                                 const weft_regulation_edges *out);

#ifdef __cplusplus
}
#endif
