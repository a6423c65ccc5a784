/* Tiles with AVX2 and FMA; see tile.h. */
/* Build: fused. */
#include "core/call/simd.h"
#include "kernel/kernel.h"
#include "kernel/cpu/direct/tile_portable.h"

#if WEFT_SIMD_X86
#  include <immintrin.h>

#  define TARGET __attribute__((target("avx2,fma,popcnt")))
#  define TARGET_INLINE TARGET static inline __attribute__((always_inline))

#  define REAL double
#  define VEC __m256d
#  define LANES 4
#  define NV 2
#  define REFS 2
#  define TILE WEFT_TILE
#  define ARGS weft_tile
#  define TRACK 1
#  define OP(op) _mm256_##op##_pd
#  define KEEP_LT(a, b, v) _mm256_and_pd(_mm256_cmp_pd(a, b, _CMP_LT_OQ), v)
#  define KEEP_LE(a, b, v) _mm256_and_pd(_mm256_cmp_pd(a, b, _CMP_LE_OQ), v)
#  define POW2(v) _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_castpd_si256(v), 52))
#  define MAGIC 6755399441056767.0 /* 1.5 * 2^52 + 1023 */
#  define EXP_MIN -708.0
#  define LN2_HI 0.69314718055829871
#  define LN2_LO 1.6465949582897082e-12
#  define NAME(x) double_##x##_avx2
#  include "kernel/cpu/direct/tile.h"

#  define REAL float
#  define VEC __m256
#  define LANES 8
#  define NV 2
#  define REFS 2
#  define TILE WEFT_TILE_SINGLE
#  define ARGS weft_tile_single
#  define TRACK 0
#  define OP(op) _mm256_##op##_ps
#  define KEEP_LT(a, b, v) _mm256_and_ps(_mm256_cmp_ps(a, b, _CMP_LT_OQ), v)
#  define KEEP_LE(a, b, v) _mm256_and_ps(_mm256_cmp_ps(a, b, _CMP_LE_OQ), v)
#  define POW2(v) _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(v), 23))
#  define MAGIC 12583039.0 /* 1.5 * 2^23 + 127 */
#  define EXP_MIN -87.0
#  define LN2_HI 0.693145751953125
#  define LN2_LO 1.428606765330187e-6
#  define NAME(x) single_##x##_avx2
#  include "kernel/cpu/direct/tile.h"

void weft_tile_avx2(const weft_tile *tile, int kind) { double_tile_avx2(tile, kind); }
void weft_node_avx2(const weft_node_tile *tile, int kind) { double_node_avx2(tile, kind); }
void weft_shift_avx2(const double *x, const double *middle, double scale, size_t count, float *out)
{
  single_shift_avx2(x, middle, scale, count, out);
}
void weft_tile_single_avx2(const weft_tile_single *tile, int kind) { single_tile_avx2(tile, kind); }
void weft_squares_avx2(const weft_tile_squares *tile) { single_squares_avx2(tile); }
void weft_wide_avx2(const weft_tile_wide *tile, int kind) { single_wide_avx2(tile, kind); }
#endif
