/* The best graphs that chains have met, and the best graph of an order; see best_graphs.c. */
#pragma once

#include "core/numbers/math.h"
#include "bn/both/chain.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Graphs found, best first; of equal scores the one with the smaller stamp, which says when it was found first. So what
 * is kept does not depend on the order in which graphs are reported. */
typedef struct weft_bn_best {
  size_t most, found;
  int64_t *score;
  uint64_t *hash, *stamp;
  int32_t *sets; /* p × most */
} weft_bn_best;

/* Stamps: by iteration (0: the start), then by temperature; of a saved order its best graph, then the drawn one. */
static WEFT_HD inline uint64_t weft_bn_stamp(uint64_t iteration, uint64_t second) { return iteration * 4096 + second; }

/* Room for the best `most` graphs of p nodes; then adds a graph, if it is among these. */
weft_status weft_bn_best_make(weft_arena *mem, size_t p, size_t most, weft_bn_best *out);
void weft_bn_best_add(weft_bn_best *best, size_t p, int64_t score, uint64_t hash, uint64_t stamp, const int32_t *picks);
/* A quick check that often makes the picks unnecessary. */
static inline int weft_bn_best_wants(const weft_bn_best *best, int64_t score, uint64_t hash, uint64_t stamp)
{
  const size_t last = best->most - 1;
  if (best->found == best->most &&
      (score < best->score[last] || (score == best->score[last] && stamp >= best->stamp[last])))
    return 0;
  for (size_t k = 0; k < best->found; k++)
    if (best->hash[k] == hash) return stamp < best->stamp[k];
  return 1;
}

/* The best graph given each node's predecessors, p masks; the index of each node's set goes to `picks`. Its score. */
int64_t weft_bn_best_graph(const weft_bn_lists *lists, const uint64_t *before, int32_t *picks);

#ifdef __cplusplus
}
#endif
