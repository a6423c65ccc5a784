/* Chains where an order is worth its best graph; see order_by_best_graph.c. */
#pragma once

#include "bn/cpu/chains/chain.h"

/* The kernel for masks of this many words, on this machine. */
weft_bn_kernel weft_bn_max_kernel(size_t words);
