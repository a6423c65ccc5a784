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
} weft_pca_runs; /* `columns` neighbouring columns with `length` values each */

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

/* Makes tiles of a panel, whose columns must have rising rows. All memory is from `mem`. */
weft_status weft_pca_tile(weft_ctx *ctx, const weft_pca_panel *x, weft_arena *mem, weft_pca_tiles *out);

/* Columns that are fetched ahead, beyond the end of the last tile's. */
#define WEFT_PCA_TILE_AHEAD 12
static inline uint32_t *weft_pca_tile_columns(const weft_pca_tiles *x, size_t tile)
{
  return x->columns + tile * (x->p + 1);
}
