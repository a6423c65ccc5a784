/* Steps of a chain by one warp. The draws, the order of every floating sum and the ties are those of the CPU
 * (both/moves.h), so that the same key gives the same orders, scores and graphs.
 *
 * A replica's state lies in shared memory where it fits, else in device memory:
 *
 *   before  p × words of 64 bits   predecessors of a node
 *   value   p of 64 bits           sum: its score;   fresh: the proposed ones
 *   pick    p of 32 bits           max: its best set; fresh: the proposed ones
 *   order   p of 32 bits           node at a position
 *   place   p of 32 bits           position of a node, in place of `before` where masks would be wider than two words
 * (max)
 *
 * Max: a node between the two positions keeps its best set or looks for another one, in the list of its sets, best
 * first. Up to 128 nodes: lanes hold two or four nodes each in registers, with the masks of their predecessors and best
 * sets, and as many places of the order; shared memory has what they held when a launch or a swap of temperatures
 * began. More nodes: lanes take the positions between, and a set fits when its members' positions come before. Sum:
 * sums.cuh. */
#pragma once

#include "core/device/device.cuh"
#include "bn/both/best_graphs.h"
#include "bn/both/chain.h"
#include "bn/both/moves.h"

#define FULL 0xffffffffu
#define MAX_TEMPERATURES 16
#define MAX_SHARED ((size_t) 64 << 10)

/* Where a replica's parts begin, in bytes. */
struct layout {
  uint32_t value, pick, fresh, order, place, mid, step;
};

/* Graphs that a temperature of a ladder found; `sets` is p × most. */
struct found_lists {
  uint32_t *count;
  int64_t *score;
  uint64_t *hash, *stamp;
  int32_t *sets;
};

struct chain_job {
  /* lists */
  const int64_t *start, *score;
  const uint64_t *mask, *users;
  const uint16_t *member; /* wide: `width` a set, 0xffff after the last */
  const uint32_t *begin;  /* sum: the chunks of sets (both/moves.h) */
  const weft_bn_chunk *chunk;
  const uint64_t *chunk_mask;
  const double *weight;
  const uint64_t *offered; /* layers: as in weft_bn_lists */
  const double *log_factorial;
  double unit;
  uint32_t p, words, width;
  /* run */
  uint64_t key, first, thin; /* first: iterations done before this run */
  uint32_t temperatures, ladder0, swap_every, most, sum, layers, moves;
  uint64_t saved, skipped, samples;
  const double *scale, *swap_scale, *scale_of_graphs; /* a temperature; the last: layers */
  /* state, a replica */
  layout at;
  unsigned char *state;
  int in_shared;
  uint32_t ladders_each, long_list; /* sum: of a block; chunks that make a list a long one */
  unsigned char *room;              /* sum: a block's own memory where it does not fit shared memory, room_bytes each */
  uint64_t room_bytes;
  int64_t *now;       /* score of a replica */
  uint32_t *slot;     /* replica at a temperature */
  uint64_t *accepted; /* moves + 1 per temperature of a ladder */
  uint64_t *swapped;  /* 2 per pair of neighbours */
  found_lists found;
  double *trace, *sample_score;
  int32_t *sampled;
};

/* One replica as a warp sees it. */
struct replica {
  uint64_t *before, *mid;
  int64_t *value, *fresh_value;
  int32_t *pick, *fresh_pick, *order, *place;
};

__device__ static replica view(const chain_job &job, unsigned char *state)
{
  replica chain;
  chain.before = (uint64_t *) state;
  chain.value = (int64_t *) (state + job.at.value);
  chain.pick = (int32_t *) (state + job.at.pick);
  chain.fresh_value = (int64_t *) (state + job.at.fresh);
  chain.fresh_pick = (int32_t *) (state + job.at.fresh);
  chain.order = (int32_t *) (state + job.at.order);
  chain.place = (int32_t *) (state + job.at.place);
  chain.mid = (uint64_t *) (state + job.at.mid);
  return chain;
}

__device__ static bool bit_of(const uint64_t *mask, int32_t v) { return mask[v >> 6] >> (v & 63) & 1; }
__device__ static uint64_t word_bit(int32_t v, uint32_t w)
{
  return v >= 0 && (uint32_t) v >> 6 == w ? (uint64_t) 1 << (v & 63) : 0;
}

__device__ static void copy_state(unsigned char *to, const unsigned char *from, uint32_t bytes, uint32_t lane)
{
  for (uint32_t k = lane; k < bytes / 8; k += 32) ((uint64_t *) to)[k] = ((const uint64_t *) from)[k];
  __syncwarp();
}

__device__ static int64_t total(int64_t x)
{
  for (int d = 16; d; d /= 2) x += __shfl_xor_sync(FULL, x, d);
  return x;
}

/* WORDS: words per mask, or 0 for any number. */
template <int WORDS> __device__ __forceinline__ uint32_t words_of(const chain_job &job)
{
  return WORDS ? WORDS : job.words;
}

template <int WORDS>
/* The nodes whose predecessors change, but for x and, in a swap, y. */
__device__ static void between(const chain_job &job, const replica &chain, const weft_bn_move &move, uint32_t lane)
{
  const uint32_t words = words_of<WORDS>(job);
  const uint64_t *bx = chain.before + (uint64_t) move.x * words, *by = chain.before + (uint64_t) move.y * words;
  const bool left = move.kind == WEFT_BN_SHIFT && move.from > move.to;
  for (uint32_t w = lane; w < words; w += 32) {
    uint64_t mid = left ? bx[w] & ~by[w] : by[w] & ~bx[w];
    if (!left) mid &= ~word_bit(move.x, w);
    if (!left && move.kind == WEFT_BN_SHIFT) mid |= word_bit(move.y, w);
    chain.mid[w] = mid;
  }
  __syncwarp();
}

enum { NOT_MOVED, BETWEEN, IS_X, IS_Y };

__device__ static int role(const replica &chain, const weft_bn_move &move, int32_t node)
{
  if (node == move.x) return IS_X;
  if (node == move.y && move.kind != WEFT_BN_SHIFT) return IS_Y;
  return bit_of(chain.mid, node) ? BETWEEN : NOT_MOVED;
}

/* Word w of the predecessors of `node` after the move. */
__device__ static uint64_t after(const replica &chain, const weft_bn_move &move, int what, int32_t node, uint32_t w,
                                 uint32_t words)
{
  const uint64_t old = chain.before[(uint64_t) node * words + w];
  if (what == BETWEEN) return (old & ~word_bit(move.lost, w)) | word_bit(move.gained, w);
  if (what == IS_Y) return old & ~chain.mid[w] & ~word_bit(move.x, w);
  if (move.kind == WEFT_BN_SHIFT && move.from > move.to) return old & ~chain.mid[w];
  return old | chain.mid[w] | (move.kind == WEFT_BN_SHIFT ? 0 : word_bit(move.y, w));
}

/* The order after a move, the warp together: a swap of two nodes, or a shift of those between by one place. */
__device__ static void move_order(const replica &chain, const weft_bn_move &move, uint32_t lane)
{
  if (move.kind != WEFT_BN_SHIFT) {
    if (!lane) {
      chain.order[move.from] = move.y;
      chain.order[move.to] = move.x;
    }
  } else {
    const int step = move.from < move.to ? 1 : -1, count = (move.to - move.from) * step;
    for (int k = 0; k < count; k += 32) { /* position from + k gets what is one further */
      const int here = move.from + (k + (int) lane) * step;
      const int32_t node = k + (int) lane < count ? chain.order[here + step] : 0;
      __syncwarp();
      if (k + (int) lane < count) chain.order[here] = node;
      __syncwarp();
    }
    if (!lane) chain.order[move.to] = move.x;
  }
  __syncwarp();
}

template <int WORDS>
/* Makes the move: predecessors and the order. */
__device__ static void make_move(const chain_job &job, const replica &chain, const weft_bn_move &move, uint32_t lane)
{
  const uint32_t words = words_of<WORDS>(job);
  for (int32_t node = (int32_t) lane; node < (int32_t) job.p; node += 32) {
    const int what = role(chain, move, node);
    if (what == NOT_MOVED) continue;
    for (uint32_t w = 0; w < words; w++)
      chain.before[(uint64_t) node * words + w] = after(chain, move, what, node, w, words);
  }
  move_order(chain, move, lane);
}

/* ---- graphs found ---- */

/* `picks`: the graph. Called by the whole warp. */
__device__ static void keep_graph(const chain_job &job, uint64_t list, int64_t score, uint64_t hash, uint64_t stamp,
                                  const int32_t *picks, uint32_t lane)
{
  int64_t *scores = job.found.score + list * job.most;
  uint64_t *hashes = job.found.hash + list * job.most, *stamps = job.found.stamp + list * job.most;
  int32_t *sets = job.found.sets + list * job.most * job.p;
  uint32_t count = job.found.count[list], place = 0;
  if (count == job.most && (score < scores[count - 1] || (score == scores[count - 1] && stamp >= stamps[count - 1])))
    return;
  bool there = false;
#pragma unroll 1
  for (uint32_t k = lane; k < count; k += 32)
    if (hashes[k] == hash) there = true;
  if (__any_sync(FULL, there)) return; /* stamps of one temperature only rise: it was found before */
  while (place < count && (scores[place] > score || (scores[place] == score && stamps[place] < stamp))) place++;
  const uint32_t last = count < job.most ? count : count - 1; /* where the one that goes or the new end is */
#pragma unroll 1
  for (uint32_t k = last; k > place; k--) {
#pragma unroll 1
    for (uint32_t node = lane; node < job.p; node += 32)
      sets[(uint64_t) k * job.p + node] = sets[(uint64_t) (k - 1) * job.p + node];
    __syncwarp();
    if (!lane) {
      scores[k] = scores[k - 1];
      hashes[k] = hashes[k - 1];
      stamps[k] = stamps[k - 1];
    }
    __syncwarp();
  }
#pragma unroll 1
  for (uint32_t node = lane; node < job.p; node += 32) sets[(uint64_t) place * job.p + node] = picks[node];
  if (!lane) {
    scores[place] = score;
    hashes[place] = hash;
    stamps[place] = stamp;
    job.found.count[list] = count < job.most ? count + 1 : count;
  }
  __syncwarp();
}

__device__ static uint64_t hash_of(const int32_t *picks, uint32_t p, uint32_t lane)
{
  uint64_t hash = 0;
#pragma unroll 1
  for (uint32_t node = lane; node < p; node += 32) hash += weft_bn_pick_hash(node, picks[node]);
  return (uint64_t) total((int64_t) hash);
}

/* The best graph of an order, to `picks`; its score. */
__device__ static int64_t best_graph(const chain_job &job, const replica &chain, int32_t *picks, uint32_t lane)
{
  int64_t sum = 0;
  for (uint32_t node = lane; node < job.p; node += 32) {
    const uint64_t *before = chain.before + (uint64_t) node * job.words, first = job.start[node],
                   last = job.start[node + 1];
    uint64_t k = first;
    for (; k + 1 < last; k++) {
      bool fits = true;
      for (uint32_t w = 0; w < job.words && fits; w++) fits = !(job.mask[k * job.words + w] & ~before[w]);
      if (fits) break;
    }
    picks[node] = (int32_t) (k - first);
    sum += job.score[k];
  }
  sum = total(sum);
  __syncwarp();
  return sum;
}

template <typename Best, typename Draw>
/* The coldest chain of ladder c after iteration `it`: its score, its best graph, a graph drawn from it. best(picks) and
 * draw(rng, first, picks) leave these in picks and return their scores. */
__device__ static void save(const chain_job &job, uint32_t c, int64_t score, uint64_t it, int32_t *best_picks,
                            Best best, Draw draw, uint32_t lane)
{
  const uint64_t row = it / job.thin - 1, list = (uint64_t) c * job.temperatures;
  if (!lane) job.trace[(uint64_t) c * job.saved + row] = weft_div((double) score, job.unit);
  int64_t found = best(best_picks);
  keep_graph(job, list, found, hash_of(best_picks, job.p, lane), weft_bn_stamp(it, 0), best_picks, lane);
  if (row < job.skipped) return;
  const uint64_t sample = (uint64_t) c * job.samples + row - job.skipped;
  const weft_rng graphs = { job.key, WEFT_BN_GRAPHS + job.ladder0 + c };
  int32_t *picks = job.sampled + sample * job.p;
  found = draw(graphs, (job.first + it) * job.p, picks);
  if (!lane) job.sample_score[sample] = weft_div((double) found, job.unit);
  keep_graph(job, list, found, hash_of(picks, job.p, lane), weft_bn_stamp(it, 1), picks, lane);
}

/* Swaps the chain at temperature t with the next hotter one, when it is the colder of a pair of this round; `slot` and
 * `score` are its own and the next one's. */
__device__ static void swap_with_next(const chain_job &job, uint32_t *slot, int64_t *score, uint32_t t, uint32_t c,
                                      uint64_t round)
{
  if ((t ^ (uint32_t) round) & 1 || t + 1 == job.temperatures) return;
  const weft_rng swaps = { job.key, WEFT_BN_SWAPS + job.ladder0 + c };
  uint64_t *counted = job.swapped + 2 * ((uint64_t) c * (job.temperatures - 1) + t);
  counted[1]++;
  if (!weft_bn_accept(job.swap_scale[t], (double) (score[1] - score[0]), weft_draw_words(swaps, round, t))) return;
  counted[0]++;
  const uint32_t other_slot = slot[0];
  const int64_t other_score = score[0];
  slot[0] = slot[1];
  score[0] = score[1];
  slot[1] = other_slot;
  score[1] = other_score;
}

/* What the draws of 32 steps decide, one step per lane: what moves where, and the logarithm for its acceptance. */
struct drawn {
  uint32_t move;
  double log_u;
};

__device__ static drawn draw_steps(const weft_rng &rng, uint64_t number, uint32_t p, uint32_t lane)
{
  const weft_u32x4 draw = weft_draw_words(rng, 32 * number + lane, 0);
  const weft_bn_move move = weft_bn_choose_places(p, draw);
  return { (uint32_t) move.kind << 30 | (uint32_t) move.from << 15 | (uint32_t) move.to,
           weft_log(weft_u01(draw.v[2], draw.v[3])) };
}

/* The nodes of the move are not named yet. */
__device__ static weft_bn_move drawn_move(const drawn &steps, uint32_t number)
{
  const uint32_t packed = __shfl_sync(FULL, steps.move, (int) number);
  return { (int) (packed >> 30), 0, 0, 0, 0, (int32_t) (packed >> 15 & 0x7fff), (int32_t) (packed & 0x7fff) };
}

/* What a temperature carries along; from `threshold` on, a score may join the best graphs. */
struct walker {
  int64_t score;
  uint32_t *accepted;
  int64_t threshold;
  uint64_t list;
};

/* The proposed graph is in r.fresh_pick. */
__device__ static void try_graph(const chain_job &job, const replica &chain, int64_t score, uint64_t stamp,
                                 walker &walk, uint32_t lane)
{
  __syncwarp();
  keep_graph(job, walk.list, score, hash_of(chain.fresh_pick, job.p, lane), stamp, chain.fresh_pick, lane);
  if (job.found.count[walk.list] == job.most) walk.threshold = job.found.score[walk.list * job.most + job.most - 1];
}

/* ---- max, at most 128 nodes ---- */

/* What a lane holds of its nodes lane + 32 k, best sets by their places in the lists of all nodes; and of the order's
 * places. Masks come in parts of 32 bits, so that part h is about the nodes h of all lanes. */
template <int WORDS> struct nodes {
  uint32_t before[2 * WORDS][2 * WORDS], set[2 * WORDS][2 * WORDS];
  uint32_t best[2 * WORDS], first[2 * WORDS], last[2 * WORDS], order[2 * WORDS];
};

__device__ static uint32_t bit_in(int32_t v, int part) { return v >> 5 == part ? 1u << (v & 31) : 0; }

template <int WORDS> __device__ static void get_parts(const uint64_t *words, uint32_t *parts)
{
#pragma unroll
  for (int w = 0; w < WORDS; w++) {
    parts[2 * w] = (uint32_t) words[w];
    parts[2 * w + 1] = (uint32_t) (words[w] >> 32);
  }
}

template <int WORDS>
__device__ static __forceinline__ void load_nodes(const chain_job &job, const replica &chain, nodes<WORDS> &own,
                                                  uint32_t lane)
{
#pragma unroll
  for (int k = 0; k < 2 * WORDS; k++) {
    const uint32_t node = lane + 32 * k;
    if (node >= job.p) continue;
    own.first[k] = (uint32_t) job.start[node];
    own.last[k] = (uint32_t) job.start[node + 1];
    own.best[k] = own.first[k] + chain.pick[node];
    own.order[k] = chain.order[node];
    get_parts<WORDS>(chain.before + node * WORDS, own.before[k]);
    get_parts<WORDS>(job.mask + (uint64_t) own.best[k] * WORDS, own.set[k]);
  }
}

template <int WORDS>
__device__ static __forceinline__ void store_nodes(const chain_job &job, const replica &chain, const nodes<WORDS> &own,
                                                   uint32_t lane)
{
#pragma unroll
  for (int k = 0; k < 2 * WORDS; k++) {
    const uint32_t node = lane + 32 * k;
    if (node >= job.p) continue;
#pragma unroll
    for (int w = 0; w < WORDS; w++)
      chain.before[node * WORDS + w] = (uint64_t) own.before[k][2 * w + 1] << 32 | own.before[k][2 * w];
    chain.pick[node] = (int32_t) (own.best[k] - own.first[k]);
    chain.order[node] = (int32_t) own.order[k];
  }
  __syncwarp();
}

/* Number v of those that the lanes hold. It is picked by masks: a choice would become an index, and arrays that are
 * indexed lie in memory. */
template <int K> __device__ static uint32_t number_of(const uint32_t (&held)[K], int32_t v)
{
  uint32_t number = 0;
#pragma unroll
  for (int k = 0; k < K; k++) number |= held[k] & -(uint32_t) (k == v >> 5);
  return __shfl_sync(FULL, number, v & 31);
}

/* Part h of node v's predecessors. */
template <int WORDS> __device__ static uint32_t before_of(const nodes<WORDS> &own, int32_t v, int h)
{
  uint32_t part = 0;
#pragma unroll
  for (int k = 0; k < 2 * WORDS; k++) part |= own.before[k][h] & -(uint32_t) (k == v >> 5);
  return __shfl_sync(FULL, part, v & 31);
}

template <int P> __device__ static bool within(const uint32_t (&set)[P], const uint32_t (&before)[P])
{
  uint32_t missing = 0;
#pragma unroll
  for (int h = 0; h < P; h++) missing |= set[h] & ~before[h];
  return !missing;
}

template <int WORDS>
/* The first of sets first .. last - 1 whose members are all in `before`, or `last` when there is none; the warp looks
 * at 32 at a time, at the last one more than once. */
__device__ static uint32_t first_within(const chain_job &job, uint32_t first, uint32_t last,
                                        const uint32_t (&before)[2 * WORDS], uint32_t lane)
{
  for (uint32_t at = first; at < last; at += 32) {
    uint32_t set[2 * WORDS];
    get_parts<WORDS>(job.mask + (uint64_t) min(at + lane, last - 1) * WORDS, set);
    const uint32_t there = __ballot_sync(FULL, within(set, before));
    if (there) return at + __ffs((int) there) - 1;
  }
  return last;
}

template <int WORDS>
/* What the lanes hold of the order after the move. */
__device__ static __forceinline__ void move_places(nodes<WORDS> &own, const weft_bn_move &move, uint32_t lane)
{
  if (move.kind == WEFT_BN_SHIFT) {
    const int step = move.from < move.to ? 1 : -1, from_lane = (int) lane + step;
    const int low = step > 0 ? move.from : move.to + 1,
              high = step > 0 ? move.to - 1 : move.from; /* these get what is one further */
    uint32_t further[2 * WORDS];
#pragma unroll
    for (int k = 0; k < 2 * WORDS; k++) further[k] = __shfl_sync(FULL, own.order[k], from_lane & 31);
#pragma unroll
    for (int k = 0; k < 2 * WORDS; k++) {
      const int place = (int) lane + 32 * k;
      if (place >= low && place <= high)
        own.order[k] = from_lane > 31  ? further[k + 1 < 2 * WORDS ? k + 1 : k]
                       : from_lane < 0 ? further[k ? k - 1 : k]
                                       : further[k];
    }
  }
#pragma unroll
  for (int k = 0; k < 2 * WORDS; k++) {
    const int place = (int) lane + 32 * k;
    if (move.kind != WEFT_BN_SHIFT && place == move.from) own.order[k] = move.y;
    if (place == move.to) own.order[k] = move.x;
  }
}

template <int WORDS>
/* All lanes take the same course. A node looks for another set when it loses a member of its best one (a loser), or
 * when it gains what is in a set of its list and its best set is not the first. */
__device__ static __forceinline__ void step_max(const chain_job &job, const replica &chain, nodes<WORDS> &own,
                                                weft_bn_move move, double log_u, double scale, uint64_t iteration,
                                                uint32_t t, walker &walk, uint32_t lane)
{
  constexpr int P = 2 * WORDS;
  weft_bn_name_nodes(&move, (int32_t) number_of(own.order, move.from), (int32_t) number_of(own.order, move.to));
  const bool shift = move.kind == WEFT_BN_SHIFT, left = shift && move.from > move.to;
  const int32_t y = shift ? -1 : move.y; /* in a shift y is one of those between */
  uint32_t mid[P], fresh[P][P], best[P], losers[P], looks[P], users[P] = {};
  uint32_t lost[P], gained[P], lost_by_x[P], gained_by_x[P], lost_by_y[P];
  int64_t difference = 0;
  bool changed = false;
#pragma unroll
  for (int half = 0; half < P; half++) {
    const uint32_t bx = before_of<WORDS>(own, move.x, half), by = before_of<WORDS>(own, move.y, half);
    lost[half] = bit_in(move.lost, half);
    gained[half] = bit_in(move.gained, half);
    mid[half] = left ? bx & ~by : (by & ~bx & ~lost[half]) | (shift ? bit_in(move.y, half) : 0);
    lost_by_x[half] = left ? mid[half] : 0;
    gained_by_x[half] = left ? 0 : mid[half] | gained[half];
    lost_by_y[half] = mid[half] | lost[half];
  }
#pragma unroll
  for (int k = 0; k < P; k++) { /* without branches, which would be executed one after the other */
    const int32_t node = (int32_t) lane + 32 * k;
    const uint32_t between = -(mid[k] >> lane & 1), is_x = -(uint32_t) (node == move.x), is_y = -(uint32_t) (node == y);
    best[k] = own.best[k];
#pragma unroll
    for (int half = 0; half < P; half++)
      fresh[k][half] =
          (own.before[k][half] & ~((between & lost[half]) | (is_x & lost_by_x[half]) | (is_y & lost_by_y[half]))) |
          (between & gained[half]) | (is_x & gained_by_x[half]);
  }
  if (move.gained >= 0) get_parts<WORDS>(job.users + (uint64_t) move.gained * WORDS, users);
#pragma unroll
  for (int k = 0; k < P; k++) {
    const uint32_t better = __ballot_sync(FULL, own.best[k] != own.first[k]);
    losers[k] = __ballot_sync(FULL, !within(own.set[k], fresh[k]));
    looks[k] = losers[k] | (better & ((mid[k] & users[k]) | (left ? 0 : bit_in(move.x, k))));
  }
#pragma unroll
  for (int k = 0; k < P; k++) {
    for (uint32_t rest = looks[k]; rest; rest &= rest - 1) {
      const int who = __ffs((int) rest) - 1, node = who + 32 * k;
      const bool loses = losers[k] >> who & 1, gains = node == move.x ? !left : node != y && move.gained >= 0;
      const uint32_t now = __shfl_sync(FULL, own.best[k], who),
                     last = __shfl_sync(FULL, loses ? own.last[k] : own.best[k], who);
      uint32_t before[P];
#pragma unroll
      for (int half = 0; half < P; half++) before[half] = __shfl_sync(FULL, fresh[k][half], who);
      const uint32_t found = first_within<WORDS>(job, loses && !gains ? now + 1 : __shfl_sync(FULL, own.first[k], who),
                                                 last, before, lane);
      if (found == last) {
        if (loses) return; /* no set is left for it */
        continue;
      }
      changed = true;
      difference += job.score[found] - job.score[now];
      if ((int) lane == who) best[k] = found;
    }
  }
  if (changed && walk.score + difference >= walk.threshold) {
#pragma unroll
    for (int k = 0; k < P; k++)
      if (lane + 32 * k < job.p) chain.fresh_pick[lane + 32 * k] = (int32_t) (best[k] - own.first[k]);
    try_graph(job, chain, walk.score + difference, weft_bn_stamp(iteration, t), walk, lane);
  }
  if (difference < 0 && !weft_bn_accept_log(scale, (double) difference, log_u)) return; /* the scale is positive */
  if (!lane) walk.accepted[move.kind]++;
  walk.score += difference;
#pragma unroll
  for (int k = 0; k < P; k++) {
#pragma unroll
    for (int half = 0; half < P; half++) own.before[k][half] = fresh[k][half];
    if (!changed || best[k] == own.best[k]) continue;
    own.best[k] = best[k];
    get_parts<WORDS>(job.mask + (uint64_t) best[k] * WORDS, own.set[k]);
  }
  move_places<WORDS>(own, move, lane);
}

/* ---- max, more nodes ---- */

/* Position after the move. */
__device__ static int32_t moved(const weft_bn_move &move, int32_t at)
{
  if (at == move.from) return move.to;
  if (move.kind != WEFT_BN_SHIFT) return at == move.to ? move.from : at;
  if (move.from < move.to) return at - (at > move.from && at <= move.to);
  return at + (at >= move.to && at < move.from);
}

/* Whether all members of set `k` come before `at` after the move. */
__device__ static bool comes_after(const chain_job &job, const replica &chain, const weft_bn_move &move, uint64_t k,
                                   int32_t at)
{
  const uint16_t *member = job.member + k * job.width;
  for (uint32_t j = 0; j < job.width && member[j] != 0xffff; j++)
    if (moved(move, chain.place[member[j]]) >= at) return false;
  return true;
}

/* Places and best sets of an order to start from, where masks have more than two words; returns the order's score. */
__device__ static int64_t start_wide(const chain_job &job, const replica &chain, uint32_t lane)
{
  const weft_bn_move none = { WEFT_BN_SWAP, 0, 0, 0, 0, -1, -1 };
  int64_t score = 0;
  for (uint32_t k = lane; k < job.p; k += 32) chain.place[chain.order[k]] = (int32_t) k;
  __syncwarp();
  for (uint32_t node = lane; node < job.p; node += 32) {
    uint64_t k = job.start[node];
    while (k + 1 < (uint64_t) job.start[node + 1] && !comes_after(job, chain, none, k, chain.place[node])) k++;
    chain.pick[node] = (int32_t) (k - job.start[node]);
    score += job.score[k];
  }
  score = total(score);
  __syncwarp();
  return score;
}

/* One Metropolis step where masks have more than two words: a lane looks for a node's best set by the places of the
 * sets' members instead of by masks. */
__device__ static void step_wide(const chain_job &job, const replica &chain, weft_bn_move move, double log_u,
                                 double scale, uint64_t iteration, uint32_t t, walker &walk, uint32_t lane)
{
  weft_bn_name_nodes(&move, chain.order[move.from], chain.order[move.to]);
  const int32_t low = move.from < move.to ? move.from : move.to, high = move.from < move.to ? move.to : move.from;
  const bool right = move.lost == move.x;
  int64_t difference = 0;
  bool impossible = false, changed = false;
  for (int32_t at = low + (int32_t) lane; at <= high; at += 32) {
    const int32_t node = chain.order[at], there = moved(move, at), now = chain.pick[node],
                  count = (int32_t) (job.start[node + 1] - job.start[node]);
    const uint64_t first = job.start[node];
    const bool is_x = at == move.from, is_y = at == move.to && move.kind != WEFT_BN_SHIFT;
    const bool gained = is_x ? right : !is_y && move.gained >= 0, lost = is_x ? !right : is_y || move.lost >= 0;
    int32_t pick = now, from = 0, until = 0;
    if (lost && !comes_after(job, chain, move, first + now, there)) {
      from = gained ? 0 : now + 1;
      pick = until = count;
    } else if (gained && now && (is_x || bit_of(job.users + (uint64_t) move.gained * job.words, node))) {
      until = now;
    }
    for (int32_t k = from; k < until; k++)
      if (comes_after(job, chain, move, first + k, there)) {
        pick = k;
        break;
      }
    chain.fresh_pick[node] = pick;
    if (pick == now) continue;
    if (pick == count) {
      impossible = true;
      continue;
    }
    changed = true;
    difference += job.score[first + pick] - job.score[first + now];
  }
  if (__any_sync(FULL, impossible)) {
    __syncwarp();
    return;
  }
  if (__any_sync(FULL, changed)) {
    difference = total(difference);
    if (walk.score + difference >= walk.threshold) {
      for (uint32_t node = lane; node < job.p; node += 32)
        if (chain.place[node] < low || chain.place[node] > high) chain.fresh_pick[node] = chain.pick[node];
      try_graph(job, chain, walk.score + difference, weft_bn_stamp(iteration, t), walk, lane);
    }
  }
  __syncwarp();
  if (!weft_bn_accept_log(scale, (double) difference, log_u)) return;
  if (!lane) walk.accepted[move.kind]++;
  walk.score += difference;
  for (int32_t at = low + (int32_t) lane; at <= high; at += 32)
    chain.pick[chain.order[at]] = chain.fresh_pick[chain.order[at]];
  __syncwarp();
  move_order(chain, move, lane);
  for (int32_t at = low + (int32_t) lane; at <= high; at += 32) chain.place[chain.order[at]] = at;
  __syncwarp();
}
