/* The best correlations of each gene, by blocks of columns of the lower triangle of z'z. Each block is read twice: by
 * columns for the genes of the block, by runs of rows for the genes below. A gene's list belongs to one thread at a
 * time, and what it keeps does not depend on the order of the pushes. */
#include <math.h>
#include "core/call/arena.h"
#include "core/call/parallel.h"
#include "core/numbers/product.h"
#include "core/numbers/topk.h"
#include "modules/modules.h"

enum { WIDTH = 192, RUN = 64 };

typedef struct {
  const double *product; /* rows first .. p - 1 by `width` columns */
  size_t first, width, rows;
  double least;
  int positive;
} block;

static inline double strength(const block *b, double r) { return b->positive ? r : fabs(r); }

/* Genes of the block: what is below them. */
static void read_column(const block *b, size_t column, weft_topk *lists)
{
  const double *r = b->product + column * b->rows;
  for (size_t row = column + 1; row < b->rows; row++)
    if (strength(b, r[row]) >= b->least) weft_topk_push(&lists[b->first + column], strength(b, r[row]), b->first + row);
}

/* Genes of a run of rows: what is before them in the block. */
static void read_rows(const block *b, size_t from, size_t to, weft_topk *lists)
{
  for (size_t column = 0; column < b->width; column++) {
    const double *r = b->product + column * b->rows;
    for (size_t row = from > column ? from : column + 1; row < to; row++)
      if (strength(b, r[row]) >= b->least)
        weft_topk_push(&lists[b->first + row], strength(b, r[row]), b->first + column);
  }
}

/* Best first, with signs, which the lists do not have. */
static void put_list(const double *z, size_t n, size_t gene, const weft_modules_rule *rule, weft_topk *list, int *index,
                     double *value)
{
  const size_t found = weft_topk_sort(list);
  for (size_t at = 0; at < rule->k; at++) {
    index[at] = 0;
    value[at] = 0;
    if (at >= found) continue;
    double r = 0;
    for (size_t i = 0; i < n; i++) r += z[gene * n + i] * z[list->items[at].index * n + i];
    index[at] = (int) list->items[at].index + 1;
    value[at] = r < 0 ? -list->items[at].score : list->items[at].score;
  }
}

/* Correlations of a block of genes with all others are made at once, and only the largest of each gene are kept. */
weft_status weft_modules_neighbours(weft_ctx *ctx, const double *z, size_t n, size_t p, const weft_modules_rule *rule,
                                    int *index, double *value)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_topk *lists;
  double *product;
  WEFT_TAKE(lists, &mem, p);
  WEFT_TAKE(product, &mem, p * WIDTH);
  for (size_t j = 0; j < p; j++) WEFT_TRY(weft_topk_init(&lists[j], &mem, rule->k));
  for (size_t first = 0; first < p; first += WIDTH) {
    WEFT_TRY(weft_poll(ctx, (double) first, (double) p));
    const block b = { product, first, p - first < WIDTH ? p - first : WIDTH, p - first, rule->least, rule->positive };
    const weft_view below = weft_view_plain(z + first * n, n, 1), own = weft_view_plain(z + first * n, n, 0);
    WEFT_TRY(weft_product(ctx, b.rows, b.width, n, 1, &below, &own, 0, product, b.rows, 0));
    const int threads = weft_threads_worth(ctx->threads, (double) b.rows * (double) b.width);
    WEFT_PARALLEL_FOR(threads, guided)
    for (size_t column = 0; column < b.width; column++) read_column(&b, column, lists);
    const size_t runs = (b.rows + RUN - 1) / RUN;
    WEFT_PARALLEL_FOR(threads, guided)
    for (size_t run = 0; run < runs; run++)
      read_rows(&b, run * RUN, (run + 1) * RUN < b.rows ? (run + 1) * RUN : b.rows, lists);
  }
  WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) p * (double) (n * rule->k)), guided)
  for (size_t j = 0; j < p; j++) put_list(z, n, j, rule, &lists[j], index + j * rule->k, value + j * rule->k);
done:
  weft_arena_end(&mem);
  return st;
}
