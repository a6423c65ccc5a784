/* The screen of a scan on a device (score.cuh says what it counts and how exact that is). Genotypes are sent once, in
 * two bits. A tile is a panel of earlier variants, expanded to bytes once, and one of later variants, which are
 * expanded to bytes times one digit of one column, again for each product: cuBLAS multiplies the two panels. When all
 * products of a tile are there, a thread scores a pair: once for the greatest lower bound of every outcome, once to
 * note what may be among the best. */
#include <algorithm>
#include <cmath>
#include <cstring>
#include <cublas_v2.h>
#include "core/device/device.cuh"
#include "core/call/parallel.h"
#include "core/numbers/topk.h"
#include "mi/limits.h"
#include "mi/scan/cuda/score.cuh"
#include "mi/scan/scan.h"

#define SIDE_A 4096u /* variants of a tile */
#define SIDE_B 1024u
#define ROWS_AT_ONCE ((size_t) 1 << 19)
#define THREADS 128
#define ALIGN 128
#define FEW_DIGITS 5e-3 /* two digits serve U where they leave less than this */
#define DIGITS_OF_W 4
#define DIGITS_OF_E 3
#define SPARE_ITEMS 65536u
#define OWN_AT_ONCE 8 /* variants of a block that sums columns */
#define POLL_AFTER 8  /* products */

static size_t round_up(size_t x, size_t to) { return (x + to - 1) / to * to; }

/* ---- kernels ---- */

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

/* Rows of a panel of variants as bytes: copies (plane 0), or whether there are `plane` of them; times a digit of the
 * row unless `digits` is NULL. A thread makes 16 rows. */
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
    const uint32_t one = (spread & 0x01010101u) * 0xff, two = (spread >> 1 & 0x01010101u) * 0xff;
    made[k] = plane == 1   ? factor[k] & one
              : plane == 2 ? factor[k] & two
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
        sum[2 * k] += four >> (2 * r) & 1 ? of[r] : 0;
        sum[2 * k + 1] += four >> (2 * r + 1) & 1 ? of[r] : 0;
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

__device__ static inline bool pair_searched(const scan_tile &t, uint32_t i, uint32_t j)
{
  if (t.side && !((t.side[i] & 1 && t.side[j] & 2) || (t.side[i] & 2 && t.side[j] & 1))) return false;
  return !(t.chromosome && t.chromosome[i] == t.chromosome[j] && fabs(t.position[i] - t.position[j]) < t.distance);
}

__device__ static inline void note_item(const scan_tile &t, unsigned long long index, uint32_t outcome, double low,
                                        double high)
{
  const uint32_t at = atomicAdd(t.count, 1u);
  if (at < t.capacity) t.items[at] = { index, low, high, outcome, 0 };
}

/* Everything about a pair but its outcomes: 1 to go on, 0 no score, -1 unsure. */
template <int L>
__device__ static inline int begin_pair(const scan_tile &t, const int32_t *at, uint32_t a, uint32_t b, pair_state<L> &s,
                                        interaction<L> &f, pair_errors<L> &errors, uint32_t *rank)
{
  int cell[4];
  double w[4];
  s.kept = t.kept[count_pair(t, at, a, b, cell)];
  if (!(s.kept >> s.X)) return 0;
#pragma unroll
  for (int c = 0; c < 4; c++)
    w[c] = t.weighted ? digit_sum(at + (size_t) (t.columns[0].slot + c) * t.slot_size, t.slot_size, t.columns[0].digits,
                                  4, 255, t.columns[0].step)
                      : (double) cell[c];
  fill_products<L>(t, a, b, cell, w, s);
  *rank = t.k;
  return reduce_pair<L>(t, at, a, b, s, rank) && factor<L>(s, f) && bound_errors<L>(t, s, f, errors) ? 1 : -1;
}

/* A thread scores a pair. NOTE: notes what may be among the best; else it raises the lower bounds of the greatest. */
template <int L, bool NOTE> __global__ static void __launch_bounds__(THREADS) score_tile(const scan_tile t)
{
  const uint32_t i = blockIdx.x * THREADS + threadIdx.x, j = blockIdx.y, a = t.first_a + i, b = t.first_b + j;
  int known = 0;
  if (i < t.count_a && j < t.count_b && a < b && pair_searched(t, t.place[a], t.place[b])) {
    const int32_t *const at = t.sums + j * t.ld + i;
    const unsigned long long index = t.place[a] * t.all + t.place[b];
    pair_state<L> s;
    interaction<L> f;
    pair_errors<L> errors;
    uint32_t rank;
    known = begin_pair<L>(t, at, a, b, s, f, errors, &rank);
    for (uint32_t e = 0; known == 1 && e < t.outcomes; e++) {
      double low = 0, high = 0;
      known = score_outcome<L>(t, at, a, b, e, s, f, errors, rank, &low, &high);
      if (known != 1) break;
      const unsigned long long bits = (unsigned long long) __double_as_longlong(low);
      if (!NOTE) {
        if (bits > *(volatile unsigned long long *) (t.least + e)) atomicMax(t.least + e, bits);
      } else if (!(high < __longlong_as_double((long long) t.least[e])) || (e == 0 && t.any && !(high < t.threshold)))
        note_item(t, index, e, low, high);
    }
    if (NOTE && known < 0) note_item(t, index, WEFT_SCAN_UNSURE, 0, 0);
  }
  if (NOTE) {
    const int scored = __syncthreads_count(known == 1);
    if (threadIdx.x == 0 && scored) atomicAdd(t.tested, (unsigned long long) scored);
  }
}

/* ---- what is sent ---- */

struct screen {
  const weft_scan_job *job;
  const double *counts;
  int copies; /* columns of a variant: L */
  uint32_t variants;
  uint32_t *place;
  uint8_t *flipped;     /* the counted allele is the more frequent one */
  size_t stride, bytes; /* rows and bytes of a variant */
  uint32_t side_a, side_b;
  size_t rows;  /* at once */
  size_t slots; /* products of a tile */
  int digits_of_u;
  scan_column *columns; /* host: weights, U, outcomes */
  int8_t **digits_of;   /* host: of each column; NULL: a constant */
  double step_of_u;
  weft_device_arena *mem;
  cublasHandle_t blas;
  uint8_t *codes;
  int8_t *panel_a[3], *panel_b; /* of a: copies (unused with L = 2), one copy, two copies */
  scan_tile tile;
  /* host */
  scan_item *pool;
  size_t pooled, capacity;
  weft_topk best;
};

static weft_status blas_error(weft_ctx *ctx, cublasStatus_t e, const char *file, int line)
{
  return weft_fail(ctx, e == CUBLAS_STATUS_ALLOC_FAILED ? WEFT_ERR_MEMORY : WEFT_ERR_DEVICE,
                   "cuBLAS failed with status %d (%s:%d).", (int) e, file, line);
}
#define BLAS(step) \
  do { \
    const cublasStatus_t e_ = (step); \
    if (e_ != CUBLAS_STATUS_SUCCESS) { \
      st = blas_error(ctx, e_, __FILE__, __LINE__); \
      goto done; \
    } \
  } while (0)

/* Two bits a genotype, copies of the rarer allele, from codes. */
static void pack_codes(const screen *s, uint32_t at, uint8_t *out)
{
  enum { PIECE = 4096 };
  const weft_variants *variants = &s->job->variants;
  uint8_t codes[PIECE];
  for (size_t first = 0; first < variants->n; first += PIECE) {
    const size_t rows = std::min<size_t>(PIECE, variants->n - first);
    weft_variant_read(variants, s->place[at], first, rows, codes);
    for (size_t i = 0; i < rows; i++)
      out[(first + i) / 4] |= (uint8_t) ((s->flipped[at] ? 2 - codes[i] : codes[i]) << (2 * (i % 4)));
  }
}

/* The same from a .bed file's bytes, where all rows are used. */
static void pack_bytes(const screen *s, uint32_t at, const uint8_t *from, uint8_t *out)
{
  const size_t n = s->job->variants.n;
  uint8_t table[256];
  for (int byte = 0; byte < 256; byte++) {
    table[byte] = 0;
    for (int r = 0; r < 4; r++) {
      const int low = byte >> (2 * r) & 1, high = byte >> (2 * r + 1) & 1, copies = high ? !low : 2 * !low;
      table[byte] |= (uint8_t) ((s->flipped[at] ? 2 - copies : copies) << (2 * r));
    }
  }
  for (size_t k = 0; k < (n + 3) / 4; k++) out[k] = table[from[k]];
  if (n % 4) out[n / 4] &= (uint8_t) ((1 << (2 * (n % 4))) - 1);
}

/* weft_fill of variants. */
static void fill_codes(const void *data, size_t first, size_t count, void *out, int threads)
{
  const screen *s = (const screen *) data;
  const weft_variants *variants = &s->job->variants;
  WEFT_PARALLEL_FOR(threads, static)
  for (int64_t k = 0; k < (int64_t) count; k++) {
    const uint32_t at = (uint32_t) (first + (size_t) k);
    const weft_column *column = variants->columns + s->place[at];
    uint8_t *to = (uint8_t *) out + (size_t) k * s->bytes;
    memset(to, 0, s->bytes);
    if (weft_variants_whole(variants) && column->type == WEFT_COLUMN_GENOTYPE)
      pack_bytes(s, at, (const uint8_t *) column->values, to);
    else
      pack_codes(s, at, to);
  }
}

/* The variants without missing genotypes, and how many people have one copy and two of each. */
static weft_status choose_variants(weft_ctx *ctx, weft_arena *host, screen *s)
{
  weft_status st = WEFT_OK;
  const size_t p = s->job->variants.p;
  uint32_t *ones, *twos, *sent;
  WEFT_TAKE(s->place, host, p + 1);
  WEFT_TAKE(s->flipped, host, p + 1);
  WEFT_TAKE(ones, host, p + 1);
  WEFT_TAKE(twos, host, p + 1);
  for (size_t j = 0; j < p; j++) {
    const double *count = s->counts + j * WEFT_VARIANT_CODES;
    if (count[WEFT_GENOTYPE_MISSING] > 0 || count[WEFT_VARIANT_OTHER] > 0) continue;
    const uint32_t at = s->variants++;
    s->place[at] = (uint32_t) j;
    s->flipped[at] = count[2] > count[0];
    ones[at] = (uint32_t) count[1];
    twos[at] = (uint32_t) (s->flipped[at] ? count[0] : count[2]);
  }
  if (s->variants < 2) goto done;
  WEFT_TRY(weft_device_send(s->mem, ones, s->variants, &sent));
  s->tile.ones = sent;
  WEFT_TRY(weft_device_send(s->mem, twos, s->variants, &sent));
  s->tile.twos = sent;
  WEFT_TRY(weft_device_send(s->mem, s->place, s->variants, &sent));
  s->tile.place = sent;
done:
  return st;
}

static double greatest_of(const double *column, const double *root, size_t n)
{
  double most = 0;
  for (size_t i = 0; i < n; i++) most = fmax(most, fabs((column ? column[i] : root[i]) * root[i]));
  return most;
}

/* The greatest multiple of a step that `digits` digits can write. */
static double limit_of(int base, int digits) { return (pow(base, digits) - 1) / 2; }

/* Steps, digits and slots of all columns; the first outcome's slots follow those of U. */
static weft_status plan_columns(weft_ctx *ctx, weft_arena *host, screen *s)
{
  weft_status st = WEFT_OK;
  const weft_scan_job *job = s->job;
  const size_t n = job->variants.n, terms = (size_t) (s->copies * s->copies);
  const int base = s->copies == 1 ? 127 : 255;
  double *greatest, few = 0;
  s->slots = 4;
  WEFT_TAKE0(s->columns, host, 1 + job->k + job->outcomes);
  WEFT_TAKE0(s->digits_of, host, 1 + job->k + job->outcomes);
  WEFT_TAKE(greatest, host, 1 + job->k + job->outcomes);
  for (size_t i = 0; i < n; i++) s->tile.weighted |= job->root[i] != 1;
  for (size_t l = 0; l < job->k + job->outcomes; l++) {
    const double *column = l < job->k ? job->basis + l * n : job->outcome + (l - job->k) * n;
    WEFT_TRY(weft_poll(ctx, 0, 0));
    greatest[1 + l] = greatest_of(column, job->root, n);
    bool constant = l < job->k && !s->tile.weighted;
    for (size_t i = 1; constant && i < n; i++) constant = fabs(column[i] - column[0]) <= 1e-14 * fabs(column[0]);
    if (constant) {
      s->columns[1 + l].slot = -1;
      s->columns[1 + l].step = column[0];
    } else if (l < job->k)
      few += pow(greatest[1 + l] / limit_of(base, 2) / 2, 2);
  }
  s->digits_of_u = sqrt(few * (double) n) > FEW_DIGITS ? 3 : 2;
  greatest[0] = greatest_of(NULL, job->root, n);
  s->columns[0].slot = -1;
  for (size_t l = 0; l < 1 + job->k + job->outcomes; l++) {
    scan_column *column = &s->columns[l];
    if (l == 0 ? !s->tile.weighted : column->slot < 0) continue;
    column->digits = l == 0 ? DIGITS_OF_W : l <= job->k ? s->digits_of_u : DIGITS_OF_E;
    column->step = greatest[l] / limit_of(l == 0 ? 255 : base, column->digits);
    if (!(column->step > 0)) column->step = 1;
    column->slot = (int) s->slots;
    s->slots += (size_t) column->digits * (l == 0 ? 4 : terms);
    if (l > 0 && l <= job->k) s->step_of_u += column->step * column->step / 4;
  }
  s->tile.base = base;
  s->tile.step_of_u = sqrt(s->step_of_u) * (1 + 1e-6);
  s->tile.step_of_w = s->tile.weighted ? s->columns[0].step / 2 : 0;
done:
  return st;
}

/* Sides of tiles, such that all fits: 0 in *fits where it does not. */
static void choose_sides(weft_ctx *ctx, screen *s, int *fits)
{
  const size_t n = s->job->variants.n, columns = 1 + s->job->k + s->job->outcomes;
  s->stride = round_up(n, ALIGN);
  s->bytes = s->stride / 4;
  s->rows = std::min(s->stride, ROWS_AT_ONCE);
  s->side_a = (uint32_t) std::min<size_t>(SIDE_A, round_up(s->variants, ALIGN));
  s->side_b = (uint32_t) std::min<size_t>(SIDE_B, round_up(s->variants, ALIGN));
  const double digits = (double) s->stride * ((double) columns * 4 + 16);
  const double whole = (double) s->variants * ((double) s->bytes + 16 * (double) columns + 32) + digits + 64e6;
  const double room = 0.9 * weft_device_available(ctx) - whole;
  for (*fits = 0; !*fits; s->side_a > s->side_b ? (s->side_a /= 2) : (s->side_b /= 2)) {
    const double area = (double) s->side_a * s->side_b;
    const double takes = (double) s->rows * (3.0 * s->side_a + s->side_b) + area * 4 * (double) s->slots +
                         sizeof(scan_item) * (area + SPARE_ITEMS);
    if (takes <= room) {
      *fits = 1;
      return;
    }
    if (s->side_a <= ALIGN && s->side_b <= ALIGN) return;
  }
}

/* Which columns of X and Z do not follow from the constant and those before them, for each set of combinations that
 * occur: a bit each. */
static void find_kept(int copies, uint8_t *kept)
{
  const int terms = copies * copies, size = 1 + 2 * copies + terms;
  for (int mask = 0; mask < WEFT_SCAN_MASKS; mask++) {
    double basis[9][9];
    int rank = 0;
    kept[mask] = 0;
    for (int c = 0; c < size; c++) {
      double column[9], length = 0, whole = 0;
      for (int cell = 0; cell < 9; cell++) {
        const int a = cell % 3, b = cell / 3, term = c - 1 - 2 * copies;
        const double one = copies == 1 ? a : a == 1 + (c - 1), other = copies == 1 ? b : b == 1 + (c - 1 - copies);
        const double both = copies == 1 ? a * b : a == 1 + term % 2 && b == 1 + term / 2;
        column[cell] = !(mask >> cell & 1) ? 0 : c == 0 ? 1 : c <= copies ? one : c <= 2 * copies ? other : both;
        whole += column[cell] * column[cell];
      }
      for (int time = 0; time < 2; time++)
        for (int r = 0; r < rank; r++) {
          double shared = 0;
          for (int cell = 0; cell < 9; cell++) shared += basis[r][cell] * column[cell];
          for (int cell = 0; cell < 9; cell++) column[cell] -= shared * basis[r][cell];
        }
      for (int cell = 0; cell < 9; cell++) length += column[cell] * column[cell];
      if (!(length > 1e-9 * whole)) continue;
      for (int cell = 0; cell < 9; cell++) basis[rank][cell] = column[cell] / sqrt(length);
      rank++;
      if (c) kept[mask] |= (uint8_t) (1 << (c - 1));
    }
  }
}

/* Weighted columns, their digits and their sums with every variant alone. */
static weft_status send_columns(weft_ctx *ctx, screen *s)
{
  weft_status st = WEFT_OK;
  const weft_scan_job *job = s->job;
  const size_t n = job->variants.n, all = 1 + job->k + job->outcomes;
  const cudaStream_t stream = s->mem->stream;
  const unsigned blocks = (unsigned) ((s->stride + 255) / 256);
  const unsigned owners = (s->variants + OWN_AT_ONCE - 1) / OWN_AT_ONCE;
  double *root, *column, *weighted, *own, *squares, *host = NULL;
  scan_column *columns;
  int8_t *digits;
  weft_arena mem = weft_arena_begin(ctx);
  WEFT_DEVICE_TAKE(root, s->mem, n);
  WEFT_DEVICE_TAKE(column, s->mem, n);
  WEFT_DEVICE_TAKE(weighted, s->mem, n);
  WEFT_DEVICE_TAKE(own, s->mem, all * 2 * s->variants);
  WEFT_TRY(weft_device_upload(s->mem, root, n, sizeof *root, weft_fill_doubles, job->root));
  for (size_t l = 0; l < all; l++) {
    WEFT_TRY(weft_poll(ctx, 0, 0));
    if (l)
      WEFT_TRY(weft_device_upload(s->mem, column, n, sizeof *column, weft_fill_doubles,
                                  l <= job->k ? job->basis + (l - 1) * n : job->outcome + (l - 1 - job->k) * n));
    weigh_column<<<blocks, 256, 0, stream>>>(root, l ? column : NULL, n, weighted);
    WEFT_CUDA(cudaGetLastError());
    sum_own<<<owners, 256, 0, stream>>>(s->codes, s->bytes, s->variants, weighted, n, own + l * 2 * s->variants);
    WEFT_CUDA(cudaGetLastError());
    if (s->columns[l].slot < 0) continue;
    WEFT_DEVICE_TAKE(digits, s->mem, (size_t) s->columns[l].digits * s->stride);
    s->digits_of[l] = digits;
    make_digits<<<blocks, 256, 0, stream>>>(weighted, n, s->columns[l].step, l ? (int) s->tile.base : 255,
                                            s->columns[l].digits, digits, s->stride);
    WEFT_CUDA(cudaGetLastError());
  }
  WEFT_TRY(weft_device_send(s->mem, s->columns, all, &columns));
  WEFT_TAKE0(host, &mem, job->outcomes);
  for (size_t e = 0; e < job->outcomes; e++)
    for (size_t i = 0; i < n; i++) host[e] += job->outcome[i + e * n] * job->outcome[i + e * n];
  WEFT_TRY(weft_device_send(s->mem, host, job->outcomes, &squares));
  s->tile.own = own;
  s->tile.columns = columns;
  s->tile.squares = squares;
done:
  weft_arena_end(&mem);
  return st;
}

/* Which pairs are searched, and where what passes goes. */
static weft_status send_rest(weft_ctx *ctx, weft_arena *host, screen *s)
{
  weft_status st = WEFT_OK;
  const weft_scan_job *job = s->job;
  const size_t p = job->variants.p;
  uint8_t *side, kept[WEFT_SCAN_MASKS], *kept_there;
  uint32_t *chromosome;
  double *position;
  int32_t *sums;
  int8_t *panel;
  scan_tile *t = &s->tile;
  if (job->side) {
    WEFT_TRY(weft_device_send(s->mem, job->side, p, &side));
    t->side = side;
  }
  if (job->near.chromosome) {
    WEFT_TRY(weft_device_send(s->mem, job->near.chromosome, p, &chromosome));
    WEFT_TRY(weft_device_send(s->mem, job->near.position, p, &position));
    t->chromosome = chromosome;
    t->position = position;
    t->distance = job->near.distance;
  }
  find_kept(s->copies, kept);
  WEFT_TRY(weft_device_send(s->mem, kept, WEFT_SCAN_MASKS, &kept_there));
  t->kept = kept_there;
  t->slot_size = (size_t) s->side_a * s->side_b;
  t->ld = s->side_a;
  t->variants = s->variants;
  t->n = (uint32_t) job->variants.n;
  t->k = (uint32_t) job->k;
  t->outcomes = (uint32_t) job->outcomes;
  t->estimated = job->estimated;
  t->all = p;
  t->any = job->top > 0;
  t->threshold = job->min_score > 0 ? job->min_score * (1 - 1e-9) : -INFINITY;
  t->capacity = (uint32_t) (t->slot_size + SPARE_ITEMS);
  s->capacity = t->capacity;
  WEFT_DEVICE_TAKE(sums, s->mem, s->slots * t->slot_size);
  t->sums = sums;
  WEFT_DEVICE_TAKE(t->items, s->mem, t->capacity);
  WEFT_DEVICE_TAKE(t->count, s->mem, 1);
  WEFT_DEVICE_TAKE(t->tested, s->mem, 1);
  WEFT_DEVICE_TAKE(t->least, s->mem, job->outcomes);
  for (int plane = s->copies == 1 ? 0 : 1; plane < 3; plane++) {
    WEFT_DEVICE_TAKE(panel, s->mem, s->rows * s->side_a);
    s->panel_a[plane] = panel;
  }
  WEFT_DEVICE_TAKE(s->panel_b, s->mem, s->rows * s->side_b);
  WEFT_CUDA(cudaMemsetAsync(t->tested, 0, sizeof *t->tested, s->mem->stream));
  WEFT_CUDA(cudaMemsetAsync(t->least, 0, job->outcomes * sizeof *t->least, s->mem->stream));
  WEFT_TAKE(s->pool, host, 2 * s->capacity);
  WEFT_TRY(weft_topk_init(&s->best, host, job->top));
done:
  return st;
}

/* ---- tiles ---- */

static weft_status expand(weft_ctx *ctx, const screen *s, uint32_t first, uint32_t count, size_t row, size_t rows,
                          const int8_t *digits, int plane, int8_t *out)
{
  weft_status st = WEFT_OK;
  const dim3 blocks((unsigned) ((rows / 16 + 255) / 256), count);
  expand_panel<<<blocks, 256, 0, s->mem->stream>>>(s->codes, s->bytes, first, s->variants, row, rows, digits, plane,
                                                   out);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

/* Sums of one digit of a column (NULL: of ones) with the products of genotypes: with copies, or with each pair of
 * numbers of copies. */
static weft_status multiply(weft_ctx *ctx, const screen *s, size_t slot, const int8_t *digits, int by_copies,
                            size_t row, size_t rows)
{
  weft_status st = WEFT_OK;
  const scan_tile *t = &s->tile;
  const int m = (int) round_up(t->count_a, 16), n = (int) round_up(t->count_b, 16), planes = by_copies ? 1 : 2;
  const int32_t one = 1, add = row > 0;
  for (int b = 0; b < planes; b++) {
    WEFT_TRY(expand(ctx, s, t->first_b, (uint32_t) n, row, rows, digits, by_copies ? 0 : 1 + b, s->panel_b));
    for (int a = 0; a < planes; a++)
      BLAS(cublasGemmEx(s->blas, CUBLAS_OP_T, CUBLAS_OP_N, m, n, (int) rows, &one, s->panel_a[by_copies ? 0 : 1 + a],
                        CUDA_R_8I, (int) rows, s->panel_b, CUDA_R_8I, (int) rows, &add,
                        (int32_t *) t->sums + (slot + (size_t) (a + planes * b)) * t->slot_size, CUDA_R_32I,
                        (int) t->ld, CUBLAS_COMPUTE_32I, CUBLAS_GEMM_DEFAULT));
  }
done:
  return st;
}

/* All products of a tile. fresh: its earlier variants are not yet expanded. */
static weft_status multiply_tile(weft_ctx *ctx, const screen *s, int fresh, double done_tiles, double tiles)
{
  weft_status st = WEFT_OK;
  const scan_tile *t = &s->tile;
  const size_t all = 1 + s->job->k + s->job->outcomes;
  const uint32_t wide = (uint32_t) std::min<size_t>(s->side_a, round_up(s->variants - t->first_a, 16));
  int launched = 0;
  for (size_t row = 0; row < s->stride; row += s->rows) {
    const size_t rows = std::min(s->rows, s->stride - row);
    for (int plane = s->copies == 1 ? 0 : 1; (fresh || s->rows < s->stride) && plane < 3; plane++)
      WEFT_TRY(expand(ctx, s, t->first_a, wide, row, rows, NULL, plane, s->panel_a[plane]));
    WEFT_TRY(multiply(ctx, s, 0, NULL, 0, row, rows));
    for (size_t l = 0; l < all; l++) {
      const scan_column *column = &s->columns[l];
      const int by_copies = l > 0 && s->copies == 1;
      if (column->slot < 0) continue;
      for (int d = 0; d < column->digits; d++) {
        WEFT_TRY(multiply(ctx, s, (size_t) (column->slot + d * (by_copies ? 1 : 4)),
                          s->digits_of[l] + (size_t) d * s->stride, by_copies, row, rows));
        if (++launched % POLL_AFTER) continue;
        WEFT_CUDA(cudaStreamSynchronize(s->mem->stream));
        WEFT_TRY(weft_poll(ctx, done_tiles, tiles));
      }
    }
  }
done:
  return st;
}

/* Keeps of the pool what may still be among the best. */
static void shrink_pool(screen *s)
{
  size_t kept = 0;
  for (size_t at = 0; at < s->pooled; at++) {
    const scan_item *item = &s->pool[at];
    if (item->outcome == 0 && s->tile.any && s->job->outcomes == 1 && item->high < s->tile.threshold) continue;
    s->pool[kept++] = *item;
  }
  s->pooled = kept;
}

/* Scores a tile, and fetches what passes. *fine: 0 where that is too much. */
template <int L> static weft_status score(weft_ctx *ctx, screen *s, int *fine)
{
  weft_status st = WEFT_OK;
  scan_tile *t = &s->tile;
  const dim3 blocks((t->count_a + THREADS - 1) / THREADS, t->count_b);
  const cudaStream_t stream = s->mem->stream;
  uint32_t count;
  WEFT_CUDA(cudaMemsetAsync(t->count, 0, sizeof *t->count, stream));
  score_tile<L, false><<<blocks, THREADS, 0, stream>>>(*t);
  WEFT_CUDA(cudaGetLastError());
  score_tile<L, true><<<blocks, THREADS, 0, stream>>>(*t);
  WEFT_CUDA(cudaGetLastError());
  WEFT_CUDA(cudaMemcpyAsync(&count, t->count, sizeof count, cudaMemcpyDeviceToHost, stream));
  WEFT_CUDA(cudaStreamSynchronize(stream));
  if (s->pooled > s->capacity) shrink_pool(s);
  *fine = count <= t->capacity && s->pooled <= s->capacity;
  if (!*fine || !count) goto done;
  WEFT_TRY(weft_device_download(s->mem, s->pool + s->pooled, t->items, count * sizeof *t->items));
  for (size_t at = s->pooled; t->any && at < s->pooled + count; at++)
    if (s->pool[at].outcome == 0) weft_topk_push(&s->best, s->pool[at].low, s->pool[at].index);
  s->pooled += count;
  if (t->any) {
    weft_topk_shrink(&s->best);
    if (s->best.count == s->best.k) t->threshold = fmax(t->threshold, s->best.threshold.score);
  }
done:
  return st;
}

/* Whether a tile has a pair that is searched. */
static bool has_pairs(const screen *s)
{
  const scan_tile *t = &s->tile;
  if (!s->job->side) return true;
  for (uint32_t i = t->first_a; i < t->first_a + t->count_a; i++)
    for (uint32_t j = std::max(i + 1, t->first_b); j < t->first_b + t->count_b; j++)
      if (weft_scan_searches(s->job, s->place[i], s->place[j])) return true;
  return false;
}

/* All tiles of pairs. *fine: 0 where more passes than is kept. */
static weft_status go_through(weft_ctx *ctx, screen *s, int *fine)
{
  weft_status st = WEFT_OK;
  scan_tile *t = &s->tile;
  const double m = s->variants, tiles = fmax(1, m * m / 2 / s->side_a / s->side_b);
  double done_tiles = 0;
  for (t->first_a = 0; *fine && t->first_a < s->variants; t->first_a += s->side_a) {
    int fresh = 1;
    for (t->first_b = t->first_a; *fine && t->first_b < s->variants; t->first_b += s->side_b) {
      t->count_b = std::min(s->side_b, s->variants - t->first_b);
      t->count_a = std::min(s->side_a, t->first_b + t->count_b - t->first_a);
      WEFT_TRY(weft_poll(ctx, fmin(done_tiles, tiles), tiles));
      done_tiles++;
      if (!has_pairs(s)) continue;
      WEFT_TRY(multiply_tile(ctx, s, fresh, fmin(done_tiles, tiles), tiles));
      fresh = 0;
      WEFT_TRY(s->copies == 1 ? score<1>(ctx, s, fine) : score<2>(ctx, s, fine));
    }
  }
done:
  return st;
}

/* What has passed in the end: each pair once. */
static weft_status hand_over(weft_ctx *ctx, const screen *s, weft_arena *mem, weft_scan_screened *out)
{
  weft_status st = WEFT_OK;
  weft_arena own = weft_arena_begin(ctx);
  unsigned long long *least, tested;
  WEFT_TAKE(least, &own, s->job->outcomes);
  WEFT_CUDA(
      cudaMemcpyAsync(least, s->tile.least, s->job->outcomes * sizeof *least, cudaMemcpyDeviceToHost, s->mem->stream));
  WEFT_CUDA(cudaMemcpyAsync(&tested, s->tile.tested, sizeof tested, cudaMemcpyDeviceToHost, s->mem->stream));
  WEFT_CUDA(cudaStreamSynchronize(s->mem->stream));
  WEFT_TAKE(out->index, mem, s->pooled + 1);
  WEFT_TAKE(out->unsure, mem, s->pooled + 1);
  for (size_t at = 0; at < s->pooled; at++) {
    const scan_item *item = &s->pool[at];
    double best;
    if (item->outcome == WEFT_SCAN_UNSURE) {
      out->unsure[out->unsure_count++] = item->index;
      continue;
    }
    memcpy(&best, &least[item->outcome], sizeof best);
    const bool among = item->outcome == 0 && s->tile.any && !(item->high < s->tile.threshold);
    if (among || !(item->high < best)) out->index[out->count++] = item->index;
  }
  std::sort(out->unsure, out->unsure + out->unsure_count);
  std::sort(out->index, out->index + out->count);
  out->count = (size_t) (std::unique(out->index, out->index + out->count) - out->index);
  out->tested = (double) tested;
  out->done = 1;
done:
  weft_arena_end(&own);
  return st;
}

/* weft_mi_ops.scan on the device. Leaves everything to the CPU where it has no room, or too much would pass. */
extern "C" weft_status weft_mi_scan_cuda(weft_ctx *ctx, const weft_scan_job *job, const double *counts, weft_arena *mem,
                                         weft_scan_screened *out)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  weft_device_arena device = weft_device_begin(ctx);
  screen s;
  int fine = 0;
  memset(&s, 0, sizeof s);
  s.job = job;
  s.counts = counts;
  s.copies = job->genotypes ? 2 : 1;
  s.mem = &device;
  if (job->variants.n > WEFT_MI_SCAN_ROWS || job->top > WEFT_MI_SCAN_TOP ||
      job->variants.n < job->k + WEFT_MI_SCAN_ROWS_BEYOND)
    goto done;
  WEFT_TRY(choose_variants(ctx, &host, &s));
  if (s.variants < 2) goto done;
  WEFT_TRY(plan_columns(ctx, &host, &s));
  choose_sides(ctx, &s, &fine);
  if (!fine) goto done;
  if (cublasCreate(&s.blas) != CUBLAS_STATUS_SUCCESS) {
    s.blas = NULL;
    st = blas_error(ctx, CUBLAS_STATUS_NOT_INITIALIZED, __FILE__, __LINE__);
    goto done;
  }
  BLAS(cublasSetStream(s.blas, device.stream));
  WEFT_DEVICE_TAKE(s.codes, &device, (size_t) s.variants * s.bytes);
  WEFT_TRY(weft_device_upload(&device, s.codes, s.variants, s.bytes, fill_codes, &s));
  WEFT_TRY(send_columns(ctx, &s));
  WEFT_TRY(send_rest(ctx, &host, &s));
  WEFT_TRY(go_through(ctx, &s, &fine));
  if (fine) WEFT_TRY(hand_over(ctx, &s, mem, out));
done:
  if (s.blas) {
    cudaStreamSynchronize(device.stream);
    cublasDestroy(s.blas);
  }
  weft_device_end(&device);
  weft_arena_end(&host);
  return st;
}
