/* The .Call entry point of the room's plan. */
#include "bn/plan.h"
#include "core/r/plan.h"
#include "core/r/record.h"

#define NAME(kind, name, ...) name,
static const char *const scores[] = { WEFT_BN_SCORE_KINDS(NAME) };
static const char *const targets[] = { "max", "sum", "uniform", "graphs" }, *const posteriors[] = { "none", "order",
                                                                                                    "dag" };
static const char *const operations[] = { WEFT_BN_OPERATION_NAMES };
static const char *const size_names[] = { WEFT_BN_SIZES(WEFT_SIZE_NAME) };
#define COUNT(names) ((int) (sizeof names / sizeof *names))

/* operation: one of WEFT_BN_OPERATION_NAMES. kind: a score, a target or a posterior, or NULL. */
SEXP C_weft_bn_plan(SEXP operation, SEXP kind, SEXP sizes, SEXP slowness)
{
  const int what = weft_kind_of(operation, "operation", operations, COUNT(operations));
  weft_bn_sizes given;
  int which = 0;
  if (what == WEFT_BN_TABLE) which = weft_kind_of(kind, "score", scores, COUNT(scores));
  if (what == WEFT_BN_CHAINS) which = weft_kind_of(kind, "target", targets, COUNT(targets));
  if (what == WEFT_BN_EXACT) which = weft_kind_of(kind, "posterior", posteriors, COUNT(posteriors));
  weft_plan_sizes(sizes, size_names, COUNT(size_names), (double *) &given);
  const weft_slowness slow = weft_plan_slowness(slowness);
  const weft_plan plan = weft_bn_plan((weft_bn_operation) what, which, &given, &slow);
  return weft_plan_result(&plan);
}
