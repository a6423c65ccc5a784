/* Tiles without vector instructions, one query at a time in the place of a vector; see tile.h. References are
 * taken one at a time, since two made the code much larger and hardly faster. It also picks the variant for the
 * machine. */
#include <math.h>
#include <string.h>
#include "core/call/simd.h"
#include "kernel/kernel.h"
#include "kernel/cpu/direct/tile_portable.h"

#define TARGET
#if defined(__GNUC__)
#  define TARGET_INLINE static inline __attribute__((always_inline)) /* a body for each kernel, its constant folded */
#else
#  define TARGET_INLINE static inline
#endif

static inline double pow2_double(double v)
{
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  bits <<= 52;
  memcpy(&v, &bits, sizeof v);
  return v;
}

static inline float pow2_single(float v)
{
  uint32_t bits;
  memcpy(&bits, &v, sizeof bits);
  bits <<= 23;
  memcpy(&v, &bits, sizeof v);
  return v;
}

#define OPERATIONS(real, suffix, root) \
  static inline real op_add_##suffix(real a, real b) { return a + b; } \
  static inline real op_sub_##suffix(real a, real b) { return a - b; } \
  static inline real op_mul_##suffix(real a, real b) { return a * b; } \
  static inline real op_div_##suffix(real a, real b) { return a / b; } \
  static inline real op_fmadd_##suffix(real a, real b, real c) { return a * b + c; } \
  static inline real op_fnmadd_##suffix(real a, real b, real c) { return c - a * b; } \
  static inline real op_min_##suffix(real a, real b) { return a < b ? a : b; } \
  static inline real op_max_##suffix(real a, real b) { return a > b ? a : b; } \
  static inline real op_sqrt_##suffix(real a) { return root(a); } \
  static inline real op_set1_##suffix(real a) { return a; } \
  static inline real op_loadu_##suffix(const real *a) { return *a; } \
  static inline void op_storeu_##suffix(real *a, real b) { *a = b; }
OPERATIONS(double, double, sqrt)
OPERATIONS(float, single, sqrtf)

#define REAL double
#define VEC REAL
#define LANES 1
#define NV 4
#define REFS 1
#define TILE WEFT_TILE
#define ARGS weft_tile
#define TRACK 1
#define OP(op) op_##op##_double
#define KEEP_LT(a, b, v) ((a) < (b) ? (v) : 0)
#define KEEP_LE(a, b, v) ((a) <= (b) ? (v) : 0)
#define POW2(v) pow2_double(v)
#define MAGIC 6755399441056767.0 /* 1.5 * 2^52 + 1023 */
#define EXP_MIN -708.0
#define LN2_HI 0.69314718055829871
#define LN2_LO 1.6465949582897082e-12
#define NAME(x) double_##x##_portable
#include "kernel/cpu/direct/tile.h"

#define REAL float
#define VEC REAL
#define LANES 1
#define NV 4
#define REFS 1
#define TILE WEFT_TILE_SINGLE
#define ARGS weft_tile_single
#define TRACK 0
#define OP(op) op_##op##_single
#define KEEP_LT(a, b, v) ((a) < (b) ? (v) : 0)
#define KEEP_LE(a, b, v) ((a) <= (b) ? (v) : 0)
#define POW2(v) pow2_single(v)
#define MAGIC 12583039.0 /* 1.5 * 2^23 + 127 */
#define EXP_MIN -87.0
#define LN2_HI 0.693145751953125
#define LN2_LO 1.428606765330187e-6
#define NAME(x) single_##x##_portable
#include "kernel/cpu/direct/tile.h"

void weft_tile_portable(const weft_tile *tile, int kind) { double_tile_portable(tile, kind); }
void weft_node_portable(const weft_node_tile *tile, int kind) { double_node_portable(tile, kind); }
void weft_shift_portable(const double *x, const double *middle, double scale, size_t count, float *out)
{
  single_shift_portable(x, middle, scale, count, out);
}
void weft_tile_single_portable(const weft_tile_single *tile, int kind) { single_tile_portable(tile, kind); }
void weft_squares_portable(const weft_tile_squares *tile) { single_squares_portable(tile); }
void weft_wide_portable(const weft_tile_wide *tile, int kind) { single_wide_portable(tile, kind); }

weft_tile_sum weft_tile_variant(void)
{
#if WEFT_SIMD_X86
  if (weft_simd_level() == WEFT_SIMD_AVX512) return weft_tile_avx512;
  if (weft_simd_level() == WEFT_SIMD_AVX2 && __builtin_cpu_supports("fma")) return weft_tile_avx2;
#endif
  return weft_tile_portable;
}

weft_tile_node weft_node_variant(void)
{
#if WEFT_SIMD_X86
  if (weft_simd_level() == WEFT_SIMD_AVX512) return weft_node_avx512;
  if (weft_simd_level() == WEFT_SIMD_AVX2 && __builtin_cpu_supports("fma")) return weft_node_avx2;
#endif
  return weft_node_portable;
}

weft_tile_sum_single weft_tile_single_variant(void)
{
#if WEFT_SIMD_X86
  if (weft_simd_level() == WEFT_SIMD_AVX512) return weft_tile_single_avx512;
  if (weft_simd_level() == WEFT_SIMD_AVX2 && __builtin_cpu_supports("fma")) return weft_tile_single_avx2;
#endif
  return weft_tile_single_portable;
}

weft_shift weft_shift_variant(void)
{
#if WEFT_SIMD_X86
  if (weft_simd_level() == WEFT_SIMD_AVX512) return weft_shift_avx512;
  if (weft_simd_level() == WEFT_SIMD_AVX2 && __builtin_cpu_supports("fma")) return weft_shift_avx2;
#endif
  return weft_shift_portable;
}

weft_sum_squares weft_squares_variant(void)
{
#if WEFT_SIMD_X86
  if (weft_simd_level() == WEFT_SIMD_AVX512) return weft_squares_avx512;
  if (weft_simd_level() == WEFT_SIMD_AVX2 && __builtin_cpu_supports("fma")) return weft_squares_avx2;
#endif
  return weft_squares_portable;
}

weft_tile_sum_wide weft_wide_variant(void)
{
#if WEFT_SIMD_X86
  if (weft_simd_level() == WEFT_SIMD_AVX512) return weft_wide_avx512;
  if (weft_simd_level() == WEFT_SIMD_AVX2 && __builtin_cpu_supports("fma")) return weft_wide_avx2;
#endif
  return weft_wide_portable;
}
