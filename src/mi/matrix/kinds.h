/* The estimators of information, one row each: of categories (estimate.h) and of numbers (numeric.h). A new
 * one is a row here, with the functions it names, and its name in R (`count_estimators` in R/mi-matrix-counts.R,
 * `numeric_estimators` in R/mi-matrix.R).
 *
 * Of categories: WEFT_MI_<kind>, what R calls it, and <entropy>, which names weft_mi_add_<entropy>(),
 * weft_mi_end_<entropy>() and weft_mi_nats_<entropy>() of estimate.h; `turns`: how often the counts of a histogram
 * are read; `whole`: the information of two attributes is computed in whole numbers throughout (fixed_point.h).
 *
 * Of numbers: WEFT_MI_<kind>, what R calls it; `of`: the VALUES, their RANKS, or normal SCORES of these; `way`: what is
 * computed from two columns: their CORRELATION, KENDALLS_TAU, or distances to NEIGHBOURS. */
#pragma once

/* clang-format off */
#define WEFT_MI_ENTROPY_KINDS(ROW) \
  /*  kind                   name                     entropy                turns  whole */ \
  ROW(EMPIRICAL,             "empirical",             empirical,             1,     1) \
  ROW(MILLER_MADOW,          "miller-madow",          miller_madow,          1,     0) \
  ROW(SHRINK,                "shrink",                shrink,                3,     0) \
  ROW(SCHURMANN_GRASSBERGER, "schurmann-grassberger", schurmann_grassberger, 2,     0)
/* clang-format on */

/* clang-format off */
#define WEFT_MI_NUMERIC_KINDS(ROW) \
  /*  kind      name        of      way */ \
  ROW(COPULA,   "copula",   SCORES, CORRELATION) \
  ROW(PEARSON,  "pearson",  VALUES, CORRELATION) \
  ROW(SPEARMAN, "spearman", RANKS,  CORRELATION) \
  ROW(KENDALL,  "kendall",  RANKS,  KENDALLS_TAU) \
  ROW(KSG,      "ksg",      VALUES, NEIGHBOURS)
/* clang-format on */

#define WEFT_MI_ENUM(kind, ...) WEFT_MI_##kind,
typedef enum { WEFT_MI_ENTROPY_KINDS(WEFT_MI_ENUM) } weft_mi_estimator;
typedef enum { WEFT_MI_NUMERIC_KINDS(WEFT_MI_ENUM) } weft_mi_numeric_kind;
#undef WEFT_MI_ENUM

#define WEFT_MI_PLUS_ONE(...) +1
enum {
  WEFT_MI_ESTIMATORS = 0 WEFT_MI_ENTROPY_KINDS(WEFT_MI_PLUS_ONE),
  WEFT_MI_NUMERICS = 0 WEFT_MI_NUMERIC_KINDS(WEFT_MI_PLUS_ONE)
};
#undef WEFT_MI_PLUS_ONE

typedef enum { WEFT_MI_VALUES, WEFT_MI_RANKS, WEFT_MI_SCORES } weft_mi_numeric_of;
typedef enum { WEFT_MI_CORRELATION, WEFT_MI_KENDALLS_TAU, WEFT_MI_NEIGHBOURS } weft_mi_numeric_way;

static inline weft_mi_numeric_of weft_mi_uses(weft_mi_numeric_kind kind)
{
#define WEFT_MI_OF(kind, name, of, way) WEFT_MI_##of,
  static const weft_mi_numeric_of of[] = { WEFT_MI_NUMERIC_KINDS(WEFT_MI_OF) };
#undef WEFT_MI_OF
  return of[kind];
}

static inline weft_mi_numeric_way weft_mi_way(weft_mi_numeric_kind kind)
{
#define WEFT_MI_WAY(kind, name, of, way) WEFT_MI_##way,
  static const weft_mi_numeric_way way[] = { WEFT_MI_NUMERIC_KINDS(WEFT_MI_WAY) };
#undef WEFT_MI_WAY
  return way[kind];
}
