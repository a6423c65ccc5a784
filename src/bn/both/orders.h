/* Exact edge posteriors under a uniform prior over orders (Koivisto and Sood 2004; Koivisto 2006): forward and backward
 * sums over all subsets W of the p nodes, in one table of 8 bytes per subset. With a_v(W) = Σ of the weights of v's
 * parent sets within W:
 *   f(W) = Σ_{s in W} f(W - s) a_s(W - s)
 *   b(W) = Σ_{s not in W} a_s(W) b(W + s)
 *   Γ_v(P) = Σ_{W with P, without v} f(W) b(W + v),   P(u -> v) = Σ_{P with u} weight_v(P) Γ_v(P) / f(all)
 * All terms are positive, so that nothing cancels. b takes f's place in the table, since f(W) is last read where b(W)
 * is written.
 *
 * a_v is never stored for all W. W = (top, mid, low): for one top part, a buffer of 2^mid_bits × slots holds, for each
 * mid part and each slot (a node v and a low part that occurs in v's sets), the sum of the weights of v's sets with
 * that low part whose other parents are within (top, mid): weights of sets whose top part fits are added where their
 * mid part stands, and then summed over subsets of mid parts. From there the 2^low_bits values a_v(top, mid, ·) of a
 * block are sums over subsets of low parts. Γ_v takes the same way backwards, in the same buffer: sums over supersets
 * of low parts within a block, then of mid parts, then of top parts. As no set of v has v, a_v(W) does not depend on
 * whether v is in W, and the block that has v reads a_v of the block without it from its own values.
 *
 * Blocks with equally many nodes in their high part (top, mid) do not depend on each other. */
#pragma once

#include "bn/bn.h"
#include "bn/limits.h"
#include "bn/both/wide.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets are sorted by node, low part, mid part and top part. Those that agree in all but the top part are a cell. */
typedef struct weft_bn_order_plan {
  int p, low_bits, mid_bits, top_bits;
  weft_bn_wide form;
  uint32_t sets, cells, slots;
  uint64_t *weight, *sum;         /* sets: exp(score - best of the node), Γ */
  uint32_t *top;                  /* sets */
  uint32_t *cell_start;           /* cells + 1 */
  uint32_t *cell_mid, *cell_slot; /* cells */
  uint32_t *slot_start;           /* p + 1: slots of each node */
  uint16_t *slot_low;             /* slots */
} weft_bn_order_plan;

/* Where a cell stands in the buffer. */
static WEFT_HD inline size_t weft_bn_order_at(uint32_t slots, uint32_t mid, uint32_t slot)
{
  return (size_t) mid * slots + slot;
}

/* The first subset of the block. */
static WEFT_HD inline uint64_t weft_bn_order_block(int low_bits, int mid_bits, uint32_t top, uint32_t mid)
{
  return ((uint64_t) top << mid_bits | mid) << low_bits;
}

/* Weights of the cell's sets that fit the top part. */
static WEFT_HD inline uint64_t weft_bn_order_load(weft_bn_wide form, const uint32_t *tops, const uint64_t *weight,
                                                  uint32_t first, uint32_t last, uint32_t top)
{
  uint64_t sum = 0;
  for (uint32_t k = first; k < last; k++)
    if (!(tops[k] & ~top)) sum = weft_bn_wide_add(form, sum, weight[k]);
  return sum;
}

/* Adds what the buffer has for a cell to the Γ of its sets that fit the top part. */
static WEFT_HD inline void weft_bn_order_unload(weft_bn_wide form, const uint32_t *tops, uint64_t *sum, uint32_t first,
                                                uint32_t last, uint32_t top, uint64_t value)
{
  for (uint32_t k = first; k < last; k++)
    if (!(tops[k] & ~top)) sum[k] = weft_bn_wide_add(form, sum[k], value);
}

#ifdef __cplusplus
}
#endif
