/* The sum over all graphs of p nodes by layers: nodes without parents, those whose parents are all among them, and so
 * on. f(S, L) is the weight of the graphs of S whose last layer is L; a node of the next layer has a parent in L. All
 * terms are positive; there are 4^p of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t place_within(size_t set, size_t whole)
{
  size_t place = 0, bit = 1;
  for (; whole; whole &= whole - 1, bit *= 2) if (set & whole & -whole) place |= bit;
  return place;
}

/* sums[s + v 2^p]: the weight of v's parent sets within s */
static long double *subset_sums(const double *weight, size_t p)
{
  const size_t all = (size_t) 1 << p;
  long double *sums = malloc(p * all * sizeof *sums);
  if (!sums) return NULL;
  for (size_t v = 0; v < p; v++) {
    long double *own = sums + v * all;
    for (size_t s = 0; s < all; s++) own[s] = weight[s + v * all];
    for (size_t bit = 1; bit < all; bit *= 2) for (size_t s = 0; s < all; s++) if (s & bit) own[s] += own[s ^ bit];
  }
  return sums;
}

/* Adds what the graphs of `inside` with one last layer, of weight `start`, give to each set of nodes outside. */
static void add_layers(const long double *sums, size_t p, size_t inside, size_t last, double start, double *product,
                       double *added)
{
  const size_t all = (size_t) 1 << p;
  size_t count = 1;
  product[0] = start;
  for (size_t v = 0; v < p; v++) {
    if (inside >> v & 1) continue;
    const long double before = inside ? sums[(inside ^ last) + v * all] : 0;
    const double fresh = (double) (sums[inside + v * all] - before);
    for (size_t k = 0; k < count; k++) product[count + k] = product[k] * fresh;
    count *= 2;
  }
  for (size_t k = 0; k < count; k++) added[k] += product[k];
}

/* weight: 2^p numbers for each node, at most about 1. NaN when memory is short. */
void layered_total(const int *nodes, const double *weight, double *log_total)
{
  const size_t p = (size_t) *nodes, all = (size_t) 1 << p;
  long double *sums = subset_sums(weight, p);
  double **f = calloc(all, sizeof *f), *product = malloc(all * sizeof *product), *added = malloc(all * sizeof *added);
  int whole = sums && f && product && added;
  for (size_t s = 0; whole && s < all; s++)
    whole = (f[s] = calloc((size_t) 1 << __builtin_popcountll(s), sizeof **f)) != NULL;
  if (whole) f[0][0] = 1;
  for (size_t inside = 0; whole && inside + 1 < all; inside++) { /* subsets come before what contains them */
    const size_t outside = all - 1 - inside;
    memset(added, 0, all * sizeof *added);
    for (size_t last = inside, k = ((size_t) 1 << __builtin_popcountll(inside)) - 1;; last = (last - 1) & inside, k--) {
      if (f[inside][k] > 0) add_layers(sums, p, inside, last, f[inside][k], product, added);
      if (!last) break;
    }
    for (size_t layer = outside, k = ((size_t) 1 << __builtin_popcountll(outside)) - 1; layer;
         layer = (layer - 1) & outside, k--)
      f[inside | layer][place_within(layer, inside | layer)] = added[k];
    free(f[inside]);
    f[inside] = NULL;
  }
  double total = 0;
  for (size_t k = 0; whole && k < all; k++) total += f[all - 1][k];
  *log_total = whole ? log(total) : NAN;
  for (size_t s = 0; f && s < all; s++) free(f[s]);
  free(f);
  free(product);
  free(added);
  free(sums);
}
