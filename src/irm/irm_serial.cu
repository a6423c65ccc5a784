/* Labels drawn one node after another on the device: the collapsed sampler, and the blocked one of one-mode graphs, where
 * every label hangs on all others. The arithmetic and its order are those of irm_moves.c, irm_state.c and draw_one() in
 * irm_blocked.c, so that the labels are the CPU's.
 *
 * One block of threads does it. What it shares out is a node's work: links, and
 *
 *   collapsed   candidates x clusters of the other mode: each gain by itself, then a candidate's in the CPU's order
 *   one-mode    clusters, and links where there are fewer clusters than threads: whole numbers, in any order
 *
 * State, blocks and labels are sent for a sweep and brought back after it, since counting and split-merge are the host's.
 * A single node's choice takes a few microseconds, whatever its size: less than a CPU's thread needs from about 50 x 50
 * clusters on in the collapsed sampler, more in small graphs. */
#include <algorithm>
#include <cstring>
#include "irm_serial.cuh"

#define THREADS 512
#define SLICE_MICROSECONDS 30000.0   /* between two polls, by a rough estimate */

typedef unsigned long long u64;

struct serial_lists { int64_t *start; int32_t *to, *weight; };

struct irm_serial {
  weft_device_arena *mem;
  const weft_irm_graph *graph;
  serial_lists links[2], missing[2];
  int32_t *self_weight;
  uint8_t *self_pair;
  int32_t *z[2];
  int64_t *sizes[2];
  /* collapsed */
  int32_t *active[2], *place[2], *active_count;
  int64_t *blocks_links[2], *blocks_pairs[2];
  int64_t *count[2], *pairs[2];
  double *gains, *scores;
  irm_tables tables;
  bool tables_sent;
  /* one-mode */
  int32_t width;
  double *link[2], *none[2], *base, *sums, *log_stick;
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
__global__ static void draw_parameters(weft_rng rng, uint64_t index, int poisson, double beta0, double beta1, const int64_t *links,
                                       const int64_t *pairs, int32_t k, int32_t width, bool directed, double *link0, double *link1,
                                       double *none0, double *none1)
{
  const int64_t at = (int64_t) blockIdx.x * blockDim.x + threadIdx.x;
  const double beta[2] = { beta0, beta1 };
  if (at >= (int64_t) k * k) return;
  const int64_t l = at / k, m = at % k, from = !directed && m < l ? m * k + l : at;
  const double units = irm_draw_log_odds(rng, index + (uint64_t) from, poisson, beta, (double) links[from], (double) pairs[from]);
  const double none = irm_none(poisson, units);
  link0[m * width + l] = units;
  none0[m * width + l] = none;
  if (!directed) return;
  link1[l * width + m] = units;
  none1[l * width + m] = none;
}

__global__ static void make_base(int32_t k, int32_t width, int directions, const double *none0, const double *none1, const int64_t *sizes,
                                 const double *log_stick, double *base)
{
  const int32_t l = (int32_t) (blockIdx.x * blockDim.x + threadIdx.x);
  if (l >= k) return;
  double sum = log_stick[l];
  for (int d = 0; d < directions; d++)
    for (int32_t m = 0; m < k; m++) {
      const double n = (double) sizes[m];
      if (n > 0) sum += n * (d ? none1 : none0)[(int64_t) m * width + l];
    }
  base[l] = sum;
}

/* A list's rows added up, in units; a missing pair takes its row of none off. Called by all threads. */
__device__ static double add_list(const serial_lists &a, int64_t i, const int32_t *z, const double *rows, bool missing, int32_t width,
                                  int32_t l, int32_t group, int32_t groups, int32_t *label, int32_t *by)
{
  double sum = 0;
  const int64_t end = a.start[i + 1];
  for (int64_t e = a.start[i]; e < end; e += THREADS) {
    const int64_t mine = e + threadIdx.x;
    const int32_t here = (int32_t) min((int64_t) THREADS, end - e);
    __syncthreads();
    if (mine < end) {
      label[threadIdx.x] = z[a.to[mine]];
      by[threadIdx.x] = a.weight ? a.weight[mine] : 1;
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
      for (int d = 0; d < j.directions; d++) j.base[l] -= j.none[d][old * j.width + l];
    for (int32_t from = 0; from < j.width; from += span) {
      const int32_t l = from + thread % span;
      double sum = 0;
      for (int d = 0; d < j.directions; d++) {
        sum += add_list(j.links[d], i, j.z, j.link[d], false, j.width, l, group, groups, label, by);
        if (j.any_missing) sum += add_list(j.missing[d], i, j.z, j.none[d], true, j.width, l, group, groups, label, by);
      }
      part[thread] = sum;
      __syncthreads();
      if (group == 0 && l < j.width) {
        for (int32_t g = 1; g < groups; g++) sum += part[g * span + thread];
        sum = l < j.k ? sum + j.base[l] * IRM_UNITS : -1e18;
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
      for (int d = 0; d < j.directions; d++) j.base[l] += j.none[d][(int64_t) chosen * j.width + l];
  }
}

/* ---- the collapsed sampler ---- */

/* near[d]: the blocks that a node of this mode reads, rows of k_other; far[d]: the same blocks turned over, rows of k. */
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
  int64_t *count[2], *pairs[2]; /* of the node, by cluster of the other mode */
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
    for (int d = 0; d < j.directions; d++) {
      j.count[d][m] = 0;
      j.pairs[d][m] = j.sizes_other[m];
    }
  }
  __syncthreads();
  for (int d = 0; d < j.directions; d++) {
    const serial_lists &a = j.links[d], &b = j.missing[d];
    for (int64_t e = a.start[i] + threadIdx.x; e < a.start[i + 1]; e += THREADS) {
      const int32_t m = j.z_other[a.to[e]];
      if (m >= 0) atomicAdd((u64 *) &j.count[d][m], (u64) (a.weight ? a.weight[e] : 1));
    }
    for (int64_t e = j.any_missing ? b.start[i] + threadIdx.x : 0; j.any_missing && e < b.start[i + 1]; e += THREADS) {
      const int32_t m = j.z_other[b.to[e]];
      if (m >= 0) atomicAdd((u64 *) &j.pairs[d][m], (u64) -1);
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
    for (int d = 0; d < j.directions; d++) {
      const int64_t links = sign * j.count[d][m], pairs = sign * j.pairs[d][m];
      const int64_t near = (int64_t) l * j.k_other + m, far = (int64_t) m * j.k + l;
      j.near_links[d][near] += links;
      j.near_pairs[d][near] += pairs;
      if (j.symmetric && m == l) continue;
      j.far_links[d][far] += links;
      j.far_pairs[d][far] += pairs;
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

__device__ static double block_gain(const irm_tables &t, int64_t links, int64_t pairs, int64_t more_links, int64_t more_pairs)
{
  if (more_pairs == 0) return 0;
  return irm_f_fast(&t, links + more_links, pairs + more_pairs) - (pairs ? irm_f_fast(&t, links, pairs) : 0);
}

/* One thread: cluster l has one node more or less; a cluster that empties leaves the list, the last one takes its place. */
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
    for (int32_t l = thread; l < j.k; l += THREADS) if (j.sizes[l] == 0) atomicMin(&empty, l);
    __syncthreads();

    const int32_t clusters = *j.active_count, choices = clusters + (clusters < j.k), others = *j.active_count_other;
    for (int64_t at = thread; at < (int64_t) choices * others * j.directions; at += THREADS) {
      const int32_t m = j.active_other[at % others], a = (int32_t) (at / others % choices), d = (int32_t) (at / others / choices);
      const int32_t l = a < clusters ? j.active[a] : empty;
      const int64_t cell = (int64_t) l * j.k_other + m;
      j.gains[((int64_t) d * others + at % others) * choices + a] =
        j.one_mode && m == l ? 0 : block_gain(j.tables, j.near_links[d][cell], j.near_pairs[d][cell], j.count[d][m], j.pairs[d][m]);
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
        for (int d = 0; d < j.directions && a < clusters; d++) {
          links += j.count[d][l];
          pairs += j.pairs[d][l];
        }
        sum += block_gain(j.tables, j.near_links[0][diagonal], j.near_pairs[0][diagonal], links, pairs);
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

/* ---- host ---- */

#define SEND(to, from, count) \
  WEFT_CUDA(cudaMemcpyAsync((void *) (to), from, (size_t) (count) * sizeof *(from), cudaMemcpyHostToDevice, r->mem->stream))
#define BRING(to, from, count) \
  WEFT_CUDA(cudaMemcpyAsync((void *) (to), from, (size_t) (count) * sizeof *(from), cudaMemcpyDeviceToHost, r->mem->stream))

static weft_status send_lists(weft_ctx *ctx, irm_serial *r, const weft_irm_lists *from, int64_t n, int64_t count, serial_lists *to)
{
  weft_status st = WEFT_OK;
  WEFT_DEVICE_TAKE(to->start, r->mem, (size_t) n + 1);
  WEFT_DEVICE_TAKE(to->to, r->mem, (size_t) count + 1);
  SEND(to->start, from->start, n + 1);
  if (count) SEND(to->to, from->to, count);
  if (!from->weight) goto done;
  WEFT_DEVICE_TAKE(to->weight, r->mem, (size_t) count + 1);
  if (count) SEND(to->weight, from->weight, count);
done:
  return st;
}

static weft_status take_collapsed(irm_serial *r, const irm_state *s)
{
  weft_status st = WEFT_OK;
  const size_t blocks = (size_t) s->k[0] * (size_t) s->k[1], most = (size_t) std::max(s->k[0], s->k[1]);
  WEFT_DEVICE_TAKE(r->active_count, r->mem, 2);
  for (int mode = 0; mode < s->modes; mode++) {
    TAKE_AT(r->active[mode], r->mem, (size_t) s->k[mode]);
    TAKE_AT(r->place[mode], r->mem, (size_t) s->k[mode]);
  }
  for (int turned = 0; turned < 2; turned++) {
    if (turned && s->links[1] == s->links[0]) {
      r->blocks_links[1] = r->blocks_links[0];
      r->blocks_pairs[1] = r->blocks_pairs[0];
      continue;
    }
    TAKE_AT(r->blocks_links[turned], r->mem, blocks);
    TAKE_AT(r->blocks_pairs[turned], r->mem, blocks);
  }
  for (int d = 0; d < s->directions; d++) {
    TAKE_AT(r->count[d], r->mem, most);
    TAKE_AT(r->pairs[d], r->mem, most);
  }
  WEFT_DEVICE_TAKE(r->gains, r->mem, (blocks + most) * (size_t) s->directions);
  WEFT_DEVICE_TAKE(r->scores, r->mem, most + 1);
  r->tables = s->tables;
  WEFT_DEVICE_TAKE(r->tables.links, r->mem, (size_t) s->tables.size);
  WEFT_DEVICE_TAKE(r->tables.others, r->mem, (size_t) s->tables.size);
  WEFT_DEVICE_TAKE(r->tables.pairs, r->mem, (size_t) s->tables.size);
done:
  return st;
}

static weft_status take_one_mode(weft_ctx *ctx, irm_serial *r, const irm_state *s)
{
  weft_status st = WEFT_OK;
  const size_t k = (size_t) s->k[0];
  r->width = (s->k[0] + IRM_CHUNK - 1) / IRM_CHUNK * IRM_CHUNK;
  TAKE_AT(r->blocks_links[0], r->mem, k * k);
  TAKE_AT(r->blocks_pairs[0], r->mem, k * k);
  for (int d = 0; d < s->directions; d++) {
    TAKE_AT(r->link[d], r->mem, k * (size_t) r->width);
    TAKE_AT(r->none[d], r->mem, k * (size_t) r->width);
    WEFT_CUDA(cudaMemsetAsync(r->link[d], 0, k * (size_t) r->width * sizeof(double), r->mem->stream));
    WEFT_CUDA(cudaMemsetAsync(r->none[d], 0, k * (size_t) r->width * sizeof(double), r->mem->stream));
  }
  WEFT_DEVICE_TAKE(r->base, r->mem, k);
  WEFT_DEVICE_TAKE(r->sums, r->mem, (size_t) r->width);
  WEFT_DEVICE_TAKE(r->log_stick, r->mem, k);
done:
  return st;
}

weft_status irm_serial_open(weft_ctx *ctx, weft_device_arena *mem, weft_arena *host, const irm_state *s, irm_serial **out)
{
  weft_status st = WEFT_OK;
  const weft_irm_graph *g = s->graph;
  irm_serial *r;
  WEFT_TAKE0(r, host, 1);
  r->mem = mem;
  r->graph = g;
  for (int d = 0; d < (g->type == WEFT_IRM_UNDIRECTED ? 1 : 2); d++) {
    const int64_t n = g->n[s->one_mode ? 0 : d];
    WEFT_TRY(send_lists(ctx, r, &g->links[d], n, g->link_count[d], &r->links[d]));
    if (g->missing_count[0]) WEFT_TRY(send_lists(ctx, r, &g->missing[d], n, g->missing_count[d], &r->missing[d]));
  }
  if (g->self_pair) {
    WEFT_DEVICE_TAKE(r->self_weight, mem, (size_t) g->n[0]);
    WEFT_DEVICE_TAKE(r->self_pair, mem, (size_t) g->n[0]);
    SEND(r->self_weight, g->self_weight, g->n[0]);
    SEND(r->self_pair, g->self_pair, g->n[0]);
  }
  for (int mode = 0; mode < s->modes; mode++) {
    TAKE_AT(r->z[mode], mem, (size_t) g->n[mode]);
    TAKE_AT(r->sizes[mode], mem, (size_t) s->k[mode]);
  }
  if (s->model->collapsed) WEFT_TRY(take_collapsed(r, s));
  else WEFT_TRY(take_one_mode(ctx, r, s));
  *out = r;
done:
  return st;
}

/* Runs `draw(first, last)` over slices of a mode's nodes, and polls in between. */
template <typename Draw> static weft_status in_slices(weft_ctx *ctx, irm_serial *r, const irm_state *s, int mode, double done_work, double total,
                                                      Draw draw)
{
  weft_status st = WEFT_OK;
  const double cells = (double) s->active_count[mode] * s->active_count[irm_other(s, mode)] * s->directions;
  const double node = 10 + (s->model->collapsed ? cells * 2e-3 : s->k[mode] * 1e-2);
  for (int64_t first = 0, last; first < s->graph->n[mode]; first = last) {
    last = irm_slice_end(&s->graph->links[mode], first, s->graph->n[mode], node, 0.02 + s->k[mode] * 2e-5, SLICE_MICROSECONDS);
    draw(first, last);
    WEFT_CUDA(cudaGetLastError());
    WEFT_CUDA(cudaStreamSynchronize(r->mem->stream));
    WEFT_TRY(weft_poll(ctx, done_work, total));
  }
done:
  return st;
}

static weft_status labels_one_mode(weft_ctx *ctx, irm_serial *r, irm_state *s, double done_work, double total)
{
  weft_status st = WEFT_OK;
  const int32_t k = s->k[0];
  const int64_t cells = (int64_t) k * k;
  const size_t shared = (size_t) (r->width / IRM_CHUNK) * sizeof(irm_chunk);
  one_mode_job job = {
    { r->links[0], r->links[1] }, { r->missing[0], r->missing[1] }, r->self_weight, r->self_pair, s->directions,
    r->graph->missing_count[0] > 0, k, r->width, { r->link[0], r->link[1] }, { r->none[0], r->none[1] }, r->base, r->sums, r->z[0],
    irm_rng(s, IRM_DRAW_ROW), irm_index(s, 0), 0, 0
  };
  SEND(r->z[0], s->z[0], r->graph->n[0]);
  SEND(r->sizes[0], s->sizes[0], k);
  SEND(r->log_stick, s->log_stick[0], k);
  SEND(r->blocks_links[0], s->links[0], cells);
  SEND(r->blocks_pairs[0], s->pairs[0], cells);
  draw_parameters<<<(unsigned) ((cells + 127) / 128), 128, 0, r->mem->stream>>>(
    irm_rng(s, IRM_DRAW_ETA), irm_index(s, 0), s->model->poisson, s->chain->beta[0], s->chain->beta[1], r->blocks_links[0], r->blocks_pairs[0],
    k, r->width, s->directions == 2, r->link[0], r->link[1], r->none[0], r->none[1]);
  make_base<<<(unsigned) ((k + 63) / 64), 64, 0, r->mem->stream>>>(k, r->width, s->directions, r->none[0], r->none[1], r->sizes[0],
                                                                  r->log_stick, r->base);
  WEFT_CUDA(cudaGetLastError());
  WEFT_TRY(in_slices(ctx, r, s, 0, done_work, total, [&](int64_t first, int64_t last) {
    job.first = first;
    job.last = last;
    draw_one_mode<<<1, THREADS, shared, r->mem->stream>>>(job);
  }));
  BRING(s->z[0], r->z[0], r->graph->n[0]);
  WEFT_CUDA(cudaStreamSynchronize(r->mem->stream));
  memset(s->sizes[0], 0, (size_t) k * sizeof(int64_t));
  for (int64_t i = 0; i < r->graph->n[0]; i++) s->sizes[0][s->z[0][i]]++;
done:
  return st;
}

/* Tables of log Γ are the host's, and change with β only. */
static weft_status send_tables(weft_ctx *ctx, irm_serial *r, const irm_tables *t)
{
  weft_status st = WEFT_OK;
  if (r->tables_sent && memcmp(t->beta, r->tables.beta, sizeof t->beta) == 0) return st;
  SEND(r->tables.links, t->links, t->size);
  SEND(r->tables.pairs, t->pairs, t->size);
  if (!t->poisson) SEND(r->tables.others, t->others, t->size);
  memcpy(r->tables.beta, t->beta, sizeof t->beta);
  r->tables.base = t->base;
  r->tables_sent = true;
done:
  return st;
}

static weft_status labels_collapsed(weft_ctx *ctx, irm_serial *r, irm_state *s, double done_work, double total)
{
  weft_status st = WEFT_OK;
  const int64_t cells = (int64_t) s->k[0] * s->k[1];
  const bool symmetric = s->links[0] == s->links[1];
  WEFT_TRY(send_tables(ctx, r, &s->tables));
  for (int mode = 0; mode < s->modes; mode++) {
    SEND(r->z[mode], s->z[mode], s->graph->n[mode]);
    SEND(r->sizes[mode], s->sizes[mode], s->k[mode]);
    SEND(r->active[mode], s->active[mode], s->k[mode]);
    SEND(r->place[mode], s->place[mode], s->k[mode]);
  }
  SEND(r->active_count, s->active_count, 2);
  for (int turned = 0; turned < (symmetric ? 1 : 2); turned++) {
    SEND(r->blocks_links[turned], s->links[turned], cells);
    SEND(r->blocks_pairs[turned], s->pairs[turned], cells);
  }
  for (int mode = 0; mode < s->modes; mode++) {
    const int other = irm_other(s, mode);
    collapsed_job job;
    memset((void *) &job, 0, sizeof job);
    for (int d = 0; d < s->directions; d++) {
      const int near = s->one_mode ? d : mode;
      job.links[d] = r->links[near];
      job.missing[d] = r->missing[near];
      job.near_links[d] = r->blocks_links[near];
      job.near_pairs[d] = r->blocks_pairs[near];
      job.far_links[d] = r->blocks_links[1 - near];
      job.far_pairs[d] = r->blocks_pairs[1 - near];
      job.count[d] = r->count[d];
      job.pairs[d] = r->pairs[d];
    }
    job.self_weight = r->self_weight;
    job.self_pair = r->self_pair;
    job.one_mode = s->one_mode;
    job.directions = s->directions;
    job.any_missing = s->graph->missing_count[0] > 0;
    job.symmetric = symmetric;
    job.k = s->k[mode];
    job.k_other = s->k[s->one_mode ? 0 : 1 - mode];
    job.z = r->z[mode];
    job.z_other = r->z[other];
    job.sizes = r->sizes[mode];
    job.sizes_other = r->sizes[other];
    job.active = r->active[mode];
    job.active_other = r->active[other];
    job.place = r->place[mode];
    job.active_count = r->active_count + mode;
    job.active_count_other = r->active_count + other;
    job.gains = r->gains;
    job.scores = r->scores;
    job.alpha = s->chain->alpha[mode];
    job.tables = r->tables;
    job.rng = irm_rng(s, mode == 0 ? IRM_DRAW_ROW : IRM_DRAW_COL);
    job.index = irm_index(s, 0);
    WEFT_TRY(in_slices(ctx, r, s, mode, done_work, total, [&](int64_t first, int64_t last) {
      job.first = first;
      job.last = last;
      draw_collapsed<<<1, THREADS, 0, r->mem->stream>>>(job);
    }));
    BRING(s->z[mode], r->z[mode], s->graph->n[mode]);
    BRING(s->sizes[mode], r->sizes[mode], s->k[mode]);
    BRING(s->active[mode], r->active[mode], s->k[mode]);
    BRING(s->place[mode], r->place[mode], s->k[mode]);
    BRING(&s->active_count[mode], r->active_count + mode, 1);
  }
  for (int turned = 0; turned < (symmetric ? 1 : 2); turned++) {
    BRING(s->links[turned], r->blocks_links[turned], cells);
    BRING(s->pairs[turned], r->blocks_pairs[turned], cells);
  }
  WEFT_CUDA(cudaStreamSynchronize(r->mem->stream));
done:
  return st;
}

weft_status irm_serial_labels(weft_ctx *ctx, irm_serial *r, irm_state *s, double done_work, double total)
{
  return s->model->collapsed ? labels_collapsed(ctx, r, s, done_work, total) : labels_one_mode(ctx, r, s, done_work, total);
}
