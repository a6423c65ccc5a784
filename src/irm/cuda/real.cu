/* The blocked sweep of real values on the device: the twin of real.c. A node's sums and squares by cluster of the
 * other mode are whole numbers, which any order adds up to the same; its scores are double, and one thread adds those
 * of a cluster in the CPU's order. The labels are therefore the CPU's.
 *
 * As a rule all pairs have values, so that lists are long and clusters few: a block of threads takes NODES nodes at a
 * time, a warp counts a node's list, and all threads share the clusters:
 *
 *   memory of a block   | pairs: node x k_other | links | squares | sums: node x k | findings: node x chunk |
 *
 * which is shared memory, or with very many clusters the device's. */
/* Build: exact. */
#include <algorithm>
#include <cstring>
#include "irm/both/real_block.h"
#include "irm/cuda/real.cuh"

#define NODES 4 /* a warp each */
#define THREADS (32 * NODES)
#define MAX_SHARED ((size_t) 64 << 10)
#define FREELY_SHARED ((size_t) 48 << 10) /* what a kernel may use without asking for more */
#define SCRATCH_BYTES ((size_t) 256 << 20)
#define COUNT_BLOCKS 4096u

typedef unsigned long long u64;

struct irm_real_device {
  weft_device_arena *mem;
  int32_t k[2];
  double unit;
  double *pair[2], *link[2], *square[2]; /* for drawing mode 0: m * k[0] + l; mode 1: l * k[1] + m */
  int32_t *occupied[2], occupied_count[2];
  u64 *sizes_host;
  int32_t *occupied_host;
  uint8_t *scratch;
  unsigned scratch_blocks;
};

/* ---- the kernels ---- */

__global__ static void irm_real_draw_blocks(weft_rng rng, uint64_t index, double beta0, double beta1, double unit,
                                            irm_real_counts counts, int32_t k0, int32_t k1, double *pair0,
                                            double *link0, double *square0, double *pair1, double *link1,
                                            double *square1)
{
  const int64_t at = (int64_t) blockIdx.x * blockDim.x + threadIdx.x;
  const double beta[2] = { beta0, beta1 };
  if (at >= (int64_t) k0 * k1) return;
  const irm_real_block drawn =
      irm_real_draw_block(rng, index, (uint64_t) at, beta, unit, (double) (long long) counts.links[at],
                          (double) (long long) counts.values[at], (double) counts.pairs[at]);
  const int64_t turned = at % k1 * k0 + at / k1;
  pair1[at] = pair0[turned] = drawn.pair;
  link1[at] = link0[turned] = drawn.link;
  square1[at] = square0[turned] = drawn.square;
}

struct irm_real_job {
  const uint32_t *start, *missing_start;
  const int32_t *to, *weight, *missing_to, *order;
  int32_t count, k, k_other, occupied_count;
  const int32_t *occupied; /* clusters of the other mode with nodes, ascending */
  const u64 *sizes;
  const uint16_t *other;
  uint16_t *labels; /* of the shard's first node on */
  const double *pair, *link, *square, *log_stick;
  weft_rng rng;
  uint64_t index;   /* of the shard's first node */
  uint8_t *scratch; /* NULL: shared memory */
  size_t bytes;     /* of a block */
};

static size_t job_bytes(int32_t k, int32_t k_other)
{
  return NODES *
         (24 * (size_t) k_other + 8 * (size_t) k + ((size_t) k + IRM_CHUNK - 1) / IRM_CHUNK * sizeof(irm_chunk));
}

/* A warp: what node `node` has with each cluster of the other mode, from sizes and zeros. */
__device__ static void count_node(const irm_real_job &j, int32_t node, u64 *pairs, u64 *links, u64 *squares)
{
  const uint32_t lane = threadIdx.x % 32;
  for (int32_t m = (int32_t) lane; m < j.k_other; m += 32) {
    pairs[m] = j.sizes[m];
    links[m] = squares[m] = 0;
  }
  __syncwarp();
#pragma unroll 4
  for (uint32_t entry = j.start[node] + lane; entry < j.start[node + 1]; entry += 32) {
    const uint32_t m = j.other[j.to[entry]];
    const long long w = j.weight[entry];
    atomicAdd(&links[m], (u64) w);
    atomicAdd(&squares[m], (u64) (w * w));
  }
  if (j.missing_start)
    for (uint32_t entry = j.missing_start[node] + lane; entry < j.missing_start[node + 1]; entry += 32)
      atomicAdd(&pairs[j.other[j.missing_to[entry]]], (u64) -1);
  __syncwarp();
  for (int32_t m = (int32_t) lane; m < j.k_other; m += 32) { /* as doubles from here on */
    ((double *) pairs)[m] = (double) (long long) pairs[m];
    ((double *) links)[m] = (double) (long long) links[m];
    ((double *) squares)[m] = (double) (long long) squares[m];
  }
}

/* A warp: the label that node's sums pick. */
__device__ static int32_t pick_label(const irm_real_job &j, int32_t node, const double *sums, irm_chunk *found)
{
  const uint32_t lane = threadIdx.x % 32;
  const int32_t chunks = (j.k + IRM_CHUNK - 1) / IRM_CHUNK;
  const weft_u32x4 words = weft_draw_words(j.rng, j.index + (uint64_t) node, 0);
  double most = -WEFT_INFINITY;
  for (int32_t l = (int32_t) lane; l < j.k; l += 32) most = fmax(most, sums[l]);
  for (int half = 16; half; half /= 2) most = fmax(most, __shfl_xor_sync(FULL, most, half));
  for (int32_t c = 0; c < chunks; c++) {
    int32_t s[4];
    for (int x = 0; x < 4; x++) {
      const int32_t l = c * IRM_CHUNK + (int32_t) lane + 32 * x;
      const double distance = l < j.k ? -irm_units(sums[l] - most) : WEFT_INFINITY;
      s[x] = distance < IRM_FARTHEST ? -(int32_t) distance : -2147483647;
    }
    const irm_chunk best = irm_pick_chunk(s, weft_u01(words.v[2], words.v[3]));
    if (lane == 0) found[c] = best;
  }
  __syncwarp();
  const int c = irm_pick_among(chunks, weft_u01(words.v[0], words.v[1]), [&](int x) { return found[x]; });
  return c * IRM_CHUNK + found[c].label;
}

/* Draws the labels of a shard's nodes, NODES at a time, as the head of this file says. */
__global__ static void __launch_bounds__(THREADS) irm_real_draw_nodes(const __grid_constant__ irm_real_job j)
{
  extern __shared__ __align__(16) uint8_t irm_real_memory[];
  uint8_t *const memory = j.scratch ? j.scratch + (size_t) blockIdx.x * j.bytes : irm_real_memory;
  const int32_t warp = (int32_t) threadIdx.x / 32, chunks = (j.k + IRM_CHUNK - 1) / IRM_CHUNK;
  const size_t counts = (size_t) NODES * (size_t) j.k_other;
  u64 *const pairs = (u64 *) memory, *const links = pairs + counts, *const squares = links + counts;
  double *const sums = (double *) (squares + counts);
  irm_chunk *const found = (irm_chunk *) (sums + (size_t) NODES * (size_t) j.k);
  for (int64_t first = (int64_t) blockIdx.x * NODES; first < j.count; first += (int64_t) gridDim.x * NODES) {
    const int32_t nodes = (int32_t) min((int64_t) NODES, j.count - first);
    const int32_t node = warp < nodes ? j.order[first + warp] : 0;
    const size_t own = (size_t) warp * (size_t) j.k_other;
    if (warp < nodes) count_node(j, node, pairs + own, links + own, squares + own);
    __syncthreads();
    for (int32_t l = (int32_t) threadIdx.x; l < j.k; l += THREADS) {
      double sum[NODES];
#pragma unroll
      for (int x = 0; x < NODES; x++) sum[x] = j.log_stick[l];
      for (int32_t a = 0; a < j.occupied_count; a++) {
        const int32_t m = j.occupied[a];
        const int64_t at = (int64_t) m * j.k + l;
        const double of_pair = j.pair[at], of_link = j.link[at], of_square = j.square[at];
#pragma unroll
        for (int x = 0; x < NODES; x++) {
          if (x >= nodes) continue;
          const size_t cell = (size_t) x * (size_t) j.k_other + (size_t) m;
          const double p = ((const double *) pairs)[cell], n = ((const double *) links)[cell];
          sum[x] += p * of_pair + n * of_link + ((const double *) squares)[cell] * of_square;
        }
      }
#pragma unroll
      for (int x = 0; x < NODES; x++)
        if (x < nodes) sums[(size_t) x * (size_t) j.k + (size_t) l] = sum[x];
    }
    __syncthreads();
    if (warp < nodes) {
      const int32_t label = pick_label(j, node, sums + (size_t) warp * (size_t) j.k, found + warp * chunks);
      if (threadIdx.x % 32 == 0) j.labels[node] = (uint16_t) label;
    }
    __syncthreads();
  }
}

/* Adds the nodes' values and squares to their blocks, one thread block per node. Each warp has sums of its own in
 * shared memory, by cluster of the other mode; `fast` is 0 when there are too many for that. */
__global__ static void __launch_bounds__(THREADS)
    irm_real_count_nodes(const uint32_t *start, const int32_t *to, const int32_t *weight, int32_t nodes,
                         const uint16_t *own, const uint16_t *other, int32_t k_other, int64_t own_step,
                         int64_t other_step, u64 *cell_links, u64 *cell_values, int fast)
{
  extern __shared__ __align__(16) uint8_t irm_real_memory[];
  u64 *const all = (u64 *) irm_real_memory; /* warp, then links and squares, k_other each */
  u64 *const mine = all + (size_t) (threadIdx.x / 32) * 2 * (size_t) k_other;
  for (int32_t node = (int32_t) blockIdx.x; node < nodes; node += (int32_t) gridDim.x) {
    const int64_t row = own[node] * own_step;
    if (fast)
      for (int32_t x = (int32_t) threadIdx.x; x < NODES * 2 * k_other; x += THREADS) all[x] = 0;
    __syncthreads();
#pragma unroll 4
    for (uint32_t entry = start[node] + threadIdx.x; entry < start[node + 1]; entry += THREADS) {
      const uint32_t m = other[to[entry]];
      const long long w = weight[entry];
      atomicAdd(fast ? &mine[m] : &cell_links[row + m * other_step], (u64) w);
      atomicAdd(fast ? &mine[k_other + m] : &cell_values[row + m * other_step], (u64) (w * w));
    }
    if (!fast) continue;
    __syncthreads();
    for (int32_t m = (int32_t) threadIdx.x; m < k_other; m += THREADS) {
      u64 sum = 0, squares = 0;
      for (int w = 0; w < NODES; w++) {
        sum += all[(size_t) w * 2 * (size_t) k_other + (size_t) m];
        squares += all[((size_t) w * 2 + 1) * (size_t) k_other + (size_t) m];
      }
      if (!squares) continue;
      atomicAdd(&cell_links[row + m * other_step], sum);
      atomicAdd(&cell_values[row + m * other_step], squares);
    }
    __syncthreads();
  }
}

__global__ static void irm_real_block_scores(double beta0, double beta1, double unit, irm_real_counts counts,
                                             int64_t cells, double *scores)
{
  const int64_t at = (int64_t) blockIdx.x * blockDim.x + threadIdx.x;
  const double beta[2] = { beta0, beta1 };
  if (at >= cells) return;
  scores[at] = irm_f_real(beta, unit, (double) (long long) counts.links[at], (double) (long long) counts.values[at],
                          (double) counts.pairs[at]);
}

/* ---- what the sweep calls ---- */

weft_status irm_real_open(weft_ctx *ctx, weft_device_arena *mem, weft_arena *host, const irm_state *state,
                          irm_real_device **out)
{
  weft_status st = WEFT_OK;
  const size_t cells = (size_t) state->k[0] * (size_t) state->k[1], most = (size_t) std::max(state->k[0], state->k[1]);
  const size_t largest = std::max(job_bytes(state->k[0], state->k[1]), job_bytes(state->k[1], state->k[0]));
  irm_real_device *device;
  cudaDeviceProp properties;
  WEFT_TAKE0(device, host, 1);
  device->mem = mem;
  device->unit = state->graph->unit;
  for (int mode = 0; mode < 2; mode++) {
    device->k[mode] = state->k[mode];
    TAKE_AT(device->pair[mode], mem, cells);
    TAKE_AT(device->link[mode], mem, cells);
    TAKE_AT(device->square[mode], mem, cells);
    TAKE_AT(device->occupied[mode], mem, (size_t) state->k[mode]);
  }
  WEFT_TAKE(device->sizes_host, host, most);
  WEFT_TAKE(device->occupied_host, host, most);
  WEFT_CUDA(cudaGetDeviceProperties(&properties, ctx->device));
  if (largest > std::min(MAX_SHARED, (size_t) properties.sharedMemPerBlockOptin)) {
    const size_t wanted = std::min((size_t) properties.multiProcessorCount * 4, SCRATCH_BYTES / largest);
    device->scratch_blocks = (unsigned) std::max(wanted, (size_t) 1);
    WEFT_DEVICE_TAKE(device->scratch, mem, (size_t) device->scratch_blocks * largest);
  } else {
    WEFT_CUDA(weft_device_allow_shared((const void *) irm_real_draw_nodes, MAX_SHARED));
  }
  *out = device;
done:
  return st;
}

weft_status irm_real_parameters(weft_ctx *ctx, irm_real_device *device, const irm_state *state,
                                const irm_real_counts &counts)
{
  weft_status st = WEFT_OK;
  const int64_t cells = (int64_t) device->k[0] * device->k[1];
  irm_real_draw_blocks<<<(unsigned) ((cells + 127) / 128), 128, 0, device->mem->stream>>>(
      irm_rng(state, IRM_DRAW_ETA), irm_index(state, 0), state->chain->beta[0], state->chain->beta[1], device->unit,
      counts, device->k[0], device->k[1], device->pair[0], device->link[0], device->square[0], device->pair[1],
      device->link[1], device->square[1]);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

/* Waits for the stream, since the host's list is used again for the next mode. */
weft_status irm_real_begin(weft_ctx *ctx, irm_real_device *device, int mode, const u64 *sizes)
{
  weft_status st = WEFT_OK;
  const int other = 1 - mode;
  int32_t count = 0;
  WEFT_CUDA(cudaMemcpyAsync(device->sizes_host, sizes, (size_t) device->k[other] * sizeof *sizes,
                            cudaMemcpyDeviceToHost, device->mem->stream));
  WEFT_CUDA(cudaStreamSynchronize(device->mem->stream));
  for (int32_t m = 0; m < device->k[other]; m++)
    if (device->sizes_host[m]) device->occupied_host[count++] = m;
  device->occupied_count[other] = count;
  WEFT_CUDA(cudaMemcpyAsync(device->occupied[other], device->occupied_host, (size_t) count * sizeof(int32_t),
                            cudaMemcpyHostToDevice, device->mem->stream));
  WEFT_CUDA(cudaStreamSynchronize(device->mem->stream)); /* the next mode's list takes the place of this one */
done:
  return st;
}

/* Launches the draw of a shard; with scratch in device memory as many blocks as there is scratch for. */
weft_status irm_real_draw(weft_ctx *ctx, irm_real_device *device, const irm_state *state, const irm_shard &shard,
                          const irm_shard_view &view, const double *log_stick, const u64 *sizes, const uint16_t *other,
                          uint16_t *labels)
{
  weft_status st = WEFT_OK;
  const int mode = shard.mode;
  const unsigned tiles = (unsigned) ((shard.count + NODES - 1) / NODES);
  const irm_real_job job = { view.start,
                             view.missing_start,
                             view.to,
                             view.weight,
                             view.missing_to,
                             view.order,
                             (int32_t) shard.count,
                             device->k[mode],
                             device->k[1 - mode],
                             device->occupied_count[1 - mode],
                             device->occupied[1 - mode],
                             sizes,
                             other,
                             labels + shard.first,
                             device->pair[mode],
                             device->link[mode],
                             device->square[mode],
                             log_stick,
                             irm_rng(state, mode == 0 ? IRM_DRAW_ROW : IRM_DRAW_COL),
                             irm_index(state, (uint64_t) shard.first),
                             device->scratch,
                             job_bytes(device->k[mode], device->k[1 - mode]) };
  if (tiles == 0) return st;
  irm_real_draw_nodes<<<device->scratch ? std::min(tiles, device->scratch_blocks) : tiles, THREADS,
                        device->scratch ? 0 : job.bytes, device->mem->stream>>>(job);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

/* Launches the count of a shard's values; a warp's own sums in shared memory where these need no more than is free. */
weft_status irm_real_count(weft_ctx *ctx, irm_real_device *device, const irm_shard &shard, const irm_shard_view &view,
                           const uint16_t *own, const uint16_t *other, const irm_real_counts &counts)
{
  weft_status st = WEFT_OK;
  const int mode = shard.mode;
  const int32_t k_other = device->k[1 - mode];
  const int64_t own_step = mode == 0 ? device->k[1] : 1, other_step = mode == 0 ? 1 : device->k[1];
  const size_t bytes = (size_t) NODES * 16 * (size_t) k_other;
  const int fast = bytes <= FREELY_SHARED;
  if (shard.count == 0) return st;
  irm_real_count_nodes<<<std::min((unsigned) shard.count, COUNT_BLOCKS), THREADS, fast ? bytes : 0,
                         device->mem->stream>>>(view.start, view.to, view.weight, (int32_t) shard.count,
                                                own + shard.first, other, k_other, own_step, other_step, counts.links,
                                                counts.values, fast);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

weft_status irm_real_scores(weft_ctx *ctx, irm_real_device *device, const irm_state *state,
                            const irm_real_counts &counts, double *scores)
{
  weft_status st = WEFT_OK;
  const int64_t cells = (int64_t) device->k[0] * device->k[1];
  irm_real_block_scores<<<(unsigned) ((cells + 127) / 128), 128, 0, device->mem->stream>>>(state->chain->beta[0],
                                                                                           state->chain->beta[1],
                                                                                           device->unit, counts, cells,
                                                                                           scores);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}
