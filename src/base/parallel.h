/* OpenMP in words that mean nothing without it, so that a serial build has no unknown pragmas.
 *
 *   WEFT_PARALLEL(threads)
 *   WEFT_FOR(static)
 *   for (...) ...
 */
#ifndef WEFT_PARALLEL_H
#define WEFT_PARALLEL_H

#ifdef __cplusplus
extern "C" {
#endif

/* `threads`, having counted the region that is about to begin with them if it is of several: so that tests see which
 * calls wake other threads. */
int weft_wake(int threads);
long weft_woken(void);

#ifdef __cplusplus
}
#endif

#ifdef _OPENMP
# include <omp.h>
# define WEFT_PRAGMA(text) _Pragma(#text)
# define WEFT_PARALLEL(n) WEFT_PRAGMA(omp parallel num_threads(weft_wake(n)))
# define WEFT_FOR(kind) WEFT_PRAGMA(omp for schedule(kind))
# define WEFT_THREAD() omp_get_thread_num()
#else
# define WEFT_PARALLEL(n)
# define WEFT_FOR(kind)
# define WEFT_THREAD() 0
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Threads for a region of so many operations of about a nanosecond: all or one. A region ends when its last thread has
 * had its turn, which takes some ten microseconds where processors are free, and where other programs want them as long
 * as the system lets these run, milliseconds. No number in between: a team that shrinks ends its threads, and the next
 * larger one makes them again. */
static inline int weft_threads_worth(int most, double operations)
{
  return operations < 5e5 ? 1 : most;
}

/* How many threads a call may use when it asks for `wanted` (0: the default). */
int weft_threads_for(int wanted, int option);

#ifdef __cplusplus
}
#endif
#endif
