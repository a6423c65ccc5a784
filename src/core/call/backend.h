/* Back ends: tables of function pointers, one for the CPU inside weft.so and one for CUDA in a shared object of its
 * own, libs/cuda/weft_cuda.so, which is opened with dlopen when a call first asks for a device. MPI is a third object,
 * opened the same way. So the package loads without driver, toolkit or MPI, and says what is missing when asked.
 *
 *   weft.so ──dlopen──> libs/cuda/weft_cuda.so   weft_cuda_entry() -> weft_backend
 *           └─dlopen──> libs/mpi/weft_mpi.so     weft_mpi_entry()  -> weft_mpi_table
 *
 * WEFT_ABI and the table's size guard against an object left over from another version. */
#pragma once

#include "core/call/context.h"
#include "core/call/rooms.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_ABI 7

typedef struct weft_device_info {
  char name[128], architectures[128]; /* architectures: what the object was built for, "75 80 86 89 90" */
  int major, minor, processors, driver, runtime;
  double total, available; /* bytes */
} weft_device_info;

/* A matrix that stays on a device until its owner releases it: column major, double or float. */
typedef struct weft_device_matrix {
  void *data;
  int64_t n, p;
  int device, single;
} weft_device_matrix;

/* NVIDIA's libraries, for those who open them before a call needs them. */
enum { WEFT_BLAS = 1, WEFT_SOLVER = 2 };

typedef struct weft_device_ops {
  /* 0 with the reason in why[] when no device can be used. */
  int (*count)(char *why, size_t len);
  weft_status (*info)(weft_ctx *ctx, int device, weft_device_info *out);
  /* x: n × p doubles, column major, ordinary host memory; it is converted and sent through pinned buffers. */
  weft_status (*upload)(weft_ctx *ctx, const double *x, int64_t n, int64_t p, int single, weft_device_matrix *out);
  weft_status (*download)(weft_ctx *ctx, const weft_device_matrix *m, double *out);
  void (*release)(weft_ctx *ctx, weft_device_matrix *m);
  weft_status (*rates)(weft_ctx *ctx, double *rates); /* rates.h */
  /* Whether this process has a context on a device; creates one. */
  int (*opened)(int device);
  void (*open)(int device);
  /* The same, and opens libraries: WEFT_BLAS and others, added up. */
  void (*open_libraries)(int device, int which);
  /* Frees the blocks that are kept on all devices for later calls. */
  void (*free_kept)(void);
} weft_device_ops;

#define WEFT_ROOM_FIELD(room) const struct weft_##room##_ops *room;

typedef struct weft_backend {
  int abi;
  size_t size; /* sizeof(weft_backend) of the build */
  const char *name;
  const weft_device_ops *device; /* NULL on the CPU */
  /* draws_fill.h: `n` draws of one kind */
  weft_status (*draws)(weft_ctx *ctx, int kind, uint64_t key, uint32_t stream, uint64_t first, size_t n, double a,
                       double b, double *out);
  WEFT_ROOMS(WEFT_ROOM_FIELD)
} weft_backend;

/* This process among those that mpirun started: its number from 0, how many there are, its number on its host. */
typedef struct weft_rank {
  int rank, size, on_host;
} weft_rank;

#define WEFT_WHY 512 /* bytes of a reason why a rank stopped, its end included */

/* Whatever ranks do together begins with a roll call (src/core/together/mpi/roll_call.c): it is done if all are about
 * to do the same; otherwise none does it, and each gets an error. `together`: all ranks must make the same calls in the
 * same order. */
typedef struct weft_mpi_table {
  int abi;
  size_t size;
  /* The MPI library's own description. */
  int (*describe)(char *out, size_t len);
  /* Starts MPI unless it has been started already. Every rank must call this once. */
  weft_status (*start)(weft_ctx *ctx, weft_rank *out);
  /* Answers the other ranks until all have called this, then ends MPI if weft started it. `why`: what they are told if
   * a call is still open. */
  void (*stop)(const char *why);
  /* Ends all ranks now. */
  void (*end_all)(int code);

  /* Begins a call, or one within it; *same = 0 when numbers or digests are not those of all other ranks. Together. */
  weft_status (*enter)(weft_ctx *ctx, uint64_t call, uint64_t digest, int *same);
  /* This rank has the call's result: waits until all ranks have it. Together. */
  weft_status (*leave)(weft_ctx *ctx);
  /* The call ends with an error on every rank: tells the others why, and waits until they know; why = NULL: all have
   * been told already. */
  weft_status (*give_up)(weft_ctx *ctx, const char *why);
  /* Forgets what was said in a call, however it ended. */
  void (*forget)(void);
  /* The rank that has reported since the call began that it stopped, or -1. Looks for messages; does not wait. */
  int (*heard)(char why[WEFT_WHY]);
  /* Whether rank r was among those that stopped (1) or ended their script (2) when all gave up, and its reason. */
  int (*stopped)(int r, char why[WEFT_WHY]);
  /* Roll calls so far: work that has taken part in one must not be repeated by this rank alone. */
  uint64_t (*steps)(void);

  /* all[r] = rank r's number. Together. */
  weft_status (*all_numbers)(weft_ctx *ctx, double mine, double *all);
  /* Rank r's sizes[r] bytes arrive at all[r] on every rank; `sizes` is the same everywhere. Together. */
  weft_status (*all_gather)(weft_ctx *ctx, const void *mine, const uint64_t *sizes, unsigned char **all);
  const struct weft_mpi_messages *messages; /* messages.h */
} weft_mpi_table;

const weft_backend *weft_cpu_backend(void);

/* NULL with the reason in why[] when the object cannot be opened or no device can be used. `libs` is the package's
 * libs directory. A forked child gets NULL: CUDA does not survive fork(). */
const weft_backend *weft_cuda_backend(const char *libs, char *why, size_t len);
const weft_mpi_table *weft_mpi_open(const char *libs, char *why, size_t len);
void weft_backends_close(void);
/* Gives the blocks that were kept on devices back, if the CUDA object has been opened. */
void weft_cuda_free_kept(void);

/* Remembers the process that loaded the package; true in a child that fork() made since. */
void weft_remember_process(void);
int weft_forked(void);

#ifdef __cplusplus
}
#endif
