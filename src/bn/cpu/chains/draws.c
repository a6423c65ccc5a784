/* Draws of chains over orders, eight at a time. */
/* Build: shared. */
#include "bn/cpu/chains/chain.h"
#include "bn/cpu/chains/draws.h"

#if WEFT_SIMD_X86
WEFT_TARGET_AVX512
/* A 64-bit lane per draw; the upper half of a word is whatever a product left there, which no product reads. */
/* Ten rounds of Philox for eight consecutive indices at once: the words that weft_draw_words() gives one by one. */
static void draw_eight_avx512(weft_rng rng, uint64_t first, weft_u32x4 *out)
{
  const __m512i one = _mm512_set1_epi64(0xD2511F53), two = _mm512_set1_epi64(0xCD9E8D57);
  const __m512i low = _mm512_set1_epi64(0xffffffff);
  const __m512i index =
      _mm512_add_epi64(_mm512_set1_epi64((long long) first), _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0));
  __m512i c0 = index, c1 = _mm512_srli_epi64(index, 32), c2 = _mm512_set1_epi64(rng.stream),
          c3 = _mm512_setzero_si512();
  uint32_t k0 = (uint32_t) rng.key, k1 = (uint32_t) (rng.key >> 32);
  for (int round = 0; round < 10; round++) {
    const __m512i a = _mm512_mul_epu32(c0, one), b = _mm512_mul_epu32(c2, two);
    c0 = _mm512_xor_si512(_mm512_xor_si512(_mm512_srli_epi64(b, 32), c1), _mm512_set1_epi64(k0));
    c1 = b;
    c2 = _mm512_xor_si512(_mm512_xor_si512(_mm512_srli_epi64(a, 32), c3), _mm512_set1_epi64(k1));
    c3 = a;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  c0 = _mm512_or_si512(_mm512_and_si512(c0, low), _mm512_slli_epi64(c1, 32));
  c2 = _mm512_or_si512(_mm512_and_si512(c2, low), _mm512_slli_epi64(c3, 32));
  _mm512_storeu_si512(out, _mm512_permutex2var_epi64(c0, _mm512_set_epi64(11, 3, 10, 2, 9, 1, 8, 0), c2));
  _mm512_storeu_si512(out + 4, _mm512_permutex2var_epi64(c0, _mm512_set_epi64(15, 7, 14, 6, 13, 5, 12, 4), c2));
}
#endif

void weft_bn_draw_eight(weft_rng rng, uint64_t first, weft_u32x4 *out)
{
#if WEFT_SIMD_X86
  if (weft_simd_level() == WEFT_SIMD_AVX512) {
    draw_eight_avx512(rng, first, out);
    return;
  }
#endif
  for (uint64_t k = 0; k < 8; k++) out[k] = weft_draw_words(rng, first + k, 0);
}
