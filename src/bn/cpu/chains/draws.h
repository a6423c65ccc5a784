/* Draws of chains, eight at a time; see draws.c. */
#pragma once

#include "core/numbers/draws.h"

/* The words of draws first .. first + 7. */
void weft_bn_draw_eight(weft_rng rng, uint64_t first, weft_u32x4 *out);
