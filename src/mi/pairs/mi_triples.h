/* Triples of attributes of at most three levels and two classes, counted on 1-bit tensor cores with rows sorted by the
 * level of one attribute, which is held fixed: where everything lies, and the screen. Written once for the kernel
 * (mi_triples_wgmma.cu) and for the test that repeats its arithmetic on the host.
 *
 * Rows are sorted by the fixed attribute's level and, within it, by class: six runs, each padded to whole k-steps. The
 * other attributes lie as in mi_planes.h, and the counts of a level are words of rows in class 0 above rows of both.
 *
 * The screen. n times the information of a triple is n times what the fixed attribute says, and in each of its levels
 * Σ m KL(k/m || p), over the nine cells of the two others, with k of a cell's m rows in class 0 and p that class's share
 * of the level. KL(q || p) / (q - p)² is an average of 1 / (x (1 - x) ln 2) over points between p and q, hence convex in
 * q and greatest at 0 or 1; call that s. So the level adds at most s (Σ k²/m - p n0), n0 its rows in class 0.
 *
 * A word as a whole number is 65536 (k + m / 65536), and Σ (k + e m)²/m = Σ k²/m + 2 e n0 + e² n is known as well as
 * Σ k²/m is: k need not be taken out of the word. */
#ifndef WEFT_MI_TRIPLES_H
#define WEFT_MI_TRIPLES_H

#include "mi_planes.h"

#define WEFT_TRIPLES_THREADS 512   /* that count a tile */
#define WEFT_TRIPLES_PAIRS 16      /* of a thread in a tile */
#define WEFT_TRIPLES_FEW 32767u    /* most rows with which a word's lower half is taken out the faster way */
#define WEFT_TRIPLES_PLACES (1u << 21) /* most attributes: three of them are one number of 64 bits */

/* Within a tile: a thread's attribute of side a, and that of side b in one of its pairs. Four warpgroups have half of
 * side a and half of side b each. */
static WEFT_HD inline uint32_t weft_triples_a(uint32_t thread)
{
  return thread / 256 * 32 + thread % 128 / 32 * 8 + thread % 32 / 4;
}
static WEFT_HD inline uint32_t weft_triples_b(uint32_t thread, uint32_t pair)
{
  return thread / 128 % 2 * 64 + weft_planes_b(thread, pair);
}

/* ---- the screen ---- */

/* The lower half of a word, and a little more, which keeps empty cells finite. `magic`: weft_triples_magic(), which a
 * kernel is given, so that its compiler keeps it in a register. */
#define WEFT_TRIPLES_EMPTY 0.00390625f
static inline uint32_t weft_triples_magic(int many) { return many ? 1u : 0x47000001u; }

static WEFT_HD inline float weft_triples_rows(uint32_t word, int many, uint32_t magic)
{
#ifdef __CUDA_ARCH__
  if (many) return (float) __byte_perm(word, magic, 0x1054); /* 65536 times that, and 1 */
  return __uint_as_float(__byte_perm(word, magic, 0x7104)) - 32768.0f; /* put into the fraction of 2^15 */
#else
  (void) magic;
  return many ? (float) ((word & 0xffffu) << 16 | 1u) : (float) (word & 0xffffu) + WEFT_TRIPLES_EMPTY;
#endif
}

/* k²/m + l²/n */
static WEFT_HD inline float weft_triples_two(uint32_t k_word, uint32_t l_word, int many, uint32_t magic)
{
  const float k = (float) k_word, l = (float) l_word, m = weft_triples_rows(k_word, many, magic),
              n = weft_triples_rows(l_word, many, magic);
  return (k * k * n + l * l * m) * weft_planes_inverse(m * n);
}

static WEFT_HD inline float weft_triples_one(uint32_t word, int many, uint32_t magic)
{
  const float k = (float) word;
  return k * k * weft_planes_inverse(weft_triples_rows(word, many, magic));
}

/* Σ k²/m in a level, in units of weft_triples_scale(). both: 2 x + y; a, b: words of planes; rest: those of a's last
 * level. */
static WEFT_HD inline float weft_triples_squares(const uint32_t both[4], const uint32_t a[2], const uint32_t b[2],
                                                 uint32_t rest, int many, uint32_t magic)
{
  const uint32_t a0 = a[0] - both[0] - both[1], a1 = a[1] - both[2] - both[3], b0 = b[0] - both[0] - both[2],
                 b1 = b[1] - both[1] - both[3], last = rest - b0 - b1;
  /* two cells with one division spare a slow instruction, and take a fast one more */
  return weft_triples_two(both[0], both[1], many, magic) + weft_triples_two(both[2], both[3], many, magic) +
         weft_triples_two(a0, a1, many, magic) + weft_triples_one(b0, many, magic) + weft_triples_one(b1, many, magic) +
         weft_triples_one(last, many, magic);
}

static inline double weft_triples_scale(int many) { return many ? 0x1p-16 : 0x1p-32; }

/* What is known of a fixed attribute. */
typedef struct weft_triples_fixed {
  uint32_t start[7];    /* k-steps before each run, level after level, and all */
  uint32_t rows[3];     /* of a level: a word */
  float weight[3];      /* of a level's squares, in n bits */
  float base;           /* of all: a triple of so many n bits has at least base + n bits of squares */
} weft_triples_fixed;

static inline double weft_triples_steepest(double p)
{
  if (!(p > 0 && p < 1)) return 0;
  const double low = -log1p(-p) / (p * p), high = -log(p) / ((1 - p) * (1 - p));
  return (low > high ? low : high) / log(2.0) * (1 + 1e-9);
}

/* level: rows of each level by class; alone: n bits that the attribute says by itself.
 * The error: all terms of the squares are positive, and two dozen roundings of 2^-24 are less than 3e-6 of them, of the
 * bar and of what single attributes say; k²/m - k²/(m + e) <= e in each cell. */
static inline weft_triples_fixed weft_triples_fix(const uint32_t level[3][2], double alone, uint32_t step_bits,
                                                  int many)
{
  weft_triples_fixed out;
  double base = -alone, error = 1e-3 + 3e-6 * alone, n = 0;
  out.start[0] = 0;
  for (int q = 0; q < 3; q++) {
    const double n0 = level[q][0], m = n0 + level[q][1], steepest = m > 0 ? weft_triples_steepest(n0 / m) : 0;
    const double more = 0x1p-16, empty = (many ? 0x1p-16 : WEFT_TRIPLES_EMPTY) * WEFT_PLANES_CELLS * 1.001;
    for (int c = 0; c < 2; c++)
      out.start[2 * q + c + 1] = out.start[2 * q + c] + (level[q][c] + step_bits - 1) / step_bits;
    out.rows[q] = weft_planes_pack(level[q][0], level[q][1]);
    out.weight[q] = (float) (steepest * weft_triples_scale(many));
    if (m > 0) base += steepest * (n0 / m * n0 + 2 * more * n0 + more * more * m);
    error += steepest * (empty + 3e-6 * n0);
    n += m;
  }
  out.base = (float) (base - error - 3e-6 * n);
  return out;
}

#endif
