/* The best graph of an order; see best_graphs.c. */
#pragma once

#include "bn/both/best_graphs.h"
#include "bn/both/chain.h"

/* The best graph given each node's predecessors, p masks; the index of each node's set goes to `picks`. Its score. */
int64_t weft_bn_best_graph(const weft_bn_lists *lists, const uint64_t *before, int32_t *picks);
