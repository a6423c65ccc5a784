/* Chains over graphs; see graphs.c. */
#pragma once

#include "bn/cpu/chains/chain.h"

/* The kernel for masks of this many words. A step is a sweep over all nodes. */
weft_bn_kernel weft_bn_graphs_kernel(size_t words);
/* Adds to the lists what graphs need, in `mem`. */
weft_status weft_bn_graphs_prepare(weft_ctx *ctx, weft_arena *mem, weft_bn_lists *lists);
/* A replica's graph and its work space. */
weft_status weft_bn_graphs_make(weft_arena *mem, const weft_bn_lists *lists, weft_bn_replica *replica);
/* A graph drawn given the replica's order, draws first .. first + p - 1. */
void weft_bn_graphs_draw(const weft_bn_lists *lists, weft_bn_replica *replica, weft_rng rng, uint64_t first);
/* The graph of these sets, numbers within each node's own; an input error unless they are a graph without cycles. */
weft_status weft_bn_graphs_read(weft_ctx *ctx, const weft_bn_lists *lists, weft_bn_replica *replica,
                                const int32_t *pick);
/* An order in which parents come first, and the predecessors in it, as the replica's own; 0 if there is a cycle. */
int weft_bn_graphs_sort(const weft_bn_lists *lists, weft_bn_replica *replica);
