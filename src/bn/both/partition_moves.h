/* Partitions into layers and those of their moves that need no scores (partitions.c says which there are), for both
 * back ends: on a device one lane makes them. */
#pragma once

#include "bn/both/moves.h"

enum {
  WEFT_BN_SWAP_LAYERS,
  WEFT_BN_ADJACENT_LAYERS,
  WEFT_BN_SHIFT_LAYERS,
  WEFT_BN_SPLIT,
  WEFT_BN_REVERSE,
  WEFT_BN_RENEW
};
/* Blocks of four random words within a step: the move, more of its places, members of a part, a number per node. */
enum { WEFT_BN_BLOCK_MOVE, WEFT_BN_BLOCK_PLACES, WEFT_BN_BLOCK_MEMBERS };

typedef struct weft_bn_partition {
  size_t p, count;
  uint64_t *member; /* p × words: nodes of a layer */
  uint64_t *fresh;  /* (p + 1) × words: layers that a move proposes */
  const double *log_factorial;
} weft_bn_partition;

/* Layers first .. first + old - 1 are replaced by `fresh` new ones; `ways`: the logarithm of the proposal ratio, that
 * is, of how much likelier the reverse move is chosen than this one. */
typedef struct weft_bn_proposal {
  size_t first, old, fresh;
  double ways;
} weft_bn_proposal;

WIDE void plan_layers(weft_bn_proposal *proposal, size_t first, size_t old, size_t fresh)
{
  proposal->first = first;
  proposal->old = old;
  proposal->fresh = fresh;
  proposal->ways = 0;
}

/* The move of a sixteenth. */
static WEFT_HD inline int weft_bn_layer_move(uint32_t kind)
{
  return kind < 1    ? WEFT_BN_SWAP_LAYERS
         : kind < 2  ? WEFT_BN_ADJACENT_LAYERS
         : kind < 6  ? WEFT_BN_SHIFT_LAYERS
         : kind < 8  ? WEFT_BN_SPLIT
         : kind < 12 ? WEFT_BN_REVERSE
                     : WEFT_BN_RENEW;
}

/* ---- places ---- */

WIDE size_t below(uint32_t word, size_t n) { return (size_t) ((uint64_t) word * n >> 32); }

WIDE size_t members_of(uint64_t word) { return (size_t) WEFT_BY_DEVICE(__popcll(word), __builtin_popcountll(word)); }

WIDE int32_t lowest_of(uint64_t word)
{
  return (int32_t) WEFT_BY_DEVICE(__ffsll((long long) word) - 1, __builtin_ctzll(word));
}

WIDE size_t size_of(const uint64_t *mask, size_t words)
{
  size_t size = 0;
  for (size_t w = 0; w < words; w++) size += members_of(mask[w]);
  return size;
}

WIDE int32_t nth_member(const uint64_t *mask, size_t n)
{
  size_t w = 0;
  for (size_t here; (here = members_of(mask[w])) <= n; w++) n -= here;
  uint64_t word = mask[w];
  while (n--) word &= word - 1;
  return (int32_t) (64 * w) + lowest_of(word);
}

WIDE size_t layer_of(const weft_bn_partition *partition, int32_t node, size_t words)
{
  size_t c = 0;
  while (!has_bit(partition->member + c * words, node)) c++;
  return c;
}

WIDE void copy_mask(uint64_t *to, const uint64_t *from, size_t words)
{
  for (size_t w = 0; w < words; w++) to[w] = from[w];
}

/* ---- moves: 0 where nothing is proposed ---- */

WIDE void exchange(weft_bn_partition *partition, int32_t x, size_t x_layer, int32_t y, size_t y_layer,
                   weft_bn_proposal *proposal, size_t words)
{
  const size_t from = x_layer < y_layer ? x_layer : y_layer, to = x_layer < y_layer ? y_layer : x_layer;
  uint64_t *of_x = partition->fresh + (x_layer - from) * words, *of_y = partition->fresh + (y_layer - from) * words;
  plan_layers(proposal, from, to - from + 1, to - from + 1);
  copy_mask(partition->fresh, partition->member + from * words, proposal->fresh * words);
  clear_bit(of_x, x);
  set_bit(of_x, y);
  clear_bit(of_y, y);
  set_bit(of_y, x);
}

WIDE int propose_swap(weft_bn_partition *partition, weft_u32x4 draw, weft_bn_proposal *proposal, size_t words)
{
  const int32_t x = (int32_t) below(draw.v[0], partition->p);
  int32_t y = (int32_t) below(draw.v[1], partition->p - 1);
  y += y >= x;
  const size_t x_layer = layer_of(partition, x, words), y_layer = layer_of(partition, y, words);
  if (x_layer == y_layer) return 0;
  exchange(partition, x, x_layer, y, y_layer, proposal, words);
  return 1;
}

WIDE int propose_adjacent(weft_bn_partition *partition, weft_u32x4 draw, weft_bn_proposal *proposal, size_t words)
{
  if (partition->count < 2) return 0;
  const size_t c = below(draw.v[0], partition->count - 1);
  const uint64_t *one = partition->member + c * words, *two = one + words;
  exchange(partition, nth_member(one, below(draw.v[1], size_of(one, words))), c,
           nth_member(two, below(draw.v[2], size_of(two, words))), c + 1, proposal, words);
  return 1;
}

/* The node is taken out; what is left has some layers, and it may go into any of these and into any gap: the reverse
 * move has as many places to choose from. */
WIDE int propose_shift(weft_bn_partition *partition, weft_u32x4 draw, weft_bn_proposal *proposal, size_t words)
{
  const int32_t x = (int32_t) below(draw.v[0], partition->p);
  const size_t here = layer_of(partition, x, words);
  const int alone = size_of(partition->member + here * words, words) == 1;
  const size_t place = below(draw.v[1], 2 * (partition->count - (size_t) alone) + 1), into = place & 1;
  /* the layer it joins, or that its own is to come before, as layers are numbered now */
  const size_t there = place / 2 + (alone && place / 2 >= here);
  if (into ? there == here : alone && place / 2 == here) return 0;
  const size_t from = there < here ? there : here, end = there <= here ? here + 1 : there + into;
  plan_layers(proposal, from, end - from, 0);
  for (size_t c = from; c <= end; c++) {
    uint64_t *fresh = partition->fresh + proposal->fresh * words;
    if (!into && c == there) {
      for (size_t w = 0; w < words; w++) fresh[w] = 0;
      set_bit(fresh, x);
      proposal->fresh++;
      fresh += words;
    }
    if (c == end || (c == here && alone)) continue;
    copy_mask(fresh, partition->member + c * words, words);
    if (c == here) clear_bit(fresh, x);
    if (into && c == there) set_bit(fresh, x);
    proposal->fresh++;
  }
  return 1;
}

/* ln of the probability that a split, once chosen, cuts a layer of `size` nodes into these two parts. */
static WEFT_HD inline double weft_bn_log_cut(const weft_bn_partition *partition, size_t size, size_t part)
{
  const double *f = partition->log_factorial;
  const double choices = weft_sub(f[size], weft_add(f[part], f[size - part]));
  return weft_sub(weft_log(weft_div((double) size, weft_mul((double) partition->p, (double) (size - 1)))), choices);
}

WIDE int propose_join(weft_bn_partition *partition, weft_u32x4 draw, weft_bn_proposal *proposal, size_t words)
{
  if (partition->count < 2) return 0;
  const size_t c = below(draw.v[0], partition->count - 1);
  const uint64_t *one = partition->member + c * words, *two = one + words;
  for (size_t w = 0; w < words; w++) partition->fresh[w] = one[w] | two[w];
  plan_layers(proposal, c, 2, 1);
  proposal->ways = weft_add(weft_bn_log_cut(partition, size_of(partition->fresh, words), size_of(one, words)),
                            weft_log((double) (partition->count - 1)));
  return 1;
}

/* A layer with a probability in proportion to its size, the size of its first part, then the members of that. */
WIDE int propose_split(weft_bn_partition *partition, weft_rng rng, uint64_t step, weft_u32x4 draw,
                       weft_bn_proposal *proposal, size_t words)
{
  const size_t c = layer_of(partition, (int32_t) below(draw.v[0], partition->p), words);
  const uint64_t *whole = partition->member + c * words;
  const size_t size = size_of(whole, words);
  if (size == 1) return 0;
  const size_t part = 1 + below(draw.v[1], size - 1);
  size_t wanted = part, seen = 0;
  weft_u32x4 drawn = { { 0, 0, 0, 0 } };
  for (size_t w = 0; w < words; w++) partition->fresh[w] = 0;
  for (size_t w = 0; w < words && wanted; w++)
    for (uint64_t word = whole[w]; word && wanted; word &= word - 1, seen++) {
      if (seen % 4 == 0) drawn = weft_draw_words(rng, step, WEFT_BN_BLOCK_MEMBERS + (uint32_t) (seen / 4));
      if (below(drawn.v[seen % 4], size - seen) >= wanted) continue;
      set_bit(partition->fresh, (int32_t) (64 * w) + lowest_of(word));
      wanted--;
    }
  for (size_t w = 0; w < words; w++) partition->fresh[words + w] = whole[w] & ~partition->fresh[w];
  plan_layers(proposal, c, 1, 2);
  proposal->ways = weft_sub(0, weft_add(weft_bn_log_cut(partition, size, part), weft_log((double) partition->count)));
  return 1;
}

WIDE int weft_bn_propose_layers(weft_bn_partition *partition, weft_rng rng, uint64_t step, uint32_t kind,
                                weft_u32x4 draw, weft_bn_proposal *proposal, size_t words)
{
  if (kind < 1) return propose_swap(partition, draw, proposal, words);
  if (kind < 2) return propose_adjacent(partition, draw, proposal, words);
  if (kind < 6) return propose_shift(partition, draw, proposal, words);
  if (kind < 7) return propose_join(partition, draw, proposal, words);
  return propose_split(partition, rng, step, draw, proposal, words);
}
