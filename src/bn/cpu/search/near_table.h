/* A table for bn_learn() of the sets that settled orders ask for; see near_table.c. */
#pragma once

#include "bn/cpu/search/search.h"

/* The table of the sets that a search needs (near_table.c), the orders, p × WEFT_BN_NEAR_STARTS, where searches
 * ended that found these, and how many sets were scored. Of `search` the problem, width and key count. */
#define WEFT_BN_NEAR_STARTS 16
weft_status weft_bn_near_table(weft_ctx *ctx, const weft_bn_search *search, weft_arena *keep, weft_bn_table *out,
                               int32_t *order, double *scored);
