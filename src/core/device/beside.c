/* Threads that open devices; see beside.h. */
#ifndef _POSIX_C_SOURCE
#  define _POSIX_C_SOURCE 200809L
#endif
#include <stdint.h>
#include <stdio.h>
#include "core/call/backend.h"
#include "core/device/beside.h"

#ifdef _WIN32

void weft_beside_open(const char *libs, int device, int libraries)
{
  (void) libs;
  (void) device;
  (void) libraries;
}
int weft_beside_opened(int device)
{
  (void) device;
  return 0;
}
void weft_beside_wait(void) {}

#else
#  include <pthread.h>
#  include <signal.h>

static struct {
  pthread_t thread;
  int libraries, begun, running, opened;
} opening[WEFT_MOST_DEVICES];
static char objects[4096]; /* the package's libs directory */

static void *open_device(void *data)
{
  const int device = (int) (intptr_t) data;
  char why[512] = "";
  const weft_backend *b = weft_cuda_backend(objects, why, sizeof why);
  if (b && device < b->device->count(why, sizeof why)) {
    b->device->open_libraries(device, opening[device].libraries);
    __atomic_store_n(&opening[device].opened, b->device->opened(device), __ATOMIC_RELEASE);
  }
  return NULL;
}

void weft_beside_open(const char *libs, int device, int libraries)
{
  sigset_t all, before;
  if (device < 0 || device >= WEFT_MOST_DEVICES || opening[device].begun || weft_forked()) return;
  opening[device].begun = 1;
  opening[device].libraries = libraries;
  snprintf(objects, sizeof objects, "%s", libs);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); /* R's signals belong to R's thread */
  opening[device].running = !pthread_create(&opening[device].thread, NULL, open_device, (void *) (intptr_t) device);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int weft_beside_opened(int device)
{
  return device >= 0 && device < WEFT_MOST_DEVICES && __atomic_load_n(&opening[device].opened, __ATOMIC_ACQUIRE);
}

void weft_beside_wait(void)
{
  if (weft_forked()) return; /* a child has no threads of its parent's */
  for (int device = 0; device < WEFT_MOST_DEVICES; device++) {
    if (opening[device].running) pthread_join(opening[device].thread, NULL);
    opening[device].running = 0;
  }
}

#endif
