/* Collapsed Gibbs sampling, and α and β; see collapsed.c. */
#pragma once

#include "irm/both/state.h"

/* Labels of nodes first .. last-1, one after another; Metropolis steps of α of a mode, and of β. */
void irm_collapsed_nodes(irm_state *state, int mode, int64_t first, int64_t last);
void irm_sample_alpha(irm_state *state, int mode);
void irm_sample_beta(irm_state *state);
