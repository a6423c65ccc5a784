/* A sparse panel S in tiles of 2^side rows. A tile's columns are in the order of how many values they have there, so
 * that runs of one length follow each other. A place has 16 bits: the row in its tile and, above these `side` bits, the
 * rank of the value among those of its row, where few values come again and again (as counts do, and what is computed
 * from a count and its row). So a tile is read as 2 bytes per value, or as 10. */
#pragma once

#include "core/call/arena.h"
#include "pca/pca.h"

#define WEFT_PCA_TILE_BLOCK 8   /* vectors, at most */
#define WEFT_PCA_TILE_GROUPS 64 /* at most */

typedef struct {
  uint32_t length, columns;
} weft_pca_runs; /* so many columns with so many values */

typedef struct weft_pca_tiles {
  size_t n, p, tiles, groups; /* groups of tiles, whose sums are added in their order */
  int side;
  size_t *begin; /* tiles + 1: where a tile's places begin */
  uint16_t *places;
  double **values;   /* of tiles: in the order of places, or a table with a value for every place */
  int *tabled;       /* tiles */
  uint32_t *columns; /* p + 1 for each tile */
  size_t max_runs;
  weft_pca_runs *runs; /* max_runs for each tile, behind the last one of length 0 */
  double *sums, *far;  /* for products: groups × p and groups × 2^side rows of WEFT_PCA_TILE_BLOCK */
} weft_pca_tiles;

/* Of a panel whose columns have rising rows; what is taken lives in `mem`. */
weft_status weft_pca_tile(weft_ctx *ctx, const weft_pca_panel *x, weft_arena *mem, weft_pca_tiles *out);

/* As weft_pca_sparse_times() and weft_pca_sparse_transposed(); b is 4 or 8. */
weft_status weft_pca_tiles_times(weft_ctx *ctx, const weft_pca_tiles *x, const double *v, size_t b, double *out);
weft_status weft_pca_tiles_transposed(weft_ctx *ctx, const weft_pca_tiles *x, const double *u, size_t b, double *out);
/* With u = R^2 (S v - 1 shift'): out += S'u, total += 1'u; u is not kept. row: R's diagonal, or NULL. */
weft_status weft_pca_tiles_twice(weft_ctx *ctx, const weft_pca_tiles *x, const double *v, size_t b, const double *shift,
                                 const double *row, double *total, double *out);

/* Columns that are fetched ahead, beyond the end of the last tile's. */
#define WEFT_PCA_TILE_AHEAD 12
static inline uint32_t *weft_pca_tile_columns(const weft_pca_tiles *x, size_t tile)
{
  return x->columns + tile * (x->p + 1);
}
