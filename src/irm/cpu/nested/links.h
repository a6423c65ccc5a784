/* Counting links between the groups of level 0; in large graphs by threads, each in a table of its own. */
#pragma once

#include "irm/cpu/nested/levels.h"

/* Links and ends of the groups, from the labels. */
weft_status irm_links_count(weft_ctx *poll, irm_nested *state);
/* Links and ends of the groups of a level from its links; and links of the levels above from those below. */
void irm_links_sum(irm_nested *state, irm_level *level);
void irm_links_lift(irm_nested *state, int l);

/* Tables of side x side numbers for as many threads as there is room for, cleared; those are then added to the links
 * of the groups. Group r has row and column irm_group_place(). */
int irm_links_tables(irm_nested *state, int32_t *side);
void irm_links_add(irm_nested *state, int tables, int32_t side);

static inline int32_t irm_group_place(const irm_level *level, int32_t home)
{
  return level->place[home] + (irm_type_of(level, home) ? level->count[0] : 0);
}
