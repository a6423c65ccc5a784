/* A sparse panel S in tiles of 2^side rows, each as compressed columns of its own. */
#pragma once

#include "../base/arena.h"
#include "pca.h"

typedef struct weft_pca_tiles {
  size_t n, p, tiles;
  int side;
  uint32_t *starts; /* tiles × (p + 1): where a column begins in its tile */
  size_t *begin;    /* tiles + 1: where a tile does */
  uint16_t *rows;   /* in the tile */
  double *values;
} weft_pca_tiles;

/* Of a panel whose columns have rising rows; what is taken lives in `mem`. */
weft_status weft_pca_tile(weft_ctx *ctx, const weft_pca_panel *x, weft_arena *mem, weft_pca_tiles *out);

/* As weft_pca_sparse_times() and weft_pca_sparse_transposed(); b is a multiple of 4. */
weft_status weft_pca_tiles_times(weft_ctx *ctx, const weft_pca_tiles *x, const double *v, size_t b, double *out);
weft_status weft_pca_tiles_transposed(weft_ctx *ctx, const weft_pca_tiles *x, const double *u, size_t b, double *out);
