/* The kernels of sweep.cu: parameters, counts, the draws of light and heavy nodes, blocks. */
#pragma once

#include "irm/cuda/shards.cuh"

#define LIGHT_TILE 32 /* nodes per block */

typedef unsigned long long irm_u64;

/* Nodes scored at once by the heavy path: order[slot], counts[slot * k_other + m]. */
struct irm_batch {
  const int32_t *order;
  int32_t count, k_other;
  const uint16_t *other;
  double *counts;
};

/* ---- parameters ---- */

__global__ static void irm_draw_eta(weft_rng rng, uint64_t index, int poisson, double beta0, double beta1,
                                    const long long *links, const long long *pairs, int64_t cells, double *link,
                                    double *none)
{
  const int64_t at = (int64_t) blockIdx.x * blockDim.x + threadIdx.x;
  const double beta[2] = { beta0, beta1 };
  if (at >= cells) return;
  const double units =
      irm_draw_log_odds(rng, index + (uint64_t) at, poisson, beta, (double) links[at], (double) pairs[at]);
  link[at] = units;
  none[at] = irm_none(poisson, units);
}

/* The digit of weight 2^(8 plane) of a value in signed bytes. */
__device__ static inline int irm_digit(int32_t v, int plane)
{
  for (int p = 0; p < plane; p++) v = (v - (int8_t) (v & 255)) >> 8;
  return (int8_t) (v & 255);
}

/* Block m: row m of a mode's tables. link and none are [l][m] with m the other mode's cluster when mode is 0. */
__global__ static void __launch_bounds__(256)
    irm_make_tables(irm_device_tables tables, const double *link, const double *none, int mode, int *narrow)
{
  __shared__ double low[2][8], high[2][8];
  const int32_t m = (int32_t) blockIdx.x;
  const int64_t step = mode == 0 ? tables.k_other : 1, base = mode == 0 ? m : (int64_t) m * tables.k;
  double least[2] = { WEFT_INFINITY, WEFT_INFINITY }, most[2] = { -WEFT_INFINITY, -WEFT_INFINITY };
  for (int32_t l = (int32_t) threadIdx.x; l < tables.width; l += 256) {
    const double w = l < tables.k ? link[base + l * step] : 0,
                 v = l < tables.k && tables.missing ? irm_units(none[base + l * step]) : 0;
    tables.link[(int64_t) m * tables.width + l] = w;
    if (tables.missing) tables.missing[(int64_t) m * tables.width + l] = v;
    if (l >= tables.k) continue;
    least[0] = fmin(least[0], w);
    most[0] = fmax(most[0], w);
    least[1] = fmin(least[1], v);
    most[1] = fmax(most[1], v);
  }
  for (int which = 0; which < 2; which++) {
    for (int half = 16; half; half /= 2) {
      least[which] = fmin(least[which], __shfl_xor_sync(FULL, least[which], half));
      most[which] = fmax(most[which], __shfl_xor_sync(FULL, most[which], half));
    }
    if (threadIdx.x % 32 == 0) {
      low[which][threadIdx.x / 32] = least[which];
      high[which][threadIdx.x / 32] = most[which];
    }
  }
  __syncthreads();
  double middle = 0;
  for (int which = 0; which < 2; which++) {
    double a = low[which][0], b = high[which][0];
    for (int w = 1; w < 8; w++) {
      a = fmin(a, low[which][w]);
      b = fmax(b, high[which][w]);
    }
    const double mid = irm_middle(a, b);
    if (which == 0) middle = mid;
    if (threadIdx.x == 0 && (b - mid > IRM_NARROW || mid - a > IRM_NARROW)) atomicAnd(narrow, 0);
  }
  if (!tables.planes) return;
  const int32_t quads = (tables.k_other + 3) / 4;
  for (int32_t l = (int32_t) threadIdx.x; l < tables.k; l += 256) {
    const double centred = link[base + l * step] - middle;
    const int32_t v = fabs(centred) <= IRM_NARROW ? (int32_t) centred : 0;
    for (int p = 0; p < PLANES; p++)
      tables.planes[(((size_t) p * quads + m / 4) * tables.width + l) * 4 + m % 4] = (uint8_t) irm_digit(v, p);
  }
}

/* log μ_l + Σ_m n_m log(1 - η_lm), m upwards. */
__global__ static void irm_base_nats(irm_device_tables tables, const double *log_stick, const double *none,
                                     const irm_u64 *sizes, int mode)
{
  const int32_t l = (int32_t) (blockIdx.x * blockDim.x + threadIdx.x);
  if (l >= tables.k) return;
  double base = log_stick[l];
  for (int32_t m = 0; m < tables.k_other; m++) {
    const double n = (double) sizes[m],
                 row = none[mode == 0 ? (int64_t) l * tables.k_other + m : (int64_t) m * tables.k + l];
    if (n > 0) base += n * row;
  }
  tables.nats[l] = base;
}

/* One block of threads: the base on the grid, with the greatest at 0, in doubles and in 32 bits. */
__global__ static void __launch_bounds__(1024) irm_base_units(irm_device_tables tables)
{
  __shared__ double greatest[32];
  double most = -WEFT_INFINITY;
  for (int32_t l = (int32_t) threadIdx.x; l < tables.k; l += 1024) most = fmax(most, tables.nats[l]);
  for (int half = 16; half; half /= 2) most = fmax(most, __shfl_xor_sync(FULL, most, half));
  if (threadIdx.x % 32 == 0) greatest[threadIdx.x / 32] = most;
  __syncthreads();
  most = greatest[0];
  for (int w = 1; w < 32; w++) most = fmax(most, greatest[w]);
  for (int32_t l = (int32_t) threadIdx.x; l < tables.width; l += 1024) {
    const double units = l < tables.k ? irm_units(tables.nats[l] - most) : -WEFT_INFINITY;
    tables.base[l] = units;
    tables.base_narrow[l] = units < IRM_FLOOR ? IRM_FLOOR : (int32_t) units;
  }
}

/* ---- light nodes ---- */

__device__ static inline int32_t irm_multiply(uint32_t counts, uint32_t bytes, int32_t sum)
{
  asm("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(counts), "r"(bytes));
  return sum;
}

static inline size_t irm_light_shared(int32_t k_other, int32_t width)
{
  return (size_t) LIGHT_TILE *
         ((size_t) (k_other + 3) / 4 * 4 + IRM_CHUNK * 4 + (size_t) width / IRM_CHUNK * sizeof(irm_chunk));
}

/* A block scores and draws LIGHT_TILE nodes:
 *
 *   | counts: node, quad of m: a word of four bytes | scores: node x 128 of the chunk | chunks: node x chunk |
 *
 * Any device from compute capability 6.1. */
__global__ static void __launch_bounds__(256) irm_draw_light(irm_light_job job)
{
  extern __shared__ __align__(16) uint8_t memory[];
  const irm_device_tables &tables = job.t;
  const int32_t quads = (tables.k_other + 3) / 4, chunks = tables.width / IRM_CHUNK;
  uint32_t *const counts = (uint32_t *) memory;
  int32_t *const scores = (int32_t *) (counts + LIGHT_TILE * quads);
  irm_chunk *const found = (irm_chunk *) (scores + LIGHT_TILE * IRM_CHUNK);
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int32_t first = (int32_t) blockIdx.x * LIGHT_TILE, nodes = min(LIGHT_TILE, job.count - first);

  for (uint32_t i = threadIdx.x; i < (uint32_t) (LIGHT_TILE * quads); i += 256) counts[i] = 0;
  __syncthreads();
  for (int32_t r = (int32_t) warp; r < nodes; r += 8) {
    const int32_t node = job.order[first + r];
    for (uint32_t entry = job.start[node] + lane; entry < job.start[node + 1]; entry += 32) {
      const uint32_t m = job.other[job.to[entry]];
      atomicAdd(&counts[r * quads + m / 4], (job.weight ? (uint32_t) job.weight[entry] : 1u) << 8 * (m % 4));
    }
  }
  __syncthreads();

  for (int32_t c = 0; c < chunks; c++) {
    int32_t sum[PLANES][4][4]; /* rows warp + 8 i, columns lane + 32 j */
    for (int p = 0; p < PLANES; p++)
      for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) sum[p][i][j] = 0;
    for (int32_t quad = 0; quad < quads; quad++) {
      uint32_t a[4];
      for (int i = 0; i < 4; i++) a[i] = counts[(warp + 8 * i) * quads + quad];
      for (int p = 0; p < PLANES; p++) {
        const uint32_t *row =
            (const uint32_t *) tables.planes + ((size_t) p * quads + quad) * tables.width + c * IRM_CHUNK + lane;
        for (int j = 0; j < 4; j++) {
          const uint32_t b = row[32 * j];
          for (int i = 0; i < 4; i++) sum[p][i][j] = irm_multiply(a[i], b, sum[p][i][j]);
        }
      }
    }
    for (int i = 0; i < 4; i++)
      for (int j = 0; j < 4; j++)
        scores[(warp + 8 * i) * IRM_CHUNK + lane + 32 * j] =
            (int32_t) ((uint32_t) sum[0][i][j] + ((uint32_t) sum[1][i][j] << 8) + ((uint32_t) sum[2][i][j] << 16) +
                       (uint32_t) tables.base_narrow[c * IRM_CHUNK + lane + 32 * j]);
    __syncwarp();
    for (int32_t r = (int32_t) warp; r < nodes; r += 8) { /* the warp's own rows */
      const weft_u32x4 words = weft_draw_words(job.rng, job.index + (uint64_t) job.order[first + r], 0);
      int32_t s[4];
      for (int j = 0; j < 4; j++) s[j] = scores[r * IRM_CHUNK + lane + 32 * j];
      const irm_chunk best = irm_pick_chunk(s, weft_u01(words.v[2], words.v[3]));
      if (lane == 0) found[r * chunks + c] = best;
    }
    __syncwarp();
  }
  for (int32_t r = (int32_t) warp; r < nodes; r += 8) {
    if (lane) continue;
    const int32_t node = job.order[first + r];
    const weft_u32x4 words = weft_draw_words(job.rng, job.index + (uint64_t) node, 0);
    const irm_chunk *own = found + r * chunks;
    const int c = irm_pick_among(chunks, weft_u01(words.v[0], words.v[1]), [&](int x) { return own[x]; });
    job.labels[node] = (uint16_t) (c * IRM_CHUNK + own[c].label);
  }
}

/* ---- heavy nodes ---- */

/* Block b: a piece of a list into its node's counts; `fast`: through shared memory. */
__global__ static void __launch_bounds__(256)
    irm_count_pieces(irm_batch batch, const irm_piece *pieces, uint32_t first_slot, const int32_t *to,
                     const int32_t *weight, bool fast)
{
  extern __shared__ uint32_t histogram[];
  const irm_piece piece = pieces[blockIdx.x];
  double *counts = batch.counts + (size_t) (piece.slot - first_slot) * (size_t) batch.k_other;
  if (!fast || weight) {
    for (uint32_t entry = piece.first + threadIdx.x; entry < piece.last; entry += 256)
      atomicAdd(&counts[batch.other[to[entry]]], weight ? (double) weight[entry] : 1.0);
    return;
  }
  for (int32_t m = (int32_t) threadIdx.x; m < batch.k_other; m += 256) histogram[m] = 0;
  __syncthreads();
#pragma unroll 4
  for (uint32_t entry = piece.first + threadIdx.x; entry < piece.last; entry += 256)
    atomicAdd(&histogram[batch.other[to[entry]]], 1u);
  __syncthreads();
  for (int32_t m = (int32_t) threadIdx.x; m < batch.k_other; m += 256)
    if (histogram[m]) atomicAdd(&counts[m], (double) histogram[m]);
}

/* A warp per node: for short lists. */
__global__ static void __launch_bounds__(256)
    irm_count_nodes(irm_batch batch, const uint32_t *start, const int32_t *to, const int32_t *weight)
{
  const int32_t slot = (int32_t) (blockIdx.x * 8 + threadIdx.x / 32);
  if (slot >= batch.count) return;
  const int32_t node = batch.order[slot];
  double *counts = batch.counts + (size_t) slot * (size_t) batch.k_other;
  for (uint32_t entry = start[node] + threadIdx.x % 32; entry < start[node + 1]; entry += 32)
    atomicAdd(&counts[batch.other[to[entry]]], weight ? (double) weight[entry] : 1.0);
}

/* scores[slot][l] = Σ_m counts[slot][m] rows[m][l] (sign 1), or what is there less that (-1). Tiles of 64 nodes by 64
 * clusters, 4 by 4 per thread. Whole numbers: fused steps round nothing. */
__global__ static void __launch_bounds__(256)
    irm_multiply(irm_batch batch, const double *rows, int32_t width, int sign, double *scores)
{
  enum { DEPTH = 16 };
  __shared__ double counts[DEPTH][64 + 2], table[DEPTH][64];
  const int32_t l0 = (int32_t) blockIdx.x * 64, slot0 = (int32_t) blockIdx.y * 64, tx = (int32_t) threadIdx.x % 16,
                ty = (int32_t) threadIdx.x / 16;
  double sum[4][4];
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) {
      const int32_t slot = slot0 + ty + 16 * i;
      sum[i][j] = sign < 0 && slot < batch.count ? scores[(size_t) slot * width + l0 + tx + 16 * j] : 0;
    }
  for (int32_t m0 = 0; m0 < batch.k_other; m0 += DEPTH) {
    for (int32_t x = (int32_t) threadIdx.x; x < 64 * DEPTH; x += 256) {
      const int32_t slot = slot0 + x / DEPTH, m = m0 + x % DEPTH;
      counts[x % DEPTH][x / DEPTH] =
          slot < batch.count && m < batch.k_other ? sign * batch.counts[(size_t) slot * batch.k_other + m] : 0;
      const int32_t n = m0 + x / 64;
      table[x / 64][x % 64] = n < batch.k_other ? rows[(size_t) n * width + l0 + x % 64] : 0;
    }
    __syncthreads();
#pragma unroll
    for (int d = 0; d < DEPTH; d++) {
      double c[4], w[4];
      for (int i = 0; i < 4; i++) c[i] = counts[d][ty + 16 * i];
      for (int j = 0; j < 4; j++) w[j] = table[d][tx + 16 * j];
      for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) sum[i][j] = __fma_rn(c[i], w[j], sum[i][j]);
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) {
      const int32_t slot = slot0 + ty + 16 * i;
      if (slot < batch.count) scores[(size_t) slot * width + l0 + tx + 16 * j] = sum[i][j];
    }
}

#define HEAVY_WARPS 4

/* A warp per node: base + score, and the draw. Shared memory: a chunk's finding for every warp and chunk. */
__global__ static void __launch_bounds__(32 * HEAVY_WARPS)
    irm_draw_heavy(irm_batch batch, irm_device_tables tables, const double *scores, weft_rng rng, uint64_t index,
                   uint16_t *labels)
{
  extern __shared__ irm_chunk findings[];
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int32_t slot = (int32_t) (blockIdx.x * HEAVY_WARPS + warp), chunks = tables.width / IRM_CHUNK;
  if (slot >= batch.count) return;
  irm_chunk *found = findings + warp * chunks;
  const double *own = scores + (size_t) slot * (size_t) tables.width;
  const int32_t node = batch.order[slot];
  const weft_u32x4 words = weft_draw_words(rng, index + (uint64_t) node, 0);
  double most = -WEFT_INFINITY;
  for (int32_t l = (int32_t) lane; l < tables.width; l += 32) most = fmax(most, tables.base[l] + own[l]);
  for (int half = 16; half; half /= 2) most = fmax(most, __shfl_xor_sync(FULL, most, half));
  for (int32_t c = 0; c < chunks; c++) {
    int32_t s[4];
    for (int j = 0; j < 4; j++) {
      const int32_t l = c * IRM_CHUNK + (int32_t) lane + 32 * j;
      const double distance = most - (tables.base[l] + own[l]);
      s[j] = distance < IRM_FARTHEST ? -(int32_t) distance : -2147483647;
    }
    const irm_chunk best = irm_pick_chunk(s, weft_u01(words.v[2], words.v[3]));
    if (lane == 0) found[c] = best;
  }
  __syncwarp();
  if (lane) return;
  const int c = irm_pick_among(chunks, weft_u01(words.v[0], words.v[1]), [&](int x) { return found[x]; });
  labels[node] = (uint16_t) (c * IRM_CHUNK + found[c].label);
}

/* ---- sizes and blocks ---- */

__global__ static void irm_rename(uint16_t *z, int64_t n, const uint16_t *names)
{
  for (int64_t i = (int64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t) gridDim.x * blockDim.x)
    z[i] = names[z[i]];
}

/* Adds up the sizes of all clusters; up to 8,192 clusters through shared memory. */
__global__ static void irm_count_sizes(const uint16_t *z, int64_t n, int32_t k, irm_u64 *sizes)
{
  extern __shared__ uint32_t histogram[];
  const bool fast = k <= 8192;
  for (int32_t l = (int32_t) threadIdx.x; fast && l < k; l += (int32_t) blockDim.x) histogram[l] = 0;
  __syncthreads();
  for (int64_t i = (int64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t) gridDim.x * blockDim.x) {
    if (fast)
      atomicAdd(&histogram[z[i]], 1u);
    else
      atomicAdd(&sizes[z[i]], (irm_u64) 1);
  }
  __syncthreads();
  for (int32_t l = (int32_t) threadIdx.x; fast && l < k; l += (int32_t) blockDim.x)
    if (histogram[l]) atomicAdd(&sizes[l], (irm_u64) histogram[l]);
}

/* Pairs of every block as if none were missing. */
__global__ static void irm_count_pairs(const irm_u64 *rows, const irm_u64 *columns, int32_t k1, int64_t cells,
                                       long long *pairs)
{
  const int64_t at = (int64_t) blockIdx.x * blockDim.x + threadIdx.x;
  if (at < cells) pairs[at] = (long long) (rows[at / k1] * columns[at % k1]);
}

/* Adds `by` a link to its block, cell own * own_step + other * other_step. */
struct irm_blocks_job {
  const uint32_t *start;
  const int32_t *to, *weight;
  int32_t nodes;
  uint32_t links;
  const uint16_t *own, *other;
  int32_t k_other;
  int64_t own_step, other_step;
  int by;
  irm_u64 *cells;
};

#define BLOCK_LINKS 16384u
#define LONG_LIST 512u

/* A block takes BLOCK_LINKS links of a shard. Long lists go through shared memory, short ones straight to the cells. */
__global__ static void __launch_bounds__(256) irm_count_links(irm_blocks_job job, bool fast)
{
  extern __shared__ uint32_t histogram[];
  const uint32_t first = blockIdx.x * BLOCK_LINKS, last = min(first + BLOCK_LINKS, job.links);
  int32_t low = 0, high = job.nodes - 1; /* the node of link `first`: the last that starts at or before it */
  while (low < high) {
    const int32_t mid = low + (high - low + 1) / 2;
    if (job.start[mid] <= first)
      low = mid;
    else
      high = mid - 1;
  }
  for (int32_t m = (int32_t) threadIdx.x; fast && m < job.k_other; m += 256) histogram[m] = 0;
  __syncthreads();
  int32_t node = low;
  while (node < job.nodes && job.start[node] < last) { /* the same course in every thread */
    const uint32_t begin = max(job.start[node], first), end = min(job.start[node + 1], last);
    if (fast && !job.weight && end - begin >= LONG_LIST) {
#pragma unroll 4
      for (uint32_t entry = begin + threadIdx.x; entry < end; entry += 256)
        atomicAdd(&histogram[job.other[job.to[entry]]], 1u);
      __syncthreads();
      irm_u64 *cells = job.cells + job.own[node] * job.own_step;
      for (int32_t m = (int32_t) threadIdx.x; m < job.k_other; m += 256) {
        const uint32_t n = histogram[m];
        if (!n) continue;
        atomicAdd(&cells[m * job.other_step], (irm_u64) ((long long) n * job.by));
        histogram[m] = 0;
      }
      __syncthreads();
      node++;
      continue;
    }
    const int32_t mine =
        node + (int32_t) (threadIdx.x / 32); /* eight nodes, one warp each; long ones are left to the next pass */
    int32_t taken = 0;
    for (; taken < 8 && node + taken < job.nodes && job.start[node + taken] < last; taken++)
      if (fast && !job.weight &&
          min(job.start[node + taken + 1], last) - max(job.start[node + taken], first) >= LONG_LIST)
        break;
    if (mine < node + taken) {
      irm_u64 *cells = job.cells + job.own[mine] * job.own_step;
      const uint32_t until = min(job.start[mine + 1], last);
      for (uint32_t entry = max(job.start[mine], first) + threadIdx.x % 32; entry < until; entry += 32)
        atomicAdd(&cells[job.other[job.to[entry]] * job.other_step],
                  (irm_u64) ((long long) (job.weight ? job.weight[entry] : 1) * job.by));
    }
    node += taken;
  }
}

/* ---- the posterior ---- */

__global__ static void irm_block_scores(int poisson, double beta0, double beta1, const long long *links,
                                        const long long *pairs, int64_t cells, double *scores)
{
  const int64_t at = (int64_t) blockIdx.x * blockDim.x + threadIdx.x;
  const double beta[2] = { beta0, beta1 };
  if (at < cells) scores[at] = irm_f(poisson, beta, (double) links[at], (double) pairs[at]);
}

__global__ static void irm_row_sums(const double *scores, int32_t k0, int32_t k1, double *sums)
{
  const int32_t l = (int32_t) (blockIdx.x * blockDim.x + threadIdx.x);
  if (l >= k0) return;
  double sum = 0;
  for (int32_t m = 0; m < k1; m++) sum += scores[(int64_t) l * k1 + m];
  sums[l] = sum;
}
