/* Masked pairs of nested groups: links between them are drawn with the groups; see masked.c. */
#pragma once

#include "irm/cpu/nested/levels.h"

typedef struct irm_masked {
  const weft_irm_graph *observed;
  int64_t count;          /* masked pairs, in the order of R's list */
  int32_t *from, *to;     /* nodes of level 0: columns of a bipartite graph come after its rows */
  double link_cost;       /* of each link, in nats: see masked.c */
  weft_irm_graph graph;   /* the observed graph with the links that were drawn */
  int64_t *next;          /* a list's places while it is filled */
  int32_t *drawn, *other; /* of the present chain, which may change; for draws that are not to stay */
  double *expected;       /* of each pair, given all else, in the last draw; whole multiples of 2^-32 */
  double value;           /* of the last draw: see irm_masked_draw() */
} irm_masked;

/* Without masked pairs, `count` is 0 and nothing else is set. */
weft_status irm_masked_make(weft_arena *arena, const weft_irm_graph *observed, irm_masked *out);
/* Counts that chains start from: those expected by the degrees alone, rounded. */
weft_status irm_masked_guess(weft_ctx *ctx, const irm_masked *masked, int32_t *drawn);
/* Makes masked->graph. */
void irm_masked_fill(irm_masked *masked, const int32_t *drawn);
/* Gives a state the links `drawn`; irm_nested_set() must follow. */
void irm_masked_begin(irm_nested *state, irm_masked *masked, const int32_t *drawn);
/* Draws the counts of all masked pairs, each given all others, from those of irm_masked_begin() and to `drawn`.
 * masked->value: log of an unbiased estimate of p(observed links, groups) as a sum over all counts of masked pairs.
 * Degrees and their classes are not kept: irm_masked_begin() and irm_nested_set() must follow. `poll` may be NULL. */
weft_status irm_masked_draw(weft_ctx *poll, irm_nested *state, irm_masked *masked, int32_t *drawn);
