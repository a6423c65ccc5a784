/* The one place that chooses among the room's engines (engines.h), and the numbers that it goes by. */
#pragma once

#include "core/call/plan.h"
#include "regulation/engines.h"
#include "regulation/limits.h"

typedef enum {
  WEFT_REGULATION_DENSE, /* n, and what stands below it */
  WEFT_REGULATION_CELLS  /* the same, and p and stored: sparse cells */
} weft_regulation_operation;

#define WEFT_REGULATION_OPERATION_NAMES "dense", "cells"

/* clang-format off */
#define WEFT_REGULATION_SIZES(SIZE) \
  SIZE(p) SIZE(stored)           /* genes and stored values of sparse cells */ \
  SIZE(n)                        /* samples */ \
  SIZE(regulators) SIZE(targets) /* genes */ \
  SIZE(steps)                    /* regulators that are chosen for a target */ \
  SIZE(resamples)                /* halves of the samples */ \
  SIZE(hinges)                   /* regulators' features beside the straight line: 0 or 1 */ \
  SIZE(copies)                   /* null copies, and runs that count as one */ \
  SIZE(calls)                    /* calls of native code that share the copies */ \
  SIZE(threads)
/* clang-format on */

typedef struct weft_regulation_sizes {
#define WEFT_REGULATION_SIZE_FIELD(name) double name;
  WEFT_REGULATION_SIZES(WEFT_REGULATION_SIZE_FIELD)
#undef WEFT_REGULATION_SIZE_FIELD
} weft_regulation_sizes;

weft_plan weft_regulation_plan(weft_regulation_operation operation, const weft_regulation_sizes *sizes,
                               const weft_slowness *slow);
