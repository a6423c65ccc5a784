/* Products and sums when the rows of X are shared among ranks (processes, or devices of one call). */
#pragma once

#include "pca/engines/run.h"

/* near -> far, and back, whatever ranks the rows are on. */
weft_status weft_pca_ranks_to_far(weft_pca_run *run, const double *s_v, size_t b, double *s_out);
weft_status weft_pca_ranks_to_near(weft_pca_run *run, const double *s_u, size_t b, double *s_out);
/* `count` numbers in the space's memory become their sums over the ranks. */
weft_status weft_pca_ranks_add(weft_pca_run *run, double *s_x, size_t count);
/* Numbers on the host become the first rank's. Nothing happens without ranks. */
weft_status weft_pca_ranks_as_first(weft_pca_run *run, double *x, size_t count);
/* Whether all ranks say yes. */
weft_status weft_pca_ranks_agree(weft_pca_run *run, int *yes);
