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
  for (size_t z = 0; z < p; z++)
    for (int64_t k = table->start[z]; k < table->start[z + 1]; k++)
      for (size_t w = 0; w < words; w++) lists->offered[z * words + w] |= table->mask[(size_t) k * words + w];
  lists->log_factorial[0] = 0;
  for (size_t k = 1; k <= p; k++) lists->log_factorial[k] = weft_add(lists->log_factorial[k - 1], weft_log((double) k));
done:
  return st;
}

/* Gives a replica its layers, work space and memory of recent values, in `mem`; no layer is set yet. */
weft_status weft_bn_layers_make(weft_arena *mem, const weft_bn_lists *lists, weft_bn_replica *r)
{
  weft_status st = WEFT_OK;
  const size_t p = lists->p, words = lists->words;
  weft_bn_layers *l;
  WEFT_TAKE0(l, mem, 1);
  l->now.p = p;
  l->now.log_factorial = lists->log_factorial;
  WEFT_TAKE(l->now.member, mem, p * words);
  WEFT_TAKE0(l->last, mem, p * words);
  WEFT_TAKE(l->now.fresh, mem, (p + 1) * words);
  WEFT_TAKE(l->parents, mem, p * words);
  WEFT_TAKE(l->room, mem, 5 * words);
  WEFT_TAKE(l->node, mem, p);
  WEFT_TAKE(l->value, mem, p);
  WEFT_TAKE(l->memory.key, mem, 2 * words * MEMORY_SLOTS);
  WEFT_TAKE0(l->memory.node, mem, MEMORY_SLOTS);
  WEFT_TAKE(l->memory.value, mem, MEMORY_SLOTS);
  r->layers = l;
done:
  return st;
}

const uint64_t *weft_bn_layer_before(const weft_bn_lists *lists, const weft_bn_replica *r, size_t z)
{
  return r->layers ? r->layers->last + z * lists->words : NULL;
}

/* ---- values ---- */

/* As weft_bn_node_value(), which depends only on what is offered; recent values are remembered. When `last` is not
 * empty, some of it must be offered. */
WIDE int64_t value_of(const weft_bn_lists *lists, weft_bn_layers *l, size_t z, const uint64_t *before,
                      const uint64_t *last, size_t words)
{
  const uint64_t *offered = lists->offered + z * words;
  uint64_t hash = z;
  for (size_t w = 0; w < words; w++) {
    hash = (hash ^ (before[w] & offered[w])) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 29 ^ (last[w] & offered[w])) * UINT64_C(0xbf58476d1ce4e5b9);
  }
  const size_t slot = (size_t) (hash >> 40) % MEMORY_SLOTS;
  uint64_t *key = l->memory.key + 2 * words * slot, different = l->memory.node[slot] != z + 1;
  for (size_t w = 0; w < words; w++)
    different |= (key[w] ^ (before[w] & offered[w])) | (key[words + w] ^ (last[w] & offered[w]));
  if (!different) return l->memory.value[slot];
  l->memory.node[slot] = (uint32_t) z + 1;
  for (size_t w = 0; w < words; w++) {
    key[w] = before[w] & offered[w];
    key[words + w] = last[w] & offered[w];
  }
  return l->memory.value[slot] = weft_bn_node_value(lists, z, before, last);
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
WIDE int value_layer(const weft_bn_lists *lists, const weft_bn_replica *r, const uint64_t *member,
                     const uint64_t *before, const uint64_t *last, size_t *changes, int64_t *score, size_t words)
{
  weft_bn_layers *l = r->layers;
  for (size_t w = 0; w < words; w++)
    for (uint64_t word = member[w]; word; word &= word - 1) {
      const size_t z = 64 * w + (size_t) __builtin_ctzll(word);
      const uint64_t *old = r->before + z * words, *old_last = l->last + z * words,
                     *offered = lists->offered + z * words;
      uint64_t differs = 0;
      for (size_t u = 0; u < words; u++) differs |= ((old[u] ^ before[u]) | (old_last[u] ^ last[u])) & offered[u];
      if (!differs) continue;
      const int64_t value = value_of(lists, l, z, before, last, words);
      if (value == WEFT_BN_NEVER) return 0;
      *score += value - r->value[z];
      l->node[*changes] = (int32_t) z;
      l->value[(*changes)++] = value;
    }
  return 1;
}

/* Layer c of the partition after the move, and where its parts are: the new layers and the one behind them. */
WIDE const uint64_t *layer_after(const weft_bn_layers *l, const weft_bn_proposal *q, size_t c, size_t words)
{
  return c < q->fresh ? l->now.fresh + c * words : l->now.member + (q->first + q->old) * words;
}

static inline size_t layers_touched(const weft_bn_layers *l, const weft_bn_proposal *q)
{
  return q->fresh + (q->first + q->old < l->now.count);
}

/* Layers earlier than the first new one. */
WIDE void open_layers(const weft_bn_layers *l, const weft_bn_proposal *q, uint64_t *before, uint64_t *last,
                      size_t words)
{
  memset(before, 0, words * sizeof *before);
  memset(last, 0, words * sizeof *last);
  for (size_t c = 0; c < q->first; c++)
    for (size_t w = 0; w < words; w++) before[w] |= l->now.member[c * words + w];
  if (q->first) memcpy(last, l->now.member + (q->first - 1) * words, words * sizeof *last);
}

WIDE void pass_layer(const uint64_t *member, uint64_t *before, uint64_t *last, size_t words)
{
  for (size_t w = 0; w < words; w++) {
    before[w] |= member[w];
    last[w] = member[w];
  }
}

/* 0 when the partition has no graphs. */
WIDE int value_proposal(const weft_bn_lists *lists, const weft_bn_replica *r, const weft_bn_proposal *q,
                        size_t *changes, int64_t *score, size_t words)
{
  const weft_bn_layers *l = r->layers;
  const size_t touched = layers_touched(l, q);
  uint64_t before[words ? words : 1], last[words ? words : 1];
  open_layers(l, q, before, last, words);
  for (size_t c = 0; c < touched; c++) {
    const uint64_t *member = layer_after(l, q, c, words);
    if (!layer_possible(lists, member, last, words)) return 0;
    memcpy(last, member, words * sizeof *last);
  }
  open_layers(l, q, before, last, words);
  for (size_t c = 0; c < touched; c++) {
    const uint64_t *member = layer_after(l, q, c, words);
    if (!value_layer(lists, r, member, before, last, changes, score, words)) return 0;
    pass_layer(member, before, last, words);
  }
  return 1;
}

/* Makes the proposed layers the replica's own: what its nodes may have as parents, the list of layers, values,
 * score. */
WIDE void take_proposal(weft_bn_replica *r, const weft_bn_proposal *q, size_t changes, int64_t score, size_t words)
{
  weft_bn_layers *l = r->layers;
  const size_t touched = layers_touched(l, q), behind = q->first + q->old;
  uint64_t before[words ? words : 1], last[words ? words : 1];
  open_layers(l, q, before, last, words);
  for (size_t c = 0; c < touched; c++) {
    const uint64_t *member = layer_after(l, q, c, words);
    for (size_t w = 0; w < words; w++)
      for (uint64_t word = member[w]; word; word &= word - 1) {
        const size_t z = 64 * w + (size_t) __builtin_ctzll(word);
        memcpy(r->before + z * words, before, words * sizeof *before);
        memcpy(l->last + z * words, last, words * sizeof *last);
      }
    pass_layer(member, before, last, words);
  }
  memmove(l->now.member + (q->first + q->fresh) * words, l->now.member + behind * words,
          (l->now.count - behind) * words * sizeof *l->now.member);
  memcpy(l->now.member + q->first * words, l->now.fresh, q->fresh * words * sizeof *l->now.member);
  l->now.count = l->now.count - q->old + q->fresh;
  for (size_t k = 0; k < changes; k++) r->value[l->node[k]] = l->value[k];
  r->score = score;
}

/* ---- moves of a graph ---- */

WIDE void set_parents(const weft_bn_lists *lists, weft_bn_layers *l, size_t z, int32_t pick, size_t words)
{
  memcpy(l->parents + z * words, lists->table->mask + (size_t) (lists->table->start[z] + pick) * words,
         words * sizeof *l->parents);
}

WIDE void draw_parents(const weft_bn_lists *lists, weft_bn_layers *l, size_t z, const uint64_t *before,
                       const uint64_t *last, int64_t value, double uniform, size_t words)
{
  set_parents(lists, l, z, weft_bn_draw_set(lists, z, before, last, value, uniform), words);
}

static inline double uniform_of(weft_rng rng, uint64_t step, size_t number)
{
  const weft_u32x4 drawn = weft_draw_words(rng, step, WEFT_BN_BLOCK_MEMBERS + (uint32_t) number);
  return weft_u01(drawn.v[0], drawn.v[1]);
}

WIDE void draw_graph(const weft_bn_lists *lists, const weft_bn_replica *r, weft_rng rng, uint64_t step, size_t words)
{
  for (size_t z = 0; z < lists->p; z++)
    draw_parents(lists, r->layers, z, r->before + z * words, r->layers->last + z * words, r->value[z],
                 uniform_of(rng, step, z), words);
}

/* All nodes but x and its descendants in the drawn graph without what leads into `orphan`. */
WIDE void find_others(const weft_bn_layers *l, int32_t x, int32_t orphan, uint64_t *out, size_t words)
{
  uint64_t *below_x = out; /* until the end */
  memset(below_x, 0, words * sizeof *below_x);
  set_bit(below_x, x);
  for (size_t c = layer_of(&l->now, x, words) + 1; c < l->now.count; c++)
    for (size_t w = 0; w < words; w++)
      for (uint64_t word = l->now.member[c * words + w]; word; word &= word - 1) {
        const int32_t z = (int32_t) (64 * w) + __builtin_ctzll(word);
        if (z != orphan && meets(l->parents + (size_t) z * words, below_x, words)) set_bit(below_x, z);
      }
  for (size_t w = 0; w < words; w++) out[w] = ~out[w];
}

/* The partition of the drawn graph. */
WIDE void find_layers(const weft_bn_lists *lists, weft_bn_layers *l, weft_bn_proposal *q, size_t words)
{
  uint64_t left[words ? words : 1], placed[words ? words : 1];
  memset(left, 0, words * sizeof *left);
  memset(placed, 0, words * sizeof *placed);
  for (size_t z = 0; z < lists->p; z++) set_bit(left, (int32_t) z);
  *q = (weft_bn_proposal){ 0, l->now.count, 0, 0 };
  while (any_bit(left, words)) {
    uint64_t *fresh = l->now.fresh + q->fresh++ * words;
    memset(fresh, 0, words * sizeof *fresh);
    for (size_t w = 0; w < words; w++)
      for (uint64_t word = left[w]; word; word &= word - 1) {
        const int32_t z = (int32_t) (64 * w) + __builtin_ctzll(word);
        if (fits(l->parents + (size_t) z * words, placed, words)) set_bit(fresh, z);
      }
    for (size_t w = 0; w < words; w++) {
      placed[w] |= fresh[w];
      left[w] &= ~fresh[w];
    }
  }
}

WIDE int propose_renew(const weft_bn_lists *lists, const weft_bn_replica *r, weft_rng rng, uint64_t step,
                       weft_u32x4 draw, weft_bn_proposal *q, size_t words)
{
  weft_bn_layers *l = r->layers;
  uint64_t *others = l->room, *none = others + words;
  const int32_t x = (int32_t) below(draw.v[0], lists->p);
  draw_graph(lists, r, rng, step, words);
  find_others(l, x, x, others, words);
  memset(none, 0, words * sizeof *none);
  draw_parents(lists, l, (size_t) x, others, none, value_of(lists, l, (size_t) x, others, none, words),
               weft_u01(draw.v[2], draw.v[3]), words);
  find_layers(lists, l, q, words);
  return 1;
}

/* The edge number `n` of the drawn graph, by child and then by parent. */
WIDE void nth_edge(const weft_bn_layers *l, size_t n, int32_t *from, int32_t *to, size_t words)
{
  size_t z = 0;
  for (size_t here; (here = size_of(l->parents + z * words, words)) <= n; z++) n -= here;
  *to = (int32_t) z;
  *from = nth_member(l->parents + z * words, n);
}

/* Edge x -> y: both lose their parents, x gets new ones with y among them, then y. The reverse move draws y's parents
 * with x among them, then x's. */
WIDE int propose_reverse(const weft_bn_lists *lists, const weft_bn_replica *r, weft_rng rng, uint64_t step,
                         weft_u32x4 draw, weft_bn_proposal *q, size_t words)
{
  weft_bn_layers *l = r->layers;
  uint64_t *for_x = l->room, *for_y = for_x + words, *both = for_y + words, *only = both + words, *none = only + words;
  int32_t x, y;
  draw_graph(lists, r, rng, step, words);
  const size_t edges = size_of(l->parents, lists->p * words);
  if (!edges) return 0;
  nth_edge(l, below(draw.v[0], edges), &x, &y, words);
  if (!has_bit(lists->offered + (size_t) x * words, y)) return 0;
  uint64_t *of_x = l->parents + (size_t) x * words, *of_y = l->parents + (size_t) y * words;
  find_others(l, x, y, for_x, words);
  find_others(l, y, x, for_y, words);
  for (size_t w = 0; w < words; w++) both[w] = for_x[w] & for_y[w];
  memset(none, 0, words * sizeof *none);
  memset(only, 0, words * sizeof *only);
  set_bit(only, y);
  const int64_t x_there = value_of(lists, l, (size_t) x, for_x, only, words);
  const int64_t y_there = value_of(lists, l, (size_t) y, both, none, words);
  if (x_there == WEFT_BN_NEVER || y_there == WEFT_BN_NEVER) return 0;
  const size_t old = size_of(of_x, words) + size_of(of_y, words);
  draw_parents(lists, l, (size_t) x, for_x, only, x_there, uniform_of(rng, step, lists->p), words);
  draw_parents(lists, l, (size_t) y, both, none, y_there, uniform_of(rng, step, lists->p + 1), words);
  clear_bit(only, y);
  set_bit(only, x);
  const int64_t y_back = value_of(lists, l, (size_t) y, for_y, only, words);
  const int64_t x_back = value_of(lists, l, (size_t) x, both, none, words);
  const double after = (double) (edges - old + size_of(of_x, words) + size_of(of_y, words));
  find_layers(lists, l, q, words);
  q->ways = weft_add(weft_log((double) edges / after), (double) (x_there - y_back + (y_there - x_back)) / lists->unit);
  return 1;
}

/* ---- steps ---- */

WIDE int propose(const weft_bn_lists *lists, const weft_bn_replica *r, weft_rng rng, uint64_t step, int move,
                 uint32_t kind, weft_bn_proposal *q, size_t words)
{
  const weft_u32x4 draw = weft_draw_words(rng, step, WEFT_BN_BLOCK_PLACES);
  if (move == WEFT_BN_REVERSE) return propose_reverse(lists, r, rng, step, draw, q, words);
  if (move == WEFT_BN_RENEW) return propose_renew(lists, r, rng, step, draw, q, words);
  return weft_bn_propose_layers(&r->layers->now, rng, step, kind, draw, q, words);
}

/* Metropolis steps first .. first + count - 1. Moves of layers are accepted by the power beta of the ratio, moves of
 * a drawn graph by beta - 1, as the head of this file says. */
WIDE void steps(const weft_bn_lists *lists, weft_bn_replica *r, weft_rng rng, double beta, uint64_t first, size_t count,
                size_t words)
{
  const double scale = beta / lists->unit, scale_of_graphs = (beta - 1) / lists->unit;
  for (uint64_t step = first; step < first + count; step++) {
    const weft_u32x4 draw = weft_draw_words(rng, step, WEFT_BN_BLOCK_MOVE);
    int64_t score = r->score;
    size_t changes = 0;
    const uint32_t kind = draw.v[0] >> 28;
    const int move = weft_bn_layer_move(kind);
    weft_bn_proposal q;
    r->accepted[WEFT_BN_MAX_MOVES]++;
    if (!propose(lists, r, rng, step, move, kind, &q, words)) continue;
    if (!value_proposal(lists, r, &q, &changes, &score, words)) continue;
    const double gain = weft_mul(move < WEFT_BN_REVERSE ? scale : scale_of_graphs, (double) (score - r->score));
    if (!weft_bn_accept(1, weft_add(gain, q.ways), draw)) continue;
    r->accepted[move]++;
    take_proposal(r, &q, changes, score, words);
  }
}

WEFT_BN_STEPS(steps_1, 1)
WEFT_BN_STEPS(steps_2, 2)
WEFT_BN_STEPS(steps_any, lists->words)

static void start(const weft_bn_lists *lists, weft_bn_replica *r)
{
  r->score = 0;
  for (size_t z = 0; z < lists->p; z++) {
    r->value[z] = weft_bn_node_value(lists, z, r->before + z * lists->words, r->layers->last + z * lists->words);
    r->score += r->value[z];
  }
}

weft_bn_kernel weft_bn_layers_kernel(size_t words)
{
  return (weft_bn_kernel){ start, words == 1 ? steps_1 : words == 2 ? steps_2 : steps_any };
}

/* ---- to start from, and to go on from ---- */

/* Takes over the layers in `fresh`. */
static void take_layers(const weft_bn_lists *lists, weft_bn_replica *r, size_t count)
{
  const weft_bn_proposal all = { 0, 0, count, 0 };
  r->layers->now.count = 0;
  take_proposal(r, &all, 0, 0, lists->words);
}

void weft_bn_layers_draw(const weft_bn_lists *lists, weft_bn_replica *r, weft_rng rng, uint64_t first)
{
  weft_bn_layers *l = r->layers;
  const size_t words = lists->words;
  weft_bn_proposal q;
  for (size_t z = 0; z < lists->p; z++) {
    const uint64_t *before = r->before + z * words;
    draw_parents(lists, l, z, before, NULL, weft_bn_node_value(lists, z, before, NULL),
                 weft_draw_uniform(rng, first + z), words);
  }
  find_layers(lists, l, &q, words);
  take_layers(lists, r, q.fresh);
}

weft_status weft_bn_layers_refuse(weft_ctx *ctx)
{
  return weft_fail(ctx, WEFT_ERR_INPUT, "Layers to go on from leave a node without possible parents.");
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
    for (size_t z = 0; z < p; z++) {
      if (layer[z] < 0 || (size_t) layer[z] >= p) WEFT_TRY(weft_bn_layers_refuse(ctx));
      different += seen[layer[z]] != r + 1;
      seen[layer[z]] = r + 1;
      if ((size_t) layer[z] >= count) count = (size_t) layer[z] + 1;
    }
    if (different != count) WEFT_TRY(weft_bn_layers_refuse(ctx));
  }
done:
  weft_arena_end(&mem);
  return st;
}

int weft_bn_layers_read(const weft_bn_lists *lists, weft_bn_replica *r, const int32_t *layer)
{
  weft_bn_layers *l = r->layers;
  size_t count = 0;
  memset(l->now.fresh, 0, (lists->p + 1) * lists->words * sizeof *l->now.fresh);
  for (size_t z = 0; z < lists->p; z++) {
    set_bit(l->now.fresh + (size_t) layer[z] * lists->words, (int32_t) z);
    if ((size_t) layer[z] >= count) count = (size_t) layer[z] + 1;
  }
  take_layers(lists, r, count);
  for (size_t z = 0; z < lists->p; z++)
    if (weft_bn_node_value(lists, z, r->before + z * lists->words, l->last + z * lists->words) == WEFT_BN_NEVER)
      return 0;
  return 1;
}

void weft_bn_layers_write(const weft_bn_lists *lists, weft_bn_replica *r, int32_t *layer)
{
  size_t at = 0;
  for (size_t c = 0; c < r->layers->now.count; c++)
    for (size_t w = 0; w < lists->words; w++)
      for (uint64_t word = r->layers->now.member[c * lists->words + w]; word; word &= word - 1) {
        const int32_t z = (int32_t) (64 * w) + __builtin_ctzll(word);
        layer[z] = (int32_t) c;
        r->order[at++] = z;
      }
}
