/* Reading raw files in pieces; see file.h. */
#define _FILE_OFFSET_BITS 64
#ifndef _POSIX_C_SOURCE
# define _POSIX_C_SOURCE 200809L
#endif
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include "file.h"

#define PIECE 65536 /* numbers between two polls; 512 KB */

#ifdef _WIN32
# define seek_to _fseeki64
#else
# define seek_to fseeko
#endif

weft_status weft_file_read(weft_ctx *ctx, const char *path, int single, int64_t first, int64_t count, double *out)
{
  weft_status st = WEFT_OK;
  const size_t size = single ? sizeof(float) : sizeof(double);
  float part[4096];
  FILE *f = fopen(path, "rb");
  if (!f) return weft_fail(ctx, WEFT_ERR_INPUT, "Can't read '%s': %s.", path, strerror(errno));
  if (seek_to(f, first * (int64_t) size, SEEK_SET)) {
    st = weft_fail(ctx, WEFT_ERR_INPUT, "Can't read '%s': %s.", path, strerror(errno));
    goto done;
  }
  for (int64_t i = 0; i < count;) {
    if (i % PIECE == 0) WEFT_TRY(weft_poll(ctx, (double) i, (double) count));
    size_t want = (size_t) (count - i < 4096 ? count - i : 4096);
    size_t got = single ? fread(part, size, want, f) : fread(out + i, size, want, f);
    if (got < want) {
      st = weft_fail(ctx, WEFT_ERR_INPUT, "'%s' ends after %lld numbers; %lld are needed.", path,
                     (long long) (first + i + (int64_t) got), (long long) (first + count));
      goto done;
    }
    if (single) for (size_t k = 0; k < got; k++) out[i + (int64_t) k] = part[k];
    i += (int64_t) got;
  }
done:
  fclose(f);
  return st;
}
