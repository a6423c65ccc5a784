/* What native code says to the other ranks of a job: several R processes that mpirun started (R/ranks.R,
 * src/core/together/mpi). Only in weft.so, and only from R's thread; every rank must make the same calls in the same
 * order. A process by itself is rank 0 of 1. */
#pragma once

#include "core/call/backend.h"

weft_rank weft_ranks_here(void);
/* From now on this process is a rank, of a job that has ended if the table is NULL. */
void weft_ranks_join(const weft_mpi_table *table, weft_rank rank);
/* An error unless this process is a rank of a job that was started. */
weft_status weft_ranks_ready(weft_ctx *ctx);
/* Steps taken with other ranks so far. Work that has taken one must not be repeated: the others go on from there. */
uint64_t weft_ranks_steps(void);
/* Rank r's sizes[r] bytes to all[r] on every rank. */
weft_status weft_ranks_gather(weft_ctx *ctx, const void *mine, const uint64_t *sizes, unsigned char **all);
/* x becomes the sum of all ranks' x, added in their order: the same bits on every rank. */
weft_status weft_ranks_add(weft_ctx *ctx, double *x, size_t count);
/* The table of the MPI that weft has started, or NULL. */
const weft_mpi_table *weft_ranks_table(void);
