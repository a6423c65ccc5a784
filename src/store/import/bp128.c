/* The packed arrays of BPCells; see bp128.h. */
#include "store/file/bytes.h"
#include "store/import/bp128.h"

void weft_bp128(const uint8_t *bytes, unsigned bits, uint32_t out[WEFT_BP128])
{
  const uint32_t mask = bits < 32 ? (UINT32_C(1) << bits) - 1 : UINT32_MAX;
  for (unsigned i = 0; i < WEFT_BP128; i++) {
    const unsigned lane = i % 4, bit = bits * (i / 4), word = bit / 32, at = bit % 32;
    uint64_t x = 0;
    if (bits) x = weft_store_get(bytes + 4 * (4 * word + lane), 4);
    if (at + bits > 32) x |= weft_store_get(bytes + 4 * (4 * word + 4 + lane), 4) << 32;
    out[i] = (uint32_t) (x >> at) & mask;
  }
}

void weft_bp128_sum(uint32_t start, uint32_t x[WEFT_BP128])
{
  uint32_t sum = start;
  for (unsigned i = 0; i < WEFT_BP128; i++) {
    const uint32_t step = x[i] & 1 ? ~(x[i] >> 1) : x[i] >> 1;
    sum += step;
    x[i] = sum;
  }
}
