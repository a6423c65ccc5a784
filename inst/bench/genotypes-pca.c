/* Writes a .bed file of planted populations for genotypes-pca.R, as fast as memory takes it: variant j has the
 * frequency q in the whole, and q + sqrt(drift[c] q (1 - q)) z in population c, with z of mean 0 and variance 1. People
 * of a population lie side by side. Each genotype takes 16 random bits. */
#define _GNU_SOURCE
#include <R.h>
#include <Rinternals.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define STREAMS 8
#define PIECE 512  /* genotypes */
#define AT_ONCE 32 /* variants that are written together */

typedef struct {
  uint64_t a[STREAMS], b[STREAMS];
} generator;

static uint64_t split_mix(uint64_t *at)
{
  uint64_t z = (*at += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static void begin(generator *g, uint64_t seed)
{
  for (int k = 0; k < STREAMS; k++) {
    g->a[k] = split_mix(&seed);
    g->b[k] = split_mix(&seed);
  }
}

/* xorshift128+ (Vigna 2017), eight streams side by side. */
static void fill(generator *g, uint64_t *out)
{
  for (int i = 0; i < PIECE / 4; i += STREAMS)
    for (int k = 0; k < STREAMS; k++) {
      uint64_t x = g->a[k];
      const uint64_t y = g->b[k];
      g->a[k] = y;
      x ^= x << 23;
      g->b[k] = x ^ y ^ x >> 18 ^ y >> 5;
      out[i + k] = g->b[k] + y;
    }
}

static double uniform(uint64_t *at) { return (double) (split_mix(at) >> 11) * 0x1p-53; }

/* `bytes` bytes of genotypes of one population. */
static void draw(generator *g, double q, double missing, uint8_t *to, size_t bytes)
{
  uint64_t bits[PIECE / 4];
  uint8_t code[PIECE];
  const double seen = 65536 * (1 - missing);
  const uint16_t two = (uint16_t) (seen * q * q), some = (uint16_t) (seen * (1 - (1 - q) * (1 - q))),
                 known = (uint16_t) fmin(65535, seen);
  for (size_t first = 0; first < bytes; first += PIECE / 4) {
    const size_t now = bytes - first < PIECE / 4 ? bytes - first : PIECE / 4;
    fill(g, bits);
    const uint16_t *r = (const uint16_t *) bits;
    for (int i = 0; i < PIECE; i++) code[i] = (uint8_t) (r[i] >= known ? 1 : 2 * (r[i] >= two) + (r[i] >= some));
    for (size_t i = 0; i < now; i++)
      to[first + i] = (uint8_t) (code[4 * i] | code[4 * i + 1] << 2 | code[4 * i + 2] << 4 | code[4 * i + 3] << 6);
  }
}

/* path; people; variants; ends: the byte of a column at which each population ends; drift: of each; missing: share;
 * seed. Returns whether all was written. */
SEXP write_bed(SEXP path, SEXP people, SEXP variants, SEXP ends, SEXP drift, SEXP missing, SEXP seed)
{
  const size_t stride = ((size_t) Rf_asReal(people) + 3) / 4;
  const int64_t p = (int64_t) Rf_asReal(variants);
  const int groups = Rf_length(ends);
  const double *end = REAL(ends), *apart = REAL(drift), gone = Rf_asReal(missing);
  const uint64_t key = (uint64_t) Rf_asReal(seed);
  const uint8_t head[3] = { 0x6c, 0x1b, 0x01 };
  int failed = 0;
  const int file = open(R_CHAR(STRING_ELT(path, 0)), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  if (file < 0 || pwrite(file, head, 3, 0) != 3) return Rf_ScalarLogical(0);
#pragma omp parallel for schedule(dynamic)
  for (int64_t j0 = 0; j0 < p; j0 += AT_ONCE) {
    const int64_t count = p - j0 < AT_ONCE ? p - j0 : AT_ONCE;
    uint8_t *block = malloc(stride * AT_ONCE);
    if (!block) {
      failed = 1;
      continue;
    }
    for (int64_t j = 0; j < count; j++) {
      uint64_t at = key * UINT64_C(0x2545f4914f6cdd1d) + (uint64_t) (j0 + j);
      generator g;
      begin(&g, split_mix(&at));
      const double q = 0.05 + 0.45 * uniform(&at);
      size_t from = 0;
      for (int c = 0; c < groups; c++) {
        const double z = (uniform(&at) + uniform(&at) + uniform(&at) + uniform(&at) - 2) * sqrt(3);
        const double own = fmin(0.99, fmax(0.01, q + sqrt(apart[c] * q * (1 - q)) * z));
        draw(&g, own, gone, block + (size_t) j * stride + from, (size_t) end[c] - from);
        from = (size_t) end[c];
      }
    }
    size_t done = 0;
    const size_t all = stride * (size_t) count;
    while (done < all) {
      const ssize_t wrote = pwrite(file, block + done, all - done, (off_t) (3 + (size_t) j0 * stride + done));
      if (wrote <= 0) break;
      done += (size_t) wrote;
    }
    if (done < all) failed = 1;
    free(block);
  }
  return Rf_ScalarLogical(close(file) == 0 && !failed);
}
