/* Light nodes on Hopper's 8-bit tensor cores (wgmma, compute capability 9.0a).
 *
 * A block scores 128 nodes against chunks of 128 clusters; two blocks share a multiprocessor, so that one counts links
 * while the other multiplies. Two warpgroups own 64 nodes each; a producer warp brings the tables by bulk copies
 * through a ring of stages, two k-steps of 32 clusters of the other mode each, and begins while the links are counted:
 *
 *   | counts: k-steps x (128 nodes x 32 bytes) | ring: STAGES x 2 x (128 clusters x 32 bytes) | chunks found: node x
 * chunk |
 *
 * A block of 128 rows by 32 bytes has rows in eights, a row's bytes in two halves:
 *   offset(row, byte) = (row / 8) * 256 + (byte / 16) * 128 + (row % 8) * 16 + byte % 16
 *
 * The tables lie in global memory in the order of use: chunk, plane from the highest down, k. Between planes the sums
 * are shifted up by eight bits, so that one register holds the whole product modulo 2^32, which is the product. */
/* Build: hopper, exact. */
#include "irm/cuda/light_hopper.cuh"
#include "core/device/hopper.cuh"

#define ROWS 128
#define STEP_BYTES (ROWS * 32)
#define STAGE_STEPS 2
#define STAGE_BYTES (STAGE_STEPS * STEP_BYTES)
#define STAGES 5
#define CONSUMERS 256
#define THREADS (CONSUMERS + 32)
#define MAX_CLUSTERS WEFT_IRM_WGMMA_CLUSTERS
#define GATHER 4 /* loads in flight a thread while counting */

static __host__ __device__ inline int32_t stages_a_plane(int32_t k_other) { return (k_other + 63) / 64; }

static size_t shared_bytes(const irm_device_tables &tables)
{
  return (size_t) stages_a_plane(tables.k_other) * STAGE_BYTES + STAGES * STAGE_BYTES +
         (size_t) ROWS * (tables.width / IRM_CHUNK) * sizeof(irm_chunk);
}

static __device__ inline uint32_t offset_of(uint32_t row, uint32_t byte)
{
  return row / 8 * 256 + byte / 16 * 128 + row % 8 * 16 + byte % 16;
}

/* From planes to the order of use, a word of four bytes per thread. */
__global__ static void arrange(irm_device_tables tables)
{
  const int32_t quads = (tables.k_other + 3) / 4, per_plane = stages_a_plane(tables.k_other);
  const int64_t at = (int64_t) blockIdx.x * blockDim.x + threadIdx.x, cells = (int64_t) quads * tables.width;
  if (at >= cells) return;
  const int32_t quad = (int32_t) (at / tables.width), l = (int32_t) (at % tables.width), step = quad / 8;
  for (int p = 0; p < PLANES; p++) {
    const uint32_t word = ((const uint32_t *) tables.planes)[((size_t) p * quads + quad) * tables.width + l];
    const size_t stage = ((size_t) (l / IRM_CHUNK) * PLANES + (PLANES - 1 - p)) * per_plane + step / STAGE_STEPS;
    uint8_t *to =
        tables.tiles + stage * STAGE_BYTES + step % STAGE_STEPS * STEP_BYTES + offset_of(l % IRM_CHUNK, quad % 8 * 4);
    *(uint32_t *) to = word;
  }
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* c += 64 rows of unsigned a times 128 rows of signed b over 32 bytes. */
__device__ static inline void mma_64x128x32(uint32_t (&c)[64], uint64_t a, uint64_t b)
{
  asm volatile("{.reg .pred p; setp.eq.u32 p, 0, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n128k32.s32.u8.s8 "
               "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,"
               "%28,%29,%30,%31,"
               "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%"
               "57,%58,%59,%60,%61,%62,%63}, "
               "%64, %65, p;}\n"
               : R16(0), R16(16), R16(32), R16(48)
               : "l"(a), "l"(b));
}

#  define SYNC_CONSUMERS() asm volatile("bar.sync 1, 256;" ::: "memory")

/* A thread holds rows lane / 4 and lane / 4 + 8 of its warp's 16 (half 0 and 1), columns 8 j + 2 (lane % 4) and the
 * next: in the order of the draw, the columns of a thread come before those of the next. */
template <int HALF> __device__ static inline void pick(uint32_t (&c)[64], double u, irm_chunk *out)
{
  int32_t most = (int32_t) c[2 * HALF];
#  pragma unroll
  for (int j = 0; j < 16; j++)
    for (int b = 0; b < 2; b++) most = max(most, (int32_t) c[4 * j + 2 * HALF + b]);
  most = max(most, __shfl_xor_sync(FULL, most, 1));
  most = max(most, __shfl_xor_sync(FULL, most, 2));
  uint64_t sum[2];
#  pragma unroll
  for (int b = 0; b < 2; b++) {
    uint32_t part[2] = { 0, 0 }; /* eight weights fit 32 bits */
#  pragma unroll
    for (int j = 0; j < 16; j++) {
      const uint32_t w = irm_weight((uint32_t) most - c[4 * j + 2 * HALF + b]);
      c[4 * j + 2 * HALF + b] = w;
      part[j / 8] += w;
    }
    sum[b] = (uint64_t) part[0] + part[1];
  }
  const uint32_t quad = threadIdx.x % 4;
  uint64_t reached = sum[0] + sum[1];
  const uint64_t own = reached;
  uint64_t before = __shfl_up_sync(FULL, reached, 1, 4);
  if (quad >= 1) reached += before;
  before = __shfl_up_sync(FULL, reached, 2, 4);
  if (quad >= 2) reached += before;
  const uint64_t total = __shfl_sync(FULL, reached, 3, 4);
  uint64_t target = (uint64_t) (u * (double) total);
  if (target >= reached || target < reached - own) return;
  target -= reached - own;
  const bool second = target >= sum[0];
  if (second) target -= sum[0];
  int32_t label = -1;
#  pragma unroll
  for (int j = 0; j < 16; j++) {
    const uint32_t w = second ? c[4 * j + 2 * HALF + 1] : c[4 * j + 2 * HALF];
    if (label < 0) {
      if (target < w)
        label = 8 * j + 2 * (int32_t) quad + second;
      else
        target -= w;
    }
  }
  out->total = total;
  out->most = most;
  out->label = label;
}

/* Counts the links of the block's nodes by cluster: four lanes per node, since a node's bytes lie in four banks. */
__device__ static inline void count_links(const irm_light_job &job, int32_t first, int32_t nodes, uint8_t *counts)
{
  const uint32_t thread = threadIdx.x, quad = thread % 4;
  for (int32_t r = (int32_t) thread / 4; r < nodes; r += CONSUMERS / 4) {
    const int32_t node = job.order[first + r];
    const uint32_t end = job.start[node + 1];
    uint8_t *row = counts + offset_of((uint32_t) r, 0);
    for (uint32_t entry = job.start[node] + quad; entry < end; entry += 4 * GATHER) {
      uint32_t m[GATHER], by[GATHER];
#  pragma unroll
      for (int k = 0; k < GATHER; k++) {
        const bool within = entry + 4 * k < end;
        m[k] = within ? (uint32_t) job.to[entry + 4 * k] : 0;
        by[k] = within ? (job.weight ? (uint32_t) job.weight[entry + 4 * k] : 1u) : 0u;
      }
#  pragma unroll
      for (int k = 0; k < GATHER; k++) m[k] = by[k] ? job.other[m[k]] : 0u;
#  pragma unroll
      for (int k = 0; k < GATHER; k++)
        if (by[k])
          atomicAdd((uint32_t *) (row + m[k] / 32 * STEP_BYTES + m[k] % 32 / 16 * 128 + m[k] % 16 / 4 * 4),
                    by[k] << 8 * (m[k] % 4));
    }
  }
}

#endif

/* Scores and draws 128 light nodes: see the head of this file. Without wgmma it does nothing, and is never launched. */
__global__ static void __launch_bounds__(THREADS, 2) draw(const __grid_constant__ irm_light_job job)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(128) uint8_t memory[];
  __shared__ uint64_t full[STAGES], empty[STAGES];
  const int32_t per_plane = stages_a_plane(job.t.k_other), chunks = job.t.width / IRM_CHUNK,
                steps = chunks * PLANES * per_plane;
  uint8_t *const counts = memory, *const ring = memory + per_plane * STAGE_BYTES;
  irm_chunk *const found = (irm_chunk *) (ring + STAGES * STAGE_BYTES);
  const uint32_t thread = threadIdx.x, warp_of_block = __shfl_sync(FULL, thread / 32, 0);
  const int32_t first = (int32_t) blockIdx.x * ROWS, nodes = min(ROWS, job.count - first);
  if (thread == 0) {
    for (int s = 0; s < STAGES; s++) {
      barrier_init(&full[s], 1);
      barrier_init(&empty[s], CONSUMERS);
    }
    barriers_made();
  }
  __syncthreads();

  if (warp_of_block >= CONSUMERS / 32) {
    if (thread == CONSUMERS)
      for (int32_t step = 0; step < steps; step++) {
        const int at = step % STAGES;
        if (step >= STAGES) barrier_wait(&empty[at], (uint32_t) (step / STAGES - 1) & 1);
        barrier_expect(&full[at], STAGE_BYTES);
        bulk_copy(ring + at * STAGE_BYTES, job.t.tiles + (size_t) step * STAGE_BYTES, STAGE_BYTES, &full[at]);
      }
    return;
  }

  for (int32_t i = (int32_t) thread; i < per_plane * STAGE_BYTES / 16; i += CONSUMERS)
    ((uint4 *) counts)[i] = make_uint4(0, 0, 0, 0);
  SYNC_CONSUMERS();
  count_links(job, first, nodes, counts);
  fence_operands();
  SYNC_CONSUMERS();

  const uint32_t group = warp_of_block / 4, lane = thread % 32;
  const int32_t row = (int32_t) (warp_of_block * 16 + lane / 4);
  double u[2];
  for (int half = 0; half < 2; half++) {
    const int32_t r = row + 8 * half;
    const weft_u32x4 words = weft_draw_words(job.rng, job.index + (uint64_t) (r < nodes ? job.order[first + r] : 0), 0);
    u[half] = weft_u01(words.v[2], words.v[3]);
  }
  int32_t step = 0;
  for (int32_t chunk = 0; chunk < chunks; chunk++) {
    uint32_t c[64];
#  pragma unroll
    for (int i = 0; i < 64; i++) c[i] = 0;
    for (int plane = 0; plane < PLANES; plane++) {
#  pragma unroll
      for (int i = 0; i < 64; i++) c[i] <<= 8;
      for (int32_t s = 0; s < per_plane; s++, step++) {
        const int at = step % STAGES;
        const uint8_t *from = ring + at * STAGE_BYTES, *rows = counts + s * STAGE_BYTES + group * 64 * 32;
        barrier_wait(&full[at], (uint32_t) (step / STAGES) & 1);
        hold(c);
        product_fence();
#  pragma unroll
        for (int k = 0; k < STAGE_STEPS; k++)
          mma_64x128x32(c, operand_descriptor(rows + k * STEP_BYTES), operand_descriptor(from + k * STEP_BYTES));
        product_commit();
        if (s > 0) { /* the stage before is done with */
          product_wait<1>();
          hold(c);
          barrier_arrive(&empty[(step - 1) % STAGES]);
        }
      }
      product_wait<0>();
      hold(c);
      barrier_arrive(&empty[(step - 1) % STAGES]);
    }
#  pragma unroll
    for (int j = 0; j < 16; j++) {
      const int2 base = __ldg((const int2 *) (job.t.base_narrow + chunk * IRM_CHUNK + 8 * j + 2 * (lane % 4)));
      for (int half = 0; half < 2; half++) {
        c[4 * j + 2 * half] += (uint32_t) base.x;
        c[4 * j + 2 * half + 1] += (uint32_t) base.y;
      }
    }
    pick<0>(c, u[0], found + row * chunks + chunk);
    pick<1>(c, u[1], found + (row + 8) * chunks + chunk);
  }
  SYNC_CONSUMERS();
  if ((int32_t) thread < nodes) {
    const int32_t node = job.order[first + thread];
    const irm_chunk *own = found + thread * chunks;
    const weft_u32x4 words = weft_draw_words(job.rng, job.index + (uint64_t) node, 0);
    const int c = irm_pick_among(chunks, weft_u01(words.v[0], words.v[1]), [&](int x) { return own[x]; });
    job.labels[node] = (uint16_t) (c * IRM_CHUNK + own[c].label);
  }
#else
  (void) job;
#endif
}

/* ---- host ---- */

int irm_wgmma_built(void)
{
#ifdef WEFT_BUILT_FOR_90A
  return 1;
#else
  return 0;
#endif
}

int irm_wgmma_fits(int32_t k, int32_t k_other) { return k <= MAX_CLUSTERS && k_other <= MAX_CLUSTERS; }

size_t irm_wgmma_bytes(int32_t k, int32_t k_other)
{
  return (size_t) ((k + IRM_CHUNK - 1) / IRM_CHUNK) * PLANES * (size_t) stages_a_plane(k_other) * STAGE_BYTES;
}

weft_status irm_wgmma_arrange(weft_ctx *ctx, const irm_device_tables &tables, cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  const int64_t words = (int64_t) (tables.k_other + 3) / 4 * tables.width;
  WEFT_CUDA(cudaMemsetAsync(tables.tiles, 0, irm_wgmma_bytes(tables.k, tables.k_other),
                            stream)); /* what lies behind the last quad */
  arrange<<<(unsigned) ((words + 255) / 256), 256, 0, stream>>>(tables);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

weft_status irm_wgmma_draw(weft_ctx *ctx, const irm_light_job &job, cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  const size_t shared = shared_bytes(job.t);
  WEFT_CUDA(weft_device_allow_shared((const void *) draw, shared));
  draw<<<(unsigned) ((job.count + ROWS - 1) / ROWS), THREADS, shared, stream>>>(job);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}
