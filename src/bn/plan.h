/* The one place that chooses among the room's engines (engines.h), and the numbers that it goes by. R asks before a
 * call, by its sizes; native code asks the same questions of what it is given. */
#pragma once

#include "bn/engines.h"
#include "bn/limits.h"
#include "bn/score_kinds.h"
#include "core/call/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  WEFT_BN_TABLE,  /* kind: a weft_bn_score; n, p, sets and what follows it, outside, interventions, cells, family_cells
                   */
  WEFT_BN_CHAINS, /* kind: a weft_bn_target; iterations, chains, temperatures, node_sets, p */
  WEFT_BN_EXACT,  /* kind: a weft_bn_posterior; p, sets */
  WEFT_BN_NEAR    /* n, p: how to make a table for the best graph, of whose sets nothing is said */
} weft_bn_operation;

#define WEFT_BN_OPERATION_NAMES "table", "chains", "exact", "near"

typedef enum { WEFT_BN_TARGET_MAX, WEFT_BN_TARGET_SUM, WEFT_BN_TARGET_UNIFORM, WEFT_BN_TARGET_GRAPHS } weft_bn_target;
typedef enum { WEFT_BN_POSTERIOR_NONE, WEFT_BN_POSTERIOR_ORDER, WEFT_BN_POSTERIOR_DAG } weft_bn_posterior;

/* clang-format off */
#define WEFT_BN_SIZES(SIZE) \
  SIZE(n) SIZE(p)      /* rows, nodes */ \
  SIZE(sets)           /* parent sets of all nodes */ \
  SIZE(largest)        /* those of the node that has most */ \
  SIZE(joint_sets)     /* sets of max_parents + 1 nodes and smaller ones */ \
  SIZE(max_parents) \
  SIZE(width) /* most parents that a node can have */ \
  SIZE(kept)           /* the share of sets that the table keeps */ \
  SIZE(plane_levels)   /* levels less one, summed over nodes of up to 16 levels */ \
  SIZE(outside)        /* pairs of a child and a node beyond its candidates */ \
  SIZE(interventions)  /* whether there are some */ \
  SIZE(cells)          /* of the max_parents nodes with most levels */ \
  SIZE(family_cells)   /* and of one more */ \
  SIZE(iterations) SIZE(chains) SIZE(temperatures) \
  SIZE(node_sets)      /* sets of a node that a table keeps */ \
  SIZE(threads)
/* clang-format on */

typedef struct weft_bn_sizes {
#define WEFT_BN_SIZE_FIELD(name) double name;
  WEFT_BN_SIZES(WEFT_BN_SIZE_FIELD)
#undef WEFT_BN_SIZE_FIELD
} weft_bn_sizes;

weft_plan weft_bn_plan(weft_bn_operation operation, int kind, const weft_bn_sizes *sizes, const weft_slowness *slow);

/* Whether all sets are counted at once, each for all its children, rather than child by child: that costs one count for
 * each of `joint_sets`, by child about two for each of `sets`. */
int weft_bn_counts_jointly(weft_bn_score score, int interventions, double joint_sets, double sets);
/* Whether a device can count sets of up to max_parents parents, the widest of which has `cells` cells. */
int weft_bn_device_counts(double max_parents, double n, double cells, double family_cells);

#ifdef __cplusplus
}
#endif
