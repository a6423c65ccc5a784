/* Files of the store that are open: read and written at a place; and those beside it that are its own. Others are
 * opened and given their names by core/data/file.h. */
#pragma once

#include "core/data/file.h"

/* A new file without a name, for what need not last: removed from its folder at once, or when it is closed; -1 with
 * errno. */
int weft_store_os_scratch(const char *path);
void weft_store_os_remove(const char *path);

weft_status weft_store_os_read(weft_ctx *ctx, int file, const char *name, uint64_t offset, void *to, size_t size);
weft_status weft_store_os_write(weft_ctx *ctx, int file, const char *name, uint64_t offset, const void *from,
                                size_t size);
