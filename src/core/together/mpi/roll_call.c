/* Roll calls: how ranks that do something together know that all of them are about to do it.
 *
 * Before each step every rank says which step of which call it is about to take, or that it has stopped, or that its
 * script has ended. When all are about to take the same one, they take it. Otherwise none does: all settle, that is,
 * they exchange reasons and clear away the messages that are under way, and each gets an error. So a step that some
 * rank has begun is completed by all, no rank is waited for in vain, and after an error the ranks are in step again.
 * The end of a call is a step too: either all ranks have its result or all have an error.
 *
 * A rank that stops takes part in one roll call of its group, if there is one, and in one of all ranks, and says
 * there that it stopped. It also sends a message, which others hear at their next poll: then they stop too instead of
 * working on in vain.
 *
 * A rank that is interrupted while it waits for others to come to a call leaves at once, with its roll call open: the
 * others, when they come, assume that it is there. It still has to tell them that it stopped, and does so before it
 * does anything else with them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/together/mpi/messages.h"
#include "core/together/mpi/mpi.h"
#include "core/together/mpi/roll_call.h"

enum { HERE, STOPPED, ENDED };
typedef struct {
  int32_t state, step;
  uint64_t call, alike;
  double number;
} roll;
typedef struct {
  uint64_t call;
  char why[WEFT_WHY];
} note; /* what a rank that stops sends */

static int me, size;
static roll mine, *said; /* said: of every rank of the group called */
static char *reasons;    /* of the last settling: WEFT_WHY for each rank */
static int *ended;       /* the same: whose scripts had ended */
static MPI_Request calling = MPI_REQUEST_NULL;
static MPI_Comm called = MPI_COMM_NULL;
static char own_why[WEFT_WHY]; /* what this rank told the others; "" for nothing */
static note heard;
static int heard_from = -1;
static uint64_t call, outermost; /* numbers of the call that was entered last, and of the one that it is within */
static int in_call, over, owes;  /* over: all have settled, this rank only has to leave the call */
static uint64_t steps;

weft_status weft_mpi_roll_start(weft_ctx *ctx, int rank, int ranks)
{
  me = rank, size = ranks;
  said = calloc((size_t) size, sizeof *said);
  reasons = calloc((size_t) size, WEFT_WHY);
  ended = calloc((size_t) size, sizeof *ended);
  return said && reasons && ended
             ? WEFT_OK
             : weft_fail_memory(ctx, "host", (double) size * (WEFT_WHY + sizeof *said), -1, "roll calls");
}

void weft_mpi_roll_end(void)
{
  free(said);
  free(reasons);
  free(ended);
  said = NULL, reasons = NULL, ended = NULL;
}

double weft_mpi_said(int rank) { return said[rank].number; }
uint64_t weft_mpi_steps(void) { return steps; }
int weft_mpi_begun(void) { return calling != MPI_REQUEST_NULL; }

/* ---- stopping ---- */

/* Copies what fits and drops the beginning of a character that does not. */
static void copy_why(char *to, const char *why)
{
  size_t n = strlen(why);
  if (n >= WEFT_WHY)
    for (n = WEFT_WHY - 1; n && ((unsigned char) why[n] & 0xc0) == 0x80;) n--;
  memset(to, 0, WEFT_WHY);
  memcpy(to, why, n);
}

void weft_mpi_tell(weft_ctx *ctx, const char *why)
{
  note n = { call, "" };
  double values[sizeof n / sizeof(double)];
  if (*own_why || !in_call) return;
  copy_why(own_why, *why ? why : "\nIt gave no reason.");
  memcpy(n.why, own_why, WEFT_WHY);
  memcpy(values, &n, sizeof n);
  for (int rank = 0; rank < size; rank++)
    if (rank != me && weft_mpi_send(ctx, rank, TAG_STOP, values, sizeof n / sizeof(double)) != WEFT_OK)
      return; /* the roll call says it too */
}

/* Notes of calls that are over are dropped: a rank that was interrupted at a call's last step has sent a note, and
 * finished the call. */
int weft_mpi_heard(char why[WEFT_WHY])
{
  if (!said || weft_mpi_waiting || over || !in_call || *weft_mpi_broken) return -1;
  while (heard_from < 0) {
    MPI_Status from;
    int there = 0;
    double values[sizeof heard / sizeof(double)];
    if (MPI_Iprobe(MPI_ANY_SOURCE, TAG_STOP, weft_mail, &there, &from) != MPI_SUCCESS || !there) return -1;
    if (MPI_Recv(values, sizeof heard / sizeof(double), MPI_DOUBLE, from.MPI_SOURCE, TAG_STOP, weft_mail,
                 MPI_STATUS_IGNORE))
      return -1;
    weft_mpi_count_received(from.MPI_SOURCE);
    memcpy(&heard, values, sizeof heard);
    if (heard.call >= outermost) heard_from = from.MPI_SOURCE;
  }
  memcpy(why, heard.why, WEFT_WHY);
  return heard_from;
}

int weft_mpi_stopped(int rank, char why[WEFT_WHY])
{
  if (!reasons || rank < 0 || rank >= size) return 0;
  memcpy(why, reasons + (size_t) rank * WEFT_WHY, WEFT_WHY);
  return ended[rank] ? 2 : *why != 0;
}

weft_status weft_mpi_say_stopped(weft_ctx *ctx)
{
  for (int rank = 0; rank < size; rank++)
    if (reasons[(size_t) rank * WEFT_WHY])
      return weft_fail(ctx, WEFT_ERR_DEVICE, "rank %d stopped: %s", rank, reasons + (size_t) rank * WEFT_WHY);
  for (int rank = 0; rank < size; rank++)
    if (ended[rank]) return weft_fail(ctx, WEFT_ERR_DEVICE, "rank %d has ended its script", rank);
  return weft_fail(ctx, WEFT_ERR_DEVICE, "rank %d stopped", me);
}

/* After a roll call of all ranks that was not for one step: all come here. */
static weft_status settle(weft_ctx *ctx)
{
  weft_status st = WEFT_OK;
  weft_ctx quiet = *ctx;
  MPI_Request request;
  quiet.poll = NULL;
  for (int rank = 0; rank < size; rank++) ended[rank] = said[rank].state == ENDED;
  TRY_MPI(MPI_Iallgather, own_why, WEFT_WHY, MPI_BYTE, reasons, WEFT_WHY, MPI_BYTE, weft_world, &request);
  WEFT_TRY(weft_mpi_await(&quiet, &request, 1, 0));
  WEFT_TRY(weft_mpi_clear(&quiet));
  *own_why = 0;
  heard_from = -1;
  over = 1;
done:
  if (st != WEFT_OK) memcpy(ctx->message, weft_mpi_broken, sizeof weft_mpi_broken);
  return st;
}

/* ---- calling the roll ---- */

static weft_status begin(weft_ctx *ctx, MPI_Comm among, int state, weft_mpi_step step, uint64_t alike, double number)
{
  mine = (roll){ state, step, call, alike, number };
  called = among;
  steps++;
  return weft_mpi_check(ctx, "MPI_Iallgather",
                        MPI_Iallgather(&mine, sizeof mine, MPI_BYTE, said, sizeof mine, MPI_BYTE, among, &calling));
}

/* Says that this rank stopped, or ended, and waits for all to have been called. */
static weft_status answer(weft_ctx *ctx, MPI_Comm among, int state)
{
  weft_status st = WEFT_OK;
  weft_ctx quiet = *ctx;
  quiet.poll = NULL;
  WEFT_TRY(begin(ctx, among, state, STEP_END, 0, 0));
  WEFT_TRY(weft_mpi_await(&quiet, &calling, 1, 0));
done:
  if (st != WEFT_OK) memcpy(ctx->message, weft_mpi_broken, sizeof weft_mpi_broken);
  return st;
}

static int all_say(int state, int count)
{
  for (int rank = 0; rank < count; rank++)
    if (said[rank].state != state) return 0;
  return 1;
}

/* enter() sees to calls that differ. */
static int differs(const roll *a, const roll *b)
{
  return a->step != b->step || (a->step != STEP_ENTER && (a->call != b->call || a->alike != b->alike));
}

/* Whether the step for which the roll was called is taken. Every rank comes to the same answer. */
static int all_agree(void)
{
  int count, other = 0;
  MPI_Comm_size(called, &count);
  for (int rank = 1; rank < count; rank++) other |= differs(&said[rank], &said[0]);
  return all_say(HERE, count) && !other;
}

/* WEFT_OK after a roll call when its step is taken; else all ranks have settled. */
static weft_status judge(weft_ctx *ctx)
{
  weft_status st = WEFT_OK;
  if (all_agree()) return st;
  if (said[0].state == HERE && differs(&mine, &said[0]))
    weft_mpi_tell(ctx, "\nIt was at a different step of the call than the first rank.");
  if (called != weft_world) WEFT_TRY(answer(ctx, weft_world, STOPPED));
  WEFT_TRY(settle(ctx));
  st = weft_mpi_say_stopped(ctx);
done:
  return st;
}

/* What a rank that left while others were still to come has to make up for: they assumed that it was there. */
static weft_status pay(weft_ctx *ctx)
{
  weft_status st = WEFT_OK;
  if (calling != MPI_REQUEST_NULL) WEFT_TRY(weft_mpi_await(ctx, &calling, 1, 1));
  if (all_agree()) WEFT_TRY(answer(ctx, weft_world, STOPPED));
  WEFT_TRY(settle(ctx));
  owes = over = 0;
done:
  return st;
}

weft_status weft_mpi_begin(weft_ctx *ctx, MPI_Comm among, weft_mpi_step step, uint64_t alike, double number)
{
  weft_status st = WEFT_OK;
  if (*weft_mpi_broken) return weft_fail(ctx, WEFT_ERR_DEVICE, "MPI cannot continue in this job: %s", weft_mpi_broken);
  if (owes) WEFT_TRY(pay(ctx));
  if (over && in_call) return weft_mpi_say_stopped(ctx);
  over = 0;
  if (calling != MPI_REQUEST_NULL)
    return weft_fail(ctx, WEFT_ERR_INTERNAL, "a step of all ranks has begun within another");
  WEFT_TRY(begin(ctx, among, HERE, step, alike, number));
done:
  return st;
}

/* Whether something is exchanged in this step, when all have agreed on it. */
static int exchanges(int32_t step) { return step > STEP_NUMBERS && step != STEP_TOTAL; }

/* An interrupt of this rank counts more than what stopped others. But where all have agreed on an exchange, this rank
 * takes part in it, since the others will: the next poll stops it then. */
static weft_status finish(weft_ctx *ctx, int leave)
{
  weft_status st = weft_mpi_await(ctx, &calling, 1, leave), of_all;
  if (calling != MPI_REQUEST_NULL || (st != WEFT_OK && st != WEFT_ERR_INTERRUPT)) return st;
  of_all = judge(ctx);
  return st == WEFT_OK || (of_all == WEFT_OK && exchanges(mine.step)) ? of_all : st;
}

weft_status weft_mpi_together(weft_ctx *ctx, MPI_Comm among, weft_mpi_step step, uint64_t alike, double number)
{
  weft_status st = WEFT_OK;
  WEFT_TRY(weft_mpi_begin(ctx, among, step, alike, number));
  WEFT_TRY(finish(ctx, 0));
done:
  return st;
}

weft_status weft_mpi_ready(weft_ctx *ctx, int *ready)
{
  weft_status st = WEFT_OK;
  *ready = 0;
  TRY_MPI(MPI_Test, &calling, ready, MPI_STATUS_IGNORE);
  if (*ready) WEFT_TRY(judge(ctx));
done:
  return st;
}

/* ---- calls ---- */

weft_status weft_mpi_enter(weft_ctx *ctx, uint64_t number, uint64_t digest, int *same)
{
  weft_status st = WEFT_OK;
  const int within = in_call;
  *same = 1;
  if (owes) WEFT_TRY(pay(ctx));
  call = number;
  if (!within) outermost = number;
  in_call = 1;
  WEFT_TRY(weft_mpi_begin(ctx, weft_world, STEP_ENTER, digest, 0));
  WEFT_TRY(finish(ctx, !within));
  for (int rank = 0; rank < size; rank++) {
    *same &= said[rank].call == said[0].call && said[rank].alike == said[0].alike;
    if (said[rank].call > call) call = said[rank].call; /* the number by which all go on */
  }
  if (!within) outermost = call;
done:
  return st;
}

weft_status weft_mpi_leave(weft_ctx *ctx) { return weft_mpi_together(ctx, weft_world, STEP_LEAVE, 0, 0); }

/* This rank stops: tells the others `why` (NULL where it follows another's stop), completes the step that is under way,
 * and answers roll calls with STOPPED until all have agreed to end. */
weft_status weft_mpi_give_up(weft_ctx *ctx, const char *why)
{
  weft_status st = WEFT_OK;
  if (!said || *weft_mpi_broken || over || owes) return st;
  in_call = 1; /* the call may not have been entered yet */
  if (why && heard_from < 0) weft_mpi_tell(ctx, why);
  if (calling != MPI_REQUEST_NULL && mine.step == STEP_ENTER) {
    owes = over = 1;
    return st;
  }
  if (calling != MPI_REQUEST_NULL) { /* a step that was not waited for */
    weft_ctx quiet = *ctx;
    quiet.poll = NULL;
    WEFT_TRY(weft_mpi_await(&quiet, &calling, 1, 0));
    if (!all_agree()) return settle(ctx);
  }
  if (weft_mpi_group() != weft_world) WEFT_TRY(answer(ctx, weft_mpi_group(), STOPPED));
  WEFT_TRY(answer(ctx, weft_world, STOPPED));
  WEFT_TRY(settle(ctx));
done:
  return st;
}

void weft_mpi_forget(void)
{
  in_call = over = 0;
  if (owes) return;
  *own_why = 0;
  heard_from = -1;
  weft_mpi_drop_room();
}

void weft_mpi_see_out(const char *why)
{
  weft_memory nobody = { 0 };
  weft_ctx ctx = { 0 };
  ctx.threads = 1, ctx.memory = &nobody, ctx.column = -1;
  if (!said) return;
  if (owes ? pay(&ctx) : in_call ? weft_mpi_give_up(&ctx, why) : WEFT_OK) return;
  for (weft_mpi_forget();; over = 0) {
    if (answer(&ctx, weft_world, ENDED) != WEFT_OK || all_say(ENDED, size) || settle(&ctx) != WEFT_OK) return;
  }
}
