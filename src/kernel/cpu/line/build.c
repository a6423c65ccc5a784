/* The order of the references on a line, their cells, and the moments of these; see line.h. */
#include <string.h>
#include "core/call/parallel.h"
#include "kernel/cpu/line/line.h"
#include "kernel/cpu/line/build.h"
#include "kernel/cpu/line/forms.h"
#include "kernel/both/scalar.h"

#define LANES 8
#define RUN ((size_t) 512) /* references whose moments are added uncompensated before they join a total */
#define WHOLE_CELL 65536   /* references of a cell at most, but where cells would be more than 64 */
#define CELLS_AT_ONCE 64
#define DIGIT 11

/* ---- order ---- */

/* Whole numbers in the same order as the doubles. */
static uint64_t key_of(double x)
{
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

typedef struct {
  uint64_t key;
  uint32_t at;
} keyed;

static void sort_by_digit(const keyed *from, keyed *to, size_t n, const size_t *count, int shift)
{
  size_t start[1 << DIGIT], sum = 0;
  for (int k = 0; k < 1 << DIGIT; k++) start[k] = sum, sum += count[k];
  for (size_t i = 0; i < n; i++) to[start[from[i].key >> shift & ((1 << DIGIT) - 1)]++] = from[i];
}

/* By digits of 11 bits, the lowest first; those that all keys share cost nothing. */
static weft_status sort_all(weft_ctx *ctx, const double *x, size_t n, uint32_t *order)
{
  enum { DIGITS = (64 + DIGIT - 1) / DIGIT };
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  keyed *from, *to;
  size_t *count;
  WEFT_TAKE(from, &mem, n);
  WEFT_TAKE(to, &mem, n);
  WEFT_TAKE0(count, &mem, (size_t) DIGITS << DIGIT);
  for (size_t i = 0; i < n; i++) {
    from[i].key = key_of(x[i]), from[i].at = (uint32_t) i;
    for (int k = 0; k < DIGITS; k++) count[((size_t) k << DIGIT) + (from[i].key >> k * DIGIT & ((1 << DIGIT) - 1))]++;
  }
  for (int k = 0; k < DIGITS; k++) {
    const size_t *own = count + ((size_t) k << DIGIT);
    WEFT_TRY(weft_poll(ctx, k, DIGITS));
    if (own[from[0].key >> k * DIGIT & ((1 << DIGIT) - 1)] == n) continue;
    sort_by_digit(from, to, n, own, k * DIGIT);
    keyed *swap = from;
    from = to, to = swap;
  }
  for (size_t i = 0; i < n; i++) order[i] = from[i].at;
done:
  weft_arena_end(&mem);
  return st;
}

/* By cells of equal width alone, which is quicker than sorting, where these are not many more than the references; the
 * ends of the cells go to `ends`. *done = 0: nothing was done. */
static weft_status sort_by_cells(weft_ctx *ctx, const weft_line *line, double width, uint32_t *order, uint32_t *ends,
                                 size_t room, size_t *done)
{
  weft_status st = WEFT_OK;
  const double *x = line->task->reference.x, per_width = 1 / width;
  const size_t n = line->n;
  double least = x[0], most = x[0];
  *done = 0;
  for (size_t i = 0; i < n; i++) least = x[i] < least ? x[i] : least, most = x[i] > most ? x[i] : most;
  if (!((most - least) * per_width < (double) room - 2)) goto done;
  const size_t cells = (size_t) ((most - least) * per_width) + 1;
  WEFT_TRY(weft_poll(ctx, 0, 1));
  memset(ends, 0, cells * sizeof *ends);
  for (size_t i = 0; i < n; i++) ends[(size_t) ((x[i] - least) * per_width)]++;
  uint32_t sum = 0;
  for (size_t k = 0; k < cells; k++) {
    const uint32_t count = ends[k];
    ends[k] = sum, sum += count;
  }
  WEFT_TRY(weft_poll(ctx, 0, 1));
  for (size_t i = 0; i < n; i++) order[ends[(size_t) ((x[i] - least) * per_width)]++] = (uint32_t) i;
  *done = cells;
done:
  return st;
}

/* ---- cells ---- */

static void store_cell(weft_line *line, size_t first, size_t end)
{
  weft_line_cell *c = line->cell + line->cells;
  *c = (weft_line_cell){
    .first = first, .count = end - first, .block = line->blocks, .lo = line->x[first], .hi = line->x[first]
  };
  for (size_t i = first; i < end; i++) {
    if (line->x[i] < c->lo) c->lo = line->x[i];
    if (line->x[i] > c->hi) c->hi = line->x[i];
  }
  c->middle = c->lo + (c->hi - c->lo) / 2;
  c->reach = fmax(c->hi - c->middle, c->middle - c->lo) * line->per_unit;
  if (c->count > line->most) line->most = c->count;
  line->cells++;
  line->blocks += (c->count + WEFT_LINE_BLOCK - 1) / WEFT_LINE_BLOCK;
}

/* Cells begin where the last one has its width, or many references. ends: NULL, or the ends of cells in order. */
static weft_status find_cells(weft_ctx *ctx, weft_arena *mem, weft_line *line, double width, const uint32_t *ends,
                              size_t ended)
{
  weft_status st = WEFT_OK;
  const size_t n = line->n, most = n / 64 > WHOLE_CELL ? n / 64 : WHOLE_CELL;
  for (int store = 0; store < 2; store++) {
    size_t cells = 0, first = 0, known = 0;
    WEFT_TRY(weft_poll(ctx, store, 2));
    while (first < n) {
      size_t end = first + 1;
      if (ends) {
        while (known < ended && ends[known] <= first) known++;
        end = ends[known];
        if (end > first + most) end = first + most;
      } else {
        while (end < n && end < first + most && line->x[end] - line->x[first] <= width) end++;
      }
      if (store) store_cell(line, first, end);
      cells++;
      first = end;
    }
    if (!store) WEFT_TAKE(line->cell, mem, cells);
  }
done:
  return st;
}

/* ---- moments ---- */

/* out: the moments of references from .. end - 1 of a cell, whose number is at most RUN. lanes: stride * 8. */
static void run_moments(const weft_line *line, const weft_line_cell *cell, size_t from, size_t end, double *lanes,
                        double *weights, double *out)
{
  const size_t m = line->m;
  double u[LANES];
  memset(lanes, 0, line->stride * LANES * sizeof *lanes);
  for (size_t i = from; i < end; i += LANES) {
    const size_t some = end - i < LANES ? end - i : LANES;
    for (size_t lane = 0; lane < LANES; lane++) {
      u[lane] = lane < some ? (line->x[i + lane] - cell->middle) * line->per_unit : 0;
      for (size_t c = 0; c < m; c++) weights[c * LANES + lane] = lane < some ? line->w[(i + lane) * m + c] : 0;
    }
    weft_line_add_moments(&line->form, u, weights, m, lanes);
  }
  for (size_t k = 0; k < line->stride; k++) {
    const double *s = lanes + k * LANES;
    out[k] = ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
  }
}

/* memory: stride * (LANES + 3) + m * LANES. */
static void cell_moments(const weft_line *line, size_t at, double *memory)
{
  const weft_line_cell *cell = line->cell + at;
  const size_t stride = line->stride, end = cell->first + cell->count, step = line->before ? WEFT_LINE_BLOCK : RUN;
  double *lanes = memory, *part = lanes + stride * LANES, *total = part + stride, *rest = total + stride,
         *weights = rest + stride;
  memset(total, 0, 2 * stride * sizeof *total);
  size_t block = cell->block;
  for (size_t from = cell->first; from < end; from += step, block++) {
    run_moments(line, cell, from, end - from < step ? end : from + step, lanes, weights, part);
    for (size_t k = 0; k < stride; k++) {
      if (line->before) {
        line->before[block * stride + k] = total[k] + rest[k];
        line->after[block * stride + k] = part[k];
      }
      weft_add_to(&total[k], &rest[k], part[k]);
    }
  }
  for (size_t k = 0; k < stride; k++) line->total[at * stride + k] = total[k] + rest[k];
  if (!line->before) return;
  memset(total, 0, 2 * stride * sizeof *total);
  while (block-- > cell->block)
    for (size_t k = 0; k < stride; k++) {
      const double own = line->after[block * stride + k];
      line->after[block * stride + k] = total[k] + rest[k];
      weft_add_to(&total[k], &rest[k], own);
    }
}

/* line->total, and where they are needed line->before and line->after, for all cells; threads share the cells. mem
 * keeps line->total. */
static weft_status all_moments(weft_ctx *ctx, weft_arena *mem, weft_line *line)
{
  weft_status st = WEFT_OK;
  weft_arena scratch = weft_arena_begin(ctx);
  const size_t each = line->stride * (LANES + 3) + line->m * LANES;
  const double cell_work = (double) line->n * (double) line->stride / (double) line->cells;
  double *memory;
  WEFT_TAKE(line->total, mem, line->cells * line->stride);
  WEFT_TAKE(memory, &scratch, each * (size_t) ctx->threads);
  for (size_t start = 0; start < line->cells; start += CELLS_AT_ONCE) {
    const size_t end = line->cells - start < CELLS_AT_ONCE ? line->cells : start + CELLS_AT_ONCE;
    WEFT_TRY(weft_poll(ctx, (double) start, (double) line->cells));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, cell_work * (double) (end - start)), guided)
    for (size_t k = start; k < end; k++) cell_moments(line, k, memory + each * (size_t) WEFT_THREAD());
  }
done:
  weft_arena_end(&scratch);
  return st;
}

static double weight_of(const weft_line *line, const weft_line_cell *cell, size_t column)
{
  double sum = 0;
  for (size_t i = cell->first; i < cell->first + cell->count; i++) sum += line->w[i * line->m + column];
  return sum;
}

/* Weights on either side of the ends of cells. */
static void sum_sides(weft_line *line)
{
  const size_t m = line->m, cells = line->cells;
  for (size_t c = 0; c < m; c++) {
    double sum = 0;
    line->left[c] = 0;
    for (size_t k = 0; k < cells; k++) {
      sum += weight_of(line, line->cell + k, c);
      line->left[(k + 1) * m + c] = sum;
    }
    sum = 0;
    line->right[cells * m + c] = 0;
    for (size_t k = cells; k-- > 0;) {
      sum += weight_of(line, line->cell + k, c);
      line->right[k * m + c] = sum;
    }
  }
}

/* Orders the references (by cell only where a series needs no more), finds cells, computes their moments and the
 * weights on either side of each. All that `line` points to belongs to mem. */
weft_status weft_line_build(weft_ctx *ctx, weft_arena *mem, const weft_kernel_task *task, weft_line *line)
{
  weft_status st = WEFT_OK;
  weft_arena scratch = weft_arena_begin(ctx);
  const size_t n = task->reference.n, m = task->m, room = 2 * n + 1024;
  const double width = line->form.width * task->h;
  uint32_t *ends = NULL;
  size_t ended = 0;
  line->task = task, line->n = n, line->m = m;
  line->per_unit = line->form.scale / task->h;
  line->stride = (size_t) line->form.sides * (size_t) line->form.terms * m;
  WEFT_TAKE(line->order, mem, n);
  WEFT_TAKE(line->x, mem, n);
  WEFT_TAKE(line->w, mem, n * m);
  if (line->form.form == WEFT_LINE_SERIES) { /* which does not distinguish sides: cells need no order within */
    WEFT_TAKE(ends, &scratch, room);
    WEFT_TRY(sort_by_cells(ctx, line, width, line->order, ends, room, &ended));
  }
  if (!ended) WEFT_TRY(sort_all(ctx, task->reference.x, n, line->order));
  for (size_t i = 0; i < n; i++) {
    line->x[i] = task->reference.x[line->order[i]];
    for (size_t c = 0; c < m; c++) line->w[i * m + c] = task->weights ? task->weights[line->order[i] * m + c] : 1;
  }
  WEFT_TRY(find_cells(ctx, mem, line, width, ended ? ends : NULL, ended));
  if (line->form.form == WEFT_LINE_OF_POWERS || line->form.form == WEFT_LINE_WAVE || line->form.odd ||
      task->leave_one_out) {
    WEFT_TAKE(line->before, mem, line->blocks * line->stride);
    WEFT_TAKE(line->after, mem, line->blocks * line->stride);
  }
  WEFT_TRY(all_moments(ctx, mem, line));
  WEFT_TAKE(line->left, mem, (line->cells + 1) * m);
  WEFT_TAKE(line->right, mem, (line->cells + 1) * m);
  sum_sides(line);
done:
  weft_arena_end(&scratch);
  return st;
}
