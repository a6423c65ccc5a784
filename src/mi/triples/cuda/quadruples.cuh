/* Quadruples; see quadruples.cu. */
#pragma once

#include "mi/search/cuda/search.cuh"

struct mi_collector;
/* Searches quadruples of attributes of at most three levels without missing values, and two classes of at most 65,535
 * rows together. An item's index is its lexicographic rank. */
weft_status weft_mi_quadruples(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                               const weft_mi_resident *resident, mi_collector *collector);
