/* Chains over orders where an order is worth its best graph. A node's sets are sorted, best first: its best set given
 * the predecessors is the first that fits. Where predecessors were only gained the search ends at the present set,
 * where they were only lost it begins there. A node that loses x is examined only when its best set has x, and one that
 * gains y only when it has a set with y and its best set is not the first of its list. */
/* Build: shared. */
#include "bn/cpu/chains/chain.h"
#include "bn/cpu/chains/draws.h"
#include "bn/cpu/chains/order_by_best_graph.h"

#define MAX_WORDS 64 /* words per mask: 4,096 nodes */

typedef struct change {
  int32_t node, pick;
} change;
typedef struct proposal {
  int64_t score;
  uint64_t hash;
  size_t changes;
  int possible;
} proposal;

/* `node` with new predecessors. `lost`: it may have lost some that its present set needs; `gained`: it has new ones. */
WIDE void propose(const weft_bn_lists *lists, const weft_bn_replica *replica, int32_t node, const uint64_t *before,
                  int lost, int gained, proposal *out, change *changes, size_t words, int fast)
{
  const weft_bn_table *table = lists->table;
  const uint64_t *sets = table->mask + (size_t) table->start[node] * words;
  const int64_t *score = table->score + table->start[node];
  const int32_t now = replica->pick[node], count = (int32_t) (table->start[node + 1] - table->start[node]);
  int32_t pick = now;
  if (lost && !fits(sets + (size_t) now * words, before, words)) {
    pick = weft_bn_find_fit(sets, gained ? 0 : now + 1, count, before, words, fast);
    if (pick == count) out->possible = 0;
  } else if (gained) {
    pick = weft_bn_find_fit(sets, 0, now, before, words, fast);
  }
  if (pick == now || !out->possible) return;
  out->score += score[pick] - score[now];
  out->hash += weft_bn_pick_hash((size_t) node, pick) - weft_bn_pick_hash((size_t) node, now);
  changes[out->changes++] = (change){ node, pick };
}

/* Marks `node`, or its absence, at every parent of its set `pick`. */
WIDE void mark_children(const weft_bn_lists *lists, weft_bn_replica *replica, int32_t node, int32_t pick, int there,
                        size_t words)
{
  const uint64_t *set = lists->table->mask + (size_t) (lists->table->start[node] + pick) * words;
  for (size_t w = 0; w < words; w++)
    for (uint64_t word = set[w]; word; word &= word - 1) {
      uint64_t *children = replica->children + (64 * w + (size_t) __builtin_ctzll(word)) * words;
      if (there)
        set_bit(children, node);
      else
        clear_bit(children, node);
    }
}

WIDE void take_set(const weft_bn_lists *lists, weft_bn_replica *replica, int32_t node, int32_t pick, size_t words)
{
  mark_children(lists, replica, node, replica->pick[node], 0, words);
  mark_children(lists, replica, node, pick, 1, words);
  replica->pick[node] = pick;
  if (pick)
    set_bit(replica->improvable, node);
  else
    clear_bit(replica->improvable, node);
}

static void remember(weft_bn_best *best, const weft_bn_replica *replica, size_t p, const proposal *proposed,
                     const change *changes, uint64_t stamp, int32_t *picks)
{
  memcpy(picks, replica->pick, p * sizeof *picks);
  for (size_t k = 0; k < proposed->changes; k++) picks[changes[k].node] = changes[k].pick;
  weft_bn_best_add(best, p, proposed->score, proposed->hash, stamp, picks);
}

/* One Metropolis step: proposes a move, finds the new best set of every node that may need one, and keeps the move
 * or drops it. A graph good enough for the best list is added to it even when the move is rejected. */
WIDE void step(const weft_bn_lists *lists, weft_bn_replica *replica, weft_u32x4 draw, double scale, weft_bn_best *best,
               uint64_t stamp, change *changes, int32_t *picks, size_t words, int fast)
{
  uint64_t mid[words ? words : 1], fresh[words ? words : 1];
  const weft_bn_move move = weft_bn_choose_move(replica->order, lists->p, draw);
  const uint64_t *losers = move.lost < 0 ? NULL : replica->children + (size_t) move.lost * words;
  const uint64_t *winners = move.gained < 0 ? NULL : lists->users + (size_t) move.gained * words;
  const int right = move.lost == move.x; /* x moves to the right: it only gains */
  proposal proposed = { replica->score, replica->hash, 0, 1 };
  replica->accepted[WEFT_BN_MAX_MOVES]++;
  between(replica, &move, mid, words);
  for (size_t w = 0; w < words; w++)
    for (uint64_t word = mid[w] & ((losers ? losers[w] : 0) | (winners ? winners[w] & replica->improvable[w] : 0));
         word && proposed.possible; word &= word - 1) {
      const int32_t node = (int32_t) (64 * w) + __builtin_ctzll(word);
      after_between(replica, &move, node, fresh, words);
      propose(lists, replica, node, fresh, move.lost >= 0, move.gained >= 0, &proposed, changes, words, fast);
    }
  after_x(replica, &move, mid, fresh, words);
  propose(lists, replica, move.x, fresh, !right, right, &proposed, changes, words, fast);
  if (move.kind != WEFT_BN_SHIFT) {
    after_y(replica, &move, mid, fresh, words);
    propose(lists, replica, move.y, fresh, 1, 0, &proposed, changes, words, fast);
  }
  if (!proposed.possible) return;
  if (proposed.changes && weft_bn_best_wants(best, proposed.score, proposed.hash, stamp))
    remember(best, replica, lists->p, &proposed, changes, stamp, picks);
  if (!weft_bn_accept(scale, (double) (proposed.score - replica->score), draw)) return;
  replica->accepted[move.kind]++;
  replica->score = proposed.score;
  replica->hash = proposed.hash;
  for (size_t k = 0; k < proposed.changes; k++) take_set(lists, replica, changes[k].node, changes[k].pick, words);
  make_move(replica, &move, mid, words, fast);
}

WIDE void steps(const weft_bn_lists *lists, weft_bn_replica *replica, weft_rng rng, double beta, uint64_t first,
                size_t count, weft_bn_best *best, uint64_t stamp, size_t words, int fast)
{
  change changes[64 * MAX_WORDS];
  int32_t picks[64 * MAX_WORDS];
  weft_u32x4 draws[8];
  const double scale = beta / lists->unit;
  for (size_t k = 0; k < count; k++) {
    if (k % 8 == 0) weft_bn_draw_eight(rng, first + k, draws);
    step(lists, replica, draws[k % 8], scale, best, stamp + weft_bn_stamp(k, 0), changes, picks, words, fast);
  }
}

static void start(const weft_bn_lists *lists, weft_bn_replica *replica)
{
  replica->score = weft_bn_best_graph(lists, replica->before, replica->pick);
  replica->hash = 0;
  memset(replica->children, 0, lists->p * lists->words * sizeof *replica->children);
  memset(replica->improvable, 0, lists->words * sizeof *replica->improvable);
  for (size_t node = 0; node < lists->p; node++) {
    replica->hash += weft_bn_pick_hash(node, replica->pick[node]);
    take_set(lists, replica, (int32_t) node, replica->pick[node], lists->words);
  }
}

#define KERNEL(name, words, fast) \
  static void name(const weft_bn_lists *lists, weft_bn_replica *replica, weft_rng rng, double beta, uint64_t first, \
                   size_t count, weft_bn_best *best, uint64_t stamp) \
  { \
    steps(lists, replica, rng, beta, first, count, best, stamp, words, fast); \
  }
KERNEL(steps_1, 1, 0)
KERNEL(steps_2, 2, 0)
KERNEL(steps_any, lists->words, 0)
#if WEFT_SIMD_X86
WEFT_TARGET_AVX512 KERNEL(steps_1_avx512, 1, 1)
#endif

weft_bn_kernel weft_bn_max_kernel(size_t words)
{
#if WEFT_SIMD_X86
  if (words == 1 && weft_simd_level() == WEFT_SIMD_AVX512) return (weft_bn_kernel){ start, steps_1_avx512 };
#endif
  return (weft_bn_kernel){ start, words == 1 ? steps_1 : words == 2 ? steps_2 : steps_any };
}
