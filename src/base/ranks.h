/* What native code says to the other ranks of a job: several R processes that mpirun started (R/ranks.R, src/mpi). In weft.so
 * alone; from R's thread alone; every rank must come to the same calls in the same order. A process by itself is rank 0 of 1. */
#ifndef WEFT_RANKS_H
#define WEFT_RANKS_H

#include "backend.h"

weft_rank weft_ranks_here(void);
/* Rank r's sizes[r] bytes to all[r] on every rank. */
weft_status weft_ranks_gather(weft_ctx *ctx, const void *mine, const uint64_t *sizes, unsigned char **all);
/* x becomes the sum of all ranks' x, added in their order: the same bits on every rank. */
weft_status weft_ranks_add(weft_ctx *ctx, double *x, size_t count);

#endif
