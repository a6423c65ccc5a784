/* Planes of genotypes that the device makes and keeps; see genotypes.cu. */
#pragma once

#include "mi/pack/pack.h"

#ifdef __cplusplus
extern "C" {
#endif

/* weft_mi_ops.plant and .planes on a device. */
weft_status weft_mi_plant_cuda(weft_ctx *ctx, weft_arena *mem, const weft_column *columns, int na_level,
                               weft_mi_pack *pack, struct weft_mi_resident **out);
weft_status weft_mi_planes_cuda(weft_ctx *ctx, const weft_mi_pack *pack, const size_t *rows, size_t count,
                                uint64_t *bits);

#ifdef __cplusplus
}
#endif
