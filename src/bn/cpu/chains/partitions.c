/* Chains over ordered partitions of the nodes into layers, for a prior that is uniform over graphs (Kuipers and Moffa
 * 2017). The nodes of the first layer have no parents; those of any other have parents in earlier layers, at least one
 * of them in the layer just before. Each graph has one such partition, which is worth the sum over its graphs: a
 * product over nodes of Σ exp(score of the sets within the earlier layers that meet the last of these). Such sums are
 * computed afresh, set by set (order_by_sum.c): nothing is subtracted, so that nothing cancels.
 *
 * Moves, each with its probability in sixteenths:
 *   swap     1  two nodes of different layers change places
 *   adjacent 1  the same of neighbouring layers
 *   shift    4  a node goes into another layer, or becomes a layer of its own
 *   split    2  a layer becomes two, or two neighbours become one
 *   reverse  4  a graph is drawn; an edge of it is reversed, and both its nodes get new parents (Grzegorczyk and
 *               Husmeier 2008)
 *   renew    4  a graph is drawn; a node gets new parents among all nodes but its descendants
 * The graph is drawn with its conditional probability given the present partition, so that a change of it that leaves
 * the posterior of graphs invariant leaves that of partitions invariant. The last move makes every graph reachable:
 * each node in turn can be given what all its sets have in common. A heated chain's partitions have their weight to the
 * power of beta; given the partition, graphs have their own weights, and a change of the graph is accepted by the
 * partitions' ratio to the power of beta - 1. */
/* Build: shared. */
#include <math.h>
#include "bn/cpu/chains/chain.h"
#include "bn/cpu/chains/order_by_sum.h"
#include "bn/cpu/chains/partitions.h"
#include "bn/both/partition_moves.h"

#define MEMORY_SLOTS 4096

/* Values of nodes that were asked for recently; `node` is from 1, 0 where there is none. */
typedef struct value_memory {
  uint64_t *key;
  uint32_t *node;
  int64_t *value;
} value_memory;

struct weft_bn_layers {
  weft_bn_partition now;
  uint64_t *last;    /* p × words: the layer before a node's own */
  uint64_t *parents; /* p × words: of a drawn graph */
  uint64_t *room;    /* 5 × words: sets of nodes */
  int32_t *node;     /* p: nodes that change, with their values */
  int64_t *value;
  value_memory memory;
};

/* ---- set-up ---- */

weft_status weft_bn_layers_prepare(weft_arena *mem, weft_bn_lists *lists)
{
  weft_status st = WEFT_OK;
  const weft_bn_table *table = lists->table;
  const size_t p = lists->p, words = lists->words;
  WEFT_TAKE0(lists->offered, mem, p * words);
  WEFT_TAKE(lists->log_factorial, mem, p + 1);
  for (size_t node = 0; node < p; node++)
    for (int64_t k = table->start[node]; k < table->start[node + 1]; k++)
      for (size_t w = 0; w < words; w++) lists->offered[node * words + w] |= table->mask[(size_t) k * words + w];
  lists->log_factorial[0] = 0;
  for (size_t k = 1; k <= p; k++) lists->log_factorial[k] = weft_add(lists->log_factorial[k - 1], weft_log((double) k));
done:
  return st;
}

/* Gives a replica its layers, work space and memory of recent values, in `mem`; no layer is set yet. */
weft_status weft_bn_layers_make(weft_arena *mem, const weft_bn_lists *lists, weft_bn_replica *replica)
{
  weft_status st = WEFT_OK;
  const size_t p = lists->p, words = lists->words;
  weft_bn_layers *layers;
  WEFT_TAKE0(layers, mem, 1);
  layers->now.p = p;
  layers->now.log_factorial = lists->log_factorial;
  WEFT_TAKE(layers->now.member, mem, p * words);
  WEFT_TAKE0(layers->last, mem, p * words);
  WEFT_TAKE(layers->now.fresh, mem, (p + 1) * words);
  WEFT_TAKE(layers->parents, mem, p * words);
  WEFT_TAKE(layers->room, mem, 5 * words);
  WEFT_TAKE(layers->node, mem, p);
  WEFT_TAKE(layers->value, mem, p);
  WEFT_TAKE(layers->memory.key, mem, 2 * words * MEMORY_SLOTS);
  WEFT_TAKE0(layers->memory.node, mem, MEMORY_SLOTS);
  WEFT_TAKE(layers->memory.value, mem, MEMORY_SLOTS);
  replica->layers = layers;
done:
  return st;
}

const uint64_t *weft_bn_layer_before(const weft_bn_lists *lists, const weft_bn_replica *replica, size_t node)
{
  return replica->layers ? replica->layers->last + node * lists->words : NULL;
}

/* ---- values ---- */

/* As weft_bn_node_value(), which depends only on what is offered; recent values are remembered. When `last` is not
 * empty, some of it must be offered. */
WIDE int64_t value_of(const weft_bn_lists *lists, weft_bn_layers *layers, size_t node, const uint64_t *before,
                      const uint64_t *last, size_t words)
{
  const uint64_t *offered = lists->offered + node * words;
  uint64_t hash = node;
  for (size_t w = 0; w < words; w++) {
    hash = (hash ^ (before[w] & offered[w])) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 29 ^ (last[w] & offered[w])) * UINT64_C(0xbf58476d1ce4e5b9);
  }
  const size_t slot = (size_t) (hash >> 40) % MEMORY_SLOTS;
  uint64_t *key = layers->memory.key + 2 * words * slot, different = layers->memory.node[slot] != node + 1;
  for (size_t w = 0; w < words; w++)
    different |= (key[w] ^ (before[w] & offered[w])) | (key[words + w] ^ (last[w] & offered[w]));
  if (!different) return layers->memory.value[slot];
  layers->memory.node[slot] = (uint32_t) node + 1;
  for (size_t w = 0; w < words; w++) {
    key[w] = before[w] & offered[w];
    key[words + w] = last[w] & offered[w];
  }
  return layers->memory.value[slot] = weft_bn_node_value(lists, node, before, last);
}

/* The nodes of one layer after a move: 0 when one of them can have no parents there. Values are asked for where the
 * earlier layers, or the last of these, differ in what is offered. */
WIDE int layer_possible(const weft_bn_lists *lists, const uint64_t *member, const uint64_t *last, size_t words)
{
  if (!any_bit(last, words)) return 1;
  for (size_t w = 0; w < words; w++)
    for (uint64_t word = member[w]; word; word &= word - 1)
      if (!meets(last, lists->offered + (64 * w + (size_t) __builtin_ctzll(word)) * words, words)) return 0;
  return 1;
}

/* Adds to *score what the nodes of one layer gain by being offered `before` and `last`, and lists their new values
 * in the replica's layers. 0 when a node has no set there. */
WIDE int value_layer(const weft_bn_lists *lists, const weft_bn_replica *replica, const uint64_t *member,
                     const uint64_t *before, const uint64_t *last, size_t *changes, int64_t *score, size_t words)
{
  weft_bn_layers *layers = replica->layers;
  for (size_t w = 0; w < words; w++)
    for (uint64_t word = member[w]; word; word &= word - 1) {
      const size_t node = 64 * w + (size_t) __builtin_ctzll(word);
      const uint64_t *old = replica->before + node * words, *old_last = layers->last + node * words,
                     *offered = lists->offered + node * words;
      uint64_t differs = 0;
      for (size_t u = 0; u < words; u++) differs |= ((old[u] ^ before[u]) | (old_last[u] ^ last[u])) & offered[u];
      if (!differs) continue;
      const int64_t value = value_of(lists, layers, node, before, last, words);
      if (value == WEFT_BN_NEVER) return 0;
      *score += value - replica->value[node];
      layers->node[*changes] = (int32_t) node;
      layers->value[(*changes)++] = value;
    }
  return 1;
}

/* Layer c of the partition after the move, and where its parts are: the new layers and the one behind them. */
WIDE const uint64_t *layer_after(const weft_bn_layers *layers, const weft_bn_proposal *proposal, size_t c, size_t words)
{
  return c < proposal->fresh ? layers->now.fresh + c * words
                             : layers->now.member + (proposal->first + proposal->old) * words;
}

static inline size_t layers_touched(const weft_bn_layers *layers, const weft_bn_proposal *proposal)
{
  return proposal->fresh + (proposal->first + proposal->old < layers->now.count);
}

/* Layers earlier than the first new one. */
WIDE void open_layers(const weft_bn_layers *layers, const weft_bn_proposal *proposal, uint64_t *before, uint64_t *last,
                      size_t words)
{
  memset(before, 0, words * sizeof *before);
  memset(last, 0, words * sizeof *last);
  for (size_t c = 0; c < proposal->first; c++)
    for (size_t w = 0; w < words; w++) before[w] |= layers->now.member[c * words + w];
  if (proposal->first) memcpy(last, layers->now.member + (proposal->first - 1) * words, words * sizeof *last);
}

WIDE void pass_layer(const uint64_t *member, uint64_t *before, uint64_t *last, size_t words)
{
  for (size_t w = 0; w < words; w++) {
    before[w] |= member[w];
    last[w] = member[w];
  }
}

/* 0 when the partition has no graphs. */
WIDE int value_proposal(const weft_bn_lists *lists, const weft_bn_replica *replica, const weft_bn_proposal *proposal,
                        size_t *changes, int64_t *score, size_t words)
{
  const weft_bn_layers *layers = replica->layers;
  const size_t touched = layers_touched(layers, proposal);
  uint64_t before[words ? words : 1], last[words ? words : 1];
  open_layers(layers, proposal, before, last, words);
  for (size_t c = 0; c < touched; c++) {
    const uint64_t *member = layer_after(layers, proposal, c, words);
    if (!layer_possible(lists, member, last, words)) return 0;
    memcpy(last, member, words * sizeof *last);
  }
  open_layers(layers, proposal, before, last, words);
  for (size_t c = 0; c < touched; c++) {
    const uint64_t *member = layer_after(layers, proposal, c, words);
    if (!value_layer(lists, replica, member, before, last, changes, score, words)) return 0;
    pass_layer(member, before, last, words);
  }
  return 1;
}

/* Makes the proposed layers the replica's own: what its nodes may have as parents, the list of layers, values,
 * score. */
WIDE void take_proposal(weft_bn_replica *replica, const weft_bn_proposal *proposal, size_t changes, int64_t score,
                        size_t words)
{
  weft_bn_layers *layers = replica->layers;
  const size_t touched = layers_touched(layers, proposal), behind = proposal->first + proposal->old;
  uint64_t before[words ? words : 1], last[words ? words : 1];
  open_layers(layers, proposal, before, last, words);
  for (size_t c = 0; c < touched; c++) {
    const uint64_t *member = layer_after(layers, proposal, c, words);
    for (size_t w = 0; w < words; w++)
      for (uint64_t word = member[w]; word; word &= word - 1) {
        const size_t node = 64 * w + (size_t) __builtin_ctzll(word);
        memcpy(replica->before + node * words, before, words * sizeof *before);
        memcpy(layers->last + node * words, last, words * sizeof *last);
      }
    pass_layer(member, before, last, words);
  }
  memmove(layers->now.member + (proposal->first + proposal->fresh) * words, layers->now.member + behind * words,
          (layers->now.count - behind) * words * sizeof *layers->now.member);
  memcpy(layers->now.member + proposal->first * words, layers->now.fresh,
         proposal->fresh * words * sizeof *layers->now.member);
  layers->now.count = layers->now.count - proposal->old + proposal->fresh;
  for (size_t k = 0; k < changes; k++) replica->value[layers->node[k]] = layers->value[k];
  replica->score = score;
}

/* ---- moves of a graph ---- */

WIDE void set_parents(const weft_bn_lists *lists, weft_bn_layers *layers, size_t node, int32_t pick, size_t words)
{
  memcpy(layers->parents + node * words, lists->table->mask + (size_t) (lists->table->start[node] + pick) * words,
         words * sizeof *layers->parents);
}

WIDE void draw_parents(const weft_bn_lists *lists, weft_bn_layers *layers, size_t node, const uint64_t *before,
                       const uint64_t *last, int64_t value, double uniform, size_t words)
{
  set_parents(lists, layers, node, weft_bn_draw_set(lists, node, before, last, value, uniform), words);
}

static inline double uniform_of(weft_rng rng, uint64_t step, size_t number)
{
  const weft_u32x4 drawn = weft_draw_words(rng, step, WEFT_BN_BLOCK_MEMBERS + (uint32_t) number);
  return weft_u01(drawn.v[0], drawn.v[1]);
}

WIDE void draw_graph(const weft_bn_lists *lists, const weft_bn_replica *replica, weft_rng rng, uint64_t step,
                     size_t words)
{
  for (size_t node = 0; node < lists->p; node++)
    draw_parents(lists, replica->layers, node, replica->before + node * words, replica->layers->last + node * words,
                 replica->value[node], uniform_of(rng, step, node), words);
}

/* All nodes but x and its descendants in the drawn graph without what leads into `orphan`. */
WIDE void find_others(const weft_bn_layers *layers, int32_t x, int32_t orphan, uint64_t *out, size_t words)
{
  uint64_t *below_x = out; /* until the end */
  memset(below_x, 0, words * sizeof *below_x);
  set_bit(below_x, x);
  for (size_t c = layer_of(&layers->now, x, words) + 1; c < layers->now.count; c++)
    for (size_t w = 0; w < words; w++)
      for (uint64_t word = layers->now.member[c * words + w]; word; word &= word - 1) {
        const int32_t node = (int32_t) (64 * w) + __builtin_ctzll(word);
        if (node != orphan && meets(layers->parents + (size_t) node * words, below_x, words)) set_bit(below_x, node);
      }
  for (size_t w = 0; w < words; w++) out[w] = ~out[w];
}

/* The partition of the drawn graph. */
WIDE void find_layers(const weft_bn_lists *lists, weft_bn_layers *layers, weft_bn_proposal *proposal, size_t words)
{
  uint64_t left[words ? words : 1], placed[words ? words : 1];
  memset(left, 0, words * sizeof *left);
  memset(placed, 0, words * sizeof *placed);
  for (size_t node = 0; node < lists->p; node++) set_bit(left, (int32_t) node);
  *proposal = (weft_bn_proposal){ 0, layers->now.count, 0, 0 };
  while (any_bit(left, words)) {
    uint64_t *fresh = layers->now.fresh + proposal->fresh++ * words;
    memset(fresh, 0, words * sizeof *fresh);
    for (size_t w = 0; w < words; w++)
      for (uint64_t word = left[w]; word; word &= word - 1) {
        const int32_t node = (int32_t) (64 * w) + __builtin_ctzll(word);
        if (fits(layers->parents + (size_t) node * words, placed, words)) set_bit(fresh, node);
      }
    for (size_t w = 0; w < words; w++) {
      placed[w] |= fresh[w];
      left[w] &= ~fresh[w];
    }
  }
}

WIDE int propose_renew(const weft_bn_lists *lists, const weft_bn_replica *replica, weft_rng rng, uint64_t step,
                       weft_u32x4 draw, weft_bn_proposal *proposal, size_t words)
{
  weft_bn_layers *layers = replica->layers;
  uint64_t *others = layers->room, *none = others + words;
  const int32_t x = (int32_t) below(draw.v[0], lists->p);
  draw_graph(lists, replica, rng, step, words);
  find_others(layers, x, x, others, words);
  memset(none, 0, words * sizeof *none);
  draw_parents(lists, layers, (size_t) x, others, none, value_of(lists, layers, (size_t) x, others, none, words),
               weft_u01(draw.v[2], draw.v[3]), words);
  find_layers(lists, layers, proposal, words);
  return 1;
}

/* The edge number `n` of the drawn graph, by child and then by parent. */
WIDE void nth_edge(const weft_bn_layers *layers, size_t n, int32_t *from, int32_t *to, size_t words)
{
  size_t node = 0;
  for (size_t here; (here = size_of(layers->parents + node * words, words)) <= n; node++) n -= here;
  *to = (int32_t) node;
  *from = nth_member(layers->parents + node * words, n);
}

/* Edge x -> y: both lose their parents, x gets new ones with y among them, then y. The reverse move draws y's parents
 * with x among them, then x's. */
WIDE int propose_reverse(const weft_bn_lists *lists, const weft_bn_replica *replica, weft_rng rng, uint64_t step,
                         weft_u32x4 draw, weft_bn_proposal *proposal, size_t words)
{
  weft_bn_layers *layers = replica->layers;
  uint64_t *for_x = layers->room, *for_y = for_x + words, *both = for_y + words, *only = both + words,
           *none = only + words;
  int32_t x, y;
  draw_graph(lists, replica, rng, step, words);
  const size_t edges = size_of(layers->parents, lists->p * words);
  if (!edges) return 0;
  nth_edge(layers, below(draw.v[0], edges), &x, &y, words);
  if (!has_bit(lists->offered + (size_t) x * words, y)) return 0;
  uint64_t *of_x = layers->parents + (size_t) x * words, *of_y = layers->parents + (size_t) y * words;
  find_others(layers, x, y, for_x, words);
  find_others(layers, y, x, for_y, words);
  for (size_t w = 0; w < words; w++) both[w] = for_x[w] & for_y[w];
  memset(none, 0, words * sizeof *none);
  memset(only, 0, words * sizeof *only);
  set_bit(only, y);
  const int64_t x_there = value_of(lists, layers, (size_t) x, for_x, only, words);
  const int64_t y_there = value_of(lists, layers, (size_t) y, both, none, words);
  if (x_there == WEFT_BN_NEVER || y_there == WEFT_BN_NEVER) return 0;
  const size_t old = size_of(of_x, words) + size_of(of_y, words);
  draw_parents(lists, layers, (size_t) x, for_x, only, x_there, uniform_of(rng, step, lists->p), words);
  draw_parents(lists, layers, (size_t) y, both, none, y_there, uniform_of(rng, step, lists->p + 1), words);
  clear_bit(only, y);
  set_bit(only, x);
  const int64_t y_back = value_of(lists, layers, (size_t) y, for_y, only, words);
  const int64_t x_back = value_of(lists, layers, (size_t) x, both, none, words);
  const double after = (double) (edges - old + size_of(of_x, words) + size_of(of_y, words));
  find_layers(lists, layers, proposal, words);
  proposal->ways =
      weft_add(weft_log((double) edges / after), (double) (x_there - y_back + (y_there - x_back)) / lists->unit);
  return 1;
}

/* ---- steps ---- */

WIDE int propose(const weft_bn_lists *lists, const weft_bn_replica *replica, weft_rng rng, uint64_t step, int move,
                 uint32_t kind, weft_bn_proposal *proposal, size_t words)
{
  const weft_u32x4 draw = weft_draw_words(rng, step, WEFT_BN_BLOCK_PLACES);
  if (move == WEFT_BN_REVERSE) return propose_reverse(lists, replica, rng, step, draw, proposal, words);
  if (move == WEFT_BN_RENEW) return propose_renew(lists, replica, rng, step, draw, proposal, words);
  return weft_bn_propose_layers(&replica->layers->now, rng, step, kind, draw, proposal, words);
}

/* Metropolis steps first .. first + count - 1. Moves of layers are accepted by the power beta of the ratio, moves of
 * a drawn graph by beta - 1, as the head of this file says. */
WIDE void steps(const weft_bn_lists *lists, weft_bn_replica *replica, weft_rng rng, double beta, uint64_t first,
                size_t count, size_t words)
{
  const double scale = beta / lists->unit, scale_of_graphs = (beta - 1) / lists->unit;
  for (uint64_t step = first; step < first + count; step++) {
    const weft_u32x4 draw = weft_draw_words(rng, step, WEFT_BN_BLOCK_MOVE);
    int64_t score = replica->score;
    size_t changes = 0;
    const uint32_t kind = draw.v[0] >> 28;
    const int move = weft_bn_layer_move(kind);
    weft_bn_proposal proposal;
    replica->accepted[WEFT_BN_MAX_MOVES]++;
    if (!propose(lists, replica, rng, step, move, kind, &proposal, words)) continue;
    if (!value_proposal(lists, replica, &proposal, &changes, &score, words)) continue;
    const double gain = weft_mul(move < WEFT_BN_REVERSE ? scale : scale_of_graphs, (double) (score - replica->score));
    if (!weft_bn_accept(1, weft_add(gain, proposal.ways), draw)) continue;
    replica->accepted[move]++;
    take_proposal(replica, &proposal, changes, score, words);
  }
}

WEFT_BN_STEPS(steps_1, 1)
WEFT_BN_STEPS(steps_2, 2)
WEFT_BN_STEPS(steps_any, lists->words)

static void start(const weft_bn_lists *lists, weft_bn_replica *replica)
{
  replica->score = 0;
  for (size_t node = 0; node < lists->p; node++) {
    replica->value[node] = weft_bn_node_value(lists, node, replica->before + node * lists->words,
                                              replica->layers->last + node * lists->words);
    replica->score += replica->value[node];
  }
}

weft_bn_kernel weft_bn_layers_kernel(size_t words)
{
  return (weft_bn_kernel){ start, words == 1 ? steps_1 : words == 2 ? steps_2 : steps_any };
}

/* ---- to start from, and to go on from ---- */

/* Takes over the layers in `fresh`. */
static void take_layers(const weft_bn_lists *lists, weft_bn_replica *replica, size_t count)
{
  const weft_bn_proposal all = { 0, 0, count, 0 };
  replica->layers->now.count = 0;
  take_proposal(replica, &all, 0, 0, lists->words);
}

void weft_bn_layers_draw(const weft_bn_lists *lists, weft_bn_replica *replica, weft_rng rng, uint64_t first)
{
  weft_bn_layers *layers = replica->layers;
  const size_t words = lists->words;
  weft_bn_proposal proposal;
  for (size_t node = 0; node < lists->p; node++) {
    const uint64_t *before = replica->before + node * words;
    draw_parents(lists, layers, node, before, NULL, weft_bn_node_value(lists, node, before, NULL),
                 weft_draw_uniform(rng, first + node), words);
  }
  find_layers(lists, layers, &proposal, words);
  take_layers(lists, replica, proposal.fresh);
}

weft_status weft_bn_layers_refuse(weft_ctx *ctx)
{
  return weft_fail(ctx, WEFT_ERR_INPUT, "The saved layers leave a node without possible parents.");
}

/* Refuses starting layers of any replica that are out of range or leave out a number. */
weft_status weft_bn_layers_check(weft_ctx *ctx, size_t p, const weft_bn_run *run, const int32_t *layer)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  uint64_t *seen; /* in which replica a layer was met last, from 1 */
  WEFT_TAKE0(seen, &mem, p);
  for (size_t r = 0; r < run->ladders * run->temperatures; r++, layer += p) {
    size_t count = 0, different = 0;
    if (layer[0] < 0) continue; /* to be drawn */
    for (size_t node = 0; node < p; node++) {
      if (layer[node] < 0 || (size_t) layer[node] >= p) WEFT_TRY(weft_bn_layers_refuse(ctx));
      different += seen[layer[node]] != r + 1;
      seen[layer[node]] = r + 1;
      if ((size_t) layer[node] >= count) count = (size_t) layer[node] + 1;
    }
    if (different != count) WEFT_TRY(weft_bn_layers_refuse(ctx));
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* 0 when some node cannot have parents in the layer that it is given; the layers are taken over all the same. */
int weft_bn_layers_read(const weft_bn_lists *lists, weft_bn_replica *replica, const int32_t *layer)
{
  weft_bn_layers *layers = replica->layers;
  size_t count = 0;
  memset(layers->now.fresh, 0, (lists->p + 1) * lists->words * sizeof *layers->now.fresh);
  for (size_t node = 0; node < lists->p; node++) {
    set_bit(layers->now.fresh + (size_t) layer[node] * lists->words, (int32_t) node);
    if ((size_t) layer[node] >= count) count = (size_t) layer[node] + 1;
  }
  take_layers(lists, replica, count);
  for (size_t node = 0; node < lists->p; node++)
    if (weft_bn_node_value(lists, node, replica->before + node * lists->words, layers->last + node * lists->words) ==
        WEFT_BN_NEVER)
      return 0;
  return 1;
}

void weft_bn_layers_write(const weft_bn_lists *lists, weft_bn_replica *replica, int32_t *layer)
{
  size_t at = 0;
  for (size_t c = 0; c < replica->layers->now.count; c++)
    for (size_t w = 0; w < lists->words; w++)
      for (uint64_t word = replica->layers->now.member[c * lists->words + w]; word; word &= word - 1) {
        const int32_t node = (int32_t) (64 * w) + __builtin_ctzll(word);
        layer[node] = (int32_t) c;
        replica->order[at++] = node;
      }
}
