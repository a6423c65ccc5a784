/* Downhill in description length, and where chains start; see ascent.c. */
#pragma once

#include "irm/cpu/nested/moves.h"

/* Moves, joins and splits at all levels until nothing gains, at most `rounds` times. poll may be NULL. */
weft_status irm_nested_descend(weft_ctx *poll, irm_nested *t, int rounds);
/* One round of it; t->idle counts those in vain, and after two there is nothing more to do. */
weft_status irm_nested_descend_round(weft_ctx *poll, irm_nested *t);
/* Visits all nodes of a level, with polls in between. */
weft_status irm_nested_visit_all(weft_ctx *poll, irm_nested *t, int l, int cold, int create, double *by);
