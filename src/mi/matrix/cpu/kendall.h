/* Kendall's tau of all pairs of columns on the CPU; see kendall.c. */
#pragma once

#include "mi/matrix/both/numeric.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Kendall on the CPU (kendall.c). */
weft_status weft_mi_kendall(weft_ctx *ctx, const weft_mi_numeric *data, double *out);

#ifdef __cplusplus
}
#endif
