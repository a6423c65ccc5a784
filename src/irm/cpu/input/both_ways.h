/* Lists by row of one-mode graphs; see both_ways.c. */
#pragma once

#include "core/call/arena.h"
#include "irm/irm.h"

/* The lists by row without the diagonal, or (`backward`) both ways. */
weft_status weft_irm_lists_make(weft_ctx *ctx, weft_arena *arena, const weft_irm_edges *edges, int backward,
                                weft_irm_lists *out, int64_t *entries);
