/* Queries of sums in one dimension; see line.h. A query goes through the cells outward from its place. A kernel
 * of bounded support stops at its end. For other kernels the sum over the nearest cells tells how far away references
 * may still matter: as far as their weights times the kernel could reach half of the tolerance. */
#include <float.h>
#include <string.h>
#include "core/call/parallel.h"
#include "kernel/cpu/line/line.h"

#define EXACT 4e-13       /* relative tolerance of exact sums, which promise 1e-12 */
#define ALLOWED 8e-13     /* of an exact sum that may be rounding */
#define LOG_MIN 1e-280    /* times the weights: smaller sums are done again for logarithms */
#define PAIRS_AT_ONCE 4e6 /* a thread's pairs between two polls, at most */
#define QUERIES_AT_ONCE ((size_t) 2048)

typedef struct {
  const weft_line *line;
  const int *part; /* NULL, or the sum that each column is a part of */
  double rel, abs, *out;
  const uint32_t *place; /* of a reference in the line's order; NULL when none is left out */
  unsigned char *repeat; /* queries */
} sums;

/* One query at work. */
typedef struct {
  const weft_line *line;
  double q;
  size_t skip;             /* the reference left out, or SIZE_MAX */
  double *sum, inside;     /* m; weights within a kernel's end, of all columns */
  double *joined, *weight; /* m: sums, and their weights altogether, of columns that are parts of one */
  double pairs, cells;
  int beyond; /* a cell of scattered references has too few terms */
} asked;

/* ---- one cell ---- */

static int within(const asked *a, double x)
{
  const double gap = fabs(a->q - x), h = a->line->task->h, s = gap * gap / (h * h);
  if (s < 0.9375) return 1;
  if (s > 1.0625) return 0;
  const weft_points q = { 1, 1, &a->q, NULL }, at = { 1, 1, &x, NULL };
  const double t = weft_inside_exactly(&q, 0, &at, 0, h);
  return weft_kernel_step(a->line->task->kind) ? t >= 0 : t > 0;
}

static void add_pairs(asked *a, size_t first, size_t end)
{
  const weft_line *l = a->line;
  const weft_kernel_task *task = l->task;
  const weft_points q = { 1, 1, &a->q, NULL }, all = { l->n, 1, l->x, NULL };
  for (size_t i = first; i < end; i++) {
    if (i == a->skip) continue;
    const double value = weft_kernel_pair(task->kind, &q, 0, &all, i, task->h, 0);
    for (size_t c = 0; c < l->m; c++) a->sum[c] += l->w[i * l->m + c] * value;
  }
  a->pairs += (double) (end - first);
}

static void add_moments(asked *a, const weft_line_cell *cell, const double *moments, int side)
{
  const weft_line *l = a->line;
  const double v = (a->q - cell->middle) * l->per_unit;
  if (!weft_line_evaluate(&l->form, moments, v, side, cell->reach, l->m, a->sum)) {
    if (!l->x) {
      a->beyond = 1;
      return;
    }
    add_pairs(a, cell->first, cell->first + cell->count); /* far off, so that all of the cell was asked for */
    return;
  }
  if (l->form.rounding > 0)
    for (size_t c = 0; c < l->m; c++) a->inside += moments[c];
}

static void add_block(asked *a, const weft_line_cell *cell, size_t block)
{
  const size_t first = cell->first + block * WEFT_LINE_BLOCK, end = cell->first + cell->count;
  add_pairs(a, first, end - first < WEFT_LINE_BLOCK ? end : first + WEFT_LINE_BLOCK);
}

enum { NOT_BEYOND, NOT_WITHIN, WITHIN };

/* How many references of a cell, counted from its first, are not beyond the query; are out of the kernel's reach (where
 * all are left of the query); are within its reach (where all are right of it). */
static size_t count_first(const asked *a, const weft_line_cell *cell, int which)
{
  const double *x = a->line->x + cell->first;
  size_t low = 0, high = cell->count;
  while (low < high) {
    const size_t k = (low + high) / 2;
    const int so = which == NOT_BEYOND ? x[k] <= a->q : within(a, x[k]) == (which == WITHIN);
    if (so)
      low = k + 1;
    else
      high = k;
  }
  return low;
}

/* 0 when the cell has nothing within the kernel's reach, so that the cells beyond have nothing either. */
static int add_cell(asked *a, size_t k)
{
  const weft_line *l = a->line;
  const weft_line_cell *cell = l->cell + k;
  const int ends = weft_kernel_compact(l->task->kind), left = a->q >= cell->hi, right = !left && a->q <= cell->lo;
  const double near = left ? cell->hi : right ? cell->lo : a->q, far = left ? cell->lo : right ? cell->hi : a->q;
  const size_t stride = l->stride;
  size_t block = SIZE_MAX;
  if (ends && !within(a, near)) return 0;
  a->cells++;
  if (a->skip - cell->first < cell->count)
    block = (a->skip - cell->first) / WEFT_LINE_BLOCK;
  else if (!left && !right && l->form.odd)
    block = (count_first(a, cell, NOT_BEYOND) - 1) / WEFT_LINE_BLOCK;
  else if (ends && !within(a, far)) {
    block = (left ? count_first(a, cell, NOT_WITHIN) : count_first(a, cell, WITHIN) - 1) / WEFT_LINE_BLOCK;
    const size_t at = (cell->block + block) * stride;
    add_moments(a, cell, (left ? l->after : l->before) + at, left ? 1 : -1);
    add_block(a, cell, block);
    return 1;
  }
  if (block == SIZE_MAX) {
    if (cell->count == 1 && l->x)
      add_pairs(a, cell->first, cell->first + 1);
    else
      add_moments(a, cell, l->total + k * stride, right ? -1 : 1);
    return 1;
  }
  const size_t at = (cell->block + block) * stride;
  add_moments(a, cell, l->before + at, 1);
  add_moments(a, cell, l->after + at, -1);
  add_block(a, cell, block);
  return 1;
}

/* ---- one query ---- */

/* The last cell that begins at q or before; 0 when there is none. */
static size_t cell_of(const weft_line *l, double q)
{
  size_t low = 0, high = l->cells;
  while (high - low > 1) {
    const size_t k = (low + high) / 2;
    if (l->cell[k].lo <= q)
      low = k;
    else
      high = k;
  }
  return low;
}

/* Parts are joined where tolerances are of what they make up. */
static void join_parts(const sums *s, asked *a)
{
  const weft_line *l = a->line;
  memset(a->joined, 0, l->m * sizeof *a->joined);
  memset(a->weight, 0, l->m * sizeof *a->weight);
  for (size_t c = 0; c < l->m; c++) {
    const size_t to = s->part ? (size_t) s->part[c] : c;
    a->joined[to] += a->sum[c], a->weight[to] += l->right[c];
  }
}

/* Beyond this distance all weights together add less than half of each column's tolerance. */
static double reach_of(const sums *s, asked *a)
{
  double least = 1;
  join_parts(s, a);
  for (size_t c = 0; c < a->line->m; c++) {
    const double all = a->weight[c], allowed = (s->rel * a->joined[c] + s->abs) / 2;
    if (all > 0 && allowed < least * all) least = allowed / all;
  }
  return least < 1 ? weft_line_reach(&a->line->form, least) * a->line->task->h : 0;
}

/* Adds every cell that matters to the sums of query a->q: a compact kernel's until one lies wholly out of reach,
 * others' until what is further away is within the tolerance, which the two nearest cells on either side tell. */
static void add_all(const sums *s, asked *a)
{
  const weft_line *l = a->line;
  const size_t at = cell_of(l, a->q);
  size_t down = at, up = at + 1;
  if (weft_kernel_compact(l->task->kind)) {
    add_cell(a, at);
    while (down > 0 && add_cell(a, down - 1)) down--;
    while (up < l->cells && add_cell(a, up)) up++;
    return;
  }
  add_cell(a, at);
  if (down > 0) add_cell(a, --down);
  if (up < l->cells) add_cell(a, up++);
  if (a->beyond) return;
  const double reach = reach_of(s, a);
  while (down > 0 && a->q - l->cell[down - 1].hi <= reach) add_cell(a, --down);
  while (up < l->cells && l->cell[up].lo - a->q <= reach) add_cell(a, up++);
}

/* 1 when rounding may matter, or a logarithm needs another exponent. */
static int doubtful(const sums *s, asked *a)
{
  const weft_line *l = a->line;
  if (a->beyond) return 1;
  if (l->form.rounding > 0) join_parts(s, a);
  for (size_t c = 0; c < l->m; c++) {
    if (a->weight[c] > 0 && l->form.rounding * a->inside > fmax(ALLOWED, s->rel / 2) * a->joined[c]) return 1;
    if (l->task->logarithm && weft_kernel_exponential(l->task->kind) && a->sum[c] < LOG_MIN * fmax(1, l->right[c]))
      return 1;
  }
  return 0;
}

/* sum: 3 m, of which the rest is scratch. */
static void sum_query(const sums *s, size_t i, double *sum, double *effort)
{
  const weft_line *l = s->line;
  asked a = { .line = l,
              .q = l->task->query.x[i],
              .skip = s->place ? s->place[i] : SIZE_MAX,
              .sum = sum,
              .joined = sum + l->m,
              .weight = sum + 2 * l->m };
  memset(sum, 0, 3 * l->m * sizeof *sum);
  add_all(s, &a);
  s->repeat[i] = (unsigned char) doubtful(s, &a);
  for (size_t c = 0; c < l->m; c++) s->out[i + c * l->task->query.n] = l->task->logarithm ? log(sum[c]) : sum[c];
  effort[0] += a.pairs, effort[1] += a.cells;
}

/* Sums all queries of s->line->task, in batches between which the user is asked. Where queries are the references, they
 * go in the order of the cells. */
static weft_status sum_queries(weft_ctx *ctx, const sums *s, weft_kernel_effort *effort)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const weft_line *l = s->line;
  const size_t nq = l->task->query.n, threads = (size_t) ctx->threads;
  const int own = l->task->query.x == l->task->reference.x; /* neighbours are summed one after another */
  size_t each = (size_t) (PAIRS_AT_ONCE / (double) l->most);
  double *memory, *efforts;
  each = each < 1 ? 1 : each > QUERIES_AT_ONCE ? QUERIES_AT_ONCE : each;
  WEFT_TAKE(memory, &mem, (3 * l->m + 8) * threads);
  WEFT_TAKE0(efforts, &mem, 8 * threads);
  for (size_t start = 0; start < nq; start += each * threads) {
    const size_t end = nq - start < each * threads ? nq : start + each * threads;
    WEFT_TRY(weft_poll(ctx, (double) start, (double) nq));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) (end - start) * 300 * (double) l->m), static)
    for (size_t i = start; i < end; i++)
      sum_query(s, own && l->order ? l->order[i] : i, memory + (3 * l->m + 8) * (size_t) WEFT_THREAD(),
                efforts + 8 * (size_t) WEFT_THREAD());
  }
  for (size_t t = 0; t < threads; t++) effort->pairs += efforts[8 * t], effort->nodes += efforts[8 * t + 1];
done:
  weft_arena_end(&mem);
  return st;
}

/* ---- all ---- */

int weft_kernel_has_line(int kind) { return weft_line_form_of(kind, EXACT).form != WEFT_LINE_NONE; }

/* Scattering the references pays for few queries, and is exact enough where its plain sums of n terms are. */
static int may_scatter(const weft_kernel_task *task, double tolerance, double most)
{
  const double n = (double) task->reference.n;
  return task->kind == WEFT_GAUSSIAN && !task->leave_one_out && most > 0 && n >= 64 * (double) task->query.n &&
         n * DBL_EPSILON < 0.01 * tolerance;
}

/* Sums by cells into `out`; the queries that these do not serve go to `list`. */
static weft_status by_cells(weft_ctx *ctx, sums *s, weft_line *line, const weft_kernel_task *task, size_t *list,
                            size_t *count, weft_kernel_effort *effort)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  uint32_t *place = NULL;
  s->line = line;
  WEFT_TAKE(s->repeat, &mem, task->query.n);
  if (task->leave_one_out) {
    WEFT_TAKE(place, &mem, task->reference.n);
    for (size_t i = 0; i < task->reference.n; i++) place[line->order[i]] = (uint32_t) i;
    s->place = place;
  }
  WEFT_TRY(sum_queries(ctx, s, effort));
  *count = 0;
  for (size_t i = 0; i < task->query.n; i++)
    if (s->repeat[i]) list[(*count)++] = i;
done:
  weft_arena_end(&mem);
  return st;
}

/* Directly, for which weights of 1 are written out. */
static weft_status repeat(weft_ctx *ctx, const weft_kernel_task *task, const size_t *list, size_t count, double *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_kernel_task weighted = *task;
  if (!task->weights) {
    double *ones;
    WEFT_TAKE(ones, &mem, task->reference.n);
    for (size_t i = 0; i < task->reference.n; i++) ones[i] = 1;
    weighted.weights = ones;
  }
  WEFT_TRY(weft_kernel_repeat(ctx, &weighted, list, count, out));
done:
  weft_arena_end(&mem);
  return st;
}

/* By cells of references in order; queries that these do not serve are summed directly. */
static weft_status in_order(weft_ctx *ctx, const sums *like, const weft_kernel_task *task, double tolerance,
                            double *out, weft_kernel_effort *effort)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_line line = { 0 };
  sums s = { .part = like->part, .rel = like->rel, .abs = like->abs, .out = out };
  size_t *list, repeats;
  line.form = weft_line_form_of(task->kind, tolerance);
  WEFT_TRY(weft_line_build(ctx, &mem, task, &line));
  WEFT_TAKE(list, &mem, task->query.n);
  WEFT_TRY(by_cells(ctx, &s, &line, task, list, &repeats, effort));
  if (repeats) WEFT_TRY(repeat(ctx, task, list, repeats, out));
  effort->repeated += (double) repeats;
done:
  weft_arena_end(&mem);
  return st;
}

/* The queries of `list` by references in order. */
static weft_status some_in_order(weft_ctx *ctx, const sums *like, const weft_kernel_task *task, const size_t *list,
                                 size_t count, double tolerance, weft_kernel_effort *effort)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_kernel_task some = *task;
  double *x, *out;
  WEFT_TAKE(x, &mem, count);
  WEFT_TAKE(out, &mem, count * task->m);
  for (size_t i = 0; i < count; i++) x[i] = task->query.x[list[i]];
  some.query.x = x, some.query.n = count;
  WEFT_TRY(in_order(ctx, like, &some, tolerance, out, effort));
  for (size_t c = 0; c < task->m; c++)
    for (size_t i = 0; i < count; i++) like->out[list[i] + c * task->query.n] = out[i + c * count];
done:
  weft_arena_end(&mem);
  return st;
}

/* Scatters the references where that pays, sums the queries over the cells, and in order those whose errors may be too
 * large; otherwise all in order. effort: the pairs and cells that were added. */
weft_status weft_kernel_line(weft_ctx *ctx, const weft_kernel_task *task, const int *part, double *out,
                             weft_kernel_effort *effort)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t n = task->reference.n, nq = task->query.n, m = task->m;
  const double rel = task->rel_error > EXACT ? task->rel_error : EXACT, abs = task->logarithm ? 0 : task->abs_error;
  double most = 0;
  int scattered = 0;
  weft_line line = { 0 };
  sums s = { .part = part, .rel = rel, .abs = abs, .out = out };
  for (size_t c = 0; c < m; c++) {
    double all = task->weights ? 0 : (double) n;
    for (size_t i = 0; task->weights && i < n; i++) all += task->weights[i * m + c];
    most = fmax(most, all);
  }
  const double loose = fmax(rel / 4, most > 0 ? fmin(abs / most / 4, 0.1) : 0);
  if (may_scatter(task, loose, most)) {
    line.form = weft_line_narrow_series(loose, n);
    WEFT_TRY(weft_line_scatter(ctx, &mem, task, &line, &scattered));
  }
  if (scattered) {
    size_t *list, left;
    WEFT_TAKE(list, &mem, nq);
    WEFT_TRY(by_cells(ctx, &s, &line, task, list, &left, effort));
    if (left) WEFT_TRY(some_in_order(ctx, &s, task, list, left, loose, effort));
  } else {
    WEFT_TRY(in_order(ctx, &s, task, loose, out, effort));
  }
  effort->queries += (double) nq;
done:
  weft_arena_end(&mem);
  return st;
}
