/* Raw files of numbers larger than memory: fp32 or fp64 in the machine's byte order, no header. */
#pragma once

#include "context.h"

/* Reads `count` numbers from number `first` on, as doubles. */
weft_status weft_file_read(weft_ctx *ctx, const char *path, int single, int64_t first, int64_t count, double *out);
