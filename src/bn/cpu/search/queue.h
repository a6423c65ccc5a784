/* The nodes that wait for a better place in an order (best_places.c, climb.c): each once, first come, first served. */
#pragma once

#include <string.h>
#include "core/numbers/draws.h"

typedef struct weft_bn_queue {
  int32_t *node;  /* a ring of p */
  uint8_t *waits; /* p: in the ring */
  size_t p, first, waiting;
} weft_bn_queue;

static inline void weft_bn_queue_add(weft_bn_queue *queue, size_t node)
{
  if (queue->waits[node]) return;
  queue->waits[node] = 1;
  queue->node[(queue->first + queue->waiting++) % queue->p] = (int32_t) node;
}

/* The first one leaves the queue, which has one at least. */
static inline size_t weft_bn_queue_next(weft_bn_queue *queue)
{
  const size_t node = (size_t) queue->node[queue->first];
  queue->first = (queue->first + 1) % queue->p;
  queue->waiting--;
  queue->waits[node] = 0;
  return node;
}

static inline void weft_bn_queue_clear(weft_bn_queue *queue)
{
  memset(queue->waits, 0, queue->p);
  queue->first = queue->waiting = 0;
}

/* 0 .. n-1 in random order; `draws` counts the draws of the stream. */
static inline void weft_bn_random_order(int32_t *order, size_t n, weft_rng rng, uint64_t *draws)
{
  for (size_t k = 0; k < n; k++) order[k] = (int32_t) k;
  for (size_t k = n; k > 1; k--) {
    const size_t at = (size_t) weft_draw_below(rng, (*draws)++, k);
    const int32_t other = order[k - 1];
    order[k - 1] = order[at];
    order[at] = other;
  }
}

/* All nodes wait, in random order. */
static inline void weft_bn_queue_all(weft_bn_queue *queue, weft_rng rng, uint64_t *draws)
{
  memset(queue->waits, 1, queue->p);
  queue->first = 0;
  queue->waiting = queue->p;
  weft_bn_random_order(queue->node, queue->p, rng, draws);
}
