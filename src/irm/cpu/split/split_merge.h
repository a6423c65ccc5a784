/* One split-merge proposal; see split_merge.c. */
#pragma once

#include "irm/cpu/split/two_clusters.h"

/* Proposal `number` of the sweep in a mode, for the state as it is; its outcome is in the trial. */
weft_status irm_weigh(weft_ctx *poll, irm_state *state, irm_trial *trial, int mode, int number);
