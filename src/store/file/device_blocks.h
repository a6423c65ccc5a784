/* Blocks for a device to unpack. */
#pragma once

#include "core/device/packed.h"
#include "store/store.h"

/* Blocks first .. first + count - 1, all rows of them, and the choice's columns, as a panel of the rows of all. Refuses
 * more than `most` entries of these columns. */
weft_status weft_store_pack_panel(weft_ctx *ctx, const weft_store *store, size_t first, size_t count,
                                  const weft_store_choice *choice, const weft_store_recipe *recipe, double most,
                                  weft_packed *to);
