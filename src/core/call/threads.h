/* The thread policy. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* How many threads a call may use when it asks for `wanted` (0: the default). */
int weft_threads_for(int wanted, int option);

#ifdef __cplusplus
}
#endif
