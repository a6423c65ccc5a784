/* Lists by row of one-mode graphs: without the diagonal, and both ways, a node's smaller neighbours before its greater
 * ones. Threads have a range of nodes each, and look for these in all rows; every list is ascending, so that what is
 * made depends on no thread. */
#include <string.h>
#include "core/call/parallel.h"
#include "irm/cpu/input/both_ways.h"
#include "irm/cpu/input/edges_by_row.h"

/* Rows' entries between two polls; nodes in a range, whose offsets stay in a processor's cache. */
enum { POLL_LINKS = 1 << 24, RANGE = 65536 };

/* Counts (to NULL) or places, as entries of nodes low .. high - 1, the rows first .. last - 1 that have links to them.
 */
static void place_backward(const weft_irm_edges *edges, int64_t first, int64_t last, int64_t low, int64_t high,
                           int64_t *next, int32_t *to, int32_t *weight)
{
  for (int64_t i = first; i < last; i++) {
    const int64_t end = (int64_t) edges->start[i + 1];
    for (int64_t at = low ? weft_irm_first_from(edges, i, low) : (int64_t) edges->start[i];
         at < end && edges->to[at] < high; at++) {
      const int32_t j = edges->to[at];
      if (j == i) continue;
      if (to) to[next[j]] = (int32_t) i;
      if (weight) weight[next[j]] = edges->weight[at];
      next[j]++;
    }
  }
}

static void place_forward(const weft_irm_edges *edges, int64_t i, int64_t next, int32_t *to, int32_t *weight)
{
  for (int64_t at = (int64_t) edges->start[i]; at < (int64_t) edges->start[i + 1]; at++) {
    if (edges->to[at] == i) continue;
    to[next] = edges->to[at];
    if (weight) weight[next] = edges->weight[at];
    next++;
  }
}

/* One of the two passes over all rows: next[] are numbers of entries (to NULL), or where the next ones go. */
static weft_status pass(weft_ctx *ctx, const weft_irm_edges *edges, int backward, int64_t *next, int32_t *to,
                        int32_t *weight)
{
  weft_status st = WEFT_OK;
  const int64_t n = edges->n[0], until = backward ? n : 0;
  const int threads = weft_threads_worth(ctx->threads, (double) edges->count);
  const int64_t each = (n + threads - 1) / threads, range = each < RANGE ? each : RANGE;
  for (int64_t first = 0, last = 0; first < n; first = last) {
    while (last < n && edges->start[last] - edges->start[first] < POLL_LINKS) last++;
    WEFT_PARALLEL_FOR(threads, dynamic)
    for (int64_t low = 0; low < until; low += range)
      place_backward(edges, first, last, low, low + range < n ? low + range : n, next, to, weight);
    WEFT_TRY(weft_poll(ctx, (double) last, (double) n));
  }
done:
  return st;
}

/* Counts the entries of each node, then places them: those from rows above its own, which are smaller, first. */
weft_status weft_irm_lists_make(weft_ctx *ctx, weft_arena *arena, const weft_irm_edges *edges, int backward,
                                weft_irm_lists *out, int64_t *entries)
{
  weft_status st = WEFT_OK;
  const int64_t n = edges->n[0];
  int64_t *start, *next;
  int32_t *to, *weight = NULL;
  weft_arena mem = weft_arena_begin(ctx);
  WEFT_TAKE0(start, arena, (size_t) n + 1);
  WEFT_TAKE0(next, &mem, (size_t) n + 1);
  WEFT_TRY(pass(ctx, edges, backward, next, NULL, NULL));
  WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, 20 * (double) n), static)
  for (int64_t i = 0; i < n; i++) {
    const int64_t own = weft_irm_first_from(edges, i, i), end = (int64_t) edges->start[i + 1];
    start[i + 1] = next[i] + end - (int64_t) edges->start[i] - (own < end && edges->to[own] == i);
  }
  for (int64_t i = 0; i < n; i++) start[i + 1] += start[i];
  memcpy(next, start, (size_t) n * sizeof *next);
  WEFT_TAKE(to, arena, (size_t) start[n] + 1);
  if (edges->weight) WEFT_TAKE(weight, arena, (size_t) start[n] + 1);
  WEFT_TRY(pass(ctx, edges, backward, next, to, weight));
  WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) edges->count), static)
  for (int64_t i = 0; i < n; i++) place_forward(edges, i, next[i], to, weight);
  WEFT_TRY(weft_poll(ctx, 1, 1));
  *out = (weft_irm_lists){ start, to, weight };
  *entries = start[n];
done:
  weft_arena_end(&mem);
  return st;
}
