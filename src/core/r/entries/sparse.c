/* Whether a sparse matrix of the package Matrix is what its class says, before anything reads it: its slots are R's to
 * change, and Matrix's own conversions trust them too. One pass over the indices. */
#include <stdio.h>
#include <string.h>
#include "core/r/glue.h"
#include "core/call/parallel.h"

#define AT_ONCE (1 << 26) /* entries between two looks for an interrupt */

static SEXP part(SEXP x, const char *name)
{
  SEXP symbol = Rf_install(name);
  return R_has_slot(x, symbol) ? R_do_slot(x, symbol) : NULL;
}

static SEXP says(const char *format, const char *name, double a, double b)
{
  char text[256];
  snprintf(text, sizeof text, format, name, a, b);
  return Rf_mkString(text);
}

/* The first of at[from .. to - 1] that lies outside 0 .. size - 1, or is not greater than the one before it; -1:
 * none. */
static R_xlen_t first_bad(const int *at, R_xlen_t from, R_xlen_t to, int size, int in_order)
{
  for (R_xlen_t k = from; k < to; k++)
    if (at[k] < 0 || at[k] >= size || (in_order && k > from && at[k] <= at[k - 1])) return k;
  return -1;
}

/* The same as yes or no, at the speed of memory: where all increase, the first and the last bound the others. */
static int some_bad(const int *at, R_xlen_t from, R_xlen_t to, int size)
{
  if (from == to) return 0;
  int bad = at[from] < 0 || at[to - 1] >= size;
  for (R_xlen_t k = from + 1; k < to; k++) bad |= at[k] <= at[k - 1];
  return bad;
}

static SEXP names_problem(SEXP names, const int *dim)
{
  if (!names || TYPEOF(names) != VECSXP || Rf_xlength(names) != 2)
    return Rf_mkString("Its slot `Dimnames` is not a list of two.");
  for (int side = 0; side < 2; side++) {
    SEXP of = VECTOR_ELT(names, side);
    if (of != R_NilValue && (TYPEOF(of) != STRSXP || Rf_xlength(of) != dim[side]))
      return says("Its slot `%s` has %.0f names for a dimension of %.0f.", "Dimnames", (double) Rf_xlength(of),
                  dim[side]);
  }
  return NULL;
}

/* Indices `at` from 0 in columns (or rows) that begin at `start`. */
static SEXP compressed_problem(SEXP start, SEXP at, const char *name, int columns, int size)
{
  if (TYPEOF(start) != INTSXP || Rf_xlength(start) != (R_xlen_t) columns + 1)
    return says("Its slot `%s` must have one number more (%.0f) than there are columns or rows (%.0f).", "p",
                (double) Rf_xlength(start), columns);
  const int *p = INTEGER_RO(start), *i = INTEGER_RO(at);
  if (p[0] != 0) return says("Its slot `%s` begins with %.0f instead of %.0f.", "p", p[0], 0);
  for (int j = 0; j < columns; j++)
    if (p[j + 1] < p[j])
      return says("Its slot `%s` decreases or is missing after number %.0f of %.0f.", "p", j + 1.0, columns + 1.0);
  if (p[columns] > Rf_xlength(at))
    return says("Its slot `%s` has %.0f numbers; %.0f are needed.", name, (double) Rf_xlength(at), p[columns]);
  const int threads = weft_threads_worth(weft_threads_for(0, 0), p[columns] / 2.0);
  int next, bad = 0;
  for (int first = 0; first < columns && !bad; first = next) {
    for (next = first + 1; next < columns && p[next] - p[first] < AT_ONCE;) next++;
    R_CheckUserInterrupt();
    WEFT_PARALLEL_FOR(threads, static)
    for (int j = first; j < next; j++)
      if (some_bad(i, p[j], p[j + 1], size)) __atomic_store_n(&bad, 1, __ATOMIC_RELAXED);
  }
  for (int j = 0; j < columns && bad; j++) {
    const R_xlen_t k = first_bad(i, p[j], p[j + 1], size, 1);
    if (k < 0) continue;
    if (i[k] < 0 || i[k] >= size)
      return says("Its slot `%s` is out of range at number %.0f: indices must be from 0 to %.0f.", name, (double) k + 1,
                  size - 1.0);
    return says("Its slot `%s` does not increase within column or row %.0f at number %.0f.", name, j + 1.0,
                (double) k + 1);
  }
  return NULL;
}

static SEXP triplet_problem(SEXP at, const char *name, int size)
{
  for (R_xlen_t from = 0; from < Rf_xlength(at); from += AT_ONCE) {
    const R_xlen_t left = Rf_xlength(at) - from, end = from + (left < AT_ONCE ? left : AT_ONCE);
    const R_xlen_t bad = first_bad(INTEGER_RO(at), from, end, size, 0);
    if (bad >= 0)
      return says("Its slot `%s` is out of range at number %.0f: indices must be from 0 to %.0f.", name,
                  (double) bad + 1, size - 1.0);
    R_CheckUserInterrupt();
  }
  return NULL;
}

/* A sentence about what is wrong with x, NULL when nothing is, and NA for a class without indices, which has few slots.
 * holds: what the class has in its slot `x`: "numeric", "logical", or "" for none. */
SEXP C_weft_sparse_problem(SEXP x, SEXP holds)
{
  const char *wanted = CHAR(STRING_ELT(holds, 0));
  const SEXP size = part(x, "Dim"), p = part(x, "p"), i = part(x, "i"), j = part(x, "j"), values = part(x, "x");
  if (!size || TYPEOF(size) != INTSXP || Rf_xlength(size) != 2)
    return Rf_mkString("Its slot `Dim` does not consist of two whole numbers.");
  const int *dim = INTEGER_RO(size);
  if (dim[0] < 0 || dim[1] < 0) return Rf_mkString("Its slot `Dim` is negative or missing.");
  SEXP wrong = names_problem(part(x, "Dimnames"), dim);
  if (wrong) return wrong;
  if (!i + !j + !p != 1) return Rf_ScalarLogical(NA_LOGICAL);
  if ((i && TYPEOF(i) != INTSXP) || (j && TYPEOF(j) != INTSXP))
    return Rf_mkString("Its indices are not whole numbers.");
  if (i && j && Rf_xlength(i) != Rf_xlength(j))
    return says("Its slots `%s` and `j` have %.0f and %.0f numbers.", "i", (double) Rf_xlength(i),
                (double) Rf_xlength(j));
  const R_xlen_t stored = Rf_xlength(i ? i : j);
  if (*wanted && (!values || TYPEOF(values) != (strcmp(wanted, "logical") ? REALSXP : LGLSXP)))
    return Rf_mkString("Its slot `x` has the wrong type for its class.");
  if (*wanted && Rf_xlength(values) != stored)
    return says("Its slot `%s` has %.0f values for %.0f indices.", "x", (double) Rf_xlength(values), (double) stored);
  if (p)
    wrong = i ? compressed_problem(p, i, "i", dim[1], dim[0]) : compressed_problem(p, j, "j", dim[0], dim[1]);
  else if (!(wrong = triplet_problem(i, "i", dim[0])))
    wrong = triplet_problem(j, "j", dim[1]);
  return wrong ? wrong : R_NilValue;
}
