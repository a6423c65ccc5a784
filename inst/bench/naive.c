/* The yardstick of the benchmarks: plain C loops, as one writes them first. Built by the benchmark scripts with
 * R CMD SHLIB; not part of the package's code. */
#include <math.h>
#include <string.h>
#include <R.h>
#include <Rinternals.h>

/* A histogram of every column of an integer matrix of 0/1 against a class of 0/1, one row after another. */
SEXP naive_counts(SEXP x, SEXP class)
{
  int n = Rf_nrows(x), p = Rf_ncols(x);
  SEXP out = PROTECT(Rf_allocMatrix(INTSXP, 4, p));
  const int *c = INTEGER(class);
  for (int j = 0; j < p; j++) {
    const int *column = INTEGER(x) + (size_t) j * n;
    int counts[4] = { 0 };
    for (int i = 0; i < n; i++) counts[2 * column[i] + c[i]]++;
    memcpy(INTEGER(out) + 4 * (size_t) j, counts, sizeof counts);
  }
  UNPROTECT(1);
  return out;
}
