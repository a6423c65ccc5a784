/* Opening a store, its vectors, and its blocks one after another. */
#pragma once

#include "store/file/block.h"

/* *out owns a descriptor and memory until it is closed; after a failure it is. Closing twice does no harm. */
weft_status weft_store_open(weft_ctx *ctx, const char *path, weft_store *out);
void weft_store_close(weft_store *store);

/* A vector's bytes, checked against their checksum. */
weft_status weft_store_section_bytes(weft_ctx *ctx, const weft_store *store, size_t index, uint8_t *out);

/* Reads a block, compares its checksum, and parses it; all that is in `view` lives in `mem`. */
weft_status weft_store_load(weft_ctx *ctx, const weft_store *store, size_t index, weft_arena *mem,
                            weft_store_view *view);
/* The same with the block's bytes at `bytes`. */
weft_status weft_store_load_to(weft_ctx *ctx, const weft_store *store, size_t index, uint8_t *bytes, weft_arena *mem,
                               weft_store_view *view);
/* Its counts alone (view->starts), before the checksum has been compared: to learn sizes, which are checked again. */
weft_status weft_store_load_counts(weft_ctx *ctx, const weft_store *store, size_t index, weft_arena *mem,
                                   weft_store_view *view);
