/* The .Call entry points of the room's plan. */
#include <string.h>
#include "core/r/plan.h"
#include "core/r/record.h"
#include "kernel/plan.h"

static const char *const operations[] = { WEFT_KERNEL_OPERATION_NAMES };
static const char *const precisions[] = { WEFT_KERNEL_PRECISION_NAMES };
static const char *const size_names[] = { WEFT_KERNEL_SIZES(WEFT_SIZE_NAME) };
#define COUNT(names) ((int) (sizeof names / sizeof *names))

/* operation: one of WEFT_KERNEL_OPERATION_NAMES. precision: of direct sums and slopes, else NULL. */
SEXP C_weft_kernel_plan(SEXP operation, SEXP precision, SEXP sizes, SEXP slowness)
{
  const int what = weft_kind_of(operation, "operation", operations, COUNT(operations));
  const int how = precision == R_NilValue ? WEFT_KERNEL_DOUBLE
                                          : weft_kind_of(precision, "precision", precisions, COUNT(precisions));
  weft_kernel_sizes given;
  weft_plan_sizes(sizes, size_names, COUNT(size_names), (double *) &given);
  const weft_slowness slow = weft_plan_slowness(slowness);
  const weft_plan plan = weft_kernel_plan((weft_kernel_operation) what, (weft_kernel_precision) how, &given, &slow);
  return weft_plan_result(&plan);
}

static SEXP named_numbers(const char *const *names, const double *values, int count)
{
  SEXP out = PROTECT(Rf_allocVector(REALSXP, count)), text = PROTECT(Rf_allocVector(STRSXP, count));
  memcpy(REAL(out), values, (size_t) count * sizeof *values);
  for (int k = 0; k < count; k++) SET_STRING_ELT(text, k, Rf_mkChar(names[k]));
  Rf_setAttrib(out, R_NamesSymbol, text);
  UNPROTECT(2);
  return out;
}

/* The work of a walk's counts, by name, for a kernel whose value takes so much in d dimensions with m columns. */
SEXP C_weft_kernel_work(SEXP value, SEXP d, SEXP m)
{
  static const char *const names[] = { WEFT_WALK_COSTS(WEFT_SIZE_NAME) };
  const weft_walk_costs costs = weft_kernel_walk_costs(Rf_asReal(value), Rf_asReal(d), Rf_asReal(m));
  return named_numbers(names, (const double *) &costs, COUNT(names));
}

/* The limits, by name, and `unit`, the seconds of a unit of work. */
SEXP C_weft_kernel_limits(void)
{
#define LIMIT_NAME(name, value) #name,
  static const char *const names[] = { WEFT_KERNEL_LIMITS(LIMIT_NAME) "unit" };
  double values[COUNT(names)];
  memcpy(values, &weft_kernel_limit, sizeof weft_kernel_limit);
  values[COUNT(names) - 1] = weft_kernel_unit_seconds();
  return named_numbers(names, values, COUNT(names));
}
