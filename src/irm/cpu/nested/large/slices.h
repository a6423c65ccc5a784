/* Visits of the nodes of a large graph, downhill, by threads; see slices.c. */
#pragma once

#include "irm/cpu/nested/levels.h"

/* Room for it, if the graph is large: t->views is NULL otherwise. */
weft_status irm_slices_make(weft_arena *arena, irm_nested *state, int threads);
/* Visits all nodes of level 0 once; adds those that moved to `moved`. `twin` (or NULL): the one group that the nodes of
 * each group may go to, or itself. */
weft_status irm_slices_visit(weft_ctx *poll, irm_nested *state, const int32_t *twin, int64_t *moved);
