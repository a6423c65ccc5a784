/* A buffer of Blosc 1: blocks that are shuffled by bytes or bits and compressed by themselves. */
#pragma once

#include "store/import/codecs.h"

/* Reads the size from the header; returns 0 where there is no such header. */
int weft_blosc_size(const weft_bytes *x, size_t *whole);
/* Decodes to `to`, which has room for as many bytes as weft_blosc_size() says. */
weft_status weft_blosc(weft_ctx *ctx, weft_arena *mem, const weft_bytes *x, uint8_t *to);
