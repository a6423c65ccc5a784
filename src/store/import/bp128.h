/* The packed arrays of BPCells: chunks of 128 whole numbers of 32 bits, each in as few bits as the largest needs.
 * Number i lies in lane i % 4, whose words are every fourth; in a lane, numbers follow from the lowest bit on. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { WEFT_BP128 = 128 };

/* 128 numbers of `bits` bits (at most 32) each, from 16 * bits bytes. */
void weft_bp128(const uint8_t *bytes, unsigned bits, uint32_t out[WEFT_BP128]);
/* What the numbers stand for where they are differences, of which the signs are in the lowest bits: the first of the
 * 128 is `start`. In arithmetic modulo 2^32. */
void weft_bp128_sum(uint32_t start, uint32_t x[WEFT_BP128]);
