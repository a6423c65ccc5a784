/* Packed matrix products; see product.h. Blocks of B (DEPTH × WIDTH) are packed by all threads together, blocks of A
 * (HEIGHT × DEPTH) by the thread that uses them, each into strips that the micro-kernel reads from end to end:
 *
 *   A block: strips of `rows` rows      strip = k0: r0 r1 .. | k1: r0 r1 .. | ...
 *   B block: strips of `cols` columns   strip = k0: c0 c1 .. | k1: c0 c1 .. | ...
 *
 * Threads share the blocks of A, so that the order in which an entry of C is summed depends on DEPTH alone. Where C is
 * small and A and B are long, as scores times scores are, threads share runs of SLAB rows of both, whose products are
 * added in their order. */
/* Build: fused. */
#include <string.h>
#include "core/call/arena.h"
#include "core/call/parallel.h"
#include "core/numbers/product.h"
#include "core/call/simd.h"

#define DEPTH 256
#define HEIGHT 192 /* a multiple of all strip heights */
#define WIDTH 1024 /* a multiple of all strip widths */
#define MAX_TILE 192
#define AHEAD 4   /* columns */
#define STRIPS 16 /* of B packed at once, at most */
#ifdef __clang__  /* any permutation of the elements of a vector */
#  define shuffled(x, at) __builtin_ia32_permvardf512(x, at)
#else
#  define shuffled(x, at) __builtin_shuffle(x, at)
#endif

#if defined(__GNUC__)
#  define LANES 2
#  define VECTORS 2
#  define COLS 4
#  define DOTS_X 2
#  define DOTS_U 4
#  define KERNEL_NAME(x) portable##x
#  define KERNEL_TARGET
#  include "core/numbers/product_variant.h"
#endif
#if WEFT_SIMD_X86
#  define LANES 4
#  define VECTORS 3
#  define COLS 4
#  define DOTS_X 3
#  define DOTS_U 4
#  define KERNEL_NAME(x) avx2##x
#  define KERNEL_TARGET __attribute__((target("avx2,fma")))
#  include "core/numbers/product_variant.h"
#  define LANES 8
#  define VECTORS 3
#  define COLS 8
#  define DOTS_X 6
#  define DOTS_U 4
#  define KERNEL_NAME(x) avx512##x
#  define KERNEL_TARGET __attribute__((target("avx512f")))
#  include "core/numbers/product_variant.h"
#endif

static size_t min_of(size_t a, size_t b) { return a < b ? a : b; }
static size_t round_up(size_t a, size_t to) { return (a + to - 1) / to * to; }

typedef struct {
  int rows, cols;    /* of a tile */
  int dots, against; /* columns x and u that `inner` takes at once */
  void (*tile)(size_t depth, const double *a, const double *b, double *tile);
  void (*inner)(size_t depth, const double *const *x, const double *center, const double *const *u, double *out);
  void (*decode)(const weft_coded *coded, size_t i, size_t count, size_t k, size_t depth, double *to, size_t high);
} kernel;

/* Rows i .. i + count - 1, i a multiple of 4, of columns k .. k + depth - 1, each `high` numbers after the one before;
 * there is room for a multiple of 4. */
static void plain_decode(const weft_coded *coded, size_t i, size_t count, size_t k, size_t depth, double *to,
                         size_t high)
{
  for (size_t d = k; d < k + depth; d++, to += high) {
    const uint8_t *bytes = coded->bytes + (size_t) coded->place[d] * coded->stride + i / 4;
    const double *values = coded->values + 4 * d;
    for (size_t r = 0; r < count; r += 4) {
      const int byte = bytes[r / 4];
      to[r] = values[byte & 3];
      to[r + 1] = values[byte >> 2 & 3];
      to[r + 2] = values[byte >> 4 & 3];
      to[r + 3] = values[byte >> 6];
    }
  }
}

#if WEFT_SIMD_X86
/* Two bytes at a time: a permutation of a vector that holds the four values looks up eight. */
__attribute__((target("avx512f"))) static void avx512_decode(const weft_coded *coded, size_t i, size_t count, size_t k,
                                                             size_t depth, double *to, size_t high)
{
  typedef long long whole __attribute__((vector_size(64)));
  typedef double eight __attribute__((vector_size(64)));
  typedef double unaligned __attribute__((vector_size(64), aligned(8)));
  const whole shifts = { 0, 2, 4, 6, 8, 10, 12, 14 };
  const size_t whole_count = count / 8 * 8;
  for (size_t d = k; d < k + depth; d++, to += high) {
    const uint8_t *bytes = coded->bytes + (size_t) coded->place[d] * coded->stride + i / 4;
    const double *values = coded->values + 4 * d;
    const eight table = { values[0], values[1], values[2], values[3], values[0], values[1], values[2], values[3] };
    for (size_t r = 0; r < whole_count; r += 8) {
      const long long two = bytes[r / 4] | bytes[r / 4 + 1] << 8;
      *(unaligned *) (to + r) = shuffled(table, ((whole){ 0 } + two) >> shifts & 3);
    }
    if (whole_count < count) plain_decode(coded, i + whole_count, count - whole_count, d, 1, to + whole_count, 0);
  }
}
#endif

static kernel best_kernel(void)
{
#if WEFT_SIMD_X86
  kernel avx512 = { 24, 8, 6, 4, avx512_tile, avx512_dots, avx512_decode },
         avx2 = { 12, 4, 3, 4, avx2_tile, avx2_dots, plain_decode };
  if (weft_simd_level() == WEFT_SIMD_AVX512) return avx512;
  if (weft_simd_level() == WEFT_SIMD_AVX2 && __builtin_cpu_supports("fma")) return avx2;
#endif
  kernel portable = { 4, 4, 2, 4, portable_tile, portable_dots, plain_decode };
  return portable;
}

#if defined(__GNUC__)
typedef double four __attribute__((vector_size(32), aligned(8)));
#endif

static inline double entry(const weft_view *view, size_t i, size_t j)
{
  const size_t at = i + j * view->ld;
  double x = view->single ? (double) ((const float *) view->x)[at] : ((const double *) view->x)[at];
  if (view->center) x -= view->center[j];
  if (view->factor) x *= view->factor[j];
  return view->row ? x * view->row[i] : x;
}

/* As pack_block() packs. Heights of strips, DEPTH and SLAB are multiples of 4. */
static void pack_coded(const kernel *use, const weft_view *view, size_t i, size_t count, size_t high, size_t k,
                       size_t depth, double *out)
{
  const size_t strip = high * depth, whole = count / high * high;
  double column[DEPTH];
  if (whole < count) memset(out + whole * depth, 0, strip * sizeof *out);
  if (view->transposed) {
    for (size_t r = 0; r < count; r++) {
      double *to = out + r / high * strip + r % high;
      use->decode(view->coded, k, depth, i + r, 1, column, 0);
      for (size_t d = 0; d < depth; d++) to[d * high] = view->row ? column[d] * view->row[k + d] : column[d];
    }
    return;
  }
  for (size_t r = 0; r < count; r += high) {
    const size_t rows = count - r < high ? count - r : high;
    double *to = out + r / high * strip;
    use->decode(view->coded, i + r, rows, k, depth, to, high);
    for (size_t d = 0; view->row && d < depth; d++)
      for (size_t l = 0; l < rows; l++) to[d * high + l] *= view->row[i + r + l];
  }
}

/* Four columns at a time, so that neighbouring addresses are written together. */
static void pack_transposed(const weft_view *view, size_t i, size_t count, size_t high, size_t k, size_t depth,
                            double *out)
{
  size_t r = 0;
  for (; !view->single && !view->row && r + 4 <= count; r += 4) {
    const double *x[4];
    double c[4], f[4];
    for (int l = 0; l < 4; l++) {
      x[l] = (const double *) view->x + k + (i + r + (size_t) l) * view->ld;
      c[l] = view->center ? view->center[i + r + (size_t) l] : 0;
      f[l] = view->factor ? view->factor[i + r + (size_t) l] : 1;
    }
    for (size_t d = 0; d < depth; d++) {
      double *to = out + d * high + r;
      to[0] = (x[0][d] - c[0]) * f[0];
      to[1] = (x[1][d] - c[1]) * f[1];
      to[2] = (x[2][d] - c[2]) * f[2];
      to[3] = (x[3][d] - c[3]) * f[3];
    }
  }
  for (; r < count; r++)
    for (size_t d = 0; d < depth; d++) out[d * high + r] = entry(view, k + d, i + r);
}

/* Rows i .. i+count-1 of op(view), columns k .. k+depth-1, as strips `high` rows high; missing rows are zero. Not
 * transposed, a column of the whole block is read before the next. */
static void pack_block(const kernel *use, const weft_view *view, size_t i, size_t count, size_t high, size_t k,
                       size_t depth, double *out)
{
  const size_t strip = high * depth, whole = count / high * high;
  if (view->coded) {
    pack_coded(use, view, i, count, high, k, depth, out);
    return;
  }
  if (whole < count) memset(out + whole * depth, 0, strip * sizeof *out);
  if (view->transposed) {
    for (size_t r = 0; r < count; r += high)
      pack_transposed(view, i + r, count - r < high ? count - r : high, high, k, depth, out + r * depth);
    return;
  }
  for (size_t d = 0; d < depth; d++) {
    const double *x = (const double *) view->x + i + (k + d) * view->ld;
    const double c = view->center ? view->center[k + d] : 0, f = view->factor ? view->factor[k + d] : 1;
    const double *ahead = d + AHEAD < depth ? x + AHEAD * view->ld : x; /* a run that the processor does not foresee */
    double *to = out + d * high;
    if (view->single || view->row) {
      for (size_t r = 0; r < count; r++) to[r / high * strip + r % high] = entry(view, i + r, k + d);
      continue;
    }
    for (size_t r = 0; r < count; r += high, to += strip) {
      const size_t rows = count - r < high ? count - r : high;
      size_t l = 0;
#if defined(__GNUC__)
      for (size_t line = 0; line < rows; line += 8) __builtin_prefetch(ahead + r + line);
      for (; l + 4 <= rows; l += 4) *(four *) (to + l) = (*(const four *) (x + r + l) - c) * f;
#endif
      for (; l < rows; l++) to[l] = (x[r + l] - c) * f;
    }
  }
}

typedef struct {
  const double *tile;
  double alpha, beta;
  double *c;
  size_t ldc;
} target;

static void store_tile(target t, size_t rows, size_t cols, size_t high)
{
  for (size_t j = 0; j < cols; j++) {
    double *restrict c = t.c + j * t.ldc;
    const double *restrict s = t.tile + j * high;
    if (t.beta == 0)
      for (size_t i = 0; i < rows; i++) c[i] = t.alpha * s[i];
    else
      for (size_t i = 0; i < rows; i++) c[i] = t.beta * c[i] + t.alpha * s[i];
  }
}

/* A packed block of A times the packed block of B. (i, j): where the block of C begins. */
static void block_product(const kernel *use, const double *a, size_t rows, const double *b, size_t cols, size_t depth,
                          target t, size_t i, size_t j, int lower)
{
  double tile[MAX_TILE] __attribute__((aligned(64)));
  const size_t high = (size_t) use->rows, wide = (size_t) use->cols;
  t.tile = tile;
  for (size_t jj = 0; jj < cols; jj += wide)
    for (size_t ii = 0; ii < rows; ii += high) {
      target at = t;
      if (lower && i + ii + high <= j + jj) continue;
      use->tile(depth, a + ii * depth, b + jj * depth, tile);
      at.c = t.c + ii + jj * t.ldc;
      store_tile(at, rows - ii < high ? rows - ii : high, cols - jj < wide ? cols - jj : wide, high);
    }
}

/* ---- few columns against a transposed matrix: nothing needs packing, since both are read along their columns ---- */

#define FEW 64          /* columns of op(B) */
#define ALONG 512       /* rows at a time: what is reused stays in cache */
#define PIECE_FLOPS 1e9 /* between two polls */

typedef struct {
  size_t k;
  double alpha, beta;
  const weft_view *a, *b;
  double *c;
  size_t ldc;
} skinny;

/* Columns i .. i+count-1 (at most `use->dots`) of A against all n of B. */
static void dot_group(const kernel *use, const skinny *job, size_t i, size_t count, size_t n)
{
  const double *x[8], *u[8];
  double center[8], out[32], decoded[6][ALONG];
  const weft_coded *coded = job->a->coded;
  for (size_t kc = 0; kc < job->k; kc += ALONG) {
    const size_t depth = min_of(ALONG, job->k - kc);
    const double beta = kc ? 1 : job->beta;
    for (int view = 0; view < use->dots; view++) {
      const size_t column = i + min_of((size_t) view, count - 1);
      x[view] = coded ? decoded[view] : (const double *) job->a->x + kc + column * job->a->ld;
      center[view] = !coded && job->a->center ? job->a->center[column] : 0;
      if (coded) use->decode(coded, kc, depth, column, 1, decoded[view], 0);
    }
    for (size_t j = 0; j < n; j += (size_t) use->against) {
      const size_t cols = min_of((size_t) use->against, n - j);
      for (int l = 0; l < use->against; l++)
        u[l] = (const double *) job->b->x + kc + (j + min_of((size_t) l, cols - 1)) * job->b->ld;
      use->inner(depth, x, center, u, out);
      for (size_t l = 0; l < cols; l++)
        for (size_t view = 0; view < count; view++) {
          double *c = job->c + i + view + (j + l) * job->ldc;
          const double product = job->alpha * (!coded && job->a->factor ? job->a->factor[i + view] : 1) *
                                 out[view + l * (size_t) use->dots];
          *c = beta == 0 ? product : beta * *c + product;
        }
    }
  }
}

static weft_status skinny_product(weft_ctx *ctx, const kernel *use, const skinny *job, size_t m, size_t n, int threads)
{
  const size_t wide = (size_t) use->dots, groups = (m + wide - 1) / wide;
  const double each = 2.0 * (double) wide * (double) n * (double) job->k;
  const size_t piece = each > PIECE_FLOPS ? 1 : (size_t) (PIECE_FLOPS / each) + 1;
  for (size_t first = 0; first < groups; first += piece * (size_t) threads) {
    const size_t last = min_of(groups, first + piece * (size_t) threads);
    const weft_status st = weft_poll(ctx, 0, 0);
    if (st != WEFT_OK) return st;
    WEFT_PARALLEL_FOR(threads, static)
    for (int64_t g = (int64_t) first; g < (int64_t) last; g++)
      dot_group(use, job, (size_t) g * wide, min_of(wide, m - (size_t) g * wide), n);
  }
  return WEFT_OK;
}

/* ---- a small result of long factors ---- */

#define SLAB ((size_t) 1 << 14)
#define SMALL 256 /* rows and columns of a result, at most */

/* Rows from .. to - 1 of the factors; c: m × n. */
static void slab_product(const kernel *use, const weft_view *a, const weft_view *bt, size_t m, size_t n, size_t from,
                         size_t to, double alpha, int lower, double *packed_a, double *packed_b, double *c)
{
  for (size_t kc = from; kc < to; kc += DEPTH) {
    const size_t depth = min_of(DEPTH, to - kc);
    pack_block(use, bt, 0, n, (size_t) use->cols, kc, depth, packed_b);
    for (size_t i = 0; i < m; i += HEIGHT) {
      const size_t rows = min_of(HEIGHT, m - i);
      const target t = { NULL, alpha, kc > from ? 1 : 0, c + i, m };
      pack_block(use, a, i, rows, (size_t) use->rows, kc, depth, packed_a);
      block_product(use, packed_a, rows, packed_b, n, depth, t, i, 0, lower);
    }
  }
}

/* For a small m × n result of long factors (k): threads share runs of SLAB terms instead of rows of the result, and
 * their partial results are added in the order of the runs. So the sum depends on neither threads nor timing. */
static weft_status deep_product(weft_ctx *ctx, const kernel *use, const weft_view *a, const weft_view *bt, size_t m,
                                size_t n, size_t k, double alpha, double beta, double *c, size_t ldc, int lower,
                                int threads)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t slabs = (k + SLAB - 1) / SLAB, room_a = HEIGHT * DEPTH,
               room = room_a + round_up(n, (size_t) use->cols) * DEPTH;
  double *packed, *parts;
  WEFT_TAKE(packed, &mem, (size_t) threads * room);
  WEFT_TAKE0(parts, &mem, (size_t) threads * m * n);
  for (size_t first = 0; first < slabs; first += (size_t) threads) {
    const size_t last = min_of(slabs, first + (size_t) threads);
    WEFT_TRY(weft_poll(ctx, 0, 0));
    WEFT_PARALLEL(threads)
    {
      double *own = packed + (size_t) WEFT_THREAD() * room;
      WEFT_FOR(static)
      for (int64_t s = (int64_t) first; s < (int64_t) last; s++)
        slab_product(use, a, bt, m, n, (size_t) s * SLAB, min_of(k, ((size_t) s + 1) * SLAB), alpha, lower, own,
                     own + room_a, parts + ((size_t) s - first) * m * n);
    }
    for (size_t s = first; s < last; s++) {
      const target t = { parts + (s - first) * m * n, 1, s ? 1 : beta, c, ldc };
      store_tile(t, m, n, m);
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}

static void scale_columns(size_t m, size_t n, double by, double *c, size_t ldc)
{
  for (size_t j = 0; j < n; j++)
    for (size_t i = 0; i < m; i++) c[i + j * ldc] = by == 0 ? 0 : by * c[i + j * ldc];
}

/* Packs panels of A and B that fit the caches, with centring and scaling applied on the way, and multiplies them by the
 * processor's best tile. Threads share rows of C; terms are added in the same order whatever their number. Thin and
 * deep shapes go to skinny_product() and deep_product(); this is where that is decided. */
weft_status weft_product(weft_ctx *ctx, size_t m, size_t n, size_t k, double alpha, const weft_view *a,
                         const weft_view *b, double beta, double *c, size_t ldc, int lower)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const kernel use = best_kernel();
  const size_t high = (size_t) use.rows, wide = (size_t) use.cols;
  const int threads = weft_threads_worth(ctx->threads, (double) m * (double) n * (double) k / 20);
  const size_t share = round_up((m + (size_t) threads - 1) / (size_t) threads, high);
  const size_t height = min_of(HEIGHT, share ? share : high), blocks = (m + height - 1) / height;
  const size_t width = min_of(WIDTH, round_up(n, wide)), deep = min_of(DEPTH, k);
  weft_view bt = *b; /* B is packed by its columns */
  double *packed_a, *packed_b;
  bt.transposed = !b->transposed;
  if (!m || !n) return WEFT_OK;
  if (!k) {
    scale_columns(m, n, beta, c, ldc);
    return WEFT_OK;
  }
  if (a->transposed && !b->transposed && n <= FEW && !a->single && !a->row && !b->single && !b->center && !b->factor &&
      !b->row && !b->coded) {
    const skinny s = { k, alpha, beta, a, b, c, ldc };
    return skinny_product(ctx, &use, &s, m, n, threads);
  }
  if (k >= 4 * SLAB && m <= SMALL && n <= SMALL)
    return deep_product(ctx, &use, a, &bt, m, n, k, alpha, beta, c, ldc, lower, threads);
  WEFT_TAKE(packed_a, &mem, (size_t) threads * height * deep);
  WEFT_TAKE(packed_b, &mem, width * deep);
  for (size_t jc = 0; jc < n; jc += width) {
    const size_t cols = min_of(width, n - jc);
    /* what a thread packs at once: a longer run of each column, of which a strip's part is hardly a line of cache */
    const size_t strips = min_of(STRIPS * wide, round_up((cols + (size_t) threads - 1) / (size_t) threads, wide));
    for (size_t kc = 0; kc < k; kc += deep) {
      const size_t depth = min_of(deep, k - kc);
      const target t = { NULL, alpha, kc ? 1 : beta, NULL, ldc };
      WEFT_TRY(weft_poll(ctx, 0, 0));
      WEFT_PARALLEL(threads)
      {
        double *own = packed_a + (size_t) WEFT_THREAD() * height * deep;
        WEFT_FOR(static)
        for (int64_t s = 0; s < (int64_t) ((cols + strips - 1) / strips); s++) {
          const size_t j = (size_t) s * strips;
          pack_block(&use, &bt, jc + j, min_of(strips, cols - j), wide, kc, depth, packed_b + j * depth);
        }
        WEFT_FOR(dynamic)
        for (int64_t s = 0; s < (int64_t) blocks; s++) {
          const size_t i = (size_t) s * height, rows = min_of(height, m - i);
          target at = t;
          if (lower && i + rows <= jc) continue;
          pack_block(&use, a, i, rows, high, kc, depth, own);
          at.c = c + i + jc * ldc;
          block_product(&use, own, rows, packed_b, cols, depth, at, i, jc, lower);
        }
      }
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}

#define SQUARE 32 /* a square and its mirror image stay in cache */

weft_status weft_symmetric(weft_ctx *ctx, const double *x, size_t p, int *yes)
{
  *yes = 1;
  for (size_t jc = 0; jc < p && *yes; jc += SQUARE) {
    const size_t last = min_of(jc + SQUARE, p);
    const weft_status st = weft_poll(ctx, (double) jc, (double) p);
    if (st != WEFT_OK) return st;
    for (size_t ic = jc; ic < p && *yes; ic += SQUARE)
      for (size_t j = jc; j < last; j++)
        for (size_t i = ic > j ? ic : j; i < min_of(ic + SQUARE, p); i++) *yes &= x[i + j * p] == x[j + i * p];
  }
  return WEFT_OK;
}
