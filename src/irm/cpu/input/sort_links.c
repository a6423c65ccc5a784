/* Pairs of nodes to canonical lists, by threads; see edges_by_row.h.
 *
 * The entries of each row are counted and put together, a range of rows per thread, which looks at all pairs; then the
 * rows are sorted one by one, and duplicates added up. The result depends on neither order nor threads. */
#include <stdlib.h>
#include <string.h>
#include "core/call/parallel.h"
#include "irm/cpu/input/edges_by_row.h"

/* Pairs between two polls, and rows that a thread sorts at once. */
enum { POLL_PAIRS = 1 << 25, PIECE = 256, SHORT = 24 };

/* Pairs as they came; undirected ones have their smaller node first. */
typedef struct {
  weft_irm_type type;
  int64_t count;
  const int32_t *from, *to, *weight;
} pair_list;

/* A link of a row. */
typedef struct {
  int32_t to, weight;
} entry;

static int by_node(const void *a, const void *b)
{
  const entry *x = a, *y = b;
  return (x->to > y->to) - (x->to < y->to);
}

static void sort_row(entry *row, int64_t count)
{
  if (count > SHORT) {
    qsort(row, (size_t) count, sizeof *row, by_node);
    return;
  }
  for (int64_t i = 1; i < count; i++) {
    const entry one = row[i];
    int64_t at = i;
    for (; at > 0 && row[at - 1].to > one.to; at--) row[at] = row[at - 1];
    row[at] = one;
  }
}

/* Counts (to NULL) or places those of pairs first .. last - 1 that belong to rows low .. high - 1. */
static void deal_pairs(const pair_list *pairs, int64_t first, int64_t last, int64_t low, int64_t high, int64_t *next,
                       entry *to)
{
  for (int64_t at = first; at < last; at++) {
    const int turn = pairs->type == WEFT_IRM_UNDIRECTED && pairs->from[at] > pairs->to[at];
    const int32_t i = turn ? pairs->to[at] : pairs->from[at], j = turn ? pairs->from[at] : pairs->to[at];
    if (i < low || i >= high) continue;
    if (to) to[next[i]] = (entry){ j, pairs->weight ? pairs->weight[at] : 1 };
    next[i]++;
  }
}

/* deal_pairs() of all pairs, by threads. */
static weft_status deal_all(weft_ctx *ctx, const pair_list *pairs, int64_t n, int64_t *next, entry *to)
{
  weft_status st = WEFT_OK;
  const int ranges = weft_threads_worth(ctx->threads, (double) pairs->count);
  for (int64_t first = 0, last; first < pairs->count; first = last) {
    last = first + POLL_PAIRS < pairs->count ? first + POLL_PAIRS : pairs->count;
    WEFT_PARALLEL_FOR(ranges, static)
    for (int range = 0; range < ranges; range++)
      deal_pairs(pairs, first, last, n * range / ranges, n * (range + 1) / ranges, next, to);
    WEFT_TRY(weft_poll(ctx, (double) last, (double) pairs->count));
  }
done:
  return st;
}

static int is_listed(const weft_irm_edges *list, int64_t i, int32_t j)
{
  if (!list || !list->count) return 0;
  int64_t low = (int64_t) list->start[i], high = (int64_t) list->start[i + 1];
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (list->to[middle] < j)
      low = middle + 1;
    else
      high = middle;
  }
  return low < (int64_t) list->start[i + 1] && list->to[low] == j;
}

/* Sorts row i, adds up duplicates, and drops unwanted pairs. Returns how many are left, or -1 - column where counts are
 * too large.
 */
static int64_t tidy_row(entry *row, int64_t count, int64_t i, int drop_diagonal, const weft_irm_edges *missing)
{
  int64_t kept = 0;
  sort_row(row, count);
  for (int64_t at = 0, next; at < count; at = next) {
    const int32_t j = row[at].to;
    int64_t sum = 0;
    for (next = at; next < count && row[next].to == j; next++) sum += row[next].weight;
    if (sum == 0 || (drop_diagonal && j == i) || is_listed(missing, i, j)) continue;
    if (sum > INT32_MAX) return -1 - (int64_t) j;
    row[kept++] = (entry){ j, (int32_t) sum };
  }
  return kept;
}

/* Sum of the counts of a pair that are too large together. */
static long long sum_of_pair(const pair_list *pairs, int64_t i, int64_t j)
{
  long long sum = 0;
  for (int64_t at = 0; at < pairs->count; at++) {
    const int32_t a = pairs->from[at], b = pairs->to[at];
    if ((a == i && b == j) || (pairs->type == WEFT_IRM_UNDIRECTED && a == j && b == i)) sum += pairs->weight[at];
  }
  return sum;
}

/* An input error when counts of one pair pass 2^31 - 1. */
weft_status weft_irm_edges_make(weft_ctx *ctx, weft_arena *arena, weft_irm_type type, int self, const int64_t n[2],
                                int64_t count, const int32_t *from, const int32_t *to, const int32_t *weight,
                                const weft_irm_edges *missing, weft_irm_edges *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const pair_list pairs = { type, count, from, to, weight };
  const int drop_diagonal = type != WEFT_IRM_BIPARTITE && !self;
  int32_t *kept_to, *kept_weight = NULL;
  int64_t *start, *next;
  entry *rows;
  double *offsets;
  WEFT_TAKE0(next, &mem, (size_t) n[0] + 1);
  WEFT_TAKE(start, &mem, (size_t) n[0] + 1);
  WEFT_TAKE(rows, &mem, (size_t) count + 1);
  WEFT_TRY(deal_all(ctx, &pairs, n[0], next, NULL));
  start[0] = 0;
  for (int64_t i = 0; i < n[0]; i++) start[i + 1] = start[i] + next[i];
  memcpy(next, start, (size_t) (n[0] + 1) * sizeof *next);
  WEFT_TRY(deal_all(ctx, &pairs, n[0], next, rows));
  for (int64_t first = 0, last = 0; first < n[0]; first = last) {
    while (last < n[0] && start[last] - start[first] < POLL_PAIRS / 16) last++;
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, 20 * (double) (start[last] - start[first])), dynamic)
    for (int64_t some = first; some < last; some += PIECE)
      for (int64_t i = some; i < last && i < some + PIECE; i++)
        next[i] = tidy_row(rows + start[i], start[i + 1] - start[i], i, drop_diagonal, missing);
    WEFT_TRY(weft_poll(ctx, (double) last, (double) n[0]));
  }
  WEFT_TAKE(offsets, arena, (size_t) n[0] + 1);
  offsets[0] = 0;
  for (int64_t i = 0; i < n[0]; i++) {
    offsets[i + 1] = offsets[i] + (double) next[i];
    if (next[i] >= 0) continue;
    st = weft_fail(ctx, WEFT_ERR_INPUT,
                   "The counts of one pair must add up to at most 2147483647; those of row %lld and "
                   "column %lld add up to %lld.",
                   (long long) i + 1, (long long) -next[i], sum_of_pair(&pairs, i, -1 - next[i]));
    goto done;
  }
  const int64_t kept = (int64_t) offsets[n[0]];
  WEFT_TAKE(kept_to, arena, (size_t) kept + 1);
  if (weight) WEFT_TAKE(kept_weight, arena, (size_t) kept + 1);
  WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) kept), static)
  for (int64_t i = 0; i < n[0]; i++)
    for (int64_t at = 0, to_at = (int64_t) offsets[i]; at < next[i]; at++, to_at++) {
      kept_to[to_at] = rows[start[i] + at].to;
      if (weight) kept_weight[to_at] = rows[start[i] + at].weight;
    }
  *out = (weft_irm_edges){ { n[0], n[1] }, kept, offsets, kept_to, kept_weight };
done:
  weft_arena_end(&mem);
  return st;
}
