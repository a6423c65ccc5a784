/* The operations of pca.h on the CPU. Dense panels are centred, scaled and weighted while they are packed for a product
 * (core/numbers/product.h). Sparse panels are multiplied as they are, and the centre comes off afterwards:
 *   X = R (S - 1 c') F      X v = R (S F v - 1 (c'F v))      X'u = F (S'R u - c (1'R u)) */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/call/arena.h"
#include "core/together/exchange.h"
#include "core/call/parallel.h"
#include "core/numbers/product.h"
#include "pca/pca.h"
#include "pca/cpu/genotypes.h"
#include "pca/cpu/gram_sparse.h"
#include "pca/both/moments.h"
#include "pca/cpu/observed.h"
#include "pca/cpu/refilled.h"
#include "pca/engines/dense_eigen.h"
#include "pca/cpu/sparse.h"
#include "pca/cpu/tiles.h"
#include "pca/cpu/tiles_products.h"

struct weft_pca_space {
  weft_ctx *ctx;
  weft_arena mem;
  const weft_pca_data *data;
  const weft_pca_form *form;
  float *floats;         /* the centred and scaled matrix, in single precision */
  double *own;           /* or a copy to deflate */
  weft_coded coded;      /* or genotypes and their values */
  weft_pca_tiles *tiles; /* of sparse panels that stay, from the second product on; NULL where there is no room */
  int products;
  weft_pca_refilled refilled; /* from the first Gram matrix on, of data whose cells change */
};

/* ---- memory ---- */

static weft_status take(weft_pca_space *space, size_t count, double **out)
{
  *out = weft_arena_take(&space->mem, count, sizeof **out);
  return *out ? WEFT_OK : WEFT_ERR_MEMORY;
}

static void drop(weft_pca_space *space, double *block) { weft_arena_drop(&space->mem, block); }

static weft_status move(weft_pca_space *space, double *to, const double *from, size_t count)
{
  (void) space;
  memmove(to, from, count * sizeof *to);
  return WEFT_OK;
}

static void close_space(weft_pca_space *space)
{
  weft_arena mem = space->mem; /* the space itself lives in it */
  weft_arena_end(&mem);
}

static weft_view panel_view(const weft_pca_space *space, const weft_pca_panel *x, int transposed)
{
  const double *row = space->form->row ? space->form->row + x->row : NULL;
  if (space->floats) return (weft_view){ .x = space->floats, .ld = x->n, .single = 1, .transposed = transposed };
  if (x->genotypes) return (weft_view){ .transposed = transposed, .row = row, .coded = &space->coded };
  return (weft_view){ .x = x->dense,
                      .ld = x->ld,
                      .transposed = transposed,
                      .center = space->form->center + x->column,
                      .factor = space->form->factor + x->column,
                      .row = row };
}

/* Keeps pointers only, except for single precision and for data that will be deflated: these get a centred and scaled
 * copy (floats or doubles), which the space owns. */
static weft_status open_space(weft_ctx *ctx, const weft_pca_data *data, const weft_pca_form *form, weft_pca_space **out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_pca_space *space;
  weft_pca_panel x;
  WEFT_TAKE0(space, &mem, 1);
  space->ctx = ctx;
  space->data = data;
  space->form = form;
  if (data->coded) WEFT_TRY(weft_pca_open_genotypes(ctx, &mem, data, form, &space->coded));
  if (form->single || form->own) {
    if (form->single)
      WEFT_TAKE(space->floats, &mem, data->n * data->p);
    else
      WEFT_TAKE(space->own, &mem, data->n * data->p);
    WEFT_TRY(data->fetch(ctx, data->source, 0, &x));
    WEFT_PARALLEL_FOR(weft_pca_threads_for_cells(ctx, (double) x.n * (double) x.p), static)
    for (int64_t j = 0; j < (int64_t) x.p; j++)
      for (size_t i = 0; i < x.n; i++) {
        const size_t at = i + (size_t) j * x.n;
        const double value =
            (x.dense[i + (size_t) j * x.ld] - form->center[j]) * form->factor[j] * (form->row ? form->row[i] : 1);
        if (space->own)
          space->own[at] = value;
        else
          space->floats[at] = (float) value;
      }
  }
  space->mem = mem;
  *out = space;
  return st;
done:
  weft_arena_end(&mem);
  return st;
}

static void refine(weft_pca_space *space)
{
  weft_arena_drop(&space->mem, space->floats);
  space->floats = NULL;
}

static weft_status join(weft_pca_space *space, double *x, size_t count) { return weft_meet_add(space->ctx, x, count); }

static weft_status refill(weft_pca_space *space, const weft_pca_cells *cells)
{
  return space->refilled.by_row ? weft_pca_refilled_change(space->ctx, &space->refilled, space->form, cells) : WEFT_OK;
}

/* ---- products ---- */

#define TILED_VALUES 1e5 /* fewer stay in cache as they are */
#define MIN_TILED 3      /* vectors, which are made up to a multiple of 4 */

/* Tiles, a copy of 2 to 10 bytes per value, are made for the second product; the first may be the last. */
static weft_status make_tiles(weft_pca_space *space, size_t b)
{
  weft_status st = WEFT_OK;
  const weft_pca_data *data = space->data;
  weft_pca_panel x;
  double stored = 0;
  if (!data->stays || b < MIN_TILED || space->products++ != 1) return WEFT_OK;
  for (size_t t = 0; t < data->panels; t++) {
    WEFT_TRY(data->fetch(space->ctx, data->source, t, &x));
    stored += x.starts[x.p];
  }
  const double have = weft_host_available();
  if (stored < TILED_VALUES || (have > 0 && 12 * stored > 0.5 * have)) return WEFT_OK;
  weft_pca_tiles *tiles;
  WEFT_TAKE0(tiles, &space->mem, data->panels);
  for (size_t t = 0; t < data->panels; t++) {
    WEFT_TRY(data->fetch(space->ctx, data->source, t, &x));
    WEFT_TRY(weft_pca_tile(space->ctx, &x, &space->mem, &tiles[t]));
  }
  space->tiles = tiles;
done:
  return st;
}

/* How many vectors tiles multiply at once when `given` are given; the others are zero. */
static size_t tiled_block(size_t given) { return given <= 4 ? 4 : WEFT_PCA_TILE_BLOCK; }

/* to[i b + j] = from[i + j rows] times[i] for vectors that are given, 0 for others */
static void by_rows(double *to, const double *from, size_t rows, size_t given, size_t b, const double *times)
{
  for (size_t i = 0; i < rows; i++) {
    const double by = times ? times[i] : 1;
    for (size_t j = 0; j < given; j++) to[i * b + j] = from[i + j * rows] * by;
    for (size_t j = given; j < b; j++) to[i * b + j] = 0;
  }
}

/* Product with sparse X without centring it: (X - 1 c') D v = X D v - 1 (c'D v), and likewise for X'. Vectors are held
 * row by row. Blocks of MIN_TILED vectors and more go through tiles, where they fit; at most WEFT_PCA_TILE_BLOCK
 * vectors at a time. */
static weft_status sparse_product(weft_pca_space *space, int transposed, const double *v, size_t given, double *out)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  weft_arena mem = weft_arena_begin(ctx);
  const weft_pca_form *form = space->form;
  const size_t n = space->data->n, p = space->data->p, from = transposed ? n : p, to = transposed ? p : n;
  double *in, *sums, *shift;
  weft_pca_panel x;
  WEFT_TRY(make_tiles(space, given));
  const weft_pca_tiles *tiles = given < MIN_TILED ? NULL : space->tiles;
  if (tiles && given > WEFT_PCA_TILE_BLOCK) {
    for (size_t j = 0; j < given; j += WEFT_PCA_TILE_BLOCK) {
      const size_t here = given - j < WEFT_PCA_TILE_BLOCK ? given - j : WEFT_PCA_TILE_BLOCK;
      WEFT_TRY(sparse_product(space, transposed, v + j * from, here, out + j * to));
    }
    goto done;
  }
  const size_t b = tiles ? tiled_block(given) : given;
  WEFT_TAKE(in, &mem, from * b);
  WEFT_TAKE0(sums, &mem, to * b);
  WEFT_TAKE0(shift, &mem, b);
  by_rows(in, v, from, given, b, transposed ? form->row : form->factor);
  for (size_t i = 0; i < from; i++) weft_add_scaled(b, shift, transposed ? 1 : form->center[i], in + i * b);
  for (size_t t = 0; t < space->data->panels; t++) {
    WEFT_TRY(space->data->fetch(ctx, space->data->source, t, &x));
    const double *from_here = transposed ? in + x.row * b : in;
    double *to_here = transposed ? sums : sums + x.row * b;
    if (tiles && transposed)
      st = weft_pca_tiles_transposed(ctx, &tiles[t], from_here, b, to_here);
    else if (tiles)
      st = weft_pca_tiles_times(ctx, &tiles[t], from_here, b, to_here);
    else if (transposed)
      st = weft_pca_sparse_transposed(ctx, &x, from_here, b, to_here);
    else
      st = weft_pca_sparse_times(ctx, &x, from_here, b, to_here);
    if (st != WEFT_OK) goto done;
  }
  for (size_t i = 0; i < to; i++) {
    const double off = transposed ? form->center[i] : 1;
    const double by = transposed ? form->factor[i] : form->row ? form->row[i] : 1;
    for (size_t j = 0; j < given; j++) out[i + j * to] = (sums[i * b + j] - shift[j] * off) * by;
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* X'u of genotypes with weights R, which go to u: both are then read along their columns. At most FEW vectors at once,
 * as weft_product() takes them. */
static weft_status weighted_genotypes(weft_pca_space *space, const double *u, size_t b, double *out)
{
  enum { FEW = 64 };
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(space->ctx);
  const size_t n = space->data->n, p = space->data->p;
  const weft_view x = { .transposed = 1, .coded = &space->coded };
  double *rows;
  WEFT_TAKE(rows, &mem, n * (b < FEW ? b : FEW));
  for (size_t first = 0; first < b; first += FEW) {
    const size_t now = b - first < FEW ? b - first : FEW;
    const weft_view in = weft_view_plain(rows, n, 0);
    for (size_t j = 0; j < now; j++)
      for (size_t i = 0; i < n; i++) rows[i + j * n] = u[i + (first + j) * n] * space->form->row[i];
    WEFT_TRY(weft_product(space->ctx, p, now, n, 1, &x, &in, 0, out + first * p, p, 0));
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* out = X v or X'v, panel by panel; for dense panels centring and scaling are part of the packed product. */
static weft_status product(weft_pca_space *space, int transposed, const double *v, size_t b, double *out)
{
  weft_status st = WEFT_OK;
  const size_t n = space->data->n, p = space->data->p;
  weft_pca_panel x;
  if (space->data->sparse) return sparse_product(space, transposed, v, b, out);
  if (space->data->coded && transposed && space->form->row) return weighted_genotypes(space, v, b, out);
  for (size_t t = 0; t < space->data->panels; t++) {
    WEFT_TRY(space->data->fetch(space->ctx, space->data->source, t, &x));
    const weft_view view = panel_view(space, &x, transposed);
    const weft_view in = transposed ? weft_view_plain(v + x.row, n, 0) : weft_view_plain(v + x.column, p, 0);
    if (transposed)
      WEFT_TRY(weft_product(space->ctx, x.p, b, x.n, 1, &view, &in, x.row ? 1 : 0, out + x.column, p, 0));
    else
      WEFT_TRY(weft_product(space->ctx, x.n, b, x.p, 1, &view, &in, x.column ? 1 : 0, out + x.row, n, 0));
  }
done:
  return st;
}

/* X'X v for a sparse S, with factors F, centres c and row factors R: X'X v = F (S'R² y - c 1'R² y) where y = S F v - 1
 * (c'F v). Panels are ranges of rows, so both products of one follow each other. */
static weft_status twice(weft_pca_space *space, const double *v, size_t given, double *out)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  weft_arena mem = weft_arena_begin(ctx);
  const weft_pca_form *form = space->form;
  const size_t p = space->data->p;
  double *in, *far = NULL, *sums, *shift, *total;
  size_t room = 0;
  weft_pca_panel x;
  if (!space->products) space->products = 1; /* more will follow */
  WEFT_TRY(make_tiles(space, given));
  const weft_pca_tiles *tiles = given < MIN_TILED || given > WEFT_PCA_TILE_BLOCK ? NULL : space->tiles;
  const size_t b = tiles ? tiled_block(given) : given;
  WEFT_TAKE(in, &mem, p * b);
  WEFT_TAKE0(sums, &mem, p * b);
  WEFT_TAKE0(shift, &mem, b);
  WEFT_TAKE0(total, &mem, b);
  by_rows(in, v, p, given, b, form->factor);
  for (size_t i = 0; i < p; i++) weft_add_scaled(b, shift, form->center[i], in + i * b);
  for (size_t t = 0; t < space->data->panels; t++) {
    WEFT_TRY(space->data->fetch(ctx, space->data->source, t, &x));
    if (tiles) {
      const double *row = form->row ? form->row + x.row : NULL;
      WEFT_TRY(weft_pca_tiles_twice(ctx, &tiles[t], in, b, shift, row, total, sums));
      continue;
    }
    if (x.n > room) {
      weft_arena_drop(&mem, far);
      room = x.n;
      WEFT_TAKE(far, &mem, room * b);
    }
    WEFT_TRY(weft_pca_sparse_times(ctx, &x, in, b, far));
    for (size_t i = 0; i < x.n; i++) {
      const double weight = form->row ? form->row[x.row + i] * form->row[x.row + i] : 1;
      for (size_t j = 0; j < b; j++) {
        far[i * b + j] = (far[i * b + j] - shift[j]) * weight;
        total[j] += far[i * b + j];
      }
    }
    WEFT_TRY(weft_pca_sparse_transposed(ctx, &x, far, b, sums));
  }
  for (size_t j = 0; j < given; j++)
    for (size_t i = 0; i < p; i++) out[i + j * p] = (sums[i * b + j] - total[j] * form->center[i]) * form->factor[i];
done:
  weft_arena_end(&mem);
  return st;
}

static weft_status draw(weft_pca_space *space, weft_rng rng, uint64_t first, double *to, size_t count)
{
  WEFT_PARALLEL_FOR(weft_threads_worth(space->ctx->threads, 5 * (double) count), static)
  for (int64_t i = 0; i < (int64_t) count; i++) to[i] = 2 * weft_draw_uniform(rng, first + (uint64_t) i) - 1;
  return WEFT_OK;
}

static weft_status gemm(weft_pca_space *space, int ta, int tb, size_t m, size_t n, size_t k, double alpha,
                        const double *a, size_t lda, const double *b, size_t ldb, double beta, double *c, size_t ldc)
{
  const weft_view va = weft_view_plain(a, lda, ta), vb = weft_view_plain(b, ldb, tb);
  return weft_product(space->ctx, m, n, k, alpha, &va, &vb, beta, c, ldc, 0);
}

/* ---- the Gram matrix ---- */

/* From products with unit vectors, 64 at a time: for data whose panels do not add up to it. */
static weft_status gram_by_products(weft_pca_space *space, int rows, size_t order, double *g)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(space->ctx);
  const size_t other = rows ? space->data->p : space->data->n;
  double *unit, *y;
  WEFT_TAKE(unit, &mem, order * 64);
  WEFT_TAKE(y, &mem, other * 64);
  for (size_t j = 0; j < order; j += 64) {
    const size_t b = order - j < 64 ? order - j : 64;
    memset(unit, 0, order * b * sizeof *unit);
    for (size_t i = 0; i < b; i++) unit[j + i + i * order] = 1;
    WEFT_TRY(product(space, rows, unit, b, y));
    WEFT_TRY(product(space, !rows, y, b, g + j * order));
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* X'X of sparse rows, the lower triangle. */
static weft_status gram_of_sparse(weft_pca_space *space, double *g)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(space->ctx);
  const weft_pca_data *data = space->data;
  const double *row = space->form->row;
  double *m, weight = (double) data->n;
  weft_pca_panel x;
  WEFT_TAKE0(m, &mem, data->p);
  memset(g, 0, data->p * data->p * sizeof *g);
  for (size_t t = 0; t < data->panels; t++) {
    WEFT_TRY(data->fetch(space->ctx, data->source, t, &x));
    WEFT_TRY(weft_pca_gram_sparse_add(space->ctx, &x, row ? row + x.row : NULL, g, m));
  }
  if (row) {
    weight = 0;
    for (size_t i = 0; i < data->n; i++) weight += row[i] * row[i];
  }
  const int threads = weft_pca_threads_for_cells(space->ctx, (double) data->p * (double) data->p);
  weft_pca_gram_sparse_centre(space->form, data->p, weight, m, g, threads);
done:
  weft_arena_end(&mem);
  return st;
}

/* Upper triangle from lower, in squares that stay in cache. */
static void mirror(double *g, size_t order)
{
  const size_t side = 32;
  for (size_t jj = 0; jj < order; jj += side)
    for (size_t ii = 0; ii <= jj; ii += side)
      for (size_t j = jj; j < jj + side && j < order; j++)
        for (size_t i = ii; i < ii + side && i < j; i++) g[i + j * order] = g[j + i * order];
}

static int squares(const weft_pca_space *space, size_t order)
{
  const double have = weft_host_available();
  const int summed = space->data->sparse ? order == space->data->p : space->data->stays;
  return summed && (have <= 0 || 8.0 * (double) order * (double) order < 0.5 * have);
}

/* Whether the Gram matrix is kept for cells that change, beside a copy of the data; makes it at the first call. */
static weft_status keep_square(weft_pca_space *space, int rows, int *kept)
{
  weft_status st = WEFT_OK;
  const double p = (double) space->data->p, have = weft_host_available();
  *kept = space->refilled.by_row != NULL;
  if (*kept || rows || !space->form->refilled) return st;
  if (have > 0 && 8.0 * p * ((double) space->data->n + 2 * p) > 0.5 * have) return st;
  WEFT_TRY(weft_pca_refilled_open(space->ctx, &space->mem, space->data, space->form, &space->refilled));
  *kept = 1;
done:
  return st;
}

/* The smaller Gram matrix. Sparse columns: from pairs of values within rows; panels that do not span the other side: by
 * products with unit vectors; else a sum over panels, of which only the lower triangle is computed. */
static weft_status square(weft_pca_space *space, int rows, int coarse, double *g, double *diagonal)
{
  weft_status st = WEFT_OK;
  (void) coarse; /* all of it in double */
  const size_t order = rows ? space->data->n : space->data->p;
  weft_pca_panel x;
  int kept;
  WEFT_TRY(keep_square(space, rows, &kept));
  WEFT_TRY(space->data->fetch(space->ctx, space->data->source, 0, &x));
  if (kept) {
    weft_pca_refilled_square(space->ctx, &space->refilled, space->form, order, g);
  } else if (space->data->sparse && !rows) {
    WEFT_TRY(gram_of_sparse(space, g));
  } else if (space->data->sparse || (rows ? x.n < space->data->n : x.p < space->data->p)) {
    WEFT_TRY(gram_by_products(space, rows, order, g));
  } else {
    for (size_t t = 0; t < space->data->panels; t++) {
      if (t) WEFT_TRY(space->data->fetch(space->ctx, space->data->source, t, &x));
      const weft_view left = panel_view(space, &x, !rows), right = panel_view(space, &x, rows);
      WEFT_TRY(weft_product(space->ctx, order, order, rows ? x.p : x.n, 1, &left, &right, t ? 1 : 0, g, order, 1));
    }
  }
  mirror(g, order);
  for (size_t j = 0; j < order; j++) diagonal[j] = g[j + j * order];
done:
  return st;
}

/* As a transposed product, which needs no packing. */
static weft_status by_square(weft_pca_space *space, const double *g, size_t order, size_t b, double alpha,
                             const double *v, double beta, double *out)
{
  return gemm(space, 1, 0, order, b, order, alpha, g, order, v, order, beta, out, order);
}

static weft_status shift(weft_pca_space *space, double *g, size_t order, const double *diagonal, double by)
{
  (void) space;
  for (size_t j = 0; j < order; j++) g[j + j * order] = diagonal[j] - by;
  return WEFT_OK;
}

static weft_status eigen(weft_pca_space *space, double *g, size_t order, size_t k, double *vectors)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(space->ctx);
  double *values;
  WEFT_TAKE(values, &mem, k);
  WEFT_TRY(weft_pca_leading(space->ctx, g, order, k, values, vectors));
done:
  weft_arena_end(&mem);
  return st;
}

/* ---- a step of GS-PCA ---- */

static double norm_of(const double *x, size_t count)
{
  double sum = 0;
  for (size_t i = 0; i < count; i++) sum += x[i] * x[i];
  return sqrt(sum);
}

/* Two products, one for each direction, then Gram-Schmidt on the vectors found before; the device has one kernel for
 * it. */
static weft_status step(weft_pca_space *space, const double *found, size_t k, double *v, double *u, double *w,
                        double out[3])
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(space->ctx);
  const size_t p = space->data->p;
  double *c, sum = 0;
  WEFT_TAKE(c, &mem, k + 1);
  WEFT_TRY(product(space, 0, v, 1, u));
  WEFT_TRY(product(space, 1, u, 1, w));
  for (int twice = 0; k && twice < 2; twice++) {
    const double before = norm_of(w, p);
    WEFT_TRY(gemm(space, 1, 0, k, 1, p, 1, found, p, w, p, 0, c, k));
    WEFT_TRY(gemm(space, 0, 0, p, 1, k, -1, found, p, c, k, 1, w, p));
    if (pow(norm_of(c, k), 2) < 0.5 * before * before) break; /* twice is needed only when much was taken off */
  }
  out[0] = norm_of(u, space->data->n);
  out[1] = norm_of(w, p);
  for (size_t i = 0; i < p && out[0] > 0; i++) sum += pow(w[i] / out[0] - out[0] * v[i], 2);
  out[2] = sqrt(sum);
  for (size_t i = 0; i < p && out[1] > 0; i++) v[i] = w[i] / out[1];
done:
  weft_arena_end(&mem);
  return st;
}

/* ---- what is observed ---- */

static weft_status observed(weft_pca_space *space, double *t, double *loads)
{
  return weft_pca_observed(space->ctx, space->own, space->data->n, space->data->p, t, loads);
}

static weft_status observed_loads(weft_pca_space *space, const double *t, double *loads)
{
  return weft_pca_observed_loads(space->ctx, space->own, space->data->n, space->data->p, t, loads);
}

static weft_status observed_scores(weft_pca_space *space, const double *loads, double *t)
{
  return weft_pca_observed_scores(space->ctx, space->own, space->data->n, space->data->p, loads, t);
}

static weft_status deflate(weft_pca_space *space, const double *t, const double *loads)
{
  return weft_pca_deflate(space->ctx, space->own, space->data->n, space->data->p, t, loads);
}

const weft_pca_ops weft_pca_cpu = { weft_pca_moments_cpu,
                                    weft_pca_seen_cpu,
                                    open_space,
                                    close_space,
                                    refill,
                                    take,
                                    drop,
                                    move,
                                    move,
                                    move,
                                    draw,
                                    product,
                                    twice,
                                    gemm,
                                    squares,
                                    NULL,
                                    square,
                                    by_square,
                                    shift,
                                    NULL,
                                    eigen,
                                    step,
                                    refine,
                                    join,
                                    observed,
                                    observed_loads,
                                    observed_scores,
                                    deflate };
