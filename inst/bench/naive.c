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

/* The greatest information that a pair of columns of levels 0 .. levels-1 has about a class of 0/1, times the rows and
 * but for a constant: one pair after another, one row after another, logarithms from a table. At most 16 levels. */
SEXP naive_pairs(SEXP x, SEXP class, SEXP levels)
{
  const int n = Rf_nrows(x), p = Rf_ncols(x), l = Rf_asInteger(levels), *v = INTEGER(x), *c = INTEGER(class),
            cells = l * l * 2;
  double *f = (double *) R_alloc((size_t) n + 1, sizeof(double)), best = -1e300;
  for (int k = 0; k <= n; k++) f[k] = k ? k * log2(k) : 0;
  for (int i = 0; i < p; i++)
    for (int j = i + 1; j < p; j++) {
      int t[512] = { 0 };
      double s = 0;
      for (int r = 0; r < n; r++) t[(v[(size_t) i * n + r] * l + v[(size_t) j * n + r]) * 2 + c[r]]++;
      for (int k = 0; k < cells; k += 2) s += f[t[k]] + f[t[k + 1]] - f[t[k] + t[k + 1]];
      if (s > best) best = s;
    }
  return Rf_ScalarReal(best);
}
