/* What the network methods share. */
#pragma once

#include "core/call/arena.h"
#include "mi/mi.h"

#ifdef __cplusplus
extern "C" {
#endif

weft_network_op weft_network_cpu, weft_network_cuda;

/* An error unless m is symmetric (to 1e-8 of its greatest entry) and finite off the diagonal; raises *greatest, which
 * the caller has set to zero, to the greatest absolute entry there. */
weft_status weft_network_check(weft_ctx *ctx, const weft_network_job *job, double *greatest);
/* Differences and weights of at most this are rounding: it is what sums of p entries leave in place of 0. Such an edge
 * would be noise, and so would the choices that follow from it: MRNET's of one more feature, MRNETB's to leave one out,
 * CLR's deviations in a row without spread. */
static inline double weft_network_rounding(const weft_network_job *job, double greatest)
{
  const double sums = 4 * 2.2204460492503131e-16 * (double) job->p * greatest;
  return sums > job->least ? sums : job->least;
}

/* Copies what is above out's diagonal below it; for greedy methods, both entries become the greater of the two. The
 * diagonal becomes zero, and so do weights in bits that do not exceed `rounding`. */
weft_status weft_network_mirror(weft_ctx *ctx, const weft_network_job *job, double rounding, double *out);

#ifdef __cplusplus
}
#endif
