/* Chains over graphs, for a prior that is uniform over them. The state is a set of parents for each node. A step is a
 * sweep:
 *   renew    every node in turn gets new parents, drawn given all other nodes' parents: sets with none of its
 *            descendants, by their weights
 *   turn     after each renewal, two places of parents are drawn; an edge that stands there is turned around, and both
 *            its nodes keep their other parents
 *   reverse  after every REVERSE_EACH renewals, such an edge is reversed, and both its nodes get new parents
 *            (Grzegorczyk and Husmeier 2008)
 * A place is a node and one of as many parents as the largest set has: any edge is chosen with the same probability in
 * every graph. Heated chains have each graph's weight to the power of beta; proposals do not, so that a renewal is
 * accepted by the ratio to the power of beta - 1.
 *
 * To renew: sets that weigh much but cannot be taken mostly have one of the node's strong children, which much of the
 * weight of its sets asks for. A table of the sets without these, best first with sums of their weights, is kept for
 * the last few sets of strong children that each node had. A set is drawn from it, again if it has another descendant,
 * and at last from all sets that fit: always with its probability among these. The weights of sets that are DEEP_NATS
 * worse than the table's best one are left out. What is kept changes no draw. */
/* Build: shared. */
#include <math.h>
#include "bn/cpu/chains/chain.h"
#include "bn/cpu/chains/graphs.h"
#include "bn/cpu/chains/order_by_sum.h"
#include "bn/both/joint.h"

#define SLOTS 4         /* of a node, each for one set of strong children */
#define KEPT 512        /* sums in a slot, after every set or after some */
#define LIGHTEST 1e-280 /* weights that are DEEP_NATS less are numbers still */
#define STRONG 0.1      /* share of the weights */
#define ROUNDS 3        /* in which strong nodes are found */
#define ATTEMPTS 48     /* draws from a slot */
#define DEEP_NATS 28.0  /* exp(-28) is 7e-13 of the first term */
#define REVERSE_EACH 16 /* renewals */

enum { RENEW, TURN, REVERSE, TURNS, REVERSALS }; /* accepted by kind; tried */
/* Blocks of random words within a step, for each node: a renewal, turns, a reversal, and its sets. */
enum { BLOCK_RENEW, BLOCK_TURN = ATTEMPTS, BLOCK_REVERSE = BLOCK_TURN + 2, BLOCK_SETS, BLOCKS = BLOCK_SETS + 1 };

typedef struct slot {
  int filled;
  int32_t count;  /* sums that are kept */
  int32_t first;  /* the best set: its score is what weights are relative to */
  double total;   /* of the weights of all that fit */
  double *reach;  /* KEPT: sums of weights before a set */
  int32_t *which; /* KEPT: that set, a number within the node's own */
} slot;

struct weft_bn_graph {
  slot *slots;        /* p × SLOTS */
  uint64_t *children; /* p × SLOTS × words: the strong children for which a slot is */
  uint64_t *room;     /* 8 × words: sets of nodes */
};

/* ---- set-up ---- */

/* Where a set is looked for first. */
WIDE size_t hash_of_set(size_t node, const uint64_t *mask, size_t words)
{
  uint64_t hash = node + 1;
  for (size_t w = 0; w < words; w++) {
    hash = (hash ^ mask[w]) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 29;
  }
  return (size_t) (hash ^ hash >> 32);
}

/* The nodes that have more than STRONG of the weight of a node's sets; then again of its sets without these. `share`: p
 * numbers. */
static void find_strong(const weft_bn_lists *lists, size_t node, uint64_t *strong, double *share)
{
  const weft_bn_table *table = lists->table;
  const size_t words = lists->words;
  memset(strong, 0, words * sizeof *strong);
  for (int round = 0; round < ROUNDS; round++) {
    double total = 0;
    int64_t first = -1;
    for (size_t other = 0; other < lists->p; other++) share[other] = 0;
    for (int64_t k = table->start[node]; k < table->start[node + 1]; k++) {
      const uint64_t *mask = table->mask + (size_t) k * words;
      if (meets(mask, strong, words)) continue;
      if (first < 0) first = k;
      if ((double) (table->score[first] - table->score[k]) > DEEP_NATS * lists->unit) break;
      const double weight = weft_exp((double) (table->score[k] - table->score[first]) / lists->unit);
      total += weight;
      for (size_t w = 0; w < words; w++)
        for (uint64_t word = mask[w]; word; word &= word - 1) share[64 * w + (size_t) __builtin_ctzll(word)] += weight;
    }
    for (size_t other = 0; other < lists->p; other++)
      if (share[other] > STRONG * total) set_bit(strong, (int32_t) other);
  }
}

/* Finds, in `mem`, strong nodes, relative weights, and where each set stands in the index. */
weft_status weft_bn_graphs_prepare(weft_ctx *ctx, weft_arena *mem, weft_bn_lists *lists)
{
  weft_status st = WEFT_OK;
  const weft_bn_table *table = lists->table;
  const size_t p = lists->p, words = lists->words, sets = (size_t) table->start[p];
  size_t room = 64;
  double *share;
  while (room < 2 * sets) room *= 2;
  lists->index_last = room - 1;
  lists->largest = 0;
  WEFT_TAKE0(lists->index, mem, room);
  WEFT_TAKE(lists->strong, mem, p * words);
  WEFT_TAKE(lists->light, mem, sets);
  WEFT_TAKE(share, mem, p);
  for (size_t node = 0; node < p; node++) {
    WEFT_TRY(weft_poll(ctx, 0, 1));
    find_strong(lists, node, lists->strong + node * words, share);
    for (int64_t k = table->start[node]; k < table->start[node + 1]; k++) {
      const uint64_t *mask = table->mask + (size_t) k * words;
      lists->light[k] = weft_exp((double) (table->score[k] - table->score[table->start[node]]) / lists->unit);
      size_t at = hash_of_set(node, mask, words) & lists->index_last, size = 0;
      while (lists->index[at]) at = (at + 1) & lists->index_last;
      lists->index[at] = (uint32_t) k + 1;
      for (size_t w = 0; w < words; w++) size += (size_t) __builtin_popcountll(mask[w]);
      if (size > lists->largest) lists->largest = size;
    }
  }
done:
  return st;
}

/* Gives a replica empty slots and work space, in `mem`. */
weft_status weft_bn_graphs_make(weft_arena *mem, const weft_bn_lists *lists, weft_bn_replica *replica)
{
  weft_status st = WEFT_OK;
  const size_t p = lists->p, words = lists->words;
  weft_bn_graph *graph;
  double *reach;
  int32_t *which;
  WEFT_TAKE0(graph, mem, 1);
  WEFT_TAKE0(graph->slots, mem, p * SLOTS);
  WEFT_TAKE0(graph->children, mem, p * SLOTS * words);
  WEFT_TAKE(graph->room, mem, 8 * words);
  WEFT_TAKE(reach, mem, p * SLOTS * KEPT);
  WEFT_TAKE(which, mem, p * SLOTS * KEPT);
  for (size_t k = 0; k < p * SLOTS; k++) {
    graph->slots[k].reach = reach + k * KEPT;
    graph->slots[k].which = which + k * KEPT;
  }
  replica->graph = graph;
done:
  return st;
}

/* ---- graphs ---- */

WIDE const uint64_t *parents_of(const weft_bn_lists *lists, const weft_bn_replica *replica, size_t node, size_t words)
{
  return lists->table->mask + (size_t) (lists->table->start[node] + replica->pick[node]) * words;
}

WIDE int64_t score_of(const weft_bn_lists *lists, size_t node, int32_t pick)
{
  return lists->table->score[lists->table->start[node] + pick];
}

/* Set `pick` as the parents of `node`: its score and its parents' children change with it. */
WIDE void give_parents(const weft_bn_lists *lists, weft_bn_replica *replica, size_t node, int32_t pick, size_t words)
{
  const uint64_t *old = parents_of(lists, replica, node, words);
  replica->score += score_of(lists, node, pick) - score_of(lists, node, replica->pick[node]);
  for (size_t w = 0; w < words; w++)
    for (uint64_t word = old[w]; word; word &= word - 1)
      clear_bit(replica->children + (64 * w + (size_t) __builtin_ctzll(word)) * words, (int32_t) node);
  replica->pick[node] = pick;
  const uint64_t *own = parents_of(lists, replica, node, words);
  for (size_t w = 0; w < words; w++)
    for (uint64_t word = own[w]; word; word &= word - 1)
      set_bit(replica->children + (64 * w + (size_t) __builtin_ctzll(word)) * words, (int32_t) node);
}

/* The number of a node's set with these members, or -1. */
WIDE int32_t find_set(const weft_bn_lists *lists, size_t node, const uint64_t *mask, size_t words)
{
  const weft_bn_table *table = lists->table;
  for (size_t at = hash_of_set(node, mask, words) & lists->index_last; lists->index[at];
       at = (at + 1) & lists->index_last) {
    const int64_t k = (int64_t) lists->index[at] - 1;
    const uint64_t *other = table->mask + (size_t) k * words;
    uint64_t differs = k < table->start[node] || k >= table->start[node + 1];
    for (size_t w = 0; w < words; w++) differs |= other[w] ^ mask[w];
    if (!differs) return (int32_t) (k - table->start[node]);
  }
  return -1;
}

/* x and its descendants, where neither edges into `orphan` count nor edges into `other`; -1 for none. */
WIDE void descendants(const weft_bn_replica *replica, int32_t x, int32_t orphan, int32_t other, uint64_t *out,
                      uint64_t *left, size_t words)
{
  memset(out, 0, words * sizeof *out);
  memset(left, 0, words * sizeof *left);
  set_bit(out, x);
  set_bit(left, x);
  for (size_t w = 0; w < words;) {
    if (!left[w]) {
      w++;
      continue;
    }
    const size_t node = 64 * w + (size_t) __builtin_ctzll(left[w]);
    const uint64_t *children = replica->children + node * words;
    left[w] &= left[w] - 1;
    size_t next = w;
    for (size_t u = 0; u < words; u++) {
      uint64_t fresh = children[u] & ~out[u];
      if (orphan >= 0 && (size_t) orphan / 64 == u) fresh &= ~(UINT64_C(1) << (orphan & 63));
      if (other >= 0 && (size_t) other / 64 == u) fresh &= ~(UINT64_C(1) << (other & 63));
      out[u] |= fresh;
      left[u] |= fresh;
      if (fresh && u < next) next = u;
    }
    w = next;
  }
}

/* ---- renewals ---- */

/* The weight of set k, relative to the node's best set, or to set `first` if that is too light for it. */
static inline double weight_of(const weft_bn_lists *lists, size_t node, int32_t first, int32_t k)
{
  const double *light = lists->light + lists->table->start[node];
  if (light[first] > LIGHTEST) return light[k];
  return weft_exp((double) (score_of(lists, node, k) - score_of(lists, node, first)) / lists->unit);
}

/* The next set from `k` on without any of `children`, or the number of sets. A node's strong children are never all
 * that it can do without: they are descendants, and there is a set without descendants. */
WIDE int32_t next_without(const weft_bn_lists *lists, size_t node, const uint64_t *children, int32_t k, size_t words)
{
  const int64_t start = lists->table->start[node];
  const int32_t sets = (int32_t) (lists->table->start[node + 1] - start);
  while (k < sets && meets(lists->table->mask + (size_t) (start + k) * words, children, words)) k++;
  return k;
}

/* Fills a slot with sums of the weights of the node's sets without any of `children`, best set first. */
WIDE void fill_slot(const weft_bn_lists *lists, size_t node, const uint64_t *children, slot *out, size_t words)
{
  const int32_t sets = (int32_t) (lists->table->start[node + 1] - lists->table->start[node]);
  const int64_t deep = (int64_t) (DEEP_NATS * lists->unit);
  const int32_t each = (sets + KEPT - 1) / KEPT;
  int32_t seen = 0;
  out->filled = 1;
  out->count = 0;
  out->total = 0;
  out->first = next_without(lists, node, children, 0, words);
  for (int32_t k = out->first; k < sets && score_of(lists, node, out->first) - score_of(lists, node, k) <= deep;
       k = next_without(lists, node, children, k + 1, words)) {
    if (seen++ % each == 0) {
      out->reach[out->count] = out->total;
      out->which[out->count++] = k;
    }
    out->total += weight_of(lists, node, out->first, k);
  }
}

/* The table for the node's present children; *children gets those that it is for. */
WIDE const slot *slot_for(const weft_bn_lists *lists, const weft_bn_replica *replica, size_t node,
                          const uint64_t **children, size_t words)
{
  uint64_t wanted[words ? words : 1], differs = 0;
  for (size_t w = 0; w < words; w++) wanted[w] = replica->children[node * words + w] & lists->strong[node * words + w];
  const size_t number = node * SLOTS + hash_of_set(node, wanted, words) % SLOTS;
  uint64_t *own = replica->graph->children + number * words;
  slot *found = &replica->graph->slots[number];
  for (size_t w = 0; w < words; w++) differs |= own[w] ^ wanted[w];
  *children = own;
  if (differs || !found->filled) {
    memcpy(own, wanted, words * sizeof *own);
    fill_slot(lists, node, own, found, words);
  }
  return found;
}

/* The last sum that is not above the draw, and from there set by set. */
WIDE int32_t draw_from(const weft_bn_lists *lists, size_t node, const slot *from, const uint64_t *children,
                       double uniform, size_t words)
{
  const int32_t sets = (int32_t) (lists->table->start[node + 1] - lists->table->start[node]);
  const double wanted = uniform * from->total;
  int32_t low = 0, high = from->count;
  while (high - low > 1) {
    const int32_t middle = (low + high) / 2;
    if (from->reach[middle] <= wanted)
      low = middle;
    else
      high = middle;
  }
  int32_t k = from->which[low];
  double reached = from->reach[low];
  for (;;) {
    reached += weight_of(lists, node, from->first, k);
    if (reached > wanted) return k;
    const int32_t next = next_without(lists, node, children, k + 1, words);
    if (next >= sets) return k; /* rounding */
    k = next;
  }
}

/* The parents of `node` anew. Returns whether they changed. */
WIDE int renew(const weft_bn_lists *lists, weft_bn_replica *replica, weft_rng rng, uint64_t step, size_t node,
               double heat, size_t words)
{
  const uint64_t *children;
  const slot *from = slot_for(lists, replica, node, &children, words);
  const uint32_t block = (uint32_t) node * BLOCKS + BLOCK_RENEW;
  uint64_t *below = replica->graph->room, *left = below + words;
  int32_t pick = -1;
  for (uint32_t k = 0; k < ATTEMPTS && pick < 0; k++) {
    const weft_u32x4 draw = weft_draw_words(rng, step, block + k);
    const int32_t drawn = draw_from(lists, node, from, children, weft_u01(draw.v[0], draw.v[1]), words);
    if (drawn == replica->pick[node]) return 0;
    if (k == 0) descendants(replica, (int32_t) node, -1, -1, below, left, words);
    if (!meets(lists->table->mask + (size_t) (lists->table->start[node] + drawn) * words, below, words)) pick = drawn;
  }
  if (pick < 0) {
    const weft_u32x4 draw = weft_draw_words(rng, step, block);
    for (size_t w = 0; w < words; w++) left[w] = ~below[w];
    pick = weft_bn_draw_set(lists, node, left, NULL, weft_bn_node_value(lists, node, left, NULL),
                            weft_u01(draw.v[2], draw.v[3]));
    if (pick == replica->pick[node]) return 0;
  }
  if (heat < 0) {
    const weft_u32x4 draw = weft_draw_words(rng, step, block + ATTEMPTS - 1);
    const double gain = (double) (score_of(lists, node, pick) - score_of(lists, node, replica->pick[node]));
    if (!weft_bn_accept(heat, gain, draw)) return 0;
  }
  give_parents(lists, replica, node, pick, words);
  return 1;
}

/* ---- edges ---- */

/* The edge at a drawn place: 0 if there is none. */
WIDE int edge_at(const weft_bn_lists *lists, const weft_bn_replica *replica, uint32_t one, uint32_t two, int32_t *from,
                 int32_t *to, size_t words)
{
  const size_t child = (size_t) ((uint64_t) one * lists->p >> 32);
  size_t place = (size_t) ((uint64_t) two * lists->largest >> 32);
  const uint64_t *parents = parents_of(lists, replica, child, words);
  for (size_t w = 0; w < words; w++) {
    const size_t here = (size_t) __builtin_popcountll(parents[w]);
    uint64_t word = parents[w];
    if (place >= here) {
      place -= here;
      continue;
    }
    while (place--) word &= word - 1;
    *from = (int32_t) (64 * w) + __builtin_ctzll(word);
    *to = (int32_t) child;
    return 1;
  }
  return 0;
}

/* x -> y becomes y -> x; both keep their other parents. `scale`: beta, a unit of scores. */
WIDE int turn(const weft_bn_lists *lists, weft_bn_replica *replica, int32_t x, int32_t y, double scale, weft_u32x4 draw,
              size_t words)
{
  uint64_t *mask = replica->graph->room, *below = mask + words, *left = below + words;
  memcpy(mask, parents_of(lists, replica, (size_t) y, words), words * sizeof *mask);
  clear_bit(mask, x);
  const int other_parents = any_bit(mask, words);
  const int32_t of_y = find_set(lists, (size_t) y, mask, words);
  if (of_y < 0) return 0;
  memcpy(mask, parents_of(lists, replica, (size_t) x, words), words * sizeof *mask);
  set_bit(mask, y);
  const int32_t of_x = find_set(lists, (size_t) x, mask, words);
  if (of_x < 0) return 0;
  const int64_t gain = score_of(lists, (size_t) x, of_x) - score_of(lists, (size_t) x, replica->pick[x]) +
                       score_of(lists, (size_t) y, of_y) - score_of(lists, (size_t) y, replica->pick[y]);
  if (!weft_bn_accept(scale, (double) gain, draw)) return 0;
  if (other_parents) { /* another way from x to y? */
    descendants(replica, x, y, -1, below, left, words);
    memcpy(mask, parents_of(lists, replica, (size_t) y, words), words * sizeof *mask);
    clear_bit(mask, x);
    if (meets(mask, below, words)) return 0;
  }
  give_parents(lists, replica, (size_t) y, of_y, words);
  give_parents(lists, replica, (size_t) x, of_x, words);
  return 1;
}

/* x -> y: both lose their parents, x gets new ones with y among them, then y. The reverse move draws y's parents with x
 * among them, then x's. */
WIDE int reverse(const weft_bn_lists *lists, weft_bn_replica *replica, weft_rng rng, uint64_t step, uint32_t block,
                 int32_t x, int32_t y, double heat, weft_u32x4 draw, size_t words)
{
  uint64_t *for_x = replica->graph->room, *for_y = for_x + words, *both = for_y + words, *left = both + words,
           *only_x = left + words, *only_y = only_x + words;
  descendants(replica, x, x, y, for_x, left, words);
  descendants(replica, y, x, y, for_y, left, words);
  memset(only_x, 0, words * sizeof *only_x);
  memset(only_y, 0, words * sizeof *only_y);
  set_bit(only_x, x);
  set_bit(only_y, y);
  for (size_t w = 0; w < words; w++) {
    for_x[w] = ~for_x[w];
    for_y[w] = ~for_y[w];
    both[w] = for_x[w] & for_y[w];
  }
  const int64_t x_there = weft_bn_node_value(lists, (size_t) x, for_x, only_y);
  if (x_there == WEFT_BN_NEVER) return 0;
  const int64_t y_there = weft_bn_node_value(lists, (size_t) y, both, NULL);
  if (y_there == WEFT_BN_NEVER) return 0;
  const int64_t y_back = weft_bn_node_value(lists, (size_t) y, for_y, only_x);
  const int64_t x_back = weft_bn_node_value(lists, (size_t) x, both, NULL);
  const weft_u32x4 sets = weft_draw_words(rng, step, block);
  const double ways = (double) (x_there - y_back + (y_there - x_back)) / lists->unit;
  int32_t of_x = 0, of_y = 0;
  double more = 0;
  if (heat < 0 || weft_bn_accept(1, ways, draw)) {
    of_x = weft_bn_draw_set(lists, (size_t) x, for_x, only_y, x_there, weft_u01(sets.v[0], sets.v[1]));
    of_y = weft_bn_draw_set(lists, (size_t) y, both, NULL, y_there, weft_u01(sets.v[2], sets.v[3]));
  } else {
    return 0;
  }
  if (heat < 0) {
    more = heat * (double) (score_of(lists, (size_t) x, of_x) - score_of(lists, (size_t) x, replica->pick[x]) +
                            score_of(lists, (size_t) y, of_y) - score_of(lists, (size_t) y, replica->pick[y]));
    if (!weft_bn_accept(1, weft_add(ways, more), draw)) return 0;
  }
  give_parents(lists, replica, (size_t) x, of_x, words);
  give_parents(lists, replica, (size_t) y, of_y, words);
  return 1;
}

/* ---- steps ---- */

/* Sweeps first .. first + count - 1. */
WIDE void steps(const weft_bn_lists *lists, weft_bn_replica *replica, weft_rng rng, double beta, uint64_t first,
                size_t count, size_t words)
{
  const double scale = beta / lists->unit, heat = (beta - 1) / lists->unit;
  double *counts = replica->accepted;
  int32_t from, to;
  for (uint64_t step = first; step < first + count; step++) {
    counts[WEFT_BN_MAX_MOVES]++;
    for (size_t node = 0; node < lists->p; node++) {
      const uint32_t block = (uint32_t) node * BLOCKS;
      counts[RENEW] += renew(lists, replica, rng, step, node, heat, words);
      for (uint32_t k = 0; k < 2; k++) {
        const weft_u32x4 draw = weft_draw_words(rng, step, block + BLOCK_TURN + k);
        if (!edge_at(lists, replica, draw.v[0], draw.v[1], &from, &to, words)) continue;
        counts[TURNS]++;
        counts[TURN] += turn(lists, replica, from, to, scale, draw, words);
      }
      if ((step * lists->p + node) % REVERSE_EACH) continue;
      const weft_u32x4 draw = weft_draw_words(rng, step, block + BLOCK_REVERSE);
      if (!edge_at(lists, replica, draw.v[0], draw.v[1], &from, &to, words)) continue;
      counts[REVERSALS]++;
      counts[REVERSE] += reverse(lists, replica, rng, step, block + BLOCK_SETS, from, to, heat, draw, words);
    }
  }
}

WEFT_BN_STEPS(steps_2, 2)
WEFT_BN_STEPS(steps_any, lists->words)

/* Children and score from the picks. */
static void start(const weft_bn_lists *lists, weft_bn_replica *replica)
{
  const size_t words = lists->words;
  memset(replica->children, 0, lists->p * words * sizeof *replica->children);
  replica->score = 0;
  for (size_t node = 0; node < lists->p; node++) {
    const uint64_t *own = parents_of(lists, replica, node, words);
    replica->score += score_of(lists, node, replica->pick[node]);
    for (size_t w = 0; w < words; w++)
      for (uint64_t word = own[w]; word; word &= word - 1)
        set_bit(replica->children + (64 * w + (size_t) __builtin_ctzll(word)) * words, (int32_t) node);
  }
}

weft_bn_kernel weft_bn_graphs_kernel(size_t words)
{
  return (weft_bn_kernel){ start, words == 2 ? steps_2 : steps_any };
}

/* ---- to start from, and to go on from ---- */

void weft_bn_graphs_draw(const weft_bn_lists *lists, weft_bn_replica *replica, weft_rng rng, uint64_t first)
{
  for (size_t node = 0; node < lists->p; node++) {
    const uint64_t *before = replica->before + node * lists->words;
    replica->pick[node] = weft_bn_draw_set(lists, node, before, NULL, weft_bn_node_value(lists, node, before, NULL),
                                           weft_draw_uniform(rng, first + node));
  }
}

/* Places nodes whose parents are placed, round by round, until a round places none. */
int weft_bn_graphs_sort(const weft_bn_lists *lists, weft_bn_replica *replica)
{
  const size_t p = lists->p, words = lists->words;
  uint64_t *placed = replica->graph->room, *rest = placed + words;
  size_t at = 0;
  memset(placed, 0, words * sizeof *placed);
  memset(rest, 0, words * sizeof *rest);
  for (size_t node = 0; node < p; node++) set_bit(rest, (int32_t) node);
  for (size_t before = p; at < p && at != before;) {
    before = at;
    for (size_t w = 0; w < words; w++)
      for (uint64_t word = rest[w]; word; word &= word - 1) {
        const size_t node = 64 * w + (size_t) __builtin_ctzll(word);
        if (!fits(parents_of(lists, replica, node, words), placed, words)) continue;
        memcpy(replica->before + node * words, placed, words * sizeof *placed);
        replica->order[at++] = (int32_t) node;
        set_bit(placed, (int32_t) node);
        clear_bit(rest, (int32_t) node);
      }
  }
  return at == p;
}

weft_status weft_bn_graphs_read(weft_ctx *ctx, const weft_bn_lists *lists, weft_bn_replica *replica,
                                const int32_t *pick)
{
  const int64_t *begin = lists->table->start;
  for (size_t node = 0; node < lists->p; node++) {
    if (pick[node] < 0 || pick[node] >= begin[node + 1] - begin[node])
      return weft_fail(ctx, WEFT_ERR_INPUT, "The saved graphs have parent sets that the table lacks.");
    replica->pick[node] = pick[node];
  }
  if (!weft_bn_graphs_sort(lists, replica)) return weft_fail(ctx, WEFT_ERR_INPUT, "The saved graphs have a cycle.");
  return WEFT_OK;
}
