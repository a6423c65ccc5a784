/* The search for triples on the CPU; see triples.c. */
#pragma once

#include "mi/search/search.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The best triples of this part of the search; memory from `mem`. */
weft_status weft_mi_search_triples(weft_ctx *ctx, const weft_mi_pack *pack, const weft_mi_search *search,
                                   weft_arena *mem, weft_mi_found *out);

#ifdef __cplusplus
}
#endif
