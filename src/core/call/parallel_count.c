/* How many parallel regions of several threads there were; see parallel.h. Each shared object counts its own. */
/* Build: shared. */
#include <stdatomic.h>
#include "core/call/parallel.h"

static atomic_long woken;

int weft_wake(int threads)
{
  if (threads > 1) atomic_fetch_add_explicit(&woken, 1, memory_order_relaxed);
  return threads;
}

long weft_woken(void) { return atomic_load_explicit(&woken, memory_order_relaxed); }
