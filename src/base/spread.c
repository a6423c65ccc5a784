/* One host thread a device; see spread.h. */
#ifndef _POSIX_C_SOURCE
# define _POSIX_C_SOURCE 200809L
#endif
#include <string.h>
#include "arena.h"
#include "spread.h"

#ifdef _WIN32

weft_status weft_spread(weft_ctx *ctx, weft_part run, void *data)
{
  weft_status st = WEFT_OK; /* no CUDA back end there, so no second device */
  for (int k = 0; k < ctx->device_count && st == WEFT_OK; k++) st = run(ctx, (size_t) k, data);
  return st;
}

#else
# include <pthread.h>
# include <signal.h>
# include <time.h>

typedef struct { pthread_mutex_t lock; pthread_cond_t ended; size_t running; int stop; } team;

typedef struct {
  weft_ctx ctx;
  team *team;
  weft_part run;
  void *data;
  size_t part;
  double share;      /* of its work that is done */
  weft_status st;
  pthread_t thread;
} member;

static int poll_member(void *data, double done, double total)
{
  member *m = data;
  double share = total > 0 ? done / total : 0;
  __atomic_store(&m->share, &share, __ATOMIC_RELAXED);
  return __atomic_load_n(&m->team->stop, __ATOMIC_RELAXED);
}

static void stop_all(team *t) { __atomic_store_n(&t->stop, 1, __ATOMIC_RELAXED); }

static void *work(void *data)
{
  member *m = data;
  m->st = m->run(&m->ctx, m->part, m->data);
  if (m->st != WEFT_OK) stop_all(m->team);
  pthread_mutex_lock(&m->team->lock);
  m->team->running--;
  pthread_cond_signal(&m->team->ended);
  pthread_mutex_unlock(&m->team->lock);
  return NULL;
}

/* Polls for all until the last has ended. */
static weft_status wait_for_all(weft_ctx *ctx, team *t, member *members, size_t count)
{
  weft_status st = WEFT_OK;
  pthread_mutex_lock(&t->lock);
  while (t->running) {
    struct timespec until;
    double share = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 20000000;
    if (until.tv_nsec >= 1000000000) { until.tv_sec++; until.tv_nsec -= 1000000000; }
    pthread_cond_timedwait(&t->ended, &t->lock, &until);
    pthread_mutex_unlock(&t->lock);
    for (size_t k = 0; k < count; k++) {
      double own;
      __atomic_load(&members[k].share, &own, __ATOMIC_RELAXED);
      share += own / (double) count;
    }
    if (st == WEFT_OK && (st = weft_poll(ctx, share, 1)) != WEFT_OK) stop_all(t);
    pthread_mutex_lock(&t->lock);
  }
  pthread_mutex_unlock(&t->lock);
  return st;
}

weft_status weft_spread(weft_ctx *ctx, weft_part run, void *data)
{
  weft_status st = WEFT_OK;
  const size_t count = (size_t) ctx->device_count;
  weft_arena mem = weft_arena_begin(ctx);
  team t = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0 };
  size_t begun = 0;
  sigset_t all, before;
  member *members;
  if (count == 1) return run(ctx, 0, data);
  WEFT_TAKE0(members, &mem, count);
  t.running = count;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); /* R's signals belong to R's thread */
  for (; begun < count; begun++) {
    member *m = &members[begun];
    m->ctx = *ctx;
    m->ctx.poll = poll_member;
    m->ctx.poll_data = m;
    m->ctx.threads = ctx->threads / (int) count > 1 ? ctx->threads / (int) count : 1;
    m->ctx.device = ctx->devices[begun];
    m->ctx.devices = &ctx->devices[begun];
    m->ctx.device_count = 1;
    m->ctx.lane = (int) begun + 1;
    m->team = &t;
    m->run = run;
    m->data = data;
    m->part = begun;
    if (pthread_create(&m->thread, NULL, work, m)) break;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (begun < count) {
    st = weft_fail(ctx, WEFT_ERR_MEMORY, "The system gave no thread for device %d.", ctx->devices[begun]);
    stop_all(&t);
    pthread_mutex_lock(&t.lock);
    t.running -= count - begun;
    pthread_mutex_unlock(&t.lock);
  }
  const weft_status waited = wait_for_all(ctx, &t, members, begun);
  if (st == WEFT_OK) st = waited;
  for (size_t k = 0; k < begun; k++) pthread_join(members[k].thread, NULL);
  for (size_t k = 0; k < begun && st == WEFT_OK; k++) {
    const member *m = &members[k];
    if (m->st == WEFT_OK || m->st == WEFT_ERR_INTERRUPT) continue; /* the latter was told to stop */
    st = m->st;
    ctx->column = m->ctx.column;
    memcpy(ctx->message, m->ctx.message, sizeof ctx->message);
  }
done:
  weft_arena_end(&mem);
  return st;
}

#endif
