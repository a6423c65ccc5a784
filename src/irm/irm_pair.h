/* Two clusters of a bipartite graph while nodes move between them; see irm_pair.c. */
#ifndef WEFT_IRM_PAIR_H
#define WEFT_IRM_PAIR_H

#include "irm_state.h"

/* Only clusters of up to so many nodes are split, or made by a merge. */
#define IRM_SPLIT_NODES 20000

weft_status irm_pair_make(weft_arena *arena, const irm_state *s, irm_pair **out);

/* From here on: the first `count` of s->members, all nodes of a and b, of which nodes i and j stay in a and b. */
void irm_pair_load(irm_state *s, int mode, int32_t a, int32_t b, int64_t count, int32_t i, int32_t j);
/* Every member joins one of the two, one after another, by its links alone. */
weft_status irm_pair_launch(weft_ctx *poll, irm_state *s);
/* A restricted Gibbs scan, or one that is forced to the labels in `target`; log of the product of its choices. */
weft_status irm_pair_scan(weft_ctx *poll, irm_state *s, const int32_t *target, double *log_q);
/* Labels, sizes and blocks of the state: as the members are now, or all in a. */
void irm_pair_apply(irm_state *s, int all_in_a);

#endif
