/* Files as memory; see mapped.h. Where the system has no mmap() the file is read whole. */
#define _FILE_OFFSET_BITS 64
#ifndef _POSIX_C_SOURCE
# define _POSIX_C_SOURCE 200809L
#endif
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "mapped.h"

#ifndef _WIN32
# include <fcntl.h>
# include <sys/mman.h>
# include <sys/stat.h>
# include <unistd.h>

weft_status weft_map(weft_ctx *ctx, const char *path, const char *name, size_t size, weft_mapped *out)
{
  weft_status st = WEFT_OK;
  struct stat about;
  void *data = NULL;
  const int file = open(path, O_RDONLY);
  out->data = NULL;
  out->size = 0;
  if (file < 0 || fstat(file, &about)) {
    st = weft_fail(ctx, WEFT_ERR_INPUT, "Can't read '%s': %s.", name, strerror(errno));
    goto done;
  }
  if ((uint64_t) about.st_size != size) {
    st = weft_fail(ctx, WEFT_ERR_INPUT, "'%s' must have %zu bytes; it has %.0f.", name, size, (double) about.st_size);
    goto done;
  }
  data = size ? mmap(NULL, size, PROT_READ, MAP_SHARED, file, 0) : NULL;
  if (data == MAP_FAILED) {
    st = weft_fail(ctx, WEFT_ERR_INPUT, "Can't map '%s': %s.", name, strerror(errno));
    goto done;
  }
  out->data = data;
  out->size = size;
done:
  if (file >= 0) close(file);
  return st;
}

void weft_unmap(weft_mapped *mapped)
{
  if (mapped->data) munmap((void *) mapped->data, mapped->size);
  mapped->data = NULL;
}

#else

weft_status weft_map(weft_ctx *ctx, const char *path, const char *name, size_t size, weft_mapped *out)
{
  weft_status st = WEFT_OK;
  uint8_t *data = malloc(size + 1); /* room to see whether there is more */
  FILE *file = fopen(path, "rb");
  out->data = NULL;
  out->size = 0;
  if (!data) st = weft_fail(ctx, WEFT_ERR_MEMORY, "Not enough memory for '%s'.", name);
  else if (!file) st = weft_fail(ctx, WEFT_ERR_INPUT, "Can't read '%s': %s.", name, strerror(errno));
  else if (fread(data, 1, size + 1, file) != size)
    st = weft_fail(ctx, WEFT_ERR_INPUT, "'%s' must have %zu bytes.", name, size);
  if (file) fclose(file);
  if (st == WEFT_OK) { out->data = data; out->size = size; }
  else free(data);
  return st;
}

void weft_unmap(weft_mapped *mapped)
{
  free((void *) mapped->data);
  mapped->data = NULL;
}
#endif
