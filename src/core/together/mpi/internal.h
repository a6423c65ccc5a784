/* What the files of the MPI object share. */
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

/* ---- roll calls: roll_call.c ---- */

typedef enum {
  STEP_ENTER = 1,
  STEP_LEAVE,
  STEP_END,
  STEP_NUMBERS,
  STEP_GATHER,
  STEP_GROUP,
  STEP_REDUCE,
  STEP_SIZES,
  STEP_EXCHANGE,
  STEP_TOTAL
} weft_mpi_step;

weft_status weft_mpi_roll_start(weft_ctx *ctx, int rank, int size);
void weft_mpi_roll_end(void);

/* WEFT_OK when all ranks of the group (of all: weft_world) are about to take this step with the same `alike`; their
 * numbers are then weft_mpi_said(r). */
weft_status weft_mpi_together(weft_ctx *ctx, MPI_Comm among, weft_mpi_step step, uint64_t alike, double number);
double weft_mpi_said(int r);
/* The same in two parts, for a step that is not waited for: *ready = 0 as long as a rank has not come. */
weft_status weft_mpi_begin(weft_ctx *ctx, MPI_Comm among, weft_mpi_step step, uint64_t alike, double number);
weft_status weft_mpi_ready(weft_ctx *ctx, int *ready);
int weft_mpi_begun(void);

weft_status weft_mpi_enter(weft_ctx *ctx, uint64_t call, uint64_t digest, int *same);
weft_status weft_mpi_leave(weft_ctx *ctx);
weft_status weft_mpi_give_up(weft_ctx *ctx, const char *why);
void weft_mpi_forget(void);
int weft_mpi_heard(char why[WEFT_WHY]);
int weft_mpi_stopped(int r, char why[WEFT_WHY]);
uint64_t weft_mpi_steps(void);
/* Tells the others by message that this rank stops, once per call. */
void weft_mpi_tell(weft_ctx *ctx, const char *why);
/* The error of this rank when others have stopped. */
weft_status weft_mpi_say_stopped(weft_ctx *ctx);
/* Takes part in roll calls until all ranks have ended their scripts. */
void weft_mpi_see_out(const char *why);

/* ---- groups and messages: messages.c ---- */

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
