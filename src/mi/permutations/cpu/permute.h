/* Permutation tests of tuples and of single attributes; see permute.c. */
#pragma once

#include "mi/mi.h"
#include "mi/search/search.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Permutation tests. at_least[k]: permutations in which tuple (attribute) k scores at least as much as in the data;
 * greatest[b]: the best score of all in permutation b. Pairs: permutations are dealt to search->part of search->parts,
 * and `greatest` of the others is left as it is; weft_mi_permute_spread() deals this part's over the call's devices. */
weft_status weft_mi_permute_pairs(weft_ctx *ctx, const weft_mi_ops *ops, const weft_mi_pack *pack,
                                  const weft_mi_search *search, const uint32_t *columns, size_t count,
                                  size_t permutations, uint64_t key, double *at_least, double *greatest);

/* Single attributes: `observed` gets their information, in bits. */
weft_status weft_mi_permute_rank(weft_ctx *ctx, const weft_mi_ops *ops, const weft_mi_pack *pack, size_t permutations,
                                 uint64_t key, double *observed, double *at_least, double *greatest);

#ifdef __cplusplus
}
#endif
