/* Chains where an order is worth the sum over its graphs; see order_by_sum.c. */
#pragma once

#include "bn/cpu/chains/chain.h"

/* The kernel for masks of this many words. */
weft_bn_kernel weft_bn_sum_kernel(size_t words);
/* Lays out the weights of all sets, in `mem`. */
weft_status weft_bn_weights_make(weft_arena *mem, weft_bn_lists *lists);
/* ln Σ exp(score) over the sets of `node` within `before`, in units; `last`: that have a member of it, unless it is
 * NULL or empty. WEFT_BN_NEVER when there are none. */
int64_t weft_bn_node_value(const weft_bn_lists *lists, size_t node, const uint64_t *before, const uint64_t *last);
/* One of these sets with the probability of its weight, by a uniform number: which of the node's sets. */
int32_t weft_bn_draw_set(const weft_bn_lists *lists, size_t node, const uint64_t *before, const uint64_t *last,
                         int64_t value, double uniform);
