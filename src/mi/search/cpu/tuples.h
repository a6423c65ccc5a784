/* The search over all tuples of chosen columns; see tuples.c. */
#pragma once

#include "mi/search/search.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The best tuples of search->order of the p columns in `chosen` (increasing). An item's index is its lexicographic
 * rank. */
weft_status weft_mi_search_tuples(weft_ctx *ctx, const weft_mi_pack *pack, const uint32_t *chosen, size_t p,
                                  const weft_mi_search *search, weft_arena *mem, weft_mi_found *out);
/* How many tuples of `order` of p columns there are, and the one with a given lexicographic rank (positions from 0). */
double weft_mi_choose(double p, int order);
void weft_mi_unrank(uint64_t rank, size_t p, int order, uint32_t *out);

#ifdef __cplusplus
}
#endif
