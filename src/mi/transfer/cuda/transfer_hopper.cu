/* Transfer entropy of two to four levels by products of bit planes on Hopper (tiles_hopper.cuh).
 *
 * Side a has the targets' planes of all states but the last, padded to 4, 8 or 16 rows; side b the sources' planes of
 * all levels but the last, 256, 128 or 85 sources in a tile:
 *
 *   levels   rows of a target   targets and sources of a tile   products that count, of all
 *   2        3 of 4             32 × 256                        75 %
 *   3        8                  16 × 128                        100 %
 *   4        15 of 16           8 × 85                          93 %
 *
 * A warp has 16 rows of a tile. It writes eight of them (16 with four levels) to shared memory of its own, where a lane
 * finds all counts of a pair and scores it. No warp waits for another; while one scores, others count. */
/* Build: hopper. */
#include "mi/limits.h"
#include "mi/search/cuda/tiles_hopper.cuh"
#include "mi/transfer/cuda/transfer.cuh"
#include "mi/pairs/cuda/binary_hopper.cuh"

#define COUNTS_ROW (ROWS_B + 8) /* words per row of counts: eight rows of a warp's stores fall into different banks */
#define BITS_AT_ONCE 1.5e14     /* of a launch: some 50 ms */

/* Sizes by the number of levels. */
template <int LEVELS> struct shape {
  static constexpr uint32_t planes = LEVELS - 1,
                            rows = LEVELS == 2   ? 4
                                   : LEVELS == 3 ? 8
                                                 : 16,
                            sources = ROWS_B / planes, warp_rows = LEVELS == 4 ? 16 : 8, stages = LEVELS == 4 ? 7 : 12;
  static constexpr size_t shared = (size_t) stages * STAGE_BYTES + CONSUMERS / 32 * warp_rows * COUNTS_ROW * 4;
};

struct product_args {
  transfer_pass pass;
  const uint8_t *a, *b;
  int steps;
  tile_grid grid;
  uint64_t first, count; /* tiles of this launch */
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* n TE of a pair from its counts, as weft_transfer_fixed() has it. */
template <int LEVELS>
__device__ static inline int64_t fixed_of(const weft_transfer_data &data, const uint32_t *counts, uint32_t i,
                                          uint32_t j)
{
  const uint32_t *of_states = data.of_states + (size_t) j * LEVELS * LEVELS,
                 *of_levels = data.of_levels + (size_t) i * LEVELS;
  uint32_t rest[LEVELS - 1];
  int64_t sum = -data.base[j];
#  pragma unroll
  for (int level = 0; level < LEVELS - 1; level++) rest[level] = of_levels[level];
#  pragma unroll
  for (int before = 0; before < LEVELS; before++) {
    uint32_t with[LEVELS] = {};
#  pragma unroll
    for (int now = 0; now < LEVELS; now++) {
      const int state = before * LEVELS + now;
      uint32_t left = of_states[state];
#  pragma unroll
      for (int level = 0; level < LEVELS - 1; level++) {
        const uint32_t k = state + 1 < LEVELS * LEVELS ? counts[state * COUNTS_ROW + level] : rest[level];
        rest[level] -= k;
        with[level] += k;
        left -= k;
        sum += weft_mi_fixed(&data.f, k);
      }
      with[LEVELS - 1] += left;
      sum += weft_mi_fixed(&data.f, left);
    }
#  pragma unroll
    for (int level = 0; level < LEVELS; level++) sum -= weft_mi_fixed(&data.f, with[level]);
  }
  return sum;
}

/* The targets in rows of counts from target j0 on, with the sources of a tile from i0 on. */
template <int LEVELS>
__device__ static inline void score_rows(const transfer_pass &pass, const uint32_t *counts, uint32_t j0, uint32_t i0)
{
  typedef shape<LEVELS> own;
  const weft_transfer_data &data = pass.data;
  const uint32_t lane = threadIdx.x % 32;
#  pragma unroll 1
  for (uint32_t t = 0; t < own::warp_rows / own::rows; t++) {
    const uint32_t j = j0 + t;
    int64_t of_target = 0;
    if (j >= data.target_count) return;
#  pragma unroll 1
    for (uint32_t q = lane; q < own::sources; q += 32) {
      const uint32_t i = i0 + q;
      if (i >= data.source_count || !weft_transfer_scored(&data, i, j)) continue;
      const int64_t part =
          take_score(pass, i, j, fixed_of<LEVELS>(data, counts + t * own::rows * COUNTS_ROW + q * own::planes, i, j));
      of_target += part;
      add_own(pass.goal.source_sums, i, part);
    }
    if (pass.goal.goal == WEFT_TRANSFER_SUMS) {
      __syncwarp();
      add_of_warp(pass.goal.target_sums, j, of_target);
    }
  }
}

/* One warpgroup loads tiles into a ring of stages; the others count and score. */
template <int LEVELS>
__global__ static void __launch_bounds__(SCREENING_THREADS, 1) products(const __grid_constant__ product_args args)
{
  typedef shape<LEVELS> own;
  extern __shared__ __align__(1024) uint8_t stages[];
  __shared__ ring<own::stages> copies;
  const uint32_t thread = threadIdx.x, lane = thread % 32, warp = __shfl_sync(0xffffffffu, thread / 32, 0);
  make_ring(&copies);

  uint32_t step = 0; /* k-steps since the start */
  tile_walk at_tile = { 0, 0 };
  if (warp >= CONSUMERS / 32) {
    give_registers();
    if (thread == CONSUMERS)
      for (uint64_t k = blockIdx.x; k < args.count; k += gridDim.x) {
        uint32_t ta, tb;
        if (!place_tile(&args.grid, &at_tile, args.first + k, &ta, &tb)) continue;
        bring_tile(&copies, stages, args.a + (size_t) ta * args.steps * BLOCK_BYTES,
                   args.b + (size_t) tb * 2 * args.steps * BLOCK_BYTES, args.steps, &step);
      }
    return;
  }

  take_registers();
  uint32_t *const counts = (uint32_t *) (stages + own::stages * STAGE_BYTES) + warp * own::warp_rows * COUNTS_ROW;
  for (uint64_t k = blockIdx.x; k < args.count; k += gridDim.x) {
    uint32_t ta, tb, c[128];
    if (!place_tile(&args.grid, &at_tile, args.first + k, &ta, &tb)) continue;
#  pragma unroll
    for (int i = 0; i < 128; i++) c[i] = 0;
    count_steps(&copies, stages, args.steps, &step, c);

    /* A thread holds rows lane / 4 and lane / 4 + 8 of its warp's 16, columns 8 j + 2 (lane % 4) and the next. */
    const uint32_t row = ta * ROWS_A + warp * 16;
#  pragma unroll
    for (uint32_t half = 0; half < 16 / own::warp_rows; half++) {
      __syncwarp();
#  pragma unroll
      for (uint32_t eight = 0; eight < own::warp_rows / 8; eight++)
#  pragma unroll
        for (int j = 0; j < 32; j++)
          *(uint2 *) (counts + (lane / 4 + 8 * eight) * COUNTS_ROW + lane % 4 * 2 + j * 8) =
              make_uint2(c[4 * j + 2 * (half + eight)], c[4 * j + 2 * (half + eight) + 1]);
      __syncwarp();
      score_rows<LEVELS>(args.pass, counts, (row + half * 8) / own::rows, tb * own::sources);
    }
  }
}

#else /* host side, and devices that never run it */
template <int LEVELS> __global__ static void products(const __grid_constant__ product_args args) { (void) args; }
#endif

/* ---- host ---- */

int weft_transfer_products_fit(uint32_t levels, int device)
{
  return levels <= WEFT_MI_TRANSFER_HOPPER && weft_mi_wgmma_ready(device);
}

static uint32_t rows_of(uint32_t levels) { return levels == 2 ? 4 : levels == 3 ? 8 : 16; }

transfer_planes weft_transfer_product_planes(uint32_t levels, uint32_t steps, int of_targets)
{
  const transfer_planes planes = { NULL,
                                   of_targets ? levels * levels - 1 : levels - 1,
                                   0,
                                   1,
                                   of_targets ? rows_of(levels) : levels - 1,
                                   of_targets ? 0 : ROWS_B / (levels - 1),
                                   steps,
                                   0 };
  return planes;
}

size_t weft_transfer_product_rows(uint32_t levels, size_t genes, int of_targets)
{
  if (of_targets) return (genes * rows_of(levels) + ROWS_A - 1) / ROWS_A * ROWS_A;
  const size_t each = ROWS_B / (levels - 1);
  return (genes + each - 1) / each * ROWS_B;
}

/* The kernel for a number of levels, and the shared memory that it takes. */
static void (*kernel_of(uint32_t levels, size_t *shared))(const product_args)
{
  if (levels == 2) {
    *shared = shape<2>::shared;
    return products<2>;
  }
  *shared = levels == 3 ? shape<3>::shared : shape<4>::shared;
  return levels == 3 ? products<3> : products<4>;
}

/* All tiles of a pass, in launches of a moment each. */
weft_status weft_transfer_products(weft_ctx *ctx, const transfer_pass *pass, const transfer_planes *targets,
                                   const transfer_planes *sources, cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  const uint32_t levels = pass->data.levels;
  const double fit = BITS_AT_ONCE / ((double) AREA * STEP_BITS * (targets->steps + 4)); /* 4: for the scores */
  const uint64_t at_once = fit < 1000 ? 1000 : (uint64_t) fit;
  size_t shared;
  void (*kernel)(const product_args) = kernel_of(levels, &shared);
  int processors = 0;
  uint64_t tiles;
  product_args args = { *pass,
                        (const uint8_t *) targets->words,
                        (const uint8_t *) sources->words,
                        (int) targets->steps,
                        { (uint32_t) (weft_transfer_product_rows(levels, pass->data.target_count, 1) / ROWS_A),
                          (uint32_t) (weft_transfer_product_rows(levels, pass->data.source_count, 0) / ROWS_B), 0, 0 },
                        0,
                        0 };
  tiles = tiles_of(&args.grid);
  WEFT_CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, ctx->device));
  WEFT_CUDA(weft_device_allow_shared((const void *) kernel, shared));
  for (args.first = 0; args.first < tiles; args.first += at_once) {
    args.count = tiles - args.first < at_once ? tiles - args.first : at_once;
    WEFT_TRY(weft_poll(ctx, (double) args.first, (double) tiles));
    const unsigned blocks = (unsigned) (args.count < (uint64_t) processors ? args.count : (uint64_t) processors);
    kernel<<<blocks, SCREENING_THREADS, shared, stream>>>(args);
    WEFT_CUDA(cudaGetLastError());
    WEFT_CUDA(cudaStreamSynchronize(stream));
  }
done:
  return st;
}
