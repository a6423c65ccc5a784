/* Pairs of attributes of at most three levels with two to eight classes on Hopper; see ternary_hopper.cu. "planar" and
 * "planes" in these names mean this engine (src/mi/README.md, Names). */
#pragma once

#include "mi/search/cuda/search.cuh"

struct mi_planar : mi_sides {
  uint32_t classes, class_rows[WEFT_MI_TERNARY_CLASSES];
  uint32_t planes_a, planes_b;
  double steepest; /* of packed counts: weft_mi_steepest() of the share of class 0 */
  int packed;
};

/* Tiles of a search over pairs. */
uint64_t weft_mi_planes_tiles(const mi_planar *planar);
/* Bytes of the arranged planes of `count` attributes. */
size_t weft_mi_planes_bytes(const weft_mi_resident *resident, size_t count);
/* Arranges the `planes` planes of `count` attributes, from row `first` of the pack's on. */
weft_status weft_mi_planes_arrange(weft_ctx *ctx, const weft_mi_resident *resident, size_t first, size_t count,
                                   uint32_t planes, uint8_t *out, cudaStream_t stream);
/* Bytes of `room` below. */
weft_status weft_mi_planes_room(weft_ctx *ctx, const mi_planar *planar, size_t *bytes);
/* Scores tiles first .. first+count-1. */
weft_status weft_mi_planes_pairs(weft_ctx *ctx, const mi_planar *planar, const uint8_t *tiles_a, const uint8_t *tiles_b,
                                 uint8_t *room, const mi_threshold *threshold, const mi_hits *hits, uint64_t first,
                                 uint64_t count, cudaStream_t stream);
