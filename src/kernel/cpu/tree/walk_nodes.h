/* How nodes lie to each other and to queries. */
#pragma once

#include "kernel/cpu/tree/walk_state.h"

/* Least and greatest s between box q of the query tree and box r of the reference tree. */
void weft_walk_range(const weft_walk *w, size_t q, size_t r, double *least, double *greatest);
/* True when all of the node's weight at the kernel value `most` is negligible; its error is then added to `dropped`. */
int weft_walk_negligible(const weft_walk *w, size_t node, double most, const double *least, double *dropped);
/* True when the node holds a reference that one of the queries leaves out, where that is not the one of the same
 * number. */
int weft_walk_holds_own(const weft_walk *w, size_t first_query, size_t count, size_t node);
/* True when the node holds a leaf that is nearest to one of the group's, or a reference that one of its queries leaves
 * out. */
int weft_walk_holds_nearest(const weft_walk *w, const weft_hands *hands, size_t node);
/* The reference leaf that lies nearest to a leaf of queries, box to box from the root down. */
size_t weft_walk_nearest(const weft_walk *w, size_t leaf);
