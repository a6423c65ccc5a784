/* Searches of groups that Hopper's tensor cores count (mi/plan.h says which); see search_hopper.cu. */
#pragma once

#include "mi/search/cuda/progress.cuh"

/* Pairs of a panel whose groups fit, and triples of a pack of one group that does. */
weft_status weft_mi_hopper_binary(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                  weft_mi_resident *resident, const weft_mi_panel *panel, mi_collector *collector);
weft_status weft_mi_hopper_planar(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                  weft_mi_resident *resident, const weft_mi_panel *panel, mi_collector *collector);
weft_status weft_mi_hopper_products(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                    const weft_mi_resident *resident, const weft_mi_panel *panel,
                                    mi_collector *collector);
weft_status weft_mi_hopper_triples(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                   const weft_mi_resident *resident, mi_collector *collector);

/* Triples of a pack of few levels. */
weft_status weft_mi_hopper_levels(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                  const weft_mi_resident *resident, mi_collector *collector);
