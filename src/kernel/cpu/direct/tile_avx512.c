/* Tiles with AVX-512; see tile.h. */
/* Build: fused. */
#include "core/call/simd.h"
#include "kernel/kernel.h"
#include "kernel/cpu/direct/tile_portable.h"

#if WEFT_SIMD_X86
#  include <immintrin.h>

#  define TARGET WEFT_TARGET_AVX512
#  define TARGET_INLINE TARGET static inline __attribute__((always_inline))

#  define REAL double
#  define VEC __m512d
#  define LANES 8
#  define NV 4
#  define REFS 2
#  define TILE WEFT_TILE
#  define ARGS weft_tile
#  define TRACK 1
#  define OP(op) _mm512_##op##_pd
#  define KEEP_LT(a, b, v) _mm512_maskz_mov_pd(_mm512_cmp_pd_mask(a, b, _CMP_LT_OQ), v)
#  define KEEP_LE(a, b, v) _mm512_maskz_mov_pd(_mm512_cmp_pd_mask(a, b, _CMP_LE_OQ), v)
#  define POW2(v) _mm512_castsi512_pd(_mm512_slli_epi64(_mm512_castpd_si512(v), 52))
#  define MAGIC 6755399441056767.0 /* 1.5 * 2^52 + 1023 */
#  define EXP_MIN -708.0
#  define LN2_HI 0.69314718055829871
#  define LN2_LO 1.6465949582897082e-12
#  define NAME(x) double_##x##_avx512
#  include "kernel/cpu/direct/tile.h"

#  define REAL float
#  define VEC __m512
#  define LANES 16
#  define NV 4
#  define REFS 2
#  define TILE WEFT_TILE_SINGLE
#  define ARGS weft_tile_single
#  define TRACK 0
#  define OP(op) _mm512_##op##_ps
#  define KEEP_LT(a, b, v) _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), v)
#  define KEEP_LE(a, b, v) _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, b, _CMP_LE_OQ), v)
#  define POW2(v) _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(v), 23))
#  define MAGIC 12583039.0 /* 1.5 * 2^23 + 127 */
#  define EXP_MIN -87.0
#  define LN2_HI 0.693145751953125
#  define LN2_LO 1.428606765330187e-6
#  define NAME(x) single_##x##_avx512
#  include "kernel/cpu/direct/tile.h"

void weft_tile_avx512(const weft_tile *tile, int kind) { double_tile_avx512(tile, kind); }
void weft_node_avx512(const weft_node_tile *tile, int kind) { double_node_avx512(tile, kind); }
void weft_shift_avx512(const double *x, const double *middle, double scale, size_t count, float *out)
{
  single_shift_avx512(x, middle, scale, count, out);
}
void weft_tile_single_avx512(const weft_tile_single *tile, int kind) { single_tile_avx512(tile, kind); }
void weft_squares_avx512(const weft_tile_squares *tile) { single_squares_avx512(tile); }
void weft_wide_avx512(const weft_tile_wide *tile, int kind) { single_wide_avx512(tile, kind); }
#endif
