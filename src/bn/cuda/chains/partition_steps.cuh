/* Steps of chains over partitions into layers (partitions.c), a warp per chain. Loops over nodes have a lane per node,
 * and loops over the sets of a node have a lane per set; partial sums and their order are those of order_by_sum.c.
 * Moves that need no scores are made by one lane (partition_moves.h). A replica's state has, besides values, picks, the
 * order and, as `place`, each node's layer:
 *
 *   member   p × words       nodes of a layer             before    (p + 1) × words   of all layers before it
 *   fresh    (p + 1) × words proposed layers              ahead     (p + 2) × words   what comes before these
 *   parents  p × words       of a drawn graph             sets      5 × words         of nodes
 *   plan                     what one lane tells the others */
#pragma once

#include "bn/both/partition_moves.h"
#include "bn/cuda/chains/partition_sets.cuh"

struct layers_plan {
  uint64_t count;
  weft_bn_proposal q;
  uint64_t possible;
};

__host__ __device__ static inline uint64_t layers_bytes(uint64_t p, uint64_t words)
{
  return 8 * words * (p + (p + 1) + (p + 1) + (p + 2) + p + 5) + sizeof(layers_plan);
}

/* The address of a part is computed whenever it is needed: kept in a register, it would displace other values. */
struct layers_view {
  const chain_job &job;
  unsigned char *state;
  __device__ int64_t *value() const { return (int64_t *) (state + job.at.value); }
  __device__ int64_t *fresh_value() const { return (int64_t *) (state + job.at.fresh); }
  __device__ int32_t *pick() const { return (int32_t *) (state + job.at.pick); }
  __device__ int32_t *order() const { return (int32_t *) (state + job.at.order); }
  __device__ int32_t *layer() const { return (int32_t *) (state + job.at.place); }
  __device__ uint64_t *masks(uint32_t first) const { return (uint64_t *) (state + job.at.mid) + first * job.words; }
  __device__ uint64_t *member() const { return masks(0); }
  __device__ uint64_t *before() const { return masks(job.p); }
  __device__ uint64_t *fresh() const { return masks(2 * job.p + 1); }
  __device__ uint64_t *ahead() const { return masks(3 * job.p + 2); }
  __device__ uint64_t *parents() const { return masks(4 * job.p + 4); }
  __device__ uint64_t *set(uint32_t k) const { return masks(5 * job.p + 4 + k); }
  __device__ layers_plan *plan() const { return (layers_plan *) masks(5 * job.p + 9); }
};

/* The layer just before the one of `node`; NULL for the first. */
__device__ static const uint64_t *layer_before(const chain_job &job, const layers_view &layers, uint32_t node)
{
  return layers.layer()[node] ? layers.member() + (uint64_t) (layers.layer()[node] - 1) * job.words : NULL;
}

template <int WORDS>
__device__ static offer<WORDS> offer_in_layer(const chain_job &job, const layers_view &layers, uint32_t node,
                                              bool split)
{
  return make_offer<WORDS>(job, layers.before() + (uint64_t) layers.layer()[node] * words_of<WORDS>(job),
                           split ? layer_before(job, layers, node) : NULL);
}

template <int WORDS>
/* A graph given the layers, to `parents` and, unless that is NULL, `picks`; then also its score. Each node has a block
 * of draw `index`, or a draw of its own, from `index` on. `split`: a node has a parent in the layer before its own. The
 * warp looks for each node's first chunk, then each lane draws for a node; few draws go on beyond that chunk. */
__device__ static int64_t draw_layers_graph(const chain_job &job, const layers_view &layers, weft_rng rng,
                                            uint64_t index, bool own_draws, bool split, int32_t *picks, uint32_t lane)
{
  const uint32_t words = words_of<WORDS>(job);
  int64_t score = 0;
  for (uint32_t first = 0; first < job.p; first += 32) {
    const uint32_t z = first + lane, here = job.p - first < 32 ? job.p - first : 32;
    const weft_u32x4 words_drawn =
        own_draws ? weft_draw_words(rng, index + z, 0) : weft_draw_words(rng, index, WEFT_BN_BLOCK_MEMBERS + z);
    offered_sets own = { 0, { 0, 0 } };
    drawn_set drawn = { -1, 0 };
    const bool without =
        lane < here && split && !picks && !layers.layer()[z]; /* no parents: no need to look for that set */
    const uint32_t known = __ballot_sync(FULL, without);
    for (uint32_t k = 0; k < here; k++) {
      if (known >> k & 1) continue;
      const offer<WORDS> wanted = offer_in_layer<WORDS>(job, layers, first + k, split);
      const offered_sets sets = first_offered<WORDS>(job, first + k, wanted, lane);
      if (lane == k) own = sets;
    }
    if (lane < here && !without) {
      drawn.left = weft_u01(words_drawn.v[0], words_drawn.v[1]);
      drawn = draw_within(job, drawn, own, layers.value()[z]);
    }
    for (uint32_t rest = __ballot_sync(FULL, drawn.left >= 0); rest; rest &= rest - 1) {
      const int who = __ffs((int) rest) - 1;
      const uint32_t node = first + (uint32_t) who;
      drawn_set its;
      its.left = __shfl_sync(FULL, drawn.left, who);
      its.pick = __shfl_sync(FULL, drawn.pick, who);
      its = draw_from<WORDS>(job, node, offer_in_layer<WORDS>(job, layers, node, split),
                             __shfl_sync(FULL, own.chunk, who) + 1, its, layers.value()[node], lane);
      if ((int) lane == who) drawn = its;
    }
    for (uint32_t w = 0; w < words && without; w++) layers.parents()[(uint64_t) z * words + w] = 0;
    if (lane >= here || without) continue;
    const uint64_t set = job.start[z] + drawn.pick;
    if (picks) picks[z] = drawn.pick;
    score += job.score[set];
    for (uint32_t w = 0; w < words; w++) layers.parents()[(uint64_t) z * words + w] = job.mask[set * words + w];
  }
  __syncwarp();
  return total(score);
}

/* ---- layers ---- */

template <int WORDS>
/* What comes before each layer from `first` on, and the nodes' layers; members and their count are known. */
__device__ static void number_layers(const chain_job &job, const layers_view &layers, uint32_t first, uint32_t lane)
{
  const uint32_t words = words_of<WORDS>(job), count = (uint32_t) layers.plan()->count;
  for (uint32_t w = lane; w < words; w += 32) {
    uint64_t placed = first ? layers.before()[(uint64_t) first * words + w] : 0;
    for (uint32_t c = first; c < count; c++) {
      layers.before()[(uint64_t) c * words + w] = placed;
      placed |= layers.member()[(uint64_t) c * words + w];
    }
    layers.before()[(uint64_t) count * words + w] = placed;
  }
  for (uint32_t node = lane; node < job.p; node += 32)
    for (uint32_t c = first; c < count; c++)
      if (bit_of(layers.member() + (uint64_t) c * words, (int32_t) node)) {
        layers.layer()[node] = (int32_t) c;
        break;
      }
  __syncwarp();
}

/* Words from .. from + count - 1 to another place, which may overlap. */
__device__ static void move_words(uint64_t *to, const uint64_t *from, uint32_t count, uint32_t lane)
{
  const uint32_t rounds = (count + 31) / 32;
  for (uint32_t k = 0; k < rounds; k++) {
    const uint32_t at = 32 * (to < from ? k : rounds - 1 - k) + lane;
    const uint64_t word = at < count ? from[at] : 0;
    __syncwarp();
    if (at < count) to[at] = word;
    __syncwarp();
  }
}

template <int WORDS> __device__ static void take_layers(const chain_job &job, const layers_view &layers, uint32_t lane)
{
  const uint32_t words = words_of<WORDS>(job);
  const weft_bn_proposal proposal = layers.plan()->q;
  const uint64_t count = layers.plan()->count, behind = proposal.first + proposal.old;
  if (proposal.old != proposal.fresh)
    move_words(layers.member() + (proposal.first + proposal.fresh) * words, layers.member() + behind * words,
               (uint32_t) (count - behind) * words, lane);
  move_words(layers.member() + proposal.first * words, layers.fresh(), (uint32_t) proposal.fresh * words, lane);
  if (!lane) layers.plan()->count = count - proposal.old + proposal.fresh;
  __syncwarp();
  number_layers<WORDS>(job, layers, (uint32_t) proposal.first, lane);
}

template <int WORDS>
/* The layers of the drawn graph are proposed. */
__device__ static void find_layers(const chain_job &job, const layers_view &layers, double ways, uint32_t lane)
{
  const uint32_t words = words_of<WORDS>(job);
  uint64_t *placed = layers.set(0);
  uint32_t left = job.p, count = 0;
  for (uint32_t w = lane; w < words; w += 32) placed[w] = 0;
  __syncwarp();
  for (; left; count++) {
    uint64_t *fresh = layers.fresh() + (uint64_t) count * words;
    for (uint32_t first = 0; first < 64 * words; first += 32) {
      const uint32_t node = first + lane;
      bool ready = node < job.p && !bit_of(placed, (int32_t) node);
      for (uint32_t w = 0; w < words && ready; w++)
        ready = !(layers.parents()[(uint64_t) node * words + w] & ~placed[w]);
      const uint32_t some = __ballot_sync(FULL, ready);
      left -= (uint32_t) __popc(some);
      if (!lane) ((uint32_t *) fresh)[first / 32] = some;
    }
    __syncwarp();
    for (uint32_t w = lane; w < words; w += 32) placed[w] |= fresh[w];
    __syncwarp();
  }
  if (!lane) {
    plan_layers(&layers.plan()->q, 0, layers.plan()->count, count);
    layers.plan()->q.ways = ways;
    layers.plan()->possible = 1;
  }
  __syncwarp();
}

template <int WORDS>
/* All nodes but x and its descendants in the drawn graph without what leads into `orphan`. */
__device__ __noinline__ static void find_others(const chain_job &job, const layers_view &layers, int32_t x,
                                                int32_t orphan, uint64_t *out, uint32_t lane)
{
  const uint32_t words = words_of<WORDS>(job), count = (uint32_t) layers.plan()->count;
  for (uint32_t w = lane; w < words; w += 32) out[w] = word_bit(x, w);
  __syncwarp();
  for (uint32_t c = (uint32_t) layers.layer()[x] + 1; c < count; c++) {
    const uint32_t *member = (const uint32_t *) (layers.member() + (uint64_t) c * words);
    for (uint32_t k = 0; k < 2 * words; k++) {
      if (!member[k]) continue;
      const uint32_t node = 32 * k + lane;
      uint64_t met = 0;
      if (member[k] >> lane & 1 && (int32_t) node != orphan)
        for (uint32_t w = 0; w < words; w++) met |= layers.parents()[(uint64_t) node * words + w] & out[w];
      const uint32_t some = __ballot_sync(FULL, met != 0);
      if (!lane) ((uint32_t *) out)[k] |= some;
      __syncwarp();
    }
  }
  for (uint32_t w = lane; w < words; w += 32) out[w] = ~out[w];
  __syncwarp();
}

/* ---- moves of a graph: false where nothing is proposed ---- */

__device__ static void put_set(uint64_t *out, int32_t member, uint32_t words, uint32_t lane)
{
  for (uint32_t w = lane; w < words; w += 32) out[w] = word_bit(member, w);
  __syncwarp();
}

template <int WORDS>
__device__ static void draw_parents(const chain_job &job, const layers_view &layers, int32_t node,
                                    const uint64_t *before, const uint64_t *last, int64_t value, double uniform,
                                    uint32_t lane)
{
  const uint32_t words = words_of<WORDS>(job);
  const drawn_set none = { uniform, -1 };
  const uint64_t set = job.start[node] + draw_from<WORDS>(job, (uint32_t) node, make_offer<WORDS>(job, before, last),
                                                          job.begin[node], none, value, lane)
                                             .pick;
  for (uint32_t w = lane; w < words; w += 32) layers.parents()[(uint64_t) node * words + w] = job.mask[set * words + w];
  __syncwarp();
}

template <int WORDS>
__device__ static void renew(const chain_job &job, const layers_view &layers, const weft_u32x4 &draw, uint32_t lane)
{
  const int32_t x = (int32_t) below(draw.v[0], job.p);
  uint64_t *others = layers.set(1);
  find_others<WORDS>(job, layers, x, x, others, lane);
  draw_parents<WORDS>(job, layers, x, others, NULL, layer_value<WORDS>(job, (uint32_t) x, others, NULL, lane),
                      weft_u01(draw.v[2], draw.v[3]), lane);
  find_layers<WORDS>(job, layers, 0, lane);
}

__device__ static uint32_t parents_of(const layers_view &layers, uint32_t node, uint32_t words)
{
  uint32_t count = 0;
  for (uint32_t w = 0; w < words; w++) count += (uint32_t) __popcll(layers.parents()[(uint64_t) node * words + w]);
  return count;
}

/* The child of edge n, whose number among the child's edges is left in n. */
__device__ static int32_t child_of(const chain_job &job, const layers_view &layers, uint32_t &n, uint32_t words,
                                   uint32_t lane)
{
  for (uint32_t first = 0;; first += 32) {
    const uint32_t own = first + lane < job.p ? parents_of(layers, first + lane, words) : 0;
    uint32_t until = own;
    for (int d = 1; d < 32; d *= 2) {
      const uint32_t other = __shfl_up_sync(FULL, until, d);
      until += (int) lane >= d ? other : 0;
    }
    const uint32_t beyond = __ballot_sync(FULL, until > n);
    if (beyond) {
      const int who = __ffs((int) beyond) - 1;
      n -= __shfl_sync(FULL, until - own, who);
      return (int32_t) first + who;
    }
    n -= __shfl_sync(FULL, until, 31);
  }
}

template <int WORDS>
/* Reverses an edge of the drawn graph, as propose_reverse() in partitions.c does, and proposes the new graph's
 * layers. False when nothing is proposed. */
__device__ static bool reverse(const chain_job &job, const layers_view &layers, weft_rng rng, uint64_t step,
                               const weft_u32x4 &draw, uint32_t lane)
{
  const uint32_t words = words_of<WORDS>(job);
  uint64_t *for_x = layers.set(1), *for_y = layers.set(2), *both = layers.set(3), *only = layers.set(4);
  uint32_t own = 0;
  for (uint32_t node = lane; node < job.p; node += 32) own += parents_of(layers, node, words);
  const uint32_t edges = (uint32_t) total(own);
  if (!edges) return false;
  uint32_t n = (uint32_t) below(draw.v[0], edges);
  const int32_t y = child_of(job, layers, n, words, lane), x = nth_member(layers.parents() + (uint64_t) y * words, n);
  if (!bit_of(job.offered + (uint64_t) x * words, y)) return false;
  const uint32_t old = parents_of(layers, (uint32_t) x, words) + parents_of(layers, (uint32_t) y, words);
  find_others<WORDS>(job, layers, x, y, for_x, lane);
  find_others<WORDS>(job, layers, y, x, for_y, lane);
  for (uint32_t w = lane; w < words; w += 32) both[w] = for_x[w] & for_y[w];
  put_set(only, y, words, lane);
  const int64_t x_there = layer_value<WORDS>(job, (uint32_t) x, for_x, only, lane);
  const int64_t y_there = layer_value<WORDS>(job, (uint32_t) y, both, NULL, lane);
  if (x_there == WEFT_BN_NEVER || y_there == WEFT_BN_NEVER) return false;
  const weft_u32x4 of_x = weft_draw_words(rng, step, WEFT_BN_BLOCK_MEMBERS + job.p),
                   of_y = weft_draw_words(rng, step, WEFT_BN_BLOCK_MEMBERS + job.p + 1);
  draw_parents<WORDS>(job, layers, x, for_x, only, x_there, weft_u01(of_x.v[0], of_x.v[1]), lane);
  draw_parents<WORDS>(job, layers, y, both, NULL, y_there, weft_u01(of_y.v[0], of_y.v[1]), lane);
  put_set(only, x, words, lane);
  const int64_t y_back = layer_value<WORDS>(job, (uint32_t) y, for_y, only, lane);
  const int64_t x_back = layer_value<WORDS>(job, (uint32_t) x, both, NULL, lane);
  const uint32_t after =
      edges - old + parents_of(layers, (uint32_t) x, words) + parents_of(layers, (uint32_t) y, words);
  find_layers<WORDS>(job, layers,
                     weft_add(weft_log(weft_div((double) edges, (double) after)),
                              weft_div((double) (x_there - y_back + (y_there - x_back)), job.unit)),
                     lane);
  return true;
}

/* ---- steps ---- */

/* Layer c of the partition after the move, and where its parts are: the new layers and the one behind them. */
__device__ static const uint64_t *layer_after(const layers_view &layers, const weft_bn_proposal &proposal, uint32_t c,
                                              uint32_t words)
{
  return c < proposal.fresh ? layers.fresh() + (uint64_t) c * words
                            : layers.member() + (proposal.first + proposal.old) * words;
}

__device__ static const uint64_t *last_after(const layers_view &layers, const weft_bn_proposal &proposal, uint32_t c,
                                             uint32_t words)
{
  if (c) return layer_after(layers, proposal, c - 1, words);
  return proposal.first ? layers.member() + (proposal.first - 1) * words : NULL;
}

template <int WORDS>
/* Values of the nodes that are offered something else, which are in `changed`; false when the partition has no
 * graphs. `score`: what it is worth. */
__device__ static bool value_layers(const chain_job &job, const layers_view &layers, uint64_t *changed, int64_t &score,
                                    uint32_t lane)
{
  const uint32_t words = words_of<WORDS>(job);
  const weft_bn_proposal proposal = layers.plan()->q;
  const uint32_t touched = (uint32_t) (proposal.fresh + (proposal.first + proposal.old < layers.plan()->count));
  for (uint32_t w = lane; w < words; w += 32) {
    uint64_t placed = proposal.first ? layers.before()[proposal.first * words + w] : 0;
    changed[w] = 0;
    for (uint32_t c = 0; c < touched; c++) {
      layers.ahead()[(uint64_t) c * words + w] = placed;
      placed |= layer_after(layers, proposal, c, words)[w];
    }
  }
  __syncwarp();
  for (uint32_t c = 0; c < touched; c++) {
    const uint64_t *before = layers.ahead() + (uint64_t) c * words, *last = last_after(layers, proposal, c, words);
    const uint32_t *member = (const uint32_t *) layer_after(layers, proposal, c, words);
    for (uint32_t k = 0; k < 2 * words; k++) {
      if (!member[k]) continue;
      const uint32_t node = 32 * k + lane;
      uint64_t differs = 0, met = 0;
      const bool here = member[k] >> lane & 1;
      if (here) {
        const uint64_t *old = layers.before() + (uint64_t) layers.layer()[node] * words,
                       *old_last = layer_before(job, layers, node);
        for (uint32_t w = 0; w < words; w++) {
          const uint64_t some = job.offered[(uint64_t) node * words + w], now = last ? last[w] : 0;
          differs |= ((old[w] ^ before[w]) | ((old_last ? old_last[w] : 0) ^ now)) & some;
          met |= now & some;
        }
        layers.pick()[node] = (int32_t) c;
      }
      if (__any_sync(FULL, here && last && !met)) return false;
      const uint32_t some = __ballot_sync(FULL, differs != 0);
      if (!lane) ((uint32_t *) changed)[k] |= some;
    }
  }
  __syncwarp();
  for (uint32_t w = 0; w < words; w++)
    for (uint64_t word = changed[w]; word; word &= word - 1) {
      const uint32_t node = 64 * w + (uint32_t) lowest_of(word), c = (uint32_t) layers.pick()[node];
      const int64_t value = layer_value<WORDS>(job, node, layers.ahead() + (uint64_t) c * words,
                                               last_after(layers, proposal, c, words), lane);
      if (value == WEFT_BN_NEVER) return false;
      score += value - layers.value()[node];
      if (!lane) layers.fresh_value()[node] = value;
    }
  __syncwarp();
  return true;
}

template <int WORDS>
/* One Metropolis step of a chain over layers by a warp; `now` is its score, before and after. */
__device__ static void step_layers(const chain_job &job, const layers_view &layers, weft_rng rng, uint64_t step,
                                   uint32_t temperature, int64_t &now, uint32_t *accepted, uint32_t lane)
{
  const uint32_t words = words_of<WORDS>(job);
  const weft_u32x4 draw = weft_draw_words(rng, step, WEFT_BN_BLOCK_MOVE),
                   places = weft_draw_words(rng, step, WEFT_BN_BLOCK_PLACES);
  const uint32_t kind = draw.v[0] >> 28;
  const int move = weft_bn_layer_move(kind);
  uint64_t *changed = layers.set(0);
  int64_t score = now;
  if (move < WEFT_BN_REVERSE) {
    if (!lane) {
      weft_bn_partition own;
      own.p = job.p;
      own.count = layers.plan()->count;
      own.member = layers.member();
      own.fresh = layers.fresh();
      own.log_factorial = job.log_factorial;
      layers.plan()->possible =
          (uint64_t) weft_bn_propose_layers(&own, rng, step, kind, places, &layers.plan()->q, words);
    }
    __syncwarp();
  } else {
    draw_layers_graph<WORDS>(job, layers, rng, step, false, true, NULL, lane);
    if (move == WEFT_BN_RENEW)
      renew<WORDS>(job, layers, places, lane);
    else if (!reverse<WORDS>(job, layers, rng, step, places, lane))
      return;
  }
  if (!layers.plan()->possible) return;
  if (!value_layers<WORDS>(job, layers, changed, score, lane)) return;
  const double gain = weft_mul(move < WEFT_BN_REVERSE ? job.scale[temperature] : job.scale_of_graphs[temperature],
                               (double) (score - now));
  if (!weft_bn_accept(1, weft_add(gain, layers.plan()->q.ways), draw)) return;
  for (uint32_t node = lane; node < job.p; node += 32)
    if (bit_of(changed, (int32_t) node)) layers.value()[node] = layers.fresh_value()[node];
  take_layers<WORDS>(job, layers, lane);
  if (!lane) accepted[move]++;
  now = score;
}

/* ---- kernels ---- */

template <int WORDS>
/* The best graph of the layers, to `picks`; its score. */
__device__ static int64_t best_layers_graph(const chain_job &job, const layers_view &layers, int32_t *picks,
                                            uint32_t lane)
{
  const uint32_t words = words_of<WORDS>(job);
  int64_t score = 0;
  for (uint32_t node = 0; node < job.p; node++) {
    const uint64_t *before = layers.before() + (uint64_t) layers.layer()[node] * words;
    const uint64_t first = job.start[node], last = job.start[node + 1];
    uint64_t found = last - 1;
    for (uint64_t k = first; k < last; k += 32) {
      uint64_t missing = k + lane < last ? 0 : 1;
      for (uint32_t w = 0; w < words && !missing; w++) missing = job.mask[(k + lane) * words + w] & ~before[w];
      const uint32_t some = __ballot_sync(FULL, !missing);
      if (some) {
        found = k + __ffs((int) some) - 1;
        break;
      }
    }
    if (!lane) picks[node] = (int32_t) (found - first);
    score += job.score[found];
  }
  __syncwarp();
  return score;
}

template <int WORDS>
/* Values of all nodes; `split` as above. Their sum, or WEFT_BN_NEVER. */
__device__ static int64_t value_all(const chain_job &job, const layers_view &layers, bool split, uint32_t lane)
{
  int64_t sum = 0;
  for (uint32_t node = 0; node < job.p; node++) {
    const int64_t value = layer_value<WORDS>(job, node, layers.before() + (uint64_t) layers.layer()[node] * job.words,
                                             split ? layer_before(job, layers, node) : NULL, lane);
    if (value == WEFT_BN_NEVER) return value;
    if (!lane) layers.value()[node] = value;
    sum += value;
  }
  __syncwarp();
  return sum;
}

/* Layers as they are given, or drawn given the order: their scores. */
template <int WORDS> __global__ static void start_layers(const __grid_constant__ chain_job job)
{
  const uint32_t lane = threadIdx.x % 32, temperature = threadIdx.x / 32, words = words_of<WORDS>(job);
  const uint64_t number = (uint64_t) blockIdx.x * job.temperatures + temperature;
  const layers_view layers = { job, job.state + number * job.at.step };
  const bool given = layers.layer()[0] >= 0;
  for (uint32_t k = lane; k < job.p * words; k += 32) layers.member()[k] = 0;
  __syncwarp();
  if (!lane) {
    uint64_t count = 0;
    for (uint32_t k = 0; k < job.p; k++) { /* in an order each node is a layer */
      const uint64_t c = given ? (uint64_t) layers.layer()[k] : k;
      set_bit(layers.member() + c * words, given ? (int32_t) k : layers.order()[k]);
      if (c >= count) count = c + 1;
    }
    layers.plan()->count = count;
  }
  __syncwarp();
  number_layers<WORDS>(job, layers, 0, lane);
  if (!given) {
    const weft_rng rng = { job.key, WEFT_BN_STARTS + (job.ladder0 * job.temperatures + (uint32_t) number) };
    value_all<WORDS>(job, layers, false, lane);
    draw_layers_graph<WORDS>(job, layers, rng, job.p, true, false, layers.pick(), lane); /* the order took p draws */
    find_layers<WORDS>(job, layers, 0, lane);
    take_layers<WORDS>(job, layers, lane);
  }
  const int64_t score = value_all<WORDS>(job, layers, true, lane),
                best = best_layers_graph<WORDS>(job, layers, layers.pick(), lane);
  keep_graph(job, number, best, hash_of(layers.pick(), job.p, lane), weft_bn_stamp(0, temperature), layers.pick(),
             lane);
  if (!lane) {
    job.now[number] = score;
    job.slot[number] = temperature;
  }
}

template <int WORDS>
/* A block per ladder, a warp per temperature. Iterations from .. from + count - 1 of this run (from 0). */
__global__ static void __launch_bounds__(32 * MAX_TEMPERATURES, 2)
    run_layers(const __grid_constant__ chain_job job, uint64_t from, uint64_t count)
{
  extern __shared__ uint64_t shared[];
  __shared__ uint32_t slot[MAX_TEMPERATURES], accepted[MAX_TEMPERATURES][WEFT_BN_MAX_MOVES];
  __shared__ int64_t score_at[MAX_TEMPERATURES];
  const uint32_t lane = threadIdx.x % 32, temperature = threadIdx.x / 32, c = blockIdx.x, ladder = job.ladder0 + c;
  const uint64_t first_replica = (uint64_t) c * job.temperatures, list = first_replica + temperature;
  const weft_rng rng = { job.key, WEFT_BN_STEPS + (ladder * job.temperatures + temperature) };
  unsigned char *own = job.in_shared ? (unsigned char *) shared : job.state + first_replica * job.at.step;
  if (job.in_shared)
    copy_state(own + (uint64_t) temperature * job.at.step, job.state + list * job.at.step, job.at.step, lane);
  if (lane < WEFT_BN_MAX_MOVES) accepted[temperature][lane] = 0;
  if (!lane) slot[temperature] = job.slot[list];
  __syncthreads();
  layers_view layers = { job, own + (uint64_t) slot[temperature] * job.at.step };
  int64_t score = job.now[first_replica + slot[temperature]];
  for (uint64_t it = from; it < from + count; it++) {
    const uint64_t absolute = job.first + it;
    if (job.p > 1) step_layers<WORDS>(job, layers, rng, absolute, temperature, score, accepted[temperature], lane);
    __syncwarp();
    if (temperature == 0 && (it + 1) % job.thin == 0)
      save(
          job, c, score, it + 1, layers.pick(),
          [&](int32_t *picks) { return best_layers_graph<WORDS>(job, layers, picks, lane); },
          [&](weft_rng graphs, uint64_t first, int32_t *picks) {
            return draw_layers_graph<WORDS>(job, layers, graphs, first, true, true, picks, lane);
          },
          lane);
    if (job.temperatures == 1 || (absolute + 1) % job.swap_every) continue;
    if (!lane) score_at[temperature] = score;
    __syncthreads();
    if (!lane)
      swap_with_next(job, slot + temperature, score_at + temperature, temperature, c, (absolute + 1) / job.swap_every);
    __syncthreads();
    score = score_at[temperature];
    layers.state = own + (uint64_t) slot[temperature] * job.at.step;
  }
  for (uint32_t node = lane; node < job.p; node += 32) { /* the order: by layers, then by nodes */
    const uint32_t words = words_of<WORDS>(job);
    const uint64_t at = (uint64_t) layers.layer()[node] * words;
    uint32_t place = 0;
    for (uint32_t w = 0; w < words; w++) {
      const uint64_t earlier = w < node / 64 ? ~(uint64_t) 0 : w == node / 64 ? word_bit((int32_t) node, w) - 1 : 0;
      place += (uint32_t) (__popcll(layers.before()[at + w]) + __popcll(layers.member()[at + w] & earlier));
    }
    layers.order()[place] = (int32_t) node;
  }
  __syncthreads();
  if (!lane) {
    job.now[first_replica + slot[temperature]] = score;
    job.slot[list] = slot[temperature];
    for (uint32_t k = 0; k < job.moves; k++) job.accepted[(job.moves + 1) * list + k] += accepted[temperature][k];
    job.accepted[(job.moves + 1) * list + job.moves] += count;
  }
  if (job.in_shared)
    copy_state(job.state + list * job.at.step, own + (uint64_t) temperature * job.at.step, job.at.step, lane);
}
