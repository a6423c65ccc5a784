/* Sets of at most s of K things, numbered: all sets of size 0, then of size 1 and so on, within a size in
 * colexicographic order. The set c_1 < ... < c_m has number offset[m] + Σ_j C(c_j, j), so that sets which differ in the
 * least member alone stand side by side; the loops over all sets run over that member innermost. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define WEFT_BN_MAX_PARENTS 62

/* choose[k * (most + 1) + v] = C(v, k) for v <= most, saturated. */
typedef struct weft_bn_binomials {
  size_t most;
  uint64_t *choose;
} weft_bn_binomials;

static inline uint64_t weft_bn_choose(const weft_bn_binomials *binomials, size_t v, size_t k)
{
  return binomials->choose[k * (binomials->most + 1) + v];
}

/* offset[m] for m = 0 .. s + 1; the last is the number of sets. */
static inline void weft_bn_offsets(const weft_bn_binomials *binomials, size_t universe, size_t s, uint64_t *offset)
{
  offset[0] = 0;
  for (size_t m = 0; m <= s; m++) offset[m + 1] = offset[m] + weft_bn_choose(binomials, universe, m);
}

/* The members of set `number`, ascending; returns how many. */
static inline size_t weft_bn_members(const weft_bn_binomials *binomials, size_t universe, const uint64_t *offset,
                                     uint64_t number, size_t *member)
{
  size_t m = 0, v = universe;
  while (number >= offset[m + 1]) m++;
  number -= offset[m];
  for (size_t j = m; j > 0; j--) {
    do v--;
    while (weft_bn_choose(binomials, v, j) > number);
    member[j - 1] = v;
    number -= weft_bn_choose(binomials, v, j);
  }
  return m;
}

/* Walks over the sets of size m >= 1 without their least member: for each stop the least member is 0 .. least - 1 and
 * the others are c[1] < ... < c[m - 1]. `at` is the number, within size m, of the first set of the stop. */
typedef struct weft_bn_walk {
  size_t universe, m, least;
  uint64_t at;
  size_t c[WEFT_BN_MAX_PARENTS + 1];
} weft_bn_walk;

static inline int weft_bn_walk_begin(weft_bn_walk *w, size_t universe, size_t m)
{
  w->universe = universe;
  w->m = m;
  w->at = 0;
  for (size_t j = 1; j < m; j++) w->c[j] = j;
  w->least = m == 1 ? universe : 1;
  return m <= universe && universe > 0;
}

static inline int weft_bn_walk_next(weft_bn_walk *w)
{
  size_t j = 1;
  w->at += w->least;
  if (w->m == 1) return 0;
  while (j + 1 < w->m && w->c[j] + 1 == w->c[j + 1]) {
    w->c[j] = j;
    j++;
  }
  if (++w->c[j] >= w->universe) return 0;
  w->least = w->c[1];
  return 1;
}
