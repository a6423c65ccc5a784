/* The Gram matrix of sparse rows, for few columns: every row adds the products of its values, so that the work is the
 * sum of the squares of the rows' values, and the data are read once. The centre comes off at the end:
 *
 *   X = R (S - 1 c') F      X'X = F (S'R²S - m c' - c m' + w c c') F      m = S'R²1,  w = 1'R²1
 *
 * Ranges of rows are turned from compressed columns into rows, one thread per range; then threads share the columns of
 * the result, so that each number is summed by one of them in the order of the rows. */
#include <string.h>
#include "core/call/arena.h"
#include "core/call/parallel.h"
#include "pca/cpu/gram_sparse.h"

#define RANGE_VALUES ((size_t) 1 << 18) /* of a range of rows: what it takes stays in cache */

/* Rows first .. end - 1 of a panel: entries by rows, and of each entry by columns where it is among them. */
typedef struct {
  size_t first, end;
  uint32_t *row_end;     /* end - first: behind the row's last entry */
  uint32_t *place, *row; /* by columns: place of the entry among the rows', and its row less first */
  uint32_t *begin;       /* p + 1: the first entry of each column */
  int32_t *column;       /* by rows */
  double *value;
} range;

static size_t first_from(const int32_t *rows, size_t count, size_t row)
{
  size_t low = 0, high = count;
  while (low < high) {
    const size_t mid = low + (high - low) / 2;
    if ((size_t) rows[mid] < row)
      low = mid + 1;
    else
      high = mid;
  }
  return low;
}

/* `row` holds the weights of the panel's rows, or is NULL. */
static void by_rows(const weft_pca_panel *x, const double *row, range *r)
{
  uint32_t at = 0, sum = 0;
  memset(r->row_end, 0, (r->end - r->first) * sizeof *r->row_end);
  for (size_t j = 0; j < x->p; j++) {
    const int32_t *rows = x->rows + x->starts[j];
    const size_t stored = (size_t) (x->starts[j + 1] - x->starts[j]);
    r->begin[j] = at;
    for (size_t i = first_from(rows, stored, r->first); i < stored && (size_t) rows[i] < r->end; i++, at++) {
      r->row[at] = (uint32_t) ((size_t) rows[i] - r->first);
      r->row_end[r->row[at]]++;
    }
  }
  r->begin[x->p] = at;
  for (size_t i = 0; i < r->end - r->first; i++) { /* where a row begins; its end when all its entries have come */
    const uint32_t here = r->row_end[i];
    r->row_end[i] = sum;
    sum += here;
  }
  for (size_t j = 0; j < x->p; j++) {
    if (r->begin[j] == r->begin[j + 1]) continue;
    const int32_t *rows = x->rows + x->starts[j];
    const double *values =
        x->values + x->starts[j] + first_from(rows, (size_t) (x->starts[j + 1] - x->starts[j]), r->first);
    for (uint32_t e = r->begin[j]; e < r->begin[j + 1]; e++, values++) {
      const uint32_t to = r->row_end[r->row[e]]++;
      r->place[e] = to;
      r->column[to] = (int32_t) j;
      r->value[to] = row ? *values * row[r->first + r->row[e]] : *values;
    }
  }
}

/* Column j of the lower triangle, and of m. */
static void add_column(const range *r, const double *row, size_t p, size_t j, double *g, double *m)
{
  double *column = g + j * p, sum = 0;
  for (uint32_t e = r->begin[j]; e < r->begin[j + 1]; e++) {
    const uint32_t end = r->row_end[r->row[e]];
    const double v = r->value[r->place[e]];
    sum += row ? v * row[r->first + r->row[e]] : v;
    for (uint32_t at = r->place[e]; at < end; at++) column[r->column[at]] += v * r->value[at];
  }
  m[j] += sum;
}

/* Ends of ranges of rows with about as many values each. */
static size_t cut(const weft_pca_panel *x, size_t *ends)
{
  const size_t values = (size_t) x->starts[x->p], pieces = (values + RANGE_VALUES - 1) / RANGE_VALUES;
  const size_t count = pieces < 1 ? 1 : pieces > x->n ? x->n : pieces;
  for (size_t k = 0; k < count; k++) ends[k] = (size_t) ((double) x->n * (double) (k + 1) / (double) count);
  ends[count - 1] = x->n;
  return count;
}

static size_t values_between(const weft_pca_panel *x, size_t first, size_t end)
{
  size_t sum = 0;
  for (size_t j = 0; j < x->p; j++) {
    const int32_t *rows = x->rows + x->starts[j];
    const size_t stored = (size_t) (x->starts[j + 1] - x->starts[j]);
    sum += first_from(rows, stored, end) - first_from(rows, stored, first);
  }
  return sum;
}

static weft_status take_range(weft_arena *mem, const weft_pca_panel *x, range *r)
{
  weft_status st = WEFT_OK;
  const size_t values = values_between(x, r->first, r->end);
  WEFT_TAKE(r->row_end, mem, r->end - r->first + 1);
  WEFT_TAKE(r->place, mem, values + 1);
  WEFT_TAKE(r->row, mem, values + 1);
  WEFT_TAKE(r->begin, mem, x->p + 1);
  WEFT_TAKE(r->column, mem, values + 1);
  WEFT_TAKE(r->value, mem, values + 1);
done:
  return st;
}

/* Ranges of rows of bounded size are turned from columns into rows, as many at once as there are threads; then threads
 * share the columns of g, and add the ranges in order, so that sums do not depend on threads. */
weft_status weft_pca_gram_sparse_add(weft_ctx *ctx, const weft_pca_panel *x, const double *row, double *g, double *m)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const double each = (double) x->starts[x->p] / (double) (x->n ? x->n : 1);
  const int threads = weft_threads_worth(ctx->threads, each * (double) x->starts[x->p]);
  const size_t most = (size_t) x->starts[x->p] / RANGE_VALUES + 2;
  size_t *ends, count;
  range *some;
  WEFT_TAKE(ends, &mem, most);
  WEFT_TAKE0(some, &mem, (size_t) threads);
  count = cut(x, ends);
  for (size_t first = 0; first < count; first += (size_t) threads) {
    const int64_t now = (int64_t) (count - first < (size_t) threads ? count - first : (size_t) threads);
    weft_arena own = weft_arena_begin(ctx);
    for (int64_t k = 0; k < now && st == WEFT_OK; k++) {
      some[k].first = first + (size_t) k ? ends[first + (size_t) k - 1] : 0;
      some[k].end = ends[first + (size_t) k];
      st = take_range(&own, x, &some[k]);
    }
    if (st == WEFT_OK) {
      WEFT_PARALLEL_FOR(threads, dynamic)
      for (int64_t k = 0; k < now; k++) by_rows(x, row, &some[k]);
    }
    for (int64_t k = 0; k < now && st == WEFT_OK; k++) {
      st = weft_poll(ctx, (double) (x->row + some[k].first), 0);
      if (st != WEFT_OK) break;
      WEFT_PARALLEL_FOR(threads, dynamic)
      for (int64_t j = 0; j < (int64_t) x->p; j++) add_column(&some[k], row, x->p, (size_t) j, g, m);
    }
    weft_arena_end(&own);
    if (st != WEFT_OK) goto done;
  }
done:
  weft_arena_end(&mem);
  return st;
}

void weft_pca_gram_sparse_centre(const weft_pca_form *form, size_t p, double weight, const double *m, double *g,
                                 int threads)
{
  WEFT_PARALLEL_FOR(threads, dynamic)
  for (int64_t j = 0; j < (int64_t) p; j++) {
    const double c = form->center[j], f = form->factor[j];
    double *column = g + (size_t) j * p;
    for (size_t i = (size_t) j; i < p; i++) {
      const double about = m[i] * c + form->center[i] * (m[j] - weight * c);
      column[i] = (column[i] - about) * f * form->factor[i];
    }
  }
}
