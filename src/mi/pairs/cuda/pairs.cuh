/* The search over all pairs of a pack on the device; see pairs.cu. */
#pragma once

#include "mi/search/cuda/progress.cuh"

/* All pairs of a pack on the device: pairs.cu. */
weft_status weft_mi_search_panels(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                  weft_mi_resident *resident, mi_collector *collector);
