/* The thread policy, in one place: the least of the processors this process may use, OMP_NUM_THREADS,
 * OMP_THREAD_LIMIT, and the user's option; 2 under R CMD check; 1 in a forked child, where OpenMP's threads are
 * gone. */
#include <stdlib.h>
#include "core/call/backend.h"
#include "core/call/parallel.h"

static int min_of(int a, int b) { return a < b ? a : b; }

/* Threads of a call. `wanted` (the user's argument) goes beyond the number of processors if need be; without it, the
 * least of processors, OMP_NUM_THREADS and R's `option`, and 2 under R CMD check. A forked child gets 1: OpenMP does
 * not survive fork(). */
int weft_threads_for(int wanted, int option)
{
#ifdef _OPENMP
  if (weft_forked()) return 1;
  int n = min_of(omp_get_num_procs(), omp_get_thread_limit());
  if (wanted > 0) return min_of(wanted, omp_get_thread_limit());
  n = min_of(n, omp_get_max_threads()); /* OMP_NUM_THREADS */
  if (option > 0) n = min_of(n, option);
  const char *check = getenv("_R_CHECK_LIMIT_CORES_");
  if (check && *check && *check != 'f' && *check != 'F') n = min_of(n, 2);
  return n < 1 ? 1 : n;
#else
  (void) wanted;
  (void) option;
  return 1;
#endif
}
