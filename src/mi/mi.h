/* Mutual information: the interface of the room. Structs in, structs out; no R and no CUDA types.
 *
 * Everything is counted exactly and scored in double. With f(k) = k log2 k and counts n_ac, margins n_a, n_c, n:
 *   I(A;C) = ((Σ f(n_ac) - Σ f(n_a)) - (Σ f(n_c) - f(n))) / n      H(A) = (f(n) - Σ f(n_a)) / n
 * Both back ends add in the same order (mi_score.h), so that they give the same bits and the same ranks. */
#ifndef WEFT_MI_H
#define WEFT_MI_H

#include "../base/codes.h"
#include "../base/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Attributes against one class. */
typedef struct weft_mi_data {
  size_t n, p;                 /* rows, attributes */
  const weft_column *columns;
  const uint16_t *classes;     /* class of a row from 0; WEFT_NA_U16: the row does not count */
  uint32_t class_levels;
  int na_level;                /* missing attribute values are one more level; else their rows are left out */
} weft_mi_data;

/* Per attribute, over the rows that count for it. In bits. */
typedef struct weft_mi_rank {
  double *mi, *entropy, *class_entropy, *n;
  int32_t *levels, *class_levels; /* levels that occur */
  double *missing;                /* attribute values missing, whatever the class */
} weft_mi_rank;

/* Pairs, triples and matrices: mi_pairs.h. */
struct weft_arena;
struct weft_mi_pack;
struct weft_mi_search;
struct weft_mi_found;
struct weft_mi_resident;

typedef struct weft_mi_ops {
  weft_status (*rank)(weft_ctx *ctx, const weft_mi_data *data, const weft_mi_rank *out);
  weft_status (*search)(weft_ctx *ctx, const struct weft_mi_pack *pack, struct weft_mi_resident **device,
                        const struct weft_mi_search *search, struct weft_arena *mem, struct weft_mi_found *out);
  weft_status (*full)(weft_ctx *ctx, const struct weft_mi_pack *pack, struct weft_mi_resident **device, double *mi,
                      double *interaction);
  weft_status (*matrix)(weft_ctx *ctx, const struct weft_mi_pack *x, const struct weft_mi_pack *y, int estimator, double *out);
  void (*release)(weft_ctx *ctx, struct weft_mi_resident *device);
} weft_mi_ops;

extern const weft_mi_ops weft_mi_cpu;

/* ---- shared by the back ends ---- */

/* Tables of at most this many cells are counted as tables, larger ones by sorting. */
#define WEFT_MI_TABLE_CELLS ((uint64_t) 1 << 18)

/* An attribute's coding, and what came of it. WEFT_CODES_WIDE also stands for a table that would be too large. */
typedef struct weft_mi_code { weft_codes plan; weft_codes_result result; } weft_mi_code;

/* Plans the coding of column j. The codes are bytes only when the class codes fit into bytes too. */
weft_mi_code weft_mi_plan(const weft_mi_data *data, size_t j);

/* The error of the first bad column of first .. first+count-1, so that it does not depend on the number of threads. */
weft_status weft_mi_check(weft_ctx *ctx, const weft_mi_code *codes, size_t first, size_t count);

/* Counts and scores the columns of first .. first+count-1 whose result is WEFT_CODES_WIDE, by sorting (value, class)
 * pairs, one column after another. Both back ends leave these columns to it: no table of them would fit a cache. */
weft_status weft_mi_rank_wide(weft_ctx *ctx, const weft_mi_data *data, weft_mi_code *codes, size_t first, size_t count,
                              const weft_mi_rank *out);

#ifdef __cplusplus
}
#endif
#endif
