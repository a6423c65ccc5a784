/* Moments of cells of one width in one reading of the references, which are not put in order; see kernel_line.h. */
#include <float.h>
#include <string.h>
#include "kernel_line.h"

#define LANES 8
#define POLL_EVERY ((size_t) 1 << 18)
#define ROOM ((size_t) 1 << 17) /* numbers that stay in cache */
#define SLACK 1e-6              /* of a cell's width, by which rounding may put a reference into the one beside it */

typedef struct { double least, most, greatest; } range;

static weft_status find_range(weft_ctx *ctx, const double *x, size_t n, range *out)
{
  weft_status st = WEFT_OK;
  range r = {x[0], x[0], 0};
  for (size_t start = 0; start < n; start += POLL_EVERY) {
    const size_t end = n - start < POLL_EVERY ? n : start + POLL_EVERY;
    WEFT_TRY(weft_poll(ctx, 0, (double) n));
    for (size_t i = start; i < end; i++) {
      r.least = x[i] < r.least ? x[i] : r.least;
      r.most = x[i] > r.most ? x[i] : r.most;
    }
  }
  r.greatest = fmax(fabs(r.least), fabs(r.most));
  *out = r;
done:
  return st;
}

/* basis[t]: u^t exp(-u²/2) / t!. */
VECTORIZE static void find_basis(const double *u, size_t terms, double (*basis)[LANES])
{
  weft_line_bell(u, basis[0]);
  for (size_t t = 1; t < terms; t++)
    for (size_t l = 0; l < LANES; l++) basis[t][l] = basis[t - 1][l] * u[l] * weft_line_over[t - 1];
}

/* Adds w times the basis of up to 8 references to the moments of their cells, and w to these cells' weights. */
static void scatter(const weft_line *line, const double *u, const size_t *cell, const double *w, size_t some,
                    double *weight)
{
  const size_t m = line->m, terms = (size_t) line->form.terms;
  double basis[WEFT_LINE_MOST_TERMS][LANES];
  find_basis(u, terms, basis);
  for (size_t l = 0; l < some; l++) {
    double *total = line->total + cell[l] * line->stride;
    if (m == 1) {
      weight[cell[l]] += w[l];
      for (size_t t = 0; t < terms; t++) total[t] += w[l] * basis[t][l];
      continue;
    }
    for (size_t c = 0; c < m; c++) weight[cell[l] * m + c] += w[l * m + c];
    for (size_t t = 0; t < terms; t++)
      for (size_t c = 0; c < m; c++) total[t * m + c] += w[l * m + c] * basis[t][l];
  }
}

static weft_status add_all(weft_ctx *ctx, const weft_line *line, double least, double width, size_t cells,
                           double *weight)
{
  weft_status st = WEFT_OK;
  const double *x = line->task->reference.x, *w = line->task->weights, per_width = 1 / width;
  double u[LANES] = {0};
  size_t cell[LANES];
  for (size_t i = 0; i < line->n; i += LANES) {
    const size_t some = line->n - i < LANES ? line->n - i : LANES;
    if (i % POLL_EVERY == 0) WEFT_TRY(weft_poll(ctx, (double) i, (double) line->n));
    for (size_t l = 0; l < some; l++) {
      const double at = (x[i + l] - least) * per_width;
      cell[l] = at < (double) cells ? (size_t) at : cells - 1;
      u[l] = (x[i + l] - (least + ((double) cell[l] + 0.5) * width)) * line->per_unit;
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

/* Cells without weight go, and the weights on either side of the ends of the others are summed. */
static void keep_cells(weft_line *line, double least, double width, size_t cells, double *weight)
{
  const size_t m = line->m, stride = line->stride;
  const double half = (0.5 + SLACK) * width;
  for (size_t k = 0; k < cells; k++) {
    const double middle = least + ((double) k + 0.5) * width;
    if (!weighs(weight + k * m, m)) continue;
    line->cell[line->cells] = (weft_line_cell) {.count = 1, .lo = middle - half, .hi = middle + half, .middle = middle,
                                                .reach = half * line->per_unit};
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

weft_status weft_line_scatter(weft_ctx *ctx, weft_arena *mem, const weft_kernel_task *task, weft_line *line, int *done)
{
  weft_status st = WEFT_OK;
  weft_arena scratch = weft_arena_begin(ctx);
  const size_t n = task->reference.n, m = task->m;
  const double width = line->form.width * task->h;
  range r;
  double *weight;
  *done = 0;
  line->task = task, line->n = n, line->m = m, line->most = 1;
  line->per_unit = line->form.scale / task->h;
  line->stride = (size_t) line->form.sides * (size_t) line->form.terms * m;
  WEFT_TRY(find_range(ctx, task->reference.x, n, &r));
  if (!((r.most - r.least) / width < (double) (ROOM / line->stride) - 1)) goto done;
  if (!(r.greatest * DBL_EPSILON < 0.1 * SLACK * width)) goto done;
  const size_t cells = (size_t) ((r.most - r.least) / width) + 1;
  WEFT_TAKE0(line->total, mem, cells * line->stride);
  WEFT_TAKE0(weight, &scratch, cells * m);
  WEFT_TAKE(line->cell, mem, cells);
  WEFT_TAKE(line->left, mem, (cells + 1) * m);
  WEFT_TAKE(line->right, mem, (cells + 1) * m);
  WEFT_TRY(add_all(ctx, line, r.least, width, cells, weight));
  keep_cells(line, r.least, width, cells, weight);
  *done = 1;
done:
  weft_arena_end(&scratch);
  return st;
}
