/* Moves of nodes and groups: how they change the description length and the state. */
#pragma once

#include "irm/cpu/nested/levels.h"

/* A move, for the functions below: node i of a level, or group r as a whole. */
void irm_nested_take(irm_nested *t, int l, int32_t i);
void irm_nested_take_group(irm_nested *t, int l, int32_t r);
/* Change of the description length when it goes to group s, which may be spare: plan[l + 1] is its parent then. */
double irm_nested_change(irm_nested *t, int l, int32_t i, int32_t s);
double irm_nested_merge_change(irm_nested *t, int l, int32_t r, int32_t s);
/* For node i of level 0, between groups of several nodes, in parts: what it takes from its group r but for links; and
 * what it brings to s, with the links within and between both. */
double irm_leave_change(const irm_nested *t, int32_t i, int32_t r);
double irm_come_change(irm_nested *t, int32_t i, int32_t r, int32_t s);
/* Moves it. */
void irm_nested_move(irm_nested *t, int l, int32_t i, int32_t s);
void irm_nested_merge(irm_nested *t, int l, int32_t r, int32_t s);
