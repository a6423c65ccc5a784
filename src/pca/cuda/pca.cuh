/* What the CUDA files of the room share. */
#pragma once

#include <vector>
#include "core/device/libraries.cuh"
#include "core/device/packed.cuh"
#include "pca/pca.h"

/* Rows row .. row + n - 1 as compressed columns, in arrays with room for `room` values, of which `stored` are there.
 * Where products gather, as compressed rows too. */
struct weft_pca_stored {
  int64_t row, n;
  size_t room, stored;
  int32_t *starts, *rows;
  double *values;
  int32_t *row_starts, *columns;
  double *row_values;
};

/* Rows and columns of X, centred and scaled, as a product meets them. */
struct weft_pca_piece {
  const double *x;
  int64_t row, column, rows, columns, ld;
};
typedef weft_status (*weft_pca_piece_work)(weft_pca_space *space, const weft_pca_piece *x, void *data);

/* Genotypes as they are in the file, columns `pitch` bytes apart. */
struct weft_pca_device_genotypes {
  int64_t pitch;
  size_t held, room; /* columns that stay; of those that pass, as many as there is room for */
  uint8_t *codes, *passing;
  double *values;  /* four per column (pca/both/genotypes.h) */
  double *partial; /* shares of a result */
  size_t partial_count;
};

#define WEFT_PCA_MAX_LITTLE 24

/* A small block of take() and drop() (operations.cu), which stays until the space is closed. */
struct weft_pca_little {
  double *block;
  size_t count;
  bool used;
};

struct weft_pca_space {
  weft_ctx *ctx;
  weft_device_arena mem;
  const weft_pca_data *data;
  const weft_pca_form *form;
  double *center, *factor, *row; /* on the device */
  double *x;                     /* the whole of X, ld rows per column, when it fits */
  float *single;                 /* instead, while form->single */
  int64_t ld;
  double *piece; /* room for one piece otherwise */
  size_t piece_count;
  double *tiled, *partial;                /* of the fused step */
  bool plain;                             /* no room or no way for it */
  double *numbers, turn;                  /* the results of a step: pinned, visible to both sides; and its number */
  double *t, *loads, *sums;               /* of what is observed: n, p, 2 × SLICES × n */
  double *new_center, *new_factor, *cell; /* of cells that change: room for the next form, and their values */
  int32_t *cell_row, *cell_column;
  cublasHandle_t blas;
  cusolverDnHandle_t solver;
  weft_pca_little little[WEFT_PCA_MAX_LITTLE];
  size_t little_count;
  std::vector<weft_pca_stored> *held; /* of sparse blocks, those that stay here; else NULL */
  bool gathers;                       /* products take their stored values (gathered.cu), or dense pieces */
  double *scratch;                    /* of products that gather */
  size_t scratch_count;
  weft_pca_stored passing; /* another of them */
  weft_unpacking unpacking;
  weft_pca_device_genotypes genotypes;
  bool refined;
};

weft_status weft_pca_library_error(weft_ctx *ctx, const char *library, int code, const char *file, int line);
#define LIBRARY(name, step) \
  do { \
    int e_ = (int) (step); \
    if (e_) { \
      st = weft_pca_library_error(ctx, name, e_, __FILE__, __LINE__); \
      goto done; \
    } \
  } while (0)

/* Bytes that may be taken, where `bytes` are wanted: to ask takes longer than small calls' work, which finds a
 * megabyte. */
static inline double weft_pca_available(weft_ctx *ctx, double bytes)
{
  return bytes < 1e6 && !(ctx->device_limit > 0) ? 1e9 : weft_device_available(ctx);
}

static inline unsigned weft_pca_blocks_for(size_t count) { return (unsigned) ((count + 255) / 256); }
