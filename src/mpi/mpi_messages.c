/* Groups, exchanges and messages; see base/messages.h. Lengths are counted in doubles, of which MPI takes 2^31 - 1 at once:
 * 16 GiB in one message. Large messages are sent as they are; what a rank posts is copied, and freed when it has left. */
#include <stdlib.h>
#include <string.h>
#include "mpi_internal.h"

enum { EXCHANGE = 2, KINDS = 16 }; /* tags: of exchanges, and of kinds of messages from KINDS on */
#define MOST ((uint64_t) 2147483647)

typedef struct outgoing { MPI_Request request; struct outgoing *next; double values[]; } outgoing;

static MPI_Comm group = MPI_COMM_NULL; /* NULL: all ranks */
static outgoing *posted;
static MPI_Message found = MPI_MESSAGE_NULL;
static MPI_Status found_status;
static MPI_Request adding = MPI_REQUEST_NULL;
static double addend, added;
static time_t left_at;

static MPI_Comm here(void) { return group == MPI_COMM_NULL ? weft_world : group; }

static weft_status regroup(weft_ctx *ctx, int part, int *rank, int *size)
{
  weft_status st = WEFT_OK;
  MPI_Comm next = MPI_COMM_NULL;
  MPI_Comm_rank(here(), rank);
  if (part >= 0) WEFT_TRY(weft_mpi_check(ctx, "MPI_Comm_split", MPI_Comm_split(here(), part, *rank, &next)));
  if (group != MPI_COMM_NULL) MPI_Comm_free(&group);
  group = next;
  if (group != MPI_COMM_NULL) MPI_Comm_set_errhandler(group, MPI_ERRORS_RETURN);
  MPI_Comm_rank(here(), rank);
  MPI_Comm_size(here(), size);
done:
  return st;
}

static weft_status all_reduce(weft_ctx *ctx, double *values, size_t n, int how)
{
  weft_status st = WEFT_OK;
  MPI_Request request;
  WEFT_TRY(weft_mpi_check(ctx, "MPI_Iallreduce", MPI_Iallreduce(MPI_IN_PLACE, values, (int) n, MPI_DOUBLE, how == WEFT_SUM ? MPI_SUM : MPI_MIN,
                                                                here(), &request)));
  WEFT_TRY(weft_mpi_await(ctx, &request, 1));
done:
  return st;
}

static weft_status exchange_sizes(weft_ctx *ctx, const uint64_t *mine, uint64_t *theirs)
{
  weft_status st = WEFT_OK;
  MPI_Request request;
  WEFT_TRY(weft_mpi_check(ctx, "MPI_Ialltoall", MPI_Ialltoall(mine, 1, MPI_UINT64_T, theirs, 1, MPI_UINT64_T, here(), &request)));
  WEFT_TRY(weft_mpi_await(ctx, &request, 1));
done:
  return st;
}

static weft_status exchange(weft_ctx *ctx, const double *const *mine, const uint64_t *sizes, double *const *theirs,
                            const uint64_t *their_sizes)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  MPI_Request *requests;
  int size, count = 0;
  MPI_Comm_size(here(), &size);
  WEFT_TAKE(requests, &mem, 2 * (size_t) size);
  for (int r = 0; r < size; r++)
    if (sizes[r] > MOST || their_sizes[r] > MOST)
      WEFT_TRY(weft_fail(ctx, WEFT_ERR_INPUT, "more than 16 GiB of points would go from one rank to another; use more ranks"));
  for (int r = 0; r < size; r++)
    if (their_sizes[r])
      WEFT_TRY(weft_mpi_check(ctx, "MPI_Irecv", MPI_Irecv(theirs[r], (int) their_sizes[r], MPI_DOUBLE, r, EXCHANGE, here(), &requests[count++])));
  for (int r = 0; r < size; r++)
    if (sizes[r])
      WEFT_TRY(weft_mpi_check(ctx, "MPI_Isend", MPI_Isend(mine[r], (int) sizes[r], MPI_DOUBLE, r, EXCHANGE, here(), &requests[count++])));
  WEFT_TRY(weft_mpi_await(ctx, requests, count));
done:
  weft_arena_end(&mem);
  return st;
}

/* Frees what has left. */
static void sweep(void)
{
  for (outgoing **at = &posted; *at;) {
    outgoing *one = *at;
    int left = 0;
    MPI_Test(&one->request, &left, MPI_STATUS_IGNORE);
    if (left) {
      *at = one->next;
      free(one);
    } else at = &one->next;
  }
}

static weft_status post(weft_ctx *ctx, int to, int kind, const double *values, size_t n)
{
  weft_status st = WEFT_OK;
  outgoing *one = n > MOST ? NULL : malloc(sizeof *one + n * sizeof *values);
  if (!one) return weft_fail_memory(ctx, "host", (double) n * sizeof *values, -1, "a message to another rank");
  if (n) memcpy(one->values, values, n * sizeof *values);
  sweep();
  st = weft_mpi_check(ctx, "MPI_Isend", MPI_Isend(one->values, (int) n, MPI_DOUBLE, to, KINDS + kind, weft_world, &one->request));
  if (st != WEFT_OK) {
    free(one);
    return st;
  }
  one->next = posted;
  posted = one;
  return st;
}

static weft_status look(weft_ctx *ctx, int *from, int *kind, uint64_t *n)
{
  weft_status st = WEFT_OK;
  int count = 0, arrived = 0;
  *from = -1, *kind = 0, *n = 0;
  sweep();
  WEFT_TRY(weft_poll(ctx, 0, 0));
  WEFT_TRY(weft_mpi_watch(ctx, &left_at));
  for (int k = 0; k < 4 && !arrived; k++) {
    WEFT_TRY(weft_mpi_check(ctx, "MPI_Improbe", MPI_Improbe(MPI_ANY_SOURCE, KINDS + k, weft_world, &arrived, &found, &found_status)));
    if (arrived) *kind = k;
  }
  if (!arrived) return st;
  MPI_Get_count(&found_status, MPI_DOUBLE, &count);
  *from = found_status.MPI_SOURCE, *n = (uint64_t) count;
done:
  return st;
}

static weft_status take(weft_ctx *ctx, double *values)
{
  weft_status st = WEFT_OK;
  MPI_Request request;
  int count;
  MPI_Get_count(&found_status, MPI_DOUBLE, &count);
  WEFT_TRY(weft_mpi_check(ctx, "MPI_Imrecv", MPI_Imrecv(values, count, MPI_DOUBLE, &found, &request)));
  WEFT_TRY(weft_mpi_await(ctx, &request, 1));
done:
  return st;
}

static weft_status total(weft_ctx *ctx, double mine, double *all, int *ready)
{
  weft_status st = WEFT_OK;
  *ready = 0;
  if (adding == MPI_REQUEST_NULL) {
    addend = mine;
    WEFT_TRY(weft_mpi_check(ctx, "MPI_Iallreduce", MPI_Iallreduce(&addend, &added, 1, MPI_DOUBLE, MPI_SUM, weft_world, &adding)));
  }
  WEFT_TRY(weft_mpi_check(ctx, "MPI_Test", MPI_Test(&adding, ready, MPI_STATUS_IGNORE)));
  if (*ready) *all = added;
done:
  return st;
}

void weft_mpi_messages_end(void)
{
  if (group != MPI_COMM_NULL) MPI_Comm_free(&group);
  sweep();
}

const weft_mpi_messages weft_mpi_message_table = { regroup, all_reduce, exchange_sizes, exchange, post, look, take, total };
