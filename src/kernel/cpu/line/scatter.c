/* Moments of cells of one width in one reading of the references, which are not put in order; see line.h. */
#include <float.h>
#include <string.h>
#include "core/call/parallel.h"
#include "core/call/simd.h"
#include "kernel/cpu/line/line.h"
#include "kernel/cpu/line/build.h"
#include "kernel/cpu/line/forms.h"
#include "kernel/cpu/line/scatter.h"
#include "kernel/cpu/points.h"

#define LANES 8
#define POLL_EVERY ((size_t) 1 << 18)
#define PARTS 8                 /* of the references, each with moments of its own, that threads share; */
#define EACH ((size_t) 1 << 16) /* that a part reads at a time */
#define ROOM ((size_t) 1 << 17) /* numbers that stay in cache */
#define SLACK 1e-6              /* of a cell's width, by which rounding may put a reference into the one beside it */

/* ---- references of one column of weights ----
 *
 * Powers of u are taken four at a time, so that a reference adds vectors to the moments of its cell; these are divided
 * by t! when all have been added. `padded`: terms, filled up to fours. */

typedef double four __attribute__((vector_size(32), aligned(8)));

#define TO_WHOLE 6755399441055744.0 /* 1.5 * 2^52: added and taken off again, it rounds */

/* exp(s), s from -2^-8 to 0: the next term is below 1e-17. */
#define EXP_OF_SMALL(s) (1 + s * (1 + s * (0.5 + s * (1.0 / 6 + s * (1.0 / 24 + s * (1.0 / 120))))))

/* Adds 8 references to the moments of their cells: weight times bell times powers of u go to sum[cell * padded ..],
 * weights to weight[cell]. w: NULL for weights of 1. */
__attribute__((always_inline)) static inline void add_eight(const double *restrict x, const double *restrict w,
                                                            double least, double per_width, double width,
                                                            double per_unit, size_t padded, double *restrict sum,
                                                            double *restrict weight)
{
  double u[LANES], bell[LANES], cell[LANES];
  for (int lane = 0; lane < LANES; lane += 4) {
    const four from = *(const four *) (x + lane) - least, at = (from * per_width - 0.5 + TO_WHOLE) - TO_WHOLE;
    const four v = (from - (at + 0.5) * width) * per_unit, s = -0.5 * v * v;
    *(four *) (cell + lane) = at, *(four *) (u + lane) = v, *(four *) (bell + lane) = EXP_OF_SMALL(s);
  }
  for (int lane = 0; lane < LANES; lane++) {
    const double square = u[lane] * u[lane], own = w ? w[lane] : 1;
    const size_t k = (size_t) (int64_t) cell[lane];
    four power = (four){ 1, u[lane], square, square * u[lane] } * (bell[lane] * own);
    double *to = sum + k * padded;
    weight[k] += own;
    for (size_t term = 0; term < padded; term += 4) {
      *(four *) (to + term) += power;
      power *= square * square;
    }
  }
}

/* The whole eights of n references. */
typedef void add_eights(const double *x, const double *w, size_t n, double least, double width, double per_unit,
                        size_t padded, double *sum, double *weight);

#define ADD_EIGHTS(name, target) \
  target static void name(const double *x, const double *w, size_t n, double least, double width, double per_unit, \
                          size_t padded, double *sum, double *weight) \
  { \
    if (padded == 8) /* 5 to 8 terms, as usual: without a loop */ \
      for (size_t i = 0; i + LANES <= n; i += LANES) \
        add_eight(x + i, w ? w + i : NULL, least, 1 / width, width, per_unit, 8, sum, weight); \
    else \
      for (size_t i = 0; i + LANES <= n; i += LANES) \
        add_eight(x + i, w ? w + i : NULL, least, 1 / width, width, per_unit, padded, sum, weight); \
  }
ADD_EIGHTS(add_portable, )
#if WEFT_SIMD_X86
ADD_EIGHTS(add_avx2, __attribute__((target("avx2"))))
#endif

/* How many parts the references are in, by their number and the room that moments take, whatever the threads. */
static size_t parts_of(size_t n, size_t numbers)
{
  size_t parts = (n + EACH - 1) / EACH;
  parts = parts < PARTS ? parts : PARTS;
  while (parts > 1 && parts * numbers > 4 * ROOM) parts /= 2;
  return parts ? parts : 1;
}

/* The moments of all references for one column of weights, in vectors: moments of each cell as powers, padded to fours,
 * are divided by t! at the end. Parts of the references are summed apart, then added in order. The last references go
 * through a copy that is filled up with points of weight 0. */
static weft_status add_column(weft_ctx *ctx, weft_line *line, double least, double width, size_t cells, double *weight)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t terms = (size_t) line->form.terms, padded = (terms + 3) / 4 * 4, n = line->n;
  const size_t whole = n / LANES * LANES, parts = parts_of(n, cells * padded);
  const double *x = line->task->reference.x, *w = line->task->weights;
  add_eights *add = add_portable;
  double *sum, *weights, rest_x[LANES], rest_w[LANES] = { 0 }, over = 1;
#if WEFT_SIMD_X86
  if (weft_simd_level() >= WEFT_SIMD_AVX2) add = add_avx2;
#endif
  WEFT_TAKE0(sum, &mem, parts * cells * padded);
  WEFT_TAKE0(weights, &mem, parts * cells);
  for (size_t first = 0; first < whole; first += parts * EACH) {
    WEFT_TRY(weft_poll(ctx, (double) first, (double) n));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, 5 * (double) (whole - first)), static)
    for (size_t k = 0; k < parts; k++) {
      const size_t i = first + k * EACH, left = i < whole ? whole - i : 0;
      if (left)
        add(x + i, w ? w + i : NULL, left < EACH ? left : EACH, least, width, line->per_unit, padded,
            sum + k * cells * padded, weights + k * cells);
    }
  }
  /* the rest, completed by points without weight */
  for (size_t lane = 0, i = n / LANES * LANES; lane < LANES; lane++, i++) {
    rest_x[lane] = i < n ? x[i] : least;
    rest_w[lane] = i < n ? (w ? w[i] : 1) : 0;
  }
  add(rest_x, rest_w, LANES, least, width, line->per_unit, padded, sum, weights);
  for (size_t part = 1; part < parts; part++)
    for (size_t k = 0; k < cells * padded; k++) sum[k] += sum[part * cells * padded + k];
  for (size_t part = 0; part < parts; part++)
    for (size_t k = 0; k < cells; k++) weight[k] += weights[part * cells + k];
  for (size_t term = 0; term < terms; over /= (double) ++term)
    for (size_t k = 0; k < cells; k++) line->total[k * line->stride + term] = sum[k * padded + term] * over;
done:
  weft_arena_end(&mem);
  return st;
}

/* ---- of several columns ---- */

/* basis[t]: u^t exp(-u²/2) / t!. */
VECTORIZE static void find_basis(const double *u, size_t terms, double (*basis)[LANES])
{
  weft_line_bell(u, basis[0]);
  for (size_t term = 1; term < terms; term++)
    for (size_t lane = 0; lane < LANES; lane++)
      basis[term][lane] = basis[term - 1][lane] * u[lane] * weft_line_over[term - 1];
}

/* Adds w times the basis of up to 8 references to the moments of their cells, and w to these cells' weights. */
static void scatter(const weft_line *line, const double *u, const size_t *cell, const double *w, size_t some,
                    double *weight)
{
  const size_t m = line->m, terms = (size_t) line->form.terms;
  double basis[WEFT_LINE_MAX_TERMS][LANES];
  find_basis(u, terms, basis);
  for (size_t lane = 0; lane < some; lane++) {
    double *total = line->total + cell[lane] * line->stride;
    for (size_t c = 0; c < m; c++) weight[cell[lane] * m + c] += w[lane * m + c];
    for (size_t term = 0; term < terms; term++)
      for (size_t c = 0; c < m; c++) total[term * m + c] += w[lane * m + c] * basis[term][lane];
  }
}

/* The moments of all references and columns, for any number of columns: each reference is put in its cell of `width`,
 * the first of which begins at `least`. Adds to line->total and to weight (cells * m). */
static weft_status add_all(weft_ctx *ctx, const weft_line *line, double least, double width, size_t cells,
                           double *weight)
{
  weft_status st = WEFT_OK;
  const double *x = line->task->reference.x, *w = line->task->weights, per_width = 1 / width;
  double u[LANES] = { 0 };
  size_t cell[LANES];
  for (size_t i = 0; i < line->n; i += LANES) {
    const size_t some = line->n - i < LANES ? line->n - i : LANES;
    if (i % POLL_EVERY == 0) WEFT_TRY(weft_poll(ctx, (double) i, (double) line->n));
    for (size_t lane = 0; lane < some; lane++) {
      const double at = (x[i + lane] - least) * per_width;
      cell[lane] = at < (double) cells ? (size_t) at : cells - 1;
      u[lane] = (x[i + lane] - (least + ((double) cell[lane] + 0.5) * width)) * line->per_unit;
    }
    scatter(line, u, cell, w + i * line->m, some, weight);
  }
done:
  return st;
}

static int weighs(const double *weight, size_t m)
{
  for (size_t c = 0; c < m; c++)
    if (weight[c] > 0) return 1;
  return 0;
}

/* Cells without weight are removed, and the weights on either side of the ends of the others are summed. */
static void keep_cells(weft_line *line, double least, double width, size_t cells, double *weight)
{
  const size_t m = line->m, stride = line->stride;
  const double half = (0.5 + SLACK) * width;
  for (size_t k = 0; k < cells; k++) {
    const double middle = least + ((double) k + 0.5) * width;
    if (!weighs(weight + k * m, m)) continue;
    line->cell[line->cells] = (weft_line_cell){
      .count = 1, .lo = middle - half, .hi = middle + half, .middle = middle, .reach = half * line->per_unit
    };
    memmove(line->total + line->cells * stride, line->total + k * stride, stride * sizeof *line->total);
    memmove(weight + line->cells * m, weight + k * m, m * sizeof *weight);
    line->cells++;
  }
  for (size_t c = 0; c < m; c++) {
    double sum = 0;
    line->left[c] = 0;
    for (size_t k = 0; k < line->cells; k++) line->left[(k + 1) * m + c] = sum += weight[k * m + c];
    sum = 0;
    line->right[line->cells * m + c] = 0;
    for (size_t k = line->cells; k-- > 0;) line->right[k * m + c] = sum += weight[k * m + c];
  }
}

/* Cells of equal width from the least reference on, their moments added in the order in which references come. */
weft_status weft_line_scatter(weft_ctx *ctx, weft_arena *mem, const weft_kernel_task *task, weft_line *line, int *done)
{
  weft_status st = WEFT_OK;
  weft_arena scratch = weft_arena_begin(ctx);
  const size_t n = task->reference.n, m = task->m;
  const double width = line->form.width * task->h;
  double range[3], *weight;
  *done = 0;
  line->task = task, line->n = n, line->m = m, line->most = 1;
  line->per_unit = line->form.scale / task->h;
  line->stride = (size_t) line->form.sides * (size_t) line->form.terms * m;
  if (!task->range) WEFT_TRY(weft_points_facts(ctx, task->reference.x, n, 1, range, NULL));
  const double least = task->range ? task->range[0] : range[0], most = task->range ? task->range[1] : range[1];
  if (!((most - least) / width < (double) (ROOM / line->stride) - 1)) goto done;
  if (!(fmax(fabs(least), fabs(most)) * DBL_EPSILON < 0.1 * SLACK * width)) goto done;
  const size_t cells = (size_t) ((most - least) / width) + 2; /* the last only because of rounding */
  WEFT_TAKE0(line->total, mem, cells * line->stride);
  WEFT_TAKE0(weight, &scratch, cells * m);
  WEFT_TAKE(line->cell, mem, cells);
  WEFT_TAKE(line->left, mem, (cells + 1) * m);
  WEFT_TAKE(line->right, mem, (cells + 1) * m);
  if (m == 1)
    WEFT_TRY(add_column(ctx, line, least, width, cells, weight));
  else
    WEFT_TRY(add_all(ctx, line, least, width, cells, weight));
  keep_cells(line, least, width, cells, weight);
  *done = 1;
done:
  weft_arena_end(&scratch);
  return st;
}
