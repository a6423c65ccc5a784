/* What chains over layers start from, on both back ends; see partitions.c. */
#pragma once

#include "bn/both/chain.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds to the lists what layers need, in `mem`. */
weft_status weft_bn_layers_prepare(weft_arena *mem, weft_bn_lists *lists);
/* An input error unless the layers to start from, p × replicas, are numbered without gaps. */
weft_status weft_bn_layers_check(weft_ctx *ctx, size_t p, const weft_bn_run *run, const int32_t *layer);
/* That error, which layers also get that leave a node without possible parents. */
weft_status weft_bn_layers_refuse(weft_ctx *ctx);

#ifdef __cplusplus
}
#endif
