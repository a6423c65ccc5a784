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

/* gcc vectorizes loops by itself only from -O3 on. */
#if defined(__GNUC__) && !defined(__clang__)
#  define VECTORIZE __attribute__((optimize("O3")))
#else
#  define VECTORIZE
#endif

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
  int series;          /* weft_series_use: nodes may join series, where the kernel has one */
  double confidence;   /* below 1: samples may stand for nodes, within the errors with this probability for a query and
                          column */
  uint64_t key;        /* of their draws */
  const int32_t *own;  /* NULL, or query i leaves reference own[i] out instead, none when negative; on the CPU */
  size_t trial;        /* 0: all groups of queries are summed; else only this many, to count their work */
  double budget;       /* 0, or work: a walk that would still need more is abandoned */
  const double *costs; /* with a budget: work of each count of WEFT_WALK_COSTS */
  /* Only for lines: */
  const double *range; /* NULL, or the least and the greatest reference */
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
 * joined a group's series, sampled pairs; of walks, boxes compared, bounds put in order, products of series, queries
 * summed; 1 when the walk was abandoned. */
/* clang-format off */
#define WEFT_KERNEL_EFFORT(X) \
  X(pairs) X(nodes) X(repeated) X(series) X(samples) X(looks) X(ordered) X(products) X(queries) X(given_up)
#define WEFT_WALK_COSTS(X) X(pairs) X(nodes) X(samples) X(looks) X(ordered) X(products) X(queries)
/* clang-format on */
typedef struct weft_kernel_effort {
#define WEFT_EFFORT_FIELD(name) double name;
  WEFT_KERNEL_EFFORT(WEFT_EFFORT_FIELD)
} weft_kernel_effort;

/* Relative rounding error of s in d dimensions. */
static WEFT_HD inline double weft_distance_error(size_t d) { return (0.5 * (double) d + 4) * 2.3e-16; }

struct weft_mesh;

#define WEFT_KERNEL_SLOPE_DIMS 32
#define WEFT_KERNEL_GAUSSIAN_DIMS 64

typedef struct weft_kernel_ops {
  /* As weft_kernel_direct(). */
  weft_status (*direct)(weft_ctx *ctx, const weft_kernel_task *task, double *out, weft_kernel_effort *effort);
  /* As weft_kernel_direct_single(); `tensor`: products in pairs of 16-bit floats on tensor cores, where there are
   * any. */
  weft_status (*single)(weft_ctx *ctx, const weft_kernel_task *task, const int32_t *own, int tensor, double *out,
                        double *bound);
  /* For gradients, of one column of weights of any sign: d + 2 columns of out, for each query the sums of w k, of
   * w k (x - q)_j for each dimension, and of w k sum_j each[j] (x - q)_j^2. On a device: the
   * kernels of R's `slopes_there`, and up to WEFT_KERNEL_SLOPE_DIMS dimensions. */
  weft_status (*slopes)(weft_ctx *ctx, const weft_kernel_task *task, const double *each, double *out);
  /* Sums w k of the Gaussian kernel, one column of weights, with all references; with a `scale` slopes too, sums of
   * w k (x - q)_j scale_j, each dimension's together; moved: queries moved by their slopes over their sums. On a
   * device, points may be columns. bounds: the error of each query's sum, over the sum, then those of its slopes in
   * bandwidths, over the sum; infinite where there is no bound. On a device: up to WEFT_KERNEL_GAUSSIAN_DIMS
   * dimensions. */
  weft_status (*gaussian)(weft_ctx *ctx, const weft_kernel_task *task, const double *scale, int moved, double *out,
                          double *slopes, double *bounds);
  /* Sums over all pairs no farther apart than `reach`, over a grid, where one suits; *done = 0: nothing was done. */
  weft_status (*grid)(weft_ctx *ctx, const weft_kernel_task *task, double reach, int *done, double *out,
                      weft_kernel_effort *effort);
  /* Sums of the Gaussian kernel over a mesh that is placed (mesh.h); queries beyond it have 0. total: the sum of
   * each column's weights. *rounding: the error of adding, at most, over the sum of weights. */
  weft_status (*mesh)(weft_ctx *ctx, const weft_kernel_task *task, const struct weft_mesh *mesh, const double *total,
                      double *out, double *rounding);
} weft_kernel_ops;

extern const weft_kernel_ops weft_kernel_cpu;

#ifdef __cplusplus
}
#endif
