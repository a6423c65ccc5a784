/* Where orders settle: best places of single nodes, from a table; see best_places.c. */
#pragma once

#include "bn/bn.h"

typedef struct weft_bn_settle {
  size_t starts, kicks, best; /* kicks: of each start; best: how many graphs to keep */
  uint64_t key, first;        /* draws depend on both, and on the start's number */
  int32_t *order;             /* p × starts: in, the orders to start from; out, where they settled */
  double *end;                /* starts: the score there */
  int32_t *best_sets;         /* p × best, best first: index within the node's sets of each node */
  double *best_score;
  size_t found;
} weft_bn_settle;

weft_status weft_bn_settle_run(weft_ctx *ctx, const weft_bn_table *table, weft_bn_settle *job);
