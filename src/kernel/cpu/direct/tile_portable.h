/* Tiles: some queries against a run of references, or against a node of a tree. Each has a variant for every set of
 * vector instructions (tile.h), of which weft_*_variant() gives the best that this machine has. */
#pragma once

#include "kernel/kernel.h"

typedef struct weft_tile {
  const double *q, *q_lo; /* d * WEFT_TILE, a dimension's queries together */
  const double *x, *x_lo; /* count * d */
  const double *w;        /* count * m */
  const double *shift;    /* WEFT_TILE: exp(-u) is taken as exp(shift - u) */
  size_t d, m, count;
  double inv_h2, near; /* near: half width of the zone of doubt about s = 1 */
  double *sum;         /* m * WEFT_TILE: added to */
  /* Compact kernels: Σ w over the support (of a step: in the zone of doubt), added to. It bounds the rounding
   * error of 1 - s, which may be all there is of a kernel value near the boundary. */
  double *inside;
} weft_tile;

/* 32 queries against a node of a tree. */
typedef struct weft_node_tile {
  const double *q, *q_lo;
  const double *box;      /* 2d: least, greatest */
  const double *x, *x_lo; /* the node's first point */
  const double *centre;   /* d + 1, or NULL: middle relative to x, radius */
  const double *moments;  /* m * (d + 2): weight, mean square distance from the mean, mean relative to x */
  size_t d, m;
  double inv_h2, near, slack;     /* slack: of a coordinate, where low parts are left out of the box */
  double *estimate, *error, *low; /* m * WEFT_TILE: |f - estimate| <= error, f >= low */
} weft_node_tile;

typedef struct weft_tile_single {
  const float *q, *x, *w; /* d * WEFT_TILE_SINGLE, count * d, count * m */
  size_t d, m, count;
  float inv_h2;
  float *sum; /* m * WEFT_TILE_SINGLE */
} weft_tile_single;

/* Squared distances of 64 queries from a run of references. */
typedef struct weft_tile_squares {
  const double *q, *x; /* d * WEFT_TILE_SINGLE, a dimension's queries together; count * d */
  size_t d, count;
  int64_t first;      /* the number of the run's first reference */
  const int64_t *own; /* WEFT_TILE_SINGLE: what each query leaves out, or -1; */
  float far;          /* it is taken to be so far away, squared */
  float *square;      /* count * WEFT_TILE_SINGLE */
  float *least;       /* WEFT_TILE_SINGLE: of each query */
} weft_tile_squares;

/* Sums over such a run for several bandwidths, of two columns of weights. */
typedef struct weft_tile_wide {
  const float *square, *w; /* count * WEFT_TILE_SINGLE, count * 2 */
  const float *inv_h2;     /* bandwidths */
  const float *shift;      /* bandwidths * WEFT_TILE_SINGLE: exp(-u) is taken as exp(shift - u) */
  size_t count, bandwidths;
  float *sum; /* bandwidths * 2 * WEFT_TILE_SINGLE: written */
} weft_tile_wide;

typedef void (*weft_tile_node)(const weft_node_tile *tile, int kind);
void weft_node_avx512(const weft_node_tile *tile, int kind);
void weft_node_avx2(const weft_node_tile *tile, int kind);
void weft_node_portable(const weft_node_tile *tile, int kind);
weft_tile_node weft_node_variant(void);

typedef void (*weft_tile_sum)(const weft_tile *tile, int kind);
typedef void (*weft_tile_sum_single)(const weft_tile_single *tile, int kind);
void weft_tile_avx512(const weft_tile *tile, int kind);
void weft_tile_avx2(const weft_tile *tile, int kind);
void weft_tile_portable(const weft_tile *tile, int kind);
void weft_tile_single_avx512(const weft_tile_single *tile, int kind);
void weft_tile_single_avx2(const weft_tile_single *tile, int kind);
void weft_tile_single_portable(const weft_tile_single *tile, int kind);
typedef void (*weft_sum_squares)(const weft_tile_squares *tile);
void weft_squares_avx512(const weft_tile_squares *tile);
void weft_squares_avx2(const weft_tile_squares *tile);
void weft_squares_portable(const weft_tile_squares *tile);
weft_sum_squares weft_squares_variant(void);
typedef void (*weft_tile_sum_wide)(const weft_tile_wide *tile, int kind);
void weft_wide_avx512(const weft_tile_wide *tile, int kind);
void weft_wide_avx2(const weft_tile_wide *tile, int kind);
void weft_wide_portable(const weft_tile_wide *tile, int kind);
weft_tile_sum_wide weft_wide_variant(void);
/* out = (float) ((x - middle) * scale), element by element. */
typedef void (*weft_shift)(const double *x, const double *middle, double scale, size_t count, float *out);
void weft_shift_avx512(const double *x, const double *middle, double scale, size_t count, float *out);
void weft_shift_avx2(const double *x, const double *middle, double scale, size_t count, float *out);
void weft_shift_portable(const double *x, const double *middle, double scale, size_t count, float *out);
weft_shift weft_shift_variant(void);
/* The variants for this machine. */
weft_tile_sum weft_tile_variant(void);
weft_tile_sum_single weft_tile_single_variant(void);
