/* The .Call entry point of the room's plan. */
#include "core/r/plan.h"
#include "core/r/record.h"
#include "regulation/plan.h"

static const char *const operations[] = { WEFT_REGULATION_OPERATION_NAMES };
static const char *const size_names[] = { WEFT_REGULATION_SIZES(WEFT_SIZE_NAME) };

/* operation: one of WEFT_REGULATION_OPERATION_NAMES. */
SEXP C_weft_regulation_plan(SEXP operation, SEXP sizes, SEXP slowness)
{
  const int what = weft_kind_of(operation, "operation", operations, (int) (sizeof operations / sizeof *operations));
  weft_regulation_sizes given;
  weft_plan_sizes(sizes, size_names, (int) (sizeof given / sizeof(double)), (double *) &given);
  const weft_slowness slow = weft_plan_slowness(slowness);
  const weft_plan plan = weft_regulation_plan((weft_regulation_operation) what, &given, &slow);
  return weft_plan_result(&plan);
}
