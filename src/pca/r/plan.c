/* The .Call entry point of the room's plan. */
#include "core/r/plan.h"
#include "core/r/record.h"
#include "pca/limits.h"
#include "pca/plan.h"

static const char *const kinds[] = { WEFT_PCA_KIND_NAMES }, *const wishes[] = { WEFT_PCA_WISH_NAMES };
static const char *const size_names[] = { WEFT_PCA_SIZES(WEFT_SIZE_NAME) };
#define COUNT(names) ((int) (sizeof names / sizeof *names))

/* kind, method: one of WEFT_PCA_KIND_NAMES and WEFT_PCA_WISH_NAMES. Returns list(cost = the plan, methods = c(cpu,
 * cuda), gives_way = list(gram_blocks, gram_steps), libraries = those that a device needs). */
SEXP C_weft_pca_plan(SEXP kind, SEXP method, SEXP sizes, SEXP slowness)
{
  const weft_pca_kind what = (weft_pca_kind) weft_kind_of(kind, "kind", kinds, COUNT(kinds));
  const weft_pca_wish wish = (weft_pca_wish) weft_kind_of(method, "method", wishes, COUNT(wishes));
  weft_pca_sizes given;
  weft_plan_sizes(sizes, size_names, COUNT(size_names), (double *) &given);
  const weft_slowness slow = weft_plan_slowness(slowness);
  const weft_pca_plans plans = weft_pca_plan(what, wish, &given, &slow);
  SEXP out = PROTECT(WEFT_NAMED_LIST("methods", "cost", "gives_way", "libraries"));
  const SEXP methods = weft_result_put(out, "methods", Rf_allocVector(STRSXP, 2));
  const SEXP names = PROTECT(Rf_allocVector(STRSXP, 2));
  SET_STRING_ELT(methods, 0, Rf_mkChar(wishes[plans.cpu]));
  SET_STRING_ELT(methods, 1, Rf_mkChar(wishes[plans.cuda]));
  SET_STRING_ELT(names, 0, Rf_mkChar("cpu"));
  SET_STRING_ELT(names, 1, Rf_mkChar("cuda"));
  Rf_setAttrib(methods, R_NamesSymbol, names);
  weft_result_put(out, "cost", weft_plan_result(&plans.plan));
  const SEXP trial = weft_result_put(out, "gives_way", WEFT_NAMED_LIST("gram_blocks", "gram_steps"));
  weft_result_put(trial, "gram_blocks", Rf_ScalarReal(plans.gram_blocks));
  weft_result_put(trial, "gram_steps", Rf_ScalarReal(plans.gram_steps));
  /* small eigenvectors are the host's, and filtering takes those of small matrices alone */
  const double near = fmin(given.n, given.p);
  const int filters = near >= WEFT_PCA_FILTER_ABOVE_DEVICE && given.k <= WEFT_PCA_FILTER_K_DEVICE;
  const int solves = plans.cuda == WEFT_PCA_BY_GRAM && !WEFT_PCA_HOST_EIGEN(near, given.k) && !filters;
  const SEXP libraries = weft_result_put(out, "libraries", Rf_allocVector(STRSXP, 1 + solves));
  SET_STRING_ELT(libraries, 0, Rf_mkChar("cublas"));
  if (solves) SET_STRING_ELT(libraries, 1, Rf_mkChar("cusolver"));
  UNPROTECT(2);
  return out;
}
