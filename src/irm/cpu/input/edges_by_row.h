/* From edge lists to the graph that the samplers read; see edges_by_row.c. */
#pragma once

#include "core/call/arena.h"
#include "irm/irm.h"

/* Puts pairs (from, to), counted from 0, into canonical order in `arena`: undirected ones get from <= to, duplicates
 * count once (weight NULL) or add up, the diagonal of a one-mode graph goes when `self` is 0, and so do links whose
 * pair is in `missing` (may be NULL). Pairs of weight 0 are left out. */
weft_status weft_irm_edges_make(weft_ctx *ctx, weft_arena *arena, weft_irm_type type, int self, const int64_t n[2],
                                int64_t count, const int32_t *from, const int32_t *to, const int32_t *weight,
                                const weft_irm_edges *missing, weft_irm_edges *out);

/* The canonical list by row of one by column, which is checked first; without the diagonal if it is to be dropped. */
weft_status weft_irm_edges_turn(weft_ctx *ctx, weft_arena *arena, const weft_irm_edges *columns, int drop_diagonal,
                                weft_irm_edges *out);

/* Puts the rows of a shard behind the `row` rows and `count` entries of a longer list; `weight` may be NULL. */
weft_status weft_irm_edges_append(weft_ctx *ctx, const weft_irm_edges *shard, int64_t row, int64_t count, double *start,
                                  int32_t *to, int32_t *weight);

/* Both orders of links and missing pairs; WEFT_ERR_INPUT, with what is wrong, when the lists are not canonical or share
 * a pair. `unit` of real values, or 0; `log_scale`: log of what they were divided by. */
weft_status weft_irm_graph_make(weft_ctx *ctx, weft_arena *arena, weft_irm_type type, int self,
                                const weft_irm_edges *links, const weft_irm_edges *missing, double unit,
                                double log_scale, weft_irm_graph *out);

/* The first entry of row i at or after column j. */
static inline int64_t weft_irm_first_from(const weft_irm_edges *edges, int64_t i, int64_t j)
{
  int64_t low = (int64_t) edges->start[i], high = (int64_t) edges->start[i + 1];
  while (low < high) {
    const int64_t mid = low + (high - low) / 2;
    if (edges->to[mid] < j)
      low = mid + 1;
    else
      high = mid;
  }
  return low;
}
