/* Costs of the room's engines (engines.h), and the numbers by which they are chosen (limits.h). The choice itself is
 * R's (R/kernel-plan.R): for walks it needs the work of some groups of queries, which is counted by walking them. */
#pragma once

#include "core/call/plan.h"
#include "kernel/engines.h"
#include "kernel/kernel.h"
#include "kernel/limits.h"

typedef enum {
  WEFT_KERNEL_PLAN_DIRECT, /* kind: a precision; value, references, queries, d, m */
  WEFT_KERNEL_PLAN_SLOPES, /* the same: value, references, queries, d, m: of gradients; m columns would do on the CPU */
  WEFT_KERNEL_PLAN_TREES,  /* references, queries, d: of the trees that are to be built; without the walk */
  WEFT_KERNEL_PLAN_LINE,   /* references, queries, m, threads */
  WEFT_KERNEL_PLAN_MESH,   /* references, queries, d, m, nodes, native */
  WEFT_KERNEL_PLAN_FACTOR  /* references: multiplications and additions of a matrix's Cholesky factor */
} weft_kernel_operation;

#define WEFT_KERNEL_OPERATION_NAMES "direct", "slopes", "trees", "line", "mesh", "factor"

/* relative: double, or Gaussian sums on tensor cores where these take less */
typedef enum { WEFT_KERNEL_DOUBLE, WEFT_KERNEL_SINGLE, WEFT_KERNEL_TENSOR, WEFT_KERNEL_RELATIVE } weft_kernel_precision;

#define WEFT_KERNEL_PRECISION_NAMES "double", "single", "tensor", "relative"

/* clang-format off */
#define WEFT_KERNEL_SIZES(SIZE) \
  SIZE(references) SIZE(queries) \
  SIZE(d) SIZE(m)     /* dimensions, columns of weights */ \
  SIZE(value)         /* work of a kernel's value (R/kernel-kinds.R) */ \
  SIZE(nodes)         /* of a mesh */ \
  SIZE(native)        /* seconds that its scheme was chosen by, of one core or of a device */ \
  SIZE(threads)
/* clang-format on */

typedef struct weft_kernel_sizes {
#define WEFT_KERNEL_SIZE_FIELD(name) double name;
  WEFT_KERNEL_SIZES(WEFT_KERNEL_SIZE_FIELD)
#undef WEFT_KERNEL_SIZE_FIELD
} weft_kernel_sizes;

weft_plan weft_kernel_plan(weft_kernel_operation operation, weft_kernel_precision precision,
                           const weft_kernel_sizes *sizes, const weft_slowness *slow);

/* Work of a walk over two trees, for each thing that its effort counts; for pairs, the work of one pair in a direct
 * sum. */
typedef struct weft_walk_costs {
#define WEFT_WALK_COST_FIELD(name) double name;
  WEFT_WALK_COSTS(WEFT_WALK_COST_FIELD)
#undef WEFT_WALK_COST_FIELD
} weft_walk_costs;

/* The limits, as doubles. */
typedef struct weft_kernel_limits {
#define WEFT_KERNEL_LIMIT_FIELD(name, value) double name;
  WEFT_KERNEL_LIMITS(WEFT_KERNEL_LIMIT_FIELD)
#undef WEFT_KERNEL_LIMIT_FIELD
} weft_kernel_limits;
extern const weft_kernel_limits weft_kernel_limit;

weft_walk_costs weft_kernel_walk_costs(double value, double d, double m);
/* Seconds of one core of the reference machine for a unit of work in double precision. */
double weft_kernel_unit_seconds(void);
