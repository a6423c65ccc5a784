/* Meetings of the parts of a call; see exchange.h. */
/* Build: shared. */
#ifndef _POSIX_C_SOURCE
#  define _POSIX_C_SOURCE 200809L
#endif
#include <string.h>
#include <time.h>
#ifndef _WIN32
#  include <sched.h>
#endif
#include "core/call/arena.h"
#include "core/together/exchange.h"

#define EAGER 4000 /* looks before the processor is yielded */

static void give_way(int looks)
{
#ifndef _WIN32
  if (looks > 2 * EAGER) {
    const struct timespec moment = { 0, 50000 };
    nanosleep(&moment, NULL);
  } else if (looks > EAGER) {
    sched_yield();
  }
#else
  (void) looks;
#endif
}

static void take_lock(weft_meeting *meeting)
{
  for (int looks = 0; __atomic_exchange_n(&meeting->lock, 1, __ATOMIC_ACQUIRE); looks++) give_way(looks);
}

static void release_lock(weft_meeting *meeting) { __atomic_store_n(&meeting->lock, 0, __ATOMIC_RELEASE); }

void weft_meet_leave(weft_meeting *meeting)
{
  take_lock(meeting);
  meeting->ended++;
  release_lock(meeting);
}

static weft_status alone(weft_ctx *ctx)
{
  weft_status st = weft_poll(ctx, 0, 0); /* as a rule the others have ended because of an error */
  return st != WEFT_OK ? st : weft_fail(ctx, WEFT_ERR_INTERNAL, "parts of a call did not come to the same meetings");
}

/* Waits until all have come. Unless `firm`, leaves when told to stop or when a part has ended; if `firm`, leaves early
 * only when all parts that have not come have ended. */
static weft_status wait_for_all(weft_ctx *ctx, int firm)
{
  weft_meeting *meeting = ctx->meeting;
  weft_status st = WEFT_OK;
  unsigned round;
  take_lock(meeting);
  round = meeting->round;
  if (++meeting->arrived == meeting->parts) {
    meeting->arrived = 0;
    __atomic_store_n(&meeting->round, round + 1, __ATOMIC_RELEASE);
    release_lock(meeting);
    return WEFT_OK;
  }
  release_lock(meeting);
  for (int looks = 1; __atomic_load_n(&meeting->round, __ATOMIC_ACQUIRE) == round;
       looks = looks > 3 * EAGER ? 2 * EAGER + 1 : looks + 1) {
    give_way(looks);
    if (looks % 64) continue;
    take_lock(meeting);
    if (meeting->round != round)
      st = WEFT_OK;
    else if (firm ? meeting->arrived + meeting->ended >= meeting->parts : meeting->ended > 0)
      st = alone(ctx);
    else if (!firm)
      st = weft_poll(ctx, 0, 0);
    if (st != WEFT_OK && !firm)
      meeting->arrived--; /* the round cannot take place; parts that come later must not count this one */
    release_lock(meeting);
    if (st != WEFT_OK) return st;
  }
  return WEFT_OK;
}

weft_status weft_meet(weft_ctx *ctx, const void *mine)
{
  ctx->meeting->shown[ctx->part] = mine;
  return wait_for_all(ctx, 0);
}

weft_status weft_meet_end(weft_ctx *ctx, weft_status st)
{
  const weft_status ended = wait_for_all(ctx, 1);
  return st != WEFT_OK ? st : ended;
}

/* x becomes the sum over the parts of a call, added in their order: the same bits on all. Every part reads all the
 * others', so this is for small vectors. */
weft_status weft_meet_add(weft_ctx *ctx, double *x, size_t count)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  double *sum;
  WEFT_TAKE0(sum, &mem, count);
  WEFT_TRY(weft_meet(ctx, x));
  for (int r = 0; r < ctx->meeting->parts; r++) {
    const double *other = (const double *) ctx->meeting->shown[r];
    for (size_t i = 0; i < count; i++) sum[i] += other[i];
  }
  WEFT_TRY(weft_meet_end(ctx, st));
  memcpy(x, sum, count * sizeof *x);
done:
  weft_arena_end(&mem);
  return st;
}

weft_status weft_meet_gather(weft_ctx *ctx, const void *mine, const uint64_t *sizes, unsigned char **all)
{
  weft_status st = WEFT_OK;
  WEFT_TRY(weft_meet(ctx, mine));
  for (int r = 0; r < ctx->meeting->parts; r++) memcpy(all[r], ctx->meeting->shown[r], (size_t) sizes[r]);
  st = weft_meet_end(ctx, st);
done:
  return st;
}
