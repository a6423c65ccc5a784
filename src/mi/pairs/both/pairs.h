/* Searches for pairs, and the scores of all pairs, on both back ends. */
#pragma once

#include "mi/search/search.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The best tuples; memory from `mem`. */
weft_status weft_mi_search_cpu(weft_ctx *ctx, const weft_mi_pack *pack, weft_mi_resident **device,
                               const weft_mi_search *search, weft_arena *mem, weft_mi_found *out);
/* All pairs: columns × columns, column major; the diagonal is left as it is. */
weft_status weft_mi_full_cpu(weft_ctx *ctx, const weft_mi_pack *pack, weft_mi_resident **device, double *mi,
                             double *interaction);

weft_status weft_mi_full_cuda(weft_ctx *ctx, const weft_mi_pack *pack, weft_mi_resident **device, double *mi,
                              double *interaction);

/* The same for only the pairs with codes whose tables have more than `words` entries (weft_mi_large()), which a device
 * leaves out: on the CPU. */
weft_status weft_mi_search_large(weft_ctx *ctx, const weft_mi_pack *pack, const weft_mi_search *search, uint64_t words,
                                 weft_arena *mem, weft_mi_found *out);
weft_status weft_mi_full_large(weft_ctx *ctx, const weft_mi_pack *pack, uint64_t words, double *mi,
                               double *interaction);

#ifdef __cplusplus
}
#endif
