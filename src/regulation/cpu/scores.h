/* Scores of genes, draws of halves and orders, and phases of work. */
#pragma once

#include "regulation/regulation.h"

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

/* Which regulator each target is, or -1. */
weft_status weft_regulation_own(weft_arena *mem, const weft_regulation_job *job, int32_t **out);

/* Phases: items that threads share; between runs of them the user is asked whether to stop. */

/* Operations that a thread does between two polls: some 30 ms. */
#define WEFT_REGULATION_ITEMS 1e8

typedef struct weft_regulation_phase {
  size_t first, count, halves; /* halves that are worked on, of all: what progress reports */
  size_t items;
  double cost; /* of an item: a rough number of operations */
} weft_regulation_phase;

typedef void weft_regulation_item(const void *engine, size_t item, int thread);
weft_status weft_regulation_items(weft_ctx *ctx, const weft_regulation_phase *phase, weft_regulation_item *work,
                                  const void *engine);
