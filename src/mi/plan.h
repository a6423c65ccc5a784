/* The one place that chooses among the room's engines (engines.h), and the numbers that it goes by. R asks before a
 * call, by its sizes; what runs on a device asks again, by the pack. */
#pragma once

#include "core/call/plan.h"
#include "mi/engines.h"
#include "mi/limits.h"
#include "mi/pack/pack.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weft_mi_search;

/* ---- what R asks ---- */

typedef enum {
  WEFT_MI_RANK,         /* n, p */
  WEFT_MI_RANK_PERMUTE, /* n, p, permutations */
  WEFT_MI_LONG_TUPLES,  /* tuples, n, p, order, levels, classes, empty_classes, strata, missing, top, by_interaction */
  WEFT_MI_TUPLES,       /* tuples, n, p, planes, packed_bytes, order, and what weft_mi_facts has */
  WEFT_MI_COUNTS,       /* pairs, n, p, p_y, planes, planes_y */
  WEFT_MI_NUMBERS,      /* pairs, n, kind */
  WEFT_MI_NETWORKS,     /* p, kind */
  WEFT_MI_BINS,         /* n, p */
  WEFT_MI_TRANSFER,     /* n steps, p columns, pairs, levels, permutations */
  WEFT_MI_SCANS         /* pairs, n, p, whole_pairs, screened_pairs, columns, terms, permutations, top */
} weft_mi_operation;

#define WEFT_MI_OPERATION_NAMES \
  "rank", "rank_permute", "long_tuples", "tuples", "counts", "numbers", "networks", "bins", "transfer", "scan"

/* clang-format off */
#define WEFT_MI_SIZES(SIZE) \
  SIZE(n)               /* rows */ \
  SIZE(p)               /* columns */ \
  SIZE(p_y)             /* of a second table; 0: there is none */ \
  SIZE(pairs) SIZE(tuples) \
  SIZE(whole_pairs)     /* those of variants without missing genotypes, */ \
  SIZE(screened_pairs)  /* and all those that a device screens */ \
  SIZE(columns)         /* covariates and the constant */ \
  SIZE(terms)           /* of an interaction: 1 or 4 */ \
  SIZE(order)           /* attributes of a tuple */ \
  SIZE(planes)          /* bit planes per attribute, on average */ \
  SIZE(planes_y) \
  SIZE(packed_bytes) \
  SIZE(permutations) \
  SIZE(levels)          /* most levels of an attribute */ \
  SIZE(classes)         /* of all strata together */ \
  SIZE(strata)          /* 0: none */ \
  SIZE(rows_of_a_class) /* most */ \
  SIZE(empty_classes)   /* classes without rows */ \
  SIZE(missing)         /* whether values are missing, and missing is no level */ \
  SIZE(searched)        /* attributes that a search of triples takes, */ \
  SIZE(searched_levels) /* and the most levels of one */ \
  SIZE(top)             /* tuples that are kept */ \
  SIZE(by_interaction)  /* or with a minimum of it */ \
  SIZE(threads)
/* clang-format on */

typedef struct weft_mi_sizes {
#define WEFT_MI_SIZE_FIELD(name) double name;
  WEFT_MI_SIZES(WEFT_MI_SIZE_FIELD)
#undef WEFT_MI_SIZE_FIELD
} weft_mi_sizes;

/* `kind`: a weft_mi_numeric_kind or a weft_network_method. */
weft_plan weft_mi_plan(weft_mi_operation operation, int kind, const weft_mi_sizes *sizes, const weft_slowness *slow);

/* ---- what a device asks ---- */

/* The facts by which an engine on a device is chosen. */
typedef struct weft_mi_facts {
  uint64_t n, p;
  uint32_t classes, per; /* of all strata, of one */
  uint32_t occupied;     /* classes that have rows */
  uint64_t max_class_rows;
  uint32_t groups, levels, planes; /* most of an attribute */
  int coded, missing;              /* of any attribute */
  int hopper;                      /* a device of capability 9.0, and a build for it */
} weft_mi_facts;

/* One side of a panel of pairs. */
typedef struct weft_mi_side {
  weft_mi_shape shape;
  int coded;
} weft_mi_side;

static inline weft_mi_side weft_mi_side_of(const weft_mi_group *group)
{
  const weft_mi_side side = { group->shape, group->coded };
  return side;
}
weft_mi_facts weft_mi_facts_of(const weft_mi_pack *pack, int hopper);
/* The engine of the pairs of two groups: DEVICE_CODES, BINARY, TERNARY, FUSED, COUNTED or PANELS. */
weft_mi_engine weft_mi_pairs_engine(const weft_mi_facts *facts, weft_mi_side a, weft_mi_side b);
/* The engine of triples: BINARY_TRIPLES, SORTED_TRIPLES or FEW_LEVELS; TRIPLES where the device has none. `sorted`: how
 * many binary attributes rows are sorted for, as a rule WEFT_MI_SORTED_BINARY. */
weft_mi_engine weft_mi_triples_engine(const weft_mi_facts *facts, uint64_t sorted);
/* Whether a device searches these tuples of four. */
int weft_mi_fits_quadruples(const weft_mi_facts *facts, const struct weft_mi_search *search);
/* Whether the engine of pairs that are counted on Hopper is FUSED rather than COUNTED. */
int weft_mi_pairs_fused(const weft_mi_facts *facts, weft_mi_side a, weft_mi_side b);
/* The engine of permutation tests of pairs: LABEL_SETS_TOGETHER or LABEL_SETS. */
weft_mi_engine weft_mi_permutation_engine(const weft_mi_facts *facts);

#ifdef __cplusplus
}
#endif
