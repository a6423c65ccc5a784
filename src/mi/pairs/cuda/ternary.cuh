/* Pairs of attributes of at most three levels, counted on 1-bit tensor cores: where everything lies, and the screens.
 * The kernel is pairs/cuda/ternary_hopper.cu.
 *
 * An attribute has two planes here, the second empty when it has fewer levels; its last level follows from margins. In
 * a block of 128 rows of planes, attributes go in eights, first their plane 0, then their plane 1:
 *
 *   block   | 0 .. 7, plane 0 | 0 .. 7, plane 1 | 8 .. 15, plane 0 | ...        64 attributes
 *
 * A product of 64 by 256 rows leaves a thread with rows l / 4 and l / 4 + 8 of its warp's sixteen (l: its lane) and
 * columns 8 j + 2 (l % 4) and the next. So it has all four counts of one attribute of side a with 32 attributes of side
 * b, and no count goes from thread to thread.
 *
 * The last level of both follows from a class's margins as in any table:
 *
 *            b 0        b 1        b 2
 *   a 0      both[0]    both[1]    rest of a 0
 *   a 1      both[2]    both[3]    rest of a 1
 *   a 2      rest b 0   rest b 1   rest of all
 *
 * With two classes and at most 65,535 rows a word holds the rows of class 0 above the rows of both classes; a table of
 * such words follows by the same differences, because no half of any of them is negative. */
#pragma once

#include "mi/limits.h"
#include "mi/pack/both/fixed_point.h"

#define WEFT_PLANES_CELLS 9
#define WEFT_PLANES_PAIRS 32 /* of a thread in a tile */
#define WEFT_PLANES_A 64     /* attributes per tile: 128 rows of planes against 256 */
#define WEFT_PLANES_B 128

/* ---- where things lie ---- */

/* What a row of the arranged ones is: a plane of an attribute. */
static WEFT_HD inline size_t weft_planes_attribute(size_t row) { return row / 16 * 8 + row % 8; }
static WEFT_HD inline uint32_t weft_planes_plane(size_t row) { return (uint32_t) (row / 8 % 2); }

/* Within a tile: a thread's attribute of side a, and that of side b in one of its pairs. */
static WEFT_HD inline uint32_t weft_planes_a(uint32_t thread) { return thread / 32 * 8 + thread % 32 / 4; }
static WEFT_HD inline uint32_t weft_planes_b(uint32_t thread, uint32_t pair)
{
  return pair / 2 * 8 + thread % 4 * 2 + pair % 2;
}
/* The accumulator that counts plane x of a and plane y of b. */
static WEFT_HD inline uint32_t weft_planes_register(uint32_t pair, uint32_t x, uint32_t y)
{
  return pair / 2 * 8 + y * 4 + x * 2 + pair % 2;
}

/* ---- tables ---- */

/* Completes a table of 3 × 3 cells from the counts of two planes with two, `both` (2 x + y), the planes' margins, and
 * all rows. These are counts of one class, or words of two. */
static WEFT_HD inline void weft_planes_cells(const uint32_t both[4], const uint32_t a[2], const uint32_t b[2],
                                             uint32_t all, uint32_t cell[WEFT_PLANES_CELLS])
{
  cell[0] = both[0];
  cell[1] = both[1];
  cell[2] = a[0] - both[0] - both[1];
  cell[3] = both[2];
  cell[4] = both[3];
  cell[5] = a[1] - both[2] - both[3];
  cell[6] = b[0] - both[0] - both[2];
  cell[7] = b[1] - both[1] - both[3];
  cell[8] = all - a[0] - a[1] - cell[6] - cell[7];
}

static WEFT_HD inline uint32_t weft_planes_pack(uint32_t class0, uint32_t class1)
{
  return class0 << 16 | (class0 + class1);
}

/* ---- the screen of two classes ----
 *
 * With k of a cell's m rows in class 0 and p that class's share, n times the information is Σ m KL(k/m || p), and
 * KL(q || p) <= s (q - p)² with s the greatest ratio over q, so it is at most s (Σ k²/m - p n0). A pair whose Σ k²/m is
 * below p n0 + threshold n / s is behind the threshold. */

/* 1 / x for arguments that are neither tiny nor huge: subnormal numbers get no special treatment. */
static __device__ inline float weft_planes_inverse(float x)
{
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(x));
  return inverse;
}

/* The halves of a word as floats. */
static __device__ inline void weft_planes_unpack(uint32_t word, float *class0, float *rows)
{
  *rows = __uint_as_float(__byte_perm(word, 0x4b000000u, 0x7610)) - 8388608.0f; /* put into the fraction of 2^23 */
  *class0 = __uint_as_float(__byte_perm(word, 0x4b000000u, 0x7632)) - 8388608.0f;
}

/* An attribute's planes, or all rows, in the screen: rows of class 0 and of both classes. What is added to the latter
 * keeps empty cells finite; it is exact beside counts of 16 bits. */
#define WEFT_PLANES_EMPTY 0.0078125f
typedef struct weft_planes_side {
  float class0[2], rows[2];
} weft_planes_side;

static __device__ inline weft_planes_side weft_planes_side_of(const uint32_t plane[2])
{
  weft_planes_side out;
  for (int q = 0; q < 2; q++) {
    weft_planes_unpack(plane[q], &out.class0[q], &out.rows[q]);
    out.rows[q] += WEFT_PLANES_EMPTY;
  }
  return out;
}

/* k²/m + l²/n */
static __device__ inline float weft_planes_two_squares(float k, float m, float l, float n)
{
  return (k * k * n + l * l * m) * weft_planes_inverse(m * n);
}

/* Σ k²/m over the cells of packed counts, a little less for empty cells. The last level's counts follow as in
 * weft_planes_cells(), by differences of floats that are exact; `all` are the packed rows. */
static __device__ inline float weft_planes_squares(const uint32_t both[4], weft_planes_side a, weft_planes_side b,
                                                   uint32_t all)
{
  float k[4], m[4], k_all, m_all;
  weft_planes_unpack(all, &k_all, &m_all);
  for (int i = 0; i < 4; i++) weft_planes_unpack(both[i], &k[i], &m[i]);
  const float k_a0 = a.class0[0] - k[0] - k[1], m_a0 = a.rows[0] - m[0] - m[1], k_a1 = a.class0[1] - k[2] - k[3],
              m_a1 = a.rows[1] - m[2] - m[3], k_b0 = b.class0[0] - k[0] - k[2], m_b0 = b.rows[0] - m[0] - m[2],
              k_b1 = b.class0[1] - k[1] - k[3], m_b1 = b.rows[1] - m[1] - m[3],
              k_last = k_all - a.class0[0] - a.class0[1] - k_b0 - k_b1,
              m_last = m_all + 5 * WEFT_PLANES_EMPTY - a.rows[0] - a.rows[1] - m_b0 - m_b1;
  for (int i = 0; i < 4; i++) m[i] += WEFT_PLANES_EMPTY;
  return weft_planes_two_squares(k[0], m[0], k[1], m[1]) + weft_planes_two_squares(k[2], m[2], k[3], m[3]) +
         weft_planes_two_squares(k_a0, m_a0, k_a1, m_a1) + weft_planes_two_squares(k_b0, m_b0, k_b1, m_b1) +
         k_last * k_last * weft_planes_inverse(m_last);
}

/* Exactly, but for what does not depend on the pair. The table of f has all counts of so few rows. */
static WEFT_HD inline int64_t weft_planes_joint(const weft_mi_log *f, const uint32_t cell[WEFT_PLANES_CELLS])
{
  int64_t sum = 0;
  for (int i = 0; i < WEFT_PLANES_CELLS; i++) {
    const uint32_t rows = cell[i] & 0xffffu, class0 = cell[i] >> 16;
    sum += f->table[class0] + f->table[rows - class0] - f->table[rows];
  }
  return sum;
}

/* More than rounding and empty cells take off these sums and the threshold. n0 >= Σ k²/m, each of two dozen roundings
 * is at most 2^-24 of it, and k²/m - k²/(m + e) <= e in each cell of the `tables` tables. */
static WEFT_HD inline double weft_planes_squares_error(double n0, uint32_t tables)
{
  return 2e-6 * n0 + 0.02 + tables * (WEFT_PLANES_CELLS * (double) WEFT_PLANES_EMPTY);
}

/* ---- the screen of any number of classes ----
 *
 * n times the information is Σ over cells of Σ_c k_c log2(k_c w_c) - m log2(m w), w_c = w n / n_c, whatever w; with
 * w = 9 / n the logarithms are small. A logarithm of the device is off by 2^-22, of its size where it is above 1. The
 * sizes Σ k |log2(k w_c)| and Σ m |log2(m w)| are below 3.7 n each: at most log2 9 above zero and 9 × 0.53 / 9 below.
 */

typedef struct weft_planes_weights {
  float of_class[WEFT_MI_TERNARY_CLASSES], of_rows;
} weft_planes_weights;

static WEFT_HD inline weft_planes_weights weft_planes_weigh(const uint32_t *class_rows, uint32_t classes)
{
  weft_planes_weights w;
  double n = 0;
  for (uint32_t c = 0; c < classes; c++) n += class_rows[c];
  w.of_rows = (float) (WEFT_PLANES_CELLS / n);
  for (uint32_t c = 0; c < WEFT_MI_TERNARY_CLASSES; c++)
    w.of_class[c] = c < classes && class_rows[c] ? (float) (WEFT_PLANES_CELLS / (double) class_rows[c]) : 0.0f;
  return w;
}

/* k log2(k w) */
static __device__ inline float weft_planes_term(uint32_t k, float w)
{
  const float x = (float) k, y = fmaxf(x * w, 1e-30f);
  return x * __log2f(y);
}

static WEFT_HD inline double weft_planes_logs_error(double n, uint32_t classes)
{
  return (24 + 2 * (double) classes) * 0x1p-22 * n + 1e-3;
}

/* ---- thresholds ---- */

/* A pair may reach `bits` of information when its screen is at least base + bits × unit. */
typedef struct weft_planes_units {
  double base, unit;
} weft_planes_units;

/* steepest: weft_mi_steepest() of the share of class 0, for packed counts. tables: that a screen adds up. */
static inline weft_planes_units weft_planes_measure(int packed, const uint32_t *class_rows, uint32_t classes,
                                                    double steepest, uint32_t tables)
{
  weft_planes_units units;
  double n = 0;
  const double n0 = class_rows[0];
  for (uint32_t c = 0; c < classes; c++) n += class_rows[c];
  units.unit = packed ? n / steepest : n;
  units.base = packed ? n0 * n0 / n - weft_planes_squares_error(n0, tables) : -weft_planes_logs_error(n, classes);
  return units;
}
