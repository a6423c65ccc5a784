/* Counting tuples of any order from codes, and scoring the tuples that are reported; see coded.c. */
#pragma once

#include "mi/mi.h"
#include "mi/search/search.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One thread's room for counting tuples of up to `order` columns from codes. */
typedef struct weft_mi_coder {
  size_t n, hash_size;
  uint32_t *ids, *rows, *counts, *class_end;
  uint64_t *keys;
  uint32_t *slots;
} weft_mi_coder;
/* Takes the room from `mem`; a thread needs its own. */
weft_status weft_mi_coder_init(weft_mi_coder *w, weft_arena *mem, const weft_mi_pack *pack, int order);
/* Fixed-point information about the class of the columns of `codes` whose bit is set in masks[0 .. count-1], over the
 * rows where all k are known; returns how many these are. */
size_t weft_mi_coded(weft_mi_coder *w, const weft_mi_pack *pack, const uint16_t *const *codes, const uint32_t *levels,
                     int k, const uint32_t *masks, int count, int64_t *out);

/* Scores of tuples of `order` columns each. */
weft_status weft_mi_score_tuples(weft_ctx *ctx, const weft_mi_pack *pack, const uint32_t *columns, size_t count,
                                 int order, weft_mi_tuple *out);

/* Every attribute by itself, as mi_rank gives it; n is the rows that count, and 0 levels give 0. */
weft_status weft_mi_pack_rank(weft_ctx *ctx, const weft_mi_pack *pack, const weft_mi_rank *out);

#ifdef __cplusplus
}
#endif
