/* Groups, exchanges and messages; see core/together/messages.h. What a rank posts is copied, and the copy freed when it
 * has been sent; a message that has arrived is kept until the next look. Exchanges go in rounds, through
 * weft_mpi_room(). */
#include <stdlib.h>
#include <string.h>
#include "core/together/mpi/messages.h"
#include "core/together/mpi/mpi.h"
#include "core/together/mpi/roll_call.h"

#define MOST ((size_t) 2147483647) /* doubles in a message: 16 GiB */
#define ROUND ((uint64_t) 1 << 23) /* doubles that come and go in one round of an exchange */

typedef struct outgoing {
  MPI_Request request;
  struct outgoing *next;
  double values[];
} outgoing;

static MPI_Comm group = MPI_COMM_NULL; /* NULL: all ranks */
static outgoing *posted;
static double *letter; /* the message that was looked at last */
static int ranks;
static uint64_t *sent, *received, *expected; /* messages to and from every rank since all were cleared away */

MPI_Comm weft_mpi_group(void) { return group == MPI_COMM_NULL ? weft_world : group; }

weft_status weft_mpi_messages_start(weft_ctx *ctx, int size)
{
  ranks = size;
  sent = calloc((size_t) size, sizeof *sent);
  received = calloc((size_t) size, sizeof *received);
  expected = calloc((size_t) size, sizeof *expected);
  return sent && received && expected ? WEFT_OK : weft_fail_memory(ctx, "host", 24.0 * size, -1, "counts of messages");
}

/* ---- groups ---- */

static weft_status regroup(weft_ctx *ctx, int part, int *rank, int *size)
{
  weft_status st = WEFT_OK;
  MPI_Comm next = MPI_COMM_NULL;
  MPI_Comm_rank(weft_mpi_group(), rank);
  if (part >= 0) {
    WEFT_TRY(weft_mpi_together(ctx, weft_mpi_group(), STEP_GROUP, 0, 0));
    TRY_MPI(MPI_Comm_split, weft_mpi_group(), part, *rank, &next);
    MPI_Comm_set_errhandler(next, MPI_ERRORS_RETURN);
  }
  if (group != MPI_COMM_NULL) MPI_Comm_free(&group);
  group = next;
  MPI_Comm_rank(weft_mpi_group(), rank);
  MPI_Comm_size(weft_mpi_group(), size);
done:
  return st;
}

/* `n` numbers become their sum or smallest over the ranks of the group, after a roll call that compares n and `how`. */
static weft_status all_reduce(weft_ctx *ctx, double *values, size_t n, int how)
{
  weft_status st = WEFT_OK;
  unsigned char *own;
  MPI_Request request;
  WEFT_TRY(weft_mpi_room(ctx, 2 * n * sizeof *values, &own));
  double *from = (double *) own, *to = from + n;
  memcpy(from, values, n * sizeof *values);
  WEFT_TRY(weft_mpi_together(ctx, weft_mpi_group(), STEP_REDUCE, (uint64_t) n << 1 | (how == WEFT_SUM), 0));
  TRY_MPI(MPI_Iallreduce, from, to, (int) n, MPI_DOUBLE, how == WEFT_SUM ? MPI_SUM : MPI_MIN, weft_mpi_group(),
          &request);
  WEFT_TRY(weft_mpi_await(ctx, &request, 1, 0));
  memcpy(values, to, n * sizeof *values);
done:
  return st;
}

/* Tells each rank how much will come from this one: mine[r] goes to rank r, theirs[r] comes from it. */
static weft_status exchange_sizes(weft_ctx *ctx, const uint64_t *mine, uint64_t *theirs)
{
  weft_status st = WEFT_OK;
  unsigned char *own;
  MPI_Request request;
  int size;
  MPI_Comm_size(weft_mpi_group(), &size);
  const size_t bytes = (size_t) size * sizeof *mine;
  WEFT_TRY(weft_mpi_room(ctx, 2 * bytes, &own));
  memcpy(own, mine, bytes);
  WEFT_TRY(weft_mpi_together(ctx, weft_mpi_group(), STEP_SIZES, 0, 0));
  TRY_MPI(MPI_Ialltoall, own, 1, MPI_UINT64_T, own + bytes, 1, MPI_UINT64_T, weft_mpi_group(), &request);
  WEFT_TRY(weft_mpi_await(ctx, &request, 1, 0));
  memcpy(theirs, own + bytes, bytes);
done:
  return st;
}

/* One side of an exchange: what goes to every rank, or what comes. In a round each pair of ranks has at most `piece`
 * numbers. */
typedef struct {
  const uint64_t *sizes;
  int size, me;
  uint64_t piece;
} side;

/* How many numbers rank r has in the round that begins with number `from`. What a rank has for itself does not
 * travel. */
static size_t in_round(const side *s, int rank, uint64_t from)
{
  const uint64_t left = rank != s->me && s->sizes[rank] > from ? s->sizes[rank] - from : 0;
  return (size_t) (left < s->piece ? left : s->piece);
}

static size_t of_round(const side *s, uint64_t from)
{
  size_t sum = 0;
  for (int rank = 0; rank < s->size; rank++) sum += in_round(s, rank, from);
  return sum;
}

/* The numbers of one round through `in` and `out`, rank after rank. */
static weft_status trade(weft_ctx *ctx, const side *come, const side *go, uint64_t from, double *in, double *out,
                         MPI_Request *requests)
{
  weft_status st = WEFT_OK;
  int count = 0;
  for (int rank = 0; rank < come->size; rank++) {
    const size_t n = in_round(come, rank, from);
    if (n) TRY_MPI(MPI_Irecv, in, (int) n, MPI_DOUBLE, rank, TAG_EXCHANGE, weft_mpi_group(), &requests[count++]);
    in += n;
  }
  for (int rank = 0; rank < go->size; rank++) {
    const size_t n = in_round(go, rank, from);
    if (n) TRY_MPI(MPI_Isend, out, (int) n, MPI_DOUBLE, rank, TAG_EXCHANGE, weft_mpi_group(), &requests[count++]);
    out += n;
  }
  WEFT_TRY(weft_mpi_await(ctx, requests, count, 0));
done:
  return st;
}

/* All to all: sizes[r] numbers from mine[r] to rank r, their_sizes[r] from rank r into theirs[r]. Goes in rounds of
 * bounded size, each after a roll call, until the longest message of all ranks has passed. */
static weft_status exchange(weft_ctx *ctx, const double *const *mine, const uint64_t *sizes, double *const *theirs,
                            const uint64_t *their_sizes)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  MPI_Request *requests;
  int size, me;
  double most = 0, longest = 0; /* of all ranks, and of this one */
  MPI_Comm_size(weft_mpi_group(), &size);
  MPI_Comm_rank(weft_mpi_group(), &me);
  const side come = { their_sizes, size, me, ROUND / (uint64_t) size },
             go = { sizes, size, me, ROUND / (uint64_t) size };
  WEFT_TAKE(requests, &mem, 2 * (size_t) size);
  if (sizes[me]) memcpy(theirs[me], mine[me], sizes[me] * sizeof(double));
  for (int rank = 0; rank < size; rank++)
    if (rank != me && (double) sizes[rank] > longest) longest = (double) sizes[rank];
  for (uint64_t from = 0; !from || most > (double) from; from += come.piece) {
    const size_t arriving = of_round(&come, from), leaving = of_round(&go, from);
    unsigned char *bytes;
    WEFT_TRY(weft_mpi_room(ctx, (arriving + leaving) * sizeof(double), &bytes));
    double *in = (double *) bytes, *out = in + arriving;
    for (int rank = 0; rank < size; rank++) {
      if (in_round(&go, rank, from)) memcpy(out, mine[rank] + from, in_round(&go, rank, from) * sizeof(double));
      out += in_round(&go, rank, from);
    }
    WEFT_TRY(weft_mpi_together(ctx, weft_mpi_group(), STEP_EXCHANGE, from, longest));
    for (int rank = 0; rank < size; rank++) most = weft_mpi_said(rank) > most ? weft_mpi_said(rank) : most;
    WEFT_TRY(trade(ctx, &come, &go, from, in, in + arriving, requests));
    for (int rank = 0; rank < size; rank++) {
      if (in_round(&come, rank, from)) memcpy(theirs[rank] + from, in, in_round(&come, rank, from) * sizeof(double));
      in += in_round(&come, rank, from);
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* ---- messages ---- */

/* Frees what has been sent. */
static void sweep(void)
{
  for (outgoing **at = &posted; *at;) {
    outgoing *one = *at;
    int left = 0;
    MPI_Test(&one->request, &left, MPI_STATUS_IGNORE);
    if (left) {
      *at = one->next;
      free(one);
    } else
      at = &one->next;
  }
}

/* Posts a copy of n numbers to rank `to` and returns at once; the copy is freed by a later sweep() when MPI has sent
 * it. */
weft_status weft_mpi_send(weft_ctx *ctx, int to, int tag, const double *values, size_t n)
{
  weft_status st = WEFT_OK;
  if (n > MOST)
    return weft_fail(ctx, WEFT_ERR_INPUT,
                     "More than 16 GiB would go from one rank to another at once; use more ranks.");
  outgoing *one = weft_memory_ask(ctx->memory) ? NULL : malloc(sizeof *one + n * sizeof *values);
  if (!one)
    return weft_fail_memory(ctx, "host", (double) n * sizeof *values, weft_host_available(),
                            "a message to another rank");
  if (n) memcpy(one->values, values, n * sizeof *values);
  sweep();
  st = weft_mpi_check(ctx, "MPI_Isend", MPI_Isend(one->values, (int) n, MPI_DOUBLE, to, tag, weft_mail, &one->request));
  if (st != WEFT_OK) return st; /* MPI has failed, and may still look at the copy */
  one->next = posted;
  posted = one;
  sent[to]++;
  return st;
}

static weft_status post(weft_ctx *ctx, int to, int kind, const double *values, size_t n)
{
  return weft_mpi_send(ctx, to, TAG_KINDS + kind, values, n);
}

void weft_mpi_count_received(int from) { received[from]++; }

/* Takes one message that has arrived, from any rank: its sender, kind, length and numbers, which stay valid until the
 * next look. *from is -1 where there is none. Another rank's stop ends the call here. */
static weft_status look(weft_ctx *ctx, int *from, int *kind, uint64_t *n, const double **values)
{
  weft_status st = WEFT_OK;
  MPI_Status status;
  MPI_Request request;
  int count = 0, arrived = 0;
  char why[WEFT_WHY];
  *from = -1, *kind = 0, *n = 0, *values = NULL;
  free(letter);
  letter = NULL;
  sweep();
  WEFT_TRY(weft_poll(ctx, 0, 0));
  if (weft_mpi_heard(why) >= 0) {
    WEFT_TRY(weft_mpi_give_up(ctx, NULL));
    WEFT_TRY(weft_mpi_say_stopped(ctx));
  }
  for (int k = 0; k < 4 && !arrived; k++) {
    TRY_MPI(MPI_Iprobe, MPI_ANY_SOURCE, TAG_KINDS + k, weft_mail, &arrived, &status);
    if (arrived) *kind = k;
  }
  if (!arrived) return st;
  MPI_Get_count(&status, MPI_DOUBLE, &count);
  letter = weft_memory_ask(ctx->memory) ? NULL : malloc(sizeof *letter * (size_t) (count ? count : 1));
  if (!letter) {
    WEFT_TRY(weft_fail_memory(ctx, "host", (double) count * sizeof *letter, weft_host_available(),
                              "a message of another rank"));
  }
  TRY_MPI(MPI_Irecv, letter, count, MPI_DOUBLE, status.MPI_SOURCE, status.MPI_TAG, weft_mail, &request);
  WEFT_TRY(weft_mpi_await(ctx, &request, 1, 0));
  received[status.MPI_SOURCE]++;
  *from = status.MPI_SOURCE, *n = (uint64_t) count, *values = letter;
done:
  return st;
}

static weft_status total(weft_ctx *ctx, double mine, double *all, int *ready)
{
  weft_status st = WEFT_OK;
  *ready = 0;
  if (!weft_mpi_begun()) WEFT_TRY(weft_mpi_begin(ctx, weft_world, STEP_TOTAL, 0, mine));
  WEFT_TRY(weft_mpi_ready(ctx, ready));
  if (!*ready) return st;
  *all = 0;
  for (int rank = 0; rank < ranks; rank++) *all += weft_mpi_said(rank);
done:
  return st;
}

/* Receives a message and drops it. Without memory for it, MPI cuts it off and says so, which is no failure. */
static weft_status drop(weft_ctx *ctx, int from)
{
  weft_status st = WEFT_OK;
  MPI_Status status;
  double little[8], *all;
  int arrived = 0, count;
  while (!arrived) TRY_MPI(MPI_Iprobe, from, MPI_ANY_TAG, weft_mail, &arrived, &status);
  MPI_Get_count(&status, MPI_DOUBLE, &count);
  all = malloc(sizeof *all * (size_t) (count ? count : 1));
  MPI_Recv(all ? all : little, all ? count : 8, MPI_DOUBLE, from, status.MPI_TAG, weft_mail, MPI_STATUS_IGNORE);
  free(all);
  received[from]++;
done:
  return st;
}

weft_status weft_mpi_clear(weft_ctx *ctx)
{
  weft_status st = WEFT_OK;
  MPI_Request request;
  TRY_MPI(MPI_Ialltoall, sent, 1, MPI_UINT64_T, expected, 1, MPI_UINT64_T, weft_world, &request);
  WEFT_TRY(weft_mpi_await(ctx, &request, 1, 0));
  for (int rank = 0; rank < ranks; rank++)
    while (received[rank] < expected[rank]) WEFT_TRY(drop(ctx, rank));
  while (posted) sweep();
  memset(sent, 0, (size_t) ranks * sizeof *sent);
  memset(received, 0, (size_t) ranks * sizeof *received);
  if (group != MPI_COMM_NULL) MPI_Comm_free(&group);
done:
  return st;
}

void weft_mpi_messages_end(void)
{
  if (group != MPI_COMM_NULL) MPI_Comm_free(&group);
  sweep();
  free(letter);
  free(sent);
  free(received);
  free(expected);
  letter = NULL, sent = received = expected = NULL;
}

const weft_mpi_messages weft_mpi_message_table = { regroup, all_reduce, exchange_sizes, exchange, post, look, total };
