/* Coding of columns, the error of the first bad one, and columns that are counted by sorting; for both back ends. */
#pragma once

#include "mi/mi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Tables of at most this many cells are counted as tables, larger ones by sorting. */
#define WEFT_MI_TABLE_CELLS ((uint64_t) 1 << 18)

/* An attribute's coding, and the result of planning it. WEFT_CODES_WIDE also stands for a table that would be too
 * large. */
typedef struct weft_mi_code {
  weft_codes plan;
  weft_codes_result result;
} weft_mi_code;

/* Plans the coding of column j. The codes are bytes only when the class codes fit into bytes too. */
weft_mi_code weft_mi_code_plan(const weft_mi_data *data, size_t j);

/* The error of the first bad column of first .. first+count-1, so that it does not depend on the number of threads. */
weft_status weft_mi_check(weft_ctx *ctx, const weft_mi_code *codes, size_t first, size_t count);

/* Counts and scores the columns of first .. first+count-1 whose result is WEFT_CODES_WIDE, by sorting (value, class)
 * pairs, one column after another. Both back ends leave these columns to it: no table of them would fit a cache. */
weft_status weft_mi_rank_wide(weft_ctx *ctx, const weft_mi_data *data, weft_mi_code *codes, size_t first, size_t count,
                              const weft_mi_rank *out);

#ifdef __cplusplus
}
#endif
