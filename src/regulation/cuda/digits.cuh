/* Exact products of whole numbers up to 2,047 in magnitude on 8-bit tensor cores. A number is 64 high + low, both
 * digits in -32 .. 32:
 *
 *   a b = 64 (64 high high + high low + low high) + low low
 *
 * A matrix is kept as rows of `depth` bytes, all low digits, then all high ones; depth is a multiple of
 * WEFT_DIGITS_DEPTH and the number of rows one of WEFT_DIGITS_SIDE, with zeros where nothing is. Intermediate sums wrap
 * at 32 bits, which leaves the result exact where it fits, as it does (regulation.h). */
#pragma once

#include <cuda_runtime.h>
#include <stddef.h>
#include <stdint.h>

#define WEFT_DIGITS_SIDE ((size_t) 128)
#define WEFT_DIGITS_DEPTH ((size_t) 64)

__device__ static inline int weft_high_digit(int value) { return (value + 32) >> 6; }

/* out[i × b_rows + j] = sum over the depth of row i of a times row j of b. */
void weft_digits_multiply(const int8_t *a, size_t a_rows, const int8_t *b, size_t b_rows, size_t depth, int32_t *out,
                          cudaStream_t s);
