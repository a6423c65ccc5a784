/* Degrees of the nodes, in classes of equal ones, and how many nodes of each class a group of level 0 has. */
#pragma once

#include "irm/cpu/nested/levels.h"

/* Degrees, their classes, room for the counts, and what the description length has of the degrees alone. */
weft_status irm_degrees_make(weft_ctx *poll, weft_arena *arena, irm_nested *state);
/* Reads degrees and classes again after links were drawn (masked.c), in the room that is there. */
void irm_degrees_read(irm_nested *state);
/* Counts from the labels; and those of node i, whose label is s by now, as it goes from r to s. */
void irm_degrees_count(irm_nested *state);
void irm_degrees_move(irm_nested *state, int32_t i, int32_t home, int32_t goal);

static inline size_t irm_count_slot(const irm_degree_counts *counts, uint64_t key)
{
  size_t at = (size_t) ((key * 0x9e3779b97f4a7c15u) >> 20) & (counts->size - 1);
  while (counts->key[at] != key && counts->key[at] != UINT64_MAX) at = (at + 1) & (counts->size - 1);
  return at;
}

/* Adds to a count of a hashed table. */
static inline void irm_count_add(irm_degree_counts *counts, uint64_t key, int32_t by)
{
  const size_t at = irm_count_slot(counts, key);
  if (counts->key[at] != key) {
    counts->key[at] = key;
    counts->count[at] = 0;
    counts->used++;
  }
  counts->count[at] += by;
}

static inline int32_t irm_degree_count(const irm_nested *state, int32_t home, int32_t c)
{
  const uint64_t key = (uint64_t) home * (uint64_t) state->classes + (uint64_t) c;
  if (!state->counts.key) return state->counts.count[key];
  const size_t at = irm_count_slot(&state->counts, key);
  return state->counts.key[at] == key ? state->counts.count[at] : 0;
}
