/* Triples with rows sorted by the fixed attribute's level (triples/cuda/ternary_screen.cuh): what pairs say, which
 * bounds the interaction of their triples and gives a threshold to begin with, and the exact scores of what passed the
 * screen, from the pack's planes. */
#include "mi/pairs/cuda/counted_score.cuh"
#include "mi/triples/cuda/ternary.cuh"
#include "mi/triples/cuda/ternary_score.cuh"

#define PLANES ARRANGED_PLANES
#define LEVELS TRIPLE_LEVELS
#define CELLS (LEVELS * WEFT_PLANES_CELLS)

/* ---- what pairs say ---- */

#define SIDE 16  /* attributes of a block, on each side */
#define DEPTH 32 /* words at a time */

__global__ static void __launch_bounds__(SIDE *SIDE) score_pairs(const __grid_constant__ mi_sorted_pairs args)
{
  __shared__ uint32_t of_a[PLANES * SIDE][DEPTH + 1], of_b[PLANES * SIDE][DEPTH + 1];
  const uint32_t x = threadIdx.x % SIDE, y = threadIdx.x / SIDE, a = blockIdx.y * SIDE + y, b = blockIdx.x * SIDE + x;
  uint32_t both[4] = { 0, 0, 0, 0 };
  if (blockIdx.x < blockIdx.y) return;
  for (uint32_t c = 0; c < 2; c++) {
    uint32_t in_class[4] = { 0, 0, 0, 0 };
    for (uint32_t w0 = args.p.first[c]; w0 < args.p.last[c]; w0 += DEPTH) {
      __syncthreads();
      for (uint32_t k = threadIdx.x; k < PLANES * SIDE * DEPTH; k += SIDE * SIDE) {
        const uint32_t row = k / DEPTH, w = w0 + k % DEPTH, plane = row % PLANES, member = row / PLANES;
        const bool there = w < args.p.last[c];
        of_a[row][k % DEPTH] = there ? plane_word(args.p, blockIdx.y * SIDE + member, plane, w) : 0;
        of_b[row][k % DEPTH] = there ? plane_word(args.p, blockIdx.x * SIDE + member, plane, w) : 0;
      }
      __syncthreads();
#pragma unroll 8
      for (uint32_t w = 0; w < DEPTH; w++)
#pragma unroll
        for (uint32_t q = 0; q < 4; q++)
          in_class[q] += (uint32_t) __popc(of_a[y * PLANES + q / 2][w] & of_b[x * PLANES + q % 2][w]);
    }
#pragma unroll
    for (int q = 0; q < 4; q++) both[q] += weft_planes_pack(c ? 0 : in_class[q], c ? in_class[q] : 0);
  }
  if (a >= b || b >= args.p.count) return;
  const uint32_t margins_a[2] = { args.margins[a], args.margins[args.p.count + a] },
                 margins_b[2] = { args.margins[b], args.margins[args.p.count + b] };
  uint32_t cell[WEFT_PLANES_CELLS];
  args.words[a * args.ld + b] = make_uint4(both[0], both[1], both[2], both[3]);
  weft_planes_cells(both, margins_a, margins_b, weft_planes_pack(args.p.class_rows[0], args.p.class_rows[1]), cell);
  int64_t joint = weft_planes_joint(&args.f, cell) - args.class_fixed;
  if (joint < 0) joint = 0;
  if (args.pairs) args.pairs[a * args.ld + b] = args.pairs[b * args.ld + a] = (float) ((double) joint * args.f.unit);
  if ((unsigned long long) joint > *(volatile unsigned long long *) args.best)
    atomicMax(args.best, (unsigned long long) joint);
}

/* ---- scoring ---- */

__device__ static inline float best_pair(const mi_sorted_scores &args, const uint32_t (&position)[3])
{
  return fmaxf(__ldg(&args.pairs[position[0] * args.ld + position[1]]),
               fmaxf(__ldg(&args.pairs[position[0] * args.ld + position[2]]),
                     __ldg(&args.pairs[position[1] * args.ld + position[2]])));
}

/* Sums each of eight values over the lanes of a warp; a lane gets the sum of value lane / 4. */
__device__ static inline uint32_t added_up(uint32_t (&v)[8])
{
  const uint32_t lane = threadIdx.x % 32;
#pragma unroll
  for (uint32_t half = 4; half; half /= 2) {
    const bool upper = lane & 4 * half;
#pragma unroll
    for (uint32_t i = 0; i < half; i++) {
      const uint32_t keep = upper ? v[i + half] : v[i], give = upper ? v[i] : v[i + half];
      v[i] = keep + __shfl_xor_sync(0xffffffffu, give, (int) (4 * half));
    }
  }
  v[0] += __shfl_xor_sync(0xffffffffu, v[0], 2);
  return v[0] + __shfl_xor_sync(0xffffffffu, v[0], 1);
}

/* Rows in planes x, y and z of three attributes, for lane 4 (4 x + 2 y + z). */
__device__ static inline uint32_t rows_in_planes(const mi_placed &p, const uint32_t (&position)[3])
{
  uint32_t row[6], sum[8] = { 0, 0, 0, 0, 0, 0, 0, 0 };
#pragma unroll
  for (uint32_t k = 0; k < 6; k++) row[k] = __ldg(&p.plane_row[k % PLANES * p.count + position[k / PLANES]]);
  for (uint32_t w = threadIdx.x % 32; w < p.words; w += 32) {
    const uint32_t each = w < p.last[0] ? 65537u : 1u;
    uint32_t of[6];
#pragma unroll
    for (int k = 0; k < 6; k++) of[k] = row[k] == UINT32_MAX ? 0 : __ldg(&p.planes[(size_t) row[k] * p.words + w]);
#pragma unroll
    for (int q = 0; q < 8; q++) sum[q] += each * (uint32_t) __popc(of[q / 4] & of[2 + q / 2 % 2] & of[4 + q % 2]);
  }
  return added_up(sum);
}

/* The lane's cell 9 x + 3 y + z of three attributes. A level 2 stands for all rows of its attribute at first, which are
 * those of pairs, of single attributes, or all; then the other two levels are taken off, one attribute after
 * another. */
__device__ static inline uint32_t cell_of_lane(const mi_sorted_scores &args, const uint32_t (&position)[3])
{
  const uint32_t lane = threadIdx.x % 32, x = lane / 9, y = lane / 3 % 3, z = lane % 3;
  const uint32_t i = position[0], a = position[1], b = position[2], three = rows_in_planes(args.p, position);
  const uint32_t *from = NULL;
  if (x < 2 && y < 2 && z == 2)
    from = (const uint32_t *) &args.words[i * args.ld + a] + 2 * x + y;
  else if (x < 2 && y == 2 && z < 2)
    from = (const uint32_t *) &args.words[i * args.ld + b] + 2 * x + z;
  else if (x == 2 && y < 2 && z < 2)
    from = (const uint32_t *) &args.words[a * args.ld + b] + 2 * y + z;
  else if (x < 2 && y == 2)
    from = &args.margins[x * args.p.count + i];
  else if (x == 2 && y < 2)
    from = &args.margins[y * args.p.count + a];
  else if (x == 2 && z < 2)
    from = &args.margins[z * args.p.count + b];
  uint32_t cell = __shfl_sync(0xffffffffu, three, (int) ((4 * x + 2 * y + z) * 4 % 32));
  if (x == 2 || y == 2 || z == 2) cell = from ? __ldg(from) : args.all;
  for (uint32_t apart = 1; apart <= 9; apart *= 3) {
    const uint32_t one = __shfl_sync(0xffffffffu, cell, (int) ((lane - apart) % 32)),
                   zero = __shfl_sync(0xffffffffu, cell, (int) ((lane - 2 * apart) % 32));
    if (lane / apart % 3 == 2) cell -= one + zero;
  }
  return cell;
}

/* The information of a triple, from all lanes' cells. */
__device__ static inline int64_t said(const mi_sorted_scores &args, uint32_t cell)
{
  const uint32_t rows = cell & 0xffffu, class0 = cell >> 16;
  int64_t sum = 0;
  if (threadIdx.x % 32 < CELLS) sum = args.f.table[class0] + args.f.table[rows - class0] - args.f.table[rows];
  for (int half = 16; half; half /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, half);
  return sum > args.class_fixed ? sum - args.class_fixed : 0;
}

/* One warp per triple. */
__global__ static void __launch_bounds__(FEW_THREADS, 8) score_passed(const __grid_constant__ mi_sorted_scores args)
{
  __shared__ uint32_t tables[FEW_THREADS / 32][2 * CELLS];
  const uint32_t lane = threadIdx.x % 32, count = *args.passed.count;
  uint32_t *const cells = tables[threadIdx.x / 32];
  if (count > args.passed.capacity) return;
  for (uint32_t k = (blockIdx.x * FEW_THREADS + threadIdx.x) / 32; k < count; k += gridDim.x * (FEW_THREADS / 32)) {
    const unsigned long long item = args.passed.items[k];
    const uint32_t last = WEFT_MI_TRIPLES_PLACES - 1;
    const uint32_t position[3] = { (uint32_t) (item >> 42), (uint32_t) (item >> 21) & last, (uint32_t) item & last };
    const uint32_t cell = cell_of_lane(args, position);
    const double mi = weft_mi_bits(said(args, cell), args.f.unit, args.n);
    if (mi < args.min_mi || (args.pairs && mi < args.min_gain + args.share * best_pair(args, position))) continue;
    __syncwarp(); /* all have read the table before */
    if (lane < CELLS) {
      cells[(lane / 9 * 2) * 9 + lane % 9] = cell >> 16;
      cells[(lane / 9 * 2 + 1) * 9 + lane % 9] = (cell & 0xffffu) - (cell >> 16);
    }
    __syncwarp();
    const triple_score score = score_cells(args.f, LEVELS, 2, args.class_fixed, cells);
    if (lane) continue;
    const uint64_t index =
        triple_index(args.columns, args.column[position[0]], args.column[position[1]], args.column[position[2]]);
    const double exact = weft_mi_bits(score.joint, args.f.unit, score.n),
                 gain = weft_mi_bits(score.joint - score.greatest, args.f.unit, score.n);
    if (mi_passes(args.threshold, exact, gain, index))
      mi_append(args.hits, args.threshold.by_interaction ? gain : exact, index);
  }
}

/* ---- host ---- */

weft_status weft_mi_sorted_pairs(weft_ctx *ctx, const mi_sorted_pairs *args, cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  const unsigned blocks = (args->p.count + SIDE - 1) / SIDE;
  score_pairs<<<dim3(blocks, blocks), SIDE * SIDE, 0, stream>>>(*args);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

weft_status weft_mi_sorted_score(weft_ctx *ctx, const mi_sorted_scores *args, cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  int processors = 0;
  WEFT_CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, ctx->device));
  score_passed<<<(unsigned) (16 * processors), FEW_THREADS, 0, stream>>>(*args);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}
