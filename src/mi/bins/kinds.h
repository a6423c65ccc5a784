/* How native code cuts numeric columns into bins, one row each; bins.c has the formulas. A new criterion is a row
 * here, with the functions it names, and its name in R (`class_cuts` in R/discretize.R).
 *
 *   kind, name  WEFT_BINS_<kind>, and what R calls it
 *   way         BY_FREQUENCY, or by a class: SPLITS in two, and these again, or TOP_DOWN with the next three
 *   share       share_<share>(): of a bin, in the sum that the criterion is made of
 *   criterion   criterion_<criterion>(): of the sum
 *   classes     goes on until there are as many bins as classes */
#pragma once

/* clang-format off */
#define WEFT_BINS_KINDS(ROW) \
  /*  kind       name         way           share    criterion classes */ \
  ROW(FREQUENCY, "equalfreq", BY_FREQUENCY, none,    none,     0) \
  ROW(MDL,       "mdl",       SPLITS,       none,    none,     0) \
  ROW(CAIM,      "caim",      TOP_DOWN,     largest, mean,     1) \
  ROW(CACC,      "cacc",      TOP_DOWN,     squares, cacc,     1) \
  ROW(AMEVA,     "ameva",     TOP_DOWN,     squares, ameva,    0)
/* clang-format on */

#define WEFT_BINS_ENUM(kind, ...) WEFT_BINS_##kind,
typedef enum { WEFT_BINS_KINDS(WEFT_BINS_ENUM) } weft_bins_method;
#undef WEFT_BINS_ENUM

#define WEFT_BINS_PLUS_ONE(...) +1
enum { WEFT_BINS_METHODS = 0 WEFT_BINS_KINDS(WEFT_BINS_PLUS_ONE) };
#undef WEFT_BINS_PLUS_ONE

typedef enum { WEFT_BINS_BY_FREQUENCY, WEFT_BINS_SPLITS, WEFT_BINS_TOP_DOWN } weft_bins_way;
typedef struct weft_bins_kind {
  weft_bins_way way;
  int classes;
} weft_bins_kind;

static inline const weft_bins_kind *weft_bins_kind_of(weft_bins_method method)
{
#define WEFT_BINS_KIND(kind, name, way, share, criterion, classes) { WEFT_BINS_##way, classes },
  static const weft_bins_kind kinds[] = { WEFT_BINS_KINDS(WEFT_BINS_KIND) };
#undef WEFT_BINS_KIND
  return &kinds[method];
}
