/* Blocked Gibbs sampling of real values; see real.c. */
#pragma once

#include "irm/cpu/nodes.h"
#include "irm/both/state.h"

typedef struct irm_real irm_real;

weft_status irm_real_make(weft_arena *arena, const irm_state *state, int threads, irm_real **out);
/* μ and τ of every block, from the counts as they are: for both modes of the sweep. */
void irm_real_draw(irm_real *real, const irm_state *state);
/* Tables for a mode, whose nodes may then be drawn, in any order. */
void irm_real_mode(irm_real *real, const irm_state *state, int mode);
void irm_real_nodes(irm_real *real, irm_state *state, int mode, int64_t first, int64_t last, int threads);
