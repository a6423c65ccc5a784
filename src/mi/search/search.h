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

/* What a search keeps. Thresholds are in bits; -INFINITY: none. */
typedef struct weft_mi_search {
  size_t top; /* SIZE_MAX: all above the thresholds */
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

/* A pack on a device; of the back end that made it. */
typedef struct weft_mi_resident weft_mi_resident;

/* One tuple's scores, all over the same rows, in bits. Pairs: interaction = mi - each[0] - each[1]. More attributes:
 * interaction = mi - the greatest joint information of a tuple that lacks one of them. */
#define WEFT_MI_ORDER 16
typedef struct weft_mi_tuple {
  double mi, interaction, n, each[WEFT_MI_ORDER];
} weft_mi_tuple;

/* ---- the operations; the back ends give the same results ----
 * `device`: where a back end keeps its copy of the pack between calls; *device is NULL at first. */

/* The best tuples; memory from `mem`. */
weft_status weft_mi_search_cpu(weft_ctx *ctx, const weft_mi_pack *pack, weft_mi_resident **device,
                               const weft_mi_search *search, weft_arena *mem, weft_mi_found *out);
/* All pairs: columns × columns, column major; the diagonal is left as it is. */
weft_status weft_mi_full_cpu(weft_ctx *ctx, const weft_mi_pack *pack, weft_mi_resident **device, double *mi,
                             double *interaction);
weft_status weft_mi_search_cuda(weft_ctx *ctx, const weft_mi_pack *pack, weft_mi_resident **device,
                                const weft_mi_search *search, weft_arena *mem, weft_mi_found *out);
weft_status weft_mi_full_cuda(weft_ctx *ctx, const weft_mi_pack *pack, weft_mi_resident **device, double *mi,
                              double *interaction);
void weft_mi_resident_release(weft_ctx *ctx, weft_mi_resident *device);
/* What weft_mi_pack_permute() does, on the device alone: *out is its copy of the pack with rows exchanged, made if NULL
 * and overwritten otherwise; `moved` is the pack with the new margins, whose memory is the caller's, and the old bits.
 * *out stays NULL where the device has no room, or an attribute has codes. */
weft_status weft_mi_permute_cuda(weft_ctx *ctx, const weft_mi_pack *pack, weft_mi_resident **device,
                                 const uint32_t *perm, weft_mi_pack *moved, weft_mi_resident **out);

/* Permutation tests of pairs under many label sets at once. */
typedef struct weft_mi_relabelling {
  const weft_mi_search *search; /* by_interaction, near */
  const uint32_t *columns;      /* of the pairs that were found, two each */
  const double *observed;       /* their scores */
  size_t count, sets;
  /* The sorted rows that set `set` gives class `of`, by any thread; perm: room for pack->n. */
  void (*draw)(const void *data, size_t set, uint32_t of, uint32_t *perm, uint32_t *rows);
  const void *data;
  double *at_least, *greatest; /* by pair: sets in which it scores at least as much; by set */
} weft_mi_relabelling;

/* *done: 0 where the pack's shape or the device's memory does not allow it. */
weft_status weft_mi_relabel_cuda(weft_ctx *ctx, const weft_mi_pack *pack, weft_mi_resident **device,
                                 const weft_mi_relabelling *how, int *done);
/* Information between attributes of x and of y, packed over the same rows with the same classes, or none; y NULL: of x,
 * the diagonal with entropies. The classes play no part. out: x->columns × y->columns, column major. */
weft_status weft_mi_matrix_cpu(weft_ctx *ctx, const weft_mi_pack *x, weft_mi_resident **device, const weft_mi_pack *y,
                               int estimator, double *out);
weft_status weft_mi_matrix_cuda(weft_ctx *ctx, const weft_mi_pack *x, weft_mi_resident **device, const weft_mi_pack *y,
                                int estimator, double *out);

/* ---- shared by the back ends ---- */

/* What a device leaves to the CPU: pairs of which one has codes, and whose table by class, with both margins, has more
 * than `words` entries. */
static inline int weft_mi_large(const weft_mi_pack *x, size_t a, const weft_mi_pack *y, size_t b, uint32_t classes,
                                uint64_t words)
{
  const uint64_t la = x->levels[a], lb = y->levels[b];
  return (x->groups[x->group_of[a]].coded || y->groups[y->group_of[b]].coded) && (la * lb + la + lb) * classes > words;
}
weft_status weft_mi_search_large(weft_ctx *ctx, const weft_mi_pack *pack, const weft_mi_search *search, uint64_t words,
                                 weft_arena *mem, weft_mi_found *out);
weft_status weft_mi_full_large(weft_ctx *ctx, const weft_mi_pack *pack, uint64_t words, double *mi,
                               double *interaction);
weft_status weft_mi_matrix_large(weft_ctx *ctx, const weft_mi_pack *x, const weft_mi_pack *y, int estimator,
                                 uint64_t words, double *out);

/* Σ f over the levels of every attribute with planes and without missing values, by place: the same in all its
 * pairs. */
void weft_mi_sums_of_levels(const weft_mi_pack *pack, int64_t *out);
/* The diagonal of a matrix: entropies in bits. */
weft_status weft_mi_own_entropies(weft_ctx *ctx, const weft_mi_pack *x, int estimator, double *out);

weft_status weft_mi_search_triples(weft_ctx *ctx, const weft_mi_pack *pack, const weft_mi_search *search,
                                   weft_arena *mem, weft_mi_found *out);

/* One thread's room for counting tuples of up to `order` columns from codes. */
typedef struct weft_mi_coder {
  size_t n, hash_size;
  uint32_t *ids, *rows, *counts, *class_end;
  uint64_t *keys;
  uint32_t *slots;
} weft_mi_coder;
weft_status weft_mi_coder_init(weft_mi_coder *w, weft_arena *mem, const weft_mi_pack *pack, int order);
/* Fixed-point information about the class of the columns of `codes` whose bit is set in masks[0 .. count-1], over the
 * rows where all k are known; returns how many these are. */
size_t weft_mi_coded(weft_mi_coder *w, const weft_mi_pack *pack, const uint16_t *const *codes, const uint32_t *levels,
                     int k, const uint32_t *masks, int count, int64_t *out);

/* Scores of tuples of `order` columns each. */
weft_status weft_mi_score_tuples(weft_ctx *ctx, const weft_mi_pack *pack, const uint32_t *columns, size_t count,
                                 int order, weft_mi_tuple *out);

/* Every attribute by itself, as mi_rank gives it; n is the rows that count, and 0 levels give 0. */
weft_status weft_mi_pack_rank(weft_ctx *ctx, const weft_mi_pack *pack, const weft_mi_rank *out);

/* The best tuples of search->order of the p columns in `chosen` (increasing). An item's index is its lexicographic
 * rank. */
weft_status weft_mi_search_tuples(weft_ctx *ctx, const weft_mi_pack *pack, const uint32_t *chosen, size_t p,
                                  const weft_mi_search *search, weft_arena *mem, weft_mi_found *out);
double weft_mi_choose(double p, int order);
void weft_mi_unrank(uint64_t rank, size_t p, int order, uint32_t *out);

/* ops->search() with the tuples dealt over the call's devices: the same result as one search. `devices`: a copy of the
 * pack for each of them. */
weft_status weft_mi_search_spread(weft_ctx *ctx, const weft_mi_ops *ops, const weft_mi_pack *pack,
                                  weft_mi_resident **devices, const weft_mi_search *search, weft_arena *mem,
                                  weft_mi_found *out);

/* Permutation tests. at_least[k]: permutations in which tuple (attribute) k scores at least as much as in the data;
 * greatest[b]: the best score of all in permutation b. Pairs: permutations are dealt to search->part of search->parts,
 * and `greatest` of the others is left as it is; weft_mi_permute_spread() deals this part's over the call's devices. */
weft_status weft_mi_permute_pairs(weft_ctx *ctx, const weft_mi_ops *ops, const weft_mi_pack *pack,
                                  const weft_mi_search *search, const uint32_t *columns, size_t count,
                                  size_t permutations, uint64_t key, double *at_least, double *greatest);
weft_status weft_mi_permute_spread(weft_ctx *ctx, const weft_mi_ops *ops, const weft_mi_pack *pack,
                                   const weft_mi_search *search, const uint32_t *columns, size_t count,
                                   size_t permutations, uint64_t key, double *at_least, double *greatest);
weft_status weft_mi_permute_rank(weft_ctx *ctx, const weft_mi_ops *ops, const weft_mi_pack *pack, size_t permutations,
                                 uint64_t key, double *observed, double *at_least, double *greatest);

/* What a search's screens have in common. `classes` of a table's parts are added up to one level of its group: in
 * triples, of the fixed attribute's level; in pairs within strata, of the stratum. */
typedef struct weft_mi_screening {
  uint32_t classes;
  int stratified;
  float class_sum; /* Σ n_c log2 n_c - n log2 n, summed over strata */
  uint64_t n;
  uint64_t class0; /* rows of the first class, where there are two and both occur; else 0 */
  double steepest; /* then: weft_mi_steepest() of its share */
} weft_mi_screening;

weft_mi_screening weft_mi_screening_of(const weft_mi_pack *pack);

/* Approximate joint information of pair (i, j) for j < count; off by at most weft_mi_screen_error(), or, where it is
 * below `bar`, at least the joint information less that. out has room for count rounded up to 16. */
void weft_mi_screen(const weft_mi_counts *counts, const weft_mi_screening *screening, size_t i, size_t count, float bar,
                    float *out);
double weft_mi_screen_error(const weft_mi_counts *counts, const weft_mi_screening *screening);

/* The greatest KL(q || p) / (q - p)² over q, in bits. */
double weft_mi_steepest(double p);

#ifdef __cplusplus
}
#endif
