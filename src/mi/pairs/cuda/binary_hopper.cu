/* Binary attributes and two classes on Hopper's 1-bit tensor cores (wgmma, compute capability 9.0a).
 *
 * A tile is 128 attributes by 256 (tiles_hopper.cuh).
 *
 * The accumulators of class 0 are shifted up by 16 bits before class 1 is added: one register holds both counts.
 *
 * Screen. With k1 of the m rows of a cell in class 1 and p the share of class 1, information is Σ m KL(k1/m || p) / n,
 * and KL(q || p) <= s (q - p)² with s the greatest ratio over q, so it is at most s / n Σ D²/m, D = k1 - p m. That sum
 * splits into what attribute a has by itself, and for each level of a, with M rows and share q of class 1 in it, u² M /
 * (m (M - m)), u = k1 - q m, m and k1 those of the cell with b. So a pair is rejected when, with the first part taken
 * off the threshold, u² M / (m (M - m)) + v² R / (m' (R - m')) < T for the two levels of a (M and R rows): without a
 * division, and with nothing to look up but constants of a and of b. What is not rejected is scored exactly by the
 * thread that found it.
 *
 * A warp screens its own 16 rows of a tile, eight at a time: through shared memory of its own, so that a lane has four
 * neighbouring columns and the code is a short loop. No warp waits for another. */
/* Build: hopper. */
#include <cmath>
#include "mi/search/cuda/tiles_hopper.cuh"
#include "mi/pairs/cuda/binary_hopper.cuh"

#define STAGES 12
#define COUNTS_ROW (ROWS_B + 8) /* words per row of counts: eight rows of a warp's stores fall into different banks */
#define WARP_ROWS 8             /* rows per warp in shared memory */
#define UNROLL 4                /* rows screened at a time, of four columns per lane */
#define EMPTY 0.0078125f        /* keeps empty cells finite; a multiple of the spacing of floats up to 2^17 */
#define SLACK 0.017             /* relative; more than (1 + EMPTY)² takes off */
#define MAGIC 8388608.0f        /* 2^23: a whole number or'ed into its fraction is added to it */
#define SHARED_BYTES (STAGES * STAGE_BYTES + CONSUMERS / 32 * WARP_ROWS * COUNTS_ROW * 4)

enum { PAIRS, GAINS, COUNTS, TRIPLES }; /* GAINS: pairs with a threshold for the interaction too */

/* Shares of class 1 within a's levels 1 and 0, and the rows of these (+ EMPTY); what a has by itself in the screen's
 * sum (of triples, with both levels of the fixed attribute, in the first); its own information, in the same units. */
struct __align__(16) row_side
{
  float share1, share0, rows1, rows0, own_sum, own;
  float2 fill;
};
/* Rows of b's level 1, those in class 1 + MAGIC, its own information. */
struct __align__(16) column_side { float rows, in_class, own, fill; };

struct tile_args {
  const uint8_t *a, *b;
  int steps0, steps; /* k-steps of class 0, of both */
  uint32_t count_a, count_b;
  tile_grid grid;        /* low: behind the fixed attribute of a triple */
  uint64_t first, count; /* tiles of this launch */
  const struct row_side
      *of_a; /* constants of the screen; triples: two per attribute, in level 1 and 0 of the fixed one */
  const struct column_side *of_b;
  float threshold_mi, threshold_gain;
  /* exact scores */
  const uint32_t *margins; /* [class][plane row] */
  size_t plane_rows, row_a, row_b, place_a, place_b, columns;
  const uint32_t *column;
  const int64_t *alone;
  weft_mi_log f;
  uint64_t n;
  uint32_t class_rows[2];
  int64_t class_fixed;
  mi_threshold threshold;
  mi_hits hits;
  uint32_t *joint; /* packed counts of pairs */
  size_t ld;
  uint32_t fixed;
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* ---- scores ---- */

/* Counts of a cell as floats: k1 + MAGIC, and k0 + k1. */
__device__ static inline void unpack(uint32_t packed, float *in_class, float *rows)
{
  *in_class = __uint_as_float(__byte_perm(packed, 0x4b000000u, 0x7610));
  *rows = __uint_as_float(__byte_perm(packed, 0x4b000000u, 0x7632)) + (*in_class - 2 * MAGIC);
}

/* The two levels' terms, as fractions: u² M / p and v² R / q. */
struct terms {
  float first, p, second, q;
};

__device__ static inline terms terms_of(uint32_t packed, const row_side &a, const column_side &b)
{
  float k1, m;
  terms out;
  unpack(packed, &k1, &m);
  const float left = b.rows - m, u = fmaf(-a.share1, m, k1 - MAGIC), v = fmaf(-a.share0, left, b.in_class - k1);
  out.p = (m + EMPTY) * (a.rows1 - m);
  out.q = (b.rows + EMPTY - m) * (a.rows0 - left);
  out.first = u * u * a.rows1;
  out.second = v * v * a.rows0;
  return out;
}

/* Positive when the sum of both terms is less than `threshold`. */
__device__ static inline float below(const terms &parts, float threshold)
{
  return fmaf(parts.p, fmaf(threshold, parts.q, -parts.second), -parts.first * parts.q);
}

__device__ static inline float sum_of(const terms &parts)
{
  return __fdividef(fmaf(parts.first, parts.q, parts.second * parts.p), parts.p * parts.q);
}

/* Σ over the cells of a level's table: f(k0) + f(k1) - f(k0 + k1). */
__device__ static inline int64_t fixed_cells(const weft_mi_log &f, const uint32_t (&both)[2], const uint32_t (&a)[2],
                                             const uint32_t (&b)[2], const uint32_t (&rows)[2])
{
  int64_t sum = 0;
  uint32_t level[4] = { 0, 0, 0, 0 };
  for (int c = 0; c < 2; c++) {
    const uint32_t cell[4] = { both[c], a[c] - both[c], b[c] - both[c], rows[c] - a[c] - b[c] + both[c] };
    for (int k = 0; k < 4; k++) {
      sum += f.table[cell[k]]; /* it covers all counts: a class has at most 65535 rows */
      level[k] += cell[k];
    }
  }
  for (int k = 0; k < 4; k++) sum -= f.table[level[k]];
  return sum;
}

__device__ static void score_pair(const tile_args &args, uint32_t a, uint32_t b, uint32_t packed)
{
  const uint32_t both[2] = { packed >> 16, packed & 0xffffu };
  const uint32_t of_a[2] = { args.margins[args.row_a + a], args.margins[args.plane_rows + args.row_a + a] };
  const uint32_t of_b[2] = { args.margins[args.row_b + b], args.margins[args.plane_rows + args.row_b + b] };
  int64_t joint = fixed_cells(args.f, both, of_a, of_b, args.class_rows) - args.class_fixed;
  if (joint < 0) joint = 0;
  const int64_t gain = joint - args.alone[args.place_a + a] - args.alone[args.place_b + b];
  const uint64_t x = args.column[args.place_a + a], y = args.column[args.place_b + b];
  mi_offer(args.threshold, args.hits, weft_mi_bits(joint, args.f.unit, args.n), weft_mi_bits(gain, args.f.unit, args.n),
           (x < y ? x : y) * args.columns + (x < y ? y : x));
}

/* Information of a pair from its packed counts. */
__device__ static int64_t pair_information(const tile_args &args, uint32_t a, uint32_t b)
{
  const uint32_t packed = a < b ? args.joint[a * args.ld + b] : args.joint[b * args.ld + a];
  const uint32_t both[2] = { packed >> 16, packed & 0xffffu };
  const uint32_t of_a[2] = { args.margins[args.row_a + a], args.margins[args.plane_rows + args.row_a + a] };
  const uint32_t of_b[2] = { args.margins[args.row_a + b], args.margins[args.plane_rows + args.row_a + b] };
  const int64_t joint = fixed_cells(args.f, both, of_a, of_b, args.class_rows) - args.class_fixed;
  return joint > 0 ? joint : 0;
}

/* Scores a triple exactly from counts of class 1 and 0 in one word: the table with the fixed attribute's bit set is
 * counted, that without it is what is left of the pair's. Appends it to the hits unless it is behind the threshold. */
__device__ static void score_triple(const tile_args &args, uint32_t a, uint32_t b, uint32_t packed)
{
  const uint32_t pair = args.joint[a * args.ld + b], with_a = args.joint[args.fixed * args.ld + a],
                 with_b = args.joint[args.fixed * args.ld + b];
  int64_t sum = -args.class_fixed, greatest;
  for (int level = 0; level < 2; level++) {
    uint32_t both[2], of_a[2], of_b[2], rows[2];
    for (int c = 0; c < 2; c++) {
      const int shift = c ? 0 : 16;
      both[c] = packed >> shift & 0xffffu;
      of_a[c] = with_a >> shift & 0xffffu;
      of_b[c] = with_b >> shift & 0xffffu;
      rows[c] = args.margins[c * args.plane_rows + args.row_a + args.fixed];
      if (level) continue;
      both[c] = (pair >> shift & 0xffffu) - both[c];
      of_a[c] = args.margins[c * args.plane_rows + args.row_a + a] - of_a[c];
      of_b[c] = args.margins[c * args.plane_rows + args.row_a + b] - of_b[c];
      rows[c] = args.class_rows[c] - rows[c];
    }
    sum += fixed_cells(args.f, both, of_a, of_b, rows);
  }
  if (sum < 0) sum = 0;
  greatest = pair_information(args, a, b);
  for (int side = 0; side < 2; side++) {
    const int64_t other = pair_information(args, args.fixed, side ? b : a);
    if (other > greatest) greatest = other;
  }
  uint64_t x = args.column[args.place_a + args.fixed], y = args.column[args.place_a + a],
           z = args.column[args.place_a + b];
  const uint64_t index = (x * args.columns + y) * args.columns + z;
  const double mi = weft_mi_bits(sum, args.f.unit, args.n), gain = weft_mi_bits(sum - greatest, args.f.unit, args.n);
  if (mi_passes(args.threshold, mi, gain, index))
    mi_append(args.hits, args.threshold.by_interaction ? gain : mi, index);
}

/* ---- the screen ---- */

/* Eight rows of counts from attribute row0 on against four columns from `column` on, and four 128 further on. */
template <int KIND>
__device__ static inline void screen_rows(const tile_args &args, const uint32_t *counts, uint32_t row0, uint32_t column)
{
  constexpr uint32_t EACH = KIND == TRIPLES ? 2 : 1;
  const uint32_t lane = threadIdx.x % 32;
#  pragma unroll 1
  for (uint32_t side = 0; side < ROWS_B; side += 128) {
    column_side b[4 * EACH];
#  pragma unroll
    for (uint32_t k = 0; k < 4 * EACH; k++) b[k] = args.of_b[(column + side) * EACH + k];
#  pragma unroll 1
    for (uint32_t r0 = 0; r0 < WARP_ROWS; r0 += UNROLL) {
      float rejects[4 * UNROLL], least = INFINITY;
#  pragma unroll
      for (uint32_t r = 0; r < UNROLL; r++) {
        const uint32_t row = row0 + r0 + r;
        const uint4 four = *(const uint4 *) (counts + (r0 + r) * COUNTS_ROW + side + lane * 4);
        const uint32_t packed[4] = { four.x, four.y, four.z, four.w };
        const row_side a = args.of_a[row * EACH];
        if constexpr (KIND == TRIPLES) {
          const row_side a0 = args.of_a[row * EACH + 1];
          const uint4 whole = __ldg((const uint4 *) &args.joint[row * args.ld + column + side]);
          const uint32_t both[4] = { whole.x, whole.y, whole.z, whole.w };
#  pragma unroll
          for (int k = 0; k < 4; k++) {
            /* the interaction is at most joint information less one's own */
            const float threshold =
                fmaxf(args.threshold_mi, args.threshold_gain + fmaxf(a.own, b[2 * k].own)) - a.own_sum;
            rejects[4 * r + k] = below(terms_of(both[k] - packed[k], a0, b[2 * k + 1]),
                                       threshold - sum_of(terms_of(packed[k], a, b[2 * k])));
          }
        } else {
          const float threshold = args.threshold_mi - a.own_sum, gain = args.threshold_gain + a.own;
#  pragma unroll
          for (int k = 0; k < 4; k++)
            rejects[4 * r + k] =
                below(terms_of(packed[k], a, b[k]),
                      KIND == PAIRS ? threshold : fmaxf(args.threshold_mi, gain + b[k].own) - a.own_sum);
        }
#  pragma unroll
        for (int k = 0; k < 4; k++) least = fminf(least, rejects[4 * r + k]);
      }
      if (least > 0) continue;
      uint32_t passed = 0;
#  pragma unroll
      for (int k = 0; k < 4 * UNROLL; k++) passed |= (uint32_t) !(rejects[k] > 0) << k;
      for (; passed; passed &= passed - 1) {
        const uint32_t k = (uint32_t) __ffs((int) passed) - 1, r = r0 + k / 4, from = side + k % 4;
        const uint32_t one = row0 + r, other = column + from;
        if (one < args.grid.low || one >= args.count_a || other >= args.count_b || (args.grid.same && other <= one))
          continue;
        const uint32_t packed = counts[r * COUNTS_ROW + lane * 4 + from];
        if (KIND == TRIPLES)
          score_triple(args, one, other, packed);
        else
          score_pair(args, one, other, packed);
      }
    }
  }
}

/* ---- the kernel ---- */

/* One warpgroup loads tiles into a ring of stages; the others count and then, by KIND, write the counts or screen them
 * through shared memory, eight rows at a time. */
template <int KIND>
__global__ static void __launch_bounds__(SCREENING_THREADS, 1) tiles(const __grid_constant__ tile_args args)
{
  extern __shared__ __align__(1024) uint8_t stages[];
  __shared__ ring<STAGES> copies;
  const uint32_t thread = threadIdx.x, warp_of_block = __shfl_sync(0xffffffffu, thread / 32, 0);
  make_ring(&copies);

  uint32_t step = 0; /* k-steps since the start */
  tile_walk at_tile = { 0, args.grid.low / ROWS_A / GROUP };
  if (warp_of_block >= CONSUMERS / 32) {
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
  const uint32_t lane = thread % 32;
  uint32_t *const counts = (uint32_t *) (stages + STAGES * STAGE_BYTES) + warp_of_block * WARP_ROWS * COUNTS_ROW;
  for (uint64_t k = blockIdx.x; k < args.count; k += gridDim.x) {
    uint32_t ta, tb, c[128];
    if (!place_tile(&args.grid, &at_tile, args.first + k, &ta, &tb)) continue;
#  pragma unroll
    for (int i = 0; i < 128; i++) c[i] = 0;
#  pragma unroll
    for (int class_index = 0; class_index < 2; class_index++) {
#  pragma unroll
      for (int i = 0; i < 128 && class_index; i++) c[i] <<= 16;
      count_steps(&copies, stages, class_index ? args.steps - args.steps0 : args.steps0, &step, c);
    }

    /* A thread holds rows lane / 4 and lane / 4 + 8 of its warp's 16, columns 8 j + 2 (lane % 4) and the next. */
    if constexpr (KIND == COUNTS) {
      const uint32_t row0 = ta * ROWS_A + warp_of_block * 16 + lane / 4, col0 = tb * ROWS_B + lane % 4 * 2;
#  pragma unroll
      for (int i = 0; i < 128; i++) {
        const uint32_t row = row0 + i / 2 % 2 * 8, col = col0 + i / 4 * 8 + i % 2;
        if (row < args.ld && col < args.ld) args.joint[row * args.ld + col] = c[i];
      }
    } else {
#  pragma unroll
      for (uint32_t half = 0; half < 2; half++) {
        __syncwarp();
#  pragma unroll
        for (int j = 0; j < 32; j++)
          *(uint2 *) (counts + lane / 4 * COUNTS_ROW + lane % 4 * 2 + j * 8) =
              make_uint2(c[4 * j + 2 * half], c[4 * j + 2 * half + 1]);
        __syncwarp();
        screen_rows<KIND>(args, counts, ta * ROWS_A + warp_of_block * 16 + half * WARP_ROWS, tb * ROWS_B + lane * 4);
      }
    }
  }
}

#else /* host side, and devices that never run it */
template <int KIND> __global__ static void tiles(const __grid_constant__ tile_args args) { (void) args; }
#endif

/* ---- layout and constants ---- */

/* One thread per 16 bytes of a row. Rows past the end are zero. */
__global__ static void arrange_rows(const uint32_t *planes, uint32_t words, size_t first, size_t count, size_t room,
                                    uint8_t *out)
{
  const uint32_t pieces = words / 4;
  const size_t k = (size_t) blockIdx.x * blockDim.x + threadIdx.x, row = k / pieces;
  const uint32_t piece = (uint32_t) (k % pieces);
  if (row >= room) return;
  uint4 v = { 0, 0, 0, 0 };
  if (row < count) v = *(const uint4 *) (planes + (first + row) * words + piece * 4);
  *(uint4 *) (out + piece_offset(row, piece, words / STEP_WORDS)) = v;
}

/* Rows of `tiles` ANDed with row `fixed`. */
__global__ static void mask_rows(const uint8_t *tiles, uint32_t steps, size_t pieces, uint32_t fixed, uint8_t *out)
{
  const size_t k = (size_t) blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= pieces) return;
  const uint32_t in_block = (uint32_t) (k % (BLOCK_BYTES / 16)), half = in_block / 8 % 2,
                 step = (uint32_t) (k / (BLOCK_BYTES / 16) % steps);
  const uint4 mask = *(const uint4 *) (tiles + ((size_t) fixed / 128 * steps + step) * BLOCK_BYTES +
                                       fixed % 128 / 8 * 256 + half * 128 + fixed % 8 * 16);
  uint4 v = ((const uint4 *) tiles)[k];
  v.x &= mask.x;
  v.y &= mask.y;
  v.z &= mask.z;
  v.w &= mask.w;
  ((uint4 *) out)[k] = v;
}

/* Constants of attribute a among `rows` rows with `in_class` in class 1, of which rows1 and in_class1 have a's level
 * 1. */
__device__ static row_side row_constants(double rows, double in_class, double rows1, double in_class1, double share,
                                         double own)
{
  const double rows0 = rows - rows1, in_class0 = in_class - in_class1, d1 = in_class1 - share * rows1,
               d0 = in_class0 - share * rows0;
  row_side out;
  out.share1 = (float) (rows1 > 0 ? in_class1 / rows1 : 0);
  out.share0 = (float) (rows0 > 0 ? in_class0 / rows0 : 0);
  out.rows1 = (float) rows1 + EMPTY;
  out.rows0 = (float) rows0 + EMPTY;
  out.own_sum = (float) ((rows1 > 0 ? d1 * d1 / rows1 : 0) + (rows0 > 0 ? d0 * d0 / rows0 : 0));
  out.own = (float) own;
  out.fill = make_float2(0, 0);
  return out;
}

/* A row from which nothing is wanted: its threshold is out of reach. */
__device__ static row_side row_of_none(void)
{
  row_side out = { 0, 0, 1e6f, 1e6f, -1e30f, 0, { 0, 0 } };
  return out;
}

__device__ static column_side column_constants(double rows, double in_class, double own)
{
  column_side out = { (float) rows, (float) in_class + MAGIC, (float) own, 0 };
  return out;
}

/* `a` or `b` may be NULL. */
__global__ static void pair_constants(const uint32_t *margins, size_t plane_rows, size_t row, size_t count, size_t room,
                                      const int64_t *alone, double scale, double share, double rows, double in_class,
                                      row_side *a, column_side *b)
{
  const size_t k = (size_t) blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= room) return;
  const double k1 = k < count ? margins[plane_rows + row + k] : 0, m = k < count ? margins[row + k] + k1 : 0;
  const double own = k < count ? (double) alone[k] * scale : 0;
  if (a) a[k] = k < count ? row_constants(rows, in_class, m, k1, share, own) : row_of_none();
  if (b) b[k] = column_constants(m, k1, own);
}

/* Two per attribute: within level 1 and level 0 of the fixed one. own: the greater of its own and the fixed one's
 * information. */
__global__ static void triple_constants(const uint32_t *margins, size_t plane_rows, size_t row, size_t count,
                                        size_t room, const int64_t *alone, double scale, double share, double rows,
                                        double in_class, const uint32_t *joint, uint32_t fixed, row_side *a,
                                        column_side *b)
{
  const size_t k = (size_t) blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= room) return;
  a[2 * k] = a[2 * k + 1] = row_of_none();
  b[2 * k] = b[2 * k + 1] = column_constants(0, 0, 0);
  if (k >= count || k <= fixed) return;
  const double own = (double) (alone[k] > alone[fixed] ? alone[k] : alone[fixed]) * scale;
  const double k1 = joint[k] & 0xffffu, m = (joint[k] >> 16) + k1; /* joint: the fixed attribute's row */
  const double whole1 = margins[plane_rows + row + k], whole = margins[row + k] + whole1;
  const double fixed1 = margins[plane_rows + row + fixed], of_fixed = margins[row + fixed] + fixed1;
  a[2 * k] = row_constants(of_fixed, fixed1, m, k1, share, own);
  a[2 * k + 1] = row_constants(rows - of_fixed, in_class - fixed1, whole - m, whole1 - k1, share, own);
  a[2 * k].own_sum += a[2 * k + 1].own_sum;
  b[2 * k] = column_constants(m, k1, own);
  b[2 * k + 1] = column_constants(whole - m, whole1 - k1, own);
}

/* ---- host ---- */

int weft_mi_wgmma_ready(int device)
{
#ifdef WEFT_BUILT_FOR_90A
  int major = 0, minor = 0;
  return cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
         cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess && major == 9 &&
         minor == 0;
#else
  (void) device;
  return 0;
#endif
}

static tile_grid grid_of(const mi_binary *binary, uint32_t low)
{
  const tile_grid grid = { (uint32_t) ((binary->count_a + ROWS_A - 1) / ROWS_A),
                           (uint32_t) ((binary->count_b + ROWS_B - 1) / ROWS_B), binary->same, low };
  return grid;
}

uint64_t weft_mi_wgmma_tiles(const mi_binary *binary)
{
  const tile_grid grid = grid_of(binary, 0);
  return tiles_of(&grid);
}

weft_status weft_mi_wgmma_arrange(weft_ctx *ctx, const weft_mi_resident *resident, size_t first, size_t count,
                                  uint8_t *out, cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  const size_t room = (count + 255) / 256 * 256, pieces = room * (resident->words / 4);
  if (!pieces) goto done;
  arrange_rows<<<(unsigned) ((pieces + 255) / 256), 256, 0, stream>>>(resident->planes, resident->words, first, count,
                                                                      room, out);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

/* What pairs and triples have in common. */
static tile_args make_args(const mi_binary *binary, const uint8_t *a_tiles, const uint8_t *b_tiles,
                           const mi_threshold *threshold, const mi_hits *hits)
{
  const weft_mi_resident *resident = binary->resident;
  const double n = (double) binary->class_rows[0] + binary->class_rows[1], scale = n / binary->steepest;
  tile_args args;
  memset(&args, 0, sizeof args);
  args.a = a_tiles;
  args.b = b_tiles;
  args.steps0 = binary->steps[0];
  args.steps = binary->steps[0] + binary->steps[1];
  args.count_a = (uint32_t) binary->count_a;
  args.count_b = (uint32_t) binary->count_b;
  args.grid = grid_of(binary, 0);
  args.margins = resident->margins;
  args.plane_rows = binary->plane_rows;
  args.row_a = binary->row_a;
  args.row_b = binary->row_b;
  args.place_a = binary->first_a;
  args.place_b = binary->first_b;
  args.columns = binary->columns;
  args.column = resident->column;
  args.alone = resident->alone;
  args.f = resident->f;
  args.n = (uint64_t) n;
  args.class_fixed = -weft_mi_fixed_of(args.n, resident->f.unit);
  for (int c = 0; c < 2; c++) {
    args.class_rows[c] = binary->class_rows[c];
    args.class_fixed += weft_mi_fixed_of(binary->class_rows[c], resident->f.unit);
  }
  if (threshold) {
    /* the threshold in units of Σ D²/m, a little lower for what single precision and EMPTY take */
    const double mi = threshold->by_interaction ? threshold->min_mi : fmax(threshold->min_mi, threshold->score);
    const double gain = threshold->by_interaction ? fmax(threshold->min_gain, threshold->score) : threshold->min_gain;
    const double slack = 1e-3 + 1e-6 * n;
    args.threshold_mi = (float) ((mi - SLACK * fabs(mi)) * scale - slack);
    args.threshold_gain = (float) ((gain - SLACK * fabs(gain)) * scale - slack);
    args.threshold = *threshold;
    args.hits = *hits;
  }
  return args;
}

/* Fixed-point information to units of Σ D²/m; lower by what the threshold's own margin does not cover. */
static double scale_of(const mi_binary *binary) { return binary->resident->f.unit / binary->steepest * (1 - SLACK); }

static weft_status launch(weft_ctx *ctx, void (*kernel)(const tile_args), const tile_args *args, cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  int processors = 0;
  const int bytes = SHARED_BYTES;
  WEFT_CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, ctx->device));
  WEFT_CUDA(weft_device_allow_shared((const void *) kernel, bytes));
  kernel<<<(args->count < (uint64_t) processors ? (unsigned) args->count : (unsigned) processors), SCREENING_THREADS,
           bytes, stream>>>(*args);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

static size_t room_of(size_t count) { return (count + 255) / 256 * 256; }

size_t weft_mi_wgmma_room(const mi_binary *binary, int order)
{
  const size_t each = order == 3 ? 2 : 1;
  return each * (room_of(binary->count_a) * sizeof(row_side) + room_of(binary->count_b) * sizeof(column_side));
}

/* Makes the constants of the screen for both sides, for this threshold, and launches the tiles. */
weft_status weft_mi_wgmma_pairs(weft_ctx *ctx, const mi_binary *binary, const uint8_t *tiles_a, const uint8_t *tiles_b,
                                void *constants, const mi_threshold *threshold, const mi_hits *hits, uint64_t first,
                                uint64_t count, cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  tile_args args = make_args(binary, tiles_a, tiles_b, threshold, hits);
  const size_t room_a = room_of(binary->count_a), room_b = room_of(binary->count_b);
  const double rows = (double) args.n, in_class = binary->class_rows[1];
  row_side *of_a = (row_side *) constants;
  column_side *of_b = (column_side *) (of_a + room_a);
  pair_constants<<<(unsigned) (room_a / 256), 256, 0, stream>>>(binary->resident->margins, binary->plane_rows,
                                                                binary->row_a, binary->count_a, room_a,
                                                                binary->resident->alone + binary->first_a,
                                                                scale_of(binary), in_class / rows, rows, in_class, of_a,
                                                                binary->same ? of_b : NULL);
  WEFT_CUDA(cudaGetLastError());
  if (!binary->same)
    pair_constants<<<(unsigned) (room_b / 256), 256, 0, stream>>>(binary->resident->margins, binary->plane_rows,
                                                                  binary->row_b, binary->count_b, room_b,
                                                                  binary->resident->alone + binary->first_b,
                                                                  scale_of(binary), in_class / rows, rows, in_class,
                                                                  NULL, of_b);
  WEFT_CUDA(cudaGetLastError());
  args.of_a = of_a;
  args.of_b = of_b;
  args.first = first;
  args.count = count;
  WEFT_TRY(launch(ctx, args.threshold_gain > -INFINITY ? tiles<GAINS> : tiles<PAIRS>, &args, stream));
done:
  return st;
}

weft_status weft_mi_wgmma_counts(weft_ctx *ctx, const mi_binary *binary, const uint8_t *tile_rows, uint32_t *joint,
                                 size_t ld, cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  tile_args args = make_args(binary, tile_rows, tile_rows, NULL, NULL);
  args.joint = joint;
  args.ld = ld;
  args.count = weft_mi_wgmma_tiles(binary);
  WEFT_TRY(launch(ctx, tiles<COUNTS>, &args, stream));
done:
  return st;
}

/* Masks the planes with attribute i's bits, makes the constants of the screen for it, and launches the tiles of the
 * attributes behind it. */
weft_status weft_mi_wgmma_triples(weft_ctx *ctx, const mi_binary *binary, const uint8_t *tile_rows, uint8_t *masked,
                                  void *constants, const uint32_t *joint, size_t ld, uint32_t i,
                                  const mi_threshold *threshold, const mi_hits *hits, cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  tile_args args = make_args(binary, masked, tile_rows, threshold, hits);
  const size_t pieces = ld * (size_t) args.steps * 2;
  const double rows = (double) args.n, in_class = binary->class_rows[1];
  row_side *of_a = (row_side *) constants;
  column_side *of_b = (column_side *) (of_a + 2 * ld);
  if (i + 2 >= binary->count_a) goto done;
  mask_rows<<<(unsigned) ((pieces + 255) / 256), 256, 0, stream>>>(tile_rows, (uint32_t) args.steps, pieces, i, masked);
  WEFT_CUDA(cudaGetLastError());
  triple_constants<<<(unsigned) (ld / 256), 256, 0, stream>>>(binary->resident->margins, binary->plane_rows,
                                                              binary->row_a, binary->count_a, ld,
                                                              binary->resident->alone + binary->first_a,
                                                              scale_of(binary), in_class / rows, rows, in_class,
                                                              joint + (size_t) i * ld, i, of_a, of_b);
  WEFT_CUDA(cudaGetLastError());
  args.of_a = of_a;
  args.of_b = of_b;
  args.joint = (uint32_t *) joint;
  args.ld = ld;
  args.fixed = i;
  args.grid = grid_of(binary, i + 1);
  args.count = tiles_of(&args.grid);
  WEFT_TRY(launch(ctx, tiles<TRIPLES>, &args, stream));
done:
  return st;
}
