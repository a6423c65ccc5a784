/* The MPI object's table; see base/backend.h. Opened by base/backend.c when a distributed call, or weft_sitrep(), first
 * asks for it. Ranks talk over a communicator of weft's own, so that Rmpi or pbdMPI beside it are not disturbed. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "mpi_internal.h"

enum { LEAVES = 1 }; /* the tag of a farewell */
enum { GRACE = 5 };  /* seconds for a collective to end after a rank has left it */
MPI_Comm weft_world = MPI_COMM_NULL;
static int started_here; /* weft called MPI_Init, so weft calls MPI_Finalize */

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
  return weft_fail(ctx, WEFT_ERR_DEVICE, "%s failed: %s", what, text);
}

static weft_status start(weft_ctx *ctx, weft_rank *out)
{
  weft_status st = WEFT_OK;
  MPI_Comm host;
  int on, off, level;
  MPI_Initialized(&on);
  MPI_Finalized(&off);
  if (off) return weft_fail(ctx, WEFT_ERR_DEVICE, "MPI was ended in this process (MPI_Finalize) and cannot start again");
  if (!on) {
    WEFT_TRY(weft_mpi_check(ctx, "MPI_Init_thread", MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level)));
    started_here = 1;
  }
  if (weft_world == MPI_COMM_NULL) {
    WEFT_TRY(weft_mpi_check(ctx, "MPI_Comm_dup", MPI_Comm_dup(MPI_COMM_WORLD, &weft_world)));
    MPI_Comm_set_errhandler(weft_world, MPI_ERRORS_RETURN);
  }
  MPI_Comm_rank(weft_world, &out->rank);
  MPI_Comm_size(weft_world, &out->size);
  WEFT_TRY(weft_mpi_check(ctx, "MPI_Comm_split_type",
                 MPI_Comm_split_type(weft_world, MPI_COMM_TYPE_SHARED, out->rank, MPI_INFO_NULL, &host)));
  MPI_Comm_rank(host, &out->on_host);
  MPI_Comm_free(&host);
done:
  return st;
}

/* Tells every rank that this one leaves, and waits until all have said so: a rank that waits for this one in a
 * collective sees that it never will come. */
static void stop(void)
{
  int off, rank, size;
  if (weft_world == MPI_COMM_NULL || MPI_Finalized(&off) != MPI_SUCCESS || off) return;
  MPI_Comm_rank(weft_world, &rank);
  MPI_Comm_size(weft_world, &size);
  for (int r = 0; r < size; r++) if (r != rank) MPI_Send(NULL, 0, MPI_BYTE, r, LEAVES, weft_world);
  for (int r = 0; r < size; r++) if (r != rank) MPI_Recv(NULL, 0, MPI_BYTE, r, LEAVES, weft_world, MPI_STATUS_IGNORE);
  weft_mpi_messages_end();
  MPI_Comm_free(&weft_world);
  if (started_here) MPI_Finalize();
}

static void end_all(int code) { MPI_Abort(MPI_COMM_WORLD, code); }

/* An error some seconds after a rank has left; *left_at starts as 0. */
weft_status weft_mpi_watch(weft_ctx *ctx, time_t *left_at)
{
  weft_status st = WEFT_OK;
  MPI_Status from;
  int left;
  WEFT_TRY(weft_mpi_check(ctx, "MPI_Iprobe", MPI_Iprobe(MPI_ANY_SOURCE, LEAVES, weft_world, &left, &from)));
  if (!left) return st;
  if (!*left_at) *left_at = time(NULL);
  if (time(NULL) > *left_at + GRACE)
    WEFT_TRY(weft_fail(ctx, WEFT_ERR_DEVICE, "rank %d has ended its script, and this rank waits for it", from.MPI_SOURCE));
done:
  return st;
}

/* Lets the processor go between looks, so that ranks which share a core do not starve each other. When the poll says
 * stop, or a rank has left, the requests stay open: the caller's error ends the job on every rank. */
weft_status weft_mpi_await(weft_ctx *ctx, MPI_Request *requests, int n)
{
  struct timespec pause = { 0, 20000 };
  weft_status st = WEFT_OK;
  time_t left_at = 0;
  for (int look = 0, next = 0, arrived;; look++) {
    for (arrived = 1; next < n && arrived; next += arrived)
      WEFT_TRY(weft_mpi_check(ctx, "MPI_Test", MPI_Test(&requests[next], &arrived, MPI_STATUS_IGNORE)));
    if (arrived) break;
    if (look < 200) continue;
    WEFT_TRY(weft_poll(ctx, 0, 0));
    WEFT_TRY(weft_mpi_watch(ctx, &left_at));
    nanosleep(&pause, NULL);
    if (pause.tv_nsec < 1000000) pause.tv_nsec += pause.tv_nsec / 8;
  }
done:
  return st;
}

static weft_status all_gather(weft_ctx *ctx, const void *mine, const uint64_t *sizes, unsigned char **all)
{
  enum { ROUND = 1 << 28 }; /* MPI counts bytes in ints, so large pieces go in rounds */
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  MPI_Request request;
  unsigned char *round;
  int size, rank, *counts, *starts;
  uint64_t most = 0;
  MPI_Comm_size(weft_world, &size);
  MPI_Comm_rank(weft_world, &rank);
  for (int r = 0; r < size; r++)
    if (sizes[r] > most) most = sizes[r];
  const uint64_t piece = most < ROUND / (uint64_t) size ? most + 1 : ROUND / (uint64_t) size;
  WEFT_TAKE(counts, &mem, (size_t) size);
  WEFT_TAKE(starts, &mem, (size_t) size);
  WEFT_TAKE(round, &mem, (size_t) size * piece);
  for (uint64_t from = 0; from < most; from += piece) {
    int at = 0;
    for (int r = 0; r < size; r++) {
      const uint64_t left = sizes[r] > from ? sizes[r] - from : 0;
      counts[r] = (int) (left < piece ? left : piece);
      starts[r] = at;
      at += counts[r];
    }
    WEFT_TRY(weft_mpi_check(ctx, "MPI_Iallgatherv",
                   MPI_Iallgatherv((const unsigned char *) mine + (counts[rank] ? from : 0), counts[rank], MPI_BYTE, round,
                                   counts, starts, MPI_BYTE, weft_world, &request)));
    WEFT_TRY(weft_mpi_await(ctx, &request, 1));
    for (int r = 0; r < size; r++)
      if (counts[r]) memcpy(all[r] + from, round + starts[r], (size_t) counts[r]);
  }
done:
  weft_arena_end(&mem);
  return st;
}

static const weft_mpi_table table = { WEFT_ABI, sizeof(weft_mpi_table), describe, start, stop, end_all, all_gather, &weft_mpi_message_table };

__attribute__((visibility("default"))) const weft_mpi_table *weft_mpi_entry(void) { return &table; }
