/* Files for the store: read at a place, and written under a temporary name in the folder where they will be. */
#pragma once

#include "../base/context.h"

/* A descriptor of a regular file and its size; -1 with errno. */
int weft_store_os_open(const char *path, uint64_t *size);
/* A new file that did not exist before and to which no link leads; -1 with errno. */
int weft_store_os_create(const char *path);
/* The same without a name, for what need not last: removed from its folder at once, or when it is closed. */
int weft_store_os_scratch(const char *path);
/* A file to be continued, created if there is none: it must belong to this user, and is locked against other processes;
 * its size. */
int weft_store_os_keep(const char *path, uint64_t *size);
weft_status weft_store_os_cut(weft_ctx *ctx, int file, const char *name, uint64_t size);
void weft_store_os_close(int file);
void weft_store_os_remove(const char *path);

weft_status weft_store_os_read(weft_ctx *ctx, int file, const char *name, uint64_t offset, void *to, size_t size);
weft_status weft_store_os_write(weft_ctx *ctx, int file, const char *name, uint64_t offset, const void *from,
                                size_t size);
/* On the disk, and then under its name. A file of that name is replaced only when `overwrite`. */
weft_status weft_store_os_publish(weft_ctx *ctx, int file, const char *part, const char *path, int overwrite);
/* Numbers that two processes do not share. */
uint64_t weft_store_os_unique(void);
