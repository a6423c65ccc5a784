/* Moves of nested groups, as steps of a Markov chain or downhill; see moves.c. */
#pragma once

#include "irm/cpu/nested/changes.h"

/* Visits the nodes of a level, first .. last - 1 of the order that irm_nested_shuffle() made: each may go to another
 * group or, with `create`, to a new one. `cold`: only what shortens the description. Returns the change of length. */
int32_t irm_nested_shuffle(irm_nested *t, int l);
double irm_nested_visit(irm_nested *t, int l, int32_t first, int32_t last, int cold, int create);
/* One proposal to split a group in two, or to join two of one parent. */
double irm_nested_split_merge(irm_nested *t, int l, int cold);
/* Joins each group with the best of those near it, if that shortens the description; adds the change. poll may be NULL.
 */
weft_status irm_nested_join(weft_ctx *poll, irm_nested *t, int l, double *by);
/* A group for a node or group that was taken to go to, by its links; and the probability of it. */
int32_t irm_nested_draw_group(irm_nested *t, int l, int type);
double irm_nested_draw_probability(const irm_nested *t, int l, int type, int32_t s);
