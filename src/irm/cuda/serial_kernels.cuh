/* The kernels of serial.cu: one block of threads that draws a mode's labels node after node. */
#pragma once

#include "irm/cuda/sweep.cuh"

#define THREADS 512

typedef unsigned long long u64;

struct serial_lists {
  int64_t *start;
  int32_t *to, *weight;
};

/* ---- the blocked sampler of one-mode graphs ---- */

struct one_mode_job {
  serial_lists links[2], missing[2];
  const int32_t *self_weight;
  const uint8_t *self_pair;
  int directions;
  bool any_missing;
  int32_t k, width;
  const double *link[2], *none[2]; /* row m, `width` clusters: [0] of outgoing, [1] of incoming links */
  double *base, *sums;
  int32_t *z;
  weft_rng rng;
  uint64_t index;
  int64_t first, last;
};

/* η of the cells on the grid; an undirected graph's cell (l, m) is drawn as (m, l) for m < l. */
__global__ static void draw_parameters(weft_rng rng, uint64_t index, int poisson, double beta0, double beta1,
                                       const int64_t *links, const int64_t *pairs, int32_t k, int32_t width,
                                       bool directed, double *link0, double *link1, double *none0, double *none1)
{
  const int64_t at = (int64_t) blockIdx.x * blockDim.x + threadIdx.x;
  const double beta[2] = { beta0, beta1 };
  if (at >= (int64_t) k * k) return;
  const int64_t l = at / k, m = at % k, from = !directed && m < l ? m * k + l : at;
  const double units =
      irm_draw_log_odds(rng, index + (uint64_t) from, poisson, beta, (double) links[from], (double) pairs[from]);
  const double none = irm_none(poisson, units);
  link0[m * width + l] = units;
  none0[m * width + l] = none;
  if (!directed) return;
  link1[l * width + m] = units;
  none1[l * width + m] = none;
}

__global__ static void make_base(int32_t k, int32_t width, int directions, const double *none0, const double *none1,
                                 const int64_t *sizes, const double *log_stick, double *base)
{
  const int32_t l = (int32_t) (blockIdx.x * blockDim.x + threadIdx.x);
  if (l >= k) return;
  double sum = log_stick[l];
  for (int direction = 0; direction < directions; direction++)
    for (int32_t m = 0; m < k; m++) {
      const double n = (double) sizes[m];
      if (n > 0) sum += n * (direction ? none1 : none0)[(int64_t) m * width + l];
    }
  base[l] = sum;
}

/* A list's rows added up, in units; a missing pair takes its row of none off. Called by all threads. */
__device__ static double add_list(const serial_lists &lists, int64_t i, const int32_t *z, const double *rows,
                                  bool missing, int32_t width, int32_t l, int32_t group, int32_t groups, int32_t *label,
                                  int32_t *by)
{
  double sum = 0;
  const int64_t end = lists.start[i + 1];
  for (int64_t entry = lists.start[i]; entry < end; entry += THREADS) {
    const int64_t mine = entry + threadIdx.x;
    const int32_t here = (int32_t) min((int64_t) THREADS, end - entry);
    __syncthreads();
    if (mine < end) {
      label[threadIdx.x] = z[lists.to[mine]];
      by[threadIdx.x] = lists.weight ? lists.weight[mine] : 1;
    }
    __syncthreads();
    if (l >= width || group >= groups) continue;
    for (int32_t x = group; x < here; x += groups) {
      const double row = rows[(int64_t) label[x] * width + l];
      sum += missing ? -irm_units(row) : by[x] * row;
    }
  }
  return sum;
}

/* All threads get the greatest; ends with everything before it seen by all. */
__device__ static double greatest_of_block(double x, double *shared)
{
  for (int half = 16; half; half /= 2) x = fmax(x, __shfl_xor_sync(FULL, x, half));
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
  __syncthreads();
  x = shared[0];
  for (int w = 1; w < THREADS / 32; w++) x = fmax(x, shared[w]);
  return x;
}

/* Draws nodes first .. last - 1 of a one-mode graph by the blocked sampler; the base follows every label that
 * changes. */
__global__ static void __launch_bounds__(THREADS) draw_one_mode(const __grid_constant__ one_mode_job j)
{
  __shared__ int32_t label[THREADS], by[THREADS], chosen;
  __shared__ double part[THREADS], greatest[THREADS / 32];
  extern __shared__ irm_chunk findings[];
  const int32_t thread = (int32_t) threadIdx.x, lane = thread % 32, warp = thread / 32, chunks = j.width / IRM_CHUNK;
  const int32_t span = min(j.width, THREADS), group = thread / span, groups = THREADS / span;
  for (int64_t i = j.first; i < j.last; i++) {
    const weft_u32x4 words = weft_draw_words(j.rng, j.index + (uint64_t) i, 0);
    const int64_t old = j.z[i];
    double most = -WEFT_INFINITY;
    for (int32_t l = thread; l < j.k; l += THREADS)
      for (int direction = 0; direction < j.directions; direction++) j.base[l] -= j.none[direction][old * j.width + l];
    for (int32_t from = 0; from < j.width; from += span) {
      const int32_t l = from + thread % span;
      double sum = 0;
      for (int direction = 0; direction < j.directions; direction++) {
        sum += add_list(j.links[direction], i, j.z, j.link[direction], false, j.width, l, group, groups, label, by);
        if (j.any_missing)
          sum += add_list(j.missing[direction], i, j.z, j.none[direction], true, j.width, l, group, groups, label, by);
      }
      part[thread] = sum;
      __syncthreads();
      if (group == 0 && l < j.width) {
        for (int32_t g = 1; g < groups; g++) sum += part[g * span + thread];
        sum = l < j.k ? sum + j.base[l] * IRM_UNITS : -WEFT_INFINITY;
        if (j.self_pair && l < j.k) {
          const int64_t diagonal = (int64_t) l * (j.width + 1);
          sum += j.self_weight[i] * j.link[0][diagonal] + j.self_pair[i] * j.none[0][diagonal] * IRM_UNITS;
        }
        j.sums[l] = sum;
        most = fmax(most, sum);
      }
      __syncthreads();
    }
    most = greatest_of_block(most, greatest);
    for (int32_t c = warp; c < chunks; c += THREADS / 32) {
      int32_t s[4];
      for (int x = 0; x < 4; x++) {
        const double distance = most - j.sums[c * IRM_CHUNK + lane + 32 * x];
        s[x] = distance < IRM_FARTHEST ? -(int32_t) distance : -2147483647;
      }
      const irm_chunk best = irm_pick_chunk(s, weft_u01(words.v[2], words.v[3]));
      if (lane == 0) findings[c] = best;
    }
    __syncthreads();
    if (thread == 0) {
      const int c = irm_pick_among(chunks, weft_u01(words.v[0], words.v[1]), [&](int x) { return findings[x]; });
      j.z[i] = chosen = c * IRM_CHUNK + findings[c].label;
    }
    __syncthreads();
    for (int32_t l = thread; l < j.k; l += THREADS)
      for (int direction = 0; direction < j.directions; direction++)
        j.base[l] += j.none[direction][(int64_t) chosen * j.width + l];
  }
}

/* ---- the collapsed sampler ---- */

/* near[d]: the blocks that a node of this mode reads, rows of k_other; far[d]: the same blocks transposed, rows of
 * k. */
struct collapsed_job {
  serial_lists links[2], missing[2];
  const int32_t *self_weight;
  const uint8_t *self_pair;
  int one_mode, directions;
  bool any_missing, symmetric;
  int32_t k, k_other;
  int32_t *z, *z_other;
  int64_t *sizes, *sizes_other;
  int32_t *active, *active_other, *place, *active_count, *active_count_other;
  int64_t *near_links[2], *near_pairs[2], *far_links[2], *far_pairs[2];
  int64_t *near_values, *far_values; /* squares of real values; else NULL */
  int64_t *count[2], *pairs[2];      /* of the node, by cluster of the other mode */
  int64_t *squares;                  /* likewise, of real values */
  double *gains, *scores, alpha;
  irm_tables tables;
  weft_rng rng;
  uint64_t index;
  int64_t first, last;
};

/* Links and observed pairs of node i with each active cluster of the other mode. */
__device__ static void fill_profile(const collapsed_job &j, int64_t i)
{
  const int32_t clusters = *j.active_count_other;
  for (int32_t at = (int32_t) threadIdx.x; at < clusters; at += THREADS) {
    const int32_t m = j.active_other[at];
    for (int direction = 0; direction < j.directions; direction++) {
      j.count[direction][m] = 0;
      if (j.squares) j.squares[m] = 0;
      j.pairs[direction][m] = j.sizes_other[m];
    }
  }
  __syncthreads();
  for (int direction = 0; direction < j.directions; direction++) {
    const serial_lists &links = j.links[direction], &missing = j.missing[direction];
    for (int64_t entry = links.start[i] + threadIdx.x; entry < links.start[i + 1]; entry += THREADS) {
      const int32_t m = j.z_other[links.to[entry]];
      if (m < 0) continue;
      const long long w = links.weight ? links.weight[entry] : 1;
      atomicAdd((u64 *) &j.count[direction][m], (u64) w);
      if (j.squares) atomicAdd((u64 *) &j.squares[m], (u64) (w * w));
    }
    for (int64_t entry = j.any_missing ? missing.start[i] + threadIdx.x : 0;
         j.any_missing && entry < missing.start[i + 1]; entry += THREADS) {
      const int32_t m = j.z_other[missing.to[entry]];
      if (m >= 0) atomicAdd((u64 *) &j.pairs[direction][m], (u64) -1);
    }
  }
  __syncthreads();
}

/* Adds sign times the profile to cluster l's blocks. Other threads see it after the next barrier. */
__device__ static void add_profile(const collapsed_job &j, int64_t i, int32_t l, int sign)
{
  const int32_t clusters = *j.active_count_other;
  for (int32_t at = (int32_t) threadIdx.x; at < clusters; at += THREADS) {
    const int32_t m = j.active_other[at];
    for (int direction = 0; direction < j.directions; direction++) {
      const int64_t links = sign * j.count[direction][m], pairs = sign * j.pairs[direction][m];
      const int64_t near = (int64_t) l * j.k_other + m, far = (int64_t) m * j.k + l;
      j.near_links[direction][near] += links;
      j.near_pairs[direction][near] += pairs;
      if (j.symmetric && m == l) continue;
      j.far_links[direction][far] += links;
      j.far_pairs[direction][far] += pairs;
      if (!j.squares) continue;
      j.near_values[near] += sign * j.squares[m];
      j.far_values[far] += sign * j.squares[m];
    }
  }
  if (!j.self_pair) return;
  __syncthreads();
  if (threadIdx.x) return;
  const int64_t diagonal = (int64_t) l * (j.k + 1);
  j.near_links[0][diagonal] += sign * j.self_weight[i];
  j.near_pairs[0][diagonal] += sign * j.self_pair[i];
  if (j.symmetric) return;
  j.far_links[0][diagonal] += sign * j.self_weight[i];
  j.far_pairs[0][diagonal] += sign * j.self_pair[i];
}

/* What a block has, or a node adds to it; squares: of real values. */
struct block_counts {
  int64_t links, squares, pairs;
};

__device__ static double block_gain(const irm_tables &tables, const block_counts &now, const block_counts &more)
{
  if (more.pairs == 0) return 0;
  return irm_f_block(&tables, now.links + more.links, now.squares + more.squares, now.pairs + more.pairs) -
         (now.pairs ? irm_f_block(&tables, now.links, now.squares, now.pairs) : 0);
}

/* One thread: cluster l has one node more or less; a cluster that empties leaves the list, the last one takes its
 * place. */
__device__ static void set_size(const collapsed_job &j, int32_t l, int by)
{
  const int64_t now = j.sizes[l] += by;
  if (by > 0 && now == 1) {
    j.place[l] = *j.active_count;
    j.active[(*j.active_count)++] = l;
  } else if (by < 0 && now == 0) {
    const int32_t hole = j.place[l], last = j.active[--*j.active_count];
    j.active[hole] = last;
    j.place[last] = hole;
    j.place[l] = -1;
  }
}

/* Draws nodes first .. last - 1 by the collapsed sampler: out of its cluster, gains of all candidates, the draw,
 * into its cluster. */
__global__ static void __launch_bounds__(THREADS) draw_collapsed(const __grid_constant__ collapsed_job j)
{
  __shared__ double greatest[THREADS / 32];
  __shared__ int32_t chosen, empty;
  const int32_t thread = (int32_t) threadIdx.x;
  for (int64_t i = j.first; i < j.last; i++) {
    const int32_t old = j.z[i];
    __syncthreads();
    if (thread == 0) {
      j.z[i] = -1;
      j.sizes[old]--; /* a cluster that empties stays active until its blocks are cleared */
      empty = j.k;
    }
    __syncthreads();
    fill_profile(j, i);
    add_profile(j, i, old, -1);
    __syncthreads();
    if (thread == 0) {
      j.sizes[old]++;
      set_size(j, old, -1);
    }
    __syncthreads();
    for (int32_t l = thread; l < j.k; l += THREADS)
      if (j.sizes[l] == 0) atomicMin(&empty, l);
    __syncthreads();

    const int32_t clusters = *j.active_count, choices = clusters + (clusters < j.k), others = *j.active_count_other;
    for (int64_t at = thread; at < (int64_t) choices * others * j.directions; at += THREADS) {
      const int32_t m = j.active_other[at % others], a = (int32_t) (at / others % choices),
                    direction = (int32_t) (at / others / choices);
      const int32_t l = a < clusters ? j.active[a] : empty;
      const int64_t cell = (int64_t) l * j.k_other + m;
      const block_counts now = { j.near_links[direction][cell], j.squares ? j.near_values[cell] : 0,
                                 j.near_pairs[direction][cell] };
      const block_counts more = { j.count[direction][m], j.squares ? j.squares[m] : 0, j.pairs[direction][m] };
      j.gains[((int64_t) direction * others + at % others) * choices + a] =
          j.one_mode && m == l ? 0 : block_gain(j.tables, now, more);
    }
    __syncthreads();
    double most = -WEFT_INFINITY;
    for (int32_t a = thread; a < choices; a += THREADS) {
      const int32_t l = a < clusters ? j.active[a] : empty;
      double sum = 0;
      for (int64_t m = 0; m < (int64_t) others * j.directions; m++) sum += j.gains[m * choices + a];
      if (j.one_mode) {
        const int64_t diagonal = (int64_t) l * (j.k + 1);
        int64_t links = j.self_pair ? j.self_weight[i] : 0, pairs = j.self_pair ? j.self_pair[i] : 0;
        for (int direction = 0; direction < j.directions && a < clusters; direction++) {
          links += j.count[direction][l];
          pairs += j.pairs[direction][l];
        }
        sum += block_gain(j.tables, { j.near_links[0][diagonal], 0, j.near_pairs[0][diagonal] }, { links, 0, pairs });
      }
      j.scores[a] = sum + weft_log(a < clusters ? (double) j.sizes[l] : j.alpha);
      most = fmax(most, j.scores[a]);
    }
    most = greatest_of_block(most, greatest);
    for (int32_t a = thread; a < choices; a += THREADS) j.scores[a] = weft_exp(j.scores[a] - most);
    __syncthreads();
    if (thread == 0) {
      double total = 0;
      for (int32_t a = 0; a < choices; a++) total += j.scores[a];
      double target = total * weft_draw_uniform(j.rng, j.index + (uint64_t) i);
      int32_t a = 0;
      while (a < choices - 1 && (target -= j.scores[a]) >= 0) a++;
      chosen = a < clusters ? j.active[a] : empty;
    }
    __syncthreads();
    add_profile(j, i, chosen, 1);
    __syncthreads();
    if (thread == 0) {
      j.z[i] = chosen;
      set_size(j, chosen, 1);
    }
    __syncthreads();
  }
}
