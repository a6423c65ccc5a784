/* Devices that are opened beside a call's work, so that the next call finds them open. Creating a context takes a
 * third of a second and no more than one thread. The threads end before the object is closed or the process exits:
 * CUDA must not be taken down under them. */
#include <csignal>
#include <cstdlib>
#include <pthread.h>
#include <unistd.h>
#include "device.cuh"

enum opening_state { CLOSED, OPENING, OPEN };

static struct { int state; pthread_t thread; bool started; } opening[WEFT_MOST_DEVICES];
static pid_t opener; /* the process whose threads these are: a forked child has none of them */

void weft_device_is_open(int device)
{
  if (device < WEFT_MOST_DEVICES) __atomic_store_n(&opening[device].state, OPEN, __ATOMIC_RELEASE);
}

int weft_device_opened(int device)
{
  return device < WEFT_MOST_DEVICES && __atomic_load_n(&opening[device].state, __ATOMIC_ACQUIRE) == OPEN;
}

/* A device that cannot be opened stays closed; a call that names it will say why. */
static void *open_device(void *data)
{
  const int device = (int) (intptr_t) data;
  int closed = OPENING;
  if (cudaSetDevice(device) == cudaSuccess && cudaFree(NULL) == cudaSuccess) weft_device_is_open(device);
  (void) cudaGetLastError();
  __atomic_compare_exchange_n(&opening[device].state, &closed, CLOSED, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
  return NULL;
}

static void wait_for_openings(void)
{
  if (opener != getpid()) return;
  for (int device = 0; device < WEFT_MOST_DEVICES; device++) {
    if (opening[device].started) pthread_join(opening[device].thread, NULL);
    opening[device].started = false;
  }
}

/* Called by R's thread alone. */
void weft_device_open_beside(int device)
{
  sigset_t all, before;
  int closed = CLOSED;
  if (device >= WEFT_MOST_DEVICES || opening[device].started) return;
  if (!__atomic_compare_exchange_n(&opening[device].state, &closed, OPENING, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    return;
  if (!opener && atexit(wait_for_openings) == 0) opener = getpid();
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); /* R's signals belong to R's thread */
  opening[device].started =
    opener && pthread_create(&opening[device].thread, NULL, open_device, (void *) (intptr_t) device) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (!opening[device].started) __atomic_store_n(&opening[device].state, CLOSED, __ATOMIC_RELEASE);
}
