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

/* Graphs found, best first; of equal scores the one with the smaller stamp, which says when it was found first. So what
 * is kept does not depend on the order in which graphs are reported. */
typedef struct weft_bn_best {
  size_t most, found;
  int64_t *score;
  uint64_t *hash, *stamp;
  int32_t *sets; /* p × most */
} weft_bn_best;

/* Stamps: by iteration (0: the start), then by temperature; of a saved order its best graph, then the drawn one. */
static WEFT_HD inline uint64_t weft_bn_stamp(uint64_t iteration, uint64_t second) { return iteration * 4096 + second; }

/* Room for the best `most` graphs of p nodes; then adds a graph, if it is among these. */
weft_status weft_bn_best_make(weft_arena *mem, size_t p, size_t most, weft_bn_best *out);
void weft_bn_best_add(weft_bn_best *best, size_t p, int64_t score, uint64_t hash, uint64_t stamp, const int32_t *picks);
/* A quick check that often makes the picks unnecessary. */
static inline int weft_bn_best_wants(const weft_bn_best *best, int64_t score, uint64_t hash, uint64_t stamp)
{
  const size_t last = best->most - 1;
  if (best->found == best->most &&
      (score < best->score[last] || (score == best->score[last] && stamp >= best->stamp[last])))
    return 0;
  for (size_t k = 0; k < best->found; k++)
    if (best->hash[k] == hash) return stamp < best->stamp[k];
  return 1;
}

/* Weights of a node's sets relative to `reference`, in chunks of 64 (order_by_sum.c). Once a set of a chunk fits, what
 * is added ends before chunk `stop`; `copies`: only looked at when a set of an earlier chunk fitted; `pick`: the first
 * one's place among the node's sets. */
#define WEFT_BN_CHUNK 64
typedef struct weft_bn_chunk {
  int64_t reference;
  uint32_t stop;
  int32_t copies, pick;
} weft_bn_chunk;
typedef struct weft_bn_weights {
  uint32_t *begin; /* p + 1: chunks of a node */
  weft_bn_chunk *chunk;
  uint64_t *mask; /* words per set; where a chunk has no set, masks that never fit */
  double *weight;
  size_t count; /* chunks */
} weft_bn_weights;

typedef struct weft_bn_lists {
  const weft_bn_table *table;
  size_t p, words;
  uint64_t *users; /* p × words: nodes that have a set with this parent */
  double unit;
  weft_bn_weights *weights; /* sum */
  /* layers */
  uint64_t *offered;     /* p × words: nodes that are in some set of this one */
  double *log_factorial; /* of 0 .. p */
} weft_bn_lists;

weft_status weft_bn_lists_make(weft_arena *mem, const weft_bn_table *table, int sum, weft_bn_lists *out);
/* Fills in the orders to start from, p × replicas, and checks those given. */
weft_status weft_bn_start_orders(weft_ctx *ctx, const weft_bn_lists *lists, const weft_bn_run *run, int32_t *order);

/* What lists have for layers; whether the layers to start from are numbered without gaps, and the error when they are
 * not, or when they leave a node without possible parents (partitions.c). */
weft_status weft_bn_layers_prepare(weft_arena *mem, weft_bn_lists *lists);
weft_status weft_bn_layers_check(weft_ctx *ctx, size_t p, const weft_bn_run *run, const int32_t *layer);
weft_status weft_bn_layers_refuse(weft_ctx *ctx);

#ifdef __cplusplus
}
#endif
