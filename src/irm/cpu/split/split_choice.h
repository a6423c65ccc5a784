/* Which cluster of a bipartite graph a split is proposed for; see split_choice.c. */
#pragma once

#include "irm/cpu/split/two_clusters.h"

/* Before the proposals in a mode, while the other mode stays as it is; after one that moved the nodes of the trial. */
weft_status irm_uneven_begin(weft_ctx *poll, irm_state *state, int mode);
void irm_uneven_renew(irm_state *state, int mode, const irm_trial *trial);

/* T of the cluster that a and b would make; and adding what is known of b's nodes to a's when they have become one. */
double irm_uneven_joined(const irm_state *state, int mode, int32_t a, int32_t b);
void irm_uneven_add(irm_state *state, int mode, int32_t a, int32_t b);
