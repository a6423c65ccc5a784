/* A file's bytes as memory, read by the system when they are first looked at. */
#pragma once

#include "core/call/context.h"

typedef struct weft_mapped {
  const uint8_t *data;
  size_t size;
  struct weft_mapping *watched;
} weft_mapped;

/* `name`: the file in messages. A file of any other size than `size` is an error. */
weft_status weft_map(weft_ctx *ctx, const char *path, const char *name, size_t size, weft_mapped *out);
void weft_unmap(weft_mapped *mapped);

/* How often so far bytes were read that a mapped file no longer has; they read as zeros. */
int weft_mapped_lost(void);

/* Tells the system that all of this new memory will be filled: where it has pages of 2 MB, these save most of the cost
 * of touching memory for the first time. */
void weft_expect_large_pages(void *block, size_t bytes);
