/* Which groups Hopper's tensor cores count, and their searches; see search_hopper.cu. */
#pragma once

#include "mi/search/cuda/progress.cuh"

/* Whether a group's pairs go by 1-bit wgmma: binary attributes with two classes; at most three levels, two to eight
 * classes. */
int weft_mi_fits_binary(const weft_ctx *ctx, const weft_mi_pack *p, const weft_mi_group *group);
int weft_mi_fits_planar(const weft_ctx *ctx, const weft_mi_pack *p, const weft_mi_group *group);

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

/* Triples of a pack that weft_mi_levels_fit(). */
weft_status weft_mi_hopper_levels(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                  const weft_mi_resident *resident, mi_collector *collector);
