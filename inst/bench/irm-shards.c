/* Rows of a planted bipartite graph, for irm-ten-billion.R: every row is drawn by itself, so that neither threads nor
 * the cut into shards change a link. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <R.h>
#include <Rinternals.h>

static uint64_t mix(uint64_t x)
{
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

static double uniform(uint64_t *s) { return ((double) (mix((*s)++) >> 11) + 0.5) / 9007199254740992.0; }

/* Draws row i into `bits`, and lists it; returns the number of links. */
static int64_t draw_row(int64_t i, const int *order, const double *begin, int k, const double *rate, uint64_t *bits,
                        int64_t words, int *list)
{
  uint64_t s = mix((uint64_t) i * 0x2545f4914f6cdd1du);
  int64_t count = 0;
  memset(bits, 0, (size_t) words * sizeof *bits);
  for (int m = 0; m < k; m++) {
    const double step = 1 / log1p(-rate[m]);
    for (double at = begin[m] - 1;;) {
      at += 1 + floor(log(uniform(&s)) * step);
      if (!(at < begin[m + 1])) break;
      const int j = order[(int64_t) at];
      bits[j / 64] |= (uint64_t) 1 << j % 64;
      count++;
    }
  }
  if (!list) return count;
  for (int64_t w = 0; w < words; w++)
    for (uint64_t left = bits[w]; left; left &= left - 1) *list++ = (int) (64 * w) + __builtin_ctzll(left);
  return count;
}

/* Rows first .. first+count-1 as the slots p and j of an ngRMatrix. row: clusters of all rows, from 0; order: columns
 * from 0 by cluster, which begin at `begin`; rate: row m of a k x k matrix by column. */
SEXP planted_rows(SEXP first, SEXP count, SEXP row, SEXP order, SEXP begin, SEXP rate)
{
  const int64_t from = (int64_t) Rf_asReal(first), n = (int64_t) Rf_asReal(count), p = Rf_xlength(order);
  const int64_t words = (p + 63) / 64;
  const int k = Rf_nrows(rate), *z = INTEGER(row), *columns = INTEGER(order);
  const double *rates = REAL(rate), *starts = REAL(begin);
  SEXP out = PROTECT(Rf_allocVector(VECSXP, 2)), ends = Rf_allocVector(INTSXP, n + 1);
  SET_VECTOR_ELT(out, 0, ends);
  int **lists = calloc((size_t) n, sizeof *lists), *at = INTEGER(ends), *to;
  at[0] = 0;
#pragma omp parallel
  {
    uint64_t *bits = malloc((size_t) words * sizeof *bits);
    int *scratch = malloc((size_t) p * sizeof *scratch);
#pragma omp for schedule(dynamic, 16)
    for (int64_t i = 0; i < n; i++) {
      const int64_t links =
          draw_row(from + i, columns, starts, k, rates + (size_t) z[from + i] * k, bits, words, scratch);
      lists[i] = malloc((size_t) (links + 1) * sizeof *lists[i]);
      memcpy(lists[i], scratch, (size_t) links * sizeof *scratch);
      at[i + 1] = (int) links;
    }
    free(bits);
    free(scratch);
  }
  for (int64_t i = 0; i < n; i++) at[i + 1] += at[i];
  SET_VECTOR_ELT(out, 1, Rf_allocVector(INTSXP, at[n]));
  to = INTEGER(VECTOR_ELT(out, 1));
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < n; i++) {
    memcpy(to + at[i], lists[i], (size_t) (at[i + 1] - at[i]) * sizeof *to);
    free(lists[i]);
  }
  free(lists);
  UNPROTECT(1);
  return out;
}
