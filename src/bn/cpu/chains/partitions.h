/* Chains over partitions into layers; see partitions.c. */
#pragma once

#include "bn/both/partitions.h"
#include "bn/cpu/chains/chain.h"

/* The kernel for masks of this many words. */
weft_bn_kernel weft_bn_layers_kernel(size_t words);
/* What replicas have for layers. */
weft_status weft_bn_layers_make(weft_arena *mem, const weft_bn_lists *lists, weft_bn_replica *replica);
/* The layers of a graph drawn given the replica's order, draws first .. first + p - 1. */
void weft_bn_layers_draw(const weft_bn_lists *lists, weft_bn_replica *replica, weft_rng rng, uint64_t first);
/* To and from the number of each node's layer; whether every node can have parents. */
int weft_bn_layers_read(const weft_bn_lists *lists, weft_bn_replica *replica, const int32_t *layer);
void weft_bn_layers_write(const weft_bn_lists *lists, weft_bn_replica *replica, int32_t *layer);
/* The layer before the own one of `node`, empty for the first; NULL for orders. */
const uint64_t *weft_bn_layer_before(const weft_bn_lists *lists, const weft_bn_replica *replica, size_t node);
