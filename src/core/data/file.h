/* Files whose names come from users, and raw files of numbers.
 *
 * Every file of a user's is opened by weft_file_open(), or is looked at with it before R opens it. Only regular files
 * are read, since a pipe without a writer, a terminal or an endless device would never return.
 *
 * Every file is written under a temporary name in its folder, is synchronised with the disk, and then takes its name in
 * one step: whatever fails before that leaves what was there as it was. Only a regular file is ever replaced. A
 * symbolic link to a regular file, or to nothing, is replaced itself, and what it leads to stays as it is.
 *
 * What goes wrong is a phrase that follows the file's name, in `why`: "does not exist", "is a folder". */
#pragma once

#include <stdio.h>
#include "core/call/context.h"

enum { WEFT_FILE_WHY = 200 }; /* bytes of `why`, with its end */

/* A descriptor of a regular file to read, and its size in bytes; -1 with `why`. weft_file_close() closes it. */
int weft_file_open(const char *path, uint64_t *size, char *why);
void weft_file_close(int file);
/* The same as a stream, which fclose() closes; NULL with `why`. */
FILE *weft_file_stream(const char *path, char *why);

/* Whether a file may be written there: nothing is, or what may be replaced. 0 with `why` otherwise. */
int weft_file_may_write(const char *path, char *why);
/* A new file for reading and writing that did not exist before, not even as a link; -1 with errno. */
int weft_file_create(const char *path);
/* Synchronises and closes `file`, which was created as `part`, and gives it the name `path`, which must be free unless
 * `overwrite`. 0 with `why` when that fails; the file is then still called `part`. */
int weft_file_publish(int file, const char *part, const char *path, int overwrite, char *why);
/* Writes a whole file, and replaces one that is there. 0 with `why` when that fails; nothing is left behind then. */
int weft_file_write(const char *path, const void *bytes, size_t size, char *why);

/* Numbers that two processes do not share, for temporary names. */
uint64_t weft_file_unique(void);

/* Reads `count` numbers from number `first` of a raw file on, as doubles: fp32 or fp64 in the machine's byte order
 * without a header. */
weft_status weft_file_read(weft_ctx *ctx, const char *path, int single, int64_t first, int64_t count, double *out);
