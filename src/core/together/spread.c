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
  member *m = data;
  if (total > 0) {
    double share = done / total;
    __atomic_store(&m->share, &share, __ATOMIC_RELAXED);
  }
  return __atomic_load_n(&m->team->stop, __ATOMIC_RELAXED);
}

static void stop_all(weft_team *t) { __atomic_store_n(&t->stop, 1, __ATOMIC_RELAXED); }

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
  member *m = data;
  weft_team *t = m->team;
  for (unsigned turn = 0;; turn++) {
    look_for_a_change(&t->turn, turn);
    pthread_mutex_lock(&t->lock);
    while (t->turn == turn && !t->over) pthread_cond_wait(&t->began, &t->lock);
    const int over = t->over;
    pthread_mutex_unlock(&t->lock);
    if (over) return NULL;
    m->st = t->run(&m->ctx, m->part, t->data);
    if (m->st != WEFT_OK) stop_all(t);
    weft_meet_leave(&t->meeting);
    pthread_mutex_lock(&t->lock);
    if (--t->running == 0) __atomic_store_n(&t->finished, turn + 1, __ATOMIC_RELEASE);
    pthread_cond_signal(&t->ended);
    pthread_mutex_unlock(&t->lock);
  }
}

/* Polls for all until the last has ended. */
static weft_status wait_for_all(weft_ctx *ctx, weft_team *t)
{
  weft_status st = WEFT_OK;
  look_for_a_change(&t->finished, t->turn - 1);
  pthread_mutex_lock(&t->lock);
  while (t->running) {
    struct timespec until;
    double share = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 20000000;
    if (until.tv_nsec >= 1000000000) {
      until.tv_sec++;
      until.tv_nsec -= 1000000000;
    }
    pthread_cond_timedwait(&t->ended, &t->lock, &until);
    pthread_mutex_unlock(&t->lock);
    for (size_t k = 0; k < t->count; k++) {
      double own;
      __atomic_load(&t->members[k].share, &own, __ATOMIC_RELAXED);
      share += own / (double) t->count;
    }
    if (st == WEFT_OK && (st = weft_poll(ctx, share, 1)) != WEFT_OK) stop_all(t);
    pthread_mutex_lock(&t->lock);
  }
  pthread_mutex_unlock(&t->lock);
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
  weft_team *t;
  WEFT_TAKE0(t, &mem, 1);
  WEFT_TAKE0(t->members, &mem, count);
  pthread_mutex_init(&t->lock, NULL);
  pthread_cond_init(&t->began, NULL);
  pthread_cond_init(&t->ended, NULL);
  t->mem = mem;
  t->meeting.parts = (int) count;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); /* R's signals belong to R's thread */
  for (; t->count < count; t->count++) {
    member *m = &t->members[t->count];
    m->ctx = *ctx;
    m->ctx.poll = poll_member;
    m->ctx.poll_data = m;
    m->ctx.threads = ctx->threads / (int) count > 1 ? ctx->threads / (int) count : 1;
    m->ctx.device = ctx->devices[t->count];
    m->ctx.devices = &ctx->devices[t->count];
    m->ctx.device_count = 1;
    m->ctx.lane = (int) t->count + 1;
    m->ctx.meeting = &t->meeting;
    m->ctx.part = (int) t->count;
    m->team = t;
    m->part = t->count;
    t->meeting.device[t->count] = m->ctx.device;
    if (pthread_create(&m->thread, NULL, work, m)) break;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (t->count < count) {
    st = weft_fail(ctx, WEFT_ERR_MEMORY, "The system could not start a thread for device %d.", ctx->devices[t->count]);
    weft_team_end(t);
    return st;
  }
  *out = t;
  return st;
done:
  weft_arena_end(&mem);
  return st;
}

/* Runs `run` once on every member, and returns when all have ended. An error is the first member's that did not merely
 * follow another's; its message becomes the caller's. */
weft_status weft_team_run(weft_ctx *ctx, weft_team *t, weft_part run, void *data)
{
  weft_status st;
  t->run = run;
  t->data = data;
  t->stop = t->meeting.arrived = t->meeting.ended = 0;
  pthread_mutex_lock(&t->lock);
  t->running = t->count;
  __atomic_store_n(&t->turn, t->turn + 1, __ATOMIC_RELEASE);
  pthread_cond_broadcast(&t->began);
  pthread_mutex_unlock(&t->lock);
  st = wait_for_all(ctx, t);
  for (size_t k = 0; k < t->count && st == WEFT_OK; k++) {
    const member *m = &t->members[k];
    if (m->st == WEFT_OK || m->st == WEFT_ERR_INTERRUPT) continue; /* the latter was told to stop */
    st = m->st;
    ctx->column = m->ctx.column;
    memcpy(ctx->message, m->ctx.message, sizeof ctx->message);
  }
  return st;
}

void weft_team_end(weft_team *t)
{
  weft_arena mem = t->mem; /* the team itself lives in it */
  pthread_mutex_lock(&t->lock);
  t->over = 1;
  __atomic_store_n(&t->turn, t->turn + 1, __ATOMIC_RELEASE); /* for those who look */
  pthread_cond_broadcast(&t->began);
  pthread_mutex_unlock(&t->lock);
  for (size_t k = 0; k < t->count; k++) pthread_join(t->members[k].thread, NULL);
  pthread_cond_destroy(&t->ended);
  pthread_cond_destroy(&t->began);
  pthread_mutex_destroy(&t->lock);
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
