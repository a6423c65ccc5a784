/* Mean and variance of a score over all tables with fixed margins. */
#pragma once

#include "mi/null/law.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Mean and variance of the sum of f over the cells of all tables (table_moments.c); the operations of the latter,
 * roughly. room_*: as many numbers as f. */
double weft_mi_mean(const weft_mi_groups *groups, const double *f);
double weft_mi_variance_work(const weft_mi_groups *groups);
double weft_mi_variance(const weft_mi_groups *groups, const double *f, double mean, double *room_p, double *room_inner);

#ifdef __cplusplus
}
#endif
