/* What the files of the MPI object share: communicators, errors, waiting, and a buffer. */
#pragma once

#include <mpi.h>
#include "core/call/arena.h"
#include "core/call/backend.h"
#include "core/together/messages.h"

extern MPI_Comm weft_world; /* all ranks; a communicator of weft's own */
extern MPI_Comm weft_mail;  /* the same ranks, for messages between two */

/* WEFT_OK, or an error with MPI's own words, after which nothing is done together any more. */
weft_status weft_mpi_check(weft_ctx *ctx, const char *what, int code);
#define TRY_MPI(call, ...) WEFT_TRY(weft_mpi_check(ctx, #call, call(__VA_ARGS__)))

/* Waits for all of them, and lets the processor go between looks, so that ranks which share a core do not starve each
 * other. When a poll says stop, the others are told, and WEFT_ERR_INTERRUPT is returned once the requests are done, so
 * that no rank is left alone in what all began; where the requests may be abandoned (`leave`), it is returned at
 * once. */
weft_status weft_mpi_await(weft_ctx *ctx, MPI_Request *requests, int n, int leave);
extern int weft_mpi_waiting; /* 1 meanwhile */
/* What MPI failed at once, or "". */
extern char weft_mpi_broken[256];

/* A buffer of at least `bytes` bytes for what is under way, kept until the call ends: MPI is never given memory that a
 * caller may free. Take it before the step that needs it. */
weft_status weft_mpi_room(weft_ctx *ctx, size_t bytes, unsigned char **out);
void weft_mpi_drop_room(void);
