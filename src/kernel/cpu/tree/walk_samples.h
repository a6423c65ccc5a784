/* Samples that estimate the frontier of 32 queries. */
#pragma once

#include "kernel/cpu/tree/walk_state.h"

/* Tries to estimate the whole frontier by samples; 1: it is settled. */
int weft_walk_sample(const weft_walk *w, weft_hands *hands, const weft_block_query *block);
