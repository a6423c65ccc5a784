/* How much memory a pack takes on the device; see capacity.cu. */
#pragma once

#include "mi/search/cuda/search.cuh"

/* 32-bit words of a row of planes on the device, up to the end of the first `classes` classes. */
uint32_t weft_mi_resident_words(const weft_mi_pack *pack, uint32_t classes);

/* Bytes of a row of planes, and the most that a block may weigh (blocks.h). */
struct mi_block_plan {
  double plane, max_bytes;
};

/* 1 when the device has room for a search over the pack's pairs, and for `copies` more copies of its planes; otherwise
 * the plan says how to cut it. */
int weft_mi_device_holds(weft_ctx *ctx, const weft_mi_pack *pack, int copies, mi_block_plan *plan);
