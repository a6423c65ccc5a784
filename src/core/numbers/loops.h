/* Loops that are to be vectorised whatever the optimisation level, in functions compiled for several instruction sets:
 * the loop's body is an always-inline function, and WEFT_VARIANTS makes one callable copy for each set.
 *
 * Whatever a variant calls often must be INLINE too. gcc sees which registers a static function uses and leaves out
 * VZEROUPPER before calling it; there and back, the processor then saves and restores the upper halves of vector
 * registers, which takes longer than the function. */
#pragma once

#include "core/call/simd.h"

#define INLINE static inline __attribute__((always_inline))
#ifdef _OPENMP
#  define WEFT_SIMD_PRAGMA(text) _Pragma(#  text)
#  define WEFT_SIMD_REDUCE(...) WEFT_SIMD_PRAGMA(omp simd reduction(__VA_ARGS__))
#else
#  define WEFT_SIMD_PRAGMA(text)
#  define WEFT_SIMD_REDUCE(...)
#endif
/* The greatest of doubles: clang keeps such a loop scalar, and warns when it is asked not to. */
#ifdef __clang__
#  define WEFT_SIMD_GREATEST(variable)
#else
#  define WEFT_SIMD_GREATEST(variable) WEFT_SIMD_REDUCE(max : variable)
#endif

/* A short loop of a constant number of turns over vectors in an array, which then stay in registers. */
#define WEFT_UNROLLED _Pragma("GCC unroll 16")

#if WEFT_SIMD_X86
#  define WEFT_VARIANTS(make) make(portable, ) make(avx2, WEFT_TARGET_AVX2) make(avx512, WEFT_TARGET_AVX512)
#  define WEFT_VARIANT_HERE(name) \
    (weft_simd_level() == WEFT_SIMD_AVX512 ? name##_avx512 \
     : weft_simd_level() == WEFT_SIMD_AVX2 ? name##_avx2 \
                                           : name##_portable)
#else
#  define WEFT_VARIANTS(make) make(portable, )
#  define WEFT_VARIANT_HERE(name) (name##_portable)
#endif
