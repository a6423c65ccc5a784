/* Selection with the halves dealt over the call's devices. */
#pragma once

#include "regulation/regulation.h"

/* The halves dealt over the call's devices, pair by pair. */
weft_status weft_regulation_spread(weft_ctx *ctx, const weft_regulation_ops *ops, const weft_regulation_job *job,
                                   int32_t *choices);
