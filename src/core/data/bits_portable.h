/* What is left to the portable code by the vector variants of bits.h. */
#pragma once

#include "core/data/bits.h"

/* One word of a plane, of the last rows (at most 64); the binary one as scan_pack_binary_i32() of bits.h has it. */
uint64_t weft_plane_word_u8(const uint8_t *codes, size_t rows, uint8_t level);
uint64_t weft_plane_word_u16(const uint16_t *codes, size_t rows, uint16_t level);
int weft_binary_word_i32(const int32_t *x, size_t rows, int32_t base, uint64_t *ones, uint64_t *na);
