/* Genotypes from PLINK's binary format: four per byte, the first in the lowest bits; 00 two copies of the first allele,
 * 10 one, 11 none, 01 missing. Blocks are read one after another where they stand together, and turned into counts on
 * all threads. */
#define _FILE_OFFSET_BITS 64
#ifndef _POSIX_C_SOURCE
#  define _POSIX_C_SOURCE 200809L
#endif
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include "core/call/arena.h"
#include "core/data/file.h"
#include "core/data/genotypes.h"
#include "core/call/parallel.h"
#include "mi/mi.h"

#ifdef _WIN32
#  define seek_to _fseeki64
#else
#  define seek_to fseeko
#endif

#define HEAD 3                     /* bytes before the first block */
#define AT_ONCE ((size_t) 1 << 24) /* genotypes between two polls */

static void count_copies(const uint8_t *packed, size_t n, int32_t *out)
{
  static const int32_t copies[4] = { 2, INT32_MIN, 1, 0 };
  for (size_t i = 0; i < n; i++) out[i] = copies[packed[i / 4] >> (2 * (i % 4)) & 3];
}

/* Reads batches of variants, seeking only where they do not follow each other, and decodes each batch on all threads. A
 * file that is too short is an error that names the variant. */
weft_status weft_mi_genotypes(weft_ctx *ctx, const char *path, size_t n, const double *wanted, size_t p, int32_t *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t bytes = (n + 3) / 4, limit = 1 + AT_ONCE / (n + 1), batch = limit < p ? limit : p;
  uint8_t *packed;
  double next = -1; /* the variant that the file stands before */
  char why[WEFT_FILE_WHY];
  FILE *f = weft_file_stream(path, why);
  if (!f) return weft_fail(ctx, WEFT_ERR_INPUT, "'%s' %s.", path, why);
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
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) count * (double) n), static)
    for (int64_t j = 0; j < count; j++) count_copies(packed + (size_t) j * bytes, n, out + (first + (size_t) j) * n);
  }
done:
  fclose(f);
  weft_arena_end(&mem);
  return st;
}

/* Exact test of Hardy-Weinberg proportions: the probability of all numbers of heterozygotes that are no likelier than
 * the observed one, given the allele counts. Numbers of one parity follow from each other by
 *   P(h + 2) / P(h) = 4 r c / ((h + 1) (h + 2)),   r and c the homozygotes of the rare and of the common allele,
 * starting at the likeliest and going both ways until nothing is left. */
static double equilibrium(double one, double hets, double other)
{
  const double n = one + hets + other, rare = 2 * fmin(one, other) + hets;
  double middle = floor(rare * (2 * n - rare) / (2 * n)), total = 0, tail = 0, seen = 0;
  if (rare < 1) return 1;
  if (fmod(middle, 2) != fmod(rare, 2)) middle++;
  for (int pass = 0; pass < 2; pass++)
    for (int up = 0; up < 2; up++) {
      double heterozygous = middle, r = (rare - middle) / 2, c = n - heterozygous - r, p = 1;
      for (;;) {
        if (up || heterozygous != middle) {
          if (pass && p <= seen * (1 + 1e-9)) tail += p;
          if (!pass) total += p;
          if (!pass && heterozygous == hets) seen = p;
        }
        if (up ? r < 1 : heterozygous < 2) break;
        p *= up ? 4 * r * c / ((heterozygous + 1) * (heterozygous + 2))
                : heterozygous * (heterozygous - 1) / (4 * (r + 1) * (c + 1));
        heterozygous += up ? 2 : -2;
        r += up ? -1 : 1;
        c += up ? -1 : 1;
        if (!(p > 0)) break;
      }
    }
  return fmin(1, tail / total);
}

/* Threads share columns; polls between batches. */
weft_status weft_mi_genotype_summary(weft_ctx *ctx, const weft_column *columns, size_t n, size_t p, double *counts,
                                     double *hwe)
{
  weft_status st = WEFT_OK;
  const size_t batch = 1 + 8 * AT_ONCE / (n + 1) * (size_t) ctx->threads;
  for (size_t first = 0; first < p; first += batch) {
    const int64_t count = (int64_t) (p - first < batch ? p - first : batch);
    WEFT_TRY(weft_poll(ctx, (double) first, (double) p));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) count * (double) n), guided)
    for (int64_t k = 0; k < count; k++) {
      const size_t j = first + (size_t) k;
      uint64_t of[4];
      weft_genotype_counts(columns[j].values, n, NULL, of);
      for (int g = 0; g < 4; g++) counts[4 * j + (size_t) g] = (double) of[g];
      hwe[j] = equilibrium((double) of[0], (double) of[1], (double) of[2]);
    }
  }
done:
  return st;
}
