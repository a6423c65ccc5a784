/* Groups of ranks, sums, exchanges and messages between two ranks. */
#pragma once

#include "core/together/mpi/mpi.h"

enum { TAG_STOP = 1, TAG_EXCHANGE = 2, TAG_KINDS = 16 }; /* TAG_KINDS + kind: messages */

weft_status weft_mpi_messages_start(weft_ctx *ctx, int size);
/* The ranks that `together` means for groups now. */
MPI_Comm weft_mpi_group(void);
/* Sends a copy of some numbers to a rank, without waiting. */
weft_status weft_mpi_send(weft_ctx *ctx, int to, int tag, const double *values, size_t n);
void weft_mpi_count_received(int from);
/* Takes and drops all messages that are under way, and dissolves groups. All ranks together. */
weft_status weft_mpi_clear(weft_ctx *ctx);
void weft_mpi_messages_end(void);
