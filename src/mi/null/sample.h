/* P-values from random tables, where the smooth law is not right; see sample.c. */
#pragma once

#include "mi/null/smooth.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Random tables; memory of one thread. */
typedef struct weft_mi_sampler weft_mi_sampler;
/* NULL where memory is short; belongs to `mem`. */
weft_mi_sampler *weft_mi_sampler_make(weft_arena *mem);
/* How many tables a law may take; 0: none. */
uint32_t weft_mi_sampler_tables(const weft_mi_margins *margins);
/* Replaces each statistic of weft_mi_smooth_run() with a p-value below some .2 by that of random tables, and puts its
 * relative standard error in `error`, which stays as it is for others. */
void weft_mi_sampler_run(weft_mi_sampler *sampler, const weft_mi_margins *margins, const weft_mi_logs *logs,
                         const int64_t *f, double nat, const weft_mi_smooth *smooth, const int64_t *scores,
                         size_t count, double *statistic, double *error);

#ifdef __cplusplus
}
#endif
