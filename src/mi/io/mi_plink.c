/* Genotypes from PLINK's binary format: four a byte, the first in the lowest bits; 00 two copies of the first allele,
 * 10 one, 11 none, 01 missing. Blocks are read one after another where they stand together, and turned into counts on
 * all threads. */
#define _FILE_OFFSET_BITS 64
#ifndef _POSIX_C_SOURCE
# define _POSIX_C_SOURCE 200809L
#endif
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include "../../base/arena.h"
#include "../../base/parallel.h"
#include "../mi.h"

#ifdef _WIN32
# define seek_to _fseeki64
#else
# define seek_to fseeko
#endif

#define HEAD 3 /* bytes before the first block */
#define AT_ONCE ((size_t) 1 << 24) /* genotypes between two polls */

static void count_copies(const uint8_t *packed, size_t n, int32_t *out)
{
  static const int32_t copies[4] = { 2, INT32_MIN, 1, 0 };
  for (size_t i = 0; i < n; i++) out[i] = copies[packed[i / 4] >> (2 * (i % 4)) & 3];
}

weft_status weft_mi_genotypes(weft_ctx *ctx, const char *path, size_t n, const double *wanted, size_t p, int32_t *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t bytes = (n + 3) / 4, most = 1 + AT_ONCE / (n + 1), batch = most < p ? most : p;
  uint8_t *packed;
  double next = -1; /* the variant that the file stands before */
  FILE *f = fopen(path, "rb");
  if (!f) return weft_fail(ctx, WEFT_ERR_INPUT, "Can't read '%s': %s.", path, strerror(errno));
  WEFT_TAKE(packed, &mem, batch * bytes + 1);
  for (size_t first = 0; first < p; first += batch) {
    const int64_t count = (int64_t) (p - first < batch ? p - first : batch);
    WEFT_TRY(weft_poll(ctx, (double) first, (double) p));
    for (int64_t j = 0; j < count; j++) {
      const double variant = wanted[first + (size_t) j];
      if ((variant != next && seek_to(f, HEAD + (int64_t) variant * (int64_t) bytes, SEEK_SET)) ||
          fread(packed + (size_t) j * bytes, 1, bytes, f) < bytes) {
        st = weft_fail(ctx, WEFT_ERR_INPUT, "'%s' ends within variant %.0f.", path, variant + 1);
        goto done;
      }
      next = variant + 1;
    }
    WEFT_PARALLEL(ctx->threads)
    WEFT_FOR(static)
    for (int64_t j = 0; j < count; j++) count_copies(packed + (size_t) j * bytes, n, out + (first + (size_t) j) * n);
  }
done:
  fclose(f);
  weft_arena_end(&mem);
  return st;
}
