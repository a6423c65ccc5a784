/* The kernels of the screen: columns and their digits, panels of bytes, sums of single variants, and scores of pairs.
 */
#pragma once

#include <type_traits>
#include "mi/scan/cuda/gaps.cuh"

#define THREADS 128
#define LOST_THREADS 128
#define OWN_AT_ONCE 8 /* variants of a block that sums columns */

/* root × column, or the root's square; by rows. */
__global__ static void weigh_column(const double *root, const double *column, size_t n, double *out)
{
  const size_t i = (size_t) blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = root[i] * (column ? column[i] : root[i]);
}

/* Digits of a column's multiples of `step`, the lowest first; `stride` apart. */
__global__ static void make_digits(const double *column, size_t n, double step, int base, int digits, int8_t *out,
                                   size_t stride)
{
  const size_t i = (size_t) blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= stride) return;
  long long rest = i < n ? __double2ll_rn(column[i] / step) : 0;
  const int half = (base - 1) / 2;
  for (int d = 0; d < digits; d++) {
    long long digit = (rest + half) % base;
    if (digit < 0) digit += base;
    digit -= half;
    out[d * stride + i] = (int8_t) digit;
    rest = (rest - digit) / base;
  }
}

/* Adds the squares of a column, and places it among those of a row. */
__global__ static void place_column(const double *column, size_t n, size_t width, double *by_row, double *squares)
{
  const size_t i = (size_t) blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  by_row[i * width] = column[i];
  squares[i] += column[i] * column[i];
}

enum plane { COPIES, ONE_COPY, TWO_COPIES, ABSENT, PLANES };

/* Rows of a panel of variants as bytes: copies, or whether there are 1, 2, or the genotype is missing; times a digit of
 * the row unless `digits` is NULL. A thread makes 16 rows. */
__global__ static void expand_panel(const uint8_t *codes, size_t bytes, uint32_t first, uint32_t variants, size_t row,
                                    size_t rows, const int8_t *digits, int plane, int8_t *out)
{
  const size_t at = ((size_t) blockIdx.x * blockDim.x + threadIdx.x) * 16;
  const uint32_t variant = first + blockIdx.y;
  if (at >= rows) return;
  uint32_t word = 0;
  uint4 times = make_uint4(0x01010101u, 0x01010101u, 0x01010101u, 0x01010101u);
  if (variant < variants) word = *(const uint32_t *) (codes + variant * bytes + (row + at) / 4);
  if (digits) times = *(const uint4 *) (digits + row + at);
  const uint32_t factor[4] = { times.x, times.y, times.z, times.w };
  uint32_t made[4];
#pragma unroll
  for (int k = 0; k < 4; k++) {
    const uint32_t four = word >> (8 * k) & 0xff;
    const uint32_t spread = (four & 0x3) | (four & 0xc) << 6 | (four & 0x30) << 12 | (four & 0xc0) << 18;
    const uint32_t low = spread & 0x01010101u, high = spread >> 1 & 0x01010101u;
    const uint32_t one = (low & ~high) * 0xff, two = (high & ~low) * 0xff;
    made[k] = plane == ONE_COPY     ? factor[k] & one
              : plane == TWO_COPIES ? factor[k] & two
              : plane == ABSENT     ? factor[k] & (low & high) * 0xff
                                    : (factor[k] & one) | (__vadd4(factor[k], factor[k]) & two);
  }
  *(uint4 *) (out + blockIdx.y * rows + at) = make_uint4(made[0], made[1], made[2], made[3]);
}

/* Sums of a column over the people with one copy, and with two, of OWN_AT_ONCE variants a block. */
__global__ static void __launch_bounds__(256)
    sum_own(const uint8_t *codes, size_t bytes, uint32_t variants, const double *column, size_t n, double *out)
{
  __shared__ double shared[8][2 * OWN_AT_ONCE];
  const uint32_t first = blockIdx.x * OWN_AT_ONCE;
  double sum[2 * OWN_AT_ONCE];
#pragma unroll
  for (int k = 0; k < 2 * OWN_AT_ONCE; k++) sum[k] = 0;
  for (size_t byte = threadIdx.x; byte < (n + 3) / 4; byte += blockDim.x) {
    double of[4];
#pragma unroll
    for (int r = 0; r < 4; r++) of[r] = 4 * byte + r < n ? column[4 * byte + r] : 0;
#pragma unroll
    for (int k = 0; k < OWN_AT_ONCE; k++) {
      const uint32_t four = first + k < variants ? codes[(first + k) * bytes + byte] : 0;
#pragma unroll
      for (int r = 0; r < 4; r++) {
        const uint32_t code = four >> (2 * r) & 3;
        sum[2 * k] += code == 1 ? of[r] : 0;
        sum[2 * k + 1] += code == 2 ? of[r] : 0;
      }
    }
  }
#pragma unroll
  for (int k = 0; k < 2 * OWN_AT_ONCE; k++) {
    for (int d = 16; d; d /= 2) sum[k] += __shfl_xor_sync(0xffffffffu, sum[k], d);
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32][k] = sum[k];
  }
  __syncthreads();
  if (threadIdx.x >= 2 * OWN_AT_ONCE) return;
  double whole = 0;
  for (int w = 0; w < 8; w++) whole += shared[w][threadIdx.x];
  const uint32_t variant = first + threadIdx.x / 2;
  if (variant < variants) out[(threadIdx.x % 2) * (size_t) variants + variant] = whole;
}

/* The sums of one variant over its missing rows, an entry a thread; blockIdx.x: the variant, from `first`. */
__global__ static void __launch_bounds__(LOST_THREADS)
    sum_lost(const uint8_t *codes, size_t bytes, uint32_t first, uint32_t variants, const double *by_row, uint32_t k,
             uint32_t outcomes, double *out, double *lengths)
{
  __shared__ unsigned long long masks[LOST_THREADS];
  __shared__ double shared[LOST_THREADS];
  const uint32_t variant = first + blockIdx.x, triangle = k * (k + 1) / 2, width = k + outcomes;
  const uint32_t entries = triangle + k * outcomes + outcomes;
  const unsigned long long *words = (const unsigned long long *) (codes + variant * bytes);
  double squares = 0;
  for (uint32_t start = 0; start < entries; start += LOST_THREADS) {
    const uint32_t entry = start + threadIdx.x;
    uint32_t one = 0, other = 0;
    if (entry < triangle) {
      while ((one + 1) * (one + 2) / 2 <= entry) one++;
      other = entry - one * (one + 1) / 2;
    } else if (entry < entries) {
      const uint32_t rest = entry - triangle;
      other = k + rest % outcomes;
      one = rest < k * outcomes ? rest / outcomes : other;
    }
    double sum = 0;
    for (size_t at = 0; at < bytes / 8; at += LOST_THREADS) {
      const unsigned long long word = at + threadIdx.x < bytes / 8 ? words[at + threadIdx.x] : 0;
      __syncthreads();
      masks[threadIdx.x] = word & word >> 1 & 0x5555555555555555ull;
      __syncthreads();
      for (uint32_t w = 0; w < LOST_THREADS; w++)
        for (unsigned long long mask = masks[w]; mask; mask &= mask - 1) {
          const double *row = by_row + ((at + w) * 32 + (size_t) (__ffsll((long long) mask) - 1) / 2) * width;
          sum += row[one] * row[other];
        }
    }
    if (entry < entries) out[(size_t) entry * variants + variant] = sum;
    if (entry < triangle) squares += (one == other ? 1 : 2) * sum * sum;
  }
  shared[threadIdx.x] = squares;
  __syncthreads();
  if (threadIdx.x) return;
  for (uint32_t w = 1; w < LOST_THREADS; w++) squares += shared[w];
  lengths[variant] = sqrt(squares);
}

__device__ static inline bool pair_searched(const scan_tile &part, uint32_t i, uint32_t j)
{
  if (part.side && !((part.side[i] & 1 && part.side[j] & 2) || (part.side[i] & 2 && part.side[j] & 1))) return false;
  return !(part.chromosome && part.chromosome[i] == part.chromosome[j] &&
           fabs(part.position[i] - part.position[j]) < part.distance);
}

__device__ static inline void note_item(const scan_tile &part, unsigned long long index, uint32_t outcome, double low,
                                        double high)
{
  const uint32_t at = atomicAdd(part.count, 1u);
  if (at < part.capacity) part.items[at] = { index, low, high, outcome, 0 };
}

/* A thread scores a pair. NOTE: notes what may be among the best; else it raises the lower bounds of the greatest.
 * GAPS: of pairs with missing genotypes. */
template <int L, bool GAPS, bool NOTE>
__global__ static void __launch_bounds__(THREADS) score_tile(const scan_tile part)
{
  const uint32_t i = blockIdx.x * THREADS + threadIdx.x, j = blockIdx.y, a = part.first_a + i, b = part.first_b + j;
  int known = 0;
  if (i < part.count_a && j < part.count_b && a < b && pair_searched(part, part.place[a], part.place[b])) {
    const int32_t *const at = part.sums + j * part.ld + i;
    const uint32_t first = min(part.place[a], part.place[b]), second = max(part.place[a], part.place[b]);
    const unsigned long long index = first * part.all + second;
    pair_state<L> state;
    interaction<L> f;
    typename std::conditional<GAPS, gap_state<L>, pair_errors<L>>::type errors;
    uint32_t rank;
    if constexpr (GAPS)
      known = begin_gaps<L>(part, at, a, b, state, f, errors, &rank);
    else
      known = begin_pair<L>(part, at, a, b, state, f, errors, &rank);
    for (uint32_t e = 0; known == 1 && e < part.outcomes; e++) {
      double low = 0, high = 0;
      if constexpr (GAPS)
        known = score_gaps<L>(part, at, a, b, e, state, f, errors, rank, &low, &high);
      else
        known = score_outcome<L>(part, at, a, b, e, state, f, errors, rank, &low, &high);
      if (known != 1) break;
      const unsigned long long bits = (unsigned long long) __double_as_longlong(low);
      if (!NOTE) {
        if (bits > *(volatile unsigned long long *) (part.least + e)) atomicMax(part.least + e, bits);
      } else if (!(high < __longlong_as_double((long long) part.least[e])) ||
                 (e == 0 && part.any && !(high < part.threshold)))
        note_item(part, index, e, low, high);
    }
    if (NOTE && known < 0) note_item(part, index, WEFT_SCAN_UNSURE, 0, 0);
  }
  if (NOTE) {
    const int scored = __syncthreads_count(known == 1);
    if (threadIdx.x == 0 && scored) atomicAdd(part.tested, (unsigned long long) scored);
  }
}
