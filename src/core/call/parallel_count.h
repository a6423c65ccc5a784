/* How many parallel regions of several threads there were. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* Returns `threads`. A region that is about to begin with more than one is counted, so that tests see which calls wake
 * other threads. */
int weft_wake(int threads);
long weft_woken(void);

#ifdef __cplusplus
}
#endif
