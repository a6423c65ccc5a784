/* Packed matrix products; see pca_gemm.h. Blocks of B (DEPTH × WIDTH) are packed by all threads together, blocks of A
 * (HEIGHT × DEPTH) by the thread that uses them, each into strips that the micro-kernel reads from end to end:
 *
 *   A block: strips of `rows` rows      strip = k0: r0 r1 .. | k1: r0 r1 .. | ...
 *   B block: strips of `cols` columns   strip = k0: c0 c1 .. | k1: c0 c1 .. | ...
 *
 * Threads share the blocks of A, so that the order in which an entry of C is summed depends on DEPTH alone. */
#include <string.h>
#include "../base/arena.h"
#include "../base/parallel.h"
#include "../base/simd.h"
#include "pca_gemm.h"

#define DEPTH 256
#define HEIGHT 192  /* a multiple of all strip heights */
#define WIDTH 1024  /* a multiple of all strip widths */
#define MOST_TILE 192
#define SERIAL_FLOPS 4e5 /* below it, waking threads costs more than they do */

#if defined(__GNUC__)
# define LANES 2
# define VECTORS 2
# define COLS 4
# define KERNEL_NAME(x) portable##x
# define KERNEL_TARGET
# include "pca_kernel.h"
# undef LANES
# undef VECTORS
# undef COLS
# undef KERNEL_NAME
# undef KERNEL_TARGET
#endif
#if WEFT_SIMD_X86
# define LANES 4
# define VECTORS 3
# define COLS 4
# define KERNEL_NAME(x) avx2##x
# define KERNEL_TARGET __attribute__((target("avx2,fma")))
# include "pca_kernel.h"
# undef LANES
# undef VECTORS
# undef COLS
# undef KERNEL_NAME
# undef KERNEL_TARGET
# define LANES 8
# define VECTORS 3
# define COLS 8
# define KERNEL_NAME(x) avx512##x
# define KERNEL_TARGET __attribute__((target("avx512f")))
# include "pca_kernel.h"
# undef LANES
# undef VECTORS
# undef COLS
# undef KERNEL_NAME
# undef KERNEL_TARGET
#endif

typedef struct { int rows, cols; void (*tile)(size_t depth, const double *a, const double *b, double *tile); } kernel;

static kernel best_kernel(void)
{
#if WEFT_SIMD_X86
  kernel avx512 = { 24, 8, avx512_tile }, avx2 = { 12, 4, avx2_tile };
  if (weft_simd_level() == WEFT_SIMD_AVX512) return avx512;
  if (weft_simd_level() == WEFT_SIMD_AVX2 && __builtin_cpu_supports("fma")) return avx2;
#endif
  kernel portable = { 4, 4, portable_tile };
  return portable;
}

static inline double entry(const weft_pca_view *v, size_t i, size_t j)
{
  const size_t at = i + j * v->ld;
  double x = v->single ? (double) ((const float *) v->x)[at] : ((const double *) v->x)[at];
  if (v->center) x -= v->center[j];
  if (v->factor) x *= v->factor[j];
  return v->row ? x * v->row[i] : x;
}

/* Column j of the view, rows i .. i+count-1, to out[0], out[stride], ... */
static void pack_column(const weft_pca_view *v, size_t i, size_t j, size_t count, double *restrict out, size_t stride)
{
  const double *restrict x = (const double *) v->x + i + j * v->ld;
  const double c = v->center ? v->center[j] : 0, f = v->factor ? v->factor[j] : 1;
  if (v->single || v->row) {
    for (size_t r = 0; r < count; r++) out[r * stride] = entry(v, i + r, j);
  } else if (!v->center && !v->factor) {
    for (size_t r = 0; r < count; r++) out[r * stride] = x[r];
  } else {
    for (size_t r = 0; r < count; r++) out[r * stride] = (x[r] - c) * f;
  }
}

/* One strip: rows i .. i+count-1 (at most `high`; the others are zero) of op(view), columns k .. k+depth-1. */
static void pack_strip(const weft_pca_view *v, size_t i, size_t count, size_t high, size_t k, size_t depth, double *out)
{
  if (count < high) memset(out, 0, high * depth * sizeof *out);
  if (v->transposed)
    for (size_t r = 0; r < count; r++) pack_column(v, k, i + r, depth, out + r, high);
  else
    for (size_t d = 0; d < depth; d++) pack_column(v, i, k + d, count, out + d * high, 1);
}

typedef struct { const double *tile; double alpha, beta; double *c; size_t ldc; } target;

static void store_tile(target t, size_t rows, size_t cols, size_t high)
{
  for (size_t j = 0; j < cols; j++) {
    double *restrict c = t.c + j * t.ldc;
    const double *restrict s = t.tile + j * high;
    if (t.beta == 0) for (size_t i = 0; i < rows; i++) c[i] = t.alpha * s[i];
    else for (size_t i = 0; i < rows; i++) c[i] = t.beta * c[i] + t.alpha * s[i];
  }
}

/* A packed block of A times the packed block of B. (i, j): where the block of C begins. */
static void block_product(const kernel *use, const double *a, size_t rows, const double *b, size_t cols, size_t depth,
                          target t, size_t i, size_t j, int lower)
{
  double tile[MOST_TILE] __attribute__((aligned(64)));
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

static size_t least(size_t a, size_t b) { return a < b ? a : b; }
static size_t round_up(size_t a, size_t to) { return (a + to - 1) / to * to; }

weft_status weft_pca_gemm(weft_ctx *ctx, size_t m, size_t n, size_t k, double alpha, const weft_pca_view *a,
                          const weft_pca_view *b, double beta, double *c, size_t ldc, int lower)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const kernel use = best_kernel();
  const size_t high = (size_t) use.rows, wide = (size_t) use.cols;
  const int threads = 2.0 * (double) m * (double) n * (double) k < SERIAL_FLOPS ? 1 : ctx->threads;
  const size_t share = round_up((m + (size_t) threads - 1) / (size_t) threads, high);
  const size_t height = least(HEIGHT, share ? share : high), blocks = (m + height - 1) / height;
  const size_t width = least(WIDTH, round_up(n, wide)), deep = least(DEPTH, k);
  weft_pca_view bt = *b; /* B is packed by its columns */
  double *packed_a, *packed_b;
  bt.transposed = !b->transposed;
  if (!m || !n) return WEFT_OK;
  if (!k) {
    for (size_t j = 0; j < n; j++) for (size_t i = 0; i < m; i++) c[i + j * ldc] = beta == 0 ? 0 : beta * c[i + j * ldc];
    return WEFT_OK;
  }
  WEFT_TAKE(packed_a, &mem, (size_t) threads * height * deep);
  WEFT_TAKE(packed_b, &mem, width * deep);
  for (size_t jc = 0; jc < n; jc += width) {
    const size_t cols = least(width, n - jc);
    for (size_t kc = 0; kc < k; kc += deep) {
      const size_t depth = least(deep, k - kc);
      const target t = { NULL, alpha, kc ? 1 : beta, NULL, ldc };
      WEFT_TRY(weft_poll(ctx, 0, 0));
      WEFT_PARALLEL(threads)
      {
        double *own = packed_a + (size_t) WEFT_THREAD() * height * deep;
        WEFT_FOR(static)
        for (int64_t s = 0; s < (int64_t) ((cols + wide - 1) / wide); s++) {
          const size_t j = (size_t) s * wide;
          pack_strip(&bt, jc + j, least(wide, cols - j), wide, kc, depth, packed_b + j * depth);
        }
        WEFT_FOR(dynamic)
        for (int64_t s = 0; s < (int64_t) blocks; s++) {
          const size_t i = (size_t) s * height, rows = least(height, m - i);
          target at = t;
          if (lower && i + rows <= jc) continue;
          for (size_t r = 0; r < rows; r += high) pack_strip(a, i + r, least(high, rows - r), high, kc, depth, own + r * depth);
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
