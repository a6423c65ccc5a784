/* The split-merge proposals of a sweep; see trials.c. */
#pragma once

#include "irm/both/state.h"

/* poll may be NULL. Makes `attempts` proposals in a mode of each chain, by the threads of the first;
 * queue.changed is 1 when one was accepted. And the memory in which they are evaluated when `chains` chains do that
 * together. */
weft_status irm_split_merge(weft_ctx *poll, irm_state *const *states, int chains, int mode, int attempts);
weft_status irm_trials_make(weft_arena *arena, irm_state *state, int chains);
