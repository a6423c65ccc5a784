/* Compressed rows that are a block of their own. */
#pragma once

#include "store/store.h"

/* A block of compressed rows as bytes taken from `mem`, the same as weft_store_encode() makes of entries; scratch: 12
 * bytes per value. *bytes is NULL where the rows have to become entries first. */
weft_status weft_store_encode_rows(weft_ctx *ctx, const weft_store_rows *rows, uint64_t p, void *scratch,
                                   weft_arena *mem, uint8_t **bytes, uint64_t *size, uint32_t *kind);
