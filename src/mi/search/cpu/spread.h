/* Searches and permutations divided among the devices of a call; see spread.c. */
#pragma once

#include "mi/mi.h"
#include "mi/search/search.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ops->search() with the tuples dealt over the call's devices: the same result as one search. `devices`: a copy of the
 * pack for each of them. */
weft_status weft_mi_search_spread(weft_ctx *ctx, const weft_mi_ops *ops, const weft_mi_pack *pack,
                                  weft_mi_resident **devices, const weft_mi_search *search, weft_arena *mem,
                                  weft_mi_found *out);

/* weft_mi_permute_pairs() with this part's permutations dealt over the call's devices. */
weft_status weft_mi_permute_spread(weft_ctx *ctx, const weft_mi_ops *ops, const weft_mi_pack *pack,
                                   const weft_mi_search *search, const uint32_t *columns, size_t count,
                                   size_t permutations, uint64_t key, double *at_least, double *greatest);

#ifdef __cplusplus
}
#endif
