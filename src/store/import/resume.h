/* Imports that go on where an earlier one was stopped. */
#pragma once

#include "store/store.h"

/* Takes over what was written under the same key, or begins anew; locks both files. */
weft_status weft_store_resume(weft_ctx *ctx, weft_store_writer *writer, const char *key, int anew);
/* Lists the block that was just written. */
weft_status weft_store_resume_add(weft_ctx *ctx, const weft_store_writer *writer, size_t index);
