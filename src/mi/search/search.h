/* Searches over pairs and triples of packed attributes, and matrices of all pairs. */
#pragma once

#include "core/together/spread.h"
#include "core/numbers/topk.h"
#include "mi/pack/pack.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Pairs that a search leaves out: those on one chromosome nearer than `distance`. One value per column; a
 * position that is NaN is near nothing. */
typedef struct weft_mi_near {
  const uint32_t *chromosome; /* NULL: none is left out */
  const double *position;
  double distance;
} weft_mi_near;

static WEFT_HD inline int weft_mi_is_near(const weft_mi_near *near, uint64_t x, uint64_t y)
{
  return near->chromosome && near->chromosome[x] == near->chromosome[y] &&
         fabs(near->position[x] - near->position[y]) < near->distance;
}

/* What a search keeps. The minima min_mi and min_gain are the user's, in bits (-INFINITY: none), and never change;
 * what rises during a search is the threshold of the best so far, the score of the last of these `top` (mi_threshold in
 * search.cuh, weft_mi_keeper_threshold() in pair_tiles.h). A gain is what is called interaction elsewhere: min_gain is
 * the least that a tuple may have. */
typedef struct weft_mi_search {
  size_t top; /* SIZE_MAX: all that reach the minima */
  int order;  /* 2 or 3 */
  int by_interaction;
  double min_mi, min_gain;
  size_t part, parts; /* only the tuples dealt to this part (spread.h); one part has all */
  weft_mi_near near;  /* of pairs */
} weft_mi_search;

/* Best first. The index of columns i < j is i * columns + j; of a triple (i * columns + j) * columns + k. */
typedef struct weft_mi_found {
  weft_scored *items;
  size_t count;
} weft_mi_found;

/* One tuple's scores, all over the same rows, in bits. Pairs: interaction = mi - each[0] - each[1]. More attributes:
 * interaction = mi - the greatest joint information of a tuple that lacks one of them. */
#define WEFT_MI_ORDER 16
typedef struct weft_mi_tuple {
  double mi, interaction, n, each[WEFT_MI_ORDER];
} weft_mi_tuple;

/* ---- the operations; the back ends give the same results ----
 * `device`: where a back end keeps its copy of the pack between calls; *device is NULL at first. */

/* The best tuples, by a device; memory from `mem`. The CPU's are in pairs/both/pairs.h and triples/cpu/triples.h. */
weft_status weft_mi_search_cuda(weft_ctx *ctx, const weft_mi_pack *pack, weft_mi_resident **device,
                                const weft_mi_search *search, weft_arena *mem, weft_mi_found *out);

/* ---- shared by the back ends ---- */

/* What a device leaves to the CPU: pairs of which one has codes, and whose table by class, with both margins, has more
 * than `words` entries. */
static inline int weft_mi_large(const weft_mi_pack *x, size_t a, const weft_mi_pack *y, size_t b, uint32_t classes,
                                uint64_t words)
{
  const uint64_t la = x->levels[a], lb = y->levels[b];
  return (x->groups[x->group_of[a]].coded || y->groups[y->group_of[b]].coded) && (la * lb + la + lb) * classes > words;
}

#ifdef __cplusplus
}
#endif
