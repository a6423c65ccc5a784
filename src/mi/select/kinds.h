/* The criteria of greedy selection, one row each; select.c has the formulas. A new criterion is a row here, with its
 * function in count.h if none there serves, and its line in R (`select_methods` in R/mi-select.R).
 *
 *   kind, name  WEFT_SELECT_<kind>, and what R calls it
 *   alone       weft_select_<alone>(): a candidate's score before anything is chosen
 *   group       what it is counted against after a choice: the FEATURE with the class, WITHOUT it, ALL chosen, NONE
 *   says        weft_select_<says>(): what that count says about a candidate
 *   combine     what all counts have said: SUM; MEAN: the score alone less their mean; MIN; MIN_OR_ALONE: of these
 *               and the score alone; LATEST; ONCE: scores alone stay
 *   stops       when the best score is 0 */
#pragma once

/* clang-format off */
#define WEFT_SELECT_KINDS(ROW) \
  /*  kind   name     alone        group    says         combine         stops */ \
  ROW(MRMR,  "mrmr",  information, WITHOUT, redundancy,  MEAN,           0) \
  ROW(MIM,   "mim",   information, NONE,    information, ONCE,           0) \
  ROW(JMI,   "jmi",   information, FEATURE, information, SUM,            0) \
  ROW(JMIM,  "jmim",  information, FEATURE, information, MIN,            0) \
  ROW(NJMIM, "njmim", information, FEATURE, share,       MIN,            0) \
  ROW(DISR,  "disr",  information, FEATURE, share,       SUM,            0) \
  ROW(CMIM,  "cmim",  information, FEATURE, conditional, MIN_OR_ALONE,   1) \
  ROW(CMI,   "cmi",   information, ALL,     conditional, LATEST,         1) \
  ROW(JIM,   "jim",   gini,        FEATURE, gini,        SUM,            0)
/* clang-format on */

#define WEFT_SELECT_ENUM(kind, ...) WEFT_SELECT_##kind,
typedef enum { WEFT_SELECT_KINDS(WEFT_SELECT_ENUM) } weft_select_method;
#undef WEFT_SELECT_ENUM

#define WEFT_SELECT_PLUS_ONE(...) +1
enum { WEFT_SELECT_METHODS = 0 WEFT_SELECT_KINDS(WEFT_SELECT_PLUS_ONE) };
#undef WEFT_SELECT_PLUS_ONE
