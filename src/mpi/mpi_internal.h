/* What the files of the MPI object share. */
#ifndef WEFT_MPI_INTERNAL_H
#define WEFT_MPI_INTERNAL_H

#include <mpi.h>
#include <time.h>
#include "../base/arena.h"
#include "../base/backend.h"
#include "../base/messages.h"

extern MPI_Comm weft_world; /* all ranks; a communicator of weft's own */

/* WEFT_OK, or an error with MPI's own words. */
weft_status weft_mpi_check(weft_ctx *ctx, const char *what, int code);
/* Waits for all of them. Lets the processor go between looks, and sees when a rank has left. */
weft_status weft_mpi_await(weft_ctx *ctx, MPI_Request *requests, int n);
weft_status weft_mpi_watch(weft_ctx *ctx, time_t *left_at);
/* Forgets groups and messages, before MPI ends. */
void weft_mpi_messages_end(void);

#endif
