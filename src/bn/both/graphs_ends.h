/* What sums over graphs start from and end with on both back ends; see graphs_ends.c. */
#pragma once

#include "bn/both/graphs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `count` zeros, in `mem`. */
weft_status weft_bn_reals_take(weft_arena *mem, size_t count, weft_bn_reals *out);
/* The plan of a table, in `mem`; refuses scores that lie too far apart. `optimum`: the best graph's score. */
weft_status weft_bn_graph_plan_make(weft_ctx *ctx, weft_arena *mem, const weft_bn_table *table, int64_t optimum,
                                    weft_bn_graph_plan *out);
/* Edges, log total and error from the plan's `through`. none: B(none); closed: Q(all) in units, which must be 1. */
weft_status weft_bn_graph_edges(weft_ctx *ctx, const weft_bn_table *table, const weft_bn_graph_plan *plan,
                                weft_bn_real none, uint64_t closed, double *edges, double *log_total, double *error);

#ifdef __cplusplus
}
#endif
