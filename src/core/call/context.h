/* The context of one call: how to poll, how many threads, how much memory, and what went wrong.
 *
 * A context is made by the glue, lives for one .Call and is handed down by pointer. It crosses into the CUDA and MPI
 * objects, so it holds plain C types only. The memory account is shared by all calls of a process: the tests read it
 * to prove that nothing leaks, and set `fail_at` to make the k-th allocation fail. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include "core/call/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_MOST_DEVICES 64

typedef struct weft_memory {
  int64_t host_live, host_peak;     /* bytes now, and the most so far */
  int64_t device_live, device_peak; /* of all devices */
  int64_t device_on[WEFT_MOST_DEVICES];
  int64_t device_kept; /* bytes that no call uses, kept for the next (device/kept.cuh) */
  int64_t made;        /* blocks, streams and handles that the driver and its libraries were asked for */
  int64_t allocations; /* host and device allocations requested since the counter was set */
  int64_t fail_at;     /* a test's tool: the k-th allocation fails; -k: on a second try, too; 0: none */
} weft_memory;

typedef struct weft_ctx {
  int (*poll)(void *data, double done, double total); /* nonzero: stop; may be NULL */
  void *poll_data;
  int threads;        /* OpenMP threads to use, at least 1 */
  int device;         /* CUDA device index: the first of `devices` */
  const int *devices; /* all that this call may use; one may come twice */
  int device_count;
  int lane;            /* which of the call's host threads: 0 the caller's, 1 .. device_count those of spread.h */
  double device_limit; /* bytes of each device's memory that may be used; 0: what is free */
  weft_memory *memory; /* the process-wide account */
  int64_t column;      /* the column that an input error is about, from 0; -1: none */
  char message[1024];  /* for the user, when the status is not WEFT_OK */
  struct weft_meeting *meeting; /* of the call's parts, in a part of several (exchange.h); else NULL */
  int part;                     /* which one */
  double stage, stages; /* for progress: the work is number `stage`, from 0, of `stages` equal ones; 0: by itself */
} weft_ctx;

/* Fills the message and returns `st`, so that a caller can write `return weft_fail(...)`. */
weft_status weft_fail(weft_ctx *ctx, weft_status st, const char *format, ...)
#ifdef __GNUC__
    __attribute__((format(printf, 3, 4)))
#endif
    ;

/* An input error of one column: the glue puts the column's name before the message ("has 70000 levels; ..."). */
weft_status weft_fail_column(weft_ctx *ctx, size_t column, const char *format, ...)
#ifdef __GNUC__
    __attribute__((format(printf, 3, 4)))
#endif
    ;

/* WEFT_OK, or WEFT_ERR_INTERRUPT when the user wants to stop. Call it outside OpenMP regions only, at least every
 * 100 ms of work; `done` of `total` moves the progress bar. */
weft_status weft_poll(weft_ctx *ctx, double done, double total);

/* Seconds of a monotonic clock. */
double weft_seconds(void);

/* An out-of-memory error that says what was needed and what is free. `where` is "host" or "device"; `have` < 0 when
 * unknown. */
weft_status weft_fail_memory(weft_ctx *ctx, const char *where, double need, double have, const char *what);

#ifdef __cplusplus
}
#endif
