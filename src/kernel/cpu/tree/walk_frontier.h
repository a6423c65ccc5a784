/* The frontier: the nodes that the sums of 32 queries are still bounded by. */
#pragma once

#include "kernel/cpu/tree/walk_state.h"

/* hands->order: the frontier from least to greatest error, to within a factor of two. */
void weft_walk_order(weft_hands *hands);
/* How many of hands->order can be kept within `share` of hands->tolerance, which is set here; hands->kept: their error.
 */
size_t weft_walk_count_kept(const weft_walk *w, weft_hands *hands, const weft_block_query *block, double share);
/* The first `kept` of hands->order to the front of the frontier; the nodes of the others into hands->stack. Returns
 * their number. */
size_t weft_walk_part(const weft_walk *w, weft_hands *hands, size_t kept);
