/* Two formats of the family of Lempel and Ziv (1977): sequences of bytes as they are and of bytes that came before.
 * Both return WEFT_OK, WEFT_ERR_INTERRUPT, or WEFT_ERR_INPUT, without a message, where `size` bytes do not become
 * exactly `whole`. */
#pragma once

#include "core/call/context.h"

/* A block of LZ4 (lz4.org, "LZ4 Block Format"). */
weft_status weft_lz4(weft_ctx *ctx, const uint8_t *bytes, size_t size, uint8_t *to, size_t whole);
/* BloscLZ, which Blosc has besides: a relative of FastLZ. */
weft_status weft_blosclz(weft_ctx *ctx, const uint8_t *bytes, size_t size, uint8_t *to, size_t whole);
