/* Pairs of attributes whose planes are more than a device holds: the attributes are cut into blocks, and every block is
 * searched against itself and every other. With room for two of B blocks, each is sent B times. */
#pragma once

#include "mi/search/search.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Neighbouring places whose attributes are in the same set when a search is between two sets. */
typedef struct weft_mi_block {
  size_t first, end;
  int side;
} weft_mi_block;

/* Cuts all places: a block weighs at most `max_bytes`, or is one attribute. An attribute weighs `plane` for each of its
 * planes, and at least twice that. */
weft_status weft_mi_blocks_make(weft_arena *mem, const weft_mi_pack *pack, double plane, double max_bytes,
                                weft_mi_block **out, size_t *count);

/* One block, or two as two sets: `before` and `share` are of the whole search, 0 to 1. */
typedef weft_status weft_mi_block_search(weft_ctx *ctx, void *data, const weft_mi_pack *part, double before,
                                         double share);

/* Every pair of attributes that the pack's search has is in exactly one of the parts. */
weft_status weft_mi_blocks_each(weft_ctx *ctx, const weft_mi_pack *pack, double plane, double max_bytes,
                                weft_mi_block_search *search, void *data);

#ifdef __cplusplus
}
#endif
