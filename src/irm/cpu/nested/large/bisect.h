/* Where the groups of a large graph part in two; see bisect.c. */
#pragma once

#include "irm/cpu/nested/levels.h"

/* side[i]: the sign of node i, 0 where it has none. */
weft_status irm_bisect(weft_ctx *poll, irm_nested *state, int8_t *side);
