/* Selection with a screen: few exact gains. */
#pragma once

#include "regulation/cpu/selection_loops.h"

/* Bytes that `select` works in. */
size_t weft_regulation_work(size_t padded, size_t steps);

#define WEFT_REGULATION_NEAR 32700.0
#define WEFT_REGULATION_MAX_NEAR 4.0

/* The same choices as `select`, from few exact gains; 0 where the screen cannot tell enough features apart, and nothing
 * is chosen. */
typedef int weft_regulation_screen(const weft_regulation_half *half, const weft_regulation_favour *favour,
                                   const weft_regulation_target *target, char *work, int32_t *choice);
weft_regulation_screen *weft_regulation_screen_here(void);
