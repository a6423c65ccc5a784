/* Columns to levels, in the order of time. */
#pragma once

#include "mi/transfer/both/transfer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes levels of `genes` columns at the samples order[0 .. samples - 1] to codes (genes × samples); *levels: the most
 * of a gene, at least 2. bins > 0 cuts at the values of ranks ceil(b samples / bins), as weft_mi_cuts() does by
 * frequency; 0: the values are whole numbers, or codes, of at most WEFT_TRANSFER_LEVELS levels. n: rows of columns. */
weft_status weft_transfer_codes(weft_ctx *ctx, const weft_column *columns, size_t n, size_t genes,
                                const uint32_t *order, size_t samples, uint32_t bins, uint8_t *codes, uint32_t *levels);

#ifdef __cplusplus
}
#endif
