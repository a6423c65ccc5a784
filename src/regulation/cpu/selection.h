/* What selection on the CPU gives besides choices. */
#pragma once

#include "regulation/regulation.h"

/* For every gene among `gene` (columns of the job's scores) the variance, over the job's targets, of its squared
 * correlation: it is large for regulators of many genes. On the CPU. */
weft_status weft_regulation_hubs(weft_ctx *ctx, const weft_regulation_job *job, double *out);
