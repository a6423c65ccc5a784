/* The MPI object's table; see core/call/backend.h. Opened by core/call/backend.c when a distributed call, or
 * weft_sitrep(), first asks for it. Ranks talk over communicators of weft's own, so that Rmpi or pbdMPI beside it are
 * not disturbed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "core/together/mpi/messages.h"
#include "core/together/mpi/mpi.h"
#include "core/together/mpi/roll_call.h"

#define ROUND ((uint64_t) 1 << 26) /* bytes that travel at once, so that a poll comes often on slow networks too */

MPI_Comm weft_world = MPI_COMM_NULL, weft_mail = MPI_COMM_NULL;
int weft_mpi_waiting;
char weft_mpi_broken[256];
static int started_here; /* weft called MPI_Init, so weft calls MPI_Finalize */
static unsigned char *room;
static size_t room_size;
static weft_memory *account;

/* The library's name and version, its first line. Allowed before MPI_Init. */
static int describe(char *out, size_t len)
{
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int n;
  if (MPI_Get_library_version(text, &n) != MPI_SUCCESS) return -1;
  text[strcspn(text, "\r\n")] = 0;
  return snprintf(out, len, "%s", text);
}

weft_status weft_mpi_check(weft_ctx *ctx, const char *what, int code)
{
  char text[MPI_MAX_ERROR_STRING] = "";
  int n;
  if (code == MPI_SUCCESS) return WEFT_OK;
  MPI_Error_string(code, text, &n);
  snprintf(weft_mpi_broken, sizeof weft_mpi_broken, "%s failed: %.200s", what, text);
  return weft_fail(ctx, WEFT_ERR_DEVICE, "%s", weft_mpi_broken);
}

/* ---- waiting ---- */

weft_status weft_mpi_await(weft_ctx *ctx, MPI_Request *requests, int n, int leave)
{
  struct timespec pause = { 0, 20000 };
  weft_status st = WEFT_OK;
  int arrived = 0, stop = 0;
  weft_mpi_waiting = 1;
  for (int look = 0;; look += look < 200) {
    TRY_MPI(MPI_Testall, n, requests, &arrived, MPI_STATUSES_IGNORE);
    if (arrived) break;
    if (look < 200) continue;
    if (!stop && weft_poll(ctx, 0, 0) != WEFT_OK) {
      stop = 1;
      weft_mpi_tell(ctx, "\nIt was stopped by an interrupt or by its progress handler.");
      if (leave) break;
    }
    nanosleep(&pause, NULL);
    if (pause.tv_nsec < 1000000) pause.tv_nsec += pause.tv_nsec / 8;
  }
  if (stop) st = WEFT_ERR_INTERRUPT;
done:
  weft_mpi_waiting = 0;
  return st;
}

/* After MPI has failed, requests may be open for ever: what they point to is never given back then. */
void weft_mpi_drop_room(void)
{
  if (!room || *weft_mpi_broken) return;
  free(room);
  weft_memory_count_host(account, -(int64_t) room_size);
  room = NULL;
  room_size = 0;
}

weft_status weft_mpi_room(weft_ctx *ctx, size_t bytes, unsigned char **out)
{
  if (bytes > room_size || !room) {
    weft_mpi_drop_room();
    account = ctx->memory;
    bytes = bytes < 4096 ? 4096 : bytes;
    room = weft_memory_ask(account) ? NULL : malloc(bytes);
    if (!room) return weft_fail_memory(ctx, "host", (double) bytes, weft_host_available(), "what goes between ranks");
    room_size = bytes;
    weft_memory_count_host(account, (int64_t) bytes);
  }
  *out = room;
  return WEFT_OK;
}

/* ---- beginning and end ---- */

static weft_status start(weft_ctx *ctx, weft_rank *out)
{
  weft_status st = WEFT_OK;
  MPI_Comm host;
  int on, off, level;
  MPI_Initialized(&on);
  MPI_Finalized(&off);
  if (off)
    return weft_fail(ctx, WEFT_ERR_DEVICE, "MPI was ended in this process (MPI_Finalize) and cannot start again");
  if (!on) {
    TRY_MPI(MPI_Init_thread, NULL, NULL, MPI_THREAD_FUNNELED, &level);
    started_here = 1;
  }
  TRY_MPI(MPI_Comm_dup, MPI_COMM_WORLD, &weft_world);
  MPI_Comm_set_errhandler(weft_world, MPI_ERRORS_RETURN);
  TRY_MPI(MPI_Comm_dup, weft_world, &weft_mail);
  MPI_Comm_rank(weft_world, &out->rank);
  MPI_Comm_size(weft_world, &out->size);
  TRY_MPI(MPI_Comm_split_type, weft_world, MPI_COMM_TYPE_SHARED, out->rank, MPI_INFO_NULL, &host);
  MPI_Comm_rank(host, &out->on_host);
  MPI_Comm_free(&host);
  WEFT_TRY(weft_mpi_messages_start(ctx, out->size));
  WEFT_TRY(weft_mpi_roll_start(ctx, out->rank, out->size));
done:
  return st;
}

static void stop(const char *why)
{
  int off;
  if (weft_world == MPI_COMM_NULL || MPI_Finalized(&off) != MPI_SUCCESS || off) return;
  weft_mpi_see_out(why);
  if (*weft_mpi_broken) return; /* the launcher ends a job whose ranks end without MPI_Finalize */
  weft_mpi_messages_end();
  weft_mpi_roll_end();
  weft_mpi_drop_room();
  MPI_Comm_free(&weft_mail);
  MPI_Comm_free(&weft_world);
  if (started_here) MPI_Finalize();
}

static void end_all(int code) { MPI_Abort(MPI_COMM_WORLD, code); }

/* ---- gathering ---- */

static weft_status all_numbers(weft_ctx *ctx, double mine, double *all)
{
  weft_status st = WEFT_OK;
  int size;
  WEFT_TRY(weft_mpi_together(ctx, weft_world, STEP_NUMBERS, 0, mine));
  MPI_Comm_size(weft_world, &size);
  for (int other = 0; other < size; other++) all[other] = weft_mpi_said(other);
done:
  return st;
}

/* Every rank's sizes[r] bytes to all[r] on every rank, in pieces of bounded size; the roll call before each piece
 * compares the sizes, so that ranks that disagree stop rather than hang. */
static weft_status all_gather(weft_ctx *ctx, const void *mine, const uint64_t *sizes, unsigned char **all)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  MPI_Request request;
  unsigned char *own, *parts;
  int size, rank, *counts, *starts;
  uint64_t most = 0, shape = 0;
  MPI_Comm_size(weft_world, &size);
  MPI_Comm_rank(weft_world, &rank);
  for (int other = 0; other < size; other++) {
    if (sizes[other] > most) most = sizes[other];
    shape = (shape ^ sizes[other]) * UINT64_C(0x9e3779b97f4a7c15);
  }
  const uint64_t share = ROUND / (uint64_t) size, piece = most < share ? most : share;
  WEFT_TAKE(counts, &mem, (size_t) size);
  WEFT_TAKE(starts, &mem, (size_t) size);
  for (uint64_t from = 0; from < most; from += piece) {
    int at = 0;
    for (int other = 0; other < size; other++) {
      const uint64_t left = sizes[other] > from ? sizes[other] - from : 0;
      counts[other] = (int) (left < piece ? left : piece);
      starts[other] = at;
      at += counts[other];
    }
    WEFT_TRY(weft_mpi_room(ctx, (size_t) piece * ((size_t) size + 1), &own));
    parts = own + piece;
    if (counts[rank]) memcpy(own, (const unsigned char *) mine + from, (size_t) counts[rank]);
    WEFT_TRY(weft_mpi_together(ctx, weft_world, STEP_GATHER, shape ^ from, 0));
    TRY_MPI(MPI_Iallgatherv, own, counts[rank], MPI_BYTE, parts, counts, starts, MPI_BYTE, weft_world, &request);
    WEFT_TRY(weft_mpi_await(ctx, &request, 1, 0));
    for (int other = 0; other < size; other++)
      if (counts[other]) memcpy(all[other] + from, parts + starts[other], (size_t) counts[other]);
  }
done:
  weft_arena_end(&mem);
  return st;
}

static const weft_mpi_table table = { WEFT_ABI,
                                      sizeof(weft_mpi_table),
                                      describe,
                                      start,
                                      stop,
                                      end_all,
                                      weft_mpi_enter,
                                      weft_mpi_leave,
                                      weft_mpi_give_up,
                                      weft_mpi_forget,
                                      weft_mpi_heard,
                                      weft_mpi_stopped,
                                      weft_mpi_steps,
                                      all_numbers,
                                      all_gather,
                                      &weft_mpi_message_table };

__attribute__((visibility("default"))) const weft_mpi_table *weft_mpi_entry(void) { return &table; }
