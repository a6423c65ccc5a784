/* The one place that chooses among the room's engines (engines.h), and the numbers that it goes by. */
#pragma once

#include "core/call/plan.h"
#include "irm/engines.h"
#include "irm/limits.h"

typedef enum {
  WEFT_IRM_RUN,  /* all sizes but devices: sweeps of all chains */
  WEFT_IRM_SWEEP /* rows, columns, links, k, devices, nodes: a sweep of a chain: `cuda` on that number of devices,
                    `beside` on the host while they wait */
} weft_irm_operation;

#define WEFT_IRM_OPERATION_NAMES "run", "sweep"

/* clang-format off */
#define WEFT_IRM_SIZES(SIZE) \
  SIZE(sweeps) SIZE(rows) SIZE(columns) SIZE(links) \
  SIZE(k_rows) SIZE(k_columns)                   /* most clusters of either mode */ \
  SIZE(collapsed) SIZE(one_mode) SIZE(real) SIZE(nested) /* 1: yes */ \
  SIZE(devices) SIZE(nodes) SIZE(threads)
/* clang-format on */

typedef struct weft_irm_sizes {
#define WEFT_IRM_SIZE_FIELD(name) double name;
  WEFT_IRM_SIZES(WEFT_IRM_SIZE_FIELD)
#undef WEFT_IRM_SIZE_FIELD
} weft_irm_sizes;

weft_plan weft_irm_plan(weft_irm_operation operation, const weft_irm_sizes *sizes, const weft_slowness *slow);
