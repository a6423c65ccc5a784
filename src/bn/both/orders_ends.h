/* What sums over orders start from and end with on both back ends; see orders_ends.c. */
#pragma once

#include "bn/both/orders.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The plan lives in `mem`. `optimum`: the score of the best graph, which tells what share of a sum can matter. */
weft_status weft_bn_order_plan_make(weft_ctx *ctx, weft_arena *mem, const weft_bn_table *table, int64_t optimum,
                                    int low_bits, int mid_bits, weft_bn_order_plan *out);
/* Edges and the total from the plan's `sum` and the words f(all) and b(none), which must agree. */
weft_status weft_bn_order_edges(weft_ctx *ctx, const weft_bn_table *table, const weft_bn_order_plan *plan,
                                uint64_t forward, uint64_t backward, double *edges, double *log_total);
/* Parts by size: part[begin[k]] .. part[begin[k + 1] - 1] have k members; begin has bits + 2 entries. */
void weft_bn_parts_by_size(int bits, uint32_t *part, size_t *begin);

#ifdef __cplusplus
}
#endif
