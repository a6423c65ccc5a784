/* Roll calls: the step at which all ranks say that they are alive and are about to do the same. */
#pragma once

#include "core/together/mpi/mpi.h"

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
