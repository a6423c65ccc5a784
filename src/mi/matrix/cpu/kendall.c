/* Kendall's τ-b of all pairs of columns by bit planes.
 *
 * A plane of a column has one bit for each pair of rows r < s: G marks x_r > x_s, L marks x_r < x_s, V marks that
 * neither is missing. Concordant less discordant pairs are |Ga Gb| + |La Lb| - |Ga Lb| - |La Gb|, pairs not tied in a
 * over the common rows |Ga Vb| + |La Vb|, so ties and missing values need no special treatment: they have no bit.
 * Columns without ties or missing values need G alone, as L is its complement and V is full. The planes are made and
 * counted piece by piece. */
/* Build: shared. */
#include <stdlib.h>
#include <string.h>
#include "core/data/bits.h"
#include "core/call/parallel.h"
#include "mi/matrix/both/numeric.h"
#include "mi/matrix/cpu/kendall.h"

#define PIECE_WORDS 512 /* of a plane at a time: 32,768 pairs of rows */
#define TILE 128        /* planes per side of a tile; counts and rearranged planes stay in cache */

typedef struct {
  const weft_mi_numeric *data;
  int kinds;           /* planes per column: 1 (G), or 3 (G, L, V) */
  size_t planes;       /* kinds × p */
  size_t pairs;        /* of rows */
  uint64_t *words;     /* planes × PIECE_WORDS */
  int64_t *difference; /* by pair of columns, as in the result */
  int64_t *untied_a, *untied_b;
  const weft_bits_ops *ops;
} kendall;

/* Sets the pair of rows that `index` numbers: 0 is (0, 1), then (0, 2) .. (0, n - 1), (1, 2) and so on. */
static void pair_at(size_t n, size_t index, size_t *row, size_t *other)
{
  for (*row = 0; index >= n - 1 - *row; ++*row) index -= n - 1 - *row;
  *other = *row + 1 + index;
}

/* The planes of column j for `count` pairs of rows from (r, s) on. */
static void fill_planes(const kendall *k, size_t j, size_t row, size_t other, size_t count)
{
  const size_t n = k->data->n;
  const double *x = k->data->x + j * n;
  uint64_t *greater = k->words + j * (size_t) k->kinds * PIECE_WORDS;
  for (size_t w = 0, done = 0; w < PIECE_WORDS; w++) {
    uint64_t more = 0, less = 0, valid = 0;
    for (int bit = 0; bit < 64 && done < count; bit++, done++) {
      more |= (uint64_t) (x[row] > x[other]) << bit;
      if (k->kinds == 3) {
        less |= (uint64_t) (x[row] < x[other]) << bit;
        valid |= (uint64_t) (x[row] == x[row] && x[other] == x[other]) << bit;
      }
      if (++other == n) {
        row++;
        other = row + 1;
      }
    }
    greater[w] = more;
    if (k->kinds == 3) {
      greater[PIECE_WORDS + w] = less;
      greater[2 * PIECE_WORDS + w] = valid;
    }
  }
}

/* Adds what a piece of pairs of rows says about the pairs of columns of one tile. `c`: TILE × TILE counts. */
static void count_tile(const kendall *k, const weft_mi_tiles *tiles, size_t index, uint32_t *c)
{
  const size_t kinds = (size_t) k->kinds, rows = k->data->split ? k->data->split : k->data->p;
  size_t i0, i1, j0, j1;
  if (!weft_mi_tile(tiles, index, &i0, &i1, &j0, &j1)) return;
  const size_t width = (j1 - j0) * kinds;
  k->ops->popcount_tile(k->words + i0 * kinds * PIECE_WORDS, (i1 - i0) * kinds, PIECE_WORDS,
                        k->words + j0 * kinds * PIECE_WORDS, width, PIECE_WORDS, PIECE_WORDS, c, width);
  for (size_t i = i0; i < i1; i++)
    for (size_t j = j0; j < j1; j++) {
      const uint32_t *at = c + (i - i0) * kinds * width + (j - j0) * kinds, *below = at + width, *valid = below + width;
      const size_t to = i + (j - k->data->split) * rows;
      if (!k->data->split && i > j) continue;
      if (kinds == 1) {
        k->difference[to] += 4 * (int64_t) at[0];
      } else {
        k->difference[to] += (int64_t) at[0] + below[1] - at[1] - below[0];
        k->untied_a[to] += (int64_t) at[2] + below[2];
        k->untied_b[to] += (int64_t) valid[0] + valid[1];
      }
    }
}

/* With plane G alone: concordant less discordant pairs = N - 2 (|Ga| + |Gb|) + 4 |Ga Gb|, N pairs of rows. */
static void finish(const kendall *k, const int64_t *greater, double *out)
{
  const weft_mi_numeric *data = k->data;
  const size_t rows = data->split ? data->split : data->p;
  for (size_t i = 0; i < rows; i++)
    for (size_t j = data->split ? data->split : i + 1; j < data->p; j++) {
      const size_t at = i + (j - data->split) * rows;
      const int64_t all = (int64_t) k->pairs;
      const double bits = k->kinds == 1
                              ? weft_mi_of_tau(k->difference[at] + all - 2 * (greater[i] + greater[j]), all, all)
                              : weft_mi_of_tau(k->difference[at], k->untied_a[at], k->untied_b[at]);
      weft_mi_put(data, out, i, j, bits);
    }
}

static int cmp_double(const void *a, const void *b)
{
  const double x = *(const double *) a, y = *(const double *) b;
  return (x > y) - (x < y);
}

/* Whether no column has ties or missing values. `work`: n numbers. */
static int plain(const weft_mi_numeric *data, double *work)
{
  for (size_t j = 0; j < data->p; j++) {
    memcpy(work, data->x + j * data->n, data->n * sizeof *work);
    for (size_t i = 0; i < data->n; i++)
      if (work[i] != work[i]) return 0;
    qsort(work, data->n, sizeof *work, cmp_double);
    for (size_t i = 1; i < data->n; i++)
      if (work[i] == work[i - 1]) return 0;
  }
  return 1;
}

/* Tau of all pairs of columns, as information in bits. Pairs of rows are taken piece by piece: planes of a piece are
 * made for all columns, then tiles of pairs of columns are counted and added up. */
weft_status weft_mi_kendall(weft_ctx *ctx, const weft_mi_numeric *data, double *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t cells = data->split ? data->split * (data->p - data->split) : data->p * data->p,
               piece = PIECE_WORDS * 64;
  kendall k = { data, 3, 0, data->n * (data->n - 1) / 2, NULL, NULL, NULL, NULL, weft_bits() };
  int64_t *greater;
  uint32_t *counts;
  double *work;
  WEFT_TAKE(work, &mem, data->n);
  k.kinds = plain(data, work) ? 1 : 3;
  k.planes = (size_t) k.kinds * data->p;
  const weft_mi_tiles tiles = weft_mi_tiles_of(data, TILE / (size_t) k.kinds);
  const int64_t total = (int64_t) (tiles.rows * tiles.columns), at_once = 64 * (int64_t) ctx->threads;
  WEFT_TAKE(k.words, &mem, k.planes * PIECE_WORDS);
  WEFT_TAKE0(k.difference, &mem, cells);
  WEFT_TAKE0(greater, &mem, data->p);
  WEFT_TAKE(counts, &mem, (size_t) ctx->threads * TILE * TILE);
  if (k.kinds == 3) {
    WEFT_TAKE0(k.untied_a, &mem, cells);
    WEFT_TAKE0(k.untied_b, &mem, cells);
  }
  for (size_t first = 0; first < k.pairs; first += piece) {
    const size_t count = k.pairs - first < piece ? k.pairs - first : piece;
    size_t row, other;
    pair_at(data->n, first, &row, &other);
    WEFT_TRY(weft_poll(ctx, (double) first, (double) k.pairs));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) data->p * (double) count), static)
    for (int64_t j = 0; j < (int64_t) data->p; j++) {
      fill_planes(&k, (size_t) j, row, other, count);
      if (k.kinds == 1) greater[j] += (int64_t) k.ops->popcount(k.words + (size_t) j * PIECE_WORDS, PIECE_WORDS);
    }
    for (int64_t from = 0; from < total; from += at_once) {
      const int64_t end = total - from < at_once ? total : from + at_once;
      WEFT_TRY(weft_poll(ctx, (double) first + (double) count * (double) from / (double) total, (double) k.pairs));
      WEFT_PARALLEL(weft_threads_worth(ctx->threads, (double) (end - from) * TILE * TILE * (double) count / 128))
      WEFT_FOR(dynamic)
      for (int64_t tile = from; tile < end; tile++)
        count_tile(&k, &tiles, (size_t) tile, counts + (size_t) WEFT_THREAD() * TILE * TILE);
    }
  }
  finish(&k, greater, out);
done:
  weft_arena_end(&mem);
  return st;
}
