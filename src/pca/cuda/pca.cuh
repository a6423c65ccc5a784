/* What the CUDA files of the room share. */
#pragma once

#include <cublas_v2.h>
#include <cusolverDn.h>
#include <cusparse.h>
#include <vector>
#include "core/device/packed.cuh"
#include "pca/pca.h"

/* A sparse block: columns as they came (the rows of its transpose), and rows. */
struct sparse_block {
  int64_t row, n, stored;
  cusparseSpMatDescr_t by_column, by_row;
};

/* Rows row .. row + n - 1 as compressed columns, in arrays with room for so many values. */
struct weft_pca_stored {
  int64_t row, n;
  size_t room;
  int32_t *starts, *rows;
  double *values;
};

/* Rows and columns of X, centred and scaled, as a product meets them. */
struct weft_pca_piece {
  const double *x;
  int64_t row, column, rows, columns, ld;
};
typedef weft_status (*weft_pca_piece_work)(weft_pca_space *space, const weft_pca_piece *x, void *data);

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
  double *tiled, *partial;  /* of the fused step */
  bool plain;               /* no room or no way for it */
  double *numbers, turn;    /* the results of a step: pinned, visible to both sides; and its number */
  double *t, *loads, *sums; /* of what is observed: n, p, 2 × SLICES × n */
  cublasHandle_t blas;
  cusolverDnHandle_t solver;
  cusparseHandle_t sparse;
  std::vector<sparse_block> *blocks;
  std::vector<weft_pca_stored> *held; /* of data that are read in blocks, those that stay here; else NULL */
  weft_pca_stored passing;            /* another of them */
  weft_unpacking unpacking;
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

static inline unsigned weft_pca_blocks_for(size_t count) { return (unsigned) ((count + 255) / 256); }
cudaError_t weft_pca_fill(double *x, int64_t count, double value, cudaStream_t stream);

/* A panel of data that are read in blocks, as it came: packed, or with `packed` NULL. */
struct weft_pca_read {
  const weft_packed_panel *packed;
  weft_pca_panel plain;
  size_t stored;
};
weft_status weft_pca_read_panel(weft_ctx *ctx, const weft_pca_data *data, size_t index, weft_pca_read *out);
weft_status weft_pca_take_panel(weft_device_arena *mem, size_t p, size_t stored, weft_pca_stored *out);
void weft_pca_drop_panel(weft_device_arena *mem, weft_pca_stored *panel);
/* In room for it. */
weft_status weft_pca_put_panel(weft_unpacking *unpacking, const weft_pca_data *data, size_t index,
                               const weft_pca_read *from, weft_pca_stored *to);

/* Operations of pca.h that have files of their own. */
weft_status weft_pca_moments_cuda(weft_ctx *ctx, const weft_pca_data *data, const double *weights,
                                  const weft_pca_moments *out);
weft_status weft_pca_seen_cuda(weft_ctx *ctx, const weft_pca_data *data, double *out);
weft_status weft_pca_product(weft_pca_space *space, int transposed, const double *v, size_t b, double *out);
weft_status weft_pca_twice_cuda(weft_pca_space *space, const double *v, size_t b, double *out);
weft_status weft_pca_gemm(weft_pca_space *space, int ta, int tb, size_t m, size_t n, size_t k, double alpha,
                          const double *a, size_t lda, const double *b, size_t ldb, double beta, double *c, size_t ldc);
/* Puts X on the device: whole where it fits, else room for its pieces; sparse blocks always whole. */
weft_status weft_pca_place(weft_pca_space *space);
weft_status weft_pca_square(weft_pca_space *space, int rows, int coarse, double *g, double *diagonal);
weft_status weft_pca_shift(weft_pca_space *space, double *g, size_t order, const double *diagonal, double by);
weft_status weft_pca_correct(weft_pca_space *space, double *g, size_t order, const double *m, const double *v, size_t b,
                             double *diagonal);
weft_status weft_pca_eigen(weft_pca_space *space, double *g, size_t order, size_t k, double *vectors);
/* Sparse data that are read in blocks: placed, and met as pieces with all columns (stored.cu). */
weft_status weft_pca_place_stored(weft_pca_space *space);
weft_status weft_pca_each_stored(weft_pca_space *space, weft_pca_piece_work work, void *data);
weft_status weft_pca_observed_cuda(weft_pca_space *space, double *t, double *loads);
weft_status weft_pca_observed_loads_cuda(weft_pca_space *space, const double *t, double *loads);
weft_status weft_pca_observed_scores_cuda(weft_pca_space *space, const double *loads, double *t);
weft_status weft_pca_deflate_cuda(weft_pca_space *space, const double *t, const double *loads);

/* What a step of GS-PCA works on: X in the layout of weft_pca_tile(). */
struct weft_pca_dense {
  const double *tiled;
  int64_t n, p;
};

/* True when the fused kernel takes a matrix of this shape on this device. */
bool weft_pca_fused_fits(int64_t p);
size_t weft_pca_tiled_count(int64_t n, int64_t p);
cudaError_t weft_pca_tile(const double *x, int64_t n, int64_t p, int64_t ld, double *to, cudaStream_t stream);
/* u = X v and `parts` parts of w = X'u with one reading of X. `partial`: weft_pca_fused_partial(p) doubles. */
size_t weft_pca_fused_partial(int64_t p);
cudaError_t weft_pca_fused(const weft_pca_dense *m, const double *v, double *unpacking, double *partial, int *parts,
                           cudaStream_t stream);
/* w (the sum of the parts, when there are some) freed of the k columns of `found`, twice where needed; v = w / |w|;
 * then, in memory that the host sees, out = { |u|, |w|, |w / |u| - |u| v|, turn }. k <= 256. */
cudaError_t weft_pca_after(const double *found, int k, const double *partial, int parts, double *v,
                           const double *unpacking, double *w, int64_t n, int64_t p, double *out, double turn,
                           cudaStream_t stream);
