/* Series that estimate nodes for a group of queries. */
#pragma once

#include "kernel/cpu/tree/walk_state.h"

/* Moments of the reference tree's nodes for bandwidths up to `widest`, in mem; *series = NULL where none would serve.
 */
weft_status weft_series_prepare(weft_ctx *ctx, weft_arena *mem, const weft_kernel_task *task, const weft_tree *query,
                                const weft_tree *reference, double rel, double slack, double widest,
                                const weft_series **series);
/* Doubles of hands->local for each column, and of hands->powers. */
size_t weft_series_terms(const weft_series *series);
size_t weft_series_scratch(const weft_series *series);
/* Empties the series of the thread's group. */
void weft_series_begin(const weft_walk *w, weft_hands *hands);
/* The node joins the group's series if that keeps the tolerance and pays. */
int weft_series_absorb(const weft_walk *w, weft_hands *hands, size_t node, double nearest);
/* Adds the group's series at 32 queries, and its error, to hands->settled. */
void weft_series_evaluate(const weft_walk *w, weft_hands *hands, const weft_block_query *block);
