/* The network methods, one row each. A new method is a row here, with its column in cpu/network.c and, where `device`
 * is steps, its band in steps.cu; and its line in R (`network_methods` in R/mi-network.R).
 *
 *   kind, name   WEFT_NETWORK_<kind>; what R calls it, and <name>_column(), <name>_band()
 *   before       what must be known of every column first: NOTHING, SUMS, MOMENTS (means and standard
 *                deviations), or PARTNERS (those of the greatest entries; on the CPU)
 *   greedy       every target chooses features, and an edge has the greater weight of its two directions
 *   in_bits      weights are information or differences of it: those that rounding leaves of 0 are 0
 *   nanoseconds  that a column takes on the CPU, roughly, as a function of p
 *   device       tiles: by itself, in tiles; steps: greedy, bands of targets; host: the CPU, whichever the back end */
#pragma once

/* clang-format off */
#define WEFT_NETWORK_KINDS(ROW) \
  /*  kind    name    before   greedy  in_bits  nanoseconds  device */ \
  ROW(ARACNE, aracne, PARTNERS, 0,     1,       p * p,       tiles) /* when no edge is removed early */ \
  ROW(CLR,    clr,    MOMENTS, 0,      0,       10 * p,      host)  \
  ROW(MRNET,  mrnet,  NOTHING, 1,      1,       p * p / 2,   steps) \
  ROW(MRNETB, mrnetb, SUMS,    1,      1,       2 * p * p,   steps) \
  ROW(RELNET, relnet, NOTHING, 0,      1,       p,           host)
/* clang-format on */

#define WEFT_NETWORK_ENUM(kind, ...) WEFT_NETWORK_##kind,
typedef enum { WEFT_NETWORK_KINDS(WEFT_NETWORK_ENUM) } weft_network_method;
#undef WEFT_NETWORK_ENUM

#define WEFT_NETWORK_PLUS_ONE(...) +1
enum { WEFT_NETWORK_METHODS = 0 WEFT_NETWORK_KINDS(WEFT_NETWORK_PLUS_ONE) };
#undef WEFT_NETWORK_PLUS_ONE

typedef enum {
  WEFT_NETWORK_NOTHING,
  WEFT_NETWORK_SUMS,
  WEFT_NETWORK_MOMENTS,
  WEFT_NETWORK_PARTNERS
} weft_network_before;

typedef struct weft_network_kind {
  weft_network_before before;
  int greedy, in_bits;
} weft_network_kind;

static inline const weft_network_kind *weft_network_kind_of(weft_network_method method)
{
#define WEFT_NETWORK_KIND(kind, name, before, greedy, in_bits, nanoseconds, device) \
  { WEFT_NETWORK_##before, greedy, in_bits },
  static const weft_network_kind kinds[] = { WEFT_NETWORK_KINDS(WEFT_NETWORK_KIND) };
#undef WEFT_NETWORK_KIND
  return &kinds[method];
}
