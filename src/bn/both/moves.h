/* What chains over orders are on both back ends: moves and their acceptance, the graphs that are kept, the lists of
 * sets. */
#pragma once

#include "core/numbers/draws.h"
#include "bn/bn.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WIDE static WEFT_HD inline __attribute__((always_inline))

WIDE int has_bit(const uint64_t *mask, int32_t v) { return (int) (mask[v >> 6] >> (v & 63) & 1); }
WIDE void set_bit(uint64_t *mask, int32_t v) { mask[v >> 6] |= UINT64_C(1) << (v & 63); }
WIDE void clear_bit(uint64_t *mask, int32_t v) { mask[v >> 6] &= ~(UINT64_C(1) << (v & 63)); }

/* Streams of the draws. */
enum { WEFT_BN_STEPS = 0, WEFT_BN_STARTS = 1 << 28, WEFT_BN_SWAPS = 2 << 28, WEFT_BN_GRAPHS = 3 << 28 };

/* A proposal. `lost` and `gained` are what the nodes between lose and gain: a node, or -1. */
typedef struct weft_bn_move {
  int kind;
  int32_t x, y, lost, gained, from, to;
} weft_bn_move;
enum { WEFT_BN_SWAP, WEFT_BN_ADJACENT, WEFT_BN_SHIFT };

/* Words 0 and 1 of the step's block choose the kind and the places of a move, 2 and 3 its acceptance. Half of the moves
 * are shifts, a quarter each swaps and swaps of neighbours. Every move has its reverse with the same probability. */
static WEFT_HD inline weft_bn_move weft_bn_choose_places(size_t p, weft_u32x4 draw)
{
  weft_bn_move move = { 0, 0, 0, 0, 0, 0, 0 };
  const uint64_t first = draw.v[0] >> 2, kind = draw.v[0] & 3;
  int32_t a, b;
  if (kind == 1) {
    a = (int32_t) (first * (p - 1) >> 30);
    b = a + 1;
  } else {
    a = (int32_t) (first * p >> 30);
    b = (int32_t) ((uint64_t) draw.v[1] * (p - 1) >> 32);
    b += b >= a;
  }
  if (kind < 2 && a > b) {
    int32_t c = a;
    a = b;
    b = c;
  }
  move.kind = kind == 0 ? WEFT_BN_SWAP : kind == 1 ? WEFT_BN_ADJACENT : WEFT_BN_SHIFT;
  move.from = a;
  move.to = b;
  return move;
}

/* The nodes at the two places. */
static WEFT_HD inline void weft_bn_name_nodes(weft_bn_move *move, int32_t x, int32_t y)
{
  move->x = x;
  move->y = y;
  move->lost = move->kind != WEFT_BN_SHIFT || move->from < move->to ? move->x : -1;
  move->gained = move->kind != WEFT_BN_SHIFT ? move->y : move->from < move->to ? -1 : move->x;
}

static WEFT_HD inline weft_bn_move weft_bn_choose_move(const int32_t *order, size_t p, weft_u32x4 draw)
{
  weft_bn_move move = weft_bn_choose_places(p, draw);
  weft_bn_name_nodes(&move, order[move.from], order[move.to]);
  return move;
}

/* Metropolis: u < exp(beta * difference); beyond 37 no u of 53 bits is small enough. */
static WEFT_HD inline int weft_bn_accept_log(double beta, double difference, double log_u)
{
  const double scaled = weft_mul(beta, difference);
  return scaled >= 0 || (scaled >= -37 && log_u < scaled);
}

/* weft_bn_accept_log(), taking the logarithm of the draw only where it decides. */
static WEFT_HD inline int weft_bn_accept(double beta, double difference, weft_u32x4 draw)
{
  const double scaled = weft_mul(beta, difference);
  if (scaled >= 0) return 1;
  if (scaled < -37) return 0;
  return weft_log(weft_u01(draw.v[2], draw.v[3])) < scaled;
}

static WEFT_HD inline uint64_t weft_bn_pick_hash(size_t node, int32_t pick)
{
  uint64_t z = ((uint64_t) node << 32 | (uint32_t) pick) + UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

#ifdef __cplusplus
}
#endif
