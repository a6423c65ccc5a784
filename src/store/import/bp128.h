/* The packed arrays of BPCells: chunks of 128 whole numbers of 32 bits, each in as few bits as the largest needs.
 * Number i lies in lane i % 4, whose words are every fourth; in a lane, numbers follow from the lowest bit on. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { WEFT_BP128 = 128 };

/* 128 numbers of `bits` bits (at most 32) each, from 16 * bits bytes. */
void weft_bp128(const uint8_t *bytes, unsigned bits, uint32_t out[WEFT_BP128]);
/* Adds up 128 differences, whose signs are in their lowest bits, beginning at `start`; modulo 2^32. */
void weft_bp128_sum(uint32_t start, uint32_t x[WEFT_BP128]);
