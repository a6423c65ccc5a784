/* What the blocked sampler draws for a sweep, and its threads' memory; see blocked.c. */
#pragma once

#include "irm/cpu/nodes.h"
#include "irm/both/state.h"

/* Tables [0]: m * width[0] + l, [1]: l * width[1] + m; rows of clusters that are occupied. */
typedef struct irm_blocked {
  int64_t width[2];                            /* clusters of each mode, rounded up to IRM_LANES */
  double *link_rows[2];                        /* log odds of η_lm (counts: log η_lm), in units */
  double *none_rows[2];                        /* log(1 - η_lm) (counts: -η_lm), in nats */
  double *missing_rows[2];                     /* the same in units, when pairs are missing */
  int32_t *link_narrow[2], *missing_narrow[2]; /* less the middle of each row; bipartite graphs only */
  int narrow[2];                               /* these hold */
  uint8_t *drawn;                              /* one-mode graphs: clusters whose rows are there */
  double *base[2];                             /* nats; bipartite graphs: units, the greatest 0 */
  int32_t *base_narrow[2];
  irm_node_scratch *scratch; /* one per thread */
} irm_blocked;

/* Tables and work space for one chain, in `arena`. */
weft_status irm_blocked_make(weft_ctx *ctx, weft_arena *arena, irm_state *state, int threads, irm_blocked **out);
/* The tables of a mode, from the blocks as they are; then the labels of its nodes first .. last-1. */
void irm_blocked_mode(irm_blocked *blocked, irm_state *state, int mode, int threads);
void irm_blocked_nodes(irm_blocked *blocked, irm_state *state, int mode, int64_t first, int64_t last, int threads);
/* Draws log μ. */
void irm_draw_sticks(irm_state *state, int mode);
/* Proposes to swap neighbouring labels; the new names go to state->place. */
void irm_swap_labels(irm_state *state, int mode);
