/* Cells of planted types for cells.R: a block of them as compressed columns, one per cell, genes rising. Every draw is
 * a function of (seed, cell, gene), so that blocks and threads change nothing. */
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <R.h>
#include <Rinternals.h>
#ifdef _OPENMP
# include <omp.h>
#endif

static uint64_t mixed(uint64_t x)
{
  x += UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
  return x ^ x >> 31;
}

static double uniform(uint64_t x) { return ((double) (mixed(x) >> 11) + 0.5) * 0x1p-53; }

/* How often, of 2^32, a gene is seen in a cell of average depth; and the cell's depth. */
typedef struct { const double *rates; size_t p; uint64_t seed; } planted;

static double depth_of(const planted *a, uint64_t cell)
{
  const double u = uniform(a->seed ^ mixed(2 * cell)), v = uniform(a->seed ^ mixed(2 * cell + 1));
  return exp(0.3 * sqrt(-2 * log(u)) * cos(6.283185307179586 * v) - 0.045);
}

/* Entries of a cell; written where `rows` is not NULL. */
static size_t cell(const planted *a, uint64_t index, size_t type, int *rows, double *values)
{
  const double depth = depth_of(a, index), *rates = a->rates + type * a->p;
  uint64_t state = mixed(a->seed + 3 * mixed(index));
  size_t count = 0;
  for (size_t g = 0; g < a->p; g++) {
    state += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t word = (state ^ state >> 32) * UINT64_C(0xD6E8FEB86659FD93);
    word = (word ^ word >> 32) * UINT64_C(0xD6E8FEB86659FD93);
    if ((double) (word >> 32) >= rates[g] * depth) continue;
    if (rows) {
      rows[count] = (int) g;
      values[count] = 1; /* and one more for each zero bit at the end of what is left of the word */
      for (uint32_t left = (uint32_t) word | UINT32_C(0x80000000); !(left & 1); left >>= 1) values[count]++;
    }
    count++;
  }
  return count;
}

/* first, count: cells from 0; rates: genes x types, as above. list(starts, genes, values, types from 1). */
SEXP make_cells(SEXP first_cell, SEXP how_many, SEXP rates, SEXP seed)
{
  const uint64_t first = (uint64_t) Rf_asReal(first_cell);
  const int64_t n = (int64_t) Rf_asReal(how_many);
  const size_t types = (size_t) Rf_ncols(rates);
  const planted a = { REAL(rates), (size_t) Rf_nrows(rates), mixed((uint64_t) Rf_asReal(seed)) };
  SEXP out = PROTECT(Rf_allocVector(VECSXP, 4));
  SEXP starts = Rf_allocVector(INTSXP, n + 1);
  SET_VECTOR_ELT(out, 0, starts);
  SEXP type = Rf_allocVector(INTSXP, n);
  SET_VECTOR_ELT(out, 3, type);
  int *at = INTEGER(starts), *label = INTEGER(type);
  at[0] = 0;
  #pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < n; i++) {
    label[i] = (int) (mixed(a.seed + 7 * (first + (uint64_t) i)) % types) + 1;
    at[i + 1] = (int) cell(&a, first + (uint64_t) i, (size_t) label[i] - 1, NULL, NULL);
  }
  for (int64_t i = 0; i < n; i++) at[i + 1] += at[i];
  SEXP genes = Rf_allocVector(INTSXP, at[n]);
  SET_VECTOR_ELT(out, 1, genes);
  SEXP values = Rf_allocVector(REALSXP, at[n]);
  SET_VECTOR_ELT(out, 2, values);
  int *row = INTEGER(genes);
  double *value = REAL(values);
  #pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < n; i++)
    cell(&a, first + (uint64_t) i, (size_t) label[i] - 1, row + at[i], value + at[i]);
  UNPROTECT(1);
  return out;
}
