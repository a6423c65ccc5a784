/* A graph of the size of PubMed in the form that irm() works on: lists by row, ascending. Rows (words) have Zipf
 * degrees, columns (documents) one to eight shares of a row's links; blocks differ as in irm_sample(). Every row is
 * drawn by itself, so that the threads change nothing. Columns of a cluster are scattered over all numbers. */
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

typedef struct { uint64_t s; } stream;
static double uniform(stream *g) { return ((double) (mix(g->s++) >> 11) + 0.5) / 9007199254740992.0; }
static uint64_t below(stream *g, uint64_t n) { return (uint64_t) (uniform(g) * (double) n); }

static void sort_numbers(uint32_t *x, uint32_t *scratch, size_t n)
{
  for (int shift = 0; shift < 24; shift += 12) {
    static const int size = 4096;
    size_t at[4097];
    memset(at, 0, sizeof at);
    for (size_t i = 0; i < n; i++) at[(x[i] >> shift & (size - 1)) + 1]++;
    for (int b = 0; b < size; b++) at[b + 1] += at[b];
    for (size_t i = 0; i < n; i++) scratch[at[x[i] >> shift & (size - 1)]++] = x[i];
    memcpy(x, scratch, n * sizeof *x);
  }
}

static int compare(const void *a, const void *b)
{
  const uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;
  return (x > y) - (x < y);
}

/* list(start, to, row_cluster, col_cluster); about `links` links, a little fewer since duplicates go. n_col < 2^24. */
SEXP big_graph(SEXP n_row, SEXP n_col, SEXP clusters, SEXP links, SEXP seed)
{
  const int64_t n = (int64_t) Rf_asReal(n_row), p = (int64_t) Rf_asReal(n_col);
  const int k = Rf_asInteger(clusters);
  const double wanted = Rf_asReal(links);
  stream g = { mix((uint64_t) Rf_asReal(seed)) };
  SEXP out = PROTECT(Rf_allocVector(VECSXP, 4));
  SET_VECTOR_ELT(out, 0, Rf_allocVector(REALSXP, n + 1));
  SET_VECTOR_ELT(out, 2, Rf_allocVector(INTSXP, n));
  SET_VECTOR_ELT(out, 3, Rf_allocVector(INTSXP, p));
  double *start = REAL(VECTOR_ELT(out, 0));
  int *row = INTEGER(VECTOR_ELT(out, 2)), *col = INTEGER(VECTOR_ELT(out, 3));

  /* columns by cluster, each in one to eight slots */
  int64_t *first = calloc((size_t) k + 1, sizeof *first), slots = 0;
  uint32_t *order = malloc((size_t) p * sizeof *order), *slot = malloc((size_t) p * 8 * sizeof *slot);
  for (int64_t j = 0; j < p; j++) order[j] = (uint32_t) j;
  for (int64_t j = p - 1; j > 0; j--) {
    const int64_t with = (int64_t) below(&g, (uint64_t) j + 1);
    const uint32_t held = order[j];
    order[j] = order[with];
    order[with] = held;
  }
  for (int m = 0; m < k; m++) {
    first[m] = slots;
    for (int64_t j = p * m / k; j < p * (m + 1) / k; j++) {
      const int shares = (int) (1 / (0.125 + 0.875 * uniform(&g)));
      col[order[j]] = m + 1;
      for (int s = 0; s < shares; s++) slot[slots++] = order[j];
    }
  }
  first[k] = slots;

  /* η up to a factor, and Zipf weights of the rows in random order */
  double *eta = malloc((size_t) k * (size_t) k * sizeof *eta), *weight = malloc((size_t) n * sizeof *weight), sum = 0,
         *mean = calloc((size_t) k, sizeof *mean);
  for (int64_t b = 0; b < (int64_t) k * k; b++) {
    eta[b] = -log(uniform(&g));
    mean[b / k] += eta[b] / k;
  }
  for (int64_t i = 0; i < n; i++) {
    row[i] = 1 + (int) below(&g, (uint64_t) k);
    weight[i] = 1 / (50 + (double) i);
  }
  for (int64_t i = n - 1; i > 0; i--) {
    const int64_t with = (int64_t) below(&g, (uint64_t) i + 1);
    const double held = weight[i];
    weight[i] = weight[with];
    weight[with] = held;
  }
  for (int64_t i = 0; i < n; i++) sum += weight[i] * mean[row[i] - 1];
  uint32_t **lists = calloc((size_t) n, sizeof *lists);
  int64_t *count = calloc((size_t) n, sizeof *count);
#pragma omp parallel for schedule(dynamic, 64)
  for (int64_t i = 0; i < n; i++) {
    stream h = { mix(g.s + (uint64_t) i * 0x2545f4914f6cdd1du) };
    const double rate = wanted * weight[i] / sum / (double) slots;
    int64_t have = 0, room = 1024;
    uint32_t *list = malloc((size_t) room * sizeof *list);
    for (int m = 0; m < k; m++) {
      double prob = rate * eta[(int64_t) (row[i] - 1) * k + m];
      if (prob > 0.4) prob = 0.4;
      const double step = -1 / log1p(-prob);
      for (double at = (double) first[m] - 1;;) {
        at += 1 + floor(-log(uniform(&h)) * step);
        if (at >= (double) first[m + 1]) break;
        if (have == room) list = realloc(list, (size_t) (room *= 2) * sizeof *list);
        list[have++] = slot[(int64_t) at];
      }
    }
    if (have > 4096) {
      uint32_t *scratch = malloc((size_t) have * sizeof *scratch);
      sort_numbers(list, scratch, (size_t) have);
      free(scratch);
    } else {
      qsort(list, (size_t) have, sizeof *list, compare);
    }
    int64_t kept = 0;
    for (int64_t e = 0; e < have; e++) if (e == 0 || list[e] != list[e - 1]) list[kept++] = list[e];
    lists[i] = list;
    count[i] = kept;
  }
  start[0] = 0;
  for (int64_t i = 0; i < n; i++) start[i + 1] = start[i] + (double) count[i];
  SET_VECTOR_ELT(out, 1, Rf_allocVector(INTSXP, (R_xlen_t) start[n]));
  int *to = INTEGER(VECTOR_ELT(out, 1));
#pragma omp parallel for schedule(dynamic, 64)
  for (int64_t i = 0; i < n; i++) {
    memcpy(to + (int64_t) start[i], lists[i], (size_t) count[i] * sizeof(int));
    free(lists[i]);
  }
  free(lists);
  free(count);
  free(weight);
  free(mean);
  free(eta);
  free(first);
  free(order);
  free(slot);
  UNPROTECT(1);
  return out;
}
