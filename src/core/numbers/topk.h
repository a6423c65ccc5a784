/* The k best of very many scored items. The order is total: a higher score comes first, and of equal scores the lower
 * index; so what is kept depends neither on the order of the pushes nor on how they were shared among threads. NaN is
 * never kept.
 *
 * A push is one comparison with the threshold, the worst item that can still get in. What passes goes into a buffer of
 * 2k items; when it is full, a quickselect keeps the best k and raises the threshold. Its depth is bounded: a heap sort
 * takes over from a bad run of pivots, so that no order of pushes is quadratic.
 *
 *   weft_topk best;
 *   WEFT_TRY(weft_topk_init(&best, &mem, k));     one per thread, memory from the caller's arena
 *   weft_topk_push(&best, score, pair);           millions of times
 *   weft_topk_merge(&best, &other);               at the end
 *   size_t found = weft_topk_sort(&best);         best.items[0 .. found - 1], best first */
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include "core/call/arena.h"

typedef struct weft_scored {
  double score;
  uint64_t index; /* below UINT64_MAX, and no two items share one */
} weft_scored;

typedef struct weft_topk {
  weft_scored threshold; /* only what comes before it is worth keeping */
  weft_scored *items;    /* unordered until weft_topk_sort() */
  size_t k, count, capacity;
} weft_topk;

static inline int weft_scored_before(weft_scored a, weft_scored b)
{
  return a.score > b.score || (a.score == b.score && a.index < b.index);
}

static inline weft_status weft_topk_init(weft_topk *top, weft_arena *mem, size_t k)
{
  *top = (weft_topk){ .threshold = { -INFINITY, UINT64_MAX }, .k = k, .capacity = k > SIZE_MAX / 2 ? SIZE_MAX : 2 * k };
  if (!k) {
    top->threshold = (weft_scored){ INFINITY, 0 };
    return WEFT_OK;
  }
  top->items = (weft_scored *) weft_arena_take(mem, top->capacity, sizeof *top->items);
  return top->items ? WEFT_OK : WEFT_ERR_MEMORY;
}

static inline void weft_scored_swap(weft_scored *a, weft_scored *b)
{
  weft_scored c = *a;
  *a = *b, *b = c;
}

/* Heap sort, best first. The heap has its worst item on top. */
static inline void weft_scored_sink(weft_scored *x, size_t i, size_t n)
{
  weft_scored moved = x[i];
  for (size_t child; (child = 2 * i + 1) < n; i = child) {
    if (child + 1 < n && weft_scored_before(x[child], x[child + 1])) child++;
    if (!weft_scored_before(moved, x[child])) break;
    x[i] = x[child];
  }
  x[i] = moved;
}

static inline void weft_scored_sort(weft_scored *x, size_t n)
{
  for (size_t i = n / 2; i-- > 0;) weft_scored_sink(x, i, n);
  for (size_t end = n; end-- > 1;) {
    weft_scored_swap(&x[0], &x[end]);
    weft_scored_sink(x, 0, end);
  }
}

/* Orders the ends and the middle of x[0 .. n - 1], n >= 3, and splits by the middle: returns the pivot's final
 * place. */
static inline size_t weft_scored_split(weft_scored *x, size_t n)
{
  weft_scored *mid = &x[n / 2], *last = &x[n - 1];
  if (weft_scored_before(*mid, *x)) weft_scored_swap(mid, x);
  if (weft_scored_before(*last, *mid)) weft_scored_swap(last, mid);
  if (weft_scored_before(*mid, *x)) weft_scored_swap(mid, x);
  weft_scored pivot = *mid;
  weft_scored_swap(mid, last);
  size_t place = 0;
  for (size_t i = 0; i < n - 1; i++) {
    weft_scored v = x[i];
    x[i] = x[place], x[place] = v;
    place += (size_t) weft_scored_before(v, pivot);
  }
  weft_scored_swap(&x[place], last);
  return place;
}

/* Brings the k best of n items to the front, 0 < k < n, the k-th of them last. */
static inline void weft_scored_select(weft_scored *x, size_t n, size_t k)
{
  int rounds = 16;
  for (size_t m = n; m; m /= 2) rounds += 2;
  while (n > 16 && rounds--) {
    size_t place = weft_scored_split(x, n);
    if (place == k - 1) return;
    if (place >= k)
      n = place;
    else
      x += place + 1, n -= place + 1, k -= place + 1;
  }
  weft_scored_sort(x, n);
}

/* A full buffer down to its best k; the k-th becomes the threshold. */
static inline void weft_topk_shrink(weft_topk *top)
{
  if (top->count <= top->k) return;
  weft_scored_select(top->items, top->count, top->k);
  top->count = top->k;
  top->threshold = top->items[top->k - 1];
}

static inline void weft_topk_push(weft_topk *top, double score, uint64_t index)
{
  weft_scored item = { score, index };
  if (!weft_scored_before(item, top->threshold)) return;
  top->items[top->count++] = item;
  if (top->count == top->capacity) weft_topk_shrink(top);
}

static inline void weft_topk_merge(weft_topk *into, const weft_topk *from)
{
  for (size_t i = 0; i < from->count; i++) weft_topk_push(into, from->items[i].score, from->items[i].index);
}

/* Final order; returns how many there are, at most k. More may be pushed afterwards. */
static inline size_t weft_topk_sort(weft_topk *top)
{
  weft_topk_shrink(top);
  weft_scored_sort(top->items, top->count);
  return top->count;
}
