/* OpenMP behind macros that expand to nothing without it, so that a serial build has no unknown pragmas.
 *
 *   WEFT_PARALLEL_FOR(threads, static)
 *   for (...) ...
 *
 * and where each thread makes something ready first, WEFT_PARALLEL(threads) before a block in which WEFT_FOR(static)
 * stands before the loop. `dynamic` deals one turn at a time, for long turns of unequal length; `guided` is for many
 * short ones, as of columns, of which threads would otherwise wait for each other to take the next, and for pages that
 * the results of neighbours share. */
#pragma once

#include "core/call/parallel_count.h"
#include "core/call/threads.h"

#ifdef _OPENMP
#  include <omp.h>
#  define WEFT_PRAGMA(text) _Pragma(#  text)
#  define WEFT_PARALLEL(n) WEFT_PRAGMA(omp parallel num_threads(weft_wake(n)))
#  define WEFT_FOR(kind) WEFT_PRAGMA(omp for schedule(kind))
#  define WEFT_PARALLEL_FOR(n, kind) WEFT_PRAGMA(omp parallel for num_threads(weft_wake(n)) schedule(kind))
#  define WEFT_THREAD() omp_get_thread_num()
#else
#  define WEFT_PARALLEL(n) (void) (n);
#  define WEFT_FOR(kind)
#  define WEFT_PARALLEL_FOR(n, kind) (void) (n);
#  define WEFT_THREAD() 0
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Threads for a region with this many operations of about a nanosecond each: all of them or one. A region ends when its
 * last thread has finished, which takes some ten microseconds if processors are free, and milliseconds if other
 * programs keep them busy. No number in between is used: a team that shrinks ends its threads, and the next larger one
 * has to start them again. */
#ifndef WEFT_WORTH_THREADS
#  define WEFT_WORTH_THREADS 5e5 /* proofs/races.sh sets less, so that small calls show races */
#endif
static inline int weft_threads_worth(int most, double operations) { return operations < WEFT_WORTH_THREADS ? 1 : most; }

#ifdef __cplusplus
}
#endif
