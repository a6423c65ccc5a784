/* One host thread per device; see spread.h. */
#ifndef _POSIX_C_SOURCE
#  define _POSIX_C_SOURCE 200809L
#endif
#include <string.h>
#include "core/call/arena.h"
#include "core/together/exchange.h"
#include "core/together/spread.h"

#ifdef _WIN32

struct weft_team {
  int none;
};

weft_status weft_team_begin(weft_ctx *ctx, weft_team **out)
{
  static weft_team one;
  (void) ctx;
  *out = &one;
  return WEFT_OK;
}

weft_status weft_team_run(weft_ctx *ctx, weft_team *team, weft_part run, void *data)
{
  weft_status st = WEFT_OK; /* no CUDA back end there, so no second device */
  (void) team;
  for (int k = 0; k < ctx->device_count && st == WEFT_OK; k++) st = run(ctx, (size_t) k, data);
  return st;
}

void weft_team_end(weft_team *team) { (void) team; }

#else
#  include <pthread.h>
#  include <sched.h>
#  include <signal.h>
#  include <time.h>

typedef struct {
  weft_ctx ctx;
  weft_team *team;
  size_t part;
  double share; /* of its work that is done */
  weft_status st;
  pthread_t thread;
} member;

struct weft_team {
  weft_arena mem;
  weft_meeting meeting;
  pthread_mutex_t lock;
  pthread_cond_t began, ended;
  size_t count, running;
  unsigned turn, finished; /* runs begun and ended */
  int stop, over;
  weft_part run;
  void *data;
  member *members;
};

static int poll_member(void *data, double done, double total)
{
  member *worker = data;
  if (total > 0) {
    double share = done / total;
    __atomic_store(&worker->share, &share, __ATOMIC_RELAXED);
  }
  return __atomic_load_n(&worker->team->stop, __ATOMIC_RELAXED);
}

static void stop_all(weft_team *team) { __atomic_store_n(&team->stop, 1, __ATOMIC_RELAXED); }

/* The next run mostly comes soon, and its end too: a thread that sleeps would wake too late. */
static void look_for_a_change(const unsigned *of, unsigned from)
{
  for (int looks = 1; looks < 20000 && __atomic_load_n(of, __ATOMIC_ACQUIRE) == from; looks++)
    if (looks % 64 == 0) sched_yield();
}

/* A member's thread: waits for a turn, runs its part, tells the others if it failed, and reports the end; until the
 * team is over. Waiting begins with a short poll, since sleeping threads wake slowly. */
static void *work(void *data)
{
  member *worker = data;
  weft_team *team = worker->team;
  for (unsigned turn = 0;; turn++) {
    look_for_a_change(&team->turn, turn);
    pthread_mutex_lock(&team->lock);
    while (team->turn == turn && !team->over) pthread_cond_wait(&team->began, &team->lock);
    const int over = team->over;
    pthread_mutex_unlock(&team->lock);
    if (over) return NULL;
    worker->st = team->run(&worker->ctx, worker->part, team->data);
    if (worker->st != WEFT_OK) stop_all(team);
    weft_meet_leave(&team->meeting);
    pthread_mutex_lock(&team->lock);
    if (--team->running == 0) __atomic_store_n(&team->finished, turn + 1, __ATOMIC_RELEASE);
    pthread_cond_signal(&team->ended);
    pthread_mutex_unlock(&team->lock);
  }
}

/* Polls for all until the last has ended. */
static weft_status wait_for_all(weft_ctx *ctx, weft_team *team)
{
  weft_status st = WEFT_OK;
  look_for_a_change(&team->finished, team->turn - 1);
  pthread_mutex_lock(&team->lock);
  while (team->running) {
    struct timespec until;
    double share = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 20000000;
    if (until.tv_nsec >= 1000000000) {
      until.tv_sec++;
      until.tv_nsec -= 1000000000;
    }
    pthread_cond_timedwait(&team->ended, &team->lock, &until);
    pthread_mutex_unlock(&team->lock);
    for (size_t k = 0; k < team->count; k++) {
      double own;
      __atomic_load(&team->members[k].share, &own, __ATOMIC_RELAXED);
      share += own / (double) team->count;
    }
    if (st == WEFT_OK && (st = weft_poll(ctx, share, 1)) != WEFT_OK) stop_all(team);
    pthread_mutex_lock(&team->lock);
  }
  pthread_mutex_unlock(&team->lock);
  return st;
}

/* Starts one host thread for each device of the call, each with a context of its own: a share of the threads, one
 * device, no way into R. Signals stay with R's thread. Fails, with nothing left running, where a thread cannot be
 * started. */
weft_status weft_team_begin(weft_ctx *ctx, weft_team **out)
{
  weft_status st = WEFT_OK;
  const size_t count = (size_t) ctx->device_count;
  weft_arena mem = weft_arena_begin(ctx);
  sigset_t all, before;
  weft_team *team;
  WEFT_TAKE0(team, &mem, 1);
  WEFT_TAKE0(team->members, &mem, count);
  pthread_mutex_init(&team->lock, NULL);
  pthread_cond_init(&team->began, NULL);
  pthread_cond_init(&team->ended, NULL);
  team->mem = mem;
  team->meeting.parts = (int) count;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); /* R's signals belong to R's thread */
  for (; team->count < count; team->count++) {
    member *worker = &team->members[team->count];
    worker->ctx = *ctx;
    worker->ctx.poll = poll_member;
    worker->ctx.poll_data = worker;
    worker->ctx.threads = ctx->threads / (int) count > 1 ? ctx->threads / (int) count : 1;
    worker->ctx.device = ctx->devices[team->count];
    worker->ctx.devices = &ctx->devices[team->count];
    worker->ctx.device_count = 1;
    worker->ctx.lane = (int) team->count + 1;
    worker->ctx.meeting = &team->meeting;
    worker->ctx.part = (int) team->count;
    worker->team = team;
    worker->part = team->count;
    team->meeting.device[team->count] = worker->ctx.device;
    if (pthread_create(&worker->thread, NULL, work, worker)) break;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (team->count < count) {
    st = weft_fail(ctx, WEFT_ERR_MEMORY, "The system could not start a thread for device %d.",
                   ctx->devices[team->count]);
    weft_team_end(team);
    return st;
  }
  *out = team;
  return st;
done:
  weft_arena_end(&mem);
  return st;
}

/* Runs `run` once on every member, and returns when all have ended. An error is the first member's that did not merely
 * follow another's; its message becomes the caller's. */
weft_status weft_team_run(weft_ctx *ctx, weft_team *team, weft_part run, void *data)
{
  weft_status st;
  team->run = run;
  team->data = data;
  team->stop = team->meeting.arrived = team->meeting.ended = 0;
  pthread_mutex_lock(&team->lock);
  team->running = team->count;
  __atomic_store_n(&team->turn, team->turn + 1, __ATOMIC_RELEASE);
  pthread_cond_broadcast(&team->began);
  pthread_mutex_unlock(&team->lock);
  st = wait_for_all(ctx, team);
  for (size_t k = 0; k < team->count && st == WEFT_OK; k++) {
    const member *worker = &team->members[k];
    if (worker->st == WEFT_OK || worker->st == WEFT_ERR_INTERRUPT) continue; /* the latter was told to stop */
    st = worker->st;
    ctx->column = worker->ctx.column;
    memcpy(ctx->message, worker->ctx.message, sizeof ctx->message);
  }
  return st;
}

void weft_team_end(weft_team *team)
{
  weft_arena mem = team->mem; /* the team itself lives in it */
  pthread_mutex_lock(&team->lock);
  team->over = 1;
  __atomic_store_n(&team->turn, team->turn + 1, __ATOMIC_RELEASE); /* for those who look */
  pthread_cond_broadcast(&team->began);
  pthread_mutex_unlock(&team->lock);
  for (size_t k = 0; k < team->count; k++) pthread_join(team->members[k].thread, NULL);
  pthread_cond_destroy(&team->ended);
  pthread_cond_destroy(&team->began);
  pthread_mutex_destroy(&team->lock);
  weft_arena_end(&mem);
}

#endif

weft_status weft_spread(weft_ctx *ctx, weft_part run, void *data)
{
  weft_team *team;
  if (ctx->device_count == 1) return run(ctx, 0, data);
  weft_status st = weft_team_begin(ctx, &team);
  if (st != WEFT_OK) return st;
  st = weft_team_run(ctx, team, run, data);
  weft_team_end(team);
  return st;
}
