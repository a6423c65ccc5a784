/* What ranks tell each other beyond gathering: sums over groups of ranks, exchanges of points, and messages that
 * travel while work goes on. Everything is doubles. Calls that all ranks of a group must make together are marked
 * `together`. */
#pragma once

#include "core/call/context.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { WEFT_SUM, WEFT_LEAST };

typedef struct weft_mpi_messages {
  /* The group that `together` means from now on: all ranks (part < 0), or the ranks of the present group that name the
   * same part. Gives this rank's number in it and its size. Together. */
  weft_status (*regroup)(weft_ctx *ctx, int part, int *rank, int *size);
  /* values[i] over the group, the same on every rank of it. Together. */
  weft_status (*all_reduce)(weft_ctx *ctx, double *values, size_t n, int how);
  /* mine[r] doubles go to rank r of the group; theirs[r] come from it. Together. */
  weft_status (*exchange_sizes)(weft_ctx *ctx, const uint64_t *mine, uint64_t *theirs);
  weft_status (*exchange)(weft_ctx *ctx, const double *const *mine, const uint64_t *sizes, double *const *theirs,
                          const uint64_t *their_sizes);
  /* Sends a copy of the values to a rank, without waiting for it. */
  weft_status (*post)(weft_ctx *ctx, int to, int kind, const double *values, size_t n);
  /* The next message that has arrived, at *values until the next look: *from = -1 when there is none. */
  weft_status (*look)(weft_ctx *ctx, int *from, int *kind, uint64_t *n, const double **values);
  /* The sum of `mine` over all ranks, not waited for: *ready = 0 until every rank has called it. Call it with the same
   * number until it is ready, and nothing else together before. */
  weft_status (*total)(weft_ctx *ctx, double mine, double *all, int *ready);
} weft_mpi_messages;

extern const weft_mpi_messages weft_mpi_message_table;

#ifdef __cplusplus
}
#endif
