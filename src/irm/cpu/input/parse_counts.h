/* Whole numbers in text, for bag-of-words files. */
#pragma once

#include "core/call/context.h"

/* Reads all numbers of `text` into out, which has room for length / 2 + 1; *bad is the offset of the first byte that is
 * neither digit nor white space or belongs to a number above 2147483647, or -1. Returns how many were read before
 * it. */
int64_t weft_irm_numbers(const unsigned char *text, int64_t length, int32_t *out, int64_t *bad);
