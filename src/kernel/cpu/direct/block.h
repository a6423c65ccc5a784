/* What direct sums and walks share: a block of up to 32 queries laid out for the tiles, and its compensated totals. */
#pragma once

#include <string.h>
#include "kernel/both/scalar.h"
#include "kernel/cpu/direct/tile_portable.h"

#define WEFT_RUN 256 /* references added without compensation before they join a compensated total */

typedef struct weft_block_query {
  size_t first, count;           /* queries */
  double *q, *q_lo, *shift;      /* d * WEFT_TILE each, q_lo NULL without low parts; WEFT_TILE */
  double *total, *rest, *inside; /* m * WEFT_TILE */
  double *sum;                   /* m * WEFT_TILE, scratch */
} weft_block_query;

/* Doubles of memory that a block needs. */
static inline size_t weft_block_size(size_t d, size_t m) { return WEFT_TILE * (2 * d + 1 + 4 * m); }

static inline weft_block_query weft_block_in(double *memory, size_t d, size_t m, int pairs)
{
  weft_block_query block;
  memset(&block, 0, sizeof block);
  block.q = memory, memory += d * WEFT_TILE;
  block.q_lo = pairs ? memory : NULL, memory += d * WEFT_TILE;
  block.shift = memory, memory += WEFT_TILE;
  block.total = memory, memory += m * WEFT_TILE;
  block.rest = memory, memory += m * WEFT_TILE;
  block.inside = memory, memory += m * WEFT_TILE;
  block.sum = memory;
  return block;
}

/* Lanes without a query repeat the last one. */
static inline void weft_block_load(weft_block_query *block, const weft_points *query, size_t first, size_t count,
                                   size_t m)
{
  const size_t d = query->d;
  block->first = first, block->count = count;
  for (size_t lane = 0; lane < WEFT_TILE; lane++) {
    size_t i = (first + (lane < count ? lane : count - 1)) * d;
    for (size_t j = 0; j < d; j++) {
      block->q[j * WEFT_TILE + lane] = query->x[i + j];
      if (block->q_lo) block->q_lo[j * WEFT_TILE + lane] = query->lo[i + j];
    }
    block->shift[lane] = 0;
  }
  memset(block->total, 0, 3 * m * WEFT_TILE * sizeof *block->total);
}

/* Adds references first .. first + count - 1, none of which a query leaves out. */
static inline void weft_block_add_run(weft_block_query *block, const weft_kernel_task *task, weft_tile_sum tile,
                                      size_t first, size_t count)
{
  const size_t d = task->reference.d, m = task->m;
  for (size_t from = first; from < first + count; from += WEFT_RUN) {
    size_t rows = first + count - from < WEFT_RUN ? first + count - from : WEFT_RUN;
    weft_tile t = { block->q,
                    block->q_lo,
                    task->reference.x + from * d,
                    task->reference.lo ? task->reference.lo + from * d : NULL,
                    task->weights + from * m,
                    block->shift,
                    d,
                    m,
                    rows,
                    1 / (task->h * task->h),
                    weft_distance_error(d),
                    block->sum,
                    block->inside };
    memset(block->sum, 0, m * WEFT_TILE * sizeof *block->sum);
    tile(&t, task->kind);
    for (size_t i = 0; i < m * WEFT_TILE; i++) weft_add_to(&block->total[i], &block->rest[i], block->sum[i]);
  }
}

/* Pair by pair, leaving reference i out of query i. */
static inline void weft_block_add_pairs(weft_block_query *block, const weft_kernel_task *task, size_t first,
                                        size_t count)
{
  for (size_t lane = 0; lane < block->count; lane++)
    for (size_t k = first; k < first + count; k++) {
      if (weft_left_out(task, block->first + lane, k)) continue;
      double value = weft_kernel_pair(task->kind, &task->query, block->first + lane, &task->reference, k, task->h,
                                      block->shift[lane]);
      for (size_t c = 0; c < task->m; c++)
        weft_add_to(&block->total[c * WEFT_TILE + lane], &block->rest[c * WEFT_TILE + lane],
                    task->weights[k * task->m + c] * value);
    }
}

/* Pair by pair only in the runs of 32 references that some query leaves out. */
static inline void weft_block_add_but_own(weft_block_query *block, const weft_kernel_task *task, weft_tile_sum tile,
                                          size_t first, size_t count)
{
  size_t plain = first;
  for (size_t from = first, rows; from < first + count; from += rows) {
    int own = 0;
    rows = first + count - from < WEFT_TILE ? first + count - from : WEFT_TILE;
    for (size_t lane = 0; lane < block->count; lane++)
      own |=
          task->own[block->first + lane] >= (int64_t) from && task->own[block->first + lane] < (int64_t) (from + rows);
    if (!own) continue;
    weft_block_add_run(block, task, tile, plain, from - plain);
    weft_block_add_pairs(block, task, from, rows);
    plain = from + rows;
  }
  weft_block_add_run(block, task, tile, plain, first + count - plain);
}

/* Adds references first .. first + count - 1 to the sums of the block's queries. Where a query leaves one of them out,
 * that run is added pair by pair and the rest by tiles. */
static inline void weft_block_add(weft_block_query *block, const weft_kernel_task *task, weft_tile_sum tile,
                                  size_t first, size_t count)
{
  size_t last = first + count, own = task->own_first + block->first, own_last = own + block->count;
  if (task->leave_one_out && task->own) {
    weft_block_add_but_own(block, task, tile, first, count);
    return;
  }
  if (!task->leave_one_out || own >= last || own_last <= first) {
    weft_block_add_run(block, task, tile, first, count);
    return;
  }
  if (own < first) own = first;
  if (own_last > last) own_last = last;
  weft_block_add_run(block, task, tile, first, own - first);
  weft_block_add_pairs(block, task, own, own_last - own);
  weft_block_add_run(block, task, tile, own_last, last - own_last);
}

/* True when rounding near the boundary of a compact kernel may matter in a lane: more than `allowed` of the sum. */
static inline int weft_block_doubtful(const weft_block_query *block, const weft_kernel_task *task, size_t lane,
                                      double allowed)
{
  const double error = weft_distance_error(task->reference.d);
  if (!weft_kernel_compact(task->kind)) return 0;
  for (size_t c = 0; c < task->m; c++) {
    double inside = block->inside[c * WEFT_TILE + lane], sum = block->total[c * WEFT_TILE + lane];
    if (weft_kernel_step(task->kind) ? inside > 0 : error * inside > allowed * sum) return 1;
  }
  return 0;
}
