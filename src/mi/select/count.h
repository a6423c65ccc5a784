/* Counting for greedy selection: a candidate X against a group, the combinations of W (one feature, or all chosen ones)
 * and the class Y. */
#pragma once

#include "core/call/arena.h"
#include "core/data/bits.h"
#include "mi/mi.h"

/* The columns as codes, and those of few levels as bit planes too. */
typedef struct weft_select_features {
  size_t n, p, words;
  uint16_t *codes; /* n a feature; WEFT_NA_U16: missing */
  uint32_t *levels;
  uint64_t **planes; /* a feature's planes, levels × words, or NULL */
  const uint16_t *classes;
  uint32_t class_levels;
  const weft_bits_ops *ops;
} weft_select_features;

/* What candidates are counted against, row by row: code w + w_levels × y, or UINT64_MAX where one is missing. */
typedef struct weft_select_group {
  uint32_t *w; /* UINT32_MAX: missing */
  uint64_t w_levels;
  uint32_t y_levels; /* 1: without the class */
  uint32_t max_planes, plane_count;
  uint64_t *planes; /* of the combinations, when plane_count > 0 */
  const uint64_t **each;
  uint32_t *slots; /* for joining: a hash table of `capacity` */
  uint64_t *keys;
  size_t capacity;
} weft_select_group;

/* Σ k log2 k over the cells of each table, over the rows where X, W and Y are known. */
typedef struct weft_select_sums {
  double n, all; /* rows, and n log2 n */
  double x, w, y, xw, wy, xwy, gini;
} weft_select_sums;

typedef struct weft_select_workspace {
  uint32_t *table, *margin;           /* WEFT_SELECT_CELLS each */
  uint32_t *slots, *counts, *scratch; /* hash table */
  uint64_t *keys;
  size_t capacity;
} weft_select_workspace;

/* Tables of at most this many cells are counted as tables, larger ones by hashing. */
#define WEFT_SELECT_CELLS ((uint64_t) 1 << 16)

/* Codes all columns, and makes planes of those with at most `plane_levels` levels; from `mem`. */
weft_status weft_select_encode(weft_ctx *ctx, weft_arena *mem, const weft_mi_data *data, weft_select_features *out,
                               uint32_t plane_levels);
/* One thread's room for tables of n rows; a group's, which has planes while it has at most `max_planes` combinations.
 * */
weft_status weft_select_workspace_take(weft_arena *mem, size_t n, weft_select_workspace *w);
weft_status weft_select_group_take(weft_arena *mem, const weft_select_features *x, weft_select_group *group,
                                   uint32_t max_planes);

/* The group of the class alone; of feature j, with the class or without; of feature j joined to the group's W. */
void weft_select_group_none(const weft_select_features *x, weft_select_group *group);
void weft_select_group_one(const weft_select_features *x, size_t j, int with_class, weft_select_group *group);
weft_status weft_select_group_join(weft_ctx *ctx, const weft_select_features *x, size_t j, weft_select_group *group);

/* Counts feature j against the group. f: k log2 k of 0 .. n. */
void weft_select_count(const weft_select_features *x, size_t j, const weft_select_group *group, const double *f,
                       weft_select_workspace *w, weft_select_sums *out);

static inline double weft_select_entropy(const weft_select_sums *sums, double sum)
{
  const double h = sums->n > 0 ? (sums->all - sum) / sums->n : 0;
  return h > 0 ? h : 0;
}
static inline double weft_select_floor(const weft_select_sums *s, double sums)
{
  const double i = s->n > 0 ? sums / s->n : 0;
  return i > 0 ? i : 0;
}
/* What a count says (kinds.h): I(X,W;Y), also by H(X,W,Y); I(X;W); I(X;Y|W); the Gini gain. */
static inline double weft_select_information(const weft_select_sums *sums)
{
  return weft_select_floor(sums, (sums->xwy - sums->xw) - (sums->y - sums->all));
}
static inline double weft_select_share(const weft_select_sums *sums)
{
  const double joint = weft_select_entropy(sums, sums->xwy);
  return joint > 0 ? weft_select_information(sums) / joint : 0;
}
static inline double weft_select_redundancy(const weft_select_sums *sums)
{
  return weft_select_floor(sums, (sums->xw - sums->x) - (sums->w - sums->all));
}
static inline double weft_select_conditional(const weft_select_sums *sums)
{
  return weft_select_floor(sums, (sums->xwy - sums->xw) - (sums->wy - sums->w));
}
static inline double weft_select_gini(const weft_select_sums *sums) { return sums->gini; }
