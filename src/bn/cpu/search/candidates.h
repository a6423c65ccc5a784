/* Candidate parents of all nodes; see candidates.c. */
#pragma once

#include "bn/cpu/search/scorer.h"
#include "bn/cpu/search/search.h"

/* The candidates of all nodes, in `mem`. */
weft_status weft_bn_near_find(weft_ctx *ctx, weft_arena *mem, const weft_bn_search *search, weft_bn_scorer *scorers,
                              weft_bn_near *out);
/* Adds, for each node, the best node before it that is no candidate, when it raises the score. *added: how many. */
weft_status weft_bn_near_widen(weft_ctx *ctx, weft_arena *mem, const weft_bn_search *search, weft_bn_scorer *scorers,
                               const int32_t *order, const int32_t *dag, weft_bn_near *near, size_t *added);
