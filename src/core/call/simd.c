/* Detection of the CPU variant. The level is found on first use and kept in one atomic: threads that race find the
 * same answer, and only the first to finish writes it, so that a test's weft_simd_set() is never overwritten. */
/* Build: shared. */
#include "core/call/simd.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const char *const level_names[WEFT_SIMD_LEVELS] = { "portable", "avx2", "avx512" };

enum { LEVEL_UNKNOWN = -1 };
static atomic_int level_in_use = LEVEL_UNKNOWN;

/* The compiler's support routine also asks whether the operating system saves the wide registers. */
static weft_simd machine_level(void)
{
#if WEFT_SIMD_X86
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("popcnt")) return WEFT_SIMD_PORTABLE;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vpopcntdq"))
    return WEFT_SIMD_AVX512;
  return WEFT_SIMD_AVX2;
#else
  return WEFT_SIMD_PORTABLE;
#endif
}

static weft_simd level_cap(void)
{
  const char *cap = getenv("WEFT_SIMD");
  for (int level = 0; cap && level < WEFT_SIMD_LEVELS; level++)
    if (!strcmp(cap, level_names[level])) return (weft_simd) level;
  return WEFT_SIMD_AVX512;
}

weft_simd weft_simd_level(void)
{
  int level = atomic_load_explicit(&level_in_use, memory_order_relaxed);
  if (level != LEVEL_UNKNOWN) return (weft_simd) level;
  weft_simd machine = machine_level(), cap = level_cap();
  int expected = LEVEL_UNKNOWN, found = machine < cap ? machine : cap;
  return (weft_simd) (atomic_compare_exchange_strong(&level_in_use, &expected, found) ? found : expected);
}

const char *weft_simd_name(weft_simd level) { return level_names[level]; }

int weft_simd_set(weft_simd level)
{
  if (level > machine_level()) return 1;
  atomic_store(&level_in_use, (int) level);
  return 0;
}
