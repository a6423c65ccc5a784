/* The smooth law of a score; see smooth.c. */
#pragma once

#include "mi/null/law.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The smooth law; memory of one thread. */
#define WEFT_MI_TILTS 3
typedef struct weft_mi_smooth weft_mi_smooth;
/* NULL where memory is short; belongs to `mem`. known: numbers whose logarithms are known. */
weft_mi_smooth *weft_mi_smooth_make(weft_arena *mem, size_t known);
/* statistic[i]: what has the chi-squared distribution with (l - 1) (k - 1) degrees of freedom, for score scores[i] (in
 * nats, the greatest first). 0 where the margins are of more kinds than there is room for. `tilted`: whether the tilts
 * are needed if a score has a p-value below some .2. */
int weft_mi_smooth_run(weft_mi_smooth *law, const weft_mi_margins *margins, const weft_mi_logs *logs,
                       const double *scores, size_t count, int tilted, double *statistic);
/* Gives the same for any score, after weft_mi_smooth_run(). */
double weft_mi_smooth_statistic(const weft_mi_smooth *law, double score);
/* theta of a tilt, under which high scores are frequent; 0: there is none. tilts[i]: what a row of level (or class) i
 * adds to the logarithm of a table's weight, in the order of the margins. */
double weft_mi_smooth_tilt(const weft_mi_smooth *law, int which, int classes, double *tilts);

#ifdef __cplusplus
}
#endif
