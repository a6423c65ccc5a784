/* Kernel sums f_c(q) = Σ_i w_ic k(|q - x_i| / h): the interface of the room. Structs in, structs out; no R types.
 *
 * kinds.h has the kernels. Weights are not negative here: R/kernel.R splits a signed column into two.
 *
 * Points lie one after another (x[i * d + j]). When a bandwidth scales dimensions, coordinates are pairs hi + lo of
 * doubles, so that scaling loses nothing that a subtraction could reveal; h is then 1. */
#pragma once

#include "core/call/arena.h"
#include "core/call/context.h"
#include "kernel/kinds.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_TILE 32        /* queries of a tile in double */
#define WEFT_TILE_SINGLE 64 /* in single precision */

typedef struct weft_points {
  size_t n, d;
  const double *x;  /* n * d */
  const double *lo; /* n * d, or NULL */
} weft_points;

enum weft_series_use { WEFT_SERIES_NEVER, WEFT_SERIES_IF_WORTH, WEFT_SERIES_ALWAYS };

/* What to sum. */
typedef struct weft_kernel_task {
  int kind;
  double h;
  weft_points query, reference;
  const double *weights; /* reference.n * m, no negative ones; lines, meshes and grids take NULL for 1 */
  size_t m;
  int leave_one_out; /* query i leaves reference i out */
  int logarithm;     /* out holds logarithms */
  double rel_error, abs_error;
  /* Of walks alone: */
  int series;         /* weft_series_use: nodes may join series, where the kernel has one */
  double confidence;  /* below 1: samples may stand for nodes, within the errors with this probability for a query and
                         column */
  uint64_t key;       /* of their draws */
  const int32_t *own; /* NULL, or query i leaves reference own[i] out instead, none when negative; on the CPU */
  size_t trial;       /* 0: all; else only so many groups of queries are summed, to time them */
  double budget;      /* 0, or processor seconds: a walk that would still need more than these is abandoned */
  /* Of grids and meshes alone: */
  int columns; /* points lie as R has them, x[j * n + i], without low parts */
  /* Of direct sums alone: */
  size_t own_first; /* query i leaves reference own_first + i out, when it leaves one out and there is no `own` */
} weft_kernel_task;

static WEFT_HD inline int weft_left_out(const weft_kernel_task *task, size_t i, size_t k)
{
  return task->leave_one_out && (task->own ? (int64_t) task->own[i] == (int64_t) k : k == task->own_first + i);
}

/* The work that was done: pairs computed one by one, nodes bounded, queries computed again with more digits; nodes that
 * joined a group's series, sampled pairs; processor seconds before the first group of queries and after, queries
 * summed; 1 when the walk was abandoned. */
/* clang-format off */
#define WEFT_KERNEL_EFFORT(X) \
  X(pairs) X(nodes) X(repeated) X(series) X(samples) X(prepared) X(walked) X(queries) X(given_up)
/* clang-format on */
typedef struct weft_kernel_effort {
#define WEFT_EFFORT_FIELD(name) double name;
  WEFT_KERNEL_EFFORT(WEFT_EFFORT_FIELD)
} weft_kernel_effort;

/* ---- tiles: 32 queries against a run of references ---- */

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
/* out = (float) ((x - middle) * scale), element by element. */
typedef void (*weft_shift)(const double *x, const double *middle, double scale, size_t count, float *out);
void weft_shift_avx512(const double *x, const double *middle, double scale, size_t count, float *out);
void weft_shift_avx2(const double *x, const double *middle, double scale, size_t count, float *out);
void weft_shift_portable(const double *x, const double *middle, double scale, size_t count, float *out);
/* gcc vectorizes loops by itself only from -O3 on. */
#if defined(__GNUC__) && !defined(__clang__)
#  define VECTORIZE __attribute__((optimize("O3")))
#else
#  define VECTORIZE
#endif
weft_shift weft_shift_variant(void);
/* The variants for this machine. */
weft_tile_sum weft_tile_variant(void);
weft_tile_sum_single weft_tile_single_variant(void);

/* Relative rounding error of s in d dimensions. */
static WEFT_HD inline double weft_distance_error(size_t d) { return (0.5 * (double) d + 4) * 2.3e-16; }

/* ---- points ---- */

/* x: n * d from R's columns. scale: NULL, d divisors, or with `full` a d * d lower triangle L by columns, z = L⁻¹(x -
 * origin). With a scale, `lo` gets what the doubles in `out` lack. */
weft_status weft_points_fill(weft_ctx *ctx, const double *columns, size_t n, size_t d, const double *origin,
                             const double *scale, int full, double *out, double *lo);
/* *same = 1 when x and x_lo are what weft_points_fill() makes of these columns, row order[i] as point i, bit by bit. */
weft_status weft_points_check(weft_ctx *ctx, const double *columns, size_t n, size_t d, const double *origin,
                              const double *scale, int full, const int32_t *order, const double *x, const double *x_lo,
                              int *same);
/* out: 3 numbers per column: the least and greatest of the finite ones, and how many are not finite. */
weft_status weft_points_range(weft_ctx *ctx, const double *columns, size_t n, size_t d, double *out);

/* ---- direct sums ---- */

weft_status weft_kernel_direct(weft_ctx *ctx, const weft_kernel_task *task, double *out, weft_kernel_effort *effort);
/* The listed queries of a direct sum again, pair by pair and with more digits. */
weft_status weft_kernel_repeat(weft_ctx *ctx, const weft_kernel_task *task, const size_t *list, size_t count,
                               double *out);
/* Processor seconds of a direct sum's pair on the CPU, measured now on the first of the task's pairs: the least of
 * several times. */
weft_status weft_kernel_pair_seconds(weft_ctx *ctx, const weft_kernel_task *task, int times, double *seconds);
/* In float, coordinates relative to each block of queries, which should come in an order in which neighbours lie
 * together; bound[i]: greatest error of query i over Σ|w|. own: NULL, or query i leaves reference own[i] out. */
weft_status weft_kernel_direct_single(weft_ctx *ctx, const weft_kernel_task *task, const int32_t *own, int tensor,
                                      double *out, double *bound);
/* Σ_i w_ic (scale x·y + offset)^degree, dot products compensated; weights of any sign. */
weft_status weft_kernel_polynomial(weft_ctx *ctx, const weft_kernel_task *task, double scale, double offset,
                                   double degree, double *out);

/* ---- trees ---- */

typedef enum { WEFT_TREE_KD, WEFT_TREE_BALL, WEFT_TREE_VP, WEFT_TREE_RP } weft_tree_type;

/* Nodes in breadth-first order; a node's points are a run. The shape depends on n and the leaf size alone: each split
 * is by rank, at a multiple of the leaf size. */
typedef struct weft_tree {
  weft_points points;   /* in the tree's order */
  const int32_t *order; /* order[i]: the row, from 0, of the tree's point i */
  size_t nodes, leaf_size;
  const double *first, *count; /* of points, per node; doubles, as R keeps them */
  const int32_t *child;        /* the left child, the right one follows; -1: a leaf */
  const double *box;           /* nodes * 2d: least, then greatest coordinates */
  const double *centre;  /* ball, vp, rp: nodes * (d + 1): middle relative to the node's first point, radius; or NULL */
  const double *moments; /* NULL, or weft_kernel_moments() of the weights, where many walks share them */
} weft_tree;

size_t weft_tree_nodes(size_t n, size_t leaf_size);
/* The uppermost nodes of the subtree at `from` with at most `most` points, or leaves, from left to right. Room for all
 * nodes. */
size_t weft_tree_top(const weft_tree *tree, size_t from, double most, int32_t *nodes);

/* Fills order, points (moved in place), nodes. All arrays are the caller's. */
typedef struct weft_tree_build {
  weft_tree_type type;
  size_t n, d, leaf_size, nodes;
  uint64_t key;
  double *x, *lo; /* moved into the tree's order */
  int32_t *order;
  double *first, *count, *box, *centre;
  int32_t *child;
} weft_tree_build;
weft_status weft_tree_grow(weft_ctx *ctx, const weft_tree_build *build);
/* For trees that were kept elsewhere: *wrong is NULL, or the array that weft_tree_grow() cannot have made. Arrays must
 * have their sizes. */
weft_status weft_tree_check(weft_ctx *ctx, const weft_tree_build *build, const char **wrong);

/* Sums for each of many bandwidths, narrowest first, in place of task->h; out: one after another. task->reference and
 * weights are in the reference tree's order; queries are the query tree's points, and out is in its order. */
weft_status weft_kernel_walk_many(weft_ctx *ctx, const weft_kernel_task *task, const double *h, size_t bandwidths,
                                  const weft_tree *query, const weft_tree *reference, double *out,
                                  weft_kernel_effort *effort);

/* nodes * m * (d + 2): see weft_node_tile. */
weft_status weft_kernel_moments(weft_ctx *ctx, const weft_kernel_task *task, const weft_tree *reference,
                                double *moments);

/* ---- one dimension ---- */

/* Sums over sorted references by moments of cells, exactly or within the errors; line.h. Points without low
 * parts, no `own`. part: NULL, or of which column each is a part, so that tolerances are relative to what all parts of
 * a column have together. */
weft_status weft_kernel_line(weft_ctx *ctx, const weft_kernel_task *task, const int *part, double *out,
                             weft_kernel_effort *effort);
int weft_kernel_has_line(int kind);
/* Weights of points on a grid, by which smooth functions of two points' distance are summed over all pairs. */
typedef struct weft_binning {
  size_t n, bins;
  const double *x;
  double least, per_bin; /* place of x: (x - least) * per_bin, at least 1, less than bins - 2 */
} weft_binning;
/* bin: bins, the points' shares, each parted among the four bins around it by cubic interpolation. own: 4, the sum over
 * the points of the products of their own shares 0, 1, 2 and 3 bins apart. */
weft_status weft_kernel_bin(weft_ctx *ctx, const weft_binning *binning, double *bin, double *own);

/* ---- a mesh ---- */

#define WEFT_MESH_MAX_NODES 1e9
struct weft_mesh_scheme;
struct weft_mesh;
/* The sum over all ordered pairs of references, of a point with itself among them, and its greatest error; one column
 * of weights. */
weft_status weft_kernel_mesh_pairs(weft_ctx *ctx, const weft_kernel_task *task, const struct weft_mesh_scheme *scheme,
                                   double *sum, double *error);

/* ---- pairs ---- */

/* A decreasing function of r, 0 from its end on: cubic pieces of width 1 / per_unit; bend[k]: half its second
 * derivative by r² from piece k on, at most. */
typedef struct weft_radial {
  size_t pieces;
  double per_unit;
  const double *coefficients; /* pieces * 4, of powers of the place in the piece from 0 to 1 */
  const double *bend;         /* pieces + 1 */
} weft_radial;

/* *out = Σ over all pairs of g(r / h), within rel_error. Points have no low parts. */
weft_status weft_kernel_pairs(weft_ctx *ctx, const weft_radial *radial, double h, double rel_error,
                              const weft_tree *query, const weft_tree *reference, double *out);

/* ---- what both back ends do ---- */

#ifdef WEFT_TESTS
/* Benchmarks' points, made where they are summed; cube.h. */
struct weft_kernel_cube_job;
struct weft_kernel_cube_mesh_job;
weft_status weft_kernel_cube(weft_ctx *ctx, const struct weft_kernel_cube_job *job);
weft_status weft_kernel_cube_mesh(weft_ctx *ctx, const struct weft_kernel_cube_mesh_job *job);
#endif

typedef struct weft_kernel_ops {
  /* As weft_kernel_direct(). */
  weft_status (*direct)(weft_ctx *ctx, const weft_kernel_task *task, double *out, weft_kernel_effort *effort);
  /* As weft_kernel_direct_single(); `tensor`: products in pairs of 16-bit floats on tensor cores, where there are
   * any. */
  weft_status (*single)(weft_ctx *ctx, const weft_kernel_task *task, const int32_t *own, int tensor, double *out,
                        double *bound);
  /* Sums over all pairs no farther apart than `reach`, over a grid, where one suits; *done = 0: nothing was done. */
  weft_status (*grid)(weft_ctx *ctx, const weft_kernel_task *task, double reach, int *done, double *out,
                      weft_kernel_effort *effort);
  /* Sums of the Gaussian kernel over a mesh that is placed (mesh.h); queries beyond it have 0. total: the sum of
   * each column's weights. *rounding: the error of adding, at most, over the sum of weights. */
  weft_status (*mesh)(weft_ctx *ctx, const weft_kernel_task *task, const struct weft_mesh *mesh, const double *total,
                      double *out, double *rounding);
#ifdef WEFT_TESTS
  weft_status (*cube)(weft_ctx *ctx, const struct weft_kernel_cube_job *job);
  weft_status (*cube_mesh)(weft_ctx *ctx, const struct weft_kernel_cube_mesh_job *job);
#endif
} weft_kernel_ops;

extern const weft_kernel_ops weft_kernel_cpu;

/* Sums of the Gaussian kernel in one to three dimensions by ops->mesh(). *error: the greatest error of a sum over all
 * weights, over their sum. missed: room for all queries, gets those whose error may be above the task's, *missing of
 * them, from 0, in order. */
weft_status weft_kernel_mesh(weft_ctx *ctx, const weft_kernel_ops *ops, const weft_kernel_task *task,
                             const struct weft_mesh_scheme *scheme, double *out, int32_t *missed, size_t *missing,
                             double *error);
/* ops->mesh() of the CPU. */
weft_status weft_kernel_mesh_sums(weft_ctx *ctx, const weft_kernel_task *task, const struct weft_mesh *mesh,
                                  const double *total, double *out, double *rounding);

/* ops->direct() and ops->single() with the queries dealt over the call's devices; kernel/cpu/spread.c. */
weft_status weft_kernel_direct_spread(weft_ctx *ctx, const weft_kernel_ops *ops, const weft_kernel_task *task,
                                      double *out, weft_kernel_effort *effort);
weft_status weft_kernel_single_spread(weft_ctx *ctx, const weft_kernel_ops *ops, const weft_kernel_task *task,
                                      const int32_t *own, int tensor, double *out, double *bound);
/* ops->grid() with the queries dealt in the same way; all devices have all points. */
weft_status weft_kernel_grid_spread(weft_ctx *ctx, const weft_kernel_ops *ops, const weft_kernel_task *task,
                                    double reach, int *done, double *out, weft_kernel_effort *effort);

#ifdef __cplusplus
}
#endif
