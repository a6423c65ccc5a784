/* The exact law of a score, by a walk over all tables; see walk.c. */
#pragma once

#include "mi/null/law.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The exact law; memory of one thread. */
typedef struct weft_mi_walk weft_mi_walk;
/* NULL where memory is short; belongs to `mem`. */
weft_mi_walk *weft_mi_walk_make(weft_arena *mem);
/* Whether a walk is worth trying: few tables, or few different ones. */
int weft_mi_walk_short(const weft_mi_margins *margins, const weft_mi_logs *logs);
/* tail[i]: the probability of at least scores[i] (sorted, the greatest first; fixed point, with f's values in `f`).
 * 0 where there were too many tables after all. */
int weft_mi_walk_run(weft_mi_walk *walk, const weft_mi_margins *margins, const weft_mi_logs *logs, const int64_t *f,
                     const int64_t *scores, size_t count, double *tail);

#ifdef __cplusplus
}
#endif
