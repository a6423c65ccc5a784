/* Chains on the device: a block a ladder, a warp a temperature. The draws, the order of every floating sum and the ties are
 * those of the CPU (bn_move.h), so that the same key gives the same orders, scores and graphs.
 *
 * A replica's state lies in shared memory where it fits, else in device memory:
 *
 *   before  p × words of 64 bits   predecessors of a node
 *   value   p of 64 bits           sum: its score;   fresh: the proposed ones
 *   pick    p of 32 bits           max: its best set; fresh: the proposed ones
 *   order   p of 32 bits           node at a position
 *   place   p of 32 bits           position of a node, in place of `before` where masks would be wider than two words (max)
 *
 * Max: a node between the two positions goes on with its best set or looks for another one, in the list of its sets, best
 * first. Up to 128 nodes: lanes hold two or four nodes each in registers, with the masks of their predecessors and best sets.
 * More nodes: lanes take the positions between, and a set fits when its members' positions come before. Sum: the warp takes a node after the other and the lanes share out its sets; weights are whole
 * numbers, whose sum has no order. Swaps of temperatures exchange places in an index. Ladders go through in groups that fit
 * the device, in launches of about 30 ms. */
#include <chrono>
#include <cmath>
#include <cstring>
#include "../base/device.cuh"
#include "bn_cuda.cuh"
#include "bn_move.h"

#define FULL 0xffffffffu
#define MOST_TEMPERATURES 16
#define MOST_SHARED ((size_t) 64 << 10)
#define LAUNCH_SECONDS 0.03

/* Where a replica's parts begin, in bytes. */
struct layout { uint32_t value, pick, fresh, order, place, mid, step; };

/* Graphs that a temperature of a ladder found; `sets` is p × most. */
struct found_lists { uint32_t *count; int64_t *score; uint64_t *hash, *stamp; int32_t *sets; };

struct chain_job {
  /* lists */
  const int64_t *start, *score;
  const uint64_t *mask, *users;
  const uint16_t *member;       /* wide: `width` a set, 0xffff after the last */
  const uint64_t *begin, *weight, *block_mask;
  const weft_bn_block *block;
  double unit;
  uint32_t p, words, width;
  /* run */
  uint64_t key, first;          /* iterations done before this run */
  uint32_t temperatures, ladder0, thin, swap_every, most, sum;
  uint64_t saved, skipped, samples;
  const double *scale, *swap_scale; /* a temperature */
  /* state, a replica */
  layout at;
  unsigned char *state;
  int in_shared;
  int64_t *now;                 /* score of a replica */
  uint32_t *slot;               /* replica at a temperature */
  uint64_t *accepted;           /* 4 a temperature of a ladder */
  uint64_t *swapped;            /* 2 a pair of neighbours */
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
  replica r;
  r.before = (uint64_t *) state;
  r.value = (int64_t *) (state + job.at.value);
  r.pick = (int32_t *) (state + job.at.pick);
  r.fresh_value = (int64_t *) (state + job.at.fresh);
  r.fresh_pick = (int32_t *) (state + job.at.fresh);
  r.order = (int32_t *) (state + job.at.order);
  r.place = (int32_t *) (state + job.at.place);
  r.mid = (uint64_t *) (state + job.at.mid);
  return r;
}

__device__ static bool bit_of(const uint64_t *mask, int32_t v) { return mask[v >> 6] >> (v & 63) & 1; }
__device__ static uint64_t word_bit(int32_t v, uint32_t w) { return v >= 0 && (uint32_t) v >> 6 == w ? (uint64_t) 1 << (v & 63) : 0; }

__device__ static int64_t total(int64_t x)
{
  for (int d = 16; d; d /= 2) x += __shfl_xor_sync(FULL, x, d);
  return x;
}

/* W: words a mask, or 0 for any number. */
template <int W> __device__ __forceinline__ uint32_t words_of(const chain_job &job) { return W ? W : job.words; }

/* The nodes whose predecessors change, but for x and, in a swap, y. */
template <int W>
__device__ static void between(const chain_job &job, const replica &r, const weft_bn_move &m, uint32_t lane)
{
  const uint32_t words = words_of<W>(job);
  const uint64_t *bx = r.before + (uint64_t) m.x * words, *by = r.before + (uint64_t) m.y * words;
  const bool left = m.kind == WEFT_BN_SHIFT && m.from > m.to;
  for (uint32_t w = lane; w < words; w += 32) {
    uint64_t mid = left ? bx[w] & ~by[w] : by[w] & ~bx[w];
    if (!left) mid &= ~word_bit(m.x, w);
    if (!left && m.kind == WEFT_BN_SHIFT) mid |= word_bit(m.y, w);
    r.mid[w] = mid;
  }
  __syncwarp();
}

enum { NOT_MOVED, BETWEEN, IS_X, IS_Y };

__device__ static int role(const replica &r, const weft_bn_move &m, int32_t z)
{
  if (z == m.x) return IS_X;
  if (z == m.y && m.kind != WEFT_BN_SHIFT) return IS_Y;
  return bit_of(r.mid, z) ? BETWEEN : NOT_MOVED;
}

/* Word w of z's predecessors after the move. */
__device__ static uint64_t after(const replica &r, const weft_bn_move &m, int what, int32_t z, uint32_t w, uint32_t words)
{
  const uint64_t old = r.before[(uint64_t) z * words + w];
  if (what == BETWEEN) return (old & ~word_bit(m.lost, w)) | word_bit(m.gained, w);
  if (what == IS_Y) return old & ~r.mid[w] & ~word_bit(m.x, w);
  if (m.kind == WEFT_BN_SHIFT && m.from > m.to) return old & ~r.mid[w];
  return old | r.mid[w] | (m.kind == WEFT_BN_SHIFT ? 0 : word_bit(m.y, w));
}

__device__ static void move_order(const replica &r, const weft_bn_move &m, uint32_t lane)
{
  if (m.kind != WEFT_BN_SHIFT) {
    if (!lane) { r.order[m.from] = m.y; r.order[m.to] = m.x; }
  } else {
    const int step = m.from < m.to ? 1 : -1, count = (m.to - m.from) * step;
    for (int k = 0; k < count; k += 32) { /* position from + k gets what is one further */
      const int here = m.from + (k + (int) lane) * step;
      const int32_t node = k + (int) lane < count ? r.order[here + step] : 0;
      __syncwarp();
      if (k + (int) lane < count) r.order[here] = node;
      __syncwarp();
    }
    if (!lane) r.order[m.to] = m.x;
  }
  __syncwarp();
}

/* Makes the move: predecessors and the order. */
template <int W>
__device__ static void make_move(const chain_job &job, const replica &r, const weft_bn_move &m, uint32_t lane)
{
  const uint32_t words = words_of<W>(job);
  for (int32_t z = (int32_t) lane; z < (int32_t) job.p; z += 32) {
    const int what = role(r, m, z);
    if (what == NOT_MOVED) continue;
    for (uint32_t w = 0; w < words; w++) r.before[(uint64_t) z * words + w] = after(r, m, what, z, w, words);
  }
  move_order(r, m, lane);
}

/* ---- graphs found ---- */

/* `picks`: the graph. Called by the whole warp. */
__device__ static void keep_graph(const chain_job &job, uint64_t list, int64_t score, uint64_t hash, uint64_t stamp, const int32_t *picks,
                                  uint32_t lane)
{
  int64_t *scores = job.found.score + list * job.most;
  uint64_t *hashes = job.found.hash + list * job.most, *stamps = job.found.stamp + list * job.most;
  int32_t *sets = job.found.sets + list * job.most * job.p;
  uint32_t count = job.found.count[list], place = 0;
  if (count == job.most && (score < scores[count - 1] || (score == scores[count - 1] && stamp >= stamps[count - 1]))) return;
  bool there = false;
  for (uint32_t k = lane; k < count; k += 32) if (hashes[k] == hash) there = true;
  if (__any_sync(FULL, there)) return; /* stamps of one temperature only rise: it was found before */
  while (place < count && (scores[place] > score || (scores[place] == score && stamps[place] < stamp))) place++;
  const uint32_t last = count < job.most ? count : count - 1; /* where the one that goes or the new end is */
  for (uint32_t k = last; k > place; k--) {
    for (uint32_t z = lane; z < job.p; z += 32) sets[(uint64_t) k * job.p + z] = sets[(uint64_t) (k - 1) * job.p + z];
    __syncwarp();
    if (!lane) { scores[k] = scores[k - 1]; hashes[k] = hashes[k - 1]; stamps[k] = stamps[k - 1]; }
    __syncwarp();
  }
  for (uint32_t z = lane; z < job.p; z += 32) sets[(uint64_t) place * job.p + z] = picks[z];
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
  for (uint32_t z = lane; z < p; z += 32) hash += weft_bn_pick_hash(z, picks[z]);
  return (uint64_t) total((int64_t) hash);
}

/* The best graph of an order, to `picks`; its score. */
__device__ static int64_t best_graph(const chain_job &job, const replica &r, int32_t *picks, uint32_t lane)
{
  int64_t sum = 0;
  for (uint32_t z = lane; z < job.p; z += 32) {
    const uint64_t *before = r.before + (uint64_t) z * job.words, first = job.start[z], last = job.start[z + 1];
    uint64_t k = first;
    for (; k + 1 < last; k++) {
      bool fits = true;
      for (uint32_t w = 0; w < job.words && fits; w++) fits = !(job.mask[k * job.words + w] & ~before[w]);
      if (fits) break;
    }
    picks[z] = (int32_t) (k - first);
    sum += job.score[k];
  }
  sum = total(sum);
  __syncwarp();
  return sum;
}

/* What a temperature carries along; of `bar` on, a score may join the best graphs. */
struct walker { int64_t score; uint32_t *accepted; int64_t bar; uint64_t list; };

/* The proposed graph is in r.fresh_pick. */
__device__ static void try_graph(const chain_job &job, const replica &r, int64_t score, uint64_t stamp, walker &s, uint32_t lane)
{
  __syncwarp();
  keep_graph(job, s.list, score, hash_of(r.fresh_pick, job.p, lane), stamp, r.fresh_pick, lane);
  if (job.found.count[s.list] == job.most) s.bar = job.found.score[s.list * job.most + job.most - 1];
}

/* ---- max, at most 128 nodes ---- */

/* What a lane holds of its nodes lane + 32 k. */
template <int W> struct nodes {
  uint64_t before[2 * W][W], set[2 * W][W];
  int32_t pick[2 * W];
  uint32_t first[2 * W], count[2 * W];
};

template <int W>
__device__ static void take_set(const chain_job &job, nodes<W> &own, int k, int32_t pick)
{
  own.pick[k] = pick;
#pragma unroll
  for (int w = 0; w < W; w++) own.set[k][w] = job.mask[(uint64_t) (own.first[k] + pick) * W + w];
}

template <int W>
__device__ static void load_nodes(const chain_job &job, const replica &r, nodes<W> &own, uint32_t lane)
{
#pragma unroll
  for (int k = 0; k < 2 * W; k++) {
    const uint32_t z = lane + 32 * k;
    if (z >= job.p) continue;
    own.first[k] = (uint32_t) job.start[z];
    own.count[k] = (uint32_t) (job.start[z + 1] - job.start[z]);
#pragma unroll
    for (int w = 0; w < W; w++) own.before[k][w] = r.before[z * W + w];
    take_set<W>(job, own, k, r.pick[z]);
  }
}

template <int W>
__device__ static void store_nodes(const chain_job &job, const replica &r, const nodes<W> &own, uint32_t lane)
{
#pragma unroll
  for (int k = 0; k < 2 * W; k++) {
    const uint32_t z = lane + 32 * k;
    if (z >= job.p) continue;
#pragma unroll
    for (int w = 0; w < W; w++) r.before[z * W + w] = own.before[k][w];
    r.pick[z] = own.pick[k];
  }
  __syncwarp();
}

/* Word w of node v's predecessors, from the lane that holds it. */
template <int W>
__device__ static uint64_t before_of(const nodes<W> &own, int32_t v, int w)
{
  uint64_t word = 0;
#pragma unroll
  for (int k = 0; k < 2 * W; k++) if (k == v >> 5) word = own.before[k][w];
  return __shfl_sync(FULL, word, v & 31);
}

template <int W>
__device__ static bool within(const uint64_t *set, const uint64_t *before)
{
#pragma unroll
  for (int w = 0; w < W; w++) if (set[w] & ~before[w]) return false;
  return true;
}

template <int W>
__device__ static void step_max(const chain_job &job, const replica &r, nodes<W> &own, const weft_u32x4 &draw, double scale, uint64_t stamp,
                                walker &s, uint32_t lane)
{
  const weft_bn_move m = weft_bn_choose_move(r.order, job.p, draw);
  const bool left = m.kind == WEFT_BN_SHIFT && m.from > m.to, right = m.lost == m.x; /* to the right x only gains */
  uint64_t mid[W], fresh[2 * W][W];
  int32_t picks[2 * W];
  int64_t difference = 0;
  bool impossible = false, changed = false;
#pragma unroll
  for (int w = 0; w < W; w++) {
    const uint64_t bx = before_of<W>(own, m.x, w), by = before_of<W>(own, m.y, w);
    mid[w] = left ? bx & ~by : by & ~bx & ~word_bit(m.x, w);
    if (!left && m.kind == WEFT_BN_SHIFT) mid[w] |= word_bit(m.y, w);
  }
#pragma unroll
  for (int k = 0; k < 2 * W; k++) {
    const int32_t z = (int32_t) lane + 32 * k;
    const bool is_x = z == m.x, is_y = z == m.y && m.kind != WEFT_BN_SHIFT, between = mid[k / 2] >> (lane + 32 * (k % 2)) & 1;
    picks[k] = own.pick[k];
#pragma unroll
    for (int w = 0; w < W; w++) {
      uint64_t now = own.before[k][w];
      if (between) now = (now & ~word_bit(m.lost, w)) | word_bit(m.gained, w);
      else if (is_x) now = left ? now & ~mid[w] : now | mid[w] | (m.kind == WEFT_BN_SHIFT ? 0 : word_bit(m.y, w));
      else if (is_y) now = now & ~mid[w] & ~word_bit(m.x, w);
      fresh[k][w] = now;
    }
    if (!(between || is_x || is_y) || z >= (int32_t) job.p) continue;
    const bool gained = between ? m.gained >= 0 : is_x && right;
    int32_t from = 0, until = 0;
    if (!within<W>(own.set[k], fresh[k])) { /* only what is lost can be missing */
      from = gained ? 0 : own.pick[k] + 1;
      until = (int32_t) own.count[k];
      picks[k] = until;
    } else if (gained && own.pick[k] && (is_x || bit_of(job.users + (uint64_t) m.gained * W, z))) {
      until = own.pick[k];
    }
    for (int32_t at = from; at < until; at++)
      if (within<W>(job.mask + (uint64_t) (own.first[k] + at) * W, fresh[k])) { picks[k] = at; break; }
    if (picks[k] == own.pick[k]) continue;
    if (picks[k] == (int32_t) own.count[k]) { impossible = true; continue; }
    changed = true;
    difference += job.score[own.first[k] + picks[k]] - job.score[own.first[k] + own.pick[k]];
  }
  if (__any_sync(FULL, impossible)) return;
  const uint32_t changing = __ballot_sync(FULL, changed);
  if (changing) {
    int64_t all = 0;
    for (uint32_t rest = changing; rest; rest &= rest - 1) all += __shfl_sync(FULL, difference, __ffs((int) rest) - 1);
    difference = all;
    if (s.score + difference >= s.bar) {
#pragma unroll
      for (int k = 0; k < 2 * W; k++) if (lane + 32 * k < job.p) r.fresh_pick[lane + 32 * k] = picks[k];
      try_graph(job, r, s.score + difference, stamp, s, lane);
    }
  }
  if (!weft_bn_accept(scale, (double) difference, draw)) return;
  if (!lane) s.accepted[m.kind]++;
  s.score += difference;
#pragma unroll
  for (int k = 0; k < 2 * W; k++) {
#pragma unroll
    for (int w = 0; w < W; w++) own.before[k][w] = fresh[k][w];
    if (lane + 32 * k < job.p && picks[k] != own.pick[k]) take_set<W>(job, own, k, picks[k]);
  }
  move_order(r, m, lane);
}

/* ---- max, more nodes ---- */

/* Position after the move. */
__device__ static int32_t moved(const weft_bn_move &m, int32_t at)
{
  if (at == m.from) return m.to;
  if (m.kind != WEFT_BN_SHIFT) return at == m.to ? m.from : at;
  if (m.from < m.to) return at - (at > m.from && at <= m.to);
  return at + (at >= m.to && at < m.from);
}

/* Whether all members of set `k` come before `at` after the move. */
__device__ static bool comes_after(const chain_job &job, const replica &r, const weft_bn_move &m, uint64_t k, int32_t at)
{
  const uint16_t *member = job.member + k * job.width;
  for (uint32_t j = 0; j < job.width && member[j] != 0xffff; j++) if (moved(m, r.place[member[j]]) >= at) return false;
  return true;
}

__device__ static int64_t start_wide(const chain_job &job, const replica &r, uint32_t lane)
{
  const weft_bn_move none = { WEFT_BN_SWAP, 0, 0, 0, 0, -1, -1 };
  int64_t score = 0;
  for (uint32_t k = lane; k < job.p; k += 32) r.place[r.order[k]] = (int32_t) k;
  __syncwarp();
  for (uint32_t z = lane; z < job.p; z += 32) {
    uint64_t k = job.start[z];
    while (k + 1 < (uint64_t) job.start[z + 1] && !comes_after(job, r, none, k, r.place[z])) k++;
    r.pick[z] = (int32_t) (k - job.start[z]);
    score += job.score[k];
  }
  score = total(score);
  __syncwarp();
  return score;
}

__device__ static void step_wide(const chain_job &job, const replica &r, const weft_u32x4 &draw, double scale, uint64_t stamp, walker &s,
                                 uint32_t lane)
{
  const weft_bn_move m = weft_bn_choose_move(r.order, job.p, draw);
  const int32_t low = m.from < m.to ? m.from : m.to, high = m.from < m.to ? m.to : m.from;
  const bool right = m.lost == m.x;
  int64_t difference = 0;
  bool impossible = false, changed = false;
  for (int32_t at = low + (int32_t) lane; at <= high; at += 32) {
    const int32_t z = r.order[at], there = moved(m, at), now = r.pick[z], count = (int32_t) (job.start[z + 1] - job.start[z]);
    const uint64_t first = job.start[z];
    const bool is_x = at == m.from, is_y = at == m.to && m.kind != WEFT_BN_SHIFT;
    const bool gained = is_x ? right : !is_y && m.gained >= 0, lost = is_x ? !right : is_y || m.lost >= 0;
    int32_t pick = now, from = 0, until = 0;
    if (lost && !comes_after(job, r, m, first + now, there)) {
      from = gained ? 0 : now + 1;
      pick = until = count;
    } else if (gained && now && (is_x || bit_of(job.users + (uint64_t) m.gained * job.words, z))) {
      until = now;
    }
    for (int32_t k = from; k < until; k++) if (comes_after(job, r, m, first + k, there)) { pick = k; break; }
    r.fresh_pick[z] = pick;
    if (pick == now) continue;
    if (pick == count) { impossible = true; continue; }
    changed = true;
    difference += job.score[first + pick] - job.score[first + now];
  }
  if (__any_sync(FULL, impossible)) { __syncwarp(); return; }
  if (__any_sync(FULL, changed)) {
    difference = total(difference);
    if (s.score + difference >= s.bar) {
      for (uint32_t z = lane; z < job.p; z += 32) if (r.place[z] < low || r.place[z] > high) r.fresh_pick[z] = r.pick[z];
      try_graph(job, r, s.score + difference, stamp, s, lane);
    }
  }
  __syncwarp();
  if (!weft_bn_accept(scale, (double) difference, draw)) return;
  if (!lane) s.accepted[m.kind]++;
  s.score += difference;
  for (int32_t at = low + (int32_t) lane; at <= high; at += 32) r.pick[r.order[at]] = r.fresh_pick[r.order[at]];
  __syncwarp();
  move_order(r, m, lane);
  for (int32_t at = low + (int32_t) lane; at <= high; at += 32) r.place[r.order[at]] = at;
  __syncwarp();
}

/* ---- sum ---- */

/* ln Σ over the sets of z that fit, by the whole warp; `fresh`: its predecessors. */
template <int W>
__device__ static int64_t node_value(const chain_job &job, uint32_t z, const uint64_t *fresh, uint32_t lane)
{
  const uint32_t words = words_of<W>(job);
  int64_t reference = 0;
  double sum = 0;
  for (uint64_t k = job.begin[z]; k < job.begin[z + 1]; k++) {
    const weft_bn_block one = job.block[k];
    if (sum > 0 && (double) (one.reference - reference) < weft_mul(-WEFT_BN_DEEP_NATS, job.unit)) break;
    uint64_t own = 0;
    for (uint64_t j = one.first + lane; j < one.first + one.count; j += 32) {
      bool fits = true;
      if constexpr (W > 0) {
#pragma unroll
        for (int w = 0; w < W; w++) fits = fits && !(job.block_mask[j * words + w] & ~fresh[w]);
      } else {
        for (uint32_t w = 0; w < words && fits; w++) fits = !(job.block_mask[j * words + w] & ~fresh[w]);
      }
      if (fits) own += job.weight[j];
    }
    own = (uint64_t) total((int64_t) own);
    if (!own) continue;
    if (!(sum > 0)) reference = one.reference;
    sum = weft_add(sum, weft_mul((double) own, weft_exp(weft_div((double) (one.reference - reference), job.unit))));
  }
  if (!(sum > 0)) return WEFT_BN_NEVER;
  return reference + (int64_t) rint(weft_mul(weft_log(weft_mul(sum, 1.0 / ((uint64_t) 1 << WEFT_BN_WEIGHT_BITS))), job.unit));
}

/* Proposes node z; false when no set of it fits. */
template <int W>
__device__ static bool propose(const chain_job &job, const replica &r, const weft_bn_move &m, int what, int32_t z, int64_t *difference,
                               uint32_t lane)
{
  const uint32_t words = words_of<W>(job);
  uint64_t fresh[W ? W : 1];
  const uint64_t *use = fresh;
  if constexpr (W > 0) {
#pragma unroll
    for (int w = 0; w < W; w++) fresh[w] = after(r, m, what, z, w, W);
  } else {
    __syncwarp();
    for (uint32_t w = lane; w < words; w += 32) r.mid[words + w] = after(r, m, what, z, w, words);
    __syncwarp();
    use = r.mid + words;
  }
  const int64_t value = node_value<W>(job, (uint32_t) z, use, lane);
  if (value == WEFT_BN_NEVER) return false;
  *difference += value - r.value[z];
  if (!lane) r.fresh_value[z] = value;
  return true;
}

template <int W>
__device__ static void step_sum(const chain_job &job, const replica &r, const weft_u32x4 &draw, double scale, walker &s, uint32_t lane)
{
  const uint32_t words = words_of<W>(job);
  const weft_bn_move m = weft_bn_choose_move(r.order, job.p, draw);
  const uint64_t *by_lost = job.users + (uint64_t) (m.lost < 0 ? m.x : m.lost) * words;
  const uint64_t *by_gained = job.users + (uint64_t) (m.gained < 0 ? m.x : m.gained) * words;
  int64_t difference = 0;
  between<W>(job, r, m, lane);
  if (!propose<W>(job, r, m, IS_X, m.x, &difference, lane)) return;
  if (m.kind != WEFT_BN_SHIFT && !propose<W>(job, r, m, IS_Y, m.y, &difference, lane)) return;
  for (uint32_t w = 0; w < words; w++)
    for (uint64_t word = r.mid[w] & (by_lost[w] | by_gained[w]); word; word &= word - 1)
      if (!propose<W>(job, r, m, BETWEEN, (int32_t) (64 * w) + __ffsll((long long) word) - 1, &difference, lane)) return;
  if (!weft_bn_accept(scale, (double) difference, draw)) return;
  if (!lane) s.accepted[m.kind]++;
  s.score += difference;
  __syncwarp();
  for (int32_t z = (int32_t) lane; z < (int32_t) job.p; z += 32) {
    const int what = role(r, m, z);
    const bool used = what == BETWEEN && ((by_lost[z >> 6] | by_gained[z >> 6]) >> (z & 63) & 1);
    if (what == IS_X || what == IS_Y || used) r.value[z] = r.fresh_value[z];
  }
  __syncwarp();
  make_move<W>(job, r, m, lane);
}

/* A graph drawn given the order: a lane a node, its sets in their order. */
__device__ static int64_t draw_graph(const chain_job &job, const replica &r, weft_rng rng, uint64_t first, int32_t *picks, uint32_t lane)
{
  int64_t score = 0;
  for (uint32_t z = lane; z < job.p; z += 32) {
    const uint64_t *before = r.before + (uint64_t) z * job.words;
    double left = weft_draw_uniform(rng, first + z);
    int32_t pick = -1;
    for (uint64_t k = job.begin[z]; k < job.begin[z + 1] && left >= 0; k++) {
      const weft_bn_block one = job.block[k];
      const double scale = weft_mul(weft_exp(weft_div((double) (one.reference - r.value[z]), job.unit)),
                                    1.0 / ((uint64_t) 1 << WEFT_BN_WEIGHT_BITS));
      for (uint64_t j = 0; j < one.count && left >= 0; j++) {
        const uint64_t at = one.first + j;
        bool fits = true;
        for (uint32_t w = 0; w < job.words && fits; w++) fits = !(job.block_mask[at * job.words + w] & ~before[w]);
        if (!fits) continue;
        pick = (int32_t) (one.pick + j);
        left = weft_sub(left, weft_mul((double) job.weight[at], scale));
      }
    }
    picks[z] = pick;
    score += job.score[job.start[z] + pick];
  }
  __syncwarp();
  return total(score);
}

/* ---- kernels ---- */

/* Scores of the orders to start from; `order` is in the state. */
template <int W>
__global__ static void start_chains(chain_job job)
{
  extern __shared__ uint64_t shared[];
  const uint32_t lane = threadIdx.x % 32, t = threadIdx.x / 32;
  const uint64_t number = (uint64_t) blockIdx.x * job.temperatures + t;
  const replica r = view(job, job.state + number * job.at.step);
  int64_t score;
  int32_t *picks = job.sum ? r.fresh_pick : r.pick;
  if (W == 0 && !job.sum) {
    score = start_wide(job, r, lane);
  } else {
    uint64_t *placed = shared + t * job.words;
    for (uint32_t w = lane; w < job.words; w += 32) placed[w] = 0;
    __syncwarp();
    for (uint32_t k = 0; k < job.p; k++) {
      const int32_t z = r.order[k];
      for (uint32_t w = lane; w < job.words; w += 32) r.before[(uint64_t) z * job.words + w] = placed[w];
      __syncwarp();
      if (!lane) placed[z >> 6] |= (uint64_t) 1 << (z & 63);
      __syncwarp();
    }
    score = best_graph(job, r, picks, lane);
  }
  keep_graph(job, number, score, hash_of(picks, job.p, lane), weft_bn_stamp(0, t), picks, lane);
  if (job.sum) {
    score = 0;
    for (uint32_t z = 0; z < job.p; z++) {
      const int64_t value = node_value<W>(job, z, r.before + (uint64_t) z * job.words, lane);
      score += value;
      __syncwarp();
      if (!lane) r.value[z] = value;
    }
  }
  if (!lane) { job.now[number] = score; job.slot[number] = t; }
}

__device__ static void copy_state(unsigned char *to, const unsigned char *from, uint32_t bytes, uint32_t lane)
{
  for (uint32_t k = lane; k < bytes / 8; k += 32) ((uint64_t *) to)[k] = ((const uint64_t *) from)[k];
  __syncwarp();
}

/* Iterations from .. from + count - 1 of this run (from 0) of every ladder. */
template <int W, bool SUM, int B>
__global__ static void __launch_bounds__(32 * MOST_TEMPERATURES, B) run_chains(chain_job job, uint64_t from, uint64_t count)
{
  extern __shared__ uint64_t shared[];
  __shared__ uint32_t slot[MOST_TEMPERATURES];
  __shared__ int64_t score_at[MOST_TEMPERATURES];
  __shared__ uint32_t accepted[MOST_TEMPERATURES][3];
  const uint32_t lane = threadIdx.x % 32, t = threadIdx.x / 32, c = blockIdx.x, ladder = job.ladder0 + c;
  const uint64_t first_replica = (uint64_t) c * job.temperatures, list = first_replica + t;
  unsigned char *own = job.in_shared ? (unsigned char *) shared : job.state + first_replica * job.at.step;
  walker s = { 0, accepted[t], INT64_MIN, list };
  nodes<W ? W : 1> held;
  if (job.in_shared) copy_state(own + (uint64_t) t * job.at.step, job.state + list * job.at.step, job.at.step, lane);
  if (lane < 3) accepted[t][lane] = 0;
  if (!lane) slot[t] = job.slot[list];
  __syncthreads();
  s.score = job.now[first_replica + slot[t]];
  replica r = view(job, own + (uint64_t) slot[t] * job.at.step);
  if (W && !SUM) load_nodes<W ? W : 1>(job, r, held, lane);
  if (job.found.count[list] == job.most) s.bar = job.found.score[list * job.most + job.most - 1];
  const weft_rng rng = { job.key, WEFT_BN_STEPS + (ladder * job.temperatures + t) };
  const double scale = job.scale[t];
  uint64_t drawn = UINT64_MAX; /* the 32 steps whose draws the lanes hold */
  weft_u32x4 block = {{ 0, 0, 0, 0 }};
  for (uint64_t it = from; it < from + count; ) {
    const uint64_t absolute = job.first + it;
    uint64_t now = from + count - it;
    if (job.temperatures > 1 && job.swap_every - absolute % job.swap_every < now) now = job.swap_every - absolute % job.swap_every;
    if (job.thin - it % job.thin < now) now = job.thin - it % job.thin;
    for (uint64_t k = 0; k < now && job.p > 1; k++) {
      const uint64_t index = absolute + k;
      if (index / 32 != drawn) { drawn = index / 32; block = weft_draw_words(rng, 32 * drawn + lane, 0); }
      weft_u32x4 draw;
      for (int v = 0; v < 4; v++) draw.v[v] = __shfl_sync(FULL, block.v[v], (int) (index % 32));
      if constexpr (SUM) step_sum<W>(job, r, draw, scale, s, lane);
      else if constexpr (W > 0) step_max<W>(job, r, held, draw, scale, weft_bn_stamp(it + k + 1, t), s, lane);
      else step_wide(job, r, draw, scale, weft_bn_stamp(it + k + 1, t), s, lane);
      __syncwarp();
    }
    it += now;
    if (t == 0 && it % job.thin == 0) {
      const uint64_t row = it / job.thin - 1;
      if (!lane) job.trace[(uint64_t) c * job.saved + row] = weft_div((double) s.score, job.unit);
      if (SUM) {
        int64_t score = best_graph(job, r, r.pick, lane);
        keep_graph(job, list, score, hash_of(r.pick, job.p, lane), weft_bn_stamp(it, 0), r.pick, lane);
        if (row >= job.skipped) {
          const uint64_t sample = (uint64_t) c * job.samples + row - job.skipped;
          const weft_rng graphs = { job.key, WEFT_BN_GRAPHS + ladder };
          int32_t *picks = job.sampled + sample * job.p;
          score = draw_graph(job, r, graphs, (job.first + it) * job.p, picks, lane);
          if (!lane) job.sample_score[sample] = weft_div((double) score, job.unit);
          keep_graph(job, list, score, hash_of(picks, job.p, lane), weft_bn_stamp(it, 1), picks, lane);
        }
      }
    }
    if (job.temperatures > 1 && (absolute + now) % job.swap_every == 0) {
      const uint64_t round = (absolute + now) / job.swap_every;
      if (!lane) score_at[t] = s.score;
      __syncthreads();
      const uint32_t lower = ((t ^ (uint32_t) round) & 1) ? t - 1 : t; /* the pair that this temperature is in */
      int taken = 0;
      if (lower != UINT32_MAX && lower + 1 < job.temperatures) {
        const weft_rng swaps = { job.key, WEFT_BN_SWAPS + ladder };
        taken = weft_bn_accept(job.swap_scale[lower], (double) (score_at[lower + 1] - score_at[lower]), weft_draw_words(swaps, round, lower));
        if (!lane && t == lower) {
          uint64_t *counted = job.swapped + 2 * ((uint64_t) c * (job.temperatures - 1) + lower);
          counted[1]++;
          counted[0] += taken;
          if (taken) { const uint32_t other = slot[t]; slot[t] = slot[t + 1]; slot[t + 1] = other; }
        }
        if (taken && W && !SUM) store_nodes<W ? W : 1>(job, r, held, lane);
      }
      __syncthreads();
      if (taken) {
        s.score = score_at[t == lower ? t + 1 : t - 1];
        r = view(job, own + (uint64_t) slot[t] * job.at.step);
        if (W && !SUM) load_nodes<W ? W : 1>(job, r, held, lane);
      }
      __syncthreads(); /* the scores are read */
    }
  }
  if (W && !SUM) store_nodes<W ? W : 1>(job, r, held, lane);
  __syncthreads();
  if (!lane) {
    job.now[first_replica + slot[t]] = s.score;
    job.slot[list] = slot[t];
    for (int k = 0; k < 3; k++) job.accepted[4 * list + k] += accepted[t][k];
    job.accepted[4 * list + 3] += count;
  }
  if (job.in_shared) copy_state(job.state + list * job.at.step, own + (uint64_t) t * job.at.step, job.at.step, lane);
}

/* ---- host ---- */

#define SEND(to, from, count) do { auto *to_ = (to); size_t count_ = (count); WEFT_DEVICE_TAKE(to_, mem, count_); \
    if (count_) WEFT_CUDA(cudaMemcpyAsync((void *) to_, (from), count_ * sizeof *to_, cudaMemcpyHostToDevice, mem->stream)); (to) = to_; } while (0)

/* The sets as lists of members, for wide networks. */
static weft_status send_members(weft_ctx *ctx, weft_device_arena *mem, const weft_bn_table *t, chain_job *job)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  const size_t total = (size_t) t->start[t->p];
  size_t width = 1;
  uint16_t *member;
  for (size_t k = 0; k < total; k++) {
    size_t m = 0;
    for (size_t w = 0; w < t->words; w++) m += (size_t) __builtin_popcountll(t->mask[k * t->words + w]);
    if (m > width) width = m;
  }
  WEFT_TAKE(member, &host, total * width);
  for (size_t k = 0; k < total; k++) {
    size_t m = 0;
    for (size_t w = 0; w < t->words; w++)
      for (uint64_t word = t->mask[k * t->words + w]; word; word &= word - 1)
        member[k * width + m++] = (uint16_t) (64 * w + (size_t) __builtin_ctzll(word));
    for (; m < width; m++) member[k * width + m] = 0xffff;
  }
  SEND(job->member, member, total * width);
  WEFT_CUDA(cudaStreamSynchronize(mem->stream));
  job->width = (uint32_t) width;
done:
  weft_arena_end(&host);
  return st;
}

static weft_status send_lists(weft_ctx *ctx, weft_device_arena *mem, const weft_bn_lists *lists, const weft_bn_run *run, chain_job *job)
{
  weft_status st = WEFT_OK;
  const weft_bn_table *t = lists->table;
  const size_t p = lists->p, words = lists->words, total = (size_t) t->start[p];
  SEND(job->start, t->start, p + 1);
  SEND(job->score, t->score, total);
  SEND(job->mask, t->mask, total * words);
  SEND(job->users, lists->users, p * words);
  if (!run->sum && words > 2) WEFT_TRY(send_members(ctx, mem, t, job));
  if (run->sum) {
    const weft_bn_blocks *b = lists->blocks;
    SEND(job->begin, b->begin, p + 1);
    SEND(job->block, b->block, b->count);
    SEND(job->weight, b->weight, b->padded);
    SEND(job->block_mask, b->mask, b->padded * words);
  }
  WEFT_CUDA(cudaStreamSynchronize(mem->stream));
  job->p = (uint32_t) p;
  job->words = (uint32_t) words;
  job->unit = lists->unit;
  job->sum = run->sum != 0;
done:
  return st;
}

static layout make_layout(size_t p, size_t words, int sum)
{
  layout at;
  const int wide = !sum && words > 2;
  size_t bytes = wide ? 0 : 8 * p * words;
  const size_t numbers = (4 * p + 7) / 8 * 8;
  at.value = (uint32_t) bytes;
  bytes += sum ? 8 * p : 0;
  at.pick = (uint32_t) bytes;
  bytes += numbers;
  at.fresh = (uint32_t) bytes;
  bytes += sum ? 8 * p : numbers;
  at.order = (uint32_t) bytes;
  bytes += numbers;
  at.place = (uint32_t) bytes;
  bytes += wide ? numbers : 0;
  at.mid = (uint32_t) bytes;
  bytes += 16 * words;
  at.step = (uint32_t) bytes;
  return at;
}

typedef void run_kernel(chain_job, uint64_t, uint64_t);
typedef void start_kernel(chain_job);

/* Portions of iterations, few at first, so that a launch takes about LAUNCH_SECONDS. */
static weft_status iterate(weft_ctx *ctx, weft_device_arena *mem, const chain_job *job, size_t ladders, size_t iterations, double from, double to)
{
  weft_status st = WEFT_OK;
  run_kernel *kernel = job->sum ? (job->words == 1 ? run_chains<1, true, 1> : job->words == 2 ? run_chains<2, true, 1> : run_chains<0, true, 1>)
                                : (job->words == 1 ? run_chains<1, false, 2> : job->words == 2 ? run_chains<2, false, 1> : run_chains<0, false, 2>);
  const size_t shared = job->in_shared ? (size_t) job->at.step * job->temperatures : 0;
  size_t done_its = 0, portion = 16;
  WEFT_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int) shared));
  while (done_its < iterations) {
    const size_t now = portion < iterations - done_its ? portion : iterations - done_its;
    const auto started = std::chrono::steady_clock::now();
    kernel<<<(unsigned) ladders, 32 * job->temperatures, shared, mem->stream>>>(*job, done_its, now);
    WEFT_CUDA(cudaGetLastError());
    WEFT_CUDA(cudaStreamSynchronize(mem->stream));
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    done_its += now;
    if (took < LAUNCH_SECONDS / 2) portion *= took < LAUNCH_SECONDS / 8 ? 4 : 2;
    else if (took > 2 * LAUNCH_SECONDS && portion > 1) portion /= 2;
    WEFT_TRY(weft_poll(ctx, from + (to - from) * (double) done_its / (double) iterations, 1));
  }
done:
  return st;
}

/* A group's results to the host, and its graphs into `all`. */
static weft_status fetch(weft_ctx *ctx, weft_device_arena *mem, const chain_job *job, const weft_bn_run *run, size_t first, size_t count,
                         weft_bn_chains *out, weft_bn_best *all)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  const size_t p = job->p, temperatures = run->temperatures, replicas = count * temperatures, most = run->best;
  const size_t rows = job->saved, pairs = count * (temperatures - 1);
  unsigned char *state;
  uint32_t *slot, *found;
  uint64_t *accepted, *swapped, *hash, *stamp;
  int64_t *score;
  int32_t *sets;
  weft_bn_best own;
  WEFT_TAKE(state, &host, replicas * job->at.step);
  WEFT_TAKE(slot, &host, replicas);
  WEFT_TAKE(found, &host, replicas);
  WEFT_TAKE(accepted, &host, 4 * replicas);
  WEFT_TAKE(swapped, &host, 2 * pairs);
  WEFT_TAKE(score, &host, replicas * most);
  WEFT_TAKE(hash, &host, replicas * most);
  WEFT_TAKE(stamp, &host, replicas * most);
  WEFT_TAKE(sets, &host, replicas * most * p);
  WEFT_CUDA(cudaMemcpyAsync(state, job->state, replicas * job->at.step, cudaMemcpyDeviceToHost, mem->stream));
  WEFT_CUDA(cudaMemcpyAsync(slot, job->slot, replicas * sizeof *slot, cudaMemcpyDeviceToHost, mem->stream));
  WEFT_CUDA(cudaMemcpyAsync(found, job->found.count, replicas * sizeof *found, cudaMemcpyDeviceToHost, mem->stream));
  WEFT_CUDA(cudaMemcpyAsync(accepted, job->accepted, 4 * replicas * sizeof *accepted, cudaMemcpyDeviceToHost, mem->stream));
  WEFT_CUDA(cudaMemcpyAsync(swapped, job->swapped, 2 * pairs * sizeof *swapped, cudaMemcpyDeviceToHost, mem->stream));
  WEFT_CUDA(cudaMemcpyAsync(score, job->found.score, replicas * most * sizeof *score, cudaMemcpyDeviceToHost, mem->stream));
  WEFT_CUDA(cudaMemcpyAsync(hash, job->found.hash, replicas * most * sizeof *hash, cudaMemcpyDeviceToHost, mem->stream));
  WEFT_CUDA(cudaMemcpyAsync(stamp, job->found.stamp, replicas * most * sizeof *stamp, cudaMemcpyDeviceToHost, mem->stream));
  WEFT_CUDA(cudaMemcpyAsync(sets, job->found.sets, replicas * most * p * sizeof *sets, cudaMemcpyDeviceToHost, mem->stream));
  WEFT_CUDA(cudaMemcpyAsync(out->trace + first * rows, job->trace, count * rows * sizeof *out->trace, cudaMemcpyDeviceToHost, mem->stream));
  if (run->sum && out->samples) {
    WEFT_CUDA(cudaMemcpyAsync(out->sampled + first * out->samples * p, job->sampled, count * out->samples * p * sizeof *out->sampled,
                              cudaMemcpyDeviceToHost, mem->stream));
    WEFT_CUDA(cudaMemcpyAsync(out->sample_score + first * out->samples, job->sample_score, count * out->samples * sizeof *out->sample_score,
                              cudaMemcpyDeviceToHost, mem->stream));
  }
  WEFT_CUDA(cudaStreamSynchronize(mem->stream));
  WEFT_TRY(weft_bn_best_make(&host, p, most, &own));
  for (size_t c = 0; c < count; c++) {
    own.found = 0;
    for (size_t t = 0; t < temperatures; t++) {
      const size_t r = c * temperatures + t, number = first * temperatures + r;
      memcpy(out->order + number * p, state + (c * temperatures + slot[r]) * job->at.step + job->at.order, p * sizeof *out->order);
      for (size_t k = 0; k < 4; k++) out->accepted[4 * number + k] = (double) accepted[4 * r + k];
      for (size_t k = 0; k < found[r]; k++)
        weft_bn_best_add(&own, p, score[r * most + k], hash[r * most + k], stamp[r * most + k], sets + (r * most + k) * p);
    }
    for (size_t k = 0; k < own.found; k++)
      weft_bn_best_add(all, p, own.score[k], own.hash[k], (uint64_t) (first + c) << 32 | k, own.sets + k * p);
  }
  for (size_t k = 0; k < 2 * pairs; k++) out->swapped[2 * first * (temperatures - 1) + k] = (double) swapped[k];
done:
  weft_arena_end(&host);
  return st;
}

static double ladder_bytes(const chain_job *job, const weft_bn_run *run, const weft_bn_chains *out)
{
  const double p = job->p, replica = (double) job->at.step + 8 + 4 + 4 * 8 + 16 + 4 + (double) run->best * (24 + 4 * p);
  return (double) run->temperatures * replica + 8.0 * (double) job->saved + (run->sum ? (double) out->samples * (8 + 4 * p) : 0);
}

/* Ladders first .. first + count - 1. */
static weft_status run_group(weft_ctx *ctx, chain_job job, const weft_bn_run *run, size_t first, size_t count, weft_bn_chains *out,
                             weft_bn_best *all)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  weft_device_arena mem_ = weft_device_begin(ctx), *mem = &mem_;
  const size_t p = job.p, replicas = count * run->temperatures;
  const double from = (double) first / (double) run->ladders, to = (double) (first + count) / (double) run->ladders;
  unsigned char *state;
  start_kernel *start = job.words == 1 ? start_chains<1> : job.words == 2 ? start_chains<2> : start_chains<0>;
  job.ladder0 = (uint32_t) (run->ladder0 + first);
  WEFT_TAKE0(state, &host, replicas * job.at.step);
  for (size_t r = 0; r < replicas; r++)
    memcpy(state + r * job.at.step + job.at.order, out->order + (first * run->temperatures + r) * p, p * sizeof *out->order);
  SEND(job.state, state, replicas * job.at.step);
  WEFT_DEVICE_TAKE(job.now, mem, replicas);
  WEFT_DEVICE_TAKE(job.slot, mem, replicas);
  WEFT_DEVICE_TAKE(job.accepted, mem, 4 * replicas);
  WEFT_DEVICE_TAKE(job.swapped, mem, 2 * replicas);
  WEFT_DEVICE_TAKE(job.found.count, mem, replicas);
  WEFT_DEVICE_TAKE(job.found.score, mem, replicas * run->best);
  WEFT_DEVICE_TAKE(job.found.hash, mem, replicas * run->best);
  WEFT_DEVICE_TAKE(job.found.stamp, mem, replicas * run->best);
  WEFT_DEVICE_TAKE(job.found.sets, mem, replicas * run->best * p);
  WEFT_DEVICE_TAKE(job.trace, mem, count * job.saved);
  if (run->sum) {
    WEFT_DEVICE_TAKE(job.sampled, mem, count * out->samples * p);
    WEFT_DEVICE_TAKE(job.sample_score, mem, count * out->samples);
  }
  WEFT_CUDA(cudaMemsetAsync(job.accepted, 0, 4 * replicas * sizeof *job.accepted, mem->stream));
  WEFT_CUDA(cudaMemsetAsync(job.swapped, 0, 2 * replicas * sizeof *job.swapped, mem->stream));
  WEFT_CUDA(cudaMemsetAsync(job.found.count, 0, replicas * sizeof *job.found.count, mem->stream));
  WEFT_CUDA(cudaMemsetAsync(job.found.score, 0, replicas * run->best * sizeof *job.found.score, mem->stream)); /* unused ends travel back */
  WEFT_CUDA(cudaMemsetAsync(job.found.hash, 0, replicas * run->best * sizeof *job.found.hash, mem->stream));
  WEFT_CUDA(cudaMemsetAsync(job.found.stamp, 0, replicas * run->best * sizeof *job.found.stamp, mem->stream));
  WEFT_CUDA(cudaMemsetAsync(job.found.sets, 0, replicas * run->best * p * sizeof *job.found.sets, mem->stream));
  start<<<(unsigned) count, 32 * job.temperatures, 8 * job.words * job.temperatures, mem->stream>>>(job);
  WEFT_CUDA(cudaGetLastError());
  WEFT_TRY(iterate(ctx, mem, &job, count, run->iterations, from, to));
  WEFT_TRY(fetch(ctx, mem, &job, run, first, count, out, all));
done:
  weft_device_end(mem);
  weft_arena_end(&host);
  return st;
}

extern "C" weft_status weft_bn_chain_cuda(weft_ctx *ctx, const weft_bn_table *table, const weft_bn_run *run, weft_bn_chains *out)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  weft_device_arena mem_ = weft_device_begin(ctx), *mem = &mem_;
  const size_t temperatures = run->temperatures;
  double scale[MOST_TEMPERATURES], swap_scale[MOST_TEMPERATURES];
  weft_bn_lists lists;
  weft_bn_best all;
  chain_job job;
  memset(&job, 0, sizeof job);
  if (temperatures > MOST_TEMPERATURES) { st = weft_bn_chain_cpu(ctx, table, run, out); goto done; }
  WEFT_TRY(weft_bn_lists_make(&host, table, run->sum, &lists));
  WEFT_TRY(weft_bn_start_orders(ctx, &lists, run, out->order));
  WEFT_TRY(weft_bn_best_make(&host, table->p, run->best, &all));
  WEFT_TRY(send_lists(ctx, mem, &lists, run, &job));
  for (size_t t = 0; t < temperatures; t++) {
    scale[t] = run->beta[t] / lists.unit;
    swap_scale[t] = t + 1 < temperatures ? (run->beta[t] - run->beta[t + 1]) / lists.unit : 0;
  }
  SEND(job.scale, scale, temperatures);
  SEND(job.swap_scale, swap_scale, temperatures);
  WEFT_CUDA(cudaStreamSynchronize(mem->stream));
  job.key = run->key;
  job.first = run->first;
  job.temperatures = (uint32_t) temperatures;
  job.thin = (uint32_t) run->thin;
  job.swap_every = (uint32_t) run->swap_every;
  job.most = (uint32_t) run->best;
  job.saved = run->iterations / run->thin;
  job.skipped = run->burn_in / run->thin;
  job.samples = out->samples;
  job.at = make_layout(table->p, table->words, run->sum);
  job.in_shared = temperatures * job.at.step <= MOST_SHARED;
  for (size_t first = 0; first < run->ladders; ) {
    size_t count = weft_device_chunk(ctx, run->ladders - first, 1.02 * ladder_bytes(&job, run, out), 0);
    if (!count) { st = WEFT_ERR_MEMORY; goto done; }
    WEFT_TRY(run_group(ctx, job, run, first, count, out, &all));
    first += count;
  }
  for (size_t k = 0; k < all.found; k++) out->best_score[k] = (double) all.score[k] / lists.unit;
  memcpy(out->best_sets, all.sets, all.found * table->p * sizeof *out->best_sets);
  out->found = all.found;
done:
  weft_device_end(mem);
  weft_arena_end(&host);
  return st;
}
