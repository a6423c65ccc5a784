/* The kinds of moves that a sweep is made of; each leaves the posterior invariant, except the ascent, which is
 * undone. */
#pragma once

#include "irm/both/state.h"

#ifdef __cplusplus
extern "C" {
#endif

/* blocked.c. Tables and work space for one chain, in `arena`. */
typedef struct irm_blocked irm_blocked;
weft_status irm_blocked_make(weft_ctx *ctx, weft_arena *arena, irm_state *state, int threads, irm_blocked **out);
/* The tables of a mode, from the blocks as they are; then the labels of its nodes first .. last-1. */
void irm_blocked_mode(irm_blocked *blocked, irm_state *state, int mode, int threads);
void irm_blocked_nodes(irm_blocked *blocked, irm_state *state, int mode, int64_t first, int64_t last, int threads);
/* Draws log μ. */
void irm_draw_sticks(irm_state *state, int mode);
/* Proposes to swap neighbouring labels; the new names go to state->place. */
void irm_swap_labels(irm_state *state, int mode);

/* collapsed.c. Labels of nodes first .. last-1, one after another; Metropolis steps of α of a mode, and of β. */
void irm_collapsed_nodes(irm_state *state, int mode, int64_t first, int64_t last);
void irm_sample_alpha(irm_state *state, int mode);
void irm_sample_beta(irm_state *state);

/* greedy_ascent.c; poll may be NULL. Whether this sweep has an ascent, and from where; the ascent; and the way back to
 * the sample. */
enum { IRM_STAY, IRM_FROM_SAMPLE, IRM_FROM_BEST };
int irm_ascent_start(const irm_state *state);
weft_status irm_ascend(weft_ctx *poll, irm_state *state, int from_best);
void irm_ascend_back(irm_state *state);

/* trials.c; poll may be NULL. Makes `attempts` proposals in a mode of each chain, by the threads of the first;
 * queue.changed is 1 when one was accepted. And the memory in which they are evaluated when `chains` chains do that
 * together. */
weft_status irm_split_merge(weft_ctx *poll, irm_state *const *states, int chains, int mode, int attempts);
weft_status irm_trials_make(weft_arena *arena, irm_state *state, int chains);

#ifdef __cplusplus
}
#endif
