/* Queries of sums in one dimension; see line.h. A query goes through the cells outward from its place. A kernel
 * of bounded support stops at its end. For other kernels the sum over the nearest cells tells how far away references
 * may still matter: as far as their weights times the kernel could reach half of the tolerance. */
#include <float.h>
#include <string.h>
#include "core/call/parallel.h"
#include "kernel/cpu/line/line.h"
#include "kernel/cpu/direct/direct.h"
#include "kernel/cpu/line/build.h"
#include "kernel/cpu/line/forms.h"
#include "kernel/cpu/line/scatter.h"
#include "kernel/both/scalar.h"

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

/* h - r, correctly signed: the first difference is exact where r is near h. *plus: h + r. */
static double before_end(double q, double x, double h, double *plus)
{
  const weft_dd gap = weft_two_sum(q, -x);
  const double r = fabs(gap.hi), rest = gap.hi < 0 ? -gap.lo : gap.lo;
  *plus = (h + r) + rest;
  return (h - r) - rest;
}

static int within(const asked *query, double x)
{
  double plus;
  const double left = before_end(query->q, x, query->line->task->h, &plus);
  return weft_kernel_step(query->line->task->kind) ? left >= 0 : left > 0;
}

/* As weft_kernel_pair(), of a compact kernel. */
static double compact_value(int kind, double q, double x, double h)
{
  double plus;
  const double left = before_end(q, x, h, &plus), t = left * plus / (h * h), gap = q - x;
  if (weft_kernel_step(kind)) return left >= 0;
  return left > 0 ? weft_kernel_inside(kind, t, t < 0.25 ? 1 - t : gap * gap / (h * h)) : 0;
}

static void add_pairs(asked *query, size_t first, size_t end)
{
  const weft_line *line = query->line;
  const weft_kernel_task *task = line->task;
  const weft_points q = { 1, 1, &query->q, NULL }, all = { line->n, 1, line->x, NULL };
  const int compact = weft_kernel_compact(task->kind);
  for (size_t i = first; i < end; i++) {
    if (i == query->skip) continue;
    const double value = compact ? compact_value(task->kind, query->q, line->x[i], task->h)
                                 : weft_kernel_pair(task->kind, &q, 0, &all, i, task->h, 0);
    for (size_t c = 0; c < line->m; c++) query->sum[c] += line->w[i * line->m + c] * value;
  }
  query->pairs += (double) (end - first);
}

static void add_moments(asked *query, const weft_line_cell *cell, const double *moments, int side)
{
  const weft_line *line = query->line;
  const double v = (query->q - cell->middle) * line->per_unit;
  if (!weft_line_evaluate(&line->form, moments, v, side, cell->reach, line->m, query->sum)) {
    if (!line->x) {
      query->beyond = 1;
      return;
    }
    add_pairs(query, cell->first, cell->first + cell->count); /* far off, so that all of the cell was asked for */
    return;
  }
  if (line->form.rounding > 0)
    for (size_t c = 0; c < line->m; c++) query->inside += moments[c];
}

static void add_block(asked *query, const weft_line_cell *cell, size_t block)
{
  const size_t first = cell->first + block * WEFT_LINE_BLOCK, end = cell->first + cell->count;
  add_pairs(query, first, end - first < WEFT_LINE_BLOCK ? end : first + WEFT_LINE_BLOCK);
}

enum { NOT_BEYOND, NOT_WITHIN, WITHIN };

/* How many references of a cell, counted from its first, are not beyond the query; are out of the kernel's reach (where
 * all are left of the query); are within its reach (where all are right of it). */
static size_t count_first(const asked *query, const weft_line_cell *cell, int which)
{
  const double *x = query->line->x + cell->first;
  size_t low = 0, high = cell->count;
  while (low < high) {
    const size_t k = (low + high) / 2;
    const int so = which == NOT_BEYOND ? x[k] <= query->q : within(query, x[k]) == (which == WITHIN);
    if (so)
      low = k + 1;
    else
      high = k;
  }
  return low;
}

/* 0 when the cell has nothing within the kernel's reach, so that the cells beyond have nothing either. */
static int add_cell(asked *query, size_t k)
{
  const weft_line *line = query->line;
  const weft_line_cell *cell = line->cell + k;
  const int ends = weft_kernel_compact(line->task->kind), left = query->q >= cell->hi,
            right = !left && query->q <= cell->lo;
  const double near = left    ? cell->hi
                      : right ? cell->lo
                              : query->q,
               far = left    ? cell->lo
                     : right ? cell->hi
                             : query->q;
  const size_t stride = line->stride;
  size_t block = SIZE_MAX;
  if (ends && !within(query, near)) return 0;
  query->cells++;
  if (query->skip - cell->first < cell->count)
    block = (query->skip - cell->first) / WEFT_LINE_BLOCK;
  else if (!left && !right && line->form.odd)
    block = (count_first(query, cell, NOT_BEYOND) - 1) / WEFT_LINE_BLOCK;
  else if (ends && !within(query, far)) {
    block = (left ? count_first(query, cell, NOT_WITHIN) : count_first(query, cell, WITHIN) - 1) / WEFT_LINE_BLOCK;
    const size_t at = (cell->block + block) * stride;
    add_moments(query, cell, (left ? line->after : line->before) + at, left ? 1 : -1);
    add_block(query, cell, block);
    return 1;
  }
  if (block == SIZE_MAX) {
    if (cell->count == 1 && line->x)
      add_pairs(query, cell->first, cell->first + 1);
    else
      add_moments(query, cell, line->total + k * stride, right ? -1 : 1);
    return 1;
  }
  const size_t at = (cell->block + block) * stride;
  add_moments(query, cell, line->before + at, 1);
  add_moments(query, cell, line->after + at, -1);
  add_block(query, cell, block);
  return 1;
}

/* ---- one query ---- */

/* The last cell that begins at q or before; 0 when there is none. */
static size_t cell_of(const weft_line *line, double q)
{
  size_t low = 0, high = line->cells;
  while (high - low > 1) {
    const size_t k = (low + high) / 2;
    if (line->cell[k].lo <= q)
      low = k;
    else
      high = k;
  }
  return low;
}

/* Parts are joined where tolerances are of what they make up. */
static void join_parts(const sums *call, asked *query)
{
  const weft_line *line = query->line;
  memset(query->joined, 0, line->m * sizeof *query->joined);
  memset(query->weight, 0, line->m * sizeof *query->weight);
  for (size_t c = 0; c < line->m; c++) {
    const size_t to = call->part ? (size_t) call->part[c] : c;
    query->joined[to] += query->sum[c], query->weight[to] += line->right[c];
  }
}

/* Beyond this distance all weights together add less than half of each column's tolerance. */
static double reach_of(const sums *call, asked *query)
{
  double least = 1;
  join_parts(call, query);
  for (size_t c = 0; c < query->line->m; c++) {
    const double all = query->weight[c], allowed = (call->rel * query->joined[c] + call->abs) / 2;
    if (all > 0 && allowed < least * all) least = allowed / all;
  }
  return least < 1 ? weft_line_reach(&query->line->form, least) * query->line->task->h : 0;
}

/* Adds every cell that matters to the query's sums: a compact kernel's until one lies wholly out of reach,
 * others' until what is further away is within the tolerance, which the two nearest cells on either side tell. */
static void add_all(const sums *call, asked *query)
{
  const weft_line *line = query->line;
  const size_t at = cell_of(line, query->q);
  size_t down = at, up = at + 1;
  if (weft_kernel_compact(line->task->kind)) {
    add_cell(query, at);
    while (down > 0 && add_cell(query, down - 1)) down--;
    while (up < line->cells && add_cell(query, up)) up++;
    return;
  }
  add_cell(query, at);
  if (down > 0) add_cell(query, --down);
  if (up < line->cells) add_cell(query, up++);
  if (query->beyond) return;
  const double reach = reach_of(call, query);
  while (down > 0 && query->q - line->cell[down - 1].hi <= reach) add_cell(query, --down);
  while (up < line->cells && line->cell[up].lo - query->q <= reach) add_cell(query, up++);
}

/* 1 when rounding may matter, or a logarithm needs another exponent. */
static int doubtful(const sums *call, asked *query)
{
  const weft_line *line = query->line;
  if (query->beyond) return 1;
  if (line->form.rounding > 0) join_parts(call, query);
  for (size_t c = 0; c < line->m; c++) {
    if (query->weight[c] > 0 && line->form.rounding * query->inside > fmax(ALLOWED, call->rel / 2) * query->joined[c])
      return 1;
    if (line->task->logarithm && weft_kernel_exponential(line->task->kind) &&
        query->sum[c] < LOG_MIN * fmax(1, line->right[c]))
      return 1;
  }
  return 0;
}

/* sum: 3 m, of which the rest is scratch. */
static void sum_query(const sums *call, size_t i, double *sum, double *effort)
{
  const weft_line *line = call->line;
  asked query = { .line = line,
                  .q = line->task->query.x[i],
                  .skip = call->place ? call->place[i] : SIZE_MAX,
                  .sum = sum,
                  .joined = sum + line->m,
                  .weight = sum + 2 * line->m };
  memset(sum, 0, 3 * line->m * sizeof *sum);
  add_all(call, &query);
  call->repeat[i] = (unsigned char) doubtful(call, &query);
  for (size_t c = 0; c < line->m; c++)
    call->out[i + c * line->task->query.n] = line->task->logarithm ? log(sum[c]) : sum[c];
  effort[0] += query.pairs, effort[1] += query.cells;
}

/* Sums all queries of call->line->task, in batches between which the user is asked. Where queries are the references,
 * they go in the order of the cells. */
static weft_status sum_queries(weft_ctx *ctx, const sums *call, weft_kernel_effort *effort)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const weft_line *line = call->line;
  const size_t nq = line->task->query.n, threads = (size_t) ctx->threads;
  const int own = line->task->query.x == line->task->reference.x; /* neighbours are summed one after another */
  size_t each = (size_t) (PAIRS_AT_ONCE / (double) line->most);
  double *memory, *efforts;
  each = each < 1 ? 1 : each > QUERIES_AT_ONCE ? QUERIES_AT_ONCE : each;
  WEFT_TAKE(memory, &mem, (3 * line->m + 8) * threads);
  WEFT_TAKE0(efforts, &mem, 8 * threads);
  for (size_t start = 0; start < nq; start += each * threads) {
    const size_t end = nq - start < each * threads ? nq : start + each * threads;
    WEFT_TRY(weft_poll(ctx, (double) start, (double) nq));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) (end - start) * 300 * (double) line->m), static)
    for (size_t i = start; i < end; i++)
      sum_query(call, own && line->order ? line->order[i] : i, memory + (3 * line->m + 8) * (size_t) WEFT_THREAD(),
                efforts + 8 * (size_t) WEFT_THREAD());
  }
  for (size_t thread = 0; thread < threads; thread++)
    effort->pairs += efforts[8 * thread], effort->nodes += efforts[8 * thread + 1];
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
static weft_status by_cells(weft_ctx *ctx, sums *call, weft_line *line, const weft_kernel_task *task, size_t *list,
                            size_t *count, weft_kernel_effort *effort)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  uint32_t *place = NULL;
  call->line = line;
  WEFT_TAKE(call->repeat, &mem, task->query.n);
  if (task->leave_one_out) {
    WEFT_TAKE(place, &mem, task->reference.n);
    for (size_t i = 0; i < task->reference.n; i++) place[line->order[i]] = (uint32_t) i;
    call->place = place;
  }
  WEFT_TRY(sum_queries(ctx, call, effort));
  *count = 0;
  for (size_t i = 0; i < task->query.n; i++)
    if (call->repeat[i]) list[(*count)++] = i;
done:
  weft_arena_end(&mem);
  return st;
}

/* Sums the listed queries directly, which needs weights of 1 written out. */
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

/* Sums all queries over cells of sorted references, and directly those whose rounding may matter. */
static weft_status in_order(weft_ctx *ctx, const sums *like, const weft_kernel_task *task, double tolerance,
                            double *out, weft_kernel_effort *effort)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_line line = { 0 };
  sums call = { .part = like->part, .rel = like->rel, .abs = like->abs, .out = out };
  size_t *list, repeats;
  line.form = weft_line_form_of(task->kind, tolerance);
  WEFT_TRY(weft_line_build(ctx, &mem, task, &line));
  WEFT_TAKE(list, &mem, task->query.n);
  WEFT_TRY(by_cells(ctx, &call, &line, task, list, &repeats, effort));
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
  sums call = { .part = part, .rel = rel, .abs = abs, .out = out };
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
    WEFT_TRY(by_cells(ctx, &call, &line, task, list, &left, effort));
    if (left) WEFT_TRY(some_in_order(ctx, &call, task, list, left, loose, effort));
  } else {
    WEFT_TRY(in_order(ctx, &call, task, loose, out, effort));
  }
  effort->queries += (double) nq;
done:
  weft_arena_end(&mem);
  return st;
}
