/* Blocks of an open store, one after another. */
#pragma once

#include "store/file/block.h"

/* Reads a block, compares its checksum, and parses it; all that is in `view` lives in `mem`. */
weft_status weft_store_load(weft_ctx *ctx, const weft_store *store, size_t index, weft_arena *mem,
                            weft_store_view *view);
/* The same with the block's bytes at `bytes`. */
weft_status weft_store_load_to(weft_ctx *ctx, const weft_store *store, size_t index, uint8_t *bytes, weft_arena *mem,
                               weft_store_view *view);
/* Its counts alone (view->starts), before the checksum has been compared: to learn sizes, which are checked again. */
weft_status weft_store_load_counts(weft_ctx *ctx, const weft_store *store, size_t index, weft_arena *mem,
                                   weft_store_view *view);
