/* What the harnesses of parsers share: a context as the glue makes it, and a file that holds the input. */
#ifndef WEFT_LONGTESTS_PARSERS_H
#define WEFT_LONGTESTS_PARSERS_H

#ifndef _GNU_SOURCE
# define _GNU_SOURCE
#endif
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/call/context.h"

static weft_memory account;

static inline weft_ctx one_thread(void)
{
  return (weft_ctx) { .threads = 1, .memory = &account, .column = -1, .lane = 0 };
}

/* A call has ended: nothing that it took may be left. */
static inline void nothing_left(void)
{
  if (account.host_live != 0) {
    fprintf(stderr, "%lld bytes are left\n", (long long) account.host_live);
    abort();
  }
}

/* A file of these bytes that has no name of its own; `path` gets one that opens it. */
static inline int file_of(const uint8_t *data, size_t size, char path[64])
{
  const int file = memfd_create("input", 0);
  if (file < 0 || write(file, data, size) != (ssize_t) size) abort();
  snprintf(path, 64, "/proc/self/fd/%d", file);
  return file;
}

#endif
