/* The MPI object's table; see base/backend.h. Opened by base/backend.c when a distributed call, or weft_sitrep(), first
 * asks for it. Ranks talk over a communicator of weft's own, so that Rmpi or pbdMPI beside it are not disturbed. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "../base/arena.h"
#include "../base/backend.h"

enum { LEAVES = 1 }; /* the tag of a farewell */
enum { GRACE = 5 };  /* seconds for a collective to end after a rank has left it */
static MPI_Comm world = MPI_COMM_NULL;
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

static weft_status check(weft_ctx *ctx, const char *what, int code)
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
    WEFT_TRY(check(ctx, "MPI_Init_thread", MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level)));
    started_here = 1;
  }
  if (world == MPI_COMM_NULL) {
    WEFT_TRY(check(ctx, "MPI_Comm_dup", MPI_Comm_dup(MPI_COMM_WORLD, &world)));
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  }
  MPI_Comm_rank(world, &out->rank);
  MPI_Comm_size(world, &out->size);
  WEFT_TRY(check(ctx, "MPI_Comm_split_type",
                 MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, out->rank, MPI_INFO_NULL, &host)));
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
  if (world == MPI_COMM_NULL || MPI_Finalized(&off) != MPI_SUCCESS || off) return;
  MPI_Comm_rank(world, &rank);
  MPI_Comm_size(world, &size);
  for (int r = 0; r < size; r++) if (r != rank) MPI_Send(NULL, 0, MPI_BYTE, r, LEAVES, world);
  for (int r = 0; r < size; r++) if (r != rank) MPI_Recv(NULL, 0, MPI_BYTE, r, LEAVES, world, MPI_STATUS_IGNORE);
  MPI_Comm_free(&world);
  if (started_here) MPI_Finalize();
}

static void end_all(int code) { MPI_Abort(MPI_COMM_WORLD, code); }

/* Lets the processor go between looks, so that ranks which share a core do not starve each other. When the poll says
 * stop, or a rank has left, the request stays open: the caller's error ends the job on every rank. */
static weft_status await(weft_ctx *ctx, MPI_Request *request)
{
  struct timespec pause = { 0, 20000 };
  weft_status st = WEFT_OK;
  MPI_Status from;
  time_t left_at = 0;
  for (int look = 0, arrived = 0, left = 0;; look++) {
    WEFT_TRY(check(ctx, "MPI_Test", MPI_Test(request, &arrived, MPI_STATUS_IGNORE)));
    if (arrived) break;
    if (look < 200) continue;
    WEFT_TRY(weft_poll(ctx, 0, 0));
    if (!left) {
      WEFT_TRY(check(ctx, "MPI_Iprobe", MPI_Iprobe(MPI_ANY_SOURCE, LEAVES, world, &left, &from)));
      left_at = time(NULL);
    } else if (time(NULL) > left_at + GRACE) {
      WEFT_TRY(weft_fail(ctx, WEFT_ERR_DEVICE, "rank %d has ended its script, and this rank waits for it", from.MPI_SOURCE));
    }
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
  MPI_Comm_size(world, &size);
  MPI_Comm_rank(world, &rank);
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
    WEFT_TRY(check(ctx, "MPI_Iallgatherv",
                   MPI_Iallgatherv((const unsigned char *) mine + (counts[rank] ? from : 0), counts[rank], MPI_BYTE, round,
                                   counts, starts, MPI_BYTE, world, &request)));
    WEFT_TRY(await(ctx, &request));
    for (int r = 0; r < size; r++)
      if (counts[r]) memcpy(all[r] + from, round + starts[r], (size_t) counts[r]);
  }
done:
  weft_arena_end(&mem);
  return st;
}

static const weft_mpi_table table = { WEFT_ABI, sizeof(weft_mpi_table), describe, start, stop, end_all, all_gather };

__attribute__((visibility("default"))) const weft_mpi_table *weft_mpi_entry(void) { return &table; }
