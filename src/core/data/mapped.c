/* Files as memory; see mapped.h. Where the system has no mmap() the file is read whole. */
#define _FILE_OFFSET_BITS 64
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, SA_ONSTACK */
#define _DARWIN_C_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/data/file.h"
#include "core/data/mapped.h"

#ifndef _WIN32
#  include <signal.h>
#  include <stdatomic.h>
#  include <sys/mman.h>
#  include <unistd.h>

/* A mapped file that another process makes shorter has pages without a file behind them; looking at one raises SIGBUS,
 * which would end R. The handler puts zeros in place of what is gone, and counts: weft_glue_run() then fails. Entries
 * are never freed, only reused, since a handler in another thread may be looking at the list. */
typedef struct weft_mapping {
  struct weft_mapping *next;
  atomic_uintptr_t start; /* 0: not in use */
  atomic_size_t size;
} mapping;

static _Atomic(mapping *) mappings;
static atomic_int in_use, lost;
static uintptr_t page;
static struct sigaction before; /* what handled SIGBUS */

static int fill_lost(uintptr_t at)
{
  for (mapping *entry = atomic_load(&mappings); entry; entry = entry->next) {
    const uintptr_t start = atomic_load(&entry->start), end = start + atomic_load(&entry->size),
                    from = at / page * page;
    if (!start || at < start || at >= end) continue;
    return mmap((void *) from, end - from, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == (void *) from;
  }
  return 0;
}

static void page_lost(int signal, siginfo_t *about, void *context)
{
  const int kept = errno;
  if (fill_lost((uintptr_t) about->si_addr))
    atomic_fetch_add(&lost, 1);
  else if (before.sa_flags & SA_SIGINFO)
    before.sa_sigaction(signal, about, context);
  else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
    before.sa_handler(signal);
  else
    sigaction(SIGBUS, &before, NULL); /* and the access fails again */
  errno = kept;
}

/* Enters the mapping in the list that page_lost() searches, in an entry that is free or a new one, and takes over
 * SIGBUS for the first mapping in use. Returns 0 where memory is short. Entries are never freed: a signal handler may
 * be reading them. */
static int watch(weft_mapped *of)
{
  mapping *entry = atomic_load(&mappings);
  while (entry && atomic_load(&entry->start)) entry = entry->next;
  if (!entry) {
    entry = calloc(1, sizeof *entry);
    if (!entry) return 0;
    entry->next = atomic_load(&mappings);
    atomic_store(&mappings, entry);
  }
  atomic_store(&entry->size, of->size);
  atomic_store(&entry->start, (uintptr_t) of->data);
  of->watched = entry;
  if (atomic_fetch_add(&in_use, 1) == 0) {
    struct sigaction ours = { 0 };
    ours.sa_sigaction = page_lost;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    page = (uintptr_t) sysconf(_SC_PAGESIZE);
    sigaction(SIGBUS, &ours, &before);
  }
  return 1;
}

static void unwatch(weft_mapped *of)
{
  struct sigaction now;
  atomic_store(&of->watched->start, 0);
  if (atomic_fetch_sub(&in_use, 1) == 1 && !sigaction(SIGBUS, NULL, &now) && now.sa_sigaction == page_lost)
    sigaction(SIGBUS, &before, NULL);
}

int weft_mapped_lost(void) { return atomic_load(&lost); }

/* Where files can be mapped: the file's pages, read only, until weft_unmap(). Its size must be `size` bytes; where
 * pages are lost later, the process survives and weft_mapped_lost() tells of it. */
weft_status weft_map(weft_ctx *ctx, const char *path, const char *name, size_t size, weft_mapped *out)
{
  weft_status st = WEFT_OK;
  char why[WEFT_FILE_WHY];
  uint64_t there;
  void *data = NULL;
  const int file = weft_file_open(path, &there, why);
  memset(out, 0, sizeof *out);
  if (file < 0) return weft_fail(ctx, WEFT_ERR_INPUT, "'%s' %s.", name, why);
  if (there != size) {
    st = weft_fail(ctx, WEFT_ERR_INPUT, "'%s' must have %zu bytes; it has %.0f.", name, size, (double) there);
    goto done;
  }
  data = size ? mmap(NULL, size, PROT_READ, MAP_SHARED, file, 0) : NULL;
  if (data == MAP_FAILED) {
    st = weft_fail(ctx, WEFT_ERR_INPUT, "Can't map '%s': %s.", name, strerror(errno));
    goto done;
  }
  out->data = data;
  out->size = size;
  if (data && !watch(out)) {
    st = weft_fail(ctx, WEFT_ERR_MEMORY, "Not enough memory for '%s'.", name);
    munmap(data, size);
    out->data = NULL;
  }
done:
  weft_file_close(file);
  return st;
}

void weft_unmap(weft_mapped *mapped)
{
  if (!mapped->data) return;
  unwatch(mapped);
  munmap((void *) mapped->data, mapped->size);
  mapped->data = NULL;
}

#else

int weft_mapped_lost(void) { return 0; }

/* Where files cannot be mapped: a copy of the file in memory, which must have `size` bytes. */
weft_status weft_map(weft_ctx *ctx, const char *path, const char *name, size_t size, weft_mapped *out)
{
  weft_status st = WEFT_OK;
  char why[WEFT_FILE_WHY];
  uint8_t *data = malloc(size + 1); /* room to see whether there is more */
  FILE *file = weft_file_stream(path, why);
  out->data = NULL;
  out->size = 0;
  if (!data)
    st = weft_fail(ctx, WEFT_ERR_MEMORY, "Not enough memory for '%s'.", name);
  else if (!file)
    st = weft_fail(ctx, WEFT_ERR_INPUT, "'%s' %s.", name, why);
  else if (fread(data, 1, size + 1, file) != size)
    st = weft_fail(ctx, WEFT_ERR_INPUT, "'%s' must have %zu bytes.", name, size);
  if (file) fclose(file);
  if (st == WEFT_OK) {
    out->data = data;
    out->size = size;
  } else
    free(data);
  return st;
}

void weft_unmap(weft_mapped *mapped)
{
  free((void *) mapped->data);
  mapped->data = NULL;
}
#endif

void weft_expect_large_pages(void *block, size_t bytes)
{
#ifdef MADV_HUGEPAGE
  const uintptr_t size = (uintptr_t) 1 << 21, first = ((uintptr_t) block + size - 1) & ~(size - 1),
                  last = ((uintptr_t) block + bytes) & ~(size - 1);
  if (last > first) madvise((void *) first, last - first, MADV_HUGEPAGE);
#else
  (void) block, (void) bytes;
#endif
}
