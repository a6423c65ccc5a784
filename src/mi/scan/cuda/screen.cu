/* The screen of a scan on a device (score.cuh says what it counts and how exact that is). Genotypes are sent once, in
 * two bits. A tile is a panel of earlier variants, expanded to bytes once, and one of later variants, which are
 * expanded to bytes times one digit of one column, again for each product: cuBLAS multiplies the two panels. When all
 * products of a tile are there, a thread scores a pair: once for the greatest lower bound of every outcome, once to
 * note what may be among the best. Variants without missing genotypes come first; a tile that has others needs more
 * products (gaps.cuh). */
#include <algorithm>
#include <cmath>
#include <cstring>
#include "core/device/device.cuh"
#include "core/device/libraries.cuh"
#include "core/call/parallel.h"
#include "core/numbers/topk.h"
#include "mi/limits.h"
#include "mi/scan/cuda/kernels.cuh"
#include "mi/scan/scan.h"

#define SIDE_A 4096u /* variants of a tile */
#define SIDE_B 1024u
#define ROWS_AT_ONCE ((size_t) 1 << 19)
#define ALIGN 128
#define FEW_DIGITS 5e-3 /* two digits serve U where they leave less than this */
#define ONE_DIGIT 0.5   /* one serves missing genotypes where it leaves less */
#define DIGITS_OF_W 4
#define DIGITS_OF_E 3
#define SPARE_ITEMS 65536u
#define POLL_AFTER 2 /* columns */

static size_t round_up(size_t x, size_t to) { return (x + to - 1) / to * to; }

/* ---- what is sent ---- */

struct screen {
  const weft_scan_job *job;
  const double *counts;
  int copies;               /* columns of a variant: L */
  uint32_t variants, whole; /* the first ones have no missing genotypes */
  double max_missing;       /* of a variant that is here */
  uint32_t *place;
  uint8_t *flipped;     /* the counted allele is the more frequent one */
  size_t stride, bytes; /* rows and bytes of a variant */
  uint32_t side_a, side_b;
  size_t rows;  /* at once */
  size_t slots; /* products of a tile */
  int digits_of_u, lost_digits_of_u;
  scan_column *columns;                            /* host: weights, U, outcomes */
  int8_t **digits_of;                              /* host: of each column; NULL: a constant */
  int8_t *digits_of_leverage, **digits_of_squares; /* of rows of U; host: of each outcome */
  double step_of_u;
  weft_device_arena *mem;
  cublasHandle_t blas;
  uint8_t *codes;
  int8_t *panel_a[PLANES], *panel_b; /* NULL: a plane that is not used */
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

/* Two bits a genotype, copies of the rarer allele or WEFT_GENOTYPE_MISSING, from codes. */
static void pack_codes(const screen *state, uint32_t at, uint8_t *out)
{
  enum { PIECE = 4096 };
  const weft_variants *variants = &state->job->variants;
  uint8_t codes[PIECE];
  for (size_t first = 0; first < variants->n; first += PIECE) {
    const size_t rows = std::min<size_t>(PIECE, variants->n - first);
    weft_variant_read(variants, state->place[at], first, rows, codes);
    for (size_t i = 0; i < rows; i++) {
      const int flipped = state->flipped[at] && codes[i] != WEFT_GENOTYPE_MISSING;
      out[(first + i) / 4] |= (uint8_t) ((flipped ? 2 - codes[i] : codes[i]) << (2 * (i % 4)));
    }
  }
}

/* The same from a .bed file's bytes, where all rows are used. */
static void pack_bytes(const screen *state, uint32_t at, const uint8_t *from, uint8_t *out)
{
  const size_t n = state->job->variants.n;
  uint8_t table[256];
  for (int byte = 0; byte < 256; byte++) {
    table[byte] = 0;
    for (int r = 0; r < 4; r++) {
      const uint8_t one = (uint8_t) byte;
      const int copies = weft_genotype_at(&one, (size_t) r), flipped = state->flipped[at] && copies <= 2;
      table[byte] |= (uint8_t) ((flipped ? 2 - copies : copies) << (2 * r));
    }
  }
  for (size_t k = 0; k < (n + 3) / 4; k++) out[k] = table[from[k]];
  if (n % 4) out[n / 4] &= (uint8_t) ((1 << (2 * (n % 4))) - 1);
}

/* weft_fill of variants. */
static void fill_codes(const void *data, size_t first, size_t count, void *out, int threads)
{
  const screen *state = (const screen *) data;
  const weft_variants *variants = &state->job->variants;
  WEFT_PARALLEL_FOR(threads, static)
  for (int64_t k = 0; k < (int64_t) count; k++) {
    const uint32_t at = (uint32_t) (first + (size_t) k);
    const weft_column *column = variants->columns + state->place[at];
    uint8_t *to = (uint8_t *) out + (size_t) k * state->bytes;
    memset(to, 0, state->bytes);
    if (weft_variants_whole(variants) && column->type == WEFT_COLUMN_GENOTYPE)
      pack_bytes(state, at, (const uint8_t *) column->values, to);
    else
      pack_codes(state, at, to);
  }
}

/* The variants that the device takes, those without missing genotypes first; how many people have one copy and two of
 * each, and how many none that is known. */
static weft_status choose_variants(weft_ctx *ctx, weft_arena *host, screen *state)
{
  weft_status st = WEFT_OK;
  const size_t p = state->job->variants.p;
  uint32_t *ones, *twos, *absent, *sent;
  WEFT_TAKE(state->place, host, p + 1);
  WEFT_TAKE(state->flipped, host, p + 1);
  WEFT_TAKE(ones, host, p + 1);
  WEFT_TAKE(twos, host, p + 1);
  WEFT_TAKE(absent, host, p + 1);
  if (state->job->k <= WEFT_MI_SCAN_GAPS_COLUMNS) state->max_missing = state->job->max_missing;
  for (int incomplete = 0; incomplete < 2; incomplete++) {
    for (size_t j = 0; j < p; j++) {
      const double *count = state->counts + j * WEFT_VARIANT_CODES, missing = count[WEFT_GENOTYPE_MISSING];
      if (incomplete != (missing > 0) || missing > state->max_missing || count[WEFT_VARIANT_OTHER] > 0) continue;
      const uint32_t at = state->variants++;
      state->place[at] = (uint32_t) j;
      state->flipped[at] = count[2] > count[0];
      ones[at] = (uint32_t) count[1];
      twos[at] = (uint32_t) (state->flipped[at] ? count[0] : count[2]);
      absent[at] = (uint32_t) missing;
    }
    if (!incomplete) state->whole = state->variants;
  }
  if (state->variants < 2) goto done;
  WEFT_TRY(weft_device_send(state->mem, ones, state->variants, &sent));
  state->tile.ones = sent;
  WEFT_TRY(weft_device_send(state->mem, twos, state->variants, &sent));
  state->tile.twos = sent;
  WEFT_TRY(weft_device_send(state->mem, absent, state->variants, &sent));
  state->tile.absent = sent;
  WEFT_TRY(weft_device_send(state->mem, state->place, state->variants, &sent));
  state->tile.place = sent;
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

/* Steps, digits and slots of all columns; the first outcome's slots follow the slots of U. */
static weft_status plan_columns(weft_ctx *ctx, weft_arena *host, screen *state)
{
  weft_status st = WEFT_OK;
  const weft_scan_job *job = state->job;
  const size_t n = job->variants.n, terms = (size_t) (state->copies * state->copies);
  const int base = state->copies == 1 ? 127 : 255;
  double *greatest, few = 0, fewest = 0;
  state->slots = 4;
  WEFT_TAKE0(state->columns, host, 1 + job->k + job->outcomes);
  WEFT_TAKE0(state->digits_of, host, 1 + job->k + job->outcomes);
  WEFT_TAKE0(state->digits_of_squares, host, job->outcomes);
  WEFT_TAKE(greatest, host, 1 + job->k + job->outcomes);
  for (size_t i = 0; i < n; i++) state->tile.weighted |= job->root[i] != 1;
  for (size_t l = 0; l < job->k + job->outcomes; l++) {
    const double *column = l < job->k ? job->basis + l * n : job->outcome + (l - job->k) * n;
    WEFT_TRY(weft_poll(ctx, 0, 0));
    greatest[1 + l] = greatest_of(column, job->root, n);
    bool constant = l < job->k && !state->tile.weighted;
    for (size_t i = 1; constant && i < n; i++) constant = fabs(column[i] - column[0]) <= 1e-14 * fabs(column[0]);
    if (constant) {
      state->columns[1 + l].slot = -1;
      state->columns[1 + l].step = column[0];
    } else if (l < job->k) {
      few += pow(greatest[1 + l] / limit_of(base, 2) / 2, 2);
      fewest += pow(greatest[1 + l] / limit_of(base, 1) / 2, 2);
    }
  }
  state->digits_of_u = sqrt(few * (double) n) > FEW_DIGITS ? 3 : 2;
  state->lost_digits_of_u = sqrt(fewest * (double) n) > ONE_DIGIT ? 2 : 1;
  greatest[0] = greatest_of(NULL, job->root, n);
  state->columns[0].slot = -1;
  for (size_t l = 0; l < 1 + job->k + job->outcomes; l++) {
    scan_column *column = &state->columns[l];
    if (l == 0 ? !state->tile.weighted : column->slot < 0) continue;
    column->digits = l == 0 ? DIGITS_OF_W : l <= job->k ? state->digits_of_u : DIGITS_OF_E;
    column->step = greatest[l] / limit_of(l == 0 ? 255 : base, column->digits);
    if (!(column->step > 0)) column->step = 1;
    column->slot = (int) state->slots;
    state->slots += (size_t) column->digits * (l == 0 ? 4 : terms);
    if (l > 0 && l <= job->k) state->step_of_u += column->step * column->step / 4;
  }
  state->tile.base = base;
  state->tile.step_of_u = sqrt(state->step_of_u) * (1 + 1e-6);
  state->tile.step_of_w = state->tile.weighted ? state->columns[0].step / 2 : 0;
done:
  return st;
}

/* Slots for squares. */
static int plan_squares(screen *state, double greatest, double *step)
{
  *step = greatest / limit_of((int) state->tile.base, WEFT_SCAN_SQUARE_DIGITS);
  if (!(*step > 0)) *step = 1;
  state->slots += WEFT_SCAN_SQUARE_DIGITS;
  return (int) state->slots - WEFT_SCAN_SQUARE_DIGITS;
}

/* Slots of products with missing genotypes, behind all others; and U'root. */
static weft_status plan_gaps(weft_ctx *ctx, weft_arena *host, screen *state)
{
  weft_status st = WEFT_OK;
  const weft_scan_job *job = state->job;
  const size_t n = job->variants.n, own = 2 * (size_t) state->copies;
  double *constant, *sent, squares = 0, leverage = 0;
  WEFT_TAKE0(constant, host, job->k + 1);
  state->tile.count_slot = (int) state->slots;
  state->slots += 5;
  for (size_t l = 0; l < 1 + job->k + job->outcomes; l++) {
    scan_column *column = &state->columns[l];
    const size_t products = l == 0 ? 4 : l <= job->k ? own : own + 1;
    if (column->slot < 0) continue;
    column->lost_digits = l > 0 && l <= job->k ? state->lost_digits_of_u : column->digits;
    column->lost_step = column->step * pow(l == 0 ? 255 : state->tile.base, column->digits - column->lost_digits);
    column->lost_slot = (int) state->slots;
    state->slots += (size_t) column->lost_digits * products;
    if (l > 0 && l <= job->k) squares += column->lost_step * column->lost_step / 4;
  }
  state->tile.lost_step_of_u = sqrt(squares) * (1 + 1e-6);
  for (size_t i = 0; i < n; i++) {
    double here = 0;
    for (size_t l = 0; l < job->k; l++) {
      const double u = job->basis[i + l * n];
      here += u * u;
      constant[l] += u * job->root[i];
    }
    leverage = fmax(leverage, here);
  }
  state->tile.leverage_slot = plan_squares(state, leverage, &state->tile.leverage_step);
  for (size_t e = 0; e < job->outcomes; e++) {
    double greatest = 0;
    scan_column *column = &state->columns[1 + job->k + e];
    for (size_t i = 0; i < n; i++) greatest = fmax(greatest, fabs(job->outcome[i + e * n]));
    column->square_slot = plan_squares(state, greatest * greatest, &column->square_step);
  }
  squares = 0;
  for (size_t l = 0; l < job->k; l++) squares += constant[l] * constant[l];
  state->tile.constant_length = sqrt(squares);
  for (size_t l = 0; l < job->k; l++) constant[l] /= state->tile.constant_length;
  WEFT_TRY(weft_device_send(state->mem, constant, job->k, &sent));
  state->tile.constant = sent;
done:
  return st;
}

static bool has_gaps(const screen *state) { return state->whole < state->variants; }

/* The sums of a variant over its missing rows. */
static size_t lost_entries(const weft_scan_job *job)
{
  return job->k * (job->k + 1) / 2 + job->k * job->outcomes + job->outcomes;
}

/* Sides of tiles, such that all fits: 0 in *fits where it does not. */
static void choose_sides(weft_ctx *ctx, screen *state, int *fits)
{
  const size_t n = state->job->variants.n, columns = 1 + state->job->k + state->job->outcomes;
  state->stride = round_up(n, ALIGN);
  state->bytes = state->stride / 4;
  state->rows = std::min(state->stride, ROWS_AT_ONCE);
  state->side_a = (uint32_t) std::min<size_t>(SIDE_A, round_up(state->variants, ALIGN));
  state->side_b = (uint32_t) std::min<size_t>(SIDE_B, round_up(state->variants, ALIGN));
  const double gaps = has_gaps(state) ? 1 : 0;
  const double digits = (double) state->stride * ((double) columns * (4 + 10 * gaps) + 24 + 10 * gaps);
  const double whole = (double) state->variants * ((double) state->bytes + 16 * (double) columns + 40 +
                                                   8 * gaps * (double) lost_entries(state->job)) +
                       digits + 64e6;
  const double room = 0.9 * weft_device_available(ctx) - whole;
  for (*fits = 0; !*fits; state->side_a > state->side_b ? (state->side_a /= 2) : (state->side_b /= 2)) {
    const double area = (double) state->side_a * state->side_b;
    const double takes = (double) state->rows * ((3 + gaps) * state->side_a + state->side_b) +
                         area * 4 * (double) state->slots + sizeof(scan_item) * (area + SPARE_ITEMS);
    if (takes <= room) {
      *fits = 1;
      return;
    }
    if (state->side_a <= ALIGN && state->side_b <= ALIGN) return;
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

/* Digits of squares. */
static weft_status digits_of_squares(weft_ctx *ctx, screen *state, const double *squares, double step, int8_t **out)
{
  weft_status st = WEFT_OK;
  const unsigned blocks = (unsigned) ((state->stride + 255) / 256);
  int8_t *digits;
  WEFT_DEVICE_TAKE(digits, state->mem, WEFT_SCAN_SQUARE_DIGITS * state->stride);
  *out = digits;
  make_digits<<<blocks, 256, 0, state->mem->stream>>>(squares, state->job->variants.n, step, (int) state->tile.base,
                                                      WEFT_SCAN_SQUARE_DIGITS, digits, state->stride);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

/* Sums that missing genotypes need from column l of U and outcomes. `squares`: of U; then of each outcome. */
static weft_status send_gaps(weft_ctx *ctx, screen *state, size_t l, const double *column, double *by_row,
                             double *squares)
{
  weft_status st = WEFT_OK;
  const weft_scan_job *job = state->job;
  const size_t n = job->variants.n;
  if (l >= job->k) WEFT_CUDA(cudaMemsetAsync(squares, 0, n * sizeof *squares, state->mem->stream));
  place_column<<<(unsigned) ((n + 255) / 256), 256, 0, state->mem->stream>>>(column, n, job->k + job->outcomes,
                                                                             by_row + l, squares);
  WEFT_CUDA(cudaGetLastError());
  if (l + 1 == job->k)
    WEFT_TRY(digits_of_squares(ctx, state, squares, state->tile.leverage_step, &state->digits_of_leverage));
  if (l >= job->k)
    WEFT_TRY(digits_of_squares(ctx, state, squares, state->columns[1 + l].square_step,
                               &state->digits_of_squares[l - job->k]));
done:
  return st;
}

/* Sums over the missing rows of every variant. */
static weft_status send_lost(weft_ctx *ctx, screen *state, const double *by_row)
{
  weft_status st = WEFT_OK;
  const weft_scan_job *job = state->job;
  const size_t entries = lost_entries(job);
  double *lost, *lengths;
  WEFT_DEVICE_TAKE(lost, state->mem, entries * state->variants);
  WEFT_DEVICE_TAKE(lengths, state->mem, state->variants);
  WEFT_CUDA(cudaMemsetAsync(lost, 0, entries * state->variants * sizeof *lost, state->mem->stream));
  WEFT_CUDA(cudaMemsetAsync(lengths, 0, state->variants * sizeof *lengths, state->mem->stream));
  sum_lost<<<state->variants - state->whole, LOST_THREADS, 0, state->mem->stream>>>(state->codes, state->bytes,
                                                                                    state->whole, state->variants,
                                                                                    by_row, (uint32_t) job->k,
                                                                                    (uint32_t) job->outcomes, lost,
                                                                                    lengths);
  WEFT_CUDA(cudaGetLastError());
  state->tile.lost = lost;
  state->tile.lost_length = lengths;
done:
  return st;
}

/* Weighted columns, their digits and their sums with every variant alone. */
static weft_status send_columns(weft_ctx *ctx, screen *state)
{
  weft_status st = WEFT_OK;
  const weft_scan_job *job = state->job;
  const size_t n = job->variants.n, all = 1 + job->k + job->outcomes;
  const cudaStream_t stream = state->mem->stream;
  const unsigned blocks = (unsigned) ((state->stride + 255) / 256);
  const unsigned owners = (state->variants + OWN_AT_ONCE - 1) / OWN_AT_ONCE;
  const size_t width = job->k + job->outcomes;
  double *root, *column, *weighted, *own, *squares, *host = NULL, *by_row = NULL, *leverage = NULL;
  scan_column *columns;
  int8_t *digits;
  weft_arena mem = weft_arena_begin(ctx);
  WEFT_DEVICE_TAKE(root, state->mem, n);
  WEFT_DEVICE_TAKE(column, state->mem, n);
  WEFT_DEVICE_TAKE(weighted, state->mem, n);
  WEFT_DEVICE_TAKE(own, state->mem, all * 2 * state->variants);
  WEFT_TRY(weft_device_upload(state->mem, root, n, sizeof *root, weft_fill_doubles, job->root));
  if (has_gaps(state)) {
    WEFT_DEVICE_TAKE(by_row, state->mem, n * width);
    WEFT_DEVICE_TAKE(leverage, state->mem, n);
    WEFT_CUDA(cudaMemsetAsync(leverage, 0, n * sizeof *leverage, stream));
  }
  for (size_t l = 0; l < all; l++) {
    WEFT_TRY(weft_poll(ctx, 0, 0));
    if (l)
      WEFT_TRY(weft_device_upload(state->mem, column, n, sizeof *column, weft_fill_doubles,
                                  l <= job->k ? job->basis + (l - 1) * n : job->outcome + (l - 1 - job->k) * n));
    weigh_column<<<blocks, 256, 0, stream>>>(root, l ? column : NULL, n, weighted);
    WEFT_CUDA(cudaGetLastError());
    sum_own<<<owners, 256, 0, stream>>>(state->codes, state->bytes, state->variants, weighted, n,
                                        own + l * 2 * state->variants);
    WEFT_CUDA(cudaGetLastError());
    if (by_row && l) WEFT_TRY(send_gaps(ctx, state, l - 1, column, by_row, leverage));
    if (state->columns[l].slot < 0) continue;
    WEFT_DEVICE_TAKE(digits, state->mem, (size_t) state->columns[l].digits * state->stride);
    state->digits_of[l] = digits;
    make_digits<<<blocks, 256, 0, stream>>>(weighted, n, state->columns[l].step, l ? (int) state->tile.base : 255,
                                            state->columns[l].digits, digits, state->stride);
    WEFT_CUDA(cudaGetLastError());
  }
  if (by_row) WEFT_TRY(send_lost(ctx, state, by_row));
  WEFT_TRY(weft_device_send(state->mem, state->columns, all, &columns));
  WEFT_TAKE0(host, &mem, job->outcomes);
  for (size_t e = 0; e < job->outcomes; e++)
    for (size_t i = 0; i < n; i++) host[e] += job->outcome[i + e * n] * job->outcome[i + e * n];
  WEFT_TRY(weft_device_send(state->mem, host, job->outcomes, &squares));
  state->tile.own = own;
  state->tile.columns = columns;
  state->tile.squares = squares;
done:
  weft_arena_end(&mem);
  return st;
}

/* Which pairs are searched, and where what passes goes. */
static weft_status send_rest(weft_ctx *ctx, weft_arena *host, screen *state)
{
  weft_status st = WEFT_OK;
  const weft_scan_job *job = state->job;
  const size_t p = job->variants.p;
  uint8_t *side, kept[WEFT_SCAN_MASKS], *kept_there;
  uint32_t *chromosome;
  double *position;
  int32_t *sums;
  int8_t *panel;
  scan_tile *part = &state->tile;
  if (job->side) {
    WEFT_TRY(weft_device_send(state->mem, job->side, p, &side));
    part->side = side;
  }
  if (job->near.chromosome) {
    WEFT_TRY(weft_device_send(state->mem, job->near.chromosome, p, &chromosome));
    WEFT_TRY(weft_device_send(state->mem, job->near.position, p, &position));
    part->chromosome = chromosome;
    part->position = position;
    part->distance = job->near.distance;
  }
  find_kept(state->copies, kept);
  WEFT_TRY(weft_device_send(state->mem, kept, WEFT_SCAN_MASKS, &kept_there));
  part->kept = kept_there;
  part->slot_size = (size_t) state->side_a * state->side_b;
  part->ld = state->side_a;
  part->variants = state->variants;
  part->n = (uint32_t) job->variants.n;
  part->k = (uint32_t) job->k;
  part->outcomes = (uint32_t) job->outcomes;
  part->estimated = job->estimated;
  part->all = p;
  part->any = job->top > 0;
  part->threshold = job->min_score > 0 ? job->min_score * (1 - 1e-9) : -INFINITY;
  part->capacity = (uint32_t) (part->slot_size + SPARE_ITEMS);
  state->capacity = part->capacity;
  WEFT_DEVICE_TAKE(sums, state->mem, state->slots * part->slot_size);
  part->sums = sums;
  WEFT_DEVICE_TAKE(part->items, state->mem, part->capacity);
  WEFT_DEVICE_TAKE(part->count, state->mem, 1);
  WEFT_DEVICE_TAKE(part->tested, state->mem, 1);
  WEFT_DEVICE_TAKE(part->least, state->mem, job->outcomes);
  for (int plane = state->copies == 1 ? COPIES : ONE_COPY; plane < (has_gaps(state) ? PLANES : ABSENT); plane++) {
    WEFT_DEVICE_TAKE(panel, state->mem, state->rows * state->side_a);
    state->panel_a[plane] = panel;
  }
  WEFT_DEVICE_TAKE(state->panel_b, state->mem, state->rows * state->side_b);
  WEFT_CUDA(cudaMemsetAsync(part->tested, 0, sizeof *part->tested, state->mem->stream));
  WEFT_CUDA(cudaMemsetAsync(part->least, 0, job->outcomes * sizeof *part->least, state->mem->stream));
  WEFT_TAKE(state->pool, host, 2 * state->capacity);
  WEFT_TRY(weft_topk_init(&state->best, host, job->top));
done:
  return st;
}

/* ---- tiles ---- */

static weft_status expand(weft_ctx *ctx, const screen *state, uint32_t first, uint32_t count, size_t row, size_t rows,
                          const int8_t *digits, int plane, int8_t *out)
{
  weft_status st = WEFT_OK;
  const dim3 blocks((unsigned) ((rows / 16 + 255) / 256), count);
  expand_panel<<<blocks, 256, 0, state->mem->stream>>>(state->codes, state->bytes, first, state->variants, row, rows,
                                                       digits, plane, out);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

/* Which planes of both variants are multiplied, in the order of the slots. */
struct products {
  int count;
  struct {
    int a, b;
  } of[5];
};
static const products by_copies = { 1, { { COPIES, COPIES } } };
static const products by_levels = {
  4, { { ONE_COPY, ONE_COPY }, { TWO_COPIES, ONE_COPY }, { ONE_COPY, TWO_COPIES }, { TWO_COPIES, TWO_COPIES } }
};
static const products lost_copies = { 3, { { COPIES, ABSENT }, { ABSENT, COPIES }, { ABSENT, ABSENT } } };
static const products lost_levels = {
  5, { { ONE_COPY, ABSENT }, { TWO_COPIES, ABSENT }, { ABSENT, ONE_COPY }, { ABSENT, TWO_COPIES }, { ABSENT, ABSENT } }
};
static const products both_absent = { 1, { { ABSENT, ABSENT } } };

/* Some rows of a tile. */
struct tile_rows {
  size_t first, count;
};

/* Sums of one digit of a column (NULL: of ones) with the first `count` products of planes. */
static weft_status multiply(weft_ctx *ctx, const screen *state, int slot, const int8_t *digits, const products *of,
                            int count, tile_rows rows)
{
  weft_status st = WEFT_OK;
  const scan_tile *part = &state->tile;
  const int m = (int) round_up(part->count_a, 16), n = (int) round_up(part->count_b, 16), ld = (int) rows.count;
  const int32_t one = 1, add = rows.first > 0;
  for (int at = 0; at < count; at++) {
    const int a = of->of[at].a, b = of->of[at].b;
    int32_t *out = (int32_t *) part->sums + (size_t) (slot + at) * part->slot_size;
    if (at == 0 || b != of->of[at - 1].b)
      WEFT_TRY(expand(ctx, state, part->first_b, (uint32_t) n, rows.first, rows.count, digits, b, state->panel_b));
    BLAS(weft_blas.gemm_ex(state->blas, CUBLAS_OP_T, CUBLAS_OP_N, m, n, ld, &one, state->panel_a[a], CUDA_R_8I, ld,
                           state->panel_b, CUDA_R_8I, ld, &add, out, CUDA_R_32I, (int) part->ld, CUBLAS_COMPUTE_32I,
                           CUBLAS_GEMM_DEFAULT));
  }
done:
  return st;
}

/* The digits of a column times what is known, and its highest ones times what is missing. */
static weft_status multiply_column(weft_ctx *ctx, const screen *state, size_t l, int gaps, tile_rows rows)
{
  weft_status st = WEFT_OK;
  const scan_column *column = &state->columns[l];
  const bool levels = l == 0 || state->copies == 2;
  const products *known = levels ? &by_levels : &by_copies, *lost = levels ? &lost_levels : &lost_copies;
  const int lost_count = l > state->job->k ? lost->count : lost->count - 1;
  for (int d = 0; d < column->digits; d++) {
    const int8_t *digits = state->digits_of[l] + (size_t) d * state->stride;
    const int place = d - (column->digits - column->lost_digits);
    WEFT_TRY(multiply(ctx, state, column->slot + d * known->count, digits, known, known->count, rows));
    if (gaps && place >= 0)
      WEFT_TRY(multiply(ctx, state, column->lost_slot + place * lost_count, digits, lost, lost_count, rows));
  }
done:
  return st;
}

/* Counts of missing genotypes, and the squares where both are missing. */
static weft_status multiply_absent(weft_ctx *ctx, const screen *state, tile_rows rows)
{
  weft_status st = WEFT_OK;
  const scan_tile *part = &state->tile;
  WEFT_TRY(multiply(ctx, state, part->count_slot, NULL, &lost_levels, lost_levels.count, rows));
  for (int d = 0; d < WEFT_SCAN_SQUARE_DIGITS; d++) {
    const size_t at = (size_t) d * state->stride;
    WEFT_TRY(multiply(ctx, state, part->leverage_slot + d, state->digits_of_leverage + at, &both_absent, 1, rows));
    for (size_t e = 0; e < state->job->outcomes; e++)
      WEFT_TRY(multiply(ctx, state, state->columns[1 + state->job->k + e].square_slot + d,
                        state->digits_of_squares[e] + at, &both_absent, 1, rows));
  }
done:
  return st;
}

/* All products of a tile. fresh: its earlier variants are not yet expanded. */
static weft_status multiply_tile(weft_ctx *ctx, const screen *state, int fresh, int gaps, double done_tiles,
                                 double tiles)
{
  weft_status st = WEFT_OK;
  const scan_tile *part = &state->tile;
  const size_t all = 1 + state->job->k + state->job->outcomes;
  const uint32_t wide = (uint32_t) std::min<size_t>(state->side_a, round_up(state->variants - part->first_a, 16));
  int launched = 0;
  for (size_t row = 0; row < state->stride; row += state->rows) {
    const tile_rows rows = { row, std::min(state->rows, state->stride - row) };
    for (int plane = 0; (fresh || state->rows < state->stride) && plane < PLANES; plane++)
      if (state->panel_a[plane])
        WEFT_TRY(expand(ctx, state, part->first_a, wide, row, rows.count, NULL, plane, state->panel_a[plane]));
    WEFT_TRY(multiply(ctx, state, 0, NULL, &by_levels, by_levels.count, rows));
    if (gaps) WEFT_TRY(multiply_absent(ctx, state, rows));
    for (size_t l = 0; l < all; l++) {
      if (state->columns[l].slot < 0) continue;
      WEFT_TRY(multiply_column(ctx, state, l, gaps, rows));
      if (++launched % POLL_AFTER) continue;
      WEFT_CUDA(cudaStreamSynchronize(state->mem->stream));
      WEFT_TRY(weft_poll(ctx, done_tiles, tiles));
    }
  }
done:
  return st;
}

/* Keeps of the pool what may still be among the best. */
static void shrink_pool(screen *state)
{
  size_t kept = 0;
  for (size_t at = 0; at < state->pooled; at++) {
    const scan_item *item = &state->pool[at];
    if (item->outcome == 0 && state->tile.any && state->job->outcomes == 1 && item->high < state->tile.threshold)
      continue;
    state->pool[kept++] = *item;
  }
  state->pooled = kept;
}

/* Scores a tile, and fetches what passes. *fine: 0 where that is too much. */
template <int L, bool GAPS> static weft_status score(weft_ctx *ctx, screen *state, int *fine)
{
  weft_status st = WEFT_OK;
  scan_tile *part = &state->tile;
  const dim3 blocks((part->count_a + THREADS - 1) / THREADS, part->count_b);
  const cudaStream_t stream = state->mem->stream;
  uint32_t count;
  WEFT_CUDA(cudaMemsetAsync(part->count, 0, sizeof *part->count, stream));
  score_tile<L, GAPS, false><<<blocks, THREADS, 0, stream>>>(*part);
  WEFT_CUDA(cudaGetLastError());
  score_tile<L, GAPS, true><<<blocks, THREADS, 0, stream>>>(*part);
  WEFT_CUDA(cudaGetLastError());
  WEFT_CUDA(cudaMemcpyAsync(&count, part->count, sizeof count, cudaMemcpyDeviceToHost, stream));
  WEFT_CUDA(cudaStreamSynchronize(stream));
  if (state->pooled > state->capacity) shrink_pool(state);
  *fine = count <= part->capacity && state->pooled <= state->capacity;
  if (!*fine || !count) goto done;
  WEFT_TRY(weft_device_download(state->mem, state->pool + state->pooled, part->items, count * sizeof *part->items));
  for (size_t at = state->pooled; part->any && at < state->pooled + count; at++)
    if (state->pool[at].outcome == 0) weft_topk_push(&state->best, state->pool[at].low, state->pool[at].index);
  state->pooled += count;
  if (part->any) {
    weft_topk_shrink(&state->best);
    if (state->best.count == state->best.k) part->threshold = fmax(part->threshold, state->best.threshold.score);
  }
done:
  return st;
}

static weft_status score_any(weft_ctx *ctx, screen *state, int gaps, int *fine)
{
  if (state->copies == 1) return gaps ? score<1, true>(ctx, state, fine) : score<1, false>(ctx, state, fine);
  return gaps ? score<2, true>(ctx, state, fine) : score<2, false>(ctx, state, fine);
}

/* Whether a tile has a pair that is searched. */
static bool has_pairs(const screen *state)
{
  const scan_tile *part = &state->tile;
  if (!state->job->side) return true;
  for (uint32_t i = part->first_a; i < part->first_a + part->count_a; i++)
    for (uint32_t j = std::max(i + 1, part->first_b); j < part->first_b + part->count_b; j++)
      if (weft_scan_searches(state->job, state->place[i], state->place[j])) return true;
  return false;
}

/* All tiles of pairs. *fine: 0 where more passes than is kept. */
static weft_status go_through(weft_ctx *ctx, screen *state, int *fine)
{
  weft_status st = WEFT_OK;
  scan_tile *part = &state->tile;
  const double m = state->variants, tiles = fmax(1, m * m / 2 / state->side_a / state->side_b);
  double done_tiles = 0;
  for (part->first_a = 0; *fine && part->first_a < state->variants; part->first_a += state->side_a) {
    int fresh = 1;
    for (part->first_b = part->first_a; *fine && part->first_b < state->variants; part->first_b += state->side_b) {
      part->count_b = std::min(state->side_b, state->variants - part->first_b);
      part->count_a = std::min(state->side_a, part->first_b + part->count_b - part->first_a);
      WEFT_TRY(weft_poll(ctx, fmin(done_tiles, tiles), tiles));
      done_tiles++;
      if (!has_pairs(state)) continue;
      const int gaps = part->first_b + part->count_b > state->whole;
      WEFT_TRY(multiply_tile(ctx, state, fresh, gaps, fmin(done_tiles, tiles), tiles));
      fresh = 0;
      WEFT_TRY(score_any(ctx, state, gaps, fine));
    }
  }
done:
  return st;
}

/* The pairs that have passed in the end, each once. */
static weft_status hand_over(weft_ctx *ctx, const screen *state, weft_arena *mem, weft_scan_screened *out)
{
  weft_status st = WEFT_OK;
  weft_arena own = weft_arena_begin(ctx);
  unsigned long long *least, tested;
  WEFT_TAKE(least, &own, state->job->outcomes);
  WEFT_CUDA(cudaMemcpyAsync(least, state->tile.least, state->job->outcomes * sizeof *least, cudaMemcpyDeviceToHost,
                            state->mem->stream));
  WEFT_CUDA(cudaMemcpyAsync(&tested, state->tile.tested, sizeof tested, cudaMemcpyDeviceToHost, state->mem->stream));
  WEFT_CUDA(cudaStreamSynchronize(state->mem->stream));
  WEFT_TAKE(out->index, mem, state->pooled + 1);
  WEFT_TAKE(out->unsure, mem, state->pooled + 1);
  for (size_t at = 0; at < state->pooled; at++) {
    const scan_item *item = &state->pool[at];
    double best;
    if (item->outcome == WEFT_SCAN_UNSURE) {
      out->unsure[out->unsure_count++] = item->index;
      continue;
    }
    memcpy(&best, &least[item->outcome], sizeof best);
    const bool among = item->outcome == 0 && state->tile.any && !(item->high < state->tile.threshold);
    if (among || !(item->high < best)) out->index[out->count++] = item->index;
  }
  std::sort(out->unsure, out->unsure + out->unsure_count);
  std::sort(out->index, out->index + out->count);
  out->count = (size_t) (std::unique(out->index, out->index + out->count) - out->index);
  out->tested = (double) tested;
  out->max_missing = state->max_missing;
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
  screen state;
  int fine = 0;
  memset(&state, 0, sizeof state);
  state.job = job;
  state.counts = counts;
  state.copies = job->genotypes ? 2 : 1;
  state.mem = &device;
  if (job->variants.n > WEFT_MI_SCAN_ROWS || job->top > WEFT_MI_SCAN_TOP ||
      job->variants.n < job->k + WEFT_MI_SCAN_ROWS_BEYOND)
    goto done;
  WEFT_TRY(choose_variants(ctx, &host, &state));
  if (state.variants < 2) goto done;
  WEFT_TRY(plan_columns(ctx, &host, &state));
  if (has_gaps(&state)) WEFT_TRY(plan_gaps(ctx, &host, &state));
  choose_sides(ctx, &state, &fine);
  if (!fine) goto done;
  WEFT_TRY(weft_blas_handle(ctx, device.stream, &state.blas));
  WEFT_DEVICE_TAKE(state.codes, &device, (size_t) state.variants * state.bytes);
  WEFT_TRY(weft_device_upload(&device, state.codes, state.variants, state.bytes, fill_codes, &state));
  WEFT_TRY(send_columns(ctx, &state));
  WEFT_TRY(send_rest(ctx, &host, &state));
  WEFT_TRY(go_through(ctx, &state, &fine));
  if (fine) WEFT_TRY(hand_over(ctx, &state, mem, out));
done:
  weft_device_end(&device);
  weft_arena_end(&host);
  return st;
}
