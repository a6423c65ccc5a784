/* The .Call entry point of the room's plan. */
#include "core/r/plan.h"
#include "mi/plan.h"
#include "mi/r/glue.h"

static const char *const operations[] = { WEFT_MI_OPERATION_NAMES };
static const char *const size_names[] = { WEFT_MI_SIZES(WEFT_SIZE_NAME) };

/* operation: one of WEFT_MI_OPERATION_NAMES. kind: an estimator's or a method's name, or NULL. */
SEXP C_weft_mi_plan(SEXP operation, SEXP kind, SEXP sizes, SEXP slowness)
{
  const int what = weft_kind_of(operation, "operation", operations, (int) (sizeof operations / sizeof *operations));
  weft_mi_sizes given;
  int which = 0;
  if (what == WEFT_MI_NUMBERS) which = weft_kind_of(kind, "estimator", weft_mi_numeric_names, WEFT_MI_NUMERICS);
  if (what == WEFT_MI_NETWORKS) which = weft_kind_of(kind, "method", weft_network_names, WEFT_NETWORK_METHODS);
  weft_plan_sizes(sizes, size_names, (int) (sizeof given / sizeof(double)), (double *) &given);
  const weft_slowness slow = weft_plan_slowness(slowness);
  const weft_plan plan = weft_mi_plan((weft_mi_operation) what, which, &given, &slow);
  return weft_plan_result(&plan);
}
