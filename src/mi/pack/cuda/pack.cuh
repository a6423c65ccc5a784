/* Copies of packs on the device; see pack.cu. */
#pragma once

#include "mi/search/cuda/search.cuh"

/* Room for the planes of a pack, its margins and the words of its classes. NULL in *out when it fails. */
weft_status weft_mi_resident_open(weft_ctx *ctx, const weft_mi_pack *pack, weft_mi_resident **out);
/* What follows from the margins, and the rest: after that searches may use it. */
weft_status weft_mi_resident_close(weft_ctx *ctx, const weft_mi_pack *pack, weft_mi_resident *resident);

/* NULL in *out when it fails. */
weft_status weft_mi_resident_make(weft_ctx *ctx, const weft_mi_pack *pack, weft_mi_resident **out);
