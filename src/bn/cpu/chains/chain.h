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
 * Functions marked WIDE take the words per mask as an argument and are inlined with it constant; `fast`, also constant,
 * says that masks have one word and AVX-512 is there. */
#pragma once

#include <string.h>
#include "core/call/simd.h"
#include "bn/both/best_graphs.h"
#include "bn/both/chain.h"
#include "bn/both/moves.h"
#if WEFT_SIMD_X86
#  include <immintrin.h>
#endif

typedef struct weft_bn_layers weft_bn_layers;
typedef struct weft_bn_graph weft_bn_graph;

typedef struct weft_bn_replica {
  int32_t *order;         /* node at a position; while layers move it stands still */
  uint64_t *before;       /* p × words: predecessors; in layers, all nodes of earlier layers */
  int64_t *value;         /* sum: a node's score given its predecessors */
  weft_bn_layers *layers; /* partitions.c; NULL for orders */
  weft_bn_graph *graph;   /* graphs.c; NULL for orders and layers */
  int32_t *pick;          /* max: index of the best set within the node's sets; graphs: of its parents */
  uint64_t *children;     /* max, graphs, p × words: nodes whose set has this parent */
  uint64_t *improvable;   /* max, words: nodes whose best set is not the first of their list */
  int64_t score;
  uint64_t hash;                          /* max: of the picks */
  double accepted[WEFT_BN_MAX_MOVES + 1]; /* by kind of move; then all iterations */
} weft_bn_replica;

WIDE int any_bit(const uint64_t *mask, size_t words)
{
  uint64_t all = 0;
  for (size_t w = 0; w < words; w++) all |= mask[w];
  return all != 0;
}

WIDE int meets(const uint64_t *a, const uint64_t *b, size_t words)
{
  uint64_t both = 0;
  for (size_t w = 0; w < words; w++) both |= a[w] & b[w];
  return both != 0;
}

WIDE int fits(const uint64_t *set, const uint64_t *before, size_t words)
{
  for (size_t w = 0; w < words; w++)
    if (set[w] & ~before[w]) return 0;
  return 1;
}

/* The first set from..to - 1 that fits, or `to`. */
WIDE int32_t weft_bn_first_fit(const uint64_t *sets, int32_t from, int32_t to, const uint64_t *before, size_t words)
{
  int32_t k = from;
  while (k < to && !fits(sets + (size_t) k * words, before, words)) k++;
  return k;
}

#if WEFT_SIMD_X86
WEFT_TARGET_AVX512
/* weft_bn_first_fit() for masks of one word, eight at a time. */
static inline int32_t weft_bn_first_fit_eight(const uint64_t *sets, int32_t from, int32_t to, uint64_t before)
{
  const __m512i missing = _mm512_set1_epi64((long long) ~before);
  for (int32_t k = from; k < to; k += 8) {
    const __mmask8 there = (__mmask8) (to - k < 8 ? (1 << (to - k)) - 1 : 255);
    const unsigned fit = _mm512_mask_testn_epi64_mask(there, _mm512_maskz_loadu_epi64(there, sets + k), missing);
    if (fit) return k + __builtin_ctz(fit);
  }
  return to;
}

WEFT_TARGET_AVX512
/* Masks of two words, four at a time. */
static inline int32_t weft_bn_first_fit_four(const uint64_t *sets, int32_t from, int32_t to, const uint64_t *before)
{
  const long long one = (long long) ~before[0], two = (long long) ~before[1];
  const __m512i missing = _mm512_set_epi64(two, one, two, one, two, one, two, one);
  for (int32_t k = from; k < to; k += 4) {
    const __mmask8 there = (__mmask8) (to - k < 4 ? (1 << 2 * (to - k)) - 1 : 255);
    const unsigned words = _mm512_mask_testn_epi64_mask(there, _mm512_maskz_loadu_epi64(there, sets + 2 * k), missing);
    const unsigned fit = words & words >> 1 & 0x55;
    if (fit) return k + __builtin_ctz(fit) / 2;
  }
  return to;
}
#endif

WIDE int32_t weft_bn_find_fit(const uint64_t *sets, int32_t from, int32_t to, const uint64_t *before, size_t words,
                              int fast)
{
#if WEFT_SIMD_X86
  if (fast && words == 1) return weft_bn_first_fit_eight(sets, from, to, *before);
  if (fast && words == 2) return weft_bn_first_fit_four(sets, from, to, before);
#endif
  (void) fast;
  return weft_bn_first_fit(sets, from, to, before, words);
}

/* The nodes whose predecessors change, but for x and, in a swap, y. */
WIDE void between(const weft_bn_replica *replica, const weft_bn_move *move, uint64_t *out, size_t words)
{
  const uint64_t *bx = replica->before + (size_t) move->x * words, *by = replica->before + (size_t) move->y * words;
  if (move->kind == WEFT_BN_SHIFT && move->from > move->to) {
    for (size_t w = 0; w < words; w++) out[w] = bx[w] & ~by[w];
    return;
  }
  for (size_t w = 0; w < words; w++) out[w] = by[w] & ~bx[w];
  clear_bit(out, move->x);
  if (move->kind == WEFT_BN_SHIFT) set_bit(out, move->y);
}

/* Predecessors after the move: of a node between, of x, of y in a swap. */
WIDE void after_between(const weft_bn_replica *replica, const weft_bn_move *move, int32_t node, uint64_t *out,
                        size_t words)
{
  const uint64_t *old = replica->before + (size_t) node * words;
  for (size_t w = 0; w < words; w++) out[w] = old[w];
  if (move->lost >= 0) clear_bit(out, move->lost);
  if (move->gained >= 0) set_bit(out, move->gained);
}

WIDE void after_x(const weft_bn_replica *replica, const weft_bn_move *move, const uint64_t *mid, uint64_t *out,
                  size_t words)
{
  const uint64_t *old = replica->before + (size_t) move->x * words;
  const int left = move->kind == WEFT_BN_SHIFT && move->from > move->to;
  for (size_t w = 0; w < words; w++) out[w] = left ? old[w] & ~mid[w] : old[w] | mid[w];
  if (move->kind != WEFT_BN_SHIFT) set_bit(out, move->y);
}

WIDE void after_y(const weft_bn_replica *replica, const weft_bn_move *move, const uint64_t *mid, uint64_t *out,
                  size_t words)
{
  const uint64_t *old = replica->before + (size_t) move->y * words;
  for (size_t w = 0; w < words; w++) out[w] = old[w] & ~mid[w];
  clear_bit(out, move->x);
}

#if WEFT_SIMD_X86
WEFT_TARGET_AVX512
/* Nodes 8 k + .. of `mid` lose and gain, masks of one word. */
static inline void change_eight(uint64_t *before, uint64_t mid, uint64_t lost, uint64_t gained)
{
  const __m512i keep = _mm512_set1_epi64((long long) ~lost), add = _mm512_set1_epi64((long long) gained);
  for (; mid; mid >>= 8, before += 8) {
    const __mmask8 some = (__mmask8) mid;
    const __m512i old = _mm512_maskz_loadu_epi64(some, before);
    _mm512_mask_storeu_epi64(before, some, _mm512_or_si512(_mm512_and_si512(old, keep), add));
  }
}
#endif

WIDE uint64_t bit_or_none(int32_t v) { return v >= 0 ? UINT64_C(1) << (v & 63) : 0; }

/* Carries out a move: new predecessors of x, of y in a swap, and of the nodes between (`mid`), then the order
 * itself. */
WIDE void make_move(weft_bn_replica *replica, const weft_bn_move *move, const uint64_t *mid, size_t words, int fast)
{
  uint64_t fresh[words ? words : 1];
  after_x(replica, move, mid, fresh, words);
  if (move->kind != WEFT_BN_SHIFT) {
    uint64_t other[words ? words : 1];
    after_y(replica, move, mid, other, words);
    memcpy(replica->before + (size_t) move->y * words, other, words * sizeof *other);
  }
  memcpy(replica->before + (size_t) move->x * words, fresh, words * sizeof *fresh);
#if WEFT_SIMD_X86
  if (fast) {
    change_eight(replica->before, mid[0], bit_or_none(move->lost), bit_or_none(move->gained));
  } else
#endif
    for (size_t w = 0; w < words; w++)
      for (uint64_t word = mid[w]; word; word &= word - 1) {
        uint64_t *b = replica->before + (64 * w + (size_t) __builtin_ctzll(word)) * words;
        if (move->lost >= 0) clear_bit(b, move->lost);
        if (move->gained >= 0) set_bit(b, move->gained);
      }
  (void) fast;
  if (move->kind != WEFT_BN_SHIFT)
    replica->order[move->from] = move->y;
  else if (move->from < move->to)
    memmove(replica->order + move->from, replica->order + move->from + 1,
            (size_t) (move->to - move->from) * sizeof *replica->order);
  else
    memmove(replica->order + move->to + 1, replica->order + move->to,
            (size_t) (move->from - move->to) * sizeof *replica->order);
  replica->order[move->to] = move->x;
}

/* start: a replica's scores from its order. steps: its Metropolis steps first .. first + count - 1; `stamp` is the
 * first step's, and the others follow (moves.h). */
typedef struct weft_bn_kernel {
  void (*start)(const weft_bn_lists *lists, weft_bn_replica *replica);
  void (*steps)(const weft_bn_lists *lists, weft_bn_replica *replica, weft_rng rng, double beta, uint64_t first,
                size_t count, weft_bn_best *best, uint64_t stamp);
} weft_bn_kernel;
/* A kernel's steps, of a file's steps(), for targets whose best graphs are looked for elsewhere. */
#define WEFT_BN_STEPS(name, words) \
  static void name(const weft_bn_lists *lists, weft_bn_replica *replica, weft_rng rng, double beta, uint64_t first, \
                   size_t count, weft_bn_best *best, uint64_t stamp) \
  { \
    (void) best; \
    (void) stamp; \
    steps(lists, replica, rng, beta, first, count, words); \
  }
