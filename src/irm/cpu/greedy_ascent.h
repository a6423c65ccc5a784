/* Uphill from a sample or from the best partition; see greedy_ascent.c. Ascents are undone: the sample stays as it is.
 */
#pragma once

#include "irm/both/state.h"

/* Whether this sweep has an ascent, and from where; the ascent; and the way back to
 * the sample. poll may be NULL. */
enum { IRM_STAY, IRM_FROM_SAMPLE, IRM_FROM_BEST };
int irm_ascent_start(const irm_state *state);
weft_status irm_ascend(weft_ctx *poll, irm_state *state, int from_best);
void irm_ascend_back(irm_state *state);
