/* Searches over pairs of a pack whose planes exceed the device's memory; see blocks.cu. */
#pragma once

#include "mi/search/cuda/progress.cuh"
#include "mi/pack/cuda/capacity.cuh"

/* Searches the pairs of blocks, two at a time, with the collector's one threshold. */
weft_status weft_mi_search_blocks(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                  const mi_block_plan *plan, mi_collector *collector);
