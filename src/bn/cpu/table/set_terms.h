/* Shares of parent sets (both/set_terms.h) where they are needed by the million. */
#pragma once

#include "bn/both/set_terms.h"

/* rint() of a number from 0 up without a call: from 2^52 on all are whole, and below, the sum is rounded to one. */
static inline double weft_bn_nearest(double x) { return x < 0x1p52 ? (x + 0x1p52) - 0x1p52 : x; }

static inline int64_t weft_bn_share_of(weft_bn_share share, double penalty)
{
  const double whole = share.q * penalty;
  if (share.lacking || whole > (double) -WEFT_BN_NEVER / 8) return WEFT_BN_NEVER;
  return share.edges - (int64_t) weft_bn_nearest(whole);
}

/* The share of a set and one more parent, given what this adds to a share that lacks one required parent. */
static inline weft_bn_share weft_bn_share_with(weft_bn_share set, weft_bn_share parent)
{
  return (weft_bn_share){ set.edges + parent.edges, set.lacking + parent.lacking - 1, set.q * parent.q };
}
