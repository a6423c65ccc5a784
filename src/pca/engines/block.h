/* krylov and gram, which block.c chooses and combines. */
#pragma once

#include "pca/engines/run.h"

/* The k leading triplets of X into run->out, by whichever course is cheapest; X is open. */
weft_status weft_pca_block(weft_pca_run *run);
/* The triplets of X in the span of the job's `start`: Rayleigh-Ritz, two passes. Residuals are those of X. */
weft_status weft_pca_ritz(weft_pca_run *run);
