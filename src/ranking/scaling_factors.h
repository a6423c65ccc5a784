/* Scaling factors of counts. */
#pragma once

#include "ranking/ranking.h"

/* Scaling factors of n samples from counts (n × p), whose geometric mean is 1: trimmed means of M-values. */
weft_status weft_ranking_factors(weft_ctx *ctx, const double *counts, size_t n, size_t p, double *factors);
