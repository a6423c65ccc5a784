/* Steps of chains that score an order by the sum over its graphs, many chains per block.
 *
 * A step asks for the values of about ten nodes, each a sum over thousands of sets; 4,096 chains that read those one by
 * one need more than the second-level cache can deliver. So the chains of a block proceed in step, and a node's sets
 * are read once for all that ask for it:
 *
 *   ask       a warp per chain     proposes a move and enters the chain at every node that needs a new value
 *   values    a warp per node      takes up to twelve of its chains: a lane per set, a partial sum per chain
 *   answer    a warp per chain     adds up, accepts or not
 *
 * with a barrier after the first and the second. Partial sums and their order are those of order_by_sum.c.
 *
 * A block's room, in shared memory where it fits, else in device memory:
 *
 *   state   chains × at.step    what a replica is (steps.cuh)
 *   asks    p × chains of 16 bits   the chains that ask for a node
 *   wide    warps × WIDE_COLUMNS × words   predecessors, where masks have more than two words
 *   count   2 × p of 32 bits    how many ask; of this step and of the next
 *   queue   p of 32 bits        nodes asked for: those with long lists from the front, others from the back */
#pragma once

#include "bn/cuda/chains/steps.cuh"

#define WARPS 8
#define BLOCKS_EACH 2  /* a multiprocessor: while one waits at a barrier the other continues */
#define MAX_CHAINS 64  /* a block */
#define MAX_COLUMNS 12 /* chains that a warp takes at once */
#define WIDE_COLUMNS 4

/* Chains that a warp takes at once with masks of WORDS words. */
template <int WORDS> __device__ __forceinline__ constexpr uint32_t max_columns()
{
  return WORDS == 1 ? MAX_COLUMNS : WORDS == 2 ? 8 : WIDE_COLUMNS;
}

struct room_layout {
  uint64_t asks, wide, count, queue, bytes;
};

__host__ __device__ static inline room_layout lay_out_room(uint64_t p, uint64_t words, uint64_t chains, uint64_t step)
{
  room_layout at;
  uint64_t bytes = chains * step;
  at.asks = bytes;
  bytes += (2 * p * chains + 7) / 8 * 8;
  at.wide = bytes;
  bytes += words > 2 ? 8 * words * WIDE_COLUMNS * WARPS : 0;
  at.count = bytes;
  bytes += 8 * p;
  at.queue = bytes;
  bytes += 4 * p;
  at.bytes = (bytes + 15) / 16 * 16;
  return at;
}

/* ---- values of a node ---- */

/* Column e's sum of a partial sum per lane, in lanes e * 32 / P and on, where P is the power of two that holds C:
 * halves of the columns change places with halves of the lanes. */
template <int C, int P, int D> __device__ __forceinline__ double fold(double *part, uint32_t lane)
{
  if constexpr (D == 0) {
    return part[0];
  } else {
    if constexpr (P > 1) {
      constexpr int half = P / 2;
#pragma unroll
      for (int i = 0; i < half; i++) {
        const double low = i < C ? part[i] : 0, high = i + half < C ? part[i + half] : 0;
        const double given = __shfl_xor_sync(FULL, lane & D ? low : high, D);
        part[i] = weft_add(lane & D ? high : low, given);
      }
      return fold<(C < half ? C : half), half, D / 2>(part, lane);
    } else {
      part[0] = weft_add(part[0], __shfl_xor_sync(FULL, part[0], D));
      return fold<1, 1, D / 2>(part, lane);
    }
  }
}

template <int C> __device__ __forceinline__ constexpr int holding()
{
  return C > 8 ? 16 : C > 4 ? 8 : C > 2 ? 4 : C > 1 ? 2 : 1;
}

template <int WORDS>
/* Adds the weight when the set has nothing that is missing, without a branch: three instructions where masks have one
 * word. This is what the kernel does most. */
__device__ __forceinline__ void add_fitting(double &part, const uint64_t *set, const uint64_t *missing, double weight)
{
  uint32_t lacks = 0;
#pragma unroll
  for (int w = 0; w < WORDS; w++)
    lacks |= ((uint32_t) set[w] & (uint32_t) missing[w]) | ((uint32_t) (set[w] >> 32) & (uint32_t) (missing[w] >> 32));
  asm("{.reg .pred fits;\nsetp.eq.u32 fits, %1, 0;\n@fits add.rn.f64 %0, %0, %2;\n}"
      : "+d"(part)
      : "r"(lacks), "d"(weight));
}

/* A lane's two sets of a chunk. */
template <int WORDS> struct lane_sets {
  uint64_t set[2][WORDS];
  double weight[2];
};

template <int WORDS>
__device__ __forceinline__ void load_sets(const chain_job &job, uint32_t c, uint32_t lane, lane_sets<WORDS> &out)
{
#pragma unroll
  for (int k = 0; k < 2; k++) {
    const uint64_t at = (uint64_t) c * WEFT_BN_CHUNK + 32 * k + lane;
    out.weight[k] = job.weight[at];
#pragma unroll
    for (int w = 0; w < WORDS; w++) out.set[k][w] = job.chunk_mask[at * WORDS + w];
  }
}

template <int WORDS, int C>
__device__ __forceinline__ void add_sets(double *part, const lane_sets<WORDS> &sets, const uint64_t *missing)
{
#pragma unroll
  for (int k = 0; k < 2; k++)
#pragma unroll
    for (int e = 0; e < C; e++) add_fitting<WORDS>(part[e], sets.set[k], missing + e * WORDS, sets.weight[k]);
}

template <int WORDS, int C>
__device__ __forceinline__ void add_some_sets(double *part, const lane_sets<WORDS> &sets, const uint64_t *missing,
                                              uint32_t active)
{
#pragma unroll
  for (int k = 0; k < 2; k++)
#pragma unroll
    for (int e = 0; e < C; e++)
      if (active >> e & 1) add_fitting<WORDS>(part[e], sets.set[k], missing + e * WORDS, sets.weight[k]);
}

template <int C>
/* Adds a lane's two sets of chunk c to the partial sums of the columns in `active` that they fit, where masks have
 * more than two words. */
__device__ __forceinline__ void add_wide_sets(const chain_job &job, double *part, uint32_t c, const uint64_t *wide,
                                              uint32_t active, uint32_t lane)
{
  for (int k = 0; k < 2; k++) {
    const uint64_t at = (uint64_t) c * WEFT_BN_CHUNK + 32 * k + lane;
    uint32_t fit = active;
    for (uint32_t w = 0; w < job.words; w++) {
      const uint64_t set = job.chunk_mask[at * job.words + w];
#pragma unroll
      for (int e = 0; e < C; e++)
        if (set & wide[e * job.words + w]) fit &= ~(1u << e);
    }
#pragma unroll
    for (int e = 0; e < C; e++)
      if (fit >> e & 1) part[e] = weft_add(part[e], job.weight[at]);
  }
}

template <int WORDS, int C>
/* ln Σ over the sets of `node` that fit, of C orders at once, of which `columns` are asked for; lane e gets that of
 * order e. missing: word w of what does not come before the node in order e, less the node itself, is missing[e * WORDS
 * + w], or wide[e * words + w] where WORDS is 0; all ones where no order is. Every set has its node as a mark, so that
 * nothing fits a column whose words are all ones, which is how a column ends. */
__device__ __forceinline__ int64_t node_values(const chain_job &job, uint32_t node, uint32_t columns, uint64_t *missing,
                                               const uint64_t *wide, uint32_t lane)
{
  const uint32_t end = job.begin[node + 1], all = (1u << columns) - 1;
  const bool mine = lane < columns;
  bool found = false;
  uint32_t stop = 0, closed = 0;
  int64_t reference = 0;
  double part[C];
  lane_sets<WORDS ? WORDS : 1> one, two; /* this chunk's and the next one's sets */
#pragma unroll
  for (int e = 0; e < C; e++) part[e] = 0;
  if constexpr (WORDS > 0) {
    load_sets<WORDS>(job, job.begin[node], lane, one);
    load_sets<WORDS>(job, job.begin[node] + 1 < end ? job.begin[node] + 1 : end - 1, lane, two);
  }
  for (uint32_t c = job.begin[node]; c < end;) {
    const uint32_t ended = __ballot_sync(FULL, mine && found && c >= stop),
                   without = __ballot_sync(FULL, mine && !found);
    if (ended == all) break;
    if constexpr (WORDS > 0) {
      if (ended != closed) {
#pragma unroll
        for (int e = 0; e < C; e++)
#pragma unroll
          for (int w = 0; w < WORDS; w++)
            if ((ended & ~closed) >> e & 1) missing[e * WORDS + w] = ~(uint64_t) 0;
        closed = ended;
      }
      if (!without) { /* up to where the next column ends */
        uint32_t until = mine && c < stop ? stop : UINT32_MAX;
#pragma unroll
        for (int d = 16; d; d /= 2) {
          const uint32_t other = __shfl_xor_sync(FULL, until, d);
          if (other < until) until = other;
        }
        for (; c + 2 <= until; c += 2) {
          add_sets<WORDS, C>(part, one, missing);
          load_sets<WORDS>(job, c + 2 < end ? c + 2 : end - 1, lane, one);
          add_sets<WORDS, C>(part, two, missing);
          load_sets<WORDS>(job, c + 3 < end ? c + 3 : end - 1, lane, two);
        }
        if (c == until) continue;
      }
    }
    const weft_bn_chunk here = job.chunk[c];
    const uint32_t active = here.copies ? all & ~ended & ~without : all & ~ended;
    if constexpr (WORDS > 0) {
      if (here.copies && without) {
        if (active) add_some_sets<WORDS, C>(part, one, missing, active);
      } else {
        add_sets<WORDS, C>(part, one, missing);
      }
      one = two;
      load_sets<WORDS>(job, c + 2 < end ? c + 2 : end - 1, lane, two);
    } else if (active) {
      add_wide_sets<C>(job, part, c, wide, active, lane);
    }
    c++;
    if (!without || here.copies) continue;
    uint32_t some = 0;
#pragma unroll
    for (int e = 0; e < C; e++) some |= __any_sync(FULL, __double2hiint(part[e]) != 0) ? 1u << e : 0;
    if (some >> lane & 1 && mine && !found) {
      found = true;
      stop = here.stop;
      reference = here.reference;
    }
  }
  const double folded = fold<C, holding<C>(), 16>(part, lane);
  const double sum = __shfl_sync(FULL, folded, (int) (lane * (32 / holding<C>()) % 32));
  if (!mine || !(sum > 0)) return WEFT_BN_NEVER;
  return reference + (int64_t) rint(weft_mul(weft_log(sum), job.unit));
}

template <int WORDS>
/* ln Σ over the sets of `node` that fit one order, given its predecessors: for orders to start from. `scratch` has room
 * for a mask where WORDS is 0. */
__device__ static int64_t node_value(const chain_job &job, uint32_t node, const uint64_t *before, uint64_t *scratch,
                                     uint32_t lane)
{
  uint64_t missing[WORDS ? WORDS : 1];
  if constexpr (WORDS > 0) {
#pragma unroll
    for (int w = 0; w < WORDS; w++) missing[w] = ~(before[w] | word_bit((int32_t) node, w));
  } else {
    __syncwarp();
    for (uint32_t w = lane; w < job.words; w += 32) scratch[w] = ~(before[w] | word_bit((int32_t) node, w));
    __syncwarp();
  }
  return __shfl_sync(FULL, node_values<WORDS, 1>(job, node, 1, missing, scratch, lane), 0);
}

/* ---- a block and its chains ---- */

struct block_state {
  uint32_t slot[MAX_CHAINS], accepted[MAX_CHAINS][3];
  int64_t score[MAX_CHAINS];
  weft_bn_move move[MAX_CHAINS];
  uint32_t queued[2][2], taken[2]; /* this step and the next; long lists and short ones */
};

struct block_view {
  unsigned char *state;
  uint16_t *asks;
  uint64_t *wide;
  uint32_t *count, *queue;
  uint32_t chains; /* of a whole block: the stride of asks */
};

__device__ static uint64_t *asked(const replica &chain, uint32_t words)
{
  return chain.mid + words;
} /* the nodes that need a new value */

template <int WORDS>
/* Proposes the move of chain `number` and enters the chain at every node whose value changes; the first to ask for a
 * node queues it. */
__device__ static void ask(const chain_job &job, const block_view &view, block_state &block, const replica &chain,
                           uint32_t number, const weft_u32x4 &draw, uint32_t parity, uint32_t lane)
{
  const uint32_t words = words_of<WORDS>(job);
  const weft_bn_move move = weft_bn_choose_move(chain.order, job.p, draw);
  const uint64_t *by_lost = job.users + (uint64_t) (move.lost < 0 ? move.x : move.lost) * words;
  const uint64_t *by_gained = job.users + (uint64_t) (move.gained < 0 ? move.x : move.gained) * words;
  between<WORDS>(job, chain, move, lane);
  if (!lane) block.move[number] = move;
  for (uint32_t first = 0; first < 64 * words; first += 32) {
    const int32_t node = (int32_t) (first + lane);
    const int what = node < (int32_t) job.p ? role(chain, move, node) : NOT_MOVED;
    const bool needed =
        what == IS_X || what == IS_Y || (what == BETWEEN && (bit_of(by_lost, node) || bit_of(by_gained, node)));
    const uint32_t some = __ballot_sync(FULL, needed);
    if (!lane) ((uint32_t *) asked(chain, words))[first / 32] = some;
    if (!needed) continue;
    const uint32_t place = atomicAdd(&view.count[parity * job.p + node], 1u);
    view.asks[(uint64_t) node * view.chains + place] = (uint16_t) number;
    if (place) continue;
    const uint32_t length = job.begin[node + 1] - job.begin[node];
    if (length >= job.long_list)
      view.queue[atomicAdd(&block.queued[parity][0], 1u)] = (uint32_t) node;
    else
      view.queue[job.p - 1 - atomicAdd(&block.queued[parity][1], 1u)] = (uint32_t) node;
  }
  __syncwarp();
}

template <int WORDS, int C>
/* The values of `node` for the chains that asked for it from `first` on. */
__device__ static void answer_some(const chain_job &job, const block_view &room_view, const block_state &block,
                                   uint32_t node, uint32_t first, uint32_t columns, uint32_t lane)
{
  const uint32_t words = words_of<WORDS>(job),
                 number = lane < columns ? room_view.asks[(uint64_t) node * room_view.chains + first + lane] : 0;
  const replica chain = view(job, room_view.state + (uint64_t) block.slot[number] * job.at.step);
  uint64_t missing[C * (WORDS ? WORDS : 1)],
      *wide = WORDS ? NULL : room_view.wide + (uint64_t) (threadIdx.x / 32) * WIDE_COLUMNS * words;
  const int what = role(chain, block.move[number], (int32_t) node);
  if constexpr (WORDS > 0) {
#pragma unroll
    for (int w = 0; w < WORDS; w++) {
      const uint64_t own =
          lane < columns
              ? ~(after(chain, block.move[number], what, (int32_t) node, w, WORDS) | word_bit((int32_t) node, w))
              : ~(uint64_t) 0;
#pragma unroll
      for (int e = 0; e < C; e++) missing[e * WORDS + w] = __shfl_sync(FULL, own, e);
    }
  } else {
    __syncwarp();
    for (uint32_t w = 0; w < words && lane < C; w++)
      wide[lane * words + w] =
          lane < columns
              ? ~(after(chain, block.move[number], what, (int32_t) node, w, words) | word_bit((int32_t) node, w))
              : ~(uint64_t) 0;
    __syncwarp();
  }
  const int64_t value = node_values<WORDS, C>(job, node, columns, missing, wide, lane);
  if (lane < columns) chain.fresh_value[node] = value;
}

template <int WORDS>
/* All chains that asked for `node`, in parts as even as can be. */
__device__ static void answer_node(const chain_job &job, const block_view &view, const block_state &block,
                                   uint32_t node, uint32_t parity, uint32_t lane)
{
  const uint32_t count = view.count[parity * job.p + node],
                 parts = (count + max_columns<WORDS>() - 1) / max_columns<WORDS>();
  const uint32_t each = (count + parts - 1) / parts;
  for (uint32_t first = 0; first < count; first += each) {
    const uint32_t columns = count - first < each ? count - first : each;
    if constexpr (WORDS == 1) {
      if (columns > 8)
        answer_some<1, 12>(job, view, block, node, first, columns, lane);
      else if (columns > 4)
        answer_some<1, 8>(job, view, block, node, first, columns, lane);
      else if (columns > 2)
        answer_some<1, 4>(job, view, block, node, first, columns, lane);
      else
        answer_some<1, 2>(job, view, block, node, first, columns, lane);
    } else if constexpr (WORDS == 2) {
      if (columns > 4)
        answer_some<2, 8>(job, view, block, node, first, columns, lane);
      else
        answer_some<2, 4>(job, view, block, node, first, columns, lane);
    } else {
      answer_some<0, WIDE_COLUMNS>(job, view, block, node, first, columns, lane);
    }
  }
}

template <int WORDS>
/* Adds up what the move of chain `number` changes, and carries it out or leaves all as it is. */
__device__ static void accept_or_not(const chain_job &job, block_state &block, const replica &chain, uint32_t number,
                                     const weft_u32x4 &draw, double scale, uint32_t lane)
{
  const weft_bn_move move = block.move[number];
  const uint64_t *changed = asked(chain, words_of<WORDS>(job));
  int64_t difference = 0;
  bool impossible = false;
  for (int32_t node = (int32_t) lane; node < (int32_t) job.p; node += 32) {
    if (!bit_of(changed, node)) continue;
    impossible = impossible || chain.fresh_value[node] == WEFT_BN_NEVER;
    difference += chain.fresh_value[node] - chain.value[node];
  }
  if (__any_sync(FULL, impossible)) return;
  difference = total(difference);
  if (!weft_bn_accept(scale, (double) difference, draw)) return;
  if (!lane) {
    block.accepted[number][move.kind]++;
    block.score[number] += difference;
  }
  for (int32_t node = (int32_t) lane; node < (int32_t) job.p; node += 32)
    if (bit_of(changed, node)) chain.value[node] = chain.fresh_value[node];
  __syncwarp();
  make_move<WORDS>(job, chain, move, lane);
}

/* A graph drawn given the order: a lane per node, its sets in their order. */
__device__ static int64_t draw_graph(const chain_job &job, const replica &chain, weft_rng rng, uint64_t first,
                                     int32_t *picks, uint32_t lane)
{
  int64_t score = 0;
  for (uint32_t node = lane; node < job.p; node += 32) {
    const uint64_t *before = chain.before + (uint64_t) node * job.words;
    double left = weft_draw_uniform(rng, first + node);
    int32_t pick = -1;
    for (uint32_t c = job.begin[node]; c < job.begin[node + 1] && left >= 0; c++) {
      const weft_bn_chunk one = job.chunk[c];
      if (one.copies) continue;
      const double scale = weft_exp(weft_div((double) (one.reference - chain.value[node]), job.unit));
      for (uint32_t j = 0; j < WEFT_BN_CHUNK && left >= 0; j++) {
        const uint64_t at = (uint64_t) c * WEFT_BN_CHUNK + j;
        bool fits = true;
        for (uint32_t w = 0; w < job.words && fits; w++)
          fits = !(job.chunk_mask[at * job.words + w] & ~(before[w] | word_bit((int32_t) node, w)));
        if (!fits) continue;
        pick = one.pick + (int32_t) j;
        left = weft_sub(left, weft_mul(job.weight[at], scale));
      }
    }
    picks[node] = pick;
    score += job.score[job.start[node] + pick];
  }
  __syncwarp();
  return total(score);
}

template <int WORDS>
/* Iterations from .. from + count - 1 of this run (from 0); a block takes ladders_each of `ladders`. */
__global__ static void __launch_bounds__(32 * WARPS, BLOCKS_EACH)
    run_sums(chain_job job, uint32_t ladders, uint64_t from, uint64_t count)
{
  extern __shared__ __align__(16) unsigned char shared_room[];
  __shared__ block_state block;
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, ladder0 = blockIdx.x * job.ladders_each;
  const uint32_t here = ladders - ladder0 < job.ladders_each ? ladders - ladder0 : job.ladders_each,
                 chains = here * job.temperatures;
  const uint64_t replica0 = (uint64_t) ladder0 * job.temperatures;
  const room_layout at = lay_out_room(job.p, job.words, job.ladders_each * job.temperatures, job.at.step);
  unsigned char *room = job.in_shared ? shared_room : job.room + blockIdx.x * job.room_bytes;
  const block_view room_view = { room,
                                 (uint16_t *) (room + at.asks),
                                 (uint64_t *) (room + at.wide),
                                 (uint32_t *) (room + at.count),
                                 (uint32_t *) (room + at.queue),
                                 job.ladders_each * job.temperatures };
  for (uint32_t number = warp; number < chains; number += WARPS) {
    copy_state(room_view.state + (uint64_t) number * job.at.step, job.state + (replica0 + number) * job.at.step,
               job.at.step, lane);
    if (lane < 3) block.accepted[number][lane] = 0;
    if (!lane) {
      block.slot[number] = number / job.temperatures * job.temperatures + job.slot[replica0 + number];
      block.score[number] =
          job.now[replica0 + number / job.temperatures * job.temperatures + job.slot[replica0 + number]];
    }
  }
  for (uint32_t k = threadIdx.x; k < 2 * job.p; k += blockDim.x) room_view.count[k] = 0;
  if (threadIdx.x < 2) block.queued[threadIdx.x][0] = block.queued[threadIdx.x][1] = block.taken[threadIdx.x] = 0;
  __syncthreads();
  for (uint64_t it = from; it < from + count; it++) {
    const uint64_t index = job.first + it;
    const uint32_t parity = (uint32_t) it & 1,
                   lane_chain = warp + WARPS * lane; /* a lane has the draws of one of the warp's chains */
    const weft_rng rng = {
      job.key,
      WEFT_BN_STEPS + (job.ladder0 * job.temperatures + (uint32_t) replica0 + lane_chain)
    };
    const weft_u32x4 draws = weft_draw_words(rng, index, 0);
    for (uint32_t number = warp, k = 0; number < chains && job.p > 1; number += WARPS, k++) {
      weft_u32x4 draw;
      for (int v = 0; v < 4; v++) draw.v[v] = __shfl_sync(FULL, draws.v[v], (int) k);
      ask<WORDS>(job, room_view, block, view(job, room_view.state + (uint64_t) block.slot[number] * job.at.step),
                 number, draw, parity, lane);
    }
    __syncthreads();
    for (uint32_t k = threadIdx.x; k < job.p; k += blockDim.x) room_view.count[(1 - parity) * job.p + k] = 0;
    if (!threadIdx.x) block.queued[1 - parity][0] = block.queued[1 - parity][1] = block.taken[1 - parity] = 0;
    const uint32_t long_ones = block.queued[parity][0], asked_for = long_ones + block.queued[parity][1];
    for (;;) {
      uint32_t k = 0;
      if (!lane) k = atomicAdd(&block.taken[parity], 1u);
      k = __shfl_sync(FULL, k, 0);
      if (k >= asked_for) break;
      answer_node<WORDS>(job, room_view, block,
                         k < long_ones ? room_view.queue[k] : room_view.queue[job.p - 1 - (k - long_ones)], parity,
                         lane);
    }
    __syncthreads();
    for (uint32_t number = warp, k = 0; number < chains; number += WARPS, k++) {
      const replica chain = view(job, room_view.state + (uint64_t) block.slot[number] * job.at.step);
      weft_u32x4 draw;
      for (int v = 0; v < 4; v++) draw.v[v] = __shfl_sync(FULL, draws.v[v], (int) k);
      if (job.p > 1) accept_or_not<WORDS>(job, block, chain, number, draw, job.scale[number % job.temperatures], lane);
      __syncwarp();
      if (number % job.temperatures == 0 && (it + 1) % job.thin == 0)
        save(
            job, ladder0 + number / job.temperatures, block.score[number], it + 1, chain.pick,
            [&](int32_t *picks) { return best_graph(job, chain, picks, lane); },
            [&](weft_rng graphs, uint64_t first, int32_t *picks) {
              return draw_graph(job, chain, graphs, first, picks, lane);
            },
            lane);
    }
    if (job.temperatures > 1 && (index + 1) % job.swap_every == 0) {
      __syncthreads();
      if (threadIdx.x < chains)
        swap_with_next(job, block.slot + threadIdx.x, block.score + threadIdx.x, threadIdx.x % job.temperatures,
                       ladder0 + threadIdx.x / job.temperatures, (index + 1) / job.swap_every);
      __syncthreads();
    }
  }
  __syncthreads();
  for (uint32_t number = warp; number < chains; number += WARPS) {
    const uint64_t list = replica0 + number;
    if (!lane) {
      const uint32_t own = block.slot[number] % job.temperatures;
      job.now[replica0 + block.slot[number]] = block.score[number];
      job.slot[list] = own;
      for (int k = 0; k < 3; k++) job.accepted[4 * list + k] += block.accepted[number][k];
      job.accepted[4 * list + 3] += count;
    }
    copy_state(job.state + list * job.at.step, room_view.state + (uint64_t) number * job.at.step, job.at.step, lane);
  }
}
