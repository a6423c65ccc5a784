/* A digest of what must be the same on all ranks: equal bits give equal digests, and different ones differ except with
 * probability 2^-64. Four chains run side by side; each step can be undone, so that one different word always shows. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct weft_digest {
  uint64_t chain[4];
} weft_digest;

static inline weft_digest weft_digest_begin(void)
{
  return (weft_digest){ { UINT64_C(0x243f6a8885a308d3), UINT64_C(0x13198a2e03707344), UINT64_C(0xa4093822299f31d0),
                          UINT64_C(0x082efa98ec4e6c89) } }; /* digits of pi */
}

static inline uint64_t weft_digest_step(uint64_t chain, uint64_t word)
{
  chain = (chain ^ word) * UINT64_C(0x9e3779b97f4a7c15);
  return chain ^ chain >> 29;
}

static inline void weft_digest_word(weft_digest *d, uint64_t word)
{
  for (int k = 0; k < 4; k++) d->chain[k] = weft_digest_step(d->chain[k], word + (uint64_t) k);
}

/* The bytes and their number. */
static inline void weft_digest_bytes(weft_digest *d, const void *bytes, size_t n)
{
  const unsigned char *at = bytes;
  uint64_t words[4];
  weft_digest_word(d, n);
  for (; n >= sizeof words; n -= sizeof words, at += sizeof words) {
    memcpy(words, at, sizeof words);
    for (int k = 0; k < 4; k++) d->chain[k] = weft_digest_step(d->chain[k], words[k]);
  }
  if (!n) return;
  memset(words, 0, sizeof words);
  memcpy(words, at, n);
  for (int k = 0; k < 4; k++) d->chain[k] = weft_digest_step(d->chain[k], words[k]);
}

static inline uint64_t weft_digest_end(const weft_digest *d)
{
  uint64_t all = 0;
  for (int k = 0; k < 4; k++) all = weft_digest_step(all, d->chain[k]);
  return all;
}
