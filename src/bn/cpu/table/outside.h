/* Sets with one parent from outside the candidates; see outside.c. */
#pragma once

#include "bn/both/table.h"

/* Tries every kept set with each node that may be an outsider, and adds those without a better subset to the nodes'
 * lists, in `keep`. Progress goes from `from` to 1. */
weft_status weft_bn_add_outsiders(weft_ctx *ctx, weft_arena *keep, weft_bn_ready *ready, weft_bn_node *nodes,
                                  double from);
