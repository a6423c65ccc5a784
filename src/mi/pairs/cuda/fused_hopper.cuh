/* Pairs that are counted and screened at once on Hopper; see fused_hopper.cu. "screened" in these names means this
 * engine (src/mi/README.md, Names). */
#pragma once

#include "mi/search/cuda/search.cuh"
extern "C" {
#include "mi/search/cuda/hopper_layout.cuh"
}

/* Members of the two groups that passed: more may have than were listed. */
struct mi_passed {
  uint2 *pairs;
  uint32_t *count, capacity;
};

struct mi_screened {
  const weft_mi_pack *pack; /* NULL: not for this */
  weft_mi_shape a, b;
  const uint8_t *planes[2];
  size_t count[2], room[2];
  float *side[2];
  tile_grid grid;
  mi_passed passed;
};

/* Arranges a group's planes, in as much room as those of the other order take. */
weft_status weft_mi_screened_arrange(weft_ctx *ctx, const weft_mi_resident *resident, const weft_mi_group *group,
                                     size_t room, uint8_t *out, cudaStream_t stream);
/* How much memory a side takes, and the function that makes it. */
size_t weft_mi_screened_floats(const weft_mi_pack *p, const weft_mi_group *group, size_t room);
weft_status weft_mi_screened_side(weft_ctx *ctx, const weft_mi_pack *p, const weft_mi_resident *resident,
                                  const weft_mi_group *group, size_t room, float *out, cudaStream_t stream);
/* Lists what passes of tiles first .. first+tiles-1, of 128 × 256 pairs. */
weft_status weft_mi_screen_pairs(weft_ctx *ctx, const mi_screened *job, const mi_threshold *threshold, uint64_t first,
                                 uint32_t tiles, cudaStream_t stream);
