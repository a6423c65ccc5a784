/* Which variant of the vector code runs. One binary carries them all: each variant is a function compiled with a
 * target attribute, and the machine it runs on decides. Where the compiler or the system cannot do that (arm64, old
 * compilers, gcc on 64-bit Windows, which spills vectors to a stack it does not align), only the portable code is
 * built.
 *
 * The environment variable WEFT_SIMD = portable | avx2 | avx512, read once, caps the choice; other values are
 * ignored. */
#pragma once

#if defined(__x86_64__) && \
    (defined(__clang__) ? __clang_major__ >= 10 : defined(__GNUC__) && __GNUC__ >= 8 && !defined(_WIN32))
#  define WEFT_SIMD_X86 1
#  define WEFT_TARGET_AVX2 __attribute__((target("avx2,popcnt")))
#  define WEFT_TARGET_AVX512 __attribute__((target("avx512f,avx512bw,avx512vpopcntdq,popcnt")))
#else
#  define WEFT_SIMD_X86 0
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  WEFT_SIMD_PORTABLE = 0,
  WEFT_SIMD_AVX2,   /* AVX2 and POPCNT: Haswell, Zen */
  WEFT_SIMD_AVX512, /* AVX-512 F, BW and VPOPCNTDQ: Ice Lake, Zen 4 */
  WEFT_SIMD_LEVELS
} weft_simd;

/* The level in use: the best one the machine has, under the cap. Safe from any thread. */
weft_simd weft_simd_level(void);
const char *weft_simd_name(weft_simd level);

/* For tests: puts one level in use for the whole process. Returns 0 when it did, 1 when the machine lacks the level. */
int weft_simd_set(weft_simd level);

#ifdef __cplusplus
}
#endif
