/* Orders of nodes, their moves, and what both kinds of chains share.
 *
 * A replica holds an order as positions and, for every node, the mask of its predecessors. A move changes the
 * predecessors of the nodes between two positions, and of these only those need a new score that can use what they lose
 * or gain:
 *
 *   swap x y    .. x [between] y ..   between: lose x, gain y;  x: gains between and y;  y: loses between and x
 *   right x     .. x [between] ..     between: lose x;          x: gains between
 *   left x      .. [between] x ..     between: gain x;          x: loses between
 *
 * Functions marked WIDE take the words a mask as their last argument and are inlined with it constant. */
#ifndef WEFT_BN_CHAIN_H
#define WEFT_BN_CHAIN_H

#include <string.h>
#include "../base/draws.h"
#include "bn.h"

#define WIDE static inline __attribute__((always_inline))

/* Streams of the draws. */
enum { WEFT_BN_STEPS = 0, WEFT_BN_STARTS = 1 << 28, WEFT_BN_SWAPS = 2 << 28, WEFT_BN_GRAPHS = 3 << 28 };

typedef struct weft_bn_replica {
  int32_t *order, *place;     /* node at a position, position of a node */
  uint64_t *before;           /* p × words: predecessors */
  int64_t *value;             /* sum: a node's score given its predecessors */
  int32_t *pick;              /* max: index of the best set within the node's sets */
  uint64_t *children;         /* max, p × words: nodes whose best set has this parent */
  uint64_t *improvable;       /* max, words: nodes whose best set is not the first of their list */
  int64_t score;
  uint64_t hash;              /* max: of the picks */
  double accepted[4];         /* swap, adjacent, move; all iterations */
} weft_bn_replica;

/* Graphs found, best first; equal scores in the order of finding. */
typedef struct weft_bn_best {
  size_t most, found;
  int64_t *score;
  uint64_t *hash;
  int32_t *sets;              /* p × most */
} weft_bn_best;

typedef struct weft_bn_lists {
  const weft_bn_table *table;
  size_t p, words;
  uint64_t *users;            /* p × words: nodes that have a set with this parent */
  double unit;
  /* sum: weights of the sets in blocks (bn_sum.c) */
  struct weft_bn_blocks *blocks;
} weft_bn_lists;

/* A proposal. `lost` and `gained` are what the nodes between lose and gain: a node, or -1. */
typedef struct weft_bn_move { int kind; int32_t x, y, lost, gained, from, to; } weft_bn_move;
enum { WEFT_BN_SWAP, WEFT_BN_ADJACENT, WEFT_BN_SHIFT };

WIDE int has_bit(const uint64_t *mask, int32_t v) { return (int) (mask[v >> 6] >> (v & 63) & 1); }
WIDE void set_bit(uint64_t *mask, int32_t v) { mask[v >> 6] |= UINT64_C(1) << (v & 63); }
WIDE void clear_bit(uint64_t *mask, int32_t v) { mask[v >> 6] &= ~(UINT64_C(1) << (v & 63)); }

WIDE int fits(const uint64_t *set, const uint64_t *before, size_t words)
{
  for (size_t w = 0; w < words; w++) if (set[w] & ~before[w]) return 0;
  return 1;
}

static inline uint64_t weft_bn_pick_hash(size_t node, int32_t pick)
{
  uint64_t z = ((uint64_t) node << 32 | (uint32_t) pick) + UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

/* Words 0 and 1 of the step's block choose the move, 2 and 3 its acceptance. Half of the moves are shifts, a quarter
 * each swaps and swaps of neighbours. Every move has its reverse with the same probability. */
static inline weft_bn_move weft_bn_choose_move(const weft_bn_replica *r, size_t p, weft_u32x4 draw)
{
  weft_bn_move m;
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
  if (kind < 2 && a > b) { int32_t c = a; a = b; b = c; }
  m.kind = kind == 0 ? WEFT_BN_SWAP : kind == 1 ? WEFT_BN_ADJACENT : WEFT_BN_SHIFT;
  m.from = a;
  m.to = b;
  m.x = r->order[a];
  m.y = r->order[b];
  m.lost = kind < 2 || a < b ? m.x : -1;
  m.gained = kind < 2 ? m.y : a < b ? -1 : m.x;
  return m;
}

/* The nodes whose predecessors change, but for x and, in a swap, y. */
WIDE void between(const weft_bn_replica *r, const weft_bn_move *m, uint64_t *out, size_t words)
{
  const uint64_t *bx = r->before + (size_t) m->x * words, *by = r->before + (size_t) m->y * words;
  if (m->kind == WEFT_BN_SHIFT && m->from > m->to) {
    for (size_t w = 0; w < words; w++) out[w] = bx[w] & ~by[w];
    return;
  }
  for (size_t w = 0; w < words; w++) out[w] = by[w] & ~bx[w];
  clear_bit(out, m->x);
  if (m->kind == WEFT_BN_SHIFT) set_bit(out, m->y);
}

/* Predecessors after the move: of a node between, of x, of y in a swap. */
WIDE void after_between(const weft_bn_replica *r, const weft_bn_move *m, int32_t z, uint64_t *out, size_t words)
{
  const uint64_t *old = r->before + (size_t) z * words;
  for (size_t w = 0; w < words; w++) out[w] = old[w];
  if (m->lost >= 0) clear_bit(out, m->lost);
  if (m->gained >= 0) set_bit(out, m->gained);
}

WIDE void after_x(const weft_bn_replica *r, const weft_bn_move *m, const uint64_t *mid, uint64_t *out, size_t words)
{
  const uint64_t *old = r->before + (size_t) m->x * words;
  const int left = m->kind == WEFT_BN_SHIFT && m->from > m->to;
  for (size_t w = 0; w < words; w++) out[w] = left ? old[w] & ~mid[w] : old[w] | mid[w];
  if (m->kind != WEFT_BN_SHIFT) set_bit(out, m->y);
}

WIDE void after_y(const weft_bn_replica *r, const weft_bn_move *m, const uint64_t *mid, uint64_t *out, size_t words)
{
  const uint64_t *old = r->before + (size_t) m->y * words;
  for (size_t w = 0; w < words; w++) out[w] = old[w] & ~mid[w];
  clear_bit(out, m->x);
}

WIDE void make_move(weft_bn_replica *r, const weft_bn_move *m, const uint64_t *mid, size_t words)
{
  uint64_t fresh[words ? words : 1];
  after_x(r, m, mid, fresh, words);
  if (m->kind != WEFT_BN_SHIFT) {
    uint64_t other[words ? words : 1];
    after_y(r, m, mid, other, words);
    memcpy(r->before + (size_t) m->y * words, other, words * sizeof *other);
  }
  memcpy(r->before + (size_t) m->x * words, fresh, words * sizeof *fresh);
  for (size_t w = 0; w < words; w++)
    for (uint64_t word = mid[w]; word; word &= word - 1) {
      uint64_t *b = r->before + (64 * w + (size_t) __builtin_ctzll(word)) * words;
      if (m->lost >= 0) clear_bit(b, m->lost);
      if (m->gained >= 0) set_bit(b, m->gained);
    }
  if (m->kind != WEFT_BN_SHIFT) {
    r->order[m->from] = m->y;
    r->order[m->to] = m->x;
    r->place[m->y] = m->from;
  } else {
    const int32_t step = m->from < m->to ? 1 : -1;
    for (int32_t k = m->from; k != m->to; k += step) {
      r->order[k] = r->order[k + step];
      r->place[r->order[k]] = k;
    }
    r->order[m->to] = m->x;
  }
  r->place[m->x] = m->to;
}

/* Metropolis: u < exp(beta * difference); beyond 37 no u of 53 bits is small enough. */
static inline int weft_bn_accept(double beta, double difference, weft_u32x4 draw)
{
  const double scaled = beta * difference;
  if (scaled >= 0) return 1;
  if (scaled < -37) return 0;
  return weft_log(weft_u01(draw.v[2], draw.v[3])) < scaled;
}

/* Keeps the graph when it is among the best and new. Changes of `picks` against the replica's are given by the caller as
 * a whole vector. */
void weft_bn_best_add(weft_bn_best *best, size_t p, int64_t score, uint64_t hash, const int32_t *picks);
static inline int weft_bn_best_wants(const weft_bn_best *best, int64_t score, uint64_t hash)
{
  if (best->found == best->most && (!best->most || score <= best->score[best->most - 1])) return 0;
  for (size_t k = 0; k < best->found; k++) if (best->hash[k] == hash) return 0;
  return 1;
}

/* Steps first .. first + count - 1 of one replica; and the scores of an order anew. */
typedef struct weft_bn_kernel {
  void (*start)(const weft_bn_lists *lists, weft_bn_replica *r);
  void (*steps)(const weft_bn_lists *lists, weft_bn_replica *r, weft_rng rng, double beta, uint64_t first, size_t count,
                weft_bn_best *best);
} weft_bn_kernel;
weft_bn_kernel weft_bn_max_kernel(size_t words);
weft_bn_kernel weft_bn_sum_kernel(size_t words);

weft_status weft_bn_blocks_make(weft_arena *mem, weft_bn_lists *lists);
/* A graph drawn given the order, as picks; draws first .. first + p - 1. Returns its score. */
int64_t weft_bn_draw_graph(const weft_bn_lists *lists, const weft_bn_replica *r, weft_rng rng, uint64_t first,
                           int32_t *picks);
/* The best graph of an order, as picks. */
int64_t weft_bn_best_graph(const weft_bn_lists *lists, const uint64_t *before, int32_t *picks);

#endif
