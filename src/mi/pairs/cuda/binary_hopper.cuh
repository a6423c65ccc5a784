/* Pairs and triples of binary attributes with two classes on Hopper; see binary_hopper.cu. "wgmma" in these names means
 * this engine (src/mi/README.md, Names); weft_mi_wgmma_ready() and weft_mi_wgmma_arrange() serve the others, too. */
#pragma once

#include "mi/search/cuda/search.cuh"

struct mi_binary : mi_sides { /* 128 (side a) or 256 (side b) a tile */
  uint32_t class_rows[2];
  int steps[2];    /* k-steps of each class */
  double steepest; /* weft_mi_steepest() of the share of class 1 */
};

/* 1 when this device and this build have 1-bit wgmma. */
int weft_mi_wgmma_ready(int device);
/* Tiles of a search over pairs. */
uint64_t weft_mi_wgmma_tiles(const mi_binary *binary);
/* Puts rows first .. first+count-1 of the planes in wgmma's order. `out`: room for count rounded up to 256 rows. */
weft_status weft_mi_wgmma_arrange(weft_ctx *ctx, const weft_mi_resident *resident, size_t first, size_t count,
                                  uint8_t *out, cudaStream_t stream);
/* Bytes of `constants` for searches of this order. */
size_t weft_mi_wgmma_room(const mi_binary *binary, int order);
/* Scores tiles first .. first+count-1. tiles_a, tiles_b: arranged planes. */
weft_status weft_mi_wgmma_pairs(weft_ctx *ctx, const mi_binary *binary, const uint8_t *tiles_a, const uint8_t *tiles_b,
                                void *constants, const mi_threshold *threshold, const mi_hits *hits, uint64_t first,
                                uint64_t count, cudaStream_t stream);
/* Counts of all pairs of one group, class 0 in the high and class 1 in the low half: joint[a * ld + b], b > a. */
weft_status weft_mi_wgmma_counts(weft_ctx *ctx, const mi_binary *binary, const uint8_t *tiles, uint32_t *joint,
                                 size_t ld, cudaStream_t stream);
/* Scores the triples of attribute i and all pairs behind it. `masked`: room like `tiles`. */
weft_status weft_mi_wgmma_triples(weft_ctx *ctx, const mi_binary *binary, const uint8_t *tiles, uint8_t *masked,
                                  void *constants, const uint32_t *joint, size_t ld, uint32_t i,
                                  const mi_threshold *threshold, const mi_hits *hits, cudaStream_t stream);
