/* 32 queries against a list of nodes. */
#pragma once

#include "kernel/cpu/tree/walk_state.h"

/* Lowers hands->min_tolerance to the least tolerance of 32 queries, as far as their nearest leaf tells. */
void weft_walk_look(const weft_walk *w, weft_hands *hands);
/* Sums over the group's list for 32 queries: hands->from of hands->leaf. */
void weft_walk_sum(const weft_walk *w, weft_hands *hands);
