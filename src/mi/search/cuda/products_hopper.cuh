/* Products of 64 rows of bits by N on Hopper's tensor cores, for a few widths N: a thread holds N / 2 counts, four for
 * every eight columns. */
#pragma once

#include "core/device/hopper.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

#  define NAMES_12 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11"
#  define NAMES_16 NAMES_12 ",%12,%13,%14,%15"
#  define NAMES_24 NAMES_16 ",%16,%17,%18,%19,%20,%21,%22,%23"
#  define NAMES_32 NAMES_24 ",%24,%25,%26,%27,%28,%29,%30,%31"
#  define NAMES_64 \
    NAMES_32 \
    ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57," \
    "%58,%59,%60,%61,%62,%63"
#  define PRODUCT(n, names, a, b) \
    "{.reg .pred p; setp.eq.u32 p, 0, 0;\nwgmma.mma_async.sync.aligned.m64n" n "k256.s32.b1.b1.and.popc {" names \
    "}, " a ", " b ", p;}\n"

/* The descriptor of an operand whose groups of eight rows are `bytes` bytes apart. */
__device__ static inline uint64_t spaced_descriptor(const void *shared, uint32_t bytes)
{
  return operand_descriptor(shared) + ((uint64_t) ((bytes - 256) >> 4) << 32);
}

/* c += popcounts of 64 rows of a and N of b over 256 bits. */
template <int COUNTS> __device__ static inline void mma_64_rows(uint32_t (&c)[COUNTS], uint64_t a, uint64_t b)
{
  static_assert(COUNTS == 12 || COUNTS == 16 || COUNTS == 24 || COUNTS == 32 || COUNTS == 64, "of these widths");
  if constexpr (COUNTS == 12)
    asm volatile(PRODUCT("24", NAMES_12, "%12", "%13") : R4(0), R4(4), R4(8) : "l"(a), "l"(b));
  else if constexpr (COUNTS == 16)
    asm volatile(PRODUCT("32", NAMES_16, "%16", "%17") : R16(0) : "l"(a), "l"(b));
  else if constexpr (COUNTS == 24)
    asm volatile(PRODUCT("48", NAMES_24, "%24", "%25") : R16(0), R4(16), R4(20) : "l"(a), "l"(b));
  else if constexpr (COUNTS == 64)
    asm volatile(PRODUCT("128", NAMES_64, "%64", "%65") : R16(0), R16(16), R16(32), R16(48) : "l"(a), "l"(b));
  else
    asm volatile(PRODUCT("64", NAMES_32, "%32", "%33") : R16(0), R16(16) : "l"(a), "l"(b));
}

#endif
