/* Unions of clusters by their scores; see joins.c. */
#pragma once

#include "irm/both/state.h"

/* The last sweep that joins clusters: those up to it are part of where a chain starts, not samples. */
enum { IRM_JOINING_SWEEPS = 10 };

/* Makes all unions of two clusters of a bipartite graph that raise the log posterior and look like one cluster, mode
 * after mode, until none is left; `joined`: how many. poll may be NULL. */
weft_status irm_join_all(weft_ctx *poll, irm_state *state, int64_t *joined);
