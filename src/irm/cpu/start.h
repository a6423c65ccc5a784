/* Clusters for a chain to start from; see start.c. */
#pragma once

#include "irm/irm.h"

/* Labels to start chain `number` from, at most k[mode] clusters of each mode; z[1] is not used in a one-mode graph. */
weft_status weft_irm_start(weft_ctx *ctx, const weft_irm_graph *graph, uint64_t key, const int32_t k[2],
                           uint32_t number, int32_t *const z[2]);
