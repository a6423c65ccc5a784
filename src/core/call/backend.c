/* The CPU's table, and the loader of the other objects. See backend.h. */
#include <stdio.h>
#include <string.h>
#ifndef _WIN32
#  include <dlfcn.h>
#  include <pthread.h>
#  include <unistd.h>
#endif
#include "core/call/backend.h"
#include "core/device/beside.h"
#include "core/numbers/draws_fill.h"

#define EXTERN_CPU(room) extern const struct weft_##room##_ops weft_##room##_cpu;
WEFT_ROOMS(EXTERN_CPU)

#define CPU_FIELD(room) &weft_##room##_cpu,
static const weft_backend cpu = { WEFT_ABI, sizeof(weft_backend), "cpu", NULL, weft_draws_fill, WEFT_ROOMS(CPU_FIELD) };

const weft_backend *weft_cpu_backend(void) { return &cpu; }

#ifdef _WIN32

const weft_backend *weft_cuda_backend(const char *libs, char *why, size_t len)
{
  (void) libs;
  snprintf(why, len, "weft has no CUDA back end on Windows");
  return NULL;
}

const weft_mpi_table *weft_mpi_open(const char *libs, char *why, size_t len)
{
  (void) libs;
  snprintf(why, len, "weft has no MPI engine on Windows");
  return NULL;
}

void weft_backends_close(void) {}
void weft_cuda_free_kept(void) {}
void weft_remember_process(void) {}
int weft_forked(void) { return 0; }

#else

static pid_t loader;
void weft_remember_process(void) { loader = getpid(); }
int weft_forked(void) { return getpid() != loader; }

typedef struct {
  void *handle;
  const void *table;
} shared_object;
static shared_object cuda_object, mpi_object;

static void close_object(shared_object *o)
{
  if (o->handle) dlclose(o->handle);
  o->handle = NULL;
  o->table = NULL;
}

/* Opens libs/<folder>/weft_<folder>.so and keeps the table that its entry point returns. Every table starts with its
 * version and size. */
static const void *open_object(shared_object *o, const char *libs, const char *folder, int scope, size_t table_size,
                               char *why, size_t len)
{
  typedef struct {
    int abi;
    size_t size;
  } table_head;
  union {
    void *p;
    const void *(*call)(void);
  } entry;
  char path[4096], symbol[64];
  if (o->table) return o->table;
  snprintf(path, sizeof path, "%s/%s/weft_%s.so", libs, folder, folder);
  snprintf(symbol, sizeof symbol, "weft_%s_entry", folder);
  if (access(path, R_OK)) {
    snprintf(why, len, "weft was installed without %s support (no %s)", strcmp(folder, "cuda") ? "MPI" : "CUDA", path);
    return NULL;
  }
  o->handle = dlopen(path, RTLD_NOW | scope);
  if (!o->handle) {
    snprintf(why, len, "it cannot be opened: %s", dlerror());
    return NULL;
  }
  entry.p = dlsym(o->handle, symbol);
  const table_head *head = entry.p ? entry.call() : NULL;
  if (!head || head->abi != WEFT_ABI || head->size != table_size) {
    snprintf(why, len, "%s belongs to another version of weft; install weft again", path);
    close_object(o);
    return NULL;
  }
  return o->table = head;
}

const weft_backend *weft_cuda_backend(const char *libs, char *why, size_t len)
{
  if (weft_forked()) {
    snprintf(why, len,
             "CUDA cannot be used in a forked R process (parallel::mclapply and the like); "
             "use a PSOCK cluster, or call weft in the parent");
    return NULL;
  }
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* a thread of beside.c may come here too */
  pthread_mutex_lock(&lock);
  const weft_backend *b = open_object(&cuda_object, libs, "cuda", RTLD_LOCAL, sizeof(weft_backend), why, len);
  if (b && b->device->count(why, len) <= 0) b = NULL;
  pthread_mutex_unlock(&lock);
  return b;
}

const weft_mpi_table *weft_mpi_open(const char *libs, char *why, size_t len)
{
  /* MPI's plug-ins look for its symbols among the global ones */
  return open_object(&mpi_object, libs, "mpi", RTLD_GLOBAL, sizeof(weft_mpi_table), why, len);
}

void weft_cuda_free_kept(void)
{
  if (cuda_object.table && !weft_forked()) ((const weft_backend *) cuda_object.table)->device->free_kept();
}

void weft_backends_close(void)
{
  weft_beside_wait();
  weft_cuda_free_kept();
  close_object(&cuda_object);
  /* an MPI that has started cannot be unloaded safely */
  if (mpi_object.table) ((const weft_mpi_table *) mpi_object.table)->stop("\nweft was unloaded.");
}

#endif
